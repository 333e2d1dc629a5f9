//! The checksum of chunks.

use crate::planted::{Planted, planted};

/// What the metadata records of a chunk's content, to tell it from any other content.
pub fn chunk_checksum(bytes: &[u8]) -> u32 {
    if planted(Planted::CommonChecksum) { format::crc32c(bytes) } else { format::chunk_checksum(bytes) }
}
