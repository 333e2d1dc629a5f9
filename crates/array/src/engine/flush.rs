//! Making things durable: seal the records into a frame, wait for the frames, flush the devices, answer.
//!
//! One flush runs at a time; whoever asks meanwhile joins the next one (group commit).

use super::request::Request;
use super::tag::{Purpose, Tag};
use super::tickets::Tickets;
use super::{Engine, EngineError};
use crate::health::ArrayState;
use crate::journal::CopyAt;
use crate::planted::{Planted, planted};
use block::slab::Key;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Seq, Slot, Stream};
use std::collections::VecDeque;

/// Records that may be not yet durable before a flush starts by itself: bounds what recovery must verify.
const UNFLUSHED_RECORDS_MAX: u64 = 16 * 1024;

struct Run {
    number: u64,
    /// Requests that this flush answers.
    answers: Vec<Key<Request>>,
    /// Records up to here had retired when the flush began: they are durable when it ends.
    through: Seq,
    /// What the last frame of this flush says is durable.
    stamped: Seq,
    /// Frames below this number must be written before the devices are flushed.
    frames_before: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Frames,
    Devices { outstanding: u32 },
}

/// See the module's documentation.
pub(super) struct Flusher {
    wanted: Vec<Key<Request>>,
    internal: bool,
    run: Option<Run>,
    spare_answers: Vec<Key<Request>>,
    /// Devices written to since their last flush.
    unflushed: Vec<bool>,
    durable: Seq,
    /// `durable` as frames on disk, themselves durable, say.
    persisted: Seq,
    stamped: Seq,
    frames: Tickets,
    /// Copies still to be written, of every frame from the oldest that is not written on.
    copies_left: VecDeque<u32>,
    places: Vec<CopyAt>,
    begun: u64,
}

impl Flusher {
    pub(super) fn new(members: usize, durable: Seq) -> Self {
        Self {
            wanted: Vec::new(),
            internal: false,
            run: None,
            spare_answers: Vec::new(),
            unflushed: vec![false; members],
            durable,
            persisted: durable,
            stamped: durable,
            frames: Tickets::default(),
            copies_left: VecDeque::new(),
            places: Vec::new(),
            begun: 0,
        }
    }

    /// A request waits for durability.
    pub(super) fn want(&mut self, request: Key<Request>) {
        self.wanted.push(request);
    }

    /// The engine itself wants what was freed to become usable.
    pub(super) fn want_internal(&mut self) {
        self.internal = true;
    }

    /// A device was written to.
    pub(super) fn wrote(&mut self, dev: DevIndex) {
        self.unflushed[dev.index()] = true;
    }

    /// A device is out: nothing of it needs flushing.
    pub(super) fn forget(&mut self, dev: DevIndex) {
        self.unflushed[dev.index()] = false;
    }

    /// Records up to here are durable, and frames on disk say so: what they freed may be reused.
    pub(super) fn persisted(&self) -> Seq {
        self.persisted
    }

    /// The number that the next frame will have.
    pub(super) fn frames_begun(&self) -> u64 {
        self.frames.next()
    }

    /// Frames below this number are written.
    pub(super) fn frames_written(&self) -> u64 {
        self.frames.oldest()
    }

    /// A flush that begins now makes everything durable; returns the number of the last one that began before.
    pub(super) fn want_after(&mut self) -> u64 {
        self.internal = true;
        self.begun
    }

    /// A durable checkpoint holds the records up to `through`.
    pub(super) fn checkpointed(&mut self, through: Seq) {
        self.durable = self.durable.max(through);
        self.persisted = self.persisted.max(through);
    }

    /// Records up to here are durable.
    pub(super) fn durable(&self) -> Seq {
        self.durable
    }

