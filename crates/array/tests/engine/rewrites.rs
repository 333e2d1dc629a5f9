//! Stripes that are written again as a whole (scheme eplog): what that costs, and that content survives it.

use crate::common::*;
use array::{Array, EngineOptions, Rewrites};
use block::{DevIndex, Durability, Random as _, SplitMix};
use device::MemorySet;
use format::SchemeKind;

const CHUNK: u64 = 4096;

fn with(rewrites: Rewrites) -> EngineOptions {
    let mut options = options();
    options.scheme.rewrites = rewrites;
    options
}

fn array(k: usize, m: usize, options: EngineOptions) -> Array<MemorySet> {
    assemble(fresh(&create_options(SchemeKind::Eplog, k, m), 10, 8), k + 2 * m, options).0
}

fn content(seed: u64, len: u64) -> Vec<u8> {
    let mut random = SplitMix::new(seed);
    (0..len / 8).flat_map(|_| random.word().to_le_bytes()).collect()
}

/// Writes `bytes` from the volume's beginning on, in requests of `request` bytes, `depth` of them in a turn.
fn write_through(array: &mut Array<MemorySet>, bytes: &[u8], request: usize, depth: usize) {
    let chunk = CHUNK as usize;
    for (round, turn) in bytes.chunks(request * depth).enumerate() {
        let at = round * request * depth;
        let mut slots = Vec::new();
        assert!(array.engine().take_slots(turn.len() / chunk, &mut slots));
        for (&slot, bytes) in slots.iter().zip(turn.chunks(chunk)) {
            array.engine().pool().bytes_mut(slot).copy_from_slice(bytes);
        }
        array
            .run(|engine, tag| {
                // The last one carries the tag that is waited for; what it waits for came before.
                let count = turn.len().div_ceil(request);
                for (nth, bytes) in turn.chunks(request).enumerate() {
                    let tag = if nth + 1 == count { tag } else { nth as u64 };
                    let slots = &slots[nth * request / chunk..][..bytes.len() / chunk];
                    let offset = (at + nth * request) as u64;
                    engine.write(tag, offset, bytes.len() as u64, slots, Durability::Volatile);
                }
            })
            .unwrap();
        array.settle();
        slots.iter().for_each(|&slot| array.engine().pool().free(slot));
    }
}

/// As much of the volume as these requests fill, a multiple of both.
fn length(array: &mut Array<MemorySet>, turn: usize) -> u64 {
    array.engine().volume_bytes() / turn as u64 * turn as u64
}

#[track_caller]
fn reads_back(array: &mut Array<MemorySet>, expected: &[u8]) {
    for (nth, part) in expected.chunks(1 << 20).enumerate() {
        assert!(read(array, (nth << 20) as u64, part.len() as u64).unwrap() == part, "MiB {nth}");
    }
}

#[test]
fn sequential_rewrites_of_whole_stripes_cost_no_log_chunk_and_no_commit() {
    for rewrites in [Rewrites::Auto, Rewrites::Replace] {
        sequential_rewrites_cost_no_log_chunk(rewrites);
    }
}

fn sequential_rewrites_cost_no_log_chunk(rewrites: Rewrites) {
    let mut array = array(4, 1, with(rewrites));
    let len = length(&mut array, 1 << 20);
    let stripes = len / (4 * CHUNK);
    assert!(stripes > 1024, "more than are remembered: {stripes}");
    let mut last = Vec::new();
    for pass in 0..4 {
        last = content(pass, len);
        write_through(&mut array, &last, 1 << 20, 1);
    }
    array.run(|e, tag| e.commit(tag)).unwrap();
    let stats = array.engine().stats();
    assert_eq!((stats.log_stripes, stats.commits, stats.stripes_committed), (0, 0, 0));
    assert_eq!((stats.full_stripes, stats.replaced_stripes), (4 * stripes, 3 * stripes));
    reads_back(&mut array, &last);
}

#[test]
fn the_same_rewrites_are_logged_and_committed_if_they_are_to_be() {
    let mut array = array(4, 1, with(Rewrites::Log));
    let len = length(&mut array, 1 << 20).min(4 << 20);
    let stripes = len / (4 * CHUNK);
    for pass in 0..2 {
        write_through(&mut array, &content(pass, len), 1 << 20, 1);
    }
    array.run(|e, tag| e.commit(tag)).unwrap();
    let stats = array.engine().stats();
    assert_eq!((stats.full_stripes, stats.replaced_stripes), (stripes, 0), "only the first time");
    assert_eq!(stats.log_members, len / CHUNK);
    assert!(stats.stripes_committed > stripes / 2, "{}", stats.stripes_committed);
}

