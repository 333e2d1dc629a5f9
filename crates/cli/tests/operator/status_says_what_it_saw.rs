//! `status` is not "fine" when a server is dead, not "failed" for what was not looked at, and never tells of
//! an array's original when a copy was named.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, has, until};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

#[test]
fn a_socket_without_a_server_is_news() {
    let rig = Rig::with_array();
    let nothing = rig.run(&["status"]).code(4);
    assert!(nothing.out.contains("no array is being served"), "{nothing:?}");
    assert_eq!(rig.run(&["status", "--json"]).code(4).json(), serde_json::json!([]));

    let server = rig.serve(&MEMBERS, &[]);
    let served = rig.run(&["status", "--json"]).code(0).json();
    assert_eq!(served[0]["state"], "healthy");
    server.kill();
    let ran = rig.run(&["status"]).code(2);
    assert!(ran.out.contains("tank") && ran.out.contains("state: DOWN"), "{ran:?}");
    assert!(ran.out.contains("elastripe serve ") && ran.out.contains("--nbd unix:"), "{ran:?}");
    let dead = rig.run(&["status", "--json"]).code(2).json();
    assert_eq!((&dead[0]["uuid"], &dead[0]["name"]), (&served[0]["uuid"], &served[0]["name"]));
    assert_eq!((&dead[0]["state"], &dead[0]["source"]), (&"down".into(), &"dead".into()));
    assert_eq!(dead[0]["devices"].as_array().unwrap().len(), 6);

    // Whatever became of its members.
    std::fs::rename(rig.path("d0"), rig.path("x0")).unwrap();
    MEMBERS[1..]
        .iter()
        .for_each(|name| std::fs::rename(rig.path(name), rig.path(&format!("x{name}"))).unwrap());
    let ran = rig.run(&["status"]).code(2);
    assert!(ran.out.contains("tank") && ran.out.contains("DOWN"), "{ran:?}");
    assert_eq!(rig.run(&["status", "--json"]).code(2).json()[0]["name"], "tank");
    std::fs::rename(rig.path("x0"), rig.path("d0")).unwrap();
    MEMBERS[1..]
        .iter()
        .for_each(|name| std::fs::rename(rig.path(&format!("x{name}")), rig.path(name)).unwrap());

    // `stop` clears it away, and so does the next server's end.
    rig.on("stop", &["d0"], &[]).refused(&["without being stopped", "removed"]);
    rig.on("stop", &["d0"], &[]).refused(&["not being served"]);
    assert_eq!(rig.run(&["status"]).code, 4);
    rig.serve(&MEMBERS, &[]).kill();
    rig.serve(&MEMBERS, &[]).stop().ok();
    assert_eq!(std::fs::read_dir(rig.path("run")).unwrap().count(), 0);
    // A command that runs the array itself leaves it in order, too.
    rig.serve(&MEMBERS, &[]).kill();
    rig.on("commit", &MEMBERS, &[]).ok();
    assert_eq!(rig.run(&["status"]).code, 4);
}

#[test]
fn a_socket_of_an_older_server_counts_too() {
    let rig = Rig::with_array();
    let uuid = rig.status(&MEMBERS)["uuid"].as_str().unwrap().to_owned();
    std::fs::create_dir_all(rig.path("run")).unwrap();
    drop(UnixListener::bind(rig.path("run").join(format!("{uuid}.sock"))).unwrap());
    let ran = rig.run(&["status"]).code(2);
    assert!(ran.out.contains(&uuid), "{ran:?}");
    assert_eq!(rig.run(&["status", "--json"]).code(2).json()[0]["uuid"], uuid);
}

#[test]
fn what_was_not_looked_at_has_not_failed() {
    let rig = Rig::with_array();
    for named in [&["d2"][..], &["d0", "d1", "l1"]] {
        let ran = rig.on("status", named, &[]).code(4);
        assert!(ran.out.contains("state: INCOMPLETE") && ran.out.contains("log0"), "{ran:?}");
        assert!(ran.out.contains("not looked at"), "{ran:?}");
        let status = rig.on("status", named, &["--json"]).code(4).json();
        assert_eq!(status["state"], "incomplete");
    }
    // Served, but whoever asks cannot reach the server.
    let server = rig.serve(&MEMBERS, &[]);
    let mut blind = rig.command(&["status", "d0", "--json"]);
    let ran = blind.env("ELASTRIPE_RUN_DIR", rig.path("elsewhere")).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((ran.status.code(), &status["state"]), (Some(4), &"incomplete".into()));
    assert_eq!(status["source"], "in-use");
    server.stop().ok();
    // What was looked for and is not there is gone, though.
    for name in ["d0", "d2", "l1"] {
        std::fs::remove_file(rig.path(name)).unwrap();
    }
    let ran = rig.on("status", &MEMBERS, &[]).code(2);
    assert!(ran.out.contains("state: FAILED"), "{ran:?}");
    rig.on("status", &["d1", "d3", "l0"], &[]).code(4);
}

