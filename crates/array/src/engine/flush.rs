//! Making things durable: seal the records into a frame, wait for the frames, flush the devices, answer.
//!
//! One flush runs at a time; whoever asks meanwhile joins the next one (group commit).

use super::request::Request;
use super::tickets::Tickets;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError};
use super::{Purpose, Tag};
use crate::away::Unsure;
use crate::health::ArrayState;
use crate::journal::CopyAt;
use crate::planted::{Planted, planted};
use block::slab::Key;
use block::{ChunkAddr, DevIndex, IoFault, META_BYTES, OpKind, Seq, Slot, Stream};
use std::collections::VecDeque;

/// Records that may be not yet durable before a flush starts by itself: bounds what recovery must verify.
const UNFLUSHED_RECORDS_MAX: u64 = 2 * 1024;

/// What is known durable, who wants more to be, and the frames that say so.
pub(super) struct FlushBoard {
    /// Requests that wait for durability.
    wanted: Vec<Key<Request>>,
    internal: bool,
    /// Records of a durable request came: it will want a flush when its chunks are written.
    expected: bool,
    /// Flushes begun in this assembly.
    begun: u64,
    /// A flush has ended: its number, until everybody was told.
    pub ended: Option<u64>,
    /// A change of the members is on disk: a flush that waited for it may end.
    pub unfenced: bool,
    /// Devices written to since their last flush.
    unflushed: Vec<bool>,
    durable: Seq,
    /// `durable` as frames on disk, themselves durable, say.
    persisted: Seq,
    stamped: Seq,
    /// Chunks that no flush that has ended covers.
    unsure: Unsure,
    frames: Frames,
}

/// Frames on their way to the devices.
struct Frames {
    tickets: Tickets,
    /// Copies still to be written, of every frame from the oldest that is not written on.
    copies_left: VecDeque<u32>,
    places: Vec<CopyAt>,
}

impl FlushBoard {
    pub(super) fn new(members: usize, main_count: usize, durable: Seq) -> Self {
        Self {
            wanted: Vec::new(),
            internal: false,
            expected: false,
            begun: 0,
            ended: None,
            unfenced: false,
            unflushed: vec![false; members],
            durable,
            persisted: durable,
            stamped: durable,
            unsure: Unsure::new(main_count),
            frames: Frames { tickets: Tickets::default(), copies_left: VecDeque::new(), places: Vec::new() },
        }
    }

    /// A request waits for durability.
    pub(super) fn want(&mut self, request: Key<Request>) {
        self.wanted.push(request);
    }

    /// A request will wait for durability when its chunks are written.
    pub(super) fn expect(&mut self) {
        self.expected = true;
    }

    /// The engine itself wants what was freed to become usable.
    pub(super) fn want_internal(&mut self) {
        self.internal = true;
    }

    /// A device was written to.
    pub(super) fn wrote(&mut self, dev: DevIndex) {
        self.unflushed[dev.index()] = true;
    }

    /// A chunk was written to a device.
    #[inline]
    pub(super) fn wrote_chunk(&mut self, addr: ChunkAddr) {
        self.unflushed[addr.dev.index()] = true;
        self.unsure.wrote(addr, self.begun);
    }

    /// What of a device no flush that has ended covers.
    pub(super) fn unsure(&self) -> &Unsure {
        &self.unsure
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
        self.frames.tickets.next()
    }

    /// Frames below this number are written.
    pub(super) fn frames_written(&self) -> u64 {
        self.frames.tickets.oldest()
    }

    /// A flush that begins now makes everything durable; returns the number of the last one that began
    /// before.
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
}

