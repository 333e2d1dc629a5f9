//! A fixed pool of aligned buffers, each one chunk long.
//!
//! All payload lives here: front ends fill slots, the core names them in actions, drivers hand them to
//! devices. The memory does not move while anything is in flight, so a driver may keep a slot's address
//! meanwhile. Which piece of it a slot names changes only where slots exchange their content
//! ([`Pool::swap`], [`Pool::exchange`]). Slots of a region are 4096-byte aligned as O_DIRECT wants.
//!
//! A pool whose memory no driver knows can have a [`Buffer`] for each slot ([`Pool::in_pieces`]); this
//! goes to another thread and comes back, or changes places with that of another pool
//! ([`Pool::exchange`]), without a copy. An engine's is such a pool.

use crate::buffer::Buffer;
use std::num::NonZeroU32;
use std::ops::Range;

/// One buffer of a [`Pool`]. None takes no more room than one ([`Option`]): its number plus 1 is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Slot(NonZeroU32);

impl Slot {
    /// For indexing tables by slot, and [`Pool::pieces_mut`]; where its content lies in a region,
    /// [`Pool::offset`] says.
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

const ALIGN_BYTES: usize = 4096;

/// A fixed number of aligned buffers of equal size.
pub struct Pool {
    memory: Vec<u8>,
    base: usize,
    slot_bytes: usize,
    slot_count: usize,
    free: Vec<u32>,
    taken: Vec<bool>,
    /// The piece of the memory that each slot names, counted in slots.
    pieces: Vec<u32>,
    /// The slots' own memory, of a pool in pieces, once they were taken; there is no other memory then.
    apart: Vec<Buffer>,
}

/// Memory of parts of slots, in their order.
pub struct Parts<'a, const N: usize> {
    /// The memory; what is not used is empty.
    pub pieces: [&'a mut [u8]; N],
    /// How many are used.
    pub used: usize,
    /// How many bytes that is.
    pub bytes: usize,
}

impl Pool {
    /// A pool of `slot_count` zeroed slots of `slot_bytes` each (a multiple of 4096).
    pub fn new(slot_bytes: usize, slot_count: usize) -> Self {
        assert!(slot_bytes.is_multiple_of(ALIGN_BYTES) && slot_bytes > 0, "slots are whole 4 KiB pages");
        let mut pool = Self::without_memory(slot_bytes, slot_count);
        pool.memory = vec![0u8; slot_bytes * slot_count + ALIGN_BYTES];
        pool.base = pool.memory.as_ptr().align_offset(ALIGN_BYTES);
        pool.pieces = (0..).take(slot_count).collect();
        pool
    }

    /// The same with memory of its own for each slot, from when it is first taken on, which is not aligned to
    /// pages. It has no [`Pool::region`].
    pub fn in_pieces(slot_bytes: usize, slot_count: usize) -> Self {
        assert!(slot_bytes > 0 && slot_count > 0, "a pool has slots, and they have memory");
        let mut pool = Self::without_memory(slot_bytes, slot_count);
        pool.apart.resize_with(slot_count, Buffer::default);
        pool
    }

    /// Slots, none of which is taken or names anything yet.
    fn without_memory(slot_bytes: usize, slot_count: usize) -> Self {
        let count = u32::try_from(slot_count).expect("a pool has fewer than 2^32 slots");
        Self {
            memory: Vec::new(),
            base: 0,
            slot_bytes,
            slot_count,
            free: (0..count).rev().collect(),
            taken: vec![false; slot_count],
            pieces: Vec::new(),
            apart: Vec::new(),
        }
    }

    /// Takes the memory of a slot of a pool in pieces. Until it comes back ([`Pool::give_back`]) the slot is
    /// empty.
    pub fn lend(&mut self, slot: Slot) -> Buffer {
        let piece = std::mem::take(&mut self.apart[slot.index()]);
        debug_assert_eq!(piece.len(), self.slot_bytes, "it is not lent already");
        piece
    }

    /// Memory that was lent comes back, to this slot; it may be other memory, as long.
    pub fn give_back(&mut self, slot: Slot, piece: Buffer) {
        assert_eq!(piece.len(), self.slot_bytes, "it is a slot's");
        debug_assert!(self.apart[slot.index()].is_empty(), "it was lent");
        self.apart[slot.index()] = piece;
    }

    /// A slot of a pool in pieces, which is taken, and a buffer of another such pool exchange their memory.
    pub fn exchange(&mut self, slot: Slot, piece: &mut Buffer) {
        assert_eq!(piece.len(), self.slot_bytes, "it is a slot's");
        debug_assert!(self.taken[slot.index()], "it is whoever's who took it");
        std::mem::swap(&mut self.apart[slot.index()], piece);
    }

