//! The writes to one stripe, planned together; and how many of them go into one plan.

use super::{addr_of, piece_of};
use crate::plan::{Compute, CrcAt, Plan, PlanWrite, Word};
use crate::scheme::ChunkWrite;
use crate::store::{Store, stripes_touched};
use block::{Pool, Slot, Stream, StripeId};
use format::record::{CrcOffsets, Delta, InPlace, PieceOffset};
use format::{InPlacePiece, RecordBuf};

/// Bytes of records in one plan at most: they must fit what the journal keeps free for work under
/// way, even if only one record fits a frame.
const RECORD_BYTES_MAX: usize = 16_000;
/// Head of a record, the longest kind.
const RECORD_HEAD_BYTES: usize = 14;
/// A piece, or the checksum of a log chunk.
const RECORD_PIECE_BYTES: usize = 10;

/// The writes to one stripe.
#[derive(Clone, Copy)]
pub struct Unit<'a> {
    pub stripe: StripeId,
    pub writes: &'a [ChunkWrite],
    chunk_bytes: u32,
}

impl<'a> Unit<'a> {
    /// Some writes to one stripe; none for a commit.
    pub fn new(store: &Store, stripe: StripeId, writes: &'a [ChunkWrite]) -> Self {
        Self { stripe, writes, chunk_bytes: store.config.geometry.chunk_bytes() as u32 }
    }

    /// Whether a write covers its chunk in part.
    pub fn is_partial(&self, write: &ChunkWrite) -> bool {
        write.to - write.from < self.chunk_bytes
    }

    /// Whether the writes cover all data of the stripe.
    pub fn is_full(&self, store: &Store) -> bool {
        let partial = self.writes.iter().any(|write| self.is_partial(write));
        !partial && self.writes.len() == store.config.geometry.data_count()
    }

    /// The write to a column.
    pub fn find(&self, store: &Store, column: usize) -> Option<&'a ChunkWrite> {
        let lcn = store.config.geometry.lcn_at(self.stripe, column);
        self.writes.iter().find(|write| write.lcn == lcn)
    }

    /// Completes the chunks that the writes cover in part; `old` has the old version of each column
    /// that was read.
    pub fn fill(&self, store: &Store, old: &[Option<Slot>], plan: &mut Plan) {
        for write in self.writes.iter().filter(|write| self.is_partial(write)) {
            let old = old[store.config.geometry.column_of(write.lcn)];
            plan.computes.push(Compute::Fill { old, new: write.slot, from: write.from, to: write.to });
        }
    }

    /// Writes the data in place and all parities, which `plan.slots` has from `parities` on.
    pub fn write_whole(&self, store: &Store, parities: usize, plan: &mut Plan) {
        InPlace::begin(&mut plan.records, self.stripe);
        self.write_columns(store, Some(parities), plan, InPlace::push);
    }

    /// Writes the data in place; log chunks have the parities, or their change, see
    /// [`Delta::whole`]. Returns where the checksums of those belong.
    pub fn write_data(&self, store: &Store, whole: bool, plan: &mut Plan) -> CrcOffsets {
        let m = store.config.geometry.parity_count();
        let crcs = Delta::begin(&mut plan.records, self.stripe, whole, m);
        self.write_columns(store, None, plan, Delta::push);
        crcs
    }

    /// Writes the columns and adds each to the record just begun.
    fn write_columns(
        &self,
        store: &Store,
        parities: Option<usize>,
        plan: &mut Plan,
        record: impl Fn(&mut RecordBuf, InPlacePiece) -> PieceOffset,
    ) {
        let geometry = store.config.geometry;
        for column in 0..geometry.device_count() {
            let found = match column.checked_sub(geometry.data_count()) {
                Some(row) => parities.map(|first| (plan.slots[first + row], Stream::Parity)),
                None => self.find(store, column).map(|write| (write.slot, Stream::Data)),
            };
            let Some((slot, stream)) = found else { continue };
            let piece = InPlacePiece { column: column as u16, crc: 0, payload_block: 0 };
            let crc_at = CrcAt::Piece(record(&mut plan.records, piece));
            plan.writes.push(PlanWrite { addr: addr_of(store, self.stripe, column), slot, stream, crc_at });
        }
    }
}

/// Cuts a batch into units, as many as the journal can take for one plan.
#[derive(Default)]
pub struct Units {
    stripes: u64,
    record_bytes: usize,
}

impl Units {
    /// The writes to the stripe that `writes` begins with; `None` if there are none, or no room for
    /// their record.
    pub fn next<'a>(&mut self, store: &Store, writes: &'a [ChunkWrite]) -> Option<Unit<'a>> {
        let geometry = store.config.geometry;
        let stripe = geometry.stripe_of(writes.first()?.lcn);
        let count = writes.iter().take_while(|write| geometry.stripe_of(write.lcn) == stripe).count();
        self.stripes += 1;
        self.record_bytes += RECORD_HEAD_BYTES + (count + geometry.parity_count()) * RECORD_PIECE_BYTES;
        let fits = (self.record_bytes <= RECORD_BYTES_MAX || self.stripes == 1)
            && self.stripes <= store.in_place_stripes_max();
        fits.then(|| Unit::new(store, stripe, &writes[..count]))
    }
}

/// How many units a batch is, if all of it may go into one plan.
pub fn units_of_all(store: &Store, mut writes: &[ChunkWrite]) -> Option<usize> {
    let (mut units, mut count) = (Units::default(), 0);
    while !writes.is_empty() {
        writes = &writes[units.next(store, writes)?.writes.len()..];
        count += 1;
    }
    Some(count)
}

/// Whether one plan may write so many chunks that follow each other.
pub fn holds_bundle(store: &Store, chunks: u64) -> bool {
    let geometry = store.config.geometry;
    let stripes = stripes_touched(geometry, chunks);
    let fits = |chunks: usize, stripes: usize| {
        let pieces = chunks + stripes * geometry.parity_count();
        stripes * RECORD_HEAD_BYTES + pieces * RECORD_PIECE_BYTES <= RECORD_BYTES_MAX
    };
    let counts = usize::try_from(chunks).ok().zip(usize::try_from(stripes).ok());
    stripes <= store.in_place_stripes_max() && counts.is_some_and(|(chunks, stripes)| fits(chunks, stripes))
}

/// Reads the present version of a column, data or parity.
pub fn read(store: &Store, pool: &mut Pool, stripe: StripeId, column: usize, plan: &mut Plan) -> Slot {
    plan.read_piece(store, pool, Word::Stripe(stripe), &piece_of(store, stripe, column))
}

/// Encodes all columns, new and old; returns where in `plan.slots` the parities are.
pub fn encode(
    store: &Store,
    pool: &mut Pool,
    old: &[Option<Slot>],
    unit: Unit<'_>,
    plan: &mut Plan,
) -> usize {
    let (columns, inputs) = encode_columns(store, old, unit, plan);
    plan.encode(pool, columns, inputs, store.config.geometry.parity_count())
}

/// What all columns, new and old, are encoded from: where their numbers begin in `plan.columns`, and they in
/// `plan.slots`.
pub fn encode_columns(
    store: &Store,
    old: &[Option<Slot>],
    unit: Unit<'_>,
    plan: &mut Plan,
) -> (usize, usize) {
    let (inputs, columns) = (plan.slots.len(), plan.columns.len());
    for (column, &old) in old.iter().enumerate() {
        let slot = unit.find(store, column).map(|write| write.slot).or(old);
        if let Some(slot) = slot {
            plan.columns.push(column);
            plan.slots.push(slot);
        }
    }
    (columns, inputs)
}
