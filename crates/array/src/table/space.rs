//! Which chunks of the main devices are in use: a bit each, in pages behind those of the stripes.
//!
//! A bit is set while something names the chunk, and while it is *taken*: leased to a plan, or freed by a
//! record and not released yet. A checkpoint speaks of the state at one record: in its pages the bits of
//! what is taken are clear ([`Table::hide_taken`]), and those pages count as changed from then on.
//!
//! A page that is absent is as it is on the members. A bit of it that is to be cleared waits in memory until
//! the page comes, and is in the list of each checkpoint meanwhile.

use super::frames::PageWords;
use super::{Table, WORDS, WordAt};
use crate::planted::{Planted, planted};
use block::{ChunkAddr, ChunkIndex, DevIndex, Divisor};
use format::ArrayConfig;
use prefetch::with_later;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Chunks of a word of bits.
pub const WORD_CHUNKS: u32 = u32::BITS;

/// Words that hold a bit for each of so many chunks, and for index 0, which is none.
pub const fn word_count(chunk_count: u32) -> u32 {
    chunk_count / WORD_CHUNKS + 1
}

/// The word of a chunk, and its bit there.
#[inline]
pub fn bit_of(chunk: ChunkIndex) -> (u32, u32) {
    (chunk.get() / WORD_CHUNKS, 1 << (chunk.get() % WORD_CHUNKS))
}

/// Where the bits are, and which of them wait for their page.
pub(super) struct SpacePages {
    pub first_page: usize,
    devices: usize,
    by_words_per_page: Divisor,
    windows: usize,
    /// Words of bits that are to be cleared, by page: the word and the bits.
    later: BTreeMap<usize, Vec<(usize, u32)>>,
    /// How many bits.
    later_count: u64,
}

/// Words of a page, as a 32-bit number.
const PAGE_WORDS: u32 = 1000;
const _: () = assert!(PAGE_WORDS as u64 == WORDS, "the same");
/// Pages of a main device's bits at least, if there are as many words: so it is never all of them, or none,
/// that are in memory.
const PAGES_MIN: u32 = 4;

/// Words of a device's bits that lie on one page.
fn words_per_page(config: &ArrayConfig) -> u32 {
    word_count(config.chunks_per_device).div_ceil(PAGES_MIN).min(PAGE_WORDS)
}

/// Pages of a main device's bits; none where chunks do not come free one by one.
fn pages_per_device(config: &ArrayConfig) -> u64 {
    let pages = word_count(config.chunks_per_device).div_ceil(words_per_page(config));
    if config.scheme.has_log_stripes() { u64::from(pages) } else { 0 }
}

/// The bit of a chunk that is taken: its page, its word there, and what it is in that.
pub type TakenBit = (usize, usize, u32);

/// Pages of the bits of all main devices.
pub(super) fn page_count(config: &ArrayConfig) -> u64 {
    pages_per_device(config) * config.geometry.device_count() as u64
}

/// Bits that may wait for their pages: for so many a checkpoint's list has room.
pub fn later_max(config: &ArrayConfig) -> u64 {
    const MOST: u64 = 1 << 18;
    let chunks = u64::from(config.chunks_per_device) * config.geometry.device_count() as u64;
    if pages_per_device(config) == 0 { 0 } else { (chunks / 64 + 64).min(MOST) }
}

impl SpacePages {
    pub fn new(config: &ArrayConfig, first_page: usize) -> Self {
        let devices = config.geometry.device_count();
        let windows = if page_count(config) == 0 { 0 } else { 2 * devices };
        let by_words_per_page = Divisor::new(words_per_page(config).into());
        Self { first_page, devices, by_words_per_page, windows, later: BTreeMap::new(), later_count: 0 }
    }

    /// Pages that are in memory at all times: those in which each device allocates.
    pub fn windows(&self) -> usize {
        self.windows
    }

