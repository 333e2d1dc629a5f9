//! Elastic striping: everything log-structured, in stripes as wide as there is data for (eSAP, W-18
//! to W-36; WAS).
//!
//! A *row* is chunk r + 1 of every main device. An elastic stripe fills a row once: k' <= k data chunks in
//! the first columns, the m parities in the last ones; columns rotate over the devices from row to row, so
//! parity does (W-20). Nothing is ever read or overwritten for a write (W-21). Overwritten chunks stay where
//! they are, because they are part of their stripe (W-26), until garbage collection has moved what is still
//! valid out of their *unit* of rows (W-23).
//!
//! | state | where | kept |
//! |---|---|---|
//! | where the newest version of a chunk is | the table's map: row x k + column + 1 | in checkpoints |
//! | width and class of a row's stripe | the table's words of rows | in checkpoints |
//! | which chunk is the newest version of what | `Rows::owners` | made from the map |
//! | valid chunks of each unit | `Units` | made from the map |
//!
//! A unit is free when all its rows were written and none of its chunks is the newest version of anything: a
//! function of the table alone, so replay frees what was freed live. A chunk that garbage collection moves is
//! the newest version only if that is still where it was read, so collection needs no lock.

mod collect;
mod open;
mod persist;
mod rows;
#[cfg(test)]
mod tests;
mod units;
mod write;

use super::{
    ChunkWrite, Classes, CollectOutcome, Collects, Contradiction, GcStats, Located, Logs, Policies,
    Registration, Rejected, Scheme, SchemeMemory, SchemeOptions,
};
use crate::health::Health;
use crate::plan::{Codeword, Piece, Plan, Word};
use crate::planted::{Planted, planted};
use crate::space::ChunkBits;
use crate::store::{ChunkRun, Store};
use block::{ChunkAddr, ChunkIndex, DevIndex, Lba, Lcn, Pool, Seq};
use collect::Collector;
use format::{ArrayConfig, List, RecordRef, record};
use open::OpenStripes;
pub use open::slots_max as open_stripe_slots;
use placement::{Placement, Sequence, SequenceDetector, SingleGroup, UserWrite};
use rows::{RowWord, Rows};
use units::Units;

pub(super) const REGISTRATION: Registration = Registration {
    new: |store, _| Box::new(Elastic::new(store)),
    memory_max: |config, _| memory_max(config),
    list_words_live: |config, _| open::list_words_max(config),
    list_words_max: open::list_words_max,
};

/// The scheme's state besides the table.
pub struct Elastic {
    rows: Rows,
    units: Units,
    open: OpenStripes,
    placement: Box<dyn Placement>,
    /// Whether the policy asks for times.
    needs_times: bool,
    collector: Collector,
    detector: SequenceDetector,
    sequence: Sequence,
    /// User chunk writes so far: the clock of placement.
    now: u64,
    scratch: write::Scratch,
}

/// What the scheme takes of memory, its placement policy aside.
fn memory_max(config: &ArrayConfig) -> SchemeMemory {
    let fixed_bytes = Rows::bytes_for(config) + Units::bytes_for(config);
    SchemeMemory { fixed_bytes, ..SchemeMemory::default() }
}

impl Elastic {
    /// The empty scheme of an empty store.
    pub fn new(store: &Store) -> Self {
        Self {
            rows: Rows::new(store),
            units: Units::new(store),
            open: OpenStripes::default(),
            placement: Box::new(SingleGroup),
            needs_times: false,
            collector: Collector::default(),
            detector: SequenceDetector::default(),
            sequence: Sequence::Random,
            now: 0,
            scratch: write::Scratch::default(),
        }
    }

    fn set_placement(&mut self, placement: Box<dyn Placement>) {
        self.needs_times = placement.needs_times();
        self.units.set_classes(placement.classes());
        self.placement = placement;
    }

    /// The newest version of `lcn` is no longer where the map says.
    fn invalidate(&mut self, store: &mut Store, lcn: Lcn) {
        let place = store.table.place(lcn);
        if place == 0 {
            return;
        }
        self.rows.disown(place);
        let unit = self.units.of_row(self.rows.row_of(place));
        self.units.drop_valid(unit);
        self.free_if_empty(store, unit);
    }

    /// A unit that is written and of which nothing is valid is free (W-25).
    fn free_if_empty(&mut self, store: &mut Store, unit: u32) {
        if !self.units.is_dead(unit) {
            return;
        }
        let rows = self.units.rows_of(unit);
        let (first, count) = (ChunkIndex::new(rows.start + 1), rows.end - rows.start);
        for row in rows {
            RowWord::read(store, row).freed().write(store, row);
        }
        for dev in (0..store.main_count() as u16).map(DevIndex::new) {
            store.free_run(ChunkRun { first: ChunkAddr::new(dev, first), count });
        }
        self.units.free(unit);
    }

