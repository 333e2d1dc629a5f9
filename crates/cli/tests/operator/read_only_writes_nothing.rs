//! `serve --read-only` writes not one byte to the members, whatever state they are in.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Ran, Rig, device, every_scheme, has};

/// A shell line that reads from `$ELASTRIPE_URI` what the patterns say, and asks for the status meanwhile.
fn reading(member: &str) -> String {
    let reads = "-c 'read -P 1 0 1M' -c 'read -P 2 4M 128k' -c 'read -P 3 6M 4k' -c 'read -P 0 8M 64k'";
    let binary = env!("CARGO_BIN_EXE_elastripe");
    format!(
        "out=$(qemu-io -r -f raw {reads} \"$ELASTRIPE_URI\" 2>&1) || exit 91; \
         case \"$out\" in *rror*|*fail*) echo \"$out\"; exit 92;; esac; \
         {binary} status {member} --json > said.json; {binary} status {member} > said; \
         {binary} scrub {member} 2> refused && exit 93; {binary} commit {member} 2>> refused && exit 94; exit 0"
    )
}

fn read_only(rig: &Rig, members: &[&str], options: &[&str]) -> Ran {
    let before = rig.fingerprint(members);
    let script = reading(members.last().unwrap());
    let ran = rig.serve_run(members, &script, &[&["--read-only"], options].concat());
    assert_eq!(rig.fingerprint(members), before, "members changed: {ran:?}");
    ran
}

fn said(rig: &Rig) -> serde_json::Value {
    let text = std::fs::read_to_string(rig.path("said.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn members_keep_every_byte_stopped_killed_or_degraded() {
    if !has("qemu-io") {
        return;
    }
    for ((scheme, has_log), shards) in every_scheme().into_iter().zip(["1", "1", "3", "3", "1"]) {
        let rig = Rig::new();
        let size = if scheme == "elastic" || scheme == "was" { "96MiB" } else { "36MiB" };
        let mut create = vec!["create", "--scheme", scheme, "--parity", "1", "--shards", shards];
        create.extend(["--file-size", size, "--data", "d0", "d1", "d2"]);
        create.extend(if has_log { &["--log", "l0"][..] } else { &[] });
        rig.run(&create).ok();
        let members: Vec<&str> = ["d0", "d1", "d2"].into_iter().chain(has_log.then_some("l0")).collect();
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&["write -P 1 0 3M", "write -P 9 4M 1M", "flush", "write -P 2 4M 128k", "flush"]).ok();
        rig.qemu_io(&["write -P 3 6M 4k", "flush"]).ok();
        server.kill();
        // Recovery replays and heals, in memory; and once more the same.
        for _ in 0..2 {
            let ran = read_only(&rig, &members, &[]).ok();
            assert!(ran.err.contains("recovery: the array was not stopped in order"), "{scheme}: {ran:?}");
        }
        let status = said(&rig);
        assert_eq!((&status["read_only"], &status["state"]), (&true.into(), &"healthy".into()), "{scheme}");
        let screen = std::fs::read_to_string(rig.path("said")).unwrap();
        assert!(screen.contains("served read-only: nothing is written"), "{scheme}: {screen}");
        let refused = std::fs::read_to_string(rig.path("refused")).unwrap();
        assert_eq!(refused.matches("served read-only").count(), 2, "{scheme}: {refused}");
        // Without a member: that it is out of service is in memory alone, so it is none that is stale later.
        std::fs::rename(rig.path("d1"), rig.path("away")).unwrap();
        let left: Vec<&str> = members.iter().copied().filter(|&name| name != "d1").collect();
        read_only(&rig, &left, &["--degraded"]).ok();
        assert_eq!(device(&said(&rig), "data1")["state"], "failed", "{scheme}");
        std::fs::rename(rig.path("away"), rig.path("d1")).unwrap();
        rig.serve(&members, &[]).stop().ok();
        let ran = read_only(&rig, &members, &[]).ok();
        assert!(ran.err.contains("recovery: the array was stopped in order"), "{scheme}: {ran:?}");
        let scrub = rig.on("scrub", &members, &[]).ok();
        assert!(scrub.out.contains("0 chunks healed"), "{scheme}: {scrub:?}");
    }
}

/// Without a journal recovery makes parity anew, in memory, too.
#[test]
fn parity_is_made_anew_in_memory() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let create = ["create", "--scheme", "raid", "--consistency", "resync", "--parity", "1"];
    rig.run(&[&create[..], &["--file-size", "36MiB", "--data", "d0", "d1", "d2"]].concat()).ok();
    let members = ["d0", "d1", "d2"];
    let server = rig.serve(&members, &[]);
    rig.qemu_io(&["write -P 1 0 1M", "write -P 2 4M 128k", "write -P 3 6M 4k", "flush"]).ok();
    server.kill();
    read_only(&rig, &members, &[]).ok();
}

#[test]
fn files_that_may_not_be_written_can_be_read() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let members = crate::common::MEMBERS;
    let server = rig.serve(&members, &[]);
    rig.qemu_io(&["write -P 1 0 1M", "write -P 2 4M 128k", "write -P 3 6M 4k", "flush"]).ok();
    server.kill();
    // Damage is healed for who reads, not on the member.
    crate::common::scribble(&rig.path("d2"), 8 << 20, &[0x55; 1 << 20]);
    read_only(&rig, &members, &["--sync", "always", "--patrol", "50ms"]).ok();
    // Another server shuts it out, and it another server.
    let server = rig.serve(&members, &["--read-only"]);
    rig.on("serve", &members, &["--nbd", "unix:other"]).refused(&["in use"]);
    rig.on("fail", &["d0"], &["--device", "data1", "--yes"]).ok();
    rig.on("online", &["d0"], &["--device", "data1"]).refused(&["read-only"]);
    server.stop().ok();
    let stopped = rig.serve(&members, &[]).stop();
    assert!(!stopped.ok().err.contains("data1"));
}

/// Recovery would make more parity anew than is kept in memory: it is refused, with the reason.
#[test]
fn what_cannot_be_served_without_writing_is_refused() {
    let rig = Rig::new();
    let create = ["create", "--scheme", "raid", "--consistency", "resync", "--parity", "1"];
    rig.run(&[&create[..], &["--file-size", "400MiB", "--data", "d0", "d1", "d2"]].concat()).ok();
    let members = ["d0", "d1", "d2"];
    rig.serve(&members, &[]).kill();
    let piece = vec![0x55; 10 << 20];
    (0..32).for_each(|at| crate::common::scribble(&rig.path("d0"), (40 + at * 10) << 20, &piece));
    let before = rig.fingerprint(&members);
    let words = ["without writing to its members", "256 MiB", "start it once without --read-only"];
    rig.on("serve", &members, &["--read-only", "--run", "true"]).refused(&words);
    assert_eq!(rig.fingerprint(&members), before);
}
