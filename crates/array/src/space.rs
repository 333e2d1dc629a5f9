//! Free chunks of one main device: a bit for each and an append frontier; and what plans have taken of them.
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
//!
//! Where chunks come free one by one (log stripes), the bits are pages of the table, behind those of the
//! stripes (`table/space.rs`), and some may not be in memory: nothing is allocated there before they are.

use crate::planted::{Planted, planted};
use crate::table::{Table, WORD_CHUNKS, bit_of, word_count};
use block::{ChunkAddr, ChunkIndex, DevIndex};
use std::ops::Range;

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

/// A number of a word, to look it up by.
#[inline]
fn index(word: u32) -> usize {
    word as usize
}

/// The bits of word `word` that are among the chunks `first..end`.
fn bits_among(word: u32, first: u32, end: u32) -> u32 {
    let start = word * WORD_CHUNKS;
    let below = |chunk: u32| match chunk.saturating_sub(start) {
        bits @ 0..WORD_CHUNKS => (1 << bits) - 1,
        _ => u32::MAX,
    };
    below(end) & !below(first)
}

/// Clears those of the bits that are set; returns them.
#[inline]
fn take_bits(word: &mut u32, bits: u32) -> u32 {
    let set = *word & bits;
    *word &= !bits;
    set
}

/// A bit for each chunk of a device, in memory; set = in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChunkBits {
    words: Vec<u32>,
    chunk_count: u32,
    used_count: u32,
}

impl ChunkBits {
    /// None of so many chunks is in use.
    pub fn new(chunk_count: u32) -> Self {
        Self { words: vec![0; index(word_count(chunk_count))], chunk_count, used_count: 0 }
    }

    /// Marks a chunk as in use; `false` if it already was (or is no chunk of the device).
    pub fn claim(&mut self, chunk: ChunkIndex) -> bool {
        let (word, bit) = bit_of(chunk);
        if chunk.is_none() || chunk.get() > self.chunk_count || self.words[index(word)] & bit != 0 {
            return false;
        }
        self.words[index(word)] |= bit;
        self.used_count += 1;
        true
    }

    /// Whether a chunk is in use.
    pub fn is_used(&self, chunk: ChunkIndex) -> bool {
        let (word, bit) = bit_of(chunk);
        self.words.get(index(word)).is_none_or(|word| word & bit != 0)
    }

    /// Chunks that are not.
    pub fn free_count(&self) -> u32 {
        self.chunk_count - self.used_count
    }
}

/// Where the bits of a device are.
enum Bits {
    /// There are none: all chunks have their place and are in use for good.
    None,
    Own(Vec<u32>),
    Table(DevIndex),
}

/// See the module's documentation.
pub struct Space {
    /// One bit per chunk index 0..=chunks; set = in use. Index 0 is never valid.
    bits: Bits,
    chunk_count: u32,
    free_count: u32,
    set_aside: u32,
    frontier: u32,
    /// The word that was to be looked at next and was not in memory, until [`Space::await_no_more`]: what has
    /// come must stay until whoever waits for the bits of several devices has those of all.
    awaited: Option<u32>,
}

impl Space {
    /// All `chunk_count` chunks free, their bits in memory; `set_aside` of them only for
    /// [`Demand::Reclaim`].
    pub fn new(chunk_count: u32, set_aside: u32) -> Self {
        Self::with(Bits::Own(vec![0; index(word_count(chunk_count))]), chunk_count, set_aside)
    }

    /// The same of main device `dev`, their bits in the table.
    pub fn in_table(dev: DevIndex, chunk_count: u32, set_aside: u32) -> Self {
        Self::with(Bits::Table(dev), chunk_count, set_aside)
    }

    /// All `chunk_count` chunks have their place and are in use for good: that takes no memory.
    pub fn in_place(chunk_count: u32) -> Self {
        Self { free_count: 0, ..Self::with(Bits::None, chunk_count, 0) }
    }

    fn with(bits: Bits, chunk_count: u32, set_aside: u32) -> Self {
        Self { bits, chunk_count, free_count: chunk_count, set_aside, frontier: 1, awaited: None }
    }

    /// Chunks that user writes leave.
    pub fn set_aside(&self) -> u32 {
        self.set_aside
    }

