//! Writing checkpoints beside foreground work (M-06 to M-08): pages, flush, header, flush.
//!
//! A checkpoint is the state at one instant: pages of the table that change before they are written are kept
//! as they were (`table`), the scheme's list is copied at once. The header, written when everything it speaks
//! of is durable, makes the checkpoint valid. Only then are the frames before it given up.

use super::request::Request;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError};
use super::{Purpose, Tag};
use crate::image::{CheckpointPlace, Image};
use crate::planted::{Planted, planted};
use block::slab::Key;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Seq, Slot, Stream};
use format::{BodyCrc, CheckpointKind};

/// Which checkpoints there are, and which are wanted.
pub(super) struct CheckpointBoard {
    /// Where the newest one is.
    pub place: CheckpointPlace,
    /// Records that it holds.
    pub through: Seq,
    under_way: bool,
    wanted: Option<CheckpointKind>,
    waiting: Vec<Key<Request>>,
    /// Full checkpoints begun in this assembly.
    full_begun: u64,
    /// Number of the last one that is durable.
    full_sealed: u64,
}

impl CheckpointBoard {
    pub(super) fn new(place: CheckpointPlace, through: Seq) -> Self {
        Self {
            place,
            through,
            under_way: false,
            wanted: None,
            waiting: Vec::new(),
            full_begun: 0,
            full_sealed: 0,
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
            CheckpointKind::Full => self.request_full(),
            CheckpointKind::Incremental => self.request_incremental(),
        }
    }

    /// Full checkpoints begun in this assembly: whatever is asked for now is in a later one.
    pub(super) fn full_begun(&self) -> u64 {
        self.full_begun
    }

    /// Number of the last full checkpoint of this assembly that is durable.
    pub(super) fn full_sealed(&self) -> u64 {
        self.full_sealed
    }

    /// Whether the newest checkpoint holds the records up to `seq`.
    pub(super) fn holds(&self, seq: Seq) -> bool {
        self.through >= seq
    }

    /// The members changed: the copies must be complete again.
    pub(super) fn request_full(&mut self) {
        self.wanted = Some(CheckpointKind::Full);
    }

    /// Something waits for what a checkpoint frees.
    pub(super) fn request_incremental(&mut self) {
        self.wanted = self.wanted.or(Some(CheckpointKind::Incremental));
    }
}

enum Stage {
    Idle,
    /// Pages are being written, each to all devices; the next is `page` to device number `device`.
    Pages {
        page: usize,
        device: usize,
    },
    /// Waiting for a flush later than number `after`.
    Settle {
        after: u64,
    },
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
    outstanding: u32,
    answering: Vec<Key<Request>>,
    failed: bool,
}

impl Default for Checkpointer {
    fn default() -> Self {
        let (image, bodies, answering) = (None, Vec::new(), Vec::new());
        Self { stage: Stage::Idle, image, bodies, outstanding: 0, answering, failed: false }
    }
}

impl Checkpointer {
    fn due(&self, core: &Core) -> Option<CheckpointKind> {
        let log_held = core.scheme.log_tail(&core.store).saturating_sub(core.board.checkpoint.place.log_head);
        let log_full = log_held > u64::from(core.store.log.block_count()) / 4;
        let full = log_full || core.journal.is_due();
        core.board.checkpoint.wanted.or(full.then_some(CheckpointKind::Incremental))
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
        core.board.checkpoint.wanted = None;
        let mut image = core.board.checkpoint.place.choose(
            wanted,
            &mut core.store,
            &*core.scheme,
            &core.journal,
            &core.health,
            core.jobs.retired,
        );
        image.config_seq = core.board.members.published();
        core.board.checkpoint.full_begun += u64::from(image.kind == CheckpointKind::Full);
        self.bodies.clear();
        self.bodies.resize_with(image.devices.len(), BodyCrc::new);
        self.image = Some(image);
        self.stage = Stage::Pages { page: 0, device: 0 };
        core.board.checkpoint.under_way = true;
        self.failed = false;
        let mut waiting = std::mem::take(&mut core.board.checkpoint.waiting);
        self.answering.append(&mut waiting);
        core.board.checkpoint.waiting = waiting;
        self.write_pages(core);
    }

