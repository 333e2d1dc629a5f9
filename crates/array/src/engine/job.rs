//! Carrying out plans: reads, computations, checksums, records and writes, then retirement in record order.

use super::cover::{Heal, Parent};
use super::tag::{Purpose, Tag};
use super::zero::ZeroRange;
use super::{Content, Engine, EngineError, Freed, Mode};
use crate::checksum::chunk_checksum;
use crate::plan::{CrcAt, Plan, PlanRead, Word};
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Journaling};
use block::slab::Key;
use block::{ChunkAddr, DevIndex, IoFault, OpKind, Seq, Slot};
use format::record::Zero;
use format::{RecordBuf, RecordRef};

/// What a job is for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) enum JobKind {
    /// A batch of chunk writes.
    #[default]
    Write,
    /// A stretch of a discard; the range as it continues.
    Zero(ZeroRange),
    /// Parity commit of some stripes.
    Commit,
    /// A step of garbage collection.
    Collect,
    /// Rebuild or scrub of some stripes or log stripes.
    Maintain,
}

/// How far a job is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Stage {
    /// What the plan needs is being read.
    #[default]
    Reading,
    /// Payload copies and records are on their way to being durable; nothing is overwritten yet.
    Staging,
    /// The plan's writes are under way.
    Writing,
}

/// How a step of a plan ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StepEnd {
    Done,
    /// What it was to read cannot be had.
    Lost,
}

/// Whether a read gave what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Judged {
    Good,
    Bad,
}

/// A plan and its progress.
#[derive(Default)]
pub(super) struct Job {
    pub plan: Plan,
    pub kind: JobKind,
    /// Operations and covers that must end before the next stage.
    pub outstanding: u32,
    pub acks: Vec<ChunkWrite>,
    first_seq: Seq,
    ticket: Option<u64>,
    /// Where the plan's log chunks were appended, until what its records say is applied.
    appended: Vec<u64>,
    /// A chunk that the plan needs is lost.
    pub lost: bool,
    /// The array froze before the plan's writes were issued: what its records say does not become true.
    unwritten: bool,
    pub stage: Stage,
}

impl Engine {
    /// A fresh job.
    pub(super) fn take_job(&mut self, kind: JobKind) -> Key<Job> {
        let key = self.jobs.reuse(Job::default);
        let job = &mut self.jobs[key];
        job.plan.clear();
        job.acks.clear();
        (job.kind, job.outstanding, job.ticket, job.lost) = (kind, 0, None, false);
        (job.unwritten, job.stage) = (false, Stage::Reading);
        key
    }

    /// Ends a job: its slots go back.
    pub(super) fn give_job(&mut self, key: Key<Job>) {
        if let Some(ticket) = self.jobs[key].ticket.take() {
            self.tickets.finish(ticket);
        }
        let job = &mut self.jobs[key];
        job.plan.appends.drain(..).for_each(|_| self.store.log.forget_chunk());
        job.appended.drain(..).for_each(|position| {
            self.appending.remove(&position);
        });
        for slot in job.plan.owned.drain(..) {
            self.pool.free(slot);
        }
        self.jobs.release(key);
    }

    /// Starts a planned job.
    pub(super) fn start_job(&mut self, key: Key<Job>) {
        let count = self.jobs[key].plan.reads.len();
        if count == 0 {
            return self.compute_and_write(key);
        }
        self.jobs[key].ticket = Some(self.tickets.issue());
        self.jobs[key].outstanding = count as u32;
        for step in 0..count {
            let read = self.jobs[key].plan.reads[step];
            if self.health.is_readable(read.addr) {
                let purpose = Purpose::JobRead { job: key, step: step as u32 };
                let tag = Tag { purpose, dev: read.addr.dev };
                self.push_chunk_op(tag, OpKind::Read, read.stream, read.addr, read.slot);
            } else {
                self.cover_for_job(key, step as u32, read, Heal::No);
            }
        }
    }

