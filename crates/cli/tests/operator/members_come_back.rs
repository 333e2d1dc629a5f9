//! A member that was away is taken back, and only what it missed is rebuilt.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, device, every_scheme, has};
use serde_json::Value;

/// Chunks that the last rebuild wrote.
fn rebuilt(status: &Value) -> u64 {
    status["last_work"]["chunks_rebuilt"].as_u64().unwrap()
}

/// Members of the arrays of [`every_scheme`] with two data devices, a parity, and so many shards.
fn array(rig: &Rig, scheme: &str, has_log: bool, shards: &str) -> Vec<&'static str> {
    let size = if scheme == "elastic" || scheme == "was" { "96MiB" } else { "36MiB" };
    let mut create =
        vec!["create", "--scheme", scheme, "--parity", "1", "--shards", shards, "--name", "back"];
    create.extend(["--file-size", size, "--data", "d0", "d1", "d2"]);
    let mut members = vec!["d0", "d1", "d2"];
    if has_log {
        create.extend(["--log", "l0"]);
        members.push("l0");
    }
    rig.run(&create).ok();
    members
}

#[test]
fn what_was_failed_comes_back_by_what_it_missed_with_every_scheme() {
    if !has("qemu-io") {
        return;
    }
    for ((scheme, has_log), shards) in every_scheme().into_iter().zip(["1", "3", "1", "3", "1"]) {
        let rig = Rig::new();
        let members = array(&rig, scheme, has_log, shards);
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&["write -P 1 0 12M", "flush"]).ok();
        rig.on("fail", &["d0"], &["--device", "data1", "--yes"]).ok();
        rig.qemu_io(&["write -P 2 4M 128k", "write -P 3 9M 4k", "flush"]).ok();
        rig.on("online", &["d0"], &["--device", "data1", "--wait"]).ok();
        let status = rig.status(&["d0"]);
        assert_eq!(status["state"], "healthy", "{scheme}: {status:#}");
        // The device has half of 12 MiB, and as much again of parity.
        let count = rebuilt(&status);
        assert!((1..400).contains(&count), "{scheme}: {count} chunks");
        let scrub = rig.on("scrub", &["d0"], &["--wait"]).ok();
        assert!(scrub.out.contains("0 chunks healed, 0 code words lost, 0 stripes"), "{scheme}: {scrub:?}");
        server.kill();
        // It has what it ought to: another one is lost.
        let left: Vec<&str> = members.iter().copied().filter(|&name| name != "d0").collect();
        let server = rig.serve(&left, &["--degraded"]);
        let reads = ["read -P 1 0 4M", "read -P 2 4M 128k", "read -P 3 9M 4k", "read -P 1 9220k 3068k"];
        let ran = rig.qemu_io(&reads).ok();
        assert!(!ran.out.contains("failed"), "{scheme}: {ran:?}");
        server.stop().ok();
    }
}

#[test]
fn an_array_started_without_a_member_takes_it_back_served_or_not() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    rig.qemu_io(&["write -P 1 0 16M", "flush"]).ok();
    server.kill();
    // A reboot without a cable; power fails meanwhile.
    let left = ["d0", "d1", "d3", "l0", "l1"];
    let server = rig.serve(&left, &["--degraded"]);
    rig.qemu_io(&["write -P 2 1M 64k", "flush"]).ok();
    server.kill();
    let server = rig.serve(&left, &[]);
    rig.qemu_io(&["write -P 3 2M 64k", "flush"]).ok();
    let back = rig.on("online", &["d0"], &["--device", "d2", "--wait", "--json"]).ok().json();
    assert_eq!(back["state"], "healthy");
    assert!((1..600).contains(&rebuilt(&back)), "{back:#}");
    let reads = ["read -P 1 0 1M", "read -P 2 1M 64k", "read -P 3 2M 64k", "read -P 1 3M 13M"];
    rig.qemu_io(&reads).ok();
    server.stop().ok();

    // The same of an array that nobody serves.
    let server = rig.serve(&left, &["--degraded"]);
    rig.qemu_io(&["write -P 4 5M 64k", "flush"]).ok();
    server.stop().ok();
    rig.on("online", &MEMBERS, &["--device", "data2"]).ok();
    let status = rig.status(&MEMBERS);
    assert_eq!((&status["state"], &status["clean"]), (&"healthy".into(), &true.into()), "{status:#}");
    let scrub = rig.on("scrub", &MEMBERS, &[]).ok();
    assert!(scrub.out.contains("0 chunks healed"), "{scrub:?}");
}

