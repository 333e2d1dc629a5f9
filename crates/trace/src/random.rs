//! Draws from a seed: uniform, exponential, normal and Zipf numbers, scattering, random times.
//!
//! The same seed gives the same numbers on the same platform (`exp`, `ln` and `cos` are the platform's).

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What to multiply ranks with to scatter them over `count` places (at least 1): coprime to their number, and
/// about `count` / golden ratio.
pub(crate) fn scatter_stride(count: u64) -> u64 {
    // count - 1 is coprime, so the search ends.
    let mut stride = (count as f64 * 0.618_033_988_749_895) as u64 | 1;
    while gcd(stride, count) != 1 {
        stride += 1;
    }
    stride
}

/// Where `rank` lies among `count` places.
pub(crate) fn scatter(rank: u64, stride: u64, count: u64) -> u64 {
    // Below count, as it is a remainder of it.
    (u128::from(rank) * u128::from(stride) % u128::from(count)) as u64
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform below `limit`, to within 2^-64 x limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// True with this probability, 0 to 1.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// True for `part` of the `whole` draws still to come, so that exactly so many of them are.
    pub(crate) fn of_the_rest(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// Normal with mean 0 and deviation 1 (Box, Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// True for so many of a hundred.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

/// Times of requests with exponentially distributed pauses.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    interval_us_mean: f64,
    time_us: u64,
}

impl Clock {
    pub(crate) fn new(interval_us_mean: f64) -> Self {
        Self { interval_us_mean, time_us: 0 }
    }

    /// The time of the next request, in microseconds; the first is at 0.
    pub(crate) fn tick(&mut self, random: &mut SplitMix) -> u64 {
        let now_us = self.time_us;
        let pause_us = -(1.0 - random.unit()).ln() * self.interval_us_mean;
        // Rounded, so that the mean stays.
        self.time_us = now_us.saturating_add((pause_us + 0.5) as u64);
        now_us
    }
}

/// Zipf ranks 1..=n by rejection-inversion (Hörmann, Derflinger 1996), in constant time and memory.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    pub(crate) fn new(count: u64, exponent: f64) -> Self {
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

    pub(crate) fn sample(&self, random: &mut SplitMix) -> u64 {
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
