//! A record: 5 bytes of metadata, key and value as in the paper (K-02), and before them what durability
//! needs.
//!
//! The checksum of the head covers the place of the record and the segment's sequence too, so that what an
//! earlier life of the same place left behind is no record.

use super::{Fields, Malformed, UNIT_BYTES, u48};
use crate::ask::KEY_BYTES_MAX;
use crate::numbers::{short, small, wide};

/// Bytes before the key.
pub(crate) const HEAD_BYTES: usize = 26;
/// Bytes that are enough to see a head, its key, and a manifest.
pub(crate) const HEAD_BYTES_MAX: usize = HEAD_BYTES + KEY_BYTES_MAX + MANIFEST_BYTES;
/// Bytes of a manifest.
pub(crate) const MANIFEST_BYTES: usize = 16;

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) enum Kind {
    /// A key and its value.
    Value,
    /// The key is deleted.
    Tombstone,
    /// One part of a large value; its key is the value's number and the part's.
    Part,
    /// A key, and where its value is: a manifest.
    Large,
    /// Everything before is deleted.
    Clear,
}

impl Kind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Value => 1,
            Self::Tombstone => 2,
            Self::Part => 3,
            Self::Large => 4,
            Self::Clear => 5,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Value, Self::Tombstone, Self::Part, Self::Large, Self::Clear]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// Where a record lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) address: u64,
}

/// A record without key and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) seq: u64,
    /// In milliseconds since 1970; 0: for ever.
    pub(crate) until_ms: u64,
    pub(crate) key_bytes: u8,
    pub(crate) value_bytes: u32,
    pub(crate) value_crc: u32,
}

/// Bytes that a record takes, a multiple of 16.
pub(crate) fn record_bytes(key_bytes: usize, value_bytes: usize) -> u64 {
    wide(HEAD_BYTES + key_bytes + value_bytes).next_multiple_of(UNIT_BYTES)
}

impl Head {
    /// The head of a record for this key and value.
    pub(crate) fn new(kind: Kind, seq: u64, until_ms: u64, key: &[u8], value: &[u8]) -> Self {
        Self {
            kind,
            seq,
            until_ms,
            key_bytes: u8::try_from(key.len()).expect("keys have at most 255 bytes"),
            value_bytes: short(value.len()),
            value_crc: format::chunk_checksum(value),
        }
    }

    pub(crate) fn taken_bytes(&self) -> u64 {
        record_bytes(usize::from(self.key_bytes), small(self.value_bytes))
    }

    /// Where the value begins.
    pub(crate) fn value_at(&self) -> usize {
        HEAD_BYTES + usize::from(self.key_bytes)
    }

    /// Appends a record; the caller has seen to it that `out` ends at its place.
    pub(crate) fn append(&self, out: &mut Vec<u8>, place: Place, key: &[u8], value: &[u8]) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.value_crc.to_le_bytes());
        out.push(self.key_bytes);
        out.extend_from_slice(&self.value_bytes.to_le_bytes());
        out.push(self.kind.code());
        out.extend_from_slice(&u48(self.seq));
        out.extend_from_slice(&u48(self.until_ms));
        out.extend_from_slice(key);
        let crc = checksum(&out[start..], place);
        out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(value);
        let taken = (out.len() - start).next_multiple_of(16);
        out.resize(start + taken, 0);
    }

    /// The head and key of the record at the beginning of these bytes. Of the value nothing is known yet.
    pub(crate) fn decode(bytes: &[u8], place: Place) -> Result<(Self, &[u8]), Malformed> {
        let (head, key) = Self::decode_verified(bytes)?;
        if checksum(&bytes[..head.value_at()], place) != bytes.u32_at(0) {
            return Err(Malformed::Checksum);
        }
        Ok((head, key))
    }

    /// The same of bytes that were verified before.
    pub(crate) fn decode_verified(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        if bytes.len() < HEAD_BYTES {
            return Err(Malformed::Range { field: "bytes of a record", found: wide(bytes.len()) });
        }
        let key_bytes = bytes[8];
        let end = HEAD_BYTES + usize::from(key_bytes);
        if bytes.len() < end {
            return Err(Malformed::Range { field: "length of a key", found: key_bytes.into() });
        }
        let kind = Kind::from_code(bytes[13])
            .ok_or(Malformed::Range { field: "kind of a record", found: bytes[13].into() })?;
        let head = Self {
            kind,
            seq: bytes.u48_at(14),
            until_ms: bytes.u48_at(20),
            key_bytes,
            value_bytes: bytes.u32_at(9),
            value_crc: bytes.u32_at(4),
        };
        Ok((head, &bytes[HEAD_BYTES..end]))
    }

    /// The value, if it is all there and is what was written.
    pub(crate) fn value<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
        let value = self.value_verified(bytes)?;
        if format::chunk_checksum(value) != self.value_crc {
            return Err(Malformed::Checksum);
        }
        Ok(value)
    }

    /// The same of bytes that were verified before.
    pub(crate) fn value_verified<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
        bytes
            .get(self.value_at()..)
            .and_then(|rest| rest.get(..small(self.value_bytes)))
            .ok_or(Malformed::Range { field: "length of a value", found: self.value_bytes.into() })
    }
}

/// The checksum that a head has.
#[cfg(feature = "fuzzing")]
pub(crate) fn record_checksum(head_and_key: &[u8], place: Place) -> u32 {
    checksum(head_and_key, place)
}

/// The checksum of a head and key, bound to their place; the first four bytes, where it stands, do not count.
fn checksum(head_and_key: &[u8], place: Place) -> u32 {
    let mut bytes = [0; 12 + HEAD_BYTES + KEY_BYTES_MAX];
    bytes[..8].copy_from_slice(&place.sequence.to_le_bytes());
    bytes[8..16].copy_from_slice(&place.address.to_le_bytes());
    let end = 12 + head_and_key.len();
    bytes[16..end].copy_from_slice(&head_and_key[4..]);
    format::crc32c(&bytes[..end])
}

/// Where the value of a large record is: in parts with this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    pub(crate) id: u64,
    pub(crate) value_bytes: u64,
}

impl Manifest {
    pub(crate) fn encode(&self) -> [u8; MANIFEST_BYTES] {
        let mut out = [0; MANIFEST_BYTES];
        out[..8].copy_from_slice(&self.id.to_le_bytes());
        out[8..].copy_from_slice(&self.value_bytes.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() != MANIFEST_BYTES {
            return Err(Malformed::Range { field: "length of a manifest", found: wide(bytes.len()) });
        }
        let value_bytes = bytes.u64_at(8);
        if value_bytes > crate::ask::VALUE_BYTES_MAX {
            return Err(Malformed::Range { field: "length of a large value", found: value_bytes });
        }
        Ok(Self { id: bytes.u64_at(0), value_bytes })
    }

    /// The key of a part's record.
    pub(crate) fn part_key(id: u64, index: u32) -> [u8; 12] {
        let mut key = [0; 12];
        key[..8].copy_from_slice(&id.to_le_bytes());
        key[8..].copy_from_slice(&index.to_le_bytes());
        key
    }
}
