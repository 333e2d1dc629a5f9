//! Patches of pages that are not in memory.
//!
//! A start finds pages in their slots as a full checkpoint wrote them, and in incremental ones what changed
//! on them since. A page is not read for that, nor given a frame if it was never written: what changed waits
//! in memory until somebody needs the page, or a full checkpoint writes it. So such a page counts as unsaved,
//! and whoever takes it from its slot, or for zeros, adds what waits ([`Table::add_waiting`]) before anybody
//! looks at it.

use super::Table;
use crate::hash::PageMap;
use crate::planted::{Planted, planted};
use format::{GroupBits, PAGE_WORDS, Patch};
use std::ops::Range;

/// A patch that waits.
struct Waiting {
    groups: GroupBits,
    /// Of the words of all.
    words: Range<usize>,
    /// The next one of the same page.
    next: Option<usize>,
}

/// The patches of a page, by their places: the oldest and the newest one.
#[derive(Clone, Copy)]
struct Ends {
    oldest: usize,
    newest: usize,
}

/// See the module's documentation. A start has one for each page that was written since the last full
/// checkpoint, so they lie side by side; their memory is given back when the last page has come.
#[derive(Default)]
pub(super) struct WaitingPatches {
    by_page: PageMap<Ends>,
    patches: Vec<Waiting>,
    words: Vec<u32>,
}

impl WaitingPatches {
    /// Pages that something waits for. They have to come, if for nothing else than to be saved, so their room
    /// is not given to others.
    pub fn pages(&self) -> usize {
        self.by_page.len()
    }

    /// Whether something waits for a page.
    #[inline]
    pub fn has(&self, page: usize) -> bool {
        !self.by_page.is_empty() && self.by_page.contains_key(&page)
    }

    pub fn memory_bytes(&self) -> u64 {
        let bytes = self.words.capacity() * size_of::<u32>()
            + self.patches.capacity() * size_of::<Waiting>()
            + self.by_page.capacity() * size_of::<(usize, Ends)>();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The page has come, with what waited, or will not.
    pub fn remove(&mut self, page: usize) {
        if self.has(page) {
            self.by_page.remove(&page);
            self.free_if_empty();
        }
    }

    fn free_if_empty(&mut self) {
        if self.by_page.is_empty() {
            *self = Self::default();
        }
    }

    fn push(&mut self, patch: &Patch<'_>) {
        let start = self.words.len();
        self.words.extend_from_slice(patch.words);
        let place = self.patches.len();
        self.patches.push(Waiting { groups: patch.groups, words: start..self.words.len(), next: None });
        match self.by_page.get_mut(&patch.index) {
            Some(ends) => {
                self.patches[ends.newest].next = Some(place);
                ends.newest = place;
            }
            None => drop(self.by_page.insert(patch.index, Ends { oldest: place, newest: place })),
        }
    }

    /// Takes the newest patch of a page back.
    fn pop(&mut self, page: usize) {
        let Some(Ends { oldest, newest }) = self.by_page.get(&page).copied() else { return };
        let before = std::iter::successors(Some(oldest), |&place| self.patches[place].next)
            .find(|&place| self.patches[place].next == Some(newest));
        match before {
            Some(before) => {
                self.patches[before].next = None;
                self.by_page.insert(page, Ends { oldest, newest: before });
            }
            None => self.remove(page),
        }
    }

    /// The patches of a page, the oldest first.
    fn of(&self, page: usize) -> impl Iterator<Item = Patch<'_>> {
        let oldest = self.by_page.get(&page).map(|ends| ends.oldest);
        let places = std::iter::successors(oldest, |&place| self.patches[place].next);
        places.map(move |place| {
            let Waiting { groups, words, .. } = &self.patches[place];
            Patch { index: page, groups: *groups, words: &self.words[words.clone()] }
        })
    }
}

impl Table {
    /// Changes a page that is not in memory as a checkpoint says, once it comes.
    pub fn wait_for_page(&mut self, patch: &Patch<'_>) {
        debug_assert!(!self.has_frame(patch.index), "page {} can be changed now", patch.index);
        self.waiting.push(patch);
        if !planted(Planted::WaitingIsSaved) {
            self.mark_unsaved(patch.index);
        }
    }

    /// The last change that waits for a page does not count.
    pub fn wait_no_more(&mut self, page: usize) {
        self.waiting.pop(page);
    }

    /// The words of a page as it is, of which these are in its slot.
    pub fn add_waiting(&self, page: usize, words: &mut [u32]) {
        if !self.waiting.has(page) || planted(Planted::ForgetWaiting) {
            return;
        }
        let Ok(words) = <&mut [u32; PAGE_WORDS]>::try_from(words) else { return };
        if planted(Planted::WaitingNewestFirst) {
            let patches: Vec<Patch<'_>> = self.waiting.of(page).collect();
            return patches.iter().rev().for_each(|patch| patch.apply(words));
        }
        self.waiting.of(page).for_each(|patch| patch.apply(words));
    }

    /// The words of a page that has no slot that counts.
    pub fn unwritten(&self, page: usize) -> [u32; PAGE_WORDS] {
        let mut words = [0; PAGE_WORDS];
        if !planted(Planted::UnwrittenIsZeros) {
            self.add_waiting(page, &mut words);
        }
        words
    }
}
