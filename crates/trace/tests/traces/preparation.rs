//! The rules of preparation on traces small enough to check by hand.

use proptest::prelude::*;
use trace::{DevMode, Op, PrepareError, PrepareOptions, Request, TouchedBy, prepare_slice};

const MIB: u64 = 1 << 20;

fn at(dev: u32, op: Op, offset_bytes: u64, length_bytes: u64) -> Request {
    Request { time_us: 7, dev, op, offset_bytes, length_bytes }
}

/// Footprint in MiB, and the requests as (operation, offset, length).
fn run(requests: &[Request], options: &PrepareOptions) -> (u64, Vec<(Op, u64, u64)>) {
    let prepared = prepare_slice(requests, options).unwrap();
    assert!(prepared.footprint_bytes().is_multiple_of(MIB));
    (
        prepared.footprint_bytes() / MIB,
        prepared
            .map(Result::unwrap)
            .inspect(|request| assert_eq!((request.dev, request.time_us), (0, 7)))
            .map(|request| (request.op, request.offset_bytes, request.length_bytes))
            .collect(),
    )
}

fn sample() -> Vec<Request> {
    vec![
        at(1, Op::Write, 9 * MIB + 100, 512),
        at(0, Op::Read, 5 * MIB, 4096),
        at(0, Op::Write, 8 * MIB - 512, 1024),
        at(0, Op::Flush, 0, 0),
        at(0, Op::Trim, 4 * MIB, 4 * MIB),
        at(0, Op::Write, 3 * MIB, 0),
    ]
}

#[test]
fn segments_that_nothing_touches_are_dropped_and_writes_rounded_out() {
    // Touched: device 0 segments 5 (read), 7, 8; device 1 segment 9.
    let expected = vec![(Op::Write, 3 * MIB, 4096), (Op::Write, 2 * MIB - 4096, 8192)];
    assert_eq!(run(&sample(), &PrepareOptions::default()), (4, expected));
}

#[test]
fn reads_need_not_keep_segments() {
    let options = PrepareOptions {
        touched_by: TouchedBy::Writes,
        writes_only: false,
        round_to_chunk: false,
        ..PrepareOptions::default()
    };
    let expected = vec![
        (Op::Write, 2 * MIB + 100, 512),
        (Op::Write, MIB - 512, 1024),
        (Op::Flush, 0, 0),
        // Of segments 4 to 7 only 7 is left.
        (Op::Trim, 0, MIB),
    ];
    assert_eq!(run(&sample(), &options), (3, expected));
    let requests = sample();
    let mut prepared = prepare_slice(&requests, &options).unwrap();
    assert_eq!(prepared.by_ref().count(), 4);
    assert_eq!((prepared.dropped_count(), prepared.write_count()), (2, 2));
}

#[test]
fn without_compaction_devices_lie_end_to_end_or_on_top_of_each_other() {
    let options = PrepareOptions { compact: false, ..PrepareOptions::default() };
    let far = vec![(Op::Write, 18 * MIB, 4096), (Op::Write, 8 * MIB - 4096, 8192)];
    assert_eq!(run(&sample(), &options), (19, far));
    let options = PrepareOptions { dev_mode: DevMode::Ignore, ..options };
    let near = vec![(Op::Write, 9 * MIB, 4096), (Op::Write, 8 * MIB - 4096, 8192)];
    assert_eq!(run(&sample(), &options), (10, near));
    let options = PrepareOptions { compact: true, ..options };
    let shifted = vec![(Op::Write, 3 * MIB, 4096), (Op::Write, 2 * MIB - 4096, 8192)];
    assert_eq!(run(&sample(), &options), (4, shifted));
}

#[test]
fn the_limit_counts_writes_but_the_whole_trace_keeps_segments() {
    let options = PrepareOptions { write_limit: Some(1), ..PrepareOptions::default() };
    assert_eq!(run(&sample(), &options), (4, vec![(Op::Write, 3 * MIB, 4096)]));
    let options = PrepareOptions { write_limit: Some(0), ..options };
    assert_eq!(run(&sample(), &options), (4, vec![]));
}

#[test]
fn the_fill_covers_the_volume_once() {
    let requests = sample();
    let prepared = prepare_slice(&requests, &PrepareOptions::default()).unwrap();
    let mut next = 0;
    for request in prepared.fill(24 << 10) {
        assert_eq!((request.op, request.offset_bytes), (Op::Write, next));
        next = request.end_bytes();
    }
    assert_eq!(next, prepared.footprint_bytes());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let with = |chunk_bytes, segment_bytes| {
        prepare_slice(&[], &PrepareOptions { chunk_bytes, segment_bytes, ..PrepareOptions::default() }).err()
    };
    assert!(matches!(with(0, MIB), Some(PrepareError::Chunk { bytes: 0 })));
    assert!(matches!(with(5000, MIB), Some(PrepareError::Chunk { bytes: 5000 })));
    assert!(matches!(with(4096, 2048), Some(PrepareError::Segment { .. })));
    assert!(matches!(with(4096, u64::MAX), Some(PrepareError::Segment { .. })));
    assert!(with(4096, 4096).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Against the obvious way: list the touched segments, look each byte's segment up.
    #[test]
    fn compaction_equals_a_slow_model(
        raw in prop::collection::vec((0u32..3, any::<bool>(), 0u64..40 * MIB, 1u64..3 * MIB), 1..40),
    ) {
        let requests: Vec<_> = raw
            .iter()
            .map(|&(dev, write, offset, length)| {
                at(dev, if write { Op::Write } else { Op::Read }, offset, length)
            })
            .collect();
        let mut touched: Vec<(u32, u64)> = requests
            .iter()
            .flat_map(|request| request.chunks(MIB).map(|segment| (request.dev, segment)))
            .collect();
        touched.sort_unstable();
        touched.dedup();
        let locate = |dev, byte: u64| {
            let rank = touched.iter().position(|&key| key == (dev, byte / MIB)).unwrap() as u64;
            rank * MIB + byte % MIB
        };
        let options =
            PrepareOptions { writes_only: false, round_to_chunk: false, ..PrepareOptions::default() };
        let prepared = prepare_slice(&requests, &options).unwrap();
        prop_assert_eq!(prepared.footprint_bytes(), touched.len() as u64 * MIB);
        for (placed, request) in prepared.zip(&requests) {
            let placed = placed.unwrap();
            prop_assert_eq!(placed.offset_bytes, locate(request.dev, request.offset_bytes));
            prop_assert_eq!(placed.end_bytes() - 1, locate(request.dev, request.end_bytes() - 1));
            prop_assert_eq!(placed.length_bytes, request.length_bytes);
        }
    }
}
