//! The real traces: their statistics to the printed digit, and their original formats against
//! the common form.

use crate::common::{bundled_trace, read_text, shared_trace};
use std::path::{Path, PathBuf};
use trace::{
    Format, Op, OutputFormat, ReadOptions, Request, Stats, StatsCollector, StatsOptions, TraceReader,
    TraceSequence, TraceWriter,
};

fn stats(paths: &[PathBuf]) -> Stats {
    let mut collector = StatsCollector::new(StatsOptions::default()).unwrap();
    for request in TraceSequence::open(paths, &ReadOptions::default()).unwrap() {
        collector.add(&request.unwrap()).unwrap();
    }
    collector.finish()
}

/// A row as the traces' README prints it: requests, W%, size KB, rnd %, WSS GiB, upd; "" where
/// it prints none.
#[track_caller]
fn check(names: &[&str], expected: [&str; 6]) {
    let paths: Option<Vec<_>> = names.iter().map(|name| shared_trace(&format!("{name}.csv.zst"))).collect();
    // Without the real ones, the bundled trace alone has to do; its test is below.
    let Some(paths) = paths else { return };
    check_at(&paths, expected);
}

#[track_caller]
fn check_at(paths: &[PathBuf], expected: [&str; 6]) {
    let stats = stats(paths);
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
            assert_eq!(format!("{figure:.*}", places(text)), text, "{paths:?} column {column}");
        }
    }
}

/// Counted by a script that shares nothing with this code; joined to itself, only the update ratio changes.
#[test]
fn bundled() {
    check_at(&[bundled_trace()], ["20000", "75.155", "10.721", "83.50", "0.0819", "1.876"]);
    check_at(&[bundled_trace(), bundled_trace()], ["40000", "75.155", "10.721", "", "0.0819", "3.751"]);
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

fn read(path: &Path, format: Format) -> Vec<Request> {
    let reader = TraceReader::open(path, &ReadOptions::default()).unwrap();
    assert_eq!(reader.format(), format, "{}", path.display());
    reader.map(Result::unwrap).collect()
}

/// A published file and its common form must be the same requests. The times of the common forms were made
/// with floating-point numbers (a file time of today has a resolution of 1.6 us in one), ours with integers:
/// 1 us apart.
#[track_caller]
fn same(original: &str, format: Format, common: &str) {
    // Without the real ones, the bundled trace alone has to do; its test is below.
    let (Some(original), Some(common)) = (shared_trace(original), shared_trace(common)) else { return };
    same_at(&original, format, &common);
}

#[track_caller]
fn same_at(original: &Path, format: Format, common: &Path) {
    let (original, common) = (read(original, format), read(common, Format::Common));
    assert_eq!(original.len(), common.len());
    for (index, (original, common)) in original.iter().zip(&common).enumerate() {
        assert!(original.time_us.abs_diff(common.time_us) <= 1, "request {index}");
        assert_eq!(Request { time_us: common.time_us, ..*original }, *common, "request {index}");
    }
}

/// The bundled trace in the forms in which traces are published, against itself.
#[test]
fn bundled_in_published_forms() {
    let folder = tempfile::tempdir().unwrap();
    for (name, output, format) in
        [("t.spc", OutputFormat::Spc, Format::Spc), ("t.msr.csv", OutputFormat::Msr, Format::Msr)]
    {
        let path = folder.path().join(name);
        let mut writer = TraceWriter::create(&path, output).unwrap();
        for request in TraceReader::open(bundled_trace(), &ReadOptions::default()).unwrap() {
            writer.write(&request.unwrap()).unwrap();
        }
        assert_eq!(writer.finish().unwrap().written_count, 20_000);
        same_at(&path, format, &bundled_trace());
    }
}

/// A line of the published sample, and one of a read.
#[test]
fn fiu_lines() {
    let text = "467111 2147 kjournald 644661632 8 W 6 0 a2f3\n905 12 cat 8 16 R 6 0 ffff\n";
    let requests = read_text(text, &ReadOptions::default()).unwrap();
    let write = Request {
        time_us: 467,
        dev: 6 << 20,
        op: Op::Write,
        offset_bytes: 644_661_632 * 512,
        length_bytes: 4096,
    };
    let read = Request { time_us: 0, op: Op::Read, offset_bytes: 4096, length_bytes: 8192, ..write };
    assert_eq!(requests, [write, read]);
}

#[test]
fn originals_equal_their_common_form() {
    same("original/fin1_head10k.spc.zst", Format::Spc, "fin1_head10k.csv.zst");
    same("original/msr_rsrch_1.csv.zst", Format::Msr, "msr_rsrch_1.csv.zst");
    same("original/msr_wdev_1.csv", Format::Msr, "msr_wdev_1.csv.zst");
}

#[test]
fn fiu_sample_is_read_whole() {
    // Without it, the lines above have to do.
    let Some(path) = shared_trace("original/fiu_home1_sample.blkparse.zst") else { return };
    let requests = read(&path, Format::Fiu);
    assert_eq!(requests.len(), 1000);
    assert!(requests.iter().all(|request| request.op == trace::Op::Write && request.length_bytes == 4096));
    assert_eq!(requests[0].time_us, 467);
    assert_eq!(requests[0].offset_bytes, 644_661_632 * 512);
    assert_eq!(requests[0].dev, 6 << 20);
}
