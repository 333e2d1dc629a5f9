//! `kv serve` is killed under load on a 6+2 array of which two members failed meanwhile: every acknowledged
//! change is there when it is back, and of a change under way either all or nothing. What was acknowledged
//! is known from the answers alone, by a ledger here that shares nothing with the store.
//! `ELASTRIPE_KV_KILLS` (2) says how often each scheme is killed.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, until};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const CLIENTS: u64 = 4;
/// Keys of each client.
const KEYS: u64 = 150;
/// Changes that a client sends before it waits for answers.
const BATCH_MAX: u64 = 24;

/// What a key is: the version of its value, or nothing.
type State = Option<u64>;

/// What a key may be after a kill: what it was last known to be, then what it was asked to be since.
#[derive(Clone, Default)]
struct May(Vec<State>);

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

fn key(client: u64, number: u64) -> Vec<u8> {
    format!("client{client}:key{number}").into_bytes()
}

/// Bytes that follow from who, which and when; up to 6,000, so that some cross blocks.
fn value(client: u64, number: u64, version: u64) -> Vec<u8> {
    let mut random = Random(client << 48 ^ number << 32 ^ version);
    let length = usize::try_from(random.below(if version.is_multiple_of(5) { 6000 } else { 300 })).unwrap();
    let text = format!("{client}/{number}/{version};");
    let noise = (0..length).map(|_| random.below(256).to_le_bytes()[0]);
    text.into_bytes().into_iter().chain(noise).collect()
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

struct Line(BufReader<UnixStream>);

impl Line {
    fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next answer: `None` for nothing there. An error: the server has gone, or is gone in the midst.
    fn answer(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let Some(line) = line.strip_suffix("\r\n") else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        let Some(length) = line.strip_prefix('$') else { return Ok(Some(line.as_bytes().to_vec())) };
        let Ok(length) = length.parse::<usize>() else { return Ok(None) };
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(Some(bytes))
    }
}

/// One client's keys, and what it may rely on.
struct Ledger {
    client: u64,
    keys: Vec<May>,
    version: u64,
    random: Random,
}

impl Ledger {
    fn new(client: u64, seed: u64) -> Self {
        let keys = vec![May(vec![None]); usize::try_from(KEYS).unwrap()];
        Self { client, keys, version: 0, random: Random(seed ^ client << 56) }
    }

    fn may(&mut self, number: u64) -> &mut Vec<State> {
        &mut self.keys[usize::try_from(number).unwrap()].0
    }

    /// Sets and deletes keys until the server is gone; each change is noted before it is sent, and known to
    /// be when it is acknowledged.
    fn work(&mut self, socket: &Path, acknowledged: &AtomicU64) {
        let mut line = Line::connect(socket);
        loop {
            let mut batch = Vec::new();
            let mut bytes = Vec::new();
            for _ in 0..=self.random.below(BATCH_MAX) {
                let number = self.random.below(KEYS);
                self.version += 1;
                let (name, version) = (key(self.client, number), self.version);
                let state = (self.random.below(6) > 0).then_some(version);
                bytes.extend(match state {
                    Some(_) => command(&[b"SET", &name, &value(self.client, number, version)]),
                    None => command(&[b"DEL", &name]),
                });
                self.may(number).push(state);
                batch.push((number, state));
            }
            if line.0.get_mut().write_all(&bytes).is_err() {
                return;
            }
            for (number, state) in batch {
                let Ok(answer) = line.answer() else { return };
                let answer = String::from_utf8(answer.unwrap()).unwrap();
                let fits = if state.is_some() { answer == "+OK" } else { [":0", ":1"].contains(&&*answer) };
                assert!(fits, "a change was answered by {answer}");
                let may = self.may(number);
                // Answers come in the order of changes, so what was acknowledged is the first of its kind.
                let at = may.iter().skip(1).position(|found| *found == state).unwrap() + 1;
                may.drain(..at);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Every key is something that it may be, and counts as that from now on.
    fn check(&mut self, socket: &Path, when: &str) {
        let mut line = Line::connect(socket);
        for number in 0..KEYS {
            let client = self.client;
            line.0.get_mut().write_all(&command(&[b"GET", &key(client, number)])).unwrap();
            let found = line.answer().unwrap();
            let may = self.may(number);
            let is = |state: &State| state.map(|version| value(client, number, version)) == found;
            let Some(state) = may.iter().copied().rev().find(is) else {
                let begins =
                    found.map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(30)]).into_owned());
                panic!("{when}: key {number} of client {client} is {begins:?}, may be {may:?}");
            };
            *may = vec![state];
        }
    }
}

/// Works until the server is killed, `kills` times; two members fail under the load before the first kill.
fn outlives(scheme: &str, seed: u64, kills: u64) {
    let rig = Rig::new();
    let mut members = vec!["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"];
    let mut create = vec!["create", "--scheme", scheme, "--parity", "2", "--file-size", "32MiB"];
    create.extend(["--data", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"]);
    if scheme == "eplog" {
        create.extend(["--log", "l0", "l1"]);
        members.extend(["l0", "l1"]);
    }
    if scheme == "raid" {
        create.extend(["--consistency", "journal"]);
    }
    rig.run(&create).ok();
    let socket = rig.path("keys");
    let mut random = Random(seed);
    let mut ledgers: Vec<Ledger> = (0..CLIENTS).map(|client| Ledger::new(client, seed)).collect();
    let mut options = vec!["--create"];
    for kill in 0..kills {
        let server = rig.serve_keys(&members, &options);
        let when = format!("{scheme}, seed {seed}, after kill {kill}");
        ledgers.iter_mut().for_each(|ledger| ledger.check(&socket, &when));
        let acknowledged = AtomicU64::new(0);
        let more = |count: u64| {
            let goal = acknowledged.load(Ordering::Relaxed) + count;
            until("changes are acknowledged", || acknowledged.load(Ordering::Relaxed) >= goal);
        };
        thread::scope(|scope| {
            for ledger in &mut ledgers {
                scope.spawn(|| ledger.work(&socket, &acknowledged));
            }
            if kill == 0 {
                let first = random.below(8);
                for failed in [first, (first + 1 + random.below(7)) % 8] {
                    more(50 + random.below(300));
                    rig.on("fail", &["d1"], &["--device", &format!("data{failed}"), "--yes"]).ok();
                }
            }
            more(50 + random.below(2000));
            server.kill();
        });
        options = vec!["--degraded"];
    }
    let server = rig.serve_keys(&members, &options);
    let when = format!("{scheme}, seed {seed}, after the last kill");
    ledgers.iter_mut().for_each(|ledger| ledger.check(&socket, &when));
    server.stop().ok();
}

#[test]
fn what_was_acknowledged_under_load_outlives_kills_with_two_members_failed() {
    let kills = std::env::var("ELASTRIPE_KV_KILLS").ok().map_or(2, |value| value.parse::<u64>().unwrap());
    for scheme in ["eplog", "raid", "elastic"] {
        // A fresh array for every two kills, since members fail only once in each.
        for round in 0..kills.div_ceil(2) {
            outlives(scheme, 1000 + round, 2.min(kills - 2 * round));
        }
    }
}
