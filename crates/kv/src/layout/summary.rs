//! What ends a closed segment: a line for each of its records, and a footer in its last bytes. It is written
//! when all batches of the segment are durable, so that what it names is there.

use super::{Fields, Kind, Malformed, UNIT_BYTES, u48};
use crate::blocks::BLOCK_BYTES;
use crate::hash::KeyHash;
use crate::numbers::{narrow, small, wide};

const MAGIC: u32 = 0x3153_564b; // "KVS1"
/// Bytes of a line.
pub(crate) const ENTRY_BYTES: usize = 24;
/// Bytes of the footer.
pub(crate) const FOOTER_BYTES: usize = 48;
const OFFSET_BITS: u32 = 20;
/// A line without a record: the manifest before it owns the value with this number.
const OWNER_CODE: u32 = 15;

/// What a line of a summary says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// The hash of the key; of a part the value's number and the part's.
    pub(crate) hash: KeyHash,
    pub(crate) seq: u64,
    /// From the beginning of the segment, in units of 16 bytes.
    pub(crate) offset_units: u32,
    pub(crate) units: u16,
    /// None: the line says which value the manifest before it owns.
    pub(crate) kind: Option<Kind>,
}

impl Entry {
    pub(crate) fn offset_bytes(&self) -> u64 {
        u64::from(self.offset_units) * UNIT_BYTES
    }

    pub(crate) fn taken_bytes(&self) -> u64 {
        u64::from(self.units) * UNIT_BYTES
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.hash.main.to_le_bytes());
        out.extend_from_slice(&self.hash.more.to_le_bytes());
        out.extend_from_slice(&u48(self.seq));
        out.extend_from_slice(&self.units.to_le_bytes());
        let code = self.kind.map_or(OWNER_CODE, |kind| kind.code().into());
        out.extend_from_slice(&(self.offset_units | code << OFFSET_BITS).to_le_bytes());
    }

    fn decode(bytes: &[u8], segment_bytes: u64) -> Result<Self, Malformed> {
        let word = bytes.u32_at(20);
        let code = word >> OFFSET_BITS;
        let kind = match code {
            OWNER_CODE => None,
            _ => Some(
                u8::try_from(code)
                    .ok()
                    .and_then(Kind::from_code)
                    .ok_or(Malformed::Range { field: "kind in a summary", found: code.into() })?,
            ),
        };
        let entry = Self {
            hash: KeyHash { main: bytes.u64_at(0), more: bytes.u32_at(8) },
            seq: bytes.u48_at(12),
            units: u16::from_le_bytes([bytes[18], bytes[19]]),
            offset_units: word & ((1 << OFFSET_BITS) - 1),
            kind,
        };
        if entry.offset_bytes() + entry.taken_bytes() > segment_bytes || entry.offset_units == 0 {
            return Err(Malformed::Range { field: "place in a summary", found: entry.offset_bytes() });
        }
        Ok(entry)
    }
}

/// Bytes at the end of a segment that a summary of so many lines takes, in whole blocks.
pub(crate) fn summary_bytes(entry_count: usize) -> u64 {
    wide((entry_count * ENTRY_BYTES + FOOTER_BYTES).next_multiple_of(BLOCK_BYTES))
}

/// The last bytes of a closed segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Footer {
    pub(crate) owner: u64,
    pub(crate) sequence: u64,
    /// Where the segment begins.
    pub(crate) address: u64,
    pub(crate) entry_count: u32,
    entries_crc: u32,
}

impl Footer {
    /// The blocks that end a segment.
    pub(crate) fn encode(owner: u64, sequence: u64, address: u64, entries: &[Entry]) -> Vec<u8> {
        let size = narrow(summary_bytes(entries.len()));
        let mut lines = Vec::with_capacity(entries.len() * ENTRY_BYTES);
        for entry in entries {
            entry.encode(&mut lines);
        }
        let mut out = vec![0; size - FOOTER_BYTES - lines.len()];
        out.extend_from_slice(&lines);
        let start = out.len();
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for number in [owner, sequence, address] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&crate::numbers::short(entries.len()).to_le_bytes());
        out.extend_from_slice(&format::crc32c(&lines).to_le_bytes());
        out.resize(size, 0);
        let crc = format::crc32c(&out[start + 8..]);
        out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The footer at the end of these bytes, which end with a segment that begins at `address`.
    pub(crate) fn decode(
        bytes: &[u8],
        owner: u64,
        address: u64,
        segment_bytes: u64,
    ) -> Result<Self, Malformed> {
        let Some(start) = bytes.len().checked_sub(FOOTER_BYTES) else { return Err(Malformed::Magic) };
        let bytes = &bytes[start..];
        if bytes.u32_at(0) != MAGIC {
            return Err(Malformed::Magic);
        }
        if format::crc32c(&bytes[8..]) != bytes.u32_at(4) {
            return Err(Malformed::Checksum);
        }
        if bytes.u64_at(8) != owner || bytes.u64_at(24) != address {
            return Err(Malformed::Elsewhere);
        }
        let entry_count = bytes.u32_at(32);
        if summary_bytes(small(entry_count)) > segment_bytes {
            return Err(Malformed::Range { field: "lines of a summary", found: entry_count.into() });
        }
        let sequence = bytes.u64_at(16);
        Ok(Self { owner, sequence, address, entry_count, entries_crc: bytes.u32_at(36) })
    }

    /// Bytes at the end of the segment that hold all of the summary.
    pub(crate) fn taken_bytes(&self) -> u64 {
        summary_bytes(small(self.entry_count))
    }

    /// The lines in these bytes, which end with the footer.
    pub(crate) fn entries(&self, bytes: &[u8], segment_bytes: u64) -> Result<Vec<Entry>, Malformed> {
        let length = small(self.entry_count) * ENTRY_BYTES;
        let Some(start) = bytes.len().checked_sub(FOOTER_BYTES + length) else {
            return Err(Malformed::Range { field: "bytes of a summary", found: wide(bytes.len()) });
        };
        let lines = &bytes[start..start + length];
        if format::crc32c(lines) != self.entries_crc {
            return Err(Malformed::Checksum);
        }
        lines.chunks_exact(ENTRY_BYTES).map(|line| Entry::decode(line, segment_bytes)).collect()
    }
}
