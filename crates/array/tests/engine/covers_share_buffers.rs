//! Many covers at once and few buffers: each needs as many chunks as a stripe has, some of them sums of a
//! chunk and its changes in the log. They get them one cover after the other, and all of them end.

use crate::common::{Ailing, create_options, fresh, options, superblocks};
use array::{Array, EngineOptions, Located, arrange};
use block::{Durability, Lcn, OpKind};
use format::SchemeKind;

const CHUNK: u64 = 4096;
const K: u64 = 8;
const SCRUB: u64 = 77;
/// A scrub of so few stripes takes fewer turns by far.
const TURNS_MAX: usize = 20_000;

/// Stripes one after the other, and then changes of some of their chunks.
fn filled(array: &mut Array<Ailing>) {
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(8, &mut slots));
    slots.iter().for_each(|&slot| array.engine().pool().bytes_mut(slot).fill(7));
    let stripes = array.engine_ref().store().config.stripe_count.min(150);
    for stripe in 0..stripes {
        let at = stripe * K * CHUNK;
        array.run(|e, tag| e.write(tag, at, K * CHUNK, &slots, Durability::Volatile)).unwrap();
    }
    for update in 0..3 * stripes {
        let at = (update % stripes * K + update % K) * CHUNK;
        array.engine().pool().bytes_mut(slots[0]).fill(update as u8);
        array.run(|e, tag| e.write(tag, at, CHUNK, &slots[..1], Durability::Volatile)).unwrap();
    }
    slots.into_iter().for_each(|slot| array.engine().pool().free(slot));
}

#[test]
fn a_scrub_ends_when_a_member_cannot_be_read_and_buffers_are_few() {
    for scheme in [SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Eplog] {
        let create = create_options(scheme, 8, 1);
        let mut inner = fresh(&create, 12, 64);
        let arrangement = arrange(&superblocks(&mut inner, if scheme.has_log() { 10 } else { 9 })).unwrap();
        let options = EngineOptions { pool_bytes: 2 << 20, unit_stripes: 100, ..options() };
        let mut array = Array::assemble(Ailing::new(inner), &arrangement, 9, options).unwrap().0;
        filled(&mut array);
        let engine = array.engine_ref();
        let Located::At { piece, .. } = engine.scheme().locate(engine.store(), Lcn::new(3)) else {
            panic!("it was written");
        };
        let first = engine.store().config.chunk_offset(block::ChunkIndex::new(1));
        array.devices().layer.bad = Some((piece.addr.dev, OpKind::Read));
        array.devices().layer.from_bytes = first;
        array.engine().scrub(SCRUB, 0);
        let mut answers = Vec::new();
        for _ in 0..TURNS_MAX {
            array.turn();
            array.take_answers(&mut answers);
            if !answers.is_empty() {
                break;
            }
        }
        assert!(answers.iter().any(|done| done.tag == SCRUB), "{scheme}: no answer");
        let report = array.engine_ref().last_report();
        assert!(report.chunks_repaired > 100 && report.lost == 0, "{scheme}: {report:?}");
    }
}
