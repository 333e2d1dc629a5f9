//! Pages of the table as a full checkpoint has them in their slots, while an array is being assembled.

use crate::hash::PageMap;
use crate::planted::{Planted, planted};
use crate::restart::AssembleError;
use crate::table::Table;
use block::{DevIndex, DeviceSet, META_BYTES, ReadNow};
use format::{ArrayConfig, ArrayUuid, PAGE_AREA, PageExpect, decode_page};

/// Pages read at once.
const BATCH_PAGES: usize = 4096;

/// Whoever gets the words of a page; `false` if they have not the shape that they must have.
type Take<'a> = dyn FnMut(&mut Table, usize, &[u32]) -> bool + 'a;

/// Where pages are read from. Which slot of each counts, the table knows.
pub struct SavedPages {
    array: ArrayUuid,
    config: ArrayConfig,
    members: Vec<DevIndex>,
    number: u64,
    /// What was read before anybody asked for it.
    ahead: PagesAhead,
}

/// Where one copy of each of some pages is, in order, and which pages these are.
type Places = Vec<((DevIndex, u32), usize)>;

/// First copies of pages as they were read, bad ones, too.
#[derive(Default)]
struct PagesAhead {
    bytes: Vec<u8>,
    /// Where in `bytes` a page is.
    at: PageMap<usize>,
}

impl PagesAhead {
    /// Gives what was read of a page; `false` if nothing was.
    fn give(&self, page: usize, into: &mut [u8]) -> bool {
        let Some(&at) = self.at.get(&page) else { return false };
        into.copy_from_slice(&self.bytes[at..at + META_BYTES]);
        true
    }
}

impl SavedPages {
    /// Those of an array with this layout as full checkpoint `number` has them, on `members`, which hold
    /// every copy of a page that they ought to.
    pub fn new(array: ArrayUuid, config: ArrayConfig, members: Vec<DevIndex>, number: u64) -> Self {
        Self { array, config, members, number, ahead: PagesAhead::default() }
    }

    /// Gives the words of those of `pages` that hold something to `take`, in no particular order: of those
    /// that were ever written from a copy that is whole, the members side by side. The error is that one has
    /// no such copy.
    pub fn read(
        &self,
        devices: &mut dyn DeviceSet,
        table: &mut Table,
        pages: impl Iterator<Item = usize>,
        take: &mut Take<'_>,
    ) -> Result<(), AssembleError> {
        let pages: Vec<usize> = pages.collect();
        for batch in pages.chunks(BATCH_PAGES) {
            let is_written = |&page: &usize| table.slots().state(page).is_written();
            let (mut left, unwritten): (Vec<usize>, Vec<usize>) = batch.iter().copied().partition(is_written);
            for page in unwritten {
                if table.is_somewhere(page) && !take(table, page, &table.unwritten(page)) {
                    return Err(AssembleError::PageLost { page });
                }
            }
            for copy in 0..table.slots().area().copies() {
                if !left.is_empty() {
                    left = self.read_copies(devices, table, &left, copy, take);
                    if planted(Planted::AheadIsAll)
                        && left.iter().any(|page| self.ahead.at.contains_key(page))
                    {
                        break;
                    }
                }
            }
            if let Some(&page) = left.first() {
                return Err(AssembleError::PageLost { page });
            }
        }
        Ok(())
    }

    /// Where the first copies are of `pages`, all of which were written.
    pub fn first_places(&self, table: &Table, pages: &[usize]) -> Places {
        places(table, pages, 0)
    }

    /// Reads the first copies of pages, for whoever will ask for these, and does `work` beside that.
    pub fn read_ahead(&mut self, devices: &mut dyn DeviceSet, places: &Places, work: &mut dyn FnMut()) {
        let mut bytes = vec![0u8; places.len() * META_BYTES];
        let mut reads = self.reads(places, &mut bytes);
        devices.read_all_beside(&mut reads, work);
        let there = reads.iter().filter(|read| read.result.is_ok());
        let at = there.map(|read| (places[read.tag].1, read.tag * META_BYTES)).collect();
        self.ahead = PagesAhead { bytes, at };
    }

