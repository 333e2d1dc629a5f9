//! The write cache: chunks that were acknowledged and wait for others to be written with.
//!
//! `eplog` (EPLOG, section 3.1; E-24, E-25, A-04): off by default, sizes are options. A chunk that was never
//! written waits in the *stripe buffer*, so that more stripes are written whole; an update waits in the
//! *device buffer* of the SSD that will hold it. An update of what waits replaces it: neither data nor log
//! chunk is written for the old one. When a device buffer is full, the oldest chunk of every device buffer is
//! written, in one log stripe; when the stripe buffer is full, its whole stripes are written, or the oldest
//! if none is whole.
//!
//! Elastic schemes (W-14 to W-18, A-15, A-19): chunks of one class wait in its *group*. A full group is
//! written; a group whose oldest chunk has waited for long enough is written too, which makes a short stripe.
//! A newer version that belongs to another class takes the older one's place there.
//!
//! Every write goes through the cache, durable ones too, so the versions of a chunk stay in order: at most
//! one of them waits. The contract of acknowledgements is that of a device with a volatile cache, as without
//! the cache: a flush first writes what was acknowledged before it, a durable write is written at once and
//! answered when that is durable. Reads see what waits.
//!
//! | state | what it means | leaves it |
//! |---|---|---|
//! | waiting | in a buffer | the buffer is full, a flush, a commit, or idle time |
//! | queued | sent to be written, not planned: a newer version replaces it in place | the scheme plans it |
//! | planned | being written; a newer version is an entry of its own | its record retires |
//! | discarded | a discard of it is under way | that retires |

mod bundles;

use super::job::Job;
use super::lock::{Mode, Pending};
use super::request::{After, Request};
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, EngineError, EngineOptions};
use crate::hash::StripeMap;
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Origin};
use block::slab::{Key, Slab};
use block::{Lcn, Slot, StripeId};
use format::ArrayConfig;
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Queued,
    Planned,
    Discarded,
}

/// A chunk that was acknowledged and is not written, or being written.
pub(super) struct Entry {
    lcn: Lcn,
    slot: Slot,
    state: State,
    /// Which buffer it waits in: 0 = stripe buffer, then those of the devices; or the group of its class.
    buffer: usize,
    class: u8,
    /// The largest block that a request wrote it as part of has 2^order chunks.
    order: u8,
    /// Since when, in the engine's time.
    since_ns: u64,
    generation: u64,
    /// Durable requests that wait for it.
    requests: Vec<Key<Request>>,
}

impl Entry {
    fn new(lcn: Lcn, slot: Slot) -> Self {
        let (state, requests) = (State::Waiting, Vec::new());
        Self { lcn, slot, state, buffer: 0, class: 0, order: 0, since_ns: 0, generation: 0, requests }
    }
}

/// Entries sent to be written between two flushes.
#[derive(Default)]
struct Generation {
    count: u64,
    after: Vec<After>,
}

/// What waits for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// Nothing waits.
    Off,
    /// New chunks for their stripe, updates for each other.
    Updates {
        /// Chunks in the stripe buffer at most.
        stripe_chunks_max: usize,
        /// Chunks in the buffer of a device at most.
        device_chunks_max: usize,
    },
    /// Chunks of a class for each other.
    Groups {
        /// A group of so many is written.
        group_chunks: usize,
        /// A chunk waits so long at most.
        wait_ns: Option<u64>,
        /// A stripe holds so many.
        stripe_chunks: usize,
    },
}

/// See the module's documentation.
pub(super) struct Cache {
    entries: Slab<Entry>,
    /// The newest entry of each chunk.
    newest: StripeMap<Key<Entry>>,
    /// Entries that wait, by age: the stripe buffer, then the buffer of each device; or the group of each
    /// class.
    buffers: Vec<VecDeque<Key<Entry>>>,
    shape: Shape,
    generations: VecDeque<Generation>,
    first_generation: u64,
    /// Discards under way, with the entries they make obsolete.
    discards: Vec<(Key<Job>, Key<Entry>)>,
}

