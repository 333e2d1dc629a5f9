//! Pages of the table that are not in memory, and whoever waits for them.
//!
//! A table that takes more memory than it may is in memory only in part ([`crate::table`]). Whoever locks a
//! stripe, and whoever reads a chunk without a lock, needs the page that speaks of it, and keeps it in memory
//! until it is done. If the page is absent it is read from one of its m + 1 copies, and the work waits for it
//! as it would for a stripe that somebody holds: locks are granted, and reads go on, when it has come.
//!
//! A page takes the place of one that nobody needs and that is in its slot as it is. If there is none, a
//! checkpoint makes some; what nothing can make room for, nor a whole checkpoint could, comes in all the
//! same: writes that find no room change pages with each attempt, so there may always be a checkpoint to wait
//! for.
//! A copy that is bad is counted, and the page written anew. A page none of whose copies is good is more than
//! the array bears: it freezes.

use super::config::PAGE_READS_MAX;
use super::lock::Mode;
use super::read::ReadOp;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, Engine, Event, Purpose, Tag};
use crate::hash::PageMap;
use crate::planted::{Planted, planted};
use crate::restart::AssembleError;
use crate::saved::SavedPages;
use crate::store::stripes_touched;
use crate::table::{Extent, later_max, word_count};
use block::slab::{Key, Slab};
use block::{DevIndex, DeviceSet, IoFault, Lcn, META_BYTES, OpKind, Slot, Stream, StripeId};
use format::{PAGE_AREA, Page, PageExpect, decode_page};
use std::collections::{BTreeSet, VecDeque};

/// Pages that are asked for ahead of those who need them.
const AHEAD_MAX: usize = 2 * PAGE_READS_MAX;

/// A page that is wanted and not in memory.
#[derive(Default)]
struct Fault {
    page: usize,
    /// Stripes that wait for it.
    stripes: Vec<StripeId>,
    /// Reads that wait for it.
    reads: Vec<Key<ReadOp>>,
    /// The checkpoint under way waits for it.
    for_checkpoint: bool,
    /// It waits for room until so many full checkpoints have ended, the last one begun since it is wanted.
    waits_until: u64,
    /// The copy that is being read, and where to.
    copy: usize,
    slot: Option<Slot>,
    /// The block of it that is being read.
    block: u32,
    /// A copy was not what it should be.
    was_bad: bool,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct PageFaults {
    by_page: PageMap<Key<Fault>>,
    faults: Slab<Fault>,
    /// Those that are not being read, in the order in which they are.
    waiting: VecDeque<Key<Fault>>,
    /// Buffers that are not in use.
    slots: Vec<Slot>,
    /// Pages none of whose copies is good.
    lost: BTreeSet<usize>,
    /// Pages that the checkpoint under way had brought in and has not written.
    of_checkpoint: Vec<usize>,
    /// How many have come. A page that need not be read comes in the turn in which it is wanted, and whoever
    /// was before it in that turn must have another.
    came: u64,
}

impl Engine {
    /// Brings the whole table into memory, whatever that takes, for those who look at all of it: checks, and
    /// tests.
    pub fn bring_all_pages(&mut self, devices: &mut dyn DeviceSet) -> Result<(), AssembleError> {
        let core = &mut self.core;
        let config = core.store.config;
        let members = (0u16..).map(DevIndex::new).take(core.store.main_count());
        let members = members.filter(|&dev| core.holds_pages(dev)).collect();
        let (array, number) = (core.journal.array(), core.board.checkpoint.newest());
        let saved = SavedPages::new(array, config, members, number);
        let (scheme, table) = (&core.scheme, &mut core.store.table);
        let absent: Vec<usize> = (0..table.page_count()).filter(|&page| table.is_absent(page)).collect();
        saved.read(devices, table, absent.into_iter(), &mut |table, page, words| {
            let is_sane = table.is_sane_page(page, words) && scheme.check_page(table, page, words).is_ok();
            if is_sane {
                table.bring(page, words);
            }
            is_sane
        })
    }
}

impl Core {
    /// Whether a member has its copies of the pages. What a replacement does not hold yet may be there from
    /// another time.
    pub(super) fn holds_pages(&self, dev: DevIndex) -> bool {
        self.health.is_writable(dev) && !self.health.is_rebuilding(dev)
    }

