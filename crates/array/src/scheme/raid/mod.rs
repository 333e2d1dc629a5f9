//! Conventional parity RAID, as Linux md does it (requirement B-01): everything is written in place, parity
//! with every write.
//!
//! Chunk `s + 1` of every device belongs to stripe `s`. The map only tells chunks that were written from
//! those that were not and read as zeros; a stripe never written to has no parity. Parity and data of a
//! stripe change together, which a crash can tear apart (the write hole). Two ways out:
//!
//! - [`Consistency::Resync`] behaves and costs like md without a bitmap: nothing is recorded. After an
//!   unclean stop every stripe is read and its parity computed anew, and a degraded array is refused. What
//!   was never written then reads as what its devices hold there.
//! - [`Consistency::Journal`]: payload and record are durable before anything is overwritten
//!   (`engine/payload.rs`), and recovery carries out again what had begun.

mod cache;
mod write;

use self::cache::StripeCache;
use super::in_place::{
    self, check_map, has_payload_ring, is_written, locate, piece_of, redo, resync, set_written, unit,
};
use super::{
    Caches, ChunkWrite, Contradiction, InPlace, InPlaceProgress, Located, RedoStep, Registration, Rejected,
    Scheme, SchemeMemory, SchemeOptions,
};
use crate::health::Health;
use crate::plan::{Codeword, Plan, Word};
use crate::restart::{AssembleError, RecoveryReport, Restart};
use crate::saved::SavedPages;
use crate::store::Store;
use crate::table::Table;
use block::{DeviceSet, Lcn, Pool, Seq, StripeId};
use format::{List, RecordRef};

pub(super) const REGISTRATION: Registration = Registration {
    new: |_, _| Box::new(Raid::default()),
    memory_max: |_, _| SchemeMemory::default(),
    list_words_live: |_, _| 0,
    list_words_max: |_| 0,
};

/// The scheme has no state besides the table that lasts.
#[derive(Default)]
pub struct Raid {
    scratch: write::Scratch,
    /// Stripes that the cache is to have room for.
    cached_stripes: usize,
    cache: Option<StripeCache>,
}

impl Scheme for Raid {
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

    fn holds_bundle(&self, store: &Store, chunks: u64) -> bool {
        unit::holds_bundle(store, chunks)
    }

    fn accepts(&self, store: &Store, record: RecordRef<'_>) -> bool {
        matches!(record, RecordRef::InPlace(_)) && record.fits(&store.config)
    }

    fn load(&mut self, store: &mut Store, list: List<'_>) -> Result<(), Contradiction> {
        if list.items_of_scheme().next().is_some() {
            return Err(Contradiction::Other("its list is not empty"));
        }
        if !has_payload_ring(store) {
            return Err(Contradiction::Other("the payload ring has less than a chunk"));
        }
        check_map(store, |_| false)
    }

    fn check_page(&self, table: &Table, page: usize, words: &[u32]) -> Result<(), Contradiction> {
        in_place::check_page(table, (page, words), |_| false)
    }

    fn configure(&mut self, store: &Store, options: &SchemeOptions) {
        self.cached_stripes = options.cached_stripes(store.config.scheme);
    }

    fn take_buffers(&mut self, store: &Store, pool: &mut Pool) {
        let columns = store.main_count();
        self.cache = (self.cached_stripes > 0).then(|| StripeCache::new(self.cached_stripes, columns, pool));
    }

    fn give_buffers(&mut self, pool: &mut Pool) {
        self.cache.take().into_iter().for_each(|cache| cache.give_buffers(pool));
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        Some(self)
    }

    fn caches(&mut self) -> Option<&mut dyn Caches> {
        self.cache.as_mut().map(|cache| -> &mut dyn Caches { cache })
    }
}

impl InPlace for Raid {
    fn redo(
        &mut self,
        store: &Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        record: RecordRef<'_>,
        how: (InPlaceProgress, RedoStep),
        healed: &mut u64,
    ) -> bool {
        let RecordRef::InPlace(record) = record else { return false };
        let write = redo::Write { stripe: record.stripe(), pieces: record.pieces(), log: None };
        redo::redo(redo::Members { store, devices, health }, write, how, healed)
    }

    fn resync(
        &mut self,
        store: &mut Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        restart: (Restart, &SavedPages),
        report: &mut RecoveryReport,
    ) -> Result<(), AssembleError> {
        resync::resync(store, devices, health, restart, resync::Parity::Current, report)
    }
}

#[cfg(test)]
mod tests;