    fn cover_for_job(&mut self, key: Key<Job>, step: u32, read: PlanRead, heal: Heal) {
        let mut word = std::mem::take(&mut self.scratch_word);
        self.scheme.codeword(&self.store, read.word, &mut word);
        let alone = !word.is_sum(read.index);
        self.scratch_word = word;
        if !alone {
            // Nothing covers an addend by itself; the planner has another way.
            return self.job_step_done(key, StepEnd::Lost);
        }
        let target = crate::plan::Piece { index: read.index, addr: read.addr, crc: read.crc };
        self.start_cover(Parent::Job { job: key, step }, read.word, target, read.slot, heal);
    }

    /// A read of a plan ended.
    pub(super) fn job_read_done(&mut self, key: Key<Job>, step: u32, result: Result<(), IoFault>) {
        let read = self.jobs[key].plan.reads[step as usize];
        match self.verify_read(read.addr, read.crc, read.slot, result) {
            Judged::Good => self.job_step_done(key, StepEnd::Done),
            Judged::Bad => self.cover_for_job(key, step, read, Heal::Yes),
        }
    }

    /// Judges a read by its checksum; counts what is bad.
    pub(super) fn verify_read(
        &mut self,
        addr: ChunkAddr,
        crc: u32,
        slot: Slot,
        result: Result<(), IoFault>,
    ) -> Judged {
        match result {
            Ok(()) if self.options.content == Content::Meaningless || planted(Planted::SkipChecksum) => {
                return Judged::Good;
            }
            Ok(()) if chunk_checksum(self.pool.bytes(slot)) == crc => return Judged::Good,
            Ok(()) => self.health.errors_mut(addr.dev).checksum += 1,
            Err(IoFault::Gone) => self.fail_for_fault(addr.dev),
            Err(IoFault::Device { .. } | IoFault::Short | IoFault::NoSpace) => {
                self.health.errors_mut(addr.dev).read += 1;
            }
        }
        Judged::Bad
    }

    /// One step of a job's present stage ended.
    pub(super) fn job_step_done(&mut self, key: Key<Job>, end: StepEnd) {
        let job = &mut self.jobs[key];
        job.lost |= end == StepEnd::Lost;
        job.outstanding -= 1;
        if job.outstanding > 0 {
            return;
        }
        match job.stage {
            Stage::Reading => self.compute_and_write(key),
            Stage::Staging => self.payload_written(key),
            Stage::Writing => self.writes_done(key),
        }
    }

    fn compute_and_write(&mut self, key: Key<Job>) {
        if self.jobs[key].lost {
            return self.end_job(key);
        }
        let mut plan = std::mem::take(&mut self.jobs[key].plan);
        if self.options.content == Content::Checked {
            self.computer.run(&plan, &mut self.pool, &self.store.code);
        }
        if !self.check_results(&mut plan) {
            self.jobs[key].plan = plan;
            self.jobs[key].lost = true;
            return self.end_job(key);
        }
        let journaling = if plan.records.is_empty() { Journaling::Nothing } else { self.journaling };
        if journaling == Journaling::WithWrites {
            self.record(key, &mut plan);
            self.retiring.push_back(key);
        }
        if journaling == Journaling::Nothing {
            self.place_appends(key, &mut plan);
        }
        self.jobs[key].plan = plan;
        match journaling {
            Journaling::BeforeWrites => self.stage(key),
            Journaling::WithWrites | Journaling::Nothing => self.issue_writes(key),
        }
    }

    /// The plan's log chunks get their places: from now on their order is that of the records.
    fn place_appends(&mut self, key: Key<Job>, plan: &mut Plan) {
        for append in plan.appends.drain(..) {
            let (position, block) = self.store.log.append_reserved();
            self.appending.insert(position);
            self.jobs[key].appended.push(position);
            plan.records.set_log_block(append.record, block);
            plan.writes[append.writes].iter_mut().for_each(|write| write.addr.chunk = block);
        }
    }