/// 384 KiB are 16 stripes of 6 chunks, in three requests that end within stripes; together they are more than
/// a batch takes.
#[test]
fn stripes_that_requests_of_one_turn_share_are_written_whole() {
    let mut options = with(Rewrites::Replace);
    options.batch_max = 64;
    let mut array = array(6, 2, options);
    let (request, depth) = (128 << 10, 3);
    let len = length(&mut array, request * depth);
    for pass in 0..2 {
        write_through(&mut array, &content(pass, len), request, depth);
    }
    let stats = array.engine().stats();
    assert_eq!((stats.log_stripes, stats.full_stripes), (0, 2 * len / (6 * CHUNK)));
    // One at a time, both ends of a request are parts of stripes: 32 chunks are 4 or 5 stripes and a rest.
    write_through(&mut array, &content(2, len), request, 1);
    let alone = array.engine().stats().full_stripes - stats.full_stripes;
    let requests = len / request as u64;
    assert!((4 * requests..5 * requests).contains(&alone), "{alone} of {requests}");
}

#[test]
fn replaced_stripes_survive_a_restart_and_the_loss_of_m_members() {
    for rewrites in [Rewrites::Auto, Rewrites::Replace] {
        rewritten_stripes_survive(with(rewrites));
    }
}

fn rewritten_stripes_survive(options: EngineOptions) {
    let (k, m) = (6, 2);
    let mut array = array(k, m, options);
    let len = length(&mut array, 6 * (256 << 10)).min(12 << 20);
    let mut expected = content(1, len);
    write_through(&mut array, &expected, 1 << 20, 2);
    // Some updates first, some after, some without a commit.
    let mut random = SplitMix::new(5);
    for round in 0..3 {
        for _ in 0..200 {
            let chunk = random.below(len / CHUNK);
            let bytes = content(random.word(), CHUNK);
            write(&mut array, chunk * CHUNK, &bytes, Durability::Volatile).unwrap();
            expected[(chunk * CHUNK) as usize..][..CHUNK as usize].copy_from_slice(&bytes);
        }
        if round < 2 {
            let half = content(10 + round, len / 2);
            write_through(&mut array, &half, 1 << 20, 2);
            expected[..half.len()].copy_from_slice(&half);
        }
    }
    array.run(|e, tag| e.flush(tag)).unwrap();
    array.settle();
    // As after a power cut: nothing was stopped in order.
    let (mut again, report) = assemble(array.into_devices(), k + 2 * m, options);
    assert_eq!((report.was_clean, report.dropped), (false, 0));
    assert!(report.replayed > 0);
    reads_back(&mut again, &expected);
    for dev in [1, 6] {
        again.engine().fail_device(DevIndex::new(dev));
    }
    reads_back(&mut again, &expected);
    // Replaced while degraded, and whole again after a rebuild.
    let half = content(20, len / 2);
    write_through(&mut again, &half, 1 << 20, 2);
    expected[..half.len()].copy_from_slice(&half);
    reads_back(&mut again, &expected);
    for dev in [1, 6] {
        again.devices().bytes_mut(DevIndex::new(dev)).fill(0xee);
        again.run(|e, tag| e.rebuild(tag, DevIndex::new(dev), 1000 + u32::from(dev))).unwrap();
    }
    for dev in [0, 7] {
        again.engine().fail_device(DevIndex::new(dev));
    }
    reads_back(&mut again, &expected);
    assert_eq!(again.engine().stats().lost, 0);
}

/// What is rewritten again and again, a redo log say, costs the SSDs its parity once, at the commit.
#[test]
fn what_is_rewritten_again_and_again_is_logged_from_the_second_time_on() {
    let mut array = array(4, 1, with(Rewrites::Auto));
    let (stripes, len) = (64, 64 * 4 * CHUNK);
    let mut last = Vec::new();
    for pass in 0..6 {
        last = content(pass, len);
        write_through(&mut array, &last, 1 << 20, 1);
    }
    let stats = array.engine().stats();
    assert_eq!((stats.full_stripes, stats.replaced_stripes), (2 * stripes, stripes));
    assert_eq!(stats.log_members, 4 * 4 * stripes);
    reads_back(&mut array, &last);
    array.run(|e, tag| e.commit(tag)).unwrap();
    assert_eq!(array.engine().stats().stripes_committed, stripes);
    reads_back(&mut array, &last);
}
