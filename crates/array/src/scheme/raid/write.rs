//! The write path: per stripe the way that reads less.
//!
//! *Read-modify-write* reads the old version of the columns written and the old parities and folds the change in;
//! *reconstruct-write* reads the columns that are not written and encodes all. As in `handle_stripe_dirtying` of
//! `drivers/md/raid5.c`, each counts the chunks it has to read, one that cannot be read counts as twice the number of
//! devices, and read-modify-write is taken if it needs fewer; on a tie md reconstructs (`rmw_level` 1, the default;
//! 2 would prefer read-modify-write). Columns that are zeros need no read; for parity that does not exist yet there is
//! no read-modify-write. A column written in part needs its old version either way, so it counts for both.

use super::{Raid, addr_of, index_of, is_written};
use crate::health::Health;
use crate::plan::{Compute, CrcAt, Plan, PlanRead, PlanWrite, Word};
use crate::scheme::ChunkWrite;
use crate::store::Store;
use block::{Pool, Slot, Stream, StripeId};
use format::InPlacePiece;

/// Bytes of records in one plan at most: they must fit what the journal keeps free for work under way, even if only one
/// record fits a frame.
const RECORD_BYTES_MAX: usize = 16_000;
const RECORD_HEAD_BYTES: usize = 8;
const RECORD_PIECE_BYTES: usize = 10;

/// Reused between batches.
#[derive(Default)]
pub struct Scratch {
    /// Per column of the stripe being planned: the slot that holds its old version.
    old: Vec<Option<Slot>>,
}

/// How the new parity is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    ReadModifyWrite,
    ReconstructWrite,
}

/// The writes to one stripe.
#[derive(Clone, Copy)]
struct Unit<'a> {
    stripe: StripeId,
    writes: &'a [ChunkWrite],
    chunk_bytes: u32,
}

impl Unit<'_> {
    fn is_partial(&self, write: &ChunkWrite) -> bool {
        write.to - write.from < self.chunk_bytes
    }

    fn find(&self, store: &Store, column: usize) -> Option<&ChunkWrite> {
        let lcn = store.config.geometry.lcn_at(self.stripe, column);
        self.writes.iter().find(|write| write.lcn == lcn)
    }
}

impl Raid {
    /// Plans the writes stripe by stripe, as far as there is room.
    pub(super) fn plan_write_batch(
        &mut self,
        store: &Store,
        health: &Health,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    ) {
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        let keep = store.slots_kept();
        let stripes_max = store.payload_chunks();
        let (mut planned, mut stripes, mut record_bytes) = (0, 0, 0);
        while let Some(first) = writes.get(planned) {
            let stripe = geometry.stripe_of(first.lcn);
            let count =
                writes[planned..].iter().take_while(|write| geometry.stripe_of(write.lcn) == stripe).count();
            stripes += 1;
            record_bytes += RECORD_HEAD_BYTES + (count + m) * RECORD_PIECE_BYTES;
            // Either way reads at most k chunks besides the parities.
            let fits = pool.free_count() >= keep + k + m
                && (record_bytes <= RECORD_BYTES_MAX || stripes == 1)
                && (stripes_max == 0 || stripes <= stripes_max);
            if !fits {
                break;
            }
            let chunk_bytes = geometry.chunk_bytes() as u32;
            let unit = Unit { stripe, writes: &writes[planned..planned + count], chunk_bytes };
            plan_unit(store, health, pool, &mut self.scratch.old, unit, plan);
            planned += count;
        }
        refused.extend(writes.drain(planned..));
    }
}

