//! Virtual machines that put nonsense into their rings, and clients that send nonsense: each loses its
//! connection, with a word about why, and nobody else notices.

use crate::common::Running;
use front::Limits;
use front::memory::MemoryVolume;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Where the memory is for the client, and for the disk.
const USER: u64 = 0x7f00_0000_0000;
const GUEST: u64 = 0x1_0000_0000;
const MEMORY_BYTES: u64 = 1 << 20;
/// Places within the memory.
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const TABLE: u64 = 0x3000;
const HEADER: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;
const STATUS: u64 = 0x1_1000;
const RING_SIZE: u16 = 16;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

const SET_FEATURES: u32 = 2;
const SET_OWNER: u32 = 3;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const SET_VRING_BASE: u32 = 10;
const GET_VRING_BASE: u32 = 11;
const SET_VRING_KICK: u32 = 12;
const SET_VRING_CALL: u32 = 13;

const VERSION_1: u64 = 1 << 32;
const INDIRECT_DESCRIPTORS: u64 = 1 << 28;

/// What is to be said of it, and what is done to a ring, or said to the server.
type Breakage<'a> = (&'a str, &'a dyn Fn(&mut Raw));
type Nonsense<'a> = (&'a str, &'a dyn Fn(&Raw));

/// A client made by hand.
pub struct Raw {
    stream: UnixStream,
    memory: File,
    kick: OwnedFd,
    call: OwnedFd,
    next: u16,
}

