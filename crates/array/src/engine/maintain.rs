//! Rebuild, scrub, and telling the members who is in service.
//!
//! Rebuild (EPLOG, section 3.4): commit first, then stripe by stripe the chunks that the replacement lacks, then what
//! log stripes still need. Foreground work goes on; what it writes to the replacement needs no rebuilding. Scrub reads
//! every chunk, parity and log chunk, checks it against its checksum and the code, and heals what is bad.

mod walk;

use super::history::ScrubEnd;
use super::job::{Job, JobKind};
use super::pace::Pace;
use super::patrol::MetadataReport;
use super::request::Request;
use super::tag::{Purpose, Tag};
use super::{Engine, EngineError, Event, Mode, Pending, Work};
use crate::plan::{Codeword, Compute, CrcAt, Piece, Plan, PlanRead, PlanWrite, Word};
use crate::planted::{Planted, planted};
use crate::scheme::{Located, implied_zero};
use block::slab::Key;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Seq, Stream, StripeId};
use format::{MemberState, Superblock};
use std::collections::VecDeque;
use walk::Survey;

/// What works on all of the array, unit by unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkKind {
    /// Filling replacements.
    Rebuild,
    /// Checking everything.
    Scrub,
}

/// How far maintenance is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Stripes and log stripes looked at.
    pub done: u64,
    /// Stripes and log stripes to look at in all, as far as known.
    pub total: u64,
    /// Bytes written to replacements.
    pub rebuilt_bytes: u64,
    /// When it began, in the engine's time.
    pub started_ns: u64,
}

/// What maintenance found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MaintenanceReport {
    /// Code words that could not be read or rebuilt.
    pub lost: u64,
    /// Code words whose parity did not belong to its data although every checksum matched.
    pub code_mismatches: u64,
    /// Chunks written anew while it ran.
    pub chunks_repaired: u64,
    /// Metadata blocks that were bad and were written anew.
    pub metadata_repaired: u64,
    /// Metadata blocks that are bad still, and members that are useless and could not be spared.
    pub metadata_left: u64,
    /// Whether everything was looked at; not so if it was given up, for a rebuild or a stop.
    pub completed: bool,
}

impl MaintenanceReport {
    /// What is wrong and could not be mended.
    pub fn errors_left(&self) -> u64 {
        self.lost + self.code_mismatches + self.metadata_left
    }
}

enum Phase {
    /// The metadata is being looked at; a scrub goes on at code word `then`.
    Metadata { then: u64 },
    /// Parity commit first; and what is being written now must be known, up to record `after`. It goes on at code
    /// word `first`.
    Commit { asked: bool, after: Seq, first: u64 },
    /// Code words in use are counted, then it goes on at `first`.
    Survey { survey: Survey, first: u64 },
    /// Code words from `next`, so many in all; behind the last one comes the first.
    Stripes { next: u64, left: u64 },
    /// Live log stripes.
    Words { left: VecDeque<Word> },
    /// Waiting for a flush later than `after`.
    Settle { after: u64 },
    /// A rebuild waits for a full checkpoint later than number `after` of this assembly: what replaced a member must hold its
    /// share of the metadata, too, before it counts as healthy.
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

struct Run {
    kind: WorkKind,
    phase: Phase,
    units: usize,
    /// Stripes that were busy and are waited for.
    awaited: Vec<StripeId>,
    /// What a unit failed on, to be looked at one by one.
    again: VecDeque<Word>,
    progress: Progress,
    report: MaintenanceReport,
    /// Chunks healed before it began.
    healed_before: u64,
    answers: Vec<Key<Request>>,
}

/// See the module's documentation.
pub(super) struct Maintenance {
    superblock: Superblock,
    run: Option<Run>,
    last: MaintenanceReport,
    publishing: Option<Publishing>,
    clean_wanted: Vec<Key<Request>>,
    clean: bool,
    read_only: bool,
    halted: bool,
    pub(super) pace: Pace,
    word: Codeword,
    /// What the superblocks written last say is durable.
    confirmed_through: Seq,
    /// The wall clock at the engine's time 0, in seconds since 1970-01-01 UTC; 0 = not known.
    pub(super) unix_base_s: u64,
}

struct Publishing {
    flushing: bool,
    config_seq: u64,
}

impl Maintenance {
    pub(super) fn new(superblock: Superblock) -> Self {
        Self {
            confirmed_through: superblock.durable_through,
            superblock,
            run: None,
            last: MaintenanceReport::default(),
            publishing: None,
            clean_wanted: Vec::new(),
            clean: false,
            read_only: false,
            halted: false,
            pace: Pace::default(),
            word: Codeword::default(),
            unix_base_s: 0,
        }
    }

