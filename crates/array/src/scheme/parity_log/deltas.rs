//! Live log chunks: which of them count for the parity of which stripe, and in which order they lie in the log.

use crate::hash::StripeMap;
use crate::store::LogRing;
use block::{ChunkIndex, StripeId};
use std::collections::VecDeque;

#[derive(Clone, Copy)]
struct Delta {
    /// Names it in `order`; grows.
    serial: u64,
    block: ChunkIndex,
}

/// Of one dirty stripe, oldest first.
#[derive(Default)]
struct Dirty {
    deltas: Vec<Delta>,
    /// m per delta.
    crcs: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Place {
    serial: u64,
    stripe: StripeId,
    block: ChunkIndex,
}

/// See the module's documentation.
pub struct Deltas {
    parity_count: usize,
    dirty: StripeMap<Dirty>,
    /// Emptied, to be used again.
    spare: Vec<Dirty>,
    /// In log order, for the tail; dead ones are dropped when they reach the front.
    order: VecDeque<Place>,
    /// Dirty stripes, oldest first; may hold stripes that became clean meanwhile.
    queue: VecDeque<StripeId>,
    count: u64,
    next_serial: u64,
}

impl Deltas {
    /// None yet.
    pub fn new(parity_count: usize) -> Self {
        Self {
            parity_count,
            dirty: StripeMap::default(),
            spare: Vec::new(),
            order: VecDeque::new(),
            queue: VecDeque::new(),
            count: 0,
            next_serial: 0,
        }
    }

    /// A log chunk counts from now on.
    pub fn push(&mut self, ring: &LogRing, stripe: StripeId, block: ChunkIndex, crcs: &[u32]) {
        let serial = self.next_serial;
        self.next_serial += 1;
        let (spare, queue) = (&mut self.spare, &mut self.queue);
        let dirty = self.dirty.entry(stripe.get()).or_insert_with(|| {
            queue.push_back(stripe);
            spare.pop().unwrap_or_default()
        });
        dirty.deltas.push(Delta { serial, block });
        dirty.crcs.extend_from_slice(crcs);
        self.count += 1;
        self.order.push_back(Place { serial, stripe, block });
        // Without a journal, writes end in any order. While a journal is replayed the log has no positions yet, and needs
        // none: its records are in log order.
        let mut at = self.order.len() - 1;
        while ring.head() > 0
            && at > 0
            && ring.position_of(self.order[at - 1].block) > ring.position_of(block)
        {
            self.order.swap(at - 1, at);
            at -= 1;
        }
    }

    /// No log chunk counts for the stripe any more.
    pub fn clear(&mut self, stripe: StripeId) {
        let Some(mut dirty) = self.dirty.remove(&stripe.get()) else { return };
        self.count -= dirty.deltas.len() as u64;
        dirty.deltas.clear();
        dirty.crcs.clear();
        self.spare.push(dirty);
        while self.order.front().is_some_and(|place| self.find(place).is_none()) {
            self.order.pop_front();
        }
    }

    /// Where a live log chunk is among those of its stripe.
    fn find(&self, place: &Place) -> Option<(&Dirty, usize)> {
        let dirty = self.dirty.get(&place.stripe.get())?;
        let at = dirty.deltas.binary_search_by_key(&place.serial, |delta| delta.serial).ok()?;
        Some((dirty, at))
    }

    /// The log chunks of a stripe, oldest first: block, and checksum on each log device.
    pub fn of(&self, stripe: StripeId) -> impl Iterator<Item = (ChunkIndex, &[u32])> {
        let dirty = self.dirty.get(&stripe.get());
        dirty
            .into_iter()
            .flat_map(|dirty| dirty.deltas.iter().zip(dirty.crcs.chunks_exact(self.parity_count)))
            .map(|(delta, crcs)| (delta.block, crcs))
    }

    /// How many log chunks each parity of a stripe has.
    pub fn count_of(&self, stripe: StripeId) -> usize {
        self.dirty.get(&stripe.get()).map_or(0, |dirty| dirty.deltas.len())
    }

    /// Whether any log chunk counts for a stripe.
    pub fn is_dirty(&self, stripe: StripeId) -> bool {
        self.dirty.contains_key(&stripe.get())
    }

    /// Dirty stripes.
    pub fn dirty_count(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Live log chunks on each log device.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes up to `count` dirty stripes, oldest first.
    pub fn take(&mut self, count: usize, out: &mut Vec<StripeId>) {
        let end = out.len() + count;
        while out.len() < end {
            let Some(stripe) = self.queue.pop_front() else { break };
            if self.is_dirty(stripe) && !out.contains(&stripe) {
                out.push(stripe);
            }
        }
    }

    /// Puts a stripe back for a later [`Deltas::take`].
    pub fn put_back(&mut self, stripe: StripeId) {
        self.queue.push_back(stripe);
    }

    /// The position of the oldest live log chunk, or the head if there is none.
    pub fn oldest_position(&self, ring: &LogRing) -> u64 {
        self.order.front().map_or(ring.head(), |place| ring.position_of(place.block))
    }

    /// The block of the newest live log chunk.
    pub fn newest_block(&self) -> Option<ChunkIndex> {
        self.order.iter().rev().find(|place| self.find(place).is_some()).map(|place| place.block)
    }

    /// Live log chunks in log order.
    pub fn in_log_order(&self) -> impl Iterator<Item = (StripeId, ChunkIndex, &[u32])> {
        self.order.iter().filter_map(|place| {
            let (dirty, at) = self.find(place)?;
            let crcs = &dirty.crcs[at * self.parity_count..][..self.parity_count];
            Some((place.stripe, place.block, crcs))
        })
    }

    /// Bytes that grow with what is uncommitted.
    pub fn memory_bytes(&self) -> u64 {
        let per_delta = size_of::<Delta>() + 4 * self.parity_count;
        (self.dirty.capacity() * (8 + size_of::<Dirty>())
            + self.order.capacity() * size_of::<Place>()
            + self.queue.capacity() * size_of::<StripeId>()
            + self.spare.len() * size_of::<Dirty>()) as u64
            + self.count * per_delta as u64
    }
}