impl Core {
    /// Seals the frame being built and writes its copies.
    pub(super) fn emit_frame(&mut self) {
        let FlushBoard { frames: Frames { tickets, places, .. }, unflushed, .. } = &mut self.board.flush;
        let (frame, mut places) = (tickets.issue(), std::mem::take(places));
        let flights = &self.ops.flights;
        let to_flush = |dev: DevIndex| unflushed[dev.index()] || flights.count(dev) > 0;
        self.journal.place_copies(frame, &mut self.store, &self.health, &to_flush, &mut places);
        self.board.flush.stamped = self.board.flush.durable;
        self.board.flush.frames.copies_left.push_back(places.len() as u32);
        for &at in &places {
            let slot = self.take_metadata_slot();
            let stamp =
                if planted(Planted::StampTooHigh) { self.jobs.retired } else { self.board.flush.durable };
            self.journal.seal(at, stamp, &mut self.pool.bytes_mut(slot)[..META_BYTES]);
            let (dev, offset) = (at.dev(), at.offset(&self.store));
            if let CopyAt::Log { block, .. } = at {
                self.health.mark_fresh_blocks(dev, block, 1);
            }
            let tag = Tag { purpose: Purpose::Frame { frame, slot }, dev };
            self.push_op(tag, OpKind::Write, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
        }
        if places.is_empty() {
            self.end_frame(frame);
        }
        self.board.flush.frames.places = places;
        self.journal.sealed();
    }

    fn end_frame(&mut self, frame: u64) {
        let oldest = self.board.flush.frames.tickets.oldest();
        self.board.flush.frames.tickets.finish(frame);
        for _ in oldest..self.board.flush.frames.tickets.oldest() {
            self.board.flush.frames.copies_left.pop_front();
        }
    }

    /// A copy of a frame was written.
    fn frame_written(&mut self, dev: DevIndex, (frame, slot): (u64, Slot), result: Result<(), IoFault>) {
        self.give_metadata_slot(slot);
        match result {
            Ok(()) => self.board.flush.wrote(dev),
            Err(fault) => self.write_fault(dev, fault),
        }
        let Frames { tickets, copies_left, .. } = &mut self.board.flush.frames;
        let index = frame - tickets.oldest();
        let left = copies_left.get_mut(index as usize).expect("a frame is written once");
        *left -= 1;
        if *left == 0 {
            self.end_frame(frame);
        }
    }

    /// Whether a frame on disk lags behind what is known durable, so that one more flush would free space.
    pub(super) fn flush_would_free(&self) -> bool {
        let (persisted, retired) = (self.board.flush.persisted(), self.jobs.retired);
        self.freed.quarantine.front().is_some_and(|freed| freed.seq > persisted && freed.seq <= retired)
    }
}

/// A flush under way.
struct FlushRound {
    number: u64,
    /// Requests that this flush answers.
    answers: Vec<Key<Request>>,
    /// Records up to here had retired when the flush began: they are durable when it ends.
    through: Seq,
    /// What the last frame of this flush says is durable.
    stamped: Seq,
    /// Frames below this number must be written before the devices are flushed.
    frames_before: u64,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Frames,
    Devices { outstanding: u32 },
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Flusher {
    round: Option<FlushRound>,
    /// The last flush that requests waited for was shared by several.
    shared: bool,
    spare_answers: Vec<Key<Request>>,
}

impl Flusher {
    /// A copy of a frame was written.
    pub(super) fn frame_done(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        copy: (u64, Slot),
        result: Result<(), IoFault>,
    ) {
        core.frame_written(dev, copy, result);
        self.advance(core);
    }

    fn advance(&mut self, core: &mut Core) {
        let Some(round) = &mut self.round else { return };
        if round.step != Step::Frames || core.board.flush.frames.tickets.oldest() < round.frames_before {
            return;
        }
        let mut outstanding = 0;
        let mut ops = Vec::new();
        for dev in core.health.writable() {
            let skip = planted(Planted::SkipDeviceFlush) && dev.get() == 1;
            if std::mem::take(&mut core.board.flush.unflushed[dev.index()]) && !skip {
                outstanding += 1;
                ops.push(Tag { purpose: Purpose::Flush, dev });
            }
        }
        round.step = Step::Devices { outstanding };
        for tag in ops {
            core.push_op(tag, OpKind::Flush, Stream::Metadata, 0, 0, None);
        }
        if outstanding == 0 {
            self.end(core);
        }
    }

    /// A device was flushed.
    pub(super) fn device_flushed(&mut self, core: &mut Core, dev: DevIndex, result: Result<(), IoFault>) {
        if let Err(fault) = result {
            core.write_fault(dev, fault);
        }
        let Some(FlushRound { step: Step::Devices { outstanding }, .. }) = &mut self.round else {
            unreachable!("device flushes belong to the running flush");
        };
        *outstanding -= 1;
        if *outstanding == 0 {
            self.end(core);
        }
    }