    /// What decides how maintenance goes on.
    pub(super) fn mark(&self) -> [u64; 8] {
        let Some(run) = &self.run else { return [0; 8] };
        let (phase, at) = match &run.phase {
            Phase::Metadata { then } => (7, *then),
            Phase::Commit { asked, .. } => (1, u64::from(*asked)),
            Phase::Survey { survey, .. } => (6, survey.next()),
            Phase::Stripes { left, .. } => (2, *left),
            Phase::Words { left } => (3, left.len() as u64),
            Phase::Settle { after } => (4, *after),
            Phase::Seal { after } => (5, *after),
        };
        let queues = [run.units, run.awaited.len(), run.again.len(), run.answers.len()];
        let [units, awaited, again, answers] = queues.map(|count| count as u64);
        [phase, at, run.progress.done, units, awaited, again, answers, self.pace.mark()]
    }

    /// What is under way.
    pub(super) fn kind(&self) -> Option<WorkKind> {
        self.run.as_ref().map(|run| run.kind)
    }

    /// Ends a scrub that has nothing in flight, to be continued never: what it found, when it began, and the answers that wait for
    /// its end. `healed`: chunks healed since assembly.
    pub(super) fn take_idle_run(
        &mut self,
        healed: u64,
    ) -> Option<(MaintenanceReport, u64, Vec<Key<Request>>)> {
        let run = self.run.take_if(|run| run.units == 0 && run.awaited.is_empty())?;
        self.last = MaintenanceReport { chunks_repaired: healed - run.healed_before, ..run.report };
        self.superblock.scrub_cursor = 0;
        Some((self.last, run.progress.started_ns, run.answers))
    }

    pub(super) fn confirmed_through(&self) -> Seq {
        self.confirmed_through
    }

    pub(super) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halted
    }

    pub(super) fn is_publishing(&self) -> bool {
        self.publishing.is_some() || !self.clean_wanted.is_empty()
    }

    /// Requests that wait for the end of the run.
    pub(super) fn answers(&self) -> usize {
        self.run.as_ref().map_or(0, |run| run.answers.len())
    }

    /// A request waits for superblocks that say the array was stopped in order. A write after this would run under
    /// superblocks that say there was none.
    pub(super) fn want_clean(&mut self, request: Key<Request>) {
        self.clean_wanted.push(request);
        self.read_only = true;
    }

    /// Whether such a request waits, and the superblocks are not being written yet.
    pub(super) fn is_stopping(&self) -> bool {
        !self.clean_wanted.is_empty() && !self.clean
    }

    /// From now on superblocks say so.
    pub(super) fn begin_clean(&mut self) {
        self.clean = true;
    }

    /// What is written to members besides their states.
    pub(super) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The same, to be changed.
    pub(super) fn superblock_mut(&mut self) -> &mut Superblock {
        &mut self.superblock
    }

    /// Whether superblocks are being written.
    pub(super) fn writes_superblocks(&self) -> bool {
        self.publishing.is_some()
    }

    /// Whether maintenance waits for the end of a commit.
    pub(super) fn awaits_commit(&self) -> bool {
        matches!(self.run, Some(Run { phase: Phase::Commit { asked: true, .. }, .. }))
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(super) fn heals_in_flight(&self) -> usize {
        self.run.as_ref().map_or(0, |run| run.units + run.awaited.len())
    }

    pub(super) fn code_mismatch(&mut self) {
        if let Some(run) = &mut self.run {
            run.report.code_mismatches += 1;
        }
    }
}

impl Engine {
    /// A replacement has taken the place of a failed member: rebuild onto it. Answered when the array is whole again.
    pub fn rebuild(&mut self, tag: u64, dev: DevIndex, serial: u32) {
        if let Some(error) = self.why_not_rebuild(dev) {
            self.note_work_refused(WorkKind::Rebuild);
            return self.finish(super::Done { tag, result: Err(error) });
        }
        self.forget_trouble(dev);
        self.health.renew(dev, serial);
        self.health.clear_errors(dev, u32::try_from(self.unix_s()).unwrap_or(u32::MAX));
        self.health.start_rebuild(dev, &self.store.config);
        self.publish_members();
        let request = self.open_control(tag);
        self.start_run(WorkKind::Rebuild, Some(request));
    }

    fn why_not_rebuild(&self, dev: DevIndex) -> Option<EngineError> {
        if dev.index() >= self.health.members().len() {
            return Some(EngineError::UnknownMember { dev });
        }
        if self.health.is_writable(dev) {
            return Some(EngineError::MemberInService { dev });
        }
        let busy = self.in_flight(dev) > 0;
        self.refusal().or(busy.then_some(EngineError::MemberNotFree { dev }))
    }

    /// Continues the rebuild of members that were being rebuilt when the array was last stopped.
    pub fn resume_rebuild(&mut self, tag: u64) {
        let request = self.open_control(tag);
        self.start_run(WorkKind::Rebuild, Some(request));
    }

