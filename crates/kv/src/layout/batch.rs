//! What begins every write of the log: whose it is, where it belongs, and what was durable before.

use super::{Fields, Malformed};
use crate::numbers::{small, wide};

const MAGIC: u32 = 0x3142_564b; // "KVB1"
/// Bytes before the first record of a batch.
pub(crate) const BATCH_BYTES: usize = 96;
/// The log's streams: what clients wrote, and what compaction moved.
pub(crate) const STREAMS: usize = 2;
const FLAG_LAST: u8 = 1;

/// What the last completed flush made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Durable {
    /// Every batch up to this number.
    pub(crate) number: u64,
    /// Segments with a lower sequence have a durable beginning.
    pub(crate) sequences: u64,
    /// How far each stream is: a segment's sequence and blocks of it. Earlier segments of the stream are
    /// whole.
    pub(crate) reached: [(u64, u32); STREAMS],
    /// The table of segments that counts.
    pub(crate) epoch: u64,
}

/// The beginning of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Batch {
    pub(crate) owner: u64,
    pub(crate) sequence: u64,
    /// Its own place on the volume.
    pub(crate) address: u64,
    /// Counts all batches of the store.
    pub(crate) number: u64,
    /// Bytes up to the end of the last record, these included.
    pub(crate) used_bytes: u32,
    /// No other batch follows in the segment.
    pub(crate) last: bool,
    pub(crate) stream: u8,
    /// Every record in it, and every one before, has a lower sequence number.
    pub(crate) record_limit: u64,
    pub(crate) durable: Durable,
}

impl Batch {
    pub(crate) fn encode(&self, out: &mut [u8]) {
        let durable = &self.durable;
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        for (at, number) in [
            (8, self.owner),
            (16, self.sequence),
            (24, self.address),
            (32, self.number),
            (48, self.record_limit),
            (56, durable.number),
            (64, durable.sequences),
            (72, durable.reached[0].0),
            (80, durable.reached[1].0),
        ] {
            out[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        // Blocks of a segment have 11 bits; the epoch takes the rest of the last word.
        let blocks = u64::from(durable.reached[0].1) | u64::from(durable.reached[1].1) << 12;
        out[88..96].copy_from_slice(&(blocks | durable.epoch << 24).to_le_bytes());
        out[40..44].copy_from_slice(&self.used_bytes.to_le_bytes());
        out[44..48].copy_from_slice(&[if self.last { FLAG_LAST } else { 0 }, self.stream, 1, 0]);
        let crc = format::crc32c(&out[8..BATCH_BYTES]);
        out[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// The batch at this place, whatever segment it was written for; `limit_bytes` is what is left of the
    /// segment.
    pub(crate) fn decode(
        bytes: &[u8],
        owner: u64,
        address: u64,
        limit_bytes: u64,
    ) -> Result<Self, Malformed> {
        if bytes.len() < BATCH_BYTES || bytes.u32_at(0) != MAGIC {
            return Err(Malformed::Magic);
        }
        if format::crc32c(&bytes[8..BATCH_BYTES]) != bytes.u32_at(4) {
            return Err(Malformed::Checksum);
        }
        if bytes.u64_at(8) != owner || bytes.u64_at(24) != address {
            return Err(Malformed::Elsewhere);
        }
        let used_bytes = bytes.u32_at(40);
        if u64::from(used_bytes) > limit_bytes || small(used_bytes) < BATCH_BYTES {
            return Err(Malformed::Range { field: "length of a batch", found: used_bytes.into() });
        }
        let (last, stream) = (bytes[44], bytes[45]);
        if last > FLAG_LAST || usize::from(stream) >= STREAMS || bytes[46] != 1 {
            return Err(Malformed::Range { field: "kind of a batch", found: bytes.u32_at(44).into() });
        }
        let word = bytes.u64_at(88);
        let blocks = |shift: u32| u32::try_from(word >> shift & 0xfff).expect("twelve bits");
        let durable = Durable {
            number: bytes.u64_at(56),
            sequences: bytes.u64_at(64),
            reached: [(bytes.u64_at(72), blocks(0)), (bytes.u64_at(80), blocks(12))],
            epoch: word >> 24,
        };
        Ok(Self {
            owner,
            sequence: bytes.u64_at(16),
            address,
            number: bytes.u64_at(32),
            used_bytes,
            last: last == FLAG_LAST,
            stream,
            record_limit: bytes.u64_at(48),
            durable,
        })
    }

    /// Bytes of the volume that it takes.
    pub(crate) fn taken_bytes(&self) -> u64 {
        wide(small(self.used_bytes).next_multiple_of(crate::blocks::BLOCK_BYTES))
    }
}
