//! A data device and a log device fail while the array is served, and are replaced; every byte
//! is there throughout.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, device, has, qemu_script, scribble, until};

const CHECK: [&str; 4] = ["read -P 1 0 4M", "read -P 2 4M 64k", "read -P 3 8M 512k", "read -P 0 16M 1M"];

fn served_with_data(rig: &Rig, options: &[&str]) -> crate::common::Server {
    let server = rig.serve(&MEMBERS, options);
    rig.qemu_io(&["write -P 1 0 8M", "write -P 2 4M 64k", "write -P 3 8M 512k", "flush"]).ok();
    server
}

#[track_caller]
fn check(rig: &Rig) {
    let ran = rig.qemu_io(&CHECK).ok();
    assert!(!ran.out.contains("failed"), "{ran:?}");
}

#[test]
fn live_through_the_control_socket() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = served_with_data(&rig, &["--commit-idle", "off"]);
    rig.on("status", &["d0"], &[]).ok();
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    rig.on("fail", &["d0"], &["--device", "l1", "--yes"]).ok();
    let status = rig.on("status", &["d0"], &["--json"]).code(1).json();
    assert_eq!(status["state"], "degraded");
    assert_eq!(device(&status, "data1")["state"], "failed");
    assert_eq!(device(&status, "log1")["state"], "failed");
    check(&rig);
    rig.qemu_io(&["write -P 3 8M 256k", "flush"]).ok();

    rig.on("fail", &["d0"], &["--device", "data0"]).refused(&["data0", "bears 2"]);
    rig.on("fail", &["d0"], &["--device", "data1"]).refused(&["data1", "already"]);
    rig.on("fail", &["d0"], &["--device", "data9"]).refused(&["data9", "data0, data1"]);
    rig.on("replace", &["d0"], &["--device", "data1", "--with", "d2"]).refused(&["d2", "data2"]);
    rig.on("replace", &["d0"], &["--device", "data1", "--with", "tiny", "--file-size", "1MiB"])
        .refused(&["tiny"]);
    assert!(!rig.path("tiny").exists(), "a file made for nothing is removed");

    let new = ["--file-size", "32MiB", "--wait"];
    rig.on("replace", &["d0"], &[&["--device", "data1", "--with", "n1"], &new[..]].concat()).ok();
    rig.on("replace", &["d0"], &[&["--device", "log1", "--with", "m1"], &new[..]].concat()).ok();
    let status = rig.on("status", &["d0"], &["--json"]).ok().json();
    assert_eq!(device(&status, "data1")["state"], "healthy");
    assert!(device(&status, "data1")["path"].as_str().unwrap().ends_with("/n1"));
    check(&rig);
    let scrub = rig.on("scrub", &["d0"], &["--wait"]).ok();
    assert!(scrub.out.contains("0 chunks healed, 0 code words lost, 0 stripes"), "{scrub:?}");
    rig.on("commit", &["d0"], &[]).ok();
    rig.on("checkpoint", &["d0"], &["--full"]).ok();
    server.stop().ok();

    // The old ones are recognised as such, wherever they are named.
    let all = ["d1", "l1", "d0", "n1", "d2", "d3", "l0", "m1"];
    let status = rig.on("status", &all, &["--json"]).ok().json();
    assert_eq!(status["stale"], serde_json::json!(["d1", "l1"]));
    rig.serve_run(&all, &qemu_script(&CHECK), &[]).ok();
}

#[test]
fn on_an_array_that_nobody_serves() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    served_with_data(&rig, &[]).stop().ok();
    rig.on("fail", &MEMBERS, &["--device", "d2"]).ok();
    rig.on("status", &MEMBERS, &[]).code(1);
    rig.serve_run(&MEMBERS, &qemu_script(&CHECK), &[]).ok();
    rig.on("replace", &MEMBERS, &["--device", "data2", "--with", "n2", "--file-size", "32MiB"]).ok();
    let now = ["d0", "d1", "n2", "d3", "l0", "l1"];
    rig.on("status", &now, &[]).ok();
    // The device that was failed comes back and takes its old place.
    rig.on("replace", &now, &["--device", "data2", "--with", "d2"]).ok();
    rig.on("status", &MEMBERS, &[]).ok();
    rig.on("scrub", &MEMBERS, &[]).ok();
    rig.serve_run(&MEMBERS, &qemu_script(&CHECK), &[]).ok();
}

