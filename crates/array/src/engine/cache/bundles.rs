//! Bundles in the cache: chunks of a write that must not be torn leave it together.
//!
//! An entry knows the largest aligned block that a request wrote it as part of. Such blocks either contain
//! each other or have nothing in common, so whatever waits of the largest one leaves with any part of it.
//! Once it has left, only a newer version of all of it, or of a smaller block in it, may take its place; a
//! request for a larger block waits until what left is planned.

use super::{Cache, Entry, State};
use crate::engine::Core;
use crate::engine::lock::{Mode, Pending};
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Origin, bundle_of};
use block::slab::Key;

impl Cache {
    /// The newest entry of a chunk, if it waits.
    fn waiting(&self, lcn: u64) -> Option<Key<Entry>> {
        let entry = *self.newest.get(&lcn)?;
        (self.entries[entry].state == State::Waiting).then_some(entry)
    }
}

impl Core {
    /// Buffers that are left when a write is copied or completed.
    pub(in crate::engine) fn slots_kept_by_copies(&self) -> usize {
        self.store.slots_kept_by_copies() + self.options.scheme.bundle_slots(&self.store.config)
    }

    /// Whether a bundle whose stripes are locked can come into the cache now: there are buffers, and it comes
    /// together in one place.
    pub(in crate::engine) fn may_absorb(&self, write: &ChunkWrite) -> bool {
        let (first, last) = write.bundle();
        let (mut new, mut queued, mut apart) = (0, 0, false);
        for lcn in first.get()..=last.get() {
            let entry = self.cache.newest.get(&lcn).map(|&entry| &self.cache.entries[entry]);
            match entry.map(|entry| (entry.state, entry.order)) {
                Some((State::Waiting, _)) => {}
                Some((State::Queued, order)) => {
                    queued += 1;
                    apart |= order < write.order;
                }
                Some((State::Planned | State::Discarded, _)) | None => new += 1,
            }
        }
        let together = queued == 0 || (!apart && queued == last.get() - first.get() + 1);
        together && (new == 0 || self.pool.free_count() > new + self.slots_kept_by_copies())
    }

    /// The bundle that the batch ends with, from `at` on, comes into the cache.
    pub(in crate::engine) fn absorb_bundle(&mut self, at: usize) {
        let leader = self.queue.batch[at];
        for index in at..self.queue.batch.len() {
            let write = self.queue.batch[index];
            let entry = self.place(&write).expect("it was asked before whether there are buffers");
            let order = &mut self.cache.entries[entry].order;
            *order = write.order.max(*order);
        }
        self.unlock_write(&leader, Mode::Shared);
        for index in at..self.queue.batch.len() {
            let write = self.queue.batch[index];
            let entry = *self.cache.newest.get(&write.lcn.get()).expect("it was placed just now");
            self.settle_absorbed(entry, &write);
        }
        self.queue.batch.truncate(at);
        self.make_room_in_cache();
    }

    /// Sends all that waits of the largest block that an entry is part of.
    pub(super) fn leave_bundle(&mut self, entry: Key<Entry>) {
        let Entry { lcn, mut order, .. } = self.cache.entries[entry];
        let bundle = |order| {
            let (first, last) = bundle_of(lcn, order);
            first.get()..=last.get()
        };
        loop {
            let waiting = bundle(order).filter_map(|lcn| self.cache.waiting(lcn));
            let largest = waiting.map(|entry| self.cache.entries[entry].order).max().unwrap_or(order);
            if largest <= order {
                break;
            }
            order = largest;
        }
        let mut mode = Mode::Shared;
        for lcn in bundle(order) {
            let Some(entry) = self.cache.waiting(lcn) else { continue };
            self.cache.entries[entry].order = order;
            self.send_entry(entry, mode);
            mode = Mode::Joined;
        }
    }

    /// Sends one entry to be written.
    pub(super) fn send_entry(&mut self, entry: Key<Entry>, mode: Mode) {
        self.cache.take_from_buffer(entry);
        self.cache.send(entry, State::Queued);
        let Entry { lcn, slot, class, order, .. } = self.cache.entries[entry];
        let order = if planted(Planted::CacheLeavesOneByOne) { 0 } else { order };
        let (origin, to) = (Origin::Entry(entry.index()), self.store.config.geometry.chunk_bytes() as u32);
        let write = ChunkWrite { origin, lcn, slot, from: 0, to, class, order };
        self.queue.pending.push_back(Pending::of_write(write, mode));
    }
}
