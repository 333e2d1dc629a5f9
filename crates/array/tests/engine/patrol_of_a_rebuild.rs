//! A round of the patrol while a member is rebuilt that was one before: what is left of its older superblock
//! is no damage.

use crate::common::{assemble, create_options, fresh, options, superblocks, write};
use array::{Array, EngineOptions, PatrolPolicy};
use block::{DevIndex, Durability};
use device::MemorySet;
use format::{MemberState, SchemeKind};

const DEV: DevIndex = DevIndex::new(1);
const SECOND_NS: u64 = 1_000_000_000;

fn fill(array: &mut Array<MemorySet>, byte: u8) {
    for offset in (0..8 << 20).step_by(1 << 18) {
        write(array, offset, &[byte; 1 << 18], Durability::Durable).unwrap();
    }
}

/// An array that a member has left, and what is on that.
fn left() -> Array<MemorySet> {
    let patrol = PatrolPolicy { interval_ns: SECOND_NS, bytes_per_s: 1 << 30 };
    let options = EngineOptions { patrol: Some(patrol), rebuild_bytes_per_s: Some(1), ..options() };
    let devices = fresh(&create_options(SchemeKind::Raid, 2, 1), 24, 8);
    let (mut array, _) = assemble(devices, 3, options);
    fill(&mut array, 1);
    array.engine().fail_device(DEV);
    fill(&mut array, 2);
    array.settle();
    array
}

/// Lets it make some rounds, and looks what the member is blamed for.
fn patrolled(mut array: Array<MemorySet>) -> u64 {
    let (begun, mut now_ns) = (array.engine().patrol_rounds().0, 0);
    while array.engine().patrol_rounds().0 < begun + 4 {
        now_ns += SECOND_NS / 10;
        array.engine().set_now(now_ns);
        while array.turn() {}
    }
    assert_eq!(array.engine().health().state(DEV), MemberState::Rebuilding);
    array.engine().health().members()[DEV.index()].errors.checksum
}

#[test]
fn a_member_that_comes_back_is_not_blamed_for_what_it_was() {
    let mut array = left();
    let superblock = superblocks(array.devices(), 3).swap_remove(DEV.index());
    let tag = array.own_tag();
    array.engine().online(tag, DEV, 77, &superblock);
    assert_eq!(patrolled(array), 0);
}

#[test]
fn nor_is_one_that_is_filled_anew() {
    let mut array = left();
    let tag = array.own_tag();
    array.engine().rebuild(tag, DEV, 77);
    assert_eq!(patrolled(array), 0);
}
