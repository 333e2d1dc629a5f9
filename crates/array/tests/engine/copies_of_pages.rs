//! A member that comes back gets the copies of pages that it lacks, and nothing else of the table is written
//! for it.

use crate::common::{Layer, Layered, create_options, fresh, options, superblocks};
use array::{Array, arrange};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, Durability, OpKind, Pool, Stream};
use device::MemorySet;
use format::{CheckpointKind, SchemeKind};

const MEMBERS: usize = 6;
const COPIES: usize = 3;
const BACK: DevIndex = DevIndex::new(1);
const NEXT: DevIndex = DevIndex::new(2);

/// Counts blocks of metadata that are written to each member; some of those read from one are not what they
/// were.
#[derive(Default)]
struct Count {
    written: [u64; MEMBERS],
    rotten: Option<DevIndex>,
}

impl Layer<MemorySet> for Count {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops.iter().filter(|op| op.kind == OpKind::Write && op.stream == Stream::Metadata) {
            self.written[op.dev.index()] += op.length_bytes / 4096;
        }
        let is_page = |op: &&DeviceOp| op.kind == OpKind::Read && op.stream == Stream::Metadata;
        if let Some(op) = ops.iter().filter(is_page).find(|op| Some(op.dev) == self.rotten) {
            inner.bytes_mut(op.dev)[op.offset_bytes as usize + 100] ^= 1;
            self.rotten = None;
        }
        inner.submit(pool, ops);
    }

    fn poll(&mut self, inner: &mut MemorySet, pool: &mut Pool, completions: &mut Vec<Completion>) {
        inner.poll(pool, completions);
    }
}

type Counted = Array<Layered<MemorySet, Count>>;

fn assemble(mut devices: MemorySet, nonce: u64) -> Counted {
    let arrangement = arrange(&superblocks(&mut devices, MEMBERS)).unwrap();
    let layered = Layered { inner: devices, layer: Count::default() };
    Counted::assemble(layered, &arrangement, nonce, options()).unwrap().0
}

/// An array that was written from its beginning to its end, all of it in its slots, without one member.
fn left() -> (Counted, usize) {
    let mut array = assemble(fresh(&create_options(SchemeKind::Raid, 4, 2), 24, 8), 9);
    let capacity = array.engine().volume_bytes();
    for at in (0..capacity).step_by(1 << 18) {
        write(&mut array, at, (capacity - at).min(1 << 18));
    }
    save(&mut array);
    array.engine().fail_device(BACK);
    array.settle();
    let pages = array.engine().store().table.page_count();
    assert!(pages > 60, "{pages} pages are too few to tell anything");
    (array, pages)
}

fn write(array: &mut Counted, offset: u64, bytes: u64) {
    let mut slots = Vec::new();
    assert!(array.engine().take_slots((bytes / 4096) as usize, &mut slots));
    array.run(|e, tag| e.write(tag, offset, bytes, &slots, Durability::Durable)).unwrap();
    slots.drain(..).for_each(|slot| array.engine().pool().free(slot));
}

fn save(array: &mut Counted) {
    array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Full)).unwrap();
}

/// The blocks of metadata that are written to the member, and to all, while it is made whole.
fn come_back(array: &mut Counted) -> (u64, u64) {
    array.settle();
    let superblock = superblocks(&mut array.devices().inner, MEMBERS).swap_remove(BACK.index());
    array.devices().layer.written = [0; MEMBERS];
    array.run(|e, tag| e.online(tag, BACK, 77, &superblock)).unwrap();
    written(array)
}

fn written(array: &mut Counted) -> (u64, u64) {
    let written = array.devices().layer.written;
    (written[BACK.index()], written.iter().sum())
}

fn checksum_errors(array: &mut Counted) -> u64 {
    array.engine().health().members().iter().map(|member| member.errors.checksum).sum()
}

/// All of the table is what it should be on every member: a scrub finds nothing more.
fn is_sound(array: &mut Counted) {
    let before = checksum_errors(array);
    array.run(|e, tag| e.scrub(tag, 0)).unwrap();
    assert_eq!(checksum_errors(array), before);
}

/// The member was given all of its copies, and the others hardly anything.
fn got_its_copies(array: &mut Counted, pages: usize, (own, all): (u64, u64)) {
    let copies = (pages * COPIES / MEMBERS) as u64;
    assert!(own >= copies && all < own + pages as u64 / 2, "{own} and {all} blocks, {copies} copies");
    is_sound(array);
}

#[test]
fn one_that_missed_no_page_gets_none() {
    let (mut array, pages) = left();
    write(&mut array, 0, 4096);
    let (own, all) = come_back(&mut array);
    assert!(all < pages as u64, "{own} and {all} blocks of {pages} pages");
    is_sound(&mut array);
}

#[test]
fn one_that_missed_all_pages_gets_its_copies_and_the_others_none() {
    let (mut array, pages) = left();
    save(&mut array);
    let written = come_back(&mut array);
    got_its_copies(&mut array, pages, written);
}

#[test]
fn one_that_missed_pages_before_a_restart_gets_its_copies() {
    let (mut array, pages) = left();
    save(&mut array);
    array.stop().unwrap();
    let mut array = assemble(array.into_devices().inner, 10);
    let written = come_back(&mut array);
    got_its_copies(&mut array, pages, written);
}

#[test]
fn one_that_missed_nothing_before_a_restart_gets_little() {
    let (mut array, pages) = left();
    array.stop().unwrap();
    let mut array = assemble(array.into_devices().inner, 10);
    let (own, all) = come_back(&mut array);
    assert!(all < pages as u64, "{own} and {all} blocks of {pages} pages");
    is_sound(&mut array);
}

#[test]
fn a_device_with_old_pages_that_replaces_one_gets_all_of_its_copies() {
    let (mut array, pages) = left();
    array.devices().layer.written = [0; MEMBERS];
    array.run(|e, tag| e.rebuild(tag, BACK, 77)).unwrap();
    let written = written(&mut array);
    got_its_copies(&mut array, pages, written);
}

#[test]
fn two_that_come_back_together_get_both_copies_of_a_page() {
    let (mut array, _) = left();
    array.engine().fail_device(NEXT);
    save(&mut array);
    array.settle();
    let superblocks = superblocks(&mut array.devices().inner, MEMBERS);
    for dev in [BACK, NEXT] {
        let tag = array.own_tag();
        array.engine().online(tag, dev, 77 + u32::from(dev.get()), &superblocks[dev.index()]);
    }
    array.settle();
    assert_eq!(array.engine().health().missing_count(), 0);
    is_sound(&mut array);
}

#[test]
fn a_copy_that_is_bad_where_it_is_read_has_everything_written_anew() {
    let (mut array, pages) = left();
    save(&mut array);
    array.devices().layer.rotten = Some(NEXT);
    let (own, all) = come_back(&mut array);
    assert_eq!(checksum_errors(&mut array), 1);
    assert!(all >= own + (pages * COPIES) as u64 / 2, "{own} and {all} blocks of {pages} pages");
    is_sound(&mut array);
}
