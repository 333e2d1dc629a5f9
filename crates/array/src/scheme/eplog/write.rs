//! The write path: full stripes to the main array, everything else into log stripes (EPLOG, section 3.2).
//!
//! A stripe is full if one batch has a write for each of its columns, in whatever order. A stripe written
//! before is replaced as a whole, unless it may not or is better logged ([`Rewrites`]): that takes k + m
//! chunks until its old ones are released, against k data and m log chunks now and m parity chunks at the
//! commit. Nothing of the stripe is read, so older writes to it may be on their way: their records come
//! before this one, and records are applied in order.

use super::Eplog;
use super::list_room::ListSize;
use crate::plan::{Compute, CrcAt, Plan, PlanWrite};
use crate::planted::{Planted, planted};
use crate::scheme::log_room::{has_room_for, is_log_low, log_blocks_for};
use crate::scheme::{ChunkWrite, Rewrites};
use crate::space::{ChunkLease, Demand};
use crate::store::{Store, stripes_touched};
use block::{ChunkAddr, DevIndex, Geometry, Pool, Slot, Stream, StripeId};
use format::record::{FullStripe, LogStripe};
use format::{LogMember, StripeChunk};
use std::ops::Range;

/// Reused between batches.
#[derive(Default)]
pub struct Scratch {
    /// The writes of a batch by stripe, those of one stripe in the order of the batch.
    by_stripe: Vec<(StripeId, u32)>,
    /// Which of them were planned as part of a full stripe.
    planned: Vec<bool>,
    /// The content of a stripe's columns.
    columns: Vec<Option<Slot>>,
    /// The other writes.
    partial: Vec<ChunkWrite>,
    /// The device of each of them.
    devices: Vec<DevIndex>,
    /// Writes aimed at each device in this batch.
    per_device: Vec<u32>,
    /// Chunks taken of each device, as many, the devices one after the other.
    chunks: Vec<Option<ChunkLease>>,
    /// Where those of each device begin.
    chunks_from: Vec<usize>,
    /// Which log stripe each of `partial` joins.
    group: Vec<u32>,
    /// The same writes, sorted by group.
    order: Vec<u32>,
    /// Where the next write of each group goes in `order`.
    next: Vec<usize>,
}

impl Eplog {
    /// Plans all of `writes` that have space; the rest is refused.
    pub(super) fn plan_write_batch(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        if plan.untorn
            && !planted(Planted::PlanPartOfUntorn)
            && !self.have_room(store, pool, writes, &mut scratch)
        {
            refused.append(writes);
            self.scratch = scratch;
            return;
        }
        self.plan_full_stripes(store, pool, writes, plan, &mut scratch);
        scratch.collect_partial(writes);
        scratch.count_per_device(store);
        // Worst case first: nothing is taken back once planned.
        let groups = scratch.per_device.iter().copied().max().unwrap_or(0);
        let m = store.config.geometry.parity_count();
        let has_log = has_room_for(store, groups);
        let (members, groups) = (scratch.partial.len(), groups as usize);
        let fits = has_log
            && self.has_list_room(store, groups, members)
            && pool.free_count() >= groups * m + store.slots_kept()
            && scratch.have_room(store);
        if fits {
            scratch.group_first_fit(store);
            scratch.take_chunks(store);
            self.plan_log_stripes(store, pool, &mut scratch, plan);
        } else {
            refused.extend_from_slice(&scratch.partial);
            let mut planned = scratch.planned.iter();
            writes.retain(|_| *planned.next().expect("each write of the batch has an entry"));
        }
        self.scratch = scratch;
    }

