//! Discards and zero writes of whole chunks: records without payload, a bounded stretch at a time, so that a
//! large discard does not hold up other work.

use super::job::Job;
use super::lock::{Mode, Pending};
use super::request::{Edge, Request};
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError, JOBS_MAX, JobOwner, Work};
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Located, Origin};
use block::slab::{Key, Slab};
use block::{Lcn, StripeId};
use format::record::Zero;

/// Chunks that one record of zeros covers at most.
const STRETCH_CHUNKS_MAX: u64 = 2048;

/// Chunks of zeros queued at a time by an in-place scheme.
const ZERO_WRITES_MAX: usize = 64;

/// Chunks that an in-place scheme looks at in one turn, most of which may be zeros already.
const ZERO_LOOKS_MAX: u64 = 1 << 16;

/// A discard in progress: chunks `next..end` of a request are still to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZeroRange {
    request: Key<Request>,
    next: u64,
    end: u64,
    /// What of them is not whole (in-place schemes).
    edges: [Option<Edge>; 2],
}

impl Core {
    /// Starts freeing the chunks `from..to`; the request's own share is done when all are. The edges are
    /// chunks before and after these. An in-place scheme takes them together with the rest of their stripes,
    /// so that a discard of one stripe is all or nothing as a write is; the others write them by themselves.
    pub(super) fn start_zero(&mut self, request: Key<Request>, from: u64, to: u64, edges: [Option<Edge>; 2]) {
        let together = self.write_mode() == Mode::Exclusive && !planted(Planted::DiscardEdgesApart);
        if together {
            let (mut next, mut end) = (from, to);
            for edge in edges.iter().flatten() {
                (next, end) = (next.min(edge.lcn.get()), end.max(edge.lcn.get() + 1));
            }
            return self.board.zeros.push_back(ZeroRange { request, next, end, edges });
        }
        for Edge { lcn, slot, from, to } in edges.into_iter().flatten() {
            let class = self.scheme.class_of_write(&self.store, lcn);
            self.queue_write(ChunkWrite {
                origin: Origin::Request(request.index()),
                lcn,
                slot,
                from,
                to,
                class,
                order: 0,
            });
            self.requests[request].remaining += 1;
        }
        self.board.zeros.push_back(ZeroRange { request, next: from, end: to, edges: [None; 2] });
    }

    fn stripe_end(&self, stripe: StripeId) -> u64 {
        self.store.config.geometry.lcn_at(StripeId::new(stripe.get() + 1), 0).get()
    }

    /// Locks the stripes of a bounded stretch of a discard from chunk `from` on; how many chunks that is, and
    /// what it ended at.
    fn lock_stretch(&mut self, range: &ZeroRange, from: u64) -> (u64, StretchEnd) {
        let end = range.end.min(range.next + STRETCH_CHUNKS_MAX);
        let (mut at, mut stretch_end) = (from, StretchEnd::Whole);
        while at < end {
            let stripe = self.store.config.geometry.stripe_of(Lcn::new(at));
            if !self.try_lock(stripe, Mode::Exclusive) {
                stretch_end = StretchEnd::Busy;
                break;
            }
            let next = self.stripe_end(stripe).min(end);
            if !self.promise_zeros(at, next) {
                self.unlock(stripe, Mode::Exclusive);
                stretch_end = StretchEnd::NoRoom;
                break;
            }
            at = next;
        }
        (at.max(from) - from, stretch_end)
    }

    /// Whether chunks of a stripe that is held may become zeros now.
    fn promise_zeros(&mut self, from: u64, to: u64) -> bool {
        let Self { scheme, store, .. } = self;
        let commits = scheme.commits_mut();
        commits.is_none_or(|commits| commits.promise_zeros(store, Lcn::new(from), Lcn::new(to)))
    }

    /// A discard waits until stripes are committed; it is refused if none can be.
    fn wait_for_commits(&mut self, range: ZeroRange) {
        self.want_space();
        let dirty = self.scheme.pressure(&self.store).dirty_stripes;
        let is_hopeless = self.jobs.table.is_empty()
            && !self.board.commit.is_open()
            && dirty <= self.board.commit.stuck.len() as u64;
        if is_hopeless {
            return self.chunk_done(range.request, Some(EngineError::NoSpace));
        }
        self.board.zeros.push_front(range);
    }
}

/// Why a stretch of a discard is no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StretchEnd {
    /// It is as long as it may be.
    Whole,
    /// The next stripe is busy.
    Busy,
    /// The next stripe may not become dirty before others are committed.
    NoRoom,
}

/// See the module's documentation. Discards that may go on stand on the board.
#[derive(Default)]
pub(super) struct Zeros {
    /// Discards that wait for a stripe.
    queued: Slab<ZeroRange>,
    /// What is left of those of which a stretch is under way.
    running: Vec<(Key<Job>, ZeroRange)>,
}

impl Zeros {
    /// A stretch has retired: the rest goes on.
    pub(super) fn job_ended(&mut self, core: &mut Core, key: Key<Job>) {
        let at = self.running.iter().position(|&(job, _)| job == key).expect("a stretch ends once");
        let (_, rest) = self.running.remove(at);
        core.board.zeros.push_back(rest);
        core.give_job(key);
    }

