//! What waits for a parity commit takes no more of memory than it may: beyond that commits begin, be it of
//! what an assembly before left, which had more.

use crate::common::{assemble, create_options, fresh, options, read, write};
use array::{Array, EngineOptions, Pressure};
use block::Durability;
use device::MemorySet;
use format::SchemeKind;

const CHUNK: u64 = 4096;
const K: u64 = 6;
const MEMBERS: usize = 10;
const STRIPES: u64 = 1000;
/// Words of a checkpoint's list that a dirty stripe with one updated column takes at least.
const WORDS_LEAST: u64 = 4;

fn bounded(list_bytes: Option<u64>) -> EngineOptions {
    let mut options = options();
    options.scheme.list_bytes = list_bytes;
    options
}

fn content(lcn: u64, version: u8) -> Vec<u8> {
    let mut bytes = vec![version; CHUNK as usize];
    bytes[..8].copy_from_slice(&lcn.to_le_bytes());
    bytes
}

fn pressure(array: &Array<MemorySet>) -> Pressure {
    let engine = array.engine_ref();
    engine.scheme().pressure(engine.store())
}

/// Writes all stripes, and then the first chunk of each once more, one by one.
fn updated(options: EngineOptions) -> Array<MemorySet> {
    let create = create_options(SchemeKind::Eplog, K as usize, 2);
    let (mut array, _) = assemble(fresh(&create, 32, 32), MEMBERS, options);
    for stripe in 0..STRIPES {
        let lcns = stripe * K..(stripe + 1) * K;
        let bytes: Vec<u8> = lcns.flat_map(|lcn| content(lcn, 1)).collect();
        write(&mut array, stripe * K * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
    for stripe in 0..STRIPES {
        let lcn = stripe * K;
        write(&mut array, lcn * CHUNK, &content(lcn, 2), Durability::Durable).unwrap();
    }
    array
}

fn expect_all(array: &mut Array<MemorySet>) {
    for lcn in 0..STRIPES * K {
        let version = if lcn % K == 0 { 2 } else { 1 };
        assert!(read(array, lcn * CHUNK, CHUNK).unwrap() == content(lcn, version), "chunk {lcn}");
    }
}

#[test]
fn updates_beyond_the_bound_are_committed() {
    let dirty = pressure(&updated(bounded(None))).dirty_stripes;
    assert_eq!(dirty, STRIPES, "there is room for all of them on the devices");
    for list_bytes in [6_000, 12_000] {
        let mut array = updated(bounded(Some(list_bytes)));
        array.settle();
        let dirty = pressure(&array).dirty_stripes;
        assert!(dirty > 0 && dirty <= list_bytes / 4 / WORDS_LEAST, "{dirty} within {list_bytes} bytes");
        expect_all(&mut array);
    }
}

#[test]
fn what_an_assembly_with_more_memory_left_is_committed_first() {
    let list_bytes = 6_000;
    let array = updated(bounded(None));
    let (mut array, report) = assemble(array.into_devices(), MEMBERS, bounded(Some(list_bytes)));
    assert!(!report.was_clean);
    assert_eq!(pressure(&array).dirty_stripes, STRIPES);
    write(&mut array, 0, &content(0, 2), Durability::Durable).unwrap();
    array.settle();
    let dirty = pressure(&array).dirty_stripes;
    assert!(dirty <= list_bytes / 4 / WORDS_LEAST, "{dirty} within {list_bytes} bytes");
    expect_all(&mut array);
}
