//! The real traces: their statistics to the printed digit, and their original formats against the common form.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::shared_trace;
use trace::{Format, ReadOptions, Request, Stats, StatsCollector, StatsOptions, TraceReader, TraceSequence};

fn stats(names: &[&str]) -> Option<Stats> {
    let paths: Option<Vec<_>> = names.iter().map(|name| shared_trace(&format!("{name}.csv.zst"))).collect();
    let mut collector = StatsCollector::new(StatsOptions::default()).unwrap();
    for request in TraceSequence::open(&paths?, &ReadOptions::default()).unwrap() {
        collector.add(&request.unwrap()).unwrap();
    }
    Some(collector.finish())
}

/// A row as the traces' README prints it: requests, W%, size KB, rnd %, WSS GiB, upd; "" where it prints none.
#[track_caller]
fn check(names: &[&str], expected: [&str; 6]) {
    let Some(stats) = stats(names) else { return };
    let places = |text: &str| text.find('.').map_or(0, |dot| text.len() - dot - 1);
    let figures = [
        stats.request_count as f64,
        stats.write_percent(),
        stats.write_kib_mean(),
        stats.random_percent(),
        stats.working_set_gib(),
        stats.update_ratio(),
    ];
    for (column, (figure, text)) in figures.into_iter().zip(expected).enumerate() {
        if !text.is_empty() {
            assert_eq!(format!("{figure:.*}", places(text)), text, "{names:?} column {column}");
        }
    }
}

#[test]
fn phones() {
    check(&["nexus5_single_21logs"], ["151910", "74.5", "88.7", "60.0", "7.13", "1.34"]);
    for (name, row) in [
        ("telegram", ["257199", "90.6", "20.7", "68.7", "3.83", "1.20"]),
        ("pubg", ["118867", "57.3", "69.2", "45.7", "4.25", "1.06"]),
        ("cod", ["296876", "32.1", "112.6", "17.7", "9.94", "1.03"]),
    ] {
        check(&[&format!("pixel6a_{name}_precond"), &format!("pixel6a_{name}_exec")], row);
    }
}

#[test]
fn enterprise_volumes() {
    check(&["msr_rsrch_1"], ["13780", "99.7", "12.30", "78.8", "0.110", "1.47"]);
    check(&["msr_wdev_1"], ["1055", "100", "5.13", "63.1", "0.001", "3.67"]);
    check(&["msr_cut10k_rw_20_80.105"], ["10000", "79.8", "7.15", "75.7", "0.022", "2.45"]);
    check(&["msr_mds_0_head1000"], ["1000", "100", "6.2", "87", "", ""]);
    check(&["msr_proj_0_head1000"], ["1000", "100", "7.6", "75", "", ""]);
    check(&["msr_rsrch_2_head1000"], ["1000", "100", "8.3", "77", "", ""]);
}

#[test]
fn databases_virtual_machines_and_a_desktop() {
    check(&["fin1_head10k"], ["10000", "59.2", "8.38", "92.1", "0.014", "3.32"]);
    check(&["cloudphysics_114k"], ["113872", "58.7", "39.2", "39.1", "0.796", "3.14"]);
    check(&["mqsim_tpcc_small"], ["6999", "37.4", "12.2", "98.9", "0.03", "1.0"]);
    check(&["arc_P3_all_as_writes"], ["238578", "", "10.3", "73.4", "0.39", "6.0"]);
}

fn read(name: &str, format: Format) -> Option<Vec<Request>> {
    let reader = TraceReader::open(shared_trace(name)?, &ReadOptions::default()).unwrap();
    assert_eq!(reader.format(), format, "{name}");
    Some(reader.map(Result::unwrap).collect())
}

/// A published file and its common form must be the same requests. The times of the common forms were made with
/// floating-point numbers (a file time of today has a resolution of 1.6 us in one), ours with integers: 1 us apart.
#[track_caller]
fn same(original: &str, format: Format, common: &str) {
    if let (Some(original), Some(common)) = (read(original, format), read(common, Format::Common)) {
        assert_eq!(original.len(), common.len());
        for (index, (original, common)) in original.iter().zip(&common).enumerate() {
            assert!(original.time_us.abs_diff(common.time_us) <= 1, "request {index}");
            assert_eq!(Request { time_us: common.time_us, ..*original }, *common, "request {index}");
        }
    }
}

#[test]
fn originals_equal_their_common_form() {
    same("original/fin1_head10k.spc.zst", Format::Spc, "fin1_head10k.csv.zst");
    same("original/msr_rsrch_1.csv.zst", Format::Msr, "msr_rsrch_1.csv.zst");
    same("original/msr_wdev_1.csv", Format::Msr, "msr_wdev_1.csv.zst");
}

#[test]
fn fiu_sample_is_read_whole() {
    let Some(requests) = read("original/fiu_home1_sample.blkparse.zst", Format::Fiu) else { return };
    assert_eq!(requests.len(), 1000);
    assert!(requests.iter().all(|request| request.op == trace::Op::Write && request.length_bytes == 4096));
    assert_eq!(requests[0].time_us, 467);
    assert_eq!(requests[0].offset_bytes, 644_661_632 * 512);
    assert_eq!(requests[0].dev, 6 << 20);
}
