//! Free chunks of one main device: a bitmap and an append frontier; and what plans have taken of them.
//!
//! The frontier moves forward over free chunks and wraps, so that new versions are written as
//! sequentially as the free space allows (A-03; this is what keeps the SSD's own garbage collection
//! cheap, H-06). A freed chunk stays marked until [`Space::release`]: the engine calls that only
//! when the record that freed it is durable and no read is under way.
//!
//! What is allocated is a lease, and tells where it is only when a plan holds it ([`Leases`]):
//! nothing can be planned on space that nobody would give back. A plan ends in one of two ways: it
//! is carried out, and its records say whose the space is from then on; or it is given up before it
//! writes, and the space is free again.

use block::{ChunkAddr, ChunkIndex, DevIndex};

/// Who asks for a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// A user's write: leaves the chunks set aside for parity commit alone.
    User,
    /// Parity commit, rebuild: what makes space again.
    Reclaim,
}

/// A chunk of a device that was free and is taken.
#[must_use = "a chunk that no plan holds is lost until the array is assembled again"]
pub struct ChunkLease(ChunkIndex);

/// A row of all main devices that was free and is taken.
#[must_use = "a row that no plan holds is lost until the array is assembled again"]
pub struct RowLease(u32);

impl RowLease {
    /// For the allocator.
    pub(crate) fn new(row: u32) -> Self {
        Self(row)
    }
}

/// See the module's documentation.
pub struct Space {
    /// One bit per chunk index 0..=chunks; set = in use. Bit 0 is always set: index 0 is never valid. Empty:
    /// all are in use, for good.
    used: Vec<u64>,
    chunk_count: u32,
    free_count: u32,
    set_aside: u32,
    frontier: u32,
}

impl Space {
    /// All `chunk_count` chunks free; `set_aside` of them only for [`Demand::Reclaim`].
    pub fn new(chunk_count: u32, set_aside: u32) -> Self {
        let words = (chunk_count as usize + 1).div_ceil(64);
        let mut used = vec![0u64; words];
        used[0] = 1;
        for index in chunk_count as usize + 1..words * 64 {
            used[index / 64] |= 1 << (index % 64);
        }
        Self { used, chunk_count, free_count: chunk_count, set_aside, frontier: 1 }
    }

    /// All `chunk_count` chunks have their place and are in use for good: that takes no memory.
    pub fn in_place(chunk_count: u32) -> Self {
        Self { used: Vec::new(), chunk_count, free_count: 0, set_aside: 0, frontier: 1 }
    }

    /// Takes the next free chunk after the frontier.
    pub fn alloc(&mut self, demand: Demand) -> Option<ChunkLease> {
        let keep = match demand {
            Demand::User => self.set_aside,
            Demand::Reclaim => 0,
        };
        if self.free_count <= keep {
            return None;
        }
        let words = self.used.len();
        let mut word = self.frontier as usize / 64;
        let mut free = !self.used[word] & (u64::MAX << (self.frontier % 64));
        for _ in 0..=words {
            if free != 0 {
                let index = (word * 64) as u32 + free.trailing_zeros();
                self.used[word] |= 1 << (index % 64);
                self.free_count -= 1;
                self.frontier = if index >= self.chunk_count { 0 } else { index + 1 };
                return Some(ChunkLease(ChunkIndex::new(index)));
            }
            word = if word + 1 == words { 0 } else { word + 1 };
            free = !self.used[word];
        }
        unreachable!("free_count says that a chunk is free");
    }

    /// Makes a chunk free again.
    pub fn release(&mut self, chunk: ChunkIndex) {
        let (word, bit) = (chunk.get() as usize / 64, 1u64 << (chunk.get() % 64));
        assert!(self.used[word] & bit != 0 && !chunk.is_none(), "chunk {chunk:?} was released twice");
        self.used[word] &= !bit;
        self.free_count += 1;
    }

