//! Where the pages of the table are on the members: the page area.
//!
//! Each page has m + 1 copies on distinct main devices, and each copy two slots. A full checkpoint writes the
//! pages that changed since the one before to the slots that do not count, and then says which slot of each
//! page counts, so that a crash in the middle leaves the checkpoint before it whole. What it says of the
//! pages of the table lies in *directory pages*, a byte for each page, which have slots of their own; what it
//! says of those is in the *root*, which is part of the checkpoint itself.
//!
//! Pages are numbered: those of the table first, the directory pages after them.

use block::{DevIndex, Geometry};
use format::{PAGE_WORDS, Page, PageKind};
use prefetch::{bring_in, prefetch};

/// Pages that a directory page speaks of.
pub const DIRECTORY_PAGES: usize = PAGE_WORDS * 4;
const PER_DIRECTORY: u64 = DIRECTORY_PAGES as u64;
/// Pages that a page of the root speaks of.
const PER_ROOT_PAGE: u64 = PER_DIRECTORY * PER_DIRECTORY;

/// Which slot of a page counts, and a stamp of the checkpoint that wrote it: a slot that holds what an older
/// or a later checkpoint wrote is known by it, but for one in 127.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotState(u8);

/// Values of a stamp, from 1 on.
const STAMPS: u64 = 127;
const SLOT_BIT: u8 = 1 << 7;

impl SlotState {
    /// The page was never written: all its words are 0.
    pub const NEVER: Self = Self(0);

    /// Whether the page was ever written.
    pub fn is_written(self) -> bool {
        self != Self::NEVER
    }

    /// The slot that counts, 0 or 1.
    pub fn slot(self) -> usize {
        usize::from(self.0 & SLOT_BIT != 0)
    }

    /// Whether a page that checkpoint `number` wrote may be what is in the slot.
    pub fn fits(self, number: u64) -> bool {
        self.0 & !SLOT_BIT == stamp(number)
    }

    /// Whether a checkpoint later than `number` may have written the page, of all up to `newest`.
    pub fn may_be_later(self, number: u64, newest: u64) -> bool {
        let later = newest.saturating_sub(number);
        let written = u64::from(self.0 & !SLOT_BIT) - u64::from(self.is_written());
        let age = (newest % STAMPS + STAMPS - written) % STAMPS;
        self.is_written() && age < later
    }

    /// The other slot, written by checkpoint `number`.
    pub fn next(self, number: u64) -> Self {
        let slot = if self.is_written() { (self.0 & SLOT_BIT) ^ SLOT_BIT } else { 0 };
        Self(slot | stamp(number))
    }

    fn is_sane(self) -> bool {
        !self.is_written() || self.0 & !SLOT_BIT != 0
    }
}

fn stamp(number: u64) -> u8 {
    (number % STAMPS) as u8 + 1
}

/// Which slot of each page counts.
pub struct Slots {
    /// As numbers: of what was never written no memory is touched, and a large array has tens of MiB.
    states: Vec<u8>,
    table_pages: usize,
    area: PageArea,
}

impl Slots {
    /// No page was ever written.
    pub fn new(geometry: Geometry, table_pages: usize) -> Self {
        let pages = table_pages + table_pages.div_ceil(DIRECTORY_PAGES);
        let area = PageArea::of(geometry, pages);
        Self { states: vec![SlotState::NEVER.0; pages], table_pages, area }
    }

    /// Where pages are.
    pub fn area(&self) -> PageArea {
        self.area
    }

    /// Pages of the table and of the directory.
    pub fn page_count(&self) -> usize {
        self.states.len()
    }

    /// Which slot of a page counts.
    #[inline]
    pub fn state(&self, page: usize) -> SlotState {
        SlotState(self.states[page])
    }

    /// Asks for what [`Slots::state`] looks at.
    #[inline]
    pub fn prefetch(&self, page: usize) {
        prefetch(&self.states[page]);
    }

    /// The checkpoint that wrote a page counts from now on.
    pub fn set(&mut self, page: usize, state: SlotState) {
        self.states[page] = state.0;
    }

    /// The directory page that speaks of a page of the table.
    pub fn directory_of(&self, page: usize) -> usize {
        self.table_pages + page / DIRECTORY_PAGES
    }

