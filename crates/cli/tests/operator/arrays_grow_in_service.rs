//! Served arrays take the room of devices that have become larger, and their clients only wait.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::arrays_grow::enlarge;
use crate::common::nbd::{Command, Nbd};
use crate::common::{Rig, until};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes that the load writes at once.
const BLOCK: u64 = 12 << 10;
/// Writes under way at a time.
const DEPTH: usize = 24;
/// A flush comes with every so many writes.
const FLUSH_EVERY: u64 = 50;
/// The cookie of a flush.
const FLUSH: u64 = u64::MAX;
const PATIENCE: Duration = Duration::from_secs(60);

/// What is known of a block: marks count up.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    /// The newest mark that must outlive a kill,
    durable: u64,
    /// the newest one that was answered,
    answered: u64,
    /// and the newest one that was sent.
    sent: u64,
}

/// A client that writes all the time, every block with a mark, and leaves with what it knows of them; the
/// connection is there still, unless the server is gone.
struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Nbd, Vec<Known>)>,
}

impl Load {
    fn begin(socket: &Path, blocks: u64) -> Self {
        let mut nbd = Nbd::connect(socket, PATIENCE);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let known = write_until(&mut nbd, blocks, &stopped);
            (nbd, known)
        });
        Self { stop, thread }
    }

    fn end(self) -> (Nbd, Vec<Known>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Ends when it is told to, and everything is answered, or when the server is gone.
fn write_until(nbd: &mut Nbd, blocks: u64, stop: &AtomicBool) -> Vec<Known> {
    let mut known = vec![Known::default(); usize::try_from(blocks).unwrap()];
    let mut open: HashMap<u64, u64> = HashMap::new();
    let mut flushing: Option<Vec<Known>> = None;
    let (mut mark, mut block) = (0, 0u64);
    loop {
        while open.len() < DEPTH && !stop.load(Ordering::Relaxed) {
            mark += 1;
            block = (block * 5 + 7 + mark % 3) % blocks;
            if open.contains_key(&block) {
                block = (block + 1) % blocks;
                continue;
            }
            let bytes = mark.to_le_bytes().repeat(usize::try_from(BLOCK / 8).unwrap());
            known[usize::try_from(block).unwrap()].sent = mark;
            open.insert(block, mark);
            if !nbd.try_send(Command::Write, block, block * BLOCK, u32::try_from(BLOCK).unwrap(), &bytes) {
                return known;
            }
            if mark.is_multiple_of(FLUSH_EVERY) && flushing.is_none() {
                flushing = Some(known.clone());
                if !nbd.try_send(Command::Flush, FLUSH, 0, 0, &[]) {
                    return known;
                }
            }
        }
        if open.is_empty() && flushing.is_none() {
            return known;
        }
        let Some((cookie, _)) = nbd.answer() else { return known };
        if cookie == FLUSH {
            let before = flushing.take().unwrap();
            known.iter_mut().zip(before).for_each(|(known, before)| known.durable = before.answered);
        } else {
            known[usize::try_from(cookie).unwrap()].answered = open.remove(&cookie).unwrap();
        }
    }
}

/// Every block holds one mark throughout that is `least` of what is known of it, or a later one.
fn check(nbd: &mut Nbd, known: &[Known], least: impl Fn(&Known) -> u64) {
    for (block, known) in (0u64..).zip(known) {
        let bytes = nbd.read(block * BLOCK, u32::try_from(BLOCK).unwrap());
        let marks = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let (low, high) = (marks.clone().min().unwrap(), marks.max().unwrap());
        assert!(low >= least(known) && high <= known.sent, "block {block}: {low} to {high}, {known:?}");
    }
}

/// A kind of array, and how it is served.
struct Case {
    scheme: &'static str,
    shards: &'static str,
    options: &'static [&'static str],
}

