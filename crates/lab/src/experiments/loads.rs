//! The loads of experiments, made from a seed in memory, or traces of a folder.

use super::declare::{Kept, Source, Workload};
use super::recorded::Recorded;
use super::scale::Scale;
use crate::drive::load::{Loaded, TraceOptions};
use crate::failure::Failure;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use trace::{GenerateOptions, Generator, Op, Profile, Request};

/// Shorter loads are none.
const REQUESTS_MIN: u64 = 300;
/// Bytes of a chunk of the papers.
const CHUNK_BYTES: u64 = 4096;
/// Bytes of a page of the parity-stream paper's SSDs.
const PAGE_BYTES: u64 = 16 << 10;
/// Bytes of the range of [`Source::Plain`].
const PLAIN_BYTES: u64 = 1 << 30;
/// MiB of its SSDs here at full length, and at least.
const SSD_MIB: (u64, u64) = (1024, 160);

/// MiB of an SSD under [`Source::Pages`].
pub fn ssd_mib(scale: Scale) -> u64 {
    scale.of(SSD_MIB.0, SSD_MIB.1)
}

/// The writes of [`Source::Pages`], and those before the part that counts. A write is a page of data and one
/// of parity; at 100 % a little room is left for the array's metadata.
fn page_writes(scale: Scale, percent: u64, drives: u64, counted: u64) -> (u64, u64) {
    let drive = 7 * 64 * ssd_mib(scale) * range_percent(percent) / 200;
    let (drives, counted) = (scale.of(drives, 2), scale.of(counted, 1));
    (drives * drive, (drives - counted) * drive)
}

fn range_percent(percent: u64) -> u64 {
    if percent == 100 { 97 } else { percent }
}

/// MiB of the share of the space that [`Source::Application`] writes to.
fn range_mib(scale: Scale, percent: u64) -> u64 {
    6 * ssd_mib(scale) * range_percent(percent) / 100
}

/// The requests of [`Source::Application`], and those before the part that counts. How long they are differs,
/// so they are counted out on one seed; another makes the share of the part a little different.
fn application_writes(profile: Profile, scale: Scale, percent: u64, drives: u64, counted: u64) -> (u64, u64) {
    let range_bytes = range_mib(scale, percent) << 20;
    let (drives, counted) = (scale.of(drives, 2), scale.of(counted, 1));
    let options =
        GenerateOptions { profile, request_count: Some(u64::MAX), seed: 1, range_bytes: Some(range_bytes) };
    let (mut bytes, mut requests, mut before) = (0, 0, 0);
    for request in Generator::new(&options).into_iter().flatten() {
        bytes += request.length_bytes;
        requests += 1;
        if bytes <= (drives - counted) * range_bytes {
            before = requests;
        }
        if bytes >= drives * range_bytes {
            break;
        }
    }
    (requests, before)
}

/// What the two lengths of a run are called, and whether its SSDs are full before.
fn parts((all, before): (u64, u64), percent: u64) -> Vec<(&'static str, String)> {
    let prefill = if percent == 100 { "--prefill" } else { "" };
    vec![("all", all.to_string()), ("before", before.to_string()), ("prefill", prefill.to_owned())]
}

/// The runs of chunks of writes that no earlier write has touched.
fn fresh(requests: &[Request]) -> Vec<Request> {
    let mut seen = HashSet::new();
    let mut found: Vec<Request> = Vec::new();
    for request in requests.iter().filter(|request| request.op == Op::Write) {
        let mut last: Option<u64> = None;
        for chunk in request.chunks(CHUNK_BYTES).filter(|&chunk| seen.insert(chunk)) {
            match found.last_mut() {
                Some(run) if last.is_some_and(|last| last + 1 == chunk) => run.length_bytes += CHUNK_BYTES,
                Some(_) | None => found.push(Request {
                    offset_bytes: chunk * CHUNK_BYTES,
                    length_bytes: CHUNK_BYTES,
                    ..*request
                }),
            }
            last = Some(chunk);
        }
    }
    found
}

impl Workload {
    /// What it sets for words in braces.
    pub fn sets(&self, scale: Scale) -> Vec<(&'static str, String)> {
        match self.source {
            Source::Profile(_)
            | Source::Dense(..)
            | Source::Random { .. }
            | Source::Fresh(_)
            | Source::Plain { .. }
            | Source::Folder => Vec::new(),
            Source::Recorded(trace) => trace.sets(),
            Source::Pages { percent, drives, counted } => {
                parts(page_writes(scale, percent, drives, counted), percent)
            }
            Source::Application { profile, percent, drives, counted } => {
                parts(application_writes(profile, scale, percent, drives, counted), percent)
            }
        }
    }

