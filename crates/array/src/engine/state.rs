//! What is done to the core at once: the activities share its state, and everything here is over when it
//! returns.
//!
//! Plans are carried out in `job.rs`, `cover.rs` and `read.rs`, requests answered in `request.rs`; here are
//! the members, the buffers, the stripes and the operations. What activities want of each other stands on the
//! [`Board`].

use super::board::Board;
use super::cache::Cache;
use super::compute::Computer;
use super::events::Events;
use super::flights::Flights;
use super::lock::{Locks, Mode};
use super::order::Order;
use super::payload::PayloadRings;
use super::quarantine::Quarantine;
use super::request::Done;
use super::share::Sharing;
use super::sums::Sums;
use super::trim::stretch_chunks;
use super::{
    Answers, Core, EngineError, EngineOptions, EngineStats, Event, Jobs, Ops, Reads, SetAside, Tag,
    WriteQueue, untorn,
};
use crate::fault::FailCause;
use crate::health::ArrayState;
use crate::plan::Codeword;
use crate::planted::{Planted, planted};
use crate::scheme::{self, Journaling, Policies, WriteLock};
use crate::table::Extent;
use block::slab::Slab;
use block::{ChunkAddr, DevIndex, DeviceOp, IoFault, OpKind, Pool, Seq, Slot, Stream, StripeId};
use std::collections::{BTreeSet, VecDeque};

/// Frames whose copies always have buffers.
const FRAMES_SET_ASIDE: usize = 16;

impl Core {
    pub fn new(mut parts: crate::recovery::Parts, options: EngineOptions, policies: Policies) -> Self {
        parts.scheme.configure(&parts.store, &options.scheme);
        if let Some(classes) = parts.scheme.classes_mut() {
            classes.use_policies(policies);
        }
        let slot_count = options.slot_count(&parts.store.config, parts.scheme.class_count());
        let mut pool = Pool::in_pieces(parts.store.config.geometry.chunk_bytes(), slot_count);
        let copies = parts.store.config.geometry.parity_count() + 1;
        let (members, main_count) = (parts.health.members().len(), parts.store.main_count());
        let mut set_aside = SetAside::new(FRAMES_SET_ASIDE * copies + 2 * members, &mut pool);
        parts.scheme.take_buffers(&parts.store, &mut pool);
        set_aside.fill(&mut pool);
        let retired = Seq::new(parts.journal.next_seq().get() - 1);
        let mut core = Self {
            cache: Cache::new(&options, &parts.store.config, parts.scheme.class_count()),
            rings: PayloadRings::new(&parts.store),
            jobs: Jobs::new(scheme::journaling(&parts.store.config), retired),
            freed: Quarantine::new(
                parts.store.log.tail(),
                stretch_chunks(&parts.store.config, options.discard.old_bytes),
            ),
            ops: Ops::new(members, &options),
            board: Board::new((members, main_count), parts.superblock, parts.checkpoint, retired),
            answers: Answers { events: Events::of_assembly(&parts.health), ..Answers::default() },
            store: parts.store,
            scheme: parts.scheme,
            health: parts.health,
            journal: parts.journal,
            options,
            now_ns: 0,
            pool,
            set_aside,
            requests: Slab::default(),
            locks: Locks::default(),
            queue: WriteQueue::default(),
            reads: Reads::default(),
            stats: EngineStats::default(),
        };
        core.prepare_pages();
        core.queue.untorn_order = untorn::order_for(&core.options.scheme, &core.store, &*core.scheme);
        core
    }

    /// Whether there are slots for a request; some are always left for the engine's own work.
    pub fn has_slots(&self, count: usize) -> bool {
        self.pool.free_count() >= count + self.options.reserved_slots(&self.store.config)
    }

    /// The most slots one request can ever get.
    pub fn slots_per_request_max(&self) -> usize {
        let set_aside = self.options.reserved_slots(&self.store.config)
            + super::config::WALKERS_MAX
            + self.options.page_slots(&self.store.config)
            + self.options.scheme.cache_slots(&self.store.config);
        (self.pool.slot_count() - set_aside) / 2
    }

    /// A buffer for a frame, a superblock or a checkpoint header.
    pub fn take_metadata_slot(&mut self) -> Slot {
        self.set_aside.slots.pop().or_else(|| self.pool.alloc()).expect("slots for metadata are set aside")
    }

    /// Gives back what [`Engine::take_metadata_slot`] gave.
    pub fn give_metadata_slot(&mut self, slot: Slot) {
        if self.set_aside.slots.len() < self.set_aside.slots_max {
            self.set_aside.slots.push(slot);
        } else {
            self.pool.free(slot);
        }
    }

    /// Whether new work may be recorded: the journal has room, and frames have buffers.
    pub fn may_record(&self) -> bool {
        self.journal.has_room(&self.health) && self.set_aside.slots.len() * 2 >= self.set_aside.slots_max
    }

    pub fn push_op(
        &mut self,
        tag: Tag,
        kind: OpKind,
        stream: Stream,
        offset_bytes: u64,
        length_bytes: u64,
        slot: Option<Slot>,
    ) {
        let dev = tag.dev;
        self.issue(tag, DeviceOp { tag: 0, dev, kind, stream, class: 0, offset_bytes, length_bytes, slot });
    }

    /// Whether the scheme may keep classes of chunks apart: others are not asked for each chunk.
    #[inline]
    pub fn has_classes(&self) -> bool {
        self.store.config.scheme.is_elastic()
    }

