//! What a device forgets that comes to a member's place.
//!
//! It may have been a member before, of the same array: then, if it was started without the others, it holds
//! what assemblies of its own have written, with epochs as high as those to come here. By its superblocks it
//! is nobody once they are overwritten; but it will be a member again, and a start believes the newest
//! checkpoint and the newest frames of all members. So it forgets its checkpoints and its ring of frames,
//! too. What a start cannot find without those, or tells apart by the nonce of the assembly that wrote it
//! (pages of the table in their slots, payloads, what is in the log region), stays until it is written over.

use crate::planted::{Planted, planted};
use block::{DevIndex, DeviceSet, IoFault, META_BYTES};
use format::{ArrayConfig, SUPERBLOCK_OFFSETS};

/// Blocks that are looked at, and overwritten, at once.
const PIECE_BLOCKS: usize = 64;

/// Overwrites, on a device that is nobody's from now on, what a start would believe of it: in the slice that
/// `devices` are, which is laid out as `config` says. The superblocks come first, and are flushed: whatever
/// happens then, it is nobody. What comes after them is not flushed.
pub fn forget(devices: &mut dyn DeviceSet, dev: DevIndex, config: &ArrayConfig) -> Result<(), IoFault> {
    for offset in SUPERBLOCK_OFFSETS {
        devices.write_now(dev, offset, &[0; META_BYTES])?;
    }
    devices.flush_now(dev)?;
    if planted(Planted::ForgetNamesAlone) { Ok(()) } else { forget_believed(devices, dev, config) }
}

/// The same of what is believed of a member besides its superblocks; nothing is flushed.
pub(crate) fn forget_believed(
    devices: &mut dyn DeviceSet,
    dev: DevIndex,
    config: &ArrayConfig,
) -> Result<(), IoFault> {
    if dev.index() >= config.geometry.device_count() {
        return Ok(());
    }
    let mut found = Vec::new();
    for area in 0..2 {
        forget_blocks(devices, dev, 1, &|block| config.full_offset(area, block), &mut found)?;
    }
    let of_changes = |block| config.incremental_offset(block);
    forget_blocks(devices, dev, config.incremental_blocks, &of_changes, &mut found)?;
    forget_blocks(devices, dev, config.journal_blocks, &|block| config.journal_offset(block), &mut found)
}

/// Overwrites `blocks` neighbouring blocks that lie where `offset_of` says; a device that was never used is
/// left as it is. `found` is room.
fn forget_blocks(
    devices: &mut dyn DeviceSet,
    dev: DevIndex,
    blocks: u32,
    offset_of: &dyn Fn(u32) -> u64,
    found: &mut Vec<u8>,
) -> Result<(), IoFault> {
    for first in (0..blocks).step_by(PIECE_BLOCKS) {
        let count = usize::try_from(blocks - first).unwrap_or(PIECE_BLOCKS).min(PIECE_BLOCKS);
        found.clear();
        found.resize(count * META_BYTES, 0);
        let read = devices.read_now(dev, offset_of(first), found);
        if read.is_err() || found.iter().any(|&byte| byte != 0) {
            found.fill(0);
            devices.write_now(dev, offset_of(first), found)?;
        }
    }
    Ok(())
}