    /// From now on the pool has so many slots, if it has fewer; those that are taken stay as they are. The
    /// memory of a region moves, so nothing may be in flight.
    pub fn enlarge(&mut self, slot_count: usize) {
        if slot_count <= self.slot_count {
            return;
        }
        let count = u32::try_from(slot_count).expect("a pool has fewer than 2^32 slots");
        let before = u32::try_from(self.slot_count).expect("it had fewer than 2^32 slots");
        if self.apart.is_empty() {
            let mut memory = vec![0u8; self.slot_bytes * slot_count + ALIGN_BYTES];
            let base = memory.as_ptr().align_offset(ALIGN_BYTES);
            memory[base..base + self.region().len()].copy_from_slice(self.region());
            (self.memory, self.base) = (memory, base);
            self.pieces.extend(before..count);
        } else {
            self.apart.resize_with(slot_count, Buffer::default);
        }
        self.slot_count = slot_count;
        // Those that were there come first.
        self.free.splice(..0, (before..count).rev());
        self.taken.resize(slot_count, false);
    }

    /// Takes a slot; its content is whatever was there before. `None` when all are taken.
    #[inline]
    pub fn alloc(&mut self) -> Option<Slot> {
        let slot = self.free.pop()?;
        self.taken[slot as usize] = true;
        if let Some(piece) = self.apart.get_mut(slot as usize)
            && piece.is_empty()
        {
            *piece = Buffer::new(self.slot_bytes);
        }
        Some(Slot(NonZeroU32::MIN.saturating_add(slot)))
    }

    /// Gives a slot back.
    #[inline]
    pub fn free(&mut self, slot: Slot) {
        let taken = &mut self.taken[slot.index()];
        assert!(*taken, "slot {slot:?} was freed twice");
        *taken = false;
        self.free.push(slot.0.get() - 1);
    }

    /// How many slots can still be taken.
    #[inline]
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// How many slots there are.
    pub fn slot_count(&self) -> usize {
        self.slot_count
    }

    /// Bytes in a slot.
    #[inline]
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// The slots' own memory, of a pool in pieces, for codes that read some slots and write others; empty
    /// where a slot was not taken yet or its memory is lent.
    #[inline]
    pub fn pieces_mut(&mut self) -> &mut [Buffer] {
        &mut self.apart
    }

    /// The content of one slot, and of another to be changed.
    ///
    /// # Panics
    /// If they are the same.
    pub fn pair_mut(&mut self, one: Slot, other: Slot) -> (&[u8], &mut [u8]) {
        assert_ne!(one, other, "a slot is read and another one changed");
        if !self.apart.is_empty() {
            let pair = self.apart.get_disjoint_mut([one.index(), other.index()]);
            let [one, other] = pair.expect("they differ and are the pool's");
            return (one, other);
        }
        let (one, other) = (self.offset(one), self.offset(other));
        let ranges = [one..one + self.slot_bytes, other..other + self.slot_bytes];
        let pair = self.region_mut().get_disjoint_mut(ranges);
        let [one, other] = pair.expect("slots do not overlap and lie in the region");
        (one, other)
    }

    /// Where a slot starts within [`Pool::region`], in bytes.
    ///
    /// # Panics
    /// Of a pool in pieces, as that has no region.
    #[inline]
    pub fn offset(&self, slot: Slot) -> usize {
        self.pieces[slot.index()] as usize * self.slot_bytes
    }

    /// The content of a slot.
    #[inline]
    pub fn bytes(&self, slot: Slot) -> &[u8] {
        if let Some(piece) = self.apart.get(slot.index()) {
            return piece;
        }
        let start = self.base + self.offset(slot);
        &self.memory[start..start + self.slot_bytes]
    }

