//! The sans-I/O core: requests and completions in, device operations and answers out.
//!
//! No threads, no clock, no randomness, no I/O. A driver loop calls [`Engine::write`] and its like, [`Engine::pump`],
//! carries out [`Engine::take_ops`], feeds [`Engine::complete`], and hands [`Engine::take_done`] to whoever asked.
//! What happens to the array besides is told by [`Engine::take_events`].
//!
//! A unit of work is a *job*: a plan and its progress. Jobs that record something retire in the order of their records,
//! so that live state is always what replay of a prefix of the journal gives.

mod background;
mod cache;
mod checkpoint;
mod collect;
mod compute;
mod config;
mod confirm;
mod cover;
mod events;
mod flights;
mod flush;
mod history;
mod job;
mod lock;
mod lost;
mod maintain;
mod order;
mod pace;
mod patrol;
mod payload;
mod read;
mod request;
mod stop;
mod tag;
mod tickets;
mod trim;
mod wake;
mod write;
mod zero;

pub use cache::Entry;
pub use config::{CommitPolicy, Content, EngineOptions, SyncPolicy};
pub use events::{Event, HoldUp, WorkOrigin};
pub use flights::MemberTrouble;
pub use lost::Losses;
pub use maintain::{MaintenanceReport, Progress, WorkKind};
pub use patrol::{Finding, PatrolPolicy};
pub use request::{Done, Durability, EngineError, Request};

use crate::fault::FailCause;
use crate::health::{ArrayState, Health};
use crate::journal::Journal;
use crate::plan::Codeword;
use crate::planted::{Planted, planted};
use crate::scheme::{self, ChunkWrite, Journaling, Scheme, WriteLock};
use crate::store::{Run, Store};
use block::slab::{Key, Slab};
use block::{ChunkAddr, DevIndex, DeviceOp, IoFault, OpKind, Pool, Seq, Slot, Stream, StripeId};
use lock::{Locks, Mode};
use std::collections::{BTreeSet, VecDeque};
use tag::{Purpose, Tag};
use tickets::Tickets;

/// Work that waits for a stripe, or has it and waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pending {
    mode: Mode,
    work: Work,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// A chunk write.
    Write(ChunkWrite),
    /// A healthy read of an in-place scheme, which must not see a write half done.
    Read { read: Key<read::ReadOp>, stripe: StripeId },
    /// A discard that waits for its first stripe.
    Zero { range: Key<zero::ZeroRange>, stripe: StripeId },
    /// Parity commit of the stripe.
    Commit(StripeId),
    /// Rebuild or scrub of the stripe.
    Maintain(StripeId),
}

impl Pending {
    fn of_write(write: ChunkWrite, mode: Mode) -> Self {
        Self { mode, work: Work::Write(write) }
    }

    /// The chunk write, if it is one.
    fn write(&self) -> Option<&ChunkWrite> {
        match &self.work {
            Work::Write(write) => Some(write),
            Work::Read { .. } | Work::Zero { .. } | Work::Commit(_) | Work::Maintain(_) => None,
        }
    }
}

/// Figures since assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EngineStats {
    /// Chunks that requests wrote, partial ones included.
    pub user_chunks_written: u64,
    /// Chunks that requests read.
    pub user_chunks_read: u64,
    /// Requests completed.
    pub requests: u64,
    /// Log stripes written, and their members: the mean width is members / stripes.
    pub log_stripes: u64,
    /// Members of those.
    pub log_members: u64,
    /// Full stripes written straight to the main array.
    pub full_stripes: u64,
    /// Elastic stripes written with fewer than k chunks.
    pub short_stripes: u64,
    /// Parity commits of a stripe.
    pub stripes_committed: u64,
    /// Commit runs.
    pub commits: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Flushes carried out.
    pub flushes: u64,
    /// How often writes found no room and had to wait.
    pub refusals: u64,
    /// Chunks read from the write cache.
    pub cache_hits: u64,
    /// Chunks that were overwritten in the write cache before they were written.
    pub cache_absorbed: u64,
    /// Chunks that were rebuilt from their cover to answer a read.
    pub covers: u64,
    /// Chunks whose content could not be had at all.
    pub lost: u64,
    /// Chunks that were bad on their device and were written anew.
    pub healed: u64,
}

