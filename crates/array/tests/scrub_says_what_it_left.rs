//! A scrub that finds a bad chunk and has no room to write it anew does not say that all is well.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use array::{Array, EngineError, Located, arrange};
use block::{Durability, IoFault, Lcn, OpKind};
use common::{Ailing, create_options, fresh, options, superblocks};
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
