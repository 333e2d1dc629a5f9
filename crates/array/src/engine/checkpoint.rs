//! Writing checkpoints beside foreground work (M-06 to M-08): pages, flush, header, flush.
//!
//! The state is copied at one instant; the header, written when everything it speaks of is durable, makes the
//! checkpoint valid. Only then are the frames before it given up.

use super::request::Request;
use super::tag::{Purpose, Tag};
use super::{Engine, EngineError};
use crate::image::{CheckpointPlace, Image};
use crate::planted::{Planted, planted};
use block::slab::Key;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Seq, Slot, Stream};
use format::{BodyCrc, CheckpointKind};

/// Blocks of a checkpoint in flight at most.
const BLOCKS_IN_FLIGHT: u32 = 64;
/// A checkpoint is due when a journal ring is this full, in thousandths.
const RING_DUE_PERMILLE: u64 = 500;

enum Stage {
    Idle,
    /// Pages are being written; the next is `page` of device number `device`.
    Pages {
        device: usize,
        page: usize,
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
    place: CheckpointPlace,
    stage: Stage,
    image: Option<Image>,
    bodies: Vec<BodyCrc>,
    outstanding: u32,
    wanted: Option<CheckpointKind>,
    waiting: Vec<Key<Request>>,
    answering: Vec<Key<Request>>,
    failed: bool,
    /// Full checkpoints begun in this assembly.
    full_begun: u64,
    /// Number of the last one that is durable.
    full_sealed: u64,
    /// Records that the newest checkpoint holds.
    through: Seq,
}

impl Checkpointer {
    pub(super) fn new(place: CheckpointPlace, through: Seq) -> Self {
        Self {
            place,
            stage: Stage::Idle,
            image: None,
            bodies: Vec::new(),
            outstanding: 0,
            wanted: None,
            waiting: Vec::new(),
            answering: Vec::new(),
            failed: false,
            full_begun: 0,
            full_sealed: 0,
            through,
        }
    }

    /// Replay starts here in the log region.
    pub(super) fn log_head(&self) -> u64 {
        self.place.log_head
    }

    /// Records that the newest checkpoint holds.
    pub(super) fn through(&self) -> Seq {
        self.through
    }

    /// What decides how the checkpoint goes on.
    pub(super) fn mark(&self) -> [usize; 5] {
        let (stage, device, page) = match self.stage {
            Stage::Idle => (0, 0, 0),
            Stage::Pages { device, page } => (1, device, page),
            Stage::Settle { .. } => (2, 0, 0),
            Stage::Headers => (3, 0, 0),
            Stage::Seal { .. } => (4, 0, 0),
        };
        [stage, device, page, usize::from(self.wanted.is_some()), self.waiting.len()]
    }

    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Idle) || self.wanted.is_some() || !self.waiting.is_empty()
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

impl Engine {
    /// Writes a checkpoint (M-08); answered when it is durable.
    pub fn write_checkpoint(&mut self, tag: u64, kind: CheckpointKind) {
        let request = self.open_control(tag);
        self.checkpoint.waiting.push(request);
        match kind {
            CheckpointKind::Full => self.checkpoint.request_full(),
            CheckpointKind::Incremental => self.checkpoint.request_incremental(),
        }
    }

    pub(super) fn drive_checkpoint(&mut self) {
        match self.checkpoint.stage {
            Stage::Idle => self.start_checkpoint(),
            Stage::Pages { .. } => self.write_pages(),
            Stage::Settle { .. } | Stage::Headers | Stage::Seal { .. } => {}
        }
    }

    fn checkpoint_due(&self) -> Option<CheckpointKind> {
        let log_held = self.scheme.log_tail(&self.store).saturating_sub(self.checkpoint.place.log_head);
        let log_full = log_held > u64::from(self.store.log.block_count()) / 4;
        let ring_full = self.journal.fill_permille() >= RING_DUE_PERMILLE;
        self.checkpoint.wanted.or((log_full || ring_full).then_some(CheckpointKind::Incremental))
    }

    /// Whether a checkpoint is under way, wanted or due.
    pub(super) fn checkpoint_is_open(&self) -> bool {
        self.checkpoint.is_busy() || (!self.frozen && self.checkpoint_due().is_some())
    }