struct Quarantined {
    /// The record that freed it: must be known durable, on disk, before reuse.
    seq: Seq,
    /// Reads that began before must have ended.
    ticket: u64,
    what: Freed,
}

enum Freed {
    Chunks(Run),
    /// By a discard.
    Discarded(Run),
    LogTail(u64),
}

/// See the module's documentation.
pub struct Engine {
    store: Store,
    scheme: Box<dyn Scheme>,
    health: Health,
    journal: Journal,
    pool: Pool,
    options: EngineOptions,
    now_ns: u64,

    requests: Slab<request::Request>,
    locks: Locks,
    pending: VecDeque<Pending>,
    granted: VecDeque<Pending>,
    jobs: Slab<job::Job>,
    /// Jobs with records, in record order.
    retiring: VecDeque<Key<job::Job>>,
    reads: Slab<read::ReadOp>,
    covers: Slab<cover::Cover>,
    stalled_covers: VecDeque<Key<cover::Cover>>,
    tickets: Tickets,
    quarantine: VecDeque<Quarantined>,
    log_tail_noted: u64,
    /// Where log chunks were appended whose records are not applied yet.
    appending: BTreeSet<u64>,
    /// Freed by discards, about to be released.
    discarded: Vec<Run>,
    trims: Slab<Run>,
    computer: compute::Computer,
    /// For a look at a code word.
    scratch_word: Codeword,
    retired: Seq,
    flush: flush::Flusher,
    cache: cache::Cache,
    payload: payload::Payloads,
    journaling: Journaling,
    background: background::Background,
    collection: collect::Collection,
    checkpoint: checkpoint::Checkpointer,
    maintain: maintain::Maintenance,
    patrol: patrol::Patrol,
    lost: lost::LossList,

    ops: Vec<DeviceOp>,
    flights: flights::Flights,
    order: order::Order,
    /// More members are lost than the code tolerates: nothing is written any more.
    frozen: bool,
    done: Vec<Done>,
    events: events::Events,
    /// Answers held back until a change of the members is on disk.
    held: Vec<Done>,
    fence: u32,
    refence: bool,
    stats: EngineStats,
    /// Partial writes whose chunk is complete now; they hold their stripe.
    filled: VecDeque<ChunkWrite>,
    zeros: VecDeque<zero::ZeroRange>,
    /// Discards that wait for a stripe.
    queued_zeros: Slab<zero::ZeroRange>,
    /// Operations begun and ended since assembly.
    issued: u64,
    completed: u64,
    /// The state that the last pump began with.
    seen: wake::Mark,
    /// A chunk of zeros.
    zero_slot: Slot,
    batch: Vec<ChunkWrite>,
    refused: Vec<ChunkWrite>,
    /// What there was when writes found no room last.
    refusal: Option<write::Room>,
    room_made: u64,
    /// Buffers that only frames, superblocks and checkpoint headers get: these must never have to wait.
    metadata_slots: Vec<Slot>,
    metadata_slots_max: usize,
}

/// Frames whose copies always have buffers.
const FRAMES_SET_ASIDE: usize = 16;
/// With so many jobs under way no batch of writes and no stretch of a discard begins: devices have enough to choose from then,
/// and what comes meanwhile makes larger batches.
const JOBS_MAX: usize = 64;

