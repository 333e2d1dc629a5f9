//! Which pages of the table are in memory.

use super::frames::Frames;
use super::page_bits::PageBits;
use super::{SlotState, Table, ZEROS, are_sane, fixed_bytes, may_page};
use crate::planted::{Planted, planted};
use block::{ChunkIndex, DevIndex, Geometry, StripeId};
use format::{ArrayConfig, PAGE_WORDS, StripeChunk};

/// See [`Table::pages_at_once`]. The larger number takes 16 MiB.
const PAGES_AT_ONCE: std::ops::Range<usize> = 32..4096;
/// See [`Table::pages_ahead`]: 64 MiB.
const PAGES_AHEAD: usize = 1 << 14;

impl Table {
    /// From now on the table takes so many bytes of memory at most, but for pages that must stay: those that
    /// are in use, and those that are not in their slots as they are.
    pub fn set_bytes_max(&mut self, config: &ArrayConfig, bytes_max: u64) {
        if !Self::is_paged_for(config, bytes_max) {
            self.frames_max = usize::MAX;
            return;
        }
        let for_frames = bytes_max.saturating_sub(fixed_bytes(Self::page_count_for(config)));
        // A frame may be the only one of its group.
        let frames = for_frames / (Frames::FRAME_BYTES + Frames::GROUP_BYTES);
        let least = 1 + self.space.windows();
        self.frames_max = usize::try_from(frames).unwrap_or(usize::MAX - 1).max(least);
    }

    /// An empty table that may take as much memory.
    pub fn emptied(&self, config: &ArrayConfig) -> Self {
        let mut table = Self::new(config);
        table.frames_max = self.frames_max;
        table
    }

    /// Whether pages may be absent.
    #[inline]
    pub fn is_paged(&self) -> bool {
        self.frames_max != usize::MAX
    }

    /// Whether so much changed that a checkpoint is due: what is not in its slot cannot make room.
    pub fn is_mostly_unsaved(&self) -> bool {
        self.is_paged() && self.unsaved.count() > (self.frames_max + self.space.windows()) / 2
    }