    /// What a page is, and which one of its kind.
    pub fn name(&self, page: usize) -> (PageKind, u32) {
        match page.checked_sub(self.table_pages) {
            None => (PageKind::Table, stored(page)),
            Some(directory) => (PageKind::Directory, stored(directory)),
        }
    }

    /// Whether what was found where a page counts is that page, as the checkpoint wrote it that counts.
    pub fn is_page(&self, page: usize, found: &Page) -> bool {
        (found.kind, found.index) == self.name(page) && self.state(page).fits(found.number)
    }

    /// The pages that a directory page speaks of.
    fn pages_of(&self, directory: usize) -> std::ops::Range<usize> {
        let first = (directory - self.table_pages) * DIRECTORY_PAGES;
        first..(first + DIRECTORY_PAGES).min(self.table_pages)
    }

    /// The words of a directory page, with the states that `state_of` tells.
    pub fn directory(&self, directory: usize, state_of: impl Fn(usize) -> SlotState) -> [u32; PAGE_WORDS] {
        let mut words = [0; PAGE_WORDS];
        pack(self.pages_of(directory).map(state_of), &mut words);
        words
    }

    /// Words of the root.
    pub fn root_words(&self) -> usize {
        (self.states.len() - self.table_pages).div_ceil(4)
    }

    /// The words of the root, with the states that `state_of` tells.
    pub fn root(&self, state_of: impl Fn(usize) -> SlotState) -> Vec<u32> {
        let mut words = vec![0; self.root_words()];
        pack((self.table_pages..self.states.len()).map(state_of), &mut words);
        words
    }

    /// Takes the words of the root; `false` if they do not have that shape.
    pub fn load_root(&mut self, words: &[u32]) -> bool {
        let (of_table, of_directories) = self.states.split_at_mut(self.table_pages);
        let fits = unpack(words, of_directories);
        if fits && of_directories.iter().all(|&state| SlotState(state).is_written()) {
            bring_in(of_table);
        }
        fits
    }

    /// Takes the words of a directory page; `false` if they do not have that shape.
    pub fn load_directory(&mut self, directory: usize, words: &[u32]) -> bool {
        let pages = self.pages_of(directory);
        words.len() == PAGE_WORDS && unpack(words, &mut self.states[pages])
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.states.len() as u64
    }
}

fn pack(states: impl Iterator<Item = SlotState>, words: &mut [u32]) {
    for (index, state) in states.enumerate() {
        words[index / 4] |= u32::from(state.0) << (index % 4 * 8);
    }
}

/// `false` if a state is none, or there are more than asked for.
fn unpack(words: &[u32], states: &mut [u8]) -> bool {
    let Some((words, behind)) = words.split_at_checked(states.len().div_ceil(4)) else { return false };
    let (fours, last) = states.as_chunks_mut::<4>();
    let (whole, rest) = words.split_at(fours.len());
    for (four, word) in fours.iter_mut().zip(whole) {
        *four = word.to_le_bytes();
    }
    let mut rest = rest.iter().flat_map(|word| word.to_le_bytes());
    last.iter_mut().zip(rest.by_ref()).for_each(|(state, next)| *state = next);
    states.iter().fold(true, |all, &state| all & SlotState(state).is_sane())
        && rest.all(|rest| rest == SlotState::NEVER.0)
        && behind.iter().all(|&word| word == 0)
}

/// A number of pages, as it is stored.
fn stored(pages: usize) -> u32 {
    u32::try_from(pages).expect("validated: fewer pages than 2^32")
}

/// Pages of a table of so many pages, and of its directory.
pub fn page_count(table_pages: u64) -> u64 {
    table_pages + table_pages.div_ceil(PER_DIRECTORY)
}

/// Pages that the root of a table of so many pages takes in a full checkpoint.
pub fn root_pages(table_pages: u64) -> u64 {
    table_pages.div_ceil(PER_ROOT_PAGE)
}

/// Copy i of page p is on main device (p + i) mod n, at block (slot x (m + 1) + i) x g + p / n of the page
/// area, where g is the number of pages that a device has a first copy of: so the pages that a checkpoint
/// writes in order lie in order on each device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageArea {
    devices: usize,
    copies: usize,
    per_device: usize,
}

impl PageArea {
    /// That of so many pages of the table and of the directory.
    fn of(geometry: Geometry, pages: usize) -> Self {
        let devices = geometry.device_count();
        Self { devices, copies: geometry.parity_count() + 1, per_device: pages.div_ceil(devices) }
    }

