//! Carrying out plans: reads, computations, checksums, records and writes, then retirement in record order.

use super::Jobs;
use super::lock::Mode;
use super::quarantine::Freed;
use super::wake::count;
use super::{Content, Core, EngineError, EngineStats, JobOwner};
use super::{Purpose, Tag};
use crate::checksum::chunk_checksum;
use crate::plan::{CrcAt, Plan, PlanRead, Word};
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Journaling, Origin};
use block::slab::Key;
use block::{ChunkAddr, DevIndex, Geometry, IoFault, OpKind, Seq, Slot};
use format::record::Zero;
use format::{Bond, RecordBuf, RecordRef};

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

/// Whether what was rebuilt is written back to its device, where it was bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heal {
    Yes,
    No,
}

/// A plan and its progress.
pub struct Job {
    pub(super) plan: Plan,
    pub(super) owner: JobOwner,
    /// Operations and covers that must end before the next stage.
    pub(super) outstanding: u32,
    pub(super) acks: Vec<ChunkWrite>,
    first_seq: Seq,
    ticket: Option<u64>,
    /// Where the plan's log chunks were appended, until what its records say is applied.
    appended: Vec<u64>,
    /// Parity that does not belong to its data although every checksum matched.
    pub(super) mismatches: u64,
    /// Bad chunks that it computed and that there was no room to write anew.
    pub(super) unhealed: u64,
    /// A chunk that the plan needs is lost.
    pub(super) lost: bool,
    /// The array froze before the plan's writes were issued: what its records say does not become true.
    unwritten: bool,
    pub(super) stage: Stage,
    /// Its plan is with somebody who extends it.
    lent: bool,
}

impl Job {
    fn new(owner: JobOwner) -> Self {
        Self {
            plan: Plan::default(),
            owner,
            outstanding: 0,
            acks: Vec::new(),
            first_seq: Seq::new(0),
            ticket: None,
            appended: Vec::new(),
            mismatches: 0,
            unhealed: 0,
            lost: false,
            unwritten: false,
            stage: Stage::Reading,
            lent: false,
        }
    }
}

impl Core {
    /// A fresh job.
    pub(super) fn take_job(&mut self, owner: JobOwner) -> Key<Job> {
        let key = self.jobs.table.reuse(|| Job::new(owner));
        let job = &mut self.jobs.table[key];
        job.plan.clear();
        job.acks.clear();
        (job.owner, job.outstanding, job.ticket) = (owner, 0, None);
        (job.mismatches, job.unhealed, job.stage) = (0, 0, Stage::Reading);
        (job.lost, job.unwritten) = (false, false);
        key
    }

    /// Takes a job's plan out, to be extended by whoever needs the whole core for that. It comes back before
    /// the job starts.
    pub(super) fn lend_plan(&mut self, key: Key<Job>) -> Plan {
        let job = &mut self.jobs.table[key];
        assert!(!std::mem::replace(&mut job.lent, true), "a plan is lent to one at a time");
        std::mem::take(&mut job.plan)
    }

    /// Gives back what [`Core::lend_plan`] gave.
    pub(super) fn return_plan(&mut self, key: Key<Job>, plan: Plan) {
        let job = &mut self.jobs.table[key];
        (job.plan, job.lent) = (plan, false);
    }

    /// Ends a job: its slots go back.
    pub(super) fn give_job(&mut self, key: Key<Job>) {
        if let Some(ticket) = self.jobs.table[key].ticket.take() {
            self.reads.tickets.finish(ticket);
        }
        let job = &mut self.jobs.table[key];
        job.plan.appends.drain(..).for_each(|_| self.store.log.forget_chunk());
        job.appended.drain(..).for_each(|position| {
            self.jobs.appending.remove(&position);
        });
        job.plan.release_slots(&mut self.pool);
        self.jobs.table.release(key);
    }

    /// Gives back the slots of what a job only computes with.
    fn release_inputs(&mut self, key: Key<Job>) {
        self.jobs.table[key].plan.release_inputs(&mut self.pool);
    }

