//! What members that are out of service have missed, so that one that comes back need not be filled anew.
//!
//! From the moment a main device leaves, a bit is set for each of its chunks that a record names: what stands
//! there now it does not have. Chunks written to it shortly before, which no flush covers, are marked, too:
//! nobody knows whether they arrived. Every checkpoint holds the marks at its record, and replay marks what
//! later records name, but for what is durable on a member that was in service until then. So the marks may
//! tell of more than the device lacks, never of less.
//!
//! The point of leaving is the assembly (epoch and nonce) and the last update of the superblocks that all
//! working members had then. The device that comes back must have just that: its own superblock is of this
//! assembly, and no older. If it was in service anywhere else meanwhile, or lacks an update from before it
//! left, what it holds is not what the marks speak of.
//!
//! A member out of service of which the newest checkpoint says nothing left after that: the header of a
//! checkpoint names an update of the superblocks that all working members had when everything it speaks of
//! was durable on them. The device must have that one, and say in it that it is not being rebuilt.

use crate::planted::{Planted, planted};
use block::{ChunkAddr, ChunkIndex, DevIndex, Epoch};
use format::{ChunkRange, ListItem, MemberState, MissedPoint, Superblock};
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// Bits of one member at most; each is for so many chunks more.
const BITS_MAX: u32 = 1 << 20;
/// Words of a [`ListItem::Missed`] besides its ranges, and of each of those.
const ITEM_WORDS: usize = 9;
const RANGE_WORDS: usize = 2;
/// Ranges that a checkpoint holds of one member at most.
const RANGES_MAX: usize = 4000;
/// Chunks written since the last flush that are known one by one.
const UNSURE_MAX: usize = 1 << 15;

/// Chunks of a main device: a bit for each 2^shift of them that lie next to each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChunkMarks {
    bits: Vec<u64>,
    shift: u32,
    chunk_count: u32,
}

impl ChunkMarks {
    /// None of a device that has so many chunks.
    pub fn new(chunk_count: u32) -> Self {
        Self::with_bits(chunk_count, BITS_MAX)
    }

    fn with_bits(chunk_count: u32, bits_max: u32) -> Self {
        let shift = (0..32).find(|shift| chunk_count >> shift < bits_max).unwrap_or(31);
        let bits = vec![0; (chunk_count >> shift) as usize / 64 + 1];
        Self { bits, shift, chunk_count }
    }

    /// Marks a chunk, and those that share its bit.
    pub fn mark(&mut self, chunk: ChunkIndex) {
        let bit = (chunk.get() >> self.shift) as usize;
        if let Some(bits) = self.bits.get_mut(bit / 64) {
            *bits |= 1 << (bit % 64);
        }
    }

    fn mark_range(&mut self, ChunkRange { first, count }: ChunkRange) {
        let last = first.get().saturating_add(count.saturating_sub(1)).min(self.chunk_count);
        for bit in first.get() >> self.shift..=last >> self.shift {
            self.mark(ChunkIndex::new(bit << self.shift));
        }
    }

    /// Whether a chunk is marked.
    pub fn has(&self, chunk: ChunkIndex) -> bool {
        let bit = (chunk.get() >> self.shift) as usize;
        self.bits.get(bit / 64).is_some_and(|bits| bits >> (bit % 64) & 1 == 1)
    }

    /// Each chunk that is marked.
    pub fn each(&self, mut visit: impl FnMut(u32)) {
        for ChunkRange { first, count } in self.ranges_of(0) {
            (first.get()..first.get() + count).for_each(&mut visit);
        }
    }

    /// What is marked, in at most so many ranges, which may then hold more.
    fn ranges(&self, ranges_max: usize) -> Vec<ChunkRange> {
        let mut coarser = 0;
        loop {
            let ranges = self.ranges_of(coarser);
            if ranges.len() <= ranges_max || coarser + self.shift >= 31 {
                return ranges;
            }
            coarser += 1;
        }
    }

    /// The same with 2^coarser bits taken for one.
    fn ranges_of(&self, coarser: u32) -> Vec<ChunkRange> {
        let mut ranges: Vec<ChunkRange> = Vec::new();
        let shift = self.shift + coarser;
        let words = (0u32..).zip(&self.bits).filter(|(_, bits)| **bits != 0);
        let bits = words.flat_map(|(at, &bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| (at * 64 + bit) >> coarser)
        });
        for bit in bits {
            let (first, end) = (u64::from(bit) << shift, (u64::from(bit) + 1) << shift);
            let end = end.min(u64::from(self.chunk_count) + 1);
            match ranges.last_mut() {
                Some(range) if u64::from(range.first.get()) + u64::from(range.count) >= first => {
                    range.count = number(end - u64::from(range.first.get()));
                }
                Some(_) | None => {
                    let first = first.max(1);
                    let count = number(end.saturating_sub(first));
                    ranges.push(ChunkRange { first: ChunkIndex::new(number(first)), count });
                }
            }
        }
        ranges
    }

    /// Chunks marked, and those that share a bit with one.
    pub fn count(&self) -> u64 {
        let bits: u64 = self.bits.iter().map(|bits| u64::from(bits.count_ones())).sum();
        (bits << self.shift).min(self.chunk_count.into())
    }
}