    /// The same for the chunks `first..end`.
    pub fn release_run(&mut self, first: ChunkIndex, end: ChunkIndex) {
        assert!(!first.is_none() && end.get() <= self.chunk_count + 1, "chunks {first:?} to {end:?}");
        let (mut at, end) = (first.get() as usize, end.get() as usize);
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (end - at).min(64 - bit);
            let bits = (u64::MAX >> (64 - count)) << bit;
            assert!(self.used[word] & bits == bits, "a chunk from {at} on was released twice");
            self.used[word] &= !bits;
            self.free_count += count as u32;
            at += count;
        }
    }

    /// Marks a chunk as in use, for recovery; `false` if it already was (or is no chunk of the device).
    pub fn claim(&mut self, chunk: ChunkIndex) -> bool {
        if chunk.is_none() || chunk.get() > self.chunk_count || self.used.is_empty() {
            return false;
        }
        let (word, bit) = (chunk.get() as usize / 64, 1u64 << (chunk.get() % 64));
        let free = self.used[word] & bit == 0;
        if free {
            self.used[word] |= bit;
            self.free_count -= 1;
        }
        free
    }

    /// The same for the chunks `first..end`; the first that is in use or no chunk of the device is the error.
    pub fn claim_run(&mut self, first: ChunkIndex, end: ChunkIndex) -> Result<(), ChunkIndex> {
        let (mut at, end) = (first.get(), end.get());
        while at < end {
            let (word, bit) = (at as usize / 64, at % 64);
            let whole = bit == 0 && end - at >= 64 && self.used.get(word) == Some(&0);
            if whole {
                self.used[word] = u64::MAX;
                self.free_count -= 64;
            } else if !self.claim(ChunkIndex::new(at)) {
                return Err(ChunkIndex::new(at));
            }
            at += if whole { 64 } else { 1 };
        }
        Ok(())
    }

    /// Whether a chunk is in use.
    pub fn is_used(&self, chunk: ChunkIndex) -> bool {
        let word = self.used.get(chunk.get() as usize / 64);
        word.is_none_or(|word| word >> (chunk.get() % 64) & 1 == 1)
    }

    /// Whether stretch number `stretch` of `count` chunks, a power of two, is free as a whole. Stretches are
    /// counted from index 0: neither the first nor one that passes the end of the device ever is.
    pub fn is_stretch_free(&self, stretch: u32, count: u32) -> bool {
        let [first, count] = [stretch * count, count].map(|number| number as usize);
        if count >= 64 {
            let words = self.used.get(first / 64..(first + count) / 64);
            return words.is_some_and(|words| words.iter().all(|&word| word == 0));
        }
        let bits = (u64::MAX >> (64 - count)) << (first % 64);
        self.used.get(first / 64).is_some_and(|word| word & bits == 0)
    }

    /// Chunks that can be allocated, those set aside included.
    pub fn free_count(&self) -> u32 {
        self.free_count
    }

    /// Chunks that user writes may still take.
    pub fn free_for_users(&self) -> u32 {
        self.free_count.saturating_sub(self.set_aside)
    }

    /// All chunks of the device.
    pub fn chunk_count(&self) -> u32 {
        self.chunk_count
    }

    /// Continues the frontier somewhere else, as found at assembly.
    pub fn set_frontier(&mut self, chunk: u32) {
        self.frontier = chunk.min(self.chunk_count);
    }

    /// Where the next search starts.
    pub fn frontier(&self) -> u32 {
        self.frontier
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.used.len() as u64 * 8
    }
}

/// The leases of a plan, those of log chunks aside, which are its appends.
#[derive(Default)]
pub struct Leases {
    chunks: Vec<ChunkAddr>,
    rows: Vec<u32>,
}

/// How many leases there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseMark {
    chunks: usize,
    rows: usize,
}

impl Leases {
    /// Holds a chunk of a device; returns where it is.
    pub fn hold(&mut self, dev: DevIndex, ChunkLease(chunk): ChunkLease) -> ChunkIndex {
        self.chunks.push(ChunkAddr::new(dev, chunk));
        chunk
    }

    /// Holds a row; returns which.
    pub fn hold_row(&mut self, RowLease(row): RowLease) -> u32 {
        self.rows.push(row);
        row
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.rows.is_empty()
    }

    /// What there is now.
    pub fn mark(&self) -> LeaseMark {
        LeaseMark { chunks: self.chunks.len(), rows: self.rows.len() }
    }

    /// The plan is carried out: its records say whose the space is.
    pub fn keep(&mut self) {
        self.chunks.clear();
        self.rows.clear();
    }