    /// What was read ahead is of no use any more: pages may be written.
    pub fn forget_ahead(&mut self) {
        self.ahead = PagesAhead::default();
    }

    /// Brings pages in that are absent, side by side, and keeps all of these in memory until they are let go;
    /// none if one of them cannot be had.
    pub fn hold(
        &self,
        devices: &mut dyn DeviceSet,
        table: &mut Table,
        pages: &[usize],
    ) -> Result<(), AssembleError> {
        if !table.is_paged() {
            return Ok(());
        }
        let mut wanted = pages.to_vec();
        wanted.sort_unstable();
        // What is there already is kept before anything makes room for the others.
        let (mut absent, mut held) = (Vec::new(), Vec::with_capacity(pages.len()));
        for times in wanted.chunk_by(|one, next| one == next) {
            if table.is_absent(times[0]) {
                absent.push(times[0]);
            } else {
                times.iter().for_each(|&page| table.pin(page));
                held.extend_from_slice(times);
            }
        }
        let result = self.read(devices, table, absent.into_iter(), &mut |table, page, words| {
            let is_sane = table.is_sane_page(page, words);
            if is_sane {
                table.make_room();
                let times = &wanted[wanted.partition_point(|&other| other < page)..];
                let times = &times[..times.partition_point(|&other| other == page)];
                table.bring_pinned(page, words, times.len());
                held.extend_from_slice(times);
            }
            is_sane
        });
        if result.is_err() {
            Self::let_go(table, &held);
        }
        result
    }

    /// Lets pages go that [`SavedPages::hold`] kept.
    pub fn let_go(table: &mut Table, pages: &[usize]) {
        if table.is_paged() {
            pages.iter().for_each(|&page| table.unpin(page));
            table.make_room();
        }
    }

    /// Takes one copy of each of these pages; returns those of which it is not whole.
    fn read_copies(
        &self,
        devices: &mut dyn DeviceSet,
        table: &mut Table,
        pages: &[usize],
        copy: usize,
        take: &mut Take<'_>,
    ) -> Vec<usize> {
        let places = places(table, pages, copy);
        let mut bytes = vec![0u8; places.len() * META_BYTES];
        let (mut known, mut reads) = (Vec::new(), Vec::new());
        for read in self.reads(&places, &mut bytes) {
            let is_known = copy == 0 && self.ahead.give(places[read.tag].1, read.into);
            if is_known { known.push(read) } else { reads.push(read) }
        }
        devices.read_all_now(&mut reads);
        let mut is_taken = vec![false; places.len()];
        for read in known.iter().chain(&reads).filter(|read| read.result.is_ok()) {
            let ((dev, block), page) = places[read.tag];
            let expect = PageExpect { array: self.array, dev, area: PAGE_AREA, block, number: None };
            let Ok(mut found) = decode_page(read.into, &expect) else { continue };
            let is_it = table.slots().is_page(page, &found) && found.number <= self.number;
            table.add_waiting(page, &mut found.words);
            is_taken[read.tag] = is_it && take(table, page, &found.words);
        }
        let left = places.iter().zip(&is_taken).filter(|(_, is_taken)| !**is_taken);
        left.map(|(&(_, page), _)| page).collect()
    }

    /// The transfers that read copies of pages, but for those on members that lack some.
    fn reads<'a>(&self, places: &Places, bytes: &'a mut [u8]) -> Vec<ReadNow<'a>> {
        let places = bytes.chunks_exact_mut(META_BYTES).zip(places).enumerate();
        let there = places.filter(|(_, (_, ((dev, _), _)))| self.members.contains(dev));
        let reads = there.map(|(tag, (into, &((dev, block), _)))| {
            let offset_bytes = self.config.page_offset(block);
            ReadNow { tag, dev, offset_bytes, into, result: Ok(()) }
        });
        reads.collect()
    }
}

/// Where one copy of each of some pages is.
fn places(table: &Table, pages: &[usize], copy: usize) -> Places {
    let slots = table.slots();
    let place = |page| slots.area().place(page, copy, slots.state(page).slot());
    let mut places: Places = pages.iter().map(|&page| (place(page), page)).collect();
    places.sort_unstable();
    places
}
