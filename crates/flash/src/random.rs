//! Random numbers from a seed: xoshiro256++ (Blackman, Vigna, "Scrambled Linear Pseudorandom Number
//! Generators", ACM TOMS 2021), seeded by SplitMix64. The same seed gives the same numbers on every platform.

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// Numbers that belong to this seed.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform below `limit` (0 if that is 0), to within `limit` / 2^64.
    #[inline]
    pub fn below(&mut self, limit: u32) -> u32 {
        // The high half of a product of a 64-bit and a 32-bit number is below the latter.
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u32
    }

    /// Uniform in 0..1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_a_seed_are_fixed_and_below_is_uniform() {
        // xoshiro256++ with state 1, 2, 3, 4: the reference implementation's first outputs.
        let mut reference = Random([1, 2, 3, 4]);
        assert_eq!([reference.bits(), reference.bits()], [41_943_041, 58_720_359]);
        let mut random = Random::new(7);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert_eq!(random.below(0), 0);
    }
}