impl Engine {
    pub(crate) fn new(mut parts: crate::recovery::Parts, options: EngineOptions) -> Self {
        parts.scheme.configure(&parts.store, &options.scheme);
        let slot_count = options.slot_count(&parts.store.config, parts.scheme.class_count());
        let mut pool = Pool::new(parts.store.config.geometry.chunk_bytes(), slot_count);
        let zero_slot = pool.alloc().expect("a new pool is zeroed and has slots");
        let copies = parts.store.config.geometry.parity_count() + 1;
        let metadata_slots_max = FRAMES_SET_ASIDE * copies + 2 * parts.health.members().len();
        let metadata_slots: Vec<Slot> = (0..metadata_slots_max).map_while(|_| pool.alloc()).collect();
        let patrol = patrol::Patrol::new(&mut pool);
        let events = events::Events::of_assembly(&parts.health);
        let retired = Seq::new(parts.journal.next_seq().get() - 1);
        let checkpoint = checkpoint::Checkpointer::new(parts.checkpoint, retired);
        Self {
            flights: flights::Flights::new(parts.health.members().len(), &options),
            log_tail_noted: parts.store.log.tail(),
            flush: flush::Flusher::new(parts.health.members().len(), retired),
            cache: cache::Cache::new(&options, &parts.store.config, parts.scheme.class_count()),
            payload: payload::Payloads::new(&parts.store),
            journaling: scheme::journaling(&parts.store.config),
            background: background::Background::default(),
            collection: collect::Collection::default(),
            lost: lost::LossList::new(parts.superblock.lost_chunks),
            maintain: maintain::Maintenance::new(parts.superblock),
            patrol,
            store: parts.store,
            scheme: parts.scheme,
            health: parts.health,
            journal: parts.journal,
            pool,
            options,
            now_ns: 0,
            requests: Slab::default(),
            locks: Locks::default(),
            pending: VecDeque::new(),
            granted: VecDeque::new(),
            jobs: Slab::default(),
            retiring: VecDeque::new(),
            reads: Slab::default(),
            covers: Slab::default(),
            stalled_covers: VecDeque::new(),
            tickets: Tickets::default(),
            quarantine: VecDeque::new(),
            appending: BTreeSet::new(),
            discarded: Vec::new(),
            trims: Slab::default(),
            computer: compute::Computer::default(),
            scratch_word: Codeword::default(),
            retired,
            checkpoint,
            ops: Vec::new(),
            order: order::Order::default(),
            frozen: false,
            done: Vec::new(),
            events,
            held: Vec::new(),
            fence: 0,
            refence: false,
            stats: EngineStats::default(),
            filled: VecDeque::new(),
            zeros: VecDeque::new(),
            queued_zeros: Slab::default(),
            issued: 0,
            completed: 0,
            seen: wake::Mark::default(),
            zero_slot,
            batch: Vec::new(),
            refused: Vec::new(),
            refusal: None,
            room_made: 0,
            metadata_slots,
            metadata_slots_max,
        }
    }

    /// The buffers: callers take the slots of their requests here and give them back when those are done.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Whether there are slots for a request; some are always left for the engine's own work.
    pub fn has_slots(&self, count: usize) -> bool {
        self.pool.free_count() >= count + self.options.reserved_slots(self.store.config.geometry)
    }

    /// Takes `count` slots for a request, or none.
    pub fn take_slots(&mut self, count: usize, out: &mut Vec<Slot>) -> bool {
        if !self.has_slots(count) {
            return false;
        }
        out.extend((0..count).map_while(|_| self.pool.alloc()));
        true
    }

    /// A buffer for a frame, a superblock or a checkpoint header.
    fn take_metadata_slot(&mut self) -> Slot {
        self.metadata_slots.pop().or_else(|| self.pool.alloc()).expect("slots for metadata are set aside")
    }

    /// Gives back what [`Engine::take_metadata_slot`] gave.
    fn give_metadata_slot(&mut self, slot: Slot) {
        if self.metadata_slots.len() < self.metadata_slots_max {
            self.metadata_slots.push(slot);
        } else {
            self.pool.free(slot);
        }
    }

    /// Whether new work may be recorded: the journal has room, and frames have buffers.
    fn may_record(&self) -> bool {
        self.journal.has_room(&self.health) && self.metadata_slots.len() * 2 >= self.metadata_slots_max
    }

    /// The most slots one request can ever get.
    pub fn slots_per_request_max(&self) -> usize {
        let set_aside = self.options.reserved_slots(self.store.config.geometry) + patrol::WALKERS_MAX;
        (self.pool.slot_count() - set_aside) / 2
    }

    /// The configuration and state that schemes work on.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The scheme.
    pub fn scheme(&self) -> &dyn Scheme {
        &*self.scheme
    }

    /// What it runs with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The members.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Figures since assembly.
    pub fn stats(&self) -> EngineStats {
        self.stats
    }

    /// Bytes of the exported volume.
    pub fn volume_bytes(&self) -> u64 {
        self.store.config.volume_bytes()
    }

    /// The time as the driver loop sees it, in nanoseconds from any fixed point; never goes back.
    pub fn set_now(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.flights.set_now(self.now_ns);
    }

    /// Finished requests; the caller empties the vector.
    pub fn take_done(&mut self) -> &mut Vec<Done> {
        &mut self.done
    }

