//! From pending chunk writes to running jobs.

use super::compute::fill;
use super::job::Job;
use super::lock::{Mode, Pending};
use super::{Core, Engine, EngineError, JOBS_MAX, JobOwner, Work};
use crate::planted::{Planted, planted};
use crate::scheme::{self, ChunkWrite, Located, Origin, WriteLock};
use block::StripeId;
use block::slab::Key;
use std::collections::VecDeque;

/// Writes of which is asked for what is known of their chunks: as much as the processor keeps at hand.
const ASKED_FOR_MAX: usize = 64;

/// What writes may have lacked that found no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RoomSeen {
    free_slots: usize,
    /// How often something was released or ended.
    made: u64,
    /// Whether collection may make more.
    can_gain: bool,
}

/// Whether a batch found what it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    Enough,
    /// Some of it was refused and waits again; whether less of it may have room.
    Short {
        divisible: bool,
    },
}

impl Engine {
    /// Forms batches from what may run and starts them.
    pub(super) fn start_batches(&mut self) {
        if !self.core.accepts_writes() {
            return self.refuse_pending();
        }
        if self.core.lacks_room().is_some() {
            return self.wait_for_room();
        }
        if self.core.refusal_would_repeat() {
            self.core.want_space();
            return self.start_others();
        }
        let multiple = self.core.cache.batch_multiple();
        let most = (self.core.options.batch_max / multiple * multiple).max(1);
        let mut limit = most;
        while self.core.may_start() {
            self.gather_batch(limit);
            if self.core.queue.batch.is_empty() {
                return;
            }
            let Room::Short { divisible } = self.core.start_batch() else {
                limit = most;
                continue;
            };
            self.core.want_space();
            // A smaller batch may have room where a larger one had not. Parts of stripes would have to be
            // logged; before they are parted they wait for a flush, if that makes room.
            let parts = limit / 2 < self.core.store.config.geometry.data_count();
            let waits = parts && self.core.flush_would_free();
            if limit == 1 || waits || !divisible {
                self.core.stats.refusals += 1;
                self.core.queue.refusal = Some(self.core.room());
                return self.start_others();
            }
            limit = (limit / 2).max(1);
        }
    }

    /// While writes wait for room, what else was granted a stripe goes on; the writes give theirs back.
    fn start_others(&mut self) {
        while let Some(first) = self.core.queue.granted.pop_front() {
            if first.write().is_none() {
                self.dispatch(first);
                continue;
            }
            let mut unit = vec![first];
            while self.core.queue.granted.front().is_some_and(|next| next.mode == Mode::Joined) {
                unit.extend(self.core.queue.granted.pop_front());
            }
            self.core.unlock_granted(&first);
            unit.into_iter().rev().for_each(|pending| self.core.queue.pending.push_front(pending));
        }
    }

    /// A member lacks room: what needs none goes on. Writes not begun yet wait, and are refused after a
    /// while; what the cache has acknowledged waits until there is room, like what was begun.
    fn wait_for_room(&mut self) {
        self.start_others();
        if let Some(error) = self.core.room_error() {
            self.core.refuse_waiting(error);
            let Self { core, activities, .. } = self;
            activities.flusher.refuse_late(core, error);
            activities.commits.refuse_late(core, error);
            activities.checkpointer.refuse_late(core, error);
            core.refuse_late_behind_cache(error);
        }
    }

    /// Where chunks are lost, what they lie in cannot be moved and may be all that is left: nothing is under
    /// way or could be begun that makes room. Writes are refused instead of waiting for ever; discards, or
    /// writes of what is lost, make some.
    pub(super) fn refuse_if_hopeless(&mut self) {
        if self.is_hopeless() && !self.core.ops.flights.any() && !self.wants_pump() {
            self.core.refuse_waiting(EngineError::NoSpace);
            self.core.refuse_cached(EngineError::NoSpace);
        }
    }

