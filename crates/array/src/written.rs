//! Which chunks a record speaks of as written: for whoever does not have them.

use crate::scheme;
use crate::store::Store;
use block::ChunkAddr;
use format::RecordRef;
use format::record::{Home, NewChunk};

/// The chunks of main devices that a record that was applied says were written, or should have been.
pub fn each_written(store: &Store, record: RecordRef<'_>, mut visit: impl FnMut(ChunkAddr)) {
    record.new_chunks(&store.config.geometry, |NewChunk { home, chunk, .. }| {
        let dev = match home {
            Home::OfChunk(lcn) => store.layout.device_of(lcn),
            Home::OfColumn(stripe, column) | Home::InTakenRow(stripe, column) => {
                store.layout.device(stripe, column)
            }
            Home::OfLog(_) => return,
        };
        visit(ChunkAddr::new(dev, chunk));
    });
    let Some(stripe) = record.overwrites() else { return };
    let pieces = match record {
        RecordRef::InPlace(view) => view.pieces(),
        RecordRef::Delta(view) => view.pieces(),
        RecordRef::LogStripe(_)
        | RecordRef::FullStripe(_)
        | RecordRef::Commit(_)
        | RecordRef::Zero(_)
        | RecordRef::Elastic(_)
        | RecordRef::OpenStripe(_) => return,
    };
    let chunk = |column| scheme::place_in(store, stripe, column);
    pieces.iter().for_each(|piece| visit(chunk(usize::from(piece.column))));
    let columns = 0..store.config.geometry.device_count();
    columns.filter_map(|column| scheme::implied_zero(store, stripe, column)).for_each(visit);
}
