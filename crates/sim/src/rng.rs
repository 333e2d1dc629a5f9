//! Randomness from a seed: xoshiro256** seeded by splitmix64, the same on every machine.

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

/// One step of splitmix64: spreads related seeds far apart.
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// A generator; every seed gives another sequence.
    pub fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        let mut z = seed;
        for word in &mut state {
            z = mix(z);
            *word = z;
        }
        Self { state }
    }

    /// A generator of its own for a part of the work, so that parts do not disturb each other.
    pub fn fork(&mut self) -> Self {
        Self::new(self.word())
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `limit`, which is at least 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.word()) * u128::from(limit);
        u64::try_from(wide >> 64).expect("the upper half of a product of two 64-bit numbers")
    }

    /// A number in `low..=high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// An index below `len`, which is at least 1.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Happens `of` times in `among`.
    pub fn chance(&mut self, of: u64, among: u64) -> bool {
        self.below(among) < of
    }

    /// One of some choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }
}
