//! A ring that was not looked into when the client told of a request is looked into later, although nothing
//! tells of it again.

use crate::broken_rings::Raw;
use crate::common::Running;
use block::{Pool, Slot};
use front::memory::MemoryVolume;
use front::{Done, Limits, Volume, VolumeRequest};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Its first request ends when that is allowed, everything after that at once. It has no time of its own.
struct Held {
    memory: MemoryVolume,
    first: Option<(u64, VolumeRequest, Vec<Slot>)>,
    is_free: bool,
    gate: UnixStream,
}

impl Volume for Held {
    fn size_bytes(&self) -> u64 {
        self.memory.size_bytes()
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
        if self.is_free {
            self.memory.start(tag, request, slots);
        } else {
            assert!(self.first.replace((tag, request, slots.to_vec())).is_none(), "one is begun");
        }
    }
    fn drive(&mut self, done: &mut Vec<Done>) {
        if self.gate.read(&mut [0]).is_ok() {
            self.is_free = true;
            if let Some((tag, request, slots)) = self.first.take() {
                self.memory.start(tag, request, &slots);
            }
        }
        self.memory.drive(done);
    }
    fn idle_for(&self) -> Option<u64> {
        None
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.gate.as_fd())
    }
    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        self.memory.allocated(offset_bytes, length_bytes, out);
    }
}

/// The server has nothing to do any more: a while is enough on any machine, and nothing fails if it is not.
fn settle() {
    std::thread::sleep(Duration::from_millis(100));
}

/// A request comes while another one is open and `between` was said.
fn second_request_is_answered(limits: Limits, between: impl FnOnce(&Raw)) {
    let (mut allow, gate) = UnixStream::pair().unwrap();
    gate.set_nonblocking(true).unwrap();
    let memory = MemoryVolume::new(1 << 20, 4096, 64);
    let server = Running::start(Held { memory, first: None, is_free: false, gate }, limits);
    let mut raw = Raw::begin(&server.file("disk"));
    raw.request(1, 8, 512);
    raw.offer(0);
    settle();
    between(&raw);
    settle();
    // The same once more, from other descriptors, as the first one's were read.
    raw.copy_request(4);
    raw.offer(4);
    settle();
    allow.write_all(&[1]).unwrap();
    assert_eq!(raw.answers(2), 2);
    server.stop();
}

#[test]
fn while_a_message_waits_for_the_open_requests() {
    const GET_FEATURES: u32 = 1;
    second_request_is_answered(Limits::default(), |raw| raw.say(GET_FEATURES, &[], &[]));
}

#[test]
fn while_as_many_are_open_as_may_be() {
    second_request_is_answered(Limits { requests_in_flight_max: 1, ..Limits::default() }, |_| {});
}
