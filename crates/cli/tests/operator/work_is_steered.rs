//! The limit of rebuild and scrub is changed while they run; a scrub is paused, goes on, is given up; both
//! are waited for later.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::{MEMBERS, Rig, device, until};
use std::time::Duration;

/// Some megabytes: what was never written is not looked at, however slow it is to be.
fn fill(rig: &Rig) {
    let mut client = Nbd::connect(&rig.path("nbd"), Duration::from_secs(20));
    (0..32u64).for_each(|part| client.request(Command::Write, part << 18, 1 << 18, &vec![7; 1 << 18]));
    client.request(Command::Flush, 0, 0, &[]);
    client.leave();
}

#[test]
fn a_rebuild_is_sped_up_and_waited_for() {
    let rig = Rig::with_array();
    // So slow that it cannot end by itself.
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1KiB/s"]);
    fill(&rig);
    rig.on(
        "replace",
        &["d0"],
        &["--device", "data0", "--with", "n0", "--fail-first", "--file-size", "32MiB"],
    )
    .ok();
    let work = &rig.status(&["d1"])["work"];
    assert_eq!((&work["kind"], &work["limit_bytes_per_s"]), (&"rebuild".into(), &1024.into()));
    rig.on("scrub", &["d1"], &["--pause"]).refused(&["no scrub is under way"]);
    // A new limit counts from now on: what was done before, faster, does not hold it up.
    rig.on("rate", &["d1"], &["--rate", "2KiB/s"]).ok();
    assert_eq!(rig.status(&["d1"])["work"]["limit_bytes_per_s"], 2048);
    let waiting = rig.command(&["wait", "d1"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    rig.on("rate", &["d1"], &["--rate", "off"]).ok();
    // It may have ended before `wait` had a look.
    assert!(waiting.wait_with_output().unwrap().status.success());
    rig.on("wait", &["d1"], &[]).ok();
    assert_eq!(device(&rig.status(&["d1"]), "data0")["state"], "healthy");
    assert!(rig.on("wait", &["d1"], &[]).ok().out.contains("no rebuild, scrub or replacement is under way"));
    server.stop().ok();
    rig.on("rate", &["d1"], &["--rate", "off"]).refused(&["not being served"]);
    rig.on("wait", &["d1"], &[]).refused(&["not being served"]);
}

#[test]
fn a_scrub_is_paused_goes_on_and_is_given_up() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1KiB/s"]);
    fill(&rig);
    rig.on("scrub", &["d0"], &["--resume"]).refused(&["no scrub is paused"]);
    rig.on("scrub", &["d0"], &[]).ok();
    rig.on("scrub", &["d0"], &["--pause"]).ok();
    let work = rig.status(&["d0"])["work"].clone();
    assert_eq!((&work["kind"], &work["paused"]), (&"scrub".into(), &true.into()));
    assert!(rig.on("status", &["d0"], &[]).ok().out.contains("paused"));
    // Without a limit it would be over at once if it did not wait.
    rig.on("rate", &["d0"], &["--rate", "off"]).ok();
    for _ in 0..20 {
        assert_eq!(rig.status(&["d0"])["work"]["done"], work["done"]);
    }
    rig.on("scrub", &["d0"], &["--resume"]).ok();
    rig.on("wait", &["d0"], &[]).ok();
    assert_eq!(rig.status(&["d0"])["last_work"]["completed"], true);

    rig.on("rate", &["d0"], &["--rate", "1KiB/s"]).ok();
    rig.on("scrub", &["d0"], &[]).ok();
    rig.on("scrub", &["d0"], &["--stop"]).ok();
    until("the work ends", || rig.status(&["d0"])["work"].is_null());
    assert_eq!(rig.status(&["d0"])["last_work"]["completed"], false);
    server.stop().ok();
    assert_eq!(rig.status(&MEMBERS)["scrub_cursor"], 0, "what was given up is not continued");

    // What was paused is.
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1KiB/s"]);
    rig.on("scrub", &["d0"], &[]).ok();
    rig.on("scrub", &["d0"], &["--pause"]).ok();
    server.stop().ok();
    let server = rig.serve(&MEMBERS, &[]);
    server.stop().ok();
}
