//! What the fuzz targets share: blocks that pass the checks before the one to be fuzzed, and an array in
//! memory whose bytes the fuzzer changes.
#![forbid(unsafe_code)]

pub mod array;
pub mod nbd;
pub mod resp;
#[path = "../../crates/format/tests/bytes/samples/mod.rs"]
pub mod samples;

use block::META_BYTES;
use samples::{Place, is_same, rewrite};

/// Bytes of a block before its body: magic, version, address, array.
pub const HEAD_BYTES: usize = 32;

/// Makes the checksum of a metadata block match.
pub fn fix_crc(block: &mut [u8]) {
    let crc = format::crc32c(&block[..META_BYTES - 4]);
    block[META_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
}

/// Reads `data` as a block of `place`: as it is, and as the body of a block whose head and checksum are those
/// of `sample`. What is accepted must be written back as it was.
pub fn read_as(place: Place, sample: &[u8], data: &[u8]) {
    let _ = rewrite(place, data);
    let mut block = [0u8; META_BYTES];
    block[..HEAD_BYTES].copy_from_slice(&sample[..HEAD_BYTES]);
    let body = &data[..data.len().min(META_BYTES - 4 - HEAD_BYTES)];
    block[HEAD_BYTES..HEAD_BYTES + body.len()].copy_from_slice(body);
    fix_crc(&mut block);
    if let Ok(written) = rewrite(place, &block) {
        assert!(is_same(place, &written, &block), "{place:?}: changed by reading and writing");
    }
}

/// Reads `data` as every sample block whose place is chosen by `which`.
pub fn read_as_each(data: &[u8], which: impl Fn(Place) -> bool) {
    for sample in samples::all().iter().filter(|sample| which(sample.place)) {
        read_as(sample.place, &sample.block, data);
    }
}
