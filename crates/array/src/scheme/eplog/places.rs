//! A place for each of few stripes.
//!
//! A bit says whether a stripe has one. Places of the 64 stripes of a word of bits lie side by side, in their
//! order: how many bits are set before a stripe's says which of them is its own. So a place takes four bytes,
//! is found without asking whose it is, and can be asked for before it is looked at.

use crate::scheme::dirty_queue::number;
use block::StripeId;
use prefetch::{bring_in, prefetch};
use std::ops::Range;

/// Words of a leaf.
const WORDS: usize = 4;
/// Stripes of a leaf, a bit for each.
const LEAF_BITS: usize = WORDS * 64;
const LEAF_STRIPES: u64 = 256;
const _: () = assert!(LEAF_BITS == 256, "a bit for each stripe");
/// Bytes that the place of a leaf takes.
const PLACE_BYTES: u64 = 4;
/// Bytes of a leaf.
const LEAF_BYTES: u64 = size_of::<Leaf>() as u64;
/// Sizes of blocks of places: powers of two.
const SIZES: usize = 7;
const _: () = assert!(1 << (SIZES - 1) == u64::BITS, "the largest holds a word's");

#[derive(Clone, Copy, Default)]
struct Leaf {
    bits: [u64; WORDS],
    /// Where the block of each word's places begins, if any of its bits is set, and its size.
    blocks: [u32; WORDS],
    sizes: [u8; WORDS],
}

/// There is room in blocks for so many times the places that there were, and some: before there is more they
/// are laid out anew.
const ROOM_PER_PLACE: u64 = 8;
const ROOM_LEAST: u64 = 64;
/// Numbers of leaves that lie on a page of memory.
const LEAVES_PER_PAGE: usize = 1024;
/// What there mostly is.
const ROOM_USUAL: usize = 4;
/// Free blocks for each place at most: one for a single place, and what else there is has room for two or
/// more.
const FREE_PER_PLACE: u64 = 5;

/// Blocks of places, of sizes that are powers of two.
#[derive(Default)]
struct Blocks {
    places: Vec<u32>,
    free: [Vec<u32>; SIZES],
    /// How many places there are.
    count: u64,
}

/// See the module's documentation. Stretches of stripes none of which has a place take no memory but for the
/// number of their leaf.
pub struct StripePlaces {
    stripe_count: u64,
    /// Number of each stretch's leaf plus 1; 0 = none of its bits is set.
    leaf_of: Vec<u32>,
    leaves: Vec<Leaf>,
    free: Vec<u32>,
    blocks: Blocks,
}

impl Leaf {
    /// Where a stripe's place is, or would be, if the word has any.
    #[inline]
    fn turn_of(&self, word: usize, bit: u64) -> usize {
        index(self.blocks[word]) + index((self.bits[word] & (bit - 1)).count_ones())
    }

    /// Where a stripe's place is.
    #[inline]
    fn place_at(&self, word: usize, bit: u64) -> Option<usize> {
        (self.bits[word] & bit != 0).then(|| self.turn_of(word, bit))
    }

    fn is_empty(&self) -> bool {
        self.bits == [0; WORDS]
    }

    /// How many places a word has.
    fn count(&self, word: usize) -> usize {
        index(self.bits[word].count_ones())
    }

    /// The size of the block that a word needs for one place more, if it has none that is large enough.
    fn size_wanted(&self, word: usize) -> Option<u8> {
        match self.count(word) {
            0 => Some(0),
            count if count == 1 << self.sizes[word] => Some(self.sizes[word] + 1),
            _ => None,
        }
    }
}

impl Blocks {
    fn alloc(&mut self, size: u8) -> u32 {
        self.free[usize::from(size)].pop().unwrap_or_else(|| {
            let block = u32::try_from(self.places.len()).expect("a list bounds how many stripes are dirty");
            self.places.resize(self.places.len() + (1 << size), 0);
            block
        })
    }

    fn give_back(&mut self, size: u8, block: u32) {
        self.free[usize::from(size)].push(block);
    }

    /// Whether there is no free block of a size.
    fn lacks(&self, size: u8) -> bool {
        self.free[usize::from(size)].is_empty()
    }

