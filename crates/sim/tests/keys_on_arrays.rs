//! The worlds of the key-value store on arrays instead of a disk that keeps the promise of one: power fails
//! at any moment, and as many devices as the code tolerates are lost, fail or write elsewhere beneath the
//! store, which must not notice.
//!
//! `KV_WORLD=n` repeats one, `KV_FROM` and `KV_WORLDS` run a range.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../../kv/tests/world/mod.rs"]
#[allow(dead_code, reason = "its own disk is not used here")]
mod world;

use array::Done;
use block::{Random, Slot, XoshiroStarStar};
use kv::blocks::{Buffer, Ended, Fault, Issued, Medium, Request};
use sim::Base;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use world::World;
use world::disk::Disk;
use world::under::Under;

/// Chunks in a request to the engine at most.
const CHUNKS_MAX: usize = 8;
/// Turns after which a request that does not end is taken for lost.
const TURNS_MAX: u64 = 2_000_000;

/// A request of the store that has not ended.
struct Open {
    request: Request,
    /// Requests to the engine that it has become, and those that have not been made yet.
    left: usize,
    failed: bool,
}

/// A request to the engine: bytes of a request of the store.
struct Piece {
    tag: u64,
    first: usize,
    length: usize,
}

/// A volume of an array.
struct OnArray {
    number: u64,
    base: Base,
    random: XoshiroStarStar,
    open: HashMap<u64, Open>,
    waiting: VecDeque<Piece>,
    under_way: HashMap<u64, (Piece, Vec<Slot>)>,
    ended: VecDeque<Ended>,
    next_tag: u64,
    carried_max: Option<u64>,
    turns: u64,
    /// Devices lost or hurt in all worlds.
    lost: Rc<Cell<usize>>,
}

impl OnArray {
    fn new(number: u64, size_bytes: usize, random: XoshiroStarStar, lost: Rc<Cell<usize>>) -> Self {
        let base = Base::new(number, size_bytes as u64)
            .unwrap_or_else(|error| panic!("world {number}: {error}; again: KV_WORLD={number}"));
        Self {
            number,
            base,
            random,
            open: HashMap::new(),
            waiting: VecDeque::new(),
            under_way: HashMap::new(),
            ended: VecDeque::new(),
            next_tag: 0,
            carried_max: None,
            turns: 0,
            lost,
        }
    }

    fn fail(&self, what: &str) -> ! {
        let (number, array) = (self.number, self.base.summary());
        panic!("world {number}: {what}; {array}; again: KV_WORLD={number}")
    }

    fn begin(&mut self, piece: Piece) -> Option<Piece> {
        let chunk = self.base.chunk_bytes();
        let open = &self.open[&piece.tag];
        let (place, is_discard) = match &open.request {
            Request::Read { offset_bytes, .. } | Request::Write { offset_bytes, .. } => {
                (*offset_bytes, false)
            }
            Request::Discard { offset_bytes, .. } => (*offset_bytes, true),
            Request::Flush => (0, false),
        };
        let at = place as usize + piece.first;
        let count = match (&open.request, is_discard) {
            (Request::Flush, _) => 0,
            (_, true) => 2,
            _ => (at + piece.length).div_ceil(chunk) - at / chunk,
        };
        let engine = self.base.engine().expect("power is on");
        let mut slots = Vec::new();
        if !engine.take_slots(count, &mut slots) {
            return Some(piece);
        }
        self.next_tag += 1;
        let (tag, length) = (self.next_tag, piece.length as u64);
        match &open.request {
            Request::Read { .. } => engine.read(tag, at as u64, length, &slots),
            Request::Flush => engine.flush(tag),
            Request::Discard { .. } => {
                let durability = block::Durability::Volatile;
                engine.zero(tag, at as u64, length, [slots[0], slots[1]], durability);
            }
            Request::Write { buffer, durability, .. } => {
                let mut from = piece.first;
                for (slot, part) in slots.iter().zip(parts(at, piece.length, chunk)) {
                    let length = part.len();
                    engine.pool().bytes_mut(*slot)[part].copy_from_slice(&buffer[from..from + length]);
                    from += length;
                }
                engine.write(tag, at as u64, length, &slots, *durability);
            }
        }
        self.under_way.insert(tag, (piece, slots));
        None
    }

    fn end(&mut self, done: Done) {
        let (piece, slots) = self.under_way.remove(&done.tag).expect("it was asked");
        let chunk = self.base.chunk_bytes();
        let open = self.open.get_mut(&piece.tag).expect("it is open");
        let engine = self.base.engine().expect("power is on");
        if let Request::Read { offset_bytes, buffer } = &mut open.request {
            let (mut into, at) = (piece.first, *offset_bytes as usize + piece.first);
            for (slot, part) in slots.iter().zip(parts(at, piece.length, chunk)) {
                let length = part.len();
                buffer[into..into + length].copy_from_slice(&engine.pool().bytes(*slot)[part]);
                into += length;
            }
        }
        slots.into_iter().for_each(|slot| engine.pool().free(slot));
        open.left -= 1;
        open.failed |= done.result.is_err();
        if let (Err(error), false) = (done.result, matches!(open.request, Request::Discard { .. })) {
            let lost = self.base.lost();
            self.fail(&format!("{:?} failed with {lost} devices lost or hurt: {error}", piece.tag));
        }
        if open.left == 0 {
            let open = self.open.remove(&piece.tag).expect("looked up above");
            let result = if open.failed { Err(Fault::Io) } else { Ok(()) };
            self.ended.push_back(Ended { tag: piece.tag, buffer: buffer_of(open.request), result });
        }
    }

