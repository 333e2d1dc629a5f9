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
use format::{GROUP_WORDS, GroupBits, PAGE_WORDS, Patch};
use std::ops::Range;

/// A patch that waits.
struct Waiting {
    /// Its groups, among those of all.
    groups: Range<u32>,
    /// The next one of the same page; itself if there is none.
    next: u32,
}

/// The patches of a page, by their places: the oldest and the newest one.
#[derive(Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
}

/// See the module's documentation. A start has one for each page that each incremental checkpoint since the
/// last full one changed, so they lie side by side, most with a single group; their memory is given back when
/// the last page has come.
#[derive(Default)]
pub(super) struct WaitingPatches {
    by_page: PageMap<Ends>,
    patches: Vec<Waiting>,
    /// The groups of all, and what they hold.
    groups: Vec<u16>,
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
            + self.groups.capacity() * size_of::<u16>()
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
        let start = self.end();
        let groups = patch.groups.groups().map(|group| u16::try_from(group).expect("a page has 500 groups"));
        self.groups.extend(groups);
        self.words.extend_from_slice(patch.words);
        let place = number(self.patches.len());
        self.patches.push(Waiting { groups: start..self.end(), next: place });
        match self.by_page.get_mut(&patch.index) {
            Some(ends) => {
                self.patches[index(ends.newest)].next = place;
                ends.newest = place;
            }
            None => drop(self.by_page.insert(patch.index, Ends { oldest: place, newest: place })),
        }
    }

    /// Takes the newest patch of a page back.
    fn pop(&mut self, page: usize) {
        let Some(Ends { oldest, newest }) = self.by_page.get(&page).copied() else { return };
        let before = self.places(oldest).find(|&place| place != newest && self.next(place) == Some(newest));
        match before {
            Some(before) => {
                self.patches[index(before)].next = before;
                self.by_page.insert(page, Ends { oldest, newest: before });
            }
            None => self.remove(page),
        }
    }

    /// The patches of a page, the oldest first.
    fn of(&self, page: usize) -> impl Iterator<Item = Patch<'_>> {
        let places = self.by_page.get(&page).into_iter().flat_map(|ends| self.places(ends.oldest));
        places.map(move |place| {
            let Range { start, end } = self.patches[index(place)].groups;
            let (start, end) = (index(start), index(end));
            let mut groups = GroupBits::NONE;
            self.groups[start..end]
                .iter()
                .for_each(|&group| groups.set_word(usize::from(group) * GROUP_WORDS));
            Patch { index: page, groups, words: &self.words[start * GROUP_WORDS..end * GROUP_WORDS] }
        })
    }

    /// The patches of a page from one on, by their places.
    fn places(&self, first: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(first), |&place| self.next(place))
    }

    fn next(&self, place: u32) -> Option<u32> {
        Some(self.patches[index(place)].next).filter(|&next| next != place)
    }

    /// Groups of all patches.
    fn end(&self) -> u32 {
        number(self.groups.len())
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("incremental checkpoints have fewer groups than 2^32")
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("there is room for it")
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
