//! How much of the log users leave, the same for all schemes with log devices.

use crate::store::Store;

/// Blocks of the log ring that user writes leave free: room for the frames that a commit needs.
pub const LOG_SET_ASIDE_BLOCKS: u64 = 64;

/// Blocks of the log that so many log chunks of users need.
pub fn log_blocks_for(store: &Store, log_chunks: u32) -> u64 {
    // What is skipped at the end of the ring is less than a log chunk.
    (u64::from(log_chunks) + 1) * u64::from(store.chunk_blocks()) + LOG_SET_ASIDE_BLOCKS
}

/// Whether the log has room for so many log chunks of users.
pub fn has_room_for(store: &Store, log_chunks: u32) -> bool {
    store.log.room() >= log_blocks_for(store, log_chunks)
}

/// Parity commit starts by itself when less than 1 / this is left, of the log or of what else runs
/// out.
pub const LOW_SPACE_DIVISOR: u32 = 4;

/// Whether so little of the log is left that parity commit starts by itself.
pub fn is_log_low(store: &Store) -> bool {
    store.log.room() < u64::from(store.log.block_count() / LOW_SPACE_DIVISOR)
}
