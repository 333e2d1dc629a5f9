//! Served arrays take the room of devices that have become larger, and their clients only wait.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::arrays_grow::enlarge;
use crate::common::nbd::{Command, Nbd};
use crate::common::{Rig, device, until};
use crate::devices_lack_room_or_hang::small_file_system;
use crate::devices_say_why_they_failed::sealable;
use crate::keys_are_kept::Client;
use rustix::fs::{SealFlags, fcntl_add_seals, ftruncate};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
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
            assert_eq!(
                (&planned["volume_bytes"], volume(&before) < volume(&grown)),
                (&grown["volume_bytes"], true),
                "{what}"
            );
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
                new.request(
                    Command::Write,
                    at,
                    u32::try_from(room).unwrap(),
                    &vec![7; usize::try_from(room).unwrap()],
                );
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

#[test]
fn a_server_that_is_killed_or_stopped_while_its_array_grows_loses_nothing() {
    for case in [&CASES[0], &CASES[1], &CASES[4]] {
        for (delay_ms, end) in [
            (0, "KILL"),
            (20, "KILL"),
            (40, "KILL"),
            (70, "KILL"),
            (110, "KILL"),
            (200, "KILL"),
            (20, "TERM"),
            (60, "TERM"),
        ] {
            let what =
                format!("{} {} {:?}, {end} after {delay_ms} ms", case.scheme, case.shards, case.options);
            let rig = Rig::new();
            let members = case.create(&rig);
            let server = rig.serve(&members, case.options);
            let socket = rig.path("nbd");
            let load = Load::begin(&socket, 300);
            until("the load has begun", || written(&rig.status(&members)) > 1000);
            let before = volume(&rig.status(&members));
            enlarge(&rig, &members[..3], 64 << 20);
            let planned = rig.on("grow", &members, &["--dry-run", "--json"]).ok().json();
            let mut grow = rig.command(&["grow", "d0"]).spawn().unwrap();
            sleep(Duration::from_millis(delay_ms));
            if end == "KILL" {
                server.kill();
                grow.wait().unwrap();
            } else {
                // What has begun comes to its end first.
                server.signal(end);
                grow.wait().unwrap();
                server.wait().ok();
            }
            let (_, known) = load.end();
            let server = rig.serve(&members, case.options);
            let mut nbd = Nbd::connect(&socket, PATIENCE);
            check(&mut nbd, &known, |known| known.durable);
            assert!([before, volume(&planned)].contains(&nbd.size_bytes), "{what}: {}", nbd.size_bytes);
            nbd.leave();
            if volume(&rig.status(&members)) == before {
                rig.on("grow", &members, &[]).ok();
            }
            assert_eq!(volume(&rig.status(&members)), volume(&planned), "{what}");
            let scrub = rig.on("scrub", &members, &["--wait"]).ok();
            assert!(scrub.out.contains("0 code words lost"), "{what}: {scrub:?}");
            server.stop().ok();
        }
    }
}

/// A client writes and reads.
fn goes_on(rig: &Rig, mark: u8) {
    let mut nbd = Nbd::connect(&rig.path("nbd"), PATIENCE);
    nbd.request(Command::Write, 0, 1 << 20, &vec![mark; 1 << 20]);
    nbd.request(Command::Flush, 0, 0, &[]);
    assert!(nbd.read(0, 1 << 20).iter().all(|&byte| byte == mark));
    nbd.leave();
}

#[test]
fn what_cannot_grow_now_says_why_and_is_served_on() {
    let rig = Rig::with_array();
    let members = crate::common::MEMBERS;
    let server = rig.serve(&members, &[]);
    rig.on("grow", &members, &[]).refused(&["data0", "to grow at all"]);
    enlarge(&rig, &members[..3], 32 << 20);
    rig.on("grow", &members, &[]).refused(&["data3", "to grow at all"]);
    enlarge(&rig, &members[3..4], 32 << 20);
    goes_on(&rig, 1);
    rig.on("fail", &members, &["--device", "data1"]).ok();
    rig.on("grow", &["d0"], &[]).refused(&["data1", "out of service", "must be in service and whole"]);
    goes_on(&rig, 2);
    let replace = ["--device", "data1", "--with", "n1", "--file-size", "64MiB"];
    rig.on("replace", &["d0"], &[&replace[..], &["--rate", "64KiB/s"]].concat()).ok();
    rig.on("grow", &["d0"], &[]).refused(&["rebuild is under way"]);
    goes_on(&rig, 3);
    rig.on("scrub", &["d0"], &["--rate", "1GiB/s"]).refused(&["under way"]);
    until("the rebuild has ended", || device(&rig.status(&["d0"]), "data1")["state"] == "healthy");
    rig.on("scrub", &["d0"], &["--rate", "64KiB/s"]).ok();
    rig.on("grow", &["d0"], &[]).refused(&["scrub is under way"]);
    rig.on("scrub", &["d0"], &["--stop"]).ok();
    until("the scrub has ended", || rig.on("grow", &["d0"], &[]).code == 0);
    goes_on(&rig, 4);
    server.stop().ok();

    let members = ["d0", "n1", "d2", "d3", "l0", "l1"];
    enlarge(&rig, &members[..4], 32 << 20);
    let server = rig.serve(&members, &["--read-only"]);
    rig.on("grow", &members, &[]).refused(&["served read-only"]);
    server.stop().ok();
}

