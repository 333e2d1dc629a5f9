//! Which bytes of a member hold nothing that anybody needs: whoever copies a device passes over them.

use super::Engine;
use block::{ChunkIndex, DevIndex};
use std::ops::Range;

/// Shorter runs are not worth a gap between two transfers.
const RUN_BYTES_MIN: u64 = 64 << 10;
/// Runs that are told at once.
const RUNS_MAX: usize = 4096;

impl Engine {
    /// Ranges of `within`, bytes of member `dev`, that hold nothing now, in ascending order, and up to where
    /// that is all of them. Chunks freed of late count as held until nobody can need them. Where chunks have
    /// their places for good, everything is held.
    pub fn unused_on(&self, dev: DevIndex, within: &Range<u64>) -> (Vec<Range<u64>>, u64) {
        let store = &self.core.store;
        let (config, mut ranges) = (&store.config, Vec::new());
        let Some(space) = store.spaces.get(dev.index()) else { return (ranges, within.end) };
        let (data_start, chunk_bytes) =
            (config.data_start(), u64::try_from(config.geometry.chunk_bytes()).unwrap_or(u64::MAX));
        let chunk_at = |bytes: u64| {
            let chunk = 1 + bytes.saturating_sub(data_start).div_ceil(chunk_bytes);
            u32::try_from(chunk)
                .map_or(config.chunks_per_device + 1, |at| at.min(config.chunks_per_device + 1))
        };
        let (mut first, end) = (chunk_at(within.start), chunk_at(within.end));
        while let Some(run) = space.unused_run(&store.table, first, end) {
            first = run.end;
            let start = config.chunk_offset_from(data_start, ChunkIndex::new(run.start));
            let bytes = start..start + u64::from(run.end - run.start) * chunk_bytes;
            if bytes.end - bytes.start >= RUN_BYTES_MIN.max(chunk_bytes) {
                ranges.push(bytes.clone());
            }
            if ranges.len() == RUNS_MAX {
                return (ranges, bytes.end);
            }
        }
        (ranges, within.end)
    }
}