    fn apply_stripe(&mut self, store: &mut Store, record: record::Elastic<'_>) {
        let (row, class, members) = (record.row(), record.class(), record.members());
        let k = store.config.geometry.data_count();
        let wide = planted(Planted::ShortStripeAsWide);
        RowWord::new(if wide { k } else { members.len() }, class).write(store, row);
        let data = members.iter().map(|member| member.crc);
        let columns = (0..).zip(data).chain((k..).zip(record.parity_crcs().iter()));
        for (column, crc) in columns {
            store.table.set_row_crc(row, column, crc);
        }
        let unit = self.units.of_row(row);
        self.units.wrote(unit, class);
        for (column, member) in members.iter().enumerate() {
            let moved_away = member.from != 0 && store.table.place(member.lcn) != member.from;
            if moved_away && !planted(Planted::MoveOverNewer) {
                // Overwritten or discarded since it was read: this copy was never the newest version.
                continue;
            }
            self.settle_member(store, unit, self.rows.place_at(row, column), member.lcn);
        }
        self.free_if_empty(store, unit);
    }

    /// The newest version of `lcn` is at a place of the unit.
    fn settle_member(&mut self, store: &mut Store, unit: u32, place: u32, lcn: Lcn) {
        // The new place counts before the old one ceases to: a unit that holds both must not pass for empty.
        self.units.add_valid(unit);
        self.invalidate(store, lcn);
        self.rows.own(place, lcn);
        store.table.set_place(lcn, place);
    }

    fn apply_zero(&mut self, store: &mut Store, first: Lcn, count: u64) {
        for lcn in (first.get()..first.get() + count).map(Lcn::new) {
            self.invalidate(store, lcn);
            store.table.set_place(lcn, 0);
        }
    }
}

impl Scheme for Elastic {
    fn locate(&self, store: &Store, lcn: Lcn) -> Located {
        let place = store.table.place(lcn);
        if place == 0 {
            return Located::Zero;
        }
        let (row, column) = (self.rows.row_of(place), self.rows.column_of(place));
        let addr = rows::address(store, row, column);
        let piece = Piece { index: column, addr, crc: store.table.row_crc(row, column) };
        Located::At { piece, word: Word::Row(row) }
    }

    fn codeword(&self, store: &Store, word: Word, out: &mut Codeword) {
        out.clear();
        let Word::Row(row) = word else { return };
        // Also of a row that is free but not used again: who reads from it still needs its cover.
        let word = RowWord::read(store, row);
        let width = word.width();
        if width == 0 {
            return;
        }
        let block = if word.is_open() { self.open.block(row) } else { ChunkIndex::NONE };
        let (k, m) = (store.config.geometry.data_count(), store.config.geometry.parity_count());
        let mut push = |index: usize, addr: ChunkAddr, column: usize| {
            out.pieces.push(Piece { index, addr, crc: store.table.row_crc(row, column) });
        };
        (0..width).for_each(|column| push(column, rows::address(store, row, column), column));
        for parity in 0..m {
            let addr = rows::parity_address(store, row, block, parity);
            push(store.code.width_max() + parity, addr, k + parity);
        }
        out.data_count = width;
    }

    fn lcns_of(&self, store: &Store, word: Word, out: &mut Vec<Lcn>) {
        if let Word::Row(row) = word {
            let columns = 0..store.config.geometry.data_count();
            out.extend(columns.filter_map(|column| self.rows.owner(self.rows.place_at(row, column))));
        }
    }

    fn word_count(&self, _store: &Store) -> u64 {
        self.units.row_count().into()
    }

