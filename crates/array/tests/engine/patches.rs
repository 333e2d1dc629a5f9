//! An incremental checkpoint holds what changed on pages of the table, not the pages, and a restart finds it.

use crate::common::*;
use array::{Array, arrange};
use block::{DeviceOp, DeviceSet as _, Durability, OpKind, Pool, Stream};
use device::MemorySet;
use format::{CheckpointKind, PAGE_WORDS, SchemeKind};

const CHUNK: u64 = 4096;
const MEMBERS: usize = 4;

/// Memory that counts blocks of metadata.
#[derive(Default)]
struct Counting {
    metadata_bytes: u64,
}

impl Layer<MemorySet> for Counting {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        let written = ops.iter().filter(|op| op.kind == OpKind::Write && op.stream == Stream::Metadata);
        self.metadata_bytes += written.map(|op| op.length_bytes).sum::<u64>();
        inner.submit(pool, ops);
    }
}

type CountingArray = Array<Layered<MemorySet, Counting>>;

fn assemble_counting(mut inner: MemorySet) -> CountingArray {
    let found = superblocks(&mut inner, MEMBERS);
    let devices = Layered { inner, layer: Counting::default() };
    Array::assemble(devices, &arrange(&found).unwrap(), 4242, options()).unwrap().0
}

/// Writes one chunk of every `step`th stripe, with that byte.
fn write_some(array: &mut CountingArray, step: u64, byte: u8) {
    let stripes = array.engine().store().config.stripe_count;
    for stripe in (0..stripes).step_by(step as usize) {
        let mut slots = Vec::new();
        assert!(array.engine().take_slots(1, &mut slots));
        array.engine().pool().bytes_mut(slots[0]).fill(byte);
        let offset = stripe * 3 * CHUNK;
        array.run(|e, tag| e.write(tag, offset, CHUNK, &slots, Durability::Volatile)).unwrap();
        array.engine().pool().free(slots[0]);
    }
}

fn blocks_of(array: &mut CountingArray, kind: CheckpointKind) -> u64 {
    array.run(|e, tag| e.flush(tag)).unwrap();
    array.settle();
    let before = array.devices().layer.metadata_bytes;
    array.run(|e, tag| e.write_checkpoint(tag, kind)).unwrap();
    (array.devices().layer.metadata_bytes - before) / CHUNK
}

#[test]
fn one_changed_chunk_on_each_of_many_pages_takes_a_few_blocks_and_is_there_after_a_restart() {
    let devices = fresh(&create_options(SchemeKind::Raid, 3, 1), 64, 0);
    let mut array = assemble_counting(devices);
    let per_page = PAGE_WORDS as u64 / 8;
    let pages = array.engine().store().config.stripe_count / per_page;
    assert!(pages > 100, "{pages} pages");
    write_some(&mut array, 1, 1);
    let full = blocks_of(&mut array, CheckpointKind::Full);
    assert!(full > 2 * pages, "{full} blocks for {pages} pages, on two members");
    write_some(&mut array, per_page, 2);
    let patched = blocks_of(&mut array, CheckpointKind::Incremental);
    // A header and a page of patches, on two members.
    assert_eq!(patched, 4, "for {pages} pages with one change each");
    // What a checkpoint holds is not in the next one.
    let nothing = blocks_of(&mut array, CheckpointKind::Incremental);
    assert!(nothing < patched, "{nothing} blocks for nothing");
    array.stop().unwrap();
    let (mut array, report) = assemble(array.into_devices().inner, MEMBERS, options());
    assert_eq!(report.replayed, 0, "the checkpoints hold it all");
    for stripe in 0..array.engine().store().config.stripe_count {
        let expected = if stripe % per_page == 0 { 2 } else { 1 };
        assert!(read(&mut array, stripe * 3 * CHUNK, CHUNK).unwrap().iter().all(|&byte| byte == expected));
    }
}