    /// Whether there is room for all of a batch, whichever of its writes become full stripes.
    fn have_room(
        &self,
        store: &mut Store,
        pool: &Pool,
        writes: &[ChunkWrite],
        scratch: &mut Scratch,
    ) -> bool {
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        if self.have_plenty(store, pool, writes.len()) {
            return true;
        }
        scratch.planned.clear();
        scratch.planned.resize(writes.len(), false);
        scratch.collect_partial(writes);
        scratch.count_per_device(store);
        let most = scratch.per_device.iter().copied().max().unwrap_or(0);
        let (groups, mut full) = (usize::try_from(most).unwrap_or(usize::MAX), 0);
        if may_make_a_stripe(&geometry, writes) {
            let Scratch { by_stripe, per_device, .. } = scratch;
            sort_by_stripe(&geometry, writes, by_stripe);
            for group in by_stripe.chunk_by(|one, other| one.0 == other.0) {
                for _ in 0..group.len() / k {
                    let parities = (k..k + m).map(|column| store.layout.device(group[0].0, column));
                    parities.for_each(|dev| per_device[dev.index()] += 1);
                    full += 1;
                }
            }
        }
        has_room_for(store, most)
            && self.has_list_room(store, groups, writes.len())
            && pool.free_count() >= (groups + full) * m + store.slots_kept()
            && scratch.have_room(store)
    }

    /// Whether there is room for so many writes wherever they go, without a look at them.
    fn have_plenty(&self, store: &mut Store, pool: &Pool, count: usize) -> bool {
        let Ok(chunks) = u32::try_from(count) else { return false };
        store.log.room() >= log_blocks_for(store, chunks)
            && self.has_list_room(store, count, count)
            && pool.free_count() >= 2 * count * store.config.geometry.parity_count() + store.slots_kept()
            && (0..).map(DevIndex::new).take(store.main_count()).all(|dev| store.has_ready(dev, 2 * chunks))
    }

    fn has_list_room(&self, store: &Store, groups: usize, members: usize) -> bool {
        let log_stripes = groups + members / store.code.width_max();
        self.list.has(self.list_size(), self.list.growth(log_stripes, members))
    }

    /// Whether a bundle of so many chunks has room when everything is committed and released.
    pub(super) fn has_room_for_bundle(&self, store: &Store, chunks: u64) -> bool {
        let config = &store.config;
        let stripes = stripes_touched(config.geometry, chunks);
        let full = u64::try_from(config.geometry.data_count()).map_or(0, |k| chunks / k);
        let spare = u64::from(config.chunks_per_device).saturating_sub(config.stripe_count);
        let (groups, members) = (usize::try_from(stripes), usize::try_from(chunks));
        let (Ok(groups), Ok(members)) = (groups, members) else { return false };
        let log_stripes = groups + members / store.code.width_max();
        let log_need = log_blocks_for(store, u32::try_from(groups).unwrap_or(u32::MAX));
        // Half of the log: frames lie there as well, and what is behind the last checkpoint.
        spare >= stripes + full + u64::from(store.spaces[0].set_aside())
            && u64::from(config.log_blocks) >= 2 * log_need
            && self.list.has(ListSize::default(), self.list.growth(2 * log_stripes, 2 * members))
    }

    /// Plans the full stripes among `writes` that have space, and notes which writes those were.
    fn plan_full_stripes(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        writes: &[ChunkWrite],
        plan: &mut Plan,
        scratch: &mut Scratch,
    ) {
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        scratch.planned.clear();
        scratch.planned.resize(writes.len(), false);
        if !may_make_a_stripe(&geometry, writes) {
            return;
        }
        // What is hot is logged, unless that could not be done or would make a commit due.
        let may_log = !is_log_low(store) && !self.list.is_low(self.list_size());
        let Scratch { by_stripe, planned, columns, .. } = scratch;
        sort_by_stripe(&geometry, writes, by_stripe);
        for group in by_stripe.chunk_by(|one, other| one.0 == other.0) {
            let stripe = group[0].0;
            // Full stripes are recorded before log stripes: behind a write that is logged, none may follow.
            for (nth, run) in group.chunks_exact(k).enumerate() {
                if !fill_columns(&geometry, writes, run, columns) {
                    break;
                }
                let is_new = nth == 0 && self.is_unwritten(store, stripe);
                let logged = !is_new
                    && match self.rewrites {
                        Rewrites::Auto => may_log && self.hot.is_better_logged(stripe, &self.dirty),
                        Rewrites::Replace => false,
                        Rewrites::Log => true,
                    };
                let whole = !logged
                    && pool.free_count() >= m + store.slots_kept()
                    && (0..k + m).all(|c| store.has_ready(store.layout.device(stripe, c), 1));
                if !is_new && (whole || logged) {
                    self.hot.note(stripe);
                }
                if !whole {
                    break;
                }
                plan_full_stripe(store, pool, stripe, columns, plan);
                run.iter().for_each(|&(_, at)| planned[at as usize] = true);
            }
        }
    }

