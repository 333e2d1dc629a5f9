//! Pages of the table as a full checkpoint has them in their slots, while an array is being assembled.

use crate::restart::AssembleError;
use crate::table::Table;
use block::{DevIndex, DeviceSet, META_BYTES, ReadNow};
use format::{ArrayConfig, ArrayUuid, PAGE_AREA, PageExpect, decode_page};

/// Pages read at once.
const BATCH_PAGES: usize = 4096;

/// Whoever gets the words of a page; `false` if they have not the shape that they must have.
type Take<'a> = dyn FnMut(&mut Table, usize, &[u32]) -> bool + 'a;

/// Where pages are read from. Which slot of each counts, the table knows.
#[derive(Clone)]
pub struct SavedPages {
    /// The array that they belong to.
    pub array: ArrayUuid,
    /// Its layout.
    pub config: ArrayConfig,
    /// Members that hold every copy of a page that they ought to.
    pub members: Vec<DevIndex>,
    /// The full checkpoint.
    pub number: u64,
}

impl SavedPages {
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
                }
            }
            if let Some(&page) = left.first() {
                return Err(AssembleError::PageLost { page });
            }
        }
        Ok(())
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
        let slots = table.slots();
        let place = |page| slots.area().place(page, copy, slots.state(page).slot());
        let mut places: Vec<((DevIndex, u32), usize)> =
            pages.iter().map(|&page| (place(page), page)).collect();
        places.sort_unstable();
        let mut bytes = vec![0u8; places.len() * META_BYTES];
        let mut reads: Vec<ReadNow<'_>> = (bytes.chunks_exact_mut(META_BYTES).zip(&places).enumerate())
            .filter(|(_, (_, ((dev, _), _)))| self.members.contains(dev))
            .map(|(tag, (into, &((dev, block), _)))| {
                let offset_bytes = self.config.page_offset(block);
                ReadNow { tag, dev, offset_bytes, into, result: Ok(()) }
            })
            .collect();
        devices.read_all_now(&mut reads);
        let mut is_taken = vec![false; places.len()];
        for read in reads.iter().filter(|read| read.result.is_ok()) {
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
}
