//! Rebuild and scrub.
//!
//! Rebuild (EPLOG, section 3.4): commit first, then stripe by stripe the chunks that the replacement lacks,
//! then what log stripes still need. Foreground work goes on; what it writes to the replacement needs no
//! rebuilding. Scrub reads every chunk, parity and log chunk, checks it against its checksum and the code,
//! and heals what is bad.

mod pace;
mod resume;
mod units;
mod walk;

use super::history::ScrubEnd;
use super::report::{MaintenanceReport, WorkKind};
use super::request::Request;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError, Event};
use crate::plan::{Codeword, Word};
use crate::planted::{Planted, planted};
use block::slab::Key;
use block::{DevIndex, Seq, StripeId};
use format::MemberState;
use pace::Pace;
use resume::SavePoint;
use std::collections::VecDeque;
use walk::Survey;

/// Code words of which nothing has to be done that are passed over in one turn.
const PASSED_MAX: u64 = 1 << 12;
/// How often rate-limited maintenance looks whether it may go on.
const PACE_NS: u64 = 5_000_000;

/// How far maintenance is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Stripes and log stripes looked at.
    pub done: u64,
    /// Stripes and log stripes to look at in all, as far as known.
    pub total: u64,
    /// Bytes written to replacements.
    pub rebuilt_bytes: u64,
    /// Stripes of which a replacement had held its part before a restart.
    pub kept: u64,
    /// When it began, in the engine's time.
    pub started_ns: u64,
}

enum Phase {
    /// The metadata is being looked at; a scrub goes on at code word `then`.
    Metadata { then: u64 },
    /// Parity commit first. It goes on at code word `first`.
    Commit { asked: bool, first: u64 },
    /// Code words in use are counted, then it goes on at `first`.
    Survey { survey: Survey, first: u64 },
    /// Code words from `next`, so many in all; behind the last one comes the first.
    Stripes { next: u64, left: u64 },
    /// Live log stripes.
    Words { left: VecDeque<Word> },
    /// Waiting for a flush later than `after`.
    Settle { after: u64 },
    /// A rebuild waits for a checkpoint with all copies of pages later than number `after` of this assembly:
    /// a member must hold its share of the metadata, too, before it counts as healthy.
    Seal { after: u64 },
}

impl Phase {
    /// The code word at which a rebuild would go on.
    fn position(&self) -> u64 {
        match self {
            Self::Commit { first, .. } | Self::Survey { first, .. } => *first,
            Self::Stripes { next, .. } => *next,
            Self::Metadata { .. } | Self::Words { .. } | Self::Settle { .. } | Self::Seal { .. } => 0,
        }
    }
}

/// A rebuild or scrub under way.
struct UpkeepRun {
    kind: WorkKind,
    phase: Phase,
    /// The last record that was issued before it began, or began anew: what it speaks of is looked at, too.
    after: Seq,
    units: usize,
    /// Stripes that were busy and are waited for.
    awaited: Vec<StripeId>,
    /// What a unit failed on, to be looked at one by one.
    again: VecDeque<Word>,
    progress: Progress,
    report: MaintenanceReport,
    /// How much of a rebuild need not be done again after a restart.
    save: SavePoint,
    /// Chunks healed before it began.
    healed_before: u64,
    answers: Vec<Key<Request>>,
}

impl UpkeepRun {
    /// Whether all that was issued before it began is known, since it is found only when it is applied: a
    /// replacement does not have it, and what a scrub is to look at may have been damaged meanwhile.
    fn is_all_known(&self, core: &Core) -> bool {
        // A failed array applies nothing more.
        core.jobs.retired >= self.after || core.board.frozen || planted(Planted::RebuildBeforeKnown)
    }
}

/// What is under way, for those who wait for its end, and what is wanted.
#[derive(Default)]
pub(super) struct UpkeepBoard {
    kind: Option<WorkKind>,
    /// A rebuild that met lost code words is to be tried again.
    pub rebuild_wanted: bool,
    /// Whether it waits for the end of a commit.
    pub awaits_commit: bool,
}

impl Core {
    pub(super) fn why_not_rebuild(&self, dev: DevIndex) -> Option<EngineError> {
        if dev.index() >= self.health.members().len() {
            return Some(EngineError::UnknownMember { dev });
        }
        if self.health.is_writable(dev) {
            return Some(EngineError::MemberInService { dev });
        }
        let busy = self.in_flight(dev) > 0;
        self.refusal().or(busy.then_some(EngineError::MemberNotFree { dev }))
    }

