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

use super::checkpoint::{Checkpointer, Stage};
use super::{Core, Purpose, Tag};
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
    fell_short: bool,
}

impl PageCopies {
    /// What members lack that are being rebuilt. The snapshot of a checkpoint has just been taken.
    pub(super) fn new(core: &Core) -> Self {
        let rebuilt = core.health.writable_main().filter(|&dev| core.health.is_rebuilding(dev));
        let members = rebuilt.map(|dev| (dev, core.health.pages_through(dev))).collect();
        let newest = core.board.checkpoint.place.number;
        let mut copies = Self { members, newest, pages: Vec::new(), begun: 0, fell_short: false };
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

    /// Whether a page had a bad copy or none that is good.
    pub(super) fn fell_short(&self) -> bool {
        self.fell_short
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
        self.push_op(tag, kind, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
    }

    /// The page that is in a buffer, if it is what counts.
    fn decode_copy(&self, Copied { page, copy, slot }: Copied) -> Option<Page> {
        let (dev, block) = self.counting_copy(page, copy);
        let expect = PageExpect { array: self.journal.array(), dev, area: PAGE_AREA, block, number: None };
        let slots = self.store.table.slots();
        decode_page(&self.pool.bytes(slot)[..META_BYTES], &expect).ok().filter(|found| {
            (found.kind, found.index) == slots.name(page) && slots.state(page).fits(found.number)
        })
    }

    /// The copy of a page, from that one on, which is on a member of that kind.
    fn next_copy(&self, page: usize, from: usize, is_wanted: impl Fn(DevIndex) -> bool) -> Option<usize> {
        let mut copies = from..self.store.table.slots().area().copies();
        copies.find(|&copy| is_wanted(self.counting_copy(page, copy).0))
    }
}

impl Checkpointer {
    /// Copies as many pages side by side as a checkpoint writes; goes on to the next stage behind the last.
    pub(super) fn copy_pages(&mut self, core: &mut Core) {
        while self.outstanding < core.options.checkpoint_blocks.max(1)
            && !core.board.frozen
            && let Some(copies) = &mut self.copies
            && let Some(&page) = copies.pages.get(copies.begun)
        {
            let Some(slot) = core.pool.alloc() else { return };
            copies.begun += 1;
            self.outstanding += 1;
            self.read_copy(core, Copied { page, copy: 0, slot });
        }
        if self.outstanding == 0 {
            self.stage = Stage::Settle { after: core.board.flush.want_after() };
        }
    }

    /// Reads a page from that copy or one behind it.
    fn read_copy(&mut self, core: &mut Core, from: Copied) {
        match core.next_copy(from.page, from.copy, |dev| core.holds_pages(dev)) {
            Some(copy) => core.push_copy(Copied { copy, ..from }, OpKind::Read),
            None => {
                self.fall_short();
                self.end_block(core, from.slot);
            }
        }
    }

    fn fall_short(&mut self) {
        self.copies.iter_mut().for_each(|copies| copies.fell_short = true);
    }

    /// Writes what is in a buffer to the next member that lacks it, from copy `next` on.
    fn write_copy(&mut self, core: &mut Core, from: Copied, next: usize) {
        let state = core.store.table.slots().state(from.page);
        let lacks = |dev| self.copies.as_ref().is_some_and(|copies| copies.lacks(dev, state));
        let target = core.next_copy(from.page, next, |dev| core.health.is_rebuilding(dev) && lacks(dev));
        let found = target.and_then(|copy| Some((copy, core.decode_copy(from)?)));
        let Some((copy, found)) = found.filter(|_| !core.board.frozen) else {
            return self.end_block(core, from.slot);
        };
        let (dev, block) = core.counting_copy(from.page, copy);
        let Page { number, kind, index, ref words, .. } = found;
        let stamp =
            PageStamp { array: core.journal.array(), dev, area: PAGE_AREA, block, number, kind, index };
        encode_page(&stamp, words, &mut core.pool.bytes_mut(from.slot)[..META_BYTES]);
        core.push_copy(Copied { copy, ..from }, OpKind::Write);
    }

    /// A page was read from a member, or written to it.
    pub(super) fn copy_done(
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
                self.write_copy(core, copied, copy + 1);
            }
            (true, Err(fault)) => {
                self.failed = true;
                core.write_fault(dev, fault);
                self.end_block(core, slot);
            }
            (false, Ok(())) if core.decode_copy(copied).is_some() => self.write_copy(core, copied, 0),
            (false, result) => {
                self.fall_short();
                match result {
                    Ok(()) => core.health.errors_mut(dev).checksum += 1,
                    Err(IoFault::Gone) => core.fail_for_fault(dev),
                    Err(IoFault::Device { .. } | IoFault::Short | IoFault::NoSpace) => {
                        core.health.errors_mut(dev).read += 1;
                    }
                }
                self.read_copy(core, Copied { copy: copy + 1, ..copied });
            }
        }
        self.copy_pages(core);
    }
}