    /// The devices are flushed. If one of them failed meanwhile, what it held counts as durable only when the
    /// others know of that: should it come back after a crash, it must not pass for whole.
    fn end(&mut self, core: &mut Core) {
        if core.answers.fence && !core.board.frozen && !planted(Planted::DurableBeforeFence) {
            return; // `unfenced` comes back
        }
        let Some(mut round) = self.round.take() else { return };
        let failed = core.health.array_state() == ArrayState::Failed;
        if !core.board.frozen {
            core.board.flush.durable = core.board.flush.durable.max(round.through);
            core.board.flush.persisted = core.board.flush.persisted.max(round.stamped);
            core.board.flush.unsure.flushed(round.number);
            core.journal.settle(round.frames_before);
            core.stats.flushes += 1;
        }
        for request in round.answers.drain(..) {
            core.close(request, if failed { Err(EngineError::ArrayFailed) } else { Ok(()) });
        }
        self.spare_answers = round.answers;
        core.release_quarantine();
        core.board.flush.ended = Some(round.number);
    }

    /// Whoever has waited for durability for too long is told that it cannot be had now; the flush itself
    /// goes on.
    pub(super) fn refuse_late(&mut self, core: &mut Core, error: EngineError) {
        let mut wanted = std::mem::take(&mut core.board.flush.wanted);
        core.refuse_late(&mut wanted, error);
        core.board.flush.wanted = wanted;
        if let Some(round) = &mut self.round {
            core.refuse_late(&mut round.answers, error);
        }
    }

    /// A change of the members is on disk: a flush that waited for it ends.
    pub(super) fn unfenced(&mut self, core: &mut Core) {
        let waits = matches!(self.round, Some(FlushRound { step: Step::Devices { outstanding: 0 }, .. }));
        if waits && !planted(Planted::ForgetFencedFlush) {
            self.end(core);
        }
    }
}

impl Activity for Flusher {
    /// Starts a flush if anybody wants one.
    fn drive(&mut self, core: &mut Core) {
        let board = &mut core.board.flush;
        if core.jobs.retired.get() - board.durable.get() > UNFLUSHED_RECORDS_MAX {
            board.want_internal();
        }
        if self.round.is_some() {
            return;
        }
        let expected = std::mem::take(&mut board.expected);
        if board.wanted.is_empty() && !board.internal {
            // The frame leaves with the chunks that it describes, on a log device in one write with them.
            // Where requests share flushes it waits for more of them.
            if expected && !self.shared && core.journal.has_records() {
                core.emit_frame();
            }
            return;
        }
        board.internal = false;
        if core.journal.has_records() || board.stamped < board.durable {
            core.emit_frame();
        }
        let board = &mut core.board.flush;
        let mut answers = std::mem::take(&mut self.spare_answers);
        std::mem::swap(&mut answers, &mut board.wanted);
        self.shared = if answers.is_empty() { self.shared } else { answers.len() > 1 };
        board.begun += 1;
        self.round = Some(FlushRound {
            number: board.begun,
            answers,
            through: core.jobs.retired,
            stamped: board.stamped,
            frames_before: board.frames.tickets.next(),
            step: Step::Frames,
        });
        self.advance(core);
    }

    /// A flush of a frozen array makes nothing durable, and says so to whoever waits for it.
    fn drive_frozen(&mut self, core: &mut Core) {
        self.drive(core);
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    fn is_busy(&self, core: &Core) -> bool {
        let board = &core.board.flush;
        let writes_frames = board.frames_written() != board.frames_begun();
        self.round.is_some() || !board.wanted.is_empty() || board.internal || writes_frames
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        self.is_busy(core).then_some("a flush")
    }
}

impl Marked for Flusher {
    type Mark = [u64; 3];

    /// But for how far records are. Flushes that made nothing durable leave no trace.
    fn mark(&self, core: &Core) -> Self::Mark {
        let step = match &self.round {
            None => 0,
            Some(FlushRound { step: Step::Frames, .. }) => 1,
            Some(FlushRound { step: Step::Devices { .. }, .. }) => 2,
        };
        [step, count(core.board.flush.wanted.len()), u64::from(core.board.flush.internal)]
    }
}
