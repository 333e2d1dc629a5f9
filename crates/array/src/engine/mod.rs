//! The sans-I/O core: requests and completions in, device operations and answers out.
//!
//! # The contract of [`Engine`]
//! No threads, no clock, no randomness, no I/O. There are four kinds of methods:
//!
//! | kind | methods | when |
//! |---|---|---|
//! | what happens outside | `set_now`, requests (`write`, `scrub`, ..), `complete` | as it happens |
//! | the turn | `pump` | after any of those, and at `next_deadline_ns` |
//! | what comes out | `take_ops`, `take_given_up`, `take_done`, `take_events` | after each turn, in this order |
//! | looks | `is_idle`, `wants_pump`, `stats`, .. | at any time; they change nothing |
//!
//! A driver loop tells the time, pumps, carries out the operations, and feeds the completions. It pumps again
//! as long as the engine [wants to be pumped](Engine::wants_pump), and may sleep then until an operation ends
//! or the deadline comes. Time never goes back and decides nothing else than what is due: the same calls at
//! the same times give the same operations.
//!
//! # Core and activities
//! The [`Core`] holds what all share and does at once what can be done at once: it carries out plans
//! as *jobs*, answers requests, keeps locks and buffers. Jobs that record something retire in the order of
//! their records, so that live state is always what replay of a prefix of the journal gives. What has to
//! wait, for a flush, for time, for its turn, is an [`Activity`]: an owned machine that sees the core and no
//! other activity. What activities want of each other stands on the [`board`].
//!
//! # The order of a turn
//! First ends what must not wait: operations of members that were given up, space that is free for certain,
//! covers that lacked buffers. Then
//!
//! 1. *zeros* and the *cache expiry* queue chunk writes, so they come before
//! 2. the *batches* of writes, which take space and buffers before any background work does: clients wait for
//!    them;
//! 3. *payloads* stages what has waited for room in its ring; what the batches planned lined up behind it;
//! 4. *commits* and then the *collector* make space that the batches lacked; a commit makes more of it for
//!    less;
//! 5. the *patrol* comes before *maintenance*, which goes on with what a round found, and so does the *search
//!    for losses*, which has a rebuild tried again;
//! 6. the *page reader* has the pages read that all of them lacked;
//! 7. *stop* comes after all that may begin jobs, and asks for what the *checkpointer* then begins;
//! 8. the *flusher* comes last of all that work, so that whatever asked for a flush in this turn shares it;
//! 9. *confirmation* names what that flush made durable, and the *publisher* ends what it began in vain.
//!
//! When a flush has ended, copies in the payload ring come first, since clients wait for them; then the
//! checkpointer, whose end maintenance may wait for; the others have no part in it.
//!
//! # States
//! A job: `reading` (its reads and covers) -> with a payload ring `staging` (copies and records become
//! durable) -> `writing` -> its records retire in order -> ended; its owner is told. An entry of the cache:
//! see `cache.rs`. A flush: frames are written -> devices are flushed -> fenced, if members changed
//! meanwhile, until their superblocks are written -> ended.

/// Declares the activities once: the struct that owns them, and every loop over them.
macro_rules! activities {
    (
        before the writes: { $($before:ident: $Before:ty,)* }
        after the writes: { $($after:ident: $After:ty,)* }
        told of a flush: { $($told:ident,)* }
    ) => {
        /// All activities, in the order of a turn.
        struct Activities {
            $($before: $Before,)*
            $($after: $After,)*
        }

        /// What decides how they go on.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        struct Marks {
            $($before: <$Before as wake::Marked>::Mark,)*
            $($after: <$After as wake::Marked>::Mark,)*
        }

        impl Activities {
            /// Looks at every activity.
            fn each<'a>(&'a self, mut look: impl FnMut(&'a dyn Activity)) {
                $(look(&self.$before);)*
                $(look(&self.$after);)*
            }

            fn marks(&self, core: &Core) -> Marks {
                Marks { $($before: self.$before.mark(core),)* $($after: self.$after.mark(core),)* }
            }

            /// Flush `number` has ended.
            fn flushed(&mut self, core: &mut Core, number: u64) {
                // Whoever is not named there is missed here.
                let Self { $($told,)* } = self;
                $($told.flushed(core, number);)*
            }
        }

        impl Engine {
            fn drive_before_writes(&mut self) {
                $(drive(&mut self.activities.$before, &mut self.core); self.pass_on();)*
            }

            fn drive_after_writes(&mut self) {
                $(drive(&mut self.activities.$after, &mut self.core); self.pass_on();)*
            }
        }
    };
}

