//! Copies of pages of the table that members lack which are being rebuilt: what checkpoints wrote while they
//! were out of service, or all of them.
//!
//! Each is read from a member that has it and written to the slot that counts, by a checkpoint while it is
//! under way: no other may choose slots meanwhile, and pages that the checkpoint saves itself go to all
//! members. What such a slot held before is of no use to anybody, and the member counts as one that lacks it
//! until a flush has made all copies durable and the rebuild has ended.
//!
//! What a member has is known by the number of the checkpoint up to which it was in service, and what is
//! where by 127 stamps of numbers (`slots`): so more may be copied than it lacks, and never less.

use super::wake::count;
use super::{Content, Core, Purpose, Tag};
use crate::planted::{Planted, planted};
use crate::slots::SlotState;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Slot, Stream};
use format::{PAGE_AREA, Page, PageExpect, PageStamp, decode_page, encode_page};

/// A page in a buffer, as its copy `copy` is.
#[derive(Clone, Copy)]
struct Copied {
    page: usize,
    copy: usize,
    slot: Slot,
}

/// What is to be copied.
pub(super) struct PageCopies {
    /// Members that get copies, each with the checkpoint up to which it has all of them.
    members: Vec<(DevIndex, u64)>,
    /// The newest checkpoint when this began.
    newest: u64,
    pages: Vec<usize>,
    begun: usize,
    /// Pages that are being copied.
    outstanding: u32,
    /// A page had a bad copy, or none that is good, or one was not written: not all members have theirs.
    pub(super) fell_short: bool,
}

impl PageCopies {
    /// What members lack that are being rebuilt. The snapshot of a checkpoint has just been taken.
    pub(super) fn new(core: &Core) -> Self {
        let members = core.health.rebuilding_main();
        let members = members.map(|dev| (dev, core.health.pages_through(dev).unwrap_or(0))).collect();
        let newest = core.board.checkpoint.place.number;
        let (pages, begun, outstanding) = (Vec::new(), 0, 0);
        let mut copies = Self { members, newest, pages, begun, outstanding, fell_short: false };
        if !planted(Planted::ReturnLacksPages) {
            copies.pages = core.store.table.lacking_pages(|dev, state| copies.lacks(dev, state));
        }
        copies
    }

    fn lacks(&self, dev: DevIndex, state: SlotState) -> bool {
        let get = if planted(Planted::CopyForFirst) { 1 } else { self.members.len() };
        let mut members = self.members.iter().take(get);
        members.any(|&(member, through)| member == dev && state.may_be_later(through, self.newest))
    }

    /// How many pages have been begun.
    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    /// Copies as many pages side by side as a checkpoint writes; `true` behind the last one.
    pub(super) fn go_on(&mut self, core: &mut Core) -> bool {
        while self.outstanding < core.options.checkpoint_blocks.max(1)
            && !core.board.frozen
            && let Some(&page) = self.pages.get(self.begun)
        {
            let Some(slot) = core.pool.alloc() else { return false };
            self.begun += 1;
            self.outstanding += 1;
            self.read(core, Copied { page, copy: 0, slot });
        }
        self.outstanding == 0
    }

    fn end(&mut self, core: &mut Core, slot: Slot) {
        core.give_metadata_slot(slot);
        self.outstanding -= 1;
    }

    /// Reads a page from that copy or one behind it.
    fn read(&mut self, core: &mut Core, from: Copied) {
        match core.next_copy(from.page, from.copy, |dev| core.holds_pages(dev)) {
            Some(copy) => core.push_copy(Copied { copy, ..from }, OpKind::Read),
            None => {
                self.fell_short = true;
                self.end(core, from.slot);
            }
        }
    }

