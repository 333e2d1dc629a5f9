//! Parity commit: its four triggers and its units of work (EPLOG, section 3.3).

mod steer;

pub use steer::CommitRun;

use super::job::Job;
use super::lock::{Mode, Pending};
use super::request::{After, Request};
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError, JobOwner, Work};
use crate::plan::Word;
use crate::planted::{Planted, planted};
use crate::scheme::{CommitOutcome, Commits as CommitRole, Located};
use crate::store::Store;
use crate::table::Extent;
use block::StripeId;
use block::slab::Key;

/// A request this recently means that somebody waits: commit in smaller units, which hold up a turn less.
const FOREGROUND_NS: u64 = 1_000_000;
/// By this factor smaller.
const BUSY_UNIT_DIVISOR: usize = 4;

/// What is to be committed, and how far that is.
#[derive(Default)]
pub(super) struct CommitBoard {
    /// Write requests since the last commit run that they asked for was due.
    pub writes: u64,
    /// So many write requests have come that a run is due, and none has begun since.
    writes_due: bool,
    /// Stripes that the present run still has to look at; 0 = no run.
    left: u64,
    /// How many it had to look at in all, and when it began.
    total: u64,
    started_ns: u64,
    /// Somebody wants commits to wait that the array does not need.
    pub is_paused: bool,
    /// Units under way.
    units: usize,
    /// Stripes of this run that were busy and are waited for.
    awaited: usize,
    /// Requests to be answered when a run that began after them has ended.
    pub waiting: Vec<Key<Request>>,
    /// Somebody wants a run over everything that begins from now on.
    pub run_again: bool,
    /// Writes wait for room that a run would make.
    for_room: bool,
    /// The array is about to be stopped: what nobody waits for stays as it is.
    ending: bool,
    /// Stripes that cannot be committed because what they need is lost.
    pub stuck: Vec<StripeId>,
    /// What this run tries again of them; nobody waits for room for these.
    again: Vec<StripeId>,
}

impl CommitBoard {
    /// A run over so many stripes begins, or goes on with so many.
    fn begin(&mut self, left: u64, now_ns: u64) {
        if self.is_running() {
            self.total = (self.total + left).saturating_sub(self.left);
        } else {
            (self.total, self.started_ns) = (left, now_ns);
            self.again.clear();
        }
        self.left = left;
    }

    /// What was written since it was found stuck is among what is dirty again, and is tried again beside what
    /// the run is about.
    fn try_again(&mut self, taken: &[StripeId]) {
        if !self.stuck.is_empty() {
            let before = self.again.len();
            self.again.extend(self.stuck.extract_if(.., |stripe| taken.contains(stripe)));
            let more = count(self.again.len() - before);
            (self.left, self.total) = (self.left + more, self.total + more);
        }
    }

    /// Whether a run is under way.
    pub(super) fn is_running(&self) -> bool {
        self.left > 0 || self.units > 0 || self.awaited > 0
    }

    /// Whether a run is under way or asked for.
    pub(super) fn is_open(&self) -> bool {
        self.run_again || self.for_room || self.is_running()
    }
}

impl Core {
    pub(super) fn note_request(&mut self) {
        self.board.last_request_ns = self.now_ns;
    }

    pub(super) fn note_write_request(&mut self) {
        self.note_request();
        let Some(every) = self.options.commit.every_requests else { return };
        self.board.commit.writes += 1;
        // Counted here, whether a run is under way or not: one more is due, but never two (C-04).
        if self.board.commit.writes >= every {
            self.board.commit.writes = 0;
            self.board.commit.writes_due = true;
        }
    }

    /// A dirty stripe is not committed now.
    fn return_dirty(&mut self, stripe: StripeId) {
        if let Some(commits) = self.scheme.commits_mut() {
            commits.return_dirty(stripe);
        }
    }

    /// A stripe cannot be committed for now.
    fn note_stuck(&mut self, stripe: StripeId) {
        let stuck = &mut self.board.commit.stuck;
        if !stuck.contains(&stripe) {
            stuck.push(stripe);
        }
    }

