//! Carrying out a recorded write again after a crash, from the copies in the payload rings.
//!
//! | found at recovery | what it means | what is done |
//! |---|---|---|
//! | a later record of the same stripe | the write had ended, perhaps not all of it is durable | write what is not in place |
//! | every chunk on a working member, as copy or already in place | durable, or as good as | the same |
//! | a chunk is nowhere, but the code word gives it | a copy has rotted, or never arrived | the same |
//! | a chunk is nowhere | the flush of the copies never ended: nothing was overwritten | nothing, the old version stands |
//!
//! What is nowhere although the write had ended differs from its checksum from then on, and is healed when it
//! is read.
//!
//! A write may have put the change of the parities on log devices instead: then a log chunk is part of it,
//! durable before anything was overwritten, and the parity of the code word is the sum of several chunks, of
//! which each must be there.

use super::{addr_of, index_of, is_written};
use crate::checksum::chunk_checksum;
use crate::health::Health;
use crate::plan::Piece;
use crate::restart::{flush_all, is_present, write_or_fail};
use crate::scheme::{InPlaceProgress, RedoStep};
use crate::store::Store;
use block::{ChunkAddr, ChunkIndex, DeviceSet, StripeId};
use format::InPlacePiece;
use format::record::List;

/// What is known of a column after the write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    /// Zeros.
    Zero,
    /// At hand, and in place.
    InPlace,
    /// At hand, from its copy.
    Copied,
    /// At hand, from the rest of the code word.
    Computed,
    /// Not at hand, on a member that is out of service or cannot be read.
    Absent,
    /// Not at hand although its member can be read.
    Missing,
}

/// The array as recovery sees it.
pub struct Members<'a> {
    pub store: &'a Store,
    pub devices: &'a mut dyn DeviceSet,
    pub health: &'a mut Health,
}

/// A recorded write.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The stripe.
    pub stripe: StripeId,
    /// What was written in place.
    pub pieces: List<'a, InPlacePiece>,
    /// What was logged instead of parity.
    pub log: Option<LogChunks<'a>>,
}

/// The log chunk of each parity that belongs to a write.
#[derive(Clone, Copy)]
pub struct LogChunks<'a> {
    /// Where it is on each log device.
    pub block: ChunkIndex,
    /// Its checksum on each.
    pub crcs: List<'a, u32>,
    /// What the parities consist of besides, in no order.
    pub rest: &'a [Piece],
}

struct Redo<'a> {
    store: &'a Store,
    devices: &'a mut dyn DeviceSet,
    health: &'a mut Health,
    stripe: StripeId,
    /// The columns of the stripe, one after the other.
    region: Vec<u8>,
    columns: Vec<Column>,
}

/// Makes the stripe what the record says, or goes as far as asked for; `false` if that is impossible and the
/// stripe stays as it is.
pub fn redo(
    Members { store, devices, health }: Members<'_>,
    write: Write<'_>,
    (progress, step): (InPlaceProgress, RedoStep),
    healed: &mut u64,
) -> bool {
    let n = store.main_count();
    let region = vec![0; n * store.config.geometry.chunk_bytes()];
    let (stripe, columns) = (write.stripe, vec![Column::Zero; n]);
    let mut redo = Redo { store, devices, health, stripe, region, columns };
    for piece in write.pieces.iter() {
        redo.find(piece);
    }
    if let Some(log) = write.log {
        redo.find_logged(log);
    }
    let whole = !redo.columns.contains(&Column::Missing);
    if !whole && progress == InPlaceProgress::Unknown {
        if !redo.rebuild(write) {
            return false;
        }
        if step != RedoStep::Look {
            redo.complete_copies(write);
        }
    }
    if step != RedoStep::All {
        return true;
    }
    for piece in write.pieces.iter() {
        *healed += u64::from(redo.put(piece));
    }
    true
}

