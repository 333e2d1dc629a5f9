//! Open stripes: what must be durable before a row is full goes to its place at once, and the parity of what
//! the row has so far to the log devices (L-09, L-11). When the row is full its parity is written beside its
//! data, and what is in the log is dead.
//!
//! Without log devices, or without room in the log, the rest of a class becomes a short stripe instead: a row
//! and m parities on the main devices for it alone.
//!
//! | an open stripe | is |
//! |---|---|
//! | idle | durable as far as its records are; its parity is in buffers, so the next chunks read nothing |
//! | busy | being written to: one plan at a time, as the parity in its record covers what came before |
//! | bare | not in buffers: it was open when the array started. It is closed: its data is read for that |
//! | stuck | some of its data could not be read. It stays as it is, its parity in the log |

use super::Elastic;
use super::rows::{self, RowWord};
use super::write::Chunk;
use crate::plan::{Compute, CrcAt, Piece, Plan, PlanWrite, Word};
use crate::planted::{Planted, planted};
use crate::scheme::log_room::{has_room_for, is_log_low};
use crate::scheme::{CollectOutcome, Contradiction};
use crate::store::{LogRing, Store};
use block::{ChunkIndex, Pool, Seq, Slot, Stream};
use format::{
    ArrayConfig, CLASSES_MAX, ElasticMember, ItemRef, List, ListItem, OPEN_STRIPE_ITEM_WORDS, RecordRef,
    record,
};

/// Open stripes at most: more than one of a class where its last one is being written to.
const OPEN_MAX: usize = CLASSES_MAX + 2;
/// The same after a crash: what was closed shortly before may be open, and what was opened instead, too.
/// Nobody was told of either, so what is more than that is dropped.
const LISTED_MAX: usize = 2 * OPEN_MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Busy,
    Stuck,
}

struct OpenStripe {
    row: u32,
    class: u8,
    state: State,
    /// Of its newest record.
    seq: Seq,
    /// Where its parity so far is in the log; none before the first record.
    block: ChunkIndex,
    /// Its parity so far; empty if it is bare.
    parities: Vec<Slot>,
    /// It is not to grow any more.
    closing: bool,
}

/// See the module's documentation.
#[derive(Default)]
pub struct OpenStripes {
    list: Vec<OpenStripe>,
    /// Buffers of stripes that were closed, for the next ones.
    spare: Vec<Vec<Slot>>,
}

/// Words of the list of a checkpoint that open stripes take at most.
pub fn list_words_max(config: &ArrayConfig) -> u64 {
    let listed = if config.log_count == 0 { 0 } else { LISTED_MAX };
    u64::try_from(listed * OPEN_STRIPE_ITEM_WORDS).unwrap_or(u64::MAX)
}

/// Buffers that open stripes hold at most.
pub fn slots_max(config: &ArrayConfig) -> usize {
    if config.log_count == 0 { 0 } else { OPEN_MAX * config.geometry.parity_count() }
}

impl OpenStripes {
    /// Where the parity of an open row is.
    pub fn block(&self, row: u32) -> ChunkIndex {
        self.list.iter().find(|open| open.row == row).map_or(ChunkIndex::NONE, |open| open.block)
    }

    /// The oldest log position that is needed; the head if none is.
    pub fn oldest_position(&self, log: &LogRing) -> u64 {
        if planted(Planted::TrimOpenParity) {
            return log.head();
        }
        let known = self.list.iter().filter(|open| !open.block.is_none());
        known.map(|open| log.position_of(open.block)).min().unwrap_or(log.head())
    }

    pub fn newest_block(&self) -> Option<ChunkIndex> {
        self.list
            .iter()
            .filter(|open| !open.block.is_none())
            .max_by_key(|open| open.seq)
            .map(|open| open.block)
    }

    /// Whether some stripe is to be closed, and can be.
    pub fn wants_closing(&self) -> bool {
        self.to_close().is_some()
    }

    fn to_close(&self) -> Option<usize> {
        let wanted = |open: &OpenStripe| open.closing || open.parities.is_empty();
        self.list.iter().position(|open| open.state == State::Idle && wanted(open))
    }

    /// A stripe of the class to which chunks can be added.
    fn to_grow(&self, class: usize) -> Option<usize> {
        let fits = |open: &OpenStripe| usize::from(open.class) == class && !open.parities.is_empty();
        let may = |open: &OpenStripe| open.state == State::Idle || planted(Planted::GrowWhileBusy);
        self.list.iter().position(|open| may(open) && !open.block.is_none() && !open.closing && fits(open))
    }

