//! Overwriting safely: before a plan writes in place, each of its chunks goes to the payload ring of its own device, its log
//! chunks to the log devices, and its records to the journal; when a flush has made both durable the plan's writes are issued. A crash in between leaves
//! the old stripe whole, a crash later is repaired from the copies, also when members are lost at the same instant.
//!
//! Plans wait here in order of arrival until the rings and the journal have room, so the rings are filled in the order of
//! the records and emptied in the same order. Whatever is staged when a flush begins shares it (group commit).

use super::job::{Job, Stage, StepEnd};
use super::tag::{Purpose, Tag};
use super::{Engine, OpKind};
use crate::health::Health;
use crate::plan::{CrcAt, Plan, PlanWrite};
use crate::planted::{Planted, planted};
use crate::store::Store;
use block::slab::Key;
use block::{DevIndex, IoFault, Seq, Stream};
use std::collections::VecDeque;

/// One main device's ring. Positions count chunks since assembly and never wrap.
#[derive(Default)]
struct Ring {
    head: u64,
    tail: u64,
    /// The last record of each plan that has copies here, and where those end.
    held: VecDeque<(Seq, u64)>,
}

/// See the module's documentation.
pub(super) struct Payloads {
    rings: Vec<Ring>,
    /// Chunks in a ring.
    capacity: u64,
    chunk_blocks: u32,
    /// Planned jobs that wait for room.
    waiting: VecDeque<Key<Job>>,
    /// Jobs whose copies are written, each with the number of the flush after which it may go on.
    settling: VecDeque<(u64, Key<Job>)>,
    /// Chunks that a plan wants of each ring.
    wanted: Vec<u64>,
}

impl Payloads {
    /// Empty rings: recovery needs nothing of what an earlier assembly left in them.
    pub(super) fn new(store: &Store) -> Self {
        Self {
            rings: (0..store.main_count()).map(|_| Ring::default()).collect(),
            capacity: store.payload_chunks(),
            chunk_blocks: store.chunk_blocks(),
            waiting: VecDeque::new(),
            settling: VecDeque::new(),
            wanted: vec![0; store.main_count()],
        }
    }

    /// What decides how staging goes on.
    pub(super) fn mark(&self) -> [usize; 2] {
        [self.waiting.len(), self.settling.len()]
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || !self.settling.is_empty()
    }

    /// Gives up the copies of records up to `persisted`: their writes in place are durable, and frames on disk say so.
    fn release(&mut self, persisted: Seq) {
        for ring in &mut self.rings {
            while let Some(&(seq, end)) = ring.held.front()
                && seq <= persisted
            {
                ring.tail = end;
                ring.held.pop_front();
            }
        }
    }

    /// Finds every chunk of the plan a place in its device's ring, or none at all.
    fn reserve(&mut self, plan: &mut Plan, health: &Health) -> bool {
        // Only what is overwritten needs a copy: log chunks do not, nor what a replacement lacks.
        let copied = |write: &&PlanWrite| {
            matches!(write.crc_at, CrcAt::Piece(_)) && health.is_writable(write.addr.dev)
        };
        self.wanted.fill(0);
        for write in plan.writes.iter().filter(copied) {
            self.wanted[write.addr.dev.index()] += 1;
        }
        let fits = |(ring, &wanted): (&Ring, &u64)| ring.head - ring.tail + wanted <= self.capacity;
        if !self.rings.iter().zip(&self.wanted).all(fits) {
            return false;
        }
        for write in plan.writes.iter().filter(copied) {
            let ring = &mut self.rings[write.addr.dev.index()];
            if let CrcAt::Piece(piece) = write.crc_at {
                // Less than the blocks of the ring, which a 32-bit number counts.
                let block = (ring.head % self.capacity) as u32 * self.chunk_blocks + 1;
                plan.records.set_payload_block(piece, block);
                ring.head += 1;
            }
        }
        true
    }

