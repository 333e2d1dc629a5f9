//! The core: the state that all activities share, and what is done to it at once.
//!
//! Plans are carried out here (`job.rs`, `cover.rs`, `read.rs`), requests answered, stripes locked, buffers
//! handed out, records put into frames, operations issued. What waits for something, for a flush, for time,
//! for a stripe, belongs to an activity. What one activity wants of another, or must know of it, stands on
//! the [`Board`].

use super::board::Board;
use super::cache::Cache;
use super::compute::Computer;
use super::cover::Cover;
use super::events::Events;
use super::flights::Flights;
use super::job::Job;
use super::lock::{Locks, Mode, Pending};
use super::order::Order;
use super::payload::PayloadRings;
use super::quarantine::Quarantine;
use super::read::ReadOp;
use super::request::{Done, Request};
use super::tag::Tag;
use super::tickets::Tickets;
use super::write::RoomSeen;
use super::{EngineError, EngineOptions, EngineStats, Event, FailCause, patrol};
use crate::health::{ArrayState, Health};
use crate::journal::Journal;
use crate::plan::Codeword;
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Journaling, Scheme, WriteLock};
use crate::store::Store;
use block::slab::{Key, Slab};
use block::{ChunkAddr, DevIndex, DeviceOp, IoFault, OpKind, Pool, Seq, Slot, Stream, StripeId};
use std::collections::{BTreeSet, VecDeque};

/// Frames whose copies always have buffers.
const FRAMES_SET_ASIDE: usize = 16;

/// See the module's documentation.
pub(super) struct Core {
    pub store: Store,
    pub scheme: Box<dyn Scheme>,
    pub health: Health,
    pub journal: Journal,
    pub options: EngineOptions,
    /// The time as the driver loop sees it.
    pub now_ns: u64,
    pub pool: Pool,
    pub set_aside: SetAside,
    pub requests: Slab<Request>,
    pub answers: Answers,
    pub locks: Locks,
    pub queue: WriteQueue,
    pub cache: Cache,
    pub jobs: Jobs,
    pub reads: Reads,
    pub rings: PayloadRings,
    pub freed: Quarantine,
    pub ops: Ops,
    pub board: Board,
    pub stats: EngineStats,
}

/// Buffers that are never handed out for anything else.
pub(super) struct SetAside {
    /// A chunk of zeros.
    pub zero_slot: Slot,
    /// Those that only frames, superblocks and checkpoint headers get: these must never have to wait.
    pub slots: Vec<Slot>,
    pub slots_max: usize,
}

/// Answers to requests, and those that must wait until a change of the members is on disk.
#[derive(Default)]
pub(super) struct Answers {
    pub done: Vec<Done>,
    pub held: Vec<Done>,
    /// What happens besides, for whoever keeps a log.
    pub events: Events,
    /// Operations under way that write superblocks: while there are any, answers are held.
    pub fence: u32,
    /// The members changed again meanwhile.
    pub again: bool,
}

/// Chunk writes from their request to their plan, and other work that was granted a stripe.
#[derive(Default)]
pub(super) struct WriteQueue {
    pub pending: VecDeque<Pending>,
    pub granted: VecDeque<Pending>,
    /// Partial writes whose chunk is complete now; they hold their stripe.
    pub filled: VecDeque<ChunkWrite>,
    pub batch: Vec<ChunkWrite>,
    pub refused: Vec<ChunkWrite>,
    /// What there was when writes found no room last.
    pub refusal: Option<RoomSeen>,
}

/// Plans being carried out.
pub(super) struct Jobs {
    pub table: Slab<Job>,
    /// Jobs with records, in record order.
    pub retiring: VecDeque<Key<Job>>,
    /// Jobs of activities that have ended: their owners are told next.
    pub ended: VecDeque<Key<Job>>,
    /// Records up to here have retired.
    pub retired: Seq,
    /// Where log chunks were appended whose records are not applied yet.
    pub appending: BTreeSet<u64>,
    pub computer: Computer,
    pub journaling: Journaling,
    /// For a look at a code word.
    pub scratch: Codeword,
}

/// Chunks being read, and rebuilt from their covers.
#[derive(Default)]
pub(super) struct Reads {
    pub table: Slab<ReadOp>,
    pub covers: Slab<Cover>,
    /// Covers that lack buffers.
    pub stalled: VecDeque<Key<Cover>>,
    /// Who holds one may still read what was freed since.
    pub tickets: Tickets,
}

