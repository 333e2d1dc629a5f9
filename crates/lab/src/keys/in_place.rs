//! The paper's store under load: pairs of one size, each overwritten where it is (EPLOG, section 4).
//!
//! A GET that the cache does not answer reads the key first and the pair after, an UPDATE the key and then
//! writes the pair. The gains that the paper prints for the whole cache, 420.9 and 153.4 % (H-30), agree with
//! each other only so.
//!
//! Simulated devices keep no content. There it is known from the order of loading which key lies where.

use super::draw::Request;
use super::{Kept, Subject, key};
use crate::failure::Failure;
use crate::subject::target::{Finished, Part, Target};
use kv::Secret;
use kv::fixed::{FixedPairs, Found, Places, encode, key_of};
use std::collections::VecDeque;

/// The block that begins with a pair's key.
const BLOCK_BYTES: u64 = 4096;

#[derive(Clone, Copy)]
enum Stage {
    /// The key at a candidate is read.
    Key { places: Places, at: usize },
    /// The pair is read.
    Pair,
    /// The pair is written.
    Write,
}

#[derive(Clone, Copy)]
struct Job {
    request: Request,
    stage: Stage,
    offset_bytes: u64,
}

/// See the module's documentation.
pub struct InPlace {
    target: Box<dyn Target>,
    pairs: FixedPairs,
    pair: Vec<u8>,
    has_content: bool,
    jobs: Vec<Option<Job>>,
    /// Requests whose part found no buffers.
    waiting: VecDeque<usize>,
    finished: Vec<Finished>,
    given_bytes: u64,
    volume_pairs: u64,
    stripe_pairs: u64,
}

impl InPlace {
    /// On this array, whose stripes have `stripe_bytes` of data.
    pub fn new(
        mut target: Box<dyn Target>,
        pairs: (usize, usize),
        stripe_bytes: u64,
        has_content: bool,
        places: usize,
    ) -> Self {
        let (pair_bytes, cache_keys) = pairs;
        target.prepare(places);
        Self {
            volume_pairs: target.volume_bytes() / super::wide(pair_bytes),
            stripe_pairs: (stripe_bytes / super::wide(pair_bytes)).max(1),
            target,
            pairs: FixedPairs::new(pair_bytes, cache_keys, Secret([1, 2])),
            pair: (0..=255).cycle().take(pair_bytes).collect(),
            has_content,
            jobs: vec![None; places],
            waiting: VecDeque::new(),
            finished: Vec::new(),
            given_bytes: 0,
        }
    }

    fn pair_bytes(&self) -> u64 {
        super::wide(self.pair.len())
    }

    /// Starts the part that a request is at.
    fn send(&mut self, place: usize) -> bool {
        let Some(job) = self.jobs[place] else { return true };
        let part = Part { tag: place, offset_bytes: job.offset_bytes, length_bytes: self.pair_bytes() };
        match (job.stage, job.request) {
            (Stage::Key { .. }, _) => self.target.start_read(Part { length_bytes: BLOCK_BYTES, ..part }),
            (Stage::Pair, _) => self.target.start_read(part),
            (Stage::Write, Request::Update(number) | Request::ReadModifyWrite(number)) => {
                encode(&mut self.pair, &key(number));
                let pair = &self.pair;
                self.target.start_write(part, &mut |offset, bytes| {
                    let at = usize::try_from(offset - job.offset_bytes).unwrap_or(0);
                    bytes.copy_from_slice(&pair[at..at + bytes.len()]);
                })
            }
            (Stage::Write, Request::Insert(first)) => {
                let count = self.stripe_pairs.min(self.volume_pairs - first);
                let (size, mut pair) = (self.pair_bytes(), self.pair.clone());
                let part = Part { length_bytes: count * size, ..part };
                self.target.start_write(part, &mut |offset, bytes| {
                    let (number, at) = (offset / size, usize::try_from(offset % size).unwrap_or(0));
                    if at == 0 {
                        encode(&mut pair, &key(number));
                    }
                    bytes.copy_from_slice(&pair[at..at + bytes.len()]);
                })
            }
            (Stage::Write, Request::Get(_) | Request::Scan(..)) => unreachable!("neither writes"),
        }
    }

    fn go(&mut self, place: usize, job: Job) {
        self.jobs[place] = Some(job);
        if !self.waiting.is_empty() || !self.send(place) {
            self.waiting.push_back(place);
        }
    }

    /// The pair's place is known.
    fn found(&mut self, place: usize, job: Job, offset_bytes: u64) {
        let stage = match job.request {
            Request::Update(_) | Request::Insert(_) => Stage::Write,
            Request::Get(_) | Request::ReadModifyWrite(_) | Request::Scan(..) => Stage::Pair,
        };
        self.go(place, Job { stage, offset_bytes, ..job });
    }

