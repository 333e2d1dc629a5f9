//! Where each chunk is and what its checksum is, 4 bytes each.
//!
//! One array of 32-bit words in pages. A page holds everything about a run of data stripes: place and
//! checksum of each chunk, data and parity (place 0: a column of zeros, or no parity). So one page answers a
//! read, an update and a commit. Versions that are not the newest have their checksums with whoever still
//! needs them.
//!
//! With elastic stripes there are two runs of pages: the map names the place of each logical chunk, that is
//! row x k + column + 1, 0 if it reads as zeros; pages of rows hold a word for every row and the checksum of
//! each of its chunks.
//!
//! Behind these come the pages that say which chunks are in use ([`space`]), where chunks come free one by
//! one.
//!
//! A page that was never written takes no memory. One that is in its slot as it is need not be in memory
//! either ([`Table::is_absent`]): whoever looks into it has it brought in first.
//!
//! A bit per page says what changed since the last checkpoint, another what changed since it was written to
//! its slot ([`Slots`]); for each page in memory bits say which of its words changed since the last
//! checkpoint. A checkpoint is the state at one instant, but nothing is copied then: its pages are marked,
//! and one that is to change before it was written is kept as it was, or, where that is enough, what had
//! changed on it ([`Table::take_snapshot`]).

mod columns;
mod frames;
mod grown;
mod kept;
mod page_bits;
mod paging;
mod space;
mod waiting;

pub use columns::Columns;
pub use space::{WORD_CHUNKS, bit_of, later_max, word_count};

use crate::planted::{Planted, planted};
use crate::slots::{self, SlotState, Slots};
use block::{ChunkIndex, Divisor, Geometry, Lcn, StripeId};
use format::{ArrayConfig, GROUP_WORDS, GroupBits, PAGE_WORDS, Patch, StripeChunk};
use frames::{Frames, GROUP_PAGES, PageWords, TablePage, ZEROS};
use kept::KeptPages;
use page_bits::PageBits;
use space::SpacePages;
use waiting::WaitingPatches;

/// Entries of equal size, none of which lies on two pages.
#[derive(Clone, Copy)]
struct Section {
    first_page: usize,
    entry_words: usize,
    by_per_page: Divisor,
}

impl Section {
    fn new(first_page: usize, entry_words: usize) -> Self {
        Self { first_page, entry_words, by_per_page: Divisor::new((PAGE_WORDS / entry_words) as u64) }
    }

    /// Entries of a page.
    fn entries(self) -> u64 {
        self.by_per_page.get()
    }

    /// Pages that so many entries take.
    fn page_count(self, entries: u64) -> u64 {
        entries.div_ceil(self.entries())
    }

    /// The first word of an entry.
    #[inline]
    fn at(self, index: u64) -> WordAt {
        let page = self.by_per_page.quotient(index) as usize;
        WordAt {
            page: self.first_page + page,
            word: self.by_per_page.remainder(index) as usize * self.entry_words,
        }
    }
}

/// A word of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WordAt {
    page: usize,
    word: usize,
}

impl WordAt {
    #[inline]
    fn behind(self, words: usize) -> Self {
        Self { word: self.word + words, ..self }
    }
}

/// Words of a page.
pub const WORDS: u64 = PAGE_WORDS as u64;

/// A chunk that a stripe names, with its column: data, then parity.
pub type NamedChunk = (StripeId, usize, ChunkIndex);

/// See the module's documentation.
pub struct Table {
    page_count: usize,
    frames: Frames,
    /// Frames at most, but for pages that must stay; `usize::MAX`: no page is absent.
    frames_max: usize,
    /// Frames that pages being read will take.
    coming: usize,
    /// Whether there may be a page that can go.
    may_evict: bool,
    /// Since the last checkpoint.
    changed: PageBits,
    /// Since they were written to their slots.
    unsaved: PageBits,
    /// What was not in the slots that count when the checkpoint under way was begun, and is being written to
    /// the others.
    unsaved_before: PageBits,
    /// Pages, of the table and of the directory, that the checkpoint under way writes to their slots.
    saving: PageBits,
    slots: Slots,
    /// Pages of the snapshot that nobody said are written.
    wanted: PageBits,
    /// Of how much that is.
    snapshot_extent: Extent,
    /// Those of them that changed since, as they were.
    kept: KeptPages,
    waiting: WaitingPatches,
    /// Stripes, or rows of elastic stripes.
    stripes: Section,
    space: SpacePages,
    geometry: Geometry,
    stripe_count: u64,
    chunks_per_device: u32,
}

