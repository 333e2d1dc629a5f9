//! Original parity logging (EPLOG, section 2.2; Stodolsky et al., ISCA 1993; requirements B-02 to B-06).
//!
//! Data is written in place. The parity on the main devices stays as it is: its change, computed from old and
//! new data, is appended to the log devices, one log chunk for each parity of a stripe and batch. Parity
//! commit folds the changes in.
//!
//! - The parity of a dirty stripe is a *sum*: the chunk on its main device (zeros if there is none) and what
//!   each live log chunk says. Row r of the parity is on one main device and log device r, so each device
//!   holds addends of one index of the code at most, and any m lost devices cost m indices at most.
//! - The first write of a whole stripe writes its parity too.
//! - A stripe written whole again, or with too many live log chunks, gets one that is the parity
//!   itself: see `write.rs`.
//!
//! Data in place and log chunk change together, which a crash can tear apart; the two ways out are
//! those of the scheme `raid`: with a journal, copies, log chunks and records are durable before
//! anything is overwritten; without, nothing is recorded, and after an unclean stop parity is computed
//! anew and the log forgotten.

mod commit;
mod deltas;
mod write;

use super::in_place::{
    self, check_map, has_payload_ring, is_written, locate, piece_of, redo, resync, set_written, unit,
};
use super::log_room::{LOG_SET_ASIDE_BLOCKS, is_log_low};
use super::{
    ChunkWrite, CommitOutcome, Commits, Contradiction, InPlace, InPlaceProgress, Located, Logs, Pressure,
    RedoStep, Registration, Rejected, Scheme, SchemeMemory,
};
use crate::health::Health;
use crate::plan::{Codeword, Piece, Plan, Word};
use crate::planted::{Planted, planted};
use crate::restart::{AssembleError, RecoveryReport, Restart};
use crate::saved::SavedPages;
use crate::slots::root_pages;
use crate::store::{Store, stripes_touched};
use crate::table::{Table, WORDS};
use block::{ChunkAddr, ChunkIndex, DeviceSet, Lcn, Pool, Seq, StripeId};
use deltas::Deltas;
use format::record::Delta;
use format::{ArrayConfig, ItemRef, List, ListItem, RecordRef, StripeChunk, delta_item_words};
use std::collections::HashSet;

pub(super) const REGISTRATION: Registration = Registration {
    new: |store, _| Box::new(ParityLog::new(store)),
    memory_max: |config, _| memory_max(config),
    list_words_live: |config, _| list_words_live(config),
    list_words_max: list_words,
};

/// The scheme's state besides the table.
pub struct ParityLog {
    deltas: Deltas,
    /// Live log chunks of a parity at most: what a checkpoint has room for.
    deltas_max: u64,
    /// Stripes whose planned write adds a log chunk.
    growing: HashSet<StripeId>,
    /// Stripes whose log chunks could not all be read: their commit encodes.
    encode_only: HashSet<StripeId>,
    /// The last write refused lacked room in the log.
    log_full: bool,
    scratch: write::Scratch,
}

/// Live log chunks of one parity of one stripe at most. More would make reads of lost chunks slow.
const STRIPE_DELTAS_MAX: usize = 32;

/// Words of a full checkpoint's list that a new array has room for: two live log chunks a stripe, or what the
/// log holds.
fn list_words(config: &ArrayConfig) -> u64 {
    let deltas = log_chunks(config).min(2 * config.stripe_count);
    deltas * delta_item_words(config.geometry.parity_count()) as u64
}

/// Words of the longest list that a full checkpoint of the array has room for.
fn list_words_live(config: &ArrayConfig) -> u64 {
    deltas_max(config) * delta_item_words(config.geometry.parity_count()) as u64
}

/// What the scheme takes of memory with as many live log chunks as there can be.
fn memory_max(config: &ArrayConfig) -> SchemeMemory {
    let deltas = deltas_max(config);
    let dirty_stripes = deltas.min(config.stripe_count);
    let dynamic_bytes = Deltas::bytes_for(config.geometry.parity_count() as u64, deltas, dirty_stripes);
    SchemeMemory { fixed_bytes: 0, dynamic_bytes, placement_bytes: 0 }
}