#[test]
fn a_member_that_fails_while_the_array_grows_is_done_without() {
    for delay_ms in [None, Some(5), Some(20), Some(40), Some(60), Some(80), Some(110), Some(150)] {
        let rig = Rig::new();
        let file = sealable(&rig, "d1");
        for name in ["d0", "d2"] {
            std::fs::File::create(rig.path(name)).unwrap().set_len(32 << 20).unwrap();
        }
        rig.run(&["create", "--scheme", "raid", "--parity", "1", "--data", "d0", "d1", "d2"]).ok();
        let members = ["d0", "d1", "d2"];
        let server = rig.serve(&members, &["--patrol", "off"]);
        goes_on(&rig, 1);
        let before = volume(&rig.status(&members));
        enlarge(&rig, &["d0", "d2"], 1 << 30);
        ftruncate(&file, (1 << 30) + (32 << 20)).unwrap();
        let planned = volume(&rig.on("grow", &["d0"], &["--dry-run", "--json"]).ok().json());
        // Before it begins, or whenever that is.
        let seal = || fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
        match delay_ms {
            None => {
                seal();
                rig.on("grow", &["d0"], &[]).refused(&["data1"]);
            }
            Some(delay_ms) => {
                let mut grow = rig.command(&["grow", "d0"]).spawn().unwrap();
                sleep(Duration::from_millis(delay_ms));
                seal();
                grow.wait().unwrap();
            }
        }
        goes_on(&rig, 2);
        let status = rig.status(&["d0"]);
        assert_eq!(device(&status, "data1")["state"], "failed", "{delay_ms:?}: {status:#}");
        let expected = if delay_ms.is_none() { &[before][..] } else { &[before, planned] };
        assert!(expected.contains(&volume(&status)), "{delay_ms:?}: {status:#}");
        let said = server.stop().ok();
        let has_grown = volume(&status) != before;
        assert_eq!(said.err.contains("the array has not grown"), !has_grown, "{delay_ms:?}: {said:?}");
    }
}

#[test]
fn an_array_that_finds_no_room_to_grow_is_served_on() {
    let rig = Rig::new();
    let Some(_mount) = small_file_system(&rig.path("small"), "12M") else { return };
    let members = ["d0", "small/d1", "d2"];
    for name in members {
        std::fs::File::create(rig.path(name)).unwrap().set_len(32 << 20).unwrap();
    }
    rig.run(&[&["create", "--scheme", "raid", "--parity", "1", "--data"][..], &members].concat()).ok();
    let server = rig.serve(&members, &["--patrol", "off"]);
    goes_on(&rig, 1);
    server.stop().ok();
    let server = rig.serve(&members, &["--patrol", "off"]);
    goes_on(&rig, 2);
    let before = volume(&rig.status(&members));
    enlarge(&rig, &members, 1 << 30);
    // But for a few blocks all room is taken.
    let mut filler = std::fs::File::create(rig.path("small/filler")).unwrap();
    while filler.write_all(&[1; 64 << 10]).is_ok() {}
    // Not enough to stop it in order, then enough for that, but neither to grow nor to be as it was. Nothing
    // is written where the new regions hold nothing yet, so it takes a checkpoint to have too little.
    rig.on("grow", &["d0"], &[]).refused(&["no room where data1 lies"]);
    filler.set_len(filler.metadata().unwrap().len() - (12 << 10)).unwrap();
    until("it has room for what waited", || rig.status(&["d0"])["state"] == "healthy");
    filler.set_len(filler.metadata().unwrap().len() - (4 << 10)).unwrap();
    rig.on("grow", &["d0"], &[]).refused(&["no room where", "small/d1"]);
    rig.on("scrub", &["d0"], &[]).refused(&["the array is growing"]);
    filler.set_len(0).unwrap();
    goes_on(&rig, 3);
    assert_eq!(volume(&rig.status(&members)), before);
    server.stop().ok();
}

#[test]
fn a_store_of_keys_is_served_on_while_its_array_grows_and_then_grows_too() {
    let rig = Rig::with_array();
    let members = crate::common::MEMBERS;
    let capacity = || rig.status(&members)["store"]["capacity_bytes"].as_u64().unwrap();
    let server = rig.serve_keys(&members, &["--create"]);
    let mut client = Client::connect(&rig.path("keys"));
    assert_eq!(client.says("SET before 1"), "+OK");
    let before = capacity();
    enlarge(&rig, &members[..4], 32 << 20);
    rig.on("grow", &members, &[]).ok();
    assert_eq!((client.says("GET before").as_str(), client.says("SET after 2").as_str()), ("1", "+OK"));
    assert_eq!(capacity(), before, "a store that runs keeps its size");
    server.stop().ok();
    for (start, grows) in [("first", true), ("second", false)] {
        let server = rig.serve_keys(&members, &[]);
        let mut client = Client::connect(&rig.path("keys"));
        assert_eq!((client.says("GET before").as_str(), client.says("GET after").as_str()), ("1", "2"));
        assert!(capacity() > before + (32 << 20), "{start} start: {} after {before}", capacity());
        let ran = server.stop().ok();
        assert_eq!(ran.err.contains("more than when the store was opened before"), grows, "{start}: {ran:?}");
    }
}
