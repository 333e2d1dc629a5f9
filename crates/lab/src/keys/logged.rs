//! The product's store under load: a log on the array's volume.

use super::carrier::Carrier;
use super::draw::Request;
use super::{Kept, Subject, key};
use crate::failure::Failure;
use crate::subject::target::Target;
use kv::ask::{Answer, Ask, Keys as _, Lifetime, Old, Range, Told, Value, When};
use kv::blocks::Ended;
use kv::{Create, Options, Secret, Store, VolumeShape, create, open};
use std::collections::HashMap;

/// Bits of a cursor of the store's scans.
const CURSOR_BITS: u32 = 33;
/// The time at the start, in milliseconds since 1970; nothing here depends on it.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// What an answer is for.
#[derive(Clone, Copy)]
enum Step {
    /// A value that must be this key's.
    Get(u64),
    /// The same, which is then changed.
    Modify(u64),
    /// Anything else.
    Last,
    /// Keys, whose values are wanted.
    Scan,
    /// One of these values.
    Scanned,
}

struct Job {
    step: Step,
    /// Values of a scan that have not come.
    open: usize,
}

/// See the module's documentation.
pub struct Logged {
    carrier: Carrier,
    store: Store,
    value: Vec<u8>,
    jobs: Vec<Job>,
    told: Vec<Told>,
    ended: Vec<Ended>,
    /// Parts of scans: tags beyond the places, and whose they are.
    parts: HashMap<u64, usize>,
    next_part: u64,
}

impl Logged {
    /// Makes a store on the volume and opens it.
    pub fn new(
        mut carrier: Carrier,
        options: Options,
        value_bytes: usize,
        places: usize,
    ) -> Result<Self, Failure> {
        let volume = carrier.target().volume_bytes();
        let shape = VolumeShape { volume_bytes: volume, segment_bytes: None };
        let made = Create { shape, uuid: [1; 16], secret: Secret([1, 2]) };
        create(&mut carrier, &made)
            .map_err(|error| Failure::new(format!("the store cannot be made: {error}")))?;
        let store = open(&mut carrier, volume, options)
            .map_err(|error| Failure::new(format!("the store cannot be opened: {error}")))?;
        let jobs = (0..places).map(|_| Job { step: Step::Last, open: 0 }).collect();
        Ok(Self {
            carrier,
            store,
            value: (0..=255).cycle().take(value_bytes).collect(),
            jobs,
            told: Vec::new(),
            ended: Vec::new(),
            parts: HashMap::new(),
            next_part: super::wide(places),
        })
    }

    fn set(&mut self, tag: u64, number: u64) {
        self.value[..8].copy_from_slice(&number.to_le_bytes());
        let set = Ask::Set {
            key: Box::from(&key(number)[..]),
            value: Value::new(&self.value),
            when: When::Always,
            lifetime: Lifetime::Forever,
            old: Old::Ignored,
        };
        self.store.start(tag, set);
    }

    fn get(&mut self, tag: u64, key: Box<[u8]>) {
        self.store.start(tag, Ask::Get { key, range: Range::Whole, lifetime: None });
    }

    /// Goes on with what was answered; true if that is the end of the request.
    fn answered(&mut self, place: usize, answer: Answer) -> Result<bool, Failure> {
        let tag = super::wide(place);
        match (self.jobs[place].step, answer) {
            (Step::Get(number), Answer::Value(Some(value))) => check(number, &value).map(|()| true),
            (Step::Modify(number), Answer::Value(Some(value))) => {
                check(number, &value)?;
                self.jobs[place].step = Step::Last;
                self.set(tag, number);
                Ok(false)
            }
            (Step::Scan, Answer::Scanned { keys, .. }) => {
                self.jobs[place] = Job { step: Step::Scanned, open: keys.len() };
                let none = keys.is_empty();
                for key in keys {
                    self.next_part += 1;
                    self.parts.insert(self.next_part, place);
                    self.get(self.next_part, key);
                }
                Ok(none)
            }
            (Step::Scanned, Answer::Value(Some(_))) => {
                self.jobs[place].open -= 1;
                Ok(self.jobs[place].open == 0)
            }
            (Step::Last, Answer::Set { stored: true, .. } | Answer::Done) => Ok(true),
            (_, answer) => {
                Err(Failure::new(format!("the store answered {answer:?}, which nobody asked for")))
            }
        }
    }
}

