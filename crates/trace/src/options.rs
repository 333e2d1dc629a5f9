//! How a trace is prepared for replay, and why it cannot be.

use crate::{DevMode, TraceError};

/// The papers' segment.
pub const SEGMENT_BYTES: u64 = 1 << 20;

/// Which requests keep a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TouchedBy {
    /// Reads and writes.
    #[default]
    Transfers,
    /// Writes.
    Writes,
}

/// How to prepare a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareOptions {
    /// Whether untouched segments are dropped.
    pub compact: bool,
    /// Bytes in a segment: a power of two, a multiple of the chunk.
    pub segment_bytes: u64,
    /// Which requests keep a segment (and, without compaction, set the size of the volume).
    pub touched_by: TouchedBy,
    /// What to make of several devices.
    pub dev_mode: DevMode,
    /// Bytes in a chunk: a power of two from 512.
    pub chunk_bytes: u64,
    /// Whether starts are rounded down and ends up to chunks.
    pub round_to_chunk: bool,
    /// Whether reads, flushes and trims are left out.
    pub writes_only: bool,
    /// Ends the prepared trace after so many writes.
    pub write_limit: Option<u64>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self {
            compact: true,
            segment_bytes: SEGMENT_BYTES,
            touched_by: TouchedBy::Transfers,
            dev_mode: DevMode::Concatenate,
            chunk_bytes: 4096,
            round_to_chunk: true,
            writes_only: true,
            write_limit: None,
        }
    }
}

/// Why a trace could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The chunk is no power of two, or too small.
    #[error("chunk of {bytes} bytes, expected a power of two from 512")]
    Chunk {
        /// Chunk size asked for.
        bytes: u64,
    },
    /// The segment does not fit the chunk.
    #[error("segment of {bytes} bytes, expected a power of two from {chunk_bytes} (the chunk) to 2^40")]
    Segment {
        /// Segment size asked for.
        bytes: u64,
        /// Chunk size asked for.
        chunk_bytes: u64,
    },
    /// The trace touches too much.
    #[error("the trace touches more than {limit} segments; use larger segments")]
    TooManySegments {
        /// How many it may touch.
        limit: usize,
    },
    /// The volume would be larger than any device.
    #[error("the trace's devices end to end are larger than 2^63 bytes; compact it")]
    FootprintTooLarge,
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
