//! From pending chunk writes to running jobs.

use super::job::JobKind;
use super::{Engine, EngineError, JOBS_MAX, Mode, Pending, Work};
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Located, Origin, WriteLock};
use block::StripeId;
use std::collections::VecDeque;

/// What writes may have lacked that found no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    free_slots: usize,
    /// How often something was released or ended.
    made: u64,
    /// Whether collection may make more.
    can_gain: bool,
}

impl Engine {
    /// Forms batches from what may run and starts them.
    pub(super) fn start_batches(&mut self) {
        if !self.accepts_writes() {
            return self.refuse_pending();
        }
        if self.lacks_room().is_some() {
            return self.wait_for_room();
        }
        if self.refusal_would_repeat() {
            self.want_space();
            return self.start_others();
        }
        let multiple = self.cache.batch_multiple();
        let most = (self.options.batch_max / multiple * multiple).max(1);
        let mut limit = most;
        while self.may_start() {
            self.gather_batch(limit);
            if self.batch.is_empty() {
                return;
            }
            let key = self.take_job(JobKind::Write);
            let mut plan = std::mem::take(&mut self.jobs[key].plan);
            let (mut batch, mut refused) =
                (std::mem::take(&mut self.batch), std::mem::take(&mut self.refused));
            let (store, pool) = (&mut self.store, &mut self.pool);
            self.scheme.plan_writes(store, &self.health, pool, &mut batch, &mut refused, &mut plan);
            self.jobs[key].plan = plan;
            self.jobs[key].acks.extend_from_slice(&batch);
            batch.iter().for_each(|write| self.note_planned(write));
            let (took, left) = (!batch.is_empty(), !refused.is_empty());
            self.put_back(&mut refused);
            batch.clear();
            (self.batch, self.refused) = (batch, refused);
            if took {
                self.start_job(key);
            } else {
                self.give_job(key);
            }
            if left {
                self.want_space();
                // A smaller batch may have room where a larger one had not.
                if limit == 1 || self.scheme.takes_what_fits() {
                    self.stats.refusals += 1;
                    self.refusal = Some(self.room());
                    return self.start_others();
                }
            }
            limit = if left { (limit / 2).max(1) } else { most };
        }
    }

    fn room(&self) -> Room {
        Room {
            free_slots: self.pool.free_count(),
            made: self.room_made,
            can_gain: self.scheme.can_gain_room(),
        }
    }

    /// Whether the writes that come next found no room, and there is no more since.
    fn refusal_would_repeat(&self) -> bool {
        let Some(before) = self.refusal else { return false };
        let now = self.room();
        // What is complete holds its stripe, which a commit may wait for.
        let is_same = now.made == before.made && now.can_gain == before.can_gain;
        is_same && now.free_slots <= before.free_slots && self.filled.is_empty()
    }

    /// Work was ended, or space released: writes that wait for room are tried again.
    pub(super) fn note_room(&mut self) {
        self.room_made += 1;
    }

    /// While writes wait for room, what else was granted a stripe goes on; the writes give theirs back.
    fn start_others(&mut self) {
        while let Some(first) = self.granted.pop_front() {
            if first.write().is_none() {
                self.dispatch(first);
                continue;
            }
            let mut unit = vec![first];
            while self.granted.front().is_some_and(|next| next.mode == Mode::Joined) {
                unit.extend(self.granted.pop_front());
            }
            self.unlock(self.stripe_of(&first), first.mode);
            unit.into_iter().rev().for_each(|pending| self.pending.push_front(pending));
        }
    }

    /// A member lacks room: what needs none goes on. Writes not begun yet wait, and are refused after a while; what the cache
    /// has acknowledged waits until there is room, like what was begun.
    fn wait_for_room(&mut self) {
        self.start_others();
        if let Some(error) = self.room_error() {
            self.refuse_waiting(error);
            self.refuse_late(error);
        }
    }

    /// Where chunks are lost, what they lie in cannot be moved and may be all that is left: nothing is under way or could be
    /// begun that makes room. Writes are refused instead of waiting for ever; discards, or writes of what is lost, make some.
    pub(super) fn refuse_if_hopeless(&mut self) {
        if self.is_hopeless() && !self.flights.any() && !self.wants_pump() {
            self.refuse_waiting(EngineError::NoSpace);
            self.refuse_cached(EngineError::NoSpace);
        }
    }

    /// Whether writes wait for room that only discards can make.
    pub(super) fn is_hopeless(&self) -> bool {
        let any_lost = self.store.lost.count() > 0 || !self.stuck_stripes().is_empty();
        let has_buffers = self.pool.free_count() > self.store.slots_kept() + self.health.members().len();
        any_lost && has_buffers && self.refusal_would_repeat() && self.room_deadline_ns().is_none()
    }