    /// Checks everything, from `first_stripe` on (0 = all).
    pub fn scrub(&mut self, tag: u64, first_stripe: u64) {
        let request = self.open_control(tag);
        self.start_run(WorkKind::Scrub, Some(request));
        if let Some(Run { kind: WorkKind::Scrub, phase: Phase::Metadata { then }, .. }) =
            &mut self.maintain.run
        {
            *then = first_stripe;
        }
    }

    /// What maintenance is under way, and how far it is.
    pub fn maintenance(&self) -> Option<(WorkKind, Progress, MaintenanceReport)> {
        self.maintain.run.as_ref().map(|run| (run.kind, run.progress, self.report_of(run)))
    }

    /// What the last rebuild or scrub found.
    pub fn last_report(&self) -> MaintenanceReport {
        self.maintain.last
    }

    /// Gives up what maintenance is under way, before a stop: no unit is started any more, and whoever waits for the end is
    /// told. A rebuild starts again at the next assembly; the superblocks remember how far a scrub was.
    pub fn halt_maintenance(&mut self) {
        self.maintain.halted = true;
        let Some(run) = &mut self.maintain.run else { return };
        let answers = std::mem::take(&mut run.answers);
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
            let in_flight = (run.units * self.options.unit_stripes) as u64;
            self.maintain.superblock.scrub_cursor =
                next.saturating_sub(in_flight).min(busy.unwrap_or(u64::MAX));
        }
        let Some((kind, Progress { started_ns, .. }, found)) = self.maintenance() else { return };
        if kind == WorkKind::Scrub && self.maintain.superblock.scrub_cursor == 0 {
            // It does not go on at the next start.
            self.record_scrub(ScrubEnd::GivenUp, &found, started_ns);
        }
        self.note_work_ended(kind, &answers, found, started_ns);
        for request in answers {
            self.chunk_done(request, Some(EngineError::Stopping));
        }
    }

    /// First stripe that an interrupted scrub has not looked at; 0 if there is none to be continued.
    pub fn scrub_cursor(&self) -> u64 {
        self.maintain.superblock.scrub_cursor
    }

    pub(super) fn start_run(&mut self, kind: WorkKind, request: Option<Key<Request>>) {
        let after = Seq::new(self.journal.next_seq().get() - 1);
        let done = self.maintain.run.as_ref().map_or(0, |run| run.progress.done);
        self.maintain.pace.begin(self.now_ns, done);
        if let Some(run) = &mut self.maintain.run {
            let mut answers = std::mem::take(&mut run.answers);
            if run.kind == WorkKind::Scrub && kind == WorkKind::Rebuild {
                self.maintain.pace.begin(self.now_ns, 0);
                self.patrol.forsake();
                // A rebuild goes first; the scrub is given up and says so.
                self.maintain.last = MaintenanceReport {
                    chunks_repaired: self.stats.healed - run.healed_before,
                    ..run.report
                };
                let (found, began) = (self.maintain.last, run.progress.started_ns);
                let (units, awaited) = (run.units, std::mem::take(&mut run.awaited));
                let phase = Phase::Commit { asked: false, after, first: 0 };
                *run = Run {
                    kind,
                    phase,
                    units,
                    awaited,
                    again: VecDeque::new(),
                    progress: run.progress,
                    report: MaintenanceReport { metadata_left: 0, metadata_repaired: 0, ..run.report },
                    healed_before: run.healed_before,
                    answers: request.into_iter().collect(),
                };
                run.progress = Progress { started_ns: self.now_ns, ..Progress::default() };
                self.record_scrub(ScrubEnd::GivenUp, &found, began);
                self.note_work_ended(WorkKind::Scrub, &answers, found, began);
                self.note_work_began(kind, request);
                for scrub in answers {
                    self.chunk_done(scrub, Some(EngineError::Preempted));
                }
            } else if run.kind == kind {
                answers.extend(request);
                run.answers = answers;
                if kind == WorkKind::Rebuild {
                    // What is ahead is rebuilt for both at once; only what lies behind is read once more.
                    let first = run.phase.position();
                    run.phase = Phase::Commit { asked: false, after, first };
                }
                self.note_work_began(kind, request);
            } else {
                run.answers = answers;
                if let Some(request) = request {
                    self.chunk_done(request, Some(EngineError::Busy));
                }
            }
            return;
        }
        let phase = match kind {
            WorkKind::Rebuild => Phase::Commit { asked: false, after, first: 0 },
            WorkKind::Scrub => {
                self.patrol.want();
                Phase::Metadata { then: 0 }
            }
        };
        self.note_work_began(kind, request);
        let total = self.scheme.word_count(&self.store);
        self.maintain.run = Some(Run {
            kind,
            phase,
            units: 0,
            awaited: Vec::new(),
            again: VecDeque::new(),
            progress: Progress { total, started_ns: self.now_ns, ..Progress::default() },
            report: MaintenanceReport::default(),
            healed_before: self.stats.healed,
            answers: request.into_iter().collect(),
        });
    }

