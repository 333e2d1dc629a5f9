//! Speed of the store in one thread on a volume in memory.
//!
//! ```sh
//! cargo run --release -p elastripe-kv --example bench -- PAIRS PAIR_BYTES REQUESTS CACHE_PERCENT BATCH SYNC
//! ```
//!
//! Loads the pairs, updates and reads them with Zipf 0.99 (K-09) and uniformly, stops, and opens again. The
//! volume answers at once, so this is the cost of the store alone. `batch` asks are under way at a time.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use block::{Random, SplitMix, XoshiroPlusPlus};
use kv::ask::{Answer, Ask, Keys, Lifetime, Old, Range, Told, Value, When};
use kv::blocks::{Ended, Issued, Medium, Request};
use kv::{Create, Options, Secret, Store, Sync, VolumeShape, create, open};
use std::time::Instant;

/// A volume in memory; pieces of 64 MiB come when they are written to.
struct Memory {
    pieces: Vec<Vec<u8>>,
}

const PIECE: usize = 64 << 20;

fn narrow(size: u64) -> usize {
    usize::try_from(size).unwrap()
}

impl Memory {
    fn each(offset: usize, length: usize, mut each: impl FnMut(usize, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < length {
            let (piece, at) = ((offset + done) / PIECE, (offset + done) % PIECE);
            let some = (length - done).min(PIECE - at);
            each(piece, at, done..done + some);
            done += some;
        }
    }

    fn end(&mut self, issued: Issued) -> Ended {
        let mut back = None;
        match issued.request {
            Request::Read { offset_bytes, mut buffer } => {
                Self::each(narrow(offset_bytes), buffer.len(), |piece, at, range| {
                    let some = range.len();
                    match self.pieces[piece].get(at..at + some) {
                        Some(bytes) => buffer[range].copy_from_slice(bytes),
                        None => buffer[range].fill(0),
                    }
                });
                back = Some(buffer);
            }
            Request::Write { offset_bytes, buffer, .. } => {
                Self::each(narrow(offset_bytes), buffer.len(), |piece, at, range| {
                    if self.pieces[piece].is_empty() {
                        self.pieces[piece] = vec![0; PIECE];
                    }
                    let some = range.len();
                    self.pieces[piece][at..at + some].copy_from_slice(&buffer[range]);
                });
            }
            Request::Flush | Request::Discard { .. } => {}
        }
        Ended { tag: issued.tag, buffer: back, result: Ok(()) }
    }
}

impl Medium for Memory {
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended> {
        requests.into_iter().map(|issued| self.end(issued)).collect()
    }
}

fn turn(store: &mut Store, memory: &mut Memory, told: &mut Vec<Told>) {
    store.drive(1, told);
    while let Some(issued) = store.next_request() {
        let ended = memory.end(issued);
        store.ended(ended);
    }
}

fn key(number: u64) -> Box<[u8]> {
    Box::from(format!("user{number:020}").as_bytes())
}

/// Time that this thread has run, in seconds: on a machine that others use too, only this says what the store
/// costs.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns: u64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    std::time::Duration::from_nanos(ns).as_secs_f64()
}

struct Bench {
    store: Store,
    memory: Memory,
    batch: usize,
    value: Vec<u8>,
}