    /// Sets buffers aside, if pages may be absent.
    pub(super) fn prepare_pages(&mut self) {
        let wanted = self.options.page_slots(&self.store.config);
        self.reads.pages.slots = (0..wanted).map_while(|_| self.pool.alloc()).collect();
    }

    /// Gives them back; no page is being read.
    pub(super) fn give_page_buffers(&mut self) {
        self.reads.pages.slots.drain(..).for_each(|slot| self.pool.free(slot));
    }

    /// Grants a stripe now, or not at all: somebody has it, or its page is not in memory. Whoever is refused
    /// may wait for it.
    #[inline]
    pub(super) fn try_lock(&mut self, stripe: StripeId, mode: Mode) -> bool {
        if self.store.table.is_paged() && !self.locks.is_held(stripe) && !self.hold_page(stripe) {
            return false;
        }
        self.locks.try_lock(stripe, mode)
    }

    /// Keeps the page of a stripe in memory that nobody holds; `false` if it must come first.
    fn hold_page(&mut self, stripe: StripeId) -> bool {
        let page = self.store.table.page_of(stripe);
        let table = &mut self.store.table;
        if table.has_frame(page) || (!table.is_absent(page) && table.make_room()) {
            table.pin(page);
            return true;
        }
        self.locks.await_page(stripe);
        let fault = self.fault(page);
        self.reads.pages.faults[fault].stripes.push(stripe);
        false
    }

    /// Whether a read without a lock may look for its chunk; if not, it goes on when the page is there.
    pub(super) fn read_may_look(&mut self, key: Key<ReadOp>) -> bool {
        let stripe = self.store.config.geometry.stripe_of(self.reads.table[key].lcn());
        let page = self.store.table.page_of(stripe);
        if self.store.table.is_absent(page) {
            let fault = self.fault(page);
            self.reads.pages.faults[fault].reads.push(key);
            return false;
        }
        self.hold_page_for_read(key, page);
        true
    }

    /// A page of zeros that takes no memory is not looked at again: whoever writes there replaces nothing.
    fn hold_page_for_read(&mut self, key: Key<ReadOp>, page: usize) {
        if self.store.table.has_frame(page) {
            self.store.table.pin(page);
            self.reads.table[key].hold(page);
        }
    }

    /// Whether the page that speaks of a stripe is none that can be had.
    pub(super) fn is_page_lost(&self, stripe: StripeId) -> bool {
        !self.reads.pages.lost.is_empty() && self.reads.pages.lost.contains(&self.store.table.page_of(stripe))
    }

    /// Asks for the page of a stripe that is soon to be looked at.
    pub(super) fn read_page_ahead(&mut self, stripe: StripeId) {
        if self.store.table.lacks(stripe) && self.reads.pages.faults.len() < AHEAD_MAX {
            self.fault(self.store.table.page_of(stripe));
        }
    }

    /// Whether a stripe holds anything that rebuild or scrub must look at, as far as is known.
    pub(super) fn may_be_in_use(&self, stripe: StripeId) -> bool {
        self.store.table.lacks(stripe) || self.scheme.is_in_use(&self.store, stripe)
    }

    /// The checkpoint under way needs a page.
    pub(super) fn want_page_for_checkpoint(&mut self, page: usize) {
        let key = self.fault(page);
        let is_new = !std::mem::replace(&mut self.reads.pages.faults[key].for_checkpoint, true);
        if is_new && self.reads.pages.faults[key].slot.is_none() {
            // Others may wait for the room that it makes.
            self.reads.pages.waiting.retain(|&other| other != key);
            self.reads.pages.waiting.push_front(key);
        }
    }

    /// The checkpoint under way has written a page, or wants none any more.
    pub(super) fn release_checkpoint_pages(&mut self, is_done: impl Fn(usize) -> bool) {
        let Self { reads, store, .. } = self;
        reads.pages.of_checkpoint.retain(|&page| {
            let is_done = is_done(page);
            if is_done {
                store.table.unpin(page);
            }
            !is_done
        });
    }