    /// Writes that were not begun are refused, but for those that the cache has acknowledged.
    fn refuse_waiting(&mut self, error: EngineError) {
        let geometry = self.store.config.geometry;
        while let Some(write) = self.filled.pop_back() {
            self.unlock(geometry.stripe_of(write.lcn), Mode::Exclusive);
            self.write_done(&write, Some(error));
        }
        let refused = |pending: &Pending| pending.write().is_some_and(|write| !write.is_cached());
        let (refused, kept): (VecDeque<Pending>, VecDeque<Pending>) =
            std::mem::take(&mut self.pending).into_iter().partition(refused);
        self.pending = kept;
        for pending in refused {
            if let Work::Write(write) = pending.work {
                self.write_done(&write, Some(error));
            }
        }
    }

    fn may_start(&self) -> bool {
        let waiting = !self.pending.is_empty() || !self.granted.is_empty() || !self.filled.is_empty();
        waiting && self.jobs.len() < JOBS_MAX && self.may_record()
    }

    /// Moves up to `limit` writes whose locks are granted into the batch, or a few more to keep a unit together; starts base
    /// reads of partial ones.
    fn gather_batch(&mut self, limit: usize) {
        self.batch.clear();
        for _ in 0..self.filled.len().min(limit) {
            let Some(write) = self.filled.pop_front() else { break };
            self.complete_write(write);
        }
        while self.batch.len() < limit || self.next_joins() {
            let next = match self.granted.pop_front() {
                Some(pending) => pending,
                None => {
                    let Some(pending) = self.pending.pop_front() else { return };
                    let stripe = self.stripe_of(&pending);
                    if pending.mode != Mode::Joined && !self.locks.try_lock(stripe, pending.mode) {
                        self.wait_for(stripe, pending);
                        continue;
                    }
                    pending
                }
            };
            if !self.dispatch(next) {
                return;
            }
        }
    }

    /// Whether the next write belongs to the unit of the last one.
    fn next_joins(&self) -> bool {
        self.granted.front().or(self.pending.front()).is_some_and(|next| next.mode == Mode::Joined)
    }

    /// The stripe is busy: the write waits, and what joined it waits with it.
    fn wait_for(&mut self, stripe: StripeId, first: Pending) {
        self.locks.wait(stripe, first);
        while self.pending.front().is_some_and(|next| next.mode == Mode::Joined) {
            let Some(next) = self.pending.pop_front() else { return };
            self.locks.wait(stripe, next);
        }
    }

    /// Queues a chunk write of a request.
    pub(super) fn queue_write(&mut self, write: ChunkWrite) {
        let before = self.pending.back().and_then(Pending::write);
        let mode = self.mode_of(before, &write);
        self.pending.push_back(Pending::of_write(write, mode));
    }

    /// Sends granted work on its way: a read, a base read, or into the batch; `false` if buffers ran out.
    fn dispatch(&mut self, pending: Pending) -> bool {
        match pending.work {
            Work::Read { read, .. } => self.issue_read(read),
            Work::Write(write) if write.is_cached() => self.batch.push(write),
            Work::Write(write) if self.is_whole(&write) && self.caches_writes() => {
                if !self.absorb(write, Mode::Shared) {
                    self.unlock(self.stripe_of(&pending), Mode::Shared);
                    self.pending.push_front(pending);
                    return self.wait_for_buffers();
                }
            }
            Work::Write(write) if self.is_whole(&write) || self.write_mode() == Mode::Exclusive => {
                self.batch.push(write);
            }
            Work::Write(write) => return self.start_base_read(write),
            Work::Zero { range, .. } => self.zero_granted(range),
            Work::Commit(stripe) => self.commit_granted(stripe),
            Work::Maintain(stripe) => self.maintain_granted(stripe),
        }
        true
    }

    fn stripe_of(&self, pending: &Pending) -> StripeId {
        match pending.work {
            Work::Write(write) => self.store.config.geometry.stripe_of(write.lcn),
            Work::Read { stripe, .. } | Work::Zero { stripe, .. } => stripe,
            Work::Commit(stripe) | Work::Maintain(stripe) => stripe,
        }
    }

    pub(super) fn is_whole(&self, write: &ChunkWrite) -> bool {
        (write.to - write.from) as usize == self.store.config.geometry.chunk_bytes()
    }

    /// The lock that a write takes or holds, `before` being the write before it in its queue or batch.
    pub(super) fn mode_of(&self, before: Option<&ChunkWrite>, write: &ChunkWrite) -> Mode {
        let geometry = self.store.config.geometry;
        let joins = |before: &ChunkWrite| {
            before.origin == write.origin && geometry.stripe_of(before.lcn) == geometry.stripe_of(write.lcn)
        };
        match self.scheme.write_lock() {
            WriteLock::Shared if self.is_whole(write) || planted(Planted::PartialUnlocked) => Mode::Shared,
            WriteLock::Exclusive if before.is_some_and(joins) => Mode::Joined,
            WriteLock::Shared | WriteLock::Exclusive => Mode::Exclusive,
        }
    }

