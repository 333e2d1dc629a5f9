//! Numbers of the virtio block device (Virtual I/O Device specification 1.2, section 5.2), and what it says
//! of itself.

use crate::export::Export;

/// Bytes of the head of a request: what, reserved, sector.
pub const HEADER_BYTES: usize = 16;
/// Sectors of requests, whatever the device's block size.
pub const SECTOR_BYTES: u64 = 512;
/// Bytes of a range to be discarded or zeroed.
pub const RANGE_BYTES: usize = 16;
/// Ranges that one discard may have: each is a request to the volume of its own.
pub const RANGES_MAX: usize = 16;
/// Longest read or write, as over NBD.
pub const REQUEST_BYTES_MAX: u64 = 32 << 20;
/// Descriptors with payload of one request, as told to the client; its rings need not be longer than that.
const SEGMENTS_MAX: u32 = 126;
/// Longest discard that the client is told of: 2 GiB, whole chunks of any size.
const DISCARD_SECTORS_MAX: u32 = 4 << 20;
/// Rings: a virtual machine has one for each of its processors, and is refused more than this.
pub const RINGS_MAX: u16 = 64;

/// What a request asks for.
pub mod kind {
    pub const READ: u32 = 0;
    pub const WRITE: u32 = 1;
    pub const FLUSH: u32 = 4;
    pub const GET_ID: u32 = 8;
    pub const DISCARD: u32 = 11;
    pub const WRITE_ZEROES: u32 = 13;
}

/// How a request ended.
pub mod status {
    pub const OK: u8 = 0;
    pub const IO_ERROR: u8 = 1;
    pub const UNSUPPORTED: u8 = 2;
}

/// Flag of a range to be zeroed: its space may be given back.
pub const UNMAP: u32 = 1;

/// What device and client may agree on.
pub mod feature {
    pub const SEG_MAX: u64 = 1 << 2;
    pub const READ_ONLY: u64 = 1 << 5;
    pub const BLK_SIZE: u64 = 1 << 6;
    pub const FLUSH: u64 = 1 << 9;
    pub const TOPOLOGY: u64 = 1 << 10;
    pub const MULTI_QUEUE: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const WRITE_ZEROES: u64 = 1 << 14;
    pub const INDIRECT: u64 = 1 << 28;
    pub const EVENT_INDEX: u64 = 1 << 29;
    pub const VERSION_1: u64 = 1 << 32;
}

/// A length as addresses count it.
pub fn wide(length: usize) -> u64 {
    u64::try_from(length).expect("a length of memory has 64 bits at most")
}

/// A length as memory counts it.
pub fn narrow(length: u32) -> usize {
    usize::try_from(length).expect("memory has 32 bits at least")
}

/// What is offered.
pub fn features(export: &Export) -> u64 {
    let always = feature::SEG_MAX
        | feature::BLK_SIZE
        | feature::FLUSH
        | feature::TOPOLOGY
        | feature::MULTI_QUEUE
        | feature::INDIRECT
        | feature::EVENT_INDEX
        | feature::VERSION_1;
    let more = if export.read_only { feature::READ_ONLY } else { feature::DISCARD | feature::WRITE_ZEROES };
    always | more
}

/// The configuration space.
pub fn config(export: &Export) -> Vec<u8> {
    let block = u32::try_from(SECTOR_BYTES).expect("a sector is short");
    let best = u32::try_from(export.preferred_bytes).unwrap_or(block).max(block);
    // Page-sized writes are no worse than chunks; more than a page would make file systems refuse to start.
    let physical_exponent = u8::try_from((best.min(4096) / block).ilog2()).expect("at most 3");
    let best_blocks = best / block;
    let mut out = Vec::with_capacity(60);
    out.extend((export.size_bytes / SECTOR_BYTES).to_le_bytes());
    out.extend(0u32.to_le_bytes()); // size_max: not limited
    out.extend(SEGMENTS_MAX.to_le_bytes());
    out.extend([0; 4]); // geometry: none
    out.extend(block.to_le_bytes());
    out.extend([physical_exponent, 0]); // and the offset of the first whole one
    out.extend(u16::try_from(best_blocks).unwrap_or(u16::MAX).to_le_bytes());
    out.extend(best_blocks.to_le_bytes());
    out.extend([1, 0]); // writes wait for a flush
    out.extend(RINGS_MAX.to_le_bytes());
    for _ in ["discard", "write zeroes"] {
        out.extend(DISCARD_SECTORS_MAX.to_le_bytes());
        out.extend(u32::try_from(RANGES_MAX).expect("few").to_le_bytes());
        // Where discards are best aligned; then, whether zeros may free space.
        if out.len() < 48 {
            out.extend(best_blocks.to_le_bytes());
        }
    }
    out.extend([1, 0, 0, 0]);
    out
}

/// A range to be discarded or zeroed: sector, sectors, flags.
pub fn range(bytes: [u8; RANGE_BYTES]) -> (u64, u32, u32) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
    let sector = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    (sector, u32::from_le_bytes([i, j, k, l]), u32::from_le_bytes([m, n, o, p]))
}

/// The head of a request: what, sector.
pub fn header(bytes: [u8; HEADER_BYTES]) -> (u32, u64) {
    let [a, b, c, d, _, _, _, _, i, j, k, l, m, n, o, p] = bytes;
    (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes([i, j, k, l, m, n, o, p]))
}
