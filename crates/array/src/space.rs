//! Free chunks of one main device: a bitmap and an append frontier.
//!
//! The frontier moves forward over free chunks and wraps, so that new versions are written as sequentially as the free
//! space allows (A-03; this is what keeps the SSD's own garbage collection cheap, H-06). A freed chunk stays marked
//! until [`Space::release`]: the engine calls that only when the record that freed it is durable and no read is under
//! way.

use block::ChunkIndex;

/// Who asks for a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// A user's write: leaves the chunks set aside for parity commit alone.
    User,
    /// Parity commit, rebuild: what makes space again.
    Reclaim,
}

/// See the module's documentation.
pub struct Space {
    /// One bit per chunk index 0..=chunks; set = in use. Bit 0 is always set: index 0 is never valid.
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

    /// Takes the next free chunk after the frontier.
    pub fn alloc(&mut self, demand: Demand) -> Option<ChunkIndex> {
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
                return Some(ChunkIndex::new(index));
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
        if chunk.is_none() || chunk.get() > self.chunk_count {
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

    /// Whether a chunk is in use.
    pub fn is_used(&self, chunk: ChunkIndex) -> bool {
        self.used[chunk.get() as usize / 64] >> (chunk.get() % 64) & 1 == 1
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
    fn allocates_every_chunk_once_in_order_and_keeps_some_for_reclaim() {
        let mut space = Space::new(130, 10);
        let user: Vec<u32> = std::iter::from_fn(|| space.alloc(Demand::User)).map(ChunkIndex::get).collect();
        assert_eq!(user, (1..=120).collect::<Vec<_>>());
        let reclaim: Vec<u32> =
            std::iter::from_fn(|| space.alloc(Demand::Reclaim)).map(ChunkIndex::get).collect();
        assert_eq!(reclaim, (121..=130).collect::<Vec<_>>());
        for chunk in [5, 64, 130] {
            space.release(ChunkIndex::new(chunk));
        }
        let again: Vec<u32> =
            std::iter::from_fn(|| space.alloc(Demand::Reclaim)).map(ChunkIndex::get).collect();
        assert_eq!(again, [5, 64, 130]);
        assert!(
            !space.claim(ChunkIndex::new(5))
                && !space.claim(ChunkIndex::NONE)
                && !space.claim(ChunkIndex::new(131))
        );
    }
}
