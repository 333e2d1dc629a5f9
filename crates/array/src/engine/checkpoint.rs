//! Writing checkpoints beside foreground work (M-06 to M-08): pages, flush, header, flush.
//!
//! A checkpoint is the state at one instant: pages of the table that change before they are written are kept
//! as they were (`table`), the scheme's list is copied at once. The header, written when everything it speaks
//! of is durable, makes the checkpoint valid. Only then are the frames before it given up.
//!
//! A member that missed pages of it must not pass for a good one after a crash, since its slots hold what
//! some other checkpoint wrote: headers are written only when the superblocks say who is out of service.
//!
//! With one that a rebuild waits for, members that are being rebuilt get the copies of pages that they lack
//! (`copies`).
//!
//! What goes to the slots of pages (`slots`) goes to the members that a page has its copies on; what follows
//! the header goes to the members that hold the checkpoint.

use super::copies::PageCopies;
use super::request::Request;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError};
use super::{Purpose, Tag};
use crate::image::{CheckpointPlace, Image};
use crate::planted::{Planted, planted};
use crate::table::Extent;
use block::slab::Key;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Seq, Slot, Stream};
use format::{BodyCrc, CheckpointKind, CheckpointNumbers};

/// Which checkpoints there are, and which are wanted.
pub(super) struct CheckpointBoard {
    /// Where the newest one is.
    pub place: CheckpointPlace,
    /// Records that it holds.
    pub through: Seq,
    under_way: bool,
    wanted: Option<Extent>,
    waiting: Vec<Key<Request>>,
    /// Members that are being rebuilt are to get the copies of pages that they lack, with the next one.
    copies_wanted: bool,
    /// Checkpoints begun in this assembly that are to leave every member with its copies of all pages.
    completing_begun: u64,
    /// Number of the last one that is durable and did.
    completing_sealed: u64,
}

impl CheckpointBoard {
    pub(super) fn new(place: CheckpointPlace, through: Seq) -> Self {
        Self {
            place,
            through,
            under_way: false,
            wanted: None,
            waiting: Vec::new(),
            copies_wanted: false,
            completing_begun: 0,
            completing_sealed: 0,
        }
    }

    /// Whether one is under way or wanted.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way || self.wanted.is_some()
    }

    /// A request waits for one of that kind.
    pub(super) fn want(&mut self, request: Key<Request>, kind: CheckpointKind) {
        self.waiting.push(request);
        match kind {
            CheckpointKind::Full => self.request(Extent::Everything),
            CheckpointKind::Incremental => self.request(Extent::Changes),
        }
    }

    /// Checkpoints begun in this assembly that are to leave every member with its copies of all pages: what
    /// is asked for now, copies or everything, is in the next one.
    pub(super) fn completing_begun(&self) -> u64 {
        self.completing_begun
    }

    /// Number of the last one of those that is durable and did.
    pub(super) fn completing_sealed(&self) -> u64 {
        self.completing_sealed
    }

    /// With the next checkpoint, which holds at least `extent`, members that are being rebuilt get the copies
    /// of pages that they lack.
    pub(super) fn request_copies(&mut self, extent: Extent) {
        self.copies_wanted = true;
        self.request(extent);
    }

    /// Whether one is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// Number of the newest one, or of the one under way.
    pub(super) fn newest(&self) -> u64 {
        if self.under_way { self.place.next() } else { self.place.number }
    }

    /// What superblocks say of them.
    pub(super) fn numbers(&self) -> CheckpointNumbers {
        let used = if self.under_way { self.place.next() } else { self.place.used };
        CheckpointNumbers { used, ..self.place.numbers() }
    }

    /// Whether the newest checkpoint holds the records up to `seq`.
    pub(super) fn holds(&self, seq: Seq) -> bool {
        self.through >= seq
    }

    /// Something waits for what such a checkpoint frees, or for its copies.
    pub(super) fn request(&mut self, extent: Extent) {
        self.wanted = self.wanted.max(Some(extent));
    }
}

/// Pages that a checkpoint has brought in ahead.
const PAGES_AHEAD: usize = 32;

enum Stage {
    Idle,
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
}

/// See the module's documentation.
pub(super) struct Checkpointer {
    stage: Stage,
    image: Option<Image>,
    bodies: Vec<BodyCrc>,
    /// What is copied beside the image.
    copies: Option<PageCopies>,
    outstanding: u32,
    answering: Vec<Key<Request>>,
    failed: bool,
}

impl Default for Checkpointer {
    fn default() -> Self {
        let (image, bodies, copies, answering) = (None, Vec::new(), None, Vec::new());
        Self { stage: Stage::Idle, image, bodies, copies, outstanding: 0, answering, failed: false }
    }
}

