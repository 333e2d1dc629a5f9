//! The columns of a stripe, looked up once for all of them; and looks ahead.

use super::frames::TablePage;
use super::{COLUMN_WORDS, Table, WordAt};
use block::{ChunkIndex, StripeId};
use format::StripeChunk;

/// So many pages, 32 MiB, the caches of a processor may hold; looking ahead costs more than it gains there.
const NEAR_PAGES: usize = 8192;

/// The newest versions of all columns of a stripe, data, then parity.
#[derive(Clone, Copy)]
pub struct Columns<'a>(&'a [u32]);

impl Columns<'_> {
    /// One of them.
    #[inline]
    pub fn get(&self, column: usize) -> StripeChunk {
        let word = column * COLUMN_WORDS;
        StripeChunk { chunk: ChunkIndex::new(self.0[word]), crc: self.0[word + 1] }
    }
}

/// The same, to be changed.
pub struct ColumnsMut<'a> {
    page: TablePage<'a>,
    word: usize,
}

impl ColumnsMut<'_> {
    /// Points a column at its newest chunk.
    #[inline]
    pub fn set(&mut self, column: usize, version: StripeChunk) {
        let word = self.word + column * COLUMN_WORDS;
        self.page.changed.set_word(word);
        (self.page.words[word], self.page.words[word + 1]) = (version.chunk.get(), version.crc);
    }

    /// The same; returns the one before.
    #[inline]
    pub fn replace(&mut self, column: usize, version: StripeChunk) -> StripeChunk {
        let before = Columns(&self.page.words[self.word..]).get(column);
        self.set(column, version);
        before
    }
}

impl Table {
    /// Points a column of a stripe at its newest chunk; returns the one before.
    #[inline]
    pub fn replace_column(&mut self, stripe: StripeId, column: usize, version: StripeChunk) -> StripeChunk {
        let at = self.column_word(stripe, column);
        let (page, word) = (self.group_mut(at), at.word);
        let before = StripeChunk { chunk: ChunkIndex::new(page[word]), crc: page[word + 1] };
        (page[word], page[word + 1]) = (version.chunk.get(), version.crc);
        before
    }

    /// Whether there is so much of it in memory that the processor keeps hardly any of it at hand: whoever is
    /// about to look into many pages asks for all of them first ([`Table::prefetch`]).
    pub fn is_far(&self) -> bool {
        self.frames.len() > NEAR_PAGES
    }

    /// Asks for the memory of a column of a stripe that is soon to be looked at or changed.
    #[inline]
    pub fn prefetch(&self, stripe: StripeId, column: usize) {
        let WordAt { page, word } = self.column_word(stripe, column);
        self.frames.prefetch(page, word);
    }

    /// The same for one whose page is going to be kept in memory before.
    #[inline]
    pub fn prefetch_to_hold(&self, stripe: StripeId, column: usize) {
        let WordAt { page, word } = self.column_word(stripe, column);
        self.frames.prefetch(page, word);
        if self.is_paged() {
            self.frames.prefetch_holder(page);
        }
    }

    /// The same for [`Table::changed_groups`] of a page.
    pub fn prefetch_groups(&self, page: usize) {
        self.frames.prefetch_groups(page);
    }

    /// The same for the words of a page that its patch has, if it did not change since the snapshot.
    pub fn prefetch_patch(&self, page: usize) {
        self.frames.prefetch_patch(page);
    }

    /// All columns of a stripe, data and parity, to be looked at.
    #[inline]
    pub fn columns(&self, stripe: StripeId) -> Columns<'_> {
        let WordAt { page, word } = self.column_word(stripe, 0);
        Columns(&self.page(page)[word..word + self.stripes.entry_words])
    }

    /// The same, to be changed.
    #[inline]
    pub fn columns_mut(&mut self, stripe: StripeId) -> ColumnsMut<'_> {
        let WordAt { page, word } = self.column_word(stripe, 0);
        ColumnsMut { page: self.page_mut(page), word }
    }
}
