//! The write path: per stripe the way that reads less.
//!
//! *Read-modify-write* reads the old version of the columns written and the old parities and folds the change
//! in; *reconstruct-write* reads the columns that are not written and encodes all. As in
//! `handle_stripe_dirtying` of `drivers/md/raid5.c`, each counts the chunks it has to read, one that cannot
//! be read counts as twice the number of devices, and read-modify-write is taken if it needs fewer; on a tie
//! md reconstructs (`rmw_level` 1, the default; 2 would prefer read-modify-write). Columns that are zeros
//! need no read; for parity that does not exist yet there is no read-modify-write. A column written in part
//! needs its old version either way, so it counts for both.

use super::Raid;
use crate::health::Health;
use crate::plan::{Compute, Plan};
use crate::planted::{Planted, planted};
use crate::scheme::ChunkWrite;
use crate::scheme::in_place::unit::{Unit, Units, encode, read, units_of_all};
use crate::scheme::in_place::{addr_of, is_written};
use crate::store::Store;
use block::{Pool, Slot};

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
        let needed = store.slots_kept() + store.main_count();
        let (mut planned, mut units) = (0, Units::default());
        if plan.untorn && !planted(Planted::PlanPartOfUntorn) {
            let count = units_of_all(store, writes);
            let fits = |count| pool.free_count() >= store.slots_kept() + count * store.main_count();
            if !count.is_some_and(fits) {
                return refused.append(writes);
            }
        }
        // Either way reads at most k chunks besides the parities.
        while let Some(unit) = units.next(store, &writes[planned..]) {
            if pool.free_count() < needed {
                break;
            }
            plan_unit(store, health, pool, &mut self.scratch.old, unit, plan);
            planned += unit.writes.len();
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
    let k = geometry.data_count();
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
    unit.fill(store, old, plan);
    let parities = match way {
        Way::ReadModifyWrite => fold(store, pool, old, unit, plan),
        Way::ReconstructWrite => encode(store, pool, old, unit, plan),
    };
    unit.write_whole(store, parities, plan);
}

fn cheaper_way(store: &Store, health: &Health, unit: Unit<'_>) -> Way {
    let geometry = store.config.geometry;
    let (k, n) = (geometry.data_count(), geometry.device_count());
    if !is_written(store, unit.stripe, k) {
        return Way::ReconstructWrite;
    }
    let cost = |column: usize| match is_written(store, unit.stripe, column) {
        false => 0,
        true if column < k && store.lost.contains(geometry.lcn_at(unit.stripe, column)) => 2 * n,
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