#[test]
fn a_return_goes_on_after_a_kill() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    // So slow that it cannot end by itself.
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1KiB/s"]);
    rig.qemu_io(&["write -P 1 0 16M", "flush"]).ok();
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    rig.qemu_io(&["write -P 2 1M 256k", "flush"]).ok();
    rig.on("online", &["d0"], &["--device", "data1"]).ok();
    assert_eq!(device(&rig.status(&["d0"]), "data1")["state"], "rebuilding");
    rig.on("checkpoint", &["d0"], &[]).ok();
    rig.qemu_io(&["write -P 3 2M 64k", "flush"]).ok();
    server.kill();
    let server = rig.serve(&MEMBERS, &[]);
    rig.on("wait", &["d0"], &[]).ok();
    let status = rig.status(&["d0"]);
    assert_eq!(status["state"], "healthy", "{status:#}");
    assert!(rebuilt(&status) < 800, "{status:#}");
    let reads = ["read -P 1 0 1M", "read -P 2 1M 256k", "read -P 3 2M 64k", "read -P 1 3M 13M"];
    rig.qemu_io(&reads).ok();
    let scrub = rig.on("scrub", &["d0"], &["--wait"]).ok();
    assert!(scrub.out.contains("0 chunks healed"), "{scrub:?}");
    server.stop().ok();
}

#[test]
fn what_is_not_the_device_that_left_is_refused_and_not_touched() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    std::fs::copy(rig.path("d1"), rig.path("old")).unwrap();
    let server = rig.serve(&MEMBERS, &[]);
    rig.qemu_io(&["write -P 1 0 8M", "flush"]).ok();
    rig.on("online", &["d0"], &["--device", "data1"]).refused(&["data1", "in service"]);
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    rig.qemu_io(&["write -P 2 1M 64k", "flush"]).ok();
    // Another member, nothing, another array's, and what the member was before the server was started.
    std::fs::write(rig.path("nothing"), vec![0u8; 32 << 20]).unwrap();
    let other = Rig::with_array();
    std::fs::copy(other.path("d1"), rig.path("other")).unwrap();
    let strangers = ["d2", "nothing", "other", "old"];
    let before = rig.fingerprint(&strangers[1..]);
    let online = |with: &str| rig.on("online", &["d0"], &["--device", "data1", "--with", with]);
    online("d2").refused(&["d2", "data1", "data2"]);
    online("nothing").refused(&["nothing"]);
    online("other").refused(&["other", "data1", "belongs to"]);
    online("old").refused(&["old", "data1", "online --full", "replace"]);
    assert_eq!(rig.fingerprint(&strangers[1..]), before);
    assert_eq!(rig.status(&["d0"])["state"], "degraded");
    // The right one comes back, and an old one if the operator wants it to be filled anew.
    rig.on("online", &["d0"], &["--device", "d1", "--wait"]).ok();
    let few = rebuilt(&rig.status(&["d0"]));
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    rig.on("online", &["d0"], &["--device", "data1", "--with", "old", "--full", "--wait"]).ok();
    let status = rig.status(&["d0"]);
    assert!(status["state"] == "healthy" && rebuilt(&status) > 10 * few, "{few}, {status:#}");
    // What replaced it has another serial number than the one before.
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    online("d1").refused(&["d1", "replaced meanwhile"]);
    rig.on("fail", &["d0"], &["--device", "log1", "--yes"]).ok();
    rig.on("online", &["d0"], &["--device", "log1", "--wait"]).ok();
    rig.on("online", &["d0"], &["--device", "data1", "--wait"]).ok();
    assert_eq!(rig.status(&["d0"])["state"], "healthy");
    rig.qemu_io(&["read -P 1 0 1M", "read -P 2 1M 64k", "read -P 1 2M 6M"]).ok();
    server.stop().ok();
}

