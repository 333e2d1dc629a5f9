//! A checkpoint whose headers a power cut caught on their way is on fewer members than it ought to be. A
//! start that goes by it may be cut short anywhere, and those members be lost with it: what is left must do.

use crate::common::{
    Cut, WRITES_OF_A_START_MAX, assemble, copy_of, create_options, fresh, options, read, superblocks, write,
};
use array::{Array, arrange};
use block::{DevIndex, Durability, META_BYTES};
use device::MemorySet;
use format::{ArrayConfig, CheckpointKind, Consistency, SchemeKind};
use std::cell::RefCell;
use std::rc::Rc;

const MIB: usize = 12;
const CHUNKS: u64 = 40;

/// What every byte of a chunk is.
fn content(chunk: u64) -> u8 {
    chunk as u8 + 1
}

/// An array whose power failed while the headers of a full checkpoint were written: only the first of the
/// members that were to have one has it. That member is the other value.
fn caught(scheme: SchemeKind, (k, m): (usize, usize)) -> (MemorySet, DevIndex) {
    let mut create = create_options(scheme, k, m);
    if scheme == SchemeKind::Raid {
        create.consistency = Consistency::Journal;
    }
    let members = k + m;
    let (mut array, _) = assemble(fresh(&create, MIB as u64, MIB as u64), members, options());
    array.run(|engine, tag| engine.write_checkpoint(tag, CheckpointKind::Full)).unwrap();
    for at in 0..CHUNKS {
        write(&mut array, at * 4096, &[content(at); 4096], Durability::Durable).unwrap();
    }
    let before = copy_of(array.devices(), members);
    array.run(|engine, tag| engine.write_checkpoint(tag, CheckpointKind::Full)).unwrap();
    let config = array.engine().store().config;
    let mut image = copy_of(array.devices(), members);
    let holders = changed_headers(&config, (&before, &image), members);
    assert_eq!(holders.len(), m + 1, "one on each of m + 1 members");
    for &(dev, at) in &holders[1..] {
        image.bytes_mut(dev)[at..at + META_BYTES].copy_from_slice(&before.bytes(dev)[at..at + META_BYTES]);
    }
    (image, holders[0].0)
}

/// Where headers of full checkpoints differ.
fn changed_headers(
    config: &ArrayConfig,
    (before, after): (&MemorySet, &MemorySet),
    members: usize,
) -> Vec<(DevIndex, usize)> {
    let mut changed = Vec::new();
    for area in 0..2 {
        let at = usize::try_from(config.full_offset(area, 0)).unwrap();
        for dev in (0..members as u16).map(DevIndex::new) {
            if before.bytes(dev)[at..at + META_BYTES] != after.bytes(dev)[at..at + META_BYTES] {
                changed.push((dev, at));
            }
        }
    }
    changed
}

/// A start on these members; whether it ended.
fn start(inner: &Rc<RefCell<MemorySet>>, writes_left: u32, members: usize) -> bool {
    let found = superblocks(&mut inner.borrow_mut(), members);
    let devices = Cut { inner: inner.clone(), writes_left, gone: None };
    Array::assemble(devices, &arrange(&found).unwrap(), 4242 + u64::from(writes_left), options()).is_ok()
}

fn check(scheme: SchemeKind, (k, m): (usize, usize)) {
    let members = k + m;
    let (image, holder) = caught(scheme, (k, m));
    for writes in 0..WRITES_OF_A_START_MAX {
        let devices = Rc::new(RefCell::new(copy_of(&image, members)));
        let ended = start(&devices, writes, members);
        let mut devices = Rc::into_inner(devices).unwrap().into_inner();
        let mut found = superblocks(&mut devices, members);
        devices.bytes_mut(holder).fill(0);
        found.retain(|superblock| superblock.dev != holder);
        let arrangement = arrange(&found).unwrap();
        let again = Array::assemble(devices, &arrangement, 7, options());
        let (mut array, _) = again.unwrap_or_else(|e| panic!("{scheme:?}, cut after {writes} writes: {e}"));
        for at in 0..CHUNKS {
            let what = read(&mut array, at * 4096, 4096).unwrap();
            assert_eq!(what, [content(at); 4096], "{scheme:?}, chunk {at}, cut after {writes} writes");
        }
        if ended {
            return;
        }
    }
    panic!("no start ended");
}

#[test]
fn a_start_keeps_the_checkpoint_it_goes_by() {
    check(SchemeKind::Raid, (1, 1));
    check(SchemeKind::Raid, (2, 2));
    check(SchemeKind::Elastic, (4, 2));
    check(SchemeKind::Elastic, (3, 1));
}