    /// Buffers come back as what waits in the cache is written, before what could not be copied; `false`: nothing more can
    /// start now.
    fn wait_for_buffers(&mut self) -> bool {
        self.drain_cache();
        self.put_cached_first()
    }

    /// A partial write whose chunk is complete now, its stripe held exclusively: into the cache or the batch.
    fn complete_write(&mut self, write: ChunkWrite) {
        if !self.caches_writes() {
            self.batch.push(write);
        } else if !self.absorb(write, Mode::Exclusive) {
            self.filled.push_back(write);
            self.wait_for_buffers();
        }
    }

    /// A partial write needs the old version around it; its stripe is held exclusively meanwhile.
    fn start_base_read(&mut self, write: ChunkWrite) -> bool {
        if let Some(cached) = self.cache.slot_of(write.lcn) {
            self.fill_around(&write, cached);
            self.complete_write(write);
            return true;
        }
        match self.scheme.locate(&self.store, write.lcn) {
            Located::Zero => {
                let bytes = self.pool.bytes_mut(write.slot);
                bytes[..write.from as usize].fill(0);
                bytes[write.to as usize..].fill(0);
                self.complete_write(write);
            }
            Located::At { .. } => {
                // A cover of this read needs buffers too.
                let spare = self.pool.free_count() > self.store.slots_kept_by_copies();
                let Some(base) = spare.then(|| self.pool.alloc()).flatten() else {
                    // Buffers come back as other work ends; until then the write keeps its place and its lock.
                    self.pending.push_front(Pending::of_write(write, Mode::Exclusive));
                    let stripe = self.store.config.geometry.stripe_of(write.lcn);
                    self.unlock(stripe, Mode::Exclusive);
                    return self.wait_for_buffers();
                };
                self.start_fill(write, base);
            }
        }
        true
    }

    /// The old version is at hand: fill in the rest of the chunk. The write joins the next batch.
    pub(super) fn base_read_done(
        &mut self,
        write: ChunkWrite,
        base: block::Slot,
        error: Option<EngineError>,
    ) {
        if let Some(error) = error {
            self.pool.free(base);
            let stripe = self.store.config.geometry.stripe_of(write.lcn);
            self.unlock(stripe, Mode::Exclusive);
            return self.write_done(&write, Some(error));
        }
        self.fill_around(&write, base);
        self.pool.free(base);
        self.filled.push_back(write);
    }

    /// Copies what a partial write leaves of its chunk from `base`.
    fn fill_around(&mut self, write: &ChunkWrite, base: block::Slot) {
        let (region, chunk) = (self.pool.offset(base), self.pool.slot_bytes());
        let target = self.pool.offset(write.slot);
        let bytes = self.pool.region_mut();
        bytes.copy_within(region..region + write.from as usize, target);
        bytes.copy_within(region + write.to as usize..region + chunk, target + write.to as usize);
    }

    /// Gives back the locks of writes that found no space and queues them again, in order.
    fn put_back(&mut self, refused: &mut Vec<ChunkWrite>) {
        while let Some(write) = refused.pop() {
            let mode = self.mode_of(refused.last(), &write);
            let stripe = self.store.config.geometry.stripe_of(write.lcn);
            self.unlock(stripe, mode);
            self.pending.push_front(Pending::of_write(write, mode));
        }
    }

    /// The array takes no writes any more: everything queued is answered with an error.
    fn refuse_pending(&mut self) {
        let geometry = self.store.config.geometry;
        while let Some(write) = self.filled.pop_back() {
            self.unlock(geometry.stripe_of(write.lcn), Mode::Exclusive);
            self.write_done(&write, self.refusal());
        }
        while let Some(pending) = self.granted.pop_front().map(|p| (p, true)).or_else(|| {
            let pending = self.pending.pop_front()?;
            Some((pending, false))
        }) {
            let (pending, locked) = pending;
            match pending.work {
                Work::Read { read, .. } if locked => self.issue_read(read),
                Work::Read { read, stripe } => {
                    if self.locks.try_lock(stripe, pending.mode) {
                        self.issue_read(read);
                    } else {
                        self.locks.wait(stripe, pending);
                    }
                }
                Work::Zero { range, .. } => self.zero_granted(range),
                Work::Commit(stripe) => self.commit_granted(stripe),
                Work::Maintain(stripe) => self.maintain_granted(stripe),
                Work::Write(write) => {
                    if locked {
                        self.unlock(geometry.stripe_of(write.lcn), pending.mode);
                    }
                    self.write_done(&write, self.refusal());
                }
            }
        }
    }

    /// A chunk write has ended: for its request, or for the entry of the cache that it was.
    pub(super) fn write_done(&mut self, write: &ChunkWrite, error: Option<EngineError>) {
        match write.origin {
            Origin::Request(request) => self.chunk_done(request, error),
            Origin::Entry(entry) => self.entry_done(entry, error),
        }
    }
}
