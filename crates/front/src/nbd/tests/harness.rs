//! A world of connections without sockets: input arrives in random bits, output leaves in random bits, and
//! the volume finishes requests late, in any order, some with errors.

use super::super::wire::{self, Command, RequestHeader, option};
use super::super::{Connection, Encryption};
use crate::Export;
use crate::memory::MemoryVolume;
use crate::session::{Session as _, Wants, spans};
use crate::{ConnectionId, Context, Desk, Done, Limits, Volume, VolumeError, VolumeRequest};
use block::{Pool, Random as _, Slot, SplitMix};
use std::collections::HashMap;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

/// A volume that takes its time.
pub struct LateVolume {
    pub memory: MemoryVolume,
    pub fail_percent: usize,
    pub log: Vec<VolumeRequest>,
    queue: Vec<(u64, VolumeRequest, Vec<Slot>)>,
    random: SplitMix,
}

impl LateVolume {
    pub fn new(memory: MemoryVolume, seed: u64) -> Self {
        Self { memory, fail_percent: 0, log: Vec::new(), queue: Vec::new(), random: SplitMix::new(seed) }
    }

    /// Fills what lies outside the request in its slots with rubbish, as an engine may.
    fn scribble(&mut self, request: VolumeRequest, slots: &[Slot]) {
        let (offset, length) = match request {
            VolumeRequest::Read { offset_bytes, length_bytes } => (offset_bytes, length_bytes),
            VolumeRequest::Write { offset_bytes, length_bytes, .. } => (offset_bytes, length_bytes),
            _ => return,
        };
        if let Some(unit) = self.memory.unit_bytes() {
            assert!(offset / unit == (offset + length - 1) / unit, "a piece crosses the end of a unit");
        }
        let chunk = self.memory.chunk_bytes();
        let start = usize::try_from(offset % chunk as u64).unwrap();
        let length = usize::try_from(length).unwrap();
        assert_eq!(slots.len(), (start + length).div_ceil(chunk), "one slot per chunk touched");
        for (index, from, length) in spans(start, length, chunk) {
            let bytes = self.memory.pool().bytes_mut(slots[index]);
            bytes[..from].fill(0xee);
            bytes[from + length..].fill(0xee);
        }
    }
}

impl Volume for LateVolume {
    fn size_bytes(&self) -> u64 {
        self.memory.size_bytes()
    }
    fn chunk_bytes(&self) -> usize {
        self.memory.chunk_bytes()
    }
    fn untorn_bytes(&self) -> u64 {
        self.memory.untorn_bytes()
    }

    fn unit_bytes(&self) -> Option<u64> {
        self.memory.unit_bytes()
    }

    fn read_only(&self) -> bool {
        self.memory.read_only()
    }
    fn pool(&mut self) -> &mut Pool {
        self.memory.pool()
    }
    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        self.log.push(request);
        self.scribble(request, slots);
        self.queue.push((tag, request, slots.to_vec()));
    }
    fn drive(&mut self, done: &mut Vec<Done>) {
        for _ in 0..self.random.index(self.queue.len() + 1).max(1).min(self.queue.len()) {
            let at = self.random.index(self.queue.len());
            let (tag, request, slots) = self.queue.swap_remove(at);
            if self.random.index(100) < self.fail_percent {
                done.push(Done { tag, result: Err(VolumeError::Io) });
                continue;
            }
            self.memory.start(tag, request, &slots);
            self.memory.drive(done);
            self.scribble(request, &slots);
        }
    }
    fn idle_for(&self) -> Option<u64> {
        None
    }
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        self.memory.allocated(offset_bytes, length_bytes, out);
    }
}

/// One client: what it will say, and what it was told.
pub struct Peer {
    pub connection: Connection,
    pub input: Vec<u8>,
    pub output: Vec<u8>,
    pub fault: Option<String>,
    /// How much of the input has arrived, and how much of that was used.
    arrived: usize,
    used: usize,
    wants: Wants,
}

/// Clients, desk and volume.
pub struct World {
    pub volume: LateVolume,
    pub desk: Desk,
    pub peers: Vec<Peer>,
    random: SplitMix,
}

pub const CHUNK: usize = 4096;

impl World {
    pub fn new(seed: u64, memory: MemoryVolume, limits: Limits, peer_count: u32) -> Self {
        let mut volume = LateVolume::new(memory, seed);
        let desk = Desk::new(Export::new("vol", "a test", &volume), limits, &mut volume);
        let peers = (0..peer_count)
            .map(|index| Peer {
                connection: Connection::new(ConnectionId { index, generation: 1 }, Encryption::Unavailable),
                input: Vec::new(),
                output: Vec::new(),
                fault: None,
                arrived: 0,
                used: 0,
                wants: Wants::Bytes,
            })
            .collect();
        Self { volume, desk, peers, random: SplitMix::new(seed ^ 0x5eed) }
    }

