//! Everything that is drawn in a round comes from its seed through this generator (SplitMix64).

/// A stream of numbers that its seed determines.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

/// One step of SplitMix64's output function: a good mixture of all bits.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed ^ 0x6f72_6465_616c) }
    }

    /// A stream of its own for a part of the round, so that what one part draws does not depend on how often
    /// another one, whose course depends on time, has drawn.
    pub fn fork(&self, part: u64) -> Self {
        Self::new(self.state ^ mix(part))
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// A number of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// An index below `count`, which is not 0.
    pub fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.draw() % count as u64).expect("below a usize")
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }

    /// These in some order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.index(end + 1));
        }
    }
}
