//! A server in a thread of its own, a small client, and the tools that must be there.

use block::{Pool, Slot};
use front::memory::MemoryVolume;
use front::nbd::wire::{self, Command, RequestHeader, option};
use front::{
    Done, Flow, Guard, Hooks, Interest, Limits, Protocol, Server, ServerError, ServerOptions, Summary,
    Volume, VolumeRequest,
};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A directory that is removed at the end.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("front-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Stops the server when its other end is written to; keeps the faults.
pub struct TestHooks {
    stop: UnixStream,
    faults: Arc<Mutex<Vec<String>>>,
    turns: Arc<AtomicU64>,
}

impl<V: Volume> Hooks<V> for TestHooks {
    fn on_turn(&mut self, _: &mut V) -> Flow {
        self.turns.fetch_add(1, Ordering::Relaxed);
        Flow::Continue
    }

    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        out.push((self.stop.as_fd(), Interest::Read));
    }

    fn on_ready(&mut self, _: RawFd, _: &mut V) -> Flow {
        self.stop.read_exact(&mut [0]).unwrap();
        Flow::Stop
    }

    fn on_fault(&mut self, _: &str, fault: &front::Fault) {
        self.faults.lock().unwrap().push(fault.to_string());
    }
}

/// A volume in memory, whose answers a test has come when it wants.
pub struct Staged<S> {
    pub memory: MemoryVolume,
    pub stage: S,
}

/// What a test does with requests, in place of the volume.
pub trait Stage {
    fn size_bytes(&self, memory: &MemoryVolume) -> u64 {
        memory.size_bytes()
    }
    fn start(&mut self, memory: &mut MemoryVolume, request: Begun) {
        request.start(memory);
    }
    fn drive(&mut self, memory: &mut MemoryVolume, done: &mut Vec<Done>) {
        memory.drive(done);
    }
    fn idle_for(&self, memory: &MemoryVolume) -> Option<u64> {
        memory.idle_for()
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn allocated(&self, memory: &MemoryVolume, asked: Range<u64>, out: &mut Vec<(u64, bool)>) {
        memory.allocated(asked.start, asked.end - asked.start, out);
    }
}

/// A request the volume was given.
pub struct Begun {
    tag: u64,
    request: VolumeRequest,
    slots: Vec<Slot>,
}

impl Begun {
    pub fn start(self, memory: &mut MemoryVolume) {
        memory.start(self.tag, self.request, &self.slots);
    }
}

impl<S: Stage> Volume for Staged<S> {
    fn size_bytes(&self) -> u64 {
        self.stage.size_bytes(&self.memory)
    }
    fn chunk_bytes(&self) -> usize {
        self.memory.chunk_bytes()
    }
    fn untorn_bytes(&self) -> u64 {
        0
    }
    fn read_only(&self) -> bool {
        false
    }
    fn pool(&mut self) -> &mut Pool {
        self.memory.pool()
    }
    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        self.stage.start(&mut self.memory, Begun { tag, request, slots: slots.to_vec() });
    }
    fn drive(&mut self, done: &mut Vec<Done>) {
        self.stage.drive(&mut self.memory, done);
    }
    fn idle_for(&self) -> Option<u64> {
        self.stage.idle_for(&self.memory)
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stage.wake_fd()
    }
    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        self.stage.allocated(&self.memory, offset_bytes..offset_bytes + length_bytes, out);
    }
}

/// A running server.
pub struct Running<V> {
    pub socket: PathBuf,
    pub directory: TempDir,
    pub tcp: std::net::SocketAddr,
    pub faults: Arc<Mutex<Vec<String>>>,
    /// How often the server has looked what there is to do.
    #[cfg_attr(not(feature = "vhost-user"), expect(dead_code, reason = "only rings can be half heard"))]
    pub turns: Arc<AtomicU64>,
    stop: UnixStream,
    thread: JoinHandle<(Result<Summary, ServerError>, V)>,
}

