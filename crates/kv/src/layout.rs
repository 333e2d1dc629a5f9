//! Bytes on the volume, little-endian: geometry and header, batches, records, summaries, the table of
//! segments.
//!
//! `docs/kv.md` has the tables. What a decoder hands out was verified: checksum, owner, place and lengths.

mod batch;
mod header;
mod record;
mod summary;
mod table;

pub(crate) use batch::{BATCH_BYTES, Batch, Durable, STREAMS};
pub(crate) use header::{Geometry, HEADER_PLACES, Header};
#[cfg(feature = "fuzzing")]
pub(crate) use record::record_checksum;
pub(crate) use record::{
    HEAD_BYTES, HEAD_BYTES_MAX, Head, Kind, MANIFEST_BYTES, Manifest, Place, record_bytes,
};
#[cfg(test)]
pub(crate) use summary::FOOTER_BYTES;
pub(crate) use summary::{ENTRY_BYTES, Entry, Footer, summary_bytes};
pub(crate) use table::{Table, table_bytes};

pub use header::VolumeShape;

/// Records begin at multiples of this.
pub(crate) const UNIT_BYTES: u64 = 16;

/// Bytes of the volume that nobody can read as what they should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// They do not begin as they should.
    Magic,
    /// The checksum is another.
    Checksum,
    /// They belong to another store, another segment, or another place.
    Elsewhere,
    /// A version that this program does not know.
    Version {
        /// The version found.
        found: u32,
    },
    /// A number is outside of what is possible.
    Range {
        /// Which.
        field: &'static str,
        /// What was found.
        found: u64,
    },
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Magic => f.write_str("the magic bytes are missing"),
            Self::Checksum => f.write_str("the checksum differs"),
            Self::Elsewhere => f.write_str("it belongs to another store or place"),
            Self::Version { found } => write!(f, "it has version {found}, and versions 1 and 2 are expected"),
            Self::Range { field, found } => write!(f, "{field} is {found}, which is impossible"),
        }
    }
}

/// Numbers in bytes, by offset.
pub(crate) trait Fields {
    fn u32_at(&self, at: usize) -> u32;
    fn u64_at(&self, at: usize) -> u64;
    fn u48_at(&self, at: usize) -> u64;
}

impl Fields for [u8] {
    #[inline]
    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self[at..at + 4].try_into().expect("four bytes"))
    }

    #[inline]
    fn u64_at(&self, at: usize) -> u64 {
        u64::from_le_bytes(self[at..at + 8].try_into().expect("eight bytes"))
    }

    #[inline]
    fn u48_at(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word[..6].copy_from_slice(&self[at..at + 6]);
        u64::from_le_bytes(word)
    }
}

/// The low 48 bits of a number that has no more.
#[inline]
fn u48(number: u64) -> [u8; 6] {
    debug_assert!(number >> 48 == 0, "the number has 48 bits");
    number.to_le_bytes()[..6].try_into().expect("six bytes")
}

#[cfg(test)]
mod tests;
