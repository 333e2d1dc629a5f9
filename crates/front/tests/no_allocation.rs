//! Once warm, requests are carried out without a heap allocation.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod counting;

use counting::allocations as allocations_so_far;
use front::Export;
use front::memory::MemoryVolume;
use front::nbd::wire::{self, Command, RequestHeader, option};
use front::nbd::{Connection, Encryption};
use front::{ConnectionId, Context, Desk, Done, Limits, Session as _};
use std::io::IoSlice;

/// A batch of 32 requests of all kinds, some of several chunks.
fn batch() -> Vec<u8> {
    let mut out = Vec::new();
    for cookie in 0..32 {
        let (command, length) = match cookie % 8 {
            0..=2 => (Command::Write, 4096),
            3 => (Command::Read, 4096),
            4 => (Command::Write, 40960),
            5 => (Command::Read, 65536),
            6 => (Command::Flush, 0),
            _ => (Command::BlockStatus, 65536),
        };
        let offset_bytes = if command == Command::Flush { 0 } else { cookie * 8192 + 512 };
        let header =
            RequestHeader { flags: 0, code: command.code(), cookie, offset_bytes, length_bytes: length };
        wire::put_request(&mut out, &header);
        if command == Command::Write {
            out.resize(out.len() + length as usize, 0x31);
        }
    }
    out
}

#[test]
fn steady_state_allocates_nothing() {
    let mut volume = MemoryVolume::new(1 << 20, 4096, 512);
    let export = Export::new("", "", &volume);
    let mut desk = Desk::new(export, Limits::default(), &mut volume);
    let mut connection = Connection::new(ConnectionId { index: 0, generation: 1 }, Encryption::Unavailable);
    let mut hello = 3u32.to_be_bytes().to_vec();
    wire::put_option(&mut hello, option::STRUCTURED_REPLY, &[]);
    let context = [&[0; 4][..], &[0, 0, 0, 1], &[0, 0, 0, 15], wire::CONTEXT_NAME].concat();
    wire::put_option(&mut hello, option::SET_META_CONTEXT, &context);
    wire::put_option(&mut hello, option::EXPORT_NAME, &[]);
    let requests = batch();
    let mut done: Vec<Done> = Vec::new();
    let mut allocations = Vec::with_capacity(10);
    for (round, input) in std::iter::once(&hello).chain([&requests; 8]).enumerate() {
        let before = allocations_so_far();
        let mut used = 0;
        while used < input.len() || desk.requests_open() > 0 || !connection.output().is_empty() {
            let cx = &mut Context { volume: &mut volume, desk: &mut desk };
            cx.desk.begin_turn();
            used += connection.receive(&input[used..], cx).unwrap().0;
            cx.volume.drive(&mut done);
            for finished in done.drain(..) {
                connection.piece_done(finished.tag, finished.result, cx);
            }
            let mut slices = [IoSlice::new(&[]); 64];
            let count = connection.output().gather(cx.volume.pool(), &mut slices);
            let sent = slices[..count].iter().map(|slice| slice.len()).sum();
            connection.sent(sent, cx);
        }
        if round > 4 {
            allocations.push(allocations_so_far() - before);
        }
    }
    assert_eq!(allocations, [0, 0, 0, 0]);
    let counters = desk.counters();
    assert_eq!((counters.errors, counters.requests[front::Command::Write.index()]), (0, 8 * 16));
}