    /// Lets a peer's connection look at what has arrived; `more` more bytes arrive before.
    pub fn receive(&mut self, index: usize, more: usize) -> bool {
        let peer = &mut self.peers[index];
        if peer.fault.is_some() || peer.connection.is_finished() {
            return false;
        }
        let started_before = self.volume.log.len();
        let cx = &mut Context { volume: &mut self.volume, desk: &mut self.desk };
        let arrived = (peer.arrived + more).min(peer.input.len());
        let mut progress = arrived > peer.arrived;
        peer.arrived = arrived;
        if let Some(target) = peer.connection.payload_target(cx.desk)
            && self.random.index(2) == 0
        {
            // As the server does when it receives payload right into slots.
            let count = target.length_bytes.min(arrived - peer.used);
            for (slot, start, length) in spans(target.start_bytes, count, CHUNK) {
                let from = &peer.input[peer.used..peer.used + length];
                cx.volume.pool().bytes_mut(target.slots[slot])[start..start + length].copy_from_slice(from);
                peer.used += length;
            }
            peer.connection.payload_received(count, cx);
            progress |= count > 0;
        }
        cx.desk.begin_turn();
        match peer.connection.receive(&peer.input[peer.used..peer.arrived], cx) {
            Ok((used, wants)) => {
                progress |= used > 0 || wants != peer.wants;
                peer.used += used;
                peer.wants = wants;
            }
            Err(fault) => {
                peer.fault = Some(fault.to_string());
                peer.connection.abandon(cx);
                progress = true;
            }
        }
        progress || self.volume.log.len() > started_before
    }

    fn send(&mut self, index: usize, at_most: usize) -> bool {
        let peer = &mut self.peers[index];
        let mut slices = [IoSlice::new(&[]); 7];
        let count = peer.connection.output().gather(self.volume.pool(), &mut slices);
        let before = peer.output.len();
        slices[..count].iter().for_each(|slice| peer.output.extend_from_slice(slice));
        peer.output.truncate(before + at_most);
        let sent = peer.output.len() - before;
        peer.connection.sent(sent, &mut Context { volume: &mut self.volume, desk: &mut self.desk });
        sent > 0
    }

    pub fn drive(&mut self) -> bool {
        let mut done = Vec::new();
        self.volume.drive(&mut done);
        for &Done { tag, result } in &done {
            let peer = &mut self.peers[self.desk.connection_of(tag).index as usize];
            let cx = &mut Context { volume: &mut self.volume, desk: &mut self.desk };
            if peer.fault.is_some() {
                cx.desk.orphan_done(cx.volume, tag);
            } else {
                peer.connection.piece_done(tag, result, cx);
            }
        }
        !done.is_empty()
    }

    /// One random thing happens.
    pub fn step(&mut self) {
        let index = self.random.index(self.peers.len());
        let amount = [1, 20, 600, 10_000, 1 << 20][self.random.index(5)];
        match self.random.index(4) {
            0 | 1 => self.receive(index, amount),
            2 => self.send(index, amount),
            _ => self.drive(),
        };
    }

    /// Everything happens that can happen. Then nobody may be stuck.
    pub fn settle(&mut self) {
        for _ in 0..50 {
            self.step();
        }
        loop {
            let mut progress = self.drive();
            for index in 0..self.peers.len() {
                let amount = 1 + self.random.index(1 << 16);
                progress |= self.receive(index, amount);
                progress |= self.send(index, amount);
            }
            if !progress && !self.cut_off_stalled() {
                break;
            }
        }
        for (index, peer) in self.peers.iter().enumerate() {
            let stuck = peer.fault.is_none() && matches!(peer.wants, Wants::Slots | Wants::Room);
            assert!(
                !stuck,
                "connection {index} is stuck in {:?}, wanting {:?}",
                peer.connection.phase, peer.wants
            );
        }
        assert_eq!(self.desk.pieces_in_flight(), self.half_written_count());
    }

    /// Pieces that wait for the rest of their payload.
    fn half_written_count(&self) -> usize {
        self.peers.iter().filter(|peer| peer.connection.payload_target(&self.desk).is_some()).count()
    }

    /// What the server's time limit does: who owes payload, has nothing more to say and holds slots that
    /// others wait for, is cut off.
    fn cut_off_stalled(&mut self) -> bool {
        let mut any = false;
        for peer in &mut self.peers {
            let owes = peer.fault.is_none() && peer.connection.payload_target(&self.desk).is_some();
            if owes && self.desk.next_waiting().is_some() {
                let cx = &mut Context { volume: &mut self.volume, desk: &mut self.desk };
                peer.fault = Some("stalled".to_owned());
                peer.connection.abandon(cx);
                any = true;
            }
        }
        any
    }

