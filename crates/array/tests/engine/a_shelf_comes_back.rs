//! More members than the array can do without fall silent together: none is given up, neither while they are
//! silent nor when they answer again one after the other.

use crate::common::{Layer, Layered, create_options, fresh, options, superblocks};
use array::{Array, ArrayState, EngineOptions, arrange};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, Durability, Pool};
use device::MemorySet;
use format::SchemeKind;

const LIMIT_NS: u64 = 1_000_000_000;
const STEP_NS: u64 = LIMIT_NS / 200;

/// Members that hold back what they are asked.
#[derive(Default)]
struct Silence {
    silent: Vec<DevIndex>,
    held: Vec<DeviceOp>,
}

impl Layer<MemorySet> for Silence {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        let (held, now): (Vec<DeviceOp>, Vec<DeviceOp>) =
            ops.iter().partition(|op| self.silent.contains(&op.dev));
        self.held.extend(held);
        inner.submit(pool, &now);
    }

    fn poll(&mut self, inner: &mut MemorySet, pool: &mut Pool, completions: &mut Vec<Completion>) {
        let silent = &self.silent;
        let (held, freed): (Vec<DeviceOp>, Vec<DeviceOp>) =
            self.held.drain(..).partition(|op| silent.contains(&op.dev));
        self.held = held;
        inner.submit(pool, &freed);
        inner.poll(pool, completions);
    }
}

type Shelf = Layered<MemorySet, Silence>;

struct Rig {
    array: Array<Shelf>,
    now_ns: u64,
}

impl Rig {
    /// Three members of which the array can lose one, and a write to all of them under way.
    fn new() -> Self {
        let mut devices = fresh(&create_options(SchemeKind::Raid, 2, 1), 24, 8);
        let arrangement = arrange(&superblocks(&mut devices, 3)).unwrap();
        let options = EngineOptions { device_timeout_ns: Some(LIMIT_NS), ..options() };
        let shelf = Layered { inner: devices, layer: Silence::default() };
        let (array, _) = Array::assemble(shelf, &arrangement, 9, options).unwrap();
        Self { array, now_ns: 0 }
    }

    fn fall_silent(&mut self, devs: &[u16]) {
        self.array.devices().layer.silent = devs.iter().copied().map(DevIndex::new).collect();
    }

    fn write(&mut self, tag: u64) {
        let mut slots = Vec::new();
        assert!(self.array.engine().take_slots(2, &mut slots));
        self.array.engine().write(tag, 0, 8192, &slots, Durability::Durable);
    }

    fn pass(&mut self, time_ns: u64) {
        let end_ns = self.now_ns + time_ns;
        while self.now_ns < end_ns {
            self.now_ns += STEP_NS;
            self.array.engine().set_now(self.now_ns);
            while self.array.turn() {}
        }
    }

    fn state(&mut self) -> ArrayState {
        self.array.engine().health().array_state()
    }

    fn answers(&mut self) -> Vec<u64> {
        let mut done = Vec::new();
        self.array.take_answers(&mut done);
        assert!(done.iter().all(|done| done.result.is_ok()), "{done:?}");
        done.iter().map(|done| done.tag).collect()
    }
}

#[test]
fn who_answers_last_is_not_given_up_for_that() {
    let mut rig = Rig::new();
    rig.fall_silent(&[0, 1, 2]);
    rig.write(1);
    rig.pass(3 * LIMIT_NS);
    assert_eq!((rig.state(), rig.answers()), (ArrayState::Healthy, vec![]));
    // One after the other; the last is alone in being late, for a while.
    rig.fall_silent(&[1, 2]);
    rig.pass(LIMIT_NS / 10);
    rig.fall_silent(&[2]);
    rig.pass(LIMIT_NS / 4);
    assert_eq!(rig.state(), ArrayState::Healthy);
    rig.fall_silent(&[]);
    rig.pass(LIMIT_NS / 10);
    assert_eq!((rig.state(), rig.answers()), (ArrayState::Healthy, vec![1]));
}

#[test]
fn who_does_not_answer_at_all_is_given_up_half_a_limit_later() {
    let mut rig = Rig::new();
    rig.fall_silent(&[0, 1, 2]);
    rig.write(1);
    rig.pass(2 * LIMIT_NS);
    rig.fall_silent(&[2]);
    rig.pass(LIMIT_NS * 3 / 4);
    assert_eq!(rig.state(), ArrayState::Degraded);
}

#[test]
fn a_process_that_did_not_run_has_not_waited() {
    let mut rig = Rig::new();
    rig.fall_silent(&[1]);
    rig.write(1);
    rig.pass(LIMIT_NS / 4);
    // Stopped for an hour, in which the device answered.
    rig.now_ns += 3600 * LIMIT_NS;
    rig.array.engine().set_now(rig.now_ns);
    rig.array.turn();
    rig.fall_silent(&[]);
    rig.pass(LIMIT_NS / 10);
    assert_eq!((rig.state(), rig.answers()), (ArrayState::Healthy, vec![1]));
}
