//! Journal frames: blocks of records with consecutive sequence numbers.
//!
//! A frame lies in the journal ring of a main device, or in the log region of a log device behind the log
//! chunks that its records describe. It is found there by its magic and believed only if its checksum, array,
//! epoch, nonce and address are right: the log region also holds log chunks, which are computed from user
//! data, and a user who wrote a block that looks like a frame does not know the nonce.

use crate::layout::{BlockKind, CRC_OFFSET, check_counter, check_place, check_zero, layout};
use crate::record::{BOND_BIT, Bond, Packing, RecordBuf, RecordRef};
use crate::{ArrayUuid, COUNTER_LIMIT, FormatError};
use block::{DevIndex, Epoch, META_BYTES, Seq};

const KIND: BlockKind = BlockKind { what: "journal frame", magic: *b"ELSTFRAM" };

const RECORDS_OFFSET: usize = 72;
/// Bytes for the records of a frame.
pub const FRAME_RECORD_BYTES: usize = CRC_OFFSET - RECORDS_OFFSET;

layout!(
    /// Fields of a journal frame.
    fields, "journal frame", META_BYTES, {
        MAGIC: 0, 8, "`ELSTFRAM`";
        VERSION: 8, 2, "format version, 2";
        DEV: 10, 2, "own address: index of the member device";
        BLOCK: 12, 4, "own address: block number in the journal ring or log region";
        ARRAY: 16, 16, "UUID of the array";
        EPOCH: 32, 8, "assembly of the array that wrote the frame";
        NONCE: 40, 8, "random number of the epoch";
        FIRST_SEQ: 48, 8, "sequence number of the first record; the others count up";
        FLUSHED_THROUGH: 56, 8, "records up to this were durable when the frame was written";
        RECORD_COUNT: 64, 2, "records";
        RECORD_BYTES: 66, 2, "bytes that the records take";
        ZERO: 68, 4, "zero";
        RECORDS: RECORDS_OFFSET, FRAME_RECORD_BYTES, "records one after another, then zeros";
        CRC: CRC_OFFSET, 4, "CRC-32C of bytes 0..4092";
    }
);

/// What a frame carries besides its records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameStamp {
    /// Identity of the array.
    pub array: ArrayUuid,
    /// The current assembly.
    pub epoch: Epoch,
    /// Random number of the epoch.
    pub nonce: u64,
    /// Records up to this are durable, together with the chunks they describe.
    pub flushed_through: Seq,
    /// The first sequence number of a frame without records; not looked at otherwise.
    pub next_seq: Seq,
    /// The device that the frame is written to.
    pub dev: DevIndex,
    /// The frame's block number in that device's ring or log region.
    pub block: u32,
}

/// Collects records and writes them as a frame. Allocates nothing.
#[derive(Clone)]
pub struct FrameBuilder {
    records: [u8; FRAME_RECORD_BYTES],
    used: usize,
    record_count: u16,
    first_seq: Seq,
    next_seq: Seq,
    packing: Packing,
}

impl Default for FrameBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameBuilder {
    /// An empty frame.
    pub const fn new() -> Self {
        Self {
            records: [0; FRAME_RECORD_BYTES],
            used: 0,
            record_count: 0,
            first_seq: Seq::new(0),
            next_seq: Seq::new(0),
            packing: Packing::NONE,
        }
    }

    /// Whether there is no record.
    pub const fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// How many records there are.
    pub const fn record_count(&self) -> usize {
        self.record_count as usize
    }

    /// Bytes that are left for records.
    pub const fn room(&self) -> usize {
        FRAME_RECORD_BYTES - self.used
    }

    /// Sequence number of the first record.
    pub fn first_seq(&self) -> Option<Seq> {
        (!self.is_empty()).then_some(self.first_seq)
    }

    /// The sequence number that follows that of the last record.
    pub fn next_seq(&self) -> Option<Seq> {
        (!self.is_empty()).then_some(self.next_seq)
    }

    /// Appends a record; `false`, without effect, if there is no room. `seq` must follow that of
    /// the record before.
    #[inline]
    pub fn try_push(&mut self, seq: Seq, record: RecordRef<'_>, bond: Bond) -> bool {
        assert!(
            self.is_empty() || seq == self.next_seq,
            "record {seq:?} after {} records that end before {:?}",
            self.record_count,
            self.next_seq
        );
        let Some(len) = self.packing.pack(record, &mut self.records[self.used..]) else {
            return false;
        };
        if bond == Bond::Next {
            self.records[self.used] |= BOND_BIT;
        }
        if self.is_empty() {
            self.first_seq = seq;
        }
        self.used += len;
        self.record_count += 1;
        self.next_seq = seq.next();
        self.packing.passed(record);
        true
    }

