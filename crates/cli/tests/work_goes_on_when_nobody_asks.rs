//! On a server that nobody talks to, rebuild and commit begin and end: only the log is looked at.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::nbd::{Command, Nbd};
use common::watched::Watched;
use common::{Rig, every_scheme};
use std::time::Duration;

/// Work that takes a fraction of a second when it goes on is given this long.
const LIMIT: Duration = Duration::from_secs(20);
const DATA: [&str; 3] = ["d0", "d1", "d2"];

/// A 2+1 array of the scheme, and its members.
fn make(rig: &Rig, scheme: &str, logs: bool) -> Vec<&'static str> {
    let mut args = vec!["create", "--scheme", scheme, "--parity", "1", "--file-size", "24MiB", "--data"];
    args.extend(DATA);
    let log: &[&str] = if logs { &["--log", "l0"] } else { &[] };
    args.extend(log);
    rig.run(&args).ok();
    DATA.into_iter().chain(logs.then_some("l0")).collect()
}

/// Some megabytes written twice, so that there is something to rebuild, to read and to commit.
fn write(rig: &Rig) {
    let mut client = Nbd::connect(&rig.path("nbd"), LIMIT);
    for byte in [1u8, 2] {
        for part in 0..16u64 {
            client.request(Command::Write, part << 18, 1 << 18, &vec![byte; 1 << 18]);
        }
        client.request(Command::Flush, 0, 0, &[]);
    }
    client.leave();
}

fn each_scheme(test: impl Fn(&Rig, &[&str])) {
    for (scheme, logs) in every_scheme() {
        let rig = Rig::new();
        let members = make(&rig, scheme, logs);
        println!("{scheme}");
        test(&rig, &members);
    }
}

#[test]
fn a_rebuild_begins_and_ends() {
    each_scheme(|rig, members| {
        let server = Watched::serve(rig, members, &["--commit-idle", "off"]);
        write(rig);
        let replace = ["--device", "data1", "--with", "n1", "--file-size", "24MiB"];
        rig.on("replace", &["d0"], &replace).ok();
        let begun = server.await_line(&["n1", "takes the place of data1"], LIMIT);
        let ended = server.await_line(&["data1 is rebuilt"], LIMIT);
        println!("  rebuilt in {:?}", ended - begun);
        server.stop();
        let now: Vec<&str> = members.iter().map(|&name| if name == "d1" { "n1" } else { name }).collect();
        assert_eq!(rig.status(&now)["state"], "healthy");
    });
}

#[test]
fn a_rebuild_that_a_stop_interrupted_goes_on_by_itself() {
    each_scheme(|rig, members| {
        let server = Watched::serve(rig, members, &["--rebuild-rate", "64KiB/s"]);
        write(rig);
        rig.on("replace", &["d0"], &["--device", "data1", "--with", "n1", "--file-size", "24MiB"]).ok();
        server.await_line(&["takes the place of data1"], LIMIT);
        server.stop();
        let now: Vec<&str> = members.iter().map(|&name| if name == "d1" { "n1" } else { name }).collect();
        assert_eq!(rig.status(&now)["state"], "degraded");
        let server = Watched::serve(rig, &now, &["--commit-idle", "off"]);
        server.await_line(&["data1 is rebuilt"], LIMIT);
        server.stop();
        assert_eq!(rig.status(&now)["state"], "healthy");
    });
}

#[test]
fn what_is_dirty_is_committed_when_no_requests_come() {
    each_scheme(|rig, members| {
        let server = Watched::serve(rig, members, &["--commit-idle", "100ms"]);
        write(rig);
        // Long enough for a commit of four megabytes. Nothing tells of its end; the first question does not start it, for
        // it is answered before the array is driven.
        std::thread::sleep(Duration::from_millis(1500));
        let status = rig.status(&["d0"]);
        let commit = &status["commit"];
        assert_eq!((&commit["dirty_stripes"], &commit["running"]), (&0.into(), &false.into()), "{commit:#}");
        server.stop();
    });
}