    /// A round over the metadata that a scrub asked for has ended; the chunks come next.
    pub(super) fn maintenance_metadata_checked(&mut self, found: MetadataReport) {
        if let Some(run) = &mut self.maintain.run
            && let Phase::Metadata { then } = run.phase
        {
            run.report.metadata_repaired += found.repaired;
            run.report.metadata_left += found.left;
            run.phase = Phase::Survey { survey: Survey::default(), first: then };
        }
    }

    fn report_of(&self, run: &Run) -> MaintenanceReport {
        MaintenanceReport { chunks_repaired: self.stats.healed - run.healed_before, ..run.report }
    }

    pub(super) fn drive_maintenance(&mut self) {
        if self.maintain.halted {
            return;
        }
        if self.frozen && self.maintain.run.as_ref().is_some_and(|run| run.kind == WorkKind::Rebuild) {
            return self.abandon_rebuild();
        }
        if self.give_up_scrub() {
            return;
        }
        loop {
            let Some(run) = &mut self.maintain.run else { return };
            if let Phase::Commit { asked, after, first } = &mut run.phase {
                let (after, first) = (*after, *first);
                if !std::mem::replace(asked, true) {
                    return self.ask_commit();
                }
                // What was issued before the replacement came is not on it, and is found only when it is applied.
                if self.commit_pending() || (self.retired < after && !planted(Planted::RebuildBeforeKnown)) {
                    return;
                }
                run_mut(&mut self.maintain).phase = Phase::Survey { survey: Survey::default(), first };
                continue;
            }
            if matches!(run.phase, Phase::Survey { .. }) {
                if !self.survey() {
                    return;
                }
                continue;
            }
            if matches!(run.phase, Phase::Metadata { .. }) {
                return;
            }
            let full = run.units >= self.options.units_in_flight || self.lost.is_behind();
            if full || !self.rate_allows() || !self.start_unit() {
                break;
            }
        }
        self.finish_phase();
    }

    /// The array has failed: a rebuild ends, and whoever waits is told. A scrub goes on: it says what is lost.
    fn abandon_rebuild(&mut self) {
        let done = |run: &mut Run| run.units == 0 && run.awaited.is_empty();
        if let Some(run) = self.maintain.run.take_if(done) {
            self.maintain.last = self.report_of(&run);
            let (found, began) = (self.maintain.last, run.progress.started_ns);
            self.note_work_ended(WorkKind::Rebuild, &run.answers, found, began);
            for request in run.answers {
                self.chunk_done(request, Some(EngineError::ArrayFailed));
            }
        }
    }

    /// Whether maintenance only waits for its rate limit.
    pub(super) fn maintenance_waits(&self) -> bool {
        self.maintain.run.as_ref().is_some_and(|run| run.units == 0) && !self.rate_allows()
    }

    /// Starts the next unit of the present phase; `false` if there is none or it cannot start now.
    fn start_unit(&mut self) -> bool {
        let kind = run_mut(&mut self.maintain).kind;
        let key = self.take_job(JobKind::Maintain);
        let mut plan = std::mem::take(&mut self.jobs[key].plan);
        let mut looked_at = 0;
        for _ in 0..self.options.unit_stripes {
            let full = plan.records.len() as u64 >= self.store.in_place_stripes_max();
            if full || !self.has_room_for_stripe() {
                break;
            }
            match self.next_target() {
                Some(Word::Stripe(stripe)) if !self.plan_stripe_unit(kind, stripe, &mut plan) => break,
                Some(Word::Stripe(_)) => {}
                Some(word @ (Word::Log(_) | Word::Row(_))) => self.plan_word_unit(kind, word, &mut plan),
                None => break,
            }
            looked_at += 1;
            if !run_mut(&mut self.maintain).again.is_empty() {
                break;
            }
        }
        run_mut(&mut self.maintain).progress.done += looked_at;
        self.start_planned_unit(key, plan) || looked_at > 0
    }

    /// Whether there are buffers for one more stripe, whatever has to be read for it.
    fn has_room_for_stripe(&self) -> bool {
        self.pool.free_count() >= crate::store::unit_slots(self.store.config.geometry)
    }

    /// Starts a unit's job, or gives it back if there is nothing to do in it.
    fn start_planned_unit(&mut self, key: Key<Job>, mut plan: Plan) -> bool {
        if plan.reads.is_empty() && plan.writes.is_empty() {
            self.jobs[key].plan = plan;
            self.give_job(key);
            return false;
        }
        if self.options.sort_units {
            plan.reads.sort_unstable_by_key(|read| read.addr);
            plan.writes.sort_unstable_by_key(|write| write.addr);
        }
        let chunk = self.store.config.geometry.chunk_bytes() as u64;
        let run = run_mut(&mut self.maintain);
        run.progress.rebuilt_bytes += plan.writes.len() as u64 * chunk;
        run.units += 1;
        self.jobs[key].plan = plan;
        self.start_job(key);
        true
    }