    /// Whether there was no room for a stripe that was stuck before this run: then it is again.
    fn is_stuck_again(&mut self, stripe: StripeId) -> bool {
        let was_stuck = self.board.commit.again.contains(&stripe);
        if was_stuck {
            self.note_stuck(stripe);
        }
        was_stuck
    }

    /// Whether a commit would lose what can still be had: of the stripe too much is lost, and the newest
    /// version of a column, whose device is out of service, is in a log stripe alone, which a commit
    /// dissolves. One that reads all columns finds out by itself; one that reads only changes does not.
    fn would_strand(&self, stripe: StripeId) -> bool {
        let (lost, losses) = (&self.store.lost, &self.board.losses);
        if self.health.missing_count() == 0 || !(lost.count() > 0 || losses.is_busy()) {
            return false;
        }
        let geometry = self.store.config.geometry;
        let mut lcns = (0..geometry.data_count()).map(|column| geometry.lcn_at(stripe, column));
        let is_hurt = !lost.is_complete()
            || losses.suspects_stripe(stripe)
            || lcns.clone().any(|lcn| lost.contains(lcn));
        is_hurt
            && lcns.any(|lcn| match self.scheme.locate(&self.store, lcn) {
                Located::At { piece, word: Word::Log(_) } => !self.health.is_readable(piece.addr),
                Located::At { word: Word::Stripe(_) | Word::Row(_), .. } | Located::Zero => false,
            })
    }

    /// Something that was lost may be at hand now: stripes that could not be committed are tried again.
    pub(super) fn retry_stuck_stripes(&mut self) {
        let stuck = std::mem::take(&mut self.board.commit.stuck);
        if !stuck.is_empty() {
            // What a run for want of requests left is tried by the next one.
            self.note_room();
        }
        for stripe in stuck {
            self.return_dirty(stripe);
        }
    }

    /// Stripes that were rewritten or discarded as a whole need no commit any more, stuck or not.
    pub(super) fn forget_clean_stuck(&mut self) {
        let Self { board, scheme, .. } = self;
        if !board.commit.stuck.is_empty() {
            board.commit.stuck.retain(|&stripe| scheme.is_dirty(stripe));
        }
    }

    /// Writes found no space: commit, then flush, so that the old versions can be reused (A-06: never an
    /// error).
    pub(super) fn want_space(&mut self) {
        if self.store.spaces.iter().any(|space| space.awaited().is_some()) {
            // There may be enough: that is known when a page has come.
            return;
        }
        self.board.short_of_space = true;
        let dirty = self.scheme.pressure(&self.store).dirty_stripes;
        let helps = self.scheme.commit_would_help();
        if helps && (dirty > count(self.board.commit.stuck.len()) || self.board.commit.is_running()) {
            self.board.commit.for_room = true;
        }
        if !self.freed.quarantine.is_empty() || self.jobs.retired > self.board.flush.durable() {
            self.board.flush.want_internal();
        } else if helps && self.store.log.used() > 0 && !self.board.commit.is_running() && dirty == 0 {
            self.board.checkpoint.request(Extent::Changes);
        }
    }