    fn plan_log_stripes(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        scratch: &mut Scratch,
        plan: &mut Plan,
    ) {
        let width = store.code.width_max();
        let mut at = 0;
        while at < scratch.order.len() {
            let group = scratch.group[scratch.order[at] as usize];
            let end = scratch.order[at..]
                .iter()
                .take(width)
                .take_while(|&&i| scratch.group[i as usize] == group)
                .count()
                + at;
            self.list.promise(self.list.growth(1, end - at));
            plan_log_stripe(store, pool, (scratch, at..end), plan);
            at = end;
        }
    }
}

/// Whether one stripe can have as many of the writes as it has columns. A no is certain; a yes is not, and
/// costs sorting them.
fn may_make_a_stripe(geometry: &Geometry, writes: &[ChunkWrite]) -> bool {
    let (k, mut counts) = (geometry.data_count(), [0u16; 128]);
    writes.len() >= k
        && writes.iter().any(|write| {
            let count = &mut counts[geometry.stripe_of(write.lcn).get() as usize % 128];
            *count = count.saturating_add(1);
            usize::from(*count) >= k
        })
}

fn sort_by_stripe(geometry: &Geometry, writes: &[ChunkWrite], by_stripe: &mut Vec<(StripeId, u32)>) {
    by_stripe.clear();
    by_stripe.extend(writes.iter().zip(0..).map(|(write, at)| (geometry.stripe_of(write.lcn), at)));
    if !by_stripe.is_sorted() {
        by_stripe.sort_unstable();
    }
}

/// Puts as many writes as a stripe has columns where they belong; `false` if two are for one column.
fn fill_columns(
    geometry: &Geometry,
    writes: &[ChunkWrite],
    run: &[(StripeId, u32)],
    columns: &mut Vec<Option<Slot>>,
) -> bool {
    columns.clear();
    columns.resize(run.len(), None);
    run.iter().enumerate().all(|(nth, &(_, at))| {
        let write = &writes[at as usize];
        let column = if planted(Planted::ColumnsAsTheyCome) { nth } else { geometry.column_of(write.lcn) };
        columns[column].replace(write.slot).is_none()
    })
}

impl Scratch {
    fn collect_partial(&mut self, writes: &[ChunkWrite]) {
        let Self { planned, partial, .. } = self;
        partial.clear();
        if !planned.contains(&true) {
            return partial.extend_from_slice(writes);
        }
        partial.extend(writes.iter().zip(planned).filter(|(_, planned)| !**planned).map(|(write, _)| *write));
    }

    fn count_per_device(&mut self, store: &Store) {
        self.per_device.clear();
        self.per_device.resize(store.main_count(), 0);
        self.group.clear();
        self.devices.clear();
        for write in &self.partial {
            let dev = store.layout.device_of(write.lcn);
            let count = &mut self.per_device[dev.index()];
            self.devices.push(dev);
            self.group.push(*count);
            *count += 1;
        }
    }

    /// Takes the chunks of all writes, device by device; there is room. The j-th of a device are for log
    /// stripe j.
    fn take_chunks(&mut self, store: &mut Store) {
        self.chunks.clear();
        self.chunks_from.clear();
        for (dev, &count) in (0..).map(DevIndex::new).zip(&self.per_device) {
            self.chunks_from.push(self.chunks.len());
            store.alloc_ready(dev, count, &mut self.chunks);
        }
    }

    /// The device of a write, and the chunk there that is its own.
    fn take_chunk(&mut self, write: usize) -> (DevIndex, ChunkLease) {
        let dev = self.devices[write];
        let at = self.chunks_from[dev.index()] + self.group[write] as usize;
        (dev, self.chunks[at].take().expect("as many chunks are taken as there are writes"))
    }

    /// Whether every device has room for what is aimed at it.
    fn have_room(&self, store: &mut Store) -> bool {
        let devices = (0..).map(DevIndex::new).zip(&self.per_device);
        devices.filter(|&(dev, &count)| !store.has_ready(dev, count)).count() == 0
    }

