//! An array takes the room of devices that have become larger.
//!
//! The array is assembled as it is, with all of its table in memory. Then everything that it knows is written
//! once more, as the first checkpoint of the larger array, to metadata regions behind all that the smaller
//! one uses; that is made durable. Nothing says so yet: a power cut up to here leaves the smaller array, of
//! which not a byte was written over. What makes the larger one count is the next superblock: the newest of
//! all members' counts, so any one of them will do, and if all that were written are lost with their members,
//! the others name the smaller array still, which is as good.

use super::room::WatchRoom;
use super::{Arrangement, Parts, assemble_on, load, superblock_of, write_checkpoint, write_superblocks};
use crate::bounds::Bounds;
use crate::grow::GrowError;
use crate::image::{Chain, CheckpointPlace};
use crate::journal::Journal;
use crate::planted::{Planted, planted};
use crate::restart::{AssembleError, RecoveryReport, flush_all, forget_or_fail, write_or_fail};
use crate::scheme;
use crate::store::Store;
use block::{DevIndex, DeviceSet, META_BYTES};
use format::ArrayConfig;

/// Lets an array grow to this shape; what recovery did before.
pub(crate) fn grow_to(
    devices: &mut dyn DeviceSet,
    arrangement: &Arrangement,
    nonce: u64,
    after: &ArrayConfig,
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<RecoveryReport, GrowError> {
    let mut devices = WatchRoom::new(devices);
    let result = grow_on(&mut devices, arrangement, nonce, after, may_write);
    match devices.full() {
        Some(dev) => Err(AssembleError::MemberFull { dev }.into()),
        None => result,
    }
}

/// Makes durable on all members that the array, a shard, is as large as any of them says, and leaves it as an
/// orderly stop would; what recovery did before.
pub(crate) fn confirm_size(
    devices: &mut dyn DeviceSet,
    arrangement: &Arrangement,
    nonce: u64,
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<RecoveryReport, GrowError> {
    let mut devices = WatchRoom::new(devices);
    let result = confirm_on(&mut devices, arrangement, nonce, may_write);
    match devices.full() {
        Some(dev) => Err(AssembleError::MemberFull { dev }.into()),
        None => result,
    }
}

fn confirm_on(
    devices: &mut WatchRoom<'_>,
    arrangement: &Arrangement,
    nonce: u64,
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<RecoveryReport, GrowError> {
    let (mut parts, report) = assemble_on(devices, arrangement, nonce, Bounds::NONE, may_write)?;
    check_no_failure(devices, &mut parts)?;
    let config = parts.store.config;
    commit(devices, &mut parts, &config)?;
    Ok(report)
}

fn grow_on(
    devices: &mut WatchRoom<'_>,
    arrangement: &Arrangement,
    nonce: u64,
    after: &ArrayConfig,
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<RecoveryReport, GrowError> {
    let (mut parts, report) = assemble_on(devices, arrangement, nonce, Bounds::NONE, may_write)?;
    check_no_failure(devices, &mut parts)?;
    let mut parts = moved_to(parts, after)?;
    if planted(Planted::GrowCommitsFirst) {
        commit(devices, &mut parts, after)?;
    }
    clear_regions(devices, &mut parts);
    let through = parts.superblock.durable_through;
    write_checkpoint(devices, &mut parts, through, None)?;
    // One that has failed since lacks some of what was written: it would be missing from the larger array.
    check_no_failure(devices, &mut parts)?;
    if let Some(dev) = devices.full() {
        return Err(AssembleError::MemberFull { dev }.into());
    }
    commit(devices, &mut parts, after)?;
    Ok(report)
}

/// If a member has failed, the array is left as it was, as an orderly stop would: nothing was written to it.
fn check_no_failure(devices: &mut dyn DeviceSet, parts: &mut Parts) -> Result<(), GrowError> {
    let mut devs = (0u16..).map(DevIndex::new).take(parts.health.members().len());
    let Some(dev) = devs.find(|&dev| !parts.health.is_writable(dev)) else { return Ok(()) };
    parts.superblock.clean = true;
    write_superblocks(devices, &mut parts.health, &mut parts.superblock)?;
    Err(GrowError::MemberFailed { dev })
}

/// The same state in an array of another shape: by way of what a checkpoint would say of it, so that nothing
/// is carried over that a restart would not find, and all of it is compared.
fn moved_to(parts: Parts, after: &ArrayConfig) -> Result<Parts, AssembleError> {
    let Parts { store: mut before, scheme, health, journal, checkpoint, superblock } = parts;
    let mut list = Vec::new();
    scheme.save(&before, &mut list);
    before.save_space(&mut list);
    if planted(Planted::GrowForgetsList) && !before.config.scheme.has_log_stripes() {
        list.clear();
    }
    drop(scheme);
    let mut store = Store::new(*after)?;
    store.table.take_over(&before.table);
    let mut scheme = scheme::new(&store, Bounds::NONE.list_bytes);
    load::take_list(&list, checkpoint.number, &mut store, &mut *scheme)?;
    store.log.restore(before.log.head(), before.log.tail());
    let journal = Journal::new(journal.array(), journal.epoch(), journal.nonce(), journal.next_seq(), &store);
    // No checkpoint is in the new regions yet: the first of them is a full one.
    let checkpoint =
        CheckpointPlace { area: 1, chain: Chain::default(), before: 0, devices: Vec::new(), ..checkpoint };
    Ok(Parts { store, scheme, health, journal, checkpoint, superblock })
}

/// Whatever is in the new regions, an attempt that was cut short or another life of the device, is no
/// checkpoint and no frame of this array.
fn clear_regions(devices: &mut dyn DeviceSet, parts: &mut Parts) {
    let config = parts.store.config;
    for dev in (0u16..).map(DevIndex::new).take(config.geometry.device_count()) {
        forget_or_fail(devices, &mut parts.health, dev, &config);
    }
}

/// From the first of these on, the array is the larger one. Both copies, as an assembly does it.
fn commit(devices: &mut dyn DeviceSet, parts: &mut Parts, after: &ArrayConfig) -> Result<(), AssembleError> {
    parts.superblock.config = *after;
    parts.superblock.checkpoints = parts.checkpoint.numbers();
    parts.superblock.clean = true;
    for _ in format::SUPERBLOCK_OFFSETS {
        parts.health.config_seq += 1;
        if planted(Planted::GrowTellsOne) {
            let (first, copy) = (DevIndex::new(0), usize::from(parts.health.config_seq % 2 == 1));
            let mut block = [0; META_BYTES];
            superblock_of(&parts.superblock, &parts.health, first).encode(copy, &mut block);
            write_or_fail(devices, &mut parts.health, first, format::SUPERBLOCK_OFFSETS[copy], &block);
            flush_all(devices, &mut parts.health);
            continue;
        }
        write_superblocks(devices, &mut parts.health, &mut parts.superblock)?;
    }
    Ok(())
}
