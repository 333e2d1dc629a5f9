//! What an array becomes when its devices have become larger (docs/decisions/0037-growing.md).
//!
//! Chunks stay where they are: the data region begins where it began and goes on, and the metadata regions,
//! larger than before, are laid out anew behind it, in room that nothing has used yet.

use crate::planted::{Planted, planted};
use crate::restart::AssembleError;
use crate::shape::{
    RESERVE_CHUNKS_MIN, RESERVE_PERMILLE_DEFAULT, RESERVE_PERMILLE_ELASTIC, chunks_max, with_regions,
};
use block::DevIndex;
use format::{ArrayConfig, Consistency, MemberState, Moved};

/// Why an array does not grow. It is as large as it was, and all that it held is there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GrowError {
    /// Shards differ in what growing leaves alone.
    #[error("shard {index} has a shape that no growth of the others explains: the array cannot grow")]
    Shapes {
        /// The first that does.
        index: u16,
    },
    /// Nothing is recorded of what was written, so what the new room holds would be read, and its parity
    /// computed, after a power cut.
    #[error(
        "the array has no record of what was written (`--consistency resync`), so that whatever the new room holds would be \
         read as data: it cannot grow"
    )]
    Resync,
    /// Growing needs every member whole.
    #[error(
        "device {dev} is {what}: every member must be in service and whole before the array grows (`replace` or `online` it)"
    )]
    NotWhole {
        /// Which member.
        dev: DevIndex,
        /// What it is instead.
        what: &'static str,
    },
    /// The smallest device decides.
    #[error(
        "device {dev} has {found_bytes} bytes, the array uses {used_bytes} of every data device and needs {needed_bytes} to \
         grow at all: {} bytes more",
        needed_bytes - found_bytes
    )]
    TooSmall {
        /// The smallest member.
        dev: DevIndex,
        /// Its size.
        found_bytes: u64,
        /// What is used of it.
        used_bytes: u64,
        /// What the smallest array larger than this one needs.
        needed_bytes: u64,
    },
    /// A device is smaller than what is on it.
    #[error("device {dev} has {found_bytes} bytes, the array uses {used_bytes}: it has shrunk")]
    Shrunk {
        /// Which member.
        dev: DevIndex,
        /// Its size.
        found_bytes: u64,
        /// What is used of it.
        used_bytes: u64,
    },
    /// There are no numbers for more chunks.
    #[error("the array has as many chunks as can be numbered: {chunks} of each device")]
    Full {
        /// Chunks of each device.
        chunks: u32,
    },
    /// A member failed before the array had grown.
    #[error(
        "device {dev} failed while the array was growing: it is as large as it was, and degraded; `replace` the device first"
    )]
    MemberFailed {
        /// Which member.
        dev: DevIndex,
    },
    /// The array could not be assembled, or written to.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
}

/// Whether an array of several shards was cut short when it grew: some have grown, others not yet.
pub fn is_half_grown(shapes: &[ArrayConfig]) -> bool {
    shapes.iter().any(|shape| shapes.first().is_some_and(|first| *shape != first.sibling(shape.shard.index)))
}

/// What the shards of these shapes, in order, become on main devices of these sizes, in order: the shape of
/// the first of them. If some have grown already, the others follow them before any grows further.
pub fn plan_growth(shapes: &[ArrayConfig], main_bytes: &[u64]) -> Result<ArrayConfig, GrowError> {
    let first = shapes.first().ok_or(GrowError::Assemble(AssembleError::NoMembers))?;
    let largest = shapes.iter().max_by_key(|shape| shape.chunks_per_device).unwrap_or(first);
    let goal = largest.sibling(0);
    if !is_half_grown(shapes) {
        return grown_config(first, main_bytes);
    }
    let strange = shapes.iter().find(|shape| !leads_to(shape, &goal));
    if let Some(strange) = strange {
        return Err(GrowError::Shapes { index: strange.shard.index });
    }
    let (dev, found_bytes) = smallest(main_bytes);
    let used_bytes = goal.whole_main_bytes();
    if found_bytes < used_bytes {
        return Err(GrowError::Shrunk { dev, found_bytes, used_bytes });
    }
    Ok(goal)
}

/// Whether a shard of one shape can grow to another, or has it.
fn leads_to(before: &ArrayConfig, after: &ArrayConfig) -> bool {
    let after = after.sibling(before.shard.index);
    let same_but_size = ArrayConfig {
        chunks_per_device: after.chunks_per_device,
        stripe_count: after.stripe_count,
        full_blocks: after.full_blocks,
        incremental_blocks: after.incremental_blocks,
        journal_blocks: after.journal_blocks,
        payload_blocks: after.payload_blocks,
        page_blocks: after.page_blocks,
        moved: after.moved,
        ..*before
    };
    let stays = after.data_start() == before.data_start() && after.stripe_count >= before.stripe_count;
    let is_behind = stays && after.metadata_start() >= before.main_device_bytes();
    *before == after || (same_but_size == after && is_behind)
}

/// The main device that decides, and its size.
fn smallest(main_bytes: &[u64]) -> (DevIndex, u64) {
    let devices = (0u16..).map(DevIndex::new).zip(main_bytes.iter().copied());
    devices.min_by_key(|&(dev, bytes)| (bytes, dev)).unwrap_or_default()
}