    /// What it is, in full: the same text, seed and scale are the same requests.
    pub fn inputs(&self) -> String {
        match self.source {
            Source::Recorded(trace) => trace.inputs(),
            Source::Profile(_)
            | Source::Dense(..)
            | Source::Random { .. }
            | Source::Fresh(_)
            | Source::Plain { .. }
            | Source::Pages { .. }
            | Source::Application { .. }
            | Source::Folder => format!("{:?}", self.source),
        }
    }

    /// The trace that it is, if it is one.
    pub fn recorded(&self) -> Option<&'static Recorded> {
        if let Source::Recorded(trace) = self.source { Some(trace) } else { None }
    }

    /// The generator of its requests.
    pub fn generator(&self, scale: Scale, seed: u64) -> Result<Generator, Failure> {
        let generator = |profile: Profile, request_count, range_bytes| {
            Ok(Generator::new(&GenerateOptions {
                profile,
                request_count: Some(request_count),
                seed,
                range_bytes,
            })?)
        };
        match self.source {
            Source::Profile(profile) | Source::Dense(profile, _) | Source::Fresh(profile) => {
                let full = profile.published_request_count().unwrap_or(trace::REQUESTS_DEFAULT);
                generator(profile, scale.of(full, REQUESTS_MIN), None)
            }
            Source::Random { profile, range_bytes, count } => {
                generator(profile, scale.of(count, REQUESTS_MIN), Some(range_bytes))
            }
            Source::Pages { percent, drives, counted } => {
                let (all, _) = page_writes(scale, percent, drives, counted);
                // The generator's pages have 4 KiB.
                let range = 3 * ssd_mib(scale) * range_percent(percent) / 200;
                generator(Profile::Zipf { exponent: 0.99 }, all, Some(range << 20))
            }
            Source::Application { profile, percent, drives, counted } => {
                let (all, _) = application_writes(profile, scale, percent, drives, counted);
                generator(profile, all, Some(range_mib(scale, percent) << 20))
            }
            Source::Plain { count, .. } => {
                generator(Profile::Uniform, scale.of(count, REQUESTS_MIN), Some(PLAIN_BYTES))
            }
            Source::Folder | Source::Recorded(_) => {
                Err(Failure::new(format!("{}: found a trace, expected a load that is generated", self.name)))
            }
        }
    }

    /// Its requests, and what they are.
    pub fn requests(&self, scale: Scale, seed: u64) -> Result<(Vec<Request>, String), Failure> {
        if let Some(trace) = self.recorded() {
            return Ok((trace.requests(scale)?, trace.inputs()));
        }
        let generator = self.generator(scale, seed)?;
        let label = *generator.label();
        let mut requests: Vec<Request> = generator.collect();
        match self.source {
            Source::Profile(_)
            | Source::Random { .. }
            | Source::Application { .. }
            | Source::Folder
            | Source::Recorded(_) => {}
            Source::Fresh(_) => requests = fresh(&requests),
            Source::Plain { is_write, is_sequential, .. } => {
                for (request, index) in requests.iter_mut().zip(0_u64..) {
                    request.op = if is_write { Op::Write } else { Op::Read };
                    if is_sequential {
                        request.offset_bytes = index * CHUNK_BYTES % PLAIN_BYTES;
                    }
                }
            }
            Source::Dense(_, kept) => requests = dense(requests, kept),
            Source::Pages { .. } => requests.iter_mut().for_each(|request| {
                request.offset_bytes *= PAGE_BYTES / CHUNK_BYTES;
                request.length_bytes = PAGE_BYTES;
            }),
        }
        let said =
            format!("{}, {} requests, seed {}", label.profile.describe(), label.request_count, label.seed);
        Ok((requests, said))
    }
}

/// Requests without the chunks that none of them touches; chunks keep their order, so what was sequential
/// stays so.
fn dense(mut requests: Vec<Request>, kept: Kept) -> Vec<Request> {
    requests.retain(|request| match request.op {
        Op::Write => true,
        Op::Read => kept == Kept::ReadsToo,
        Op::Flush | Op::Trim => false,
    });
    let touched: BTreeSet<u64> = requests.iter().flat_map(|request| request.chunks(CHUNK_BYTES)).collect();
    let places: Vec<u64> = touched.into_iter().collect();
    for request in &mut requests {
        let first = request.offset_bytes / CHUNK_BYTES;
        let place = places.partition_point(|&chunk| chunk < first);
        let place = u64::try_from(place).expect("an index fits 64 bits");
        request.offset_bytes = place * CHUNK_BYTES + request.offset_bytes % CHUNK_BYTES;
    }
    requests
}

