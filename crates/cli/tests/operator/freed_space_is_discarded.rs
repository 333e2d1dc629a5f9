//! What commits free is discarded on the members, on files if the operator says so. Requirement L-05.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::{Rig, device};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

const MEMBERS: [&str; 4] = ["d0", "d1", "d2", "l0"];
const PIECE: u64 = 256 << 10;
/// Of the volume, written again and again.
const HOT: u64 = 16 << 20;

/// Bytes discarded on the members after some rounds of updates and commits, and what the files take.
fn rounds(choice: &[&str]) -> (Vec<u64>, u64) {
    let rig = Rig::new();
    let words =
        ["create", "--scheme=eplog", "--parity=1", "--chunk-size=4KiB", "--file-size=96MiB", "--reserve=40%"];
    rig.run(&[&words[..], &["--data", "d0", "d1", "d2", "--log", "l0"]].concat()).ok();
    let options = [&["--rewrites=log", "--commit-idle=off"][..], choice].concat();
    let server = rig.serve(&MEMBERS, &options);
    for byte in 1..=6u8 {
        let mut client = Nbd::connect(&rig.path("nbd"), Duration::from_secs(20));
        for at in (0..HOT).step_by(PIECE as usize) {
            client.request(Command::Write, at, PIECE as u32, &vec![byte; PIECE as usize]);
        }
        client.leave();
        for command in ["commit", "checkpoint"] {
            rig.on(command, &MEMBERS, &[]).ok();
        }
        let mut client = Nbd::connect(&rig.path("nbd"), Duration::from_secs(20));
        (0..2).for_each(|_| client.request(Command::Flush, 0, 0, &[]));
        client.leave();
    }
    rig.on("scrub", &MEMBERS, &[]).ok();
    let status = rig.status(&MEMBERS);
    let of = |name: &str| device(&status, name)["traffic"]["discarded_bytes"].as_u64().unwrap();
    let discarded = ["data0", "data1", "data2", "log0"].map(of).to_vec();
    server.stop();
    let held = MEMBERS.iter().map(|name| rig.path(name).metadata().unwrap().blocks() * 512).sum();
    (discarded, held)
}

#[test]
fn old_versions_and_dead_log_space_are_discarded_as_told() {
    let (all, held) = rounds(&["--discard=all"]);
    println!("discarded {all:?}, the files take {held}");
    assert!(all[..3].iter().all(|&bytes| bytes >= 4 << 20 && bytes % (1 << 20) == 0), "{all:?}");
    assert!(all[3] >= 16 << 20, "{all:?}");
    for choice in [&["--discard=none"][..], &["--discard=large"], &[]] {
        let (none, more) = rounds(choice);
        assert_eq!(none, [0; 4], "{choice:?}");
        assert!(held + (8 << 20) < more, "{choice:?}: the files take {more} instead of {held}");
    }
}
