//! Overwriting safely: before a plan writes in place, each of its chunks goes to the payload ring of its own
//! device, its log chunks to the log devices, and its records to the journal; when a flush has made both
//! durable the plan's writes are issued. A crash in between leaves the old stripe whole, a crash later is
//! repaired from the copies, also when members are lost at the same instant.
//!
//! Plans wait here in order of arrival until the rings and the journal have room, so the rings are filled in
//! the order of the records and emptied in the same order. Whatever is staged when a flush begins shares it
//! (group commit).

use super::job::{Job, Stage, StepEnd};
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline};
use super::{Purpose, Tag};
use crate::health::Health;
use crate::plan::{CrcAt, Plan, PlanWrite};
use crate::planted::{Planted, planted};
use crate::store::Store;
use block::slab::Key;
use block::{DevIndex, IoFault, OpKind, Seq, Stream};
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
pub(super) struct PayloadRings {
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

impl PayloadRings {
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

    /// Gives up the copies of records up to `persisted`: their writes in place are durable, and frames on
    /// disk say so.
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

impl Core {
    /// A computed job of a scheme that writes in place with a journal: its copies go first.
    pub(super) fn stage(&mut self, key: Key<Job>) {
        self.jobs.table[key].stage = Stage::Staging;
        if !self.rings.waiting.is_empty() || !self.try_stage(key) {
            self.rings.waiting.push_back(key);
        }
    }

    /// Records the plan and writes its copies; `false`, without effect, if there is no room.
    fn try_stage(&mut self, key: Key<Job>) -> bool {
        self.rings.release(self.board.flush.persisted());
        let plan = &mut self.jobs.table[key].plan;
        if !self.journal.has_room(&self.health) || !self.rings.reserve(plan, &self.health) {
            return false;
        }
        self.record(key);
        self.jobs.retiring.push_back(key);
        self.rings.hold(Seq::new(self.journal.next_seq().get() - 1));
        self.write_copies(key);
        if self.jobs.table[key].outstanding == 0 {
            self.payload_written(key);
        }
        true
    }

    /// Writes the copies of what the plan overwrites, and its log chunks, which overwrite nothing.
    fn write_copies(&mut self, key: Key<Job>) {
        let mut outstanding = 0;
        let length = self.pool.slot_bytes() as u64;
        for step in 0..self.jobs.table[key].plan.writes.len() {
            let plan = &self.jobs.table[key].plan;
            let write = plan.writes[step];
            let dev = write.addr.dev;
            if self.store.is_log(dev) {
                if self.health.is_writable(dev) && !planted(Planted::OverwriteBeforeLog) {
                    outstanding += 1;
                    let tag = Tag { purpose: Purpose::JobWrite { job: key, step: step as u32 }, dev };
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
            let tag = Tag { purpose: Purpose::Payload { job: key }, dev };
            let offset = self.store.config.payload_offset(block);
            self.push_op(tag, OpKind::Write, Stream::Log, offset, length, Some(write.slot));
        }
        self.jobs.table[key].outstanding = outstanding;
    }

    /// A copy was written.
    pub(super) fn payload_done(&mut self, dev: DevIndex, key: Key<Job>, result: Result<(), IoFault>) {
        match result {
            Ok(()) => self.board.flush.wrote(dev),
            Err(fault) => self.write_fault(dev, fault),
        }
        self.job_step_done(key, StepEnd::Done);
    }

    /// All copies of a job are written: the next flush makes them durable.
    pub(super) fn payload_written(&mut self, key: Key<Job>) {
        if planted(Planted::OverwriteUnflushed) {
            return self.issue_writes(key);
        }
        let after = self.board.flush.want_after();
        self.rings.settling.push_back((after, key));
    }
}

/// Sees to it that what waits for room in the rings, or for the flush that makes its copies durable, goes on.
pub(super) struct Payloads;

impl Activity for Payloads {
    /// Stages what has waited for room, and sees to it that room comes.
    fn drive(&mut self, core: &mut Core) {
        while let Some(&key) = core.rings.waiting.front() {
            if !core.try_stage(key) {
                if core.jobs.retired > core.board.flush.persisted() {
                    core.board.flush.want_internal();
                }
                return;
            }
            core.rings.waiting.pop_front();
        }
    }

    fn drive_frozen(&mut self, core: &mut Core) {
        while let Some(key) = core.rings.waiting.pop_front() {
            core.jobs.table[key].lost = true;
            core.end_job(key);
        }
    }

    /// What the flush made durable may be written in place.
    fn flushed(&mut self, core: &mut Core, number: u64) {
        while let Some(&(after, key)) = core.rings.settling.front()
            && after < number
        {
            core.rings.settling.pop_front();
            core.issue_writes(key);
        }
    }

    /// Its jobs count as such.
    fn is_busy(&self, _core: &Core) -> bool {
        false
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        let waits = !core.rings.waiting.is_empty() || !core.rings.settling.is_empty();
        waits.then_some("a write that waits for its copies")
    }
}

impl Marked for Payloads {
    type Mark = [u64; 2];

    fn mark(&self, core: &Core) -> Self::Mark {
        [count(core.rings.waiting.len()), count(core.rings.settling.len())]
    }
}
