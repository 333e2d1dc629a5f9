//! One checkpoint on its way to the members: pages, flush, header, flush.

use super::records_max;
use crate::engine::copies::PageCopies;
use crate::engine::request::Request;
use crate::engine::wake::count;
use crate::engine::{Core, Purpose, Tag};
use crate::image::{Image, PatchRoom, items_at_once};
use crate::planted::{Planted, planted};
use block::slab::Key;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Slot, Stream};
use format::{BodyCrc, CheckpointKind};

/// Pages that a checkpoint has brought in ahead.
const PAGES_AHEAD: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Idle,
    /// Taken, and waiting for the incremental one of the same instant.
    Behind,
    /// Pages are being written, each to all its devices; the next is copy `copy` of unit `unit`.
    Pages {
        unit: usize,
        copy: usize,
    },
    /// Members that are being rebuilt get the copies of pages that they lack.
    Copies,
    /// Waiting for a flush later than number `after`.
    Settle {
        after: u64,
    },
    /// Waiting until the superblocks name all members that are out of service.
    Fence,
    /// Headers are being written.
    Headers,
    /// Waiting for a flush later than number `after`.
    Seal {
        after: u64,
    },
    /// Its headers are durable.
    Sealed,
}

/// A checkpoint that has been written, or could not be.
pub(super) struct Written {
    pub image: Image,
    /// What was copied beside it.
    pub copies: Option<PageCopies>,
    /// Who waits for it.
    pub answering: Vec<Key<Request>>,
    pub failed: bool,
}

/// See the module's documentation.
pub(super) struct Writer {
    /// Whether its checkpoints are incremental ones beside full ones.
    is_beside: bool,
    stage: Stage,
    image: Option<Image>,
    bodies: Vec<BodyCrc>,
    patches: PatchRoom,
    /// Blocks of what changed in the table that may yet be put together in this turn.
    patches_left: usize,
    /// What is copied beside the image.
    copies: Option<PageCopies>,
    outstanding: u32,
    answering: Vec<Key<Request>>,
    failed: bool,
}

