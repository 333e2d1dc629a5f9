//! What a device did not do, with operation and errno, reaches the log, the screen and the JSON.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::{MEMBERS, Rig, device};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// A file in memory behind `path` of which the rig's owner can have every further write refused (EPERM).
pub fn sealable(rig: &Rig, name: &str) -> OwnedFd {
    let file = memfd_create(name, MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, 32 << 20).unwrap();
    let own = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    std::os::unix::fs::symlink(own, rig.path(name)).unwrap();
    file
}

#[test]
fn a_write_that_is_refused_is_named_with_its_errno() {
    let rig = Rig::new();
    let file = sealable(&rig, "d1");
    std::fs::File::create(rig.path("d0")).unwrap().set_len(32 << 20).unwrap();
    std::fs::File::create(rig.path("d2")).unwrap().set_len(32 << 20).unwrap();
    rig.run(&["create", "--scheme", "raid", "--parity", "1", "--data", "d0", "d1", "d2"]).ok();
    let mut server = rig.serve(&["d0", "d1", "d2"], &["--patrol", "off"]);
    let status = rig.status(&["d0"]);
    assert!(device(&status, "data1")["last_fault"].is_null(), "{status:#}");
    assert!(device(&status, "data1")["failed_because"].is_null(), "{status:#}");

    fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
    let mut client = Nbd::connect(&rig.path("nbd"), Duration::from_secs(20));
    client.request(Command::Write, 0, 1 << 20, &vec![7; 1 << 20]);
    client.leave();
    server.await_log("data1 failed (write of ");

    let status = rig.status(&["d0"]);
    let failed = device(&status, "data1");
    assert_eq!((&failed["state"], &failed["failed_because"]), (&"failed".into(), &"fault".into()));
    let fault = &failed["last_fault"];
    assert_eq!(fault["operation"], "write", "{fault:#}");
    assert_eq!(fault["ending"], "error", "{fault:#}");
    assert_eq!(fault["errno"], 1, "{fault:#}");
    assert!(fault["offset_bytes"].is_u64() && fault["length_bytes"].as_u64() > Some(0), "{fault:#}");
    let screen = rig.on("status", &["d0"], &[]).code(1).out;
    let line = screen.lines().find(|line| line.contains("data1: it failed, ")).unwrap();
    assert!(line.contains("write of ") && line.contains("Operation not permitted (errno 1)"), "{line}");
    let stopped = server.stop().ok();
    assert!(!stopped.err.contains("data0 failed"), "{stopped:?}");
}

#[test]
fn who_is_failed_by_hand_names_no_operation() {
    let rig = Rig::with_array();
    let mut server = rig.serve(&crate::common::MEMBERS, &[]);
    rig.on("fail", &["d0"], &["--device", "data1"]).ok();
    server.await_log("data1 failed (as asked); 1 out of service, the array bears 2");
    let status = rig.status(&["d0"]);
    assert_eq!(device(&status, "data1")["failed_because"], "asked");
    assert!(device(&status, "data1")["last_fault"].is_null(), "{status:#}");
    server.stop().ok();
}

#[test]
fn a_member_whose_file_was_deleted_did_not_fail_as_asked() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    std::fs::remove_file(rig.path("d1")).unwrap();
    let shown = rig.on("status", &["d0", "d1"], &[]).ok().out;
    assert!(shown.contains("data1 is served from what was"), "{shown}");
    rig.on("scrub", &["tank"], &["--wait"]).code(1);
    let status = rig.status(&["tank"]);
    assert_eq!(device(&status, "data1")["failed_because"], "lost", "{status:#}");
    let shown = rig.on("status", &["d0", "d1"], &[]).code(1).out;
    assert!(shown.contains("action: elastripe replace tank --device data1"), "{shown}");
    assert!(shown.contains("d1: No such file") && !shown.contains("is served from what was"), "{shown}");
    // Whatever stands there now, the member is out of service.
    std::fs::create_dir(rig.path("d1")).unwrap();
    let shown = rig.on("status", &["d0", "d1"], &[]).code(1).out;
    assert!(shown.contains("d1 is a directory") && !shown.contains("is served as"), "{shown}");

    // What has taken the place is another device.
    let replace = ["--device", "data1", "--with", "n1", "--file-size", "32MiB", "--wait"];
    rig.on("replace", &["tank"], &replace).ok();
    assert!(device(&rig.status(&["tank"]), "data1")["failed_because"].is_null());
    rig.on("fail", &["tank"], &["--device", "data1"]).ok();
    assert_eq!(device(&rig.status(&["tank"]), "data1")["failed_because"], "asked");
    let log = server.stop().ok().err;
    assert!(log.contains("data1 failed; 1 out of service"), "{log}");
    assert_eq!(log.matches("(as asked)").count(), 1, "{log}");
}