impl Checkpointer {
    fn due(&self, core: &Core) -> Option<Extent> {
        let log_held = core.scheme.log_tail(&core.store).saturating_sub(core.board.checkpoint.place.log_head);
        let log_full = log_held > u64::from(core.store.log.block_count()) / 4;
        let full = log_full || core.journal.is_due() || has_many_records(core);
        let full = full.then_some(Extent::Changes);
        let unsaved = core.store.table.is_mostly_unsaved().then_some(Extent::Unsaved);
        core.board.checkpoint.wanted.max(full).max(unsaved)
    }

    /// Nothing is written any more: whoever waits for a checkpoint is told.
    fn refuse(&mut self, core: &mut Core) {
        core.board.checkpoint.wanted = None;
        let waiting = std::mem::take(&mut core.board.checkpoint.waiting);
        for request in waiting {
            core.chunk_done(request, Some(EngineError::ArrayFailed));
        }
    }

    /// Whoever has waited for a checkpoint for too long is told why; it is written when that can be.
    pub(super) fn refuse_late(&mut self, core: &mut Core, error: EngineError) {
        let mut waiting = std::mem::take(&mut core.board.checkpoint.waiting);
        core.refuse_late(&mut waiting, error);
        core.board.checkpoint.waiting = waiting;
        core.refuse_late(&mut self.answering, error);
    }

    fn start(&mut self, core: &mut Core) {
        let Some(wanted) = self.due(core) else { return };
        if !core.note_taken() {
            return core.board.checkpoint.request(wanted);
        }
        core.board.checkpoint.wanted = None;
        let mut image = core.board.checkpoint.place.choose(
            wanted,
            &mut core.store,
            &mut *core.scheme,
            &core.journal,
            &core.health,
            core.jobs.retired,
        );
        image.config_seq = core.board.members.published();
        let copies_wanted = std::mem::take(&mut core.board.checkpoint.copies_wanted);
        let saves_all = image.extent == Extent::Everything;
        self.copies = (copies_wanted && !saves_all).then(|| PageCopies::new(core));
        core.board.checkpoint.completing_begun += u64::from(saves_all || copies_wanted);
        self.bodies.clear();
        self.bodies.resize_with(image.devices.len(), BodyCrc::new);
        self.image = Some(image);
        self.stage = Stage::Pages { unit: 0, copy: 0 };
        core.board.checkpoint.under_way = true;
        self.failed = false;
        let mut waiting = std::mem::take(&mut core.board.checkpoint.waiting);
        self.answering.append(&mut waiting);
        core.board.checkpoint.waiting = waiting;
        self.write_pages(core);
    }

    fn write_pages(&mut self, core: &mut Core) {
        let Stage::Pages { mut unit, mut copy } = self.stage else { return };
        let Some(image) = self.image.take() else { return };
        while self.outstanding < core.options.checkpoint_blocks.max(1) && unit < image.unit_count() {
            if copy == image.copies(&core.store, unit) {
                for &written in image.table_pages(&core.store, unit) {
                    core.store.table.release_page(written);
                    core.release_checkpoint_pages(|page| page == written);
                }
                (unit, copy) = (unit + 1, 0);
                continue;
            }
            if !has_page(core, &image, unit) {
                break;
            }
            let (dev, offset) = image.target(&core.store, unit, copy);
            // The other copies of a page do; what follows the header must be whole on each of its devices.
            if core.health.is_writable(dev) || !image.is_saved(unit) {
                let Some(slot) = core.pool.alloc() else { break };
                let out = core.pool.bytes_mut(slot);
                image.encode_unit((&core.store, &core.journal), (unit, copy), &mut self.bodies, out);
                self.push_block(core, dev, offset, slot);
            }
            copy += 1;
        }
        let done = unit == image.unit_count() && self.outstanding == 0;
        self.stage = Stage::Pages { unit, copy };
        self.image = Some(image);
        if done {
            self.stage = Stage::Copies;
            self.copy_pages(core);
        }
    }

    fn copy_pages(&mut self, core: &mut Core) {
        if self.copies.as_mut().is_none_or(|copies| copies.go_on(core)) {
            self.stage = Stage::Settle { after: core.board.flush.want_after() };
        }
    }

