//! A small generator: Zipf addresses mixed with sequential runs, from a seed.
//!
//! It stands in where no real trace is at hand (a first run, examples, tests). It is calibrated to no
//! published trace; results on it must be labelled as synthetic. The same options give the same requests on
//! the same platform (the Zipf sampler uses the platform's `exp` and `ln`).

use crate::random::{SplitMix, Zipf, scatter, scatter_stride};
use crate::{Op, Request};

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticOptions {
    /// Same seed, same trace.
    pub seed: u64,
    /// How many requests.
    pub request_count: u64,
    /// Bytes in the volume: a multiple of 4096, room for the longest size.
    pub volume_bytes: u64,
    /// Reads among the requests, 0 to 100.
    pub read_percent: u32,
    /// Requests that continue the one before, 0 to 100.
    pub sequential_percent: u32,
    /// Skew of the others over the volume's 4 KiB blocks; 0 is uniform.
    pub zipf_exponent: f64,
    /// Sizes in bytes (multiples of 512, at least one) with their weights (not all 0).
    pub sizes: Vec<(u32, u32)>,
    /// Requests that start off a 4 KiB boundary (on a 512-byte one), 0 to 100.
    pub unaligned_percent: u32,
    /// Mean time between requests, exponentially distributed.
    pub interval_us_mean: u32,
}

impl Default for SyntheticOptions {
    /// A small update-heavy database-like mix: 100,000 requests on 256 MiB.
    fn default() -> Self {
        Self {
            seed: 1,
            request_count: 100_000,
            volume_bytes: 256 << 20,
            read_percent: 25,
            sequential_percent: 20,
            zipf_exponent: 0.9,
            sizes: vec![(4096, 60), (8192, 20), (16384, 10), (32768, 5), (65536, 5)],
            unaligned_percent: 10,
            interval_us_mean: 500,
        }
    }
}

/// An option is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("synthetic trace: {option} is {found}, expected {expected}")]
pub struct SyntheticError {
    /// The option.
    pub option: &'static str,
    /// What was given.
    pub found: String,
    /// What is possible.
    pub expected: &'static str,
}

/// The generator: an iterator over its requests.
#[derive(Clone, Debug)]
pub struct Synthetic {
    options: SyntheticOptions,
    random: SplitMix,
    zipf: Zipf,
    /// Scatters ranks over the blocks: coprime to their number.
    stride: u64,
    weight_total: u64,
    left: u64,
    time_us: u64,
    previous_end: u64,
}

const BLOCK_BYTES: u64 = 4096;

impl Synthetic {
    /// Checks the options.
    pub fn new(options: SyntheticOptions) -> Result<Self, SyntheticError> {
        let refuse = |option, found: String, expected| Err(SyntheticError { option, found, expected });
        for (option, percent) in [
            ("read_percent", options.read_percent),
            ("sequential_percent", options.sequential_percent),
            ("unaligned_percent", options.unaligned_percent),
        ] {
            if percent > 100 {
                return refuse(option, percent.to_string(), "0 to 100");
            }
        }
        if !(0.0..=5.0).contains(&options.zipf_exponent) {
            return refuse("zipf_exponent", options.zipf_exponent.to_string(), "0 to 5");
        }
        let weight_total = options.sizes.iter().map(|&(_, weight)| u64::from(weight)).sum();
        let sizes_fit = options.sizes.iter().all(|&(size, _)| size > 0 && size.is_multiple_of(512));
        if !sizes_fit || weight_total == 0 {
            let found = format!("{:?}", options.sizes);
            return refuse("sizes", found, "multiples of 512 with weights that are not all 0");
        }
        let size_max = options.sizes.iter().map(|&(size, _)| u64::from(size)).max().unwrap_or(0);
        let volume = options.volume_bytes;
        if !volume.is_multiple_of(BLOCK_BYTES) || !(size_max + BLOCK_BYTES..=1 << 50).contains(&volume) {
            return refuse(
                "volume_bytes",
                volume.to_string(),
                "a multiple of 4096 above the longest size, up to 2^50",
            );
        }
        let blocks = volume / BLOCK_BYTES;
        Ok(Self {
            random: SplitMix(options.seed),
            zipf: Zipf::new(blocks, options.zipf_exponent),
            stride: scatter_stride(blocks),
            weight_total,
            left: options.request_count,
            time_us: 0,
            previous_end: 0,
            options,
        })
    }

    fn size_bytes(&mut self) -> u64 {
        let mut ticket = self.random.below(self.weight_total);
        for &(size, weight) in &self.options.sizes {
            match ticket.checked_sub(u64::from(weight)) {
                Some(rest) => ticket = rest,
                None => return u64::from(size),
            }
        }
        BLOCK_BYTES
    }

    fn offset_bytes(&mut self, length_bytes: u64) -> u64 {
        let room_bytes = self.options.volume_bytes - length_bytes;
        if self.random.percent(self.options.sequential_percent) && self.previous_end <= room_bytes {
            return self.previous_end;
        }
        let blocks = self.options.volume_bytes / BLOCK_BYTES;
        let rank = self.zipf.sample(&mut self.random) - 1;
        let block = scatter(rank, self.stride, blocks);
        let unaligned = self.random.percent(self.options.unaligned_percent);
        let shift = if unaligned { 512 * (1 + self.random.below(7)) } else { 0 };
        (block * BLOCK_BYTES + shift).min(room_bytes)
    }
}

impl Iterator for Synthetic {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let op = if self.random.percent(self.options.read_percent) { Op::Read } else { Op::Write };
        let length_bytes = self.size_bytes();
        let offset_bytes = self.offset_bytes(length_bytes);
        self.previous_end = offset_bytes + length_bytes;
        let request = Request { time_us: self.time_us, dev: 0, op, offset_bytes, length_bytes };
        let pause = -(1.0 - self.random.unit()).ln() * f64::from(self.options.interval_us_mean);
        self.time_us = self.time_us.saturating_add(pause as u64);
        Some(request)
    }
}
