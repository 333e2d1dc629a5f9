//! Chunks of elastic schemes wait for others: until their group is full, their time is over, or somebody
//! needs them durable.

use crate::common::{assemble, create_options, fresh, options, read, write};
use array::{Array, EngineOptions, P_WAIT_NS_DEFAULT, SchemeOptions};
use block::{Durability, Slot};
use device::MemorySet;
use format::SchemeKind;
use placement::Tuning;

const CHUNK: u64 = 4096;

fn elastic(scheme: SchemeKind, scheme_options: SchemeOptions) -> Array<MemorySet> {
    let devices = fresh(&create_options(scheme, 3, 1), 16, 0);
    assemble(devices, 4, EngineOptions { scheme: scheme_options, ..options() }).0
}

/// Stripes written so far: whole and short ones.
fn stripes(array: &Array<MemorySet>) -> (u64, u64) {
    let stats = array.engine_ref().stats();
    (stats.full_stripes, stats.short_stripes)
}

fn put(array: &mut Array<MemorySet>, lcn: u64, durable: Durability) {
    write(array, lcn * CHUNK, &[lcn as u8; CHUNK as usize], durable).unwrap();
}

fn get(array: &mut Array<MemorySet>, lcn: u64) -> u8 {
    read(array, lcn * CHUNK, CHUNK).unwrap()[17]
}

/// Requirement W-39.
#[test]
fn a_chunk_waits_for_its_stripe_or_for_p_wait() {
    let mut array = elastic(SchemeKind::Elastic, SchemeOptions::default());
    array.engine().set_now(1_000);
    put(&mut array, 1, Durability::Volatile);
    array.engine().set_now(2_000);
    put(&mut array, 2, Durability::Volatile);
    array.settle();
    assert_eq!((stripes(&array), get(&mut array, 1)), ((0, 0), 1), "answered and readable, but not written");
    assert_eq!(array.engine_ref().next_deadline_ns(), Some(1_000 + P_WAIT_NS_DEFAULT));
    array.engine().set_now(999 + P_WAIT_NS_DEFAULT);
    array.settle();
    assert_eq!(stripes(&array), (0, 0));
    array.engine().set_now(1_000 + P_WAIT_NS_DEFAULT);
    array.settle();
    assert_eq!((stripes(&array), array.engine_ref().next_deadline_ns()), ((0, 1), None));
    for lcn in 3..6 {
        put(&mut array, lcn, Durability::Volatile);
    }
    array.settle();
    assert_eq!(stripes(&array), (1, 1), "a whole stripe does not wait");
    assert_eq!((get(&mut array, 2), get(&mut array, 5)), (2, 5));
}

/// Requirement L-11.
#[test]
fn a_flush_writes_what_waits_in_a_short_stripe_at_once() {
    let mut array = elastic(SchemeKind::Was, SchemeOptions::default());
    put(&mut array, 9, Durability::Volatile);
    array.settle();
    assert_eq!(stripes(&array), (0, 0));
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    assert_eq!(stripes(&array), (0, 1));
    // A durable write takes what waits in its class along: two of the three columns would be empty else.
    put(&mut array, 10, Durability::Volatile);
    put(&mut array, 12, Durability::Volatile);
    put(&mut array, 14, Durability::Durable);
    assert_eq!(stripes(&array), (1, 1));
    // Nothing that was answered as durable is lost with the memory.
    let devices = array.into_devices();
    let (mut array, _) = assemble(devices, 4, options());
    assert_eq!([9, 10, 12, 14].map(|lcn| get(&mut array, lcn)), [9, 10, 12, 14]);
}

/// Requirement A-15.
#[test]
fn an_update_of_what_waits_replaces_it() {
    let mut array = elastic(SchemeKind::Was, SchemeOptions::default());
    for _ in 0..100 {
        put(&mut array, 5, Durability::Volatile);
    }
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    let stats = array.engine_ref().stats();
    assert_eq!((stats.short_stripes, stats.cache.absorbed), (1, 99));
}

#[test]
fn p_wait_of_zero_writes_at_once_what_came_together() {
    let wait = SchemeOptions { p_wait_ns: Some(0), ..SchemeOptions::default() };
    let mut array = elastic(SchemeKind::Elastic, wait);
    let mut slots: Vec<Slot> = Vec::new();
    assert!(array.engine().take_slots(2, &mut slots));
    array.run(|engine, tag| engine.write(tag, 0, 2 * CHUNK, &slots, Durability::Volatile)).unwrap();
    array.settle();
    assert_eq!(stripes(&array), (0, 1));
}