    /// Writes the frame, with its checksum, to the 4096 bytes of `out`. The builder keeps its records, so
    /// that copies for other devices can be written with other stamps.
    #[inline]
    pub fn seal_into(&self, stamp: &FrameStamp, out: &mut [u8]) {
        let first_seq = self.first_seq().unwrap_or(stamp.next_seq);
        assert!(
            first_seq.get() < COUNTER_LIMIT && stamp.flushed_through.get() < COUNTER_LIMIT,
            "sequence numbers {first_seq:?} and {:?} are below 2^63",
            stamp.flushed_through
        );
        KIND.begin(out, stamp.dev.get(), stamp.block, &stamp.array);
        fields::EPOCH.put_u64(out, stamp.epoch.get());
        fields::NONCE.put_u64(out, stamp.nonce);
        fields::FIRST_SEQ.put_u64(out, first_seq.get());
        fields::FLUSHED_THROUGH.put_u64(out, stamp.flushed_through.get());
        fields::RECORD_COUNT.put_u16(out, self.record_count);
        let used = u16::try_from(self.used).expect("try_push: the records fit into a block");
        fields::RECORD_BYTES.put_u16(out, used);
        fields::ZERO.put_u32(out, 0);
        let area = &mut out[fields::RECORDS.offset..fields::RECORDS.end()];
        area[..self.used].copy_from_slice(&self.records[..self.used]);
        area[self.used..].fill(0);
        KIND.finish(out);
    }

    /// Empties the frame.
    pub fn clear(&mut self) {
        self.used = 0;
        self.record_count = 0;
        self.packing = Packing::NONE;
    }
}

/// Which frame the caller asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameExpect {
    /// Identity of the array.
    pub array: ArrayUuid,
    /// The assembly whose frames are to be replayed.
    pub epoch: Epoch,
    /// The random number of that epoch.
    pub nonce: u64,
    /// The device that the block was read from.
    pub dev: DevIndex,
    /// The block number that was read.
    pub block: u32,
}

/// A verified frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The assembly that wrote it.
    pub epoch: Epoch,
    /// Sequence number of the first record, or of the next one if there is none.
    pub first_seq: Seq,
    /// Records up to this were durable when the frame was written.
    pub flushed_through: Seq,
    /// The device it belongs to.
    pub dev: DevIndex,
    /// Its block number there.
    pub block: u32,
    /// The records, with sequence numbers from `first_seq`.
    pub records: RecordBuf,
    /// For each of them whether the next one belongs to it.
    pub bonds: Vec<Bond>,
}

impl Frame {
    /// The records, each with its number and its bond.
    pub fn numbered(&self) -> impl Iterator<Item = (Seq, RecordRef<'_>, Bond)> {
        let numbers = (self.first_seq.get()..).map(Seq::new);
        numbers.zip(self.records.iter()).zip(&self.bonds).map(|((seq, record), &bond)| (seq, record, bond))
    }
}

/// Reads a frame. Any error means that the block is not the frame asked for: in a scan, the end of the
/// journal, a log chunk, or damage that another copy may make good.
pub fn decode_frame(bytes: &[u8], expect: &FrameExpect) -> Result<Frame, FormatError> {
    KIND.check(bytes)?;
    KIND.check_array(bytes, expect.array)?;
    let epoch = Epoch::new(fields::EPOCH.get_u64(bytes));
    if epoch != expect.epoch {
        return Err(FormatError::OtherEpoch { what: KIND.what, found: epoch, expected: expect.epoch });
    }
    if fields::NONCE.get_u64(bytes) != expect.nonce {
        return Err(FormatError::OtherNonce { what: KIND.what });
    }
    check_place("device of a journal frame", fields::DEV.get_u16(bytes), expect.dev.get())?;
    check_place("block of a journal frame", fields::BLOCK.get_u32(bytes), expect.block)?;
    check_zero("journal frame", fields::ZERO.get(bytes))?;

    let used = usize::from(fields::RECORD_BYTES.get_u16(bytes));
    let (records, unused) =
        fields::RECORDS.get(bytes).split_at_checked(used).ok_or(FormatError::Malformed {
            what: "bytes of records in a journal frame",
            found: used as u64,
            expected: "at most 4020",
        })?;
    check_zero("record area of a journal frame", unused)?;
    let first_seq = fields::FIRST_SEQ.get_u64(bytes);
    let record_count = fields::RECORD_COUNT.get_u16(bytes);
    let flushed_through = fields::FLUSHED_THROUGH.get_u64(bytes);
    check_counter("first sequence number of a journal frame", first_seq)?;
    check_counter("flushed sequence number of a journal frame", flushed_through)?;
    let (records, bonds) = RecordBuf::decode(records, record_count)?;
    Ok(Frame {
        epoch,
        first_seq: Seq::new(first_seq),
        flushed_through: Seq::new(flushed_through),
        dev: expect.dev,
        block: expect.block,
        records,
        bonds,
    })
}

const _: () = assert!(FRAME_RECORD_BYTES == 4020, "an error message above says 4020");

#[cfg(test)]
mod tests;
