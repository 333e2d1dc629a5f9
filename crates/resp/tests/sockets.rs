//! A server with real sockets: clients that come, say nothing, do not read, are too many, and its end.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use front::{Flow, Guard, Interest, Network, Rules};
use resp::memory::MemoryKeys;
use resp::{Fault, Hooks, Limits, Server, Settings, Summary};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long anything is waited for: longer than a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct TestHooks {
    stop: UnixStream,
    faults: Arc<Mutex<Vec<String>>>,
}

impl Hooks<MemoryKeys> for TestHooks {
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        out.push((self.stop.as_fd(), Interest::Read));
    }

    fn on_ready(&mut self, _: RawFd, _: &mut MemoryKeys) -> Flow {
        self.stop.read_exact(&mut [0]).unwrap();
        Flow::Stop
    }

    fn on_fault(&mut self, _: &str, fault: &Fault) {
        self.faults.lock().unwrap().push(fault.to_string());
    }
}

struct Running {
    directory: PathBuf,
    tcp: SocketAddr,
    stop: UnixStream,
    faults: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<Summary>>,
}

impl Running {
    fn new(limits: Limits, settings: Settings, allowed: Vec<Network>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("resp-{}-{number}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let mut server = Server::new(limits, settings);
        server.listen_unix(&directory.join("s")).unwrap();
        let tcp = server.listen_tcp("127.0.0.1:0", Guard::new(Rules { tls: None, allowed })).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let faults = Arc::default();
        let mut hooks = TestHooks { stop: stopped, faults: Arc::clone(&faults) };
        let serve = move || server.run(&mut MemoryKeys::default(), &mut hooks).unwrap();
        Self { directory, tcp, stop, faults, thread: Some(std::thread::spawn(serve)) }
    }

    fn connect(&self) -> UnixStream {
        let client = UnixStream::connect(self.directory.join("s")).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        client
    }

    fn stop(&mut self) -> Summary {
        self.stop.write_all(&[0]).unwrap();
        let summary = self.thread.take().unwrap().join().unwrap();
        assert!(!self.directory.join("s").exists(), "the socket file goes with the server");
        summary
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn plain() -> Running {
    Running::new(Limits::default(), Settings::default(), Vec::new())
}

fn expect(client: &mut impl Read, expected: &str) {
    let mut said = vec![0; expected.len()];
    client.read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), expected);
}

fn expect_end(client: &mut impl Read) -> Vec<u8> {
    let mut rest = Vec::new();
    match client.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    rest
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
fn who_says_nothing_over_the_network_is_asked_whether_he_is_there() {
    let mut server = plain();
    let mut client = TcpStream::connect(server.tcp).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    expect(&mut client, "+PONG\r\n");
    let until = std::time::Instant::now() + PATIENCE;
    // Until our side has confirmed its answer, the kernel waits for that.
    let (kind, after) = loop {
        let (kind, after) = timer(server.tcp, client.local_addr().unwrap());
        if kind != 1 || std::time::Instant::now() > until {
            break (kind, after);
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(kind == 2 && after <= Duration::from_secs(301), "timer {kind} after {after:?}");
    server.stop();
}

#[test]
fn clients_of_both_kinds_of_socket_see_the_same_keys() {
    let mut server = plain();
    let mut one = server.connect();
    let mut other = TcpStream::connect(server.tcp).unwrap();
    one.write_all(b"SET a hello\r\n").unwrap();
    expect(&mut one, "+OK\r\n");
    other.write_all(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n").unwrap();
    expect(&mut other, "$5\r\nhello\r\n");
    // A client that says all at once and then nothing more is answered in full.
    other.write_all(&b"GET a\r\n".repeat(3000)).unwrap();
    other.shutdown(std::net::Shutdown::Write).unwrap();
    expect(&mut other, &"$5\r\nhello\r\n".repeat(3000));
    assert!(expect_end(&mut other).is_empty());
    let summary = server.stop();
    assert_eq!((summary.connections, summary.faults, summary.commands), (2, 0, 3002));
}

#[test]
fn large_values_pass_while_others_are_served() {
    let mut server = plain();
    let (mut large, mut small) = (server.connect(), server.connect());
    let value = vec![b'x'; 20 << 20];
    large.write_all(format!("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n${}\r\n", value.len()).as_bytes()).unwrap();
    large.write_all(&value[..10 << 20]).unwrap();
    small.write_all(b"PING\r\n").unwrap();
    expect(&mut small, "+PONG\r\n");
    large.write_all(&value[10 << 20..]).unwrap();
    large.write_all(b"\r\nGET b\r\n").unwrap();
    expect(&mut large, &format!("+OK\r\n${}\r\n", value.len()));
    small.write_all(b"STRLEN b\r\n").unwrap();
    expect(&mut small, &format!(":{}\r\n", value.len()));
    let mut said = vec![0; value.len() + 2];
    large.read_exact(&mut said).unwrap();
    assert!(said[..value.len()] == value);
    server.stop();
}

#[test]
fn half_a_command_holds_up_neither_others_nor_a_stop() {
    let limits = Limits { stop_timeout_ns: 3_600_000_000_000, ..Limits::default() };
    let mut server = Running::new(limits, Settings::default(), Vec::new());
    let halves = ["P", "*2\r\n$3\r\nGE", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\nxxx"];
    let mut slow: Vec<UnixStream> = halves.iter().map(|_| server.connect()).collect();
    for (client, half) in slow.iter_mut().zip(halves) {
        half.bytes().for_each(|byte| client.write_all(&[byte]).unwrap());
    }
    let mut other = server.connect();
    other.write_all(b"SET a 1\r\n").unwrap();
    expect(&mut other, "+OK\r\n");
    assert_eq!(server.stop().abandoned, 0);
    slow.iter_mut().for_each(|client| assert!(expect_end(client).is_empty()));
}

#[test]
fn who_does_not_read_is_closed_and_named_in_the_log() {
    let limits = Limits { stall_timeout_ns: 300_000_000, ..Limits::default() };
    let mut server = Running::new(limits, Settings::default(), Vec::new());
    let mut client = server.connect();
    client.write_all(format!("SET a {}\r\n", "x".repeat(60_000)).as_bytes()).unwrap();
    expect(&mut client, "+OK\r\n");
    client.write_all(&b"GET a\r\n".repeat(200)).unwrap();
    // Its end is seen by others: the server has one client less.
    let mut other = server.connect();
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        other.write_all(b"CLIENT LIST ID 1\r\n").unwrap();
        let mut said = [0; 512];
        let count = other.read(&mut said).unwrap();
        if said[..count].starts_with(b"$0") {
            break;
        }
        assert!(std::time::Instant::now() < until, "the client is still there");
        std::thread::yield_now();
    }
    let rest = expect_end(&mut client);
    assert!(rest.len() < 200 * 60_000, "not everything was sent");
    assert!(server.faults.lock().unwrap()[0].starts_with("it took none of its answers for"));
    assert_eq!(server.stop().faults, 1);
}

#[test]
fn who_says_nothing_for_long_is_closed_where_that_is_wanted() {
    let limits = Limits { idle_timeout_ns: Some(200_000_000), ..Limits::default() };
    let mut server = Running::new(limits, Settings::default(), Vec::new());
    let mut client = server.connect();
    client.write_all(b"PING\r\n").unwrap();
    expect(&mut client, "+PONG\r\n");
    assert!(expect_end(&mut client).is_empty());
    assert!(server.faults.lock().unwrap()[0].starts_with("it said nothing for"));
    server.stop();
}

/// A value of 1.5 MiB, of which the first `count` bytes are sent.
fn send_half(client: &mut UnixStream, count: usize) {
    client.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1500000\r\n").unwrap();
    client.write_all(&vec![b'x'; count]).unwrap();
}

#[test]
fn who_does_not_go_on_with_a_command_keeps_no_room_from_others() {
    let limits = Limits { command_timeout_ns: Some(1), all_bytes_max: 2 << 20, ..Limits::default() };
    let mut server = Running::new(limits, Settings::default(), Vec::new());
    let mut silent = server.connect();
    send_half(&mut silent, 1_400_000);
    assert!(expect_end(&mut silent).is_empty());
    assert!(server.faults.lock().unwrap()[0].starts_with("a command that it has begun came on by less than"));
    // Half a line holds nothing, and somebody may be typing it; nor does who is through have to go on.
    let mut typing = server.connect();
    typing.write_all(b"PING\r\nPI").unwrap();
    expect(&mut typing, "+PONG\r\n");
    // Longer than the server looks at its limits.
    std::thread::sleep(Duration::from_millis(500));
    typing.write_all(b"NG\r\n").unwrap();
    expect(&mut typing, "+PONG\r\n");
    assert_eq!(server.stop().faults, 1);
}

#[test]
fn who_sends_a_command_byte_by_byte_does_not_go_on_with_it() {
    let limits = Limits { command_timeout_ns: Some(500_000_000), ..Limits::default() };
    let mut server = Running::new(limits, Settings::default(), Vec::new());
    let mut slow = server.connect();
    send_half(&mut slow, 70_000);
    let until = std::time::Instant::now() + PATIENCE;
    while slow.write_all(b"x").is_ok() {
        assert!(std::time::Instant::now() < until, "it is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.stop().faults, 1);
}

#[test]
fn who_is_one_too_many_or_not_allowed_is_turned_away() {
    let limits = Limits { clients_max: 1, ..Limits::default() };
    let mut server = Running::new(limits, Settings::default(), vec!["192.0.2.0/24".parse().unwrap()]);
    let mut client = server.connect();
    client.write_all(b"PING\r\n").unwrap();
    expect(&mut client, "+PONG\r\n");
    let mut second = server.connect();
    assert_eq!(expect_end(&mut second), b"-ERR max number of clients reached\r\n");
    let mut stranger = TcpStream::connect(server.tcp).unwrap();
    assert!(expect_end(&mut stranger).is_empty());
    drop(client);
    let faults = server.faults.lock().unwrap().clone();
    assert_eq!(faults, ["more than 1 clients", "its address is in none of the networks that may connect"]);
    server.stop();
}

#[test]
fn a_breach_of_the_protocol_is_answered_before_the_end() {
    let mut server = plain();
    let mut client = server.connect();
    client.write_all(b"SET a 1\r\n*2\r\n!").unwrap();
    let said = expect_end(&mut client);
    assert_eq!(String::from_utf8_lossy(&said), "+OK\r\n-ERR Protocol error: expected '$', got '!'\r\n");
    server.stop();
    assert_eq!(server.faults.lock().unwrap().as_slice(), ["Protocol error: expected '$', got '!'"]);
}

#[test]
fn a_client_may_stop_the_server_where_that_is_allowed() {
    let settings = Settings { may_shut_down: true, ..Settings::default() };
    let mut server = Running::new(Limits::default(), settings, Vec::new());
    let mut client = server.connect();
    client.write_all(b"SET a 1\r\nSHUTDOWN NOSAVE\r\n").unwrap();
    // Clients take the end of the connection for the answer, and any other one for a failure.
    assert_eq!(String::from_utf8_lossy(&expect_end(&mut client)), "+OK\r\n");
    let summary = server.thread.take().unwrap().join().unwrap();
    assert_eq!((summary.commands, summary.abandoned), (2, 0));
}
