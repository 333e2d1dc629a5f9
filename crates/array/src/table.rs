//! Where each chunk is and what its checksum is, 4 bytes each.
//!
//! One array of 32-bit words in pages. A page holds everything about a run of data stripes: place and checksum
//! of each chunk, data and parity (place 0: a column of zeros, or no parity). So one page answers a read, an
//! update and a commit. Versions that are not the newest have their checksums with whoever still needs them.
//!
//! With elastic stripes there are two runs of pages: the map names the place of each logical chunk (row x k +
//! column + 1, 0 if it reads as zeros), and pages of rows hold a word for every row and the checksum of each of
//! its chunks.
//!
//! The checkpoint writes it page by page; a bit per page says what changed since the last one.

use block::{ChunkIndex, Geometry, Lcn, StripeId};
use format::{ArrayConfig, PAGE_WORDS, StripeChunk};

/// Entries of equal size, none of which lies on two pages.
#[derive(Clone, Copy)]
struct Section {
    first_page: usize,
    entry_words: usize,
    per_page: usize,
    /// 2^64 / `per_page`, rounded up: a multiplication is several times as fast as a division.
    reciprocal: u128,
}

impl Section {
    fn new(first_page: usize, entry_words: usize) -> Self {
        let per_page = PAGE_WORDS / entry_words;
        Self { first_page, entry_words, per_page, reciprocal: (1u128 << 64).div_ceil(per_page as u128) }
    }

    /// Pages that so many entries take.
    fn page_count(self, entries: u64) -> u64 {
        entries.div_ceil(self.per_page as u64)
    }

    /// The first word of an entry. Exact for numbers below 2^54: the reciprocal is less than 1 too large.
    #[inline]
    fn at(self, index: usize) -> usize {
        let page = ((index as u128 * self.reciprocal) >> 64) as usize;
        (self.first_page + page) * PAGE_WORDS + (index - page * self.per_page) * self.entry_words
    }
}

/// See the module's documentation.
pub struct Table {
    words: Vec<u32>,
    changed: Vec<u64>,
    /// Stripes, or rows of elastic stripes.
    stripes: Section,
    geometry: Geometry,
}

/// Words of a column of a stripe.
const COLUMN_WORDS: usize = 2;

/// The pages of stripes or rows; how many entries they have.
fn stripes_of(config: &ArrayConfig) -> (Section, u64) {
    let n = config.geometry.device_count();
    if config.scheme.is_elastic() {
        let chunks = config.stripe_count * config.geometry.data_count() as u64;
        let map_pages = usize::try_from(chunks.div_ceil(PAGE_WORDS as u64))
            .expect("validated: the table fits the address space");
        (Section::new(map_pages, 1 + n), config.chunks_per_device.into())
    } else {
        (Section::new(0, COLUMN_WORDS * n), config.stripe_count)
    }
}

impl Table {
    /// An empty table: nothing written, every checksum 0.
    pub fn new(config: &ArrayConfig) -> Self {
        let words =
            usize::try_from(Self::word_count(config)).expect("validated: the table fits the address space");
        Self {
            words: vec![0; words],
            changed: vec![0; (words / PAGE_WORDS).div_ceil(64)],
            stripes: stripes_of(config).0,
            geometry: config.geometry,
        }
    }

    /// Bytes of a configuration's table, as [`Table::memory_bytes`] counts them.
    pub fn bytes_for(config: &ArrayConfig) -> u64 {
        let pages = Self::page_count_for(config);
        pages * PAGE_WORDS as u64 * 4 + pages.div_ceil(64) * 8
    }

    /// How many words a configuration's table has.
    pub fn word_count(config: &ArrayConfig) -> u64 {
        Self::page_count_for(config) * PAGE_WORDS as u64
    }

    /// How many pages a configuration's table has.
    pub fn page_count_for(config: &ArrayConfig) -> u64 {
        let (stripes, count) = stripes_of(config);
        stripes.first_page as u64 + stripes.page_count(count)
    }

    fn note_change(&mut self, word: usize) {
        let page = word / PAGE_WORDS;
        self.changed[page / 64] |= 1 << (page % 64);
    }

    fn set(&mut self, word: usize, value: u32) {
        self.words[word] = value;
        self.note_change(word);
    }

    #[inline]
    fn column_word(&self, stripe: StripeId, column: usize) -> usize {
        self.stripes.at(stripe.get() as usize) + column * COLUMN_WORDS
    }

    /// The newest chunk of a column of a stripe, data or parity.
    #[inline]
    pub fn column(&self, stripe: StripeId, column: usize) -> StripeChunk {
        let at = self.column_word(stripe, column);
        let (chunk, crc) = (self.words[at], self.words[at + 1]);
        StripeChunk { chunk: ChunkIndex::new(chunk), crc }
    }

    /// Points a column of a stripe at its newest chunk.
    #[inline]
    pub fn set_column(&mut self, stripe: StripeId, column: usize, version: StripeChunk) {
        let at = self.column_word(stripe, column);
        (self.words[at], self.words[at + 1]) = (version.chunk.get(), version.crc);
        self.note_change(at);
    }