/// What a checkpoint holds of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Extent {
    /// What changed since the last one, of whichever kind: an incremental checkpoint.
    Changes,
    /// What is not in its slots as it is: a full checkpoint.
    Unsaved,
    /// Every page that was ever written, whatever is in its slots: a full checkpoint.
    Everything,
}

/// Words of a column of a stripe.
const COLUMN_WORDS: usize = 2;

/// The pages of stripes or rows; how many entries they have.
fn stripes_of(config: &ArrayConfig) -> (Section, u64) {
    let n = config.geometry.device_count();
    if config.scheme.is_elastic() {
        let chunks = config.stripe_count * config.geometry.data_count() as u64;
        let map_pages =
            usize::try_from(chunks.div_ceil(WORDS)).expect("validated: the table fits the address space");
        (Section::new(map_pages, 1 + n), config.chunks_per_device.into())
    } else {
        (Section::new(0, COLUMN_WORDS * n), config.stripe_count)
    }
}

/// The page behind those of stripes or rows.
fn stripe_pages_end(config: &ArrayConfig) -> usize {
    let (stripes, count) = stripes_of(config);
    let pages = usize::try_from(stripes.page_count(count));
    stripes.first_page + pages.expect("validated: the table fits the address space")
}

impl Table {
    /// An empty table: nothing written, every checksum 0.
    pub fn new(config: &ArrayConfig) -> Self {
        let pages = usize::try_from(Self::page_count_for(config))
            .expect("validated: the table fits the address space");
        let slots = Slots::new(config.geometry, pages);
        Self {
            page_count: pages,
            frames: Frames::new(pages),
            frames_max: usize::MAX,
            coming: 0,
            may_evict: true,
            changed: PageBits::new(pages),
            unsaved: PageBits::new(pages),
            unsaved_before: PageBits::new(pages),
            saving: PageBits::new(slots.page_count()),
            slots,
            wanted: PageBits::new(pages),
            snapshot_extent: Extent::Changes,
            kept: KeptPages::default(),
            waiting: WaitingPatches::default(),
            stripes: stripes_of(config).0,
            space: SpacePages::new(config, stripe_pages_end(config)),
            geometry: config.geometry,
            stripe_count: config.stripe_count,
            chunks_per_device: config.chunks_per_device,
        }
    }

    /// Bytes of a configuration's table when every page was written, as [`Table::memory_bytes`] counts them;
    /// `bytes_max` if that is less and pages may be absent.
    pub fn bytes_for(config: &ArrayConfig, bytes_max: u64) -> u64 {
        let pages = Self::page_count_for(config);
        let fixed = fixed_bytes(pages);
        let groups = pages.div_ceil(GROUP_PAGES) * Frames::GROUP_BYTES;
        let all = fixed + groups + pages * Frames::FRAME_BYTES;
        if may_page(config) { all.min(bytes_max.max(fixed)) } else { all }
    }

    /// How many words a configuration's table has.
    pub fn word_count(config: &ArrayConfig) -> u64 {
        Self::page_count_for(config) * WORDS
    }

    /// How many pages a configuration's table has.
    pub fn page_count_for(config: &ArrayConfig) -> u64 {
        stripe_pages_end(config) as u64 + space::page_count(config)
    }

    #[inline]
    fn get(&self, at: WordAt) -> u32 {
        self.page(at.page)[at.word]
    }

