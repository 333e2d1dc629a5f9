//! Socket files, and what happens to requests when the server is told to stop.

use crate::common::{Begun, Running, Stage, Staged, TempDir, TestClient, noise};
use front::memory::MemoryVolume;
use front::nbd::wire::{self, Command};
use front::{Done, Guard, Limits, NoHooks, Protocol, Server, ServerError, ServerOptions, Volume};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

fn small() -> MemoryVolume {
    MemoryVolume::new(1 << 20, 4096, 64)
}

#[test]
fn the_socket_of_a_dead_server_is_replaced_and_ours_removed() {
    let directory = TempDir::new();
    let path = directory.file("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let mut server = Server::new(ServerOptions::default());
    server.listen_unix(Protocol::Nbd, &path).unwrap();
    drop(server);
    assert!(!path.exists());
}

#[test]
fn a_busy_socket_and_a_file_are_left_alone() {
    let directory = TempDir::new();
    let busy = directory.file("busy");
    let _owner = UnixListener::bind(&busy).unwrap();
    let mut server = Server::new(ServerOptions::default());
    let error = server.listen_unix(Protocol::Nbd, &busy).unwrap_err();
    assert!(matches!(error, ServerError::Busy { .. }), "{error}");
    let file = directory.file("file");
    std::fs::write(&file, "precious").unwrap();
    let error = server.listen_unix(Protocol::Nbd, &file).unwrap_err();
    assert!(matches!(error, ServerError::NotASocket { .. }), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let error = server.listen_unix(Protocol::Nbd, &directory.file("none/s")).unwrap_err();
    assert!(matches!(error, ServerError::Listen { .. }), "{error}");
    assert!(matches!(server.run(&mut small(), &mut NoHooks), Err(ServerError::NoListener)));
    drop(server);
    assert!(busy.exists() && file.exists());
}

#[test]
fn tcp_addresses_that_cannot_be_bound_are_named() {
    let mut server = Server::new(ServerOptions::default());
    let bound = server.listen_tcp(Protocol::Nbd, "127.0.0.1:0", Guard::default()).unwrap();
    for address in [bound.to_string(), "no-port".to_owned(), "127.0.0.1:99999".to_owned()] {
        let error = server.listen_tcp(Protocol::Nbd, &address, Guard::default()).unwrap_err().to_string();
        assert!(error.starts_with(&address), "{error}");
    }
}

/// What the kernel will do next about the connection that `local` has with `peer`, and when.
fn timer(local: SocketAddr, peer: SocketAddr) -> (u8, Duration) {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let ends = [local, peer].map(|end| format!("0100007F:{:04X}", end.port()));
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words[1..3] == ends).unwrap();
    let (kind, ticks) = line[5].split_once(':').unwrap();
    let ticks = u64::from_str_radix(ticks, 16).unwrap();
    (kind.parse().unwrap(), Duration::from_millis(ticks * 10))
}

#[test]
fn a_client_of_the_network_that_says_nothing_is_asked_whether_it_is_there() {
    let server = Running::start(small(), Limits::default());
    let mut client = TcpStream::connect(server.tcp).unwrap();
    client.read_exact(&mut [0; wire::GREETING_BYTES]).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    // Until the greeting is confirmed, the kernel waits for that.
    let (kind, after) = loop {
        let (kind, after) = timer(server.tcp, client.local_addr().unwrap());
        if kind != 1 || Instant::now() > until {
            break (kind, after);
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(kind == 2 && after <= Duration::from_secs(301), "timer {kind} after {after:?}");
    server.stop();
}

/// Finishes one request each time its descriptor becomes readable, and only then.
struct Woken {
    queue: std::collections::VecDeque<Begun>,
    ring: UnixStream,
    bell: UnixStream,
    drives: usize,
}

impl Woken {
    fn new() -> Self {
        let (ring, bell) = UnixStream::pair().unwrap();
        bell.set_nonblocking(true).unwrap();
        Self { queue: Default::default(), ring, bell, drives: 0 }
    }
}

impl Stage for Woken {
    fn start(&mut self, _: &mut MemoryVolume, request: Begun) {
        self.queue.push_back(request);
    }
    fn drive(&mut self, memory: &mut MemoryVolume, done: &mut Vec<Done>) {
        self.drives += 1;
        if self.bell.read(&mut [0]).is_ok()
            && let Some(request) = self.queue.pop_front()
        {
            request.start(memory);
            memory.drive(done);
        }
        if !self.queue.is_empty() {
            self.ring.write_all(&[1]).unwrap();
        }
    }
    fn idle_for(&self, _: &MemoryVolume) -> Option<u64> {
        None
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }
}

#[test]
fn completions_announced_by_the_wake_descriptor_arrive() {
    let server = Running::start(Staged { memory: small(), stage: Woken::new() }, Limits::default());
    let mut client = TestClient::connect(&server.socket);
    for cookie in 0..20 {
        client.send(Command::Write, cookie, cookie * 4096, 4096, &noise(cookie, 4096));
    }
    let mut cookies: Vec<_> = (0..20).map(|_| client.reply().1).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..20).collect::<Vec<_>>());
    assert!(client.read(5 * 4096, 4096) == noise(5, 4096));
    let (_, volume) = server.stop();
    assert!(volume.stage.drives < 500, "the reactor drove the volume {} times", volume.stage.drives);
}

/// Finishes everything only after it was driven by itself a number of times.
struct Slow {
    queue: Vec<Begun>,
    countdown: u32,
    started: std::sync::mpsc::Sender<()>,
}

impl Stage for Slow {
    fn start(&mut self, _: &mut MemoryVolume, request: Begun) {
        self.queue.push(request);
        self.started.send(()).unwrap();
    }
    fn drive(&mut self, memory: &mut MemoryVolume, done: &mut Vec<Done>) {
        if self.queue.is_empty() || self.countdown > 0 {
            self.countdown = self.countdown.saturating_sub(u32::from(!self.queue.is_empty()));
            return;
        }
        self.queue.drain(..).for_each(|request| request.start(memory));
        memory.drive(done);
    }
    fn idle_for(&self, _: &MemoryVolume) -> Option<u64> {
        (!self.queue.is_empty()).then_some(1_000_000)
    }
}

#[test]
fn a_stop_answers_requests_in_flight_and_closes() {
    let (sender, started) = std::sync::mpsc::channel();
    let slow = Slow { queue: Vec::new(), countdown: 100, started: sender };
    let mut server = Running::start(Staged { memory: small(), stage: slow }, Limits::default());
    let mut client = TestClient::connect(&server.socket);
    let _idle = TestClient::connect(&server.socket);
    for cookie in 0..10 {
        client.send(Command::Write, cookie, cookie * 4096, 4096, &noise(cookie, 4096));
    }
    (0..10).for_each(|_| started.recv().unwrap());
    server.ask_to_stop();
    let mut cookies: Vec<_> = (0..10).map(|_| client.reply()).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..10).map(|cookie| (0, cookie)).collect::<Vec<_>>());
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
    let socket = server.socket.clone();
    let (summary, volume) = server.join();
    assert!(!socket.exists());
    assert_eq!((summary.abandoned, summary.connections, summary.faults), (0, 2, 0));
    assert!((0..10u64).all(|i| volume.memory.data()[i as usize * 4096..][..4096] == noise(i, 4096)));
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let (sender, started) = std::sync::mpsc::channel();
    let stuck = Slow { queue: Vec::new(), countdown: u32::MAX, started: sender };
    let limits = Limits { stop_timeout_ns: 200_000_000, ..Limits::default() };
    let server = Running::start(Staged { memory: small(), stage: stuck }, limits);
    let mut client = TestClient::connect(&server.socket);
    client.send(Command::Flush, 1, 0, 0, &[]);
    started.recv().unwrap();
    let (summary, _) = server.stop();
    assert_eq!(summary.abandoned, 1);
}
