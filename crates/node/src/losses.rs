//! Data that is lost: how much, and where.

use crate::running::Running;
use array::Engine;
use block::{Epoch, Interleave, Place};
use format::Superblock;
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
pub fn of_running(running: &Running) -> Option<Lost> {
    let map = running.interleave();
    let of_shards =
        (0u16..).zip(running.engines()).filter_map(|(shard, engine)| of_shard(map, shard, engine));
    of_shards.reduce(Lost::and)
}

/// What a shard has lost; `None` if nothing.
fn of_shard(map: Interleave, shard: u16, engine: &Engine) -> Option<Lost> {
    let losses = engine.losses();
    let known = losses.chunks.count();
    if known == 0 && losses.noted == 0 && !losses.unfinished {
        return None;
    }
    let chunk = engine.store().config.geometry.chunk_bytes() as u64;
    let mut ranges = Vec::new();
    let mut ranges_omitted = 0;
    for (first, count) in losses.chunks.stretches() {
        if ranges.len() < RANGES_MAX {
            put_range(map, Place { shard, offset_bytes: first * chunk }, count * chunk, &mut ranges);
        } else {
            ranges_omitted += 1;
        }
    }
    let chunks = known.max(losses.noted);
    Some(Lost {
        chunks,
        bytes: chunks.saturating_mul(chunk),
        ranges_omitted,
        ranges,
        is_complete: losses.noted == 0 && losses.chunks.is_complete(),
        rebuild_waits: losses.unfinished,
    })
}

/// A range of a shard's volume as ranges of the whole, one for each unit that it touches. What lies behind
/// the last unit holds nothing.
fn put_range(map: Interleave, place: Place, length_bytes: u64, ranges: &mut Vec<Range>) {
    let (mut at, end) = (place.offset_bytes, place.offset_bytes + length_bytes);
    while at < end {
        let offset_bytes = map.address(Place { offset_bytes: at, ..place });
        if offset_bytes >= map.volume_bytes() {
            return;
        }
        let length_bytes = map.run_bytes(offset_bytes).min(end - at);
        ranges.push(Range { offset_bytes, length_bytes });
        at += length_bytes;
    }
}

impl Lost {
    /// With what another shard has lost.
    fn and(mut self, mut other: Self) -> Self {
        self.ranges.append(&mut other.ranges);
        self.ranges.sort_unstable_by_key(|range| range.offset_bytes);
        let cut_off = self.ranges.iter().skip(RANGES_MAX).fold(0, |count, _| count + 1);
        self.ranges.truncate(RANGES_MAX);
        Self {
            chunks: self.chunks.saturating_add(other.chunks),
            bytes: self.bytes.saturating_add(other.bytes),
            ranges: self.ranges,
            ranges_omitted: self.ranges_omitted + other.ranges_omitted + cut_off,
            is_complete: self.is_complete && other.is_complete,
            rebuild_waits: self.rebuild_waits || other.rebuild_waits,
        }
    }
}

/// That an array was started by force once, and nobody has cleared that.
pub fn describe_forced(epoch: Epoch) -> String {
    format!(
        "the array was started by --force, as assembly {epoch}, although durable data was lost or may be wrong; nobody has cleared \
         that since"
    )
}

/// What the superblocks of the shards of an array that does not run say; `None` if nothing is lost.
pub fn of_superblocks<'a>(superblocks: impl Iterator<Item = &'a Superblock>) -> Option<Lost> {
    superblocks.filter_map(of_superblock).reduce(Lost::and)
}

fn of_superblock(superblock: &Superblock) -> Option<Lost> {
    let chunks = superblock.losses.chunks;
    let bytes = chunks.saturating_mul(superblock.config.geometry.chunk_bytes() as u64);
    let (ranges, ranges_omitted) = (Vec::new(), 0);
    let lost = Lost { chunks, bytes, ranges, ranges_omitted, is_complete: false, rebuild_waits: false };
    (chunks > 0).then_some(lost)
}
