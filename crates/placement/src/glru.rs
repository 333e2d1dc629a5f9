//! GLRU, the hot data table of WAS (section III-A, Algorithm 1): K short LRU lists of chunk
//! numbers and counters.
//!
//! The table's memory does not depend on the size of the array: 128 lists of 8 items are 4.5 KiB (W-06).

use crate::error::within;
use crate::{Hotness, OptionError, Thresholds, Tier};
use block::Lcn;

/// Shape and behaviour of a [`Glru`]; the default is what WAS evaluates (section V-B).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GlruOptions {
    /// K, the number of LRU lists: 1 to 65,536.
    pub lists: u32,
    /// N, items per list: 1 to 64. A lookup goes through all of them; the paper advises less than ten.
    pub items_per_list: u32,
    /// Counts from which on a chunk is hotter.
    pub thresholds: Thresholds,
    /// Probability that a chunk not in the table evicts the tail of its full list, in parts of 2^32:
    /// 0 to 2^32.
    pub insert_probability: u64,
    /// Seed of the probability test (W-12).
    pub seed: u64,
}

impl GlruOptions {
    /// Certainty in the unit of [`GlruOptions::insert_probability`].
    pub const CERTAIN: u64 = 1 << 32;
}

impl Default for GlruOptions {
    fn default() -> Self {
        Self {
            lists: 128,
            items_per_list: 8,
            thresholds: Thresholds::new(&[2]).expect("2 is within 1 to 15"),
            insert_probability: Self::CERTAIN / 2,
            seed: 1,
        }
    }
}

/// The hot data table.
///
/// An item is the low 32 bits of a logical chunk number and a 4-bit write counter (W-02), kept in two arrays
/// so that an item takes 36 bits. Chunks whose numbers differ by a multiple of 2^32 (16 TiB of 4 KiB chunks
/// apart) share an item; that may misjudge a chunk's heat and nothing else.
///
/// Items of a list lie in LRU order, head first. Counter 0 marks an item that was never used; those are at
/// the end.
#[derive(Clone, Debug)]
pub struct Glru {
    lpns: Box<[u32]>,
    /// Two counters a byte, the even item in the low half; a list starts on a byte.
    counters: Box<[u8]>,
    options: GlruOptions,
    random: SplitMix,
}

impl Glru {
    /// An empty table.
    pub fn new(options: GlruOptions) -> Result<Self, OptionError> {
        within("GLRU lists", u64::from(options.lists), 1, 1 << 16)?;
        within("GLRU items per list", u64::from(options.items_per_list), 1, 64)?;
        within(
            "GLRU insert probability in parts of 2^32",
            options.insert_probability,
            0,
            GlruOptions::CERTAIN,
        )?;
        let (lists, items) = (options.lists as usize, options.items_per_list as usize);
        Ok(Self {
            lpns: vec![0; lists * items].into(),
            counters: vec![0; lists * items.div_ceil(2)].into(),
            options,
            random: SplitMix(options.seed),
        })
    }

    /// WAS, Algorithm 1: notes a write of `lcn` and answers its tier.
    pub fn touch(&mut self, lcn: Lcn) -> Tier {
        let lpn = lcn.get() as u32; // The low 32 bits are what the table knows of a chunk.
        let items = self.options.items_per_list as usize;
        let index = (lpn % self.options.lists) as usize; // W-01: list = LPN mod K.
        let lpns = &mut self.lpns[index * items..][..items];
        let counters = &mut self.counters[index * items.div_ceil(2)..][..items.div_ceil(2)];

        let used = (0..items).take_while(|&item| counter(counters, item) != 0).count();
        if let Some(item) = lpns[..used].iter().position(|&known| known == lpn) {
            // W-03: counter + 1, to the head.
            let count = (counter(counters, item) + 1).min(Thresholds::COUNT_MAX);
            put_at_head(lpns, counters, item, (lpn, count));
            return self.options.thresholds.tier_of(count);
        }
        // W-04, A-13: the test decides on evictions only; while the list has room everything is let in.
        if used < items {
            put_at_head(lpns, counters, used, (lpn, 1));
        } else if self.random.word() >> 32 < self.options.insert_probability {
            put_at_head(lpns, counters, items - 1, (lpn, 1));
        }
        Tier::COLD
    }

    /// The items of a list, head first: chunk number (low 32 bits) and counter. For inspection.
    pub fn list(&self, index: u32) -> impl Iterator<Item = (u32, u8)> {
        let items = self.options.items_per_list as usize;
        let index = (index % self.options.lists) as usize;
        let lpns = &self.lpns[index * items..][..items];
        let counters = &self.counters[index * items.div_ceil(2)..][..items.div_ceil(2)];
        (0..items).map(|item| (lpns[item], counter(counters, item))).take_while(|&(_, count)| count != 0)
    }
}

impl Hotness for Glru {
    fn tiers(&self) -> u8 {
        self.options.thresholds.tiers()
    }

    fn identify(&mut self, lcn: Lcn, _now: u64) -> Tier {
        self.touch(lcn)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.lpns) + size_of_val(&*self.counters)
    }
}

fn counter(counters: &[u8], item: usize) -> u8 {
    (counters[item / 2] >> (item % 2 * 4)) & 15
}

fn set_counter(counters: &mut [u8], item: usize, value: u8) {
    let shift = item % 2 * 4;
    let byte = &mut counters[item / 2];
    *byte = (*byte & !(15 << shift)) | (value << shift);
}

/// Moves the items before `hole` back by one, over it, and puts `(lpn, count)` at the head.
fn put_at_head(lpns: &mut [u32], counters: &mut [u8], hole: usize, (lpn, count): (u32, u8)) {
    lpns.copy_within(0..hole, 1);
    lpns[0] = lpn;
    for item in (1..=hole).rev() {
        set_counter(counters, item, counter(counters, item - 1));
    }
    set_counter(counters, 0, count);
}

/// splitmix64: enough for a coin, and the same on every machine.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests;
