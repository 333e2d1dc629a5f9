//! `fail` and `replace` of a member that works ask before the array has no redundancy left; a spare is used
//! whenever a member is out of service, also from the start.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, device, qemu_script, until};

const FILES: [&str; 3] = ["d0", "d1", "d2"];

fn raid(rig: &Rig) {
    let create = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB", "--data"];
    rig.run(&[&create[..], &FILES[..]].concat()).ok();
}

#[test]
fn yes_is_asked_for() {
    let rig = Rig::new();
    raid(&rig);
    let with = ["--device", "data1", "--with", "n1", "--file-size", "32MiB", "--fail-first"];
    let asked = ["data1", "one more failure loses data", "--yes"];
    let before = rig.fingerprint(&FILES);
    rig.on("fail", &FILES, &["--device", "data1"]).refused(&asked);
    rig.on("replace", &FILES, &with).refused(&asked);
    assert_eq!(rig.fingerprint(&FILES), before);
    let server = rig.serve(&FILES, &[]);
    rig.on("fail", &["d0"], &["--device", "data1"]).refused(&asked);
    rig.on("replace", &["d0"], &with).refused(&asked);
    assert!(!rig.path("n1").exists());
    assert_eq!(rig.status(&["d0"])["state"], "healthy");
    rig.on("fail", &["d0"], &["--device", "data1", "--yes"]).ok();
    // What would lose data takes more than that.
    rig.on("fail", &["d0"], &["--device", "data2", "--yes"]).refused(&["data2", "bears 1"]);
    // What has failed already is replaced without a question.
    rig.on("replace", &["d0"], &[&with[..], &["--wait"]].concat()).ok();
    rig.on("replace", &["d0"], &["--device", "data1", "--with", "d1", "--yes", "--wait"]).ok();
    assert_eq!(rig.status(&["d0"])["state"], "healthy");
    server.stop().ok();
}

/// Asks until the array is whole.
fn await_healthy(rig: &Rig) {
    until("it is rebuilt", || rig.status(&["d0"])["state"] == "healthy");
}

#[test]
fn a_spare_is_used_when_the_array_starts_without_a_member() {
    let rig = Rig::new();
    raid(&rig);
    rig.serve_run(&FILES, &qemu_script(&["write -P 3 0 4M", "flush"]), &[]).ok();
    rig.on("add", &FILES, &["--spare", "s0", "--file-size", "32MiB"]).ok();

    // A member is not there.
    std::fs::remove_file(rig.path("d1")).unwrap();
    let server = rig.serve(&["d0", "d2", "s0"], &["--degraded"]);
    await_healthy(&rig);
    assert!(device(&rig.status(&["d0"]), "data1")["path"].as_str().unwrap().ends_with("/s0"));
    let ran = server.stop().ok();
    assert!(ran.err.contains("s0 takes the place of data1"), "{ran:?}");

    // A member failed before.
    let now = ["d0", "s0", "d2"];
    rig.on("fail", &now, &["--device", "data2", "--yes"]).ok();
    rig.on("add", &now, &["--spare", "s1", "--file-size", "32MiB"]).ok();
    let shown = rig.on("status", &["d0", "s0", "d2", "s1"], &[]).code(1);
    assert!(shown.out.contains("spare0 among the members: it takes the place of data2"), "{shown:?}");
    let server = rig.serve(&["d0", "s0", "d2", "s1"], &[]);
    await_healthy(&rig);
    server.stop().ok();
    rig.serve_run(&["d0", "s0", "s1"], &qemu_script(&["read -P 3 0 4M"]), &[]).ok();
}

#[test]
fn nobody_needs_to_ask_for_the_spare_to_be_used() {
    let rig = Rig::new();
    raid(&rig);
    rig.on("add", &FILES, &["--spare", "s0", "--file-size", "32MiB"]).ok();
    std::fs::remove_file(rig.path("d1")).unwrap();
    let mut server = rig.serve(&["d0", "d2", "s0"], &["--degraded"]);
    // The log alone tells, without any client.
    server.await_log("s0 takes the place of data1");
    server.stop().ok();
}