    /// Writes a page that is in a buffer to the next member that lacks it, from copy `next` on; `found` is
    /// what it is, if that is known already.
    fn write(&mut self, core: &mut Core, from: Copied, found: Option<Page>, next: usize) {
        let state = core.store.table.slots().state(from.page);
        let is_wanted = |dev| core.health.is_rebuilding(dev) && self.lacks(dev, state);
        let target = core.next_copy(from.page, next, is_wanted);
        let Some(copy) = target.filter(|_| !core.board.frozen) else { return self.end(core, from.slot) };
        let Some(found) = found.or_else(|| core.decode_copy(from)) else {
            self.fell_short = true;
            return self.end(core, from.slot);
        };
        let copied = Copied { copy, ..from };
        core.encode_copy(copied, &found);
        core.push_copy(copied, OpKind::Write);
    }

    /// A page was read from a member, or written to it.
    pub(super) fn transferred(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        (page, slot, is_written): (usize, Slot, bool),
        result: Result<(), IoFault>,
    ) {
        let copy = core.next_copy(page, 0, |other| other == dev).expect("the member has a copy of it");
        let copied = Copied { page, copy, slot };
        match (is_written, result) {
            (true, Ok(())) => {
                core.board.flush.wrote(dev);
                self.write(core, copied, None, copy + 1);
            }
            (true, Err(fault)) => {
                core.write_fault(dev, fault);
                self.fell_short |= core.health.is_rebuilding(dev);
                self.write(core, copied, None, copy + 1);
            }
            (false, result) => match result.ok().and_then(|()| core.decode_copy(copied)) {
                Some(found) => self.write(core, copied, Some(found), 0),
                None => {
                    core.note_bad_page(dev, result);
                    // One that has left has no bad copy.
                    self.fell_short |= core.health.is_writable(dev);
                    self.read(core, Copied { copy: copy + 1, ..copied });
                }
            },
        }
    }
}

impl Core {
    /// The device and block of a copy of a page in the slot that counts.
    fn counting_copy(&self, page: usize, copy: usize) -> (DevIndex, u32) {
        let slots = self.store.table.slots();
        slots.area().place(page, copy, slots.state(page).slot())
    }

    fn push_copy(&mut self, Copied { page, copy, slot }: Copied, kind: OpKind) {
        let (dev, block) = self.counting_copy(page, copy);
        let is_written = kind == OpKind::Write;
        let tag = Tag { purpose: Purpose::PageCopy { page, is_written, slot }, dev };
        let offset = self.store.config.page_offset(block);
        self.push_op(tag, kind, Stream::Metadata, offset, count(META_BYTES), Some(slot));
    }

    /// The page that is in a buffer, if it is what counts; any that is believed.
    fn decode_copy(&self, Copied { page, copy, slot }: Copied) -> Option<Page> {
        let (slots, newest) = (self.store.table.slots(), self.board.checkpoint.place.number);
        if self.options.content == Content::Meaningless {
            let (kind, index) = slots.name(page);
            return Some(Page { number: newest, kind, index, words: Vec::new(), crc: 0 });
        }
        let (dev, block) = self.counting_copy(page, copy);
        let expect = PageExpect { array: self.journal.array(), dev, area: PAGE_AREA, block, number: None };
        let found = decode_page(&self.pool.bytes(slot)[..META_BYTES], &expect).ok();
        found.filter(|found| slots.is_page(page, found) && found.number <= newest)
    }

    /// Makes another copy of a page in a buffer.
    fn encode_copy(&mut self, Copied { page, copy, slot }: Copied, found: &Page) {
        let (dev, block) = self.counting_copy(page, copy);
        let &Page { number, kind, index, ref words, .. } = found;
        let stamp =
            PageStamp { array: self.journal.array(), dev, area: PAGE_AREA, block, number, kind, index };
        encode_page(&stamp, words, &mut self.pool.bytes_mut(slot)[..META_BYTES]);
    }

    /// The copy of a page, from that one on, which is on a member of that kind.
    pub(super) fn next_copy(
        &self,
        page: usize,
        from: usize,
        is_wanted: impl Fn(DevIndex) -> bool,
    ) -> Option<usize> {
        let mut copies = from..self.store.table.slots().area().copies();
        copies.find(|&copy| is_wanted(self.counting_copy(page, copy).0))
    }
}
