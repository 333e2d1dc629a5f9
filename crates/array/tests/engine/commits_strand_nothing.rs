//! A parity commit dissolves log stripes. Where too much of a stripe is lost, a log stripe may be all that
//! one of its chunks can be had from: then it stays.
#![allow(clippy::cast_possible_truncation, reason = "patterns wrap around")]

use crate::common::{assemble, create_options, fresh, options, read, write};
use array::{Array, EngineError, Located};
use block::{ChunkAddr, DevIndex, Durability, Lcn};
use device::MemorySet;
use format::SchemeKind;

const CHUNK: u64 = 4096;
const K: u64 = 6;

fn content(lcn: u64) -> Vec<u8> {
    (0..CHUNK).map(|at| (lcn * 31 + at / 7 + 1) as u8).collect()
}

fn addr_of(array: &Array<MemorySet>, lcn: u64) -> ChunkAddr {
    let engine = array.engine_ref();
    match engine.scheme().locate(engine.store(), Lcn::new(lcn)) {
        Located::At { piece, .. } => piece.addr,
        Located::Zero => panic!("chunk {lcn} was written"),
    }
}

fn spoil(array: &mut Array<MemorySet>, addr: ChunkAddr) {
    let offset = array.engine_ref().store().offset_of(addr) as usize;
    array.devices().bytes_mut(addr.dev)[offset..offset + 64].fill(0xbd);
}

fn write_chunk(array: &mut Array<MemorySet>, lcn: u64) {
    write(array, lcn * CHUNK, &content(lcn), Durability::Durable).unwrap();
}

fn expect(array: &mut Array<MemorySet>, lcns: impl Iterator<Item = u64>) {
    lcns.for_each(|lcn| assert!(read(array, lcn * CHUNK, CHUNK).unwrap() == content(lcn), "chunk {lcn}"));
}

/// An array whose first stripe has all its chunks but the first, and its parity.
fn all_but_the_first() -> Array<MemorySet> {
    let create = create_options(SchemeKind::Eplog, K as usize, 2);
    let (mut array, _) = assemble(fresh(&create, 8, 8), K as usize + 4, options());
    (1..K).for_each(|lcn| write_chunk(&mut array, lcn));
    array.run(|e, tag| e.commit(tag)).unwrap();
    array
}

/// The device of chunk 0 is out of service, and of its stripe more is bad than the code makes up for with
/// that. The chunk is in a log stripe.
#[test]
fn a_chunk_that_only_its_log_stripe_gives_is_not_taken_from_there() {
    let mut array = all_but_the_first();
    write_chunk(&mut array, 0);
    let gone = addr_of(&array, 0).dev;
    array.engine().fail_device(gone);
    array.settle();
    let bad = [1, 2, 3];
    for lcn in bad {
        let addr = addr_of(&array, lcn);
        spoil(&mut array, addr);
    }
    for lcn in bad {
        assert!(matches!(read(&mut array, lcn * CHUNK, CHUNK), Err(EngineError::Unreadable { .. })));
    }
    expect(&mut array, [0, 4, 5].into_iter());
    let ended = array.run(|e, tag| e.commit(tag));
    assert!(matches!(ended, Err(EngineError::CommitStuck { count: 1 })), "{ended:?}");
    expect(&mut array, [0, 4, 5].into_iter());

    // With what was lost written anew there is nothing to be careful about.
    bad.iter().for_each(|&lcn| write_chunk(&mut array, lcn));
    array.run(|e, tag| e.commit(tag)).unwrap();
    array.devices().bytes_mut(gone).fill(0);
    array.run(|e, tag| e.rebuild(tag, gone, 77)).unwrap();
    expect(&mut array, 0..K);
    [1, 2].into_iter().for_each(|dev| array.engine().fail_device(DevIndex::new(dev)));
    expect(&mut array, 0..K);
}

/// One chunk of a stripe is lost with all of its parity, and written anew: what it was is not needed any
/// more.
#[test]
fn one_lost_chunk_that_is_rewritten_alone_is_committed() {
    let mut array = all_but_the_first();
    write_chunk(&mut array, 0);
    array.run(|e, tag| e.commit(tag)).unwrap();
    let addr = addr_of(&array, 3);
    spoil(&mut array, addr);
    for row in 0..2 {
        let store = array.engine_ref().store();
        let stripe = store.config.geometry.stripe_of(Lcn::new(3));
        let dev = store.layout.device(stripe, K as usize + row);
        let addr = ChunkAddr::new(dev, store.table.parity(stripe, row).chunk);
        spoil(&mut array, addr);
    }
    array.run(|e, tag| e.scrub(tag, 0)).unwrap_err();
    array.settle();
    assert!(array.engine_ref().losses().chunks.contains(Lcn::new(3)));
    write_chunk(&mut array, 3);
    assert_eq!(array.engine_ref().losses().chunks.count(), 0);
    array.run(|e, tag| e.commit(tag)).unwrap();
    array.run(|e, tag| e.scrub(tag, 0)).unwrap();
    expect(&mut array, 0..K);
}
