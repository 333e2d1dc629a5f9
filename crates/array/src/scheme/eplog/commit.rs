//! Parity commit of one stripe (EPLOG, section 3.3, Algorithm 1).
//!
//! New parity goes out of place: nothing durable is overwritten, so a crash in the middle leaves the
//! old parity, the old versions and the log stripes as they were. Per stripe the cheaper of two ways is taken
//! encode from the newest version of every column, or fold only the changes into the old parity.
//! What cannot be read counts as what is read to decode it.

use super::Eplog;
use super::dirty::{SAME, Updated};
use super::log_table::LogTable;
use crate::health::Health;
use crate::layout::Devices;
use crate::plan::{Compute, CrcAt, Piece, Plan, PlanWrite, Word};
use crate::planted::{Planted, planted};
use crate::scheme::CommitOutcome;
use crate::space::Demand;
use crate::store::Store;
use crate::table::Columns;
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

/// Reused between commits.
#[derive(Default)]
pub struct Scratch {
    /// Where the new parity goes.
    parity: Vec<ChunkIndex>,
    /// The parity before.
    before: Vec<Piece>,
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
        if !self.alloc_parity(store, stripe, plan) {
            return CommitOutcome::NoSpace;
        }
        let store = &*store;
        let (columns, devices) = (store.table.columns(stripe), store.layout.devices(stripe));
        self.commits.before.clear();
        self.commits.before.extend((0..m).map(|row| {
            let StripeChunk { chunk, crc } = columns.get(k + row);
            let addr = ChunkAddr::new(devices.get(k + row), chunk);
            Piece { index: store.code.width_max() + row, addr, crc }
        }));
        let dirty = Dirty {
            stripe,
            columns,
            known: self.dirty.columns(stripe).expect("a dirty stripe has columns"),
            parity: &self.commits.before,
            devices,
            log: &self.log,
        };
        let way = match self.encode_only.contains(&stripe) {
            true => Way::Encode,
            false => dirty.cheaper_way(health),
        };
        let outputs = match way {
            Way::Encode => dirty.plan_encode(store, pool, plan),
            Way::Delta => dirty.plan_delta(store, health, pool, plan),
        };
        Commit::begin(&mut plan.records, stripe);
        for column in 0..k {
            Commit::push_data(&mut plan.records, columns.get(column).chunk);
        }
        for (row, (&chunk, before)) in self.commits.parity.iter().zip(&self.commits.before).enumerate() {
            let crc = Commit::push_parity(&mut plan.records, StripeChunk { chunk, crc: 0 });
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

    /// Puts one chunk per parity row into the scratch; `false` if there is no room for all of them: then
    /// none is taken.
    fn alloc_parity(&mut self, store: &mut Store, stripe: StripeId, plan: &mut Plan) -> bool {
        let geometry = store.config.geometry;
        let (k, m) = (geometry.data_count(), geometry.parity_count());
        let before = plan.leases.mark();
        self.commits.parity.clear();
        for row in 0..m {
            if planted(Planted::CommitInPlace) {
                let old = store.table.parity(stripe, row).chunk;
                if !old.is_none() {
                    self.commits.parity.push(old);
                    continue;
                }
            }
            let dev = store.layout.device(stripe, k + row);
            let Some(lease) = store.alloc(dev, Demand::Reclaim) else {
                plan.leases.give_back(before, (&mut store.spaces, &mut store.table), |_| {
                    unreachable!("a stripe takes chunks, not rows")
                });
                return false;
            };
            self.commits.parity.push(plan.leases.hold(dev, lease));
        }
        true
    }
}

/// A dirty stripe: everything that is known of it, looked up once.
struct Dirty<'a> {
    stripe: StripeId,
    /// The newest versions.
    columns: Columns<'a>,
    /// What is known of the data columns.
    known: &'a [Updated],
    /// The parity, as it is committed.
    parity: &'a [Piece],
    devices: Devices<'a>,
    log: &'a LogTable,
}

