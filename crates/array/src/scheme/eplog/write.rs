//! The write path: full stripes to the main array, everything else into log stripes (EPLOG, section 3.2).

use super::Eplog;
use crate::plan::{Compute, CrcAt, Plan, PlanWrite};
use crate::scheme::ChunkWrite;
use crate::scheme::log_room::LOG_SET_ASIDE_BLOCKS;
use crate::space::Demand;
use crate::store::Store;
use block::{ChunkAddr, Pool, Stream, StripeId};
use format::record::{FullStripe, LogStripe};
use format::{LogMember, StripeChunk};

/// Reused between batches.
#[derive(Default)]
pub struct Scratch {
    partial: Vec<ChunkWrite>,
    /// Writes aimed at each device in this batch.
    per_device: Vec<u32>,
    /// Which log stripe each of `partial` joins.
    group: Vec<u32>,
    /// The same writes, sorted by group.
    order: Vec<u32>,
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
        scratch.partial.clear();
        self.split_full_stripes(store, pool, writes, plan, &mut scratch.partial);
        scratch.count_per_device(store);
        // Worst case first: nothing is taken back once planned.
        let groups = scratch.per_device.iter().copied().max().unwrap_or(0);
        let m = store.config.geometry.parity_count();
        let log_need = u64::from(groups + 1) * u64::from(store.chunk_blocks()) + LOG_SET_ASIDE_BLOCKS;
        let fits = store.log.room() >= log_need
            && pool.free_count() >= groups as usize * m + store.slots_kept()
            && scratch
                .per_device
                .iter()
                .zip(&store.spaces)
                .all(|(&count, space)| space.free_for_users() >= count);
        if fits {
            scratch.group_first_fit(store);
            plan_log_stripes(store, pool, &scratch, plan);
        } else {
            refused.extend(scratch.partial.iter().copied());
            let refused = &scratch.partial;
            writes.retain(|write| !refused.iter().any(|r| r.slot == write.slot));
        }
        self.scratch = scratch;
    }

    /// Plans runs of writes that make up a whole stripe never written before; the other writes
    /// go to `partial`.
    fn split_full_stripes(
        &self,
        store: &mut Store,
        pool: &mut Pool,
        writes: &[ChunkWrite],
        plan: &mut Plan,
        partial: &mut Vec<ChunkWrite>,
    ) {
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        let mut at = 0;
        while at < writes.len() {
            let first = writes[at];
            let stripe = geometry.stripe_of(first.lcn);
            let run = &writes[at..writes.len().min(at + k)];
            let whole = geometry.column_of(first.lcn) == 0
                && run.len() == k
                && run.iter().zip(first.lcn.get()..).all(|(write, lcn)| write.lcn.get() == lcn)
                && self.is_unwritten(store, stripe)
                && writes[..at].iter().all(|write| geometry.stripe_of(write.lcn) != stripe)
                && pool.free_count() >= m + store.slots_kept()
                && (0..k + m)
                    .all(|c| store.spaces[store.layout.device(stripe, c).index()].free_for_users() > 0);
            if whole {
                plan_full_stripe(store, pool, stripe, run, plan);
                at += k;
            } else {
                partial.push(first);
                at += 1;
            }
        }
    }
}

impl Scratch {
    fn count_per_device(&mut self, store: &Store) {
        self.per_device.clear();
        self.per_device.resize(store.main_count(), 0);
        self.group.clear();
        for write in &self.partial {
            let count = &mut self.per_device[store.layout.device_of(write.lcn).index()];
            self.group.push(*count);
            *count += 1;
        }
    }

    /// First fit: the j-th chunk aimed at a device joins log stripe j, so the number of log stripes is
    /// the largest number of chunks on one device. Stripes wider than the code allows are cut.
    fn group_first_fit(&mut self, store: &Store) {
        self.order.clear();
        self.order.extend(0..self.partial.len() as u32);
        let group = &self.group;
        self.order.sort_by_key(|&i| group[i as usize]);
        debug_assert!(store.code.width_max() > 0);
    }
}

fn plan_full_stripe(
    store: &mut Store,
    pool: &mut Pool,
    stripe: StripeId,
    run: &[ChunkWrite],
    plan: &mut Plan,
) {
    let geometry = store.config.geometry;
    let (k, m) = (geometry.data_count(), geometry.parity_count());
    let inputs = plan.slots.len();
    let columns = plan.columns.len();
    plan.columns.extend(0..k);
    plan.slots.extend(run.iter().map(|write| write.slot));
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
        let lease = store.spaces[dev.index()].alloc(Demand::User).expect("checked: every device has space");
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

fn plan_log_stripes(store: &mut Store, pool: &mut Pool, scratch: &Scratch, plan: &mut Plan) {
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
        plan_log_stripe(
            store,
            pool,
            scratch.order[at..end].iter().map(|&i| scratch.partial[i as usize]),
            plan,
        );
        at = end;
    }
}

fn plan_log_stripe(
    store: &mut Store,
    pool: &mut Pool,
    writes: impl Iterator<Item = ChunkWrite>,
    plan: &mut Plan,
) {
    let m = store.config.geometry.parity_count();
    let (_, block) = store.log.append(store.chunk_blocks()).expect("checked: the log has room");
    let crcs = LogStripe::begin(&mut plan.records, block, m);
    let (inputs, columns) = (plan.slots.len(), plan.columns.len());
    for (index, write) in writes.enumerate() {
        let dev = store.layout.device_of(write.lcn);
        let lease = store.spaces[dev.index()].alloc(Demand::User).expect("checked: the device has space");
        let chunk = plan.leases.hold(dev, lease);
        let crc = LogStripe::push(&mut plan.records, LogMember { lcn: write.lcn, chunk, crc: 0 });
        plan.slots.push(write.slot);
        plan.columns.push(index);
        let addr = ChunkAddr::new(dev, chunk);
        plan.writes.push(PlanWrite {
            addr,
            slot: write.slot,
            stream: Stream::Data,
            crc_at: CrcAt::Record(crc),
        });
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
