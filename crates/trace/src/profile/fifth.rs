//! The WAS paper's Synthetic workload, read so that every column of Table I holds.
//!
//! Section V-A speaks of normally distributed addresses, of which no fifth of the *unique* chunks can get
//! 80 % of the requests (`normal.rs`). Here a fifth of the range does, and requests are uniform inside of it
//! and outside: with 160,400 chunks 1,000,000 requests write nearly all of them, so that a fifth of the range
//! is a fifth of the unique chunks too. Sizes and phases are those of the other reading.

use crate::random::Clock;
use crate::{Op, Request};
use block::{Random as _, SplitMix};

const REQUEST_BYTES: u64 = 8192;
const SECTOR_BYTES: u64 = 512;
/// Chunks of the range; the hot ones are the first fifth.
const RANGE_CHUNKS: u64 = 160_400;
const HOT_CHUNKS: u64 = RANGE_CHUNKS / 5;
const SECTORS_PER_CHUNK: u64 = super::CALIBRATED_CHUNK_BYTES / SECTOR_BYTES;
const INTERVAL_US_MEAN: f64 = 1000.0;

/// The generator; see the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct HotFifth {
    random: SplitMix,
    clock: Clock,
    left: u64,
}

impl HotFifth {
    pub(super) fn new(request_count: u64, seed: u64) -> Self {
        Self { random: SplitMix::new(seed), clock: Clock::new(INTERVAL_US_MEAN), left: request_count }
    }

    /// What it is made of, for the file and for people.
    pub(super) fn solution(&self) -> String {
        format!("range of {RANGE_CHUNKS} chunks, 80 % on the first {HOT_CHUNKS}")
    }
}

impl Iterator for HotFifth {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let time_us = self.clock.tick(&mut self.random);
        let hot = HOT_CHUNKS * SECTORS_PER_CHUNK;
        // The last request ends with the range.
        let all = RANGE_CHUNKS * SECTORS_PER_CHUNK - REQUEST_BYTES / SECTOR_BYTES + 1;
        let sector = if self.random.chance(4, 5) {
            self.random.below(hot)
        } else {
            hot + self.random.below(all - hot)
        };
        Some(Request {
            time_us,
            dev: 0,
            op: Op::Write,
            offset_bytes: sector * SECTOR_BYTES,
            length_bytes: REQUEST_BYTES,
        })
    }
}
