//! What was durable and is on no member any more is not left out in silence: the array is refused, and starts
//! again as it was when the member comes back, or with `--force` in the older state, loudly.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, Server, has, qemu_script, scribble, until};
use std::fs;

const SCHEMES: [&str; 5] = ["raid", "parity-log", "eplog", "elastic", "was"];
const BLOCK: usize = 4096;
/// Keeps what is told of lost data.
const TELL: &str = "test \"$ELASTRIPE_EVENT\" = lost && echo \"$ELASTRIPE_MESSAGE\" >lost";

fn members(scheme: &str) -> &'static [&'static str] {
    if matches!(scheme, "parity-log" | "eplog") { &["d0", "d1", "d2", "l0"] } else { &["d0", "d1", "d2"] }
}

fn rig(scheme: &str, options: &[&str]) -> Rig {
    let rig = Rig::new();
    let mut args =
        vec!["create", "--scheme", scheme, "--parity", "1", "--file-size", "16MiB", "--name", "tank"];
    args.extend(["--data", "d0", "d1", "d2"]);
    if members(scheme).len() > 3 {
        args.extend(["--log", "l0"]);
    }
    args.extend(options);
    rig.run(&args).ok();
    rig
}

/// The whole volume holds 7, durable, and the array runs on.
fn written(rig: &Rig, scheme: &str) -> (Server, u64) {
    let server = rig.serve(members(scheme), &["--commit-idle", "off"]);
    let bytes = rig.status(&["d0"])["volume_bytes"].as_u64().unwrap();
    rig.qemu_io(&[&format!("write -P 7 0 {bytes}"), "flush"]).ok();
    (server, bytes)
}

/// The headers of checkpoints on a member: assembly, number, offset.
fn checkpoints(rig: &Rig, member: &str) -> Vec<(u64, u64, u64)> {
    let bytes = fs::read(rig.path(member)).unwrap();
    let word = |block: &[u8], at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    let blocks = (0u64..).step_by(BLOCK).zip(bytes.chunks_exact(BLOCK));
    let headers = blocks.filter(|(_, block)| block.starts_with(b"ELSTCKPT"));
    headers.map(|(offset, block)| (word(block, 32), word(block, 48), offset)).collect()
}

/// Flips a bit in the header of the newest checkpoint on a member, if it is this one.
fn damage_checkpoint(rig: &Rig, member: &str, wanted: (u64, u64)) -> bool {
    let found = checkpoints(rig, member).into_iter().find(|&(epoch, number, _)| (epoch, number) == wanted);
    let Some((_, _, offset)) = found else { return false };
    let bytes = fs::read(rig.path(member)).unwrap();
    let at = usize::try_from(offset).unwrap() + 60;
    scribble(&rig.path(member), offset + 60, &[bytes[at] ^ 4]);
    true
}

fn newest(rig: &Rig, all: &[&str]) -> (u64, u64) {
    let each = all.iter().flat_map(|member| checkpoints(rig, member));
    each.map(|(epoch, number, _)| (epoch, number)).max().unwrap()
}

/// The newest checkpoint is damaged on one of the two members that hold it, and the other one is lost.
#[test]
fn of_a_newest_checkpoint_that_is_damaged_on_one_member_and_lost_with_another() {
    if !has("qemu-io") {
        return;
    }
    // With two shards the other one, which could be assembled, is left as it is, too.
    for (scheme, shards) in SCHEMES.into_iter().flat_map(|scheme| [(scheme, "1"), (scheme, "2")]) {
        let (rig, all) = (rig(scheme, &["--shards", shards]), members(scheme));
        let (server, bytes) = written(&rig, scheme);
        let wanted = newest(&rig, all);
        server.kill();
        let mut holders =
            all.iter().filter(|member| checkpoints(&rig, member).iter().any(|c| (c.0, c.1) == wanted));
        let (bad, lost) = (*holders.next().unwrap(), *holders.next().unwrap());
        assert!(damage_checkpoint(&rig, bad, wanted));
        let left: Vec<&str> = all.iter().copied().filter(|member| *member != lost).collect();
        let before = rig.fingerprint(all);

        // Recovery leaves numbers out that may have been used.
        assert!(wanted.0 == 2 && wanted.1 > 2, "{wanted:?}");
        let named = format!("checkpoint {} of assembly 2", wanted.1);
        let says = [named.as_str(), "checkpoint 1 of assembly 1", "serve --force", "may hold it"];
        rig.serve_run(&left, "true", &["--degraded"]).refused(&says);
        let name = format!("data{}", &lost[1..]);
        let replace = ["--device", &name, "--with", "new", "--file-size", "16MiB"];
        rig.on("replace", &left, &replace).refused(&says);
        assert_eq!(rig.fingerprint(all), before, "{scheme}: a refusal changes nothing");

        // The member comes back: everything is there.
        let read = qemu_script(&[&format!("read -P 7 0 {bytes}")]);
        let copy = |from: &str, to: &str| {
            for member in all {
                fs::copy(rig.path(&format!("{from}{member}")), rig.path(&format!("{to}{member}"))).unwrap();
            }
        };
        copy("", "kept-");
        rig.serve_run(all, &read, &[]).ok();
        copy("kept-", "");

        // It does not: what there is, and it is said.
        let server = rig.serve(&left, &["--degraded", "--force", "--on-event", TELL]);
        let status = rig.status(&["d0"]);
        assert!(status["lost_state"].as_str().unwrap().contains(&named), "{status}");
        let shown = rig.on("status", &["d0"], &[]).code(3).out;
        assert!(shown.contains("LOST") && shown.contains(&named), "{shown}");
        until("the event", || fs::read_to_string(rig.path("lost")).is_ok_and(|text| text.contains(&named)));
        let ran = server.stop().ok();
        assert!(ran.err.contains(&format!("error: DATA IS LOST: {named}")), "{ran:?}");
        // The decision is taken: from now on that is the array.
        rig.serve_run(&left, "true", &[]).ok();
    }
}