/// A number of a chunk.
fn number(chunk: u64) -> u32 {
    u32::try_from(chunk).expect("validated: a device has fewer chunks than 2^32")
}

/// Of which checkpoints a member has all the copies of pages that it ought to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PagesHeld {
    /// Of those up to this one.
    Through(u64),
    /// Of those up to the one that its superblock says is durable, if it was whole when it left, and if an
    /// assembly did not go on from an older one.
    AsItSays {
        /// What was assembled.
        at_most: u64,
    },
    /// Nobody knows.
    Unknown,
}

/// A member that is out of service, or is being rebuilt by what it missed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Away {
    /// Where it left; `None` while it is being rebuilt.
    pub left: Option<MissedPoint>,
    /// The chunks that it lacks, or may lack.
    pub missed: ChunkMarks,
    /// The copies of pages of the table that it has.
    pub pages: PagesHeld,
    /// While an array is assembled: it was in service until now, so it has what is known durable.
    pub has_durable: bool,
}

impl Away {
    /// A member left.
    pub fn new(left: Option<MissedPoint>, chunk_count: u32) -> Self {
        let missed = ChunkMarks::new(chunk_count);
        Self { left, missed, pages: PagesHeld::Unknown, has_durable: false }
    }

    /// What an item of a checkpoint says.
    pub fn load(
        left: Option<MissedPoint>,
        chunk_count: u32,
        ranges: impl Iterator<Item = ChunkRange>,
    ) -> Self {
        let mut away = Self::new(left, chunk_count);
        ranges.for_each(|range| away.missed.mark_range(range));
        away
    }

    /// Appends it to the list of a checkpoint, in at most so many words; nothing if that does not do. A
    /// member of which nothing is said cannot come back by what it missed.
    pub fn save(&self, (dev, serial): (DevIndex, u32), words_max: usize, words: &mut Vec<u32>) {
        let ranges_max = words_max.saturating_sub(ITEM_WORDS) / RANGE_WORDS;
        let ranges = self.missed.ranges(ranges_max.min(RANGES_MAX));
        if words_max >= ITEM_WORDS && ranges.len() <= ranges_max {
            ListItem::Missed { dev, serial, left: self.left, ranges }.encode(words);
        }
    }
}

/// Why a device cannot come back by what it missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotBack {
    /// It belongs to something else.
    #[error("its superblock is of another array, shard or place")]
    Other,
    /// It was replaced, or a start found its device truncated.
    #[error(
        "the member was replaced meanwhile, or a start found its device truncated: its serial number is {found}, the member's is {expected}"
    )]
    Serial {
        /// Of the device.
        found: u32,
        /// Of the member.
        expected: u32,
    },
    /// Nothing is known of what it missed.
    #[error("it is not recorded what changed since it left")]
    NotRecorded,
    /// It was in service elsewhere, or left at another time than is recorded.
    #[error(
        "its superblock is not of the assembly in which the member left (epoch {found}, the member left in {expected})"
    )]
    Assembly {
        /// Of the device.
        found: Epoch,
        /// In which the member left.
        expected: Epoch,
    },
    /// It did not hold what it should when it left.
    #[error("its superblock says that it was being rebuilt")]
    NotWhole,
    /// It lacks something from before it left.
    #[error(
        "its superblock is update {found}, and the member left with {expected}: something before that is lost"
    )]
    Update {
        /// Of the device.
        found: u64,
        /// That the member had when it left.
        expected: u64,
    },
}

impl Away {
    /// Whether the device with this superblock is the one that left.
    pub fn check(&self, superblock: &Superblock) -> Result<(), NotBack> {
        let left = self.left.ok_or(NotBack::NotRecorded)?;
        if planted(Planted::ReturnUnchecked) {
            return Ok(());
        }
        if (superblock.epoch, superblock.nonce) != (left.epoch, left.nonce) {
            return Err(NotBack::Assembly { found: superblock.epoch, expected: left.epoch });
        }
        if superblock.config_seq < left.config_seq.get() {
            return Err(NotBack::Update { found: superblock.config_seq, expected: left.config_seq.get() });
        }
        let state = superblock.members.get(superblock.dev.index()).map(|entry| entry.state);
        if left.was_whole && state != Some(MemberState::Healthy) {
            return Err(NotBack::NotWhole);
        }
        Ok(())
    }
}

/// A point at which a member that is whole leaves; none if the update is not known.
pub fn point(epoch: Epoch, nonce: u64, config_seq: u64) -> Option<MissedPoint> {
    Some(MissedPoint { epoch, nonce, config_seq: NonZeroU64::new(config_seq)?, was_whole: true })
}