    fn word_at(&self, store: &Store, index: u64) -> Option<Word> {
        let row = u32::try_from(index).ok()?;
        RowWord::read(store, row).is_live().then_some(Word::Row(row))
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
        let may_open = self.may_open(store, |row| health.is_writable(store.log_device(row)));
        self.plan_batch(store, pool, writes, refused, (plan, may_open));
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn apply(&mut self, store: &mut Store, seq: Seq, record: RecordRef<'_>) -> Result<(), Rejected> {
        if !self.accepts(store, record) {
            return Err(Rejected);
        }
        match record {
            RecordRef::Elastic(record) => self.apply_stripe(store, record),
            RecordRef::OpenStripe(record) => self.apply_open(store, seq, record),
            RecordRef::Zero(record) => self.apply_zero(store, record.first(), record.count()),
            _ => return Err(Rejected),
        }
        Ok(())
    }

    fn holds_bundle(&self, store: &Store, chunks: u64) -> bool {
        usize::try_from(chunks).is_ok_and(|chunks| {
            let classes = self.units.class_count().min(chunks);
            let rows = chunks / store.config.geometry.data_count() + classes;
            self.units.can_have_rows(&store.config, rows)
        })
    }

    fn accepts_all(&self, records: &mut dyn Iterator<Item = RecordRef<'_>>) -> bool {
        self.open.has_room_for(records.filter(|&record| open::opens_row(record)).count())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn accepts(&self, store: &Store, record: RecordRef<'_>) -> bool {
        record.fits(&store.config)
            && match record {
                RecordRef::Elastic(record) => {
                    let places = self.units.row_count() * store.config.geometry.data_count() as u32;
                    record.row() < self.units.row_count()
                        && record.members().iter().all(|member| member.from <= places)
                        && !RowWord::read(store, record.row()).is_live()
                }
                RecordRef::OpenStripe(record) => self.accepts_open(store, record),
                RecordRef::Zero(_) => true,
                _ => false,
            }
    }

    fn save(&self, _store: &Store, words: &mut Vec<u32>) {
        self.open.save(words);
    }

    fn configure(&mut self, store: &Store, options: &SchemeOptions) {
        let placement =
            options.build_placement(&store.config).expect("the options were checked when the array started");
        self.set_placement(placement);
        self.units.set_threshold(options.gc_threshold);
        self.collector.set_policy(options.gc.build());
    }

    fn give_buffers(&mut self, pool: &mut Pool) {
        self.open.give_buffers(pool);
    }

    fn memory(&self) -> SchemeMemory {
        SchemeMemory {
            fixed_bytes: self.rows.memory_bytes() + self.units.memory_bytes(),
            dynamic_bytes: 0,
            placement_bytes: self.placement.memory_bytes() as u64,
        }
    }

    fn load(&mut self, store: &mut Store, list: List<'_>) -> Result<(), Contradiction> {
        self.open.load(store, list, self.units.row_count())?;
        self.load_table(store)
    }

    fn claim_space(&self, store: &Store, claimed: &mut [ChunkBits]) -> Result<(), Contradiction> {
        self.claim_rows(store, claimed)
    }

    fn collects(&self) -> Option<&dyn Collects> {
        Some(self)
    }

    fn collects_mut(&mut self) -> Option<&mut dyn Collects> {
        Some(self)
    }

    fn logs(&self) -> Option<&dyn Logs> {
        Some(self)
    }

    fn classes(&self) -> Option<&dyn Classes> {
        Some(self)
    }

    fn classes_mut(&mut self) -> Option<&mut dyn Classes> {
        Some(self)
    }
}

impl Collects for Elastic {
    fn wants_collection(&self) -> bool {
        self.collector.is_busy() || self.open.wants_closing() || self.units.wants_collection()
    }

    fn plan_collect(&mut self, store: &mut Store, pool: &mut Pool, plan: &mut Plan) -> CollectOutcome {
        let closing = self.plan_closing(store, pool, plan);
        closing.unwrap_or_else(|| self.plan_move(store, pool, plan))
    }

    fn step_lost(&mut self, plan: &Plan) {
        self.closing_lost(plan);
        self.move_lost(plan);
    }

    fn row_returned(&mut self, row: u32) {
        self.open.forget(row);
        self.units.row_returned(row);
    }

    fn replayed(&mut self, store: &Store) {
        self.settle_units(store);
    }

    fn can_gain_room(&self) -> bool {
        self.units.can_gain()
    }

    fn wants_released(&self) -> bool {
        self.units.wants_released()
    }

    fn released(&mut self, run: ChunkRun) {
        self.units.released(run.first.chunk.get() - 1, run.count);
    }

    fn rescue(&mut self, store: &Store, word: Word) {
        if let Word::Row(row) = word {
            self.rescue_row(row, store.config.geometry.data_count());
        }
    }

    fn gc_stats(&self) -> GcStats {
        self.collector.stats()
    }
}

impl Logs for Elastic {
    fn log_tail(&self, store: &Store) -> u64 {
        self.open.oldest_position(&store.log)
    }

    fn newest_log_block(&self) -> Option<ChunkIndex> {
        self.open.newest_block()
    }
}

impl Classes for Elastic {
    fn begin_write(&mut self, first: Lba, sector_count: u64) {
        self.sequence = self.detector.request(first, sector_count);
    }

    fn class_of_write(&mut self, store: &Store, lcn: Lcn) -> u8 {
        let place = if self.needs_times { store.table.place(lcn) } else { 0 };
        let previous =
            (place != 0).then(|| self.units.stamp(self.units.of_row(self.rows.row_of(place)))).flatten();
        let write = UserWrite { lcn, sequence: self.sequence, now: self.now, previous };
        self.now += 1;
        self.placement.place_user(write).get()
    }

    fn class_count(&self) -> usize {
        self.units.class_count()
    }

    fn use_policies(&mut self, policies: Policies) {
        if let Some(placement) = policies.placement {
            self.set_placement(placement);
        }
        if let Some(victims) = policies.victims {
            self.collector.set_policy(victims);
        }
    }

    fn class_at(&self, addr: ChunkAddr) -> u8 {
        self.units.class(self.units.of_row(addr.chunk.get() - 1)).get()
    }
}