    /// Whether the bits are in the table.
    pub fn is_in_table(&self) -> bool {
        matches!(self.bits, Bits::Table(_))
    }

    /// A word of the bits, those of what is no chunk set; `None` if it is not in memory.
    #[inline]
    fn word(&self, table: &Table, word: u32) -> Option<u32> {
        let bits = match &self.bits {
            Bits::None => return Some(u32::MAX),
            Bits::Own(words) => words.get(index(word)).copied().unwrap_or(u32::MAX),
            Bits::Table(dev) => table.space_word(*dev, word)?,
        };
        if word > 0 && word < self.chunk_count / WORD_CHUNKS {
            return Some(bits);
        }
        Some(bits | !bits_among(word, 1, self.chunk_count + 1))
    }

    /// Sets bits of a word that is in memory.
    #[inline]
    fn set_bits(&mut self, table: &mut Table, word: u32, bits: u32) {
        match &mut self.bits {
            Bits::None => {}
            Bits::Own(words) => words[index(word)] |= bits,
            Bits::Table(dev) => *table.space_word_mut(*dev, word) |= bits,
        }
        self.free_count -= bits.count_ones();
    }

    /// Free chunks from the frontier on, word by word, once round, as far as they are known; the word that is
    /// not in memory is the error.
    fn next_free(&self, table: &Table, mut take: impl FnMut(u32, u32) -> bool) -> Result<(), u32> {
        let words = word_count(self.chunk_count);
        let (mut word, mut among) = (self.frontier / WORD_CHUNKS, u32::MAX << (self.frontier % WORD_CHUNKS));
        for _ in 0..=words {
            let free = !self.word(table, word).ok_or(word)? & among;
            if free != 0 && take(word, free) {
                break;
            }
            (word, among) = (if word + 1 == words { 0 } else { word + 1 }, u32::MAX);
        }
        Ok(())
    }

    /// Takes the next free chunk after the frontier; none if that is not known yet ([`Space::awaited`]).
    pub fn alloc(&mut self, table: &mut Table, demand: Demand) -> Option<ChunkLease> {
        let keep = match demand {
            Demand::User => self.set_aside,
            Demand::Reclaim => 0,
        };
        if self.free_count <= keep {
            return None;
        }
        let mut found = None;
        let known = self.next_free(table, |word, free| {
            found = Some((word, free.trailing_zeros()));
            true
        });
        self.wait_for(known.err(), None);
        let (word, bit) = found?;
        self.set_bits(table, word, 1 << bit);
        let index = word * WORD_CHUNKS + bit;
        self.frontier = if index >= self.chunk_count { 0 } else { index + 1 };
        Some(ChunkLease(ChunkIndex::new(index)))
    }

    /// Takes the next `count` free chunks after the frontier, which [`Space::has_ready`] has promised to
    /// users: the same as so many [`Space::alloc`], word by word.
    pub fn alloc_ready(&mut self, table: &mut Table, count: u32, out: &mut Vec<Option<ChunkLease>>) {
        let words = word_count(self.chunk_count);
        let (mut word, mut among) = (self.frontier / WORD_CHUNKS, u32::MAX << (self.frontier % WORD_CHUNKS));
        let mut left = count;
        while left > 0 {
            let mut free = !self.word(table, word).expect("promised: it is known which are free") & among;
            let mut taken = 0;
            while free != 0 && left > 0 {
                let bit = free.trailing_zeros();
                let index = word * WORD_CHUNKS + bit;
                out.push(Some(ChunkLease(ChunkIndex::new(index))));
                self.frontier = if index >= self.chunk_count { 0 } else { index + 1 };
                taken |= 1 << bit;
                free &= free - 1;
                left -= 1;
            }
            if taken != 0 {
                self.set_bits(table, word, taken);
            }
            (word, among) = (if word + 1 == words { 0 } else { word + 1 }, u32::MAX);
        }
    }

    /// Whether user writes may take so many chunks, and it is known which.
    pub fn has_ready(&mut self, table: &Table, count: u32) -> bool {
        if self.free_for_users() < count || !table.is_paged() {
            return self.free_for_users() >= count;
        }
        let (mut left, mut first) = (count, None);
        let known = self.next_free(table, |word, free| {
            first.get_or_insert(word);
            left = left.saturating_sub(free.count_ones());
            left == 0
        });
        self.wait_for(known.err(), first);
        left == 0
    }

