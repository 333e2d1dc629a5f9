//! `flash run` and `flash presets` on the command line.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, number, refused};
use serde_json::Value;

#[track_caller]
fn ran(arguments: &[&str]) -> Value {
    let output = elastripe(&[&["flash", "run", "--json", "--check", "--seed", "5"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn float(json: &Value, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer}: {json}"))
}

#[test]
fn the_named_keys_are_there_and_agree_with_the_closed_form() {
    let json = ran(&[
        "--workload",
        "uniform",
        "--logical-size",
        "256MiB",
        "--spare",
        "1.15",
        "--pages-per-block",
        "64",
        "--gc",
        "greedy",
        "--warmup",
        "3",
        "--drive-writes",
        "3",
    ]);
    let amplification = float(&json, "/write_amplification");
    assert!((amplification / float(&json, "/closed_form") - 1.0).abs() < 0.02, "{json}");
    let (host, flash) = (number(&json, "/host_pages_written"), number(&json, "/flash_pages_written"));
    assert_eq!(host, 3 * 65_536);
    assert_eq!(flash, host + number(&json, "/page_copies"));
    assert_eq!(number(&json, "/gc_operations"), number(&json, "/erases"));
    assert!((amplification - flash as f64 / host as f64).abs() < 1e-9);
    assert!(float(&json, "/flash_pages_written_per_cpu_second") > 0.0);
    assert!(float(&json, "/memory_bytes_per_flash_page") <= 10.0);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let run = || {
        let mut json = ran(&[
            "--workload",
            "zipf:0.9",
            "--preset",
            "ps-vnand",
            "--logical-size",
            "1GiB",
            "--streams",
            "parity",
            "--parity-writes",
            "0.4",
            "--slc-cap",
            "0.5",
            "--mapping-cache",
            "8KiB",
            "--wear-levelling",
            "static",
            "--gc",
            "d-choices:3",
        ]);
        for key in ["cpu_seconds", "flash_pages_written_per_cpu_second", "provenance"] {
            json.as_object_mut().unwrap().remove(key);
        }
        json
    };
    let first = run();
    assert_eq!(first, run());
    assert!(number(&first, "/flash_pages_written_slc") > 0 && number(&first, "/translation_writes") > 0);
    assert!(float(&first, "/latency_us/p99") >= float(&first, "/latency_us/p50"));
}

#[test]
fn a_trace_is_replayed_until_enough_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("t.csv").to_str().unwrap().to_owned();
    let generate =
        ["trace", "generate", "--profile", "uniform", "--range", "4MiB", "--requests", "500", "--seed", "1"];
    assert!(elastripe(&[&generate[..], &[&trace]].concat()).status.success());
    let json =
        ran(&["--workload", &trace, "--logical-size", "4MiB", "--spare", "1.5", "--drive-writes", "2"]);
    assert_eq!(number(&json, "/host_pages_written"), 2048);
    let too_small = ["--workload", &trace, "--logical-size", "1MiB", "--spare", "2"];
    refused(&[&["flash", "run", "--seed", "1"], &too_small[..]].concat(), "--logical-size");
}

#[test]
fn bad_options_are_named() {
    let refuses = |arguments: &[&str], what: &str| {
        refused(&[&["flash", "run", "--seed", "1"], arguments].concat(), what);
    };
    refuses(&["--workload", "zipf:much"], "theta");
    refuses(&["--workload", "zipf:9"], "theta of zipf: found 9, expected 0 to 5");
    refuses(&["--workload", "no/such/trace"], "no/such/trace");
    refuses(&["--workload", "uniform", "--gc", "best"], "found \"best\", expected greedy");
    refuses(&["--workload", "uniform", "--spare", "0.9"], "spare factor: found 0.9");
    refuses(&["--workload", "uniform", "--spare", "1.0"], "blocks of the flash");
    refuses(&["--workload", "uniform", "--logical-size", "5000B"], "--logical-size: found 5000");
    refuses(&["--workload", "uniform", "--page-size", "1B"], "--page-size: found 1 bytes");
    refuses(&["--workload", "uniform", "--gc-free", "5 %"], "5 %");
    refuses(
        &["--workload", "uniform", "--preset", "floppy"],
        "found \"floppy\", expected one of eplog-disksim",
    );
    refuses(&["--workload", "uniform", "--preset", "seagate-st1000dm003"], "no flash inside");
    refuses(&["--workload", "uniform", "--preset", "ps-vnand", "--blocks", "7"], "--blocks");
    refuses(
        &["--workload", "uniform", "--preset", "nvme-tlc", "--logical-size", "1PiB"],
        "pages of the flash",
    );
    refuses(&["--workload", "a.csv", "--parity-writes", "0.5"], "--parity-writes");
    refuses(&["--workload", "uniform", "--utilization", "2"], "utilization: found 2, expected 0 to 1");
    refuses(&["--workload", "uniform", "--slc-cap", "half"], "found \"half\"");
    let parity = ["--workload", "uniform", "--streams", "parity", "--parity-writes", "0.5"];
    refuses(&[&parity[..], &["--slc-cap", "1.5"]].concat(), "SLC cap: found 1.5");
    refuses(&["--workload", "uniform", "--slc-cap", "0.5"], "--slc-cap: found --streams none");
    let alone = ["--workload", "uniform", "--streams", "parity", "--slc-cap", "0.5"];
    refuses(&alone, "--slc-cap: found no parity among the writes");
    refuses(&["--workload", "uniform", "--parity-classes", "3"], "parity classes: found 3");
    let without_seed = elastripe(&["flash", "run", "--workload", "uniform"]);
    assert!(String::from_utf8_lossy(&without_seed.stderr).contains("--seed"));
}

#[test]
fn presets_are_listed() {
    let output = elastripe(&["flash", "presets", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    for name in [
        "eplog-disksim",
        "was-ssd",
        "ps-vnand",
        "plextor-m5pro",
        "seagate-st1000dm003",
        "nvme-tlc",
        "nvme-qlc",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(list[0]["config"]["blocks"], 81_920);
}

#[test]
fn blocks_of_one_page_are_run() {
    let json =
        ran(&["--workload", "uniform", "--logical-size", "1MiB", "--spare", "1.2", "--pages-per-block", "1"]);
    assert_eq!(number(&json, "/config/pages_per_block"), 1);
    assert_eq!(number(&json, "/page_copies"), 0, "a block is invalid as a whole: {json}");
}

#[test]
fn what_was_not_counted_has_no_figure() {
    let nothing = ["--workload", "uniform", "--logical-size", "16MiB", "--drive-writes", "0"];
    let json = ran(&nothing);
    assert_eq!(number(&json, "/host_pages_written"), 0);
    assert!(json["write_amplification"].is_null() && json["wear_per_host_page"].is_null(), "{json}");
    let text = elastripe(&[&["flash", "run", "--seed", "1"], &nothing[..]].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("write amplification  n/a"), "{text}");
    assert!(
        text.contains("closed form") && !text.contains(" %)"),
        "no deviation of what is not known: {text}"
    );
}

#[test]
fn placement_that_was_not_counted_has_no_figure() {
    let words = [
        "--workload",
        "zipf:0.99",
        "--logical-size",
        "16MiB",
        "--placement",
        "single",
        "--drive-writes",
        "0",
    ];
    let output = elastripe(&[&["flash", "run", "--seed", "1", "--json"], &words[..]].concat());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(number(&json, "/host_pages_written"), 0);
    assert!(json["write_amplification"].is_null(), "{json:#}");
    assert!(float(&json, "/write_amplification_with_fill") > 1.0, "{json:#}");
}
