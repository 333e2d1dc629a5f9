//! `bench --threads --shards`: what several threads do is the sum of what their shards do.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::replay_common::{elastripe, number, refused};
use serde_json::Value;

/// Arrays of 4+2 with units of 1 MiB.
const SMALL: [&str; 5] = ["bench", "--device=null", "--geometry=4+2", "--volume-size=12MiB", "--rounds=2"];

fn bench(more: &[&str]) -> Value {
    let output = elastripe(&[&SMALL[..], &["--json"], more].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(json: &Value) -> &Vec<Value> {
    json["results"].as_array().unwrap()
}

/// The sum of a figure over the shards of a row.
fn sum(row: &Value, path: &str) -> u64 {
    row["by_shard"].as_array().unwrap().iter().map(|shard| number(shard, path)).sum()
}

#[test]
fn what_threads_do_is_the_sum_of_what_their_shards_do() {
    let schemes = "--schemes=eplog,raid,parity-log,elastic,was";
    let json =
        bench(&[schemes, "--workload=all", "--threads=2", "--shards=3", "--requests=3000", "--gc-unit=8"]);
    assert_eq!((rows(&json).len(), &json["config"]["threads"]), (5 * 8 - 3, &serde_json::json!([2])));
    for row in rows(&json) {
        assert_eq!((number(row, "/threads"), number(row, "/shards")), (2, 3), "{row:#}");
        let shards = row["by_shard"].as_array().unwrap();
        let threads: Vec<u64> = shards.iter().map(|shard| number(shard, "/thread")).collect();
        assert_eq!(threads, [0, 1, 0], "{row:#}");
        assert!(shards.iter().all(|shard| number(shard, "/count") > 0), "{row:#}");
        assert_eq!(sum(row, "/count"), number(row, "/count"), "{row:#}");
        let rate = number(row, "/count") as f64 / row["seconds"].as_f64().unwrap();
        assert!((row["per_second"].as_f64().unwrap() / rate - 1.0).abs() < 1e-6, "{row:#}");
        for part in ["runs", "stripes"] {
            let path = format!("/parity_commits/{part}");
            assert_eq!(sum(row, &path), number(row, &path), "{row:#}");
        }
        let workload = row["workload"].as_str().unwrap();
        if ["burst", "randwrite", "sustained", "seqwrite"].contains(&workload) {
            let stripe_bytes = if workload == "seqwrite" { 4 * 4096 } else { 4096 };
            let users = (number(row, "/count") * stripe_bytes) as f64;
            for (by_shard, per_byte) in [
                ("/ssd_bytes", "ssd_bytes_per_user_byte"),
                ("/metadata_bytes", "metadata_bytes_per_user_byte"),
                ("/log_bytes", "log_bytes_per_user_byte"),
            ] {
                let told = row[per_byte].as_f64().unwrap();
                assert!((sum(row, by_shard) as f64 / users - told).abs() < 1e-9, "{per_byte}: {row:#}");
            }
        }
    }
    // Each thread draws as many requests; the first has two shards to draw them for.
    let random = rows(&json).iter().find(|row| row["workload"] == "randread").unwrap();
    let shards: Vec<u64> = (0..3).map(|i| number(random, &format!("/by_shard/{i}/count"))).collect();
    assert_eq!((shards[0] + shards[2], shards[1]), (1500, 1500), "{random:#}");
}

/// The same requests cost the devices the same, on however many shards; latencies are those of all threads.
#[test]
fn several_numbers_of_threads_stand_side_by_side() {
    let json = bench(&["--schemes=raid", "--workload=burst", "--threads=1,2", "--requests=4000"]);
    let [one, two] = &rows(&json)[..] else { panic!("{json:#}") };
    assert_eq!([one, two].map(|row| [number(row, "/threads"), number(row, "/shards")]), [[1, 1], [2, 2]]);
    assert_eq!([one, two].map(|row| number(row, "/count")), [4000, 4000]);
    let data = |row: &Value| sum(row, "/ssd_bytes") - sum(row, "/metadata_bytes");
    assert_eq!(data(one), data(two), "{json:#}");
    let times = two["over_fewest_threads"].as_f64().unwrap();
    let rate = |row: &Value| row["per_second"].as_f64().unwrap();
    assert!(one["over_fewest_threads"].is_null() && (rate(two) / rate(one) - times).abs() < 1e-9);
    assert!(two["latency_us"]["p50"].as_f64().unwrap() > 0.0, "{two:#}");
    assert!(number(two, "/memory/fixed_bytes") > 0, "{two:#}");
    let note = json["notes_on_threads"].as_str().unwrap();
    for words in ["2 threads, 2 shards: 32 requests in flight in each thread, 64 in all", "--table-memory"] {
        assert!(note.contains(words), "{note}");
    }
    let said = elastripe(&[&SMALL[..], &["--workload=burst", "--threads=1,2", "--requests=400"]].concat());
    let said = String::from_utf8(said.stdout).unwrap();
    for words in
        ["eplog      1 thread, 1 shard", "eplog      2 threads, 2 shards", " x as many as with 1 thread"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("64 in all, to its own shards alone"), "{said}");
}

#[test]
fn one_thread_and_one_shard_is_what_it_is_without_them() {
    let same = ["--schemes=eplog,elastic", "--workload=burst,seqwrite", "--requests=2000", "--seed=3"];
    let (without, with) = (bench(&same), bench(&[&same[..], &["--threads=1", "--shards=1"]].concat()));
    for (a, b) in rows(&without).iter().zip(rows(&with)) {
        for key in ["count", "by_shard", "stripes", "ssd_bytes_per_user_byte", "memory"] {
            assert_eq!(a[key], b[key], "{key}");
        }
    }
    assert!(with["notes_on_threads"].is_null());
}

/// However they are spread over slices and threads.
#[test]
fn as_many_requests_are_made_as_were_asked_for() {
    let loads = "--workload=burst,randwrite,sustained,randread,seqread,seqwrite";
    for (threads, requests) in [("--threads=1", 1), ("--threads=2", 1), ("--threads=2", 7)] {
        let json = bench(&["--schemes=eplog,raid", loads, threads, &format!("--requests={requests}")]);
        for row in rows(&json) {
            assert_eq!(number(row, "/count"), requests, "{threads}: {row:#}");
        }
    }
}

#[test]
fn what_is_named_twice_is_refused() {
    refused(&[&SMALL[..], &["--schemes=eplog,raid,eplog"]].concat(), "--schemes: found eplog twice");
    refused(&[&SMALL[..], &["--workload=all,burst"]].concat(), "--workload: found burst twice");
    let simulate = ["simulate", "--trace", "none", "--ssd", "was-ssd"];
    refused(&[&simulate[..], &["--compare", "raid,eplog,raid"]].concat(), "found scheme raid twice");
    refused(&[&simulate[..], &["--sweep", "queue-depth=1,8,1"]].concat(), "found queue-depth 1 twice");
}

#[test]
fn threads_without_work_are_refused() {
    refused(&["bench", "--threads=0"], "--threads");
    refused(&["bench", "--threads=65"], "--threads");
    refused(&["bench", "--threads=two"], "--threads");
    refused(&["bench", "--shards=0"], "--shards");
    refused(&["bench", "--threads=1,2,2"], "--threads: found 2 twice");
    refused(&["bench", "--threads=3", "--shards=2"], "--threads 3: found --shards 2, expected at least");
    refused(
        &[&SMALL[..], &["--threads=2", "--shards=13"]].concat(),
        "--shards 13: found a volume of 12582912 bytes, expected at least 13631488",
    );
}

#[test]
fn a_volume_of_less_than_a_stripe_is_none() {
    let bench =
        ["bench", "--device", "null", "--schemes", "raid", "--workload", "seqread", "--seconds", "0.01"];
    for (option, size) in [("--volume-size", "0B"), ("--volume-size", "20KiB"), ("--working-set", "0B")] {
        refused(&[&bench[..], &[option, size]].concat(), "expected at least a stripe of 24 KiB");
    }
}
