//! Parity commit of one stripe: its parity on the main devices becomes current, in place, and its
//! log chunks void.
//!
//! Per stripe the way that reads less: add the log chunks to the old parity, or encode all columns. If some
//! of what the first way reads cannot be read, only the second is left, since the addends of one parity are
//! not covered one by one.

use super::ParityLog;
use crate::health::Health;
use crate::plan::{Compute, Piece, Plan, Word};
use crate::planted::{Planted, planted};
use crate::scheme::CommitOutcome;
use crate::scheme::in_place::is_written;
use crate::scheme::in_place::unit::{Unit, encode, read};
use crate::store::Store;
use block::{Pool, StripeId};

impl ParityLog {
    /// Extends `plan` by the commit of `stripe`.
    pub(super) fn plan_stripe_commit(
        &self,
        store: &Store,
        health: &Health,
        pool: &mut Pool,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> CommitOutcome {
        if !self.deltas.is_dirty(stripe) {
            return CommitOutcome::Clean;
        }
        let geometry = store.config.geometry;
        // Either way reads at most k chunks, and makes the parities.
        if pool.free_count() < store.slots_kept() + geometry.device_count()
            || plan.records.len() as u64 >= store.in_place_stripes_max()
        {
            return CommitOutcome::NoSpace;
        }
        let mut addends = Vec::new();
        self.parity_pieces(store, stripe, &mut addends);
        let columns = (0..geometry.data_count()).filter(|&column| is_written(store, stripe, column)).count();
        let folds = addends.len() < columns
            && addends.iter().all(|piece| health.is_readable(piece.addr))
            && !self.encode_only.contains(&stripe);
        if folds {
            let parities = fold(store, pool, stripe, &addends, plan);
            write_parities(store, stripe, parities, plan);
        } else {
            self.plan_encode(store, pool, stripe, plan);
        }
        CommitOutcome::Planned
    }

    /// Commits from all columns, which the covers of the stripe give even if m devices are lost.
    pub(super) fn plan_encode(&self, store: &Store, pool: &mut Pool, stripe: StripeId, plan: &mut Plan) {
        let columns = 0..store.config.geometry.data_count();
        let old: Vec<_> = columns
            .map(|column| is_written(store, stripe, column).then(|| read(store, pool, stripe, column, plan)))
            .collect();
        let parities = encode(store, pool, &old, Unit::new(store, stripe, &[]), plan);
        write_parities(store, stripe, parities, plan);
    }
}

fn write_parities(store: &Store, stripe: StripeId, parities: usize, plan: &mut Plan) {
    Unit::new(store, stripe, &[]).write_whole(store, parities, plan);
}

/// Reads the addends of all parities and adds them up; returns where in `plan.slots` the parities are.
fn fold(store: &Store, pool: &mut Pool, stripe: StripeId, addends: &[Piece], plan: &mut Plan) -> usize {
    let mut totals = Vec::with_capacity(store.config.geometry.parity_count());
    for row in addends.chunk_by(|one, other| one.index == other.index) {
        let forgotten = usize::from(planted(Planted::CommitForgetsDelta) && row.len() > 1);
        let from = plan.slots.len();
        for piece in &row[..row.len() - forgotten] {
            let slot = plan.read_piece(store, pool, Word::Stripe(stripe), piece);
            plan.slots.push(slot);
        }
        let parts = from..plan.slots.len();
        totals.push(match parts.len() {
            1 => plan.slots[from],
            _ => {
                let total = plan.own_slot(pool);
                plan.computes.push(Compute::Sum { parts, total });
                total
            }
        });
    }
    plan.slots.extend_from_slice(&totals);
    plan.slots.len() - totals.len()
}