impl Raw {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let memory: File = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap().into();
        memory.set_len(MEMORY_BYTES).unwrap();
        let event = || eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        Self { stream, memory, kick: event(), call: event(), next: 0 }
    }

    pub fn say(&self, what: u32, words: &[u64], files: &[BorrowedFd<'_>]) {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.send(what, &body, files);
    }

    fn send(&self, what: u32, body: &[u8], files: &[BorrowedFd<'_>]) {
        self.send_bytes(&message(what, body), files);
    }

    fn send_bytes(&self, message: &[u8], files: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
        }
        let flags = SendFlags::NOSIGNAL;
        // Who is disconnected before is found out when it listens.
        let _ = sendmsg(&self.stream, &[IoSlice::new(message)], &mut ancillary, flags);
    }

    fn share_memory(&self, size_bytes: u64) {
        let body = [[1u32.to_le_bytes(), 0u32.to_le_bytes()].concat(), words(&[GUEST, size_bytes, USER, 0])]
            .concat();
        self.send(SET_MEM_TABLE, &body, &[self.memory.as_fd()]);
    }

    fn set_ring(&self, index: u32, size: u32, used_at: u64) {
        let pair = |second: u32| [index.to_le_bytes(), second.to_le_bytes()].concat();
        self.send(SET_VRING_NUM, &pair(size), &[]);
        self.send(SET_VRING_BASE, &pair(0), &[]);
        let places = words(&[USER, used_at, USER + AVAILABLE, 0]);
        self.send(SET_VRING_ADDR, &[pair(0), places].concat(), &[]);
    }

    /// All that is needed before the first request.
    pub fn begin(path: &Path) -> Self {
        let raw = Self::connect(path);
        raw.prepare();
        raw
    }

    fn prepare(&self) {
        let raw = self;
        raw.say(SET_OWNER, &[], &[]);
        raw.say(SET_FEATURES, &[VERSION_1 | INDIRECT_DESCRIPTORS], &[]);
        raw.share_memory(MEMORY_BYTES);
        raw.set_ring(0, RING_SIZE.into(), USER + USED);
        raw.say(SET_VRING_CALL, &[0], &[raw.call.as_fd()]);
        raw.say(SET_VRING_KICK, &[0], &[raw.kick.as_fd()]);
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).unwrap();
    }

    fn descriptor(&self, table: u64, index: u16, (address, length): (u64, u32), (flags, next): (u16, u16)) {
        let halves = [flags.to_le_bytes(), next.to_le_bytes()].concat();
        let bytes = [address.to_le_bytes().to_vec(), length.to_le_bytes().to_vec(), halves].concat();
        self.put(table + u64::from(index) * 16, &bytes);
    }

    /// A request as it should be: head, payload, status, in descriptors 0 to 2.
    pub fn request(&self, what: u32, sector: u64, length: u32) {
        let head = [u64::from(what).to_le_bytes(), sector.to_le_bytes()].concat();
        self.put(HEADER, &head);
        let reads = what == 0 || what == 8;
        self.descriptor(0, 0, (GUEST + HEADER, 16), (NEXT, 1));
        self.descriptor(0, 1, (GUEST + DATA, length), (NEXT | if reads { WRITE } else { 0 }, 2));
        self.descriptor(0, 2, (GUEST + STATUS, 1), (WRITE, 0));
        self.put(STATUS, &[0xee]);
    }

    pub fn offer(&mut self, head: u16) {
        self.put(AVAILABLE + 4 + u64::from(self.next % RING_SIZE) * 2, &head.to_le_bytes());
        self.next = self.next.wrapping_add(1);
        self.put(AVAILABLE + 2, &self.next.to_le_bytes());
        self.ring();
    }

    fn ring(&self) {
        rustix::io::write(&self.kick, &1u64.to_ne_bytes()).unwrap();
    }

    /// Waits for an answer: its status.
    fn status(&self) -> u8 {
        rustix::io::read(&self.call, &mut [0; 8]).unwrap_or_default();
        self.status_unasked()
    }

    /// The same, asking nobody.
    fn status_unasked(&self) -> u8 {
        let mut status = [0];
        for _ in 0..10_000 {
            self.memory.read_exact_at(&mut status, STATUS).unwrap();
            if status != [0xee] {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        status[0]
    }

    /// The same request from three descriptors behind these.
    pub fn copy_request(&self, first: u16) {
        let mut descriptor = [0; 16];
        for index in 0..3 {
            self.memory.read_exact_at(&mut descriptor, u64::from(index) * 16).unwrap();
            let next = u16::from_le_bytes([descriptor[14], descriptor[15]]);
            descriptor[14..].copy_from_slice(&(next + first).to_le_bytes());
            self.put(u64::from(first + index) * 16, &descriptor);
        }
    }

    /// Waits for so many answers in all, for some seconds; how many there are.
    pub fn answers(&self, wanted: u16) -> u16 {
        let mut used = [0; 2];
        for _ in 0..10_000 {
            self.memory.read_exact_at(&mut used, USED + 2).unwrap();
            if u16::from_le_bytes(used) >= wanted {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        u16::from_le_bytes(used)
    }

    /// Waits until the server has hung up.
    fn await_end(&mut self) {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    }
}

fn message(what: u32, body: &[u8]) -> Vec<u8> {
    let head = [what, 1, u32::try_from(body.len()).unwrap()];
    [head.map(u32::to_le_bytes).concat(), body.to_vec()].concat()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn server() -> Running<MemoryVolume> {
    Running::start(MemoryVolume::new(1 << 20, 4096, 64), Limits::default())
}

/// The server still serves, and says why it parted from the last one.
#[track_caller]
fn after(server: &Running<MemoryVolume>, why: &str) {
    let mut raw = Raw::begin(&server.file("disk"));
    raw.request(1, 8, 512);
    raw.offer(0);
    assert_eq!(raw.status(), 0);
    let faults = std::mem::take(&mut *server.faults.lock().unwrap());
    assert!(faults.len() == 1 && faults[0].contains(why), "expected {why:?}: {faults:?}");
}

#[test]
fn a_ring_made_by_hand_works() {
    let server = server();
    let mut raw = Raw::begin(&server.file("disk"));
    raw.put(DATA, &[0x5a; 4096]);
    raw.request(1, 8, 4096);
    raw.offer(0);
    assert_eq!(raw.status(), 0);
    raw.put(DATA, &[0; 4096]);
    raw.request(0, 8, 4096);
    raw.offer(0);
    assert_eq!(raw.status(), 0);
    let mut found = [0; 4096];
    raw.memory.read_exact_at(&mut found, DATA).unwrap();
    assert_eq!(found, [0x5a; 4096]);
    raw.request(8, 0, 20);
    raw.offer(0);
    assert_eq!(raw.status(), 0);
    raw.memory.read_exact_at(&mut found[..20], DATA).unwrap();
    assert_eq!(&found[..20], b"0123456789abcdefghij");
    // What it does not know, and what is not of whole sectors.
    for (what, length, status) in [(77, 512, 2), (1, 100, 1), (0, 1, 1), (11, 15, 1)] {
        raw.request(what, 0, length);
        raw.offer(0);
        assert_eq!(raw.status(), status, "{what}");
    }
    // A table of its own.
    raw.request(1, 8, 512);
    let mut table = [0; 48];
    raw.memory.read_exact_at(&mut table, 0).unwrap();
    raw.put(TABLE, &table);
    raw.descriptor(0, 5, (GUEST + TABLE, 48), (INDIRECT, 0));
    raw.offer(5);
    assert_eq!(raw.status(), 0);
    // The head of a request may lie in several places.
    raw.descriptor(0, 6, (GUEST + HEADER, 7), (NEXT, 7));
    raw.descriptor(0, 7, (GUEST + HEADER + 7, 9 + 512), (NEXT, 2));
    raw.put(STATUS, &[0xee]);
    raw.offer(6);
    assert_eq!(raw.status(), 0);
    // Where it got to is told, and is where another ring may go on.
    raw.send(GET_VRING_BASE, &[0; 8], &[]);
    let mut reply = [0; 20];
    raw.stream.read_exact(&mut reply).unwrap();
    assert_eq!(u32::from_le_bytes(reply[16..].try_into().unwrap()), u32::from(raw.next));
    drop(raw);
    let (summary, volume) = server.stop();
    assert_eq!(summary.faults, 0);
    assert_eq!(volume.data()[4096 + 512], 0x5a);
}

#[test]
fn broken_chains_end_the_connection() {
    let server = server();
    let whole = (GUEST + DATA, 512);
    let breakages: &[Breakage<'_>] = &[
        ("are not in the client's memory", &|raw| {
            raw.descriptor(0, 1, (GUEST + MEMORY_BYTES - 256, 512), (NEXT, 2))
        }),
        ("are not in the client's memory", &|raw| raw.descriptor(0, 1, (USER, 512), (NEXT, 2))),
        ("are not in the client's memory", &|raw| raw.descriptor(0, 1, (u64::MAX - 100, 512), (NEXT, 2))),
        ("are not in the client's memory", &|raw| raw.descriptor(0, 2, (0, 1), (WRITE, 0))),
        ("are not in the client's memory", &|raw| raw.descriptor(0, 0, (0, 16), (NEXT, 1))),
        ("leads behind all addresses", &|raw| raw.descriptor(0, 2, (u64::MAX, 9), (WRITE, 0))),
        ("no room for the status", &|raw| raw.descriptor(0, 2, (GUEST + STATUS, 1), (0, 0))),
        ("no room for the status", &|raw| raw.descriptor(0, 2, (GUEST + STATUS, 0), (WRITE, 0))),
        ("head of the request is too short", &|raw| {
            raw.descriptor(0, 0, (GUEST + HEADER, 15), (NEXT, 2));
        }),
        ("no end", &|raw| raw.descriptor(0, 1, whole, (NEXT, 1))),
        ("no end", &|raw| raw.descriptor(0, 1, whole, (NEXT, RING_SIZE))),
        ("no end", &|raw| raw.descriptor(0, 1, (GUEST + DATA, u32::MAX), (NEXT, 2))),
        ("comes after what is to be written", &|raw| {
            raw.descriptor(0, 0, (GUEST + HEADER, 16), (NEXT | WRITE, 1))
        }),
        ("no end", &|raw| raw.descriptor(0, 0, (GUEST + TABLE, 47), (INDIRECT, 0))),
        ("no end", &|raw| raw.descriptor(0, 0, (GUEST + MEMORY_BYTES, 48), (INDIRECT, 0))),
        ("no end", &|raw| raw.descriptor(0, 0, (GUEST, 16), (INDIRECT, 0))),
        ("more descriptors than", &|raw| {
            let all = 0..2000;
            all.for_each(|index| raw.descriptor(TABLE, index, (GUEST + DATA, 1), (NEXT, index + 1)));
            raw.descriptor(0, 0, (GUEST + TABLE, 32_000), (INDIRECT, 0));
        }),
    ];
    for (why, damage) in breakages {
        let mut raw = Raw::begin(&server.file("disk"));
        raw.request(1, 8, 512);
        damage(&mut raw);
        raw.offer(0);
        raw.await_end();
        after(&server, why);
    }
    // Into which a read is to go that has been done by then.
    let mut raw = Raw::begin(&server.file("disk"));
    raw.request(0, 8, 512);
    raw.descriptor(0, 1, (GUEST + MEMORY_BYTES - 256, 512), (NEXT | WRITE, 2));
    raw.offer(0);
    raw.await_end();
    after(&server, "are not in the client's memory");
    let mut raw = Raw::begin(&server.file("disk"));
    raw.offer(RING_SIZE);
    raw.await_end();
    after(&server, "no end");
    let mut raw = Raw::begin(&server.file("disk"));
    raw.next = 500;
    raw.offer(0);
    raw.await_end();
    after(&server, "what it says is available cannot be");
    server.stop();
}

#[test]
fn messages_without_sense_end_the_connection() {
    let server = server();
    let breakages: &[Nonsense<'_>] = &[
        ("features 0x80, which were not offered", &|raw| raw.say(SET_FEATURES, &[1 << 7], &[])),
        ("of a file of 1048576 bytes", &|raw| raw.share_memory(MEMORY_BYTES + 1)),
        ("with 3 entries", &|raw| raw.set_ring(0, 3, USER + USED)),
        ("with 0 entries", &|raw| raw.set_ring(0, 0, USER + USED)),
        ("ring 64, there are 64", &|raw| raw.set_ring(64, 16, USER + USED)),
        ("which is in no region of its memory", &|raw| raw.set_ring(0, 16, USER + MEMORY_BYTES)),
        ("does not lie within its memory", &|raw| {
            raw.set_ring(0, 16, USER + MEMORY_BYTES - 8);
            raw.say(SET_VRING_KICK, &[0], &[raw.kick.as_fd()]);
        }),
        ("what ring 0 rings with", &|raw| raw.say(SET_VRING_KICK, &[0], &[raw.memory.as_fd()])),
        ("a message of the client", &|raw| raw.say(SET_VRING_KICK, &[0], &[])),
        ("without an event descriptor", &|raw| raw.say(SET_VRING_KICK, &[0x100], &[])),
        ("a message of the client", &|raw| raw.send(999, &[], &[])),
        ("a message of the client", &|raw| raw.send(SET_FEATURES, &[1; 3], &[])),
        ("a message of the client", &|raw| raw.send(SET_FEATURES, &[1; 5000], &[])),
        ("a message of the client", &|raw| (&raw.stream).write_all(&[0xff; 64]).unwrap()),
    ];
    for (why, damage) in breakages {
        let mut raw = Raw::connect(&server.file("disk"));
        raw.say(SET_OWNER, &[], &[]);
        if !why.contains("1048576") {
            raw.share_memory(MEMORY_BYTES);
        }
        damage(&raw);
        raw.await_end();
        after(&server, why);
    }
    server.stop();
}

/// The library that reads messages would wait for the rest of it without end.
#[test]
fn half_a_message_keeps_nobody_waiting() {
    let server = Running::start(
        MemoryVolume::new(1 << 20, 4096, 64),
        Limits { handshake_timeout_ns: 300_000_000, ..Limits::default() },
    );
    for half in [&[3, 0, 0, 0, 1][..], &[2, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1, 2]] {
        let mut raw = Raw::connect(&server.file("disk"));
        raw.stream.write_all(half).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let mut greeting = [0; 18];
        UnixStream::connect(&server.socket).unwrap().read_exact(&mut greeting).unwrap();
        raw.await_end();
        after(&server, "handshake");
    }
    server.stop();
}

#[test]
fn half_a_message_is_not_looked_at_again_and_again() {
    let server = server();
    let raw = Raw::connect(&server.file("disk"));
    raw.say(SET_OWNER, &[], &[]);
    for half in [&[3, 0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1]] {
        (&raw.stream).write_all(half).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let before = server.turns.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        let turns = server.turns.load(Ordering::Relaxed) - before;
        assert!(turns < 20, "the server looked {turns} times at a client that said nothing new");
    }
    drop(raw);
    server.stop();
}

#[test]
fn messages_are_understood_byte_by_byte() {
    let server = server();
    let mut raw = Raw::connect(&server.file("disk"));
    for (what, body) in [(SET_OWNER, vec![]), (SET_FEATURES, words(&[VERSION_1 | INDIRECT_DESCRIPTORS]))] {
        message(what, &body).iter().for_each(|byte| raw.send_bytes(&[*byte], &[]));
    }
    raw.prepare();
    raw.request(1, 8, 512);
    raw.offer(0);
    assert_eq!(raw.status(), 0);
    server.stop();
}

/// Nothing of a message can be looked at beyond a piece of it that comes with descriptors.
#[test]
fn descriptors_with_a_part_of_a_message_are_refused_and_closed() {
    let server = server();
    let message = message(SET_VRING_KICK, &words(&[0]));
    for with in 0..message.len() {
        let mut raw = Raw::connect(&server.file("disk"));
        raw.say(SET_OWNER, &[], &[]);
        let (mut own, theirs) = UnixStream::pair().unwrap();
        for (index, byte) in message.iter().enumerate() {
            let files = [theirs.as_fd()];
            raw.send_bytes(&[*byte], if index == with { &files } else { &[] });
        }
        drop(theirs);
        raw.await_end();
        after(&server, if with < 11 { "descriptors came with a part" } else { "a message of the client" });
        own.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(own.read(&mut [0]).unwrap(), 0, "with byte {with}: the descriptor is open still");
    }
    server.stop();
}

#[test]
fn a_client_that_never_takes_its_calls_keeps_nobody_waiting() {
    let server = server();
    let mut raw = Raw::connect(&server.file("disk"));
    // As full as a counter can be; and whoever has the descriptor decides whether writing to it blocks.
    rustix::io::write(&raw.call, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    raw.prepare();
    raw.request(1, 8, 512);
    raw.offer(0);
    assert_eq!(raw.status_unasked(), 0);
    raw.request(1, 16, 512);
    let flags = rustix::fs::fcntl_getfl(&raw.call).unwrap();
    rustix::fs::fcntl_setfl(&raw.call, flags - rustix::fs::OFlags::NONBLOCK).unwrap();
    raw.offer(0);
    let mut greeting = [0; 18];
    let mut other = UnixStream::connect(&server.socket).unwrap();
    other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    other.read_exact(&mut greeting).unwrap();
    assert_eq!(raw.status_unasked(), 0);
    server.stop();
}

/// Noise in all of the memory, rings included.
#[test]
fn noise_harms_nobody_else() {
    let server = server();
    let mut state = 0x5eed_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..400 {
        let mut raw = Raw::begin(&server.file("disk"));
        raw.request(u32::try_from(random() % 14).unwrap(), random() % 4096, 512);
        for _ in 0..1 + random() % 6 {
            // Most of it near what is there, so that it gets somewhere.
            let at = match random() % 4 {
                0 => random() % 64,
                1 => AVAILABLE + random() % 40,
                2 => HEADER + random() % 16,
                _ => USED + random() % 140,
            };
            let value = if random() % 2 == 0 { random() % 8 } else { random() };
            raw.put(at, &value.to_le_bytes()[..1 + usize::try_from(random() % 8).unwrap()]);
        }
        (0..3).for_each(|_| raw.offer(u16::try_from(random() % 4).unwrap()));
        if round % 3 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    server.faults.lock().unwrap().clear();
    let mut raw = Raw::begin(&server.file("disk"));
    raw.request(1, 8, 512);
    raw.offer(0);
    assert_eq!(raw.status(), 0);
    drop(raw);
    server.stop();
}
