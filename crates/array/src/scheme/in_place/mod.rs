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
/// which make up its parity with what is on the main devices or without.
pub(super) fn check_map(store: &Store, is_dirty: impl Fn(StripeId) -> bool) -> Result<(), Contradiction> {
    let is_sound = |stripe: StripeId| {
        let (dirty, data) = (is_dirty(stripe), has_data(store, stripe));
        let parity = is_written(store, stripe, store.config.geometry.data_count());
        is_placed(store, stripe) && (parity || dirty || !data) && (data || !dirty)
    };
    let unsound = if store.table.is_paged() {
        // Pages that are not in memory are looked at when they come.
        store.table.stripes_in_memory().find(|&stripe| !is_sound(stripe))
    } else {
        (0..store.config.stripe_count).map(StripeId::new).find(|&stripe| !is_sound(stripe))
    };
    unsound.map_or(Ok(()), |stripe| Err(Contradiction::Stripe { what: "the map", stripe }))
}

/// Whether everything of a stripe is in its place, and all parities are there or none.
fn is_placed(store: &Store, stripe: StripeId) -> bool {
    let geometry = store.config.geometry;
    let (k, n) = (geometry.data_count(), geometry.device_count());
    let ok = |chunk: ChunkIndex| chunk.is_none() || chunk == chunk_of(stripe);
    (0..n).all(|column| ok(store.table.column(stripe, column).chunk))
        && (k..n).all(|column| is_written(store, stripe, column) == is_written(store, stripe, k))
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