#[test]
fn a_device_that_died_while_the_array_was_stopped_is_replaced_by_name() {
    let rig = Rig::with_array();
    std::fs::remove_file(rig.path("d1")).unwrap();
    let left = ["d0", "d2", "d3", "l0", "l1"];
    rig.on("scrub", &left, &[]).refused(&["data1", "serve --degraded"]);
    rig.on("replace", &left, &["--device", "data1", "--with", "n1", "--file-size", "32MiB"]).ok();
    rig.on("status", &["d0", "n1", "d2", "d3", "l0", "l1"], &[]).ok();

    std::fs::remove_file(rig.path("l1")).unwrap();
    rig.on("fail", &["d0", "n1", "d2", "d3", "l0"], &["--device", "log1"]).ok();
    rig.on("status", &["d0", "n1", "d2", "d3", "l0"], &[]).code(1);
    rig.on("scrub", &["d0", "n1", "d2", "d3", "l0"], &[]).code(1);
}

#[test]
fn a_spare_takes_the_place_of_a_member_that_fails() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    served_with_data(&rig, &[]).stop().ok();
    rig.on("add", &MEMBERS, &["--spare", "s0", "--file-size", "32MiB"]).ok();
    let members = ["s0", "d0", "d1", "d2", "d3", "l0", "l1"];
    let server = rig.serve(&members, &[]);
    assert_eq!(device(&rig.status(&["d0"]), "spare0")["state"], "spare");
    rig.on("fail", &["d0"], &["--device", "data3"]).ok();
    // Each answer comes after the turn in which the spare was called; rebuilding takes some more.
    while rig.status(&["d0"])["state"] != "healthy" {
        check(&rig);
    }
    let status = rig.status(&["d0"]);
    assert!(device(&status, "data3")["path"].as_str().unwrap().ends_with("s0"), "{status:#}");
    let ran = server.stop().ok();
    assert!(
        ran.err.contains("s0 takes the place of data3") && ran.err.contains("data3 is rebuilt"),
        "{ran:?}"
    );
    rig.serve_run(&["d0", "d1", "d2", "s0", "l0", "l1"], &qemu_script(&CHECK), &[]).ok();
}

#[test]
fn a_rebuild_goes_on_after_a_stop_and_after_a_crash() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    // So slow that it cannot end by itself.
    let server = served_with_data(&rig, &["--rebuild-rate", "1KiB/s"]);
    rig.on(
        "replace",
        &["d0"],
        &["--device", "data0", "--with", "n0", "--fail-first", "--file-size", "32MiB"],
    )
    .ok();
    assert_eq!(device(&rig.status(&["d1"]), "data0")["state"], "rebuilding");
    check(&rig);
    rig.on("rate", &["d1"], &["--rate", "1MiB/s"]).ok();
    until("a part is rebuilt", || rig.status(&["d1"])["work"]["done"].as_u64().unwrap() > 200);
    rig.on("rate", &["d1"], &["--rate", "1KiB/s"]).ok();
    server.stop().ok();
    let now = ["n0", "d1", "d2", "d3", "l0", "l1"];
    assert_eq!(device(&rig.status(&now), "data0")["state"], "rebuilding");
    let server = rig.serve(&now, &["--rebuild-rate", "1KiB/s"]);
    assert_eq!(rig.status(&["d1"])["work"]["kind"], "rebuild");
    check(&rig);
    server.kill();
    let server = rig.serve(&now, &[]);
    while rig.status(&["d1"])["state"] != "healthy" {
        check(&rig);
    }
    let ran = server.stop().ok();
    assert!(ran.err.contains("data0 is rebuilt"), "{ran:?}");
    // Nothing was rebuilt between stop and crash, so it is as far as the stop said.
    let from = ran.err.split("goes on after the restart, at ").nth(1).and_then(|rest| rest.split(' ').next());
    assert!(from.and_then(|percent| percent.parse().ok()).is_some_and(|percent: u64| percent > 0), "{ran:?}");
    rig.serve_run(&now, &qemu_script(&CHECK), &[]).ok();
}

#[test]
fn scrub_heals_bit_rot_and_says_so() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    served_with_data(&rig, &[]).stop().ok();
    // The last quarter of the file is far behind the metadata; the first chunks of the data region were
    // written first.
    let inspected = rig.on("inspect", &["d1"], &["--json"]).ok().json();
    let chunks = inspected[0]["superblocks"][0]["chunks_per_device"].as_u64().unwrap();
    let data_start = (32 << 20) - chunks * 4096;
    let start = data_start / (1 << 20) * (1 << 20);
    scribble(&rig.path("d1"), start + 5 * 4096, &[0xa5; 3 * 4096]);
    let scrub = rig.on("scrub", &MEMBERS, &["--json"]).ok().json();
    assert!(device(&scrub, "data1")["errors"]["healed"].as_u64().unwrap() > 0, "{scrub:#}");
    let again = rig.on("scrub", &MEMBERS, &[]).ok();
    assert!(again.out.contains("0 chunks healed"), "{again:?}");
    rig.serve_run(&MEMBERS, &qemu_script(&CHECK), &[]).ok();
}
