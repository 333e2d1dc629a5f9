//! Garbage collection of elastic stripes through the engine: what it costs those who wait, and what
//! it gives back.

use crate::common::{assemble, create_options, discard, fresh, options, write};
use array::{Array, CreateOptions, DiscardPolicy, EngineOptions};
use block::{DevIndex, DeviceSet, Durability, OpKind};
use device::MemorySet;
use format::SchemeKind;

const CHUNK: u64 = 4096;

/// An array with no more spare space than it must have; units of `unit_rows` rows.
fn smallest(scheme: SchemeKind, unit_rows: u32, mib: u64, engine: EngineOptions) -> Array<MemorySet> {
    let create =
        CreateOptions { reserve_permille: 0, unit_rows: Some(unit_rows), ..create_options(scheme, 3, 1) };
    assemble(fresh(&create, mib, 0), 4, engine).0
}

/// Writes the whole volume once.
fn fill(array: &mut Array<MemorySet>) {
    let volume = array.engine_ref().volume_bytes();
    let mut at = 0;
    while at < volume {
        let length = (volume - at).min(96 * CHUNK);
        write(array, at, &vec![1; length as usize], Durability::Volatile).unwrap();
        at += length;
    }
    array.run(|engine, tag| engine.flush(tag)).unwrap();
}

/// Writes that find no room are tried again when there is more, not whenever something happens.
#[test]
fn a_refusal_is_not_repeated_while_nothing_changed() {
    for scheme in [SchemeKind::Elastic, SchemeKind::Was] {
        let mut array = smallest(scheme, 4, 8, options());
        fill(&mut array);
        let chunks = array.engine_ref().volume_bytes() / CHUNK;
        let mut rounds = 0;
        for round in 0..100u64 {
            let mut slots = Vec::new();
            for tag in 0..300 {
                assert!(array.engine().take_slots(1, &mut slots));
                let lcn = (round * 300 + tag).wrapping_mul(0x9e37_79b9) % chunks;
                let slot = &slots[tag as usize..];
                array.engine().write(tag, lcn * CHUNK, CHUNK, slot, Durability::Durable);
            }
            let earlier = array.engine_ref().stats().refusals;
            array.engine().pump();
            let before = array.engine_ref().stats().refusals;
            rounds += u32::from(before > earlier);
            // Nothing is submitted, so nothing ends.
            (0..50).for_each(|_| array.engine().pump());
            assert_eq!(array.engine_ref().stats().refusals, before, "round {round}");
            array.settle();
            let mut answers = Vec::new();
            array.take_answers(&mut answers);
            assert!(answers.len() == 300 && answers.iter().all(|done| done.result.is_ok()), "round {round}");
            slots.drain(..).for_each(|slot| array.engine().pool().free(slot));
        }
        assert!(rounds > 10, "hardly ever short of rows: {rounds} rounds");
    }
}

/// A row that scrub was to come back to, and that was freed meanwhile, may be written again at any moment: it
/// is none of its business any more.
#[test]
fn maintenance_does_not_come_back_to_rows_that_were_freed() {
    let mut met = 0;
    for turns in 1..24 {
        let one = EngineOptions { units_in_flight: 1, ..options() };
        let mut array = smallest(SchemeKind::Elastic, 4, 8, one);
        let data_start = array.engine_ref().store().config.data_start();
        write(&mut array, 0, &vec![7; 48 * CHUNK as usize], Durability::Durable).unwrap();
        // Two pieces of each of 16 rows are bad: more than one parity makes up for.
        for row in 0..16 {
            for dev in [0, 1] {
                array.devices().write_now(DevIndex::new(dev), data_start + row * CHUNK, &[9; 4096]).unwrap();
            }
        }
        let tag = array.own_tag();
        array.engine().scrub(tag, 0);
        (0..turns).for_each(|_| _ = array.turn());
        let Some((_, _, report)) = array.engine_ref().maintenance() else { break };
        met += u64::from(report.lost > 0);
        let volume = array.engine_ref().volume_bytes();
        discard(&mut array, 0, volume).unwrap();
        array.settle();
        // What is under way may end; the rest is not looked at.
        let lost = array.engine_ref().last_report().lost;
        assert!(
            array.engine_ref().last_report().completed && lost <= report.lost + 1,
            "{turns}: {report:?} {lost}"
        );
    }
    assert!(met > 2, "rows were looked at one by one in {met} of the runs only");
}

/// Turns until nothing is in flight; the bytes of the discards that devices were told of.
fn settle_and_look(array: &mut Array<MemorySet>, discards: &mut Vec<u64>) {
    loop {
        array.engine().pump();
        let (ops, _) = array.engine().take_ops();
        discards.extend(ops.iter().filter(|op| op.kind == OpKind::Discard).map(|op| op.length_bytes));
        if !array.turn() && array.engine_ref().is_idle() {
            return;
        }
    }
}

/// Units that are large enough are discarded on each device when they are free; smaller ones are not worth
/// it. Requirement L-05.
#[test]
fn large_units_are_discarded_when_they_are_free() {
    for (least, expected) in [(None, false), (Some(8 * CHUNK + 1), false), (Some(8 * CHUNK), true)] {
        let discard = DiscardPolicy { unit_bytes: least, ..DiscardPolicy::default() };
        let engine = EngineOptions { discard, ..options() };
        let mut array = smallest(SchemeKind::Elastic, 8, 8, engine);
        fill(&mut array);
        let chunks = array.engine_ref().volume_bytes() / CHUNK;
        let mut found = Vec::new();
        for round in 0..3000u64 {
            let mut slots = Vec::new();
            assert!(array.engine().take_slots(1, &mut slots));
            let lcn = round.wrapping_mul(0x9e37_79b9) % chunks;
            array.engine().write(0, lcn * CHUNK, CHUNK, &slots, Durability::Durable);
            settle_and_look(&mut array, &mut found);
            array.engine().take_done().clear();
            array.engine().pool().free(slots[0]);
        }
        let collected = array.engine_ref().scheme().gc_stats().units_collected;
        assert!(collected > 20, "{collected} units");
        assert_eq!(!found.is_empty(), expected, "{least:?}: {found:?}");
        assert!(found.iter().all(|&bytes| bytes == 8 * CHUNK), "{found:?}");
    }
}
