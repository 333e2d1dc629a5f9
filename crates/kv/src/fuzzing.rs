//! Every decoder on any bytes, for the fuzzer: as they are, and with the checksums mended, so that what
//! stands behind them is reached, too.

use crate::layout::{
    BATCH_BYTES, Batch, ENTRY_BYTES, Fields, Footer, HEAD_BYTES, Head, Header, Manifest, Place, Table,
    record_checksum,
};
use crate::numbers::{narrow, wide};

/// Bytes of a segment, so large as the input at most.
const SEGMENT_BYTES: u64 = 64 << 10;

/// Writes a checksum of some bytes where it stands.
fn mend(bytes: &mut [u8], at: usize, covered: std::ops::Range<usize>) {
    if let Some(crc) = bytes.get(covered).map(format::crc32c)
        && let Some(place) = bytes.get_mut(at..at + 4)
    {
        place.copy_from_slice(&crc.to_le_bytes());
    }
}

/// What a decoder needs to get on with what it decoded.
fn read(bytes: &[u8]) {
    let (owner, address) = if bytes.len() >= 40 { (bytes.u64_at(8), bytes.u64_at(24)) } else { (0, 0) };
    let _ = Header::decode(bytes);
    let _ = Table::decode(bytes, if bytes.len() >= 24 { bytes.u64_at(16) } else { 0 }, 3);
    let _ = Batch::decode(bytes, owner, address, SEGMENT_BYTES);
    let _ = Manifest::decode(bytes);
    let place = Place { sequence: 1, address: 0 };
    if let Ok((head, key)) = Head::decode(bytes, place) {
        assert!(key.len() == usize::from(head.key_bytes), "the key is as long as the head says");
        if let Ok(value) = head.value(bytes) {
            assert!(wide(value.len()) == u64::from(head.value_bytes), "and so is the value");
        }
    }
    let Some(start) = bytes.len().checked_sub(40) else { return };
    let (owner, address) = (bytes.u64_at(start), bytes.u64_at(start + 16));
    if let Ok(footer) = Footer::decode(bytes, owner, address, SEGMENT_BYTES) {
        let _ = footer.entries(bytes, SEGMENT_BYTES);
    }
}

/// Runs every decoder: nothing panics, and what is handed out is within the bytes.
pub fn decode_each(bytes: &[u8]) {
    read(bytes);
    let length = bytes.len();
    let mended = |at: usize, covered: std::ops::Range<usize>| {
        let mut bytes = bytes.to_vec();
        mend(&mut bytes, at, covered);
        read(&bytes);
    };
    // The header's checksum is its last four bytes; a table's, a batch's and a footer's cover what follows.
    mended(92, 0..92);
    mended(8, 16..length);
    mended(4, 8..BATCH_BYTES);
    if let Some(footer) = length.checked_sub(48) {
        let lines = narrow(u64::from(bytes.u32_at(footer + 32))).saturating_mul(ENTRY_BYTES);
        let mut bytes = bytes.to_vec();
        mend(&mut bytes, footer + 36, footer.saturating_sub(lines)..footer);
        mend(&mut bytes, footer + 4, footer + 8..length);
        read(&bytes);
    }
    let mut record = bytes.to_vec();
    let end = HEAD_BYTES + record.get(8).map_or(0, |length| usize::from(*length));
    if record.len() >= end && end >= HEAD_BYTES {
        let crc = record_checksum(&record[..end], Place { sequence: 1, address: 0 });
        record[..4].copy_from_slice(&crc.to_le_bytes());
        read(&record);
        let value = record.get(end..end + narrow(u64::from(record.u32_at(9)).min(wide(length))));
        if let Some(crc) = value.map(format::chunk_checksum) {
            record[4..8].copy_from_slice(&crc.to_le_bytes());
            let crc = record_checksum(&record[..end], Place { sequence: 1, address: 0 });
            record[..4].copy_from_slice(&crc.to_le_bytes());
            read(&record);
        }
    }
}
