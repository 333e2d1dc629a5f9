//! No lost wakeups: when the engine wants to be pumped, and what must be over before it may sleep.
//!
//! Activities hand work to each other all the time: a stripe that is given back lets a discard go on, the end of a phase begins
//! the next one, a buffer that comes back lets a cover go on. Nobody tells the driver about each of these, since whoever is
//! forgotten once waits for ever. Instead [`Engine::pump`] notes the [`Mark`] of the state it began with: everything but time
//! that decides what a pump can do. As long as the state differs from that, whatever changed it, a pump, a completion, a request
//! or a front end that gave buffers back, the engine [wants to be pumped](Engine::wants_pump). It is at rest only after a pump
//! that changed nothing, and the next one would change nothing either.
//!
//! What then is left must have an operation in flight or a deadline ahead. [`Engine::stranded`] says what has neither; drivers
//! ask in debug builds, the simulator always.

use super::Engine;
use super::zero::ZeroRange;
use crate::planted::{Planted, planted};

/// What decides what a pump can do, but for time. Two states with equal marks are the same to every activity.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Mark {
    /// Operations begun and ended, requests answered.
    events: [u64; 3],
    /// How far records are: made, retired, durable, known durable, in a checkpoint.
    records: [u64; 5],
    /// Reads that may still need what was freed, how much was released, and whether collection may gain more: if not, writes may
    /// take what it keeps.
    released: [u64; 3],
    /// Changes of the members.
    members: u64,
    frozen: bool,
    /// How many requests, jobs and queued pieces of work there are of each kind.
    queues: [usize; 13],
    /// Where the discard that comes next is.
    zeros_at: u64,
    /// Buffers, if anything waits for some.
    slots: [usize; 2],
    cache: [usize; 2],
    flush: [usize; 3],
    payload: [usize; 2],
    commit: [u64; 5],
    maintain: [u64; 8],
    patrol: [u64; 6],
    checkpoint: [usize; 5],
    lost: [usize; 3],
}

impl Engine {
    fn mark(&self) -> Mark {
        let maintain = if planted(Planted::SleepBetweenPhases) { [0; 8] } else { self.maintain.mark() };
        Mark {
            events: [self.issued, self.completed, self.stats.requests],
            records: [
                self.journal.next_seq().get(),
                self.retired.get(),
                self.flush.durable().get(),
                self.flush.persisted().get(),
                self.checkpoint.through().get(),
            ],
            released: [self.tickets.oldest(), self.room_made, self.scheme.can_gain_room().into()],
            members: self.health.config_seq,
            frozen: self.frozen,
            queues: [
                self.requests.len(),
                self.jobs.len(),
                self.retiring.len(),
                self.pending.len(),
                self.granted.len(),
                self.filled.len(),
                self.zeros.len(),
                self.queued_zeros.len(),
                self.stalled_covers.len(),
                self.quarantine.len(),
                self.trims.len(),
                self.collection.steps(),
                usize::from(self.maintain.is_read_only()),
            ],
            zeros_at: self.zeros.front().map_or(0, ZeroRange::next),
            slots: if self.waits_for_slots() {
                [self.pool.free_count(), self.metadata_slots.len()]
            } else {
                [0; 2]
            },
            cache: self.cache.mark(),
            flush: self.flush.mark(),
            payload: self.payload.mark(),
            commit: self.background.mark(),
            maintain,
            patrol: self.patrol.mark(),
            checkpoint: self.checkpoint.mark(),
            lost: self.lost.mark(),
        }
    }

    /// Buffers come back from front ends, too, which do not say so: only who may wait for some needs to look.
    fn waits_for_slots(&self) -> bool {
        !self.pending.is_empty()
            || !self.granted.is_empty()
            || !self.zeros.is_empty()
            || !self.stalled_covers.is_empty()
            || self.background.is_running()
            || self.maintain.is_running()
            || self.lost.is_busy()
            || self.checkpoint.is_busy()
    }

    /// A pump begins: what changes from here on asks for another.
    pub(super) fn note_mark(&mut self) {
        self.seen = self.mark();
    }

    /// Whether the next [`Engine::pump`] may have something to do although no operation ends and no time passes.
    pub fn wants_pump(&self) -> bool {
        !self.ops.is_empty() || self.flights.wants_turn() || self.mark() != self.seen
    }

    /// What would wait for ever: the engine does not ask to be pumped and no operation is in flight, yet something is left
    /// undone that no deadline ahead takes care of. There must never be any.
    pub fn stranded(&self) -> Option<&'static str> {
        if self.wants_pump() || self.flights.any() {
            return None;
        }
        let deadline = self.next_deadline_ns();
        let held_up = self.patrol.is_held_up();
        let paced = self.maintain.is_halted() || self.maintenance_waits() || held_up;
        let tolerated = if paced { self.maintain.answers() } else { 0 };
        let hopeless = self.is_hopeless();
        let left = [
            (deadline.is_some_and(|at_ns| at_ns <= self.now_ns), "work whose time has come"),
            (!self.jobs.is_empty() || !self.retiring.is_empty(), "a job"),
            (!self.reads.is_empty(), "a read"),
            (!self.covers.is_empty() || !self.stalled_covers.is_empty(), "a cover"),
            (!self.granted.is_empty(), "work whose stripe was granted"),
            ((!self.pending.is_empty() || !self.filled.is_empty()) && !hopeless, "a write"),
            (!self.zeros.is_empty() || !self.queued_zeros.is_empty(), "a discard"),
            (!self.locks.is_empty(), "a stripe that is held"),
            (!self.trims.is_empty(), "a trim"),
            (self.payload.is_busy(), "a write that waits for its copies"),
            (self.fence > 0 || self.refence || !self.held.is_empty(), "an answer that is held back"),
            (self.flush.is_busy(), "a flush"),
            (self.cache.is_busy() && !hopeless, "what left the write cache"),
            (self.background.is_busy(), "a parity commit"),
            (self.background.is_due() && !self.maintain.awaits_commit(), "a parity commit that is due"),
            (self.collection.steps() > 0, "a step of garbage collection"),
            (self.checkpoint_is_open(), "a checkpoint"),
            (self.lost.is_busy(), "a look at what may be lost"),
            (self.maintain.is_running() && !paced, "a rebuild or scrub"),
            (self.patrol.is_open() && !held_up && !self.maintain.is_halted(), "a look at the metadata"),
            (self.maintain.is_publishing(), "a change of the members"),
            (self.requests.len() > tolerated, "a request"),
        ];
        left.into_iter().find_map(|(is, what)| is.then_some(what))
    }
}