    /// Whether there is no room for a block of a size as most of it is in blocks that nobody has, or that
    /// have few.
    fn wants_packing(&self, size: u8) -> bool {
        let room = number(self.places.len()) + (1 << size);
        self.lacks(size) && room > ROOM_PER_PLACE * self.count + ROOM_LEAST
    }

    /// Lays all blocks out anew, none larger than it must be.
    fn pack(&mut self, leaves: &mut [Leaf]) {
        let before = std::mem::take(self);
        self.count = before.count;
        for leaf in leaves {
            for word in (0..WORDS).filter(|&word| leaf.bits[word] != 0) {
                let (from, count) = (index(leaf.blocks[word]), leaf.count(word));
                let size = (0..).find(|&size| count <= 1 << size).expect("a word has 64 bits");
                (leaf.sizes[word], leaf.blocks[word]) = (size, self.alloc(size));
                let to = index(leaf.blocks[word]);
                self.places[to..to + count].copy_from_slice(&before.places[from..from + count]);
            }
        }
    }

    /// Moves a word's places to a block of another size.
    fn move_to(&mut self, leaf: &mut Leaf, word: usize, size: u8) {
        let (from, block) = (leaf.blocks[word], self.alloc(size));
        self.places.copy_within(index(from)..index(from) + leaf.count(word), index(block));
        self.give_back(leaf.sizes[word], from);
        (leaf.sizes[word], leaf.blocks[word]) = (size, block);
    }

    /// Puts a place between those of a word.
    fn insert(&mut self, leaf: &mut Leaf, (word, bit): (usize, u64), place: u32) {
        let count = leaf.count(word);
        match leaf.size_wanted(word) {
            Some(0) => (leaf.sizes[word], leaf.blocks[word]) = (0, self.alloc(0)),
            Some(size) => self.move_to(leaf, word, size),
            None => {}
        }
        let (at, end) = (leaf.turn_of(word, bit), index(leaf.blocks[word]) + count);
        self.places.copy_within(at..end, at + 1);
        self.places[at] = place;
        leaf.bits[word] |= bit;
        self.count += 1;
    }

    /// Takes a place out of those of a word.
    fn remove(&mut self, leaf: &mut Leaf, (word, bit): (usize, u64)) -> Option<u32> {
        let at = leaf.place_at(word, bit)?;
        let place = self.places[at];
        let end = index(leaf.blocks[word]) + leaf.count(word);
        self.places.copy_within(at + 1..end, at);
        leaf.bits[word] &= !bit;
        self.count -= 1;
        let (count, size) = (leaf.count(word), leaf.sizes[word]);
        if count == 0 {
            self.give_back(size, leaf.blocks[word]);
        } else if size > 1 && count << 2 <= 1 << size && !self.lacks(size - 1) {
            self.move_to(leaf, word, size - 1);
        }
        Some(place)
    }

    fn memory_bytes(&self) -> u64 {
        let free: usize = self.free.iter().map(Vec::len).sum();
        number(self.places.len() + free) * PLACE_BYTES
    }
}

impl StripePlaces {
    /// No stripe has one.
    pub fn new(stripe_count: u64) -> Self {
        let stripes = usize::try_from(stripe_count).expect("validated: fits the address space");
        Self {
            stripe_count,
            leaf_of: vec![0; stripes.div_ceil(LEAF_BITS)],
            leaves: Vec::new(),
            free: Vec::new(),
            blocks: Blocks::default(),
        }
    }

    /// Bytes for so many stripes, and those that there are at most if there were never more places.
    pub fn bytes_for(stripe_count: u64, places: u64) -> (u64, u64) {
        let leaves = stripe_count.div_ceil(LEAF_STRIPES);
        let leaf_bytes = places.min(leaves) * (LEAF_BYTES + PLACE_BYTES);
        let room = places * (ROOM_PER_PLACE + FREE_PER_PLACE) + ROOM_LEAST;
        (leaves * PLACE_BYTES, leaf_bytes + if places > 0 { room * PLACE_BYTES } else { 0 })
    }

    /// The leaf of a stretch, if any of its stripes has a place.
    #[inline]
    fn leaf(&self, stretch: usize) -> Option<&Leaf> {
        let leaf = index(self.leaf_of[stretch]).checked_sub(1)?;
        Some(&self.leaves[leaf])
    }

