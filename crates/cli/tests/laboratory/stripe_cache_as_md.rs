//! What `--stripe-cache` saves, against what Linux md was seen to read (`docs/measurements.md`, "The cache of
//! stripes beside Linux md's"): the numbers here are md's, not this program's.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{bundled_trace, elastripe, number, refused, replay, traces};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use trace::{Op, ReadOptions, TraceReader};

/// Chunks written and read, stripes written and found.
fn counts(report: &Value) -> [u64; 4] {
    let total = |key: &str| number(report, &format!("/totals/{key}"));
    let cache = |key: &str| number(report, &format!("/cache/{key}"));
    [
        total("data_chunks_written") + total("parity_chunks_written"),
        total("data_chunks_read") + total("parity_chunks_read"),
        cache("stripes_found") + cache("stripes_not_found"),
        cache("stripes_found"),
    ]
}

/// 4,000 writes of single chunks anywhere in 64 MiB, as md had them: on arrays of files that were filled and
/// stopped, so that nothing is in memory.
#[test]
fn reads_of_uniform_writes_are_those_of_linux_md() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let trace = path("uniform.csv");
    let generate = ["trace", "generate", "--profile", "uniform", "--seed", "1", "--requests", "4000"];
    assert!(elastripe(&[&generate[..], &["--range", "64MiB", &trace]].concat()).status.success());
    for (k, m, expected) in [
        (4, 1, [8000, 7689, 4000, 249]),
        (6, 2, [12_000, 11_196, 4000, 369]),
        (7, 1, [8000, 7494, 4000, 441]),
    ] {
        let members: Vec<String> = (0..k + m).map(|member| path(&format!("{k}+{m}-{member}"))).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let parity = m.to_string();
        let create = ["create", "--scheme", "raid", "--consistency", "resync", "--parity", &parity];
        let size = ["--chunk-size", "4KiB", "--file-size", "24MiB", "--data"];
        let made = elastripe(&[&create[..], &size, &members].concat());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let common = [&["--trace", &trace, "--queue-depth", "1"], &members[..]].concat();
        let filled = replay(&[&["--fill"], &common[..]].concat());
        assert_eq!(counts(&filled)[2..], [0, 0], "{k}+{m}: no cache unless it is asked for");
        let cached = replay(&[&["--stripe-cache", "256"], &common[..]].concat());
        assert_eq!(counts(&cached), expected, "{k}+{m}");
    }
}

/// The first 4,000 writes of a trace in whole chunks, without the MiB that they do not touch.
fn compacted(trace: &Path) -> String {
    let reader = TraceReader::open(trace, &ReadOptions::default()).unwrap();
    let writes =
        reader.map(Result::unwrap).filter(|request| request.op == Op::Write && request.length_bytes > 0);
    let writes: Vec<Range<u64>> = writes.take(4000).map(|request| request.chunks(4096)).collect();
    let touched = |chunks: &Range<u64>| chunks.start / 256..=(chunks.end - 1) / 256;
    let segments: BTreeSet<u64> = writes.iter().flat_map(touched).collect();
    let places: BTreeMap<u64, u64> = segments.into_iter().zip(0..).collect();
    let mut text = "ts_us,dev,op,offset,len\n".to_owned();
    for chunks in writes {
        let first = places[&(chunks.start / 256)] * 256 + chunks.start % 256;
        let length = chunks.end - chunks.start;
        text.push_str(&format!("0,0,W,{},{}\n", first * 4096, length * 4096));
    }
    text
}

/// The first writes of a real trace, if it is here: they do not touch what the fill leaves in the cache.
#[test]
fn reads_of_a_real_trace_are_those_of_linux_md() {
    let Some(folder) = traces() else { return };
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("rsrch_1.csv");
    std::fs::write(&trace, compacted(&folder.join("msr_rsrch_1.csv.zst"))).unwrap();
    for (geometry, expected) in [
        ("4+1", [13_578, 4745, 5119, 2187]),
        ("6+2", [17_977, 6639, 4759, 2511]),
        ("7+1", [13_102, 5252, 4643, 2606]),
    ] {
        let trace = ["--trace", trace.to_str().unwrap()];
        let array = ["--device", "null", "--fill", "--queue-depth", "1", "--scheme", "raid"];
        let cache = ["--stripe-cache", "256", "--geometry", geometry];
        assert_eq!(counts(&replay(&[&trace[..], &array, &cache].concat())), expected, "{geometry}");
    }
}

#[test]
fn other_schemes_refuse_a_cache_of_stripes_and_content_is_verified_with_one() {
    let trace = bundled_trace();
    let trace = ["--trace", trace.to_str().unwrap(), "--head", "1500", "--compact"];
    for scheme in ["eplog", "parity-log", "elastic", "was"] {
        let run = ["replay", "--device", "null", "--scheme", scheme, "--stripe-cache", "8"];
        refused(&[&run[..], &trace].concat(), &format!("--stripe-cache 8: scheme {scheme}"));
    }
    let run = ["replay", "--device", "null", "--scheme", "raid", "--stripe-cache", "8", "--cache-slots", "4"];
    refused(&[&run[..], &trace].concat(), "scheme raid writes in place and has no write cache");
    let run =
        ["--device", "memory", "--verify", "--scheme", "raid", "--stripe-cache", "40", "--queue-depth", "8"];
    let report = replay(&[&run[..], &trace].concat());
    assert!(counts(&report)[3] > 0, "{report:#}");
}
