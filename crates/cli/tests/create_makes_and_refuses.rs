//! `create` makes what is missing, refuses what belongs to somebody, and leaves nothing behind when it fails.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{MEMBERS, Rig, scribble};

#[test]
fn missing_paths_become_sparse_files_and_the_array_is_healthy() {
    let rig = Rig::new();
    let made = rig.create(&["--json"]).ok().json();
    assert_eq!(made["data_count"], 2);
    assert_eq!(made["devices"].as_array().unwrap().len(), 6);
    let status = rig.on("status", &MEMBERS, &["--json"]).ok().json();
    assert_eq!((&status["state"], &status["uuid"]), (&"healthy".into(), &made["uuid"]));
    assert_eq!(status["volume_bytes"], made["volume_bytes"]);
    assert_eq!(std::fs::metadata(rig.path("d0")).unwrap().len(), 32 << 20);
}

#[test]
fn members_and_foreign_content_are_refused_unless_forced() {
    let rig = Rig::with_array();
    let before = rig.fingerprint(&MEMBERS);
    rig.create(&[]).refused(&["d0", "member of array", "--force"]);
    assert_eq!(rig.fingerprint(&MEMBERS), before);
    rig.create(&["--force"]).ok();
    assert_ne!(rig.fingerprint(&MEMBERS), before);

    let rig = Rig::new();
    std::fs::File::create(rig.path("d2")).unwrap().set_len(32 << 20).unwrap();
    scribble(&rig.path("d2"), 0, b"XFSB");
    rig.create(&[]).refused(&["d2", "xfs", "--force"]);
    assert!(!rig.path("d0").exists(), "nothing is made when something is in the way");
    rig.create(&["--force"]).ok();
}

#[test]
fn nothing_is_left_behind_after_a_failure() {
    let rig = Rig::new();
    std::fs::create_dir(rig.path("locked")).unwrap();
    let data = ["--data", "a", "b", "c", "nowhere/d", "--file-size", "32MiB"];
    rig.run(&[&["create", "--scheme", "raid", "--parity", "1"], &data[..]].concat()).refused(&["nowhere/d"]);
    let mut left: Vec<_> =
        std::fs::read_dir(rig.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["locked"]);
}

#[test]
fn shapes_that_cannot_be_are_refused_in_one_line() {
    let rig = Rig::new();
    let create = |args: &[&str]| rig.run(&[&["create", "--file-size", "32MiB"], args].concat());
    create(&["--scheme", "eplog", "--parity", "2", "--data", "a", "b", "c", "--log", "x"])
        .refused(&["1 log devices given, expected 2"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "b", "c", "--log", "x"])
        .refused(&["scheme raid", "1 log devices given, expected 0"]);
    create(&["--scheme", "parity-log", "--parity", "1", "--data", "a", "b", "c"])
        .refused(&["scheme parity-log", "0 log devices given, expected 1"]);
    create(&["--scheme", "raid", "--parity", "2", "--data", "a", "b"]).refused(&["--parity 2"]);
    create(&["--scheme", "raid", "--parity", "0", "--data", "a", "b"]).refused(&["--parity 0"]);
    create(&["--scheme", "raid", "--parity", "2", "--code", "xor", "--data", "a", "b", "c"])
        .refused(&["xor"]);
    create(&["--scheme", "raid", "--parity", "1", "--chunk-size", "3KiB", "--data", "a", "b"])
        .refused(&["power of two"]);
    create(&["--scheme", "raid", "--parity", "1", "--chunk-size", "4", "--data", "a", "b"])
        .refused(&["--chunk-size", "4KiB"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "./a"]).refused(&["same device"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "a"]).refused(&["twice"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "b", "--name", &"n".repeat(65)])
        .refused(&["--name"]);
    create(&["--scheme", "lru", "--parity", "1", "--data", "a", "b"]).refused(&["lru", "eplog"]);
    rig.run(&["create", "--scheme", "raid", "--parity", "1", "--data", "a", "b"])
        .refused(&["a", "--file-size"]);
    rig.run(&["create", "--scheme", "raid", "--parity", "1", "--data", "a", "b", "--file-size", "64KiB"])
        .refused(&["too small"]);
    assert_eq!(std::fs::read_dir(rig.dir.path()).unwrap().count(), 0, "no file was left behind");
}