    /// Whether a stripe has a place.
    #[inline]
    pub fn has(&self, stripe: StripeId) -> bool {
        let (stretch, word, bit) = at(stripe);
        self.leaf(stretch).is_some_and(|leaf| leaf.bits[word] & bit != 0)
    }

    /// A stripe's place.
    #[inline]
    pub fn get(&self, stripe: StripeId) -> Option<u32> {
        let (stretch, word, bit) = at(stripe);
        self.leaf(stretch)?.place_at(word, bit).map(|at| self.blocks.places[at])
    }

    /// Asks for what [`StripePlaces::get`] or [`StripePlaces::insert`] look at last, if a neighbour has a
    /// place.
    #[inline]
    pub fn prefetch(&self, stripe: StripeId) {
        let (stretch, word, bit) = at(stripe);
        let at = self.leaf(stretch).filter(|leaf| leaf.bits[word] != 0).map(|leaf| leaf.turn_of(word, bit));
        at.and_then(|at| self.blocks.places.get(at)).into_iter().for_each(prefetch);
    }

    /// The stripes of a stretch that have places, in order.
    pub fn set_in(&self, stripes: Range<u64>) -> impl Iterator<Item = StripeId> {
        let Range { mut start, end } = stripes;
        std::iter::from_fn(move || {
            while start < end.min(self.stripe_count) {
                let (stretch, word, bit) = at(StripeId::new(start));
                let Some(leaf) = self.leaf(stretch) else {
                    start = (start / LEAF_STRIPES + 1) * LEAF_STRIPES;
                    continue;
                };
                let left = leaf.bits[word] & !(bit - 1);
                let next = start / 64 * 64 + u64::from(left.trailing_zeros());
                start = next + u64::from(left != 0);
                if left != 0 {
                    return (next < end).then_some(StripeId::new(next));
                }
            }
            None
        })
    }

    /// Gives a place to a stripe that has none.
    pub fn insert(&mut self, stripe: StripeId, place: u32) {
        let (stretch, word, bit) = at(stripe);
        if self.leaf_of[stretch] == 0 {
            self.leaf_of[stretch] = self.new_leaf();
        }
        let number = index(self.leaf_of[stretch]) - 1;
        if self.leaves[number].size_wanted(word).is_some_and(|size| self.blocks.wants_packing(size)) {
            self.blocks.pack(&mut self.leaves);
        }
        let leaf = &mut self.leaves[number];
        assert!(leaf.bits[word] & bit == 0, "a stripe has one place");
        self.blocks.insert(leaf, (word, bit), place);
    }

    /// The number of an empty leaf, plus 1.
    fn new_leaf(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.leaves.push(Leaf::default());
            u32::try_from(self.leaves.len()).expect("fewer leaves than stripes of a device")
        })
    }

    /// A stripe has no place any more; returns the one that it had.
    pub fn remove(&mut self, stripe: StripeId) -> Option<u32> {
        let (stretch, word, bit) = at(stripe);
        let number = self.leaf_of[stretch];
        let leaf = &mut self.leaves[index(number).checked_sub(1)?];
        let place = self.blocks.remove(leaf, (word, bit))?;
        if leaf.is_empty() {
            self.leaf_of[stretch] = 0;
            self.free.push(number);
        }
        Some(place)
    }

    /// Makes room for so many places more, if they lie as close as blocks mostly do.
    pub fn reserve(&mut self, places: usize) {
        self.blocks.places.reserve(places.saturating_mul(ROOM_USUAL));
        self.leaves.reserve(places.min(self.leaf_of.len()));
    }

    /// So many places come at once; there was none yet.
    pub fn expect(&mut self, places: usize) {
        if places >= self.leaf_of.len() / LEAVES_PER_PAGE {
            bring_in(&mut self.leaf_of);
        }
    }

    /// Bytes for every stripe of the array.
    pub fn fixed_bytes(&self) -> u64 {
        Self::bytes_for(self.stripe_count, 0).0
    }

    /// Bytes that grow with the places.
    pub fn dynamic_bytes(&self) -> u64 {
        let [leaves, free] = [self.leaves.len(), self.free.len()].map(number);
        leaves * LEAF_BYTES + free * PLACE_BYTES + self.blocks.memory_bytes()
    }
}

