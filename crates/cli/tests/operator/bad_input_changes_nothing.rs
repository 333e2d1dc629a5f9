//! Acceptance 8: for each command, wrong members, truncated devices, devices of another array, a busy socket,
//! an unwritable path: one line that names the thing, exit code not 0, every device as before.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use std::os::unix::net::UnixListener;

const FILES: [&str; 11] = ["d0", "d1", "d2", "d3", "l0", "l1", "e0", "e1", "short", "blank", "text"];

/// The commands that open an array, with options that would make them work.
fn commands() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("serve", vec!["--nbd", "unix:nbd"]),
        ("fail", vec!["--device", "data0", "--yes"]),
        ("replace", vec!["--device", "data0", "--with", "new", "--file-size", "32MiB", "--yes"]),
        ("add", vec!["--spare", "new", "--file-size", "32MiB"]),
        ("scrub", vec![]),
        ("commit", vec![]),
        ("checkpoint", vec!["--full"]),
    ]
}

fn rig() -> Rig {
    let rig = Rig::with_array();
    let other = ["create", "--scheme", "raid", "--parity", "1", "--data", "e0", "e1", "--file-size", "32MiB"];
    rig.run(&other).ok();
    std::fs::copy(rig.path("d3"), rig.path("short")).unwrap();
    std::fs::File::options().write(true).open(rig.path("short")).unwrap().set_len(16 << 20).unwrap();
    std::fs::File::create(rig.path("blank")).unwrap().set_len(16 << 20).unwrap();
    std::fs::write(rig.path("text"), "nothing of the kind\n").unwrap();
    rig
}

#[test]
fn wrong_members() {
    let rig = rig();
    let before = rig.fingerprint(&FILES);
    let cases: [(&[&str], &[&str]); 10] = [
        (&["d0", "d1", "d2", "d3", "l0", "absent"], &["absent"]),
        (&["d0", "d1", "d2", "d3", "l0", "text"], &["text", "20 bytes"]),
        (&["d0", "d1", "d2", "d3", "l0", "l1", "e0"], &["e0", "belongs to array"]),
        (&["d0", "d1", "d2", "short", "l0", "l1"], &["short", "truncated"]),
        (&["d0", "d1", "d2", "d3", "short", "l0", "l1"], &["d3", "short", "copy"]),
        (&["d0", "d1", "d2", "d3", "l0", "l1", "./d1"], &["d1"]),
        (&["d0", "d1", "d2"], &["data3", "log0", "log1", "tolerates 2"]),
        (&["d0", "d1", "d2", "d3", "l0"], &["log1", "not among the named paths"]),
        (&["d0", "d1", "d2", "d3", "l0", "/dev/null"], &["/dev/null", "character device"]),
        (&["d0", "d1", "d2", "d3", "l0", "run"], &["run", "directory"]),
    ];
    std::fs::create_dir_all(rig.path("run")).unwrap();
    for (command, options) in commands() {
        for (members, words) in cases {
            rig.on(command, members, &options).refused(words);
            assert!(!rig.path("new").exists(), "{command} {members:?} left a file behind");
        }
        assert_eq!(rig.fingerprint(&FILES), before, "{command} changed a device");
    }
}

#[test]
fn wrong_devices() {
    let rig = rig();
    let before = rig.fingerprint(&FILES);
    let cases: [(&str, &[&str], &[&str]); 8] = [
        ("fail", &["--device", "data9"], &["data9", "expected one of data0"]),
        ("replace", &["--device", "log7", "--with", "short"], &["log7", "expected one of data0"]),
        ("replace", &["--device", "data0", "--with", "short"], &["short", "is a copy of data3"]),
        ("replace", &["--device", "data0", "--with", "blank"], &["blank", "bytes), expected at least"]),
        ("replace", &["--device", "data0", "--with", "d1"], &["d1", "is data1 of this array"]),
        ("replace", &["--device", "data0", "--with", "e0"], &["e0", "is a member of array"]),
        ("add", &["--spare", "blank"], &["blank", "bytes), expected at least"]),
        ("add", &["--spare", "l1"], &["l1", "is log1 of this array"]),
    ];
    for (command, options, words) in cases {
        rig.on(command, &MEMBERS, options).refused(words);
        assert_eq!(rig.fingerprint(&FILES), before, "{command} {options:?} changed a device");
    }
}

