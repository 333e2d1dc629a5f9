//! On a server that nobody talks to, rebuild, scrub and commit begin and end: by the log, or by what the
//! first question finds.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::watched::Watched;
use crate::common::{Rig, every_scheme};
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
        let replace = ["--device", "data1", "--with", "n1", "--file-size", "24MiB", "--yes", "--fail-first"];
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
        rig.on(
            "replace",
            &["d0"],
            &["--device", "data1", "--with", "n1", "--file-size", "24MiB", "--yes", "--fail-first"],
        )
        .ok();
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

/// Serves an array of every scheme with something written to it, has `begin` start something and leaves them
/// all alone for long enough. The first question comes then, and it starts nothing: it is answered before the
/// array is driven.
fn status_of_each_after_a_while(
    options: &[&str],
    begin: impl Fn(&Rig),
    check: impl Fn(&'static str, &serde_json::Value),
) {
    let serve = |(scheme, logs)| {
        let rig = Rig::new();
        let members = make(&rig, scheme, logs);
        let server = Watched::serve(&rig, &members, options);
        write(&rig);
        begin(&rig);
        (scheme, rig, server)
    };
    let arrays: Vec<_> = every_scheme().into_iter().map(serve).collect();
    std::thread::sleep(Duration::from_millis(2500));
    for (scheme, rig, server) in arrays {
        check(scheme, &rig.status(&["d0"]));
        server.stop();
    }
}

#[test]
fn a_scrub_ends() {
    let begin = |rig: &Rig| _ = rig.on("scrub", &["d0"], &[]).ok();
    status_of_each_after_a_while(&["--commit-idle", "off"], begin, |scheme, status| {
        assert_eq!(status["work"], serde_json::Value::Null, "{scheme}");
        assert_eq!(status["last_work"]["completed"], true, "{scheme}: {:#}", status["last_work"]);
    });
}

#[test]
fn what_is_dirty_is_committed_when_no_requests_come() {
    status_of_each_after_a_while(
        &["--commit-idle", "100ms"],
        |_| {},
        |scheme, status| {
            let commit = &status["commit"];
            let found = (&commit["dirty_stripes"], &commit["running"]);
            assert_eq!(found, (&0.into(), &false.into()), "{scheme}: {commit:#}");
        },
    );
}
