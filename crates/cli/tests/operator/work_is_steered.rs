//! The limit of rebuild and scrub is changed while they run; a scrub is paused, goes on, is given up; both
//! are waited for later. So are parity commits.
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
    let waited = rig.on("wait", &["d1"], &["--json"]).ok().json();
    assert_eq!((&waited["state"], &waited["work"]), (&"healthy".into(), &serde_json::Value::Null));
    let limited = rig.on("rate", &["d1"], &["--rate", "5MiB/s", "--json"]).ok().json();
    assert_eq!(limited["rate_limit_bytes_per_s"], 5 << 20);
    assert_eq!(device(&rig.status(&["d1"]), "data0")["state"], "healthy");
    assert!(
        rig.on("wait", &["d1"], &[])
            .ok()
            .out
            .contains("no rebuild, scrub, replacement or commit is under way")
    );
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

/// Stripes that wait for their commit, with chunks of it written again.
fn make_dirty(rig: &Rig) -> u64 {
    fill(rig);
    let mut client = Nbd::connect(&rig.path("nbd"), Duration::from_secs(20));
    (0..64u64).for_each(|part| client.request(Command::Write, part << 17, 4096, &[8; 4096]));
    client.request(Command::Flush, 0, 0, &[]);
    client.leave();
    rig.status(&["d0"])["commit"]["dirty_stripes"].as_u64().unwrap()
}

#[test]
fn commits_are_paused_go_on_and_are_given_up() {
    for shards in ["1", "3"] {
        let rig = Rig::new();
        let words = ["--scheme", "eplog", "--parity", "1", "--file-size", "64MiB", "--shards", shards];
        let members = ["d0", "d1", "d2", "d3", "l0"];
        let data = ["--data", "d0", "d1", "d2", "d3", "--log", "l0"];
        rig.run(&[&["create"], &words[..], &data].concat()).ok();
        let server = rig.serve(&members, &["--commit-idle", "100ms"]);
        rig.on("commit", &["d0"], &["--resume"]).refused(&["not paused"]);
        rig.on("commit", &["d0"], &["--stop"]).refused(&["no parity commit is under way"]);
        assert!(rig.on("commit", &["d0"], &["--pause"]).ok().out.contains("commit --resume"));
        let dirty = make_dirty(&rig);
        assert!(dirty >= 32, "{dirty} stripes are dirty");
        rig.on("commit", &["d0"], &["--no-wait"]).ok();
        // By itself it would be committed after 100 ms, and the one that was asked for at once.
        std::thread::sleep(Duration::from_millis(600));
        let status = rig.status(&["d0"]);
        let commit = &status["commit"];
        assert_eq!(commit["dirty_stripes"], dirty, "nothing is committed: {commit}");
        assert_eq!((&commit["paused"], &commit["asked"]), (&true.into(), &true.into()));
        assert!(rig.on("status", &["d0"], &[]).ok().out.contains("PAUSED"));
        let waiting = rig.command(&["wait", "d0"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        rig.on("commit", &["d0"], &["--resume"]).ok();
        assert!(waiting.wait_with_output().unwrap().status.success());
        rig.on("wait", &["d0"], &[]).ok();
        let status = rig.status(&["d0"]);
        assert_eq!(
            (&status["commit"]["dirty_stripes"], &status["commit"]["paused"]),
            (&0.into(), &false.into())
        );
        let ended = status["last_ended"]["message"].as_str().unwrap();
        assert!(ended.starts_with(&format!("parity commit: {dirty} stripes in ")), "{ended}");

        // Given up while somebody stays for it, and by whoever waits later.
        rig.on("commit", &["d0"], &["--pause"]).ok();
        let dirty = make_dirty(&rig);
        let staying = rig.command(&["commit", "d0"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
        until("it is asked for", || rig.status(&["d0"])["commit"]["asked"] == true);
        rig.on("commit", &["d0"], &["--stop"]).ok();
        let staying = staying.wait_with_output().unwrap();
        assert!(!staying.status.success());
        assert!(String::from_utf8_lossy(&staying.stderr).contains("given up before its end"));
        let status = rig.status(&["d0"]);
        assert_eq!(
            (&status["commit"]["dirty_stripes"], &status["commit"]["paused"]),
            (&dirty.into(), &false.into())
        );
        assert!(status["last_ended"]["message"].as_str().unwrap().contains("given up before its end"));
        assert!(status["last_commit_failed"].as_str().unwrap().contains("given up"));

        // A stop does not wait for what is paused, and a restart ends the pause.
        rig.on("commit", &["d0"], &["--pause"]).ok();
        rig.on("commit", &["d0"], &["--no-wait"]).ok();
        server.stop().ok();
        let server = rig.serve(&members, &["--commit-idle", "100ms"]);
        until("it is committed", || rig.status(&["d0"])["commit"]["dirty_stripes"] == 0);
        server.stop().ok();
        rig.on("commit", &members, &["--pause"]).refused(&["not being served"]);
        rig.on("commit", &members, &[]).ok();
    }
    let rig = Rig::new();
    let words = ["--scheme", "raid", "--parity", "1", "--file-size", "32MiB", "--data", "d0", "d1", "d2"];
    rig.run(&[&["create"], &words[..]].concat()).ok();
    let server = rig.serve(&["d0", "d1", "d2"], &[]);
    rig.on("commit", &["d0"], &["--pause"]).refused(&["commits no parity"]);
    server.stop().ok();
}