#[test]
fn options_out_of_range_are_refused_when_the_array_starts() {
    let mut devices = fresh(&create_options(SchemeKind::Was, 3, 1), 16, 0);
    let found = crate::common::superblocks(&mut devices, 4);
    let arrangement = array::arrange(&found).unwrap();
    let scheme =
        SchemeOptions { tuning: Tuning { groups: 9, ..Tuning::default() }, ..SchemeOptions::default() };
    let error =
        Array::assemble(devices, &arrangement, 1, EngineOptions { scheme, ..options() }).err().unwrap();
    assert!(error.to_string().contains("groups"), "{error}");
}

#[test]
fn more_buffers_than_memory_are_refused_when_the_array_starts() {
    let huge = EngineOptions { pool_bytes: 1 << 62, ..options() };
    let wide = SchemeOptions { group_chunks: Some(u32::MAX), ..SchemeOptions::default() };
    for engine in [huge, EngineOptions { scheme: wide, ..options() }] {
        let mut devices = fresh(&create_options(SchemeKind::Was, 3, 1), 16, 0);
        let found = crate::common::superblocks(&mut devices, 4);
        let arrangement = array::arrange(&found).unwrap();
        let error = Array::assemble(devices, &arrangement, 1, engine).err().unwrap();
        assert!(error.to_string().contains("bytes cannot be had"), "{error}");
    }
}

/// What devices are told: chunks of one class share units, and say so.
/// Requirement W-15.
#[test]
fn writes_say_which_class_they_belong_to() {
    let mut array =
        elastic(SchemeKind::Was, SchemeOptions { p_wait_ns: Some(0), ..SchemeOptions::default() });
    let mut classes = std::collections::BTreeSet::new();
    for round in 0..40u64 {
        // Chunk 7 is written over and over, the others once.
        for lcn in [7, 100 + 3 * round] {
            let mut slots = Vec::new();
            assert!(array.engine().take_slots(1, &mut slots));
            let offset = lcn * CHUNK;
            array.engine().write(1, offset, CHUNK, &slots, Durability::Durable);
            array.engine().pump();
            let (ops, _) = array.engine().take_ops();
            classes.extend(ops.iter().filter(|op| op.stream == block::Stream::Data).map(|op| op.class));
            array.settle();
            array.engine().take_done().clear();
            array.engine().pool().free(slots[0]);
        }
    }
    assert_eq!(classes.into_iter().collect::<Vec<_>>(), [0, 1]);
}

/// Turns until all requests are answered, whose buffers go back then; panics if they are not
/// after many turns.
fn answered(array: &mut Array<MemorySet>, mut held: Vec<Vec<Slot>>) {
    let (mut answers, mut left) = (Vec::new(), held.len());
    for _ in 0..10_000 {
        array.turn();
        array.take_answers(&mut answers);
        for done in answers.drain(..) {
            assert!(done.result.is_ok());
            held[done.tag as usize].drain(..).for_each(|slot| array.engine().pool().free(slot));
            left -= 1;
        }
        if left == 0 {
            return;
        }
    }
    panic!("{left} of {} requests are not answered, and nothing goes on", held.len());
}

/// Requests hold their buffers until the last chunk is copied, or durable: what was copied must go out before
/// the rest.
#[test]
fn requests_that_take_all_buffers_make_room_for_themselves() {
    for (scheme, durable) in [
        (SchemeKind::Elastic, Durability::Volatile),
        (SchemeKind::Elastic, Durability::Durable),
        (SchemeKind::Was, Durability::Volatile),
        (SchemeKind::Was, Durability::Durable),
    ] {
        let group = SchemeOptions { group_chunks: Some(3), ..SchemeOptions::default() };
        let few = EngineOptions { pool_bytes: 0, scheme: group, ..options() };
        let devices = fresh(&create_options(scheme, 3, 1), 16, 0);
        let mut array = assemble(devices, 4, few).0;
        let most = array.engine_ref().slots_per_request_max();
        for (chunks, partial) in [(1, 0), (1, 512), (most, 0), (most, 512)] {
            let (mut held, mut at) = (Vec::new(), 0);
            let mut slots: Vec<Slot> = Vec::new();
            let mut size = chunks;
            while size > 0 {
                if !array.engine().take_slots(size, &mut slots) {
                    size /= 2;
                    continue;
                }
                let (tag, length) = (held.len() as u64, size as u64 * CHUNK - partial);
                array.engine().write(tag, at + partial, length, &slots, durable);
                at += size as u64 * CHUNK;
                held.push(std::mem::take(&mut slots));
            }
            answered(&mut array, held);
        }
    }
}