    /// Asks for the page that the next allocation on a device waits for. When it is there it stays, with
    /// those before, until as many have come as one plan may need; and whoever found no room tries again.
    fn want_awaited_page(&mut self, dev: DevIndex, window: &mut VecDeque<usize>) {
        let Some(word) = self.store.spaces[dev.index()].awaited() else { return };
        let page = self.store.table.space_page(dev, word);
        if self.store.table.is_absent(page) {
            self.fault(page);
            return;
        }
        self.store.spaces[dev.index()].await_no_more();
        self.note_room();
        if !window.contains(&page) {
            self.store.table.pin(page);
            window.push_back(page);
            if window.len() > self.space_pages_of_plan()
                && let Some(oldest) = window.pop_front()
            {
                self.store.table.unpin(oldest);
            }
            self.read_behind(dev, word);
        }
    }

    /// Pages of bits of one device that a plan may need at once: a bundle has room as a whole or not at all,
    /// and each of its chunks may be the only free one of its page. All else may do with less.
    fn space_pages_of_plan(&self) -> usize {
        let (chunks, geometry) = (1 << self.queue.untorn_order, self.store.config.geometry);
        let full = chunks / count(geometry.data_count()).max(1);
        let of_device = stripes_touched(geometry, chunks) + full;
        usize::try_from(of_device).unwrap_or(usize::MAX).max(2)
    }

    /// Asks for the page of bits behind the one of a word, where allocation goes on later.
    fn read_behind(&mut self, dev: DevIndex, word: u32) {
        let behind = self.store.table.next_space_page(word);
        let words = word_count(self.store.spaces[dev.index()].chunk_count());
        let page = self.store.table.space_page(dev, if behind < words { behind } else { 0 });
        if self.store.table.is_absent(page) && self.reads.pages.faults.len() < AHEAD_MAX {
            self.fault(page);
        }
    }

    fn fault(&mut self, page: usize) -> Key<Fault> {
        let next_full = self.board.checkpoint.next_full();
        let PageFaults { by_page, faults, waiting, .. } = &mut self.reads.pages;
        *by_page.entry(page).or_insert_with(|| {
            let key = faults.reuse(Fault::default);
            let fault = &mut faults[key];
            (fault.page, fault.copy, fault.waits_until) = (page, 0, next_full);
            (fault.for_checkpoint, fault.was_bad) = (false, false);
            waiting.push_back(key);
            key
        })
    }

    /// A frame for one more page, by whatever may go; `false` if it must wait for a checkpoint.
    fn make_frame(&mut self, key: Key<Fault>) -> bool {
        if self.store.table.make_room() {
            return true;
        }
        let fault = &self.reads.pages.faults[key];
        let must = self.board.frozen
            || fault.for_checkpoint
            || self.board.checkpoint.fulls_ended() >= fault.waits_until
            || (!self.store.table.has_unsaved() && !self.board.checkpoint.is_busy());
        if !must && !self.board.checkpoint.is_busy() {
            self.board.checkpoint.request_room();
        }
        must
    }

    /// Has an absent page brought in.
    fn bring_page(&mut self, key: Key<Fault>, slot: Slot) {
        let page = self.reads.pages.faults[key].page;
        if self.store.table.slots().state(page).is_written() {
            return self.read_copy(key, slot);
        }
        let words = self.store.table.unwritten(page);
        if !self.is_sound_page(page, &words) {
            return self.page_lost(key, slot);
        }
        self.store.table.bring(page, &words);
        self.page_came(key, slot);
    }

    /// Whether words may be those of a page.
    fn is_sound_page(&self, page: usize, words: &[u32]) -> bool {
        let table = &self.store.table;
        table.is_sane_page(page, words) && self.scheme.check_page(table, page, words).is_ok()
    }