const CASES: [Case; 6] = [
    Case { scheme: "eplog", shards: "1", options: &[] },
    Case { scheme: "raid", shards: "1", options: &["--stripe-cache", "64"] },
    Case { scheme: "elastic", shards: "1", options: &["--socket-threads", "2"] },
    Case { scheme: "eplog", shards: "1", options: &["--socket-threads", "2", "--cache-stripes", "16"] },
    Case { scheme: "eplog", shards: "3", options: &["--threads", "2", "--socket-threads", "1"] },
    Case { scheme: "raid", shards: "3", options: &["--threads", "1"] },
];

impl Case {
    /// Its members: data devices, then log devices.
    fn create(&self, rig: &Rig) -> Vec<&'static str> {
        let logs: &[&str] = if self.scheme == "eplog" { &["l0"] } else { &[] };
        let mut create = vec!["create", "--scheme", self.scheme, "--parity", "1", "--shards", self.shards];
        create.extend(["--file-size", "96MiB", "--data", "d0", "d1", "d2"]);
        if !logs.is_empty() {
            create.push("--log");
            create.extend(logs);
        }
        rig.run(&create).ok();
        [&["d0", "d1", "d2"][..], logs].concat()
    }
}

fn volume(status: &Value) -> u64 {
    status["volume_bytes"].as_u64().unwrap()
}

fn written(status: &Value) -> u64 {
    status["activity"]["chunks_written"].as_u64().unwrap()
}

#[test]
fn clients_wait_while_the_array_grows_and_go_on() {
    for case in &CASES {
        let what = format!("{} {} {:?}", case.scheme, case.shards, case.options);
        let rig = Rig::new();
        let members = case.create(&rig);
        let server = rig.serve(&members, case.options);
        let socket = rig.path("nbd");
        let load = Load::begin(&socket, 600);
        until("the load has begun", || written(&rig.status(&members)) > 2000);
        let before = rig.status(&members);
        for more in [64 << 20, 48 << 20] {
            rig.on("grow", &members, &[]).refused(&["to grow at all"]);
            let old = volume(&rig.status(&members));
            enlarge(&rig, &members[..3], more);
            let planned = rig.on("grow", &members, &["--dry-run", "--json"]).ok().json();
            let grown = rig.on("grow", &members, &["--json"]).ok().json();
            assert_eq!((&planned["volume_bytes"], volume(&before) < volume(&grown)), (&grown["volume_bytes"], true), "{what}");
            assert!(grown["waited_ms"].is_u64(), "{what}: {grown}");
            let now = rig.status(&members);
            assert_eq!(volume(&now), volume(&grown), "{what}");
            assert!(written(&now) >= written(&before), "{what}: counted anew");
            let mut new = Nbd::connect(&socket, PATIENCE);
            assert_eq!(new.size_bytes, volume(&grown), "{what}");
            // What is new reads as zeros, and can be written.
            let room = (new.size_bytes - old).min(1 << 20);
            let ends = [old, new.size_bytes - room];
            for at in ends {
                assert!(new.read(at, u32::try_from(room).unwrap()).iter().all(|&byte| byte == 0), "{what}");
            }
            for at in ends {
                new.request(Command::Write, at, u32::try_from(room).unwrap(), &vec![7; usize::try_from(room).unwrap()]);
            }
            for at in ends {
                assert!(new.read(at, u32::try_from(room).unwrap()).iter().all(|&byte| byte == 7), "{what}");
            }
            new.request(Command::Flush, 0, 0, &[]);
            new.leave();
        }
        let (mut nbd, known) = load.end();
        assert!(nbd.size_bytes == volume(&before) && known.iter().all(|known| known.answered == known.sent));
        check(&mut nbd, &known, |known| known.answered);
        nbd.request(Command::Flush, 0, 0, &[]);
        nbd.leave();
        let scrub = rig.on("scrub", &members, &["--wait"]).ok();
        assert!(scrub.out.contains("0 code words lost"), "{what}: {scrub:?}");
        let said = server.stop().ok();
        assert_eq!(said.err.matches("the array has grown from").count(), 2, "{what}: {said:?}");
        let server = rig.serve(&members, case.options);
        let mut nbd = Nbd::connect(&socket, PATIENCE);
        check(&mut nbd, &known, |known| known.answered);
        nbd.leave();
        server.stop().ok();
    }
}
