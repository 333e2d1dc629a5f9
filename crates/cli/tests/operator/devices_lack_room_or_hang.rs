//! A full file system under a member stops writes, not members; a device that does not answer
//! is done without.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Ran, Rig, Server, device, every_scheme, has, until};
use crate::keys_are_kept::Client;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Something mounted on a directory; gone when dropped.
pub struct Mount {
    at: PathBuf,
    servers: Vec<Child>,
}

impl Drop for Mount {
    fn drop(&mut self) {
        for server in &self.servers {
            signal(server, "CONT");
        }
        let _ = Command::new("umount").arg("-l").arg(&self.at).stderr(Stdio::null()).status();
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn signal(child: &Child, name: &str) {
    let _ = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
}

/// A file system of so many bytes on `at`; `None`, said loudly, where that is not permitted.
pub fn small_file_system(at: &Path, size: &str) -> Option<Mount> {
    fs::create_dir(at).unwrap();
    let args = ["-t", "tmpfs", "-o", &format!("size={size}"), "none"];
    let mounted = Command::new("mount").args(args).arg(at).stderr(Stdio::null()).status();
    if mounted.is_ok_and(|status| status.success()) {
        return Some(Mount { at: at.to_owned(), servers: Vec::new() });
    }
    eprintln!("SKIPPED: mounting a file system is not permitted here, so this test has shown nothing");
    None
}

/// A file `at/nbd` whose device is a process; `None`, said loudly, where that is not possible.
fn device_of_a_process(rig: &Rig, at: &Path) -> Option<Mount> {
    fs::File::create(rig.path("backing")).unwrap().set_len(32 << 20).unwrap();
    device_that_is(rig, at, &[])
}

/// The same of the backing file as it is, with more options of the process.
fn device_that_is(rig: &Rig, at: &Path, options: &[&str]) -> Option<Mount> {
    if !has("nbdkit") || !has("nbdfuse") {
        return None;
    }
    fs::create_dir(at).unwrap();
    let (backing, socket) = (rig.path("backing"), rig.path("device"));
    let _ = fs::remove_file(&socket);
    let quiet = |command: &mut Command| command.stderr(Stdio::null()).spawn().unwrap();
    let (filter, values) = options.split_at(options.len() / 2);
    let nbdkit = quiet(
        Command::new("nbdkit")
            .args(["-f", "-U"])
            .arg(&socket)
            .args(filter)
            .arg("file")
            .arg(&backing)
            .args(values),
    );
    let mut mount = Mount { at: at.to_owned(), servers: vec![nbdkit] };
    until("the device's socket", || socket.exists());
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    mount.servers.push(quiet(Command::new("nbdfuse").arg(at).arg(uri)));
    let begun = Instant::now();
    while !at.join("nbd").exists() {
        if begun.elapsed() > Duration::from_secs(5) || mount.servers[1].try_wait().unwrap().is_some() {
            eprintln!("SKIPPED: FUSE is not permitted here, so this test has shown nothing");
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(mount)
}

fn create(rig: &Rig, first: &str) -> Ran {
    let args = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB"];
    rig.run(&[&args[..], &["--data", first, "d1", "d2"]].concat())
}

/// A server of the array tank, one of whose devices is a process, with 4 MiB written.
fn tank_on_a_process(rig: &Rig, options: &[&str]) -> Option<(Mount, Server)> {
    let mount = device_of_a_process(rig, &rig.path("fuse"))?;
    if !has("qemu-io") {
        return None;
    }
    let members = ["fuse/nbd", "d1", "d2"];
    create(rig, members[0]).ok();
    rig.on("rename", &members, &["--name", "tank"]).ok();
    let server = rig.serve(&members, options);
    rig.qemu_io(&["write -P 1 0 4M", "flush"]).ok();
    Some((mount, server))
}

#[test]
fn a_timeout_that_no_device_can_keep_is_refused() {
    let rig = Rig::new();
    for given in ["0s", "1ns", "9ms"] {
        let ran = rig.run(&["serve", "d0", "--device-timeout", given]).code(2);
        assert!(
            ran.err.contains("--device-timeout") && ran.err.contains("at least 10 ms, or off"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_device_without_room_is_no_spare_after_an_error() {
    let rig = Rig::new();
    // For one copy of the superblock.
    let Some(mount) = small_file_system(&rig.path("small"), "4k") else { return };
    create(&rig, "d0").ok();
    let add = |options: &[&str]| {
        let ran = rig.on("add", &["d0", "d1", "d2"], &[&["--spare", "small/spare"], options].concat());
        assert!(ran.code == 1 && ran.err.contains("small/spare: no room"), "{ran:?}");
        let found = rig.run(&["scan", ".", "small"]).ok().out;
        assert!(!found.contains("spare"), "{found}");
    };
    let there = |is: bool| assert_eq!(mount.at.join("spare").exists(), is);
    add(&["--file-size", "32MiB"]);
    there(false);
    let server = rig.serve(&["d0", "d1", "d2"], &[]);
    add(&["--file-size", "32MiB"]);
    there(false);
    fs::File::create(mount.at.join("spare")).unwrap().set_len(32 << 20).unwrap();
    add(&[]);
    there(true);
    server.stop().ok();
}

#[test]
fn a_full_file_system_stops_writes_and_keeps_the_member() {
    let rig = Rig::new();
    let Some(mount) = small_file_system(&rig.path("small"), "24M") else { return };
    if !has("qemu-io") {
        return;
    }
    create(&rig, "small/d0").ok();
    let members = ["small/d0", "d1", "d2"];
    let server = rig.serve(&members, &["--commit-idle", "off"]);
    rig.qemu_io(&["write -P 1 0 4M", "flush"]).ok();
    let filler = mount.at.join("filler");
    let block = vec![7; 64 << 10];
    let mut file = fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    drop(file); // it would keep the room for itself when it is removed

    // What was begun waits, the rest is refused; nothing is lost and nobody is out of service.
    let mut writer = rig.qemu_io_child(&["write -P 2 8M 4M", "flush"]);
    until("writes wait", || rig.status(&["d1"])["state"] == "suspended");
    let screen = rig.on("status", &["d1"], &[]).code(1).out;
    assert!(screen.contains("SUSPENDED") && screen.contains("make room where"), "{screen}");
    let status = rig.status(&["d1"]);
    assert_eq!(device(&status, "data0")["lacks_room"], true);
    assert!(["data0", "data1", "data2"].iter().all(|name| device(&status, name)["state"] == "healthy"));
    rig.on("scrub", &["d1"], &[]).ok();
    until("a scrub says what it waits for", || {
        rig.status(&["d1"])["work"]["held_up_by"] == "there is no room where data0 lies"
    });
    let read = rig.qemu_io(&["read -P 1 0 4M"]).ok();
    assert!(!read.out.contains("failed"), "{read:?}");
    until("a write is refused for want of room", || {
        let ran = rig.qemu_io(&["write -P 3 20M 64k"]);
        (ran.out + &ran.err).contains("No space left")
    });

    // With room it goes on by itself.
    fs::remove_file(&filler).unwrap();
    writer.wait().unwrap();
    until("writes go on", || rig.status(&["d1"])["state"] == "healthy");
    let wrote = rig.qemu_io(&["write -P 4 8M 4M", "flush", "read -P 4 8M 4M", "read -P 1 0 4M"]).ok();
    assert!(!wrote.out.contains("failed"), "{wrote:?}");
    let stopped = server.stop().ok();
    assert!(stopped.err.contains("data0: there is no room where it lies"), "{stopped:?}");
    rig.on("status", &members, &[]).ok();
}

#[test]
fn an_array_without_room_to_recover_says_so_and_loses_no_member() {
    let rig = Rig::new();
    let Some(mount) = small_file_system(&rig.path("small"), "64M") else { return };
    let args = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "32MiB"];
    rig.run(&[&args[..], &["--data", "small/d0", "small/d1", "d2"]].concat()).ok();
    let members = ["small/d0", "small/d1", "d2"];
    rig.serve(&members, &[]).kill();
    // Where the next checkpoint goes was never written, so it needs room: on one of the two at least,
    // whichever hold copies.
    let mut filler = fs::File::create(mount.at.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[7; 4096]).is_ok() {}
    drop(filler);
    let refused = rig.on("serve", &members, &["--run", "true"]).refused(&["no room", "make room"]);
    assert!(refused.err.contains("small/d"), "{refused:?}");
    fs::remove_file(mount.at.join("filler")).unwrap();
    rig.on("serve", &members, &["--run", "true"]).ok();
    rig.on("status", &members, &[]).ok();
}

#[test]
fn allocated_files_have_all_their_room() {
    use std::os::unix::fs::MetadataExt;
    let rig = Rig::new();
    let args = ["create", "--scheme", "elastic", "--parity", "1", "--file-size", "32MiB", "--allocate"];
    rig.run(&[&args[..], &["--data", "d0", "d1", "d2"]].concat()).ok();
    let room = |name: &str| fs::metadata(rig.path(name)).unwrap().blocks() * 512;
    assert!(["d0", "d1", "d2"].iter().all(|name| room(name) >= 32 << 20));
    if has("qemu-io") {
        rig.serve_run(
            &["d0", "d1", "d2"],
            &crate::common::qemu_script(&["write -P 1 0 8M", "flush", "discard 0 8M", "flush"]),
            &[],
        )
        .ok();
        assert!(["d0", "d1", "d2"].iter().all(|name| room(name) >= 32 << 20), "a discard takes no room away");
    }
    rig.on("fail", &["d0", "d1", "d2"], &["--device", "data0", "--yes"]).ok();
    let with = ["--device", "data0", "--with", "n0", "--file-size", "32MiB", "--allocate"];
    rig.on("replace", &["d0", "d1", "d2"], &with).ok();
    assert!(room("n0") >= 32 << 20);
}

#[test]
fn a_device_that_does_not_answer_is_done_without() {
    let rig = Rig::new();
    let Some(mount) = device_of_a_process(&rig, &rig.path("fuse")) else { return };
    if !has("qemu-io") {
        return;
    }
    create(&rig, "fuse/nbd").ok();
    let server = rig.serve(&["fuse/nbd", "d1", "d2"], &["--device-timeout", "1s"]);
    rig.qemu_io(&["write -P 1 0 4M", "flush"]).ok();
    signal(&mount.servers[0], "STOP");
    let begun = Instant::now();
    let ran = rig.qemu_io(&["write -P 2 1M 1M", "flush", "read -P 2 1M 1M", "read -P 1 0 1M"]).ok();
    assert!(!ran.out.contains("failed") && begun.elapsed() < Duration::from_secs(10), "{ran:?}");
    let status = rig.on("status", &["d1"], &["--json"]).code(1).json();
    assert_eq!(device(&status, "data0")["state"], "failed");

    // Only now: whoever looks at the path of the device, as this does, waits for it.
    signal(&mount.servers[0], "CONT");
    rig.on("replace", &["d1"], &["--device", "data0", "--with", "n0", "--file-size", "32MiB", "--wait"]).ok();
    let read = rig.qemu_io(&["read -P 2 1M 1M", "read -P 1 0 1M", "read -P 1 2M 2M"]).ok();
    assert!(!read.out.contains("failed"), "{read:?}");
    let stopped = server.stop().ok();
    assert!(stopped.err.contains("data0 failed (it did not answer in time"), "{stopped:?}");
    rig.on("scrub", &["n0", "d1", "d2"], &[]).ok();
}

/// Members that another process serves stop and go on, with and without the limit being reached.
#[test]
fn a_device_that_answers_again_comes_back_by_what_it_missed() {
    let rig = Rig::new();
    let Some(mount) = device_of_a_process(&rig, &rig.path("fuse")) else { return };
    if !has("qemu-io") {
        return;
    }
    create(&rig, "fuse/nbd").ok();
    let server = rig.serve(&["fuse/nbd", "d1", "d2"], &["--device-timeout", "3s"]);
    rig.qemu_io(&["write -P 1 0 16M", "flush"]).ok();

    // For less than the limit: whoever asks waits, and nobody is out of service.
    signal(&mount.servers[0], "STOP");
    let mut writer = rig.qemu_io_child(&["write -P 2 1M 64k", "flush"]);
    let age = |rig: &Rig| device(&rig.status(&["d1"]), "data0")["oldest_request_ms"].as_u64().unwrap();
    until("a request is old", || age(&rig) > 300);
    signal(&mount.servers[0], "CONT");
    assert!(writer.wait().unwrap().success());
    assert_eq!(rig.status(&["d1"])["state"], "healthy");

    // For longer.
    signal(&mount.servers[0], "STOP");
    let begun = Instant::now();
    let ran = rig.qemu_io(&["write -P 3 2M 64k", "flush", "read -P 3 2M 64k", "read -P 1 8M 1M"]).ok();
    let waited = begun.elapsed();
    assert!(!ran.out.contains("failed") && waited < Duration::from_secs(8), "{waited:?}: {ran:?}");
    let status = rig.status(&["d1"]);
    assert_eq!(
        (&status["state"], &device(&status, "data0")["failed_because"]),
        (&"degraded".into(), &"silent".into())
    );
    rig.qemu_io(&["write -P 4 5M 64k", "flush"]).ok();
    signal(&mount.servers[0], "CONT");
    // What was given up may be under way for a moment more; until then the device stays locked.
    until("it is taken back", || rig.on("online", &["d1"], &["--device", "data0", "--wait"]).code == 0);
    let status = rig.status(&["d1"]);
    let rebuilt = status["last_work"]["chunks_rebuilt"].as_u64().unwrap();
    // The member has 8 MiB of data and 8 of parity in pieces, of which 128 KiB were written meanwhile.
    assert!(status["state"] == "healthy" && rebuilt < 600, "{status:#}");
    let scrub = rig.on("scrub", &["d1"], &["--wait"]).ok();
    assert!(scrub.out.contains("0 chunks healed"), "{scrub:?}");
    server.kill();
    // It has what it ought to: another one is lost.
    let server = rig.serve(&["fuse/nbd", "d2"], &["--degraded"]);
    let reads =
        ["read -P 1 0 1M", "read -P 2 1M 64k", "read -P 3 2M 64k", "read -P 4 5M 64k", "read -P 1 8M 8M"];
    let ran = rig.qemu_io(&reads).ok();
    assert!(!ran.out.contains("failed"), "{ran:?}");
    server.stop().ok();
}

/// Whoever asks a server that recovers for long is told so, and does not wait; a stop ends the start.
#[test]
fn a_server_that_recovers_for_long_says_so() {
    let rig = Rig::new();
    let Some((mount, server)) = tank_on_a_process(&rig, &[]) else { return };
    server.kill();
    drop(mount);
    let Some(slow) = device_that_is(&rig, &rig.path("slow"), &["--filter=delay", "wdelay=8"]) else {
        return;
    };
    let mut serve = rig.command(&["serve", "--nbd", "unix:nbd", "slow/nbd", "d1", "d2"]);
    let mut server = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
    assert!(said.next().unwrap().unwrap().contains("recovery takes longer than 10 s"));

    let recovers = format!("the server of the array, process {}, has been recovering it for 1", server.id());
    for (args, code) in [(&["status", "tank"], 4), (&["status", "d1"], 4), (&["commit", "tank"], 1)] {
        let told = rig.run(args).code(code);
        assert!(told.err.contains(&recovers), "{args:?}: {told:?}");
    }
    fs::copy(rig.path("d1"), rig.path("copy")).unwrap();
    assert!(rig.on("stop", &["copy"], &[]).code(1).err.contains(&recovers), "that may be another array's");
    let stopped = rig.on("stop", &["tank"], &[]).ok();
    assert!(stopped.out.contains("the next start recovers the array"), "{stopped:?}");
    assert_eq!(server.wait().unwrap().signal(), Some(15));
    assert!(said.next().unwrap().unwrap().contains("`stop`: the start is given up"));
    drop(slow);
    assert_eq!(rig.status(&["d1"])["state"], "down");
    let server = rig.serve(&["backing", "d1", "d2"], &[]);
    assert!(!rig.qemu_io(&["read -P 1 0 4M"]).ok().out.contains("failed"));
    server.stop().ok();
}

/// Where the path of a member leads is looked at in each round over the metadata. Its file system may hang.
#[test]
fn a_file_system_that_hangs_holds_up_nobody_who_looks_where_paths_lead() {
    let rig = Rig::new();
    let Some((mount, server)) = tank_on_a_process(&rig, &["--device-timeout", "off"]) else { return };
    // What the kernel knows of the file is good for a second.
    std::thread::sleep(Duration::from_millis(1500));
    signal(&mount.servers[1], "STOP");
    let mut scrub = rig.command(&["scrub", "d1", "--wait"]).stdout(Stdio::null()).spawn().unwrap();
    until("a request is old", || {
        device(&rig.status(&["d1"]), "data0")["oldest_request_ms"].as_u64().unwrap() > 300
    });
    assert!(scrub.try_wait().unwrap().is_none(), "the scrub waits for the device");
    rig.on("fail", &["d1"], &["--device", "data0", "--yes"]).ok();
    until("the scrub goes on", || scrub.try_wait().unwrap().is_some());
    let read = rig.qemu_io(&["read -P 1 0 4M"]).ok();
    assert!(!read.out.contains("failed"), "{read:?}");
    server.signal("TERM");
    signal(&mount.servers[1], "CONT");
    server.wait().ok();
}

/// A device that does not answer at a start counts as one that cannot be read.
#[test]
fn a_start_does_not_wait_for_ever_for_a_device_that_hangs() {
    let rig = Rig::new();
    let Some((mount, server)) = tank_on_a_process(&rig, &[]) else { return };
    server.stop().ok();
    signal(&mount.servers[0], "STOP");
    let server = rig.serve(&["--array", "tank", "fuse/nbd", "d1", "d2"], &["--degraded"]);
    assert_eq!(rig.status(&["d1"])["state"], "degraded");
    assert!(!rig.qemu_io(&["read -P 1 0 4M"]).ok().out.contains("failed"));
    server.signal("TERM");
    // The kernel may keep the process until the device answers.
    signal(&mount.servers[0], "CONT");
    let ended = server.wait().ok();
    assert!(ended.err.contains("fuse/nbd: has not answered for 30 s, and is not waited for"), "{ended:?}");
}

/// Clients and operators do not wait for a spare that has to forget what it was, and does not answer.
#[test]
fn a_spare_that_hangs_when_it_is_called_holds_up_nobody() {
    let rig = Rig::new();
    create(&rig, "d0").ok();
    let Some(mount) = device_of_a_process(&rig, &rig.path("fuse")) else { return };
    let server = rig.serve(&["d0", "d1", "d2"], &[]);
    rig.on("add", &["d1"], &["--spare", "fuse/nbd"]).ok();
    assert!(!rig.qemu_io(&["write -P 1 0 4M", "flush"]).ok().out.contains("failed"));
    signal(&mount.servers[0], "STOP");
    rig.on("fail", &["d1"], &["--device", "data0", "--yes"]).ok();
    // Not those of later: the spare is called soon.
    until("it is called", || rig.status(&["d1"])["devices"].as_array().unwrap().len() == 3);
    let ran = rig.qemu_io(&["write -P 2 1M 1M", "flush", "read -P 1 0 1M", "read -P 2 1M 1M"]).ok();
    assert!(!ran.out.contains("failed"), "{ran:?}");
    assert_eq!(device(&rig.status(&["d1"]), "data0")["state"], "failed");
    signal(&mount.servers[0], "CONT");
    until("it has taken the place", || rig.status(&["d1"])["state"] == "healthy");
    let ran = rig.qemu_io(&["read -P 1 0 1M", "read -P 2 1M 1M"]).ok();
    assert!(!ran.out.contains("failed"), "{ran:?}");
    server.stop().ok();
}

/// A store of keys on a device from which little can be read in a second takes long to open. Whoever asks
/// meanwhile is answered, and a stop ends all in order.
#[test]
fn a_store_of_keys_that_is_opened_for_long_does_not_hold_up_its_operator() {
    let rig = Rig::new();
    let create = ["create", "--name", "tank", "--scheme", "raid", "--parity", "1", "--file-size", "256MiB"];
    rig.run(&[&create[..], &["--data", "backing", "d1", "d2"]].concat()).ok();
    let server = rig.serve_keys(&["backing", "d1", "d2"], &["--create"]);
    let (mut client, word) = (Client::connect(&rig.path("keys")), "x".repeat(16 << 20));
    (0..24).for_each(|number| assert_eq!(client.says(&format!("SET key{number} {word}")), "+OK"));
    drop(client);
    server.stop().ok();
    let slow = device_that_is(&rig, &rig.path("slow"), &["--filter=rate", "rate=2M"]);
    let Some(_slow) = slow else { return };
    let mut serve = rig.command(&["kv", "serve", "slow/nbd", "d1", "d2", "--resp", "unix:keys"]);
    let server = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the store is being opened", || {
        let told = rig.run(&["status", "d1"]);
        told.out.contains("the store of keys is being opened; its clients are served when that is done")
    });
    assert!(rig.on("commit", &["tank"], &[]).ok().err.is_empty(), "it does what it is asked for");
    rig.on("stop", &["tank"], &[]).ok();
    let ended = Ran::of(server.wait_with_output().unwrap()).ok();
    assert!(
        ended.out.contains("stopped in order; 0 connections") && !ended.out.contains("serving at"),
        "{ended:?}"
    );
    let server = rig.serve_keys(&["backing", "d1", "d2"], &[]);
    let mut client = Client::connect(&rig.path("keys"));
    assert_eq!((client.says("GET key23"), client.says("DBSIZE")), (word, ":24".to_owned()));
    drop(client);
    server.stop().ok();
}

#[test]
fn taking_a_hung_device_out_of_service_frees_what_waits_for_it() {
    let rig = Rig::new();
    let Some((mount, server)) = tank_on_a_process(&rig, &["--device-timeout", "off"]) else { return };
    let is_told = || {
        let mut status = rig.command(&["status", "tank"]).stdout(Stdio::null()).spawn().unwrap();
        until("the array is told of by its name", || status.try_wait().unwrap().is_some());
    };
    signal(&mount.servers[0], "STOP");
    let mut writer = rig.qemu_io_child(&["write -P 2 1M 1M", "flush"]);
    until("a request is old", || {
        device(&rig.status(&["d1"]), "data0")["oldest_request_ms"].as_u64().unwrap() > 300
    });
    assert!(writer.try_wait().unwrap().is_none(), "the write waits for the device");
    is_told();
    // Who names the device waits for it, and learns that.
    let mut waits =
        rig.command(&["status", "fuse/nbd"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waits.stderr.take().unwrap()).lines();
    assert_eq!(
        said.next().unwrap().unwrap(),
        "elastripe: fuse/nbd: has not answered for 10 s, and is waited for still"
    );
    rig.on("fail", &["d1"], &["--device", "data0", "--yes"]).ok();
    until("the write is answered", || writer.try_wait().unwrap().is_some());
    let read = rig.qemu_io(&["read -P 2 1M 1M", "read -P 1 2M 2M"]).ok();
    assert!(!read.out.contains("failed"), "{read:?}");
    is_told();
    // The array is stopped in order although the kernel keeps what was under way.
    rig.on("stop", &["d1"], &[]).ok();
    signal(&mount.servers[0], "CONT");
    server.wait().ok();
    waits.wait().unwrap();
    rig.on("status", &["d1", "d2"], &[]).code(1);
}

/// All members lie where there is no room any more: what cannot be had is refused after a while and does not
/// wait for ever, and a member that is taken out of service is out, whatever else has to wait.
#[test]
fn orders_are_answered_although_there_is_no_room() {
    if !has("qemu-io") {
        return;
    }
    for (scheme, logs) in every_scheme() {
        let rig = Rig::new();
        let Some(mount) = small_file_system(&rig.path("small"), "40M") else { return };
        let mut args = vec!["create", "--scheme", scheme, "--parity", "1", "--file-size", "24MiB", "--data"];
        let data = ["small/d0", "small/d1", "small/d2"];
        args.extend(data);
        args.extend(if logs { &["--log", "small/l0"][..] } else { &[] });
        rig.run(&args).ok();
        let members: Vec<&str> = data.into_iter().chain(logs.then_some("small/l0")).collect();
        let server = rig.serve(&members, &["--commit-idle", "off"]);
        rig.qemu_io(&["write -P 1 0 1M", "flush"]).ok();
        let mut filler = fs::File::create(mount.at.join("filler")).unwrap();
        while std::io::Write::write_all(&mut filler, &[7; 64 << 10]).is_ok() {}
        let mut writer = rig.qemu_io_child(&["write -P 2 2M 2M", "flush"]);
        until("writes wait", || rig.status(&["small/d1"])["state"] == "suspended");
        let status = rig.on("status", &["small/d1"], &[]).out;
        assert!(!status.contains("elastripe fail"), "{scheme}: the others lie there, too: {status}");
        let orders = [&["checkpoint", "--full"][..], &["commit"]];
        let ran = orders.map(|order| rig.on(order[0], &["small/d1"], &order[1..]));
        let refused: Vec<&Ran> = ran.iter().filter(|ran| ran.code != 0).collect();
        let names = |ran: &&Ran| {
            ["data", "log"].iter().any(|role| ran.err.contains(&format!("no room where {role}")))
        };
        assert!(!refused.is_empty() && refused.iter().all(names), "{scheme}: {ran:?}");
        rig.on("fail", &["small/d1"], &["--device", "data0", "--yes"]).ok();
        assert_eq!(device(&rig.status(&["small/d1"]), "data0")["state"], "failed", "{scheme}");
        let read = rig.qemu_io(&["read -P 1 0 1M"]);
        assert!(read.out.contains("read 1048576/1048576"), "{scheme}: {read:?}");
        drop(filler);
        fs::remove_file(mount.at.join("filler")).unwrap();
        writer.wait().unwrap();
        until("writes go on", || rig.status(&["small/d1"])["state"] == "degraded");
        rig.qemu_io(&["write -P 3 3M 64k", "flush", "read -P 1 0 1M", "read -P 3 3M 64k"]).ok();
        server.stop().ok();
    }
}
