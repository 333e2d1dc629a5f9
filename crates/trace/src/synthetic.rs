//! A small generator: Zipf addresses mixed with sequential runs, from a seed.
//!
//! It stands in where no real trace is at hand (a first run, examples, tests). It is calibrated to no published trace;
//! results on it must be labelled as synthetic. The same options give the same requests on the same platform (the
//! Zipf sampler uses the platform's `exp` and `ln`).

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
        // About blocks / golden ratio; blocks - 1 is coprime, so the search ends.
        let mut stride = (blocks as f64 * 0.618_033_988_749_895) as u64 | 1;
        while gcd(stride, blocks) != 1 {
            stride += 1;
        }
        Ok(Self {
            random: SplitMix(options.seed),
            zipf: Zipf::new(blocks, options.zipf_exponent),
            stride,
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
        // Below blocks^2 <= 2^76: multiplied in 128 bits.
        let block = (u128::from(rank) * u128::from(self.stride) % u128::from(blocks)) as u64;
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

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform below `limit`, to within 2^-64 x limit.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

/// Zipf ranks 1..=n by rejection-inversion (Hörmann, Derflinger 1996), in constant time and memory.
#[derive(Clone, Debug)]
struct Zipf {
    count: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Self {
        let mut zipf =
            Self { count: count as f64, exponent, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.count + 0.5);
        zipf.shortcut = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the weight, (x^(1-s) - 1) / (1-s), ln x for s = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        let factor = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
        factor * log
    }

    fn integral_inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        let factor = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
        (factor * x).exp()
    }

    fn sample(&self, random: &mut SplitMix) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.integral_inverse(u);
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            if rank - x <= self.shortcut || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_follows_its_law() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.2] {
            let zipf = Zipf::new(1000, exponent);
            let mut random = SplitMix(7);
            let mut counts = vec![0u32; 1001];
            let draws = 400_000;
            for _ in 0..draws {
                counts[usize::try_from(zipf.sample(&mut random)).expect("small")] += 1;
            }
            let norm: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1u32, 2, 3, 10, 100, 1000] {
                let expected = f64::from(draws) * f64::from(rank).powf(-exponent) / norm;
                let found = f64::from(counts[rank as usize]);
                // Five standard deviations.
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "s {exponent} rank {rank}: {found} draws, expected {expected}"
                );
            }
        }
    }
}