/// Blocks of a full-checkpoint area at least, so that every stripe may be dirty.
pub fn full_blocks_min(config: &ArrayConfig) -> u32 {
    let words =
        log_chunks(config).min(config.stripe_count) * delta_item_words(config.geometry.parity_count()) as u64;
    let pages = root_pages(Table::page_count_for(config)) + words.div_ceil(WORDS);
    u32::try_from(pages + 2).unwrap_or(u32::MAX)
}

/// Log chunks that a log device holds.
fn log_chunks(config: &ArrayConfig) -> u64 {
    u64::from(config.log_blocks) * block::META_BYTES as u64 / config.geometry.chunk_bytes() as u64
}

/// Live log chunks of a parity that a full checkpoint has room for.
fn deltas_max(config: &ArrayConfig) -> u64 {
    let root_pages = root_pages(Table::page_count_for(config));
    let list_pages = u64::from(config.full_blocks).saturating_sub(root_pages + 2);
    let deltas = list_pages * WORDS / delta_item_words(config.geometry.parity_count()) as u64;
    deltas.min(log_chunks(config))
}

impl ParityLog {
    /// The empty scheme of an empty store.
    pub fn new(store: &Store) -> Self {
        Self {
            deltas: Deltas::new(store.config.geometry.parity_count()),
            deltas_max: deltas_max(&store.config),
            growing: HashSet::new(),
            encode_only: HashSet::new(),
            log_full: false,
            scratch: write::Scratch::default(),
        }
    }

    /// Every addend of the parities: those on the main devices, then the log chunks, row by row.
    fn parity_pieces(&self, store: &Store, stripe: StripeId, out: &mut Vec<Piece>) {
        let k = store.config.geometry.data_count();
        for row in 0..store.config.geometry.parity_count() {
            if is_written(store, stripe, k + row) {
                out.push(piece_of(store, stripe, k + row));
            }
            out.extend(self.deltas.of(stripe).map(|(block, crcs)| Piece {
                index: store.code.width_max() + row,
                addr: ChunkAddr::new(store.log_device(row), block),
                crc: crcs[row],
            }));
        }
    }

    /// Whether the stripe may have one log chunk more, whatever else becomes dirty.
    fn may_grow(&self, store: &Store, stripe: StripeId) -> bool {
        let live = self.deltas.count_of(stripe);
        if live == 0 || self.deltas_max >= log_chunks(&store.config) {
            return live < STRIPE_DELTAS_MAX;
        }
        let clean = store.config.stripe_count - self.deltas.dirty_count();
        live < STRIPE_DELTAS_MAX && self.deltas.count() + self.growing.len() as u64 + clean < self.deltas_max
    }

    fn apply_delta(&mut self, store: &mut Store, record: Delta<'_>) {
        let stripe = record.stripe();
        if record.whole() {
            if !planted(Planted::KeepVoidDeltas) {
                self.clean(stripe);
            }
            for row in 0..store.config.geometry.parity_count() {
                store.table.set_parity(stripe, row, StripeChunk::NONE);
            }
        }
        self.deltas.push(&store.log, stripe, record.log_block(), record.log_crcs().iter());
    }

    fn clean(&mut self, stripe: StripeId) {
        self.deltas.clear(stripe);
        self.encode_only.remove(&stripe);
    }

    fn accepts_log_chunk(&self, store: &Store, stripe: StripeId, block: ChunkIndex, crcs: &[u32]) -> bool {
        stripe.get() < store.config.stripe_count
            && crcs.len() == store.config.geometry.parity_count()
            && !block.is_none()
            && u64::from(block.get()) + u64::from(store.chunk_blocks())
                <= u64::from(store.config.log_blocks) + 1
    }
}

impl Scheme for ParityLog {
    fn locate(&self, store: &Store, lcn: Lcn) -> Located {
        locate(store, lcn)
    }

    fn codeword(&self, store: &Store, word: Word, out: &mut Codeword) {
        out.clear();
        let Word::Stripe(stripe) = word else { unreachable!("there are no log stripes") };
        let written =
            (0..store.config.geometry.data_count()).filter(|&column| is_written(store, stripe, column));
        out.pieces.extend(written.map(|column| piece_of(store, stripe, column)));
        out.data_count = out.pieces.len();
        self.parity_pieces(store, stripe, &mut out.pieces);
    }

