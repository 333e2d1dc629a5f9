//! More is lost than the code makes up for: it is listed, it stays listed over a restart as a figure, and
//! when it was rewritten or discarded the rebuild that met it ends by itself.
#![allow(clippy::cast_possible_truncation, reason = "patterns wrap around")]

use crate::common::{assemble, create_options, discard, fresh, options, read, write};
use array::{Array, ArrayState, EngineError, Located};
use block::{DevIndex, Durability, Lcn};
use device::MemorySet;
use format::{Consistency, SchemeKind};

const CHUNK: u64 = 4096;
const CHUNKS: u64 = 400;

fn content(lcn: u64) -> Vec<u8> {
    (0..CHUNK).map(|at| (lcn * 31 + at / 7 + 1) as u8).collect()
}

/// An array full of known data, on which every chunk of `rotten` is bad.
fn rotten(scheme: SchemeKind, rotten: &[u64]) -> (Array<MemorySet>, usize) {
    let mut create = create_options(scheme, 3, 1);
    create.consistency = Consistency::Journal;
    let logs = usize::from(scheme.has_log());
    let (mut array, _) = assemble(fresh(&create, 8, 8), 4 + logs, options());
    for lcn in (0..CHUNKS).step_by(20) {
        let bytes: Vec<u8> = (lcn..lcn + 20).flat_map(content).collect();
        write(&mut array, lcn * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
    array.run(|e, tag| e.commit(tag)).unwrap();
    array.run(|e, tag| e.flush(tag)).unwrap();
    array.settle();
    for &lcn in rotten {
        let addr = addr_of(&array, lcn);
        let offset = array.engine_ref().store().offset_of(addr) as usize;
        array.devices().bytes_mut(addr.dev)[offset..offset + 64].fill(0xbd);
    }
    (array, 4 + logs)
}

fn addr_of(array: &Array<MemorySet>, lcn: u64) -> block::ChunkAddr {
    let engine = array.engine_ref();
    match engine.scheme().locate(engine.store(), Lcn::new(lcn)) {
        Located::At { piece, .. } => piece.addr,
        Located::Zero => panic!("chunk {lcn} was written"),
    }
}

fn lost(array: &Array<MemorySet>) -> Vec<u64> {
    let stretches = array.engine_ref().losses().chunks.stretches();
    stretches.flat_map(|(first, count)| first..first + count).collect()
}

/// Lets the array work until it is healthy; time passes as in a server that nobody talks to.
fn until_healthy(array: &mut Array<MemorySet>, mut now_ns: u64) {
    for _ in 0..1_000_000 {
        if array.engine_ref().health().array_state() == ArrayState::Healthy {
            return;
        }
        if !array.turn() {
            now_ns = array.engine_ref().next_deadline_ns().unwrap_or(now_ns).max(now_ns) + 1;
            array.engine().set_now(now_ns);
        }
    }
    panic!("the array does not become healthy");
}

/// Member 0 goes; while another takes its place, chunks of others turn out bad, so that their stripes are
/// lost in part.
fn a_rebuild_ends_when_what_was_lost_is_rewritten(scheme: SchemeKind) {
    // Two of each of some stripes are bad: with the lost member more than one parity makes up for.
    let (mut array, count) = rotten(scheme, &[4, 31, 160, 161]);
    let first = DevIndex::new(0);
    array.engine().fail_device(first);
    array.devices().bytes_mut(first).fill(0);
    let ended = array.run(|e, tag| e.rebuild(tag, first, 77));
    assert!(matches!(ended, Err(EngineError::Lost { count: 1.. })), "{scheme}: {ended:?}");
    array.settle();
    let gone = lost(&array);
    assert!(!gone.is_empty() && gone.len() < 16, "{scheme}: {gone:?}");
    for lcn in 0..CHUNKS {
        let found = read(&mut array, lcn * CHUNK, CHUNK);
        match gone.contains(&lcn) {
            true => assert!(matches!(found, Err(EngineError::Unreadable { .. })), "{scheme}: chunk {lcn}"),
            false => assert!(found.unwrap() == content(lcn), "{scheme}: chunk {lcn}"),
        }
    }
    assert_eq!(lost(&array), gone, "{scheme}: reading finds no more than was listed");
    let superblock = array.engine_ref().superblock_of(DevIndex::new(1));
    assert_eq!(superblock.losses.chunks, gone.len() as u64);

    // The figure survives a restart, and the rebuild that goes on finds out again what it is.
    array.stop().unwrap();
    let (mut array, _) = assemble(array.into_devices(), count, options());
    assert_eq!(array.engine_ref().losses().noted, gone.len() as u64);
    assert!(array.run(|e, tag| e.resume_rebuild(tag)).is_err());
    array.settle();
    assert_eq!((array.engine_ref().losses().noted, lost(&array)), (0, gone.clone()), "{scheme}");
    assert!(array.engine_ref().losses().unfinished && array.engine_ref().next_deadline_ns().is_some());

    // Whole stripes are rewritten: an in-place scheme cannot do with less where two columns are gone. What
    // lay beside lost chunks in an elastic stripe was moved meanwhile.
    let rewritten = |stripe: &u64| gone.iter().any(|lcn| lcn / 3 == *stripe);
    let stripes: Vec<u64> = (0..CHUNKS.div_ceil(3)).filter(rewritten).collect();
    for (at, stripe) in stripes.iter().enumerate() {
        let lcns = stripe * 3..stripe * 3 + 3;
        if at == 0 {
            discard(&mut array, lcns.start * CHUNK, 3 * CHUNK).unwrap();
        }
        let bytes: Vec<u8> = lcns.clone().flat_map(content).collect();
        write(&mut array, lcns.start * CHUNK, &bytes, Durability::Durable).unwrap();
    }
    assert_eq!(lost(&array), [0; 0], "{scheme}");
    until_healthy(&mut array, 0);
    assert!(!array.engine_ref().losses().unfinished);
    assert_eq!(array.engine_ref().superblock_of(first).losses.chunks, 0);
    array.run(|e, tag| e.commit(tag)).unwrap();
    array.run(|e, tag| e.scrub(tag, 0)).unwrap();
    array.engine().fail_device(DevIndex::new(2));
    for lcn in 0..CHUNKS {
        assert!(read(&mut array, lcn * CHUNK, CHUNK).unwrap() == content(lcn), "{scheme}: chunk {lcn}");
    }
}

#[test]
fn a_rebuild_ends_when_what_was_lost_is_rewritten_with_eplog() {
    a_rebuild_ends_when_what_was_lost_is_rewritten(SchemeKind::Eplog);
}

#[test]
fn a_rebuild_ends_when_what_was_lost_is_rewritten_with_raid() {
    a_rebuild_ends_when_what_was_lost_is_rewritten(SchemeKind::Raid);
}

#[test]
fn a_rebuild_ends_when_what_was_lost_is_rewritten_with_parity_log() {
    a_rebuild_ends_when_what_was_lost_is_rewritten(SchemeKind::ParityLog);
}

#[test]
fn a_rebuild_ends_when_what_was_lost_is_rewritten_with_elastic() {
    a_rebuild_ends_when_what_was_lost_is_rewritten(SchemeKind::Elastic);
}

/// A chunk that alone is lost in its stripe (its parity is bad, too) can be rewritten alone.
#[test]
fn one_lost_chunk_of_a_stripe_in_place_can_be_rewritten_alone() {
    for scheme in [SchemeKind::Raid, SchemeKind::ParityLog] {
        let (mut array, _) = rotten(scheme, &[7]);
        let stripe = array.engine_ref().store().config.geometry.stripe_of(Lcn::new(7));
        let parity = array.engine_ref().store().layout.device(stripe, 3);
        let addr = block::ChunkAddr::new(parity, addr_of(&array, 7).chunk);
        let offset = array.engine_ref().store().offset_of(addr) as usize;
        array.devices().bytes_mut(parity)[offset..offset + 64].fill(0xbd);
        array.run(|e, tag| e.scrub(tag, 0)).unwrap_err();
        array.settle();
        assert_eq!(lost(&array), [7], "{scheme}");
        write(&mut array, 7 * CHUNK, &content(7), Durability::Durable).unwrap();
        assert_eq!(lost(&array), [0; 0], "{scheme}");
        array.run(|e, tag| e.commit(tag)).unwrap();
        array.run(|e, tag| e.scrub(tag, 0)).unwrap();
        assert!(
            read(&mut array, 6 * CHUNK, 3 * CHUNK).unwrap() == (6..9).flat_map(content).collect::<Vec<u8>>()
        );
    }
}