    /// `false` if the stripe is busy: it is looked at later, not again and again in this turn.
    fn plan_stripe_unit(&mut self, kind: WorkKind, stripe: StripeId, plan: &mut Plan) -> bool {
        if !self.locks.try_lock(stripe, Mode::Exclusive) {
            self.locks.wait(stripe, Pending { mode: Mode::Exclusive, work: Work::Maintain(stripe) });
            run_mut(&mut self.maintain).awaited.push(stripe);
            return false;
        }
        self.plan_locked_stripe(kind, stripe, plan);
        true
    }

    fn plan_locked_stripe(&mut self, kind: WorkKind, stripe: StripeId, plan: &mut Plan) {
        let (reads, writes) = (plan.reads.len(), plan.writes.len());
        if !self.plan_settling(kind, stripe, plan) {
            self.plan_word_unit(kind, Word::Stripe(stripe), plan);
        }
        if kind == WorkKind::Rebuild {
            self.plan_implied_zeros(stripe, plan);
        }
        // Not left to the pass over log stripes: a commit in between would dissolve them, and this stripe is done then.
        // Scrub can leave it: a commit reads and verifies what it dissolves.
        if kind == WorkKind::Rebuild && self.scheme.is_dirty(stripe) {
            self.plan_log_words_of(stripe, plan);
        }
        if plan.reads.len() == reads && plan.writes.len() == writes {
            self.unlock(stripe, Mode::Exclusive);
        } else {
            plan.stripes.push(stripe);
        }
    }

    /// A dirty stripe whose parity is in sums is committed on the way, by scrub, and by rebuild if it lacks anything: with
    /// all its data read, nothing of it is left to look at. `false` if the stripe is to be looked at as it is.
    fn plan_settling(&mut self, kind: WorkKind, stripe: StripeId, plan: &mut Plan) -> bool {
        if !self.scheme.is_dirty(stripe) || !self.accepts_writes() {
            return false;
        }
        let mut word = std::mem::take(&mut self.maintain.word);
        self.scheme.codeword(&self.store, Word::Stripe(stripe), &mut word);
        let wanted = match kind {
            WorkKind::Scrub => true,
            WorkKind::Rebuild => word.pieces.iter().any(|piece| self.lacks(piece)),
        };
        self.maintain.word = word;
        let first = plan.reads.len();
        let Some(commits) = self.scheme.commits_mut().filter(|_| wanted) else { return false };
        if !commits.plan_settle(&mut self.store, &mut self.pool, stripe, plan) {
            return false;
        }
        for index in first..plan.reads.len() {
            let PlanRead { addr, crc, index, slot, stream, .. } = plan.reads[index];
            if self.lacks(&Piece { index, addr, crc }) {
                plan.writes.push(PlanWrite { addr, slot, stream, crc_at: CrcAt::Known(crc) });
            }
        }
        true
    }

    /// Whether a piece is to be on a replacement and is not there yet.
    fn lacks(&self, piece: &Piece) -> bool {
        self.health.is_rebuilding(piece.addr.dev) && !self.health.is_readable(piece.addr)
    }

    /// The log stripes that hold the newest versions of a dirty stripe's lost columns, each once in a unit.
    fn plan_log_words_of(&mut self, stripe: StripeId, plan: &mut Plan) {
        let geometry = self.store.config.geometry;
        for column in 0..geometry.data_count() {
            if let Located::At { piece, word: word @ Word::Log(_) } =
                self.scheme.locate(&self.store, geometry.lcn_at(stripe, column))
                && !self.health.is_readable(piece.addr)
                && !plan.reads.iter().any(|read| read.word == word)
            {
                self.plan_word_unit(WorkKind::Rebuild, word, plan);
            }
        }
    }

    /// A stripe that was busy is maintenance's now.
    pub(super) fn maintain_granted(&mut self, stripe: StripeId) {
        let Some(run) = &mut self.maintain.run else { return self.unlock(stripe, Mode::Exclusive) };
        // A run that began anew may wait for a stripe twice, and is granted it twice.
        let waiting = run.awaited.iter().position(|&other| other == stripe);
        run.awaited.swap_remove(waiting.expect("only what is waited for is granted"));
        let kind = run.kind;
        if !self.has_room_for_stripe() {
            run_mut(&mut self.maintain).again.push_back(Word::Stripe(stripe));
            return self.unlock(stripe, Mode::Exclusive);
        }
        run_mut(&mut self.maintain).progress.done += 1;
        let key = self.take_job(JobKind::Maintain);
        let mut plan = std::mem::take(&mut self.jobs[key].plan);
        self.plan_locked_stripe(kind, stripe, &mut plan);
        self.start_planned_unit(key, plan);
    }

