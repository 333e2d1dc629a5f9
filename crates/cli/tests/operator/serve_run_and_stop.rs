//! `serve --run` serves while a command runs; the data is there the next time; SIGTERM and `stop` end
//! it in order.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, has, qemu_script};

#[test]
fn what_was_written_is_read_after_a_restart_with_members_in_any_order() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let write = qemu_script(&[
        "write -P 7 0 1M",
        "write -P 9 12k 2k",
        "write -P 3 5M 512",
        "discard 64k 64k",
        "flush",
    ]);
    rig.serve_run(&MEMBERS, &write, &[]).ok();
    let read = qemu_script(&[
        "read -P 7 0 12k",
        "read -P 9 12k 2k",
        "read -P 7 14k 50k",
        "read -P 0 64k 64k",
        "read -P 7 128k 896k",
        "read -P 3 5M 512",
        "read -P 0 2M 1M",
    ]);
    rig.serve_run(&["l1", "d2", "d0", "l0", "d3", "d1"], &read, &[]).ok();
}

#[test]
fn a_ring_that_the_kernel_polls_serves_also_after_a_pause() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let write = ["write -P 7 0 1M", "flush", "sleep 50", "write -P 9 12k 2k", "sleep 50", "read -P 9 12k 2k"];
    rig.serve_run(&MEMBERS, &qemu_script(&write), &["--kernel-poll"]).ok();
    let read = qemu_script(&["read -P 7 0 12k", "read -P 9 12k 2k", "read -P 7 14k 1010k"]);
    rig.serve_run(&MEMBERS, &read, &[]).ok();
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let rig = Rig::with_array();
    rig.serve_run(&MEMBERS, "exit 37", &[]).code(37);
    rig.serve_run(&MEMBERS, "kill -9 $$", &[]).code(137);
    assert_eq!(rig.status(&MEMBERS)["clean"], true);
    assert_eq!(std::fs::read_dir(rig.path("run")).unwrap().count(), 0, "sockets are removed");
}

#[test]
fn sigterm_and_stop_leave_a_clean_array() {
    let rig = Rig::with_array();
    for way in ["TERM", "INT", "stop"] {
        let server = rig.serve(&MEMBERS, &[]);
        let live = rig.status(&["d2"]);
        assert_eq!((&live["source"], &live["clean"]), (&"served".into(), &serde_json::Value::Null));
        if way == "stop" {
            rig.on("stop", &["l0"], &[]).ok();
        } else {
            server.signal(way);
        }
        server.wait().ok();
        assert_eq!(rig.status(&MEMBERS)["clean"], true, "{way}");
        assert!(!rig.path("nbd").exists());
    }
    rig.on("stop", &["d0"], &[]).refused(&["not being served"]);
}

/// The kernel keeps the locks of a process that was killed until its rings are gone: somebody else holds one
/// here, for longer than is waited for anybody's.
#[test]
fn what_a_killed_server_holds_for_a_while_is_waited_for() {
    let rig = Rig::with_array();
    rig.serve(&MEMBERS, &[]).kill();
    let held = std::fs::File::open(rig.path(MEMBERS[0])).unwrap();
    held.lock().unwrap();
    let lets_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(6));
        drop(held);
    });
    rig.serve(&MEMBERS, &[]).stop().ok();
    lets_go.join().unwrap();
}

#[test]
fn a_killed_server_loses_nothing_that_was_flushed() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let server = rig.serve(&MEMBERS, &["--commit-idle", "off"]);
    rig.qemu_io(&["write -P 5 0 256k", "write -P 6 16k 8k", "flush"]).ok();
    server.kill();
    let status = rig.on("status", &MEMBERS, &["--json"]).code(2).json();
    assert_eq!((&status["source"], &status["clean"]), (&"dead".into(), &false.into()));
    let read = qemu_script(&["read -P 5 0 16k", "read -P 6 16k 8k", "read -P 5 24k 232k"]);
    let ran = rig.serve_run(&MEMBERS, &read, &[]).ok();
    assert!(ran.err.contains("not stopped in order") && ran.err.contains("records replayed"), "{ran:?}");
}

#[test]
fn a_read_only_server_refuses_writes() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::with_array();
    let ran = rig.serve_run(&MEMBERS, "qemu-io -f raw -c 'write 0 4k' \"$ELASTRIPE_URI\"", &["--read-only"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    rig.serve_run(&MEMBERS, "qemu-io -r -f raw -c 'read -P 0 0 4k' \"$ELASTRIPE_URI\"", &["--read-only"])
        .ok();
}

#[test]
fn tcp_and_several_addresses_at_once() {
    if !has("nbdinfo") {
        return;
    }
    let rig = Rig::with_array();
    let script = "nbdinfo --size \"$ELASTRIPE_URI\" && nbdinfo --size \"nbd+unix:///?socket=$PWD/other\"";
    let addresses = ["--nbd", "tcp:127.0.0.1:0", "--nbd", "unix:other"];
    let ran = rig.serve_run(&MEMBERS, script, &addresses).ok();
    let size = rig.status(&MEMBERS)["volume_bytes"].to_string();
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), [&size, &size]);
}
