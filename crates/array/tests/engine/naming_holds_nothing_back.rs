//! Under load superblocks name from time to time what is durable, where frames are on log devices alone. A
//! member that hangs while its superblock is written holds up nobody who wants nothing of it.

use crate::common::{Layer, Layered, create_options, fresh_with_logs, options, superblocks};
use array::{Array, EngineOptions, SyncPolicy, arrange};
use block::{DevIndex, DeviceOp, DeviceSet as _, Durability, OpKind, Pool};
use device::MemorySet;
use format::{SUPERBLOCK_OFFSETS, SchemeKind};

const CHUNK: u64 = 4096;
const PAUSE_NS: u64 = 1_000_000;
const TURNS_MAX: u32 = 1000;

/// A member that hangs from the first superblock on that is to be written to it.
#[derive(Default)]
struct Hang {
    dev: Option<DevIndex>,
    hangs: bool,
    /// Main devices that chunks were written to.
    written: [bool; 5],
}

impl Layer<MemorySet> for Hang {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops {
            let is_superblock = SUPERBLOCK_OFFSETS.contains(&op.offset_bytes);
            if let Some(written) = self.written.get_mut(op.dev.index()) {
                *written |= op.kind == OpKind::Write && !is_superblock;
            }
            let is_asked = self.dev == Some(op.dev);
            self.hangs |= is_asked && is_superblock;
            if !(is_asked && self.hangs) {
                inner.submit(pool, std::slice::from_ref(op));
            }
        }
    }
}

/// Writes the first stripe, chunk by chunk; how many writes were answered.
fn write_stripe(array: &mut Array<Layered<MemorySet, Hang>>, tag: u64) -> usize {
    let mut answers = Vec::new();
    for chunk in 0..4 {
        let (mut slots, before) = (Vec::new(), answers.len());
        assert!(array.engine().take_slots(1, &mut slots));
        array.engine().write(tag + chunk, chunk * CHUNK, CHUNK, &slots, Durability::Durable);
        for _ in 0..TURNS_MAX {
            array.turn();
            array.take_answers(&mut answers);
            if answers.len() > before {
                break;
            }
        }
    }
    assert!(answers.iter().all(|done| done.result.is_ok()));
    answers.len()
}

#[test]
fn a_member_that_hangs_while_superblocks_are_written_holds_up_no_one_else() {
    let create = create_options(SchemeKind::Eplog, 4, 1);
    let mut devices = fresh_with_logs(&create, 12, 24, 2);
    let options = EngineOptions { confirm_idle_ns: Some(PAUSE_NS), sync: SyncPolicy::Always, ..options() };
    let arrangement = arrange(&superblocks(&mut devices, 7)).unwrap();
    let devices = Layered { inner: devices, layer: Hang::default() };
    let mut array = Array::assemble(devices, &arrangement, 9, options).unwrap().0;
    write_stripe(&mut array, 0);
    // Updates write to the four that hold the stripe's data: the fifth is to hang.
    array.devices().layer.written = [false; 5];
    write_stripe(&mut array, 10);
    let aside = array.devices().layer.written.iter().position(|&written| !written).unwrap();
    array.devices().layer.dev = Some(DevIndex::new(u16::try_from(aside).unwrap()));
    for turn in 1..20 {
        array.engine().set_now(turn * PAUSE_NS / 2);
        assert_eq!(write_stripe(&mut array, 100 * turn), 4, "in half pause {turn}");
    }
    assert!(array.devices().layer.hangs, "superblocks were to be written under load");
}
