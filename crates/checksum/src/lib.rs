//! The two checksums of the format: CRC-32C for metadata blocks, CRC-64/NVME folded to 32 bits for chunks.
//!
//! Users' data often carries a CRC-32C of itself (ext4 and XFS metadata, database pages, fio), and a message
//! followed by its own CRC has the same CRC whatever it says: two versions of such a chunk would not be told
//! apart by CRC-32C, nor would their XOR parities. CRC-64/NVME is used inside devices, not in what is stored
//! on them (`docs/decisions/0008-chunk-checksum.md`).
//!
//! A library computes both. CPUs with 256-bit carry-less multiplication, but without AVX-512, for which it
//! has 128-bit code only, shorten a chunk with code of this crate first (`wide`).
#![deny(unsafe_code)]

mod wide;

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli, as in iSCSI, Btrfs and ext4) of a metadata block up to its checksum field.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The same, one piece at a time.
#[derive(Clone)]
pub struct Crc32c(Digest);

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc32c {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of what was added so far.
    pub fn finish(&self) -> u32 {
        u32::try_from(self.0.finalize()).expect("a CRC-32C has 32 bits")
    }
}

/// The checksum of a chunk, data, parity or log, as recorded in the metadata: both halves of
/// its CRC-64/NVME combined.
pub fn chunk_checksum(bytes: &[u8]) -> u32 {
    let crc = match wide::shorten(bytes) {
        Some(short) => crc_fast::crc64_nvme(short.bytes()),
        None => crc_fast::crc64_nvme(bytes),
    };
    (crc >> 32) as u32 ^ crc as u32
}

#[cfg(test)]
mod tests {
    use super::{Crc32c, chunk_checksum, crc32c};

    /// RFC 3720, appendix B.4.
    #[test]
    fn agrees_with_the_published_vectors() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
    }

    #[test]
    fn pieces_are_the_whole() {
        let mut pieces = Crc32c::new();
        pieces.update(b"1234");
        pieces.update(b"56789");
        assert_eq!(pieces.finish(), crc32c(b"123456789"));
    }

    /// NVM Command Set Specification 1.0, section 5.2.1.3.4; 0xae8b14860a799888 is the published check value.
    #[test]
    fn chunks_have_a_folded_crc64_nvme() {
        assert_eq!(chunk_checksum(b"123456789"), 0xae8b_1486 ^ 0x0a79_9888);
        assert_eq!(chunk_checksum(&[0; 4096]), 0x6482_d367 ^ 0xeb22_b64e);
        assert_eq!(chunk_checksum(&[0xff; 4096]), 0xc0dd_ba73 ^ 0x02ec_a3ac);
    }

    #[test]
    fn versions_that_carry_their_own_crc_differ() {
        let version = |text: &[u8; 60]| {
            let mut chunk = vec![7; 4096];
            chunk[512..572].copy_from_slice(text);
            let own = crc32c(&chunk[512..572]).to_le_bytes();
            chunk[572..576].copy_from_slice(&own);
            chunk
        };
        let (one, other) = (version(&[1; 60]), version(&[2; 60]));
        assert_eq!(crc32c(&one), crc32c(&other), "or the example shows nothing");
        assert_ne!(chunk_checksum(&one), chunk_checksum(&other));
    }
}
