//! Sizes, verbs and defaults as operators of md, ZFS, fio and qemu expect them, or a hint;
//! names beside UUIDs.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::{Rig, device};
use std::time::Duration;

#[test]
fn sizes_without_ib_are_binary() {
    let rig = Rig::new();
    rig.run(&["create", "--scheme", "raid", "--parity", "1", "--data", "a", "b", "--file-size", "32M"]).ok();
    assert_eq!(std::fs::metadata(rig.path("a")).unwrap().len(), 32 << 20);
    rig.run(&["serve", "a", "b", "--run", "true", "--buffers", "64m", "--rebuild-rate", "20M/s"]).ok();
    rig.run(&["serve", "a", "b", "--run", "true", "--buffers", "64"]).refused(&["64M"]);
}

#[test]
fn create_chooses_a_scheme_by_the_devices() {
    let rig = Rig::new();
    let create = |args: &[&str]| {
        rig.run(&[&["create", "--file-size", "32M", "--json", "--parity", "1"], args].concat())
    };
    let logged = create(&["--data", "a0", "a1", "a2", "--log", "al"]).ok().json();
    assert_eq!((&logged["scheme"], &logged["consistency"]), (&"eplog".into(), &serde_json::Value::Null));
    let plain = create(&["--data", "b0", "b1", "b2"]).ok().json();
    assert_eq!((&plain["scheme"], &plain["consistency"]), (&"raid".into(), &"journal".into()));
    assert_eq!(rig.status(&["a0", "a1", "a2", "al"])["consistency"], serde_json::Value::Null);
    assert_eq!(rig.status(&["b0", "b1", "b2"])["consistency"], "journal");
    // What has no meaning for a scheme is refused.
    create(&["--data", "c0", "c1", "--reserve", "10%"]).refused(&["--reserve", "raid"]);
    create(&["--scheme", "parity-log", "--data", "c0", "c1", "--log", "l", "--reserve", "10%"])
        .refused(&["--reserve", "parity-log"]);
    assert!(!rig.path("c0").exists());
}

#[test]
fn an_empty_word_is_said_to_be_one_and_where() {
    let rig = Rig::new();
    let create = ["create", "--name", "", "--parity", "1", "--file-size", "32M", "--data", "d0", "", "d2"];
    rig.run(&create).refused(&["'--data <PATH>...'", "the word after 'd0' is empty"]).code(2);
    rig.run(&["status", ""]).refused(&["the word after 'status' is empty"]).code(4);
    rig.run(&["wipe", "d0", "d1", "", "--yes"]).refused(&["the word after 'd1' is empty"]).code(2);
    rig.run(&["replace", "", "--with", "", "--device", "d"]).refused(&["after 'replace' is empty"]);
    rig.run(&["replace", "d0", "--with", "", "--device", "d"]).refused(&["after '--with' is empty"]);
    for words in [
        &["serve", "--nbd", "unix:s", "--array", ""][..],
        &["kv", "serve", "--resp", "unix:s", "--array", ""],
        &["fail", "d0", "--device", ""],
        &["online", "d0", "--device", ""],
        &["replace", "d0", "--with", "d1", "--device", ""],
        &["clear", "d0", "--device", ""],
        &["remove", "d0", "--spare", ""],
    ] {
        let option = words[words.len() - 2];
        rig.run(words).refused(&[&format!("after '{option}' is empty")]).code(2);
    }
    // One that has no word at all, whatever else is empty.
    let ran = rig.run(&["create", "--name", "", "--parity", "1", "--data", "--log", ""]);
    assert!(ran.err.contains("'--data <PATH>...'") && ran.err.contains("none was supplied"), "{ran:?}");
}

#[test]
fn verbs_of_others_lead_to_ours() {
    let rig = Rig::new();
    let verbs = [
        ("assemble", "serve"),
        ("import", "serve"),
        ("detail", "status"),
        ("resilver", "replace"),
        ("check", "scrub"),
        ("history", "status --watch"),
        ("monitor", "serve --on-event"),
        ("re-add", "online"),
        ("labelclear", "wipe"),
    ];
    for (foreign, own) in verbs {
        rig.run(&[foreign, "x"]).refused(&[foreign, &format!("here it is `elastripe {own}`")]).code(2);
    }
    let ran = rig.run(&["frobnicate"]).refused(&["frobnicate"]);
    assert!(!ran.err.contains("here it is"), "{ran:?}");
}

#[test]
fn arrays_have_names() {
    let rig = Rig::with_array();
    let create = ["create", "--parity", "1", "--file-size", "32M", "--data", "d0", "x"];
    rig.run(&create).refused(&["d0", "member of array tank ("]);
    rig.run(&["create", "--parity", "1", "--file-size", "32M", "--data", "e0", "e1"]).ok();
    rig.run(&["add", "e0", "e1", "--spare", "d3"]).refused(&["d3", "member of array tank ("]);
    let server = rig.serve(&["e0", "e1"], &[]);
    let shown = rig.on("status", &["e0"], &[]).ok().out;
    assert!(shown.contains("BYTES READ BYTES WRITTEN"), "{shown}");
    server.stop().ok();
}

