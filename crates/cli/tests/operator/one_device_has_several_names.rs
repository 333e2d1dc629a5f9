//! One device under two names is no two devices: a hard link, a loop device and its file, two loop devices of
//! one file. An array of them would lose both at once, or write over itself.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use std::path::Path;
use std::process::Command;

/// A loop device; let go of when dropped.
struct Loop(String);

impl Loop {
    /// Of a file, if this machine has loop devices and lets us make one.
    fn of(file: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            eprintln!("SKIPPED: no loop device can be made here");
            return None;
        };
        Some(Self(String::from_utf8(made.stdout).unwrap().trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

fn sized(rig: &Rig, name: &str) {
    std::fs::File::create(rig.path(name)).unwrap().set_len(32 << 20).unwrap();
}

const CREATE: [&str; 6] = ["create", "--scheme", "raid", "--parity", "1", "--data"];

#[test]
fn a_hard_link_is_the_same_file() {
    let rig = Rig::with_array();
    sized(&rig, "e0");
    std::fs::hard_link(rig.path("e0"), rig.path("e1")).unwrap();
    rig.run(&[&CREATE[..], &["e0", "e1"]].concat()).refused(&["e0 and e1 are the same device"]);
    let link = rig.path("of-d1");
    std::fs::hard_link(rig.path("d1"), &link).unwrap();
    let replace = ["--device", "data0", "--with", "of-d1", "--force"];
    rig.on("replace", &MEMBERS, &replace).refused(&["of-d1", "is data1 of this array"]);
    rig.on("add", &MEMBERS, &["--spare", "of-d1", "--force"]).refused(&["of-d1", "is data1 of this array"]);
    let server = rig.serve(&MEMBERS, &[]);
    rig.on("replace", &["d0"], &replace).refused(&["of-d1", "is data1 of this array"]);
    rig.on("add", &["d0"], &["--spare", "of-d1", "--force"]).refused(&["of-d1", "is data1 of this array"]);
    rig.on("add", &["d0"], &["--spare", "e0"]).ok();
    rig.on("add", &["d0"], &["--spare", "e1", "--force"])
        .refused(&["e1", "is a spare of this array already"]);
    server.stop().ok();
    assert_eq!(rig.status(&MEMBERS)["state"], "healthy");
}

#[test]
fn a_loop_device_is_the_file_that_it_lies_on() {
    let rig = Rig::with_array();
    sized(&rig, "e0");
    let (Some(one), Some(two)) = (Loop::of(&rig.path("e0")), Loop::of(&rig.path("e0"))) else { return };
    let Some(of_member) = Loop::of(&rig.path("d1")) else { return };
    for (first, second) in [(one.0.as_str(), "e0"), ("e0", &one.0), (&one.0, &two.0)] {
        let ran = rig.run(&[&CREATE[..], &[first, second]].concat());
        ran.refused(&[&format!("{first} and {second} lie on the same device")]);
    }
    let of_member = of_member.0.as_str();
    let refused = |members: &[&str]| {
        let words = [of_member, "is data1 of this array, or shares bytes with it"];
        rig.on("replace", members, &["--device", "data0", "--with", of_member, "--force"]).refused(&words);
        rig.on("add", members, &["--spare", of_member, "--force"]).refused(&words);
    };
    let server = rig.serve(&MEMBERS, &[]);
    refused(&["d0"]);
    server.stop().ok();
    refused(&MEMBERS);
    rig.on("serve", &[&MEMBERS[..], &[of_member]].concat(), &["--run", "true"]).refused(&["named twice"]);
    assert_eq!(rig.status(&MEMBERS)["state"], "healthy");
}
