//! A file that `replace` or `add` made is taken away only if it never became part of an array: not when the
//! server ends while it is waited for, not when the rebuild finds something lost, not when another command
//! was quicker.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::{MEMBERS, Rig, device, qemu_script, scribble};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::Duration;

const NEW: [&str; 4] = ["--with", "n2", "--file-size", "32MiB"];

/// Some megabytes: what was never written need not be rebuilt, and then a rebuild ends however slow it
/// is to be.
fn fill(rig: &Rig) {
    let mut client = Nbd::connect(&rig.path("nbd"), Duration::from_secs(20));
    (0..32u64).for_each(|part| client.request(Command::Write, part << 18, 1 << 18, &vec![7; 1 << 18]));
    client.request(Command::Flush, 0, 0, &[]);
    client.leave();
}

#[test]
fn the_server_ends_while_its_rebuild_is_waited_for() {
    let rig = Rig::with_array();
    for end in ["TERM", "KILL"] {
        let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1KiB/s"]);
        fill(&rig);
        let replace = [&["replace", "d0", "--device", "data2", "--fail-first", "--wait"], &NEW[..]].concat();
        let mut waiting = rig.command(&replace).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while device(&rig.status(&["d0"]), "data2")["state"] != "rebuilding" {
            assert!(waiting.try_wait().unwrap().is_none(), "the rebuild should last");
        }
        server.signal(end);
        assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(1));
        server.wait();
        assert!(rig.path("n2").exists(), "SIG{end}");
        let now = ["d0", "d1", "n2", "d3", "l0", "l1"];
        if end == "TERM" {
            assert_eq!(device(&rig.status(&now), "data2")["state"], "rebuilding");
            rig.on("replace", &now, &["--device", "data2", "--with", "d2"]).ok();
        } else {
            // A kill may come before the superblocks say that it has taken the place.
            let left = ["d0", "d1", "d3", "l0", "l1"];
            rig.on("replace", &left, &["--device", "data2", "--with", "d2"]).ok();
        }
        std::fs::remove_file(rig.path("n2")).unwrap();
    }
}

#[test]
fn the_rebuild_finds_something_lost() {
    let rig = Rig::new();
    let files = ["d0", "d1", "d2"];
    let create = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB", "--data"];
    rig.run(&[&create[..], &files[..]].concat()).ok();
    rig.serve_run(&files, &qemu_script(&["write -P 7 0 2M", "flush"]), &[]).ok();
    rig.on("fail", &files, &["--device", "data2", "--yes"]).ok();
    // Somewhere among the first stripes, behind the metadata.
    let inspected = rig.on("inspect", &["d1"], &["--json"]).ok().json();
    let chunks = inspected[0]["superblocks"][0]["chunks_per_device"].as_u64().unwrap();
    scribble(&rig.path("d1"), (32 << 20) - chunks * 4096 + 8 * 4096, &[0xa5; 8 * 4096]);

    let server = rig.serve(&files, &[]);
    rig.on("replace", &["d0"], &[&["--device", "data2", "--wait"], &NEW[..]].concat()).refused(&[]);
    let served = rig.on("status", &["d0"], &["--json"]).json();
    assert!(device(&served, "data2")["path"].as_str().unwrap().ends_with("/n2"), "{served:#}");
    assert!(rig.path("n2").exists(), "the server writes to it");
    server.stop();
    assert!(rig.path("n2").exists());

    // And if the command runs the array itself.
    let now = ["d0", "d1", "n2"];
    rig.on("fail", &now, &["--device", "data2"]).ok();
    let ran = rig.on("replace", &now, &["--device", "data2", "--with", "n3", "--file-size", "32MiB"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(rig.path("n3").exists(), "it carries a superblock: {ran:?}");
}

/// Answers one connection after the other like a server; `replace` and `add_spare` are refused when
/// `meanwhile` is over.
fn refuse(listener: &UnixListener, meanwhile: impl Fn()) {
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        let mut line = String::new();
        while stream.read_line(&mut line).unwrap() > 0 {
            let request: Value = serde_json::from_str(&line).unwrap();
            let op = request["op"].as_str().unwrap().to_owned();
            line.clear();
            if op != "replace" && op != "add_spare" {
                stream.get_mut().write_all(b"{}\n").unwrap();
                continue;
            }
            meanwhile();
            return stream.get_mut().write_all(b"{\"error\":\"another was quicker\"}\n").unwrap();
        }
    }
}

#[test]
fn another_command_was_quicker_with_the_same_path() {
    let rig = Rig::with_array();
    let uuid = rig.status(&MEMBERS)["uuid"].as_str().unwrap().to_owned();
    std::fs::create_dir_all(rig.path("run")).unwrap();
    let superblock = &std::fs::read(rig.path("d1")).unwrap()[..4096];
    let replace = ["--device", "data2", "--yes", "--with", "n2", "--file-size", "32MiB"];
    let add = ["--spare", "n2", "--file-size", "32MiB"];
    for (command, options) in [("replace", &replace[..]), ("add", &add[..])] {
        let socket = rig.path("run").join(format!("{uuid}.sock"));
        // The file is a member of this, and of no array: first with a superblock, then only locked.
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::scope(|scope| {
            let into_service = || {
                let file = std::fs::File::options().write(true).open(rig.path("n2")).unwrap();
                file.write_all_at(superblock, 0).unwrap();
            };
            scope.spawn(move || refuse(&listener, into_service));
            rig.on(command, &["d0"], options).refused(&["another was quicker"]);
        });
        assert!(rig.path("n2").exists(), "{command}: it carries a superblock");
        std::fs::remove_file(rig.path("n2")).unwrap();
        std::fs::remove_file(&socket).unwrap();

        let listener = UnixListener::bind(&socket).unwrap();
        let locked = std::sync::Mutex::new(None);
        std::thread::scope(|scope| {
            let (locked, path) = (&locked, rig.path("n2"));
            let into_service = move || {
                let file = std::fs::File::open(&path).unwrap();
                file.lock().unwrap();
                *locked.lock().unwrap() = Some(file);
            };
            scope.spawn(move || refuse(&listener, into_service));
            rig.on(command, &["d0"], options).refused(&["another was quicker"]);
        });
        assert!(rig.path("n2").exists(), "{command}: somebody has it locked");
        drop(locked);
        std::fs::remove_file(rig.path("n2")).unwrap();
        std::fs::remove_file(&socket).unwrap();

        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || refuse(&listener, || {}));
            rig.on(command, &["d0"], options).refused(&["another was quicker"]);
        });
        assert!(!rig.path("n2").exists(), "{command}: made for nothing");
        std::fs::remove_file(&socket).unwrap();
    }
}

#[test]
fn two_commands_at_once() {
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--rebuild-rate", "1KiB/s"]);
    fill(&rig);
    let spawn = |device: &str| {
        let args = [&["replace", "d0", "--device", device, "--fail-first"], &NEW[..]].concat();
        rig.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let both = [spawn("data0"), spawn("data2")];
    let done = both.map(|child| child.wait_with_output().unwrap().status.success());
    assert_eq!(done.iter().filter(|&&done| done).count(), 1, "{done:?}");
    assert!(rig.path("n2").exists(), "one of them has put it into service");
    let status = rig.status(&["d1"]);
    let rebuilding = status["devices"].as_array().unwrap().iter().filter(|d| d["state"] == "rebuilding");
    assert_eq!(rebuilding.count(), 1, "{status:#}");
    server.stop().ok();
}