    /// An allocation waits for a word that is not in memory, if that is given. It goes on at the `first` word
    /// where it found something, or at that one: else it would need all words in between at once, full as
    /// they are, and where pages leave memory as others come it might find no end.
    fn wait_for(&mut self, absent: Option<u32>, first: Option<u32>) {
        let Some(absent) = absent else { return };
        self.awaited = Some(absent);
        let next = first.unwrap_or(absent);
        if next != self.frontier / WORD_CHUNKS {
            self.frontier = next * WORD_CHUNKS;
        }
    }

    /// The word that an allocation waits for, or waited for when it came, if any.
    pub fn awaited(&self) -> Option<u32> {
        self.awaited
    }

    /// It is in memory.
    pub fn await_no_more(&mut self) {
        self.awaited = None;
    }

    /// Makes a chunk free again.
    pub fn release(&mut self, table: &mut Table, chunk: ChunkIndex) {
        self.release_run(table, chunk, ChunkIndex::new(chunk.get() + 1));
    }

    /// The same for the chunks `first..end`.
    pub fn release_run(&mut self, table: &mut Table, first: ChunkIndex, end: ChunkIndex) {
        assert!(!first.is_none() && end.get() <= self.chunk_count + 1, "chunks {first:?} to {end:?}");
        for word in first.get() / WORD_CHUNKS..end.get().div_ceil(WORD_CHUNKS) {
            let bits = bits_among(word, first.get(), end.get());
            let cleared = match &mut self.bits {
                Bits::None => bits,
                Bits::Own(words) => take_bits(&mut words[index(word)], bits),
                Bits::Table(dev) => match table.space_word_if_there(*dev, word) {
                    Some(word) => take_bits(word, bits),
                    None => {
                        table.clear_later(*dev, word, bits);
                        bits
                    }
                },
            };
            // What a member says may contradict itself where it was not looked at as a whole.
            assert!(cleared == bits || table.is_paged(), "chunks of word {word} released twice");
            self.free_count += cleared.count_ones();
        }
    }

    /// Marks a chunk as in use whose word is in memory; `false` if it already was (or is no chunk of the
    /// device).
    pub fn claim(&mut self, table: &mut Table, chunk: ChunkIndex) -> bool {
        let (word, bit) = bit_of(chunk);
        let free = !chunk.is_none() && !self.is_used(table, chunk);
        if free {
            self.set_bits(table, word, bit);
        }
        free
    }

    /// The same for the chunks `first..end`; the first that is in use or no chunk of the device is the error.
    pub fn claim_run(
        &mut self,
        table: &mut Table,
        first: ChunkIndex,
        end: ChunkIndex,
    ) -> Result<(), ChunkIndex> {
        for word in first.get() / WORD_CHUNKS..end.get().div_ceil(WORD_CHUNKS) {
            let bits = bits_among(word, first.get(), end.get());
            let taken = self.word(table, word).unwrap_or(u32::MAX) & bits;
            let free = if taken == 0 { bits } else { bits & ((1 << taken.trailing_zeros()) - 1) };
            self.set_bits(table, word, free);
            if taken != 0 {
                return Err(ChunkIndex::new(word * WORD_CHUNKS + taken.trailing_zeros()));
            }
        }
        Ok(())
    }

    /// Whether a chunk is in use, or is none of the device, or that is not known.
    pub fn is_used(&self, table: &Table, chunk: ChunkIndex) -> bool {
        let (word, bit) = bit_of(chunk);
        chunk.get() > self.chunk_count || self.word(table, word).is_none_or(|word| word & bit != 0)
    }

    /// The first run of chunks of `first..end` that nobody uses, and that are known not to be used.
    pub fn unused_run(&self, table: &Table, first: u32, end: u32) -> Option<Range<u32>> {
        let absent = if planted(Planted::SkipWhatIsUnknown) { 0 } else { u32::MAX };
        let next = |from: u32, flip: u32| {
            (from / WORD_CHUNKS..end.div_ceil(WORD_CHUNKS)).find_map(|word| {
                let used = self.word(table, word).unwrap_or(absent);
                let bits = (used ^ flip) & bits_among(word, from, end);
                (bits != 0).then(|| word * WORD_CHUNKS + bits.trailing_zeros())
            })
        };
        let start = next(first, u32::MAX)?;
        Some(start..next(start, 0).unwrap_or(end))
    }