/// The loads that were made last: neighbouring cells share them.
#[derive(Default)]
pub struct Loads {
    last: Mutex<Vec<Made>>,
}

/// A load that was made: how, what it is, the hash of its requests.
struct Made {
    how: String,
    loaded: Arc<Loaded>,
    hash: u64,
}

/// So many loads are kept; each takes up to a gigabyte.
const KEPT: usize = 2;

impl Loads {
    /// A load, prepared as the options say, and the hash of its requests.
    pub fn get(
        &self,
        load: &Workload,
        (scale, seed): (Scale, u64),
        options: &TraceOptions,
        chunk_bytes: u64,
    ) -> Result<(Arc<Loaded>, u64), Failure> {
        let how = format!("{} {scale} {seed} {options:?} {chunk_bytes}", load.inputs());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = last.iter().find(|made| made.how == how) {
            return Ok((Arc::clone(&found.loaded), found.hash));
        }
        last.truncate(KEPT - 1);
        let (requests, said) = load.requests(scale, seed)?;
        let loaded = Arc::new(options.prepare(&requests, said, chunk_bytes)?);
        let hash = loaded.hash();
        last.insert(0, Made { how, loaded: Arc::clone(&loaded), hash });
        Ok((loaded, hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: Op, offset_bytes: u64, length_bytes: u64) -> Request {
        Request { time_us: 0, dev: 0, op, offset_bytes, length_bytes }
    }

    #[test]
    fn fresh_chunks_are_those_that_nothing_wrote_before() {
        let chunk = |first: u64, count: u64| request(Op::Write, first * CHUNK_BYTES, count * CHUNK_BYTES);
        let requests =
            [chunk(2, 2), request(Op::Read, 0, CHUNK_BYTES), chunk(0, 6), chunk(3, 1), chunk(5, 2)];
        let found: Vec<(u64, u64)> = fresh(&requests)
            .iter()
            .map(|request| (request.offset_bytes / CHUNK_BYTES, request.length_bytes / CHUNK_BYTES))
            .collect();
        assert_eq!(found, [(2, 2), (0, 2), (4, 2), (6, 1)]);
    }

    #[test]
    fn applications_write_their_share_as_often_as_said() {
        for profile in [Profile::TpccLike, Profile::YcsbCompaction] {
            let load = Workload {
                name: "a",
                source: Source::Application { profile, percent: 50, drives: 10, counted: 4 },
            };
            let scale: Scale = "0.02".parse().expect("a scale");
            let (requests, _) = load.requests(scale, 1).expect("requests");
            let sets = load.sets(scale);
            assert_eq!(sets[0], ("all", requests.len().to_string()));
            let written: u64 = requests.iter().map(|request| request.length_bytes).sum();
            let share = range_mib(scale, 50) << 20;
            assert!((2 * share..2 * share + (1 << 20)).contains(&written), "{written} {share}");
            assert!(requests.iter().all(|request| request.offset_bytes + request.length_bytes <= share));
            assert!(requests.iter().all(|request| request.offset_bytes % PAGE_BYTES == 0));
        }
    }

    #[test]
    fn dense_requests_keep_their_order_and_neighbours() {
        let requests = vec![
            request(Op::Write, 100 * CHUNK_BYTES + 512, 2 * CHUNK_BYTES),
            request(Op::Read, 5 * CHUNK_BYTES, 4096),
            request(Op::Write, 103 * CHUNK_BYTES, 4096),
            request(Op::Flush, 0, 0),
            request(Op::Write, 1 << 40, 512),
        ];
        let places = |kept| -> Vec<u64> {
            dense(requests.clone(), kept).iter().map(|request| request.offset_bytes).collect()
        };
        assert_eq!(places(Kept::Writes), [512, 3 * CHUNK_BYTES, 4 * CHUNK_BYTES]);
        assert_eq!(places(Kept::ReadsToo), [CHUNK_BYTES + 512, 0, 4 * CHUNK_BYTES, 5 * CHUNK_BYTES]);
    }
}
