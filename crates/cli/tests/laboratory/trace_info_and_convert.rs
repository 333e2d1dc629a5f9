//! `trace info` and `trace convert` on the command line.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, number, refused};
use serde_json::Value;

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
    for (to, out) in [("common", "a.csv.zst"), ("spc", "b.spc"), ("msr", "c.csv.gz"), ("fio", "d.log")] {
        let output = elastripe(&["trace", "convert", &path("t.csv"), &path(out), "--to", to]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let counts = info(&[&path(out)]);
        assert_eq!(number(&counts, "/requests"), 3, "{to}");
        assert_eq!(number(&counts, "/chunk_writes"), 3, "{to}");
    }
    refused(&["trace", "convert", &path("t.csv"), &path("t.csv")], "--force");
    assert_eq!(std::fs::read_to_string(path("t.csv")).unwrap(), TRACE);
    refused(&["trace", "convert", &path("bad.csv"), &path("new.csv")], "bad.csv:5");
    refused(&["trace", "convert", &path("t.csv"), "/does/not/exist/out.csv"], "/does/not/exist");
    let mut names: Vec<_> = std::fs::read_dir(scratch.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.csv.zst", "b.spc", "bad.csv", "c.csv.gz", "d.log", "t.csv"]);
}
