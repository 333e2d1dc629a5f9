//! What waits for a commit never outgrows the room that a checkpoint has for it: a discard of part of a
//! stripe makes it dirty without taking a chunk, and waits where writes would have run out of room.

use crate::common::*;
use array::{Array, arrange};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, Durability, OpKind, Pool};
use device::MemorySet;
use format::{CheckpointKind, SchemeKind};

const CHUNK: u64 = 4096;
const MEMBERS: usize = 5;

/// Memory that keeps reads back while it is told to, so that no commit comes to an end.
#[derive(Default)]
struct Slow {
    holds: bool,
    held: Vec<DeviceOp>,
}

impl Layer<MemorySet> for Slow {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        let (held, now): (Vec<DeviceOp>, Vec<DeviceOp>) =
            ops.iter().partition(|op| self.holds && op.kind == OpKind::Read);
        self.held.extend(held);
        inner.submit(pool, &now);
    }

    fn poll(&mut self, inner: &mut MemorySet, pool: &mut Pool, completions: &mut Vec<Completion>) {
        if !self.holds {
            inner.submit(pool, &std::mem::take(&mut self.held));
        }
        inner.poll(pool, completions);
    }
}

type SlowArray = Array<Layered<MemorySet, Slow>>;

fn assemble_slow(mut inner: MemorySet) -> SlowArray {
    let found = superblocks(&mut inner, MEMBERS);
    let devices = Layered { inner, layer: Slow::default() };
    Array::assemble(devices, &arrange(&found).unwrap(), 4242, options()).unwrap().0
}

fn copy(devices: &mut MemorySet) -> MemorySet {
    let sizes: Vec<u64> = (0..MEMBERS as u16).map(|dev| devices.size_bytes(DevIndex::new(dev))).collect();
    let mut copies = MemorySet::new(&sizes).unwrap();
    for (dev, &size) in (0..).map(DevIndex::new).zip(&sizes) {
        let mut bytes = vec![0; size as usize];
        devices.read_now(dev, 0, &mut bytes).unwrap();
        copies.write_now(dev, 0, &bytes).unwrap();
    }
    copies
}

fn answered(array: &mut SlowArray) -> usize {
    let mut answers = Vec::new();
    array.take_answers(&mut answers);
    answers.iter().for_each(|done| done.result.unwrap());
    answers.len()
}

#[test]
fn discards_that_outrun_commits_wait_and_a_checkpoint_and_a_restart_hold_what_is_dirty() {
    let mut options = create_options(SchemeKind::Eplog, 3, 1);
    options.reserve_permille = 0;
    let (mut full, _) = assemble(fresh(&options, 10, 8), MEMBERS, self::options());
    let stripes = full.engine().store().config.stripe_count;
    for stripe in 0..stripes {
        let bytes = vec![stripe as u8 | 1; 3 * CHUNK as usize];
        write(&mut full, stripe * 3 * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
    full.stop().unwrap();
    let mut array = assemble_slow(full.into_devices());
    array.devices().layer.holds = true;
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(2, &mut slots));
    for stripe in 0..stripes {
        let offset = (stripe * 3 + stripe % 3) * CHUNK;
        array.engine().zero(stripe, offset, CHUNK, [slots[0], slots[1]], Durability::Volatile);
        array.turn();
    }
    while array.turn() {}
    let early = answered(&mut array);
    assert!(early > 500 && early < stripes as usize, "{early} of {stripes} discards had room");
    array.run(|e, tag| e.write_checkpoint(tag, CheckpointKind::Full)).unwrap();
    let now = copy(&mut array.devices().inner);
    let late = {
        array.devices().layer.holds = false;
        array.settle();
        answered(&mut array)
    };
    assert_eq!(early + late, stripes as usize);
    array.run(|e, tag| e.flush(tag)).unwrap();
    // The power goes while discards wait, and again when all are done.
    for (devices, done) in [(now, early), (array.into_devices().inner, stripes as usize)] {
        let (mut array, _) = assemble(devices, MEMBERS, self::options());
        let mut zeros = 0;
        for stripe in 0..stripes {
            let bytes = read(&mut array, stripe * 3 * CHUNK, 3 * CHUNK).unwrap();
            for (column, chunk) in (0..).zip(bytes.chunks(CHUNK as usize)) {
                let is_zero = chunk.iter().all(|&byte| byte == 0);
                zeros += usize::from(is_zero);
                assert!(
                    is_zero && column == stripe % 3 || chunk.iter().all(|&byte| byte == stripe as u8 | 1)
                );
            }
        }
        assert_eq!(zeros, done);
    }
}
