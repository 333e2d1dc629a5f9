//! A file may be called anything: one whose name is not UTF-8 is looked at as any other, and not served.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Ran, Rig};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn names_that_are_not_utf_8_are_shown_as_well_as_can_be() {
    let rig = Rig::with_array();
    let odd = OsStr::from_bytes(b"d0\xff");
    std::fs::rename(rig.path("d0"), rig.dir.path().join(odd)).unwrap();
    let on = |command: &str, members: &[&str], options: &[&str]| {
        let mut started = rig.command(&[command]);
        Ran::of(started.arg(odd).args(members).args(options).output().unwrap())
    };
    for (command, members) in [("status", &MEMBERS[1..]), ("inspect", &[]), ("scan", &MEMBERS[1..])] {
        let shown = on(command, members, &["--json"]).ok().out;
        serde_json::from_str::<serde_json::Value>(&shown).unwrap();
        assert!(shown.contains("d0\u{fffd}"), "{command}: {shown}");
    }
    on("serve", &MEMBERS[1..], &["--run", "true"]).refused(&["d0\u{fffd}", "names in UTF-8"]);
    std::os::unix::fs::symlink(odd, rig.path("link")).unwrap();
    rig.on("serve", &[&["link"], &MEMBERS[1..]].concat(), &["--run", "true"]).ok();
}