    /// Whether stretch number `stretch` of `count` chunks, a power of two, is free as a whole, and known to
    /// be. Stretches are counted from index 0: neither the first nor one that passes the end of the device
    /// ever is.
    pub fn is_stretch_free(&self, table: &Table, stretch: u32, count: u32) -> bool {
        let Some(first) = stretch.checked_mul(count) else { return false };
        let Some(end) = first.checked_add(count).filter(|&end| end <= self.chunk_count + 1) else {
            return false;
        };
        (first / WORD_CHUNKS..end.div_ceil(WORD_CHUNKS))
            .all(|word| self.word(table, word).is_some_and(|used| used & bits_among(word, first, end) == 0))
    }

    /// Whether a chunk that is free has neighbours in its stretch, counted as by [`Space::is_stretch_free`],
    /// that are in use, as far as its own word of bits says: that is mostly so. What is not known counts as
    /// in use.
    #[inline]
    pub fn has_neighbours(&self, table: &Table, chunk: ChunkIndex, count: u32) -> bool {
        let (word, _) = bit_of(chunk);
        let first = chunk.get() / count * count;
        let stretch = bits_among(word, first, first.saturating_add(count));
        self.word(table, word).is_none_or(|used| used & stretch != 0)
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

    /// Bytes of memory besides the table.
    pub fn memory_bytes(&self) -> u64 {
        match &self.bits {
            Bits::Own(words) => size_of_val(words.as_slice()) as u64,
            Bits::None | Bits::Table(_) => 0,
        }
    }

    /// What a checkpoint says is in use: so many chunks, `false` if there are no so many.
    pub fn load(&mut self, used_count: u32, frontier: u32) -> bool {
        self.set_frontier(frontier);
        self.free_count = self.chunk_count.saturating_sub(used_count);
        used_count <= self.chunk_count
    }

    /// These are the chunks that somebody claims: takes them as they are, or compares them with the bits that
    /// it has. The first chunk that is in use and not claimed, or the other way round, is the error.
    pub fn adopt(&mut self, table: &Table, claimed: ChunkBits) -> Result<(), ChunkIndex> {
        match &mut self.bits {
            Bits::None => return Ok(()),
            Bits::Own(words) => {
                self.free_count = claimed.free_count();
                *words = claimed.words;
                return Ok(());
            }
            Bits::Table(_) => {}
        }
        let differs = |chunk: &ChunkIndex| self.is_used(table, *chunk) != claimed.is_used(*chunk);
        for (word, &bits) in (0..).zip(&claimed.words) {
            let no_chunks = !bits_among(word, 1, self.chunk_count + 1);
            if self.word(table, word) != Some(bits | no_chunks) {
                let mut chunks = (word * WORD_CHUNKS..(word + 1) * WORD_CHUNKS).map(ChunkIndex::new);
                return Err(chunks.find(differs).unwrap_or(ChunkIndex::NONE));
            }
        }
        if self.free_count == claimed.free_count() { Ok(()) } else { Err(ChunkIndex::NONE) }
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
    pub fn give_back(
        &mut self,
        mark: LeaseMark,
        (spaces, table): (&mut [Space], &mut Table),
        mut row_returned: impl FnMut(u32),
    ) {
        for addr in self.chunks.drain(mark.chunks..) {
            spaces[addr.dev.index()].release(table, addr.chunk);
        }
        for row in self.rows.drain(mark.rows..) {
            for space in &mut *spaces {
                space.release(table, ChunkIndex::new(row + 1));
            }
            row_returned(row);
        }
    }

    /// The chunks that there are now.
    pub fn chunks(&self) -> &[ChunkAddr] {
        &self.chunks
    }

    /// The plan is given up: frees all of it.
    pub fn give_all_back(&mut self, of: (&mut [Space], &mut Table), row_returned: impl FnMut(u32)) {
        self.give_back(LeaseMark { chunks: 0, rows: 0 }, of, row_returned);
    }
}

#[cfg(test)]
mod tests;