    #[inline]
    fn at(&self, dev: DevIndex, word: u32) -> WordAt {
        let page = self.by_words_per_page.quotient(word.into()) as usize;
        let word = self.by_words_per_page.remainder(word.into()) as usize;
        WordAt { page: self.first_page + page * self.devices + dev.index(), word }
    }

    /// The chunk of the first bit of a word of a page.
    fn first_chunk(&self, page: usize, word: usize) -> ChunkAddr {
        let (page, dev) = ((page - self.first_page) / self.devices, (page - self.first_page) % self.devices);
        let word = page * self.by_words_per_page.get() as usize + word;
        let chunk = u32::try_from(word).expect("a word of a device") * WORD_CHUNKS;
        ChunkAddr::new(DevIndex::new(dev as u16), ChunkIndex::new(chunk))
    }
}

impl Table {
    /// Whether a page holds bits of chunks.
    pub fn is_of_space(&self, page: usize) -> bool {
        page >= self.space.first_page
    }

    /// The page of a word of a device's bits.
    pub fn space_page(&self, dev: DevIndex, word: u32) -> usize {
        self.space.at(dev, word).page
    }

    /// The first word of the page behind that of a word of a device's bits.
    pub fn next_space_page(&self, word: u32) -> u32 {
        let words = self.space.by_words_per_page;
        let page = words.quotient(word.into()) + 1;
        u32::try_from(page * words.get()).expect("a device has far fewer words than 2^32")
    }

    /// The page of the bit of a chunk.
    pub fn space_page_of(&self, addr: ChunkAddr) -> usize {
        self.space_page(addr.dev, bit_of(addr.chunk).0)
    }

    /// A word of a device's bits; `None` if its page is absent.
    #[inline]
    pub fn space_word(&self, dev: DevIndex, word: u32) -> Option<u32> {
        let at = self.space.at(dev, word);
        match self.frames.get(at.page) {
            Some(words) => Some(words[at.word]),
            None if self.is_paged() && self.is_somewhere(at.page) => None,
            None => Some(0),
        }
    }

    /// The same, to be changed; its page is not absent.
    #[inline]
    pub fn space_word_mut(&mut self, dev: DevIndex, word: u32) -> &mut u32 {
        let at = self.space.at(dev, word);
        &mut self.group_mut(at)[at.word]
    }

    /// The same; `None` if its page is absent.
    #[inline]
    pub fn space_word_if_there(&mut self, dev: DevIndex, word: u32) -> Option<&mut u32> {
        let at = self.space.at(dev, word);
        let is_absent = self.is_paged() && self.is_absent(at.page);
        (!is_absent).then(|| &mut self.group_mut(at)[at.word])
    }

    /// Asks for the memory of a chunk's bit.
    pub fn prefetch_bit(&self, addr: ChunkAddr) {
        if self.space.windows > 0 {
            let at = self.space.at(addr.dev, bit_of(addr.chunk).0);
            self.frames.prefetch(at.page, at.word);
        }
    }

    /// Bits of a word whose page is absent are to be cleared.
    pub fn clear_later(&mut self, dev: DevIndex, word: u32, bits: u32) {
        let at = self.space.at(dev, word);
        self.space.later_count += u64::from(bits.count_ones());
        self.space.later.entry(at.page).or_default().push((at.word, bits));
    }

    /// How many bits wait for their pages.
    pub fn later_count(&self) -> u64 {
        self.space.later_count
    }

    /// The first page from `page` on, or else of all, that bits wait for.
    pub fn later_page(&self, page: usize) -> Option<usize> {
        let later = &self.space.later;
        later.range(page..).next().or_else(|| later.first_key_value()).map(|(&page, _)| page)
    }

    /// The pages that bits wait for, in order.
    pub fn later_pages(&self) -> impl Iterator<Item = usize> {
        self.space.later.keys().copied()
    }

