//! The loads of experiments, made from a seed in memory.

use super::declare::{Kept, Source, Workload};
use super::scale::Scale;
use crate::drive::load::{Loaded, TraceOptions};
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use trace::{GenerateOptions, Generator, Label, Op, Profile, Request};

/// Shorter loads are none.
const REQUESTS_MIN: u64 = 300;
/// Bytes of a chunk of the papers.
const CHUNK_BYTES: u64 = 4096;
/// Bytes of a page of the parity-stream paper's SSDs.
const PAGE_BYTES: u64 = 16 << 10;
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

impl Workload {
    /// What it sets for words in braces.
    pub fn sets(&self, scale: Scale) -> Vec<(&'static str, String)> {
        match self.source {
            Source::Profile(_) | Source::Dense(..) | Source::Random { .. } => Vec::new(),
            Source::Pages { percent, drives, counted } => {
                let (all, before) = page_writes(scale, percent, drives, counted);
                let prefill = if percent == 100 { "--prefill" } else { "" };
                vec![
                    ("all", all.to_string()),
                    ("before", before.to_string()),
                    ("prefill", prefill.to_owned()),
                ]
            }
        }
    }

    /// What it is, in full: the same text, seed and scale are the same requests.
    pub fn inputs(&self) -> String {
        format!("{:?}", self.source)
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
            Source::Profile(profile) | Source::Dense(profile, _) => {
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
        }
    }

    /// Its requests, and what they are.
    pub fn requests(&self, scale: Scale, seed: u64) -> Result<(Vec<Request>, Label), Failure> {
        let generator = self.generator(scale, seed)?;
        let label = *generator.label();
        let mut requests: Vec<Request> = generator.collect();
        match self.source {
            Source::Profile(_) | Source::Random { .. } => {}
            Source::Dense(_, kept) => requests = dense(requests, kept),
            Source::Pages { .. } => requests.iter_mut().for_each(|request| {
                request.offset_bytes *= PAGE_BYTES / CHUNK_BYTES;
                request.length_bytes = PAGE_BYTES;
            }),
        }
        Ok((requests, label))
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
    last: Mutex<Vec<(String, Arc<Loaded>)>>,
}

/// So many loads are kept; each takes up to a gigabyte.
const KEPT: usize = 2;

impl Loads {
    /// A load, prepared as the options say.
    pub fn get(
        &self,
        load: &Workload,
        (scale, seed): (Scale, u64),
        options: &TraceOptions,
        chunk_bytes: u64,
    ) -> Result<Arc<Loaded>, Failure> {
        let how = format!("{} {scale} {seed} {options:?} {chunk_bytes}", load.inputs());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = last.iter().find(|(name, _)| *name == how) {
            return Ok(Arc::clone(found));
        }
        last.truncate(KEPT - 1);
        let (requests, label) = load.requests(scale, seed)?;
        let said =
            format!("{}, {} requests, seed {}", label.profile.describe(), label.request_count, label.seed);
        let loaded = Arc::new(options.prepare(&requests, said, chunk_bytes)?);
        last.insert(0, (how, Arc::clone(&loaded)));
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: Op, offset_bytes: u64, length_bytes: u64) -> Request {
        Request { time_us: 0, dev: 0, op, offset_bytes, length_bytes }
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