    /// First fit: the j-th chunk aimed at a device joins log stripe j, so the number of log stripes is
    /// the largest number of chunks on one device. Stripes wider than the code allows are cut.
    fn group_first_fit(&mut self, store: &Store) {
        self.next.clear();
        self.next.resize(self.group.iter().max().map_or(0, |&last| last as usize + 1), 0);
        self.group.iter().for_each(|&group| self.next[group as usize] += 1);
        let mut first = 0;
        for next in &mut self.next {
            first += std::mem::replace(next, first);
        }
        self.order.clear();
        self.order.resize(self.group.len(), 0);
        for (i, &group) in (0..).zip(&self.group) {
            let next = &mut self.next[group as usize];
            self.order[*next] = i;
            *next += 1;
        }
        debug_assert!(store.code.width_max() > 0);
    }
}

fn plan_full_stripe(
    store: &mut Store,
    pool: &mut Pool,
    stripe: StripeId,
    content: &[Option<Slot>],
    plan: &mut Plan,
) {
    let geometry = store.config.geometry;
    let (k, m) = (geometry.data_count(), geometry.parity_count());
    let inputs = plan.slots.len();
    let columns = plan.columns.len();
    plan.columns.extend(0..k);
    plan.slots
        .extend(content.iter().map(|slot| slot.expect("as many writes as columns, no two of one column")));
    for _ in 0..m {
        let slot = plan.own_slot(pool);
        plan.slots.push(slot);
    }
    plan.computes.push(Compute::Encode {
        columns: columns..columns + k,
        inputs: inputs..inputs + k,
        outputs: inputs + k..inputs + k + m,
    });
    FullStripe::begin(&mut plan.records, stripe);
    for column in 0..k + m {
        let dev = store.layout.device(stripe, column);
        let lease = store.alloc(dev, Demand::User).expect("checked: every device has space");
        let chunk = plan.leases.hold(dev, lease);
        let crc = FullStripe::push(&mut plan.records, StripeChunk { chunk, crc: 0 });
        plan.writes.push(PlanWrite {
            addr: ChunkAddr::new(dev, chunk),
            slot: plan.slots[inputs + column],
            stream: if column < k { Stream::Data } else { Stream::Parity },
            crc_at: CrcAt::Record(crc),
        });
    }
}

/// Plans the log stripe of some of the writes, by their places in [`Scratch::order`].
fn plan_log_stripe(
    store: &mut Store,
    pool: &mut Pool,
    (scratch, members): (&mut Scratch, Range<usize>),
    plan: &mut Plan,
) {
    let m = store.config.geometry.parity_count();
    let (_, block) = store.log.append(store.chunk_blocks()).expect("checked: the log has room");
    let crcs = LogStripe::begin(&mut plan.records, block, m);
    let (inputs, columns) = (plan.slots.len(), plan.columns.len());
    for (index, at) in members.enumerate() {
        let write = scratch.order[at] as usize;
        let (dev, lease) = scratch.take_chunk(write);
        let ChunkWrite { lcn, slot, .. } = scratch.partial[write];
        let chunk = plan.leases.hold(dev, lease);
        let crc = LogStripe::push(&mut plan.records, LogMember { lcn, chunk, crc: 0 });
        plan.slots.push(slot);
        plan.columns.push(index);
        let addr = ChunkAddr::new(dev, chunk);
        plan.writes.push(PlanWrite { addr, slot, stream: Stream::Data, crc_at: CrcAt::Record(crc) });
    }
    let (inputs, columns) = (inputs..plan.slots.len(), columns..plan.columns.len());
    let outputs = plan.slots.len()..plan.slots.len() + m;
    for row in 0..m {
        let slot = plan.own_slot(pool);
        plan.slots.push(slot);
        let addr = ChunkAddr::new(store.log_device(row), block);
        plan.writes.push(PlanWrite { addr, slot, stream: Stream::Log, crc_at: CrcAt::Record(crcs.at(row)) });
    }
    plan.computes.push(Compute::Encode { columns, inputs, outputs });
}
