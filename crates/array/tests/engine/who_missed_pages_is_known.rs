//! A checkpoint that a start writes counts only when the members know who has missed its pages: a member that
//! was gone meanwhile and is back after a power cut has other pages in its slots.

use crate::common::{
    Cut, WRITES_OF_A_START_MAX, assemble, copy_of, create_options, fresh, options, superblocks, write,
};
use array::{Array, arrange};
use block::{DevIndex, Durability};
use device::MemorySet;
use format::{MemberState, SchemeKind};
use std::cell::RefCell;
use std::rc::Rc;

const MEMBERS: usize = 6;
const GONE: DevIndex = DevIndex::new(1);
/// An elastic array that was not stopped in order.
fn written() -> MemorySet {
    let create = create_options(SchemeKind::Elastic, 4, 2);
    let (mut array, _) = assemble(fresh(&create, 12, 64), MEMBERS, options());
    for at in 0..200u64 {
        write(&mut array, at * 4096, &[at as u8; 4096], Durability::Durable).unwrap();
    }
    copy_of(array.devices(), MEMBERS)
}

/// A start on these members; the number of the checkpoint that it loaded, and whether it ended.
fn start(inner: &Rc<RefCell<MemorySet>>, writes_left: u32, is_gone: bool) -> Option<u64> {
    let found = superblocks(&mut inner.borrow_mut(), MEMBERS);
    let devices = Cut { inner: inner.clone(), writes_left, gone: is_gone.then_some(GONE) };
    Array::assemble(devices, &arrange(&found).unwrap(), 4242 + u64::from(writes_left), options())
        .ok()
        .map(|(_, report)| report.checkpoint)
}

#[test]
fn a_checkpoint_counts_only_when_all_know_who_missed_it() {
    let image = written();
    let again = |image| Rc::new(RefCell::new(copy_of(image, MEMBERS)));
    let before = start(&again(&image), u32::MAX, false).unwrap();
    let mut counted = 0;
    for writes in 0..WRITES_OF_A_START_MAX {
        let members = again(&image);
        let ended = start(&members, writes, true).is_some();
        let states = arrange(&superblocks(&mut members.borrow_mut(), MEMBERS)).unwrap().members;
        let loaded = start(&members, u32::MAX, false).unwrap();
        if loaded > before {
            assert_ne!(states[GONE.index()].state, MemberState::Healthy, "after {writes} writes");
            counted += 1;
        }
        if ended {
            break;
        }
        assert!(writes + 1 < WRITES_OF_A_START_MAX, "no start ended");
    }
    assert!(counted > 2, "no power cut was behind the headers and before the superblocks");
}
