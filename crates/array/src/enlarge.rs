//! Growing as it is asked for: whether the array may, to what, whether there is memory for it, and shard
//! after shard if there are several.

use crate::grow::{GrowError, check_whole, plan_growth};
use crate::memory::MemoryNeed;
use crate::planted::{Planted, planted};
use crate::recovery::{Arrangement, confirm_size, grow_to};
use crate::restart::{AssembleError, RecoveryReport};
use block::{DevIndex, DeviceSet, Slice};
use format::ArrayConfig;

/// Lets an array that nobody runs grow to what its main devices have room for, and leaves it as an orderly
/// stop would. `devices` are whole devices; `shards` are all of the array's, in order, each with a nonce that
/// must be fresh and hard to guess; `may_write` is asked before anything is written to one. What the array
/// has become (the shape of its first shard), and what recovery did before.
///
/// After an error it is as large as it was; or as large as it was to become, if that was about the last
/// superblocks, of which any one is enough. Each shard becomes larger by itself, the first one last, so some
/// may have grown then; the smallest says how large the volume is. The next call lets the others follow.
pub fn grow(
    devices: &mut dyn DeviceSet,
    shards: &[(&Arrangement, u64)],
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<(ArrayConfig, RecoveryReport), GrowError> {
    for (arrangement, _) in shards {
        check_whole(arrangement.members.iter().map(|entry| entry.state))?;
    }
    let shapes: Vec<ArrayConfig> = shards.iter().map(|(arrangement, _)| arrangement.newest.config).collect();
    let main_count = shapes.first().map_or(0, |shape| shape.geometry.device_count());
    let mains = (0u16..).map(DevIndex::new).take(main_count);
    let sizes: Vec<u64> = mains.map(|dev| devices.size_bytes(dev)).collect();
    let goal = plan_growth(&shapes, &sizes)?;
    for before in &shapes {
        // Both tables are in memory for a while.
        let (old, new) = (MemoryNeed::of_shape(before), MemoryNeed::of_shape(&goal));
        let tables_bytes = old.tables_bytes.saturating_add(new.tables_bytes);
        MemoryNeed { tables_bytes, ..new }.check_granted()?;
    }
    let mut whole = None::<RecoveryReport>;
    for (&(arrangement, nonce), before) in shards.iter().zip(&shapes).rev() {
        let after = goal.sibling(before.shard.index);
        let mut devices = Slice::new(&mut *devices, after.roomy_extents());
        let report = if *before != after {
            grow_to(&mut devices, arrangement, nonce, &after, may_write)?
        } else if planted(Planted::GrowLeavesHalfTold) {
            continue;
        } else {
            // It may be known to one member alone that it has grown, and the others rely on that.
            confirm_size(&mut devices, arrangement, nonce, may_write)?
        };
        whole = Some(match whole {
            Some(whole) => whole.and(report),
            None => report,
        });
    }
    Ok((goal, whole.unwrap_or_default()))
}