    /// A page that is about to change.
    #[inline]
    fn page_mut(&mut self, index: usize) -> TablePage<'_> {
        if self.wanted.has(index) {
            self.keep(index);
        }
        self.changed.set(index);
        self.unsaved.set(index);
        match self.frames.frame_of(index) {
            Some(frame) => self.frames.in_frame(frame),
            None => self.first_frame(index),
        }
    }

    #[cold]
    fn first_frame(&mut self, index: usize) -> TablePage<'_> {
        self.assert_unwritten(index);
        self.frames.insert(index, &ZEROS)
    }

    #[cold]
    fn assert_unwritten(&self, index: usize) {
        let is_absent = self.is_paged() && self.is_somewhere(index);
        assert!(!is_absent, "page {index} is looked into and not in memory");
    }

    /// A page on which the group of that word is about to change.
    #[inline]
    fn group_mut(&mut self, WordAt { page, word }: WordAt) -> &mut PageWords {
        let page = self.page_mut(page);
        page.changed.set_word(word);
        page.words
    }

    #[cold]
    fn keep(&mut self, index: usize) {
        self.wanted.clear(index);
        let Some(frame) = self.frames.frame_of(index) else {
            return self.kept.insert(index, &ZEROS, GroupBits::NONE);
        };
        let may_be_patch = self.snapshot_extent == Extent::Changes && !self.is_of_space(index);
        let page = self.frames.in_frame(frame);
        let changed = std::mem::take(page.changed);
        if may_be_patch && changed.are_few() {
            self.kept.insert_patch(index, page.words, changed);
        } else {
            self.kept.insert(index, page.words, changed);
        }
    }

    fn set(&mut self, at: WordAt, value: u32) {
        self.group_mut(at)[at.word] = value;
    }

    #[inline]
    fn column_word(&self, stripe: StripeId, column: usize) -> WordAt {
        self.stripes.at(stripe.get()).behind(column * COLUMN_WORDS)
    }

    /// The newest chunk of a column of a stripe, data or parity.
    #[inline]
    pub fn column(&self, stripe: StripeId, column: usize) -> StripeChunk {
        let WordAt { page, word } = self.column_word(stripe, column);
        let page = self.page(page);
        StripeChunk { chunk: ChunkIndex::new(page[word]), crc: page[word + 1] }
    }

    /// Points a column of a stripe at its newest chunk.
    #[inline]
    pub fn set_column(&mut self, stripe: StripeId, column: usize, version: StripeChunk) {
        let at = self.column_word(stripe, column);
        let (page, word) = (self.group_mut(at), at.word);
        (page[word], page[word + 1]) = (version.chunk.get(), version.crc);
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
        self.get(place_word(lcn))
    }

    /// Points a logical chunk at its newest version among elastic stripes.
    #[inline]
    pub fn set_place(&mut self, lcn: Lcn, place: u32) {
        self.set(place_word(lcn), place);
    }

    #[inline]
    fn row_word(&self, row: u32) -> WordAt {
        self.stripes.at(row.into())
    }

    /// What a row of elastic stripes holds; the scheme knows what the word means.
    pub fn row(&self, row: u32) -> u32 {
        self.get(self.row_word(row))
    }

    /// Notes what a row holds.
    pub fn set_row(&mut self, row: u32, word: u32) {
        self.set(self.row_word(row), word);
    }

    /// The checksum of a column, data or parity, of a row of elastic stripes.
    #[inline]
    pub fn row_crc(&self, row: u32, column: usize) -> u32 {
        self.get(self.row_word(row).behind(1 + column))
    }

    /// Notes the checksum of a column of a row.
    #[inline]
    pub fn set_row_crc(&mut self, row: u32, column: usize, crc: u32) {
        self.set(self.row_word(row).behind(1 + column), crc);
    }

    /// Bytes held per physical chunk are reported by `status` (requirement L-15).
    pub fn memory_bytes(&self) -> u64 {
        self.kept.memory_bytes()
            + self.waiting.memory_bytes()
            + self.frames.memory_bytes()
            + 4 * self.changed.memory_bytes()
            + self.saving.memory_bytes()
            + self.slots.memory_bytes()
    }

    /// How many pages the table has.
    pub fn page_count(&self) -> usize {
        self.page_count
    }

    /// The words of one page, which is not absent.
    #[inline]
    pub fn page(&self, index: usize) -> &[u32; PAGE_WORDS] {
        match self.frames.get(index) {
            Some(words) => words,
            None => {
                self.assert_unwritten(index);
                &ZEROS
            }
        }
    }

    /// Pages that hold something or have slots that count, in order.
    fn saved_pages(&self) -> impl Iterator<Item = usize> {
        let is_saved = |&page: &usize| self.has_frame(page) || self.is_somewhere(page);
        (0..self.page_count).filter(is_saved)
    }

    /// Every chunk that a stripe names, data and parity, with its column: stripes in order. No page of theirs
    /// is absent.
    pub fn named_chunks(&self) -> impl Iterator<Item = NamedChunk> {
        let pages = self.stripes.first_page..self.space.first_page;
        pages
            .filter(|&page| self.has_frame(page))
            .flat_map(|page| self.chunks_named_by(page, self.page(page)))
    }

    /// The same of one page, which has these words.
    pub fn chunks_named_by<'a>(
        &self,
        page: usize,
        words: &'a [u32],
    ) -> impl Iterator<Item = NamedChunk> + use<'a> {
        let entries = words.chunks_exact(self.stripes.entry_words);
        self.stripes_of(page).map(StripeId::new).zip(entries).flat_map(|(stripe, entry)| {
            let chunks = entry.iter().step_by(COLUMN_WORDS).map(|&chunk| ChunkIndex::new(chunk));
            let named = chunks.enumerate().filter(|(_, chunk)| !chunk.is_none());
            named.map(move |(column, chunk)| (stripe, column, chunk))
        })
    }

    /// Whether every page is the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.page_count == other.page_count
            && (0..self.page_count).all(|index| self.page(index) == other.page(index))
    }

    /// Fills one page from a checkpoint; `false` if it does not have that shape.
    pub fn load_page(&mut self, index: usize, words: &[u32]) -> bool {
        let Ok(words) = <&PageWords>::try_from(words) else { return false };
        if index >= self.page_count() {
            return false;
        }
        if self.has_frame(index) || *words != ZEROS {
            let page = self.page_mut(index);
            (*page.words, *page.changed) = (*words, GroupBits::all());
        }
        true
    }

    /// Changes one page, which there is and which is not absent, as a checkpoint says.
    pub fn apply_patch(&mut self, patch: &Patch<'_>) {
        let page = self.page_mut(patch.index);
        patch.apply(page.words);
        *page.changed = GroupBits::all();
    }

    /// Whether every chunk that the pages in memory name exists.
    pub fn is_sane(&self, config: &ArrayConfig) -> bool {
        let Section { first_page, .. } = self.stripes;
        if config.scheme.is_elastic() {
            let places = u64::from(self.chunks_per_device) * config.geometry.data_count() as u64;
            let map = self.frames.pages().filter(|&page| page < first_page).map(|page| self.page(page));
            return map.flat_map(|page| page.iter()).all(|&place| u64::from(place) <= places);
        }
        self.frames.pages().all(|page| self.is_sane_page(page, self.page(page)))
    }

    /// How many pages changed since the last checkpoint.
    pub fn changed_count(&self) -> usize {
        self.changed.count()
    }

    /// Pages that changed since the last checkpoint, in order.
    pub fn changed_pages(&self) -> impl Iterator<Item = usize> + Clone {
        self.changed.iter()
    }

    /// Which words of a page a checkpoint lacks.
    pub fn changed_groups(&self, index: usize) -> GroupBits {
        self.frames.changed(index).copied().unwrap_or(GroupBits::NONE)
    }

    /// What is there now is what a checkpoint holds.
    pub fn clear_changed(&mut self) {
        for index in self.changed.iter() {
            if let Some(changed) = self.frames.changed_mut(index) {
                *changed = GroupBits::NONE;
            }
        }
        self.changed.clear_all();
    }

    /// What is there now is what the slots hold.
    pub fn clear_unsaved(&mut self) {
        self.unsaved.clear_all();
    }

    /// Where the pages are on the members.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The same, to be loaded.
    pub fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Begins a checkpoint of the state as it is now, in place of the one before: returns its pages, in
    /// order. Each stays as it is in [`Table::snapshot_page`], or what had changed on it in
    /// [`Table::push_snapshot_groups`], until [`Table::release_page`].
    pub fn take_snapshot(&mut self, extent: Extent) -> Vec<usize> {
        self.drop_snapshot();
        self.snapshot_extent = extent;
        let pages: Vec<usize> = match extent {
            Extent::Changes => self.changed_pages().collect(),
            Extent::Unsaved => self.unsaved.iter().collect(),
            Extent::Everything => self.saved_pages().collect(),
        };
        pages.iter().for_each(|&page| self.wanted.set(page));
        self.changed.clear_all();
        if extent > Extent::Changes {
            std::mem::swap(&mut self.unsaved, &mut self.unsaved_before);
            self.clear_unsaved();
            self.saving.clear_all();
            pages.iter().for_each(|&page| self.saving.set(page));
        }
        pages
    }

    /// The directory pages that say where the pages of the snapshot are going to be, in order; they are part
    /// of it from now on.
    pub fn take_directories(&mut self, pages: &[usize]) -> Vec<usize> {
        let mut directories: Vec<usize> = pages.iter().map(|&page| self.slots.directory_of(page)).collect();
        directories.dedup();
        if planted(Planted::ForgetDirectory) {
            directories.clear();
        }
        directories.iter().for_each(|&page| self.saving.set(page));
        directories
    }

    /// Which slot of a page counts once checkpoint `number`, which is under way, is there.
    pub fn next_state(&self, page: usize, number: u64) -> SlotState {
        let state = self.slots.state(page);
        if self.saving.has(page) { state.next(number) } else { state }
    }

    /// Checkpoint `number` is there: what it wrote to the slots counts.
    pub fn end_snapshot(&mut self, number: u64) {
        self.drop_snapshot();
        for page in self.saving.iter() {
            self.slots.set(page, self.slots.state(page).next(number));
        }
        self.saving.clear_all();
        self.unsaved_before.clear_all();
        self.may_evict = true;
    }

    /// The checkpoint under way comes to nothing: what counted before goes on to count.
    pub fn abandon_snapshot(&mut self) {
        self.drop_snapshot();
        self.saving.clear_all();
        for page in std::mem::take(&mut self.unsaved_before).iter() {
            self.mark_unsaved(page);
        }
        self.unsaved_before = PageBits::new(self.page_count);
    }

    /// Whether a page of the snapshot must be read before it can be written.
    pub fn must_read(&self, page: usize) -> bool {
        self.is_absent(page) && !self.kept.has(page)
    }

    /// A page of the snapshot, as it was when that was taken. If that is of what changed, and that is little
    /// on the page, it may be in [`Table::push_snapshot_groups`] alone.
    pub fn snapshot_page(&self, index: usize) -> &[u32; PAGE_WORDS] {
        let is_patch = self.kept.patch(index).is_some();
        assert!(!is_patch || Self::kept_moves(), "page {index} is kept as a patch and asked for as a whole");
        match self.kept.get(index) {
            Some(kept) if !planted(Planted::SnapshotMoves) => &kept.words,
            Some(_) | None => self.page(index),
        }
    }

    /// What had changed on a page of the snapshot when that was taken.
    pub fn snapshot_groups(&self, index: usize) -> GroupBits {
        match self.kept.changed(index) {
            Some(changed) if !planted(Planted::KeptChangesMove) => changed,
            Some(_) | None => self.changed_groups(index),
        }
    }

    /// Appends what groups of a page of the snapshot held, which are the first ones of those that had changed
    /// on it.
    pub fn push_snapshot_groups(&self, index: usize, groups: &GroupBits, words: &mut Vec<u32>) {
        match self.kept.patch(index) {
            Some(kept) if !Self::kept_moves() => {
                words.extend_from_slice(&kept[..groups.count() * GROUP_WORDS])
            }
            Some(_) | None => groups.push_words(self.snapshot_page(index), words),
        }
    }

    /// Planted bugs by which what is kept is not what it was.
    fn kept_moves() -> bool {
        planted(Planted::SnapshotMoves) || planted(Planted::KeptChangesMove)
    }

    /// A page of the snapshot was written. What changed on it later is in no checkpoint yet.
    pub fn release_page(&mut self, index: usize) {
        let is_kept = self.kept.remove(index, self.frames_max);
        self.wanted.clear(index);
        if let Some(changed) = self.frames.changed_mut(index)
            && !is_kept
        {
            *changed = GroupBits::NONE;
        }
    }

    /// What is left of the snapshot is not wanted any more.
    fn drop_snapshot(&mut self) {
        self.wanted.clear_all();
        self.kept.clear();
    }
}