    /// Nothing is written any more: whoever waits for a checkpoint is told.
    fn refuse_checkpoints(&mut self) {
        self.checkpoint.wanted = None;
        let waiting = std::mem::take(&mut self.checkpoint.waiting);
        for request in waiting {
            self.chunk_done(request, Some(EngineError::ArrayFailed));
        }
    }

    /// Whoever has waited for a checkpoint for too long is told why; it is written when that can be.
    pub(super) fn refuse_late_checkpoints(&mut self, error: EngineError) {
        let (mut waiting, mut answering) =
            (std::mem::take(&mut self.checkpoint.waiting), std::mem::take(&mut self.checkpoint.answering));
        self.refuse_late_of(&mut waiting, error);
        self.refuse_late_of(&mut answering, error);
        (self.checkpoint.waiting, self.checkpoint.answering) = (waiting, answering);
    }

    fn start_checkpoint(&mut self) {
        if self.frozen {
            return self.refuse_checkpoints();
        }
        let Some(wanted) = self.checkpoint_due() else { return };
        self.checkpoint.wanted = None;
        let place = &self.checkpoint.place;
        let copies = self.store.config.geometry.parity_count() + 1;
        let n = self.store.main_count();
        let same =
            place.devices.len() == copies && place.devices.iter().all(|&dev| self.health.is_writable(dev));
        let room = u64::from(self.store.config.incremental_blocks - place.incremental_next);
        let kind = if same { wanted } else { CheckpointKind::Full };
        let take = |kind, devices| {
            let through = self.retired;
            Image::take(&self.store, &*self.scheme, &self.journal, kind, place, devices, through)
        };
        // What is too large is let go before the full one is taken: each is a copy of much of the table.
        let small = (kind == CheckpointKind::Incremental)
            .then(|| take(kind, place.devices.clone()))
            .filter(|image| image.block_count() <= room);
        let mut image = small.unwrap_or_else(|| {
            let first = (place.number as usize + 1) % n;
            let ring = (0..n).map(|i| DevIndex::new(((first + i) % n) as u16));
            let devices = ring.filter(|&dev| self.health.is_writable(dev)).take(copies).collect();
            let image = take(CheckpointKind::Full, devices);
            assert!(
                image.block_count() <= u64::from(self.store.config.full_blocks),
                "the full-checkpoint area is laid out for the largest state"
            );
            image
        });
        image.config_seq = self.published();
        self.checkpoint.full_begun += u64::from(image.kind == CheckpointKind::Full);
        self.store.table.clear_changed();
        self.checkpoint.bodies.clear();
        self.checkpoint.bodies.resize_with(image.devices.len(), BodyCrc::new);
        self.checkpoint.image = Some(image);
        self.checkpoint.stage = Stage::Pages { device: 0, page: 0 };
        self.checkpoint.failed = false;
        let mut waiting = std::mem::take(&mut self.checkpoint.waiting);
        self.checkpoint.answering.append(&mut waiting);
        self.checkpoint.waiting = waiting;
        self.write_pages();
    }

    fn write_pages(&mut self) {
        let Stage::Pages { mut device, mut page } = self.checkpoint.stage else { return };
        let Some(image) = self.checkpoint.image.take() else { return };
        while self.checkpoint.outstanding < BLOCKS_IN_FLIGHT && device < image.devices.len() {
            if page == image.page_count() {
                (device, page) = (device + 1, 0);
                continue;
            }
            let Some(slot) = self.pool.alloc() else { break };
            let dev = image.devices[device];
            let body = &mut self.checkpoint.bodies[device];
            image.encode_page(&self.journal, dev, page, body, self.pool.bytes_mut(slot));
            self.push_checkpoint_op(dev, image.offset(&self.store, page + 1), slot);
            page += 1;
        }
        let done = device == image.devices.len() && self.checkpoint.outstanding == 0;
        self.checkpoint.stage = Stage::Pages { device, page };
        self.checkpoint.image = Some(image);
        if done {
            self.checkpoint.stage = Stage::Settle { after: self.flush.want_after() };
        }
    }