mod api;
mod back;
mod board;
mod cache;
mod checkpoint;
mod collect;
mod commit;
mod compute;
mod config;
mod confirm;
mod copies;
mod cover;
mod events;
mod flights;
mod flush;
mod history;
mod inherit;
mod job;
mod lock;
mod lost;
mod maintain;
mod members;
mod order;
mod pages;
mod patrol;
mod payload;
mod quarantine;
mod read;
mod report;
mod request;
mod share;
mod state;
mod stats;
mod stop;
mod sums;
#[cfg(test)]
mod tests;
mod tickets;
mod trim;
mod untorn;
mod unused;
mod wake;
mod write;
mod zero;

pub use commit::CommitRun;
pub use config::{CommitPolicy, Content, DiscardPolicy, EngineOptions, PatrolPolicy, SyncPolicy};
pub use events::{Event, HoldUp, WorkOrigin};
pub use flights::MemberTrouble;
pub use lost::Losses;
pub use maintain::Progress;
pub use report::{MaintenanceReport, WorkKind};
pub use request::{Done, EngineError};
pub use stats::{CacheStats, EngineStats};

use request::Request;
use wake::Marked;

use crate::health::Health;
use crate::journal::Journal;
use crate::plan::Codeword;
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Journaling, Scheme};
use crate::store::{ChunkRun, Store};
use block::slab::{Key, Slab};
use block::{DevIndex, DeviceOp, IoFault, Pool, Seq, Slot, StripeId};
use std::collections::{BTreeSet, VecDeque};

/// With so many jobs under way no batch of writes and no stretch of a discard begins: devices have enough to
/// choose from then, and what comes meanwhile makes larger batches.
const JOBS_MAX: usize = 64;

/// Work that goes on over several turns. Each method says what every activity has to have an answer to; it is
/// [`wake::Marked`], too.
trait Activity {
    /// Does what can be done without waiting. Bounded.
    fn drive(&mut self, core: &mut Core);

    /// The same while the array is frozen: nothing is written any more, and whoever waits is told.
    fn drive_frozen(&mut self, core: &mut Core);

    /// Flush `number` has ended: what was written before it began is durable.
    fn flushed(&mut self, core: &mut Core, number: u64);

    /// Whether something is under way that jobs, requests and operations do not show.
    fn is_busy(&self, core: &Core) -> bool;

    /// When it wants to be driven although nothing happens.
    fn deadline(&self, core: &Core) -> Option<Deadline>;

    /// Whether buffers that come back may let it go on.
    fn waits_for_buffers(&self, core: &Core) -> bool;

    /// What it has left to do when nothing is in flight.
    fn left_undone(&self, core: &Core) -> Option<&'static str>;
}

/// When an activity wants to be driven, in the engine's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deadline {
    /// Something begins that may make room for writes.
    Room(u64),
    /// Something else is to be done.
    Work(u64),
    /// The next look at the metadata, which begins again and again.
    NextRound(u64),
}

activities! {
    before the writes: {
        zeros: zero::Zeros,
        cache_expiry: cache::CacheExpiry,
    }
    after the writes: {
        payloads: payload::Payloads,
        commits: commit::Commits,
        collector: collect::Collector,
        patrol: patrol::Patrol,
        loss_search: lost::LossSearch,
        maintenance: maintain::Maintenance,
        page_reader: pages::PageReader,
        stop: stop::Stop,
        checkpointer: checkpoint::Checkpointer,
        flusher: flush::Flusher,
        confirmation: confirm::Confirmation,
        publisher: members::Publisher,
    }
    told of a flush: {
        payloads,
        checkpointer,
        maintenance,
        zeros,
        cache_expiry,
        commits,
        collector,
        patrol,
        loss_search,
        page_reader,
        stop,
        flusher,
        confirmation,
        publisher,
    }
}

