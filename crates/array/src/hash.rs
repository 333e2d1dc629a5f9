//! Hashing of stripe numbers for tables: multiplicative, fast, and the same in every run.

use block::StripeId;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by stripe number.
pub type StripeMap<T> = HashMap<u64, T, BuildHasherDefault<StripeHasher>>;

/// Some stripes.
pub type StripeSet = HashSet<StripeId, BuildHasherDefault<StripeHasher>>;

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