    /// A page was read from a member, or written to it.
    pub(super) fn page_copied(
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
        let tag = Tag { purpose: Purpose::Checkpoint { slot }, dev };
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
    pub(super) fn block_done(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        slot: Slot,
        result: Result<(), IoFault>,
    ) {
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
                self.end(core);
            }
            Stage::Headers if self.outstanding == 0 => {
                self.stage = Stage::Seal { after: core.board.flush.want_after() };
            }
            Stage::Headers => {}
            Stage::Idle | Stage::Copies | Stage::Settle { .. } | Stage::Fence | Stage::Seal { .. } => {
                unreachable!("no block is in flight then")
            }
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

    fn end(&mut self, core: &mut Core) {
        let Some(image) = self.image.take() else { return };
        let copies = self.copies.take();
        self.stage = Stage::Idle;
        core.board.checkpoint.under_way = false;
        core.release_checkpoint_pages(|_| true);
        if core.board.frozen {
            // Nothing of it was written for certain.
            core.store.table.abandon_snapshot();
        } else {
            core.store.table.end_snapshot(image.number);
        }
        let lost = self.failed || image.devices.iter().any(|&dev| !core.health.is_writable(dev));
        if lost {
            // A device of the set failed: what it held is too few copies.
            let log_head = core.board.checkpoint.place.log_head;
            core.board.checkpoint.place =
                CheckpointPlace { log_head, ..image.place(&core.board.checkpoint.place) };
            core.board.checkpoint.waiting.append(&mut self.answering);
            core.board.checkpoint.copies_wanted |= copies.is_some();
            let again = image.extent.max(Extent::Unsaved);
            return core.board.checkpoint.request(again);
        }
        core.board.checkpoint.place = image.place(&core.board.checkpoint.place);
        core.board.checkpoint.through = image.through;
        core.journal.trim(image.through);
        core.board.flush.checkpointed(image.through);
        core.stats.checkpoints += 1;
        core.note_log_tail(core.jobs.retired);
        let mut answering = std::mem::take(&mut self.answering);
        for request in answering.drain(..) {
            core.chunk_done(request, None);
        }
        self.answering = answering;
        if copies.as_ref().is_some_and(|copies| copies.fell_short) {
            core.board.checkpoint.request(Extent::Everything);
        } else if copies.is_some() || image.extent == Extent::Everything {
            core.board.checkpoint.completing_sealed = core.board.checkpoint.completing_begun;
        }
    }
}

/// Records behind a checkpoint after which another is due, if pages may be absent: a start reads a page for
/// each. In small arrays fewer, so that it comes about in the simulator, too.
const RECORDS_MAX: std::ops::RangeInclusive<u64> = 64..=4096;
const CHUNKS_PER_RECORD: u64 = 64;
/// Words of what each checkpoint says as a whole for each of these.
const LATER_PER_RECORD: u64 = 8;

/// Whether so many records came since the last checkpoint that a start would read many pages for them.
fn has_many_records(core: &Core) -> bool {
    if !core.store.table.is_paged() {
        return false;
    }
    let of_size = u64::from(core.store.config.chunks_per_device) / CHUNKS_PER_RECORD;
    let most = of_size.clamp(*RECORDS_MAX.start(), *RECORDS_MAX.end());
    let most = most.max(core.store.table.later_count() / LATER_PER_RECORD);
    core.jobs.retired.get().saturating_sub(core.board.checkpoint.through.get()) > most
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

impl Activity for Checkpointer {
    fn drive(&mut self, core: &mut Core) {
        match self.stage {
            Stage::Idle => self.start(core),
            Stage::Pages { .. } => self.write_pages(core),
            Stage::Copies => self.copy_pages(core),
            Stage::Fence => self.write_headers(core),
            Stage::Settle { .. } | Stage::Headers | Stage::Seal { .. } => {}
        }
    }

    /// What is under way ends, and is of no use; nothing is begun.
    fn drive_frozen(&mut self, core: &mut Core) {
        match self.stage {
            Stage::Idle => self.refuse(core),
            Stage::Pages { .. } => self.write_pages(core),
            Stage::Copies => self.copy_pages(core),
            Stage::Fence => self.write_headers(core),
            Stage::Settle { .. } | Stage::Headers | Stage::Seal { .. } => {}
        }
    }

    fn flushed(&mut self, core: &mut Core, number: u64) {
        match self.stage {
            Stage::Settle { after } if number > after => self.write_headers(core),
            Stage::Seal { after } if number > after => self.end(core),
            Stage::Idle
            | Stage::Pages { .. }
            | Stage::Copies
            | Stage::Settle { .. }
            | Stage::Fence
            | Stage::Headers
            | Stage::Seal { .. } => {}
        }
    }

    fn is_busy(&self, core: &Core) -> bool {
        core.board.checkpoint.is_busy()
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    fn waits_for_buffers(&self, core: &Core) -> bool {
        core.board.checkpoint.is_busy()
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        let is_open = self.is_busy(core) || (!core.board.frozen && self.due(core).is_some());
        is_open.then_some("a checkpoint")
    }
}

impl Marked for Checkpointer {
    type Mark = [u64; 6];

    fn mark(&self, core: &Core) -> Self::Mark {
        let (stage, copy, unit) = match self.stage {
            Stage::Idle => (0, 0, 0),
            Stage::Pages { copy, unit } => (1, copy, unit),
            Stage::Settle { .. } => (2, 0, 0),
            Stage::Headers => (3, 0, 0),
            Stage::Seal { .. } => (4, 0, 0),
            Stage::Fence => (5, 0, 0),
            Stage::Copies => (6, 0, self.copies.as_ref().map_or(0, PageCopies::begun)),
        };
        let CheckpointBoard { wanted, waiting, through, .. } = &core.board.checkpoint;
        let (wanted, waiting) = (u64::from(wanted.is_some()), count(waiting.len()));
        [stage, count(copy), count(unit), wanted, waiting, through.get()]
    }
}