    /// Blocks that the pages of a table of so many take on each main device.
    pub fn blocks_for(geometry: Geometry, table_pages: u64) -> u64 {
        let [devices, copies] = [geometry.device_count(), geometry.parity_count() + 1].map(|n| n as u64);
        2 * copies * page_count(table_pages).div_ceil(devices)
    }

    /// Copies of each page.
    pub fn copies(self) -> usize {
        self.copies
    }

    /// The device and block of a copy of a page in a slot.
    pub fn place(self, page: usize, copy: usize, slot: usize) -> (DevIndex, u32) {
        let dev = DevIndex::new(((page + copy) % self.devices) as u16);
        (dev, stored((slot * self.copies + copy) * self.per_device + page / self.devices))
    }

    /// The page and slot of which a device has a copy at a block; the page may be none that there is.
    pub fn page_at(self, dev: DevIndex, block: u32) -> (usize, usize) {
        let (column, row) = (block as usize / self.per_device, block as usize % self.per_device);
        let (copy, slot) = (column % self.copies, column / self.copies);
        (row * self.devices + (dev.index() + self.devices - copy) % self.devices, slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_a_later_checkpoint_wrote_is_never_taken_for_older() {
        assert!(!SlotState::NEVER.may_be_later(0, 500), "it was never written");
        for newest in (1..3 * STAMPS).step_by(7) {
            for (number, written) in (0..=newest).flat_map(|number| (1..=newest).map(move |at| (number, at)))
            {
                let state = SlotState::NEVER.next(written);
                let may_be = state.may_be_later(number, newest);
                assert!(may_be || written <= number, "{written} of {newest} after {number}");
                let is_exact = newest - written < STAMPS;
                assert!(!is_exact || may_be == (written > number), "{written} of {newest} after {number}");
            }
        }
    }

    #[test]
    fn every_copy_has_a_place_of_its_own_and_is_found_there() {
        for (k, m, table_pages) in [(1, 1, 1), (4, 1, 7), (6, 2, 4001), (6, 2, 8000), (3, 3, 100)] {
            let geometry = Geometry::new(k, m, 4096).expect("valid");
            let slots = Slots::new(geometry, table_pages);
            let blocks = PageArea::blocks_for(geometry, table_pages as u64);
            let (area, mut seen) = (slots.area(), BTreeSet::new());
            for page in 0..slots.page_count() {
                let mut devices = BTreeSet::new();
                for (copy, slot) in (0..=m).flat_map(|copy| [(copy, 0), (copy, 1)]) {
                    let (dev, block) = area.place(page, copy, slot);
                    assert!(u64::from(block) < blocks && dev.index() < k + m);
                    assert!(seen.insert((dev, block)), "page {page} copy {copy} slot {slot}");
                    assert_eq!(area.page_at(dev, block), (page, slot));
                    devices.insert(dev);
                }
                assert_eq!(devices.len(), m + 1, "a loss of m devices leaves a copy");
            }
        }
    }

    #[test]
    fn a_slot_is_never_written_twice_in_a_row() {
        let mut state = SlotState::NEVER;
        for number in 1..1000 {
            let next = state.next(number);
            assert!(next.is_written() && next.is_sane() && next.fits(number) && !next.fits(number + 1));
            assert!(!state.is_written() || next.slot() != state.slot());
            state = next;
        }
    }

    #[test]
    fn states_come_back_from_their_pages() {
        let geometry = Geometry::new(4, 2, 4096).expect("valid");
        let table_pages = 9001;
        let mut slots = Slots::new(geometry, table_pages);
        for page in (0..slots.page_count()).filter(|page| page % 3 != 1) {
            slots.set(page, SlotState::NEVER.next(page as u64).next(page as u64 + 5));
        }
        let mut again = Slots::new(geometry, table_pages);
        assert!(again.load_root(&slots.root(|page| slots.state(page))));
        for directory in table_pages..slots.page_count() {
            let words = slots.directory(directory, |page| slots.state(page));
            assert!(again.load_directory(directory, &words));
            assert!(!again.load_directory(directory, &words[1..]));
        }
        assert_eq!(again.states, slots.states);
        assert!(!again.load_root(&[]) && !again.load_root(&[SLOT_BIT.into()]), "no such states");
        assert!(!again.load_root(&[0, 1]), "more states than directory pages");
    }
}