#[test]
fn the_action_that_status_prints_brings_a_device_back_that_the_server_lists() {
    let rig = Rig::with_array();
    rig.on("fail", &MEMBERS, &["--device", "data0"]).ok();
    let mut server = rig.serve(&MEMBERS, &[]);
    let shown = rig.on("status", &["tank"], &[]).code(1).out;
    assert!(shown.contains("elastripe online tank --device data0"), "{shown}");
    assert!(shown.contains("d0: not in service"), "{shown}");
    rig.on("online", &["tank"], &["--device", "data0", "--wait"]).ok();
    server.await_log("data0 is rebuilt");
    let status = rig.status(&["tank"]);
    assert_eq!(status["state"], "healthy", "{status:#}");
    assert!(status["stale"].as_array().unwrap().is_empty(), "{status:#}");
    assert!(device(&status, "data0")["path"].as_str().unwrap().ends_with("/d0"), "{status:#}");
    server.stop().ok();
}

/// What lay behind the cut is gone, and no mark tells of it: it is filled anew, or not at all.
#[test]
fn a_member_that_was_cut_short_comes_back_only_as_a_new_one() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let members = array(&rig, "eplog", true, "1");
    let server = rig.serve(&members, &[]);
    rig.qemu_io(&["write -P 1 0 24M", "flush"]).ok();
    rig.on("commit", &["d0"], &[]).ok();
    let file = std::fs::File::options().write(true).open(rig.path("d1")).unwrap();
    file.set_len(6 << 20).unwrap();
    rig.on("scrub", &["d0"], &["--wait"]);
    assert_eq!(device(&rig.status(&["d0"]), "data1")["failed_because"], "truncated");
    file.set_len(36 << 20).unwrap();
    rig.on("online", &["d0"], &["--device", "data1", "--wait"]).refused(&["--full"]);
    rig.on("online", &["d0"], &["--device", "data1", "--full", "--wait"]).ok();
    assert_eq!(rig.status(&["d0"])["state"], "healthy");
    rig.on("fail", &["d0"], &["--device", "data0", "--yes"]).ok();
    let ran = rig.qemu_io(&["read -P 1 0 24M"]).ok();
    assert!(!ran.out.contains("failed"), "{ran:?}");
    server.stop().ok();
}

/// The same when a start found it so, and it has its length again when it is asked back, at once or after the
/// next start.
#[test]
fn a_member_that_a_start_found_cut_short_comes_back_only_as_a_new_one() {
    if !has("qemu-io") {
        return;
    }
    for (shards, restarts) in [("1", false), ("3", true)] {
        let rig = Rig::new();
        let members = array(&rig, "raid", false, shards);
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&["write -P 1 0 24M", "flush"]).ok();
        server.stop().ok();
        let file = std::fs::File::options().write(true).open(rig.path("d1")).unwrap();
        file.set_len(6 << 20).unwrap();
        let mut server = rig.serve(&members, &["--degraded"]);
        file.set_len(36 << 20).unwrap();
        if restarts {
            server.kill();
            server = rig.serve(&members, &["--degraded"]);
        }
        rig.on("online", &["d0"], &["--device", "data1", "--with", "d1", "--wait"])
            .refused(&["d1", "--full"]);
        rig.on("online", &["d0"], &["--device", "data1", "--with", "d1", "--full", "--wait"]).ok();
        let scrub = rig.on("scrub", &["d0"], &["--wait"]).ok();
        assert!(scrub.out.contains("0 chunks healed, 0 code words lost, 0 stripes"), "{scrub:?}");
        rig.qemu_io(&["read -P 1 0 24M"]).ok();
        server.stop().ok();
    }
}