    /// The first stripe is busy: the discard waits for it like any other work, or it might never get it.
    fn queue_zero(&mut self, core: &mut Core, range: ZeroRange) {
        let stripe = core.store.config.geometry.stripe_of(Lcn::new(range.next));
        let work = Work::Zero { range: self.queued.insert(range), stripe };
        core.locks.wait(stripe, Pending::new(Mode::Exclusive, work));
    }

    /// The stripe that a queued discard waited for is its own now.
    pub(super) fn granted(&mut self, core: &mut Core, key: Key<ZeroRange>) {
        let range = self.queued.remove(key);
        let geometry = core.store.config.geometry;
        let stripe = geometry.stripe_of(Lcn::new(range.next));
        if let Some(refusal) = core.refusal() {
            core.unlock(stripe, Mode::Exclusive);
            return core.chunk_done(range.request, Some(refusal));
        }
        let first = core.stripe_end(stripe).min(range.end) - range.next;
        if !core.promise_zeros(range.next, range.next + first) {
            core.unlock(stripe, Mode::Exclusive);
            return core.board.zeros.push_back(range);
        }
        let (rest, _) = core.lock_stretch(&range, range.next + first);
        self.start_stretch(core, range, first + rest);
    }

    /// Records `count` chunks, whose stripes are locked, as zeros.
    fn start_stretch(&mut self, core: &mut Core, range: ZeroRange, count: u64) {
        let geometry = core.store.config.geometry;
        let key = core.take_job(JobOwner::Zeros);
        let stripe_of = |lcn: u64| geometry.stripe_of(Lcn::new(lcn)).get();
        let plan = &mut core.jobs.table[key].plan;
        Zero::push(&mut plan.records, Lcn::new(range.next), count);
        plan.stripes.extend((stripe_of(range.next)..=stripe_of(range.next + count - 1)).map(StripeId::new));
        core.discard_cached(key, Lcn::new(range.next), count);
        self.running.push((key, ZeroRange { next: range.next + count, ..range }));
        core.start_job(key);
        while let Some(key) = core.take_ended(JobOwner::Zeros) {
            self.job_ended(core, key);
        }
    }
}

/// In-place schemes cannot free a chunk of a stripe: zeros are written, a bounded stretch at a time. A stripe
/// is not cut: it would be written twice, and not at once.
fn write_zeros(core: &mut Core, mut range: ZeroRange) {
    let geometry = core.store.config.geometry;
    let looked_from = range.next;
    while range.next < range.end {
        let lcn = Lcn::new(range.next);
        let enough =
            core.queue.pending.len() >= ZERO_WRITES_MAX || range.next - looked_from >= ZERO_LOOKS_MAX;
        if enough && geometry.column_of(lcn) == 0 {
            break;
        }
        // What was never written, or is being written just now, needs no zeros after that.
        let is_known = !core.store.table.lacks(geometry.stripe_of(lcn));
        if !is_known || core.scheme.locate(&core.store, lcn) != Located::Zero {
            let edge = range.edges.iter().flatten().find(|edge| edge.lcn == lcn);
            let (slot, from, to) = match edge {
                Some(edge) => (edge.slot, edge.from, edge.to),
                None => (core.set_aside.zero_slot, 0, geometry.chunk_bytes() as u32),
            };
            let origin = Origin::Request(range.request.index());
            core.queue_write(ChunkWrite { origin, lcn, slot, from, to, class: 0, order: 0 });
            core.requests[range.request].remaining += 1;
        }
        range.next += 1;
    }
    core.board.zeros.push_front(range);
}

impl Activity for Zeros {
    /// Issues the next stretch of each discard.
    fn drive(&mut self, core: &mut Core) {
        while let Some(range) = core.board.zeros.pop_front() {
            if range.next >= range.end {
                core.chunk_done(range.request, None);
                continue;
            }
            if let Some(refusal) = core.refusal() {
                core.chunk_done(range.request, Some(refusal));
                continue;
            }
            if !core.may_record() || core.jobs.table.len() >= JOBS_MAX {
                core.board.zeros.push_front(range);
                return;
            }
            if core.write_mode() == Mode::Exclusive {
                return write_zeros(core, range);
            }
            match core.lock_stretch(&range, range.next) {
                (0, StretchEnd::NoRoom) => return core.wait_for_commits(range),
                (0, StretchEnd::Busy | StretchEnd::Whole) => self.queue_zero(core, range),
                (count, _) => self.start_stretch(core, range, count),
            }
        }
    }

    fn drive_frozen(&mut self, core: &mut Core) {
        while let Some(range) = core.board.zeros.pop_front() {
            let error = (range.next < range.end).then_some(EngineError::ArrayFailed);
            core.chunk_done(range.request, error);
        }
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    /// Its requests count as such.
    fn is_busy(&self, _core: &Core) -> bool {
        false
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    fn waits_for_buffers(&self, core: &Core) -> bool {
        !core.board.zeros.is_empty()
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        (!core.board.zeros.is_empty() || !self.queued.is_empty()).then_some("a discard")
    }
}

impl Marked for Zeros {
    type Mark = [u64; 3];

    fn mark(&self, core: &Core) -> Self::Mark {
        let zeros = &core.board.zeros;
        let next = zeros.front().map_or(0, |range| range.next);
        [count(zeros.len()), count(self.queued.len()), next]
    }
}
