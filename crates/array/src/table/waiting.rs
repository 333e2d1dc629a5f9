//! Patches of pages that are not in memory.
//!
//! A start finds pages in their slots as a full checkpoint wrote them, and in incremental ones what changed
//! on them since. A page is not read for that: what changed waits in memory until somebody needs the page,
//! or a full checkpoint writes it. So such a page counts as unsaved, and whoever reads it from its slot
//! adds what waits ([`Table::add_waiting`]) before anybody looks at it.

use super::Table;
use crate::hash::PageMap;
use crate::planted::{Planted, planted};
use format::{GroupBits, PAGE_WORDS, Patch};

/// A patch that waits.
struct Waiting {
    groups: GroupBits,
    words: Box<[u32]>,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct WaitingPatches {
    /// The oldest first.
    by_page: PageMap<Vec<Waiting>>,
    words: usize,
}

impl WaitingPatches {
    /// Pages that something waits for. They have to come, if for nothing else than to be saved, so their room
    /// is not given to others.
    pub fn pages(&self) -> usize {
        self.by_page.len()
    }

    pub fn memory_bytes(&self) -> u64 {
        let patches = self.by_page.values().map(|waiting| waiting.capacity() * size_of::<Waiting>());
        let entries = self.by_page.capacity() * size_of::<(usize, Vec<Waiting>)>();
        let bytes = self.words * size_of::<u32>() + patches.sum::<usize>() + entries;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The page has come, with what waited, or will not.
    pub fn remove(&mut self, page: usize) {
        if self.words > 0
            && let Some(waiting) = self.by_page.remove(&page)
        {
            self.words -= waiting.iter().map(|patch| patch.words.len()).sum::<usize>();
        }
    }
}

impl Table {
    /// Changes an absent page as a checkpoint says, once it comes.
    pub fn wait_for_page(&mut self, patch: &Patch<'_>) {
        debug_assert!(self.is_absent(patch.index), "page {} can be changed now", patch.index);
        let waiting = Waiting { groups: patch.groups, words: patch.words.into() };
        self.waiting.words += waiting.words.len();
        self.waiting.by_page.entry(patch.index).or_default().push(waiting);
        if !planted(Planted::WaitingIsSaved) {
            self.mark_unsaved(patch.index);
        }
    }

    /// The last change that waits for a page does not count.
    pub fn wait_no_more(&mut self, page: usize) {
        let Some(waiting) = self.waiting.by_page.get_mut(&page) else { return };
        let last = waiting.pop();
        let is_empty = waiting.is_empty();
        self.waiting.words -= last.map_or(0, |last| last.words.len());
        if is_empty {
            self.waiting.by_page.remove(&page);
        }
    }

    /// The words of a page as it is, of which these are in its slot.
    pub fn add_waiting(&self, page: usize, words: &mut [u32]) {
        if self.waiting.words == 0 || planted(Planted::ForgetWaiting) {
            return;
        }
        let Some(waiting) = self.waiting.by_page.get(&page) else { return };
        let Ok(words) = <&mut [u32; PAGE_WORDS]>::try_from(words) else { return };
        let apply = |patch: &Waiting| {
            Patch { index: page, groups: patch.groups, words: &patch.words }.apply(&mut *words);
        };
        if planted(Planted::WaitingNewestFirst) {
            return waiting.iter().rev().for_each(apply);
        }
        waiting.iter().for_each(apply);
    }
}