    /// Starts a planned job.
    pub(super) fn start_job(&mut self, key: Key<Job>) {
        assert!(!self.jobs.table[key].lent, "a plan comes back before its job starts");
        self.verify_held(key);
        let count = self.jobs.table[key].plan.reads.len();
        if count == 0 {
            return self.compute_and_write(key);
        }
        self.jobs.table[key].ticket = Some(self.reads.tickets.issue());
        self.jobs.table[key].outstanding = count as u32;
        if planted(Planted::InputsGivenBackEarly) {
            self.release_inputs(key);
        }
        for step in 0..count {
            let read = self.jobs.table[key].plan.reads[step];
            if self.health.is_readable(read.addr) {
                let purpose = Purpose::JobRead { job: key, step: step as u32 };
                let tag = Tag { purpose, dev: read.addr.dev };
                self.push_chunk_op(tag, OpKind::Read, read.stream, read.addr, read.slot);
            } else {
                self.cover_for_job(key, step as u32, read, Heal::No);
            }
        }
    }

    /// Compares what a plan has from the scheme's cache with its checksums: what differs is read.
    fn verify_held(&mut self, key: Key<Job>) {
        let plan = &mut self.jobs.table[key].plan;
        if plan.held.entries.is_empty() {
            return;
        }
        self.stats.cache.stripes_found += plan.held.found;
        self.stats.cache.stripes_not_found += count(plan.held.entries.len()) - plan.held.found;
        let believed = self.options.content == Content::Meaningless || planted(Planted::StripeCacheKeepsOld);
        for read in plan.held.reads.iter().filter(|_| !believed) {
            if chunk_checksum(self.pool.bytes(read.slot)) != read.crc {
                self.stats.cache.stale += 1;
                plan.reads.push(*read);
            }
        }
        if planted(Planted::StripeCacheFilledEarly) {
            plan.held.copies.iter().for_each(|&(from, to)| self.pool.copy(from, to));
        }
    }

    /// What a plan's records say has become true: that is what the scheme's cache has now.
    fn fill_cache(&mut self, key: Key<Job>) {
        let held = &mut self.jobs.table[key].plan.held;
        if held.entries.is_empty() {
            return;
        }
        if self.options.content == Content::Checked && !planted(Planted::StripeCacheKeepsOld) {
            held.copies.iter().for_each(|&(from, to)| self.pool.copy(from, to));
        }
        self.scheme.caches().expect("it gave the entries").applied(held);
    }

    /// A job has ended: entries of the scheme's cache that it still has are those of a plan that came to
    /// nothing; and the cache knows nothing of what rebuild and scrub had.
    fn settle_cache(&mut self, key: Key<Job>) {
        let job = &mut self.jobs.table[key];
        if let (false, Some(caches)) = (job.plan.held.entries.is_empty(), self.scheme.caches()) {
            caches.gave_up(&mut job.plan.held);
        }
        if job.owner == JobOwner::Maintenance
            && let Some(caches) = self.scheme.caches()
        {
            job.plan.stripes.iter().for_each(|&stripe| caches.forget(stripe));
        }
    }