    /// Commits every stripe that is dirty now (C-03); answered when done.
    pub(super) fn commit(&mut self, tag: u64) {
        self.retry_stuck_stripes();
        let request = self.open_control(tag);
        self.after_cache(After::Commit(request));
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Commits {
    answering: Vec<Key<Request>>,
    /// After a unit failed, this many stripes are committed one by one.
    singly: u64,
    /// How much work had ended when the last run for want of requests began: what has been written since may
    /// be dirty.
    idle_at: Option<u64>,
    candidates: Vec<StripeId>,
    /// Before this nothing is committed that nobody waits for.
    next_ns: u64,
    /// Whether the present run is over everything dirty, and whether it makes room that writes wait for.
    is_over_all: bool,
    is_for_room: bool,
}

impl Commits {
    /// Whether the limit on commits holds the run up.
    fn is_held_up(&self, core: &Core) -> bool {
        core.board.commit.left > 0
            && core.options.commit.bytes_per_s.is_some()
            && core.now_ns < self.next_ns
            && !self.somebody_waits(core)
    }

    /// So many stripes are committed now, and count against the limit unless somebody waits.
    fn note_committed(&mut self, core: &Core, stripes: usize) {
        let Some(rate) = core.options.commit.bytes_per_s.filter(|_| !self.somebody_waits(core)) else {
            return;
        };
        let bytes = u128::from(count(stripes)) * u128::from(count(core.store.config.geometry.chunk_bytes()));
        let ns = u64::try_from(bytes * 1_000_000_000 / u128::from(rate.max(1))).unwrap_or(u64::MAX);
        self.next_ns = self.next_ns.max(core.now_ns).saturating_add(ns);
    }

    /// So many writes have come that everything dirty is to be committed, and nobody waits for a run to end,
    /// which might never happen if every run were followed or prolonged by another.
    fn take_writes_due(&mut self, core: &mut Core) -> bool {
        !core.holds_commits()
            && !self.somebody_waits(core)
            && std::mem::take(&mut core.board.commit.writes_due)
    }

    /// Whether somebody waits for a run to end, or for the room that it makes.
    fn somebody_waits(&self, core: &Core) -> bool {
        core.board.commit.run_again
            || core.board.commit.for_room
            || !core.board.commit.waiting.is_empty()
            || !self.answering.is_empty()
            || core.board.upkeep.awaits_commit
    }

    /// Whoever has waited for a commit for too long is told why; the run goes on.
    pub(super) fn refuse_late(&mut self, core: &mut Core, error: EngineError) {
        let mut waiting = std::mem::take(&mut core.board.commit.waiting);
        core.refuse_late(&mut waiting, error);
        core.board.commit.waiting = waiting;
        core.refuse_late(&mut self.answering, error);
    }

    /// What is dirty now is committed, by a new run or by the one under way.
    fn extend_run(&mut self, core: &mut Core) {
        let dirty = core.scheme.pressure(&core.store).dirty_stripes;
        let left = dirty.saturating_sub(core.board.commit.stuck.len() as u64);
        core.board.commit.begin(left, core.now_ns);
        core.stats.commits += u64::from(core.board.commit.left > 0);
    }

    /// The log is short of room, and nothing else is: commits the stripes alone whose log chunks lie in the
    /// older half of it and keep it from being cut (L-01). Hot stripes, whose older log chunks are dead
    /// already, stay dirty. If there is none, what is dead is on its way to be released; should that make
    /// no room for writes that wait, everything is committed.
    fn start_log_run(&mut self, core: &mut Core, for_room: bool) {
        if !core.accepts_writes() {
            return;
        }
        let log = &core.store.log;
        let before = log.head().saturating_sub(u64::from(log.block_count() / 2));
        if planted(Planted::LogTailPassedOver) {
            return;
        }
        let began =
            self.start_run_of(core, |commits, (store, _), out| commits.log_holders(store, before, out));
        core.stats.log_commits += u64::from(began);
        if began {
            return;
        }
        if !for_room || core.log_tail_waits() {
            return;
        }
        if core.log_needs_checkpoint() {
            core.board.checkpoint.request(Extent::Changes);
        } else {
            self.extend_run(core);
        }
    }

    /// Begins a run over some of the dirty stripes, before all others, without those that are stuck; `false`
    /// if there are none of them.
    fn start_run_of(
        &mut self,
        core: &mut Core,
        choose: impl FnOnce(&mut dyn CommitRole, (&Store, &[StripeId]), &mut Vec<StripeId>),
    ) -> bool {
        let Self { candidates, .. } = self;
        let Core { scheme, store, board, stats, now_ns, .. } = core;
        let Some(commits) = scheme.commits_mut() else { return false };
        candidates.clear();
        choose(commits, (store, &board.commit.stuck), candidates);
        candidates.retain(|stripe| !board.commit.stuck.contains(stripe));
        commits.put_first(candidates);
        board.commit.begin(count(candidates.len()), *now_ns);
        stats.commits += u64::from(!candidates.is_empty());
        !candidates.is_empty()
    }

    /// Chunks are short: stripes that give most of them back for what they cost; if there are none, all.
    fn start_space_run(&mut self, core: &mut Core) {
        let began = self.start_run_of(core, |commits, (_, stuck), out| commits.space_holders(stuck, out));
        if !began {
            self.extend_run(core);
        }
    }

    fn start_run(&mut self, core: &mut Core) {
        if core.board.commit.ending && !self.somebody_waits(core) {
            core.board.commit.left = 0;
            return;
        }
        let writes_due = self.take_writes_due(core);
        if core.board.commit.is_running() {
            if writes_due {
                self.is_over_all = true;
                self.extend_run(core);
            }
            return;
        }
        let pressure = core.scheme.pressure(&core.store);
        let policy = core.options.commit;
        let idle_since = core.board.last_request_ns;
        let idle = policy.idle_ns.is_some_and(|ns| core.now_ns >= idle_since.saturating_add(ns));
        if idle {
            core.drain_cache();
        }
        let idle = idle && core.cache.is_empty();
        if core.holds_commits() && planted(Planted::PauseHoldsRoom) {
            return;
        }
        let asked = std::mem::take(&mut core.board.commit.run_again);
        let for_room = std::mem::take(&mut core.board.commit.for_room);
        let unhurried = writes_due
            || (idle && self.idle_at != Some(core.freed.room_made))
            || !core.board.commit.waiting.is_empty();
        let all = asked || (unhurried && !core.holds_commits());
        (self.is_over_all, self.is_for_room) = (all, for_room);
        let chunks_low = pressure.low_space && (for_room || !core.flush_would_free());
        let log_low = pressure.low_log && (for_room || !core.log_tail_waits());
        if !(all || for_room || chunks_low || log_low) {
            return;
        }
        if !all && !chunks_low && log_low {
            return self.start_log_run(core, for_room);
        }
        if idle {
            self.idle_at = Some(core.freed.room_made);
        }
        if !core.holds_commits() {
            self.answering.append(&mut core.board.commit.waiting);
        }
        match all {
            true => self.extend_run(core),
            false => self.start_space_run(core),
        }
    }

    /// Whoever waits for the run under way is told when it has ended.
    fn answer_ended_run(&mut self, core: &mut Core) {
        if self.answering.is_empty() || core.board.commit.is_running() {
            return;
        }
        let refusal = core.refusal();
        let count = core.board.commit.stuck.len() as u64;
        let stuck = (count > 0).then_some(EngineError::CommitStuck { count });
        let mut answering = std::mem::take(&mut self.answering);
        for request in answering.drain(..) {
            core.chunk_done(request, refusal.or(stuck));
        }
        self.answering = answering;
    }

    /// Plans and starts one unit, if there is something that can be started now.
    fn start_unit(&mut self, core: &mut Core) {
        let count = self.unit_size(core);
        self.candidates.clear();
        if let Some(commits) = core.scheme.commits_mut() {
            commits.take_dirty(&core.store, count, &mut self.candidates);
        }
        if self.candidates.is_empty() {
            core.board.commit.left = 0;
            return;
        }
        core.board.commit.try_again(&self.candidates);
        self.leave_absent(core);
        if let Some(commits) = core.scheme.commits() {
            commits.foresee_commits(&core.store, &self.candidates);
        }
        let key = core.take_job(JobOwner::Commits);
        let (mut full, mut reads, mut missing) = (false, 0, 0);
        for &stripe in &self.candidates {
            if full || (reads > 0 && !core.has_room_to_decode(missing)) {
                core.return_dirty(stripe);
                continue;
            }
            full = !take_into_unit(core, key, stripe);
            missing += core.missing_reads(key, reads);
            reads = core.jobs.table[key].plan.reads.len();
        }
        core.arrange_reads(key);
        if core.jobs.table[key].plan.stripes.is_empty() {
            core.give_job(key);
            if full && core.board.commit.units == 0 {
                core.board.flush.want_internal();
            }
            return;
        }
        self.singly = self.singly.saturating_sub(self.candidates.len() as u64);
        core.board.commit.units += 1;
        self.note_committed(core, core.jobs.table[key].plan.stripes.len());
        self.start_job(core, key);
    }

    /// Stripes whose pages are not in memory are taken later, together. If none is there, one waits for its
    /// page, so that it goes on.
    fn leave_absent(&mut self, core: &mut Core) {
        if !core.store.table.is_paged() {
            return;
        }
        let any_there = self.candidates.iter().any(|&stripe| !core.store.table.lacks(stripe));
        let mut goes_on = any_there || core.board.commit.awaited > 0;
        self.candidates.retain(|&stripe| {
            if !core.store.table.lacks(stripe) {
                return true;
            }
            core.read_page_ahead(stripe);
            let waits = !std::mem::replace(&mut goes_on, true);
            if !waits {
                core.return_dirty(stripe);
            }
            waits
        });
    }

    /// Stripes of the next unit.
    fn unit_size(&self, core: &Core) -> usize {
        let busy = core.now_ns.saturating_sub(core.board.last_request_ns) < FOREGROUND_NS;
        let divisor = if busy { BUSY_UNIT_DIVISOR } else { 1 };
        let whole = core.options.unit_stripes.div_ceil(divisor);
        let unit = if self.singly > 0 { 1 } else { whole };
        unit.min(usize::try_from(core.board.commit.left).unwrap_or(usize::MAX))
    }

    fn start_job(&mut self, core: &mut Core, key: Key<Job>) {
        core.start_job(key);
        while let Some(key) = core.take_ended(JobOwner::Commits) {
            self.job_ended(core, key);
        }
    }

    /// A stripe that was busy is the commit's now.
    pub(super) fn granted(&mut self, core: &mut Core, stripe: StripeId) {
        if planted(Planted::ForgetGrantedCommit) {
            return core.unlock(stripe, Mode::Exclusive);
        }
        core.board.commit.awaited -= 1;
        let key = core.take_job(JobOwner::Commits);
        let outcome =
            if core.accepts_writes() { plan_commit(core, key, stripe) } else { CommitOutcome::Clean };
        if outcome == CommitOutcome::Planned {
            core.jobs.table[key].plan.stripes.push(stripe);
            core.arrange_reads(key);
            core.board.commit.units += 1;
            return self.start_job(core, key);
        }
        core.give_job(key);
        core.unlock(stripe, Mode::Exclusive);
        if outcome == CommitOutcome::NoSpace && !core.is_stuck_again(stripe) {
            core.return_dirty(stripe);
            core.board.commit.left += 1;
            core.board.flush.want_internal();
        }
    }

    /// A unit has retired, or could not read what it needs.
    pub(super) fn job_ended(&mut self, core: &mut Core, key: Key<Job>) {
        core.board.commit.units -= 1;
        if core.jobs.table[key].lost {
            self.try_singly(core, key);
        }
        core.give_job(key);
    }

    /// One stripe of a unit cannot be read: find out which, the others must not suffer for it.
    fn try_singly(&mut self, core: &mut Core, key: Key<Job>) {
        let Core { jobs, scheme, board, .. } = core;
        let stripes = &jobs.table[key].plan.stripes;
        let Some(commits) = scheme.commits_mut() else { return };
        if let &[stripe] = stripes.as_slice()
            && !commits.commit_otherwise(stripe)
        {
            return core.note_stuck(stripe);
        }
        for &stripe in stripes {
            commits.return_dirty(stripe);
        }
        board.commit.left += stripes.len() as u64;
        self.singly += stripes.len() as u64;
    }

    /// Whether there is anything to commit when no requests come. What a run left dirty is tried again when
    /// there is more room.
    fn wants_idle_run(&self, core: &Core) -> bool {
        let dirty = core.scheme.pressure(&core.store).dirty_stripes > core.board.commit.stuck.len() as u64;
        let tried = self.idle_at == Some(core.freed.room_made);
        let may = !core.board.commit.ending && !core.holds_commits();
        let wanted = (dirty && !tried && may) || core.cache.has_waiting();
        // What is on its way from the cache comes first; its end is an event, not a deadline.
        wanted && core.accepts_writes() && !core.board.commit.is_running() && !core.cache.is_busy()
    }
}

/// Takes a dirty stripe into a unit, unless it is busy or clean; `false` if there is no space for its new
/// parity.
fn take_into_unit(core: &mut Core, key: Key<Job>, stripe: StripeId) -> bool {
    if !core.try_lock(stripe, Mode::Exclusive) {
        core.locks.wait(stripe, Pending::new(Mode::Exclusive, Work::Commit(stripe)));
        core.board.commit.awaited += 1;
        core.board.commit.left -= 1;
        return true;
    }
    match plan_commit(core, key, stripe) {
        CommitOutcome::Planned => core.jobs.table[key].plan.stripes.push(stripe),
        CommitOutcome::Clean => core.unlock(stripe, Mode::Exclusive),
        CommitOutcome::NoSpace => {
            core.unlock(stripe, Mode::Exclusive);
            if !core.is_stuck_again(stripe) {
                core.return_dirty(stripe);
                return false;
            }
        }
    }
    core.board.commit.left -= 1;
    true
}

fn plan_commit(core: &mut Core, key: Key<Job>, stripe: StripeId) -> CommitOutcome {
    if core.would_strand(stripe) {
        core.note_stuck(stripe);
        return CommitOutcome::Clean;
    }
    let Some(commits) = core.scheme.commits_mut() else { return CommitOutcome::Clean };
    let plan = &mut core.jobs.table[key].plan;
    commits.plan_commit(&mut core.store, &core.health, &mut core.pool, stripe, plan)
}

impl Activity for Commits {
    fn drive(&mut self, core: &mut Core) {
        // Before the next run begins: writes that wait for space may ask for one after the other without end.
        self.answer_ended_run(core);
        self.start_run(core);
        if !core.accepts_writes() {
            core.board.commit.left = 0;
        }
        // One a turn: where devices answer at once, the next one has the slots that this one gives back.
        if core.board.commit.left > 0
            && core.board.commit.units < core.options.units_in_flight
            && core.accepts_writes()
            && core.may_record()
            && !self.is_held_up(core)
        {
            self.start_unit(core);
        }
        self.answer_ended_run(core);
    }

    /// Nothing is committed any more: a run ends with what is under way, and whoever waits for it is told.
    fn drive_frozen(&mut self, core: &mut Core) {
        self.drive(core);
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    /// Its jobs count as such, and so do the requests that wait.
    fn is_busy(&self, _core: &Core) -> bool {
        false
    }

    fn deadline(&self, core: &Core) -> Option<Deadline> {
        if self.is_held_up(core) {
            return Some(Deadline::Room(self.next_ns));
        }
        let idle = core.options.commit.idle_ns.filter(|_| self.wants_idle_run(core));
        let idle = idle.filter(|_| !planted(Planted::SleepPastIdle));
        idle.map(|ns| Deadline::Room(core.board.last_request_ns.saturating_add(ns)))
    }

    fn waits_for_buffers(&self, core: &Core) -> bool {
        core.board.commit.is_running()
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        let board = &core.board.commit;
        let is_open = board.is_open() && !self.is_held_up(core);
        if is_open || board.waiting.len() > core.paused_commits() || !self.answering.is_empty() {
            return Some("a parity commit");
        }
        let may = !core.board.upkeep.awaits_commit && !core.holds_commits();
        (board.writes_due && may).then_some("a parity commit that is due")
    }
}

impl Marked for Commits {
    type Mark = [u64; 6];

    fn mark(&self, core: &Core) -> Self::Mark {
        let CommitBoard {
            left,
            units,
            awaited,
            waiting,
            again,
            run_again,
            for_room,
            writes_due,
            is_paused,
            ..
        } = &core.board.commit;
        let [units, awaited, waiting, again] = [*units, *awaited, waiting.len(), again.len()].map(count);
        [
            *left,
            units,
            awaited,
            waiting,
            again,
            [run_again, writes_due, for_room, is_paused]
                .iter()
                .fold(0, |bits, &&is_set| bits << 1 | u64::from(is_set)),
        ]
    }
}