impl<V: Volume + Send + 'static> Running<V> {
    pub fn start(mut volume: V, limits: Limits) -> Self {
        let directory = TempDir::new();
        let socket = directory.file("nbd.sock");
        let options = ServerOptions {
            export_name: "vol".to_owned(),
            description: "under test".to_owned(),
            serial: *b"0123456789abcdefghij",
            limits,
        };
        let mut server = Server::new(options);
        server.listen_unix(Protocol::Nbd, &socket).unwrap();
        #[cfg(feature = "vhost-user")]
        server.listen_unix(Protocol::VhostUserBlk, &directory.file("disk")).unwrap();
        let tcp = server.listen_tcp(Protocol::Nbd, "127.0.0.1:0", Guard::default()).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let faults = Arc::new(Mutex::new(Vec::new()));
        let turns = Arc::new(AtomicU64::new(0));
        let mut hooks = TestHooks { stop: stopped, faults: faults.clone(), turns: turns.clone() };
        let thread = std::thread::spawn(move || (server.run(&mut volume, &mut hooks), volume));
        Self { socket, directory, tcp, faults, turns, stop, thread }
    }

    pub fn ask_to_stop(&mut self) {
        self.stop.write_all(&[1]).unwrap();
    }

    pub fn join(self) -> (Summary, V) {
        let (summary, volume) = self.thread.join().unwrap();
        (summary.unwrap(), volume)
    }

    pub fn stop(mut self) -> (Summary, V) {
        self.ask_to_stop();
        self.join()
    }

    pub fn uri(&self) -> String {
        format!("nbd+unix:///vol?socket={}", self.socket.display())
    }

    pub fn tcp_uri(&self) -> String {
        format!("nbd://{}/vol", self.tcp)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }
}

/// Whether the tools are there; says loudly if not.
pub fn have(tools: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing: Vec<_> = tools
        .iter()
        .filter(|tool| !std::env::split_paths(&path).any(|directory| directory.join(tool).exists()))
        .collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED: {missing:?} not installed (Debian: libnbd-bin qemu-utils fio)");
    }
    missing.is_empty()
}

/// Runs a tool, which must succeed; returns what it printed.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = output(program, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{text}{errors}", output.status);
    assert!(!text.contains("Pattern verification failed"), "{program} {arguments:?}:\n{text}");
    text
}

/// Runs a tool.
pub fn output(program: &str, arguments: &[&str]) -> Output {
    std::process::Command::new(program).args(arguments).output().unwrap()
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A client that uses simple replies.
pub struct TestClient(pub UnixStream);

impl TestClient {
    /// In the transmission phase.
    pub fn connect(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        let mut hello = 3u32.to_be_bytes().to_vec();
        wire::put_option(&mut hello, option::EXPORT_NAME, b"vol");
        stream.write_all(&hello).unwrap();
        stream.read_exact(&mut [0; 28]).unwrap();
        Self(stream)
    }

    /// Sends a request.
    pub fn send(
        &mut self,
        command: Command,
        cookie: u64,
        offset_bytes: u64,
        length_bytes: u32,
        payload: &[u8],
    ) {
        let mut out = Vec::new();
        let header = RequestHeader { flags: 0, code: command.code(), cookie, offset_bytes, length_bytes };
        wire::put_request(&mut out, &header);
        out.extend_from_slice(payload);
        self.0.write_all(&out).unwrap();
    }

    /// Takes a reply's header: error and cookie.
    pub fn reply(&mut self) -> (u32, u64) {
        let mut head = [0; 16];
        self.0.read_exact(&mut head).unwrap();
        assert_eq!(head[..4], wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
        let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
        (error, u64::from_be_bytes(head[8..].try_into().unwrap()))
    }

    /// Writes and waits.
    pub fn write(&mut self, offset_bytes: u64, data: &[u8]) {
        self.send(Command::Write, 1, offset_bytes, u32::try_from(data.len()).unwrap(), data);
        assert_eq!(self.reply(), (0, 1));
    }

    /// Reads and waits.
    pub fn read(&mut self, offset_bytes: u64, length_bytes: u32) -> Vec<u8> {
        self.send(Command::Read, 2, offset_bytes, length_bytes, &[]);
        assert_eq!(self.reply(), (0, 2));
        let mut data = vec![0; length_bytes as usize];
        self.0.read_exact(&mut data).unwrap();
        data
    }
}

/// Bytes that differ everywhere, from a seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    out.truncate(length);
    out
}
