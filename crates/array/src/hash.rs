//! Hashing of stripe numbers for tables: multiplicative, fast, and the same in every run.

use block::StripeId;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by stripe number.
pub type StripeMap<T> = HashMap<u64, T, BuildHasherDefault<StripeHasher>>;

/// Some stripes.
pub type StripeSet = HashSet<StripeId, BuildHasherDefault<StripeHasher>>;

/// Parts of a [`PartedMap`].
const PARTS: usize = 64;
const PART_SHIFT: u32 = u64::BITS - PARTS.trailing_zeros();

/// A table by number, for very many: where it grows, the entries of a part move alone, so that nobody waits
/// for all of them at once.
pub struct PartedMap<T>(Box<[StripeMap<T>]>);

impl<T> Default for PartedMap<T> {
    fn default() -> Self {
        Self((0..PARTS).map(|_| StripeMap::default()).collect())
    }
}

impl<T> PartedMap<T> {
    /// The part of a number, which has nothing to do with its hash: else there would be few hashes in each.
    #[inline]
    fn part(number: u64) -> usize {
        let part = number.wrapping_mul(0xd6e8_feb8_6659_fd93) >> PART_SHIFT;
        usize::try_from(part).unwrap_or_default()
    }

    /// The place of a number.
    #[inline]
    pub fn entry(&mut self, number: u64) -> Entry<'_, u64, T> {
        self.0[Self::part(number)].entry(number)
    }

    /// There is this for a number now; returns what there was.
    #[inline]
    pub fn insert(&mut self, number: u64, value: T) -> Option<T> {
        self.0[Self::part(number)].insert(number, value)
    }

    /// How many it has room for.
    pub fn capacity(&self) -> usize {
        self.0.iter().map(StripeMap::capacity).sum()
    }
}

/// A table by page of the table of chunks.
pub type PageMap<T> = HashMap<usize, T, BuildHasherDefault<StripeHasher>>;

/// See the module's documentation.
#[derive(Default)]
pub struct StripeHasher(u64);

impl Hasher for StripeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