    /// Writes zeros where the replacement must hold some although no code word says so.
    fn plan_implied_zeros(&self, stripe: StripeId, plan: &mut Plan) {
        for column in 0..self.store.main_count() {
            let dev = self.store.layout.device(stripe, column);
            if self.health.is_rebuilding(dev)
                && let Some(addr) = implied_zero(&self.store, stripe, column)
                && !self.health.is_readable(addr)
                && plan.writes.iter().all(|write| write.addr != addr)
            {
                let (slot, stream) = (self.zero_slot, Stream::Data);
                plan.writes.push(PlanWrite { addr, slot, stream, crc_at: CrcAt::Nowhere });
            }
        }
    }

    fn plan_word_unit(&mut self, kind: WorkKind, word: Word, plan: &mut Plan) {
        let mut pieces = std::mem::take(&mut self.maintain.word);
        self.scheme.codeword(&self.store, word, &mut pieces);
        let skip =
            planted(Planted::RebuildSkipsLog) && kind == WorkKind::Rebuild && matches!(word, Word::Log(_));
        if pieces.data_count > 0 && !skip {
            match word {
                Word::Stripe(_) => {}
                Word::Log(_) | Word::Row(_) => plan.log_words.push((word, pieces.clone())),
            }
            match kind {
                WorkKind::Rebuild => self.plan_rebuild(word, &pieces, plan),
                WorkKind::Scrub => self.plan_scrub(word, &pieces, plan),
            }
        }
        self.maintain.word = pieces;
    }

    /// Reads as many pieces as the word has data, rebuilds the missing ones at once and writes them.
    fn plan_rebuild(&mut self, word: Word, pieces: &Codeword, plan: &mut Plan) {
        if !pieces.pieces.iter().any(|piece| self.lacks(piece)) {
            return;
        }
        if pieces.has_sums() {
            // Only while the array takes no writes; the rebuild does not end then.
            return self.note_lost_word(word);
        }
        let readable = pieces.pieces.iter().filter(|piece| self.health.is_readable(piece.addr)).count();
        if readable < pieces.data_count {
            return self.note_lost_word(word);
        }
        let columns = plan.columns.len();
        plan.columns.extend(pieces.pieces[..pieces.data_count].iter().map(|piece| piece.index));
        let columns = columns..plan.columns.len();
        align(plan, self.zero_slot);
        let present = plan.slots.len();
        let chosen =
            pieces.pieces.iter().filter(|piece| self.health.is_readable(piece.addr)).take(pieces.data_count);
        for piece in chosen {
            let slot = plan.own_slot(&mut self.pool);
            plan.columns.push(piece.index);
            plan.slots.push(slot);
            let stream = self.stream_of(piece);
            plan.reads.push(PlanRead {
                addr: piece.addr,
                crc: piece.crc,
                word,
                index: piece.index,
                slot,
                stream,
            });
        }
        let wanted = plan.slots.len();
        for piece in &pieces.pieces {
            if self.lacks(piece) {
                let slot = plan.own_slot(&mut self.pool);
                plan.columns.push(piece.index);
                plan.slots.push(slot);
                let stream = self.stream_of(piece);
                plan.writes.push(PlanWrite {
                    addr: piece.addr,
                    slot,
                    stream,
                    crc_at: CrcAt::Known(piece.crc),
                });
            }
        }
        let end = plan.slots.len();
        plan.computes.push(Compute::Rebuild { columns, present: present..wanted, wanted: wanted..end });
    }

    /// Reads every piece that can be read and compares the parity with what the code says.
    fn plan_scrub(&mut self, word: Word, pieces: &Codeword, plan: &mut Plan) {
        let first = plan.reads.len();
        // Addends of a sum are not compared: see `plan_settling`.
        let whole = |piece: &Piece| !pieces.is_sum(piece.index);
        for piece in &pieces.pieces {
            if self.health.is_readable(piece.addr) && whole(piece) {
                let slot = plan.own_slot(&mut self.pool);
                let stream = self.stream_of(piece);
                plan.reads.push(PlanRead {
                    addr: piece.addr,
                    crc: piece.crc,
                    word,
                    index: piece.index,
                    slot,
                    stream,
                });
            }
        }
        let reads = &plan.reads[first..];
        let width = self.store.code.width_max();
        let whole = reads.iter().filter(|read| read.index < width).count() == pieces.data_count;
        let parities: Vec<(usize, block::Slot)> = reads
            .iter()
            .filter(|read| read.index >= width)
            .map(|read| (read.index - width, read.slot))
            .collect();
        if !whole || parities.is_empty() {
            return;
        }
        let (columns, inputs) = (plan.columns.len(), plan.slots.len());
        for read in reads.iter().filter(|read| read.index < width) {
            plan.columns.push(read.index);
            plan.slots.push(read.slot);
        }
        let (columns, inputs) = (columns..plan.columns.len(), inputs..plan.slots.len());
        let outputs = plan.slots.len();
        for _ in 0..self.store.config.geometry.parity_count() {
            let slot = plan.own_slot(&mut self.pool);
            plan.slots.push(slot);
        }
        plan.compares.extend(parities.iter().map(|&(row, slot)| (plan.slots[outputs + row], slot)));
        plan.computes.push(Compute::Encode { columns, inputs, outputs: outputs..plan.slots.len() });
    }