    fn write_pages(&mut self, core: &mut Core) {
        let Stage::Pages { mut page, mut device } = self.stage else { return };
        let Some(image) = self.image.take() else { return };
        while self.outstanding < core.options.checkpoint_blocks.max(1) && page < image.page_count() {
            if device == image.devices.len() {
                for &written in image.table_pages(page) {
                    core.store.table.release_page(written);
                }
                (page, device) = (page + 1, 0);
                continue;
            }
            let Some(slot) = core.pool.alloc() else { break };
            let dev = image.devices[device];
            let (body, out) = (&mut self.bodies[device], core.pool.bytes_mut(slot));
            image.encode_page((&core.store, &core.journal), dev, page, body, out);
            self.push_block(core, dev, image.offset(&core.store, page + 1), slot);
            device += 1;
        }
        let done = page == image.page_count() && self.outstanding == 0;
        self.stage = Stage::Pages { page, device };
        self.image = Some(image);
        if done {
            self.stage = Stage::Settle { after: core.board.flush.want_after() };
        }
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
            Stage::Idle | Stage::Settle { .. } | Stage::Seal { .. } => {
                unreachable!("no block is in flight then")
            }
        }
    }

    fn write_headers(&mut self, core: &mut Core) {
        let Some(image) = self.image.take() else { return };
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
        self.stage = Stage::Idle;
        core.board.checkpoint.under_way = false;
        core.store.table.drop_snapshot();
        let lost = self.failed || image.devices.iter().any(|&dev| !core.health.is_writable(dev));
        if lost {
            // A device of the set failed: what it held is too few copies. The pages are marked again by a
            // full one.
            let log_head = core.board.checkpoint.place.log_head;
            core.board.checkpoint.place =
                CheckpointPlace { log_head, ..image.place(&core.board.checkpoint.place) };
            core.board.checkpoint.waiting.append(&mut self.answering);
            return core.board.checkpoint.request_full();
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
        if image.kind == CheckpointKind::Full {
            core.board.checkpoint.full_sealed = core.board.checkpoint.full_begun;
        }
    }
}

impl Activity for Checkpointer {
    fn drive(&mut self, core: &mut Core) {
        match self.stage {
            Stage::Idle => self.start(core),
            Stage::Pages { .. } => self.write_pages(core),
            Stage::Settle { .. } | Stage::Headers | Stage::Seal { .. } => {}
        }
    }

    /// What is under way ends, and is of no use; nothing is begun.
    fn drive_frozen(&mut self, core: &mut Core) {
        match self.stage {
            Stage::Idle => self.refuse(core),
            Stage::Pages { .. } => self.write_pages(core),
            Stage::Settle { .. } | Stage::Headers | Stage::Seal { .. } => {}
        }
    }

    fn flushed(&mut self, core: &mut Core, number: u64) {
        match self.stage {
            Stage::Settle { after } if number > after => self.write_headers(core),
            Stage::Seal { after } if number > after => self.end(core),
            Stage::Idle
            | Stage::Pages { .. }
            | Stage::Settle { .. }
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
        let (stage, device, page) = match self.stage {
            Stage::Idle => (0, 0, 0),
            Stage::Pages { device, page } => (1, device, page),
            Stage::Settle { .. } => (2, 0, 0),
            Stage::Headers => (3, 0, 0),
            Stage::Seal { .. } => (4, 0, 0),
        };
        let CheckpointBoard { wanted, waiting, through, .. } = &core.board.checkpoint;
        let (wanted, waiting) = (u64::from(wanted.is_some()), count(waiting.len()));
        [stage, count(device), count(page), wanted, waiting, through.get()]
    }
}
