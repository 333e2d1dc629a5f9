//! Records as they are written to disk, one after another: the only form in which records are owned.

use super::items::{InPlacePiece, Item, piece_item};
use crate::layout::{Field, Layout};

/// Where in a [`RecordBuf`] the checksum of a chunk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrcOffset(u32);

/// Where in a [`RecordBuf`] the checksums of a list are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrcOffsets {
    first: u32,
}

/// Where in a [`RecordBuf`] an [`InPlacePiece`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceOffset(u32);

impl CrcOffsets {
    /// Where the checksum of one item of the list is.
    pub fn at(self, index: usize) -> CrcOffset {
        CrcOffset(offset(self.first as usize + index * u32::BYTES))
    }
}

impl PieceOffset {
    /// Where its checksum is.
    pub fn crc(self) -> CrcOffset {
        CrcOffset(self.0 + piece_item::CRC.offset as u32)
    }
}

/// Records, encoded. A record is begun, then its lists are filled item by item; its checksums may
/// be set when they are known. Recycled buffers keep their capacity, so that the hot path does not
/// allocate.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RecordBuf {
    bytes: Vec<u8>,
    /// Where each record begins; it ends where the next one begins.
    starts: Vec<u32>,
}

impl RecordBuf {
    /// Forgets all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }

    /// How many records.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Notes the checksum of a chunk.
    pub fn set_crc(&mut self, at: CrcOffset, crc: u32) {
        crc.put(&mut self.bytes[at.0 as usize..]);
    }

    /// Where the copy of a piece is in its payload ring.
    pub fn payload_block(&self, at: PieceOffset) -> u32 {
        piece_item::PAYLOAD_BLOCK.get_u32(&self.bytes[at.0 as usize..])
    }

    /// The copy of a piece has found its place in its payload ring.
    pub fn set_payload_block(&mut self, at: PieceOffset, block: u32) {
        piece_item::PAYLOAD_BLOCK.put_u32(&mut self.bytes[at.0 as usize..], block);
    }

    /// The bytes of one record.
    pub(super) fn record(&self, index: usize) -> &[u8] {
        &self.bytes[self.span(index)]
    }

    pub(super) fn record_mut(&mut self, index: usize) -> &mut [u8] {
        let span = self.span(index);
        &mut self.bytes[span]
    }

    fn span(&self, index: usize) -> std::ops::Range<usize> {
        let end = self.starts.get(index + 1).map_or(self.bytes.len(), |&start| start as usize);
        self.starts[index] as usize..end
    }

    /// Begins a record of zeros but for its kind; returns its head.
    pub(super) fn begin(&mut self, code: u8, head: &Layout) -> &mut [u8] {
        let start = self.bytes.len();
        self.starts.push(offset(start));
        self.bytes.resize(start + head.size, 0);
        let head = &mut self.bytes[start..];
        head[0] = code;
        head
    }

    /// Adds an item to a list of the newest record, which is of the kind `code` and counts the
    /// list's items in `count`; returns where it is.
    pub(super) fn append<T: Item>(&mut self, code: u8, count: &Field, item: T) -> u32 {
        let start = *self.starts.last().expect("a record was begun") as usize;
        assert!(self.bytes[start] == code, "the newest record is of kind {}, not {code}", self.bytes[start]);
        count.increment(&mut self.bytes[start..]);
        let at = self.bytes.len();
        self.bytes.resize(at + T::BYTES, 0);
        item.put(&mut self.bytes[at..]);
        offset(at)
    }

    /// As [`RecordBuf::append`]; returns where the checksum of the item is.
    pub(super) fn append_crc<T: Item>(&mut self, code: u8, count: &Field, item: T, crc: &Field) -> CrcOffset {
        CrcOffset(self.append(code, count, item) + crc.offset as u32)
    }

    /// Adds a piece to the newest record.
    pub(super) fn append_piece(&mut self, code: u8, count: &Field, piece: InPlacePiece) -> PieceOffset {
        PieceOffset(self.append(code, count, piece))
    }

    /// Adds a list of checksums that are not known yet to the newest record; returns where they are.
    pub(super) fn append_crcs(&mut self, code: u8, count: &Field, len: usize) -> CrcOffsets {
        let first = offset(self.bytes.len());
        (0..len).for_each(|_| {
            self.append(code, count, 0u32);
        });
        CrcOffsets { first }
    }

    /// Adds a whole record.
    pub(super) fn append_record(&mut self, bytes: &[u8]) {
        self.starts.push(offset(self.bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("a plan's records take far less than 4 GiB")
}
