//! The WAS paper's Synthetic workload as X-15 derives it.
//!
//! The paper says: normally distributed addresses, a fifth of them accessed by 80 % of the requests, writes
//! only. Table I adds 8,192-byte requests that touch 2.875 chunks each: 1/8 x 2 + 7/8 x 3, so they start at
//! any of the eight sectors of a chunk. The middle fifth of the range gets 80 % if the range's tenth is
//! 1.2816 deviations: deviation = 0.078 x range. What remains, the range, is solved from the unique chunks.

use super::CALIBRATED_CHUNK_BYTES;
use super::published::WAS_SYNTHETIC;
use super::solve::rising_zero;
use crate::random::{Clock, SplitMix};
use crate::{Op, Request};

const REQUEST_BYTES: u64 = 8192;
const SECTOR_BYTES: u64 = 512;
/// Deviation of the addresses as part of their range.
const DEVIATION: f64 = 0.078;
/// Chunks that a request touches on average.
const CHUNKS_PER_REQUEST: f64 = 2.875;
const INTERVAL_US_MEAN: f64 = 1000.0;

/// Unique chunks expected of `request_count` requests if a deviation is so many chunks: the sum over the
/// range of the probabilities 1 - exp(-expected writes of the chunk), as an integral by Simpson's rule.
fn unique_expected(deviation_chunks: f64, request_count: f64) -> f64 {
    const STEPS: u32 = 2000;
    let half = 0.5 / DEVIATION;
    let step = 2.0 * half / f64::from(STEPS);
    let peak = CHUNKS_PER_REQUEST * request_count / deviation_chunks / std::f64::consts::TAU.sqrt();
    let written = |index: u32| {
        let z = f64::from(index) * step - half;
        -(-peak * (-z * z / 2.0).exp()).exp_m1()
    };
    let sum: f64 = (0..=STEPS)
        .map(|index| {
            let weight = match index {
                0 | STEPS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * written(index)
        })
        .sum();
    deviation_chunks * sum * step / 3.0
}

/// Chunks of the range.
fn solve_range_chunks() -> u64 {
    let row = &WAS_SYNTHETIC;
    let unique = row.unique_chunk_count as f64;
    // A range of as many chunks is too small, one a hundred times as large gives more unique
    // chunks than wanted.
    let deviation = rising_zero(DEVIATION * unique, 100.0 * DEVIATION * unique, |deviation| {
        unique_expected(deviation, row.request_count as f64) - unique
    });
    (deviation / DEVIATION).round() as u64
}

/// The generator; see the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Normal {
    random: SplitMix,
    clock: Clock,
    left: u64,
    range_chunks: u64,
}

impl Normal {
    pub(super) fn new(request_count: u64, seed: u64) -> Self {
        Self {
            random: SplitMix(seed),
            clock: Clock::new(INTERVAL_US_MEAN),
            left: request_count,
            range_chunks: solve_range_chunks(),
        }
    }

    /// Chunks of the address range.
    pub(super) fn range_chunks(&self) -> u64 {
        self.range_chunks
    }

    /// What was solved, for the file and for people.
    pub(super) fn solution(&self) -> String {
        format!("range of {} chunks, standard deviation {DEVIATION} of it", self.range_chunks)
    }
}

impl Iterator for Normal {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let time_us = self.clock.tick(&mut self.random);
        let sectors = self.range_chunks * (CALIBRATED_CHUNK_BYTES / SECTOR_BYTES);
        let last = (sectors - REQUEST_BYTES / SECTOR_BYTES) as f64;
        let middle = last / 2.0;
        let deviation = DEVIATION * sectors as f64;
        // Beyond 6.4 deviations: once in 10^10 draws, kept within the range.
        let sector = (middle + deviation * self.random.normal()).round().clamp(0.0, last) as u64;
        Some(Request {
            time_us,
            dev: 0,
            op: Op::Write,
            offset_bytes: sector * SECTOR_BYTES,
            length_bytes: REQUEST_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the note on the top-20 % share of the unique chunks says.
    #[test]
    fn a_range_of_the_unique_chunks_alone_would_be_met_by_half() {
        let unique = WAS_SYNTHETIC.unique_chunk_count as f64;
        let met = unique_expected(DEVIATION * unique, 1e6);
        assert!((77_500.0..80_500.0).contains(&met), "{met}");
        let range = solve_range_chunks() as f64;
        assert!((unique_expected(DEVIATION * range, 1e6) - unique).abs() < 1.0, "{range}");
    }
}