#[test]
fn a_device_that_is_wiped_is_a_member_no_more() {
    for shards in ["1", "3"] {
        let rig = Rig::new();
        let shape = ["create", "--parity", "1", "--shards", shards, "--name", "tank", "--file-size", "64MiB"];
        rig.run(&[&shape[..], &["--data", "d0", "d1", "d2"]].concat()).ok();
        let all = ["d0", "d1", "d2"];
        let before = rig.fingerprint(&all);
        rig.run(&["wipe", "d0"]).refused(&["d0", "is data0 of array tank", "--yes"]);
        let server = rig.serve(&all, &[]);
        rig.run(&["wipe", "d0", "--yes"]).refused(&["d0", "in use"]);
        server.stop().ok();
        std::fs::write(rig.path("blank"), vec![0; 1 << 20]).unwrap();
        rig.run(&["wipe", "blank", "--yes"]).refused(&["blank", "not a member"]);
        assert_ne!(rig.fingerprint(&all), before, "it was served");
        let ran = rig.run(&["wipe", "d0", "d1", "--yes", "--force"]).ok();
        assert!(
            ran.out.contains("d0 was data0 of array tank") && ran.out.contains("d1 was data1"),
            "{ran:?}"
        );
        rig.run(&["examine", "d0"]).code(1);
        let bytes = std::fs::read(rig.path("d0")).unwrap();
        assert!(bytes.chunks(4096).all(|block| !block.starts_with(b"ELSTSUPR")), "in no slice");
        rig.run(&["wipe", "d0", "--yes"]).refused(&["d0", "not a member"]);
        // Of use again, without --force.
        rig.run(&["create", "--parity", "1", "--data", "d0", "d1"]).ok();
    }
}

#[test]
fn wipe_says_what_an_array_is_without_its_devices() {
    let rig = Rig::new();
    let create = ["create", "--parity", "1", "--name", "pg", "--file-size", "64MiB", "--data"];
    rig.run(&[&create[..], &["p0", "p1", "p2"]].concat()).ok();
    rig.run(&["wipe", "p0"]).refused(&["p0: is data0 of array pg", "it is in service", "0 more", "--yes"]);
    for more in [&["--yes"][..], &[]] {
        let words = ["p0: is data0", "2 members are missing", "bears 1", "ITS DATA IS LOST", "--force"];
        rig.run(&[&["wipe", "p0", "p1"], more].concat()).refused(&words);
    }
    // Another device has its place; or none has yet.
    let replace = ["replace", "p0", "p1", "p2", "--device", "data0", "--with", "n0", "--file-size", "64MiB"];
    rig.run(&replace).ok();
    rig.run(&["wipe", "p0"]).refused(&["p0: is data0", "another device has its place, so nothing is lost"]);
    rig.run(&["wipe", "p0", "--yes"]).ok();
    rig.run(&["fail", "n0", "p1", "p2", "--device", "data0", "--yes"]).ok();
    rig.run(&["wipe", "n0"]).refused(&["n0: is data0", "out of service", "online"]);
    let add = ["add", "n0", "p1", "p2", "--spare", "s0", "--file-size", "64MiB", "--force"];
    rig.run(&add).ok();
    rig.run(&["wipe", "s0"]).refused(&["s0: is spare of array pg", "a spare less"]);
    // One that is half rebuilt holds too little to count.
    let slow = ["--device", "data0", "--with", "n1", "--file-size", "64MiB"];
    let server = rig.serve(&["p1", "p2"], &["--degraded", "--rebuild-rate", "1KiB/s"]);
    let mut client = Nbd::connect(&rig.path("nbd"), Duration::from_secs(20));
    (0..32u64).for_each(|part| client.request(Command::Write, part << 18, 1 << 18, &vec![7; 1 << 18]));
    client.request(Command::Flush, 0, 0, &[]);
    client.leave();
    rig.on("replace", &["p1"], &slow).ok();
    server.stop().ok();
    assert_eq!(device(&rig.status(&["n1", "p1", "p2"]), "data0")["state"], "rebuilding");
    rig.run(&["wipe", "p1", "--yes"]).refused(&["p1: is data1", "2 members are missing", "LOST", "--force"]);
    // Nor does one that left count for the one in its place, when an array is to be overwritten as a whole.
    let create = ["create", "--parity", "1", "--force", "--data", "n0", "p1", "p2"];
    rig.run(&create).refused(&["p1: is data1 of array pg", "another member is not named here"]);
    // What lies where nobody looks may be all there is.
    std::fs::create_dir(rig.path("far")).unwrap();
    for name in ["n1", "p2"] {
        std::fs::rename(rig.path(name), rig.path("far").join(name)).unwrap();
    }
    rig.run(&["wipe", "p1", "--yes"]).refused(&["p1: is data1", "not found here", "not known", "--force"]);
    for name in ["n1", "p2"] {
        std::fs::rename(rig.path("far").join(name), rig.path(name)).unwrap();
    }
    // All of them: whoever says so is done with the array.
    rig.run(&["wipe", "n1", "p1", "p2"]).refused(&["n1: is data0"]);
    rig.run(&["wipe", "n1", "n0", "p1", "p2", "s0", "--yes"]).ok();
}