fn plan_unit(
    store: &Store,
    health: &Health,
    pool: &mut Pool,
    old: &mut Vec<Option<Slot>>,
    unit: Unit<'_>,
    plan: &mut Plan,
) {
    let geometry = store.config.geometry;
    let (k, m) = (geometry.data_count(), geometry.parity_count());
    let way = cheaper_way(store, health, unit);
    old.clear();
    for column in 0..k {
        let wanted = match (unit.find(store, column), way) {
            (Some(write), Way::ReconstructWrite) => unit.is_partial(write),
            (Some(_), Way::ReadModifyWrite) => true,
            (None, Way::ReconstructWrite) => true,
            (None, Way::ReadModifyWrite) => false,
        };
        let wanted = wanted && is_written(store, unit.stripe, column);
        old.push(wanted.then(|| read(store, pool, unit.stripe, column, plan)));
    }
    for write in unit.writes.iter().filter(|write| unit.is_partial(write)) {
        let old = old[geometry.column_of(write.lcn)];
        plan.computes.push(Compute::Fill { old, new: write.slot, from: write.from, to: write.to });
    }
    let parities = match way {
        Way::ReadModifyWrite => fold(store, pool, old, unit, plan),
        Way::ReconstructWrite => encode(store, pool, old, unit, plan),
    };
    let pieces_from = plan.records.pieces.len();
    for column in 0..k + m {
        let (slot, stream) = match column.checked_sub(k) {
            Some(row) => (plan.slots[parities + row], Stream::Parity),
            None => match unit.find(store, column) {
                Some(write) => (write.slot, Stream::Data),
                None => continue,
            },
        };
        let crc_at = CrcAt::Piece(plan.records.pieces.len());
        plan.records.pieces.push(InPlacePiece { column: column as u16, crc: 0, payload_block: 0 });
        plan.writes.push(PlanWrite { addr: addr_of(store, unit.stripe, column), slot, stream, crc_at });
    }
    plan.records.in_place(unit.stripe, pieces_from);
}

fn cheaper_way(store: &Store, health: &Health, unit: Unit<'_>) -> Way {
    let geometry = store.config.geometry;
    let (k, n) = (geometry.data_count(), geometry.device_count());
    if !is_written(store, unit.stripe, k) {
        return Way::ReconstructWrite;
    }
    let cost = |column: usize| match is_written(store, unit.stripe, column) {
        false => 0,
        true if health.is_readable(addr_of(store, unit.stripe, column)) => 1,
        true => 2 * n,
    };
    let (mut modify, mut reconstruct) = ((k..n).map(cost).sum::<usize>(), 0);
    for column in 0..k {
        match unit.find(store, column) {
            Some(write) if unit.is_partial(write) => {
                modify += cost(column);
                reconstruct += cost(column);
            }
            Some(_) => modify += cost(column),
            None => reconstruct += cost(column),
        }
    }
    if modify < reconstruct { Way::ReadModifyWrite } else { Way::ReconstructWrite }
}

/// Reads the present version of a column, data or parity.
fn read(store: &Store, pool: &mut Pool, stripe: StripeId, column: usize, plan: &mut Plan) -> Slot {
    let addr = addr_of(store, stripe, column);
    let slot = plan.own_slot(pool);
    let stream = if column < store.config.geometry.data_count() { Stream::Data } else { Stream::Parity };
    let (crc, word, index) = (store.table.crc(addr), Word::Stripe(stripe), index_of(store, column));
    plan.reads.push(PlanRead { addr, crc, word, index, slot, stream });
    slot
}

/// Reads the old parities and folds the changes in; returns where in `plan.slots` the parities are.
fn fold(store: &Store, pool: &mut Pool, old: &[Option<Slot>], unit: Unit<'_>, plan: &mut Plan) -> usize {
    let geometry = store.config.geometry;
    let (k, n) = (geometry.data_count(), geometry.device_count());
    let parities = plan.slots.len();
    for column in k..n {
        let slot = read(store, pool, unit.stripe, column, plan);
        plan.slots.push(slot);
    }
    let range = parities..plan.slots.len();
    for write in unit.writes {
        let column = geometry.column_of(write.lcn);
        plan.computes.push(Compute::Delta {
            column,
            old: old[column],
            new: Some(write.slot),
            parities: range.clone(),
        });
    }
    parities
}

/// Encodes all columns, new and old; returns where in `plan.slots` the parities are.
fn encode(store: &Store, pool: &mut Pool, old: &[Option<Slot>], unit: Unit<'_>, plan: &mut Plan) -> usize {
    let geometry = store.config.geometry;
    let (inputs, columns) = (plan.slots.len(), plan.columns.len());
    for (column, &old) in old.iter().enumerate() {
        let slot = unit.find(store, column).map(|write| write.slot).or(old);
        if let Some(slot) = slot {
            plan.columns.push(column);
            plan.slots.push(slot);
        }
    }
    let outputs = plan.slots.len();
    for _ in 0..geometry.parity_count() {
        let slot = plan.own_slot(pool);
        plan.slots.push(slot);
    }
    plan.computes.push(Compute::Encode {
        columns: columns..plan.columns.len(),
        inputs: inputs..outputs,
        outputs: outputs..plan.slots.len(),
    });
    outputs
}