#[test]
fn a_copy_does_not_pass_for_the_original() {
    let rig = Rig::with_array();
    let copies: Vec<String> = MEMBERS.iter().map(|name| format!("c{name}")).collect();
    let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
    for (name, copy) in MEMBERS.iter().zip(&copies) {
        std::fs::copy(rig.path(name), rig.path(copy)).unwrap();
    }
    let server = rig.serve(&MEMBERS, &[]);
    // It neither takes the socket over nor removes it.
    rig.on("serve", &copies, &["--nbd", "unix:other"]).refused(&["copy", "being served by process", "/d0"]);
    assert_eq!(rig.on("status", &["d0"], &["--json"]).ok().json()["source"], "served");
    // What is asked about the copy is not answered by the original's server.
    let status = rig.on("status", &copies, &["--json"]).ok().json();
    assert_eq!((&status["source"], &status["clean"]), (&"stopped".into(), &true.into()));
    assert!(status["notes"][0].as_str().unwrap().contains("copy of data0"), "{status:#}");
    rig.on("stop", &[copies[1]], &[]).refused(&["cd1", "copy of data1", "/d1"]);
    rig.on("fail", &copies, &["--device", "data1"]).ok();
    assert_eq!(rig.on("status", &["d0"], &["--json"]).ok().json()["state"], "healthy");
    // In a run directory of its own the copy can be served beside it, and its end leaves the original alone.
    let mut other = rig.command(&[&["serve"], &copies[..], &["--run", "true"]].concat());
    assert!(other.env("ELASTRIPE_RUN_DIR", rig.path("other")).status().unwrap().success());
    assert_eq!(rig.on("status", &["l1"], &["--json"]).ok().json()["source"], "served");
    rig.on("stop", &["l1"], &[]).ok();
    server.wait().ok();
}

/// The record of a server that was killed leads to the members as they were then.
#[test]
fn members_that_came_later_are_remembered() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    rig.on("add", &["d0"], &["--spare", "s0", "--file-size", "32MiB"]).ok();
    rig.on("fail", &["d0"], &["--device", "data2", "--yes"]).ok();
    until("the spare takes the place", || rig.status(&["d0"])["state"] == "healthy");
    rig.on("replace", &["d0"], &["--device", "data1", "--with", "n1", "--file-size", "32MiB", "--wait"]).ok();
    server.kill();
    let ran = rig.run(&["status"]).code(2);
    assert!(ran.out.contains("/s0") && ran.out.contains("/n1") && !ran.out.contains("missing"), "{ran:?}");
    let dead = rig.run(&["status", "--json"]).code(2).json();
    let devices = dead[0]["devices"].as_array().unwrap();
    assert!(devices.iter().all(|device| device["state"] == "healthy"), "{dead}");
    // What it proposes starts the array whole.
    let members = ["d0", "n1", "s0", "d3", "l0", "l1"];
    rig.serve(&members, &[]).stop().ok();
}

#[test]
fn a_server_whose_socket_was_removed_is_there_all_the_same() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let mut found = std::fs::read_dir(rig.path("run")).unwrap().flatten().map(|entry| entry.path());
    let socket = found.find(|path| path.extension().is_some_and(|name| name == "sock")).unwrap();
    std::fs::remove_file(socket).unwrap();
    rig.on("stop", &["d0"], &[]).refused(&["was removed", "process", "kill"]);
    let ran = rig.run(&["status"]).code(4);
    assert!(ran.err.contains("was removed"), "{ran:?}");
    server.signal("TERM");
    server.wait().ok();
}

/// Superblocks that agree are not an array: without a checkpoint nothing can be started.
#[test]
fn an_array_without_a_checkpoint_is_not_healthy() {
    let rig = Rig::with_array();
    damage_checkpoints(&rig);
    let ran = rig.on("status", &MEMBERS, &[]).code(2);
    assert!(ran.out.contains("FAILED") && ran.out.contains("no member has a checkpoint"), "{ran:?}");
    let ran = rig.on("scan", &MEMBERS, &[]).code(0);
    assert!(ran.out.contains("failed, not in use"), "{ran:?}");
    rig.on("serve", &MEMBERS, &["--run", "true"]).refused(&["no readable checkpoint"]);
}

#[test]
fn nor_is_one_whose_server_is_gone_merely_down() {
    let rig = Rig::with_array();
    rig.serve(&MEMBERS, &[]).kill();
    assert!(rig.run(&["status"]).code(2).out.contains("DOWN"));
    damage_checkpoints(&rig);
    let ran = rig.run(&["status"]).code(2);
    assert!(ran.out.contains("FAILED") && !ran.out.contains("DOWN"), "{ran:?}");
}

#[test]
fn nor_one_whose_members_lost_their_ends_as_well() {
    let rig = Rig::with_array();
    rig.serve(&MEMBERS, &[]).kill();
    for name in ["d0", "d1", "d2"] {
        std::fs::File::options().write(true).open(rig.path(name)).unwrap().set_len(16 << 20).unwrap();
    }
    let ran = rig.run(&["status"]).code(2);
    assert!(ran.out.contains("FAILED") && ran.out.contains("it was truncated"), "{ran:?}");
}

