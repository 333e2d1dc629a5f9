//! One NBD connection before a volume in memory, without sockets.

use front::memory::MemoryVolume;
use front::nbd::{Connection, Encryption};
use front::{ConnectionId, Context, Desk, Export, Limits, Session as _, Volume, Wants};
use std::io::IoSlice;

const CHUNK_BYTES: usize = 4096;

struct Session {
    volume: MemoryVolume,
    desk: Desk,
    connection: Connection,
    ended: bool,
}

impl Session {
    /// What the server does between two looks at the socket: the volume works, replies leave.
    fn work(&mut self) {
        let mut done = Vec::new();
        self.volume.drive(&mut done);
        for done in done {
            let cx = &mut Context { volume: &mut self.volume, desk: &mut self.desk };
            if self.ended {
                cx.desk.orphan_done(cx.volume, done.tag);
            } else {
                self.connection.piece_done(done.tag, done.result, cx);
            }
        }
        let mut slices = [IoSlice::new(&[]); 7];
        let count = self.connection.output().gather(self.volume.pool(), &mut slices);
        let bytes = slices[..count].iter().map(|slice| slice.len()).sum();
        self.connection.sent(bytes, &mut Context { volume: &mut self.volume, desk: &mut self.desk });
    }

    /// Feeds input; how much of it waits for more to come, `None` when the connection is over.
    fn feed(&mut self, mut input: &[u8]) -> Option<usize> {
        // Each round uses bytes or makes room: a bound that no session reaches.
        for _ in 0..100_000 {
            let cx = &mut Context { volume: &mut self.volume, desk: &mut self.desk };
            let Ok((used, wants)) = self.connection.receive(input, cx) else {
                self.connection.abandon(cx);
                self.ended = true;
                return None;
            };
            input = &input[used..];
            self.work();
            match wants {
                Wants::Bytes => return Some(input.len()),
                Wants::Slots | Wants::Room => {}
                Wants::Turn => self.desk.begin_turn(),
                Wants::Encryption => panic!("nobody offered encryption"),
                Wants::Nothing => return None,
            }
        }
        panic!("a connection with a volume that answers at once is stuck");
    }
}

/// The first byte shapes the session and the cuts of the input; the rest is what the client says.
pub fn run(data: &[u8]) {
    let Some((&shape, said)) = data.split_first() else { return };
    let slot_count = 2 + usize::from(shape & 0x3f);
    let limits = Limits { piece_bytes_max: 4 * CHUNK_BYTES, requests_in_flight_max: 5, ..Limits::default() };
    let mut volume = MemoryVolume::new(1 << 16, CHUNK_BYTES, slot_count);
    if shape & 0x40 != 0 {
        volume = volume.into_read_only();
    }
    let desk = Desk::new(Export::new("vol", "fuzzed", &volume), limits, &mut volume);
    let connection = Connection::new(ConnectionId { index: 0, generation: 1 }, Encryption::Unavailable);
    let mut session = Session { volume, desk, connection, ended: false };
    let cut = if shape & 0x80 == 0 { said.len().max(1) } else { 1 + said.len() / 7 };
    let mut waiting: Vec<u8> = Vec::new();
    for part in said.chunks(cut) {
        waiting.extend_from_slice(part);
        let Some(left) = session.feed(&waiting) else { break };
        waiting.drain(..waiting.len() - left);
    }
    let cx = &mut Context { volume: &mut session.volume, desk: &mut session.desk };
    session.connection.input_ended(cx);
    session.connection.abandon(cx);
    session.ended = true;
    session.work();
    assert_eq!(
        (session.desk.slots_held(), session.desk.pieces_in_flight(), session.desk.requests_open()),
        (0, 0, 0)
    );
    assert_eq!(session.volume.pool().free_count(), slot_count);
}
