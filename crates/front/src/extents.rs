//! What lies behind ranges of a volume: runs of data and holes, each with its length in bytes and whether it
//! is a hole.

use block::{Interleave, Share};
use std::collections::VecDeque;

/// Extents reported at once.
const EXTENTS_MAX: usize = 1024;

/// Adds an extent behind those from `first` on, to the last of them if it is alike; `false` if there are as
/// many as are reported at once.
pub fn add_extent(out: &mut Vec<(u64, bool)>, first: usize, (length_bytes, hole): (u64, bool)) -> bool {
    let full = out.len() - first >= EXTENTS_MAX;
    match out[first..].last_mut() {
        Some((length, same)) if *same == hole => *length += length_bytes,
        Some(_) if full => return false,
        Some(_) | None => out.push((length_bytes, hole)),
    }
    true
}

/// Those of a range of a volume from those of its shards, each of which is asked once, however often their
/// units take turns.
pub fn weave_extents(
    map: Interleave,
    offset_bytes: u64,
    length_bytes: u64,
    mut ask: impl FnMut(Share) -> Vec<(u64, bool)>,
    out: &mut Vec<(u64, bool)>,
) {
    let mut of_shards: Vec<VecDeque<(u64, bool)>> = vec![VecDeque::new(); map.count().into()];
    for share in map.shares(offset_bytes, length_bytes) {
        of_shards[usize::from(share.shard)] = ask(share).into();
    }
    let first = out.len();
    for run in map.runs(offset_bytes, length_bytes) {
        let of_shard = &mut of_shards[usize::from(run.place.shard)];
        let mut left_bytes = run.length_bytes;
        while left_bytes > 0 {
            // A shard tells of a bounded number of extents.
            let Some((length, hole)) = of_shard.front_mut() else { return };
            let part_bytes = left_bytes.min(*length);
            (*length, left_bytes) = (*length - part_bytes, left_bytes - part_bytes);
            let extent = (part_bytes, *hole);
            if *length == 0 {
                of_shard.pop_front();
            }
            if !add_extent(out, first, extent) {
                return;
            }
        }
    }
}
