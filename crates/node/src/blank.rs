//! What is on devices that come or go, and what is written on them: spares, and those that are nobody's.

use crate::error::Error;
use crate::refusal::Refusal;
use block::{DevIndex, META_BYTES};
use device::{Content, Members, OpenError, first_content};
use format::{
    ArrayConfig, FaultRecord, MemberEntry, MemberState, Role, SUPERBLOCK_OFFSETS, Superblock,
    looks_like_metadata,
};
use std::path::Path;

/// What a device holds that has no superblock and no content of a known kind, as far as a bounded look can
/// tell. What was wiped may be used again.
pub fn unknown_content(path: &Path) -> Result<Option<String>, OpenError> {
    let content = first_content(path)?.filter(|found| !looks_like_metadata(&found.begins));
    let tell = |found: Content| {
        format!("holds something of unknown kind: the byte at offset {} is not zero", found.offset)
    };
    Ok(content.map(tell))
}

/// Makes a device forget, in the slices of all shards, who it was as member `dev`.
pub fn wipe_slices(
    lock: &mut Members,
    path: &Path,
    config: &ArrayConfig,
    dev: DevIndex,
) -> Result<(), Error> {
    let own = DevIndex::new(0);
    let at = |fault| Refusal::Fault { path: path.to_owned(), fault };
    for shard in 0..config.shard.count {
        let origin = config.sibling(shard).slice_origin(dev);
        for offset in SUPERBLOCK_OFFSETS {
            lock.write_now(own, origin + offset, &[0u8; META_BYTES]).map_err(at)?;
        }
    }
    Ok(lock.flush_now(own).map_err(at)?)
}

/// Makes a spare forget that it is one.
pub fn wipe_spare(lock: &mut Members, path: &Path) -> Result<(), Error> {
    let own = DevIndex::new(0);
    let at = |fault| Refusal::Fault { path: path.to_owned(), fault };
    for offset in SUPERBLOCK_OFFSETS {
        lock.write_now(own, offset, &[0u8; META_BYTES]).map_err(at)?;
    }
    Ok(lock.flush_now(own).map_err(at)?)
}

/// Makes a device say that it is a spare of the array. Its update counter is the lowest, so that whatever
/// the array writes later counts.
pub fn write_spare(lock: &mut Members, path: &Path, mut superblock: Superblock) -> Result<(), Error> {
    let place = superblock.config.geometry.device_count() + usize::from(superblock.config.log_count);
    superblock.members.truncate(place);
    superblock.members.push(MemberEntry { serial: 0, state: MemberState::Absent });
    superblock.dev = u16::try_from(place).map(DevIndex::new).map_err(|_| Refusal::NoRoomForSpares)?;
    superblock.role = Role::Spare;
    superblock.serial = 0;
    superblock.clean = true;
    (superblock.faults, superblock.rebuilt) = (FaultRecord::default(), 0);
    let written = write_copies(lock, path, superblock);
    if written.is_err() {
        // Or it were a spare for whoever looks, with one copy. The first error is the one to report.
        let _ = wipe_spare(lock, path);
    }
    written
}

fn write_copies(lock: &mut Members, path: &Path, mut superblock: Superblock) -> Result<(), Error> {
    let own = DevIndex::new(0);
    let at = |fault| Refusal::Fault { path: path.to_owned(), fault };
    for (copy, offset) in SUPERBLOCK_OFFSETS.into_iter().enumerate() {
        superblock.config_seq = copy as u64;
        superblock.check().map_err(|source| Refusal::Superblock { path: path.to_owned(), source })?;
        let mut bytes = [0u8; META_BYTES];
        superblock.encode(copy, &mut bytes);
        lock.write_now(own, offset, &bytes).map_err(at)?;
    }
    Ok(lock.flush_now(own).map_err(at)?)
}