    /// Stripes whose parity lies before a position of the log are to be closed.
    pub fn close_before(&mut self, log: &LogRing, position: u64) {
        let old = |open: &&mut OpenStripe| !open.block.is_none() && log.position_of(open.block) < position;
        self.list.iter_mut().filter(old).for_each(|open| open.closing = true);
    }

    /// What has become of a stripe: its parity is at `block` of the log, or, with none, it is closed.
    pub fn applied(&mut self, row: u32, class: u8, seq: Seq, block: ChunkIndex) {
        let at = self.list.iter().position(|open| open.row == row);
        match (at, block.is_none()) {
            (Some(at), true) => {
                let OpenStripe { parities, .. } = self.list.swap_remove(at);
                if !parities.is_empty() {
                    self.spare.push(parities);
                }
            }
            (Some(at), false) => {
                let open = &mut self.list[at];
                (open.seq, open.block, open.state) = (seq, block, State::Idle);
            }
            (None, true) => {}
            (None, false) => self.list.push(OpenStripe::bare(row, class, seq, block)),
        }
    }

    /// Whether so many more may be opened by records that are replayed.
    pub fn has_room_for(&self, opened: usize) -> bool {
        self.list.len() + opened <= LISTED_MAX
    }

    /// A row that was taken was not written.
    pub fn forget(&mut self, row: u32) {
        if let Some(at) = self.list.iter().position(|open| open.row == row) {
            self.spare.push(self.list.swap_remove(at).parities);
        }
    }

    /// Buffers for a new stripe; `None` if there are none.
    fn take_parities(&mut self, pool: &mut Pool, count: usize, keep: usize) -> Option<Vec<Slot>> {
        if let Some(parities) = self.spare.pop() {
            return Some(parities);
        }
        if pool.free_count() < count + keep {
            return None;
        }
        (0..count).map(|_| pool.alloc()).collect()
    }

    /// Gives back all buffers; no stripe is being written to, and all are bare from now on.
    pub fn give_buffers(&mut self, pool: &mut Pool) {
        let held = self.list.iter_mut().flat_map(|open| open.parities.drain(..));
        held.chain(self.spare.drain(..).flatten()).for_each(|slot| pool.free(slot));
    }

    pub fn save(&self, words: &mut Vec<u32>) {
        for open in self.list.iter().filter(|open| !open.block.is_none()) {
            let &OpenStripe { seq, row, block, .. } = open;
            ListItem::OpenStripe { seq, row, log_block: block }.encode(words);
        }
    }

    /// Loads what [`OpenStripes::save`] gave, over a table that is loaded already.
    pub fn load(&mut self, store: &Store, list: List<'_>, row_count: u32) -> Result<(), Contradiction> {
        for item in list.items_of_scheme() {
            let ItemRef::OpenStripe { seq, row, log_block } = item else {
                return Err(Contradiction::Other("its list has items of other schemes"));
            };
            let is_row = row < row_count && RowWord::read(store, row).is_open();
            let is_block = (1..=store.config.log_blocks).contains(&log_block.get());
            if !is_row || !is_block || self.list.len() == LISTED_MAX || !self.block(row).is_none() {
                return Err(Contradiction::Row(row));
            }
            self.list.push(OpenStripe::bare(row, RowWord::read(store, row).class(), seq, log_block));
        }
        let open = |&row: &u32| RowWord::read(store, row).is_open();
        let unknown = (0..row_count).filter(open).find(|&row| self.block(row).is_none());
        unknown.map_or(Ok(()), |row| Err(Contradiction::Row(row)))
    }
}

impl OpenStripe {
    /// One that is not in buffers.
    fn bare(row: u32, class: u8, seq: Seq, block: ChunkIndex) -> Self {
        Self { row, class, state: State::Idle, seq, block, parities: Vec::new(), closing: false }
    }
}

impl Elastic {
    /// Whether what is written may become part of an open stripe, so far as the log goes.
    pub(super) fn may_open(&mut self, store: &Store, is_writable: impl Fn(usize) -> bool) -> bool {
        if store.config.log_count == 0 {
            return false;
        }
        let log = &store.log;
        if !(0..store.config.geometry.parity_count()).all(is_writable) {
            // Parity on the main devices alone makes up for it.
            self.open.close_before(log, log.head());
            return false;
        }
        if is_log_low(store) {
            self.open.close_before(log, log.head().saturating_sub(u64::from(log.block_count() / 2)));
        }
        true
    }