    fn stream_of(&self, piece: &Piece) -> Stream {
        if self.store.is_log(piece.addr.dev) {
            Stream::Log
        } else if piece.index >= self.store.code.width_max() {
            Stream::Parity
        } else {
            Stream::Data
        }
    }

    /// A unit has ended. If something in it was lost, its code words are looked at one by one: the others must not suffer.
    pub(super) fn maintenance_job_done(&mut self, key: Key<Job>, stripes: &[StripeId], lost: bool) {
        let Some(run) = &mut self.maintain.run else { return };
        run.units -= 1;
        // With the stripes, the log stripes of their newest versions are looked at again.
        let words = if stripes.is_empty() { self.jobs[key].plan.log_words.as_slice() } else { &[] };
        if lost && stripes.len() + words.len() > 1 {
            run.again.extend(stripes.iter().map(|&stripe| Word::Stripe(stripe)));
            run.again.extend(words.iter().map(|&(word, _)| word));
        } else if lost {
            let log_word = words.first().map(|&(word, _)| word);
            let word = stripes.first().map(|&stripe| Word::Stripe(stripe)).or(log_word);
            match word {
                Some(word) => self.note_lost_word(word),
                None => run.report.lost += 1,
            }
        }
    }

    /// Too much of a code word is lost.
    fn note_lost_word(&mut self, word: Word) {
        let is_needed = self.suspect_word(word);
        run_mut(&mut self.maintain).report.lost += u64::from(is_needed);
    }

    /// Whether nothing is under way and nothing stands against a run.
    pub(super) fn may_start_maintenance(&self) -> bool {
        self.maintain.run.is_none() && !self.maintain.halted && !self.frozen
    }