    /// Whether nothing is under way and nothing stands against a run.
    pub(super) fn may_start_maintenance(&self) -> bool {
        let upkeep = &self.board.upkeep;
        upkeep.kind.is_none() && !upkeep.rebuild_wanted && !self.board.halted && !self.board.frozen
    }

    /// Whether a member is absent or failed, so that it may be replaced.
    pub(super) fn is_replaceable(&self, dev: DevIndex) -> bool {
        dev.index() < self.health.members().len()
            && matches!(self.health.state(dev), MemberState::Failed | MemberState::Absent)
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Maintenance {
    run: Option<UpkeepRun>,
    last: MaintenanceReport,
    pace: Pace,
    word: Codeword,
    /// Code words looked at in this turn of which nothing had to be done.
    passed: u64,
}

impl Maintenance {
    /// It goes on from that of another engine: what the last work found is remembered.
    pub fn inherit(&mut self, before: &Self) {
        self.last = before.last;
    }

    /// A replacement has taken the place of a failed member: rebuild onto it. Answered when the array is
    /// whole again.
    pub fn rebuild(&mut self, core: &mut Core, tag: u64, dev: DevIndex, serial: u32) {
        if let Some(error) = core.why_not_rebuild(dev) {
            core.note_work_refused(WorkKind::Rebuild);
            return core.finish(super::Done { tag, result: Err(error) });
        }
        core.forget_trouble(dev);
        core.health.renew(dev, serial);
        core.health.clear_errors(dev, u32::try_from(core.unix_s()).unwrap_or(u32::MAX));
        core.health.start_rebuild(dev, &core.store.config);
        core.publish_members();
        let request = core.open_control(tag);
        self.start_run(core, WorkKind::Rebuild, Some(request));
    }

    /// Continues the rebuild of members that were being rebuilt when the array was last stopped.
    pub fn resume_rebuild(&mut self, core: &mut Core, tag: u64) {
        let request = core.open_control(tag);
        self.start_run(core, WorkKind::Rebuild, Some(request));
    }

    /// Checks everything, from `first_stripe` on (0 = all).
    pub(super) fn scrub(&mut self, core: &mut Core, tag: u64, first_stripe: u64) {
        let request = core.open_control(tag);
        self.start_run(core, WorkKind::Scrub, Some(request));
        if let Some(UpkeepRun { kind: WorkKind::Scrub, phase: Phase::Metadata { then }, .. }) = &mut self.run
        {
            *then = first_stripe;
        }
    }

    /// What is under way, and how far it is.
    pub(super) fn under_way(&self, core: &Core) -> Option<(WorkKind, Progress, MaintenanceReport)> {
        self.run.as_ref().map(|run| (run.kind, run.progress, self.report_of(core, run)))
    }

    /// What the last rebuild or scrub found.
    pub(super) fn last_report(&self) -> MaintenanceReport {
        self.last
    }

    /// Gives up what maintenance is under way, before a stop: no unit is started any more, and whoever waits
    /// for the end is told. The superblocks remember how far it was.
    pub fn halt(&mut self, core: &mut Core) {
        core.board.halted = true;
        self.save_before_stop(core);
        let Some(run) = &mut self.run else { return };
        let answers = std::mem::take(&mut run.answers);
        if !run.again.is_empty() {
            run.save.note_hole();
        }
        let again = std::mem::take(&mut run.again);
        let again = again.iter().filter_map(|word| match word {
            Word::Stripe(stripe) => Some(stripe.get()),
            Word::Row(row) => Some((*row).into()),
            Word::Log(_) => None,
        });
        let busy = again.chain(run.awaited.iter().map(|stripe| stripe.get())).min();
        if let (WorkKind::Scrub, Phase::Stripes { next, .. } | Phase::Metadata { then: next }) =
            (run.kind, &run.phase)
        {
            let in_flight = (run.units * core.options.unit_stripes) as u64;
            core.board.members.superblock.scrub_cursor =
                next.saturating_sub(in_flight).min(busy.unwrap_or(u64::MAX));
        }
        let Some((kind, Progress { started_ns, .. }, found)) = self.under_way(core) else { return };
        if kind == WorkKind::Scrub && core.board.members.superblock.scrub_cursor == 0 {
            // It does not go on at the next start.
            core.record_scrub(ScrubEnd::GivenUp, &found, started_ns);
        }
        core.note_work_ended(kind, &answers, found, started_ns);
        for request in answers {
            core.chunk_done(request, Some(EngineError::Stopping));
        }
    }

    pub(super) fn start_run(&mut self, core: &mut Core, kind: WorkKind, request: Option<Key<Request>>) {
        let after = Seq::new(core.journal.next_seq().get() - 1);
        let done = self.run.as_ref().map_or(0, |run| run.progress.done);
        self.pace.begin(core.now_ns, done);
        match self.run.as_ref().map(|run| run.kind) {
            None => self.begin_run(core, kind, request),
            Some(WorkKind::Scrub) if kind == WorkKind::Rebuild => self.rebuild_first(core, request),
            Some(under_way) if under_way == kind => {
                let run = self.run_mut();
                run.answers.extend(request);
                if kind == WorkKind::Rebuild {
                    // What is ahead is rebuilt for both at once; only what lies behind is read once more.
                    let first = run.phase.position();
                    (run.phase, run.after) = (Phase::Commit { asked: false, first }, after);
                    run.save.forsake();
                }
                core.note_work_began(kind, request);
            }
            Some(WorkKind::Rebuild | WorkKind::Scrub) => {
                if let Some(request) = request {
                    core.chunk_done(request, Some(EngineError::Busy));
                }
            }
        }
        self.post(core);
    }

    fn begin_run(&mut self, core: &mut Core, kind: WorkKind, request: Option<Key<Request>>) {
        let after = Seq::new(core.journal.next_seq().get() - 1);
        let phase = match kind {
            WorkKind::Rebuild => Phase::Commit { asked: false, first: 0 },
            WorkKind::Scrub => {
                core.board.metadata.wanted = true;
                Phase::Metadata { then: 0 }
            }
        };
        core.note_work_began(kind, request);
        let total = core.scheme.word_count(&core.store);
        self.run = Some(UpkeepRun {
            kind,
            phase,
            after,
            units: 0,
            awaited: Vec::new(),
            again: VecDeque::new(),
            progress: Progress { total, started_ns: core.now_ns, ..Progress::default() },
            report: MaintenanceReport::default(),
            save: SavePoint::new(core.now_ns),
            healed_before: core.stats.healed,
            answers: request.into_iter().collect(),
        });
    }

    /// A rebuild goes first; the scrub is given up and says so.
    fn rebuild_first(&mut self, core: &mut Core, request: Option<Key<Request>>) {
        let after = Seq::new(core.journal.next_seq().get() - 1);
        self.pace.begin(core.now_ns, 0);
        core.board.metadata.forsake();
        let Some(scrub) = self.run.take() else { return };
        let found = self.report_of(core, &scrub);
        self.last = found;
        self.run = Some(UpkeepRun {
            kind: WorkKind::Rebuild,
            phase: Phase::Commit { asked: false, first: 0 },
            after,
            again: VecDeque::new(),
            progress: Progress { started_ns: core.now_ns, ..Progress::default() },
            report: MaintenanceReport { metadata_left: 0, metadata_repaired: 0, ..scrub.report },
            answers: request.into_iter().collect(),
            save: SavePoint::new(core.now_ns),
            units: scrub.units,
            awaited: scrub.awaited,
            healed_before: scrub.healed_before,
        });
        core.record_scrub(ScrubEnd::GivenUp, &found, scrub.progress.started_ns);
        core.note_work_ended(WorkKind::Scrub, &scrub.answers, found, scrub.progress.started_ns);
        core.note_work_began(WorkKind::Rebuild, request);
        for request in scrub.answers {
            core.chunk_done(request, Some(EngineError::Preempted));
        }
    }

    /// A round over the metadata that a scrub asked for has ended; the chunks come next.
    fn take_metadata_report(&mut self, core: &mut Core) {
        if let Some(found) = core.board.metadata.checked.take()
            && let Some(run) = &mut self.run
            && let Phase::Metadata { then } = run.phase
        {
            run.report.metadata_repaired += found.repaired;
            run.report.metadata_left += found.left;
            run.phase = Phase::Survey { survey: Survey::default(), first: then };
        }
    }

    fn report_of(&self, core: &Core, run: &UpkeepRun) -> MaintenanceReport {
        let chunk_bytes = core.store.config.geometry.chunk_bytes() as u64;
        let chunks_rebuilt = match run.kind {
            WorkKind::Rebuild => run.progress.rebuilt_bytes / chunk_bytes,
            WorkKind::Scrub => 0,
        };
        let chunks_repaired = core.stats.healed - run.healed_before;
        MaintenanceReport { chunks_repaired, chunks_rebuilt, ..run.report }
    }

    /// Moves the run on as far as it goes now.
    fn carry_on(&mut self, core: &mut Core) {
        self.passed = 0;
        loop {
            self.save_on(core);
            let Some(run) = &mut self.run else { return };
            match &mut run.phase {
                Phase::Commit { asked, first } => {
                    let first = *first;
                    if !std::mem::replace(asked, true) {
                        core.board.commit.run_again = true;
                        return;
                    }
                    if core.board.commit.is_open() || !run.is_all_known(core) {
                        return;
                    }
                    run.phase = Phase::Survey { survey: Survey::default(), first };
                }
                Phase::Survey { .. } => {
                    if !run.is_all_known(core) || !self.survey(core) {
                        return;
                    }
                }
                Phase::Metadata { .. } => return,
                Phase::Stripes { .. } | Phase::Words { .. } | Phase::Settle { .. } | Phase::Seal { .. } => {
                    let full = run.units >= core.options.units_in_flight || core.board.losses.is_behind();
                    let full = full || self.passed >= PASSED_MAX || run.is_draining();
                    if full || !self.rate_allows(core) || !self.start_unit(core) {
                        return self.finish_phase(core);
                    }
                }
            }
        }
    }

    /// The array has failed: a rebuild ends, and whoever waits is told. A scrub goes on: it says what is
    /// lost.
    fn abandon_rebuild(&mut self, core: &mut Core) {
        let done = |run: &mut UpkeepRun| run.units == 0 && run.awaited.is_empty();
        if let Some(run) = self.run.take_if(done) {
            self.last = self.report_of(core, &run);
            core.note_work_ended(WorkKind::Rebuild, &run.answers, self.last, run.progress.started_ns);
            for request in run.answers {
                core.chunk_done(request, Some(EngineError::ArrayFailed));
            }
        }
    }

    /// Whether maintenance only waits for its rate limit.
    pub(super) fn waits(&self, core: &Core) -> bool {
        self.run.as_ref().is_some_and(|run| run.units == 0) && !self.rate_allows(core)
    }

    /// Moves to the next phase when the present one has nothing left.
    fn finish_phase(&mut self, core: &mut Core) {
        let Some(run) = &mut self.run else { return };
        if run.units > 0 || !run.awaited.is_empty() || !run.again.is_empty() {
            return;
        }
        match &run.phase {
            Phase::Stripes { left: 0, .. } => {
                self.flush_position(core);
                let run = self.run_mut();
                let mut words = Vec::new();
                core.scheme.log_words(&mut words);
                if planted(Planted::RebuildSkipsLog) && run.kind == WorkKind::Rebuild {
                    words.clear();
                }
                run.progress.total += words.len() as u64;
                run.phase = Phase::Words { left: words.into() };
            }
            Phase::Words { left }
                if left.is_empty() && run.kind == WorkKind::Scrub && planted(Planted::ScrubUnflushed) =>
            {
                self.end(core);
            }
            Phase::Words { left } if left.is_empty() => {
                run.phase = Phase::Settle { after: core.board.flush.want_after() };
            }
            Phase::Metadata { .. }
            | Phase::Commit { .. }
            | Phase::Survey { .. }
            | Phase::Stripes { .. }
            | Phase::Words { .. }
            | Phase::Settle { .. }
            | Phase::Seal { .. } => {}
        }
    }

    fn end(&mut self, core: &mut Core) {
        let Some(run) = self.run.take() else { return };
        debug_assert_eq!(run.units, 0, "a run ends with its last unit");
        self.last = MaintenanceReport { completed: true, ..self.report_of(core, &run) };
        if run.kind == WorkKind::Scrub {
            core.board.members.superblock.scrub_cursor = 0;
            let found = self.last;
            core.record_scrub(ScrubEnd::Completed, &found, run.progress.started_ns);
        }
        if run.kind == WorkKind::Rebuild && run.report.lost == 0 {
            for index in 0..core.health.members().len() {
                let dev = DevIndex::new(index as u16);
                if core.health.is_rebuilding(dev) {
                    core.health.finish_rebuild(dev);
                    core.answers.events.push(Event::MemberRebuilt { dev });
                }
            }
            core.publish_members();
        }
        core.note_end_of_run(run.kind, run.report.lost);
        core.note_work_ended(run.kind, &run.answers, self.last, run.progress.started_ns);
        // A rebuild promises the replacement; what is bad elsewhere is a scrub's to say.
        let left = if run.kind == WorkKind::Scrub { run.report.chunks_left } else { 0 };
        let error = match (run.report.lost, run.report.metadata_left, left) {
            (0, 0, 0) => None,
            (0, 0, count) => Some(EngineError::Unhealed { count }),
            (0, count, _) => Some(EngineError::BadMetadata { count }),
            (count, _, _) => Some(EngineError::Lost { count }),
        };
        for request in run.answers {
            core.chunk_done(request, error);
        }
    }

    /// Tells the others what is under way.
    fn post(&self, core: &mut Core) {
        core.board.upkeep.kind = self.run.as_ref().map(|run| run.kind);
        core.board.upkeep.awaits_commit =
            matches!(self.run, Some(UpkeepRun { phase: Phase::Commit { asked: true, .. }, .. }));
    }

    /// A rebuild ends with the checkpoint that it waits for.
    fn end_if_sealed(&mut self, core: &mut Core) {
        let sealed = core.board.checkpoint.completing_sealed();
        match &self.run {
            Some(UpkeepRun { phase: Phase::Seal { after }, .. }) if sealed > *after => self.end(core),
            Some(_) | None => {}
        }
    }

    fn run_mut(&mut self) -> &mut UpkeepRun {
        self.run.as_mut().expect("called while a run is under way")
    }

    /// Whether it goes no further before something outside changes: the pace, or a stop.
    fn is_paced(&self, core: &Core) -> bool {
        core.board.halted || self.waits(core) || core.board.metadata.held_up
    }

    /// Requests that may wait for ever, for a pace or a stop.
    pub(super) fn tolerated(&self, core: &Core) -> usize {
        self.run.as_ref().filter(|_| self.is_paced(core)).map_or(0, |run| run.answers.len())
    }
}

impl Activity for Maintenance {
    fn drive(&mut self, core: &mut Core) {
        self.take_metadata_report(core);
        if std::mem::take(&mut core.board.upkeep.rebuild_wanted) {
            self.start_run(core, WorkKind::Rebuild, None);
        }
        if core.board.halted {
            return self.save_on(core);
        }
        self.end_if_sealed(core);
        if !self.give_up_scrub(core) {
            self.carry_on(core);
        }
        self.post(core);
    }

    /// A rebuild ends; a scrub goes on: it says what is lost.
    fn drive_frozen(&mut self, core: &mut Core) {
        let rebuilds = self.run.as_ref().is_some_and(|run| run.kind == WorkKind::Rebuild);
        if !rebuilds {
            return self.drive(core);
        }
        if !core.board.halted {
            self.abandon_rebuild(core);
            self.post(core);
        }
    }

    fn flushed(&mut self, core: &mut Core, number: u64) {
        self.end_if_sealed(core);
        self.position_flushed(core, number);
        match &mut self.run {
            Some(UpkeepRun { phase: Phase::Settle { after }, .. }) if number <= *after => {}
            Some(run @ UpkeepRun { kind: WorkKind::Rebuild, phase: Phase::Settle { .. }, .. })
                if run.report.lost == 0
                    && !(planted(Planted::ReturnUnsealed) && core.health.is_any_away()) =>
            {
                run.phase = Phase::Seal { after: core.board.checkpoint.completing_begun() };
                let extent = core.extent_for_rebuilt();
                core.board.checkpoint.request_copies(extent);
            }
            Some(UpkeepRun { phase: Phase::Settle { .. }, .. }) => self.end(core),
            Some(_) | None => {}
        }
        self.post(core);
    }

    /// Whether units are under way, or wait for their stripes.
    fn is_busy(&self, _core: &Core) -> bool {
        self.run.as_ref().is_some_and(|run| run.units + run.awaited.len() > 0)
    }

    fn deadline(&self, core: &Core) -> Option<Deadline> {
        let waits = self.waits(core) && !self.is_scrub_paused();
        waits.then(|| Deadline::Room(core.now_ns.saturating_add(PACE_NS)))
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        self.run.is_some()
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        (self.run.is_some() && !self.is_paced(core)).then_some("a rebuild or scrub")
    }
}

impl Marked for Maintenance {
    type Mark = [u64; 8];

    fn mark(&self, core: &Core) -> Self::Mark {
        let wanted = u64::from(core.board.upkeep.rebuild_wanted);
        let Some(run) = self.run.as_ref().filter(|_| !planted(Planted::SleepBetweenPhases)) else {
            return [wanted, 0, 0, 0, 0, 0, 0, 0];
        };
        let (phase, at) = match &run.phase {
            Phase::Metadata { then } => (7, *then),
            Phase::Commit { asked, .. } => (1, u64::from(*asked)),
            Phase::Survey { survey, .. } => (6, survey.next()),
            Phase::Stripes { left, .. } => (2, *left),
            Phase::Words { left } => (3, count(left.len())),
            Phase::Settle { after } => (4, *after),
            Phase::Seal { after } => (5, *after),
        };
        let queues = [run.units, run.awaited.len(), run.again.len(), run.answers.len()];
        let [units, awaited, again, answers] = queues.map(count);
        let rest = self.pace.mark() + 4 * wanted + 8 * run.save.mark();
        [phase, at, run.progress.done, units, awaited, again, answers, rest]
    }
}
