//! A scrub that finds a bad chunk and has no room to write it anew does not say that all is well; nor does
//! one that begins while chunks are being written before it has looked at them.

use crate::common::{Ailing, create_options, fresh, options, superblocks};
use array::{Array, Done, EngineError, EngineOptions, Located, arrange};
use block::{DevIndex, Durability, IoFault, Lcn, OpKind};
use format::SchemeKind;

const CHUNK: u64 = 4096;

#[test]
fn a_chunk_that_there_is_no_room_to_heal_is_left_and_said() {
    for scheme in [SchemeKind::Raid, SchemeKind::Eplog, SchemeKind::Elastic] {
        let create = create_options(scheme, 4, 2);
        let mut inner = fresh(&create, 12, 64);
        let arrangement = arrange(&superblocks(&mut inner, if scheme.has_log() { 8 } else { 6 })).unwrap();
        let mut array = Array::assemble(Ailing::new(inner), &arrangement, 9, options()).unwrap().0;
        let mut slots = Vec::new();
        assert!(array.engine().take_slots(4, &mut slots));
        slots.iter().for_each(|&slot| array.engine().pool().bytes_mut(slot).fill(7));
        array.run(|e, tag| e.write(tag, 0, 4 * CHUNK, &slots, Durability::Durable)).unwrap();
        slots.into_iter().for_each(|slot| array.engine().pool().free(slot));
        let engine = array.engine_ref();
        let Located::At { piece, .. } = engine.scheme().locate(engine.store(), Lcn::new(1)) else {
            panic!("it was written");
        };
        let offset = usize::try_from(engine.store().offset_of(piece.addr)).unwrap();
        array.devices().inner.bytes_mut(piece.addr.dev)[offset] ^= 1;

        array.devices().layer.bad = Some((piece.addr.dev, OpKind::Write));
        array.devices().layer.fault = IoFault::NoSpace;
        array.devices().layer.from_bytes = offset as u64;
        let scrubbed = array.run(|e, tag| e.scrub(tag, 0));
        assert_eq!(scrubbed, Err(EngineError::Unhealed { count: 1 }), "{scheme}");
        let report = array.engine_ref().last_report();
        assert_eq!((report.chunks_left, report.errors_left(), report.chunks_repaired), (1, 1, 0), "{scheme}");

        array.devices().layer.bad = None;
        array.run(|e, tag| e.scrub(tag, 0)).unwrap();
        let report = array.engine_ref().last_report();
        assert_eq!((report.errors_left(), report.chunks_repaired), (0, 1), "{scheme}");
    }
}

/// Lets time pass, from a second of the engine's clock on.
fn turns(array: &mut Array<Ailing>, second: u64, answers: &mut Vec<Done>) {
    for turn in 0..500 {
        array.engine().set_now(second * 1_000_000_000 + turn * 1_000_000);
        array.turn();
        array.take_answers(answers);
    }
}

#[test]
fn what_was_being_written_when_a_scrub_began_is_looked_at() {
    const WRITE: u64 = 1;
    const SCRUB: u64 = 2;
    let create = create_options(SchemeKind::Elastic, 4, 2);
    let mut inner = fresh(&create, 12, 64);
    let arrangement = arrange(&superblocks(&mut inner, 6)).unwrap();
    let options = EngineOptions { room_wait_ns: 1_000_000_000_000, ..options() };
    let mut array = Array::assemble(Ailing::new(inner), &arrangement, 9, options).unwrap().0;
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(4, &mut slots));
    slots.iter().for_each(|&slot| array.engine().pool().bytes_mut(slot).fill(7));

    // One member has no room for its part of a row; a bit of what another has written rots meanwhile.
    let lacking = DevIndex::new(0);
    let data = array.engine_ref().store().config.chunk_offset(block::ChunkIndex::new(1));
    array.devices().layer.bad = Some((lacking, OpKind::Write));
    array.devices().layer.fault = IoFault::NoSpace;
    array.devices().layer.from_bytes = data;
    array.engine().write(WRITE, 0, 4 * CHUNK, &slots, Durability::Durable);
    let mut answers = Vec::new();
    turns(&mut array, 1, &mut answers);
    let data = usize::try_from(data).unwrap();
    let is_there = |array: &mut Array<Ailing>, dev| array.devices().inner.bytes_mut(dev)[data] == 7;
    let written = (1..6).map(DevIndex::new).find(|&dev| is_there(&mut array, dev)).unwrap();
    array.devices().inner.bytes_mut(written)[data] ^= 1;

    array.engine().scrub(SCRUB, 0);
    turns(&mut array, 2, &mut answers);
    assert_eq!(answers, [], "neither can end while a member lacks room");
    array.devices().layer.bad = None;
    turns(&mut array, 3, &mut answers);
    answers.sort_unstable_by_key(|done| done.tag);
    assert_eq!(answers, [WRITE, SCRUB].map(|tag| Done { tag, result: Ok(()) }));
    let report = array.engine_ref().last_report();
    assert_eq!((report.errors_left(), report.chunks_repaired), (0, 1));
    assert!(is_there(&mut array, written));
}
