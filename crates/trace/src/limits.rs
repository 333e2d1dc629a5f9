//! What a trace may contain at most.

/// A line longer than this is a bad line; its content is not kept.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// The longest read or write a trace may contain, in bytes; longer ones are malformed lines.
///
/// The longest seen in a published trace is 44 MB. The bound keeps one line of a hostile file from costing
/// memory in proportion to a 64-bit number.
pub const MAX_TRANSFER_BYTES: u64 = 1 << 30;

/// No request ends beyond this byte, so that ends and their rounding up never overflow.
pub const MAX_END_BYTES: u64 = i64::MAX.cast_unsigned();
