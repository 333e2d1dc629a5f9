//! Making room: GC, the choice of mode for new blocks, static wear levelling.
//!
//! # Why it never runs out
//! A configuration has more blocks than its logical and translation pages, its free blocks and its open
//! blocks can fill (`SsdConfig::check`). So whenever free blocks are few, some closed block has an invalid
//! page, or, if it is in SLC mode, fills fewer pages than a block in MLC mode. Collecting the block with
//! the lowest key frees a block, and copies take at most one: room only grows, until the host's write
//! finds a block. A key of a full block frees nothing; then a block in SLC mode is turned into MLC mode,
//! whatever its stream.

use crate::config::GcFrontier;
use crate::ftl::{Ftl, NONE, Purpose, State};
use crate::slc::{Mode, SlcCap};
use crate::timing::Media;
use crate::wear;

/// On whose behalf pages are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    Gc,
    Levelling,
}

impl Ftl {
    /// Collects until the host's frontier has room, and there are as many free blocks as there should be.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room<M: Media>(&mut self, slot: u8, way: u32, media: &mut M) -> usize {
        self.gc.effort = 0;
        loop {
            self.keep_free(media);
            let slc = self.frontier(Purpose::Host, slot, Mode::Slc, way);
            if !self.open[slc].is_full() {
                return slc;
            }
            // What may be in SLC mode does not go into an MLC block, be there room in one or not.
            let mode = self.mode_for_new(slot);
            if self.slc.cap == 0 {
                // Nobody else would close this full block any more.
                self.close(slc);
            }
            let frontier = self.frontier(Purpose::Host, slot, mode, way);
            if !self.open[frontier].is_full() {
                return frontier;
            }
            if self.free.count() > self.gc.free_min {
                self.renew(frontier, slot, mode, way);
                return frontier;
            }
            self.collect(media);
            if self.wear.spread.is_some() {
                self.level(media);
            }
        }
    }

    /// Collects until there are as many free blocks as there should be.
    pub(crate) fn keep_free<M: Media>(&mut self, media: &mut M) {
        while self.free.count() < self.gc.free_min {
            self.collect(media);
        }
    }

    /// Whether making room has taken so long that every victim must free something now. Policies that take
    /// full blocks, and translation pages that GC writes, can otherwise go in circles on an SSD with hardly
    /// any spare space.
    fn must_gain(&self) -> bool {
        self.gc.effort > (self.blocks.len() as u32 / 4).max(64)
    }

    /// Cleans one victim: one GC operation.
    pub(crate) fn collect<M: Media>(&mut self, media: &mut M) {
        self.gc.effort += 1;
        let mut best = {
            let Self { victims, blocks, .. } = self;
            let blocks: &[_] = blocks;
            let scale = self.slc.options.map_or(1, |slc| self.pages_per_block / slc.pages_per_block);
            victims.choose(self.clock, |block| {
                let info = blocks[block as usize];
                u32::from(info.valid) * if info.mode == Mode::Slc { scale } else { 1 }
            })
        };
        let full = self.pages_per_block;
        let mut into = None;
        // FIFO and d-choices go on with other blocks by themselves.
        let goes_on = self.victims.takes_full_blocks() && self.slc.options.is_none() && !self.must_gain();
        if best.is_none_or(|block| !goes_on && self.key_of(self.blocks[block as usize]) >= full) {
            // The policy's choice would free nothing. Something does: see the module's documentation.
            best = self.victims.all().min_by_key(|&block| self.key_of(self.blocks[block as usize]));
            if best.is_none_or(|block| self.key_of(self.blocks[block as usize]) >= full) {
                best = self.victims.all().min_by_key(|&block| self.blocks[block as usize].valid);
                into = Some(Mode::Mlc);
            }
        }
        let victim = best.expect("some block is closed when free blocks are few");
        self.counters.gc_operations += 1;
        self.empty(victim, Cause::Gc, into, media);
    }

    /// Moves a closed block's valid pages away and erases it.
    fn empty<M: Media>(&mut self, victim: u32, cause: Cause, into: Option<Mode>, media: &mut M) {
        self.victims.remove(victim);
        let info = self.blocks[victim as usize];
        // What was in SLC mode stays so if the cap allows; what was not had its reasons.
        let slc_stays = info.mode == Mode::Slc && self.slc.in_use <= self.slc.cap;
        let mode = into.unwrap_or(if slc_stays { Mode::Slc } else { Mode::Mlc });
        if info.valid > 0 {
            self.relocate(victim, cause, mode, media);
        }
        self.erase(victim, media);
    }

    fn relocate<M: Media>(&mut self, victim: u32, cause: Cause, mode: Mode, media: &mut M) {
        let info = self.blocks[victim as usize];
        let purpose = match (cause, self.gc.frontier) {
            (Cause::Gc, GcFrontier::Shared) => Purpose::Host,
            (Cause::Gc, GcFrontier::Separate) => Purpose::Gc,
            (Cause::Levelling, _) => Purpose::Levelling,
        };
        let way = self.turn(info.slot);
        let frontier = self.frontier(purpose, info.slot, mode, way);
        let base = victim * self.pages_per_block;
        let end = base + self.capacity(info.mode);
        let mut scratch = std::mem::take(&mut self.gc.scratch);
        let owners = &mut scratch[..(end - base) as usize];
        owners.copy_from_slice(&self.owners[base as usize..end as usize]);
        std::hint::black_box(self.warm_map(owners));
        let mut done = 0;
        let mut left = u32::from(info.valid);
        while left > 0 {
            if self.open[frontier].is_full() {
                self.open_for_copies(frontier, info.slot, mode, way, cause);
            }
            let (read, moved) = self.copy_run(&owners[done..], base + done as u32, frontier, left);
            done += read;
            left -= moved;
            let open = self.open[frontier];
            media.copy((victim, info.mode), (open.block, mode), moved);
            self.note_moved(open.next - moved, open.next);
            self.count_copies(cause, mode, moved);
        }
        self.blocks[victim as usize].valid = 0;
        self.gc.scratch = scratch;
        if self.cache.is_some() {
            self.update_moved(media);
        }
    }

    /// Copies valid pages until the frontier's block is full or `left` are moved. Answers how many pages it
    /// looked at and how many it moved. The frontier has room for one page at least, and one is left.
    #[inline]
    fn copy_run(&mut self, owners: &[u32], first: u32, frontier: usize, left: u32) -> (usize, u32) {
        let open = &mut self.open[frontier];
        let limit = left.min(open.end - open.next);
        let target = &mut self.owners[open.next as usize..(open.next + limit) as usize];
        let mut moved = 0usize;
        let mut read = 0;
        // No branch on what is found: a page not valid is overwritten in `target` by the next one.
        for (&lpn, page) in owners.iter().zip(first..) {
            target[moved] = lpn;
            moved += usize::from(self.map[lpn as usize] == page);
            read += 1;
            if moved == target.len() {
                break;
            }
        }
        for (&lpn, page) in target[..moved].iter().zip(open.next..) {
            self.map[lpn as usize] = page;
        }
        // No more than a block's pages are moved.
        let moved = moved as u32;
        open.next += moved;
        // No more than a block's pages are looked at.
        self.blocks[open.block as usize].valid += moved as u16;
        (read, moved)
    }

    fn open_for_copies(&mut self, frontier: usize, slot: u8, mode: Mode, way: u32, cause: Cause) {
        match cause {
            Cause::Gc => self.renew(frontier, slot, mode, way),
            Cause::Levelling => {
                self.close(frontier);
                let erases = &self.wear.erases;
                let worn = self.free.take_best(|block| erases[block as usize]);
                let (block, was) = worn.expect("levelling runs when there are free blocks");
                self.note_mode(was, mode);
                self.open_block(frontier, block, slot, mode);
            }
        }
    }

    fn count_copies(&mut self, cause: Cause, mode: Mode, pages: u32) {
        let pages = u64::from(pages);
        match cause {
            Cause::Gc => {
                self.counters.page_copies += pages;
                self.counters.page_copies_slc += if mode == Mode::Slc { pages } else { 0 };
            }
            Cause::Levelling => self.counters.wear_copies += pages,
        }
        match mode {
            Mode::Mlc => self.counters.programs_mlc += pages,
            Mode::Slc => self.counters.programs_slc += pages,
        }
    }

    /// Tells the mapping cache of pages moved to `first..end`.
    fn note_moved(&mut self, first: u32, end: u32) {
        // With too few free blocks for translation pages, the changes wait in memory.
        let room = self.free.count() >= 4 && !self.must_gain();
        let Self { cache: Some(cache), owners, .. } = self else { return };
        let lpns = &owners[first as usize..end as usize];
        if room { cache.moved(lpns) } else { cache.moved_and_pinned(lpns) }
    }

    fn update_moved<M: Media>(&mut self, media: &mut M) {
        while let Some(page) = self.cache.as_mut().and_then(|cache| cache.take_changed_page()) {
            self.read_translation(page, media);
            self.write_translation(page, media);
        }
    }

    fn erase<M: Media>(&mut self, block: u32, media: &mut M) {
        let info = &mut self.blocks[block as usize];
        info.state = State::Free;
        let mode = info.mode;
        self.slc.denied = false;
        self.programmed.before_erase += u64::from(self.capacity(mode));
        self.counters.erases += 1;
        self.wear.erases[block as usize] += 1;
        self.wear.erases_since += 1;
        if mode == Mode::Slc {
            self.counters.erases_slc += 1;
            self.slc.in_use -= 1;
        }
        self.free.push(block, mode, self.wear.erases[block as usize]);
        media.erase(block);
    }

    /// Static wear levelling: looks once per eighth of the blocks' erases.
    fn level<M: Media>(&mut self, media: &mut M) {
        let Some(spread) = self.wear.spread else { return };
        if self.wear.erases_since < (self.blocks.len() as u32 / 8).max(1) {
            return;
        }
        self.wear.erases_since = 0;
        let worn = wear::WearSpread::of(self.wear.erases.iter().copied()).max;
        let limit = worn.saturating_sub(spread);
        let mut cold: Vec<u32> =
            self.victims.all().filter(|&block| self.wear.erases[block as usize] < limit).collect();
        cold.sort_unstable_by_key(|&block| (self.wear.erases[block as usize], block));
        // At most one block in 64 each time, so that levelling stays a small part of the work.
        cold.truncate((self.blocks.len() / 64).max(1));
        for block in cold {
            self.keep_free(media);
            if self.free.count() < 2 || self.blocks[block as usize].state != State::Closed {
                // The block was collected meanwhile.
                continue;
            }
            self.counters.wear_operations += 1;
            let mode = self.blocks[block as usize].mode;
            self.empty(block, Cause::Levelling, Some(mode), media);
        }
    }

    /// Chooses the mode of a block newly opened for the host's pages of a slot.
    fn mode_for_new(&mut self, slot: u8) -> Mode {
        if self.slc.options.is_none() || !self.slots.is_parity(slot) {
            return Mode::Mlc;
        }
        self.choose_cap();
        let below = self.slc.in_use < self.slc.cap;
        self.slc.denied = below && !self.slc_has_space();
        if below && !self.slc.denied { Mode::Slc } else { Mode::Mlc }
    }

    /// Whether one more block in SLC mode leaves enough space, whatever the cap says: space for the pages
    /// mapped, and for one invalid page in each block, so that GC gains something.
    fn slc_has_space(&self) -> bool {
        let Some(slc) = &self.slc.options else { return false };
        let blocks = self.blocks.len() as u64;
        let lost = u64::from(self.slc.in_use + 1) * u64::from(self.pages_per_block - slc.pages_per_block);
        let kept = u64::from(self.gc.free_min)
            + self.open.iter().filter(|open| open.block != NONE).count() as u64
            + 1;
        let translation = self.map.len() as u64 - 1 - u64::from(self.logical_pages);
        let needed = u64::from(self.mapped) + translation + kept * u64::from(self.pages_per_block) + blocks;
        blocks * u64::from(self.pages_per_block) >= needed + lost
    }

    /// Sets the static cap; the dynamic one starts at 0.
    pub(crate) fn start_slc(&mut self) {
        let Some(slc) = &self.slc.options else { return };
        if let SlcCap::Share(share) = slc.cap {
            let pages = self.owners.len() as f64 - f64::from(self.logical_pages);
            let blocks = share * pages / f64::from(self.pages_per_block - slc.pages_per_block);
            // The number is not negative, and after rounding no more than there are blocks.
            self.slc.cap = (blocks + 1e-9).floor().max(0.0).min(self.blocks.len() as f64) as u32;
        }
    }

    /// Chooses the dynamic cap anew when as many pages have been written as are mapped.
    fn choose_cap(&mut self) {
        let Some(chooser) = &mut self.slc.chooser else { return };
        let recent = self.counters.since(&self.slc.seen);
        if recent.host_pages_written < u64::from(self.mapped).max(1) {
            return;
        }
        self.slc.seen = self.counters;
        // The number is neither negative nor more than there are blocks.
        self.slc.cap = (chooser.plan(&recent, self.mapped) * self.blocks.len() as f64).round() as u32;
    }
}
