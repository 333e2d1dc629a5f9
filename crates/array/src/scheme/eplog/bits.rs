//! A bit per stripe, hardly any of which is set.

use block::StripeId;
use std::ops::Range;

/// Words of a leaf.
const WORDS: usize = 8;
/// Bits of a leaf.
const LEAF_BITS: usize = WORDS * 64;
/// Stripes of a leaf.
const LEAF_STRIPES: u64 = 512;
const _: () = assert!(LEAF_BITS == 512, "a bit for each stripe");
/// Bytes that the place of a leaf takes.
const PLACE_BYTES: u64 = 4;
/// Bytes of a leaf.
const LEAF_BYTES: u64 = size_of::<Leaf>() as u64;

#[derive(Clone, Copy, Default)]
struct Leaf {
    bits: [u64; WORDS],
    /// How many are set.
    count: u32,
}

/// See the module's documentation. Stretches of stripes none of whose bits is set take no memory but for the
/// place of their leaf.
pub struct StripeBits {
    stripe_count: u64,
    /// Number of each stretch's leaf plus 1; 0 = none of its bits is set.
    leaf_of: Vec<u32>,
    leaves: Vec<Leaf>,
    free: Vec<u32>,
}

impl StripeBits {
    /// None set.
    pub fn new(stripe_count: u64) -> Self {
        let stripes = usize::try_from(stripe_count).expect("validated: fits the address space");
        Self {
            stripe_count,
            leaf_of: vec![0; stripes.div_ceil(LEAF_BITS)],
            leaves: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Bytes for so many stripes, and those that so many set bits add at most.
    pub fn bytes_for(stripe_count: u64, set: u64) -> (u64, u64) {
        let leaves = stripe_count.div_ceil(LEAF_STRIPES);
        (leaves * PLACE_BYTES, set.min(leaves) * (LEAF_BYTES + PLACE_BYTES))
    }

    /// Whether the bit of a stripe is set.
    #[inline]
    pub fn has(&self, stripe: StripeId) -> bool {
        let (leaf, word, bit) = at(stripe);
        let leaf = index(self.leaf_of[leaf]);
        leaf > 0 && self.leaves[leaf - 1].bits[word] & bit != 0
    }

    /// The stripes of a stretch whose bits are set, in order.
    pub fn set_in(&self, stripes: Range<u64>) -> impl Iterator<Item = StripeId> {
        let Range { mut start, end } = stripes;
        std::iter::from_fn(move || {
            while start < end.min(self.stripe_count) {
                let (stretch, word, bit) = at(StripeId::new(start));
                let word = match index(self.leaf_of[stretch]) {
                    0 => {
                        start = (start / LEAF_STRIPES + 1) * LEAF_STRIPES;
                        continue;
                    }
                    leaf => self.leaves[leaf - 1].bits[word],
                };
                let left = word & !(bit - 1);
                let next = start / 64 * 64 + u64::from(left.trailing_zeros());
                start = next + u64::from(left != 0);
                if left != 0 {
                    return (next < end).then_some(StripeId::new(next));
                }
            }
            None
        })
    }

    /// Sets the bit of a stripe.
    pub fn set(&mut self, stripe: StripeId) {
        let (stretch, word, bit) = at(stripe);
        if self.leaf_of[stretch] == 0 {
            self.leaf_of[stretch] = self.new_leaf();
        }
        let leaf = &mut self.leaves[index(self.leaf_of[stretch]) - 1];
        leaf.count += u32::from(leaf.bits[word] & bit == 0);
        leaf.bits[word] |= bit;
    }

    /// The number of an empty leaf, plus 1.
    fn new_leaf(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.leaves.push(Leaf::default());
            u32::try_from(self.leaves.len()).expect("fewer leaves than stripes of a device")
        })
    }

    /// Clears the bit of a stripe.
    pub fn clear(&mut self, stripe: StripeId) {
        let (stretch, word, bit) = at(stripe);
        let place = self.leaf_of[stretch];
        let Some(leaf) = index(place).checked_sub(1).map(|leaf| &mut self.leaves[leaf]) else { return };
        leaf.count -= u32::from(leaf.bits[word] & bit != 0);
        leaf.bits[word] &= !bit;
        if leaf.count == 0 {
            self.leaf_of[stretch] = 0;
            self.free.push(place);
        }
    }

    /// Bytes for every stripe of the array.
    pub fn fixed_bytes(&self) -> u64 {
        Self::bytes_for(self.stripe_count, 0).0
    }

    /// Bytes that grow with the bits that are set.
    pub fn dynamic_bytes(&self) -> u64 {
        let [leaves, free] = [self.leaves.len(), self.free.len()].map(|count| count as u64);
        leaves * LEAF_BYTES + free * PLACE_BYTES
    }
}

/// A number of a leaf, to look it up by.
#[inline]
fn index(leaf: u32) -> usize {
    leaf as usize
}

/// The stretch, the word within its leaf, and the bit of a stripe.
#[inline]
fn at(stripe: StripeId) -> (usize, usize, u64) {
    let stripe = stripe.get() as usize;
    (stripe / LEAF_BITS, stripe % LEAF_BITS / 64, 1 << (stripe % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_bit_is_set_until_it_is_cleared_and_leaves_are_used_again() {
        let (count, mut state) = (100_000, 1u64);
        let (mut bits, mut expected) = (StripeBits::new(count), BTreeSet::new());
        for round in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let stripe = (state >> 33) % count;
            if round % 3 == 0 {
                bits.set(StripeId::new(stripe));
                expected.insert(stripe);
            } else if let Some(&some) = expected.range(stripe..).next() {
                bits.clear(StripeId::new(some));
                expected.remove(&some);
            }
            bits.clear(StripeId::new((stripe + 1) % count));
            expected.remove(&((stripe + 1) % count));
            if round % 100 == 0 {
                let stretch = stripe..(stripe + round % 1000).min(count);
                let found: Vec<u64> = bits.set_in(stretch.clone()).map(StripeId::get).collect();
                assert_eq!(found, expected.range(stretch).copied().collect::<Vec<u64>>());
            }
        }
        assert_eq!(bits.set_in(0..u64::MAX).count(), expected.len());
        for stripe in 0..count {
            assert_eq!(bits.has(StripeId::new(stripe)), expected.contains(&stripe), "{stripe}");
        }
        expected.iter().for_each(|&stripe| bits.clear(StripeId::new(stripe)));
        assert_eq!(bits.free.len(), bits.leaves.len(), "every leaf can be used again");
        assert!(bits.dynamic_bytes() <= StripeBits::bytes_for(count, count).1);
    }
}