    /// The copies of the plan just reserved for belong to records up to `last`.
    fn hold(&mut self, last: Seq) {
        for (ring, &wanted) in self.rings.iter_mut().zip(&self.wanted) {
            if wanted > 0 {
                ring.held.push_back((last, ring.head));
            }
        }
    }
}

impl Engine {
    /// A computed job of a scheme that writes in place with a journal: its copies go first.
    pub(super) fn stage(&mut self, key: Key<Job>) {
        self.jobs[key].stage = Stage::Staging;
        if !self.payload.waiting.is_empty() || !self.try_stage(key) {
            self.payload.waiting.push_back(key);
        }
    }

    /// Stages what has waited for room, and sees to it that room comes.
    pub(super) fn drive_payload(&mut self) {
        while let Some(&key) = self.payload.waiting.front() {
            if self.frozen {
                self.payload.waiting.pop_front();
                self.jobs[key].lost = true;
                self.end_job(key);
                continue;
            }
            if !self.try_stage(key) {
                if self.retired > self.flush.persisted() {
                    self.flush.want_internal();
                }
                return;
            }
            self.payload.waiting.pop_front();
        }
    }

    /// Records the plan and writes its copies; `false`, without effect, if there is no room.
    fn try_stage(&mut self, key: Key<Job>) -> bool {
        self.payload.release(self.flush.persisted());
        let mut plan = std::mem::take(&mut self.jobs[key].plan);
        let fits = self.journal.has_room(&self.health) && self.payload.reserve(&mut plan, &self.health);
        if fits {
            self.record(key, &mut plan);
            self.retiring.push_back(key);
            self.payload.hold(Seq::new(self.journal.next_seq().get() - 1));
            self.jobs[key].outstanding = self.write_copies(key, &plan);
        }
        self.jobs[key].plan = plan;
        if fits && self.jobs[key].outstanding == 0 {
            self.payload_written(key);
        }
        fits
    }

    /// Writes the copies of what the plan overwrites, and its log chunks, which overwrite nothing.
    fn write_copies(&mut self, key: Key<Job>, plan: &Plan) -> u32 {
        let mut outstanding = 0;
        for (step, write) in plan.writes.iter().enumerate() {
            if self.store.is_log(write.addr.dev) {
                if self.health.is_writable(write.addr.dev) && !planted(Planted::OverwriteBeforeLog) {
                    outstanding += 1;
                    let purpose = Purpose::JobWrite { job: key, step: step as u32 };
                    let tag = Tag { purpose, dev: write.addr.dev };
                    self.push_chunk_op(tag, OpKind::Write, write.stream, write.addr, write.slot);
                }
                continue;
            }
            let CrcAt::Piece(piece) = write.crc_at else { continue };
            let block = plan.records.payload_block(piece);
            if block == 0 {
                continue; // The device is out of service.
            }
            outstanding += 1;
            let tag = Tag { purpose: Purpose::Payload { job: key }, dev: write.addr.dev };
            let offset = self.store.config.payload_offset(block);
            self.push_op(
                tag,
                OpKind::Write,
                Stream::Log,
                offset,
                self.pool.slot_bytes() as u64,
                Some(write.slot),
            );
        }
        outstanding
    }

    /// A copy was written.
    pub(super) fn payload_done(&mut self, dev: DevIndex, key: Key<Job>, result: Result<(), IoFault>) {
        match result {
            Ok(()) => self.flush.wrote(dev),
            Err(fault) => self.write_fault(dev, fault),
        }
        self.job_step_done(key, StepEnd::Done);
    }

    /// All copies of a job are written: the next flush makes them durable.
    pub(super) fn payload_written(&mut self, key: Key<Job>) {
        if planted(Planted::OverwriteUnflushed) {
            return self.issue_writes(key);
        }
        let after = self.flush.want_after();
        self.payload.settling.push_back((after, key));
    }

    /// Flush number `number` has ended: what it made durable may be written in place.
    pub(super) fn payload_flushed(&mut self, number: u64) {
        while let Some(&(after, key)) = self.payload.settling.front()
            && after < number
        {
            self.payload.settling.pop_front();
            self.issue_writes(key);
        }
    }
}