impl Cache {
    /// An empty cache, as options and scheme want it; schemes that write in place have none.
    pub(super) fn new(options: &EngineOptions, config: &ArrayConfig, classes: usize) -> Self {
        let geometry = config.geometry;
        let group_chunks = options.scheme.waiting_chunks(config);
        let (stripes, slots) = (options.cache_stripes, options.cache_slots);
        let (shape, buffers) = if group_chunks > 0 {
            let (wait_ns, stripe_chunks) = (options.scheme.wait_ns(config.scheme), geometry.data_count());
            (Shape::Groups { group_chunks, wait_ns, stripe_chunks }, classes)
        } else if config.scheme.is_in_place() || stripes + slots == 0 {
            (Shape::Off, 0)
        } else {
            let stripe_chunks_max = stripes.saturating_mul(geometry.data_count());
            (Shape::Updates { stripe_chunks_max, device_chunks_max: slots }, geometry.device_count() + 1)
        };
        Self {
            entries: Slab::default(),
            newest: StripeMap::default(),
            buffers: vec![VecDeque::new(); buffers],
            shape,
            generations: VecDeque::from([Generation::default()]),
            first_generation: 0,
            discards: Vec::new(),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.shape != Shape::Off
    }

    /// Batches of a multiple of this many writes do not cut what leaves together.
    pub(super) fn batch_multiple(&self) -> usize {
        match self.shape {
            Shape::Groups { stripe_chunks, .. } => stripe_chunks,
            Shape::Off | Shape::Updates { .. } => 1,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether something waits in a buffer.
    pub(super) fn has_waiting(&self) -> bool {
        self.buffers.iter().any(|buffer| !buffer.is_empty())
    }

    /// Whether something is on its way to the devices.
    pub(super) fn is_busy(&self) -> bool {
        self.generations.iter().any(|generation| generation.count > 0 || !generation.after.is_empty())
    }

    /// The newest acknowledged content of a chunk, if the cache has it.
    pub(super) fn slot_of(&self, lcn: Lcn) -> Option<Slot> {
        if self.is_empty() {
            return None;
        }
        self.newest.get(&lcn.get()).map(|&entry| self.entries[entry].slot)
    }

    fn generation_mut(&mut self, number: u64) -> &mut Generation {
        &mut self.generations[(number - self.first_generation) as usize]
    }

    fn take_from_buffer(&mut self, entry: Key<Entry>) {
        let buffer = &mut self.buffers[self.entries[entry].buffer];
        let at = buffer.iter().position(|&other| other == entry);
        buffer.remove(at.expect("an entry that waits is in its buffer"));
    }

    /// The entry is on its way: flushes from now on wait for it.
    fn send(&mut self, entry: Key<Entry>, state: State) {
        let number = self.first_generation + self.generations.len() as u64 - 1;
        self.entries[entry].state = state;
        self.entries[entry].generation = number;
        self.generation_mut(number).count += 1;
    }
}

impl Core {
    /// A whole chunk whose stripe is locked comes into the cache, and its request is answered unless it must
    /// be durable; `false` if there is no buffer for it now.
    pub(super) fn absorb(&mut self, write: ChunkWrite, mode: Mode) -> bool {
        let Some(entry) = self.place(&write) else { return false };
        self.unlock(self.store.config.geometry.stripe_of(write.lcn), mode);
        self.settle_absorbed(entry, &write);
        self.make_room_in_cache();
        true
    }

    /// Copies a whole chunk into its entry; `None` if it needs a new one and there is no buffer for that.
    fn place(&mut self, write: &ChunkWrite) -> Option<Key<Entry>> {
        let newest = self.cache.newest.get(&write.lcn.get()).copied();
        let replaced =
            newest.filter(|&e| matches!(self.cache.entries[e].state, State::Waiting | State::Queued));
        let entry = match replaced {
            Some(entry) => {
                self.stats.cache.absorbed += 1;
                self.change_class(entry, write.class);
                entry
            }
            None => {
                let spare = self.pool.free_count() > self.slots_kept_by_copies();
                let slot = spare.then(|| self.pool.alloc()).flatten()?;
                self.enter(write, slot)
            }
        };
        let slot = self.cache.entries[entry].slot;
        self.pool.swap(write.slot, slot);
        Some(entry)
    }

    /// A chunk of a request is in the cache: that is answered, or what must be durable leaves.
    fn settle_absorbed(&mut self, entry: Key<Entry>, write: &ChunkWrite) {
        let Origin::Request(index) = write.origin else {
            unreachable!("what the cache sends does not come back")
        };
        let request = Key::from_index(index);
        if self.requests[request].durable && !planted(Planted::CacheForgetsFua) {
            self.cache.entries[entry].requests.push(request);
            if self.cache.entries[entry].state == State::Waiting {
                self.leave_in_company(entry);
            }
        } else {
            self.chunk_done(request, None);
        }
    }

    /// A new entry, in the buffer it belongs to.
    fn enter(&mut self, write: &ChunkWrite, slot: Slot) -> Key<Entry> {
        let buffer = self.buffer_of(write.lcn, write.class);
        let (lcn, class, since_ns) = (write.lcn, write.class, self.now_ns);
        let key = self.cache.entries.reuse(|| Entry::new(lcn, slot));
        let entry = &mut self.cache.entries[key];
        (entry.lcn, entry.slot, entry.state) = (lcn, slot, State::Waiting);
        (entry.buffer, entry.class, entry.order, entry.since_ns) = (buffer, class, 0, since_ns);
        self.cache.newest.insert(lcn.get(), key);
        self.cache.buffers[buffer].push_back(key);
        key
    }

    /// What waits was overwritten by something of another class: it waits with that one now.
    fn change_class(&mut self, entry: Key<Entry>, class: u8) {
        if self.cache.entries[entry].state != State::Waiting || self.cache.entries[entry].class == class {
            return;
        }
        self.cache.take_from_buffer(entry);
        let buffer = self.buffer_of(self.cache.entries[entry].lcn, class);
        let waiting = &mut self.cache.entries[entry];
        (waiting.buffer, waiting.class, waiting.since_ns) = (buffer, class, self.now_ns);
        self.cache.buffers[buffer].push_back(entry);
    }

    /// New chunks of new stripes go to the stripe buffer, all others to that of their device; or to the group
    /// of the class.
    fn buffer_of(&self, lcn: Lcn, class: u8) -> usize {
        let Shape::Updates { stripe_chunks_max, .. } = self.cache.shape else { return class.into() };
        let stripe = self.store.config.geometry.stripe_of(lcn);
        let is_new = self.store.table.current(lcn).chunk.is_none()
            && self.store.table.parity(stripe, 0).chunk.is_none();
        if is_new && stripe_chunks_max > 0 { 0 } else { self.store.layout.device_of(lcn).index() + 1 }
    }

    /// Sends an entry that waits to be written.
    fn leave(&mut self, entry: Key<Entry>) {
        if self.cache.entries[entry].order > 0 && !planted(Planted::CacheLeavesOneByOne) {
            self.leave_bundle(entry);
        } else {
            self.send_entry(entry, Mode::Shared);
        }
    }

    /// Sends an entry that must be written at once; with it others that fit into its stripe, which must be
    /// written anyway.
    fn leave_in_company(&mut self, entry: Key<Entry>) {
        let buffer = self.cache.entries[entry].buffer;
        self.leave(entry);
        if let Shape::Groups { stripe_chunks, .. } = self.cache.shape {
            self.leave_oldest(buffer, stripe_chunks - 1);
        }
    }

    fn leave_oldest(&mut self, buffer: usize, count: usize) {
        for _ in 0..count {
            let Some(&entry) = self.cache.buffers[buffer].front() else { return };
            self.leave(entry);
        }
    }

    fn make_room_in_cache(&mut self) {
        match self.cache.shape {
            Shape::Off => {}
            Shape::Updates { stripe_chunks_max, device_chunks_max } => {
                if self.cache.buffers[1..].iter().any(|buffer| buffer.len() > device_chunks_max) {
                    self.write_oldest_of_each_device();
                }
                if self.cache.buffers[0].len() > stripe_chunks_max {
                    self.write_stripe_buffer();
                }
            }
            Shape::Groups { group_chunks, .. } => {
                for group in 0..self.cache.buffers.len() {
                    if self.cache.buffers[group].len() >= group_chunks {
                        self.leave_oldest(group, group_chunks);
                    }
                }
            }
        }
    }

    fn group_deadline_ns(&self, group: usize) -> Option<u64> {
        let Shape::Groups { wait_ns: Some(wait_ns), .. } = self.cache.shape else { return None };
        let oldest = *self.cache.buffers[group].front()?;
        Some(self.cache.entries[oldest].since_ns.saturating_add(wait_ns))
    }

    /// Together they make one log stripe.
    fn write_oldest_of_each_device(&mut self) {
        for buffer in 1..self.cache.buffers.len() {
            if let Some(&entry) = self.cache.buffers[buffer].front() {
                self.leave(entry);
            }
        }
    }

    /// Writes the stripes of the stripe buffer that are whole, or the oldest.
    fn write_stripe_buffer(&mut self) {
        let geometry = self.store.config.geometry;
        let stripe_of = |&entry: &Key<Entry>| geometry.stripe_of(self.cache.entries[entry].lcn);
        let Some(oldest) = self.cache.buffers[0].front().map(stripe_of) else { return };
        let mut whole: Vec<StripeId> = self.cache.buffers[0].iter().map(stripe_of).collect();
        whole.sort_unstable();
        whole.dedup();
        whole.retain(|&stripe| self.waiting_of(stripe).count() == geometry.data_count());
        if whole.is_empty() {
            whole.push(oldest);
        }
        for stripe in whole {
            let entries: Vec<Key<Entry>> = self.waiting_of(stripe).collect();
            for entry in entries {
                // It may have left with another one.
                if self.cache.entries[entry].state == State::Waiting {
                    self.leave(entry);
                }
            }
        }
    }

    /// The entries of a stripe that wait in the stripe buffer.
    fn waiting_of(&self, stripe: StripeId) -> impl Iterator<Item = Key<Entry>> + '_ {
        let geometry = self.store.config.geometry;
        (0..geometry.data_count()).filter_map(move |column| {
            let entry = *self.cache.newest.get(&geometry.lcn_at(stripe, column).get())?;
            (self.cache.entries[entry].state == State::Waiting).then_some(entry)
        })
    }

    /// Sends everything that waits to be written.
    pub(super) fn drain_cache(&mut self) {
        if !self.cache.has_waiting() {
            return;
        }
        if let Shape::Groups { .. } = self.cache.shape {
            for group in 0..self.cache.buffers.len() {
                self.leave_oldest(group, usize::MAX);
            }
            return;
        }
        while !self.cache.buffers[0].is_empty() {
            self.write_stripe_buffer();
        }
        while self.cache.has_waiting() {
            self.write_oldest_of_each_device();
        }
    }

    /// What is on its way to the devices goes before what still has to be copied, which may wait for its
    /// buffers; `false`: it does already, or there is none.
    pub(super) fn put_cached_first(&mut self) -> bool {
        let is_cached = |pending: &Pending| pending.write().is_some_and(ChunkWrite::is_cached);
        let found = self.queue.pending.iter().skip_while(|pending| is_cached(pending)).any(is_cached);
        if found {
            self.queue.pending.make_contiguous().sort_by_key(|pending| !is_cached(pending));
        }
        found
    }

    /// Everything acknowledged so far is written; then the request goes on.
    pub(super) fn after_cache(&mut self, after: After) {
        if self.cache.is_empty() || planted(Planted::FlushForgetsCache) {
            return self.go_on(after);
        }
        self.drain_cache();
        self.cache.generations.back_mut().expect("there is always one").after.push(after);
        self.cache.generations.push_back(Generation::default());
        self.end_generations();
    }

    fn go_on(&mut self, after: After) {
        match after {
            After::Flush(request) => self.board.flush.want(request),
            After::Commit(request) => self.board.commit.waiting.push(request),
        }
    }

    fn end_generations(&mut self) {
        while self.cache.generations.len() > 1 && self.cache.generations[0].count == 0 {
            self.cache.first_generation += 1;
            let ended = self.cache.generations.pop_front().expect("counted above");
            for after in ended.after {
                self.go_on(after);
            }
        }
    }

    /// The scheme has planned a write. From now on a newer version is an entry of its own, planned later.
    pub(super) fn note_planned(&mut self, write: &ChunkWrite) {
        match write.origin {
            Origin::Entry(entry) => self.cache.entries[Key::from_index(entry)].state = State::Planned,
            Origin::Request(_) => {}
        }
    }

    /// There is no room for what left the cache: it is kept, and whoever waits for it is told.
    pub(super) fn refuse_cached(&mut self, error: EngineError) {
        for index in 0..self.queue.pending.len() {
            if let Some(Origin::Entry(entry)) = self.queue.pending[index].write().map(|write| write.origin) {
                self.answer_entry(Key::from_index(entry), Some(error));
            }
        }
        self.refuse_behind_cache(error, |_, _| true);
    }

    /// Tells the durable requests that wait for an entry.
    fn answer_entry(&mut self, entry: Key<Entry>, error: Option<EngineError>) {
        let mut requests = std::mem::take(&mut self.cache.entries[entry].requests);
        requests.drain(..).for_each(|request| self.chunk_done(request, error));
        self.cache.entries[entry].requests = requests;
    }

    /// Whoever has waited for too long for what left the cache is told why.
    pub(super) fn refuse_late_behind_cache(&mut self, error: EngineError) {
        self.refuse_behind_cache(error, |core, after| core.is_late(after.request()));
    }

    /// Refuses those of the requests that wait for what left the cache; whether there were any.
    pub(super) fn refuse_behind_cache(
        &mut self,
        error: EngineError,
        refused: impl Fn(&Self, After) -> bool,
    ) -> bool {
        let mut any = false;
        for index in 0..self.cache.generations.len() {
            let mut after = std::mem::take(&mut self.cache.generations[index].after);
            after.retain(|&after| {
                let is_refused = refused(self, after);
                any |= is_refused;
                if is_refused {
                    self.close(after.request(), Err(error));
                }
                !is_refused
            });
            self.cache.generations[index].after = after;
        }
        any
    }

    /// An entry was written, or discarded. If that failed it is kept for readers: the array takes no writes
    /// any more.
    pub(super) fn entry_done(&mut self, entry: Key<Entry>, error: Option<EngineError>) {
        let number = self.cache.entries[entry].generation;
        self.cache.generation_mut(number).count -= 1;
        self.answer_entry(entry, error);
        if error.is_none() {
            let Entry { lcn, slot, .. } = self.cache.entries[entry];
            if self.cache.newest.get(&lcn.get()) == Some(&entry) {
                self.cache.newest.remove(&lcn.get());
            }
            self.pool.free(slot);
            self.cache.entries.release(entry);
        }
        self.end_generations();
    }

    /// A job discards chunks, whose stripes it holds alone: what the cache has of them will not be written.
    pub(super) fn discard_cached(&mut self, job: Key<Job>, first: Lcn, count: u64) {
        if self.cache.is_empty() || planted(Planted::DiscardForgetsCache) {
            return;
        }
        for lcn in first.get()..first.get() + count {
            let Some(&entry) = self.cache.newest.get(&lcn) else { continue };
            match self.cache.entries[entry].state {
                State::Waiting => {
                    self.cache.take_from_buffer(entry);
                    self.cache.send(entry, State::Discarded);
                }
                // The rest of its block may wait for another stripe: it is written with zeros in this place.
                State::Queued if self.cache.entries[entry].order > 0 => {
                    let slot = self.cache.entries[entry].slot;
                    self.pool.bytes_mut(slot).fill(0);
                    continue;
                }
                State::Queued => {
                    self.cache.entries[entry].state = State::Discarded;
                    let is_it = |pending: &Pending| {
                        pending.write().is_some_and(|write| write.origin == Origin::Entry(entry.index()))
                    };
                    self.queue.pending.retain(|pending| !is_it(pending));
                    let stripe = self.store.config.geometry.stripe_of(Lcn::new(lcn));
                    self.locks.forget(stripe, is_it);
                }
                State::Planned | State::Discarded => continue,
            }
            self.cache.discards.push((job, entry));
        }
    }

    /// A discard has retired.
    pub(super) fn discard_done(&mut self, job: Key<Job>, error: Option<EngineError>) {
        while let Some(at) = self.cache.discards.iter().position(|&(of, _)| of == job) {
            let (_, entry) = self.cache.discards.swap_remove(at);
            self.entry_done(entry, error);
        }
    }

    /// Whether writes go through the cache.
    pub(super) fn caches_writes(&self) -> bool {
        self.cache.is_on()
    }
}

/// Sends what has waited in the cache for long enough.
pub(super) struct CacheExpiry;

impl Activity for CacheExpiry {
    fn drive(&mut self, core: &mut Core) {
        for group in 0..core.cache.buffers.len() {
            if core.group_deadline_ns(group).is_some_and(|deadline| deadline <= core.now_ns) {
                core.leave_oldest(group, usize::MAX);
            }
        }
    }

    /// What leaves is answered with an error like any other write.
    fn drive_frozen(&mut self, core: &mut Core) {
        self.drive(core);
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    /// Whether something is on its way to the devices.
    fn is_busy(&self, core: &Core) -> bool {
        core.cache.is_busy()
    }

    /// When the next group has waited for long enough.
    fn deadline(&self, core: &Core) -> Option<Deadline> {
        let groups = 0..core.cache.buffers.len();
        groups.filter_map(|group| core.group_deadline_ns(group)).min().map(Deadline::Work)
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    /// What left is looked at with the writes.
    fn left_undone(&self, _core: &Core) -> Option<&'static str> {
        None
    }
}

impl Marked for CacheExpiry {
    type Mark = [u64; 2];

    /// But for what is in the core's queues.
    fn mark(&self, core: &Core) -> Self::Mark {
        [count(core.cache.entries.len()), count(core.cache.generations.len())]
    }
}