impl Dirty<'_> {
    /// What is known of a data column if it was updated since the last commit.
    fn updated(&self, column: usize) -> Option<Updated> {
        Some(self.known[column]).filter(|updated| updated.committed != SAME)
    }

    /// The way that reads less. The newest versions of updated columns are read in either.
    fn cheaper_way(&self, health: &Health) -> Way {
        if self.parity[0].addr.chunk.is_none() {
            return Way::Encode;
        }
        // Nobody need be asked chunk by chunk where nothing is missing.
        let is_whole = health.missing_count() == 0;
        let is_readable = |addr| is_whole || health.is_readable(addr);
        let (mut encode, mut delta, mut data_count) = (Needed::default(), Needed::default(), 0);
        for column in 0..self.known.len() {
            let (version, way) = match self.updated(column) {
                None => (self.columns.get(column), &mut encode),
                Some(updated) => (updated.committed, &mut delta),
            };
            if !version.chunk.is_none() {
                data_count += 1;
                way.count(is_readable(ChunkAddr::new(self.devices.get(column), version.chunk)));
            }
        }
        for &Piece { addr, .. } in self.parity {
            if health.is_writable(addr.dev) {
                delta.count(is_readable(addr));
            }
        }
        if delta.reads(data_count) < encode.reads(data_count) { Way::Delta } else { Way::Encode }
    }

    /// Reads all columns and encodes them; returns where in `plan.slots` the parities are.
    fn plan_encode(&self, store: &Store, pool: &mut Pool, plan: &mut Plan) -> usize {
        let (inputs, columns) = (plan.slots.len(), plan.columns.len());
        for column in 0..self.known.len() {
            if let Some(slot) = self.read_newest(store, pool, column, plan) {
                plan.columns.push(column);
                plan.slots.push(slot);
            }
        }
        plan.encode(pool, columns, inputs, store.config.geometry.parity_count())
    }

    /// Reads the old parity and both versions of the updated columns; returns where in `plan.slots` the
    /// parities are. Of a parity whose device is out of service only the change is computed: nothing is
    /// written there, and its new checksum follows from the old one.
    fn plan_delta(&self, store: &Store, health: &Health, pool: &mut Pool, plan: &mut Plan) -> usize {
        let outputs = plan.slots.len();
        for piece in self.parity {
            let slot = if health.is_writable(piece.addr.dev) {
                plan.read_piece(store, pool, Word::Stripe(self.stripe), piece)
            } else {
                let slot = plan.own_slot(pool);
                plan.computes.push(Compute::Clear(slot));
                slot
            };
            plan.slots.push(slot);
        }
        for column in 0..self.known.len() {
            let Some(Updated { committed: old, .. }) = self.updated(column) else { continue };
            let old = (!old.chunk.is_none()).then(|| {
                let addr = ChunkAddr::new(self.devices.get(column), old.chunk);
                let piece = Piece { index: column, addr, crc: old.crc };
                plan.read_input(store, pool, Word::Stripe(self.stripe), &piece)
            });
            let new = self.read_newest(store, pool, column, plan);
            let parities = outputs..outputs + self.parity.len();
            plan.computes.push(Compute::Delta { column, old, new, parities });
        }
        outputs
    }

    /// Reads the newest version of a column, unless it is zeros.
    fn read_newest(&self, store: &Store, pool: &mut Pool, column: usize, plan: &mut Plan) -> Option<Slot> {
        let StripeChunk { chunk, crc } = self.columns.get(column);
        if chunk.is_none() {
            return None;
        }
        let (index, word) = match self.updated(column) {
            None => (column, Word::Stripe(self.stripe)),
            Some(Updated { owner, .. }) => {
                let (id, index) = self.log.member_at(owner);
                (index, Word::Log(id))
            }
        };
        let piece = Piece { index, addr: ChunkAddr::new(self.devices.get(column), chunk), crc };
        Some(plan.read_input(store, pool, word, &piece))
    }
}

/// What a way of committing needs of the committed versions of a stripe.
#[derive(Default)]
struct Needed {
    readable: usize,
    missing: usize,
}

impl Needed {
    fn count(&mut self, is_readable: bool) {
        let count = if is_readable { &mut self.readable } else { &mut self.missing };
        *count += 1;
    }

    /// How much is read for it: where something is missing, as much as the stripe has data.
    fn reads(&self, data_count: usize) -> usize {
        if self.missing == 0 { self.readable } else { self.readable.max(data_count) }
    }
}