/// A value begins with the number of its key.
fn check(number: u64, value: &Value) -> Result<(), Failure> {
    let found = value.parts().first().and_then(|part| part.get(..8));
    if found == Some(&number.to_le_bytes()[..]) {
        return Ok(());
    }
    Err(Failure::new(format!("key {number}: found the value of another key")))
}

impl Subject for Logged {
    fn target(&mut self) -> &mut dyn Target {
        self.carrier.target()
    }

    fn start(&mut self, place: usize, request: Request) {
        let tag = super::wide(place);
        let step = match request {
            Request::Get(number) => {
                self.get(tag, Box::from(&key(number)[..]));
                Step::Get(number)
            }
            Request::Update(number) | Request::Insert(number) => {
                self.set(tag, number);
                Step::Last
            }
            Request::ReadModifyWrite(number) => {
                self.get(tag, Box::from(&key(number)[..]));
                Step::Modify(number)
            }
            Request::Scan(number, count) => {
                let cursor = block::mix(number) >> (64 - CURSOR_BITS);
                self.store.start(tag, Ask::Scan { cursor, count });
                Step::Scan
            }
        };
        self.jobs[place] = Job { step, open: 0 };
    }

    fn turn(&mut self, now_ns: u64, wait_ns: u64, done: &mut Vec<usize>) -> Result<(), Failure> {
        self.store.drive(EPOCH_MS + now_ns / 1_000_000, &mut self.told);
        while let Some(issued) = self.store.next_request() {
            self.carrier.start(issued);
        }
        let mut told = std::mem::take(&mut self.told);
        let mut idle = told.is_empty();
        for Told { tag, answer } in told.drain(..) {
            let answer =
                answer.map_err(|refused| Failure::new(format!("the store refused a request: {refused}")))?;
            let place = match usize::try_from(tag) {
                Ok(place) if place < self.jobs.len() => place,
                Ok(_) | Err(_) => {
                    let whose = self.parts.remove(&tag);
                    whose.ok_or_else(|| {
                        Failure::new(format!("the store answered {tag}, which nobody asked"))
                    })?
                }
            };
            if self.answered(place, answer)? {
                done.push(place);
            }
        }
        self.told = told;
        idle &= !self.store.wants_drive() && done.is_empty();
        self.carrier.turn(now_ns, if idle { wait_ns } else { 0 }, &mut self.ended)?;
        for ended in self.ended.drain(..) {
            self.store.ended(ended);
        }
        Ok(())
    }

    fn load(&mut self, from: u64, _keys: u64) -> Result<Option<Request>, Failure> {
        Ok(Some(Request::Insert(from)))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.jobs[0].step = Step::Last;
        self.store.start(0, Ask::Flush);
        let mut done = Vec::new();
        while done.is_empty() {
            let now_ns = self.target().clock_ns().unwrap_or(0);
            self.turn(now_ns, crate::subject::array::WAIT_NS, &mut done)?;
        }
        self.target().settle()
    }

    fn kept(&self) -> Kept {
        let figures = self.store.figures();
        Kept {
            hits: figures.cache_hit_count,
            misses: figures.cache_miss_count,
            given_bytes: figures.given_bytes,
            written_bytes: figures.written_bytes,
            moved_bytes: figures.moved_bytes,
            memory_bytes: figures.index_bytes + figures.cache_bytes,
            live_bytes: figures.live_bytes,
            capacity_bytes: figures.capacity_bytes,
        }
    }
}
