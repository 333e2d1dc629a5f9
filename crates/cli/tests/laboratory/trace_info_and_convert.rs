//! `trace info` and `trace convert` on the command line.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, number, refused};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TRACE: &str = "ts_us,dev,op,offset,len\n0,0,W,0,4096\n10,0,R,8192,512\n20,1,W,4096,8192\n";

fn info(arguments: &[&str]) -> Value {
    let output = elastripe(&[&["trace", "info", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn info_counts_one_or_several_files() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.csv");
    std::fs::write(&path, TRACE).unwrap();
    let path = path.to_str().unwrap();
    let one = info(&[path]);
    assert_eq!(one["format"], "csv");
    let counts =
        |value: &Value| ["/requests", "/writes", "/chunk_writes", "/unique_chunks"].map(|k| number(value, k));
    assert_eq!(counts(&one), [3, 2, 3, 3]);
    assert_eq!(counts(&info(&[path, path])), [6, 4, 6, 3]);
    assert_eq!(number(&info(&["--dev-mode", "ignore", "--chunk-size", "8KiB", path]), "/unique_chunks"), 2);
    let text = elastripe(&["trace", "info", path]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("random writes"));
}

#[test]
fn a_bad_line_is_named_or_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("bad.csv");
    std::fs::write(&path, format!("{TRACE}what is this\n5,0,W,0,512\n")).unwrap();
    let path = path.to_str().unwrap();
    refused(&["trace", "info", path], "bad.csv:5");
    let skipped = info(&["--skip-bad-lines", path]);
    assert_eq!((number(&skipped, "/requests"), number(&skipped, "/bad_lines_skipped")), (4, 1));
    refused(&["trace", "info", "--format", "nonsense", path], "blkparse");
    refused(&["trace", "info", "--chunk-size", "3KiB", path], "power of two");
}

#[test]
fn convert_keeps_what_the_format_can_say_and_leaves_nothing_behind_on_errors() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("t.csv"), TRACE).unwrap();
    std::fs::write(path("bad.csv"), format!("{TRACE}what is this\n")).unwrap();
    for (to, out) in [
        ("common", "a.csv.zst"),
        ("spc", "b.spc"),
        ("msr", "c.csv.gz"),
        ("fio", "d.log"),
        ("common", "e.csv.xz"),
    ] {
        let output = elastripe(&["trace", "convert", &path("t.csv"), &path(out), "--to", to]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let counts = info(&[&path(out)]);
        assert_eq!(number(&counts, "/requests"), 3, "{to}");
        assert_eq!(number(&counts, "/chunk_writes"), 3, "{to}");
    }
    assert!(std::fs::read(path("e.csv.xz")).unwrap().starts_with(b"\xfd7zXZ"));
    refused(&["trace", "convert", &path("t.csv"), &path("t.csv")], "--force");
    assert_eq!(std::fs::read_to_string(path("t.csv")).unwrap(), TRACE);
    refused(&["trace", "convert", &path("bad.csv"), &path("new.csv")], "bad.csv:5");
    refused(&["trace", "convert", &path("t.csv"), &path("new.csv.bz2")], "expected .zst, .gz or .xz");
    refused(&["trace", "convert", &path("t.csv"), "/does/not/exist/out.csv"], "/does/not/exist");
    let mut names: Vec<_> = std::fs::read_dir(scratch.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.csv.zst", "b.spc", "bad.csv", "c.csv.gz", "d.log", "e.csv.xz", "t.csv"]);
}

/// The same trace as CSV of its own columns, through a pipe, and packed with xz.
#[test]
fn own_columns_xz_and_the_standard_input_are_read() {
    // `ts_us,dev,op,offset,len`, a write of 8 KiB at 4 KiB and a read of 512 bytes at 0, as xz has it.
    const XZ: [u8; 108] = [
        253, 55, 122, 88, 90, 0, 0, 4, 230, 214, 180, 70, 2, 0, 33, 1, 22, 0, 0, 0, 116, 47, 229, 163, 1, 0,
        51, 116, 115, 95, 117, 115, 44, 100, 101, 118, 44, 111, 112, 44, 111, 102, 102, 115, 101, 116, 44,
        108, 101, 110, 10, 48, 44, 48, 44, 87, 44, 52, 48, 57, 54, 44, 56, 49, 57, 50, 10, 57, 44, 48, 44,
        82, 44, 48, 44, 53, 49, 50, 10, 0, 153, 120, 173, 55, 64, 163, 204, 61, 0, 1, 76, 52, 151, 65, 254,
        93, 31, 182, 243, 125, 1, 0, 0, 0, 0, 4, 89, 90,
    ];
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("t.xz"), XZ).unwrap();
    std::fs::write(path("own.txt"), "when;what;where;sectors\n7.5;Write;8;16\n7.500009;Read;0;1\n").unwrap();
    let columns = ["--columns", "ts,op,lba,sectors"];
    for (words, format) in [(vec![path("t.xz")], "csv"), (vec![path("own.txt")], "columns")] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let counts = info(&[&words[..], if format == "csv" { &[] } else { &columns }].concat());
        assert_eq!(counts["format"], format);
        let numbers =
            ["/requests", "/write_bytes", "/read_bytes", "/duration_us"].map(|key| number(&counts, key));
        assert_eq!(numbers, [2, 8192, 512, 9], "{format}");
    }
    refused(&["trace", "info", "--columns", "ts,op,lba", &path("own.txt")], "op, an address and a length");
    refused(&["trace", "info", "--columns", "ts,op,lba,sectors", &path("t.xz")], "t.xz:2");
    // Half of an xz file is an error, not a short trace.
    std::fs::write(path("half.xz"), &XZ[..60]).unwrap();
    refused(&["trace", "info", &path("half.xz")], "half.xz");

    let own = std::fs::File::open(path("own.txt")).unwrap();
    let replay = ["replay", "--trace", "-", "--device", "null", "--geometry", "4+1", "--compact", "--json"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_elastripe"))
        .args([&replay[..], &columns].concat())
        .stdin(own)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(number(&json, "/totals/requests"), 2);
    assert_eq!(number(&json, "/totals/user_chunks_written"), 2);
}

#[test]
fn files_are_held_against_what_is_published_of_a_collection() {
    let all = elastripe(&["trace", "published"]);
    let text = String::from_utf8_lossy(&all.stdout).into_owned();
    assert!(
        all.status.success() && text.contains("UMass Trace Repository") && text.contains("--columns"),
        "{text}"
    );
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.csv");
    std::fs::write(&path, TRACE).unwrap();
    let path = path.to_str().unwrap();
    // Three requests are not MSR's media server.
    let output = elastripe(&["trace", "published", "msr-mds_0", path, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((number(&json, "/requests"), number(&json, "/writes")), (3, 2));
    assert!(number(&json, "/off") > 2 && json["figures"].as_array().unwrap().len() > 2, "{json}");
    // The hash is of the requests, not of their form.
    let packed = scratch.path().join("t.csv.zst");
    let packed = packed.to_str().unwrap();
    assert!(elastripe(&["trace", "convert", path, packed]).status.success());
    let output = elastripe(&["trace", "published", "alibaba-2020", packed, "--json"]);
    assert_eq!(output.status.code(), Some(0), "nothing is printed that could be off");
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(again["hash"], json["hash"]);
    refused(&["trace", "published", "nothing"], "financial1");
}

#[test]
fn shares_of_nothing_are_none_and_an_empty_trace_is_called_empty() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.csv");
    let path = path.to_str().unwrap();
    std::fs::write(path, "0,0,R,0,4096\n").unwrap();
    let json = info(&[path]);
    assert_eq!(json["write_percent"], 0.0);
    for share in ["write_kib_mean", "random_percent", "update_ratio", "top_fifth_percent"] {
        assert!(json[share].is_null(), "{share} of no writes: {}", json[share]);
    }
    let text = String::from_utf8(elastripe(&["trace", "info", path]).stdout).unwrap();
    assert!(text.contains("update ratio   n/a") && text.contains("random writes  n/a"), "{text}");
    for empty in ["", "\n\n"] {
        std::fs::write(path, empty).unwrap();
        refused(&["trace", "info", path], "t.csv: found nothing in it, expected a trace");
    }
}

/// Runs the program with a file as a pipe on its standard input.
fn piped(words: &[&str], path: &Path) -> Output {
    let mut cat = Command::new("cat").arg(path).stdout(Stdio::piped()).spawn().unwrap();
    let input = cat.stdout.take().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_elastripe")).args(words).stdin(input).output().unwrap();
    cat.wait().unwrap();
    output
}

#[test]
fn a_synthetic_trace_says_what_it_is_through_a_pipe() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, out) = (scratch.path().join("zipf.csv"), scratch.path().join("out.csv"));
    let made = elastripe(&[
        "trace",
        "generate",
        "--profile",
        "zipf:0.9",
        "--range",
        "8MiB",
        "--requests",
        "50",
        "--seed",
        "3",
        path.to_str().unwrap(),
    ]);
    assert!(made.status.success(), "{made:?}");
    let json = |words: &[&str]| -> Value {
        let output = piped(words, &path);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let said = json(&["trace", "info", "--json", "-"]);
    assert_eq!(said["format"], "csv");
    assert_eq!(said["synthetic"], info(&[path.to_str().unwrap()])["synthetic"]);
    assert!(!said["synthetic"].is_null(), "{said:#}");
    let replayed = json(&["replay", "--json", "--trace", "-", "--device", "null"]);
    assert!(
        replayed["synthetic"][0].as_str().is_some_and(|said| said.starts_with("zipf:0.9")),
        "{replayed:#}"
    );
    let simulated = json(&["simulate", "--json", "--trace", "-", "--ssd", "was-ssd"]);
    assert!(!simulated["config"]["trace"]["synthetic"].as_array().unwrap().is_empty(), "{simulated:#}");
    let converted = piped(&["trace", "convert", "-", out.to_str().unwrap()], &path);
    assert!(converted.status.success(), "{converted:?}");
    assert_eq!(info(&[out.to_str().unwrap()])["synthetic"], said["synthetic"]);
}