    /// Adds chunks to an open stripe of the class, at most as many as it has room for; returns how many, 0 if
    /// there is none or no room in the log.
    pub(super) fn plan_growth(
        &mut self,
        store: &mut Store,
        class: usize,
        members: impl ExactSizeIterator<Item = Chunk>,
        plan: &mut Plan,
    ) -> usize {
        let Some(at) = self.open.to_grow(class) else { return 0 };
        let OpenStripe { row, class, .. } = self.open.list[at];
        let (width, k) = (RowWord::read(store, row).width(), store.config.geometry.data_count());
        let count = members.len().min(k - width);
        let Some(block) = log_block(store, width + count == k) else { return 0 };
        let open = &mut self.open.list[at];
        open.state = State::Busy;
        let parities = plan.slots.len()..plan.slots.len() + open.parities.len();
        plan.slots.extend_from_slice(&open.parities);
        let grown = Grown { row, class, width, block };
        let from = plan.slots.len();
        grown.plan_record(store, members.take(count), parities.start, plan);
        if planted(Planted::GrowthForgetsBefore) {
            plan.computes.extend(plan.slots[parities.clone()].iter().map(|&slot| Compute::Clear(slot)));
        }
        for nth in 0..count {
            let (column, new, parities) = (width + nth, Some(plan.slots[from + nth]), parities.clone());
            plan.computes.push(Compute::Delta { column, old: None, new, parities });
        }
        self.note_times(row, count);
        count
    }

    /// Begins a stripe with chunks that are too few for a whole one; `false` if there is no room for that, be
    /// it in the log.
    pub(super) fn plan_opening(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        class: usize,
        members: impl ExactSizeIterator<Item = Chunk>,
        plan: &mut Plan,
    ) -> bool {
        let (m, keep) = (store.config.geometry.parity_count(), store.slots_kept_by_writes());
        if self.open.list.len() >= OPEN_MAX || !has_room_for(store, 1) {
            return false;
        }
        let Some(parities) = self.open.take_parities(pool, m, keep) else { return false };
        let Some(lease) = self.units.take_row(store, class, self.now, true) else {
            self.open.spare.push(parities);
            return false;
        };
        let class = u8::try_from(class).expect("there are few classes");
        let (row, count) = (plan.leases.hold_row(lease), members.len());
        let block = log_block(store, false).expect("the log has room");
        let outputs = plan.slots.len()..plan.slots.len() + m;
        plan.slots.extend_from_slice(&parities);
        let inputs = outputs.end..outputs.end + count;
        Grown { row, class, width: 0, block }.plan_record(store, members, outputs.start, plan);
        let columns = plan.columns.len()..plan.columns.len() + count;
        plan.columns.extend(0..count);
        plan.computes.push(Compute::Encode { columns, inputs, outputs });
        let new = OpenStripe {
            state: State::Busy,
            parities,
            ..OpenStripe::bare(row, class, Seq::new(0), ChunkIndex::NONE)
        };
        self.open.list.push(new);
        self.note_times(row, count);
        true
    }

    /// Closes a stripe that is not to grow: its parity goes to its row. `None` if none is.
    pub(super) fn plan_closing(
        &mut self,
        store: &Store,
        pool: &mut Pool,
        plan: &mut Plan,
    ) -> Option<CollectOutcome> {
        let at = self.open.to_close()?;
        let OpenStripe { row, class, .. } = self.open.list[at];
        let (width, m) = (RowWord::read(store, row).width(), store.config.geometry.parity_count());
        let is_bare = self.open.list[at].parities.is_empty();
        if is_bare && pool.free_count() < width + m + store.slots_kept() {
            return Some(CollectOutcome::NoSpace);
        }
        let parities = if is_bare {
            let (columns, inputs) = (plan.columns.len(), plan.slots.len());
            for column in 0..width {
                let (addr, crc) = (rows::address(store, row, column), store.table.row_crc(row, column));
                let slot = plan.read_piece(store, pool, Word::Row(row), &Piece { index: column, addr, crc });
                plan.slots.push(slot);
                plan.columns.push(column);
            }
            plan.encode(pool, columns, inputs, m)
        } else {
            plan.slots.extend_from_slice(&self.open.list[at].parities);
            plan.slots.len() - m
        };
        let grown = Grown { row, class, width, block: ChunkIndex::NONE };
        grown.plan_record(store, std::iter::empty(), parities, plan);
        self.open.list[at].state = State::Busy;
        Some(CollectOutcome::Planned)
    }

