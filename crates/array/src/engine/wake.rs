//! No lost wakeups: when the engine wants to be pumped, and what must be over before it may sleep.
//!
//! Activities hand work to each other all the time: a stripe that is given back lets a discard go on, the end
//! of a phase begins the next one, a buffer that comes back lets a cover go on. Nobody tells the driver about
//! each of these, since whoever is forgotten once waits for ever. Instead [`Engine::pump`] notes the marks of
//! the state it began with: everything but time that decides what a pump can do. As long as the state differs
//! from that, whatever changed it, a pump, a completion, a request or a front end that gave buffers back, the
//! engine [wants to be pumped](Engine::wants_pump). It is at rest only after a pump that changed nothing, and
//! the next one would change nothing either.
//!
//! What then is left must have an operation in flight or a deadline ahead. [`Engine::stranded`] says what has
//! neither; drivers ask in debug builds, the simulator always.

use super::{Activities, Core, Engine, Marks};

/// An activity that can say what decides how it goes on, in as many numbers as that takes. Every pump notes
/// them all, so they are few.
pub(super) trait Marked {
    /// The numbers.
    type Mark: Copy + PartialEq + Eq + Default + std::fmt::Debug;

    /// Everything but time that decides what its next drive does.
    fn mark(&self, core: &Core) -> Self::Mark;
}

/// A length, as a number of a mark.
pub(super) fn count(length: usize) -> u64 {
    length as u64
}

/// What decides what a pump can do, but for time. Two states with equal marks are the same to every activity.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct EngineMark {
    core: CoreMark,
    activities: Marks,
}

/// The part of the core.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct CoreMark {
    /// Operations begun and ended, requests answered.
    events: [u64; 3],
    /// How far records are: made, retired, durable, known durable.
    records: [u64; 4],
    /// Reads that may still need what was freed, and how much was released.
    released: [u64; 2],
    frozen: bool,
    /// How many requests, jobs and queued pieces of work there are of each kind.
    queues: [usize; 10],
    /// Buffers, if anything waits for some.
    slots: [usize; 2],
}

impl Core {
    #[inline]
    fn mark(&self) -> CoreMark {
        CoreMark {
            events: [self.ops.issued, self.ops.completed, self.stats.requests],
            records: [
                self.journal.next_seq().get(),
                self.jobs.retired.get(),
                self.board.flush.durable().get(),
                self.board.flush.persisted().get(),
            ],
            released: [self.reads.tickets.oldest(), self.freed.room_made],
            frozen: self.board.frozen,
            queues: [
                self.requests.len(),
                self.jobs.table.len(),
                self.jobs.retiring.len(),
                self.queue.pending.len(),
                self.queue.granted.len(),
                self.queue.filled.len(),
                self.reads.stalled.len(),
                self.freed.quarantine.len(),
                self.freed.trims.len(),
                self.freed.log_discards,
            ],
            slots: [0; 2],
        }
    }

    /// Whether [`Engine::pass_on`] has anything to tell; asked after every step.
    pub(super) fn has_news(&self) -> bool {
        let board = &self.board.flush;
        board.unfenced || board.ended.is_some() || !self.jobs.ended.is_empty()
    }

    /// Whether chunk writes, or covers, may wait for buffers.
    fn waits_for_buffers(&self) -> bool {
        !self.queue.pending.is_empty() || !self.queue.granted.is_empty() || !self.reads.stalled.is_empty()
    }
}

impl EngineMark {
    fn of(core: &Core, activities: &Activities) -> Self {
        let mut mark = core.mark();
        let mut waits = core.waits_for_buffers();
        activities.each(|activity| waits = waits || activity.waits_for_buffers(core));
        // Buffers come back from front ends, too, which do not say so: only who may wait for some needs to
        // look.
        if waits {
            mark.slots = [core.pool.free_count(), core.set_aside.slots.len()];
        }
        Self { core: mark, activities: activities.marks(core) }
    }
}

impl Engine {
    /// A pump begins: what changes from here on asks for another.
    pub(super) fn note_mark(&mut self) {
        let Self { core, activities, seen } = self;
        *seen = EngineMark::of(core, activities);
    }

    /// Whether the next [`Engine::pump`] may have something to do although no operation ends and no time
    /// passes.
    pub fn wants_pump(&self) -> bool {
        let core = &self.core;
        !core.ops.are_taken()
            || core.ops.flights.wants_turn()
            || EngineMark::of(core, &self.activities) != self.seen
    }

    /// What would wait for ever: the engine does not ask to be pumped and no operation is in flight, yet
    /// something is left undone that no deadline ahead takes care of. There must never be any, except while
    /// whoever looks after the devices has not yet said that all may know of a successor.
    pub fn stranded(&self) -> Option<&'static str> {
        if self.wants_pump() || self.core.ops.flights.any() || self.core.waits_to_be_told() {
            return None;
        }
        if self.next_deadline_ns().is_some_and(|at_ns| at_ns <= self.core.now_ns) {
            return Some("work whose time has come");
        }
        // Then writes, and what left the cache, wait until somebody makes room.
        let mut left = if self.is_hopeless() { None } else { self.core.writes_left() };
        left = left.or_else(|| self.core.left_undone());
        self.activities.each(|activity| left = left.or_else(|| activity.left_undone(&self.core)));
        let tolerated = self.activities.maintenance.tolerated(&self.core) + self.core.paused_commits();
        left.or_else(|| (self.core.requests.len() > tolerated).then_some("a request"))
    }
}

impl Core {
    fn writes_left(&self) -> Option<&'static str> {
        let writes = !self.queue.pending.is_empty() || !self.queue.filled.is_empty();
        let cached = self.cache.is_busy().then_some("what left the write cache");
        writes.then_some("a write").or(cached)
    }

    fn left_undone(&self) -> Option<&'static str> {
        let left = [
            (!self.jobs.table.is_empty() || !self.jobs.retiring.is_empty(), "a job"),
            (!self.reads.table.is_empty(), "a read"),
            (!self.reads.covers.is_empty() || !self.reads.stalled.is_empty(), "a cover"),
            (!self.queue.granted.is_empty(), "work whose stripe was granted"),
            (!self.locks.is_empty(), "a stripe that is held"),
            (self.freed.is_discarding(), "a trim"),
        ];
        left.into_iter().find_map(|(is, what)| is.then_some(what))
    }
}
