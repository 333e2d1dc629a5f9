//! Random numbers from a seed: the same seed gives the same numbers on every machine, and published seeds
//! depend on that.
//!
//! | generator | for |
//! |---|---|
//! | [`SplitMix`] | coins, addresses, workloads: one word of state |
//! | [`XoshiroPlusPlus`] | the models of flash, which draw most |
//! | [`XoshiroStarStar`] | the simulator's worlds, which fork generators |

/// One step of SplitMix64 (Steele, Lea, Flood 2014): spreads related seeds far apart.
pub fn mix(seed: u64) -> u64 {
    SplitMix(seed).word()
}

/// What can be drawn from any source of random words.
pub trait Random {
    /// The next 64 bits.
    fn word(&mut self) -> u64;

    /// Uniform below `limit` (0 if that is 0), to within 2^-64 x `limit`.
    #[inline]
    fn below(&mut self, limit: u64) -> u64 {
        // The high half of a product of two 64-bit numbers.
        ((u128::from(self.word()) * u128::from(limit)) >> 64) as u64
    }

    /// The same for 32 bits.
    #[inline]
    fn below_u32(&mut self, limit: u32) -> u32 {
        self.below(limit.into()) as u32
    }

    /// A number in `low..=high`.
    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// An index below `len`, which is at least 1.
    fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Happens `of` times in `among`.
    fn chance(&mut self, of: u64, among: u64) -> bool {
        self.below(among) < of
    }

    /// Uniform in 0..1.
    #[inline]
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of some choices.
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Brings items into any order.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Random for SplitMix {
    #[inline]
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The step that both xoshiro256 generators share (Blackman, Vigna, "Scrambled Linear Pseudorandom Number
/// Generators", ACM TOMS 2021).
#[inline]
fn step([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    let (c_mixed, d_mixed) = (c ^ a, d ^ b);
    [a ^ d_mixed, b ^ c_mixed, c_mixed ^ (b << 17), d_mixed.rotate_left(45)]
}

/// xoshiro256++, seeded by SplitMix64.
#[derive(Clone, Debug)]
pub struct XoshiroPlusPlus([u64; 4]);

impl XoshiroPlusPlus {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        let mut words = SplitMix(seed);
        Self([(); 4].map(|()| words.word()))
    }
}

impl Random for XoshiroPlusPlus {
    #[inline]
    fn word(&mut self) -> u64 {
        let [a, _, _, d] = self.0;
        self.0 = step(self.0);
        a.wrapping_add(d).rotate_left(23).wrapping_add(a)
    }
}

/// xoshiro256**, seeded by a chain of [`mix`].
#[derive(Clone, Debug)]
pub struct XoshiroStarStar([u64; 4]);

impl XoshiroStarStar {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        let mut word = seed;
        Self([(); 4].map(|()| {
            word = mix(word);
            word
        }))
    }

    /// A generator of its own for a part of the work, so that parts do not disturb each other.
    pub fn fork(&mut self) -> Self {
        Self::new(self.word())
    }
}

impl Random for XoshiroStarStar {
    #[inline]
    fn word(&mut self) -> u64 {
        let [_, b, _, _] = self.0;
        self.0 = step(self.0);
        b.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_a_seed_are_those_of_the_reference_implementations() {
        let mut random = SplitMix::new(1_234_567);
        assert_eq!([random.word(), random.word()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        let mut random = XoshiroPlusPlus([1, 2, 3, 4]);
        assert_eq!([random.word(), random.word()], [41_943_041, 58_720_359]);
        let mut random = XoshiroStarStar([1, 2, 3, 4]);
        assert_eq!([random.word(), random.word(), random.word()], [11_520, 0, 1_509_978_240]);
    }

    #[test]
    fn draws_are_uniform_and_within_their_limits() {
        let mut random = XoshiroPlusPlus::new(7);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[random.index(7)] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert!((0..1000).all(|_| (3..=5).contains(&random.within(3, 5))));
        assert_eq!((random.below(0), random.below_u32(1)), (0, 0));
    }
}
