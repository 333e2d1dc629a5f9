//! The one checksum of the format: CRC-32C (Castagnoli, as in iSCSI, Btrfs and ext4).

/// CRC-32C of `bytes`: of a chunk as recorded in the metadata, or of a metadata block up to its checksum field.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

#[cfg(test)]
mod tests {
    use super::crc32c;

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
}