    fn push_checkpoint_op(&mut self, dev: DevIndex, offset: u64, slot: Slot) {
        self.checkpoint.outstanding += 1;
        let tag = Tag { purpose: Purpose::Checkpoint { slot }, dev };
        if self.health.is_writable(dev) {
            self.push_op(tag, OpKind::Write, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
        } else {
            self.end_checkpoint_op(slot);
            self.checkpoint.failed = true;
        }
    }

    fn end_checkpoint_op(&mut self, slot: Slot) {
        self.give_metadata_slot(slot);
        self.checkpoint.outstanding -= 1;
    }

    /// A block of the checkpoint was written.
    pub(super) fn checkpoint_done(&mut self, dev: DevIndex, slot: Slot, result: Result<(), IoFault>) {
        match result {
            Ok(()) => self.flush.wrote(dev),
            Err(fault) => {
                self.checkpoint.failed = true;
                self.write_fault(dev, fault);
            }
        }
        self.end_checkpoint_op(slot);
        match self.checkpoint.stage {
            Stage::Pages { .. } => self.write_pages(),
            Stage::Headers if self.checkpoint.outstanding == 0 && planted(Planted::CheckpointUnsealed) => {
                self.end_checkpoint();
            }
            Stage::Headers if self.checkpoint.outstanding == 0 => {
                self.checkpoint.stage = Stage::Seal { after: self.flush.want_after() };
            }
            Stage::Headers => {}
            Stage::Idle | Stage::Settle { .. } | Stage::Seal { .. } => {
                unreachable!("no block is in flight then")
            }
        }
    }

    /// Flush number `number` has ended.
    pub(super) fn checkpoint_flushed(&mut self, number: u64) {
        match self.checkpoint.stage {
            Stage::Settle { after } if number > after => self.write_headers(),
            Stage::Seal { after } if number > after => self.end_checkpoint(),
            Stage::Idle
            | Stage::Pages { .. }
            | Stage::Settle { .. }
            | Stage::Headers
            | Stage::Seal { .. } => {}
        }
    }

    fn write_headers(&mut self) {
        let Some(image) = self.checkpoint.image.take() else { return };
        self.checkpoint.stage = Stage::Headers;
        for (device, &dev) in image.devices.iter().enumerate() {
            let slot = self.take_metadata_slot();
            let body = &self.checkpoint.bodies[device];
            image.encode_header(&self.journal, dev, body, self.pool.bytes_mut(slot));
            self.push_checkpoint_op(dev, image.offset(&self.store, 0), slot);
        }
        self.checkpoint.image = Some(image);
        if self.checkpoint.outstanding == 0 {
            self.checkpoint.stage = Stage::Seal { after: self.flush.want_after() };
        }
    }

    fn end_checkpoint(&mut self) {
        let Some(image) = self.checkpoint.image.take() else { return };
        self.checkpoint.stage = Stage::Idle;
        let lost = self.checkpoint.failed || image.devices.iter().any(|&dev| !self.health.is_writable(dev));
        if lost {
            // A device of the set failed: what it held is too few copies. The pages are marked again by a full one.
            let log_head = self.checkpoint.place.log_head;
            self.checkpoint.place = CheckpointPlace { log_head, ..image.place(&self.checkpoint.place) };
            self.checkpoint.waiting.append(&mut self.checkpoint.answering);
            return self.checkpoint.request_full();
        }
        self.checkpoint.place = image.place(&self.checkpoint.place);
        self.checkpoint.through = image.through;
        self.journal.trim(image.through);
        self.flush.checkpointed(image.through);
        self.stats.checkpoints += 1;
        self.note_log_tail(self.retired);
        let mut answering = std::mem::take(&mut self.checkpoint.answering);
        for request in answering.drain(..) {
            self.chunk_done(request, None);
        }
        self.checkpoint.answering = answering;
        if image.kind == CheckpointKind::Full {
            self.checkpoint.full_sealed = self.checkpoint.full_begun;
            self.maintenance_sealed(self.checkpoint.full_begun);
        }
    }

    /// Where the newest checkpoint is.
    pub fn checkpoint_place(&self) -> &CheckpointPlace {
        &self.checkpoint.place
    }
}
