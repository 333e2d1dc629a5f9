//! Whole sessions in memory.

use super::super::wire::{self, Command, Errno, command_flag};
use super::harness::{CHUNK, Reply, World, header, hello, replies};
use crate::Volume as _;
use crate::memory::MemoryVolume;
use crate::session::Session as _;
use crate::{Limits, Punch, VolumeRequest};
use block::{Durability, Random as _, SplitMix};
use std::collections::HashMap;

/// Runs one client's requests after a handshake; returns the replies.
struct Session {
    world: World,
    structured: bool,
}

impl Session {
    fn new(structured: bool, memory: MemoryVolume, limits: Limits) -> Self {
        let mut world = World::new(11, memory, limits, 1);
        world.peers[0].input = hello(structured);
        world.settle();
        world.peers[0].output.clear();
        Self { world, structured }
    }

    fn small(structured: bool) -> Self {
        Self::new(structured, MemoryVolume::new(1 << 20, CHUNK, 64), Limits::default())
    }

    fn run(&mut self, requests: &[(wire::RequestHeader, Vec<u8>)]) -> HashMap<u64, Reply> {
        let peer = &mut self.world.peers[0];
        let mut reads = HashMap::new();
        for (header, payload) in requests {
            wire::put_request(&mut peer.input, header);
            peer.input.extend_from_slice(payload);
            if header.code == Command::Read.code() && !self.structured {
                reads.insert(header.cookie, (header.offset_bytes, header.length_bytes as usize));
            }
        }
        self.world.settle();
        replies(&std::mem::take(&mut self.world.peers[0].output), &reads)
    }

    fn one(&mut self, command: Command, flags: u16, offset: u64, length: u32) -> Reply {
        let payload = if command == Command::Write { vec![0xa5; length as usize] } else { Vec::new() };
        self.run(&[(header(command, flags, 5, offset, length), payload)]).remove(&5).unwrap()
    }
}

fn join(reply: &Reply) -> Vec<u8> {
    let mut parts = reply.data.clone();
    parts.sort();
    parts.concat_data()
}

trait ConcatData {
    fn concat_data(self) -> Vec<u8>;
}

impl ConcatData for Vec<(u64, Vec<u8>)> {
    fn concat_data(self) -> Vec<u8> {
        self.into_iter().flat_map(|(_, data)| data).collect()
    }
}

#[test]
fn what_was_written_is_read_at_any_sector_and_size() {
    for (structured, unit_chunks) in [(false, None), (true, None), (false, Some(3)), (true, Some(5))] {
        // 40 slots: requests of several pieces, and waiting for slots.
        let limits = Limits { piece_bytes_max: 4 * CHUNK, ..Limits::default() };
        let memory = MemoryVolume::new(1 << 20, CHUNK, 40);
        let memory = match unit_chunks {
            Some(chunks) => memory.in_units(chunks * CHUNK as u64),
            None => memory,
        };
        let mut session = Session::new(structured, memory, limits);
        let mut random = SplitMix::new(3);
        let mut model = vec![0; 1 << 20];
        for _ in 0..60 {
            let offset = random.index(1000) * 512;
            let length = (1 + random.index(300)) * 512;
            let byte = u8::try_from(random.index(256)).unwrap();
            let payload: Vec<u8> = (0..length).map(|i| byte.wrapping_add((i / 512) as u8)).collect();
            model[offset..offset + length].copy_from_slice(&payload);
            let write = header(Command::Write, 0, 1, offset as u64, length as u32);
            assert_eq!(session.run(&[(write, payload)])[&1].error, 0);
            let flags = if structured && byte.is_multiple_of(2) { command_flag::DF } else { 0 };
            let from = random.index(offset / 512 + 1) * 512;
            let read = header(Command::Read, flags, 2, from as u64, (offset + length - from) as u32);
            let reply = session.run(&[(read, Vec::new())]).remove(&2).unwrap();
            assert_eq!(reply.error, 0);
            if flags != 0 || !structured {
                assert_eq!(reply.data.len(), 1, "one chunk, or a simple reply");
            }
            assert!(join(&reply) == model[from..offset + length], "read at {from}");
        }
        assert!(session.world.volume.memory.data() == model);
        session.world.close();
    }
}