impl Bench {
    fn run(&mut self, what: &str, count: u64, mut ask: impl FnMut(u64, &[u8]) -> Ask) {
        let before = self.store.figures();
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let (mut told, mut asked, mut answered) = (Vec::new(), 0, 0);
        while answered < count {
            while asked < count && asked - answered < u64::try_from(self.batch).unwrap() {
                self.store.start(asked, ask(asked, &self.value));
                asked += 1;
            }
            turn(&mut self.store, &mut self.memory, &mut told);
            for told in told.drain(..) {
                let answer = told.answer.unwrap_or_else(|refused| panic!("{what}: {refused}"));
                assert!(!matches!(answer, Answer::Value(None)), "every key is there");
                answered += 1;
            }
        }
        let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let after = self.store.figures();
        let written = after.written_bytes - before.written_bytes;
        let given = after.given_bytes - before.given_bytes;
        #[allow(clippy::cast_precision_loss, reason = "figures to print")]
        let (rate, own, amplification) =
            (count as f64 / seconds / 1e3, count as f64 / cpu / 1e3, written as f64 / given.max(1) as f64);
        println!(
            "{what:18} {rate:8.1} k/s ({own:8.1} k/s of CPU time)  {seconds:6.2} s  written/given {amplification:5.2}"
        );
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1);
    let mut number = |default: u64| numbers.next().map_or(default, |text| text.parse().unwrap());
    let (pairs, pair_bytes, requests) = (number(1_000_000), number(4096), number(3_000_000));
    let (cache, batch, sync) = (number(100), number(64), number(0));
    let sync = [Sync::Always, Sync::EverySecond, Sync::OnFlush][narrow(sync)];
    let volume = (pairs * (pair_bytes + 64) * 4 / 3).max(64 << 20);
    let mut memory = Memory { pieces: vec![Vec::new(); narrow(volume / (64 << 20) + 1)] };
    let shape = VolumeShape { volume_bytes: volume, segment_bytes: None };
    create(&mut memory, &Create { shape, uuid: [1; 16], secret: Secret([1, 2]) }).unwrap();
    let options = Options { sync, cache_keys: narrow(pairs * cache / 100), ..Options::default() };
    let store = open(&mut memory, volume, options).unwrap();
    let value = vec![7; narrow(pair_bytes.saturating_sub(29)).max(1)];
    let mut bench = Bench { store, memory, batch: narrow(batch), value };
    let set = |key: Box<[u8]>, value: &[u8]| Ask::Set {
        key,
        value: Value::new(value),
        when: When::Always,
        lifetime: Lifetime::Forever,
        old: Old::Ignored,
    };
    let get = |key: Box<[u8]>| Ask::Get { key, range: Range::Whole, lifetime: None };
    println!("{pairs} pairs of {pair_bytes} bytes, cache {cache} %, {batch} under way, {sync:?}");
    bench.run("SET", pairs, |at, value| set(key(at), value));
    let mut random = SplitMix::new(1);
    bench.run("GET uniform", requests, |_, _| get(key(random.below(pairs))));
    let zipf = Zipf::new(pairs);
    let mut random = XoshiroPlusPlus::new(2);
    bench.run("UPDATE Zipf 0.99", requests, |_, value| set(key(zipf.draw(&mut random)), value));
    bench.run("GET Zipf 0.99", requests, |_, _| get(key(zipf.draw(&mut random))));
    bench.run("UPDATE uniform", requests, |_, value| set(key(random.below(pairs)), value));
    println!("{:?}", bench.store.figures());
    let mut memory = bench.memory;
    for killed in [true, false] {
        if !killed {
            bench.store.stop();
            while !bench.store.is_stopped() {
                turn(&mut bench.store, &mut memory, &mut Vec::new());
            }
        }
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let opened = open(&mut memory, volume, options).unwrap();
        assert_eq!(opened.figures().key_count, pairs);
        let how = if killed { "a kill" } else { "a stop" };
        let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        println!("opened after {how}: {seconds:.2} s, {cpu:.2} s of CPU time");
        bench.store = opened;
    }
}

/// YCSB's Zipf generator (Gray and others 1994), with the ranks spread over the keys.
struct Zipf {
    items: u64,
    zeta: f64,
    eta: f64,
}

const THETA: f64 = 0.99;

impl Zipf {
    #[allow(clippy::cast_precision_loss, reason = "ranks are far below 2^53")]
    fn new(items: u64) -> Self {
        let zeta = |n: u64| (1..=n).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let whole = zeta(items);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta(2) / whole);
        Self { items, zeta: whole, eta }
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are far below 2^53"
    )]
    fn draw(&self, random: &mut XoshiroPlusPlus) -> u64 {
        let uniform = random.unit();
        let scaled = uniform * self.zeta;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5_f64.powf(THETA) {
            1
        } else {
            let spread = (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
            (self.items as f64 * spread) as u64
        };
        block::mix(rank) % self.items
    }
}
