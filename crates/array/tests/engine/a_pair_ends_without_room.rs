//! A write that found no room and waits to be asked again is not with the driver: a pair that begins then
//! does not wait for its end, which never comes if the member leaves.

use crate::common::{Ailing, create_options, fresh, options, superblocks};
use array::{Array, arrange};
use block::{DevIndex, Durability, IoFault, OpKind, PairPlan, Paired};
use device::MemorySet;
use format::{SUPERBLOCK_OFFSETS, SchemeKind};

const DEV: DevIndex = DevIndex::new(1);
const CHUNK_BYTES: u64 = 4096;
const STRIPE_BYTES: u64 = 4 * CHUNK_BYTES;
const MEMBER_BYTES: u64 = 12 << 20;
/// More than operations that come later, under whose tags the driver would know those that wait.
const WRITES: u64 = 64;
const TURNS_MAX: usize = 100_000;

#[test]
fn a_pair_does_not_wait_for_a_write_that_waits_for_room() {
    let create = create_options(SchemeKind::Raid, 4, 2);
    let mut inner = fresh(&create, MEMBER_BYTES >> 20, 0);
    let arrangement = arrange(&superblocks(&mut inner, 6)).unwrap();
    let devices = Paired::new(Ailing::new(inner));
    let mut array = Array::assemble(devices, &arrangement, 9, options()).unwrap().0;
    let layer = &mut array.devices().inner_mut().layer;
    (layer.bad, layer.fault) = (Some((DEV, OpKind::Write)), IoFault::NoSpace);

    for stripe in 0..WRITES {
        let (engine, mut slots) = (array.engine(), Vec::new());
        assert!(engine.take_slots(1, &mut slots));
        engine.write(stripe, stripe * STRIPE_BYTES, CHUNK_BYTES, &slots, Durability::Volatile);
    }
    while array.turn() {}
    assert!(array.engine_ref().member_trouble(DEV).lacks_room_since_ns.is_some(), "writes wait");

    let plan = PairPlan::new(DEV, MEMBER_BYTES, &SUPERBLOCK_OFFSETS, u64::MAX);
    let partner = Ailing::new(MemorySet::new(&[MEMBER_BYTES]).unwrap());
    let under_way = array.engine_ref().under_way(DEV);
    array.devices().begin(plan, partner, &under_way, 0);
    array.engine().fail_device(DEV);
    let (mut answers, mut has_ended) = (Vec::new(), false);
    for _ in 0..TURNS_MAX {
        array.turn();
        array.take_answers(&mut answers);
        has_ended |= array.devices().end().is_some();
        if has_ended && answers.len() as u64 == WRITES {
            return;
        }
    }
    panic!(
        "{} of {WRITES} writes were answered, and the pair: {:?}",
        answers.len(),
        array.devices_ref().state()
    );
}