#[test]
fn many_requests_at_once_are_all_answered_with_few_slots() {
    for structured in [false, true] {
        let limits = Limits { piece_bytes_max: 4 * CHUNK, requests_in_flight_max: 8, ..Limits::default() };
        let mut session = Session::new(structured, MemoryVolume::new(1 << 20, CHUNK, 16), limits);
        let requests: Vec<_> = (0..64u64)
            .map(|cookie| {
                let command = if cookie % 2 == 0 { Command::Write } else { Command::Read };
                let payload = if cookie % 2 == 0 { vec![cookie as u8; 13 * CHUNK] } else { Vec::new() };
                (header(command, 0, cookie, cookie % 10 * 3584, 13 * CHUNK as u32), payload)
            })
            .collect();
        let answers = session.run(&requests);
        assert_eq!(answers.len(), 64);
        for (cookie, reply) in &answers {
            assert!(reply.done && reply.error == 0);
            assert_eq!(join(reply).len(), if cookie % 2 == 0 { 0 } else { 13 * CHUNK });
        }
        session.world.close();
    }
}

/// However few buffers there are, and wherever a request begins.
#[test]
fn no_block_that_must_not_be_torn_comes_in_pieces() {
    const BLOCK: u64 = 16 * CHUNK as u64;
    let mut random = SplitMix::new(3);
    for slots in [16, 40, 100, 600] {
        let memory = MemoryVolume::new(4 << 20, CHUNK, slots).untorn(BLOCK);
        let mut session = Session::new(true, memory, Limits::default());
        for _ in 0..60 {
            let (from, length) = (random.index(4000) * 512, 512 * (1 + random.index(3000)));
            let from = if random.chance(1, 2) { from / CHUNK * CHUNK } else { from };
            session.world.volume.log.clear();
            let reply = session.one(Command::Write, 0, from as u64, length as u32);
            assert!(reply.done && reply.error == 0);
            let mut next = from as u64;
            for request in &session.world.volume.log {
                let VolumeRequest::Write { offset_bytes, length_bytes, .. } = *request else {
                    panic!("{request:?}")
                };
                assert_eq!(offset_bytes, next);
                assert!(
                    next == from as u64 || next.is_multiple_of(BLOCK),
                    "cut at {next} with {slots} slots"
                );
                next += length_bytes;
            }
            assert_eq!(next, (from + length) as u64);
        }
        session.world.close();
    }
}

#[test]
fn requests_reach_the_volume_with_their_flags() {
    let mut session = Session::small(true);
    session.world.volume.log.clear();
    let fua = command_flag::FUA;
    for (command, flags, offset, length) in [
        (Command::Write, fua, 512, 512),
        (Command::Write, 0, 4096, 1024),
        (Command::Flush, 0, 0, 0),
        (Command::Trim, 0, 8192, 65536),
        (Command::WriteZeroes, command_flag::NO_HOLE, 0, 4096),
        (Command::WriteZeroes, fua, 0, 8192),
        (Command::Cache, 0, 0, 1 << 20),
    ] {
        assert_eq!(session.one(command, flags, offset, length).error, 0, "{command:?}");
    }
    let (volatile, durable) = (Durability::Volatile, Durability::Durable);
    let zeroes = |length_bytes, punch, durability| VolumeRequest::WriteZeroes {
        offset_bytes: 0,
        length_bytes,
        punch,
        durability,
    };
    assert_eq!(
        session.world.volume.log,
        [
            VolumeRequest::Write { offset_bytes: 512, length_bytes: 512, durability: durable },
            VolumeRequest::Write { offset_bytes: 4096, length_bytes: 1024, durability: volatile },
            VolumeRequest::Flush,
            VolumeRequest::Discard { offset_bytes: 8192, length_bytes: 65536, durability: volatile },
            zeroes(4096, Punch::Forbidden, volatile),
            zeroes(8192, Punch::Allowed, durable),
            VolumeRequest::Cache { offset_bytes: 0, length_bytes: 1 << 20 },
        ]
    );
    session.world.close();
}