    /// Moves to the next phase when the present one has nothing left.
    fn finish_phase(&mut self) {
        let Some(run) = &mut self.maintain.run else { return };
        if run.units > 0 || !run.awaited.is_empty() || !run.again.is_empty() {
            return;
        }
        match &run.phase {
            Phase::Stripes { left: 0, .. } => {
                let mut words = Vec::new();
                self.scheme.log_words(&mut words);
                if planted(Planted::RebuildSkipsLog) && run.kind == WorkKind::Rebuild {
                    words.clear();
                }
                run.progress.total += words.len() as u64;
                run.phase = Phase::Words { left: words.into() };
            }
            Phase::Words { left }
                if left.is_empty() && run.kind == WorkKind::Scrub && planted(Planted::ScrubUnflushed) =>
            {
                self.end_maintenance();
            }
            Phase::Words { left } if left.is_empty() => {
                run.phase = Phase::Settle { after: self.flush.want_after() };
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

    /// Flush number `number` has ended.
    pub(super) fn maintenance_flushed(&mut self, number: u64) {
        match &mut self.maintain.run {
            Some(Run { phase: Phase::Settle { after }, .. }) if number <= *after => {}
            Some(run @ Run { kind: WorkKind::Rebuild, phase: Phase::Settle { .. }, .. })
                if run.report.lost == 0 =>
            {
                run.phase = Phase::Seal { after: self.checkpoint.full_begun() };
                self.checkpoint.request_full();
            }
            Some(Run { phase: Phase::Settle { .. }, .. }) => self.end_maintenance(),
            Some(_) | None => {}
        }
    }

    /// Full checkpoint number `number` of this assembly is durable.
    pub(super) fn maintenance_sealed(&mut self, number: u64) {
        match &self.maintain.run {
            Some(Run { phase: Phase::Seal { after }, .. }) if number > *after => self.end_maintenance(),
            Some(_) | None => {}
        }
    }

    fn end_maintenance(&mut self) {
        let Some(run) = self.maintain.run.take() else { return };
        debug_assert_eq!(run.units, 0, "a run ends with its last unit");
        self.maintain.last = MaintenanceReport { completed: true, ..self.report_of(&run) };
        if run.kind == WorkKind::Scrub {
            self.maintain.superblock.scrub_cursor = 0;
            let found = self.maintain.last;
            self.record_scrub(ScrubEnd::Completed, &found, run.progress.started_ns);
        }
        if run.kind == WorkKind::Rebuild && run.report.lost == 0 {
            for index in 0..self.health.members().len() {
                let dev = DevIndex::new(index as u16);
                if self.health.is_rebuilding(dev) {
                    self.health.finish_rebuild(dev);
                    self.events.push(Event::MemberRebuilt { dev });
                }
            }
            self.publish_members();
        }
        self.note_end_of_run(run.kind, run.report.lost);
        self.note_work_ended(run.kind, &run.answers, self.maintain.last, run.progress.started_ns);
        let error = match (run.report.lost, run.report.metadata_left) {
            (0, 0) => None,
            (0, count) => Some(EngineError::BadMetadata { count }),
            (count, _) => Some(EngineError::Lost { count }),
        };
        for request in run.answers {
            self.chunk_done(request, error);
        }
    }

    /// The last update of the superblocks that every working member has.
    pub(super) fn published(&self) -> u64 {
        self.maintain.superblock.config_seq
    }

    /// The superblock of one member as it would be written now.
    pub fn superblock_of(&self, dev: DevIndex) -> Superblock {
        let template = Superblock {
            clean: self.maintain.clean,
            checkpoint: self.checkpoint_place().number,
            durable_through: self.durable_to_name(),
            epoch: self.journal.epoch(),
            nonce: self.journal.nonce(),
            lost_chunks: self.lost.to_note(self.store.lost.count()),
            ..self.maintain.superblock.clone()
        };
        crate::recovery::superblock_of(&template, &self.health, dev)
    }

    /// Writes the members' present state to every working member. Answers wait until that is durable: a device that
    /// missed writes must not pass for a good one after a crash.
    pub(super) fn publish_members(&mut self) {
        if self.maintain.publishing.is_some() {
            self.refence = true;
            return;
        }
        let devices: Vec<DevIndex> = self.health.writable().collect();
        for dev in devices {
            let superblock = self.superblock_of(dev);
            let copy = (superblock.config_seq % 2) as usize;
            let slot = self.take_metadata_slot();
            let bytes = self.pool.bytes_mut(slot)[..META_BYTES].as_mut();
            superblock.encode(copy, bytes.try_into().expect("a slot holds a metadata block"));
            let tag = Tag { purpose: Purpose::Superblock { slot }, dev };
            self.fence += 1;
            let offset = format::SUPERBLOCK_OFFSETS[copy];
            self.push_op(tag, OpKind::Write, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
        }
        self.maintain.confirmed_through = self.durable_through();
        self.maintain.publishing = Some(Publishing { flushing: false, config_seq: self.health.config_seq });
        if self.fence == 0 {
            self.end_publishing();
        }
    }

    /// A superblock was written.
    pub(super) fn superblock_written(
        &mut self,
        dev: DevIndex,
        slot: block::Slot,
        result: Result<(), IoFault>,
    ) {
        self.give_metadata_slot(slot);
        self.superblock_flushed(dev, result);
    }

    /// A superblock was written, or its member flushed.
    pub(super) fn superblock_flushed(&mut self, dev: DevIndex, result: Result<(), IoFault>) {
        self.fence -= 1;
        if let Err(fault) = result {
            self.fence += 1; // Keep answers held while the failure is noted.
            self.write_fault(dev, fault);
            self.fence -= 1;
        }
        if self.fence > 0 {
            return;
        }
        let publishing = self.maintain.publishing.as_mut().expect("superblocks are in flight");
        if !std::mem::replace(&mut publishing.flushing, true) {
            let devices: Vec<DevIndex> = self.health.writable().collect();
            for dev in devices {
                self.fence += 1;
                let tag = Tag { purpose: Purpose::SuperblockFlush, dev };
                self.push_op(tag, OpKind::Flush, Stream::Metadata, 0, 0, None);
            }
        }
        if self.fence == 0 {
            self.end_publishing();
        }
    }

    fn end_publishing(&mut self) {
        if let Some(publishing) = self.maintain.publishing.take()
            && !self.frozen
        {
            self.maintain.superblock.config_seq = publishing.config_seq;
        }
        if std::mem::take(&mut self.refence) && !self.frozen {
            return self.publish_members();
        }
        if self.frozen {
            // The others were not told: what would have been promised is not.
            self.held
                .iter_mut()
                .for_each(|done| done.result = done.result.and(Err(EngineError::ArrayFailed)));
        }
        self.done.append(&mut self.held);
        self.flush_unfenced();
        let error = self.frozen.then_some(EngineError::ArrayFailed);
        if self.maintain.clean {
            for request in std::mem::take(&mut self.maintain.clean_wanted) {
                self.chunk_done(request, error);
            }
        }
    }

    /// Whether a member is absent or failed, so that it may be replaced.
    pub fn is_replaceable(&self, dev: DevIndex) -> bool {
        dev.index() < self.health.members().len()
            && matches!(self.health.state(dev), MemberState::Failed | MemberState::Absent)
    }
}

fn run_mut(maintain: &mut Maintenance) -> &mut Run {
    maintain.run.as_mut().expect("called while a run is under way")
}

/// Makes columns and slots equally long, so that one range names a run of both.
fn align(plan: &mut Plan, filler: block::Slot) {
    let len = plan.columns.len().max(plan.slots.len());
    plan.columns.resize(len, 0);
    plan.slots.resize(len, filler);
}
