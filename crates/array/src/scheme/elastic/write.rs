//! User writes: the chunks of a class, k at a time, become elastic stripes; what is left becomes a short one
//! (W-18, A-19).

use super::{Elastic, rows};
use crate::plan::{CrcAt, Plan, PlanWrite};
use crate::planted::{Planted, planted};
use crate::scheme::ChunkWrite;
use crate::store::Store;
use block::{Lcn, Pool, Slot, Stream};
use format::{CLASSES_MAX, ElasticMember, record};

/// Reused between batches.
#[derive(Default)]
pub struct Scratch {
    /// The writes of one class, by their place in the batch.
    chosen: Vec<usize>,
    /// Which writes of the batch are planned.
    planned: Vec<bool>,
}

/// A chunk that goes into a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub lcn: Lcn,
    pub slot: Slot,
    /// See [`ElasticMember::from`].
    pub from: u32,
    /// Its checksum, if that is known and will have been verified.
    pub crc: Option<u32>,
}

impl Elastic {
    /// Plans all of `writes` that have space; the rest is refused.
    pub(super) fn plan_batch(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        (plan, may_open): (&mut Plan, bool),
    ) {
        if plan.untorn && !planted(Planted::PlanPartOfUntorn) && !self.have_room(store, pool, writes) {
            return refused.append(writes);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.planned.clear();
        scratch.planned.resize(writes.len(), false);
        for class in 0..self.units.class_count() {
            scratch.chosen.clear();
            scratch.chosen.extend((0..writes.len()).filter(|&i| usize::from(writes[i].class) == class));
            let planned = self.plan_class(store, pool, class, writes, (plan, may_open), &scratch.chosen);
            scratch.chosen[..planned].iter().for_each(|&i| scratch.planned[i] = true);
        }
        let mut planned = scratch.planned.iter();
        writes.retain(|write| {
            let is_planned = *planned.next().expect("one for each write");
            if !is_planned {
                refused.push(*write);
            }
            is_planned
        });
        self.scratch = scratch;
    }

    /// Whether there is room for all of a batch. If it lacks rows, collection is told; and where collection
    /// has nothing to gain, open stripes are closed, as a unit is full, and may be collected, without them.
    fn have_room(&mut self, store: &Store, pool: &Pool, writes: &[ChunkWrite]) -> bool {
        let geometry = store.config.geometry;
        let mut rows = [0usize; CLASSES_MAX];
        writes.iter().for_each(|write| rows[usize::from(write.class)] += 1);
        rows.iter_mut().for_each(|chunks| *chunks = chunks.div_ceil(geometry.data_count()));
        let slots = rows.iter().sum::<usize>() * geometry.parity_count();
        if pool.free_count() < slots + store.slots_kept_by_writes() {
            return false;
        }
        let has_rows = self.units.have_rows(store, &rows);
        if !has_rows && !self.units.can_gain() {
            self.open.close_before(&store.log, store.log.head());
        }
        has_rows
    }

    /// Plans what a batch has of a class, in order; returns how many writes have room.
    fn plan_class(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        class: usize,
        writes: &[ChunkWrite],
        (plan, may_open): (&mut Plan, bool),
        chosen: &[usize],
    ) -> usize {
        let chunk = |&i: &usize| Chunk { lcn: writes[i].lcn, slot: writes[i].slot, from: 0, crc: None };
        let k = store.config.geometry.data_count();
        let mut at = 0;
        if may_open && !chosen.is_empty() {
            at = self.plan_growth(store, class, chosen.iter().map(chunk), plan);
        }
        while at < chosen.len() {
            let members = chosen[at..].iter().take(k);
            let count = members.len();
            let opened = may_open
                && count < k
                && self.plan_opening(store, pool, class, members.clone().map(chunk), plan);
            if !opened && !self.plan_user_stripe(store, pool, class, members.map(chunk), plan) {
                break;
            }
            at += count;
        }
        at
    }

    /// `false` if there is no row or no buffer for it now.
    fn plan_user_stripe(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        class: usize,
        members: impl ExactSizeIterator<Item = Chunk>,
        plan: &mut Plan,
    ) -> bool {
        if pool.free_count() < store.config.geometry.parity_count() + store.slots_kept_by_writes() {
            return false;
        }
        let Some(lease) = self.units.take_row(store, class, self.now, true) else { return false };
        let row = plan.leases.hold_row(lease);
        self.note_times(row, members.len());
        plan_stripe(store, pool, row, class, members, plan);
        true
    }

    /// Users write so many chunks of a row now.
    pub(super) fn note_times(&mut self, row: u32, count: usize) {
        if self.needs_times {
            let unit = self.units.of_row(row);
            (0..count).for_each(|_| self.units.note_time(unit, self.now));
        }
    }
}

/// Extends a plan by one stripe, whose chunks are at hand or will be when the plan's reads have ended.
pub fn plan_stripe(
    store: &Store,
    pool: &mut Pool,
    row: u32,
    class: usize,
    members: impl Iterator<Item = Chunk>,
    plan: &mut Plan,
) {
    let geometry = store.config.geometry;
    let (k, m) = (geometry.data_count(), geometry.parity_count());
    let (inputs, columns) = (plan.slots.len(), plan.columns.len());
    record::Elastic::begin(&mut plan.records, row, class as u8);
    for (column, Chunk { lcn, slot, from, crc }) in members.enumerate() {
        let member = ElasticMember { lcn, from, crc: crc.unwrap_or(0) };
        let offset = record::Elastic::push(&mut plan.records, member);
        plan.slots.push(slot);
        plan.columns.push(column);
        let crc_at = if crc.is_some() { CrcAt::Nowhere } else { CrcAt::Record(offset) };
        let addr = rows::address(store, row, column);
        plan.writes.push(PlanWrite { addr, slot, stream: Stream::Data, crc_at });
    }
    let outputs = plan.encode(pool, columns, inputs, m);
    for parity in 0..m {
        let (addr, slot) = (rows::address(store, row, k + parity), plan.slots[outputs + parity]);
        let crc_at = CrcAt::Record(record::Elastic::push_parity(&mut plan.records));
        plan.writes.push(PlanWrite { addr, slot, stream: Stream::Parity, crc_at });
    }
}
