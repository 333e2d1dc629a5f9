//! Parity commit: its four triggers and its units of work (EPLOG, section 3.3).

use super::cache::After;
use super::job::JobKind;
use super::request::Request;
use super::{Engine, EngineError, Mode, Pending, Work};
use crate::plan::Plan;
use crate::planted::{Planted, planted};
use crate::scheme::CommitOutcome;
use block::StripeId;
use block::slab::Key;

/// A request this recently means that somebody waits: commit in smaller units, which hold up a turn less.
const FOREGROUND_NS: u64 = 1_000_000;
/// By this factor smaller.
const BUSY_UNIT_DIVISOR: usize = 4;
/// How often rate-limited maintenance looks whether it may go on.
const PACE_NS: u64 = 5_000_000;

/// Progress of parity commit.
#[derive(Default)]
pub(super) struct Background {
    /// Write requests since the last commit run that they asked for was due.
    writes: u64,
    /// So many write requests have come that a run is due, and none has begun since.
    writes_due: bool,
    /// When the last request came.
    last_request_ns: u64,
    /// Stripes that the present run still has to look at; 0 = no run.
    left: u64,
    units: usize,
    /// Stripes of this run that were busy and are waited for.
    awaited: usize,
    /// Requests to be answered when a run that began after them has ended.
    waiting: Vec<Key<Request>>,
    answering: Vec<Key<Request>>,
    run_again: bool,
    /// After a unit failed, this many stripes are committed one by one.
    singly: u64,
    /// Stripes that cannot be committed because what they need is lost.
    stuck: Vec<StripeId>,
    /// How much work had ended when the last run for want of requests began: what has been written since may be dirty.
    idle_at: Option<u64>,
    candidates: Vec<StripeId>,
}

impl Background {
    /// What decides how parity commit goes on.
    pub(super) fn mark(&self) -> [u64; 5] {
        let queues = [self.units, self.awaited, self.waiting.len()];
        let [units, awaited, waiting] = queues.map(|count| count as u64);
        [self.left, units, awaited, waiting, u64::from(self.run_again) + 2 * u64::from(self.writes_due)]
    }

    /// Whether writes asked for a run that has not begun.
    pub(super) fn is_due(&self) -> bool {
        self.writes_due
    }

    pub(super) fn is_running(&self) -> bool {
        self.left > 0 || self.units > 0 || self.awaited > 0
    }

    pub(super) fn last_request_ns(&self) -> u64 {
        self.last_request_ns
    }

    /// Whether a run is under way or asked for, or somebody waits for the end of one.
    pub(super) fn is_busy(&self) -> bool {
        self.is_running() || self.run_again || !self.waiting.is_empty() || !self.answering.is_empty()
    }
}

impl Engine {
    pub(super) fn note_request(&mut self) {
        self.background.last_request_ns = self.now_ns;
    }

    pub(super) fn note_write_request(&mut self) {
        self.note_request();
        let Some(every) = self.options.commit.every_requests else { return };
        self.background.writes += 1;
        // Counted here, whether a run is under way or not: one more is due, but never two (C-04).
        if self.background.writes >= every {
            self.background.writes = 0;
            self.background.writes_due = true;
        }
    }

    /// Commits every stripe that is dirty now (C-03); answered when done.
    pub fn commit(&mut self, tag: u64) {
        self.retry_stuck_stripes();
        let request = self.open_control(tag);
        self.after_cache(After::Commit(request));
    }

    /// From now on commits after so many write requests, counted from now.
    pub fn commit_every(&mut self, every_requests: Option<u64>) {
        self.options.commit.every_requests = every_requests;
        self.background.writes = 0;
    }

    pub(super) fn queue_commit(&mut self, request: Key<Request>) {
        self.background.waiting.push(request);
    }

    /// Whoever has waited for a commit for too long is told why; the run goes on.
    pub(super) fn refuse_late_commits(&mut self, error: EngineError) {
        let (mut waiting, mut answering) =
            (std::mem::take(&mut self.background.waiting), std::mem::take(&mut self.background.answering));
        self.refuse_late_of(&mut waiting, error);
        self.refuse_late_of(&mut answering, error);
        (self.background.waiting, self.background.answering) = (waiting, answering);
    }

    /// Stripes that could not be committed because their data is lost.
    pub fn stuck_stripes(&self) -> &[StripeId] {
        &self.background.stuck
    }

    /// Something that was lost may be at hand now: stripes that could not be committed are tried again.
    pub(super) fn retry_stuck_stripes(&mut self) {
        for stripe in std::mem::take(&mut self.background.stuck) {
            self.scheme.return_dirty(stripe);
        }
    }

    /// Whether a commit run is under way.
    pub fn is_committing(&self) -> bool {
        self.background.is_running()
    }

