//! Clients that break the protocol, stall or flood lose their connection; the others do not notice.

use crate::common::{Running, TestClient, noise};
use front::Limits;
use front::memory::MemoryVolume;
use front::nbd::wire::Command;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

const SECOND_NS: u64 = 1_000_000_000;

fn start(limits: Limits) -> Running<MemoryVolume> {
    Running::start(MemoryVolume::new(4 << 20, 4096, 64), limits)
}

/// Waits until the server closes the connection.
fn wait_for_close(stream: &mut UnixStream) {
    let mut rest = [0; 65536];
    while stream.read(&mut rest).is_ok_and(|count| count > 0) {}
}

#[test]
fn garbage_beside_a_good_client() {
    let server = start(Limits::default());
    let mut good = TestClient::connect(&server.socket);
    for seed in 0..40 {
        let mut bad = if seed % 2 == 0 {
            UnixStream::connect(&server.socket).unwrap()
        } else {
            TestClient::connect(&server.socket).0
        };
        let _ = bad.write_all(&noise(seed, 5000)); // the server may have hung up already
        let data = noise(seed, 20480);
        good.write(seed * 512, &data);
        assert!(good.read(seed * 512, 20480) == data);
        wait_for_close(&mut bad);
    }
    let (summary, _) = server.stop();
    assert_eq!(summary.faults, 40);
}

#[test]
fn several_clients_at_once_see_each_others_writes() {
    let server = start(Limits::default());
    let socket = &server.socket;
    std::thread::scope(|scope| {
        for number in 0..8u64 {
            scope.spawn(move || {
                let mut client = TestClient::connect(socket);
                for round in 0..50 {
                    let data = noise(number * 100 + round, 65536);
                    client.write(number << 18, &data);
                    assert!(client.read(number << 18, 65536) == data);
                }
            });
        }
    });
    let mut other = TestClient::connect(socket);
    assert!((0..8).all(|number| other.read(number << 18, 65536) == noise(number * 100 + 49, 65536)));
    drop(other);
    server.stop();
}

#[test]
fn a_client_that_sits_on_slots_is_cut_off_when_others_wait() {
    let server = start(Limits { stall_timeout_ns: SECOND_NS / 5, ..Limits::default() });
    // 64 slots: 32 for the front end, 8 for a piece. Four stalling writers hold all of them.
    let mut stalling: Vec<_> = (0..4)
        .map(|_| {
            let mut client = TestClient::connect(&server.socket);
            client.send(Command::Write, 1, 0, 1 << 20, &[0; 512]);
            client
        })
        .collect();
    let mut good = TestClient::connect(&server.socket);
    let data = noise(1, 1 << 20);
    good.write(1 << 20, &data);
    assert!(good.read(1 << 20, 1 << 20) == data);
    stalling.iter_mut().for_each(|client| {
        let _ = client.0.shutdown(Shutdown::Write);
        wait_for_close(&mut client.0);
    });
    server.stop();
}

#[test]
fn a_client_that_does_not_read_its_replies_does_not_stop_the_others() {
    let server = start(Limits { stall_timeout_ns: SECOND_NS / 5, ..Limits::default() });
    let mut deaf: Vec<_> = (0..3).map(|_| TestClient::connect(&server.socket)).collect();
    for client in &mut deaf {
        for cookie in 0..16 {
            client.send(Command::Read, cookie, 0, 1 << 20, &[]);
        }
    }
    let mut good = TestClient::connect(&server.socket);
    let data = noise(2, 1 << 20);
    good.write(0, &data);
    assert!(good.read(0, 1 << 20) == data);
    drop(deaf);
    server.stop();
}

#[test]
fn clients_that_read_slowly_leave_room_for_another() {
    // 32 slots for the front end, 8 for a piece: one client that does not read has half of them, the next
    // one a quarter.
    let server = start(Limits::default());
    let mut slow: Vec<_> = (0..2).map(|_| TestClient::connect(&server.socket)).collect();
    for client in &mut slow {
        for cookie in 0..16 {
            client.send(Command::Read, cookie, 0, 1 << 20, &[]);
        }
    }
    let mut good = TestClient::connect(&server.socket);
    for round in 0..8 {
        let data = noise(round, 1 << 20);
        good.write(0, &data);
        assert!(good.read(0, 1 << 20) == data);
    }
    assert_eq!(*server.faults.lock().unwrap(), [""; 0], "nobody was cut off for it");
    drop(slow);
    server.stop();
}

#[test]
fn a_handshake_has_to_end_in_time() {
    let server = start(Limits { handshake_timeout_ns: SECOND_NS / 10, ..Limits::default() });
    let mut quiet = UnixStream::connect(&server.socket).unwrap();
    wait_for_close(&mut quiet);
    let faults = server.faults.clone();
    server.stop();
    assert_eq!(*faults.lock().unwrap(), ["handshake not finished in time"]);
}

#[test]
fn connections_are_limited() {
    let server = start(Limits { connections_max: 2, ..Limits::default() });
    let mut kept = [TestClient::connect(&server.socket), TestClient::connect(&server.socket)];
    let mut third = UnixStream::connect(&server.socket).unwrap();
    assert_eq!(third.read(&mut [0; 8]).unwrap(), 0);
    kept.iter_mut().for_each(|client| client.write(0, &[1; 512]));
    let [first, _second] = kept;
    let mut first = first.0;
    first.shutdown(Shutdown::Write).unwrap();
    wait_for_close(&mut first);
    TestClient::connect(&server.socket).write(0, &[1; 512]);
    server.stop();
}

#[test]
fn requests_before_a_half_close_are_answered() {
    let server = start(Limits::default());
    let mut client = TestClient::connect(&server.socket);
    client.send(Command::Write, 7, 0, 4096, &[3; 4096]);
    client.send(Command::Read, 8, 0, 512, &[]);
    client.0.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 16 + 16 + 512);
    assert_eq!(rest[32..], [3; 512]);
    let (summary, _) = server.stop();
    assert_eq!(summary.faults, 0);
}