    #[inline(always)]
    pub fn push_chunk_op(&mut self, tag: Tag, kind: OpKind, stream: Stream, addr: ChunkAddr, slot: Slot) {
        let (offset_bytes, length_bytes) = (self.store.offset_of(addr), self.pool.slot_bytes() as u64);
        let in_class = kind == OpKind::Write && self.has_classes() && !self.store.is_log(addr.dev);
        let class = if in_class { self.scheme.class_at(addr) } else { 0 };
        let (dev, slot) = (tag.dev, Some(slot));
        self.issue(tag, DeviceOp { tag: 0, dev, kind, stream, class, offset_bytes, length_bytes, slot });
    }

    /// A write or flush failed: the device is out. Answers wait until the other members know. Of a frozen
    /// array, or a device that is out already, nothing was asked for; and a write that found no room says
    /// nothing about the device.
    pub fn write_fault(&mut self, dev: DevIndex, fault: IoFault) {
        if !self.board.frozen && fault != IoFault::NoSpace && self.health.is_writable(dev) {
            self.health.errors_mut(dev).write += 1;
            self.fail_for_fault(dev);
        }
    }

    /// An operation of a member has just ended with a fault that takes it out of service.
    pub fn fail_for_fault(&mut self, dev: DevIndex) {
        if self.health.is_writable(dev) {
            let fault = self.health.last_fault(dev).expect("a fault of a member in service is noted first");
            self.fail_member(dev, FailCause::Fault(fault));
        }
    }

    /// Takes a member out of service; what it held is read through its cover from now on. If that is more
    /// than the code tolerates, the array freezes: nothing is written or promised from this moment on, not
    /// even that the member failed. When it comes back, the array is what it would be after a power cut now.
    pub fn fail_member(&mut self, dev: DevIndex, cause: FailCause) {
        if !self.health.is_writable(dev) {
            return;
        }
        let was_whole = !self.health.is_rebuilding(dev);
        let before = self.health.take_away(dev);
        self.health.fail(dev, cause);
        // Of one that is not what it was, a file cut short or another's, nobody knows what it lacks.
        let is_itself = !matches!(cause, FailCause::Unfit(_));
        if is_itself && (was_whole || before.is_some()) {
            self.note_left(dev, before);
        }
        self.answers.events.push(Event::MemberFailed { dev, cause });
        self.board.flush.forget(dev);
        self.board.frozen |=
            self.health.array_state() == ArrayState::Failed && !planted(Planted::WriteOnWhenFailed);
        let untold = matches!(cause, FailCause::Silent { .. }) && planted(Planted::SilenceUntold);
        if !self.board.frozen && !untold {
            self.publish_members();
            self.board.checkpoint.request(Extent::Unsaved);
        }
        self.give_up(dev);
    }

    /// Operations on a member that have not ended. Another device may take its place only when there are
    /// none: the end of an old write must not pass for one on the new device.
    pub fn in_flight(&self, dev: DevIndex) -> u32 {
        self.ops.flights.count(dev)
    }

    /// Whether writes are accepted.
    pub fn accepts_writes(&self) -> bool {
        self.refusal().is_none()
    }

    /// Why writes are not accepted.
    pub fn refusal(&self) -> Option<EngineError> {
        if self.health.array_state() == ArrayState::Failed {
            Some(EngineError::ArrayFailed)
        } else {
            self.board.read_only.then_some(EngineError::Stopping)
        }
    }

    #[inline]
    pub fn finish(&mut self, done: Done) {
        self.stats.requests += 1;
        if self.answers.fence && !planted(Planted::AnswerBeforeFence) {
            self.answers.held.push(done)
        } else {
            self.answers.done.push(done)
        }
    }

    pub fn write_mode(&self) -> Mode {
        match scheme::write_lock(&self.store.config) {
            WriteLock::Shared => Mode::Shared,
            WriteLock::Exclusive => Mode::Exclusive,
        }
    }

    /// Gives a stripe back; the first of a unit does so for those that joined it.
    pub fn unlock(&mut self, stripe: StripeId, mode: Mode) {
        if mode != Mode::Joined {
            let is_free = self.locks.unlock(stripe, mode, &mut self.queue.granted);
            if is_free && self.store.table.is_paged() {
                self.store.table.unpin(self.store.table.page_of(stripe));
            }
        }
    }
}

impl SetAside {
    /// A chunk of zeros, and none yet of so many for metadata.
    pub(super) fn new(slots_max: usize, pool: &mut Pool) -> Self {
        let zero_slot = pool.alloc().expect("the pool was made with room for it");
        pool.bytes_mut(zero_slot).fill(0);
        Self { zero_slot, slots: Vec::new(), slots_max }
    }

    /// Takes those for metadata.
    pub(super) fn fill(&mut self, pool: &mut Pool) {
        self.slots.extend((self.slots.len()..self.slots_max).map_while(|_| pool.alloc()));
    }

    /// Gives them back.
    pub(super) fn give_back(&mut self, pool: &mut Pool) {
        pool.free(self.zero_slot);
        self.slots.drain(..).for_each(|slot| pool.free(slot));
    }
}

impl Jobs {
    fn new(journaling: Journaling, retired: Seq) -> Self {
        Self {
            table: Slab::default(),
            retiring: VecDeque::new(),
            ended: VecDeque::new(),
            retired,
            appending: BTreeSet::new(),
            computer: Computer::default(),
            sums: Sums::default(),
            sharing: Sharing::default(),
            journaling,
            scratch: Codeword::default(),
        }
    }
}

impl Ops {
    fn new(members: usize, options: &EngineOptions) -> Self {
        let (flights, order) = (Flights::new(members, options), Order::default());
        Self { list: Vec::new(), flights, order, issued: 0, completed: 0 }
    }
}