/// What was written lately, and may be in caches of devices alone. One by one as far as there is room, then
/// as a range of each device.
pub struct Unsure {
    chunks: VecDeque<ChunkAddr>,
    /// So many of these were written when that many flushes had begun.
    counts: VecDeque<(u64, usize)>,
    /// What had no room, and when the last of it was written.
    ranges: Vec<Option<(u32, u32)>>,
    ranges_at: u64,
}

impl Unsure {
    /// Nothing on so many main devices.
    pub fn new(main_count: usize) -> Self {
        Self {
            chunks: VecDeque::with_capacity(UNSURE_MAX),
            counts: VecDeque::with_capacity(4),
            ranges: vec![None; main_count],
            ranges_at: 0,
        }
    }

    /// A chunk was written; so many flushes had begun.
    #[inline]
    pub fn wrote(&mut self, addr: ChunkAddr, begun: u64) {
        if addr.dev.index() >= self.ranges.len() {
            return;
        }
        if self.chunks.len() == UNSURE_MAX {
            self.fold(begun);
        }
        self.chunks.push_back(addr);
        match self.counts.back_mut() {
            Some((at, count)) if *at == begun => *count += 1,
            Some(_) | None => self.counts.push_back((begun, 1)),
        }
    }

    fn fold(&mut self, begun: u64) {
        for addr in self.chunks.drain(..) {
            let range = &mut self.ranges[addr.dev.index()];
            let (first, last) = range.unwrap_or((addr.chunk.get(), addr.chunk.get()));
            *range = Some((first.min(addr.chunk.get()), last.max(addr.chunk.get())));
        }
        self.counts.clear();
        self.ranges_at = begun;
    }

    /// The flush with that number has ended: what was written before it began is durable.
    pub fn flushed(&mut self, number: u64) {
        while let Some(&(_, count)) = self.counts.front().filter(|(at, _)| *at < number) {
            self.chunks.drain(..count);
            self.counts.pop_front();
        }
        if self.ranges_at < number {
            self.ranges.fill(None);
        }
    }

    /// Marks what is not sure of a device.
    pub fn mark(&self, dev: DevIndex, missed: &mut ChunkMarks) {
        if let Some((first, last)) = self.ranges[dev.index()] {
            missed.mark_range(ChunkRange { first: ChunkIndex::new(first), count: last - first + 1 });
        }
        self.chunks.iter().filter(|addr| addr.dev == dev).for_each(|addr| missed.mark(addr.chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(chunk_count: u32, bits_max: u32, chunks: &[u32]) -> ChunkMarks {
        let mut marks = ChunkMarks::with_bits(chunk_count, bits_max);
        chunks.iter().for_each(|&chunk| marks.mark(ChunkIndex::new(chunk)));
        marks
    }

    #[test]
    fn marks_come_back_from_ranges_and_fewer_ranges_hold_more() {
        let chunks = [1, 2, 3, 64, 500, 502, 999, 1000];
        for bits_max in [1 << 20, 256, 16, 2] {
            let marks = marks(1000, bits_max, &chunks);
            for ranges_max in [100, 4, 2, 1] {
                let ranges = marks.ranges(ranges_max);
                assert!(ranges.len() <= ranges_max, "{ranges:?}");
                assert!(ranges.iter().all(|range| range.first.get() > 0 && range.count > 0));
                assert!(ranges.iter().all(|range| range.first.get() + range.count <= 1001), "{ranges:?}");
                let back = Away::load(None, 1000, ranges.into_iter()).missed;
                assert!(
                    (1..=1000).all(|at| !marks.has(ChunkIndex::new(at)) || back.has(ChunkIndex::new(at)))
                );
                let same = bits_max > 1000 && ranges_max == 100;
                assert!(!same || back == marks);
            }
        }
    }

    #[test]
    fn what_a_flush_covers_is_sure() {
        let addr = |dev, chunk| ChunkAddr::new(DevIndex::new(dev), ChunkIndex::new(chunk));
        let of = |unsure: &Unsure| {
            let mut marks = ChunkMarks::new(100_000);
            unsure.mark(DevIndex::new(1), &mut marks);
            marks.count()
        };
        let mut unsure = Unsure::new(2);
        unsure.wrote(addr(1, 5), 0);
        unsure.wrote(addr(0, 6), 0);
        unsure.wrote(addr(1, 7), 1);
        assert_eq!(of(&unsure), 2);
        unsure.flushed(1);
        assert_eq!(of(&unsure), 1, "what was written while it was under way is not sure");
        unsure.flushed(2);
        assert_eq!(of(&unsure), 0);
        for chunk in 1..=40_000 {
            unsure.wrote(addr(1, chunk), 2);
        }
        assert_eq!(of(&unsure), 40_000, "what has no room is remembered as a range");
        unsure.flushed(2);
        assert_eq!(of(&unsure), 40_000);
        unsure.flushed(3);
        assert_eq!(of(&unsure), 0);
    }
}