    /// What was to close a stripe could not read its data.
    pub(super) fn closing_lost(&mut self, plan: &Plan) {
        for record in plan.records.iter() {
            let RecordRef::OpenStripe(record) = record else { continue };
            let mut open = self.open.list.iter_mut();
            if let Some(open) = open.find(|open| open.row == record.row()) {
                open.state = State::Stuck;
            }
        }
    }

    /// A stripe has grown, or was closed.
    pub(super) fn apply_open(&mut self, store: &mut Store, seq: Seq, record: record::OpenStripe<'_>) {
        let (row, class, block) = (record.row(), record.class(), record.log_block());
        let (before, k) = (record.before_crcs().len(), store.config.geometry.data_count());
        let word = RowWord::new(record.width(), class);
        let word = if block.is_none() { word } else { word.open() };
        word.write(store, row);
        for (parity, crc) in record.parity_crcs().iter().enumerate() {
            store.table.set_row_crc(row, k + parity, crc);
        }
        self.open.applied(row, class, seq, block);
        let unit = self.units.of_row(row);
        let counts = match planted(Planted::OpenRowAsWritten) {
            true => before == 0,
            false => block.is_none(),
        };
        if counts {
            self.units.wrote(unit, class);
        }
        for (column, member) in (before..).zip(record.members().iter()) {
            store.table.set_row_crc(row, column, member.crc);
            self.settle_member(store, unit, self.rows.place_at(row, column), member.lcn);
        }
        self.free_if_empty(store, unit);
    }

    /// Whether a record goes on where its row is.
    pub(super) fn accepts_open(&self, store: &Store, record: record::OpenStripe<'_>) -> bool {
        if record.row() >= self.units.row_count() {
            return false;
        }
        let word = RowWord::read(store, record.row());
        let before = record.before_crcs();
        if before.is_empty() {
            return !word.is_live() && self.open.list.len() < LISTED_MAX;
        }
        word.is_open()
            && (word.width(), word.class()) == (before.len(), record.class())
            && before.iter().enumerate().all(|(at, crc)| store.table.row_crc(record.row(), at) == crc)
    }
}

/// Whether a record begins an open stripe.
pub fn opens_row(record: RecordRef<'_>) -> bool {
    matches!(record, RecordRef::OpenStripe(record) if record.before_crcs().is_empty())
}

/// A row as a plan leaves it.
struct Grown {
    row: u32,
    class: u8,
    /// Chunks that it had before.
    width: usize,
    /// Where its parity goes in the log; none if it is closed.
    block: ChunkIndex,
}

impl Grown {
    /// Plans the writes and the record of it; `parities` is where the buffers of its parity are in the plan's
    /// slots, behind which those of the members are appended.
    fn plan_record(
        &self,
        store: &Store,
        members: impl Iterator<Item = Chunk>,
        parities: usize,
        plan: &mut Plan,
    ) {
        let &Self { row, class, width, block } = self;
        let m = store.config.geometry.parity_count();
        let before = (0..width).map(|column| store.table.row_crc(row, column));
        let crcs = record::OpenStripe::begin(&mut plan.records, (row, class), block, before, m);
        for (column, Chunk { lcn, slot, .. }) in (width..).zip(members) {
            let member = ElasticMember { lcn, from: 0, crc: 0 };
            let crc_at = CrcAt::Record(record::OpenStripe::push(&mut plan.records, member));
            plan.slots.push(slot);
            let addr = rows::address(store, row, column);
            plan.writes.push(PlanWrite { addr, slot, stream: Stream::Data, crc_at });
        }
        for parity in 0..m {
            let (slot, crc_at) = (plan.slots[parities + parity], CrcAt::Record(crcs.at(parity)));
            let addr = rows::parity_address(store, row, block, parity);
            let stream = store.stream_of(store.code.width_max() + parity, addr.dev);
            plan.writes.push(PlanWrite { addr, slot, stream, crc_at });
        }
    }
}

/// Room in the log for the parity of a stripe, which needs none if the stripe is full; `None` if there is no
/// room.
fn log_block(store: &mut Store, is_full: bool) -> Option<ChunkIndex> {
    if is_full {
        return Some(ChunkIndex::NONE);
    }
    let blocks = store.chunk_blocks();
    has_room_for(store, 1).then(|| store.log.append(blocks)).flatten().map(|(_, block)| block)
}
