//! `trace generate` on the command line, what `trace info` says of its files, and that results say so too.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{elastripe, number, refused, replay};
use serde_json::Value;
use std::path::Path;

#[track_caller]
fn said(arguments: &[&str]) -> String {
    let output = elastripe(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn info_prints_target_and_reached_side_by_side() {
    let scratch = tempfile::tempdir().unwrap();
    let out = path(scratch.path(), "mds.csv.zst");
    let text = said(&["trace", "generate", "--profile", "mds", "--seed", "3", &out]);
    assert!(text.contains("1069421 synthetic requests"), "{text}");
    assert!(std::fs::read(&out).unwrap().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let text = said(&["trace", "info", &out]);
    let row = text.lines().find(|line| line.contains("working set, GiB")).unwrap();
    for word in ["3.09", "reached", "EPLOG, Table 2", "1 MiB segments"] {
        assert!(row.contains(word), "{row}");
    }
    let json: Value = serde_json::from_str(&said(&["trace", "info", "--json", &out])).unwrap();
    let label = &json["synthetic"][0];
    assert_eq!((&label["profile"], number(label, "/seed")), (&Value::from("mds"), 3));
    let targets = label["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 4);
    for target in targets {
        assert_eq!(target["verdict"], "reached", "{target}");
        assert!(target["deviation_percent"].as_f64().unwrap().abs() <= 2.0, "{target}");
        assert!(!target["definition"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_short_one_says_what_cannot_be_compared() {
    let scratch = tempfile::tempdir().unwrap();
    let out = path(scratch.path(), "t.csv");
    let generate = ["trace", "generate", "--profile", "online-webmail", "--requests", "20000", "--seed", "1"];
    let text = said(&[&generate[..], &[&out]].concat());
    assert!(text.contains("not the published length of 13496314"), "{text}");
    let text = said(&["trace", "info", &out]);
    assert!(text.contains("other length") && text.contains("stand-in for Online+Webmail"), "{text}");
    let text = said(&["trace", "info", "--chunk-size", "8KiB", &out]);
    assert!(text.contains("4096-byte chunks"), "{text}");
    let text = said(&["trace", "info", &out, &out]);
    assert!(text.contains("several are joined"), "{text}");
    let plain = path(scratch.path(), "plain.csv");
    std::fs::write(&plain, "0,0,W,0,512\n").unwrap();
    assert!(!said(&["trace", "info", &plain]).contains("synthetic"));
    let json: Value = serde_json::from_str(&said(&["trace", "info", "--json", &plain])).unwrap();
    assert_eq!(json["synthetic"], Value::Null);
}

/// The label outlives conversion to a form that has room for it, and is in the result of a replay.
#[test]
fn the_label_stays_with_the_trace() {
    let scratch = tempfile::tempdir().unwrap();
    let [out, again, spc] = ["t.csv", "again.csv.gz", "t.spc"].map(|name| path(scratch.path(), name));
    said(&[
        "trace",
        "generate",
        "--profile",
        "zipf:0.8",
        "--range",
        "1MiB",
        "--requests",
        "200",
        "--seed",
        "1",
        &out,
    ]);
    said(&["trace", "convert", &out, &again]);
    assert!(said(&["trace", "info", &again]).contains("zipf:0.8"));
    assert!(said(&["trace", "convert", &out, &spc, "--to", "spc"]).contains("synthetic"));
    let result = replay(&["--trace", &again, "--device", "memory", "--geometry", "2+1", "--verify"]);
    assert!(result["synthetic"][0].as_str().unwrap().contains("zipf:0.8"), "{result}");
    let text = said(&["replay", "--trace", &again, "--device", "null", "--geometry", "2+1"]);
    assert!(text.contains("trace    synthetic, zipf:0.8"), "{text}");
}

#[test]
fn bad_input_is_named_and_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let out = path(scratch.path(), "t.csv");
    let refuses = |arguments: &[&str], what: &str| {
        let all = [&["trace", "generate"], arguments].concat();
        refused(&all, what);
        let errors = elastripe(&all).stderr;
        assert_eq!(errors.iter().filter(|&&byte| byte == b'\n').count(), 1, "more than one line: {what}");
    };
    refuses(&["--profile", "finn", "--seed", "1", &out], "\"finn\"");
    refuses(&["--profile", "zipf:7", "--seed", "1", &out], "\"7\"");
    refuses(&["--profile", "zipf:much", "--seed", "1", &out], "\"much\"");
    refuses(&["--profile", "fin", &out], "--seed");
    refuses(&["--profile", "fin", "--seed", "x", &out], "--seed");
    refuses(&["--profile", "fin", "--seed", "1", "--requests", "0", &out], "requests is 0");
    refuses(&["--profile", "fin", "--seed", "1", "--range", "1GiB", &out], "profile fin");
    refuses(&["--profile", "uniform", "--seed", "1", "--range", "5000B", &out], "5000 bytes");
    refuses(&["--profile", "fin", "--seed", "1", "/does/not/exist/t.csv"], "/does/not/exist/t.csv");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);

    std::fs::write(&out, "mine").unwrap();
    let short = ["--profile", "web", "--requests", "10", "--seed", "1", &out];
    refuses(&short, "--force");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "mine");
    said(&[&["trace", "generate", "--force"], &short[..]].concat());
    assert!(std::fs::read_to_string(&out).unwrap().starts_with("# elastripe synthetic: profile=web"));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
}