impl Redo<'_> {
    fn range(&self, column: usize) -> std::ops::Range<usize> {
        let len = self.store.config.geometry.chunk_bytes();
        column * len..(column + 1) * len
    }

    /// Reads a chunk of a column: whether it is the right one, `None` if it cannot be read.
    fn read(&mut self, column: usize, offset: u64, crc: u32) -> Option<bool> {
        let (range, dev) = (self.range(column), self.store.layout.device(self.stripe, column));
        let bytes = &mut self.region[range];
        self.devices.read_now(dev, offset, bytes).ok().map(|()| chunk_checksum(bytes) == crc)
    }

    /// Looks for the new version of a column.
    fn find(&mut self, piece: InPlacePiece) {
        let column = usize::from(piece.column);
        let addr = addr_of(self.store, self.stripe, column);
        let config = self.store.config;
        let readable = self.health.is_readable(addr);
        let in_place =
            readable.then(|| self.read(column, config.chunk_offset(addr.chunk), piece.crc)).flatten();
        self.columns[column] = if in_place == Some(true) {
            Column::InPlace
        } else {
            let copied = piece.payload_block != 0 && is_present(self.health, addr.dev);
            let copy =
                copied.then(|| self.read(column, config.payload_offset(piece.payload_block), piece.crc));
            match copy.flatten() {
                Some(true) => Column::Copied,
                Some(false) if readable => Column::Missing,
                None if in_place.is_some() => Column::Missing,
                Some(false) | None => Column::Absent,
            }
        };
    }

    /// Looks for the log chunk of each parity: what is in the region is that, not yet the parity.
    fn find_logged(&mut self, log: LogChunks<'_>) {
        for (row, crc) in log.crcs.iter().enumerate() {
            let column = self.store.config.geometry.data_count() + row;
            let dev = self.store.log_device(row);
            let addr = ChunkAddr::new(dev, log.block);
            let offset = self.store.offset_of(addr);
            let range = self.range(column);
            let there = is_present(self.health, dev)
                && self.devices.read_now(dev, offset, &mut self.region[range.clone()]).is_ok()
                && chunk_checksum(&self.region[range]) == crc;
            self.columns[column] = match there {
                true => Column::InPlace,
                false if self.health.is_readable(addr) => Column::Missing,
                false => Column::Absent,
            };
        }
    }

    /// Adds what the parities consist of besides the log chunks in the region. A parity of which something is
    /// nowhere cannot be had, and its log chunk is worth nothing: it is not missed.
    fn add_rest(&mut self, rest: &[Piece]) {
        let mut bytes = vec![0; self.store.config.geometry.chunk_bytes()];
        for piece in rest {
            let row = piece.index - self.store.code.width_max();
            let column = self.store.config.geometry.data_count() + row;
            let offset = self.store.offset_of(piece.addr);
            let there = is_present(self.health, piece.addr.dev)
                && self.devices.read_now(piece.addr.dev, offset, &mut bytes).is_ok()
                && chunk_checksum(&bytes) == piece.crc;
            if there {
                let range = self.range(column);
                self.region[range].iter_mut().zip(&bytes).for_each(|(sum, byte)| *sum ^= byte);
            } else {
                self.columns[column] = Column::Absent;
            }
        }
    }

    /// Computes what is missing from the rest of the code word; `false` if that does not give what
    /// the record says.
    fn rebuild(&mut self, write: Write<'_>) -> bool {
        let pieces = write.pieces;
        let (k, n) = (self.store.config.geometry.data_count(), self.store.main_count());
        for column in 0..k {
            let addr = addr_of(self.store, self.stripe, column);
            let rest = pieces.iter().all(|piece| usize::from(piece.column) != column);
            if rest && is_written(self.store, self.stripe, column) {
                let offset = self.store.config.chunk_offset(addr.chunk);
                let crc = self.store.table.column(self.stripe, column).crc;
                let there = self.health.is_readable(addr) && self.read(column, offset, crc) == Some(true);
                self.columns[column] = if there { Column::InPlace } else { Column::Absent };
            }
        }
        let lost: Vec<usize> = (k..n).filter(|&column| self.columns[column] == Column::Missing).collect();
        if let Some(log) = write.log {
            lost.iter().for_each(|&column| {
                let range = self.range(column);
                self.region[range].fill(0);
            });
            self.add_rest(log.rest);
        }
        // Of a parity whose log chunk is missing, the sum of the others.
        let others: Vec<Vec<u8>> =
            lost.iter().map(|&column| self.region[self.range(column)].to_vec()).collect();
        let data: Vec<usize> = (0..k).filter(|&column| self.columns[column] != Column::Zero).collect();
        let at = |column: usize| (index_of(self.store, column), self.range(column).start);
        let select = |states: &[Column]| -> Vec<(usize, usize)> {
            (0..n).filter(|&column| states.contains(&self.columns[column])).map(at).collect()
        };
        let present = select(&[Column::InPlace, Column::Copied]);
        let wanted = select(&[Column::Missing]);
        let len = self.store.config.geometry.chunk_bytes();
        if self
            .store
            .code
            .rebuild_in(&mut erasure::Region::new(&mut self.region, len), &data, &present, &wanted)
            .is_err()
        {
            return false;
        }
        for piece in pieces.iter() {
            let column = usize::from(piece.column);
            if self.columns[column] == Column::Missing {
                if chunk_checksum(&self.region[self.range(column)]) != piece.crc {
                    return false;
                }
                self.columns[column] = Column::Computed;
            }
        }
        let Some(log) = write.log else { return true };
        for (&column, others) in lost.iter().zip(&others) {
            if self.columns[column] == Column::Missing {
                let range = self.range(column);
                self.region[range.clone()].iter_mut().zip(others).for_each(|(sum, byte)| *sum ^= byte);
                if chunk_checksum(&self.region[range]) != log.crcs.at(column - k) {
                    return false;
                }
                self.columns[column] = Column::Computed;
            }
        }
        true
    }

    /// Should power fail from here on, with more members lost, what was computed could not be computed again.
    fn complete_copies(&mut self, write: Write<'_>) {
        for piece in write.pieces.iter() {
            let column = usize::from(piece.column);
            let dev = self.store.layout.device(self.stripe, column);
            if self.columns[column] == Column::Computed {
                self.columns[column] = Column::Copied;
                if piece.payload_block != 0 {
                    let (offset, range) =
                        (self.store.config.payload_offset(piece.payload_block), self.range(column));
                    write_or_fail(self.devices, self.health, dev, offset, &self.region[range]);
                }
            }
        }
        let k = self.store.config.geometry.data_count();
        if let Some(log) = write.log {
            for row in (0..log.crcs.len()).filter(|row| self.columns[k + row] == Column::Computed) {
                let (dev, range) = (self.store.log_device(row), self.range(k + row));
                let offset = self.store.config.log_offset(log.block);
                write_or_fail(self.devices, self.health, dev, offset, &self.region[range]);
            }
        }
        flush_all(self.devices, self.health);
    }

    /// Writes a column in place unless it is there; whether it was written.
    fn put(&mut self, piece: InPlacePiece) -> bool {
        let column = usize::from(piece.column);
        let addr = addr_of(self.store, self.stripe, column);
        let write = self.columns[column] == Column::Copied && self.health.is_writable(addr.dev);
        if write {
            let offset = self.store.config.chunk_offset(addr.chunk);
            let range = self.range(column);
            write_or_fail(self.devices, self.health, addr.dev, offset, &self.region[range]);
        }
        write
    }
}