/// Whose job it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum JobOwner {
    /// A batch of chunk writes.
    Requests,
    /// A stretch of a discard.
    Zeros,
    /// Parity commit of some stripes.
    Commits,
    /// A step of garbage collection.
    Collector,
    /// Rebuild or scrub of some stripes or log stripes.
    Maintenance,
}

/// What waits for a stripe.
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

/// What a device operation was issued for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// A read of a job's plan.
    JobRead { job: Key<job::Job>, step: u32 },
    /// A write of a job's plan.
    JobWrite { job: Key<job::Job>, step: u32 },
    /// The copy in the payload ring of a write of a job's plan.
    Payload { job: Key<job::Job> },
    /// A chunk that can be read from its own device.
    Read { read: Key<read::ReadOp> },
    /// A piece of a cover.
    CoverRead { cover: Key<cover::Cover>, step: u32 },
    /// A repaired chunk written back.
    Heal { cover: Key<cover::Cover> },
    /// A copy of a frame, by the frame's number.
    Frame { frame: u64, slot: Slot },
    /// A device flush of the flush under way.
    Flush,
    /// A superblock.
    Superblock { slot: Slot },
    /// The flush of a member that makes its superblock durable.
    SuperblockFlush,
    /// A block of the checkpoint under way.
    Checkpoint { slot: Slot, is_beside: bool },
    /// A copy of a page that a member lacks is read, or written.
    PageCopy { page: usize, is_written: bool, slot: Slot },
    /// The discard of a freed run.
    Trim { run: Key<ChunkRun> },
    /// A copy of a page of the table.
    TablePage { page: usize, slot: Slot },
    /// The discard of dead log space.
    TrimLog,
    /// Metadata that nobody asked for.
    Patrol,
}

/// What an operation is for, on which member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tag {
    /// What for.
    purpose: Purpose,
    /// The member the operation is on.
    dev: DevIndex,
}

/// The state that all activities share. What is done to it at once is in `state.rs` and the files of its
/// parts.
struct Core {
    store: Store,
    scheme: Box<dyn Scheme>,
    health: Health,
    journal: Journal,
    options: EngineOptions,
    /// The time as the driver loop sees it.
    now_ns: u64,
    pool: Pool,
    set_aside: SetAside,
    requests: Slab<Request>,
    answers: Answers,
    locks: lock::Locks,
    queue: WriteQueue,
    cache: cache::Cache,
    jobs: Jobs,
    reads: Reads,
    rings: payload::PayloadRings,
    freed: quarantine::Quarantine,
    ops: Ops,
    board: board::Board,
    stats: EngineStats,
}

/// Buffers that are never handed out for anything else.
struct SetAside {
    /// A chunk of zeros.
    zero_slot: Slot,
    /// Those that only frames, superblocks and checkpoint headers get: these must never have to wait.
    slots: Vec<Slot>,
    slots_max: usize,
}

/// Answers to requests, and those that must wait until a change of the members is on disk.
#[derive(Default)]
struct Answers {
    done: Vec<Done>,
    held: Vec<Done>,
    /// What happens besides, for whoever keeps a log.
    events: events::Events,
    /// Something about the members is not told yet: answers are held.
    fence: bool,
    /// Operations under way that write superblocks.
    telling: u32,
    /// The members changed again meanwhile.
    again: bool,
}

/// Chunk writes from their request to their plan, and other work that was granted a stripe.
#[derive(Default)]
struct WriteQueue {
    pending: VecDeque<lock::Pending>,
    granted: VecDeque<lock::Pending>,
    /// Partial writes whose chunk is complete now; they hold their stripe.
    filled: VecDeque<ChunkWrite>,
    batch: Vec<ChunkWrite>,
    refused: Vec<ChunkWrite>,
    /// What there was when writes found no room last.
    refusal: Option<write::RoomSeen>,
    /// Bundles that wait for the one that collects stripes.
    bundles: VecDeque<lock::Pending>,
    /// A bundle holds stripes and waits for more.
    is_collecting: bool,
    /// Writes of up to 2^so many chunks are not torn.
    untorn_order: u8,
}