    /// The content of a slot, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        if !self.apart.is_empty() {
            return &mut self.apart[slot.index()];
        }
        let start = self.base + self.offset(slot);
        &mut self.memory[start..start + self.slot_bytes]
    }

    /// The memory of some parts of different slots, as far as N pieces of memory hold them, from the first
    /// on; what lies one behind the other is one piece.
    pub fn parts_mut<const N: usize>(
        &mut self,
        parts: impl Iterator<Item = (Slot, Range<usize>)>,
    ) -> Parts<'_, N> {
        if self.apart.is_empty() { self.parts_of_region(parts) } else { self.parts_apart(parts) }
    }

    fn parts_of_region<const N: usize>(
        &mut self,
        parts: impl Iterator<Item = (Slot, Range<usize>)>,
    ) -> Parts<'_, N> {
        let mut ranges = [const { 0..0 }; N];
        let (mut used, mut bytes) = (0, 0);
        for (slot, part) in parts {
            let from = self.offset(slot) + part.start;
            if used > 0 && ranges[used - 1].end == from {
                ranges[used - 1].end += part.len();
            } else if used < N {
                ranges[used] = from..from + part.len();
                used += 1;
            } else {
                break;
            }
            bytes += part.len();
        }
        let pieces = self.region_mut().get_disjoint_mut(ranges);
        Parts { pieces: pieces.expect("slots do not overlap and lie in the region"), used, bytes }
    }

    fn parts_apart<const N: usize>(
        &mut self,
        parts: impl Iterator<Item = (Slot, Range<usize>)>,
    ) -> Parts<'_, N> {
        let (mut slots, mut within) = ([const { 0..0 }; N], [const { 0..0 }; N]);
        let (mut used, mut bytes) = (0, 0);
        for (slot, part) in parts.take(N) {
            slots[used] = slot.index()..slot.index() + 1;
            bytes += part.len();
            within[used] = part;
            used += 1;
        }
        let pieces = self.apart.get_disjoint_mut(slots).expect("slots differ and are the pool's");
        let mut within = within.into_iter();
        let pieces = pieces.map(|piece| {
            let within = within.next().unwrap_or_default();
            piece.first_mut().map_or(&mut [][..], |piece| &mut piece[within])
        });
        Parts { pieces, used, bytes }
    }

    /// All slots as one contiguous, 4096-aligned region of `slot_count * slot_bytes` bytes.
    ///
    /// # Panics
    /// Of a pool in pieces, as [`Pool::region_mut`] does.
    pub fn region(&self) -> &[u8] {
        &self.memory[self.base..self.base + self.slot_bytes * self.slot_count]
    }

    /// All slots as one contiguous region, to be changed.
    #[inline]
    pub fn region_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.base..self.base + self.slot_bytes * self.slot_count]
    }

    /// Copies the content of one slot to another.
    pub fn copy(&mut self, from: Slot, to: Slot) {
        let (from, to) = self.pair_mut(from, to);
        to.copy_from_slice(from);
    }

    /// Two slots exchange their content, without a copy. No operation on either may be in flight.
    pub fn swap(&mut self, one: Slot, other: Slot) {
        if self.apart.is_empty() {
            self.pieces.swap(one.index(), other.index());
        } else {
            self.apart.swap(one.index(), other.index());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_distinct_and_come_back() {
        let mut pool = Pool::new(4096, 3);
        let slots: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
        assert_eq!(slots.len(), 3);
        for (i, &slot) in slots.iter().enumerate() {
            assert!(pool.bytes(slot).as_ptr().addr().is_multiple_of(4096));
            pool.bytes_mut(slot).fill(u8::try_from(i).expect("small"));
        }
        pool.copy(slots[1], slots[2]);
        assert_eq!(slots.iter().map(|&s| pool.bytes(s)[4095]).collect::<Vec<_>>(), [0, 1, 1]);
        let address = pool.bytes(slots[0]).as_ptr();
        pool.swap(slots[0], slots[2]);
        assert_eq!(slots.iter().map(|&s| pool.bytes(s)[4095]).collect::<Vec<_>>(), [1, 1, 0]);
        assert_eq!(pool.bytes(slots[2]).as_ptr(), address, "nothing was copied");
        assert_eq!(pool.region()[pool.offset(slots[2])], 0);
        pool.free(slots[1]);
        assert_eq!(pool.alloc(), Some(slots[1]));
        assert_eq!(pool.alloc(), None);
    }

    #[test]
    fn a_pool_that_becomes_larger_keeps_what_is_taken() {
        let mut pool = Pool::new(4096, 3);
        let slots: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
        slots.iter().zip(1..).for_each(|(&slot, mark)| pool.bytes_mut(slot).fill(mark));
        pool.swap(slots[0], slots[2]);
        pool.free(slots[1]);
        pool.enlarge(5);
        pool.enlarge(4);
        assert_eq!((pool.slot_count(), pool.free_count(), pool.region().len()), (5, 3, 5 * 4096));
        assert!(pool.bytes(slots[0]).as_ptr().addr().is_multiple_of(4096));
        assert!(pool.bytes(slots[0]).iter().all(|&byte| byte == 3));
        assert!(pool.bytes(slots[2]).iter().all(|&byte| byte == 1));
        assert_eq!(pool.alloc(), Some(slots[1]), "those that were there come first");
        let new = [pool.alloc().expect("one of five"), pool.alloc().expect("the last")];
        assert!(
            new.iter().all(|&slot| !slots.contains(&slot) && pool.bytes(slot).iter().all(|&byte| byte == 0))
        );
        assert_eq!(pool.alloc(), None);
        slots.into_iter().chain(new).for_each(|slot| pool.free(slot));
        assert_eq!(pool.free_count(), 5);
    }

    #[test]
    fn parts_of_slots_are_their_memory_in_order() {
        for mut pool in [Pool::new(4096, 5), Pool::in_pieces(4096, 5)] {
            let slots: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
            // The first two lie one behind the other where there is a region, the others do not.
            let parts = [(0, 96..4096), (1, 0..4096), (4, 0..4096), (2, 8..16), (3, 0..1)];
            let all = || parts.iter().map(|(at, part)| (slots[*at], part.clone()));
            let is_whole = pool.apart.is_empty();
            let found = pool.parts_mut::<3>(all());
            let lengths = found.pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>();
            let expected = if is_whole { vec![8096, 4096, 8] } else { vec![4000, 4096, 4096] };
            assert_eq!((found.used, found.bytes), (3, lengths.iter().sum()));
            assert_eq!(lengths, expected);
            found.pieces.into_iter().zip(1..).for_each(|(piece, mark)| piece.fill(mark));
            assert_eq!(pool.bytes(slots[0])[95..97], [0, 1]);
            assert_eq!(pool.bytes(slots[4])[4095], if is_whole { 2 } else { 3 });
            let found = pool.parts_mut::<8>(all().take(1));
            assert_eq!((found.used, found.bytes, found.pieces[1].len()), (1, 4000, 0));
        }
    }

    #[test]
    fn slots_with_memory_of_their_own_are_copied_swapped_and_exchanged() {
        let mut pool = Pool::in_pieces(4096, 3);
        assert!(pool.pieces_mut().iter().all(|piece| piece.is_empty()), "nobody has taken one");
        let slots: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
        assert!(slots.iter().all(|&slot| pool.bytes(slot) == [0; 4096]));
        slots.iter().zip(1..).for_each(|(&slot, mark)| pool.bytes_mut(slot).fill(mark));
        pool.copy(slots[1], slots[2]);
        let address = pool.bytes(slots[0]).as_ptr();
        pool.swap(slots[0], slots[2]);
        assert_eq!(slots.iter().map(|&s| pool.bytes(s)[4095]).collect::<Vec<_>>(), [2, 2, 1]);
        assert_eq!(pool.bytes(slots[2]).as_ptr(), address, "nothing was copied");
        let mut other = Buffer::new(4096);
        other.fill(9);
        pool.exchange(slots[2], &mut other);
        assert_eq!((other.as_ptr(), other[0], pool.bytes(slots[2])[0]), (address, 1, 9));
        pool.enlarge(4);
        let new = pool.alloc().expect("one of four");
        assert_eq!((pool.slot_count(), pool.bytes(slots[2])[0], pool.bytes(new)[0]), (4, 9, 0));
    }

    #[test]
    fn one_slot_is_read_and_another_changed() {
        for mut pool in [Pool::new(4096, 2), Pool::in_pieces(4096, 2)] {
            let (one, other) = (pool.alloc().expect("two slots"), pool.alloc().expect("two slots"));
            pool.bytes_mut(one).fill(3);
            for (from, to) in [(one, other), (other, one)] {
                let (from, to) = pool.pair_mut(from, to);
                assert_eq!((from.len(), to.len()), (4096, 4096));
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
            assert_eq!((pool.bytes(one)[4095], pool.bytes(other)[4095]), (6, 3));
        }
    }

    #[test]
    fn pieces_are_lent_and_come_back_without_a_copy() {
        let mut pool = Pool::in_pieces(4096, 2);
        let (one, other) = (pool.alloc().expect("two slots"), pool.alloc().expect("two slots"));
        pool.bytes_mut(one).fill(1);
        let address = pool.bytes(one).as_ptr();
        let (mut lent, swapped) = (pool.lend(one), pool.lend(other));
        assert!(pool.bytes(one).is_empty());
        lent[0] = 7;
        pool.give_back(other, lent);
        pool.give_back(one, swapped);
        assert_eq!((pool.bytes(other)[..2].to_vec(), pool.bytes(other).as_ptr()), (vec![7, 1], address));
        pool.free(one);
        assert_eq!((pool.alloc(), pool.alloc()), (Some(one), None));
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn double_free_is_a_bug() {
        let mut pool = Pool::new(4096, 1);
        let slot = pool.alloc().expect("one slot");
        pool.free(slot);
        pool.free(slot);
    }
}