    /// Whether writes wait for room that only discards can make.
    pub(super) fn is_hopeless(&self) -> bool {
        let any_lost = self.core.store.lost.count() > 0 || !self.core.board.commit.stuck.is_empty();
        let has_buffers =
            self.core.pool.free_count() > self.core.store.slots_kept() + self.core.health.members().len();
        any_lost && has_buffers && self.core.refusal_would_repeat() && self.room_deadline_ns().is_none()
    }

    /// Moves up to `limit` writes whose locks are granted into the batch, or a few more to keep a unit or a
    /// stripe together; starts base reads of partial ones.
    fn gather_batch(&mut self, limit: usize) {
        self.core.queue.batch.clear();
        self.core.prefetch_pending(limit);
        for _ in 0..self.core.queue.filled.len().min(limit) {
            let Some(write) = self.core.queue.filled.pop_front() else { break };
            self.core.complete_write(write);
        }
        while self.core.queue.batch.len() < limit || self.core.next_joins() || self.core.next_goes_on(limit) {
            let next = match self.core.queue.granted.pop_front() {
                Some(pending) if pending.leads_bundle() => match self.core.gather_bundle(pending, true) {
                    true => continue,
                    false => return,
                },
                Some(pending) => pending,
                None => {
                    let Some(pending) = self.core.queue.pending.pop_front() else { return };
                    if pending.leads_bundle() {
                        match self.core.gather_bundle(pending, false) {
                            true => continue,
                            false => return,
                        }
                    }
                    let stripe = self.core.stripe_of(&pending);
                    if pending.mode != Mode::Joined && !self.core.try_lock(stripe, pending.mode) {
                        self.core.wait_for(stripe, pending);
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

    /// Sends granted work on its way: a read, a base read, or into the batch; `false` if buffers ran out.
    fn dispatch(&mut self, pending: Pending) -> bool {
        match pending.work {
            Work::Read { read, .. } => self.core.issue_read(read),
            Work::Write(write) if write.is_cached() => self.core.queue.batch.push(write),
            Work::Write(write) if self.core.is_whole(&write) && self.core.caches_writes() => {
                if !self.core.absorb(write, Mode::Shared) {
                    self.core.unlock(self.core.stripe_of(&pending), Mode::Shared);
                    self.core.queue.pending.push_front(pending);
                    return self.core.wait_for_buffers();
                }
            }
            Work::Write(write) if self.core.is_whole(&write) || self.core.write_mode() == Mode::Exclusive => {
                self.core.queue.batch.push(write);
            }
            Work::Write(write) => return self.core.start_base_read(write),
            Work::Zero { range, .. } => self.activities.zeros.granted(&mut self.core, range),
            Work::Commit(stripe) => self.activities.commits.granted(&mut self.core, stripe),
            Work::Maintain(stripe) => self.activities.maintenance.granted(&mut self.core, stripe),
        }
        true
    }

    /// The array takes no writes any more: everything queued is answered with an error.
    fn refuse_pending(&mut self) {
        let geometry = self.core.store.config.geometry;
        while let Some(write) = self.core.queue.filled.pop_back() {
            self.core.unlock(geometry.stripe_of(write.lcn), Mode::Exclusive);
            self.core.write_done(&write, self.core.refusal());
        }
        while let Some(pending) = self.core.queue.granted.pop_front().map(|p| (p, true)).or_else(|| {
            let pending = self.core.queue.pending.pop_front()?;
            Some((pending, false))
        }) {
            let (pending, locked) = pending;
            match pending.work {
                Work::Read { read, .. } if locked => self.core.issue_read(read),
                Work::Read { read, stripe } => {
                    if self.core.try_lock(stripe, pending.mode) {
                        self.core.issue_read(read);
                    } else {
                        self.core.locks.wait(stripe, pending);
                    }
                }
                Work::Zero { range, .. } => self.activities.zeros.granted(&mut self.core, range),
                Work::Commit(stripe) => self.activities.commits.granted(&mut self.core, stripe),
                Work::Maintain(stripe) => self.activities.maintenance.granted(&mut self.core, stripe),
                Work::Write(write) => {
                    if locked {
                        self.core.unlock_granted(&pending);
                    }
                    self.core.write_done(&write, self.core.refusal());
                }
            }
        }
    }
}

impl Core {
    /// Asks for what is known of chunks of which requests for writes are next.
    fn prefetch_pending(&self, limit: usize) {
        if self.scheme.is_far(&self.store) {
            let writes = self.queue.pending.iter().take(limit.min(ASKED_FOR_MAX)).filter_map(Pending::write);
            self.scheme.prefetch_writes(&self.store, &mut writes.map(|write| write.lcn));
        }
    }

    fn room(&self) -> RoomSeen {
        RoomSeen {
            free_slots: self.pool.free_count(),
            made: self.freed.room_made,
            can_gain: self.scheme.can_gain_room(),
        }
    }

    /// Whether the writes that come next found no room, and there is no more since.
    fn refusal_would_repeat(&self) -> bool {
        let Some(before) = self.queue.refusal else { return false };
        let now = self.room();
        // What is complete holds its stripe, which a commit may wait for.
        let is_same = now.made == before.made && now.can_gain == before.can_gain;
        is_same && now.free_slots <= before.free_slots && self.queue.filled.is_empty()
    }

    /// Work was ended, or space released: writes that wait for room are tried again.
    pub(super) fn note_room(&mut self) {
        self.freed.room_made += 1;
    }

    /// Writes that were not begun are refused, but for those that the cache has acknowledged.
    fn refuse_waiting(&mut self, error: EngineError) {
        let geometry = self.store.config.geometry;
        while let Some(write) = self.queue.filled.pop_back() {
            self.unlock(geometry.stripe_of(write.lcn), Mode::Exclusive);
            self.write_done(&write, Some(error));
        }
        self.retry_bundles();
        let refused = |pending: &Pending| pending.write().is_some_and(|write| !write.is_cached());
        let (refused, kept): (VecDeque<Pending>, VecDeque<Pending>) =
            std::mem::take(&mut self.queue.pending).into_iter().partition(refused);
        self.queue.pending = kept;
        for pending in refused {
            if let Work::Write(write) = pending.work {
                self.write_done(&write, Some(error));
            }
        }
    }

    /// Plans a batch and starts its job; what found no room is queued again.
    fn start_batch(&mut self) -> Room {
        let key = self.take_job(JobOwner::Requests);
        let Self { store, scheme, health, pool, jobs, queue, .. } = self;
        let Job { plan, acks, .. } = &mut jobs.table[key];
        plan.untorn = queue.batch.iter().any(|write| write.order > 0);
        let divisible = match plan.untorn {
            true => queue.batch.len() > 1 << queue.batch[0].order,
            false => !scheme.takes_what_fits(),
        };
        scheme.plan_writes(store, health, pool, &mut queue.batch, &mut queue.refused, plan);
        acks.extend_from_slice(&queue.batch);
        let (took, short) = (!queue.batch.is_empty(), !queue.refused.is_empty());
        for index in 0..self.queue.batch.len() {
            let write = self.queue.batch[index];
            self.note_planned(&write);
        }
        self.queue.batch.clear();
        self.put_back();
        if took {
            self.start_job(key);
        } else {
            self.give_job(key);
        }
        if short { Room::Short { divisible } } else { Room::Enough }
    }

    fn may_start(&self) -> bool {
        let waiting =
            !self.queue.pending.is_empty() || !self.queue.granted.is_empty() || !self.queue.filled.is_empty();
        waiting && self.jobs.table.len() < JOBS_MAX && self.may_record()
    }

    /// Whether the next write belongs to the unit of the last one.
    fn next_joins(&self) -> bool {
        self.queue
            .granted
            .front()
            .or(self.queue.pending.front())
            .is_some_and(|next| next.mode == Mode::Joined)
    }

    /// Whether the next write goes on where the last one ended, in the same stripe, be it of the same request
    /// or of the next: a whole stripe costs less than its parts. A limit below a stripe is meant to part it.
    fn next_goes_on(&self, limit: usize) -> bool {
        let geometry = self.store.config.geometry;
        let next = self.queue.granted.front().or(self.queue.pending.front());
        let (Some(last), Some(next)) = (self.queue.batch.last(), next) else { return false };
        next.mode == Mode::Shared
            && limit >= geometry.data_count()
            && self.cache.batch_multiple() == 1
            && next.write().is_some_and(|next| next.lcn.get() == last.lcn.get() + 1)
            && self.queue.batch.len() < 2 * limit
            && geometry.column_of(last.lcn) + 1 < geometry.data_count()
    }

    /// The stripe is busy: the write waits, and what joined it waits with it.
    fn wait_for(&mut self, stripe: StripeId, first: Pending) {
        self.locks.wait(stripe, first);
        while self.queue.pending.front().is_some_and(|next| next.mode == Mode::Joined) {
            let Some(next) = self.queue.pending.pop_front() else { return };
            self.locks.wait(stripe, next);
        }
    }

    /// Queues a chunk write of a request.
    #[inline]
    pub(super) fn queue_write(&mut self, write: ChunkWrite) {
        let before = self.queue.pending.back().and_then(Pending::write);
        let mode = self.mode_of(before, &write);
        self.queue.pending.push_back(Pending::of_write(write, mode));
    }

    /// The stripe that work waits for, or was granted.
    pub(super) fn stripe_of(&self, pending: &Pending) -> StripeId {
        match pending.work {
            Work::Write(write) if write.order > 0 => {
                let first = self.store.config.geometry.stripe_of(write.bundle().0);
                StripeId::new(first.get() + u64::from(pending.beyond))
            }
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
        if before.is_some_and(|before| write.is_bundled_with(before)) {
            return Mode::Joined;
        }
        let joins = |before: &ChunkWrite| {
            write.order == 0
                && before.origin == write.origin
                && geometry.stripe_of(before.lcn) == geometry.stripe_of(write.lcn)
        };
        match scheme::write_lock(&self.store.config) {
            WriteLock::Shared if self.is_whole(write) || planted(Planted::PartialUnlocked) => Mode::Shared,
            WriteLock::Exclusive if before.is_some_and(joins) => Mode::Joined,
            WriteLock::Shared | WriteLock::Exclusive => Mode::Exclusive,
        }
    }

    /// Buffers come back as what waits in the cache is written, before what could not be copied; `false`:
    /// nothing more can start now.
    pub(super) fn wait_for_buffers(&mut self) -> bool {
        self.drain_cache();
        self.put_cached_first()
    }

    /// A partial write whose chunk is complete now, its stripe held exclusively: into the cache or the batch.
    fn complete_write(&mut self, write: ChunkWrite) {
        if !self.caches_writes() {
            self.queue.batch.push(write);
        } else if !self.absorb(write, Mode::Exclusive) {
            self.queue.filled.push_back(write);
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
                let spare = self.pool.free_count() > self.slots_kept_by_copies();
                let Some(base) = spare.then(|| self.pool.alloc()).flatten() else {
                    // Buffers come back as other work ends; until then the write keeps its place and its
                    // lock.
                    self.queue.pending.push_front(Pending::of_write(write, Mode::Exclusive));
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
        self.queue.filled.push_back(write);
    }

    /// Copies what a partial write leaves of its chunk from `base`.
    fn fill_around(&mut self, write: &ChunkWrite, base: block::Slot) {
        fill(&mut self.pool, Some(base), write.slot, write.from as usize, write.to as usize);
    }

    /// Gives back the locks of writes that found no space and queues them again, in order.
    fn put_back(&mut self) {
        while let Some(write) = self.queue.refused.pop() {
            let mode = self.mode_of(self.queue.refused.last(), &write);
            self.unlock_write(&write, mode);
            self.queue.pending.push_front(Pending::of_write(write, mode));
        }
    }

    /// A chunk write has ended: for its request, or for the entry of the cache that it was.
    pub(super) fn write_done(&mut self, write: &ChunkWrite, error: Option<EngineError>) {
        match write.origin {
            Origin::Request(request) => self.chunk_done(Key::from_index(request), error),
            Origin::Entry(entry) => self.entry_done(Key::from_index(entry), error),
        }
    }
}