/// Plans being carried out.
struct Jobs {
    table: Slab<job::Job>,
    /// Jobs with records, in record order.
    retiring: VecDeque<Key<job::Job>>,
    /// Jobs of activities that have ended: their owners are told next.
    ended: VecDeque<Key<job::Job>>,
    /// Records up to here have retired.
    retired: Seq,
    /// Where log chunks were appended whose records are not applied yet.
    appending: BTreeSet<u64>,
    computer: compute::Computer,
    sums: sums::Sums,
    sharing: share::Sharing,
    journaling: Journaling,
    /// For a look at a code word.
    scratch: Codeword,
}

/// Chunks being read, and rebuilt from their covers, and pages of the table.
#[derive(Default)]
struct Reads {
    pages: pages::PageFaults,
    table: Slab<read::ReadOp>,
    covers: Slab<cover::Cover>,
    /// Covers that lack buffers.
    stalled: VecDeque<Key<cover::Cover>>,
    /// Who holds one may still read what was freed since.
    tickets: tickets::Tickets,
}

/// Operations on devices.
struct Ops {
    /// Those that the driver has not taken yet, but for writes into logs, which wait in `order`.
    list: Vec<DeviceOp>,
    flights: flights::Flights,
    order: order::Order,
    /// Begun and ended since assembly.
    issued: u64,
    completed: u64,
}

/// See the module's documentation.
pub struct Engine {
    core: Core,
    activities: Activities,
    /// The state that the last pump began with.
    seen: wake::EngineMark,
}

fn drive(activity: &mut impl Activity, core: &mut Core) {
    if core.board.frozen { activity.drive_frozen(core) } else { activity.drive(core) }
}

impl Engine {
    pub(crate) fn new(
        parts: crate::recovery::Parts,
        options: EngineOptions,
        policies: crate::scheme::Policies,
    ) -> Self {
        let mut core = Core::new(parts, options, policies);
        let activities = Activities {
            zeros: zero::Zeros::default(),
            cache_expiry: cache::CacheExpiry,
            payloads: payload::Payloads,
            commits: commit::Commits::default(),
            collector: collect::Collector::default(),
            patrol: patrol::Patrol::new(&mut core.pool),
            loss_search: lost::LossSearch,
            maintenance: maintain::Maintenance::default(),
            page_reader: pages::PageReader::default(),
            stop: stop::Stop,
            checkpointer: checkpoint::Checkpointer::default(),
            flusher: flush::Flusher::default(),
            confirmation: confirm::Confirmation,
            publisher: members::Publisher::default(),
        };
        Self { core, activities, seen: wake::EngineMark::default() }
    }

    /// Does what can be done without waiting: forms batches, starts background work, issues operations.
    /// Bounded: there may be more to do at once, see [`Engine::wants_pump`].
    pub fn pump(&mut self) {
        self.note_mark();
        self.watch_members();
        self.core.release_quarantine();
        self.core.retry_stalled_covers();
        self.pass_on();
        self.drive_before_writes();
        self.start_batches();
        self.pass_on();
        self.drive_after_writes();
        self.refuse_if_hopeless();
        if planted(Planted::SleepAfterPump) {
            self.note_mark();
        }
    }

    /// Whether nothing is in flight or queued (background work that waits for its time aside).
    pub fn is_idle(&self) -> bool {
        let core = &self.core;
        let mut busy = false;
        self.activities.each(|activity| busy = busy || activity.is_busy(core));
        !busy
            && core.requests.is_empty()
            && core.jobs.table.is_empty()
            && core.jobs.retiring.is_empty()
            && core.reads.covers.is_empty()
            && !core.freed.is_discarding()
            && core.ops.are_taken()
            && !core.ops.flights.wants_turn()
    }