    /// Starts a job's writes.
    pub(super) fn issue_writes(&mut self, key: Key<Job>) {
        self.jobs[key].stage = Stage::Writing;
        self.jobs[key].unwritten = self.frozen;
        let mut outstanding = 0;
        let staged = self.journaling == Journaling::BeforeWrites && !planted(Planted::OverwriteBeforeLog);
        for step in 0..self.jobs[key].plan.writes.len() {
            let write = self.jobs[key].plan.writes[step];
            let written = staged && self.store.is_log(write.addr.dev);
            if self.health.is_writable(write.addr.dev) && !written {
                outstanding += 1;
                let purpose = Purpose::JobWrite { job: key, step: step as u32 };
                let tag = Tag { purpose, dev: write.addr.dev };
                self.push_chunk_op(tag, OpKind::Write, write.stream, write.addr, write.slot);
            }
        }
        self.jobs[key].outstanding = outstanding;
        if outstanding == 0 {
            self.writes_done(key);
        }
    }

    /// All writes of a job have ended.
    fn writes_done(&mut self, key: Key<Job>) {
        if self.jobs[key].plan.records.is_empty() {
            return self.end_job(key);
        }
        match self.journaling {
            Journaling::WithWrites | Journaling::BeforeWrites => self.retire(),
            Journaling::Nothing => {
                if !self.jobs[key].unwritten {
                    self.apply_records(key, self.retired);
                }
                self.quarantine_freed(self.retired, Freed::Chunks);
                self.end_job(key);
            }
        }
    }

    /// Notes the checksums of what is about to be written; `false` if something known came out wrong.
    fn check_results(&mut self, plan: &mut Plan) -> bool {
        if self.options.content == Content::Meaningless {
            return true;
        }
        let mut good = true;
        for write in &plan.writes {
            match write.crc_at {
                CrcAt::Nowhere => {}
                CrcAt::Known(crc) => {
                    good &= chunk_checksum(self.pool.bytes(write.slot)) == crc;
                }
                CrcAt::Record(at) => {
                    plan.records.set_crc(at, chunk_checksum(self.pool.bytes(write.slot)));
                }
                CrcAt::Piece(at) => {
                    plan.records.set_crc(at.crc(), chunk_checksum(self.pool.bytes(write.slot)));
                }
            }
        }
        for &(one, other) in &plan.compares {
            if self.pool.bytes(one) != self.pool.bytes(other) {
                self.maintain.code_mismatch();
            }
        }
        good
    }

    /// Puts a plan's records into the journal.
    pub(super) fn record(&mut self, key: Key<Job>, plan: &mut Plan) {
        self.place_appends(key, plan);
        self.jobs[key].first_seq = self.journal.next_seq();
        for index in 0..plan.records.len() {
            let mut record = plan.records.get(index);
            let mut nothing = RecordBuf::default();
            if let (Some((first, _)), true) = (record.discarded(), planted(Planted::ForgetDiscard)) {
                Zero::push(&mut nothing, first, 0);
                record = nothing.get(0);
            }
            while self.journal.try_push(record, &self.store.log).is_none() {
                self.emit_frame();
            }
        }
    }

    /// A write of a plan ended.
    pub(super) fn job_write_done(
        &mut self,
        dev: DevIndex,
        (key, step): (Key<Job>, u32),
        result: Result<(), IoFault>,
    ) {
        match result {
            Ok(()) => {
                self.flush.wrote(dev);
                if self.health.is_rebuilding(dev) {
                    let addr = self.jobs[key].plan.writes[step as usize].addr;
                    let blocks = if self.store.is_log(addr.dev) { self.store.chunk_blocks() } else { 1 };
                    self.health.mark_fresh_blocks(addr.dev, addr.chunk, blocks);
                }
            }
            Err(fault) => self.write_fault(dev, fault),
        }
        self.job_step_done(key, StepEnd::Done);
    }