    /// Frees what was leased since `mark`; the scheme is told about rows.
    pub fn give_back(&mut self, mark: LeaseMark, spaces: &mut [Space], mut row_returned: impl FnMut(u32)) {
        for addr in self.chunks.drain(mark.chunks..) {
            spaces[addr.dev.index()].release(addr.chunk);
        }
        for row in self.rows.drain(mark.rows..) {
            for space in &mut *spaces {
                space.release(ChunkIndex::new(row + 1));
            }
            row_returned(row);
        }
    }

    /// The plan is given up: frees all of it.
    pub fn give_all_back(&mut self, spaces: &mut [Space], row_returned: impl FnMut(u32)) {
        self.give_back(LeaseMark { chunks: 0, rows: 0 }, spaces, row_returned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_released_like_its_chunks_one_by_one() {
        for (first, end) in [(1, 2), (1, 64), (1, 65), (63, 65), (64, 128), (2, 301), (300, 301), (7, 7)] {
            let (mut one, mut other) = (Space::new(300, 0), Space::new(300, 0));
            for space in [&mut one, &mut other] {
                (1..=300).for_each(|chunk| assert!(space.claim(ChunkIndex::new(chunk))));
            }
            (first..end).for_each(|chunk| one.release(ChunkIndex::new(chunk)));
            other.release_run(ChunkIndex::new(first), ChunkIndex::new(end));
            assert_eq!((one.used, one.free_count), (other.used, other.free_count), "{first}..{end}");
        }
    }

    #[test]
    fn a_run_is_claimed_like_its_chunks_one_by_one() {
        for (first, end) in [(1, 2), (1, 64), (1, 65), (63, 200), (64, 128), (2, 301), (300, 301), (7, 7)] {
            let (mut one, mut other) = (Space::new(300, 0), Space::new(300, 0));
            (first..end).for_each(|chunk| assert!(one.claim(ChunkIndex::new(chunk))));
            assert_eq!(other.claim_run(ChunkIndex::new(first), ChunkIndex::new(end)), Ok(()));
            assert_eq!((&one.used, one.free_count), (&other.used, other.free_count), "{first}..{end}");
        }
        let mut space = Space::new(300, 0);
        assert!(space.claim(ChunkIndex::new(130)));
        assert_eq!(space.claim_run(ChunkIndex::new(1), ChunkIndex::new(300)), Err(ChunkIndex::new(130)));
        assert_eq!(space.claim_run(ChunkIndex::new(140), ChunkIndex::new(900)), Err(ChunkIndex::new(301)));
    }

    #[test]
    fn a_stretch_is_free_when_all_of_its_chunks_are() {
        for count in [1, 8, 64, 128] {
            let mut space = Space::new(300, 0);
            let free = |space: &Space| (0..512).filter(|&at| space.is_stretch_free(at, count)).count();
            let whole = (1..300 / count).count() + usize::from(300 % count == count - 1);
            assert_eq!(free(&space), if count == 1 { 300 } else { whole }, "stretches of {count}");
            assert!(space.claim(ChunkIndex::new(140)));
            assert!(!space.is_stretch_free(140 / count, count));
            assert_eq!(free(&space), if count == 1 { 299 } else { whole - 1 }, "stretches of {count}");
        }
    }

    #[test]
    fn allocates_every_chunk_once_in_order_and_keeps_some_for_reclaim() {
        let (mut space, mut leases) = (Space::new(130, 10), Leases::default());
        let mut all = |space: &mut Space, demand| -> Vec<u32> {
            let leased = std::iter::from_fn(|| space.alloc(demand));
            leased.map(|lease| leases.hold(DevIndex::new(0), lease).get()).collect()
        };
        let user = all(&mut space, Demand::User);
        assert_eq!(user, (1..=120).collect::<Vec<_>>());
        let reclaim = all(&mut space, Demand::Reclaim);
        assert_eq!(reclaim, (121..=130).collect::<Vec<_>>());
        for chunk in [5, 64, 130] {
            space.release(ChunkIndex::new(chunk));
        }
        let again = all(&mut space, Demand::Reclaim);
        assert_eq!(again, [5, 64, 130]);
        assert!(
            !space.claim(ChunkIndex::new(5))
                && !space.claim(ChunkIndex::NONE)
                && !space.claim(ChunkIndex::new(131))
        );
    }
}
