//! What synchronous writes of one chunk cost: blocks and flushes of the SSDs, and of log devices that hold
//! journal frames alone.

use crate::common::{create_options, fresh_with_logs, options, superblocks, write_many};
use array::{Array, SyncPolicy, arrange};
use block::{Durability, Random as _, SplitMix, Stream};
use device::{Counting, MemorySet};
use format::SchemeKind;

const CHUNK: u64 = 4096;
const K: usize = 6;
const M: usize = 2;
const STRIPE: u64 = 6 * CHUNK;
const WRITES: u64 = 4000;

type Counted = Array<Counting<MemorySet>>;

/// An array whose chunks were all written once.
fn array(logs: usize) -> Counted {
    let create = create_options(SchemeKind::Eplog, K, M);
    let mut devices = fresh_with_logs(&create, 24, 64, logs);
    let arrangement = arrange(&superblocks(&mut devices, K + M + logs)).unwrap();
    let options = array::EngineOptions { sync: SyncPolicy::Always, ..options() };
    let (mut array, _) = Array::assemble(Counting::new(devices), &arrangement, 9, options).unwrap();
    let stripes = array.engine().volume_bytes() / STRIPE;
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(K, &mut slots));
    for stripe in 0..stripes {
        array.run(|e, tag| e.write(tag, stripe * STRIPE, STRIPE, &slots, Durability::Volatile)).unwrap();
    }
    slots.into_iter().for_each(|slot| array.engine().pool().free(slot));
    array.settle();
    array.devices().reset();
    array
}

/// Updates chunks of the first eighth, `depth` at a time.
fn update(array: &mut Counted, depth: usize) {
    let chunks = array.engine().volume_bytes() / CHUNK / 8;
    let mut rng = SplitMix::new(7);
    write_many(array, (WRITES, depth), || (rng.below(chunks) * CHUNK, Durability::Volatile));
}

/// What went to the members `from..to` for each write: blocks of some streams, and flushes.
fn cost(array: &mut Counted, (from, to): (usize, usize), streams: &[Stream]) -> (f64, f64) {
    let devices = array.devices();
    let counters = (from..to).map(|index| devices.devices()[index]);
    let (mut bytes, mut flushes) = (0, 0);
    for counters in counters {
        bytes += streams.iter().map(|stream| counters.write_bytes[stream.index()]).sum::<u64>();
        flushes += counters.flushes;
    }
    (bytes as f64 / CHUNK as f64 / WRITES as f64, flushes as f64 / WRITES as f64)
}

#[test]
fn a_synchronous_write_costs_its_chunk_and_a_share_of_a_frame_or_no_frame() {
    let most = [(M, 1, 2.05), (M, 32, 1.15), (M + 1, 1, 1.05), (M + 1, 32, 1.03)];
    for (logs, depth, blocks_max) in most {
        let mut array = array(logs);
        update(&mut array, depth);
        let (blocks, flushes) = cost(&mut array, (0, K + M), &Stream::ALL);
        let checkpoints = array.engine().stats().checkpoints;
        println!("{logs} logs, depth {depth}: {blocks} blocks, {flushes} flushes, {checkpoints} checkpoints");
        assert!(blocks >= 1.0, "every chunk is written");
        assert!(blocks <= blocks_max, "{logs} logs, depth {depth}: {blocks} blocks of SSDs per write");
        // The frame goes to a device that is flushed for its chunk, unless its ring is ahead of others.
        assert!(flushes <= 1.1, "{logs} logs, depth {depth}: {flushes} flushes of SSDs per write");
    }
}

#[test]
fn a_log_device_more_than_parities_holds_one_copy_of_each_frame_and_nothing_else() {
    let mut array = array(M + 1);
    update(&mut array, 1);
    let (chunks, _) = cost(&mut array, (K + M, K + M + M), &[Stream::Log]);
    let (inline, _) = cost(&mut array, (K + M, K + M + M), &[Stream::Metadata]);
    let frame_log = (K + M + M, K + M + M + 1);
    let (frames, _) = cost(&mut array, frame_log, &[Stream::Metadata]);
    let (all, _) = cost(&mut array, frame_log, &Stream::ALL);
    assert_eq!(chunks, M as f64, "a log chunk for each parity");
    assert_eq!(all, frames, "nothing but frames");
    assert_eq!(inline, M as f64 * frames, "as many as each of the other log devices");
    assert!((1.0..1.01).contains(&frames), "{frames} frames for each write");
}
