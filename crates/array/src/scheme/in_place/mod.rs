//! What schemes that write in place share: where chunks lie, units of writes, carrying out writes
//! again, resync.
//!
//! Chunk `s + 1` of every device belongs to stripe `s`. The map only tells chunks that were written
//! from those that were not and read as zeros.

pub(super) mod redo;
pub(super) mod resync;
pub(super) mod unit;

use super::{Contradiction, Located};
use crate::plan::{Piece, Word};
use crate::restart::Restart;
use crate::store::Store;
use crate::table::Table;
use block::{ChunkAddr, ChunkIndex, Lcn, StripeId};
use format::{ArrayConfig, Consistency, StripeChunk};

/// Whether nothing tells what was being written when the array stopped.
pub(super) fn needs_resync(config: &ArrayConfig, restart: Restart) -> bool {
    config.scheme.is_in_place() && config.consistency == Consistency::Resync && !restart.was_clean
}

/// Without a journal a resync reads columns never written as well: they must hold zeros.
pub(super) fn implied_zero(store: &Store, stripe: StripeId, column: usize) -> Option<ChunkAddr> {
    let unwritten = store.config.consistency == Consistency::Resync && !is_written(store, stripe, column);
    unwritten.then(|| addr_of(store, stripe, column))
}

/// Whether a journal, if there is one, has a ring for its copies.
pub(super) fn has_payload_ring(store: &Store) -> bool {
    store.config.consistency == Consistency::Resync || store.payload_chunks() > 0
}

/// The chunk of a stripe, the same on every device.
pub(super) fn chunk_of(stripe: StripeId) -> ChunkIndex {
    ChunkIndex::new(
        u32::try_from(stripe.get() + 1).expect("validated: a stripe takes a chunk of each device"),
    )
}

/// Where a column of a stripe lies.
pub(super) fn addr_of(store: &Store, stripe: StripeId, column: usize) -> ChunkAddr {
    ChunkAddr::new(store.layout.device(stripe, column), chunk_of(stripe))
}

/// Whether a column, data or parity, holds anything; else it is zeros.
pub(super) fn is_written(store: &Store, stripe: StripeId, column: usize) -> bool {
    !store.table.column(stripe, column).chunk.is_none()
}

/// Notes that a column was written.
pub(super) fn set_written(store: &mut Store, stripe: StripeId, column: usize, crc: u32) {
    let version = StripeChunk { chunk: chunk_of(stripe), crc };
    // What is so already is not written anew with the next checkpoint.
    if store.table.column(stripe, column) != version {
        store.table.set_column(stripe, column, version);
    }
}

/// A column as a piece of the stripe's code word.
pub(super) fn piece_of(store: &Store, stripe: StripeId, column: usize) -> Piece {
    let (addr, crc) = (addr_of(store, stripe, column), store.table.column(stripe, column).crc);
    Piece { index: index_of(store, column), addr, crc }
}

/// The code's index of a column.
pub(super) fn index_of(store: &Store, column: usize) -> usize {
    match column.checked_sub(store.config.geometry.data_count()) {
        None => column,
        Some(row) => store.code.width_max() + row,
    }
}

/// Where the newest version of a chunk is: in its stripe.
pub(super) fn locate(store: &Store, lcn: Lcn) -> Located {
    let geometry = store.config.geometry;
    let (stripe, column) = (geometry.stripe_of(lcn), geometry.column_of(lcn));
    if !is_written(store, stripe, column) {
        return Located::Zero;
    }
    Located::At { piece: piece_of(store, stripe, column), word: Word::Stripe(stripe) }
}

/// Checks that the map, as loaded, is one that such a scheme makes. A dirty stripe has log chunks,
/// which make up its parity with what is on the main devices or without. Pages that are absent are looked at
/// when they come ([`check_page`]).
pub(super) fn check_map(store: &Store, is_dirty: impl Fn(StripeId) -> bool) -> Result<(), Contradiction> {
    let check = |stripe| {
        check_stripe(&store.table, stripe, is_dirty(stripe), |column| store.table.column(stripe, column))
    };
    if store.table.is_paged() {
        store.table.stripes_in_memory().try_for_each(check)
    } else {
        (0..store.config.stripe_count).map(StripeId::new).try_for_each(check)
    }
}

/// The same of a page, which has these words.
pub(super) fn check_page(
    table: &Table,
    (page, words): (usize, &[u32]),
    is_dirty: impl Fn(StripeId) -> bool,
) -> Result<(), Contradiction> {
    table.stripes_on(page).try_for_each(|stripe| {
        check_stripe(table, stripe, is_dirty(stripe), |column| table.column_on(words, stripe, column))
    })
}

/// The same of a stripe: everything is in its place, and all parities are there or none.
fn check_stripe(
    table: &Table,
    stripe: StripeId,
    is_dirty: bool,
    version: impl Fn(usize) -> StripeChunk,
) -> Result<(), Contradiction> {
    let (k, n) = (table.geometry().data_count(), table.geometry().device_count());
    let is_written = |column: usize| !version(column).chunk.is_none();
    let is_placed = (0..n).all(|column| !is_written(column) || version(column).chunk == chunk_of(stripe));
    let (has_data, has_parity) = ((0..k).any(is_written), is_written(k));
    let is_sound = is_placed
        && (k..n).all(|column| is_written(column) == has_parity)
        && (has_parity || is_dirty || !has_data)
        && (has_data || !is_dirty);
    if is_sound { Ok(()) } else { Err(Contradiction::Stripe { what: "the map", stripe }) }
}

/// Whether any data column of a stripe was written.
pub(super) fn has_data(store: &Store, stripe: StripeId) -> bool {
    (0..store.config.geometry.data_count()).any(|column| is_written(store, stripe, column))
}

/// Whether rebuild and scrub must look at a stripe. Without a journal a resync reads every stripe,
/// so that all of it must be there, if only zeros.
pub(super) fn is_in_use(store: &Store, stripe: StripeId) -> bool {
    store.config.consistency == Consistency::Resync
        || has_data(store, stripe)
        || is_written(store, stripe, store.config.geometry.data_count())
}
