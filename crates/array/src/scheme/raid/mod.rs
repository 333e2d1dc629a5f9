//! Conventional parity RAID, as Linux md does it (requirement B-01): everything is written in place, parity with every write.
//!
//! Chunk `s + 1` of every device belongs to stripe `s`. The map only tells chunks that were written from those that were
//! not and read as zeros; a stripe never written to has no parity. Parity and data of a stripe change together, which a crash
//! can tear apart (the write hole). Two ways out:
//!
//! - [`Consistency::Resync`] behaves and costs like md without a bitmap: nothing is recorded. After an unclean stop every
//!   stripe is read and its parity computed anew, and a degraded array is refused. What was never written then reads as what
//!   its devices hold there.
//! - [`Consistency::Journal`]: payload and record are durable before anything is overwritten (`engine/payload.rs`), and
//!   recovery carries out again what had begun.

mod write;

use super::in_place::{
    self, check_map, claim_space, has_payload_ring, is_written, locate, piece_of, redo, resync, set_written,
};
use super::{
    ChunkWrite, CommitOutcome, Contradiction, InPlaceProgress, Journaling, Located, Pressure, Rejected,
    Scheme, SchemeMemory, WriteLock,
};
use crate::health::Health;
use crate::plan::{Codeword, Plan, Word};
use crate::restart::{AssembleError, RecoveryReport, Restart};
use crate::store::Store;
use block::{ChunkAddr, DeviceSet, Lcn, Pool, Seq, StripeId};
use format::{Consistency, ListItem, RecordRef, SchemeKind};

/// The scheme has no state besides the table.
pub struct Raid {
    consistency: Consistency,
    scratch: write::Scratch,
}

impl Raid {
    /// The empty scheme of an empty store.
    pub fn new(store: &Store) -> Self {
        Self { consistency: store.config.consistency, scratch: write::Scratch::default() }
    }
}

impl Scheme for Raid {
    fn kind(&self) -> SchemeKind {
        SchemeKind::Raid
    }

    fn write_lock(&self) -> WriteLock {
        WriteLock::Exclusive
    }

    fn journaling(&self, _store: &Store) -> Journaling {
        in_place::journaling(self.consistency)
    }

    fn locate(&self, store: &Store, lcn: Lcn) -> Located {
        locate(store, lcn)
    }

    fn codeword(&self, store: &Store, word: Word, out: &mut Codeword) {
        out.clear();
        let Word::Stripe(stripe) = word else { unreachable!("there are no log stripes") };
        let written = (0..store.main_count()).filter(|&column| is_written(store, stripe, column));
        out.pieces.extend(written.map(|column| piece_of(store, stripe, column)));
        out.data_count = out.pieces.iter().filter(|piece| piece.index < store.code.width_max()).count();
    }

    fn is_in_use(&self, store: &Store, stripe: StripeId) -> bool {
        in_place::is_in_use(store, stripe)
    }

    fn plan_writes(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    ) {
        self.plan_write_batch(store, health, pool, writes, refused, plan);
    }

    fn take_dirty(&mut self, _store: &Store, _count: usize, _out: &mut Vec<StripeId>) {}

    fn return_dirty(&mut self, stripe: StripeId) {
        unreachable!("stripe {stripe} was never given out as dirty");
    }

    fn plan_commit(
        &mut self,
        _: &mut Store,
        _: &Health,
        _: &mut Pool,
        _: StripeId,
        _: &mut Plan,
    ) -> CommitOutcome {
        CommitOutcome::Clean
    }

    fn apply(&mut self, store: &mut Store, _seq: Seq, record: RecordRef<'_>) -> Result<(), Rejected> {
        let RecordRef::InPlace(in_place) = record else { return Err(Rejected) };
        if !self.accepts(store, record) {
            return Err(Rejected);
        }
        for piece in in_place.pieces().iter() {
            set_written(store, in_place.stripe(), usize::from(piece.column), piece.crc);
        }
        Ok(())
    }

    fn accepts(&self, store: &Store, record: RecordRef<'_>) -> bool {
        matches!(record, RecordRef::InPlace(_)) && record.fits(&store.config)
    }

    fn redo(
        &mut self,
        store: &Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        record: RecordRef<'_>,
        progress: InPlaceProgress,
        healed: &mut u64,
    ) -> bool {
        let RecordRef::InPlace(record) = record else { return false };
        let write = redo::Write { stripe: record.stripe(), pieces: record.pieces(), log: None };
        redo::redo(redo::Members { store, devices, health }, write, progress, healed)
    }

    fn may_start(&self, health: &Health, restart: Restart) -> Result<(), AssembleError> {
        in_place::may_start(self.consistency, health, restart)
    }

    fn recover(
        &mut self,
        store: &mut Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        restart: Restart,
        report: &mut RecoveryReport,
    ) -> Result<(), AssembleError> {
        if !in_place::needs_resync(self.consistency, restart) {
            return Ok(());
        }
        resync::resync(store, devices, health, restart, resync::Parity::Current, report)
    }

    fn implied_zero(&self, store: &Store, stripe: StripeId, column: usize) -> Option<ChunkAddr> {
        in_place::implied_zero(store, stripe, column)
    }

    fn log_tail(&self, store: &Store) -> u64 {
        store.log.head()
    }

    fn pressure(&self, _store: &Store) -> Pressure {
        Pressure::default()
    }

    fn is_dirty(&self, _stripe: StripeId) -> bool {
        false
    }

    fn memory(&self) -> SchemeMemory {
        SchemeMemory::default()
    }

    fn log_words(&self, _out: &mut Vec<Word>) {}

    fn save(&self, _store: &Store, _words: &mut Vec<u32>) {}

    fn load(&mut self, store: &mut Store, items: &[ListItem]) -> Result<(), Contradiction> {
        if !items.is_empty() {
            return Err(Contradiction::Other("its list is not empty"));
        }
        if !has_payload_ring(store) {
            return Err(Contradiction::Other("the payload ring has less than a chunk"));
        }
        check_map(store, |_| false)
    }

    fn claim_space(&self, store: &mut Store) -> Result<(), Contradiction> {
        claim_space(store)
    }
}

#[cfg(test)]
mod tests;