    /// Writes found no space: commit, then flush, so that the old versions can be reused (A-06: never an error).
    pub(super) fn want_space(&mut self) {
        self.hurry_collection();
        let dirty = self.scheme.pressure(&self.store).dirty_stripes;
        let helps = self.scheme.commit_would_help();
        if helps && (dirty > self.background.stuck.len() as u64 || self.is_committing()) {
            self.background.run_again = true;
        }
        if !self.quarantine.is_empty() || self.retired > self.flush.durable() {
            self.flush.want_internal();
        } else if helps && self.store.log.used() > 0 && !self.is_committing() && dirty == 0 {
            self.checkpoint.request_incremental();
        }
    }

    /// When the engine wants to be pumped although nothing happens, in its own time.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.work_deadline_ns().into_iter().chain(self.patrol_deadline_ns()).min()
    }

    /// The same for what will be over some day; rounds of the patrol begin again and again.
    pub fn work_deadline_ns(&self) -> Option<u64> {
        let round = self.patrol_deadline_ns().filter(|_| self.patrol.is_open());
        let others = self.cache_deadline_ns().into_iter().chain(self.confirmation_deadline_ns());
        self.room_deadline_ns().into_iter().chain(others).chain(round).min()
    }

    /// When something begins that may make room for writes: the patrol, the cache and a confirmation make none.
    pub(super) fn room_deadline_ns(&self) -> Option<u64> {
        let paced = self.maintenance_waits() && !self.is_scrub_paused();
        let paced = paced.then(|| self.now_ns.saturating_add(PACE_NS));
        let idle = self.options.commit.idle_ns.filter(|_| self.wants_idle_commit());
        let idle = idle.filter(|_| !planted(Planted::SleepPastIdle));
        let idle = idle.map(|ns| self.background.last_request_ns.saturating_add(ns));
        let own = paced.into_iter().chain(idle).chain(self.members_deadline_ns());
        own.chain(self.losses_deadline_ns()).min()
    }

    /// Whether there is anything to commit when no requests come. What a run left dirty is tried again when there is more room.
    fn wants_idle_commit(&self) -> bool {
        let dirty = self.scheme.pressure(&self.store).dirty_stripes > self.background.stuck.len() as u64;
        let tried = self.background.idle_at == Some(self.room_made);
        let wanted = (dirty && !tried) || self.cache.has_waiting();
        // What is on its way from the cache comes first; its end is an event, not a deadline.
        wanted && self.accepts_writes() && !self.is_committing() && !self.cache.is_busy()
    }

    /// Maintenance wants everything committed.
    pub(super) fn ask_commit(&mut self) {
        self.background.run_again = true;
    }

    /// Whether a commit run is under way or asked for.
    pub(super) fn commit_pending(&self) -> bool {
        self.background.run_again || self.is_committing()
    }

    pub(super) fn drive_background(&mut self) {
        self.start_commit_run();
        if !self.accepts_writes() {
            self.background.left = 0;
        }
        while self.background.left > 0
            && self.background.units < self.options.units_in_flight
            && self.accepts_writes()
            && self.may_record()
        {
            if !self.start_commit_unit() {
                break;
            }
        }
        if !self.is_committing() {
            self.end_commit_run();
        }
    }

    /// So many writes have come that everything dirty is to be committed, and nobody waits for a run to end, which might never
    /// happen if every run were followed or prolonged by another.
    fn take_writes_due(&mut self) -> bool {
        let somebody_waits = self.background.run_again
            || !self.background.waiting.is_empty()
            || !self.background.answering.is_empty()
            || self.maintain.awaits_commit();
        !somebody_waits && std::mem::take(&mut self.background.writes_due)
    }

    /// What is dirty now is committed, by a new run or by the one under way.
    fn extend_commit_run(&mut self) {
        let dirty = self.scheme.pressure(&self.store).dirty_stripes;
        self.background.left = dirty.saturating_sub(self.background.stuck.len() as u64);
        self.stats.commits += u64::from(self.background.left > 0);
    }

    fn start_commit_run(&mut self) {
        let writes_due = self.take_writes_due();
        if self.is_committing() {
            if writes_due {
                self.extend_commit_run();
            }
            return;
        }
        let pressure = self.scheme.pressure(&self.store);
        let policy = self.options.commit;
        let idle_since = self.background.last_request_ns;
        let idle = policy.idle_ns.is_some_and(|ns| self.now_ns >= idle_since.saturating_add(ns));
        if idle {
            self.drain_cache();
        }
        let idle = idle && self.cache.is_empty();
        let asked = std::mem::take(&mut self.background.run_again);
        let due = asked
            || writes_due
            || (idle && self.background.idle_at != Some(self.room_made))
            || (pressure.low_space && !self.flush_would_free())
            || !self.background.waiting.is_empty();
        if !due {
            return;
        }
        if idle {
            self.background.idle_at = Some(self.room_made);
        }
        self.background.answering.append(&mut self.background.waiting);
        self.extend_commit_run();
    }

    fn end_commit_run(&mut self) {
        let refusal = self.refusal();
        let count = self.background.stuck.len() as u64;
        let stuck = (count > 0).then_some(EngineError::CommitStuck { count });
        let mut answering = std::mem::take(&mut self.background.answering);
        for request in answering.drain(..) {
            self.chunk_done(request, refusal.or(stuck));
        }
        self.background.answering = answering;
    }

    /// Plans and starts one unit; `false` if nothing could be started now.
    fn start_commit_unit(&mut self) -> bool {
        let single = self.background.singly > 0;
        let busy = self.now_ns.saturating_sub(self.background.last_request_ns) < FOREGROUND_NS;
        let whole = if busy {
            self.options.unit_stripes.div_ceil(BUSY_UNIT_DIVISOR)
        } else {
            self.options.unit_stripes
        };
        let unit = if single { 1 } else { whole };
        let mut candidates = std::mem::take(&mut self.background.candidates);
        candidates.clear();
        let count = unit.min(usize::try_from(self.background.left).unwrap_or(usize::MAX));
        self.scheme.take_dirty(&self.store, count, &mut candidates);
        if candidates.is_empty() {
            self.background.left = 0;
            self.background.candidates = candidates;
            return false;
        }
        let key = self.take_job(JobKind::Commit);
        let mut plan = std::mem::take(&mut self.jobs[key].plan);
        let mut full = false;
        for &stripe in &candidates {
            if full {
                self.scheme.return_dirty(stripe);
                continue;
            }
            if !self.locks.try_lock(stripe, Mode::Exclusive) {
                self.locks.wait(stripe, Pending { mode: Mode::Exclusive, work: Work::Commit(stripe) });
                self.background.awaited += 1;
                self.background.left -= 1;
                continue;
            }
            match self.plan_commit(stripe, &mut plan) {
                CommitOutcome::Planned => {
                    plan.stripes.push(stripe);
                    self.background.left -= 1;
                }
                CommitOutcome::Clean => {
                    self.unlock(stripe, Mode::Exclusive);
                    self.background.left -= 1;
                }
                CommitOutcome::NoSpace => {
                    self.unlock(stripe, Mode::Exclusive);
                    self.scheme.return_dirty(stripe);
                    full = true;
                }
            }
        }
        let planned = !plan.stripes.is_empty();
        let tried = candidates.len();
        self.background.candidates = candidates;
        if self.options.sort_units {
            plan.reads.sort_unstable_by_key(|read| read.addr);
        }
        self.jobs[key].plan = plan;
        if !planned {
            self.give_job(key);
            if full && self.background.units == 0 {
                self.flush.want_internal();
            }
            return false;
        }
        self.background.singly = self.background.singly.saturating_sub(tried as u64);
        self.background.units += 1;
        self.start_job(key);
        true
    }

    fn plan_commit(&mut self, stripe: StripeId, plan: &mut Plan) -> CommitOutcome {
        self.scheme.plan_commit(&mut self.store, &self.health, &mut self.pool, stripe, plan)
    }

    /// A stripe that was busy is the commit's now.
    pub(super) fn commit_granted(&mut self, stripe: StripeId) {
        if planted(Planted::ForgetGrantedCommit) {
            return self.unlock(stripe, Mode::Exclusive);
        }
        self.background.awaited -= 1;
        let key = self.take_job(JobKind::Commit);
        let mut plan = std::mem::take(&mut self.jobs[key].plan);
        let outcome =
            if self.accepts_writes() { self.plan_commit(stripe, &mut plan) } else { CommitOutcome::Clean };
        if outcome == CommitOutcome::Planned {
            plan.stripes.push(stripe);
            self.jobs[key].plan = plan;
            self.background.units += 1;
            return self.start_job(key);
        }
        self.jobs[key].plan = plan;
        self.give_job(key);
        self.unlock(stripe, Mode::Exclusive);
        if outcome == CommitOutcome::NoSpace {
            self.scheme.return_dirty(stripe);
            self.background.left += 1;
            self.flush.want_internal();
        }
    }

    /// A unit of commit has retired.
    pub(super) fn commit_unit_done(&mut self, stripes: &[StripeId], lost: bool) {
        self.background.units -= 1;
        if !lost {
            return;
        }
        if let &[stripe] = stripes {
            if self.scheme.commit_otherwise(stripe) {
                self.scheme.return_dirty(stripe);
                self.background.left += 1;
                self.background.singly += 1;
            } else {
                self.background.stuck.push(stripe);
            }
            return;
        }
        // One of them cannot be read: find out which, the others must not suffer for it.
        for &stripe in stripes {
            self.scheme.return_dirty(stripe);
        }
        self.background.left += stripes.len() as u64;
        self.background.singly += stripes.len() as u64;
    }
}