impl Writer {
    pub fn new(is_beside: bool) -> Self {
        let (image, bodies, copies, answering) = (None, Vec::new(), None, Vec::new());
        let (stage, patches, patches_left) = (Stage::Idle, PatchRoom::default(), 0);
        let (outstanding, failed) = (0, false);
        Self {
            is_beside,
            stage,
            image,
            bodies,
            patches,
            patches_left,
            copies,
            outstanding,
            answering,
            failed,
        }
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    pub fn answering_mut(&mut self) -> &mut Vec<Key<Request>> {
        &mut self.answering
    }

    /// Whether everything that it has written so far was written.
    pub fn is_whole(&self) -> bool {
        !self.failed
    }

    /// Has a checkpoint to write, for those who wait for it.
    pub fn take(&mut self, image: Image, copies: Option<PageCopies>, answering: &mut Vec<Key<Request>>) {
        self.bodies.clear();
        self.bodies.resize_with(image.devices.len(), BodyCrc::new);
        (self.image, self.copies, self.failed) = (Some(image), copies, false);
        self.answering.append(answering);
        self.stage = Stage::Behind;
    }

    /// Begins to write it.
    pub fn begin(&mut self, core: &mut Core) {
        self.stage = Stage::Pages { unit: 0, copy: 0 };
        self.write_pages(core);
    }

    /// What it can do without waiting.
    pub fn drive(&mut self, core: &mut Core) {
        let haste = self.image.as_ref().map_or(1, |image| haste(core, image));
        if !planted(Planted::PatchedForEver) {
            self.patches_left = haste;
        }
        match self.stage {
            Stage::Pages { .. } => {
                self.list_more(core, haste);
                self.write_pages(core);
            }
            Stage::Copies => self.copy_pages(core),
            Stage::Fence => self.write_headers(core),
            Stage::Idle
            | Stage::Behind
            | Stage::Settle { .. }
            | Stage::Headers
            | Stage::Seal { .. }
            | Stage::Sealed => {}
        }
    }

    /// Everything that was written before flush `number` was begun is durable.
    pub fn flushed(&mut self, core: &mut Core, number: u64) {
        match self.stage {
            Stage::Settle { after } if number > after => self.write_headers(core),
            Stage::Seal { after } if number > after => self.stage = Stage::Sealed,
            Stage::Idle
            | Stage::Behind
            | Stage::Pages { .. }
            | Stage::Copies
            | Stage::Settle { .. }
            | Stage::Fence
            | Stage::Headers
            | Stage::Seal { .. }
            | Stage::Sealed => {}
        }
    }

    /// The checkpoint that is sealed, if it is.
    pub fn take_sealed(&mut self) -> Option<Written> {
        let image = (self.stage == Stage::Sealed).then(|| self.image.take()).flatten()?;
        self.stage = Stage::Idle;
        let answering = std::mem::take(&mut self.answering);
        Some(Written { image, copies: self.copies.take(), answering, failed: self.failed })
    }

    /// The next piece of its list is said, once in a turn: requests go on between.
    fn list_more(&mut self, core: &mut Core, haste: usize) {
        if let Some(image) = &mut self.image {
            let items = items_at_once(&core.store.config, image.kind) * haste;
            image.list_more(&core.store, &mut *core.scheme, items);
        }
    }

    fn write_pages(&mut self, core: &mut Core) {
        let Stage::Pages { mut unit, mut copy } = self.stage else { return };
        let Some(image) = self.image.take() else { return };
        while self.outstanding < core.options.checkpoint_blocks.max(1) && unit < image.settled_count() {
            if copy == image.copies(&core.store, unit) {
                for &written in image.table_pages(&core.store, unit) {
                    core.store.table.release_page(written);
                    core.release_checkpoint_pages(|page| page == written);
                }
                (unit, copy) = (unit + 1, 0);
                continue;
            }
            if !has_page(core, &image, unit) || !self.may_patch(core, &image, (unit, copy)) {
                break;
            }
            let (dev, offset) = image.target(&core.store, unit, copy);
            // The other copies of a page do; what follows the header must be whole on each of its devices.
            let is_saved = image.is_saved(unit);
            if core.health.is_writable(dev) || !is_saved {
                let Some(slot) = core.pool.alloc() else { break };
                let out = core.pool.bytes_mut(slot);
                if is_saved {
                    image.encode_slot((&core.store, &core.journal), (unit, copy), out);
                } else {
                    let page = image.body_page(&core.store, unit, &mut self.patches);
                    image.encode_body(&core.journal, (unit, copy), page, &mut self.bodies, out);
                }
                self.push_block(core, dev, offset, slot);
            }
            copy += 1;
        }
        let done = image.is_listed() && unit == image.unit_count() && self.outstanding == 0;
        self.stage = Stage::Pages { unit, copy };
        self.image = Some(image);
        if done {
            self.stage = Stage::Copies;
            self.copy_pages(core);
        }
    }

    /// Whether another block of what changed in the table may be put together in this turn, if that unit is
    /// one.
    fn may_patch(&mut self, core: &Core, image: &Image, (unit, copy): (usize, usize)) -> bool {
        if copy > 0 || image.is_saved(unit) || image.table_pages(&core.store, unit).is_empty() {
            return true;
        }
        let left = self.patches_left.checked_sub(1);
        self.patches_left = left.unwrap_or_default();
        left.is_some()
    }

    fn copy_pages(&mut self, core: &mut Core) {
        if self.copies.as_mut().is_none_or(|copies| copies.go_on(core)) {
            self.stage = Stage::Settle { after: core.board.flush.want_after() };
        }
    }

    /// A page was read from a member, or written to it.
    pub fn page_copied(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        copied: (usize, Slot, bool),
        result: Result<(), IoFault>,
    ) {
        let copies = self.copies.as_mut().expect("a checkpoint copies pages until it has ended");
        copies.transferred(core, dev, copied, result);
        self.copy_pages(core);
    }

    fn push_block(&mut self, core: &mut Core, dev: DevIndex, offset: u64, slot: Slot) {
        self.outstanding += 1;
        let tag = Tag { purpose: Purpose::Checkpoint { slot, is_beside: self.is_beside }, dev };
        if core.health.is_writable(dev) {
            core.push_op(tag, OpKind::Write, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
        } else {
            self.end_block(core, slot);
            self.failed = true;
        }
    }

    fn end_block(&mut self, core: &mut Core, slot: Slot) {
        core.give_metadata_slot(slot);
        self.outstanding -= 1;
    }

    /// A block of the checkpoint was written.
    pub fn block_done(&mut self, core: &mut Core, dev: DevIndex, slot: Slot, result: Result<(), IoFault>) {
        match result {
            Ok(()) => core.board.flush.wrote(dev),
            Err(fault) => {
                self.failed = true;
                core.write_fault(dev, fault);
            }
        }
        self.end_block(core, slot);
        match self.stage {
            Stage::Pages { .. } => self.write_pages(core),
            Stage::Headers if self.outstanding == 0 && planted(Planted::CheckpointUnsealed) => {
                self.stage = Stage::Sealed;
            }
            Stage::Headers if self.outstanding == 0 => {
                self.stage = Stage::Seal { after: core.board.flush.want_after() };
            }
            Stage::Headers => {}
            Stage::Idle
            | Stage::Behind
            | Stage::Copies
            | Stage::Settle { .. }
            | Stage::Fence
            | Stage::Seal { .. }
            | Stage::Sealed => unreachable!("no block is in flight then"),
        }
    }

    /// Writes the headers if all members know who has missed pages, or else when they do.
    fn write_headers(&mut self, core: &mut Core) {
        self.stage = Stage::Fence;
        let is_known = core.board.members.published() == core.health.config_seq;
        if !is_known && !core.board.frozen {
            return;
        }
        let Some(mut image) = self.image.take() else { return };
        // Whoever has this update was in service when all of the checkpoint was flushed.
        image.config_seq = core.board.members.published();
        self.stage = Stage::Headers;
        for (device, &dev) in image.devices.iter().enumerate() {
            let slot = core.take_metadata_slot();
            let body = &self.bodies[device];
            image.encode_header(&core.journal, dev, body, core.pool.bytes_mut(slot));
            self.push_block(core, dev, image.offset(&core.store, 0), slot);
        }
        self.image = Some(image);
        if self.outstanding == 0 {
            self.stage = Stage::Seal { after: core.board.flush.want_after() };
        }
    }

    /// What changes when it goes on.
    pub fn mark(&self) -> [u64; 3] {
        let (stage, copy, unit) = match self.stage {
            Stage::Idle => (0, 0, 0),
            Stage::Pages { copy, unit } => (1, copy, unit),
            Stage::Settle { .. } => (2, 0, 0),
            Stage::Headers => (3, 0, 0),
            Stage::Seal { .. } => (4, 0, 0),
            Stage::Fence => (5, 0, 0),
            Stage::Copies => (6, 0, self.copies.as_ref().map_or(0, PageCopies::begun)),
            Stage::Behind => (7, 0, 0),
            Stage::Sealed => (8, 0, 0),
        };
        let listed = self.image.as_ref().map_or(0, Image::pieces_listed);
        [stage, count(copy), count(unit) + count(listed)]
    }
}

/// How many times as much is done in a turn as where there is time: an incremental one must get on faster
/// than records come, which the next one has.
fn haste(core: &Core, image: &Image) -> usize {
    const HASTE_MAX: u64 = 16;
    const RECORDS_PER_HASTE: u64 = 8;
    if image.kind == CheckpointKind::Full {
        return 1;
    }
    let since = core.jobs.retired.get().saturating_sub(image.through.get());
    usize::try_from((1 + since / (RECORDS_PER_HASTE * records_max(core))).min(HASTE_MAX)).unwrap_or(1)
}

/// Whether the page of a unit is in memory; if not, it is asked for, and so are those of the next units.
fn has_page(core: &mut Core, image: &Image, unit: usize) -> bool {
    let must_read = |core: &Core, unit| {
        let pages = image.table_pages(&core.store, unit);
        pages.first().copied().filter(|&page| core.store.table.must_read(page))
    };
    if !core.store.table.is_paged() || must_read(core, unit).is_none() {
        return true;
    }
    let ahead = unit..image.unit_count().min(unit + PAGES_AHEAD);
    for page in ahead.filter_map(|unit| must_read(core, unit)).collect::<Vec<usize>>() {
        core.want_page_for_checkpoint(page);
    }
    false
}