    /// The newest version of a logical chunk, `NONE` if it reads as zeros.
    #[inline]
    pub fn current(&self, lcn: Lcn) -> StripeChunk {
        self.column(self.geometry.stripe_of(lcn), self.geometry.column_of(lcn))
    }

    /// Points a logical chunk at its newest version.
    #[inline]
    pub fn set_current(&mut self, lcn: Lcn, version: StripeChunk) {
        self.set_column(self.geometry.stripe_of(lcn), self.geometry.column_of(lcn), version);
    }

    /// Parity `row` (0..m) of a stripe, `NONE` if the stripe has no parity.
    pub fn parity(&self, stripe: StripeId, row: usize) -> StripeChunk {
        self.column(stripe, self.geometry.data_count() + row)
    }

    /// Points parity `row` of a stripe at its chunk.
    pub fn set_parity(&mut self, stripe: StripeId, row: usize, version: StripeChunk) {
        self.set_column(stripe, self.geometry.data_count() + row, version);
    }

    /// Where the newest version of a logical chunk is among elastic stripes: row x k + column + 1, 0 if it
    /// reads as zeros.
    #[inline]
    pub fn place(&self, lcn: Lcn) -> u32 {
        self.words[lcn.get() as usize]
    }

    /// Points a logical chunk at its newest version among elastic stripes.
    #[inline]
    pub fn set_place(&mut self, lcn: Lcn, place: u32) {
        self.set(lcn.get() as usize, place);
    }

    /// What a row of elastic stripes holds; the scheme knows what the word means.
    pub fn row(&self, row: u32) -> u32 {
        self.words[self.stripes.at(row as usize)]
    }

    /// Notes what a row holds.
    pub fn set_row(&mut self, row: u32, word: u32) {
        self.set(self.stripes.at(row as usize), word);
    }

    /// The checksum of a column, data or parity, of a row of elastic stripes.
    #[inline]
    pub fn row_crc(&self, row: u32, column: usize) -> u32 {
        self.words[self.stripes.at(row as usize) + 1 + column]
    }

    /// Notes the checksum of a column of a row.
    #[inline]
    pub fn set_row_crc(&mut self, row: u32, column: usize, crc: u32) {
        self.set(self.stripes.at(row as usize) + 1 + column, crc);
    }

    /// Bytes held per physical chunk are reported by `status` (requirement L-15).
    pub fn memory_bytes(&self) -> u64 {
        (self.words.len() * 4 + self.changed.len() * 8) as u64
    }

    /// All words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// How many pages the table has.
    pub fn page_count(&self) -> usize {
        self.words.len() / PAGE_WORDS
    }

    /// The words of one page.
    pub fn page(&self, index: usize) -> &[u32] {
        &self.words[index * PAGE_WORDS..][..PAGE_WORDS]
    }

    /// Fills one page from a checkpoint; `false` if it does not have that shape.
    pub fn load_page(&mut self, index: usize, words: &[u32]) -> bool {
        if index >= self.page_count() || words.len() != PAGE_WORDS {
            return false;
        }
        self.words[index * PAGE_WORDS..][..PAGE_WORDS].copy_from_slice(words);
        true
    }

    /// Whether every chunk that the table names exists.
    pub fn is_sane(&self, config: &ArrayConfig) -> bool {
        let chunks = config.chunks_per_device;
        if config.scheme.is_elastic() {
            let places = u64::from(chunks) * config.geometry.data_count() as u64;
            let map = &self.words[..self.stripes.first_page * PAGE_WORDS];
            return map.iter().all(|&place| u64::from(place) <= places);
        }
        let entries = self.stripes.per_page * self.stripes.entry_words;
        let pages = self.words.chunks_exact(PAGE_WORDS).flat_map(|page| &page[..entries]);
        pages.step_by(COLUMN_WORDS).all(|&chunk| chunk <= chunks)
    }

    /// Pages changed since [`Table::clear_changed`].
    pub fn changed_pages(&self) -> impl Iterator<Item = usize> {
        let pages = self.page_count();
        self.changed.iter().enumerate().flat_map(move |(i, &bits)| {
            (0..64)
                .filter(move |bit| bits >> bit & 1 == 1)
                .map(move |bit| i * 64 + bit)
                .filter(move |&p| p < pages)
        })
    }

    /// How many pages changed.
    pub fn changed_count(&self) -> usize {
        self.changed.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Forgets what changed: a checkpoint now holds it.
    pub fn clear_changed(&mut self) {
        self.changed.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_lies_on_two_pages_or_over_another() {
        for entry_words in [1, 2, 3, 4, 9, 16, 333, 510, 1000] {
            let section = Section::new(7, entry_words);
            let per_page = PAGE_WORDS / entry_words;
            let near = [0, per_page, 2 * per_page, 1 << 20, 1 << 32, (1 << 48) + 1];
            for index in near.iter().flat_map(|&index| index..index + 2 * per_page + 2) {
                let (page, entry) = (7 + index / per_page, index % per_page);
                assert_eq!(section.at(index), page * PAGE_WORDS + entry * entry_words, "{index}");
            }
        }
    }
}
