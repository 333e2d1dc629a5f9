//! A member that comes back gets the copies of pages that it lacks, and nothing else of the table is written
//! for it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use array::{Array, arrange};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, Durability, OpKind, Pool, Stream};
use common::{Layer, Layered, create_options, fresh, options, superblocks};
use device::MemorySet;
use format::{CheckpointKind, SchemeKind};

const MEMBERS: usize = 6;
const COPIES: usize = 3;
const BACK: DevIndex = DevIndex::new(1);

/// Counts blocks of metadata that are written to each member.
#[derive(Default)]
struct Count {
    written: [u64; MEMBERS],
}

impl Layer<MemorySet> for Count {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops.iter().filter(|op| op.kind == OpKind::Write && op.stream == Stream::Metadata) {
            self.written[op.dev.index()] += op.length_bytes / 4096;
        }
        inner.submit(pool, ops);
    }

    fn poll(&mut self, inner: &mut MemorySet, pool: &mut Pool, completions: &mut Vec<Completion>) {
        inner.poll(pool, completions);
    }
}

type Counted = Array<Layered<MemorySet, Count>>;

/// An array that was written from its beginning to its end, all of it in its slots, without one member.
fn left() -> (Counted, usize) {
    let mut devices = fresh(&create_options(SchemeKind::Raid, 4, 2), 24, 8);
    let arrangement = arrange(&superblocks(&mut devices, MEMBERS)).unwrap();
    let layered = Layered { inner: devices, layer: Count::default() };
    let (mut array, _) = Counted::assemble(layered, &arrangement, 9, options()).unwrap();
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
    let written = array.devices().layer.written;
    (written[BACK.index()], written.iter().sum())
}

/// All of the table is what it should be on every member: a scrub finds nothing.
fn is_sound(array: &mut Counted) {
    array.run(|e, tag| e.scrub(tag, 0)).unwrap();
    let errors: Vec<_> = array.engine().health().members().iter().map(|member| member.errors).collect();
    assert!(errors.iter().all(|found| found.checksum == 0 && found.read == 0), "{errors:?}");
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
    let (own, all) = come_back(&mut array);
    let copies = (pages * COPIES / MEMBERS) as u64;
    assert!(own >= copies && all < own + pages as u64 / 2, "{own} and {all} blocks, {copies} copies");
    is_sound(&mut array);
}