    /// Whether the key that was read is this one.
    fn matches(&mut self, place: usize, number: u64, offset_bytes: u64) -> bool {
        if !self.has_content {
            return offset_bytes == number * self.pair_bytes();
        }
        let (wanted, mut same) = (key(number), false);
        self.target.content(place, &mut |offset, bytes| {
            if offset == offset_bytes {
                same = key_of(bytes) == Some(&wanted[..]);
            }
        });
        same
    }

    /// A part has ended; true if that is the end of the request.
    fn part_ended(&mut self, place: usize) -> Result<bool, Failure> {
        let Some(job) = self.jobs[place] else { return Ok(false) };
        let (Request::Get(number)
        | Request::Update(number)
        | Request::Insert(number)
        | Request::ReadModifyWrite(number)
        | Request::Scan(number, _)) = job.request;
        let same = match (job.stage, job.request) {
            (Stage::Write, _) => true,
            (Stage::Key { .. } | Stage::Pair, _) => self.matches(place, number, job.offset_bytes),
        };
        self.target.release(place);
        match job.stage {
            Stage::Key { .. } if same => {
                self.pairs.seen(&key(number), job.offset_bytes);
                self.found(place, job, job.offset_bytes);
                Ok(false)
            }
            Stage::Key { places, at } => {
                let offset_bytes = places
                    .get(at + 1)
                    .ok_or_else(|| Failure::new(format!("key {number}: found at none of its places")))?;
                self.go(place, Job { stage: Stage::Key { places, at: at + 1 }, offset_bytes, ..job });
                Ok(false)
            }
            Stage::Pair if !same => Err(Failure::new(format!("key {number}: found the pair of another key"))),
            Stage::Pair if matches!(job.request, Request::ReadModifyWrite(_)) => {
                self.go(place, Job { stage: Stage::Write, ..job });
                Ok(false)
            }
            Stage::Pair => Ok(true),
            Stage::Write => {
                self.given_bytes += self.pair_bytes();
                Ok(true)
            }
        }
    }
}

impl Subject for InPlace {
    fn target(&mut self) -> &mut dyn Target {
        &mut *self.target
    }

    fn start(&mut self, place: usize, request: Request) {
        let (Request::Get(number)
        | Request::Update(number)
        | Request::Insert(number)
        | Request::ReadModifyWrite(number)
        | Request::Scan(number, _)) = request;
        let job = Job { request, stage: Stage::Write, offset_bytes: number * self.pair_bytes() };
        if matches!(request, Request::Insert(_)) {
            return self.go(place, job);
        }
        match self.pairs.find(&key(number)) {
            Found::Known(offset_bytes) => self.found(place, job, offset_bytes),
            Found::Maybe(places) => {
                let stage = Stage::Key { places, at: 0 };
                // A key that is nowhere ends where its own pair would be, whose key is then not found.
                let offset_bytes = places.get(0).unwrap_or(job.offset_bytes);
                self.go(place, Job { stage, offset_bytes, ..job });
            }
        }
    }

    fn turn(&mut self, now_ns: u64, wait_ns: u64, done: &mut Vec<usize>) -> Result<(), Failure> {
        self.target.turn(now_ns, wait_ns)?;
        let mut finished = std::mem::take(&mut self.finished);
        self.target.take_finished(&mut finished);
        for Finished { tag, result } in finished.drain(..) {
            result.map_err(Failure::new)?;
            if self.part_ended(tag)? {
                self.jobs[tag] = None;
                done.push(tag);
            }
        }
        self.finished = finished;
        while let Some(&place) = self.waiting.front() {
            if !self.send(place) {
                break;
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Pairs are gathered to whole stripes, as the paper's stripe buffer does with new writes.
    fn load(&mut self, from: u64, keys: u64) -> Result<Option<Request>, Failure> {
        for number in from..(from + self.stripe_pairs).min(keys) {
            let place = self.pairs.add(&key(number));
            if place != Some(number * self.pair_bytes()) {
                return Err(Failure::new(format!("key {number}: the table takes no more keys")));
            }
        }
        Ok(from.is_multiple_of(self.stripe_pairs).then_some(Request::Insert(from)))
    }

    fn load_step(&self) -> u64 {
        self.stripe_pairs
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.target.settle()
    }

    fn kept(&self) -> Kept {
        let (hits, misses) = self.pairs.hits_and_misses();
        Kept {
            hits,
            misses,
            given_bytes: self.given_bytes,
            written_bytes: self.given_bytes,
            moved_bytes: 0,
            memory_bytes: self.pairs.memory_bytes(),
            live_bytes: 0,
            capacity_bytes: self.volume_pairs * self.pair_bytes(),
        }
    }
}
