//! Large blocks that are not to be torn, where requests behind them have all buffers.

use crate::common::{assemble, create_options, fresh, options, read};
use array::{Array, CreateOptions, EngineOptions, SchemeOptions};
use block::{Durability, Slot};
use device::MemorySet;
use format::SchemeKind;

const CHUNK: u64 = 4096;
const BUNDLE: u64 = 256;

/// Begins a write of so many chunks, each full of one byte; its buffers, or `None` if there are none for it.
fn begin(array: &mut Array<MemorySet>, first: u64, count: u64, byte: u8) -> Option<Vec<Slot>> {
    let mut slots = Vec::new();
    if !array.engine().take_slots(count as usize, &mut slots) {
        return None;
    }
    slots.iter().for_each(|&slot| array.engine().pool().bytes_mut(slot).fill(byte));
    array.engine().write(u64::from(byte), first * CHUNK, count * CHUNK, &slots, Durability::Volatile);
    Some(slots)
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
    let mut begun: Vec<Vec<Slot>> = Vec::new();
    let number = |begun: &Vec<Vec<Slot>>| u8::try_from(begun.len()).expect("a byte for each");
    while let Some(slots) = {
        let byte = number(&begun);
        begin(&mut array, u64::from(byte) * BUNDLE, BUNDLE, byte)
    } {
        begun.push(slots);
    }
    let large = begun.len() as u64;
    assert!(large > 4, "{large} large writes");
    // Half as many each time, until nothing is left.
    for count in [128, 64, 32, 16, 8, 4, 2, 1] {
        let byte = number(&begun);
        begun.extend(begin(&mut array, u64::from(byte) * BUNDLE, count, byte));
    }
    array.settle();
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
