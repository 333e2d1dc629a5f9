//! What the original parity logging costs on a trace, beside EPLOG: the same on the SSDs before a
//! commit (H-04), a read for each chunk of a stripe not written whole, and a log chunk for each stripe
//! and parity (B-02).
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{number, replay};
use std::fmt::Write as _;

const CHUNK: u64 = 4096;
const K: u64 = 6;
const M: u64 = 2;
const STRIPES: u64 = 3000;
const REQUESTS: u64 = 2500;
const SEED: u64 = 20;

/// Chunks of the requests in stripes written whole and in others, and how many stripes those are.
#[derive(Default)]
struct Expected {
    whole_stripes: u64,
    partial_stripes: u64,
    partial_chunks: u64,
}

/// Writes of 1 to 14 chunks, at any chunk.
fn trace() -> (String, Expected) {
    println!("seed {SEED}");
    let (mut text, mut expected) = ("ts_us,dev,op,offset,len\n".to_owned(), Expected::default());
    // The first request says how large the volume is.
    let mut state = SEED;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for request in 0..REQUESTS {
        let count = if request == 0 { 1 } else { 1 + below(14) };
        let first = if request == 0 { STRIPES * K - 1 } else { below(STRIPES * K - count) };
        writeln!(text, "{request},0,W,{},{}", first * CHUNK, count * CHUNK).unwrap();
        for stripe in first / K..=(first + count - 1) / K {
            let covered = (first + count).min((stripe + 1) * K) - first.max(stripe * K);
            if covered == K {
                expected.whole_stripes += 1;
            } else {
                expected.partial_stripes += 1;
                expected.partial_chunks += covered;
            }
        }
    }
    (text, expected)
}

#[test]
fn parity_log_writes_the_same_data_as_eplog_and_pays_with_reads_and_log_chunks() {
    let (text, expected) = trace();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, text).unwrap();
    let run = |scheme: &str, more: &[&str]| {
        let common = ["--trace", path.to_str().unwrap(), "--device", "null", "--geometry", "6+2", "--fill"];
        replay(&[&common[..], &["--queue-depth", "1", "--scheme", scheme], more].concat())
    };
    let total = |value: &serde_json::Value, key: &str| number(value, &format!("/totals/{key}"));
    let (eplog, logged) = (run("eplog", &["--rewrites", "log"]), run("parity-log", &[]));
    let chunks = K * expected.whole_stripes + expected.partial_chunks;
    assert_eq!(total(&eplog, "data_chunks_written"), chunks);
    assert_eq!(total(&logged, "data_chunks_written"), chunks);
    assert_eq!(total(&eplog, "parity_chunks_written"), 0);
    // Whole stripes that are replaced have their parity at once, and no log chunk; the others are logged.
    let replaced = run("eplog", &["--rewrites", "replace"]);
    assert_eq!(replaced["config"]["rewrites"], "replace");
    assert_eq!(total(&replaced, "data_chunks_written"), chunks);
    assert_eq!(total(&replaced, "parity_chunks_written"), M * expected.whole_stripes);
    assert!(total(&replaced, "log_chunks_written") < total(&eplog, "log_chunks_written"));
    // Whole stripes log their parity, all others its change; the parity on the SSDs was written by the fill.
    assert_eq!(total(&logged, "parity_chunks_written"), 0);
    let filled = number(&logged, "/fill/totals/data_chunks_written");
    assert_eq!(number(&logged, "/fill/totals/parity_chunks_written"), filled / K * M);
    assert_eq!(number(&logged, "/fill/totals/log_chunks_written"), 0);
    let stripes = expected.whole_stripes + expected.partial_stripes;
    assert!(expected.whole_stripes > 100, "too few to tell");
    assert_eq!(total(&logged, "log_chunks_written"), M * stripes);
    assert_eq!(number(&logged, "/log_stripes/count"), stripes);
    assert_eq!(total(&logged, "data_chunks_read"), expected.partial_chunks);
    assert_eq!(total(&logged, "parity_chunks_read") + total(&logged, "log_chunks_read"), 0);
    assert_eq!(number(&logged, "/commit/count"), 0, "nobody asked for a commit");

    // With a journal the copies are metadata, not log chunks.
    let journaled = run("parity-log", &["--consistency", "journal"]);
    for key in ["data_chunks_written", "parity_chunks_written", "log_chunks_written", "data_chunks_read"] {
        assert_eq!(total(&journaled, key), total(&logged, key), "{key}");
    }
    assert!(total(&journaled, "metadata_bytes_written") >= chunks * CHUNK, "a copy of each chunk of data");

    // A commit writes the parity of each dirty stripe once.
    let ended = run("parity-log", &["--commit-every", "end"]);
    let dirty = number(&ended, "/commit_at_end/stripes");
    assert!(dirty > 0 && dirty < stripes);
    assert_eq!(number(&ended, "/commit_at_end/parity_chunks_written"), M * dirty);
    assert_eq!(number(&ended, "/commit_at_end/data_chunks_written"), 0);
}