/// After an orderly stop nothing may be missing, whatever the frames say.
#[test]
fn of_an_array_that_was_stopped_in_order() {
    if !has("qemu-io") {
        return;
    }
    for (scheme, options) in SCHEMES
        .map(|scheme| (scheme, &[][..]))
        .into_iter()
        .chain([("raid", &["--consistency", "resync"][..])])
    {
        let (rig, all) = (rig(scheme, options), members(scheme));
        let (server, bytes) = written(&rig, scheme);
        server.stop().ok();
        let wanted = newest(&rig, all);
        assert_eq!(wanted.0, 2, "the stop's checkpoint is of the same assembly as the one before it");
        for member in all {
            damage_checkpoint(&rig, member, wanted);
        }
        let journaled = options.is_empty();
        if journaled {
            // Every record is in the journal: nothing is missing.
            let read = qemu_script(&[&format!("read -P 7 0 {bytes}")]);
            rig.serve_run(all, &read, &[]).ok();
        } else {
            rig.serve_run(all, "true", &[]).refused(&["with which the array was stopped", "serve --force"]);
            rig.on("scrub", all, &[]).refused(&["with which the array was stopped"]);
            // The content is there, only what the checkpoint said of it is not: it is taken as found.
            let ran = rig.on("scrub", all, &["--force"]).ok();
            assert!(ran.err.contains("DATA IS LOST"), "{ran:?}");
            rig.serve_run(all, &qemu_script(&[&format!("read -P 7 0 {bytes}")]), &[]).ok();
        }
    }
}

/// The newest checkpoint and the journal of a stopped array are gone.
fn damage_all(rig: &Rig, all: &[&str]) {
    let wanted = newest(rig, all);
    for member in all {
        damage_checkpoint(rig, member, wanted);
        let bytes = fs::read(rig.path(member)).unwrap();
        for (offset, block) in (0u64..).step_by(BLOCK).zip(bytes.chunks_exact(BLOCK)) {
            if block.starts_with(b"ELSTFRAM") {
                scribble(&rig.path(member), offset + 100, &[block[100] ^ 1]);
            }
        }
    }
}

/// The same, and the journal is gone as well: only the superblocks know what there was.
#[test]
fn of_a_stopped_array_without_its_last_checkpoint_and_its_journal() {
    if !has("qemu-io") {
        return;
    }
    for scheme in SCHEMES {
        let (rig, all) = (rig(scheme, &[]), members(scheme));
        let (server, _) = written(&rig, scheme);
        server.stop().ok();
        damage_all(&rig, all);
        rig.serve_run(all, "true", &[]).refused(&["records 1 to", "were durable", "serve --force"]);
        let server = rig.serve(all, &["--force"]);
        let shown = rig.on("status", &["d0"], &[]).code(3).out;
        assert!(shown.contains("elastripe clear") && shown.contains("records 1 to"), "{shown}");
        // It ends when somebody has taken note.
        rig.on("clear", &["d0"], &["--device", "data0"]).ok();
        rig.on("status", &["d0"], &[]).code(3);
        rig.on("clear", &["d0"], &[]).ok();
        let shown = rig.on("status", &["d0"], &[]).ok().out;
        assert!(shown.contains("HEALTHY"), "{shown}");
        server.stop().ok();
    }
}