/// The array, or a shard, as it becomes on main devices of these sizes, in order. The smallest decides.
pub fn grown_config(before: &ArrayConfig, main_bytes: &[u64]) -> Result<ArrayConfig, GrowError> {
    if before.scheme.is_in_place() && before.consistency == Consistency::Resync {
        return Err(GrowError::Resync);
    }
    let (dev, found_bytes) = smallest(main_bytes);
    let used_bytes = before.whole_main_bytes();
    if found_bytes < used_bytes {
        return Err(GrowError::Shrunk { dev, found_bytes, used_bytes });
    }
    let room_bytes = before.room_of(found_bytes);
    let chunk = before.chunk_bytes();
    let most = u32::try_from(chunks_max(before.scheme, before.geometry)).unwrap_or(u32::MAX);
    let is_larger = |chunks: u32| {
        let after = grown_to(before, chunks);
        after.is_some_and(|after| after.whole_volume_bytes() > before.whole_volume_bytes())
    };
    // All of the new metadata is behind everything that there is: that is what a power cut falls back on.
    let used_end =
        if planted(Planted::GrowOverMetadata) { before.data_end() } else { before.main_device_bytes() };
    let beyond = (used_end - before.data_start()).div_ceil(chunk);
    let beyond = u32::try_from(beyond).unwrap_or(u32::MAX).max(before.chunks_per_device);
    // One unit more, or a chunk, whatever the reserve takes of it.
    let enough = most.min(beyond.saturating_mul(2).saturating_add(1 << 21));
    let least =
        first_that(beyond, enough, is_larger).ok_or(GrowError::Full { chunks: before.chunks_per_device })?;
    let bytes_of = |chunks| grown_to(before, chunks).map_or(u64::MAX, |after| after.main_device_bytes());
    let fit = u32::try_from(room_bytes.saturating_sub(before.data_start()) / chunk).unwrap_or(u32::MAX);
    let too_many = most.min(fit.saturating_add(1)).max(least);
    let too_large = first_that(least, too_many, |chunks| bytes_of(chunks) > room_bytes);
    let chunks = match too_large {
        None => most,
        Some(chunks) if chunks > least => chunks - 1,
        Some(_) => {
            let needed_bytes = before.main_bytes_for(bytes_of(least));
            return Err(GrowError::TooSmall { dev, found_bytes, used_bytes, needed_bytes });
        }
    };
    grown_to(before, chunks).ok_or(GrowError::Full { chunks: before.chunks_per_device })
}

/// The first number of `low..=high` of which something holds that holds of all larger ones, too.
fn first_that(mut low: u32, high: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    let mut end = high;
    if low > high || !holds(high) {
        return None;
    }
    while low < end {
        let middle = low + (end - low) / 2;
        if holds(middle) { end = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// The array with so many chunks on each main device; `None` if that is no array.
fn grown_to(before: &ArrayConfig, chunks: u32) -> Option<ArrayConfig> {
    let data_start_bytes = before.data_start();
    let mut after = ArrayConfig { chunks_per_device: chunks, moved: Moved::NEVER, ..*before };
    let stripes = u64::from(chunks.checked_sub(reserve_of(before, chunks))?);
    after.stripe_count = if before.scheme.is_elastic() { stripes.min(after.stripes_max()) } else { stripes };
    after.stripe_count = after.stripe_count.max(before.stripe_count);
    after = with_regions(after)?;
    after.full_blocks = after.full_blocks.max(before.full_blocks);
    after.incremental_blocks = after.incremental_blocks.max(before.incremental_blocks);
    after.journal_blocks = after.journal_blocks.max(before.journal_blocks);
    after.payload_blocks = after.payload_blocks.max(before.payload_blocks);
    after.page_blocks = after.page_blocks.max(before.page_blocks);
    let data_bytes = u64::from(chunks) * before.chunk_bytes();
    let metadata_start_bytes = data_start_bytes.checked_add(data_bytes)?;
    after.moved = Moved { data_start_bytes, metadata_start_bytes };
    after = after.with_aligned_payload();
    after.validate().ok()?;
    Some(after)
}

/// Chunks of each main device that are no stripes, as large a share as there is now. What is kept whatever
/// the size (the least reserve; of elastic arrays the units besides those that hold data) is no share: of an
/// array that had no more than that, what a new one would keep by itself counts, if that is less.
fn reserve_of(before: &ArrayConfig, chunks: u32) -> u32 {
    let had = u64::from(before.chunks_per_device).saturating_sub(before.stripe_count);
    if before.scheme.is_in_place() {
        return u32::try_from(had).unwrap_or(u32::MAX);
    }
    let share = (had * u64::from(chunks)).div_ceil(u64::from(before.chunks_per_device).max(1));
    let elastic = before.scheme.is_elastic();
    let had_least =
        had <= u64::from(RESERVE_CHUNKS_MIN) || (elastic && before.stripe_count == before.stripes_max());
    let permille = if elastic { RESERVE_PERMILLE_ELASTIC } else { RESERVE_PERMILLE_DEFAULT };
    let usual = (u64::from(chunks) * u64::from(permille) / 1000).max(RESERVE_CHUNKS_MIN.into());
    let reserve = if had_least { share.min(usual) } else { share };
    u32::try_from(reserve.max(had.min(RESERVE_CHUNKS_MIN.into()))).unwrap_or(u32::MAX)
}

/// Every member is in service and whole.
pub fn check_whole(states: impl Iterator<Item = MemberState>) -> Result<(), GrowError> {
    for (dev, state) in (0u16..).map(DevIndex::new).zip(states) {
        let what = match state {
            MemberState::Healthy => continue,
            MemberState::Failed => "out of service",
            MemberState::Absent => "absent",
            MemberState::Rebuilding => "being rebuilt",
        };
        return Err(GrowError::NotWhole { dev, what });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
