//! The write path: per stripe the way that reads less.
//!
//! *Read-modify-write* reads the old version of the columns written and the old parities and folds the change
//! in; *reconstruct-write* reads the columns that are not written and encodes all. As in
//! `handle_stripe_dirtying` of `drivers/md/raid5.c`, each counts the chunks it has to read, one that cannot
//! be read counts as twice the number of devices, and read-modify-write is taken if it needs fewer; on a tie
//! md reconstructs (`rmw_level` 1, the default; 2 would prefer read-modify-write). Columns that are zeros
//! need no read, nor do those that the cache of stripes has; for parity that does not exist yet there is no
//! read-modify-write. A column written in part needs its old version either way, so it counts for both.

use super::Raid;
use super::cache::StripeCache;
use crate::health::Health;
use crate::plan::{Compute, Plan, PlanRead, Word};
use crate::planted::{Planted, planted};
use crate::scheme::ChunkWrite;
use crate::scheme::in_place::unit::{Unit, Units, encode_columns, read, units_of_all};
use crate::scheme::in_place::{addr_of, is_written, piece_of};
use crate::store::Store;
use block::{Pool, Slot, StripeId};

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

/// Where what a plan reads and computes of a stripe lies: in buffers of the plan's own, or in the stripe's
/// entry of the cache.
enum Home<'a> {
    Plan,
    Cache(&'a mut StripeCache, usize),
}

impl<'a> Home<'a> {
    /// Takes the stripe's entry, if there is a cache and it has one.
    fn of(cache: &'a mut Option<StripeCache>, stripe: StripeId, plan: &mut Plan) -> Self {
        let taken = cache.as_mut().and_then(|cache| cache.take(stripe).map(|taken| (cache, taken)));
        let Some((cache, (entry, found))) = taken else { return Self::Plan };
        plan.held.entries.push(entry);
        plan.held.found += u64::from(found);
        Self::Cache(cache, entry)
    }

    /// Whether a column need not be read. What is listed as lost is not the cache's to bring back.
    fn has(&self, store: &Store, stripe: StripeId, column: usize) -> bool {
        let geometry = store.config.geometry;
        let is_lost =
            || column < geometry.data_count() && store.lost.contains(geometry.lcn_at(stripe, column));
        match self {
            Self::Plan => false,
            Self::Cache(cache, entry) => cache.has(*entry, column) && !is_lost(),
        }
    }

    /// The present version of a column, data or parity, which is there when the plan's reads have ended.
    fn present(
        &mut self,
        store: &Store,
        pool: &mut Pool,
        stripe: StripeId,
        column: usize,
        plan: &mut Plan,
    ) -> Slot {
        let is_here = self.has(store, stripe, column);
        match self {
            Self::Plan => read(store, pool, stripe, column, plan),
            Self::Cache(cache, entry) => {
                let slot = cache.slot(*entry, column);
                cache.expect(*entry, column);
                let word = Word::Stripe(stripe);
                let read = PlanRead::new(store, word, &piece_of(store, stripe, column), slot);
                if is_here {
                    plan.held.reads.push(read)
                } else {
                    plan.reads.push(read)
                }
                slot
            }
        }
    }

    /// Where the new version of a parity column is computed.
    fn parity(&mut self, pool: &mut Pool, column: usize, plan: &mut Plan) -> Slot {
        match self {
            Self::Plan => plan.own_slot(pool),
            Self::Cache(cache, entry) => {
                cache.expect(*entry, column);
                cache.slot(*entry, column)
            }
        }
    }

    /// Data that is written goes into the cache when it is.
    fn keep(&mut self, column: usize, new: Slot, plan: &mut Plan) {
        if let Self::Cache(cache, entry) = self {
            cache.expect(*entry, column);
            plan.held.copies.push((new, cache.slot(*entry, column)));
        }
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
            let home = Home::of(&mut self.cache, unit.stripe, plan);
            plan_unit(store, health, pool, (&mut self.scratch.old, home), unit, plan);
            planned += unit.writes.len();
        }
        refused.extend(writes.drain(planned..));
    }
}

fn plan_unit(
    store: &Store,
    health: &Health,
    pool: &mut Pool,
    (old, mut home): (&mut Vec<Option<Slot>>, Home<'_>),
    unit: Unit<'_>,
    plan: &mut Plan,
) {
    let geometry = store.config.geometry;
    let (k, n) = (geometry.data_count(), geometry.device_count());
    let way = cheaper_way(store, health, &home, unit);
    old.clear();
    for column in 0..k {
        let wanted = match (unit.find(store, column), way) {
            (Some(write), Way::ReconstructWrite) => unit.is_partial(write),
            (Some(_), Way::ReadModifyWrite) => true,
            (None, Way::ReconstructWrite) => true,
            (None, Way::ReadModifyWrite) => false,
        };
        let wanted = wanted && is_written(store, unit.stripe, column);
        old.push(wanted.then(|| home.present(store, pool, unit.stripe, column, plan)));
    }
    unit.fill(store, old, plan);
    let parities = match way {
        Way::ReadModifyWrite => fold(store, pool, (old, &mut home), unit, plan),
        Way::ReconstructWrite => {
            let (columns, inputs) = encode_columns(store, old, unit, plan);
            let outputs = plan.slots.len();
            for column in k..n {
                let slot = home.parity(pool, column, plan);
                plan.slots.push(slot);
            }
            plan.encode_into(columns, inputs, outputs)
        }
    };
    unit.writes.iter().for_each(|write| home.keep(geometry.column_of(write.lcn), write.slot, plan));
    unit.write_whole(store, parities, plan);
}

fn cheaper_way(store: &Store, health: &Health, home: &Home<'_>, unit: Unit<'_>) -> Way {
    let geometry = store.config.geometry;
    let (k, n) = (geometry.data_count(), geometry.device_count());
    if !is_written(store, unit.stripe, k) {
        return Way::ReconstructWrite;
    }
    let cost = |column: usize| match is_written(store, unit.stripe, column) {
        false => 0,
        true if home.has(store, unit.stripe, column) => 0,
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
fn fold(
    store: &Store,
    pool: &mut Pool,
    (old, home): (&[Option<Slot>], &mut Home<'_>),
    unit: Unit<'_>,
    plan: &mut Plan,
) -> usize {
    let geometry = store.config.geometry;
    let (k, n) = (geometry.data_count(), geometry.device_count());
    let parities = plan.slots.len();
    for column in k..n {
        let slot = home.present(store, pool, unit.stripe, column, plan);
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