    /// The chunks of a device whose bits wait, in order of their pages.
    pub fn later_chunks(&self, dev: DevIndex) -> impl Iterator<Item = ChunkIndex> {
        let pages = &self.space.later;
        let words = pages.iter().flat_map(|(&page, words)| words.iter().map(move |word| (page, word)));
        let of_dev = words.map(|(page, &(word, bits))| (self.space.first_chunk(page, word), bits));
        of_dev.filter(move |(first, _)| first.dev == dev).flat_map(|(first, bits)| {
            let set = (0..WORD_CHUNKS).filter(move |bit| bits >> bit & 1 == 1);
            set.map(move |bit| ChunkIndex::new(first.chunk.get() + bit))
        })
    }

    /// A page has come: what waits for it is done.
    pub(super) fn clear_now(&mut self, page: usize) {
        let Some(words) = self.space.later.remove(&page) else { return };
        for (word, bits) in words {
            self.space.later_count -= u64::from(bits.count_ones());
            if !planted(Planted::ForgetFreed) {
                let at = WordAt { page, word };
                self.group_mut(at)[at.word] &= !bits;
            }
        }
    }

    /// These chunks are taken, and a checkpoint is about to be begun: their pages are part of it. Leaves
    /// those whose pages are absent.
    pub fn note_taken(&mut self, taken: &[ChunkAddr], absent: &mut Vec<ChunkAddr>) {
        for (&addr, later) in with_later(taken.iter()) {
            later.into_iter().for_each(|&addr| self.prefetch_bit(addr));
            let (word, _) = bit_of(addr.chunk);
            match self.space_word(addr.dev, word) {
                Some(_) => _ = self.space_word_mut(addr.dev, word),
                None => absent.push(addr),
            }
        }
    }

    /// The bits of chunks that are taken, of pages in memory: page, word and bit, in order.
    pub fn taken_bits(&self, taken: &[ChunkAddr]) -> Vec<TakenBit> {
        if planted(Planted::SaveTaken) {
            return Vec::new();
        }
        let bits = taken.iter().map(|addr| {
            let (word, bit) = bit_of(addr.chunk);
            let at = self.space.at(addr.dev, word);
            (at.page, at.word, bit)
        });
        let mut bits: Vec<TakenBit> = bits.filter(|&(page, ..)| self.has_frame(page)).collect();
        bits.sort_unstable();
        bits
    }

    /// The words of a page without these bits.
    pub fn without(&self, page: usize, taken: &[TakenBit]) -> Cow<'_, PageWords> {
        let mut words = Cow::Borrowed(self.page(page));
        let first = taken.partition_point(|&(other, ..)| other < page);
        for &(_, word, bit) in taken[first..].iter().take_while(|&&(other, ..)| other == page) {
            words.to_mut()[word] &= !bit;
        }
        words
    }

    /// What comes of chunks that are taken is for the next checkpoint to say.
    pub fn mark_taken(&mut self, taken: &[ChunkAddr]) {
        for &addr in taken {
            let (word, _) = bit_of(addr.chunk);
            if self.space_word(addr.dev, word).is_some() && !planted(Planted::TakenNotMarked) {
                let at = self.space.at(addr.dev, word);
                self.group_mut(at);
            }
        }
    }

    /// The snapshot does not hold what is taken; what comes of that is for the next one to say.
    pub fn hide_taken(&mut self, taken: &[ChunkAddr]) {
        for (&addr, later) in with_later(taken.iter()) {
            later.into_iter().for_each(|&addr| self.prefetch_bit(addr));
            let (word, bit) = bit_of(addr.chunk);
            if self.space_word(addr.dev, word).is_none() {
                continue;
            }
            let at = self.space.at(addr.dev, word);
            // Marks the page, and keeps it for the snapshot as it was.
            if !planted(Planted::TakenNotMarked) {
                self.group_mut(at);
            } else if self.wanted.has(at.page) {
                self.keep(at.page);
            }
            if let Some(kept) = self.kept.get_mut(at.page)
                && !planted(Planted::SaveTaken)
            {
                kept.words[at.word] &= !bit;
            }
        }
    }
}