/// Neither a stop nor a power cut makes good what a forced start gave up: somebody has to take note.
#[test]
fn a_forced_start_is_told_until_somebody_has_taken_note() {
    if !has("qemu-io") {
        return;
    }
    for (scheme, shards, is_served) in [("elastic", "1", true), ("raid", "2", false)] {
        let (rig, all) = (rig(scheme, &["--shards", shards]), members(scheme));
        written(&rig, scheme).0.stop().ok();
        damage_all(&rig, all);
        rig.serve_run(all, "true", &["--force"]).ok();

        let stopped = rig.on("status", all, &["--json"]).code(3).json();
        assert!(stopped["state"] == "lost" && stopped["lost_state"].is_string(), "{stopped}");
        let shown = rig.on("status", all, &[]).code(3).out;
        assert!(shown.contains("elastripe clear") && shown.contains("--force"), "{shown}");
        assert!(rig.on("examine", &all[..1], &[]).ok().out.contains("LOST"));
        assert!(rig.on("examine", &all[..1], &["--json"]).ok().json()["superblock"]["forced_epoch"].is_u64());
        for _ in 0..2 {
            let server = rig.serve(all, &["--on-event", TELL]);
            let shown = rig.on("status", &["d0"], &[]).code(3).out;
            assert!(shown.contains("LOST") && shown.contains("elastripe clear"), "{shown}");
            until("the event", || rig.path("lost").exists());
            fs::remove_file(rig.path("lost")).unwrap();
            rig.on("clear", &["d0"], &["--device", "data0"]).ok();
            server.kill();
        }

        if is_served {
            let server = rig.serve(all, &[]);
            rig.on("clear", &["d0"], &[]).ok();
            assert_eq!(rig.status(&["d0"])["state"], "healthy");
            server.kill();
        } else {
            rig.on("clear", all, &[]).ok();
            assert_eq!(rig.on("status", all, &["--json"]).ok().json()["state"], "healthy");
        }
        let server = rig.serve(all, &[]);
        let status = rig.on("status", &["d0"], &["--json"]).ok().json();
        assert!(status["state"] == "healthy" && status["lost_state"].is_null(), "{status}");
        assert!(!server.stop().ok().err.contains("DATA IS LOST"));
        assert!(!rig.on("examine", &all[..1], &[]).ok().out.contains("LOST"));
    }
}

/// A member that was put back from a copy does not pass for the member, whatever the scheme and whether the
/// array was stopped or killed; filled anew it does.
#[test]
fn an_older_copy_of_a_member_is_named_and_filled_anew() {
    if !has("qemu-io") {
        return;
    }
    for (consistency, killed) in [("journal", true), ("resync", false)] {
        let rig = Rig::new();
        let create = ["create", "--scheme", "raid", "--consistency", consistency, "--parity", "1"];
        let files = ["--file-size", "32MiB", "--data", "d0", "d1", "d2"];
        rig.run(&[&create[..], &files[..]].concat()).ok();
        let members = ["d0", "d1", "d2"];
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&["write -P 1 0 8M", "flush"]).ok();
        server.stop().ok();
        std::fs::copy(rig.path("d1"), rig.path("old")).unwrap();
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&["write -P 2 0 8M", "flush"]).ok();
        if killed {
            server.kill()
        } else {
            drop(server.stop().ok())
        }
        let with_old = ["d0", "old", "d2"];
        let socket = format!("unix:{}", rig.path("nbd").display());
        rig.on("serve", &with_old, &["--nbd", &socket]).refused(&["data1", "old", "older state", "--full"]);
        let server = rig.serve(&with_old, &["--degraded"]);
        let ran = rig.qemu_io(&["read -P 2 0 8M"]).ok();
        assert!(!ran.out.contains("failed"), "{consistency}: {ran:?}");
        rig.on("online", &["d0"], &["--device", "old", "--wait"]).refused(&["--full"]);
        rig.on("online", &["d0"], &["--device", "old", "--full", "--wait"]).ok();
        assert_eq!(rig.status(&["d0"])["state"], "healthy", "{consistency}");
        server.stop().ok();
        let server = rig.serve(&["old", "d2"], &["--degraded"]);
        let ran = rig.qemu_io(&["read -P 2 0 8M"]).ok();
        assert!(!ran.out.contains("failed"), "{consistency}: {ran:?}");
        server.stop().ok();
    }
}
