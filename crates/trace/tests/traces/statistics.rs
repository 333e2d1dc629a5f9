//! Statistics on traces small enough to check by hand, and the papers' closed forms.

use trace::{
    DevMode, Op, Request, Stats, StatsCollector, StatsError, StatsOptions, Synthetic, SyntheticOptions,
};

fn collect(requests: impl IntoIterator<Item = Request>, options: StatsOptions) -> Stats {
    let mut collector = StatsCollector::new(options).unwrap();
    for request in requests {
        collector.add(&request).unwrap();
    }
    collector.finish()
}

fn at(time_us: u64, dev: u32, op: Op, offset_bytes: u64, length_bytes: u64) -> Request {
    Request { time_us, dev, op, offset_bytes, length_bytes }
}

fn sample() -> Vec<Request> {
    vec![
        at(10, 0, Op::Write, 4095, 2),      // chunks 0, 1; the first write is random
        at(20, 0, Op::Read, 5 << 20, 4096), // touches segment 5
        // 65,535 bytes ahead: not random; chunks 16, 17, 18 end exactly.
        at(30, 0, Op::Write, 4097 + 65535, 4096),
        at(5, 1, Op::Write, 0, 4096),          // another device
        at(40, 1, Op::Write, 4096 + 65536, 0), // random, touches nothing
        at(50, 1, Op::Flush, 0, 0),
        at(60, 1, Op::Trim, 0, 1 << 40),
    ]
}

#[test]
fn counted_by_hand() {
    let stats = collect(sample(), StatsOptions::default());
    let expected = Stats {
        chunk_bytes: 4096,
        request_count: 7,
        read_count: 1,
        write_count: 4,
        flush_count: 1,
        trim_count: 1,
        read_bytes: 4096,
        write_bytes: 2 + 4096 + 4096,
        // 0-1; 69632 = 17 x 4096, so chunk 17; device 1 chunk 0.
        chunk_write_count: 2 + 1 + 1,
        unique_chunk_count: 4,
        top_fifth_write_count: 1,
        random_write_count: 3,
        segment_written_count: 2,
        segment_touched_count: 3,
        duration_us: 55,
    };
    assert_eq!(stats, expected);
    assert_eq!(stats.write_kib_mean(), 4.0);

    // One address space: chunk 0 is written twice, and device 1's first write is near or far by its offset.
    let stats = collect(sample(), StatsOptions { dev_mode: DevMode::Ignore, ..StatsOptions::default() });
    assert_eq!((stats.unique_chunk_count, stats.top_fifth_write_count), (3, 2));
    assert_eq!((stats.random_write_count, stats.segment_touched_count), (3, 2));
    assert_eq!(stats.update_ratio(), 4.0 / 3.0);
    assert_eq!(stats.top_fifth_percent(), 50.0);
}

/// Chunk 0 is written three times, 1 twice, 2 once.
#[test]
fn the_hottest_chunks_are_counted() {
    let mut collector = StatsCollector::new(StatsOptions::default()).unwrap();
    for length_bytes in [4096, 8192, 12288] {
        collector.add(&at(0, 0, Op::Write, 0, length_bytes)).unwrap();
    }
    assert_eq!([0, 1, 2, 3, 9].map(|chunks| collector.hottest_write_count(chunks)), [0, 3, 5, 6, 6]);
}

#[test]
fn an_empty_trace_has_no_figures_but_no_faults_either() {
    let stats = collect([], StatsOptions::default());
    assert_eq!(stats, Stats { chunk_bytes: 4096, ..Stats::default() });
    assert_eq!((stats.write_percent(), stats.update_ratio(), stats.top_fifth_percent()), (0.0, 0.0, 0.0));
    for bytes in [0, 256, 3000, 2 << 20] {
        let refused = StatsCollector::new(StatsOptions { chunk_bytes: bytes, ..StatsOptions::default() });
        assert_eq!(refused.err(), Some(StatsError::Chunk { bytes }));
    }
}

/// 8 KiB requests over all 512-byte phases touch 1/8 x 2 + 7/8 x 3 = 2.875 chunks in the mean.
#[test]
fn unaligned_requests_count_every_chunk_they_touch() {
    let requests = (0..8000).map(|i| at(i, 0, Op::Write, 512 * i, 8192));
    let stats = collect(requests, StatsOptions::default());
    assert_eq!(stats.chunk_write_count, 8000 * 2875 / 1000);
    assert_eq!(stats.write_kib_mean(), 11.5);
}

/// describe the same trace: 4,110,563 writes of 7.19 KB in whole chunks and 7,384,396 chunk
/// writes agree to 0.06 %, which holds only if both count the chunks as we do.
#[test]
fn chunk_size_changes_what_is_counted() {
    let requests = || (0..1000).map(|i| at(i, 0, Op::Write, 1536 * i, 1536));
    let counts = [512, 4096, 1 << 20].map(|chunk_bytes| {
        let stats = collect(requests(), StatsOptions { chunk_bytes, ..StatsOptions::default() });
        (stats.chunk_write_count, stats.unique_chunk_count)
    });
    // Of eight neighbours, 8 x 1536 = 3 x 4096 bytes, two straddle a chunk boundary; and 1,536,000 bytes are
    // 375 chunks.
    assert_eq!(counts, [(3000, 3000), (1250, 375), (1001, 2)]);
}

#[test]
fn the_generator_gives_what_was_asked_for() {
    let options = SyntheticOptions::default();
    let generate = |options: &SyntheticOptions| Synthetic::new(options.clone()).unwrap().collect::<Vec<_>>();
    let requests = generate(&options);
    assert_eq!(requests, generate(&options));
    assert_ne!(requests, generate(&SyntheticOptions { seed: 2, ..options.clone() }));
    assert_eq!(requests.len() as u64, options.request_count);
    for pair in requests.windows(2) {
        assert!(pair[0].time_us <= pair[1].time_us);
        assert!(pair[1].end_bytes() <= options.volume_bytes && pair[1].offset_bytes.is_multiple_of(512));
    }
    let stats = collect(requests, StatsOptions::default());
    assert!((stats.write_percent() - 75.0).abs() < 0.7, "{stats}");
    assert!(stats.top_fifth_percent() > 50.0, "{stats}");
    assert!(stats.update_ratio() > 2.0, "{stats}");

    let uniform = SyntheticOptions { zipf_exponent: 0.0, sequential_percent: 0, ..options };
    let flat = collect(generate(&uniform), StatsOptions::default());
    assert!(flat.unique_chunk_count > stats.unique_chunk_count && flat.random_percent() > 99.0, "{flat}");
}

#[test]
fn the_generator_refuses_what_it_cannot_do() {
    let good = SyntheticOptions::default();
    for bad in [
        SyntheticOptions { read_percent: 101, ..good.clone() },
        SyntheticOptions { zipf_exponent: f64::NAN, ..good.clone() },
        SyntheticOptions { zipf_exponent: -1.0, ..good.clone() },
        SyntheticOptions { sizes: vec![], ..good.clone() },
        SyntheticOptions { sizes: vec![(4096, 0)], ..good.clone() },
        SyntheticOptions { sizes: vec![(100, 1)], ..good.clone() },
        SyntheticOptions { volume_bytes: 64 << 10, ..good.clone() },
        SyntheticOptions { volume_bytes: u64::MAX, ..good.clone() },
    ] {
        assert!(Synthetic::new(bad.clone()).is_err(), "{bad:?}");
    }
}
