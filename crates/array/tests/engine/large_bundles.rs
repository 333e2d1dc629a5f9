//! Large blocks that are not to be torn, where requests behind them have all buffers.

use crate::common::{assemble, create_options, fresh, options, read};
use array::{Array, CreateOptions, EngineOptions, SchemeOptions};
use block::{Durability, Slot};
use device::MemorySet;
use format::SchemeKind;

const CHUNK: u64 = 4096;
const BUNDLE: u64 = 256;

/// Begins the next write, of so many chunks full of its number; `false` if there are no buffers for it.
fn begin(array: &mut Array<MemorySet>, begun: &mut Vec<Vec<Slot>>, count: u64) -> bool {
    let (number, mut slots) = (begun.len() as u64, Vec::new());
    if !array.engine().take_slots(count as usize, &mut slots) {
        return false;
    }
    slots.iter().for_each(|&slot| array.engine().pool().bytes_mut(slot).fill(number as u8));
    let (offset, length) = (number * BUNDLE * CHUNK, count * CHUNK);
    array.engine().write(number, offset, length, &slots, Durability::Volatile);
    begun.push(slots);
    true
}

/// Copies of all of the first would need more buffers than there are, and those that the others have come
/// back only when it is done. Seed 95600133770 of the simulator.
#[test]
fn a_large_bundle_does_not_wait_for_buffers_of_those_behind_it() {
    let scheme = SchemeOptions { untorn_bytes: BUNDLE * CHUNK, ..SchemeOptions::default() };
    let create = CreateOptions { unit_rows: Some(8), ..create_options(SchemeKind::Elastic, 8, 1) };
    let devices = fresh(&create, 64, 0);
    let mut array = assemble(devices, 9, EngineOptions { scheme, ..options() }).0;
    assert_eq!(array.engine_ref().untorn_bytes(), BUNDLE * CHUNK, "or the test shows nothing");
    let mut begun = Vec::new();
    while begin(&mut array, &mut begun, BUNDLE) {}
    let large = begun.len() as u64;
    assert!(large > 4, "{large} large writes");
    // Half as many each time, until nothing is left.
    for count in [128, 64, 32, 16, 8, 4, 2, 1] {
        begin(&mut array, &mut begun, count);
    }
    // Not until all is settled: should it wait for ever, so would the test.
    while array.turn() {}
    let mut answers = Vec::new();
    array.take_answers(&mut answers);
    assert_eq!(answers.len(), begun.len(), "each is answered");
    assert!(answers.iter().all(|done| done.result.is_ok()), "{answers:?}");
    begun.into_iter().flatten().for_each(|slot| array.engine().pool().free(slot));
    for at in 0..large {
        let found = read(&mut array, (at * BUNDLE + BUNDLE - 1) * CHUNK, CHUNK).unwrap();
        assert!(found.iter().all(|&byte| u64::from(byte) == at), "bundle {at}");
    }
}
