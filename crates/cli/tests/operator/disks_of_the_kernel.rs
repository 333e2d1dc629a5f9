//! `serve --ublk`: what can be seen of it where the kernel has no driver. The rest is tested in a virtual
//! machine, by `scripts/clients.sh ublk`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use std::path::Path;

fn rig() -> Rig {
    let rig = Rig::with_array();
    rig.on("checkpoint", &MEMBERS, &[]).ok();
    rig
}

#[cfg(feature = "ublk")]
#[test]
fn without_a_driver_the_array_is_not_touched() {
    if Path::new("/dev/ublk-control").exists() {
        return; // it would be a disk of this machine
    }
    let rig = rig();
    let before = rig.fingerprint(&MEMBERS);
    for options in [&["--ublk"][..], &["--ublk", "3"], &["--ublk", "--ublk-cache", "volatile"]] {
        rig.on("serve", &MEMBERS, options).refused(&["/dev/ublk-control", "Linux 6.5", "modprobe ublk_drv"]);
    }
    assert_eq!(rig.fingerprint(&MEMBERS), before);
    assert_eq!(rig.status(&MEMBERS)["clean"], true);
    // And another way in does not make up for it.
    rig.on("serve", &MEMBERS, &["--nbd", "unix:socket", "--ublk"]).refused(&["ublk_drv"]);
    assert!(!rig.path("socket").exists());
    rig.on("stop", &MEMBERS[..1], &["--force"]).refused(&["not being served"]);
    // As kept in the array's file.
    rig.run(&["scan", ".", "--write"]).ok();
    let file = std::fs::read_dir(rig.path("etc")).unwrap().flatten().next().unwrap().path();
    let kept = std::fs::read_to_string(&file).unwrap();
    for line in ["ublk = true", "ublk = 3"] {
        std::fs::write(&file, format!("{kept}\n{line}\n")).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        rig.run(&["serve", name]).refused(&["modprobe ublk_drv"]);
    }
}

#[cfg(not(feature = "ublk"))]
#[test]
fn a_build_without_disks_says_so() {
    let rig = rig();
    rig.on("serve", &MEMBERS, &["--ublk"]).refused(&["--ublk", "feature `ublk`"]);
    assert!(Path::new(&rig.path(MEMBERS[0])).exists());
}

#[test]
fn numbers_that_are_none_are_refused() {
    let rig = rig();
    for number in ["d0", "-1", "1048576", "99999999999999999999", "0x1", ""] {
        let text = format!("--ublk={number}");
        rig.on("serve", &MEMBERS, &[&text]).code(2).refused(&["--ublk", "number of a disk"]);
    }
    rig.on("serve", &MEMBERS, &["--nbd", "unix:s", "--ublk-cache", "none"]).code(2).refused(&["--ublk"]);
    rig.on("serve", &MEMBERS, &["--ublk", "--ublk-cache", "some"]).code(2).refused(&["some", "volatile"]);
}