    /// Whether pages are not in the slots that count, and will be once a checkpoint has ended.
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty() || !self.unsaved_before.is_empty()
    }

    /// Pages, also of the directory, of which a copy is lacking where they are and stay until the snapshot
    /// has ended; `lacks` says that of a member and of what counts.
    pub fn lacking_pages(&self, lacks: impl Fn(DevIndex, SlotState) -> bool) -> Vec<usize> {
        let area = self.slots.area();
        let lacks_copy = |page: usize| {
            let state = self.slots.state(page);
            state.is_written()
                && !self.saving.has(page)
                && (0..area.copies()).any(|copy| lacks(area.place(page, copy, 0).0, state))
        };
        (0..self.slots.page_count()).filter(|&page| lacks_copy(page)).collect()
    }

    /// Whether the table of a configuration has pages that are absent when it may take so many bytes.
    pub fn is_paged_for(config: &ArrayConfig, bytes_max: u64) -> bool {
        may_page(config) && bytes_max < Self::bytes_for(config, u64::MAX)
    }

    /// The data stripes that a page speaks of; the last ones may be none.
    pub fn stripes_of(&self, page: usize) -> std::ops::Range<u64> {
        if self.is_of_space(page) {
            return 0..0;
        }
        let first = (page - self.stripes.first_page) as u64 * self.stripes_per_page();
        first..first + self.stripes_per_page()
    }

    /// Those that there are.
    pub fn stripes_on(&self, page: usize) -> impl Iterator<Item = StripeId> + use<> {
        let std::ops::Range { start, end } = self.stripes_of(page);
        (start..end.min(self.stripe_count)).map(StripeId::new)
    }

    /// Of what shape the stripes are that it speaks of.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The data stripes of which pages in memory speak, in order.
    pub fn stripes_in_memory(&self) -> impl Iterator<Item = StripeId> {
        let pages = self.frames.pages().filter(|&page| page >= self.stripes.first_page);
        let pages = pages.take_while(|&page| !self.is_of_space(page));
        let stripes = pages.flat_map(|page| self.stripes_of(page));
        stripes.take_while(|&stripe| stripe < self.stripe_count).map(StripeId::new)
    }

    /// Stripes that a page speaks of.
    pub fn stripes_per_page(&self) -> u64 {
        self.stripes.entries()
    }

    /// Pages that a replay keeps in memory at once, unless one record needs more: few compared with those
    /// that there is room for, or so few that it does not matter.
    pub fn pages_at_once(&self) -> usize {
        (self.frames_max / 4).clamp(PAGES_AT_ONCE.start, PAGES_AT_ONCE.end)
    }

    /// Pages that may be read before a replay asks for them, besides those that are in memory.
    pub fn pages_ahead(&self) -> usize {
        (self.frames_max / 4).clamp(PAGES_AT_ONCE.start, PAGES_AHEAD)
    }

    /// Whether the pages of so many stripes that follow each other, and another one, can be in memory
    /// together.
    pub fn holds(&self, stripes: u64) -> bool {
        let pages = stripes.div_ceil(self.stripes_per_page()) + 2;
        let room = self.frames_max.saturating_sub(self.space.windows());
        !self.is_paged() || usize::try_from(pages).is_ok_and(|pages| pages <= room)
    }

    /// Makes room for another page in memory; `false` if none that is there may go.
    pub fn make_room(&mut self) -> bool {
        while self.frames.len() + self.coming + self.kept.len() + self.waiting.pages() >= self.frames_max {
            if !self.may_evict || !self.evict() {
                self.may_evict = false;
                return false;
            }
        }
        true
    }

    /// Lets a page go that is in its slot as it is and that nobody has pinned; `false` if there is none.
    fn evict(&mut self) -> bool {
        let Self { frames, unsaved, unsaved_before, .. } = self;
        frames.evict(|page| may_go(unsaved, unsaved_before, page))
    }

    /// Lets all pages go that may.
    #[cfg(test)]
    pub fn evict_all(&mut self) {
        while self.evict() {}
    }

    /// Whether a page is not in memory and holds something: on the members, or in patches that wait for it.
    #[inline]
    pub fn is_absent(&self, page: usize) -> bool {
        self.frames.get(page).is_none() && self.is_somewhere(page)
    }

    /// Whether a page that has no frame is more than zeros.
    #[inline]
    pub fn is_somewhere(&self, page: usize) -> bool {
        self.slots.state(page).is_written() || self.waiting.has(page)
    }

    /// Whether a page is in memory, be it of zeros.
    #[inline]
    pub fn has_frame(&self, page: usize) -> bool {
        self.frames.get(page).is_some()
    }

    /// The page that speaks of a data stripe.
    #[inline]
    pub fn page_of(&self, stripe: StripeId) -> usize {
        self.column_word(stripe, 0).page
    }

    /// The pages that speak of some stripes, each once; of stripes that do not exist none.
    pub fn pages_of(&self, stripes: impl Iterator<Item = StripeId>) -> Vec<usize> {
        let mut pages: Vec<usize> = stripes.map(|stripe| self.page_of(stripe)).collect();
        pages.sort_unstable();
        pages.dedup();
        pages.retain(|&page| page < self.page_count);
        pages
    }

    /// Whether the page that speaks of a data stripe is absent.
    #[inline]
    pub fn lacks(&self, stripe: StripeId) -> bool {
        self.is_paged() && self.is_absent(self.page_of(stripe))
    }

    /// Asks for what [`Table::lacks`] looks at of a stripe, of any that there is.
    #[inline]
    pub fn prefetch_lacks(&self, stripe: StripeId) {
        let page = self.page_of(stripe);
        self.frames.prefetch_place(page);
        self.slots.prefetch(page);
    }

    /// A page is being read, and will need a frame.
    pub fn expect_page(&mut self) {
        self.coming += 1;
    }

    /// It has come, or will not.
    pub fn expect_page_no_more(&mut self) {
        self.coming -= 1;
    }

    /// Keeps a page in memory, which must not be absent.
    pub fn pin(&mut self, page: usize) {
        if !self.has_frame(page) {
            self.assert_unwritten(page);
            self.frames.insert(page, &ZEROS);
        }
        self.frames.pin(page);
    }

    /// Takes back one [`Table::pin`].
    pub fn unpin(&mut self, page: usize) {
        self.frames.unpin(page);
        self.may_evict |= may_go(&self.unsaved, &self.unsaved_before, page);
    }

    /// No copy of a page can be had: it is in memory for good, with nothing in it.
    pub fn give_up_page(&mut self, page: usize) {
        self.waiting.remove(page);
        self.frames.insert(page, &ZEROS);
        self.frames.pin(page);
    }

    /// A column, data or parity, of a stripe on its page, which has these words.
    pub fn column_on(&self, words: &[u32], stripe: StripeId, column: usize) -> StripeChunk {
        let word = self.column_word(stripe, column).word;
        StripeChunk { chunk: ChunkIndex::new(words[word]), crc: words[word + 1] }
    }

    /// Whether words may be those of a page of data stripes or of bits.
    pub fn is_sane_page(&self, page: usize, words: &[u32]) -> bool {
        words.len() == PAGE_WORDS
            && (self.is_of_space(page) || are_sane(self.stripes, self.chunks_per_device, words))
    }

    /// An absent page was read, and these are its words with all that waited for it.
    pub fn bring(&mut self, page: usize, words: &[u32]) {
        let words = words.try_into().expect("whoever reads a page looks at its shape");
        if !self.has_frame(page) {
            self.frames.insert(page, &words);
            self.waiting.remove(page);
            self.clear_now(page);
            // One that waited to be saved cannot make room: nobody is to look through all of them for it.
            self.may_evict |= may_go(&self.unsaved, &self.unsaved_before, page);
        }
    }

    /// The same for a page that is pinned so many times: nothing that can go has come.
    pub fn bring_pinned(&mut self, page: usize, words: &[u32], times: usize) {
        let may_evict = self.may_evict;
        self.bring(page, words);
        (0..times).for_each(|_| self.frames.pin(page));
        self.may_evict = may_evict;
    }

    /// The copies of a page are not what they should be: it is written anew with the next full checkpoint.
    pub fn mark_unsaved(&mut self, page: usize) {
        self.unsaved.set(page);
    }
}

/// Whether a page that nobody has pinned can be read again as it is.
fn may_go(unsaved: &PageBits, unsaved_before: &PageBits, page: usize) -> bool {
    (!unsaved.has(page) || planted(Planted::EvictUnsaved))
        && (planted(Planted::EvictUnsealed) || !unsaved_before.has(page))
}