    /// A read of a plan ended.
    pub(super) fn job_read_done(&mut self, key: Key<Job>, step: u32, result: Result<(), IoFault>) {
        let read = self.jobs.table[key].plan.reads[step as usize];
        match self.verify_read(read.addr, read.crc, read.slot, result) {
            Judged::Good => self.job_step_done(key, StepEnd::Done),
            Judged::Bad
                if planted(Planted::TrustShared) && self.jobs.table[key].plan.is_decoded_from(&read) =>
            {
                self.job_step_done(key, StepEnd::Done);
            }
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
        let job = &mut self.jobs.table[key];
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
        if self.jobs.table[key].lost {
            return self.end_job(key);
        }
        self.prefetch_for_records(key);
        if self.options.content == Content::Checked && self.compute(key) == Judged::Bad {
            self.jobs.table[key].lost = true;
            return self.end_job(key);
        }
        self.release_inputs(key);
        let has_records = !self.jobs.table[key].plan.records.is_empty();
        match if has_records { self.jobs.journaling } else { Journaling::Nothing } {
            Journaling::WithWrites => {
                self.record(key);
                self.jobs.retiring.push_back(key);
                self.issue_writes(key);
            }
            Journaling::Nothing => {
                self.place_appends(key);
                self.issue_writes(key);
            }
            Journaling::BeforeWrites => self.stage(key),
        }
    }

    /// Decodes what could not be read, then computes what the plan says.
    fn compute(&mut self, key: Key<Job>) -> Judged {
        let Jobs { table, computer, sums, .. } = &mut self.jobs;
        let plan = &table[key].plan;
        computer.decode(plan, &mut self.pool, &self.store.code);
        let pool = &self.pool;
        let wrong = |read: &PlanRead| chunk_checksum(pool.bytes(read.slot)) != read.crc;
        if plan.missing.iter().any(wrong) && !planted(Planted::TrustShared) {
            self.stats.lost += 1;
            return Judged::Bad;
        }
        computer.run(plan, &mut self.pool, &self.store.code);
        sums.follow(plan, &self.pool, self.set_aside.zero_slot);
        self.check_results(key)
    }

    /// The plan's log chunks get their places: from now on their order is that of the records.
    fn place_appends(&mut self, key: Key<Job>) {
        let Jobs { table, appending, .. } = &mut self.jobs;
        let Job { plan: Plan { appends, records, writes, .. }, appended, .. } = &mut table[key];
        for append in appends.drain(..) {
            let (position, block) = self.store.log.append_reserved();
            appending.insert(position);
            appended.push(position);
            records.set_log_block(append.record, block);
            writes[append.writes].iter_mut().for_each(|write| write.addr.chunk = block);
        }
    }

    /// Starts a job's writes.
    pub(super) fn issue_writes(&mut self, key: Key<Job>) {
        let job = &mut self.jobs.table[key];
        job.stage = Stage::Writing;
        job.unwritten = self.board.frozen;
        let writes = std::mem::take(&mut job.plan.writes);
        let mut outstanding = 0;
        let staged =
            self.jobs.journaling == Journaling::BeforeWrites && !planted(Planted::OverwriteBeforeLog);
        for (step, write) in (0..).zip(&writes) {
            let written = staged && self.store.is_log(write.addr.dev);
            let known = matches!(write.crc_at, CrcAt::Change { .. });
            if self.health.is_writable(write.addr.dev) && !written && !known {
                outstanding += 1;
                let tag = Tag { purpose: Purpose::JobWrite { job: key, step }, dev: write.addr.dev };
                self.push_chunk_op(tag, OpKind::Write, write.stream, write.addr, write.slot);
            }
        }
        let job = &mut self.jobs.table[key];
        (job.plan.writes, job.outstanding) = (writes, outstanding);
        if outstanding == 0 {
            self.writes_done(key);
        }
    }

    /// All writes of a job have ended.
    fn writes_done(&mut self, key: Key<Job>) {
        if self.jobs.table[key].plan.records.is_empty() {
            return self.end_job(key);
        }
        match self.jobs.journaling {
            Journaling::WithWrites | Journaling::BeforeWrites => self.retire(),
            Journaling::Nothing => {
                if !self.jobs.table[key].unwritten {
                    self.apply_records(key, self.jobs.retired);
                }
                self.quarantine_freed(self.jobs.retired, Freed::Chunks);
                self.end_job(key);
            }
        }
    }

    /// Notes the checksums of what is about to be written, and judges what is known already.
    fn check_results(&mut self, key: Key<Job>) -> Judged {
        let Self { jobs: Jobs { table, sums, .. }, pool, .. } = self;
        let Job { plan: Plan { writes, records, compares, .. }, mismatches, .. } = &mut table[key];
        let mut judged = Judged::Good;
        for write in writes {
            match write.crc_at {
                CrcAt::Nowhere => {}
                CrcAt::Known(crc) if chunk_checksum(pool.bytes(write.slot)) == crc => {}
                CrcAt::Known(_) => judged = Judged::Bad,
                CrcAt::Record(at) => records.set_crc(at, sums.checksum(write.slot, pool)),
                CrcAt::Change { at, old } => records.set_crc(at, old ^ sums.change(write.slot, pool)),
                CrcAt::Piece(at) => records.set_crc(at.crc(), sums.checksum(write.slot, pool)),
            }
        }
        for &(one, other) in &*compares {
            *mismatches += u64::from(pool.bytes(one) != pool.bytes(other));
        }
        judged
    }

    /// Puts a plan's records into the journal.
    pub(super) fn record(&mut self, key: Key<Job>) {
        self.place_appends(key);
        let is_durable = |ack: &ChunkWrite| match ack.origin {
            Origin::Request(request) => self.requests[Key::from_index(request)].durable,
            Origin::Entry(_) => false,
        };
        if self.jobs.table[key].acks.iter().any(is_durable) {
            self.board.flush.expect();
        }
        self.jobs.table[key].first_seq = self.journal.next_seq();
        for index in 0..self.jobs.table[key].plan.records.len() {
            while !self.try_record(key, index) {
                self.emit_frame();
            }
        }
    }

    /// `false` if the frame is full.
    fn try_record(&mut self, key: Key<Job>, index: usize) -> bool {
        let plan = &self.jobs.table[key].plan;
        let record = plan.records.get(index);
        let is_bonded = plan.untorn && index + 1 < plan.records.len() && !planted(Planted::RecordsUnbonded);
        let bond = if is_bonded { Bond::Next } else { Bond::None };
        let mut nothing = RecordBuf::default();
        let record = match record.discarded() {
            Some((first, _)) if planted(Planted::ForgetDiscard) => {
                Zero::push(&mut nothing, first, 0);
                nothing.get(0)
            }
            Some(_) | None => record,
        };
        self.journal.try_push(record, bond, &self.store.log).is_some()
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
                let addr = self.jobs.table[key].plan.writes[step as usize].addr;
                self.board.flush.wrote_chunk(addr);
                if self.health.is_rebuilding(dev) {
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
        while let Some(&key) = self.jobs.retiring.front() {
            if self.jobs.table[key].outstanding > 0 || self.jobs.table[key].stage != Stage::Writing {
                return;
            }
            self.jobs.retiring.pop_front();
            let first = self.jobs.table[key].first_seq;
            self.jobs.retired = Seq::new(first.get() + self.jobs.table[key].plan.records.len() as u64 - 1);
            if !self.jobs.table[key].unwritten {
                self.apply_records(key, first);
            }
            match self.jobs.table[key].owner == JobOwner::Zeros {
                true => self.quarantine_freed(self.jobs.retired, Freed::Discarded),
                false => self.quarantine_freed(self.jobs.retired, Freed::Chunks),
            }
            self.end_job(key);
        }
    }

    /// Whether it is worth while to ask for what a job needs of what is known before it is looked at: a unit
    /// of commits needs much at once.
    fn looks_ahead(&self, key: Key<Job>) -> bool {
        self.jobs.table[key].owner == JobOwner::Commits || self.scheme.is_far(&self.store)
    }

    /// Asks for what a job's records will need of what is known.
    fn prefetch_for_records(&self, key: Key<Job>) {
        if self.looks_ahead(key) {
            let records = self.jobs.table[key].plan.records.iter();
            records.for_each(|record| self.scheme.prefetch(&self.store, record));
        }
    }

    /// What a job's records say becomes true, from record number `seq` on.
    fn apply_records(&mut self, key: Key<Job>, mut seq: Seq) {
        if self.looks_ahead(key) {
            let records = self.jobs.table[key].plan.records.iter();
            records.for_each(|record| self.scheme.foresee(&self.store, record));
        }
        for index in 0..self.jobs.table[key].plan.records.len() {
            let record = self.jobs.table[key].plan.records.get(index);
            count_record(&mut self.stats, &self.store.config.geometry, record);
            if let RecordRef::FullStripe(record) = record {
                let replaces = self.scheme.is_in_use(&self.store, record.stripe());
                self.stats.replaced_stripes += u64::from(replaces);
            }
            let discarded = record.discarded();
            // Looked up anew: a copy would wait for what was just put together.
            self.scheme
                .apply(&mut self.store, seq, self.jobs.table[key].plan.records.get(index))
                .expect("a record fits the state it was planned on");
            if let Some((first, count)) = discarded {
                self.note_rewritten(first, count);
            }
            self.note_missed(key, index);
            seq = seq.next();
        }
        self.fill_cache(key);
        self.forget_clean_stuck();
    }

    /// Everything a job does is done: answers, locks, slots. Its owner, if it is an activity, is told as soon
    /// as the present step is over, and the job stays until then.
    pub(super) fn end_job(&mut self, key: Key<Job>) {
        self.note_room();
        self.settle_leases(key);
        self.settle_cache(key);
        self.acknowledge(key);
        for index in 0..self.jobs.table[key].plan.stripes.len() {
            let stripe = self.jobs.table[key].plan.stripes[index];
            self.unlock(stripe, Mode::Exclusive);
        }
        match self.jobs.table[key].owner {
            JobOwner::Requests => return self.give_job(key),
            JobOwner::Zeros => {
                let refusal = self.refusal();
                self.discard_done(key, refusal);
            }
            JobOwner::Commits | JobOwner::Collector | JobOwner::Maintenance => {}
        }
        self.jobs.ended.push_back(key);
    }

    /// What a job had taken belongs to what its records say; it is free again if the job has come to nothing.
    fn settle_leases(&mut self, key: Key<Job>) {
        let Self { jobs, store, scheme, .. } = self;
        let job = &mut jobs.table[key];
        if !job.lost {
            return job.plan.leases.keep();
        }
        let mut collects = scheme.collects_mut();
        job.plan.leases.give_all_back((&mut store.spaces, &mut store.table), |row| {
            collects.as_mut().expect("only such schemes take rows").row_returned(row);
        });
    }

    /// Tells whoever waits for a job's chunk writes, and gives back their stripes.
    fn acknowledge(&mut self, key: Key<Job>) {
        let (lost, refusal) = (self.jobs.table[key].lost, self.refusal());
        let geometry = self.store.config.geometry;
        for index in 0..self.jobs.table[key].acks.len() {
            let acks = &self.jobs.table[key].acks;
            let write = acks[index];
            let mode = self.mode_of(index.checked_sub(1).map(|before| &acks[before]), &write);
            self.unlock_write(&write, mode);
            if lost {
                self.suspect_word(Word::Stripe(geometry.stripe_of(write.lcn)));
            } else if refusal.is_none() {
                self.note_rewritten(write.lcn, 1);
            }
            let unreadable = lost.then_some(EngineError::Unreadable { lcn: write.lcn });
            self.write_done(&write, unreadable.or(refusal));
        }
    }

    /// The next job of an activity that has ended. Whoever starts jobs in a loop asks after each.
    pub(super) fn take_ended(&mut self, owner: JobOwner) -> Option<Key<Job>> {
        let key = *self.jobs.ended.front()?;
        if self.jobs.table[key].owner != owner {
            return None;
        }
        self.jobs.ended.pop_front()
    }
}

/// Counts what a record says was done.
fn count_record(stats: &mut EngineStats, geometry: &Geometry, record: RecordRef<'_>) {
    let tally = record.tally(geometry);
    stats.log_stripes += tally.log_stripes;
    stats.log_members += tally.log_members;
    stats.full_stripes += tally.full_stripes;
    stats.short_stripes += tally.short_stripes;
    stats.stripes_committed += tally.stripes_committed;
}
