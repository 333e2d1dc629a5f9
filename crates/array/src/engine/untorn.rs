//! Writes that are never torn: aligned blocks of a request that are there after a power cut as a whole or not
//! at all, although they take several chunks.
//!
//! The chunks of such a block are a *bundle*. They follow each other in every queue, hold the stripes of all
//! of them at once, and go into one batch. The plan of a batch with a bundle is made as a whole or not at
//! all, so its records come one after the other; they are marked in the journal as belonging together, and
//! recovery takes all of them or none. What is a single chunk, or a single record, needs none of this.
//!
//! A bundle locks its stripes in their order. Only one at a time waits for a stripe with others locked;
//! nobody else does, so it can be part of no circle. Bundles that find it waiting, and a stripe busy, hold
//! nothing and wait for it.

use super::lock::{Mode, Pending};
use super::wake::count;
use super::{Core, Work};
use crate::scheme::{self, ChunkWrite, Journaling, Scheme, SchemeOptions, WriteLock};
use crate::store::{Store, stripes_touched};
use block::StripeId;

/// The largest bundle, as a power of two: what the options ask for, or less if the array is too small for it.
pub(super) fn order_for(options: &SchemeOptions, store: &Store, scheme: &dyn Scheme) -> u8 {
    let (wanted, geometry) = (options.bundle_chunks(&store.config), store.config.geometry);
    let orders = (0..=8u8).rev();
    let fits = |chunks: u64| {
        scheme.holds_bundle(store, chunks) && store.table.holds(stripes_touched(geometry, chunks))
    };
    let mut fitting = orders.filter(|&order| 1 << order <= wanted && (order == 0 || fits(1 << order)));
    fitting.next().unwrap_or(0)
}

impl Core {
    /// How large the blocks are that a power cut never tears; 0 if there are none.
    pub fn untorn_bytes(&self) -> u64 {
        match self.jobs.journaling {
            Journaling::Nothing => 0,
            Journaling::WithWrites | Journaling::BeforeWrites => {
                count(self.store.config.geometry.chunk_bytes()) << self.queue.untorn_order
            }
        }
    }

    /// The order of the bundle that a chunk of a request is in, which touches so many chunks, some of them
    /// whole: of the largest aligned block that the request covers. A request of a scheme that writes in
    /// place must be that block: its stripes are locked exclusively, and the blocks of a larger one would
    /// wait for each other.
    pub(super) fn order_of(&self, lcn: u64, (offset, length): (u64, u64), touched: usize) -> u8 {
        let geometry = self.store.config.geometry;
        let last = count(geometry.chunk_bytes()) - 1;
        let whole =
            geometry.lcn_of_offset(offset + last).get()..geometry.lcn_of_offset(offset + length).get();
        let mut orders = (1..=self.queue.untorn_order).rev();
        let is_shared = scheme::write_lock(&self.store.config) == WriteLock::Shared;
        let fits = |order: u8| {
            let first = lcn >> order << order;
            let block = first..first + (1 << order);
            match is_shared {
                true => block.start >= whole.start && block.end <= whole.end,
                false => block == whole && 1 << order == touched,
            }
        };
        orders.find(|&order| fits(order)).unwrap_or(0)
    }

    fn stripes_of(&self, write: &ChunkWrite) -> std::ops::RangeInclusive<u64> {
        let (first, last) = write.bundle();
        let geometry = self.store.config.geometry;
        geometry.stripe_of(first).get()..=geometry.stripe_of(last).get()
    }

    /// Gives back what a write in a batch holds: the first of a bundle all stripes of that.
    #[inline]
    pub(super) fn unlock_write(&mut self, write: &ChunkWrite, mode: Mode) {
        if write.order == 0 {
            return self.unlock(self.store.config.geometry.stripe_of(write.lcn), mode);
        }
        if mode != Mode::Joined {
            self.stripes_of(write).for_each(|stripe| self.unlock(StripeId::new(stripe), mode));
        }
    }