    fn turn(&mut self) {
        self.turns += 1;
        if self.turns > TURNS_MAX {
            self.fail("requests do not end");
        }
        while let Some(piece) = self.waiting.pop_front() {
            if let Some(piece) = self.begin(piece) {
                self.waiting.push_front(piece);
                break;
            }
        }
        if self.random.chance(1, 3000) {
            self.base.hurt();
        }
        let mut answers = Vec::new();
        if let Err(error) = self.base.turn(&mut answers) {
            self.fail(&error.to_string());
        }
        answers.into_iter().for_each(|done| self.end(done));
    }
}

/// The parts of chunks that `length` bytes at `at` cover.
fn parts(at: usize, length: usize, chunk: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (at / chunk..(at + length).div_ceil(chunk)).map(move |index| {
        let begin = index * chunk;
        at.max(begin) - begin..(at + length).min(begin + chunk) - begin
    })
}

fn buffer_of(request: Request) -> Option<Buffer> {
    match request {
        Request::Read { buffer, .. } => Some(buffer),
        Request::Write { .. } | Request::Flush | Request::Discard { .. } => None,
    }
}

impl Under for OnArray {
    fn disk(&mut self) -> Option<&mut Disk> {
        None
    }

    fn disk_ref(&self) -> Option<&Disk> {
        None
    }

    fn submit(&mut self, issued: Issued) {
        let Issued { tag, request } = issued;
        match &mut self.carried_max {
            Some(0) => {
                let result = Err(Fault::Io);
                return self.ended.push_back(Ended { tag, buffer: buffer_of(request), result });
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let (at, length) = match &request {
            Request::Read { offset_bytes, buffer } => (*offset_bytes, buffer.len()),
            Request::Write { offset_bytes, buffer, .. } => (*offset_bytes, buffer.len()),
            Request::Discard { offset_bytes, length_bytes } => (*offset_bytes, *length_bytes as usize),
            Request::Flush => (0, 0),
        };
        let chunk = self.base.chunk_bytes();
        let whole = matches!(request, Request::Discard { .. } | Request::Flush);
        let most = if whole { usize::MAX } else { CHUNKS_MAX * chunk };
        let (mut first, mut left) = (0, 0);
        loop {
            // Up to the end of a chunk, so that the next piece begins at one.
            let end = (at as usize + first).saturating_add(most) / chunk * chunk;
            let piece = if whole { length } else { (end - at as usize).min(length) - first };
            self.waiting.push_back(Piece { tag, first, length: piece });
            (first, left) = (first + piece, left + 1);
            if first >= length {
                break;
            }
        }
        self.open.insert(tag, Open { request, left, failed: false });
    }

    fn step(&mut self) -> Option<Ended> {
        if self.ended.is_empty() {
            self.turn();
        }
        let ended = self.ended.pop_front();
        self.turns = if ended.is_some() { 0 } else { self.turns };
        ended
    }

    fn busy(&self) -> bool {
        !self.open.is_empty() || !self.ended.is_empty()
    }

    fn carry_at_most(&mut self, count: u64) {
        self.carried_max = Some(count);
    }

    fn is_carried_out(&self) -> bool {
        self.carried_max == Some(0)
    }

    fn cut(&mut self) {
        self.open.clear();
        self.waiting.clear();
        self.under_way.clear();
        self.ended.clear();
        self.carried_max = None;
        if let Err(error) = self.base.cut() {
            self.fail(&error.to_string());
        }
    }
}

impl Drop for OnArray {
    fn drop(&mut self) {
        self.lost.set(self.lost.get() + self.base.lost());
    }
}

impl Medium for OnArray {
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended> {
        requests.into_iter().for_each(|issued| self.submit(issued));
        let mut ended = Vec::new();
        while self.busy() {
            ended.extend(self.step());
        }
        ended
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

#[test]
fn every_key_is_what_it_may_be_on_arrays_that_lose_devices() {
    let (from, count) = match number("KV_WORLD") {
        Some(world) => (world, 1),
        None => (number("KV_FROM").unwrap_or(0), number("KV_WORLDS").unwrap_or(40)),
    };
    let lost = Rc::new(Cell::new(0));
    for number in from..from + count {
        let counted = Rc::clone(&lost);
        World::on(number, |size, random| OnArray::new(number, size, random, counted)).run();
    }
    let lost = lost.get();
    println!("{count} worlds from {from}: {lost} devices lost or hurt");
    assert!(count < 20 || lost as u64 > count / 4, "{lost} devices were lost or hurt in {count} worlds");
}
