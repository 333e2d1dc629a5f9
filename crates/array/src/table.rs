//! The flat per-chunk state: where each chunk is and what its checksum is, 4 bytes each.
//!
//! One array of 32-bit words in three sections: the map (newest chunk index of every logical chunk, 0 if it
//! reads as zeros), the parity map (chunk index of every parity chunk, 0 if the stripe has none), and a
//! checksum per physical chunk of every main device. With elastic stripes the map names places (row x k +
//! column + 1), and in place of the parity map there is a word for every row. The checkpoint writes it page
//! by page; a bit per page says what changed since the last one.

use block::{ChunkAddr, ChunkIndex, Geometry, Lcn, StripeId};
use format::{ArrayConfig, PAGE_WORDS};

/// See the module's documentation.
pub struct Table {
    words: Vec<u32>,
    changed: Vec<u64>,
    parity_start: usize,
    crc_start: usize,
    crc_stride: usize,
    geometry: Geometry,
}

/// Words of the second section.
fn second_count(config: &ArrayConfig) -> u64 {
    if config.scheme.is_elastic() {
        u64::from(config.chunks_per_device)
    } else {
        config.stripe_count * config.geometry.parity_count() as u64
    }
}

impl Table {
    /// An empty table: nothing written, every checksum 0.
    pub fn new(config: &ArrayConfig) -> Self {
        let stripes =
            usize::try_from(config.stripe_count).expect("validated: the table fits the address space");
        let geometry = config.geometry;
        let parity_start = stripes * geometry.data_count();
        let crc_start = parity_start
            + usize::try_from(second_count(config)).expect("validated: the table fits the address space");
        let crc_stride = config.chunks_per_device as usize + 1;
        let words = vec![0u32; crc_start + crc_stride * geometry.device_count()];
        let changed = vec![0u64; words.len().div_ceil(PAGE_WORDS).div_ceil(64)];
        Self { words, changed, parity_start, crc_start, crc_stride, geometry }
    }

    /// Bytes of a configuration's table, as [`Table::memory_bytes`] counts them.
    pub fn bytes_for(config: &ArrayConfig) -> u64 {
        let words = Self::word_count(config);
        words * 4 + words.div_ceil(PAGE_WORDS as u64).div_ceil(64) * 8
    }

    /// How many words a configuration's table has.
    pub fn word_count(config: &ArrayConfig) -> u64 {
        let (k, n) = (config.geometry.data_count() as u64, config.geometry.device_count() as u64);
        config.stripe_count * k + second_count(config) + (u64::from(config.chunks_per_device) + 1) * n
    }

    fn set(&mut self, word: usize, value: u32) {
        self.words[word] = value;
        let page = word / PAGE_WORDS;
        self.changed[page / 64] |= 1 << (page % 64);
    }

    /// The newest chunk of a logical chunk, `NONE` if it reads as zeros.
    pub fn current(&self, lcn: Lcn) -> ChunkIndex {
        ChunkIndex::new(self.words[lcn.get() as usize])
    }

    /// Points a logical chunk at its newest chunk.
    pub fn set_current(&mut self, lcn: Lcn, chunk: ChunkIndex) {
        self.set(lcn.get() as usize, chunk.get());
    }

    /// The chunk of parity `row` (0..m) of a stripe, `NONE` if the stripe has no parity.
    pub fn parity(&self, stripe: StripeId, row: usize) -> ChunkIndex {
        ChunkIndex::new(self.words[self.parity_word(stripe, row)])
    }

    /// Points parity `row` of a stripe at its chunk.
    pub fn set_parity(&mut self, stripe: StripeId, row: usize, chunk: ChunkIndex) {
        self.set(self.parity_word(stripe, row), chunk.get());
    }

    /// Where the newest version of a logical chunk is among elastic stripes: row x k + column + 1, 0 if it
    /// reads as zeros.
    pub fn place(&self, lcn: Lcn) -> u32 {
        self.words[lcn.get() as usize]
    }

    /// Points a logical chunk at its newest version among elastic stripes.
    pub fn set_place(&mut self, lcn: Lcn, place: u32) {
        self.set(lcn.get() as usize, place);
    }

    /// What a row of elastic stripes holds; the scheme knows what the word means.
    pub fn row(&self, row: u32) -> u32 {
        self.words[self.parity_start + row as usize]
    }

    /// Notes what a row holds.
    pub fn set_row(&mut self, row: u32, word: u32) {
        self.set(self.parity_start + row as usize, word);
    }

    fn parity_word(&self, stripe: StripeId, row: usize) -> usize {
        self.parity_start + stripe.get() as usize * self.geometry.parity_count() + row
    }

    /// The checksum of a physical chunk of the main array.
    pub fn crc(&self, addr: ChunkAddr) -> u32 {
        self.words[self.crc_word(addr)]
    }

    /// Notes the checksum of a physical chunk.
    pub fn set_crc(&mut self, addr: ChunkAddr, crc: u32) {
        self.set(self.crc_word(addr), crc);
    }

    fn crc_word(&self, addr: ChunkAddr) -> usize {
        self.crc_start + addr.dev.index() * self.crc_stride + addr.chunk.get() as usize
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
        self.words.len().div_ceil(PAGE_WORDS)
    }

    /// The words of one page.
    pub fn page(&self, index: usize) -> &[u32] {
        &self.words[index * PAGE_WORDS..self.words.len().min((index + 1) * PAGE_WORDS)]
    }

    /// Fills one page from a checkpoint; `false` if it does not have that shape.
    pub fn load_page(&mut self, index: usize, words: &[u32]) -> bool {
        if index >= self.page_count() || self.page(index).len() != words.len() {
            return false;
        }
        self.words[index * PAGE_WORDS..][..words.len()].copy_from_slice(words);
        true
    }

    /// Whether every chunk that the maps name exists.
    pub fn is_sane(&self, config: &ArrayConfig) -> bool {
        let (map, rest) = self.words[..self.crc_start].split_at(self.parity_start);
        let chunks = config.chunks_per_device;
        if config.scheme.is_elastic() {
            let places = u64::from(chunks) * config.geometry.data_count() as u64;
            return map.iter().all(|&place| u64::from(place) <= places);
        }
        map.iter().chain(rest).all(|&chunk| chunk <= chunks)
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

    /// Marks every page as changed.
    pub fn mark_all_changed(&mut self) {
        self.changed.fill(u64::MAX);
    }
}