    /// Applies the records of every job whose writes have ended, in record order, and acknowledges.
    pub(super) fn retire(&mut self) {
        while let Some(&key) = self.retiring.front() {
            if self.jobs[key].outstanding > 0 || self.jobs[key].stage != Stage::Writing {
                return;
            }
            self.retiring.pop_front();
            let first = self.jobs[key].first_seq;
            self.retired = Seq::new(first.get() + self.jobs[key].plan.records.len() as u64 - 1);
            if !self.jobs[key].unwritten {
                self.apply_records(key, first);
            }
            let discard = matches!(self.jobs[key].kind, JobKind::Zero(_));
            self.quarantine_freed(self.retired, if discard { Freed::Discarded } else { Freed::Chunks });
            self.end_job(key);
        }
    }

    /// What a job's records say becomes true, from record number `seq` on.
    fn apply_records(&mut self, key: Key<Job>, mut seq: Seq) {
        let plan = std::mem::take(&mut self.jobs[key].plan);
        for index in 0..plan.records.len() {
            let record = plan.records.get(index);
            self.count_record(record);
            self.scheme
                .apply(&mut self.store, seq, record)
                .expect("a record fits the state it was planned on");
            if let Some((first, count)) = record.discarded() {
                self.note_rewritten(first, count);
            }
            seq = seq.next();
        }
        self.jobs[key].plan = plan;
    }

    /// What a job had taken belongs to what its records say; it is free again if the job has come to nothing.
    fn settle_leases(&mut self, key: Key<Job>) {
        let Self { jobs, store, scheme, .. } = self;
        let job = &mut jobs[key];
        if !job.lost {
            return job.plan.leases.keep();
        }
        let mut collects = scheme.collects_mut();
        job.plan.leases.give_all_back(&mut store.spaces, |row| {
            collects.as_mut().expect("only such schemes take rows").row_returned(row);
        });
    }

    fn count_record(&mut self, record: RecordRef<'_>) {
        let tally = record.tally(&self.store.config.geometry);
        self.stats.log_stripes += tally.log_stripes;
        self.stats.log_members += tally.log_members;
        self.stats.full_stripes += tally.full_stripes;
        self.stats.short_stripes += tally.short_stripes;
        self.stats.stripes_committed += tally.stripes_committed;
    }

    /// Everything a job does is done: answers, locks, slots.
    pub(super) fn end_job(&mut self, key: Key<Job>) {
        self.note_room();
        let lost = self.jobs[key].lost;
        self.settle_leases(key);
        let refusal = self.refusal();
        let geometry = self.store.config.geometry;
        let acks = std::mem::take(&mut self.jobs[key].acks);
        for (i, write) in acks.iter().enumerate() {
            let mode = self.mode_of(i.checked_sub(1).map(|before| &acks[before]), write);
            self.unlock(geometry.stripe_of(write.lcn), mode);
            if lost {
                self.suspect_word(Word::Stripe(geometry.stripe_of(write.lcn)));
            } else if refusal.is_none() {
                self.note_rewritten(write.lcn, 1);
            }
            let unreadable = lost.then_some(EngineError::Unreadable { lcn: write.lcn });
            self.write_done(write, unreadable.or(refusal));
        }
        self.jobs[key].acks = acks;
        let stripes = std::mem::take(&mut self.jobs[key].plan.stripes);
        for &stripe in &stripes {
            self.unlock(stripe, Mode::Exclusive);
        }
        let kind = self.jobs[key].kind;
        match kind {
            JobKind::Write => {}
            JobKind::Zero(range) => {
                self.discard_done(key, refusal);
                self.continue_zero(range);
            }
            JobKind::Commit => self.commit_unit_done(&stripes, lost),
            JobKind::Collect => {
                if lost {
                    let collects = self.scheme.collects_mut().expect("only such schemes plan steps");
                    collects.step_lost(&self.jobs[key].plan);
                }
                self.collection_step_done();
            }
            JobKind::Maintain => self.maintenance_job_done(key, &stripes, lost),
        }
        self.jobs[key].plan.stripes = stripes;
        self.give_job(key);
    }
}
