//! Parity commit of one stripe (EPLOG, section 3.3, Algorithm 1).
//!
//! New parity goes out of place: nothing durable is overwritten, so a crash in the middle leaves the
//! old parity, the old versions and the log stripes as they were. Per stripe the cheaper of two ways is taken
//! encode from the newest version of every column, or fold only the changes into the old parity.
//! What cannot be read counts as what is read to decode it.

use super::Eplog;
use super::dirty::Updated;
use crate::health::Health;
use crate::plan::{Compute, CrcAt, Piece, Plan, PlanWrite, Word};
use crate::planted::{Planted, planted};
use crate::scheme::{CommitOutcome, Located, Scheme};
use crate::space::Demand;
use crate::store::Store;
use block::{ChunkAddr, ChunkIndex, Pool, Slot, Stream, StripeId};
use format::StripeChunk;
use format::record::Commit;

/// How the new parity is computed.
enum Way {
    /// From the newest version of all columns.
    Encode,
    /// From the old parity and the old and new versions of the updated columns.
    Delta,
}

impl Eplog {
    /// Extends `plan` by the commit of `stripe`.
    pub(super) fn plan_stripe_commit(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> CommitOutcome {
        if !self.dirty.is_dirty(stripe) {
            return CommitOutcome::Clean;
        }
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        // The most slots either way takes: every column read, plus the parities.
        if pool.free_count() < 2 * k + 2 * m + store.slots_kept() {
            return CommitOutcome::NoSpace;
        }
        if self.is_all_zero(store, stripe) {
            Commit::begin(&mut plan.records, stripe);
            (0..k).for_each(|_| Commit::push_data(&mut plan.records, ChunkIndex::NONE));
            for _ in 0..m {
                Commit::push_parity(&mut plan.records, StripeChunk::NONE);
            }
            return CommitOutcome::Planned;
        }
        let Some(parity) = alloc_parity(store, stripe, plan) else { return CommitOutcome::NoSpace };
        let way = self.cheaper_way(store, health, stripe);
        let outputs = match way {
            Way::Encode => self.plan_encode(store, pool, stripe, plan),
            Way::Delta => self.plan_delta(store, health, pool, stripe, plan),
        };
        Commit::begin(&mut plan.records, stripe);
        for column in 0..k {
            Commit::push_data(&mut plan.records, store.table.column(stripe, column).chunk);
        }
        for (row, &chunk) in parity.iter().enumerate().take(m) {
            let crc = Commit::push_parity(&mut plan.records, StripeChunk { chunk, crc: 0 });
            let before = parity_of(store, stripe, row);
            let crc_at = match way {
                Way::Delta if !health.is_writable(before.addr.dev) => {
                    CrcAt::Change { at: crc, old: before.crc }
                }
                Way::Encode | Way::Delta => CrcAt::Record(crc),
            };
            let (addr, slot) = (ChunkAddr::new(before.addr.dev, chunk), plan.slots[outputs + row]);
            plan.writes.push(PlanWrite { addr, slot, stream: Stream::Parity, crc_at });
        }
        CommitOutcome::Planned
    }

    /// The way that reads less. The newest versions of updated columns are read in either.
    fn cheaper_way(&self, store: &Store, health: &Health, stripe: StripeId) -> Way {
        let geometry = store.config.geometry;
        if store.table.parity(stripe, 0).chunk.is_none() {
            return Way::Encode;
        }
        let (mut encode, mut delta, mut data_count) = (Needed::default(), Needed::default(), 0);
        for column in 0..geometry.data_count() {
            let (version, way) = match self.dirty.updated(stripe, column) {
                None => (store.table.column(stripe, column), &mut encode),
                Some(updated) => (updated.committed, &mut delta),
            };
            if !version.chunk.is_none() {
                data_count += 1;
                way.count(health, ChunkAddr::new(store.layout.device(stripe, column), version.chunk));
            }
        }
        for addr in (0..geometry.parity_count()).map(|row| parity_of(store, stripe, row).addr) {
            if health.is_writable(addr.dev) {
                delta.count(health, addr);
            }
        }
        if delta.reads(data_count) < encode.reads(data_count) { Way::Delta } else { Way::Encode }
    }

    /// Reads all columns and encodes them; returns where in `plan.slots` the parities are.
    fn plan_encode(&self, store: &Store, pool: &mut Pool, stripe: StripeId, plan: &mut Plan) -> usize {
        let geometry = store.config.geometry;
        let (inputs, columns) = (plan.slots.len(), plan.columns.len());
        for column in 0..geometry.data_count() {
            if let Some(slot) = self.read_current(store, pool, stripe, column, plan) {
                plan.columns.push(column);
                plan.slots.push(slot);
            }
        }
        plan.encode(pool, columns, inputs, geometry.parity_count())
    }

    /// Reads the old parity and both versions of the updated columns; returns where in `plan.slots` the
    /// parities are. Of a parity whose device is out of service only the change is computed: nothing is
    /// written there, and its new checksum follows from the old one.
    fn plan_delta(
        &self,
        store: &Store,
        health: &Health,
        pool: &mut Pool,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> usize {
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        let outputs = plan.slots.len();
        for row in 0..m {
            let piece = parity_of(store, stripe, row);
            let slot = if health.is_writable(piece.addr.dev) {
                plan.read_piece(store, pool, Word::Stripe(stripe), &piece)
            } else {
                let slot = plan.own_slot(pool);
                plan.computes.push(Compute::Clear(slot));
                slot
            };
            plan.slots.push(slot);
        }
        for column in 0..k {
            let Some(Updated { committed: old, .. }) = self.dirty.updated(stripe, column) else { continue };
            let old = (!old.chunk.is_none()).then(|| {
                let addr = ChunkAddr::new(store.layout.device(stripe, column), old.chunk);
                let piece = Piece { index: column, addr, crc: old.crc };
                plan.read_piece(store, pool, Word::Stripe(stripe), &piece)
            });
            let new = self.read_current(store, pool, stripe, column, plan);
            plan.computes.push(Compute::Delta { column, old, new, parities: outputs..outputs + m });
        }
        outputs
    }

    /// Reads the newest version of a column, unless it is zeros.
    fn read_current(
        &self,
        store: &Store,
        pool: &mut Pool,
        stripe: StripeId,
        column: usize,
        plan: &mut Plan,
    ) -> Option<Slot> {
        match self.locate(store, store.config.geometry.lcn_at(stripe, column)) {
            Located::Zero => None,
            Located::At { piece, word } => Some(plan.read_piece(store, pool, word, &piece)),
        }
    }
}

/// What a way of committing needs of the committed versions of a stripe.
#[derive(Default)]
struct Needed {
    readable: usize,
    missing: usize,
}

impl Needed {
    fn count(&mut self, health: &Health, addr: ChunkAddr) {
        let count = if health.is_readable(addr) { &mut self.readable } else { &mut self.missing };
        *count += 1;
    }

    /// How much is read for it: where something is missing, as much as the stripe has data.
    fn reads(&self, data_count: usize) -> usize {
        if self.missing == 0 { self.readable } else { self.readable.max(data_count) }
    }
}

/// The parity of a stripe, as it is committed.
fn parity_of(store: &Store, stripe: StripeId, row: usize) -> Piece {
    let dev = store.layout.device(stripe, store.config.geometry.data_count() + row);
    let StripeChunk { chunk, crc } = store.table.parity(stripe, row);
    Piece { index: store.code.width_max() + row, addr: ChunkAddr::new(dev, chunk), crc }
}

/// One chunk per parity row, or none at all.
fn alloc_parity(store: &mut Store, stripe: StripeId, plan: &mut Plan) -> Option<[ChunkIndex; 255]> {
    let geometry = store.config.geometry;
    let (k, m) = (geometry.data_count(), geometry.parity_count());
    let (mut chunks, before) = ([ChunkIndex::NONE; 255], plan.leases.mark());
    for (row, chunk) in chunks.iter_mut().enumerate().take(m) {
        let dev = store.layout.device(stripe, k + row);
        let old = store.table.parity(stripe, row).chunk;
        if planted(Planted::CommitInPlace) && !old.is_none() {
            *chunk = old;
            continue;
        }
        let Some(lease) = store.alloc(dev, Demand::Reclaim) else {
            plan.leases.give_back(before, (&mut store.spaces, &mut store.table), |_| {
                unreachable!("a stripe takes chunks, not rows")
            });
            return None;
        };
        *chunk = plan.leases.hold(dev, lease);
    }
    Some(chunks)
}
