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
    let mut eraser = Eraser { devices, dev, found: Vec::new(), reads: true };
    for area in 0..2 {
        eraser.erase(1, |block| config.full_offset(area, block))?;
    }
    eraser.erase(config.incremental_blocks, |block| config.incremental_offset(block))?;
    eraser.erase(config.journal_blocks, |block| config.journal_offset(block))
}

/// Overwrites blocks with zeros.
struct Eraser<'a> {
    devices: &'a mut dyn DeviceSet,
    dev: DevIndex,
    /// What some blocks hold.
    found: Vec<u8>,
    /// It is looked first what is there: a device that was never used is left as it is. Not any more when
    /// something could not be read, for each further attempt may take as long.
    reads: bool,
}

impl Eraser<'_> {
    /// Overwrites so many neighbouring blocks, which lie where `offset_of` says.
    fn erase(&mut self, blocks: u32, offset_of: impl Fn(u32) -> u64) -> Result<(), IoFault> {
        let Self { devices, dev, found, reads } = self;
        for first in (0..blocks).step_by(PIECE_BLOCKS) {
            let count = usize::try_from(blocks - first).unwrap_or(PIECE_BLOCKS).min(PIECE_BLOCKS);
            found.clear();
            found.resize(count * META_BYTES, 0);
            *reads = *reads && devices.read_now(*dev, offset_of(first), found).is_ok();
            if !*reads || found.iter().any(|&byte| byte != 0) {
                found.fill(0);
                devices.write_now(*dev, offset_of(first), found)?;
            }
        }
        Ok(())
    }
}