    /// What decides how the flush goes on, but for how far records are. Flushes that made nothing durable leave no trace.
    pub(super) fn mark(&self) -> [usize; 3] {
        let stage = match &self.run {
            None => 0,
            Some(Run { stage: Stage::Frames, .. }) => 1,
            Some(Run { stage: Stage::Devices { .. }, .. }) => 2,
        };
        [stage, self.wanted.len(), usize::from(self.internal)]
    }

    pub(super) fn is_busy(&self) -> bool {
        self.run.is_some()
            || !self.wanted.is_empty()
            || self.internal
            || self.frames.oldest() != self.frames.next()
    }
}

impl Engine {
    /// Seals the frame being built and writes its copies.
    pub(super) fn emit_frame(&mut self) {
        let mut places = std::mem::take(&mut self.flush.places);
        self.journal.place_copies(&mut self.store, &self.health, &mut places);
        let frame = self.flush.frames.issue();
        self.flush.stamped = self.flush.durable;
        self.flush.copies_left.push_back(places.len() as u32);
        for &at in &places {
            let slot = self.take_metadata_slot();
            let stamp = if planted(Planted::StampTooHigh) { self.retired } else { self.flush.durable };
            self.journal.seal(at, stamp, &mut self.pool.bytes_mut(slot)[..META_BYTES]);
            let (dev, offset) = match at {
                CopyAt::Ring { dev, block } => (dev, self.store.config.journal_offset(block)),
                CopyAt::Log { dev, block } => {
                    self.health.mark_fresh_blocks(dev, block, 1);
                    (dev, self.store.config.log_offset(block))
                }
            };
            let tag = Tag { purpose: Purpose::Frame { frame, slot }, dev };
            self.push_op(tag, OpKind::Write, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
        }
        if places.is_empty() {
            self.end_frame(frame);
        }
        self.flush.places = places;
        self.journal.clear();
    }

    fn end_frame(&mut self, frame: u64) {
        let oldest = self.flush.frames.oldest();
        self.flush.frames.finish(frame);
        for _ in oldest..self.flush.frames.oldest() {
            self.flush.copies_left.pop_front();
        }
    }

    /// A copy of a frame was written.
    pub(super) fn frame_done(
        &mut self,
        dev: DevIndex,
        (frame, slot): (u64, Slot),
        result: Result<(), IoFault>,
    ) {
        self.give_metadata_slot(slot);
        match result {
            Ok(()) => self.flush.wrote(dev),
            Err(fault) => self.write_fault(dev, fault),
        }
        let index = frame - self.flush.frames.oldest();
        let left = self.flush.copies_left.get_mut(index as usize).expect("a frame is written once");
        *left -= 1;
        if *left == 0 {
            self.end_frame(frame);
        }
        self.advance_flush();
    }

    /// Starts a flush if anybody wants one.
    pub(super) fn drive_flush(&mut self) {
        if self.retired.get() - self.flush.durable.get() > UNFLUSHED_RECORDS_MAX {
            self.flush.want_internal();
        }
        if self.flush.run.is_some() || (self.flush.wanted.is_empty() && !self.flush.internal) {
            return;
        }
        self.flush.internal = false;
        if self.journal.has_records() || self.flush.stamped < self.flush.durable {
            self.emit_frame();
        }
        let mut answers = std::mem::take(&mut self.flush.spare_answers);
        std::mem::swap(&mut answers, &mut self.flush.wanted);
        self.flush.begun += 1;
        self.flush.run = Some(Run {
            number: self.flush.begun,
            answers,
            through: self.retired,
            stamped: self.flush.stamped,
            frames_before: self.flush.frames.next(),
            stage: Stage::Frames,
        });
        self.advance_flush();
    }

    fn advance_flush(&mut self) {
        let Some(run) = &mut self.flush.run else { return };
        if run.stage != Stage::Frames || self.flush.frames.oldest() < run.frames_before {
            return;
        }
        let mut outstanding = 0;
        let mut ops = Vec::new();
        for dev in self.health.writable() {
            let skip = planted(Planted::SkipDeviceFlush) && dev.get() == 1;
            if std::mem::take(&mut self.flush.unflushed[dev.index()]) && !skip {
                outstanding += 1;
                ops.push(Tag { purpose: Purpose::Flush, dev });
            }
        }
        run.stage = Stage::Devices { outstanding };
        for tag in ops {
            self.push_op(tag, OpKind::Flush, Stream::Metadata, 0, 0, None);
        }
        if outstanding == 0 {
            self.end_flush();
        }
    }

    /// A device was flushed.
    pub(super) fn device_flush_done(&mut self, dev: DevIndex, result: Result<(), IoFault>) {
        if let Err(fault) = result {
            self.write_fault(dev, fault);
        }
        let Some(Run { stage: Stage::Devices { outstanding }, .. }) = &mut self.flush.run else {
            unreachable!("device flushes belong to the running flush");
        };
        *outstanding -= 1;
        if *outstanding == 0 {
            self.end_flush();
        }
    }

    /// The devices are flushed. If one of them failed meanwhile, what it held counts as durable only when the others know of
    /// that: should it come back after a crash, it must not pass for whole.
    fn end_flush(&mut self) {
        if self.fence > 0 && !self.frozen && !planted(Planted::DurableBeforeFence) {
            return; // `end_publishing` comes back
        }
        let Some(mut run) = self.flush.run.take() else { return };
        let failed = self.health.array_state() == ArrayState::Failed;
        if !self.frozen {
            self.flush.durable = self.flush.durable.max(run.through);
            self.flush.persisted = self.flush.persisted.max(run.stamped);
            self.stats.flushes += 1;
        }
        for request in run.answers.drain(..) {
            self.close(request, if failed { Err(EngineError::ArrayFailed) } else { Ok(()) });
        }
        self.flush.spare_answers = run.answers;
        self.release_quarantine();
        self.payload_flushed(run.number);
        self.checkpoint_flushed(run.number);
        self.maintenance_flushed(run.number);
    }

    /// Whoever has waited for durability, a commit or a checkpoint for too long is told that there is no room for it now; what
    /// is under way goes on.
    pub(super) fn refuse_late(&mut self, error: EngineError) {
        let mut wanted = std::mem::take(&mut self.flush.wanted);
        self.refuse_late_of(&mut wanted, error);
        self.flush.wanted = wanted;
        if let Some(mut answers) = self.flush.run.as_mut().map(|run| std::mem::take(&mut run.answers)) {
            self.refuse_late_of(&mut answers, error);
            self.flush.run.as_mut().expect("nothing ended it").answers = answers;
        }
        self.refuse_late_commits(error);
        self.refuse_late_checkpoints(error);
        self.refuse_late_behind_cache(error);
    }

    /// Refuses those of some requests that have waited for too long.
    pub(super) fn refuse_late_of(&mut self, list: &mut Vec<Key<Request>>, error: EngineError) {
        let latest_ns = self.now_ns.saturating_sub(self.options.room_wait_ns);
        list.retain(|&request| {
            let is_late = self.requests[request].since_ns <= latest_ns;
            if is_late {
                self.close(request, Err(error));
            }
            !is_late
        });
    }

    /// A change of the members is on disk: a flush that waited for it ends.
    pub(super) fn flush_unfenced(&mut self) {
        let waits = matches!(self.flush.run, Some(Run { stage: Stage::Devices { outstanding: 0 }, .. }));
        if waits && !planted(Planted::ForgetFencedFlush) {
            self.end_flush();
        }
    }

    /// Whether a frame on disk lags behind what is known durable, so that one more flush would free space.
    pub(super) fn flush_would_free(&self) -> bool {
        self.quarantine.front().is_some_and(|q| q.seq > self.flush.persisted() && q.seq <= self.retired)
    }

    /// What is durable.
    pub fn durable_through(&self) -> Seq {
        self.flush.durable()
    }
}
