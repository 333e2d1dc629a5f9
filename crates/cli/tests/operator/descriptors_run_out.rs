//! When a server may open no more files, those who come wait, and find a place when somebody leaves; those
//! who are there do not notice. Nothing turns in a circle meanwhile.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command as Ask, Nbd};
use crate::common::{MEMBERS, Rig, Server, until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

/// From now on the server may have as many files open as it has, and so many more.
fn leave_room_for(server: &Server, more: usize) {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let numbers = open.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<u64>().unwrap());
    let numbers: Vec<u64> = numbers.collect();
    // New ones get the lowest numbers that are free.
    let free = (0..).filter(|number| !numbers.contains(number));
    let limit = free.take(more).last().unwrap() + 1;
    let limit = format!("--nofile={limit}");
    assert!(
        Command::new("prlimit")
            .args(["--pid", &server.pid().to_string(), &limit])
            .status()
            .unwrap()
            .success()
    );
}

/// Time of processors that the server has taken, in hundredths of a second.
fn ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[track_caller]
fn does_not_turn_in_a_circle(server: &Server) {
    let before = ticks(server);
    std::thread::sleep(Duration::from_secs(2));
    let taken = ticks(server) - before;
    assert!(taken < 25, "{taken} hundredths of a second in two seconds");
}

/// A client that may have to wait until it is served.
fn who_waits(rig: &Rig, socket: &str) -> UnixStream {
    let stream = UnixStream::connect(rig.path(socket)).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

#[test]
fn clients_of_the_disk_wait_for_their_place() {
    for threads in ["0", "2"] {
        let rig = Rig::with_array();
        let server = rig.serve(&MEMBERS, &["--socket-threads", threads]);
        let mut first = Nbd::connect(&rig.path("nbd"), LONG);
        first.request(Ask::Write, 0, 4096, &[1; 4096]);
        leave_room_for(&server, 1);
        let second = Nbd::connect(&rig.path("nbd"), LONG);
        let mut third = who_waits(&rig, "nbd");
        let command = ["status", "d0", "--json"];
        let asks = rig.command(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        does_not_turn_in_a_circle(&server);
        first.request(Ask::Write, 4096, 4096, &[2; 4096]);
        drop(second);
        third.read_exact(&mut [0; 18]).unwrap();
        first.request(Ask::Write, 8192, 4096, &[3; 4096]);
        drop(third);
        let status = asks.wait_with_output().unwrap();
        assert!(status.status.success(), "{status:?}");
        assert_eq!(first.read(0, 4096), [1; 4096]);
        drop(first);
        until("the clients have left", || rig.status(&["d0"])["clients"] == 0);
        rig.on("stop", &["d0"], &[]).ok();
        server.wait().ok();
    }
}

fn pong(stream: &mut UnixStream) {
    let mut answer = [0; 7];
    stream.write_all(b"PING\r\n").unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn clients_of_the_keys_wait_for_their_place() {
    let rig = Rig::with_array();
    let server = rig.serve_keys(&MEMBERS, &["--create"]);
    let mut first = who_waits(&rig, "keys");
    pong(&mut first);
    leave_room_for(&server, 1);
    let mut second = who_waits(&rig, "keys");
    pong(&mut second);
    let mut third = who_waits(&rig, "keys");
    let command = ["status", "d0", "--json"];
    let asks = rig.command(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    does_not_turn_in_a_circle(&server);
    pong(&mut first);
    drop(second);
    pong(&mut third);
    pong(&mut first);
    drop(third);
    let status = asks.wait_with_output().unwrap();
    assert!(status.status.success(), "{status:?}");
    pong(&mut first);
    drop(first);
    rig.on("stop", &["d0"], &[]).ok();
    server.wait().ok();
}
