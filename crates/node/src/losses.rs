//! Data that is lost: how much, and where.

use array::Engine;
use serde::{Deserialize, Serialize};

/// Ranges that are listed at most.
const RANGES_MAX: usize = 1000;

/// A part of the volume.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
}

/// What is lost, as far as known.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Chunks of the volume that cannot be read nor rebuilt.
    pub chunks: u64,
    /// The same in bytes.
    pub bytes: u64,
    /// Where they are, in order; at most a thousand.
    pub ranges: Vec<Range>,
    /// Ranges beyond those listed.
    pub ranges_omitted: u64,
    /// Whether all of the volume was looked at since the array was last in doubt. If not, there may be
    /// more, and what was lost before the last start may be found to be whole.
    pub is_complete: bool,
    /// A rebuild could not make everything whole; it is tried again when what is lost was rewritten or
    /// discarded.
    pub rebuild_waits: bool,
}

/// What a running array has lost; `None` if nothing.
pub fn of_engine(engine: &Engine) -> Option<Lost> {
    let losses = engine.losses();
    let known = losses.chunks.count();
    if known == 0 && losses.noted == 0 && !losses.unfinished {
        return None;
    }
    let chunk = engine.store().config.geometry.chunk_bytes() as u64;
    let range =
        |(first, count): (u64, u64)| Range { offset_bytes: first * chunk, length_bytes: count * chunk };
    let ranges: Vec<Range> = losses.chunks.stretches().take(RANGES_MAX).map(range).collect();
    let listed = losses.chunks.stretches().count();
    let chunks = known.max(losses.noted);
    Some(Lost {
        chunks,
        bytes: chunks.saturating_mul(chunk),
        ranges_omitted: (listed - ranges.len()) as u64,
        ranges,
        is_complete: losses.noted == 0 && losses.chunks.is_complete(),
        rebuild_waits: losses.unfinished,
    })
}

/// What the superblocks of an array that does not run say; `None` if nothing is lost.
pub fn of_superblock(superblock: &format::Superblock) -> Option<Lost> {
    let chunks = superblock.lost_chunks;
    let bytes = chunks.saturating_mul(superblock.config.geometry.chunk_bytes() as u64);
    let (ranges, ranges_omitted) = (Vec::new(), 0);
    let lost = Lost { chunks, bytes, ranges, ranges_omitted, is_complete: false, rebuild_waits: false };
    (chunks > 0).then_some(lost)
}