    fn is_in_use(&self, store: &Store, stripe: StripeId) -> bool {
        in_place::is_in_use(store, stripe) || self.deltas.is_dirty(stripe)
    }

    fn plan_writes(
        &mut self,
        store: &mut Store,
        _health: &Health,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    ) {
        self.plan_write_batch(store, pool, writes, refused, plan);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn apply(&mut self, store: &mut Store, _seq: Seq, record: RecordRef<'_>) -> Result<(), Rejected> {
        if !self.accepts(store, record) {
            return Err(Rejected);
        }
        let (stripe, pieces) = match record {
            RecordRef::InPlace(record) => {
                self.clean(record.stripe());
                (record.stripe(), record.pieces())
            }
            RecordRef::Delta(record) => {
                self.growing.remove(&record.stripe());
                self.apply_delta(store, record);
                (record.stripe(), record.pieces())
            }
            _ => return Err(Rejected),
        };
        for piece in pieces.iter() {
            set_written(store, stripe, usize::from(piece.column), piece.crc);
        }
        Ok(())
    }

    fn holds_bundle(&self, store: &Store, chunks: u64) -> bool {
        let log_chunks = stripes_touched(store.config.geometry, chunks) + 1;
        let log_need = log_chunks * u64::from(store.chunk_blocks()) + LOG_SET_ASIDE_BLOCKS;
        unit::holds_bundle(store, chunks) && u64::from(store.config.log_blocks) >= 2 * log_need
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn accepts_all(&self, records: &mut dyn Iterator<Item = RecordRef<'_>>) -> bool {
        let (mut more, mut fits) = (0i64, true);
        for record in records {
            let live = |stripe| i64::try_from(self.deltas.count_of(stripe)).unwrap_or(i64::MAX);
            more += match record {
                RecordRef::Delta(record) if record.whole() => 1 - live(record.stripe()),
                RecordRef::Delta(_) => 1,
                RecordRef::InPlace(record) => -live(record.stripe()),
                _ => 0,
            };
            fits &=
                self.deltas.count().checked_add_signed(more).is_some_and(|count| count <= self.deltas_max);
        }
        fits
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn accepts(&self, store: &Store, record: RecordRef<'_>) -> bool {
        record.fits(&store.config)
            && match record {
                RecordRef::InPlace(_) => true,
                RecordRef::Delta(record) => {
                    let live = self.deltas.count_of(record.stripe());
                    (record.whole() && live > 0)
                        || (live < STRIPE_DELTAS_MAX && self.deltas.count() < self.deltas_max)
                }
                _ => false,
            }
    }

    fn memory(&self) -> SchemeMemory {
        SchemeMemory { fixed_bytes: 0, dynamic_bytes: self.deltas.memory_bytes(), placement_bytes: 0 }
    }

    fn save(&self, store: &Store, words: &mut Vec<u32>) {
        let item_words = delta_item_words(store.config.geometry.parity_count());
        words.reserve(usize::try_from(self.deltas.count()).map_or(0, |count| count * item_words));
        for (stripe, log_block, crcs) in self.deltas.in_log_order() {
            ListItem::Delta { stripe, log_block, log_crcs: crcs.to_vec() }.encode(words);
        }
    }

    fn load(&mut self, store: &mut Store, list: List<'_>) -> Result<(), Contradiction> {
        if !has_payload_ring(store)
            || self.deltas_max < store.config.stripe_count.min(log_chunks(&store.config))
        {
            return Err(Contradiction::Other("the payload ring or the checkpoint areas are too small"));
        }
        let mut blocks = HashSet::new();
        for item in list.items_of_scheme() {
            let ItemRef::Delta { stripe, log_block, log_crcs } = item else {
                return Err(Contradiction::Other("its list holds an item of another scheme"));
            };
            if !self.accepts_log_chunk(store, stripe, log_block, log_crcs)
                || self.deltas.count_of(stripe) >= STRIPE_DELTAS_MAX
                || self.deltas.count() >= self.deltas_max
                || !blocks.insert(log_block)
            {
                return Err(Contradiction::Stripe { what: "a log chunk", stripe });
            }
            self.deltas.push(&store.log, stripe, log_block, log_crcs.iter().copied());
        }
        check_map(store, |stripe| self.deltas.is_dirty(stripe))
    }

    fn check_page(&self, table: &Table, page: usize, words: &[u32]) -> Result<(), Contradiction> {
        in_place::check_page(table, (page, words), |stripe| self.deltas.is_dirty(stripe))
    }

    fn logs(&self) -> Option<&dyn Logs> {
        Some(self)
    }

    fn commits(&self) -> Option<&dyn Commits> {
        Some(self)
    }

    fn commits_mut(&mut self) -> Option<&mut dyn Commits> {
        Some(self)
    }

    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        Some(self)
    }
}

impl Commits for ParityLog {
    fn take_dirty(&mut self, _store: &Store, count: usize, out: &mut Vec<StripeId>) {
        self.deltas.take(count, out);
    }

    fn return_dirty(&mut self, stripe: StripeId) {
        self.deltas.put_back(stripe);
    }

    fn is_dirty(&self, stripe: StripeId) -> bool {
        self.deltas.is_dirty(stripe)
    }

    fn pressure(&self, store: &Store) -> Pressure {
        Pressure {
            dirty_stripes: self.deltas.dirty_count(),
            log_stripes: self.deltas.count(),
            low_space: false,
            low_log: is_log_low(store),
        }
    }

    fn log_holders(&self, store: &Store, before: u64, out: &mut Vec<StripeId>) {
        let first = out.len();
        let held = self.deltas.in_log_order();
        let held = held.take_while(|&(_, block, _)| store.log.position_of(block) < before);
        out.extend(held.map(|(stripe, ..)| stripe));
        out[first..].sort_unstable();
        out.dedup();
    }

    fn put_first(&mut self, stripes: &[StripeId]) {
        self.deltas.put_first(stripes);
    }

    fn commit_would_help(&self) -> bool {
        self.log_full
    }

    fn plan_commit(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> CommitOutcome {
        self.plan_stripe_commit(store, health, pool, stripe, plan)
    }

    fn commit_otherwise(&mut self, stripe: StripeId) -> bool {
        self.encode_only.insert(stripe)
    }

    fn plan_settle(&mut self, store: &mut Store, pool: &mut Pool, stripe: StripeId, plan: &mut Plan) -> bool {
        let dirty = self.deltas.is_dirty(stripe);
        if dirty {
            self.plan_encode(store, pool, stripe, plan);
        }
        dirty
    }
}

impl Logs for ParityLog {
    fn log_tail(&self, store: &Store) -> u64 {
        self.deltas.oldest_position(&store.log)
    }

    fn newest_log_block(&self) -> Option<ChunkIndex> {
        self.deltas.newest_block()
    }
}

impl InPlace for ParityLog {
    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn redo(
        &mut self,
        store: &Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        record: RecordRef<'_>,
        how: (InPlaceProgress, RedoStep),
        healed: &mut u64,
    ) -> bool {
        let members = redo::Members { store, devices, health };
        match record {
            RecordRef::InPlace(record) => {
                let write = redo::Write { stripe: record.stripe(), pieces: record.pieces(), log: None };
                redo::redo(members, write, how, healed)
            }
            RecordRef::Delta(record) => {
                let (stripe, mut rest) = (record.stripe(), Vec::new());
                if !record.whole() {
                    self.parity_pieces(store, stripe, &mut rest);
                }
                let (block, crcs) = (record.log_block(), record.log_crcs());
                let log = (!planted(Planted::RedoWithoutLog)).then_some(redo::LogChunks {
                    block,
                    crcs,
                    rest: &rest,
                });
                redo::redo(members, redo::Write { stripe, pieces: record.pieces(), log }, how, healed)
            }
            _ => false,
        }
    }

    fn resync(
        &mut self,
        store: &mut Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        restart: (Restart, &SavedPages),
        report: &mut RecoveryReport,
    ) -> Result<(), AssembleError> {
        self.deltas = Deltas::new(store.config.geometry.parity_count());
        resync::resync(store, devices, health, restart, resync::Parity::MayBeStale, report)
    }
}

#[cfg(test)]
mod tests;
