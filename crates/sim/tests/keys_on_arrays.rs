//! The worlds of the key-value store on arrays instead of a disk that keeps the promise of one: power fails
//! at any moment, and as many devices as the code tolerates are lost, fail, rot, fall silent or write
//! elsewhere beneath the store, which must not notice. In most worlds others take their places, so that more
//! are lost in all.
//!
//! `KV_WORLD=n` repeats one, `KV_FROM` and `KV_WORLDS` run a range.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../../kv/tests/world/mod.rs"]
#[allow(dead_code, reason = "its own disk is not used here")]
mod world;

use array::{Done, Planted, plant};
use block::{Durability, Random, Slot, XoshiroStarStar};
use kv::blocks::{Buffer, Ended, Fault, Issued, Medium, Request};
use sim::{Base, Toll};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use world::World;
use world::disk::Disk;
use world::under::Under;

/// Chunks in a request to the engine at most.
const CHUNKS_MAX: usize = 8;
/// Worlds, unless it is said how many.
const WORLDS: u64 = 100;
/// Worlds that may be needed to find a bug of the array.
const PLANTED_WORLDS: u64 = 200;
/// Turns after which a request that does not end is taken for lost.
const TURNS_MAX: u64 = 500_000;

thread_local! {
    /// Panics are expected, and not told.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A request of the store that has not ended.
struct Open {
    request: Request,
    /// Requests to the engine that it has become, and those that have not been made yet.
    left: usize,
}

/// A request to the engine: bytes of a request of the store.
struct Piece {
    tag: u64,
    first: usize,
    length: usize,
}

/// How often something happens: in one turn of so many, or never.
type Odds = Option<u64>;

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
    /// Turns since a request ended.
    turns: u64,
    hurts: Odds,
    mends: Odds,
    /// What all worlds went through.
    sum: Rc<Cell<Toll>>,
}

fn narrow(number: u64) -> usize {
    usize::try_from(number).expect("small")
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).expect("small")
}

impl OnArray {
    fn new(number: u64, size_bytes: usize, mut random: XoshiroStarStar, sum: Rc<Cell<Toll>>) -> Self {
        let base = Base::new(number, wide(size_bytes))
            .unwrap_or_else(|error| panic!("world {number}: {error}; again: KV_WORLD={number}"));
        Self {
            number,
            base,
            hurts: random.pick(&[None, Some(300), Some(3000)]),
            mends: random.pick(&[None, Some(300), Some(3000)]),
            random,
            open: HashMap::new(),
            waiting: VecDeque::new(),
            under_way: HashMap::new(),
            ended: VecDeque::new(),
            next_tag: 0,
            carried_max: None,
            turns: 0,
            sum,
        }
    }

    fn fail(&self, what: &str) -> ! {
        let (number, array) = (self.number, self.base.summary());
        panic!("world {number}: {what}; {array}; again: KV_WORLD={number}")
    }

    /// Gives a piece to the engine; it comes back if there are no buffers for it.
    fn begin(&mut self, piece: Piece) -> Option<Piece> {
        let chunk = self.base.chunk_bytes();
        let open = &self.open[&piece.tag];
        let (place, _) = extent(&open.request);
        let at = narrow(place) + piece.first;
        let count = match &open.request {
            Request::Flush => 0,
            Request::Discard { .. } => 2,
            Request::Read { .. } | Request::Write { .. } => parts(at, piece.length, chunk).count(),
        };
        let engine = self.base.engine().expect("power is on");
        let mut slots = Vec::new();
        if !engine.take_slots(count, &mut slots) {
            return Some(piece);
        }
        self.next_tag += 1;
        let (tag, at_bytes, length) = (self.next_tag, wide(at), wide(piece.length));
        match &open.request {
            Request::Read { .. } => engine.read(tag, at_bytes, length, &slots),
            Request::Flush => engine.flush(tag),
            Request::Discard { .. } => {
                engine.zero(tag, at_bytes, length, [slots[0], slots[1]], Durability::Volatile);
            }
            Request::Write { buffer, durability, .. } => {
                let mut from = piece.first;
                for (slot, part) in slots.iter().zip(parts(at, piece.length, chunk)) {
                    let length = part.len();
                    engine.pool().bytes_mut(*slot)[part].copy_from_slice(&buffer[from..from + length]);
                    from += length;
                }
                engine.write(tag, at_bytes, length, &slots, *durability);
            }
        }
        self.base.asked(tag);
        self.under_way.insert(tag, (piece, slots));
        None
    }

