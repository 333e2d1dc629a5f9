//! A checkpoint that a start writes counts only when the members know who has missed its pages: a member that
//! was gone meanwhile and is back after a power cut has other pages in its slots.

use crate::common::{create_options, fresh, options, superblocks, write};
use array::{Array, arrange};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, Durability, IoFault, Pool};
use device::MemorySet;
use format::{MemberState, SchemeKind};
use std::cell::RefCell;
use std::rc::Rc;

const MEMBERS: usize = 6;
const GONE: DevIndex = DevIndex::new(1);
/// A start of so small an array writes fewer times by far.
const WRITES_MAX: u32 = 400;

/// Members of which one does not answer, and whose power fails after so many writes.
struct Cut {
    inner: Rc<RefCell<MemorySet>>,
    writes_left: u32,
    is_gone: bool,
}

impl Cut {
    fn may(&self, dev: DevIndex) -> Result<(), IoFault> {
        if self.is_gone && dev == GONE { Err(IoFault::Gone) } else { Ok(()) }
    }
}

impl DeviceSet for Cut {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.inner.borrow_mut().submit(pool, ops);
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.inner.borrow_mut().poll(pool, completions);
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inner.borrow_mut().wait(timeout_ns);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.inner.borrow().size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.may(dev)?;
        self.inner.borrow_mut().read_now(dev, offset_bytes, into)
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.may(dev)?;
        self.writes_left = self.writes_left.checked_sub(1).ok_or(IoFault::Gone)?;
        self.inner.borrow_mut().write_now(dev, offset_bytes, from)
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.may(dev)
    }
}

/// The same content once more.
fn copy_of(image: &MemorySet) -> MemorySet {
    let mut copy = MemorySet::new(&[12 << 20; MEMBERS]).unwrap();
    for dev in (0..MEMBERS as u16).map(DevIndex::new) {
        copy.bytes_mut(dev).copy_from_slice(image.bytes(dev));
    }
    copy
}

/// An elastic array that was not stopped in order.
fn written() -> MemorySet {
    let create = create_options(SchemeKind::Elastic, 4, 2);
    let (mut array, _) = crate::common::assemble(fresh(&create, 12, 64), MEMBERS, options());
    for at in 0..200u64 {
        write(&mut array, at * 4096, &[at as u8; 4096], Durability::Durable).unwrap();
    }
    copy_of(array.devices())
}

/// A start on these members; the number of the checkpoint that it loaded, and whether it ended.
fn start(inner: &Rc<RefCell<MemorySet>>, writes_left: u32, is_gone: bool) -> Option<u64> {
    let found = superblocks(&mut inner.borrow_mut(), MEMBERS);
    let devices = Cut { inner: inner.clone(), writes_left, is_gone };
    Array::assemble(devices, &arrange(&found).unwrap(), 4242 + u64::from(writes_left), options())
        .ok()
        .map(|(_, report)| report.checkpoint)
}

#[test]
fn a_checkpoint_counts_only_when_all_know_who_missed_it() {
    let image = written();
    let again = |image| Rc::new(RefCell::new(copy_of(image)));
    let before = start(&again(&image), u32::MAX, false).unwrap();
    let mut counted = 0;
    for writes in 0..WRITES_MAX {
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
        assert!(writes + 1 < WRITES_MAX, "no start ended");
    }
    assert!(counted > 2, "no power cut was behind the headers and before the superblocks");
}