    /// What an operation was for goes on.
    fn ended(&mut self, tag: Tag, result: Result<(), IoFault>) {
        let Self { core, activities, .. } = self;
        core.ops.completed += 1;
        let dev = tag.dev;
        match tag.purpose {
            Purpose::JobRead { job, step } => core.job_read_done(job, step, result),
            Purpose::JobWrite { job, step } => core.job_write_done(dev, (job, step), result),
            Purpose::Payload { job } => core.payload_done(dev, job, result),
            Purpose::Read { read } => core.read_done(read, result),
            Purpose::CoverRead { cover, step } => core.cover_read_done(cover, step, result),
            Purpose::Heal { cover } => core.heal_done(dev, cover, result),
            Purpose::Trim { run } => core.trim_done(dev, run, result),
            Purpose::TrimLog => core.log_trim_done(dev, result),
            Purpose::Frame { frame, slot } => activities.flusher.frame_done(core, dev, (frame, slot), result),
            Purpose::Flush => activities.flusher.device_flushed(core, dev, result),
            Purpose::Superblock { slot } => activities.publisher.written(core, dev, slot, result),
            Purpose::SuperblockFlush => activities.publisher.flushed_member(core, dev, result),
            Purpose::Checkpoint { slot, is_beside } => {
                activities.checkpointer.block_done(core, dev, (slot, is_beside), result);
            }
            Purpose::PageCopy { page, is_written, slot } => {
                activities.checkpointer.page_copied(core, dev, (page, slot, is_written), result);
            }
            Purpose::TablePage { page, slot } => core.page_read(dev, page, slot, result),
            Purpose::Patrol => activities.patrol.stretch_done(core, dev, result),
        }
        self.pass_on();
    }

    /// Tells activities what happened in the step before: a fence came down, a flush ended, a job of theirs
    /// ended.
    #[inline]
    fn pass_on(&mut self) {
        if self.core.has_news() {
            self.tell();
        }
    }

    #[inline(never)]
    fn tell(&mut self) {
        let Self { core, activities, .. } = self;
        loop {
            if std::mem::take(&mut core.board.flush.unfenced) {
                activities.flusher.unfenced(core);
            } else if let Some(number) = core.board.flush.ended.take() {
                activities.flushed(core, number);
            } else if let Some(key) = core.jobs.ended.pop_front() {
                match core.jobs.table[key].owner {
                    JobOwner::Requests => unreachable!("the core ends jobs of requests"),
                    JobOwner::Zeros => activities.zeros.job_ended(core, key),
                    JobOwner::Commits => activities.commits.job_ended(core, key),
                    JobOwner::Collector => activities.collector.job_ended(core, key),
                    JobOwner::Maintenance => activities.maintenance.job_ended(core, key),
                }
            } else {
                return;
            }
        }
    }

    /// When the engine wants to be pumped although nothing happens, in its own time.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.deadline_ns(|deadline| match deadline {
            Deadline::Room(at_ns) | Deadline::Work(at_ns) | Deadline::NextRound(at_ns) => Some(at_ns),
        })
    }

    /// The same for what will be over some day; rounds of the patrol begin again and again.
    pub fn work_deadline_ns(&self) -> Option<u64> {
        self.deadline_ns(|deadline| match deadline {
            Deadline::Room(at_ns) | Deadline::Work(at_ns) => Some(at_ns),
            Deadline::NextRound(_) => None,
        })
    }

    /// When something begins that may make room for writes: the patrol, the cache and a confirmation make
    /// none.
    fn room_deadline_ns(&self) -> Option<u64> {
        self.deadline_ns(|deadline| match deadline {
            Deadline::Room(at_ns) => Some(at_ns),
            Deadline::Work(_) | Deadline::NextRound(_) => None,
        })
    }

    fn deadline_ns(&self, counts: impl Fn(Deadline) -> Option<u64>) -> Option<u64> {
        let mut first = self.core.members_deadline_ns();
        self.activities.each(|activity| {
            let own = activity.deadline(&self.core).and_then(&counts);
            first = first.into_iter().chain(own).min();
        });
        first
    }
}