/// Such a number, to look something up by.
#[inline]
fn index(number: u32) -> usize {
    number as usize
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
    use std::collections::BTreeMap;

    #[test]
    fn a_stripe_has_its_place_until_that_is_removed_and_leaves_and_blocks_are_used_again() {
        let (count, mut state) = (20_000, 1u64);
        let (mut places, mut expected) = (StripePlaces::new(count), BTreeMap::new());
        for round in 0..60_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Some stretches get full, others have few.
            let most = if state >> 63 == 0 { 1024 } else { count };
            let stripe = (state >> 33) % most;
            if round % 4 > 0 {
                if places.get(StripeId::new(stripe)).is_none() {
                    places.insert(StripeId::new(stripe), round);
                    expected.insert(stripe, round);
                }
            } else if let Some((&some, &place)) = expected.range(stripe..).next() {
                assert_eq!(places.remove(StripeId::new(some)), Some(place));
                expected.remove(&some);
            }
            let next = (stripe + 1) % count;
            assert_eq!(places.get(StripeId::new(next)), expected.get(&next).copied());
            if round % 100 == 0 {
                let stretch = stripe..(stripe + u64::from(round) % 1000).min(count);
                let found: Vec<u64> = places.set_in(stretch.clone()).map(StripeId::get).collect();
                assert_eq!(found, expected.range(stretch).map(|(&stripe, _)| stripe).collect::<Vec<u64>>());
            }
        }
        for stripe in (0..count).map(StripeId::new) {
            let place = expected.get(&stripe.get()).copied();
            assert_eq!((places.get(stripe), places.has(stripe)), (place, place.is_some()), "{stripe:?}");
        }
        assert!(places.dynamic_bytes() <= StripePlaces::bytes_for(count, count).1);
        assert!(places.set_in(0..u64::MAX).count() == expected.len() && expected.len() > 1000);
        for (&stripe, &place) in expected.iter() {
            assert_eq!(places.remove(StripeId::new(stripe)), Some(place));
        }
        assert_eq!(places.remove(StripeId::new(7)), None);
        assert_eq!(places.free.len(), places.leaves.len(), "every leaf can be used again");
        let free: usize = (0..SIZES).map(|size| places.blocks.free[size].len() << size).sum();
        assert_eq!(free, places.blocks.places.len(), "so can every block");
    }

    #[test]
    fn memory_is_bounded_by_the_most_places_there_were_however_they_lie() {
        const MOST: u64 = 4096;
        let (stripes, mut places) = (64 * MOST, StripePlaces::new(64 * MOST));
        // As many places each time, of more stripes of a word from time to time, and back.
        for in_word in (1..=64).chain((1..64).rev()).chain([64, 1, 33, 17, 64, 2]) {
            let those = || (0..MOST).map(|i| StripeId::new(i / in_word * 64 + i % in_word * (64 / in_word)));
            those().zip(0..).for_each(|(stripe, place)| places.insert(stripe, place));
            assert!(
                places.dynamic_bytes() <= StripePlaces::bytes_for(stripes, MOST).1,
                "{in_word} in a word"
            );
            assert!(those().zip(0..).all(|(stripe, place)| places.get(stripe) == Some(place)));
            // Most go first, and a few of each word, or none, stay for a while.
            those().skip(9).step_by(2).for_each(|stripe| assert!(places.remove(stripe).is_some()));
            those().for_each(|stripe| _ = places.remove(stripe));
            assert_eq!((places.blocks.count, places.set_in(0..stripes).count()), (0, 0));
        }
        assert!(places.blocks.places.len() < 9 * 4096, "they were laid out anew");
    }

    #[test]
    fn a_leaf_all_of_whose_stripes_have_places_takes_four_bytes_for_each() {
        let mut places = StripePlaces::new(1024);
        let stripe_of = |place: u32| StripeId::new(u64::from(place) - 1000);
        (1256..1512).rev().for_each(|place| places.insert(stripe_of(place), place));
        assert!((1256..1512).all(|place| places.get(stripe_of(place)) == Some(place)));
        assert_eq!((places.leaves.len(), places.leaves[0].sizes), (1, [6; 4]));
        // Blocks that were too small for one word are there for the next.
        assert_eq!(places.blocks.places.len(), 256 + 63);
        (1256..1511).for_each(|place| assert_eq!(places.remove(stripe_of(place)), Some(place)));
        assert_eq!((places.get(StripeId::new(511)), places.leaves[0].sizes), (Some(1511), [1; 4]));
    }
}