#[test]
fn members_of_another_array_are_not_passed_over() {
    let rig = Rig::with_array();
    let other = ["create", "--parity", "1", "--data", "e0", "e1", "--file-size", "32MiB", "--name", "lake"];
    rig.run(&other).ok();
    let server = rig.serve(&MEMBERS, &[]);
    let ran = rig.on("status", &["d0", "e0"], &[]).ok();
    assert!(ran.out.contains("e0: belongs to array lake"), "{ran:?}");
    server.stop().ok();
}

/// One bit of every checkpoint's header.
fn damage_checkpoints(rig: &Rig) {
    for name in &MEMBERS[..4] {
        let mut bytes = std::fs::read(rig.path(name)).unwrap();
        let blocks = bytes.chunks_mut(4096);
        blocks.filter(|block| block.starts_with(b"ELSTCKPT")).for_each(|block| block[100] ^= 1);
        std::fs::write(rig.path(name), bytes).unwrap();
    }
}

#[test]
fn who_watches_sees_what_clients_do() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &[]);
    let mut busy = rig.qemu_io_child(&["write -P 1 0 1M", "sleep 60000"]);
    until("the write was answered", || rig.status(&["d0"])["requests"]["write"]["bytes"] == 1 << 20);
    let idle = rig.on("status", &["d0"], &["--watch=50ms", "--count", "3"]).ok();
    let screens: Vec<&str> = idle.out.split("array: tank").skip(1).collect();
    assert_eq!(screens.len(), 3, "{idle:?}");
    assert!(!screens[0].contains("clients: "), "nothing to compare with: {idle:?}");
    assert!(screens[1].contains("clients: nothing") && screens[2].contains("clients: nothing"), "{idle:?}");
    busy.kill().unwrap();
    busy.wait().unwrap();

    let command = ["status", "--watch=100ms", "--count", "30"];
    let watching = rig.command(&command).stdout(Stdio::piped()).spawn().unwrap();
    until("it has looked", || rig.status(&["d0"])["clients"] == 0);
    (0..8).for_each(|_| drop(rig.qemu_io(&["write -P 1 0 1M", "read 0 64k", "flush"]).ok()));
    let watched = watching.wait_with_output().unwrap();
    let text = String::from_utf8(watched.stdout).unwrap();
    assert!(watched.status.success(), "{text}");
    for words in [" reads/s (", " writes/s (", "B/s, 99 % within ", " flushes/s (99 % within"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let lines = rig.on("status", &["d0"], &["--watch=1ms", "--count", "2", "--json"]).ok().out;
    let states =
        lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["state"].clone());
    assert_eq!(states.collect::<Vec<_>>(), ["healthy", "healthy"]);
    rig.on("status", &["d0"], &["--count", "2"]).code(4);
    server.stop().ok();
    // What cannot be looked at may come back; the last look counts.
    assert!(
        rig.run(&["status", "--watch=1ms", "--count", "2"]).code(4).out.contains("no array is being served")
    );
}

/// What `serve` refuses without `--force`, `status` does not call startable.
#[test]
fn an_array_that_does_not_start_without_a_member_is_not_called_degraded() {
    for (consistency, code, state) in [("resync", 2, "failed"), ("journal", 2, "down")] {
        let rig = Rig::new();
        let create = ["create", "--scheme", "raid", "--consistency", consistency, "--parity", "1"];
        rig.run(&[&create[..], &["--file-size", "32MiB", "--data", "d0", "d1", "d2"]].concat()).ok();
        rig.serve(&["d0", "d1", "d2"], &[]).kill();
        std::fs::remove_file(rig.path("d1")).unwrap();
        let left = ["d0", "d2"];
        assert_eq!(rig.on("status", &["d0", "d1", "d2"], &["--json"]).code(code).json()["state"], state);
        let shown = rig.on("status", &["d0", "d1", "d2"], &[]).code(code).out;
        if consistency == "journal" {
            rig.serve_run(&left, "true", &["--degraded"]).ok();
            continue;
        }
        for words in ["FAILED", "data1", "was not stopped in order", "--degraded --force"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        rig.serve_run(&left, "true", &["--degraded"]).refused(&["--force"]);
        let server = rig.serve(&left, &["--degraded", "--force"]);
        let shown = rig.on("status", &["d0"], &[]).code(3).out;
        assert!(shown.contains("LOST") && shown.contains("may be wrong"), "{shown}");
        assert!(server.stop().ok().err.contains("error: DATA IS LOST"));
        let stopped = rig.on("status", &left, &["--json"]).code(3).json();
        assert!(stopped["state"] == "lost" && stopped["lost_state"].is_string(), "{stopped}");
        rig.on("clear", &left, &[]).ok();
        assert_eq!(rig.on("status", &left, &["--json"]).code(1).json()["state"], "degraded");
    }
}