#[test]
fn another_server_on_the_same_members() {
    let rig = rig();
    let server = rig.serve(&MEMBERS, &[]);
    rig.on("serve", &MEMBERS, &["--nbd", "unix:other"]).refused(&[
        "d0",
        "in use",
        "array tank is being served already, by process",
        "status tank",
    ]);
    // Without the control socket nobody but the lock can tell.
    let blind = |command: &str, options: &[&str]| {
        let mut args = vec![command];
        args.extend(MEMBERS);
        args.extend(options);
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_elastripe"));
        child.args(&args).current_dir(rig.dir.path()).env("ELASTRIPE_RUN_DIR", rig.path("elsewhere"));
        child.output().unwrap()
    };
    for (command, options) in commands() {
        let output = blind(command, &options);
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1) && err.contains("in use") && err.lines().count() == 1,
            "{command}: {err}"
        );
    }
    let status = blind("status", &["--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["source"], "in-use");
    assert!(!rig.path("new").exists() && !rig.path("other").exists());
    server.stop().ok();
}

#[test]
fn busy_sockets_and_unwritable_paths() {
    let rig = rig();
    let _listener = UnixListener::bind(rig.path("busy")).unwrap();
    let before = rig.fingerprint(&FILES);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("tcp:{}", tcp.local_addr().unwrap());
    let cases: [(&str, &[&str]); 7] = [
        ("unix:busy", &["busy", "in use"]),
        ("unix:text", &["text", "not a socket"]),
        ("unix:nowhere/socket", &["nowhere/socket"]),
        (&taken, &["127.0.0.1"]),
        ("tcp:256.0.0.1:1", &["256.0.0.1"]),
        ("udp:1", &["udp:1", "unix:PATH"]),
        ("tcp:localhost", &["tcp:localhost", "HOST:PORT"]),
    ];
    for (address, words) in cases {
        rig.on("serve", &MEMBERS, &["--nbd", address]).refused(words);
        assert_eq!(rig.fingerprint(&FILES), before, "{address}");
    }
    rig.on("serve", &MEMBERS, &[]).refused(&["--nbd"]);
    rig.on("replace", &MEMBERS, &["--device", "data0", "--with", "nowhere/n", "--file-size", "32MiB"])
        .refused(&["nowhere/n"]);
    rig.on("replace", &MEMBERS, &["--device", "data0", "--with", "absent"])
        .refused(&["absent", "--file-size"]);
    assert_eq!(rig.fingerprint(&FILES), before);
}

#[test]
fn a_server_does_without_lost_members_when_told_to() {
    let rig = rig();
    let named = ["d0", "d1", "absent", "d3", "text", "l1"];
    let ran = rig.serve_run(&named, "exit 0", &["--degraded"]).ok();
    assert!(ran.err.contains("absent") && ran.err.contains("data2 is left out"), "{ran:?}");
    let status = rig.on("status", &MEMBERS, &["--json"]).code(1).json();
    assert_eq!(status["stale"], serde_json::json!(["d2", "l0"]));
    rig.serve_run(&["absent", "d0", "d1"], "exit 0", &["--degraded"]).code(1);
}

#[test]
fn a_dirty_raid_array_is_not_started_without_all_members_nor_changed_by_the_attempt() {
    let rig = Rig::new();
    let files = ["d0", "d1", "d2"];
    let create =
        ["create", "--scheme", "raid", "--consistency", "resync", "--parity", "1", "--file-size", "32MiB"];
    rig.run(&[&create[..], &["--data"], &files[..]].concat()).ok();
    rig.serve(&files, &[]).kill();
    let before = rig.fingerprint(&files);
    for (command, options) in commands() {
        // Without data0; `fail` and `replace` are about it, so they get as far as to see that the
        // array is dirty.
        rig.on(command, &files[1..], &options).refused(&[]);
    }
    let ran = rig.serve_run(&files[1..], "exit 0", &["--degraded"]);
    assert!(ran.code == 1 && ran.err.contains("not stopped in order"), "{ran:?}");
    assert_eq!(rig.fingerprint(&files), before);
    rig.serve_run(&files, "exit 0", &[]).ok();
    rig.on("status", &files, &[]).ok();

    rig.serve(&files, &[]).kill();
    rig.serve_run(&files[..2], "exit 0", &["--force", "--degraded"]).ok();
    rig.on("status", &files, &[]).code(3);
    rig.on("clear", &files[..2], &[]).ok();
    rig.on("status", &files, &[]).code(1);
}

#[test]
fn looking_never_changes_anything() {
    let rig = rig();
    let before = rig.fingerprint(&FILES);
    rig.on("status", &["absent"], &[]).refused(&["absent"]).code(4);
    rig.on("status", &["text"], &[]).refused(&["text"]).code(4);
    rig.on("status", &["d0", "e0"], &[]).refused(&["e0", "belongs to array"]).code(4);
    rig.run(&["status", "--no-such-option"]).refused(&["--no-such-option"]).code(4);
    rig.on("status", &["d0", "d1", "d2"], &[]).code(4);
    rig.on("status", &["d0", "d1", "d2", "d3"], &[]).code(1);
    rig.on("status", &MEMBERS, &[]).ok();
    rig.on("examine", &["absent"], &[]).refused(&["absent"]);
    rig.on("examine", &["text"], &[]).code(1);
    rig.on("examine", &["d1"], &[]).ok();
    rig.on("examine", &["short"], &["--json"]).ok();
    rig.on("inspect", &["absent"], &[]).refused(&["absent"]);
    rig.on("inspect", &["d0", "l0", "text", "short"], &["--records"]).code(1);
    assert_eq!(rig.fingerprint(&FILES), before);
}

#[test]
fn wipe_erases_all_that_it_is_given_or_nothing() {
    let rig = Rig::with_array();
    let before = rig.fingerprint(&MEMBERS);
    std::fs::write(rig.path("blank"), vec![0; 1 << 20]).unwrap();
    for (bad, why) in [("nosuch", "nosuch"), ("blank", "blank"), ("./l0", "given twice")] {
        rig.on("wipe", &["l0", bad], &["--yes"]).refused(&[why]);
        assert_eq!(rig.fingerprint(&MEMBERS), before, "{bad}");
    }
    let server = rig.serve(&["d0", "d1", "d2", "l0", "l1"], &["--degraded"]);
    let before = rig.fingerprint(&["d3"]);
    rig.on("wipe", &["d3", "l0"], &["--yes"]).refused(&["l0"]);
    assert_eq!(rig.fingerprint(&["d3"]), before, "l0 is in use");
    server.stop().ok();
    let wiped = rig.on("wipe", &["l0", "d3"], &["--yes"]).ok().out;
    assert!(wiped.contains("l0 was") && wiped.contains("d3 was"), "{wiped}");
    let wiped = rig.on("wipe", &["l1", "d2"], &["--yes", "--force", "--json"]).ok().json();
    let paths: Vec<_> = wiped["devices"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["l1", "d2"], "{wiped}");
    assert!(wiped["devices"][0]["was"].as_str().unwrap().starts_with("log1 of array"), "{wiped}");
}