    fn end(&mut self, done: Done) {
        let (piece, slots) = self.under_way.remove(&done.tag).expect("it was asked");
        if let Err(error) = done.result {
            self.fail(&format!("{:?}: {error}", self.open[&piece.tag].request));
        }
        let chunk = self.base.chunk_bytes();
        let open = self.open.get_mut(&piece.tag).expect("it is open");
        let engine = self.base.engine().expect("power is on");
        if let Request::Read { offset_bytes, buffer } = &mut open.request {
            let (mut into, at) = (piece.first, narrow(*offset_bytes) + piece.first);
            for (slot, part) in slots.iter().zip(parts(at, piece.length, chunk)) {
                let length = part.len();
                buffer[into..into + length].copy_from_slice(&engine.pool().bytes(*slot)[part]);
                into += length;
            }
        }
        slots.into_iter().for_each(|slot| engine.pool().free(slot));
        open.left -= 1;
        if open.left == 0 {
            let open = self.open.remove(&piece.tag).expect("looked up above");
            let (tag, buffer) = (piece.tag, buffer_of(open.request));
            self.ended.push_back(Ended { tag, buffer, result: Ok(()) });
        }
    }

    fn happens(&mut self, odds: Odds) -> bool {
        odds.is_some_and(|turns| self.random.chance(1, turns))
    }

    fn turn(&mut self) {
        self.turns += 1;
        if self.turns > TURNS_MAX {
            self.fail(&format!("{} requests do not end", self.open.len()));
        }
        while let Some(piece) = self.waiting.pop_front() {
            if let Some(piece) = self.begin(piece) {
                self.waiting.push_front(piece);
                break;
            }
        }
        if self.happens(self.hurts) {
            self.base.hurt();
        }
        if self.happens(self.mends) {
            self.base.mend();
        }
        let mut answers = Vec::new();
        if let Err(error) = self.base.turn(&mut answers) {
            self.fail(&error.to_string());
        }
        answers.into_iter().for_each(|done| self.end(done));
    }
}

/// Where a request is, and how long.
fn extent(request: &Request) -> (u64, usize) {
    match request {
        Request::Read { offset_bytes, buffer } => (*offset_bytes, buffer.len()),
        Request::Write { offset_bytes, buffer, .. } => (*offset_bytes, buffer.len()),
        Request::Discard { offset_bytes, length_bytes } => (*offset_bytes, narrow(*length_bytes)),
        Request::Flush => (0, 0),
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
        let (at, length) = extent(&request);
        let chunk = self.base.chunk_bytes();
        let is_cut = matches!(request, Request::Read { .. } | Request::Write { .. });
        let most = if is_cut { CHUNKS_MAX * chunk } else { usize::MAX };
        let (mut first, mut left) = (0, 0);
        while first < length || left == 0 {
            // Up to the end of a chunk, so that the next piece begins at one.
            let most = most - narrow(at + wide(first)) % chunk;
            let piece = Piece { tag, first, length: most.min(length - first) };
            (first, left) = (first + piece.length, left + 1);
            self.waiting.push_back(piece);
        }
        self.open.insert(tag, Open { request, left });
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
        let (sum, toll) = (self.sum.get(), self.base.toll());
        self.sum.set(Toll {
            power_cuts: sum.power_cuts + toll.power_cuts,
            hurt: sum.hurt + toll.hurt,
            replaced: sum.replaced + toll.replaced,
        });
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

fn run(number: u64, sum: &Rc<Cell<Toll>>) {
    let sum = Rc::clone(sum);
    World::on(number, |size, random| OnArray::new(number, size, random, sum)).run();
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
        None => (number("KV_FROM").unwrap_or(0), number("KV_WORLDS").unwrap_or(WORLDS)),
    };
    let sum = Rc::default();
    (from..from + count).for_each(|number| run(number, &sum));
    let Toll { power_cuts, hurt, replaced } = sum.get();
    println!(
        "{count} worlds from {from}: {power_cuts} power cuts, {hurt} devices lost or hurt, {replaced} replaced"
    );
    let enough = power_cuts > 5 * count && hurt > count && replaced > count / 4;
    assert!(count < 20 || enough, "too little happened: {:?} in {count} worlds", sum.get());
}

/// The first world that fails because of a bug of the array.
fn found_by(bug: Planted) -> Option<u64> {
    let sum = Rc::default();
    plant(Some(bug));
    QUIET.set(true);
    let fails = |&number: &u64| catch_unwind(AssertUnwindSafe(|| run(number, &sum))).is_err();
    let found = (0..PLANTED_WORLDS).find(fails);
    QUIET.set(false);
    plant(None);
    found
}

/// Without the bugs the same worlds are fine: those are the first of the test above.
#[test]
fn bugs_of_the_array_are_seen() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            before(info);
        }
    }));
    // The first two are seen by the store's oracle, the others by what the array is held to.
    for bug in [
        Planted::AnswerBeforeFlush,
        Planted::SkipChecksum,
        Planted::AcceptStale,
        Planted::TrustReplacement,
        Planted::OverwriteUnflushed,
    ] {
        let found = found_by(bug);
        println!("{bug:?}: world {found:?}");
        assert!(found.is_some(), "{bug:?} was not found in {PLANTED_WORLDS} worlds");
    }
}
