//! Growing as it is asked for: whether the array may, to what, and whether there is memory for it.

use crate::grow::{GrowError, check_whole, grown_config};
use crate::memory::MemoryNeed;
use crate::recovery::{Arrangement, grow_to};
use crate::restart::{AssembleError, RecoveryReport};
use block::{DevIndex, DeviceSet};
use format::ArrayConfig;

/// Lets an array that nobody runs grow to what its main devices have room for, and leaves it as an orderly
/// stop would. `nonce` must be fresh and hard to guess; `may_write` is asked before anything is written. What
/// the array has become, and what recovery did before. After an error it is as large as it was; or as large
/// as it was to become, if that was about the last superblocks, of which any one is enough.
pub fn grow(
    devices: &mut dyn DeviceSet,
    arrangement: &Arrangement,
    nonce: u64,
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<(ArrayConfig, RecoveryReport), GrowError> {
    let before = arrangement.newest.config;
    check_whole(arrangement.members.iter().map(|entry| entry.state))?;
    let mains = (0u16..).map(DevIndex::new).take(before.geometry.device_count());
    let sizes: Vec<u64> = mains.map(|dev| devices.size_bytes(dev)).collect();
    let after = grown_config(&before, &sizes)?;
    // Both tables are in memory for a while.
    let (old, new) = (MemoryNeed::of_shape(&before), MemoryNeed::of_shape(&after));
    MemoryNeed { tables_bytes: old.tables_bytes.saturating_add(new.tables_bytes), ..new }.check_granted()?;
    let report = grow_to(devices, arrangement, nonce, &after, may_write)?;
    Ok((after, report))
}