#[test]
fn a_spare_of_an_array_that_nobody_serves_is_removed_and_the_array_shown() {
    let rig = Rig::new();
    raid(&rig);
    rig.on("add", &FILES, &["--spare", "s0", "--file-size", "32MiB"]).ok();
    rig.on("remove", &["s0"], &["--spare", "s0", "--json"]).refused(&["s0", "name one of its members"]);
    let all = [&FILES[..], &["s0"]].concat();
    assert_eq!(rig.status(&all)["devices"].as_array().unwrap().len(), FILES.len() + 1);
    let status = rig.on("remove", &all, &["--spare", "spare0", "--json"]).ok().json();
    assert_eq!(status["devices"].as_array().unwrap().len(), FILES.len());
    rig.on("examine", &["s0"], &[]).code(1);
}

#[test]
fn a_spare_can_be_put_in_a_place_by_hand_and_be_removed() {
    let rig = Rig::new();
    raid(&rig);
    rig.on("add", &FILES, &["--spare", "s0", "--file-size", "32MiB"]).ok();
    rig.on("add", &FILES, &["--spare", "s1", "--file-size", "32MiB"]).ok();
    let server = rig.serve(&["d0", "d1", "d2", "s0", "s1"], &[]);
    rig.on("replace", &["d0"], &["--device", "data1", "--with", "s1", "--yes", "--wait"]).ok();
    let status = rig.status(&["d0"]);
    assert!(device(&status, "data1")["path"].as_str().unwrap().ends_with("/s1"), "{status:#}");
    assert!(device(&status, "spare0")["path"].as_str().unwrap().ends_with("/s0"), "{status:#}");

    rig.on("remove", &["d0"], &["--spare", "s1"]).refused(&["s1", "not a spare", "s0"]);
    let status = rig.on("remove", &["d0"], &["--spare", "spare0", "--json"]).ok().json();
    assert_eq!(status["source"], "served");
    assert_eq!(status["devices"].as_array().unwrap().len(), 3);
    rig.on("examine", &["s0"], &[]).code(1);
    // It is nobody's now.
    rig.on("add", &["d0"], &["--spare", "s0"]).ok();
    server.stop().ok();

    let now = ["d0", "s1", "d2"];
    rig.on("remove", &now, &["--spare", "d2"]).refused(&["d2", "not a spare"]);
    rig.on("remove", &now, &["--spare", "s0"]).ok();
    rig.on("examine", &["s0"], &[]).code(1);
    rig.on("status", &now, &[]).ok();
}

#[test]
fn a_file_that_is_called_as_another_member_is_not_taken_for_it() {
    let rig = Rig::new();
    // The file `data1` is the member data0, and the other way round.
    let files = ["data1", "data0", "data2"];
    let create = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB", "--data"];
    rig.run(&[&create[..], &files[..]].concat()).ok();
    rig.on("fail", &files, &["--device", "data0", "--yes"]).refused(&[
        "name of one member",
        "data1",
        "./data0",
    ]);
    let server = rig.serve(&files, &[]);
    rig.on("fail", &["data2"], &["--device", "data1", "--yes"]).refused(&["name of one member", "./data1"]);
    rig.on("fail", &["data2"], &["--device", "./data0", "--yes"]).ok();
    let status = rig.status(&["data2"]);
    assert_eq!(device(&status, "data1")["state"], "failed", "{status:#}");
    assert_eq!(device(&status, "data0")["state"], "healthy", "{status:#}");
    server.stop().ok();
}

/// A copy of the array, by the file system's snapshot or by hand, is somebody's backup.
#[test]
fn members_of_a_copy_are_not_overwritten() {
    let rig = Rig::with_array();
    std::fs::create_dir(rig.path("copy")).unwrap();
    for name in crate::common::MEMBERS {
        std::fs::copy(rig.path(name), rig.path("copy").join(name)).unwrap();
    }
    let before = rig.fingerprint(&["copy/d1", "copy/d2"]);
    let refused = ["is a copy of data1", "--force"];
    let server = rig.serve(&crate::common::MEMBERS, &[]);
    rig.on("add", &["d0"], &["--spare", "copy/d1"]).refused(&refused);
    rig.on("replace", &["d0"], &["--device", "data2", "--with", "copy/d1", "--yes"]).refused(&refused);
    server.stop().ok();
    rig.on("replace", &crate::common::MEMBERS, &["--device", "data2", "--with", "copy/d1", "--yes"])
        .refused(&refused);
    assert_eq!(rig.fingerprint(&["copy/d1", "copy/d2"]), before);
    // What has left the array is welcome back.
    let server = rig.serve(&crate::common::MEMBERS, &[]);
    rig.on("fail", &["d0"], &["--device", "data1", "--yes"]).ok();
    rig.on("replace", &["d0"], &["--device", "data1", "--with", "d1", "--wait"]).ok();
    server.stop().ok();
}