    /// Whether nothing is in flight or queued (background work that waits for its time aside).
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.jobs.is_empty()
            && self.retiring.is_empty()
            && self.covers.is_empty()
            && !self.flush.is_busy()
            && !self.cache.is_busy()
            && !self.checkpoint.is_busy()
            && self.fence == 0
            && self.trims.is_empty()
            && self.ops.is_empty()
            && !self.flights.wants_turn()
            && !self.lost.is_busy()
            && self.maintain.heals_in_flight() == 0
            && !self.patrol.is_reading()
    }

    /// Does what can be done without waiting: forms batches, starts background work, issues operations. Bounded: there may be
    /// more to do at once, see [`Engine::wants_pump`].
    pub fn pump(&mut self) {
        self.note_mark();
        self.watch_members();
        self.release_quarantine();
        self.retry_stalled_covers();
        self.drive_zeros();
        self.expire_cache();
        self.start_batches();
        self.drive_payload();
        self.drive_background();
        self.drive_collection();
        self.drive_patrol();
        self.drive_losses();
        self.drive_maintenance();
        self.drive_stop();
        self.drive_checkpoint();
        self.drive_flush();
        self.drive_confirmation();
        self.refuse_if_hopeless();
        if planted(Planted::SleepAfterPump) {
            self.note_mark();
        }
    }

    /// What an operation was for goes on.
    fn ended(&mut self, tag: Tag, result: Result<(), IoFault>) {
        self.completed += 1;
        let dev = tag.dev;
        match tag.purpose {
            Purpose::JobRead { job, step } => self.job_read_done(job, step, result),
            Purpose::JobWrite { job, step } => self.job_write_done(dev, (job, step), result),
            Purpose::Payload { job } => self.payload_done(dev, job, result),
            Purpose::Read { read } => self.read_done(read, result),
            Purpose::CoverRead { cover, step } => self.cover_read_done(cover, step, result),
            Purpose::Heal { cover } => self.heal_done(dev, cover, result),
            Purpose::Frame { frame, slot } => self.frame_done(dev, (frame, slot), result),
            Purpose::Flush => self.device_flush_done(dev, result),
            Purpose::Superblock { slot } => self.superblock_written(dev, slot, result),
            Purpose::SuperblockFlush => self.superblock_flushed(dev, result),
            Purpose::Checkpoint { slot } => self.checkpoint_done(dev, slot, result),
            Purpose::Trim { run } => self.trim_done(dev, run, result),
            Purpose::Patrol => self.patrol_done(dev, result),
        }
    }

    fn push_op(
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

    fn push_chunk_op(&mut self, tag: Tag, kind: OpKind, stream: Stream, addr: ChunkAddr, slot: Slot) {
        let (offset_bytes, length_bytes) = (self.store.offset_of(addr), self.pool.slot_bytes() as u64);
        let class = if kind == OpKind::Write { self.scheme.class_at(addr) } else { 0 };
        let (dev, slot) = (tag.dev, Some(slot));
        self.issue(tag, DeviceOp { tag: 0, dev, kind, stream, class, offset_bytes, length_bytes, slot });
    }

    /// A write or flush failed: the device is out. Answers wait until the other members know. Of a frozen array, or a device
    /// that is out already, nothing was asked for; and a write that found no room says nothing about the device.
    fn write_fault(&mut self, dev: DevIndex, fault: IoFault) {
        if !self.frozen && fault != IoFault::NoSpace && self.health.is_writable(dev) {
            self.health.errors_mut(dev).write += 1;
            self.fail_for_fault(dev);
        }
    }

    /// An operation of a member has just ended with a fault that takes it out of service.
    fn fail_for_fault(&mut self, dev: DevIndex) {
        if self.health.is_writable(dev) {
            let fault = self.health.last_fault(dev).expect("a fault of a member in service is noted first");
            self.fail_member(dev, FailCause::Fault(fault));
        }
    }

    /// Takes a member out of service because somebody wants it.
    pub fn fail_device(&mut self, dev: DevIndex) {
        self.fail_member(dev, FailCause::Asked);
    }

    /// Takes a member out of service; what it held is read through its cover from now on. If that is more than the code
    /// tolerates, the array freezes: nothing is written or promised from this moment on, not even that the member failed. When
    /// it comes back, the array is what it would be after a power cut now.
    fn fail_member(&mut self, dev: DevIndex, cause: FailCause) {
        if !self.health.fail(dev, cause) {
            return;
        }
        self.events.push(Event::MemberFailed { dev, cause });
        self.flush.forget(dev);
        self.frozen |=
            self.health.array_state() == ArrayState::Failed && !planted(Planted::WriteOnWhenFailed);
        if !self.frozen {
            self.publish_members();
            self.checkpoint.request_full();
        }
        self.give_up(dev);
    }

    /// Operations on a member that have not ended. Another device may take its place only when there are none: the end
    /// of an old write must not pass for one on the new device.
    pub fn in_flight(&self, dev: DevIndex) -> u32 {
        self.flights.count(dev)
    }

    /// Whether writes are accepted.
    pub fn accepts_writes(&self) -> bool {
        self.refusal().is_none()
    }

    /// Why writes are not accepted.
    fn refusal(&self) -> Option<EngineError> {
        if self.health.array_state() == ArrayState::Failed {
            Some(EngineError::ArrayFailed)
        } else {
            self.maintain.is_read_only().then_some(EngineError::Stopping)
        }
    }

    fn finish(&mut self, done: Done) {
        self.stats.requests += 1;
        if self.fence > 0 && !planted(Planted::AnswerBeforeFence) {
            self.held.push(done)
        } else {
            self.done.push(done)
        }
    }

    /// Lets go of what is free for certain.
    fn release_quarantine(&mut self) {
        let (persisted, oldest) = (self.flush.persisted(), self.tickets.oldest());
        while let Some(front) = self.quarantine.front() {
            let early = planted(Planted::ReuseBeforeDurable)
                || planted(Planted::ReuseBeforePersisted) && front.seq <= self.flush.durable();
            if (front.seq > persisted && !early) || front.ticket > oldest {
                break;
            }
            match front.what {
                Freed::Chunks(run) => {
                    self.release_or_trim(run, self.is_unit_trimmed(run));
                    if planted(Planted::ReuseBeforePersisted) {
                        let addr = run.first;
                        self.store.spaces[addr.dev.index()].set_frontier(addr.chunk.get());
                    }
                }
                Freed::Discarded(run) => self.discarded.push(run),
                Freed::LogTail(position) => self.store.log.trim(position.min(self.store.log.head())),
            }
            self.quarantine.pop_front();
            self.note_room();
        }
        if !self.discarded.is_empty() {
            self.release_discarded();
        }
    }

    /// Quarantines what the records up to `seq` freed.
    fn quarantine_freed(&mut self, seq: Seq, what: fn(Run) -> Freed) {
        let ticket = self.tickets.next();
        let mut freed = std::mem::take(&mut self.store.freed);
        if planted(Planted::TrimUnitEarly) {
            freed.drain(..).for_each(|run| self.release_or_trim(run, self.is_unit_trimmed(run)));
        }
        self.quarantine.extend(freed.iter().map(|&run| Quarantined { seq, ticket, what: what(run) }));
        self.store.freed = freed;
        self.store.freed.clear();
        self.note_log_tail(seq);
    }

    /// The log's tail may have moved: past what no log stripe and no replay needs.
    fn note_log_tail(&mut self, seq: Seq) {
        let live = if planted(Planted::TrimLiveLog) { u64::MAX } else { self.scheme.log_tail(&self.store) };
        let appending = self.appending.first().copied().unwrap_or(u64::MAX);
        let tail = live.min(self.checkpoint.log_head()).min(appending);
        if tail > self.log_tail_noted {
            self.log_tail_noted = tail;
            let ticket = self.tickets.next();
            self.quarantine.push_back(Quarantined { seq, ticket, what: Freed::LogTail(tail) });
        }
    }

    fn write_mode(&self) -> Mode {
        match scheme::write_lock(&self.store.config) {
            WriteLock::Shared => Mode::Shared,
            WriteLock::Exclusive => Mode::Exclusive,
        }
    }

    /// Gives a stripe back; the first of a unit does so for those that joined it.
    fn unlock(&mut self, stripe: StripeId, mode: Mode) {
        if mode != Mode::Joined {
            self.locks.unlock(stripe, mode, &mut self.granted);
        }
    }
}