#[test]
fn senseless_requests_get_the_right_error_and_the_session_goes_on() {
    let end = 1 << 20;
    for structured in [false, true] {
        let mut session = Session::small(structured);
        let (inval, nospc) = (Errno::Inval.code(), Errno::NoSpc.code());
        for (command, flags, offset, length, error) in [
            (Command::Read, 0, 1, 512, inval),
            (Command::Read, 0, 0, 513, inval),
            (Command::Write, 0, 0, 100, inval),
            (Command::Read, 0, end, 512, inval),
            (Command::Read, 0, u64::MAX - 511, 512, inval),
            (Command::Trim, 0, end - 512, 1024, inval),
            (Command::Write, 0, end - 512, 1024, nospc),
            (Command::WriteZeroes, 0, end, 512, nospc),
            (Command::WriteZeroes, 1 << 4, 0, 512, inval), // FAST_ZERO is not offered
            (Command::Read, 1 << 15, 0, 512, inval),
            (Command::Write, command_flag::DF, 0, 512, inval),
            (Command::Flush, 0, 0, 512, inval),
            (Command::BlockStatus, 0, 0, 0, inval),
            (Command::Read, 0, 0, 0, 0),
            (Command::Write, 0, 0, 0, 0),
            (Command::Trim, 0, 0, 0, 0),
            (Command::Read, 0, 0, 512, 0),
        ] {
            let reply = session.one(command, flags, offset, length);
            assert_eq!((reply.error, reply.done), (error, true), "{command:?} {flags} {offset} {length}");
        }
        let unknown = wire::RequestHeader { code: 77, ..header(Command::Read, 0, 9, 0, 512) };
        assert_eq!(session.run(&[(unknown, Vec::new())])[&9].error, inval);
        let context = session.one(Command::BlockStatus, 0, 0, 4096);
        assert_eq!(context.error, if structured { 0 } else { inval });
        session.world.close();
    }
}

#[test]
fn requests_above_the_size_limit_are_drained_and_refused() {
    let mut session = Session::new(true, MemoryVolume::new(40 << 20, CHUNK, 64), Limits::default());
    let length = (32 << 20) + 512;
    assert_eq!(session.one(Command::Write, 0, 0, length).error, Errno::Inval.code());
    assert_eq!(session.one(Command::Read, 0, 0, length).error, Errno::Inval.code());
    assert_eq!(session.one(Command::Write, 0, 0, 32 << 20).error, 0);
    assert_eq!(session.one(Command::Trim, 0, 0, 40 << 20).error, 0);
    session.world.close();
}

#[test]
fn a_read_only_volume_refuses_changes() {
    let memory = MemoryVolume::new(1 << 20, CHUNK, 64).into_read_only();
    let mut session = Session::new(true, memory, Limits::default());
    for command in [Command::Write, Command::Trim, Command::WriteZeroes] {
        assert_eq!(session.one(command, 0, 0, 4096).error, Errno::Perm.code());
    }
    assert_eq!(session.one(Command::Read, 0, 0, 4096).error, 0);
    session.world.close();
}

#[test]
fn block_status_tells_holes_from_data() {
    let mut session = Session::small(true);
    session.one(Command::Write, 0, 8192, 8192);
    let all = session.one(Command::BlockStatus, 0, 512, 65536 - 512).extents;
    assert_eq!(all, [(7680, 3), (8192, 0), (49152, 3)]);
    let one = session.one(Command::BlockStatus, command_flag::REQ_ONE, 9216, 65536).extents;
    assert_eq!(one, [(7168, 0)]);
    session.world.close();
}