    /// Gives back what the first of a bundle holds that was granted a stripe: that one and all before it.
    pub(super) fn unlock_granted(&mut self, first: &Pending) {
        let Some(write) = first.write().filter(|_| first.leads_bundle()) else {
            return self.unlock(self.stripe_of(first), first.mode);
        };
        let held = self.stripes_of(write).take(usize::from(first.beyond) + 1);
        held.for_each(|stripe| self.unlock(StripeId::new(stripe), first.mode));
        self.collected();
    }

    /// No bundle holds stripes and waits for more: those that waited for that try again.
    fn collected(&mut self) {
        self.queue.is_collecting = false;
        self.retry_bundles();
    }

    /// Bundles that wait for another one are queued as if they had just come.
    pub(super) fn retry_bundles(&mut self) {
        while let Some(waiting) = self.queue.bundles.pop_back() {
            self.queue.pending.push_front(waiting);
        }
    }

    /// Locks the stripes of a bundle in their order, those aside that it was `granted`. If one is busy, it
    /// waits there with what it holds, if no other bundle does so; else it holds nothing and waits for that
    /// one.
    fn lock_bundle(&mut self, first: Pending, write: &ChunkWrite, granted: bool) -> bool {
        let stripes = self.stripes_of(write);
        let held = if granted { first.beyond + 1 } else { 0 };
        for (stripe, beyond) in stripes.clone().zip(0u16..).skip(held.into()) {
            let stripe = StripeId::new(stripe);
            if self.try_lock(stripe, first.mode) {
                continue;
            }
            if granted || !self.queue.is_collecting {
                self.queue.is_collecting = true;
                self.locks.wait(stripe, Pending { beyond, ..first });
                while let Some(next) = self.pop_joined(granted) {
                    self.locks.wait(stripe, next);
                }
                return false;
            }
            let before = stripes.take(beyond.into());
            before.for_each(|stripe| self.unlock(StripeId::new(stripe), first.mode));
            self.queue.bundles.push_back(Pending { beyond: 0, ..first });
            while let Some(next) = self.pop_joined(granted) {
                self.queue.bundles.push_back(next);
            }
            return false;
        }
        if granted {
            self.collected();
        }
        true
    }

    /// A bundle, the first of which just left its queue, goes into the batch as a whole, or the cache, or
    /// waits for a stripe. `false` if buffers ran out.
    pub(super) fn gather_bundle(&mut self, first: Pending, granted: bool) -> bool {
        let Work::Write(write) = first.work else { unreachable!("only writes come in bundles") };
        if !self.lock_bundle(first, &write, granted) {
            return true;
        }
        let at = self.queue.batch.len();
        self.queue.batch.push(write);
        while let Some(next) = self.pop_joined(granted) {
            self.queue.batch.extend(next.write().copied());
        }
        if write.is_cached() || !self.caches_writes() {
            return true;
        }
        if self.may_absorb(&write) {
            self.absorb_bundle(at);
            return true;
        }
        if self.cache.is_empty() {
            // What is queued behind it may have the buffers that copies of all of it would need, and wait for
            // it. It goes past the cache, in the buffers it came in.
            return true;
        }
        self.unlock_write(&write, first.mode);
        while self.queue.batch.len() > at {
            let Some(write) = self.queue.batch.pop() else { break };
            let mode = if self.queue.batch.len() == at { first.mode } else { Mode::Joined };
            self.queue.pending.push_front(Pending::of_write(write, mode));
        }
        self.wait_for_buffers()
    }

    /// The next of the bundle whose first one left its queue.
    fn pop_joined(&mut self, granted: bool) -> Option<Pending> {
        let queue = if granted { &mut self.queue.granted } else { &mut self.queue.pending };
        if queue.front()?.mode != Mode::Joined {
            return None;
        }
        queue.pop_front()
    }
}
