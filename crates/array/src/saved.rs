//! Pages of the table as a full checkpoint has them in their slots, while an array is being assembled.

use crate::hash::PageMap;
use crate::planted::{Planted, planted};
use crate::restart::AssembleError;
use crate::table::Table;
use block::{DevIndex, DeviceSet, META_BYTES, Pool, ReadNow};
use format::{ArrayConfig, ArrayUuid, PAGE_AREA, PageExpect, decode_page};

/// Pages read at once, while those before are taken.
const BATCH_PAGES: usize = 1024;

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

/// One copy of each of some pages.
struct Copies {
    places: Places,
    blocks: Pool,
    /// Which of them are in `blocks`, each at its own place.
    there: Vec<usize>,
}

impl Copies {
    fn new(places: Places, room: Option<Pool>) -> Self {
        let has_room = |room: &Pool| room.slot_count() >= places.len();
        let blocks = room.filter(has_room).unwrap_or_else(|| Pool::new(META_BYTES, places.len()));
        Self { places, blocks, there: Vec::new() }
    }
}

/// First copies of pages as they were read, bad ones, too.
#[derive(Default)]
struct PagesAhead {
    blocks: Option<Pool>,
    /// Where in the region of `blocks` a page is.
    at: PageMap<usize>,
}

impl PagesAhead {
    /// Gives what was read of a page; `false` if nothing was.
    fn give(&self, page: usize, into: &mut [u8]) -> bool {
        let (Some(&at), Some(blocks)) = (self.at.get(&page), &self.blocks) else { return false };
        into.copy_from_slice(&blocks.region()[at..at + META_BYTES]);
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
        let mut batches = pages.chunks(BATCH_PAGES);
        let (mut before, mut room): (Option<Copies>, _) = (None, None);
        loop {
            let next = batches.next().map(|batch| self.first_copies(table, batch, room.take(), take));
            let (mut next, mut left) = (next.transpose()?, Vec::new());
            let mut meanwhile = || {
                let before = before.as_ref();
                left = before.map_or_else(Vec::new, |before| self.take_copies(table, before, take));
            };
            match &mut next {
                Some(next) => self.read_copies(devices, next, true, &mut meanwhile),
                None => meanwhile(),
            }
            self.take_others(devices, table, left, take)?;
            let Some(next) = next else { return Ok(()) };
            room = before.replace(next).map(|before| before.blocks);
        }
    }

    /// Where the first copies are of `pages`, all of which were written.
    pub fn first_places(&self, table: &Table, pages: &[usize]) -> Places {
        places(table, pages, 0)
    }

    /// Reads the first copies of pages, for whoever will ask for these, and does `work` beside that.
    pub fn read_ahead(&mut self, devices: &mut dyn DeviceSet, places: &Places, work: &mut dyn FnMut()) {
        let mut blocks = Pool::new(META_BYTES, places.len());
        let mut reads = self.reads(places, blocks.region_mut());
        devices.read_all_beside(&mut reads, work);
        let there = reads.iter().filter(|read| read.result.is_ok());
        let at = there.map(|read| (places[read.tag].1, read.tag * META_BYTES)).collect();
        self.ahead = PagesAhead { blocks: Some(blocks), at };
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

    /// What is to be read first of these pages, to `room` if that is large enough; takes those that were
    /// never written.
    fn first_copies(
        &self,
        table: &mut Table,
        pages: &[usize],
        room: Option<Pool>,
        take: &mut Take<'_>,
    ) -> Result<Copies, AssembleError> {
        let is_written = |&page: &usize| table.slots().state(page).is_written();
        let (written, unwritten): (Vec<usize>, Vec<usize>) = pages.iter().copied().partition(is_written);
        for page in unwritten {
            if table.is_somewhere(page) && !take(table, page, &table.unwritten(page)) {
                return Err(AssembleError::PageLost { page });
            }
        }
        Ok(Copies::new(places(table, &written, 0), room))
    }

    /// Takes these pages from other copies than their first ones.
    fn take_others(
        &self,
        devices: &mut dyn DeviceSet,
        table: &mut Table,
        mut left: Vec<usize>,
        take: &mut Take<'_>,
    ) -> Result<(), AssembleError> {
        for copy in 1..table.slots().area().copies() {
            let is_ahead = |page| self.ahead.at.contains_key(page);
            if left.is_empty() || (planted(Planted::AheadIsAll) && left.iter().any(is_ahead)) {
                break;
            }
            let mut copies = Copies::new(places(table, &left, copy), None);
            self.read_copies(devices, &mut copies, false, &mut || ());
            left = self.take_copies(table, &copies, take);
        }
        left.first().map_or(Ok(()), |&page| Err(AssembleError::PageLost { page }))
    }

    /// Reads copies, but for first ones that were read ahead, and does `work` beside that.
    fn read_copies(
        &self,
        devices: &mut dyn DeviceSet,
        copies: &mut Copies,
        are_first: bool,
        work: &mut dyn FnMut(),
    ) {
        let Copies { places, blocks, there } = copies;
        let mut reads = self.reads(places, blocks.region_mut());
        reads.retain_mut(|read| {
            let is_known = are_first && self.ahead.give(places[read.tag].1, read.into);
            there.extend(is_known.then_some(read.tag));
            !is_known
        });
        devices.read_all_beside(&mut reads, work);
        there.extend(reads.iter().filter(|read| read.result.is_ok()).map(|read| read.tag));
    }

    /// Takes pages as they were read; returns those whose copy is not whole.
    fn take_copies(&self, table: &mut Table, copies: &Copies, take: &mut Take<'_>) -> Vec<usize> {
        let Copies { places, blocks, there } = copies;
        let mut is_taken = vec![false; places.len()];
        for &tag in there {
            let ((dev, block), page) = places[tag];
            let bytes = &blocks.region()[tag * META_BYTES..][..META_BYTES];
            let expect = PageExpect { array: self.array, dev, area: PAGE_AREA, block, number: None };
            let Ok(mut found) = decode_page(bytes, &expect) else { continue };
            let is_it = table.slots().is_page(page, &found) && found.number <= self.number;
            table.add_waiting(page, &mut found.words);
            is_taken[tag] = is_it && take(table, page, &found.words);
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
