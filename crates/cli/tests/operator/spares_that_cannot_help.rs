//! A spare that can take no place is called none: its file is gone, or it is too small since the array has
//! grown. Nothing is lost to it, and the operator hears of it in time.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::arrays_grow::enlarge;
use crate::common::{Rig, device};
use std::fs;

const MEMBERS: [&str; 4] = ["d0", "d1", "d2", "l0"];

fn rig() -> Rig {
    let rig = Rig::new();
    let create =
        ["create", "--parity", "1", "--file-size", "64MiB", "--name", "s", "--data", "d0", "d1", "d2"];
    rig.run(&[&create[..], &["--log", "l0"]].concat()).ok();
    rig
}

fn add(rig: &Rig, name: &str) {
    rig.on("add", &["d1"], &["--spare", name, "--file-size", "64MiB"]).ok();
}

fn make(rig: &Rig, name: &str, bytes: u64) {
    fs::File::create(rig.path(name)).unwrap().set_len(bytes).unwrap();
}

fn notes(status: &serde_json::Value) -> String {
    status["notes"].to_string()
}

#[test]
fn a_spare_whose_file_is_gone_takes_no_place() {
    let rig = rig();
    let mut server = rig.serve(&MEMBERS, &[]);
    add(&rig, "deleted");
    add(&rig, "moved");
    fs::remove_file(rig.path("deleted")).unwrap();
    fs::rename(rig.path("moved"), rig.path("elsewhere")).unwrap();
    make(&rig, "moved", 64 << 20);
    let status = rig.status(&["d1"]);
    for (name, why) in [("spare0", "its file was deleted"), ("spare1", "its path leads to another device")] {
        assert_eq!(device(&status, name)["state"], "unfit", "{status:#}");
        assert!(notes(&status).contains(why), "{status:#}");
    }
    let shown = rig.on("status", &["d1"], &[]).ok().out;
    assert!(shown.contains("deleted) is no spare now: its file was deleted"), "{shown}");

    rig.on("fail", &["d1"], &["--device", "data0", "--yes"]).ok();
    server.await_log("no spare can take the place of data0: spare0");
    let status = rig.status(&["d1"]);
    assert_eq!(status["state"], "degraded", "{status:#}");

    // What is there now is another device, and may become a spare.
    rig.on("add", &["d1"], &["--spare", "moved"]).ok();
    server.await_log("data0 is rebuilt");
    let status = rig.status(&["d1"]);
    assert!(device(&status, "data0")["path"].as_str().unwrap().ends_with("/moved"), "{status:#}");
    assert!(status["devices"].as_array().unwrap().iter().all(|one| one["name"] != "spare1"), "{status:#}");
    server.stop().ok();
    rig.on("status", &["moved", "d1", "d2", "l0"], &[]).ok();
}

#[test]
fn a_spare_that_has_become_too_small_is_called_so() {
    let rig = rig();
    make(&rig, "shared", 64 << 20);
    make(&rig, "tiny", 1 << 20);
    let mut server = rig.serve(&MEMBERS, &["--shared-spare", "shared", "--shared-spare", "tiny"]);
    add(&rig, "sp");
    let status = rig.status(&["d1"]);
    assert_eq!(device(&status, "spare0")["state"], "spare");
    assert_eq!(device(&status, "shared0")["state"], "spare");
    assert_eq!(device(&status, "shared1")["state"], "unfit", "{status:#}");
    assert!(notes(&status).contains("tiny) is no spare now: it has 1 MiB"), "{status:#}");

    enlarge(&rig, &["d0", "d1", "d2"], 32 << 20);
    let grown = rig.on("grow", &["d0", "d1", "d2", "l0"], &[]).ok().out;
    assert!(grown.contains("sp is too small for a data device now: it has 64 MiB"), "{grown}");
    server.await_log("sp is too small for a data device now");
    let status = rig.status(&["d1"]);
    for name in ["spare0", "shared0"] {
        assert_eq!(device(&status, name)["state"], "spare", "it does for the log device: {status:#}");
    }
    assert!(notes(&status).contains("sp) cannot take every place: it has 64 MiB"), "{status:#}");
    assert!(notes(&status).contains("shared) cannot take every place: it has 64 MiB"), "{status:#}");

    rig.on("fail", &["d1"], &["--device", "data0", "--yes"]).ok();
    server.await_log("no spare can take the place of data0: spare0");
    assert_eq!(rig.status(&["d1"])["state"], "degraded");

    // It has become larger, too, and that is seen.
    enlarge(&rig, &["sp"], 32 << 20);
    let status = rig.status(&["d1"]);
    assert!(!notes(&status).contains("sp) cannot take"), "{status:#}");
    server.await_log("data0 is rebuilt");
    assert_eq!(rig.status(&["d1"])["state"], "healthy");
    server.stop().ok();
}