    /// Reads the next copy of a page; it is lost if there is none.
    fn read_copy(&mut self, key: Key<Fault>, slot: Slot) {
        let Fault { page, copy, .. } = self.reads.pages.faults[key];
        let (area, slot_number) = (self.store.table.slots().area(), self.slot_to_read(page));
        let next = self.next_copy(page, copy, |dev| self.holds_pages(dev));
        let Some(copy) = next else { return self.page_lost(key, slot) };
        let (dev, block) = area.place(page, copy, slot_number);
        let fault = &mut self.reads.pages.faults[key];
        (fault.copy, fault.slot, fault.block) = (copy, Some(slot), block);
        let tag = Tag { purpose: Purpose::TablePage { page, slot }, dev };
        let offset = self.store.config.page_offset(block);
        self.push_op(tag, OpKind::Read, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
    }

    /// The slot of a page that counts.
    fn slot_to_read(&self, page: usize) -> usize {
        let slot = self.store.table.slots().state(page).slot();
        if planted(Planted::ReadOtherSlot) { 1 - slot } else { slot }
    }

    /// A copy of a page was read.
    pub(super) fn page_read(&mut self, dev: DevIndex, page: usize, slot: Slot, result: Result<(), IoFault>) {
        let key = self.reads.pages.by_page[&page];
        self.stats.pages_read += 1;
        if self.is_other_slot(key) {
            return self.read_copy(key, slot);
        }
        match self.judge_page(dev, key, slot, result) {
            Some(found) => {
                self.store.table.bring(page, &found.words);
                if self.reads.pages.faults[key].was_bad && !self.board.frozen {
                    self.store.table.mark_unsaved(page);
                    self.board.checkpoint.request(Extent::Unsaved);
                }
                self.page_came(key, slot);
            }
            None => {
                self.reads.pages.faults[key].copy += 1;
                self.read_copy(key, slot);
            }
        }
    }

    /// Whether a checkpoint that has ended meanwhile left the page in another slot than the one that was
    /// read: what was read says nothing about the copy.
    fn is_other_slot(&self, key: Key<Fault>) -> bool {
        let Fault { page, copy, block, .. } = self.reads.pages.faults[key];
        let (_, counts) = self.store.table.slots().area().place(page, copy, self.slot_to_read(page));
        counts != block
    }

    /// The copy, if it is one; counts what is bad.
    fn judge_page(
        &mut self,
        dev: DevIndex,
        key: Key<Fault>,
        slot: Slot,
        result: Result<(), IoFault>,
    ) -> Option<Page> {
        let Fault { page, block, .. } = self.reads.pages.faults[key];
        let slots = self.store.table.slots();
        let array = self.journal.array();
        let expect = PageExpect { array, dev, area: PAGE_AREA, block, number: None };
        let is_it = |found: &Page| {
            (slots.is_page(page, found) || planted(Planted::ReadOtherSlot))
                && found.number <= self.board.checkpoint.newest()
                && self.is_sound_page(page, &found.words)
        };
        let with_waiting = |mut found: Page| {
            self.store.table.add_waiting(page, &mut found.words);
            found
        };
        let found = decode_page(&self.pool.bytes(slot)[..META_BYTES], &expect).ok();
        let found = found.map(with_waiting).filter(is_it);
        if result.is_ok() && found.is_some() {
            return found;
        }
        self.note_bad_page(dev, result);
        self.reads.pages.faults[key].was_bad = true;
        None
    }

    /// A copy of a page could not be read from a member, or is none that counts.
    pub(super) fn note_bad_page(&mut self, dev: DevIndex, result: Result<(), IoFault>) {
        match result {
            Ok(()) => self.health.errors_mut(dev).checksum += 1,
            Err(IoFault::Gone) => self.fail_for_fault(dev),
            Err(IoFault::Device { .. } | IoFault::Short | IoFault::NoSpace) => {
                self.health.errors_mut(dev).read += 1;
            }
        }
    }

    /// No copy is good: nothing of what the page speaks of can be had, and no write can be said to be kept.
    fn page_lost(&mut self, key: Key<Fault>, slot: Slot) {
        let page = self.reads.pages.faults[key].page;
        self.reads.pages.lost.insert(page);
        if self.health.lose_page() {
            self.answers.events.push(Event::PageLost { page });
        }
        self.board.frozen = true;
        self.store.table.give_up_page(page);
        let (geometry, stripes) = (self.store.config.geometry, self.store.table.stripes_of(page));
        let end = stripes.end.min(self.store.config.stripe_count);
        let [first, end] = [stripes.start, end].map(|stripe| geometry.lcn_at(StripeId::new(stripe), 0).get());
        (first..end).for_each(|lcn| self.store.lost.insert(Lcn::new(lcn)));
        self.page_came(key, slot);
    }

    /// A page is in memory: whoever waited goes on.
    fn page_came(&mut self, key: Key<Fault>, slot: Slot) {
        self.store.table.expect_page_no_more();
        self.reads.pages.slots.push(slot);
        self.end_fault(key);
    }

    fn end_fault(&mut self, key: Key<Fault>) {
        let fault = &mut self.reads.pages.faults[key];
        let page = fault.page;
        fault.slot = None;
        let (mut stripes, mut reads) = (std::mem::take(&mut fault.stripes), std::mem::take(&mut fault.reads));
        if fault.for_checkpoint {
            self.store.table.pin(page);
            self.reads.pages.of_checkpoint.push(page);
        }
        self.reads.pages.by_page.remove(&page);
        self.reads.pages.came += 1;
        for stripe in stripes.drain(..) {
            self.store.table.pin(page);
            if self.locks.page_came(stripe, &mut self.queue.granted) {
                self.store.table.unpin(page);
            }
        }
        for &read in &reads {
            self.hold_page_for_read(read, page);
        }
        if planted(Planted::ForgetPageReader) && reads.len() > 1 {
            reads.pop();
        }
        for read in reads.drain(..) {
            self.issue_read(read);
        }
        let fault = &mut self.reads.pages.faults[key];
        (fault.stripes, fault.reads) = (stripes, reads);
        self.reads.pages.faults.release(key);
    }
}

/// Has pages read that are wanted.
#[derive(Default)]
pub(super) struct PageReader {
    /// Of each main device, the pages of bits in which chunks are allocated, the newest one last.
    windows: Vec<VecDeque<usize>>,
    /// Where those are looked for that bits wait for.
    later_from: usize,
}

impl PageReader {
    /// Asks for the pages that say which chunks are free next, and for those that bits wait for, when these
    /// are many.
    fn want_space_pages(&mut self, core: &mut Core) {
        if !core.store.config.scheme.has_log_stripes() {
            return;
        }
        self.windows.resize_with(core.store.main_count(), VecDeque::new);
        for (dev, window) in (0..).map(DevIndex::new).zip(&mut self.windows) {
            core.want_awaited_page(dev, window);
        }
        let table = &core.store.table;
        if table.later_count() > later_max(&core.store.config) / 2
            && core.reads.pages.faults.len() < AHEAD_MAX
            && let Some(page) = table.later_page(self.later_from)
        {
            self.later_from = page + 1;
            core.fault(page);
        }
    }
}

impl Activity for PageReader {
    fn drive(&mut self, core: &mut Core) {
        if core.store.table.is_paged() && !core.board.frozen {
            self.want_space_pages(core);
        }
        while let Some(&key) = core.reads.pages.waiting.front() {
            let page = core.reads.pages.faults[key].page;
            if core.reads.pages.slots.is_empty() || !core.make_frame(key) {
                return;
            }
            core.reads.pages.waiting.pop_front();
            if core.store.table.is_absent(page) {
                let Some(slot) = core.reads.pages.slots.pop() else { return };
                core.store.table.expect_page();
                core.bring_page(key, slot);
            } else {
                core.end_fault(key);
            }
        }
    }

    /// What can be read is still to be had.
    fn drive_frozen(&mut self, core: &mut Core) {
        self.drive(core);
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    fn is_busy(&self, core: &Core) -> bool {
        !core.reads.pages.faults.is_empty()
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    /// It has its own.
    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        (!core.reads.pages.faults.is_empty()).then_some("a page of the table")
    }
}

impl Marked for PageReader {
    type Mark = [u64; 6];

    fn mark(&self, core: &Core) -> Self::Mark {
        let pages = &core.reads.pages;
        let awaited = core.store.spaces.iter().filter(|space| space.awaited().is_some()).count();
        // The first may be had now that the checkpoint wants it, although as many wait as before.
        let first = pages.waiting.front().map(|&key| &pages.faults[key]);
        let first = first.map_or(0, |fault| 2 * count(fault.page) + u64::from(fault.for_checkpoint) + 1);
        [
            count(pages.waiting.len()),
            count(pages.faults.len()),
            count(pages.slots.len()),
            count(awaited),
            first,
            pages.came,
        ]
    }
}