/// Operations on devices.
pub(super) struct Ops {
    /// Those that the driver has not taken yet.
    pub list: Vec<DeviceOp>,
    pub flights: Flights,
    pub order: Order,
    /// Begun and ended since assembly.
    pub issued: u64,
    pub completed: u64,
}

impl Core {
    pub fn new(mut parts: crate::recovery::Parts, options: EngineOptions) -> Self {
        parts.scheme.configure(&parts.store, &options.scheme);
        let slot_count = options.slot_count(&parts.store.config, parts.scheme.class_count());
        let mut pool = Pool::new(parts.store.config.geometry.chunk_bytes(), slot_count);
        let zero_slot = pool.alloc().expect("a new pool is zeroed and has slots");
        let copies = parts.store.config.geometry.parity_count() + 1;
        let members = parts.health.members().len();
        let slots_max = FRAMES_SET_ASIDE * copies + 2 * members;
        let slots: Vec<Slot> = (0..slots_max).map_while(|_| pool.alloc()).collect();
        let retired = Seq::new(parts.journal.next_seq().get() - 1);
        Self {
            cache: Cache::new(&options, &parts.store.config, parts.scheme.class_count()),
            rings: PayloadRings::new(&parts.store),
            jobs: Jobs::new(parts.scheme.journaling(&parts.store), retired),
            freed: Quarantine::new(parts.store.log.tail()),
            ops: Ops::new(members, &options),
            board: Board::new(members, parts.superblock, parts.checkpoint, retired),
            store: parts.store,
            scheme: parts.scheme,
            health: parts.health,
            journal: parts.journal,
            options,
            now_ns: 0,
            pool,
            set_aside: SetAside { zero_slot, slots, slots_max },
            requests: Slab::default(),
            answers: Answers::default(),
            locks: Locks::default(),
            queue: WriteQueue::default(),
            reads: Reads::default(),
            stats: EngineStats::default(),
        }
    }

    /// Whether there are slots for a request; some are always left for the engine's own work.
    pub fn has_slots(&self, count: usize) -> bool {
        self.pool.free_count() >= count + self.options.reserved_slots(self.store.config.geometry)
    }

    /// The most slots one request can ever get.
    pub fn slots_per_request_max(&self) -> usize {
        let set_aside = self.options.reserved_slots(self.store.config.geometry) + patrol::WALKERS_MAX;
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

    pub fn push_chunk_op(&mut self, tag: Tag, kind: OpKind, stream: Stream, addr: ChunkAddr, slot: Slot) {
        let (offset_bytes, length_bytes) = (self.store.offset_of(addr), self.pool.slot_bytes() as u64);
        let class = if kind == OpKind::Write { self.scheme.class_at(addr) } else { 0 };
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
            let fault =
                self.ops.flights.last_fault(dev).expect("a fault of a member in service is noted first");
            self.fail_member(dev, FailCause::Fault(fault));
        }
    }

    /// Takes a member out of service; what it held is read through its cover from now on. If that is more
    /// than the code tolerates, the array freezes: nothing is written or promised from this moment on, not
    /// even that the member failed. When it comes back, the array is what it would be after a power cut now.
    pub fn fail_member(&mut self, dev: DevIndex, cause: FailCause) {
        if !self.health.fail(dev) {
            return;
        }
        self.ops.flights.note_failed(dev, cause);
        self.answers.events.push(Event::MemberFailed { dev, cause });
        self.board.flush.forget(dev);
        self.board.frozen |=
            self.health.array_state() == ArrayState::Failed && !planted(Planted::WriteOnWhenFailed);
        if !self.board.frozen {
            self.publish_members();
            self.board.checkpoint.request_full();
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

    pub fn finish(&mut self, done: Done) {
        self.stats.requests += 1;
        if self.answers.fence > 0 && !planted(Planted::AnswerBeforeFence) {
            self.answers.held.push(done)
        } else {
            self.answers.done.push(done)
        }
    }

    pub fn write_mode(&self) -> Mode {
        match self.scheme.write_lock() {
            WriteLock::Shared => Mode::Shared,
            WriteLock::Exclusive => Mode::Exclusive,
        }
    }

    /// Gives a stripe back; the first of a unit does so for those that joined it.
    pub fn unlock(&mut self, stripe: StripeId, mode: Mode) {
        if mode != Mode::Joined {
            self.locks.unlock(stripe, mode, &mut self.queue.granted);
        }
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
