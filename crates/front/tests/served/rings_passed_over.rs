//! A ring that was not looked into when the client told of a request is looked into later, although nothing
//! tells of it again.

use crate::broken_rings::Raw;
use crate::common::{Begun, Running, Stage, Staged};
use front::memory::MemoryVolume;
use front::{Done, Limits, Volume};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Its first request ends when that is allowed, everything after that at once. It has no time of its own.
struct Held {
    first: Option<Begun>,
    is_free: bool,
    gate: UnixStream,
}

impl Stage for Held {
    fn start(&mut self, memory: &mut MemoryVolume, request: Begun) {
        if self.is_free {
            request.start(memory);
        } else {
            assert!(self.first.replace(request).is_none(), "one is begun");
        }
    }
    fn drive(&mut self, memory: &mut MemoryVolume, done: &mut Vec<Done>) {
        if self.gate.read(&mut [0]).is_ok() {
            self.is_free = true;
            if let Some(first) = self.first.take() {
                first.start(memory);
            }
        }
        memory.drive(done);
    }
    fn idle_for(&self, _: &MemoryVolume) -> Option<u64> {
        None
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.gate.as_fd())
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
    let server = Running::start(Staged { memory, stage: Held { first: None, is_free: false, gate } }, limits);
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