    /// The clients go away; nothing may be left behind.
    pub fn close(mut self) {
        for peer in &mut self.peers {
            let cx = &mut Context { volume: &mut self.volume, desk: &mut self.desk };
            peer.connection.abandon(cx);
            peer.fault = Some("closed by the test".to_owned());
        }
        while self.drive() {}
        assert_eq!(
            (self.desk.slots_held(), self.desk.pieces_in_flight(), self.desk.requests_open()),
            (0, 0, 0)
        );
        assert_eq!(self.volume.pool().free_count(), self.volume.pool().slot_count());
        assert_eq!(self.desk.next_waiting(), None);
    }
}

/// A handshake into transmission.
pub fn hello(structured: bool) -> Vec<u8> {
    let mut out = 3u32.to_be_bytes().to_vec();
    if structured {
        wire::put_option(&mut out, option::STRUCTURED_REPLY, &[]);
        wire::put_option(&mut out, option::SET_META_CONTEXT, &context_query("vol", &["base:allocation"]));
    }
    wire::put_option(&mut out, option::GO, &info_query("vol", &[]));
    out
}

pub fn info_query(name: &str, facts: &[u16]) -> Vec<u8> {
    let mut data = u32::try_from(name.len()).unwrap().to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&u16::try_from(facts.len()).unwrap().to_be_bytes());
    facts.iter().for_each(|fact| data.extend_from_slice(&fact.to_be_bytes()));
    data
}

pub fn context_query(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = u32::try_from(name.len()).unwrap().to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&u32::try_from(queries.len()).unwrap().to_be_bytes());
    for query in queries {
        data.extend_from_slice(&u32::try_from(query.len()).unwrap().to_be_bytes());
        data.extend_from_slice(query.as_bytes());
    }
    data
}

pub fn header(
    command: Command,
    flags: u16,
    cookie: u64,
    offset_bytes: u64,
    length_bytes: u32,
) -> RequestHeader {
    RequestHeader { flags, code: command.code(), cookie, offset_bytes, length_bytes }
}

/// What a client was told about one request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reply {
    pub error: u32,
    pub data: Vec<(u64, Vec<u8>)>,
    pub extents: Vec<(u32, u32)>,
    pub chunk_count: usize,
    pub done: bool,
}

fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (head, rest) = bytes.split_first_chunk::<N>().expect("a whole reply");
    *bytes = rest;
    *head
}

/// Decodes transmission replies; `reads` has offset and length of reads that get simple replies.
pub fn replies(mut bytes: &[u8], reads: &HashMap<u64, (u64, usize)>) -> HashMap<u64, Reply> {
    let mut all: HashMap<u64, Reply> = HashMap::new();
    while !bytes.is_empty() {
        let magic = u32::from_be_bytes(take(&mut bytes));
        if magic == wire::SIMPLE_REPLY_MAGIC {
            let error = u32::from_be_bytes(take(&mut bytes));
            let cookie = u64::from_be_bytes(take(&mut bytes));
            let reply = all.entry(cookie).or_default();
            assert!(!reply.done, "request {cookie} was answered twice");
            (reply.done, reply.error) = (true, error);
            if let Some(&(offset, length)) = reads.get(&cookie).filter(|_| error == 0) {
                let (data, rest) = bytes.split_at(length);
                reply.data.push((offset, data.to_vec()));
                bytes = rest;
            }
            continue;
        }
        assert_eq!(magic, wire::STRUCTURED_REPLY_MAGIC);
        let flags = u16::from_be_bytes(take(&mut bytes));
        let kind = u16::from_be_bytes(take(&mut bytes));
        let cookie = u64::from_be_bytes(take(&mut bytes));
        let length = u32::from_be_bytes(take(&mut bytes)) as usize;
        let (mut data, rest) = bytes.split_at(length);
        bytes = rest;
        let reply = all.entry(cookie).or_default();
        assert!(!reply.done, "request {cookie} has a chunk after its last one");
        reply.done = flags & wire::chunk::FLAG_DONE != 0;
        reply.chunk_count += 1;
        match kind {
            wire::chunk::NONE => assert!(data.is_empty()),
            wire::chunk::OFFSET_DATA => {
                let offset = u64::from_be_bytes(take(&mut data));
                reply.data.push((offset, data.to_vec()));
            }
            wire::chunk::ERROR => reply.error = u32::from_be_bytes(take(&mut data)),
            wire::chunk::BLOCK_STATUS => {
                assert_eq!(u32::from_be_bytes(take(&mut data)), wire::CONTEXT_ID);
                while !data.is_empty() {
                    reply
                        .extents
                        .push((u32::from_be_bytes(take(&mut data)), u32::from_be_bytes(take(&mut data))));
                }
            }
            other => panic!("chunk type {other}"),
        }
    }
    all
}