/// Whether pages of an array's table may be absent. Elastic stripes have all of theirs in memory: garbage
/// collection looks into any of them.
fn may_page(config: &ArrayConfig) -> bool {
    !config.scheme.is_elastic()
}

/// Bytes of a table of so many pages besides the pages and their lookup.
fn fixed_bytes(pages: u64) -> u64 {
    let bits = |count: u64| (count.div_ceil(64) + count.div_ceil(64 * 64)) * 8;
    let in_slots = slots::page_count(pages);
    Frames::fixed_bytes(pages) + 4 * bits(pages) + bits(in_slots) + in_slots
}

/// Whether every chunk that a page of data stripes names exists.
fn are_sane(stripes: Section, chunks: u32, words: &[u32]) -> bool {
    let entries = &words[..PAGE_WORDS / stripes.entry_words * stripes.entry_words];
    entries.chunks_exact(COLUMN_WORDS).all(|column| column[0] <= chunks)
}

/// Where the map of elastic stripes has a logical chunk.
#[inline]
fn place_word(lcn: Lcn) -> WordAt {
    let index = lcn.get() as usize;
    WordAt { page: index / PAGE_WORDS, word: index % PAGE_WORDS }
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
                let expected = WordAt { page, word: entry * entry_words };
                assert_eq!(section.at(index as u64), expected, "{index}");
            }
        }
    }
}