#[test]
fn volume_errors_reach_the_client() {
    for structured in [false, true] {
        let limits = Limits { piece_bytes_max: 4 * CHUNK, ..Limits::default() };
        let mut session = Session::new(structured, MemoryVolume::new(1 << 20, CHUNK, 64), limits);
        session.world.volume.fail_percent = 100;
        for command in [Command::Read, Command::Write, Command::Flush, Command::Trim] {
            let length = if command == Command::Flush { 0 } else { 64 << 10 };
            let reply = session.one(command, 0, 0, length);
            assert_eq!((reply.error, reply.done), (Errno::Io.code(), true), "{command:?}");
        }
        session.world.volume.fail_percent = 0;
        assert_eq!(session.one(Command::Read, 0, 0, 64 << 10).error, 0);
        session.world.close();
    }
}

#[test]
fn a_simple_read_that_fails_midway_ends_the_connection() {
    let limits = Limits { piece_bytes_max: 4 * CHUNK, ..Limits::default() };
    let faults: Vec<_> = (0..20)
        .map(|seed| {
            let mut world = World::new(seed, MemoryVolume::new(1 << 20, CHUNK, 64), limits, 1);
            world.volume.fail_percent = 10;
            world.peers[0].input = hello(false);
            wire::put_request(&mut world.peers[0].input, &header(Command::Read, 0, 1, 0, 1 << 18));
            world.settle();
            let fault = world.peers[0].fault.clone();
            world.close();
            fault.unwrap_or_default()
        })
        .collect();
    assert!(faults.iter().any(|fault| fault.starts_with("read failed at")), "{faults:?}");
}

#[test]
fn disconnect_answers_what_is_open_and_ends() {
    let mut session = Session::small(true);
    let requests = [
        (header(Command::Write, 0, 1, 0, 4096), vec![1; 4096]),
        (header(Command::Read, 0, 2, 8192, 4096), Vec::new()),
        (header(Command::Disconnect, 0, 3, 0, 0), Vec::new()),
        (header(Command::Read, 0, 4, 0, 4096), Vec::new()),
    ];
    let answers = session.run(&requests);
    assert_eq!((answers[&1].done, answers[&2].done, answers.len()), (true, true, 2));
    assert!(session.world.peers[0].connection.is_finished());
    session.world.close();
}

#[test]
fn a_write_that_failed_leaves_the_queue_for_slots() {
    // 8 slots: 4 for the front end. The engine has all but the one that the write's first piece holds.
    let limits = Limits { piece_bytes_max: CHUNK, ..Limits::default() };
    let mut world = World::new(1, MemoryVolume::new(1 << 20, CHUNK, 8), limits, 5);
    let everything = usize::MAX >> 1;
    let taken: Vec<_> = (0..7).map(|_| world.volume.pool().alloc().unwrap()).collect();
    world.peers[3].input = hello(true);
    wire::put_request(&mut world.peers[3].input, &header(Command::Write, 0, 1, 0, 16384));
    world.peers[3].input.extend([1; 5000]);
    while world.receive(3, everything) {}
    assert_eq!(world.desk.next_waiting().map(|id| id.index), Some(3), "its second piece waits");
    world.volume.fail_percent = 100;
    while world.drive() {}
    world.volume.fail_percent = 0;
    while world.receive(3, everything) {}
    assert_eq!(world.desk.next_waiting(), None, "the rest of its payload is thrown away, not stored");
    world.peers[4].input = hello(true);
    wire::put_request(&mut world.peers[4].input, &header(Command::Read, 0, 1, 0, 512));
    while world.receive(4, everything) {}
    assert_eq!(world.desk.pieces_in_flight(), 1, "the read is started");
    taken.into_iter().for_each(|slot| world.volume.pool().free(slot));
    world.close();
}
