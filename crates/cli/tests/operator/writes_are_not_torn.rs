//! A server that is killed in the middle of aligned writes of several chunks leaves each block as one of the
//! writes made it: every sector says which one. What a power cut does to what devices cache is the
//! simulator's affair; here it is the shipped binary, its front end and its recovery.
//! `ELASTRIPE_TORN_ROUNDS` (2) says how often each scheme is killed.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::watched::Watched;
use crate::common::{Rig, every_scheme};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);
const MEMBERS: [&str; 5] = ["d0", "d1", "d2", "d3", "d4"];
const SECTOR: usize = 512;
/// Bytes of a block, and where the blocks of that size begin.
const SIZES: [(u32, u64); 2] = [(16 << 10, 0), (64 << 10, 4 << 20)];
/// Blocks of each size.
const BLOCKS: u64 = 48;

/// Sizes, and what was written last to each block of each.
struct Blocks {
    newest: [[u64; BLOCKS as usize]; SIZES.len()],
    sequence: u64,
    random: u64,
}

impl Blocks {
    fn below(&mut self, end: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % end
    }

    /// A block that is not being written, and what is to be written to it, the same in each of its sectors.
    fn next(&mut self, busy: &[(usize, u64)]) -> (usize, u64, Vec<u8>) {
        loop {
            let (kind, block) = (usize::from(self.below(2) == 1), self.below(BLOCKS));
            if busy.contains(&(kind, block)) {
                continue;
            }
            self.sequence += 1;
            self.newest[kind][block as usize] = self.sequence;
            let mut bytes = vec![0x5a; SIZES[kind].0 as usize];
            for sector in bytes.chunks_exact_mut(SECTOR) {
                sector[..8].copy_from_slice(&self.sequence.to_le_bytes());
            }
            return (kind, block, bytes);
        }
    }
}

fn place(kind: usize, block: u64) -> u64 {
    SIZES[kind].1 + block * u64::from(SIZES[kind].0)
}

/// Writes with many requests in flight until so many were answered, and a flush now and then.
fn write_until(client: &mut Nbd, blocks: &mut Blocks, answers: u64) {
    let mut busy = Vec::new();
    for answered in 0..answers {
        while busy.len() < 24 {
            let (kind, block, bytes) = blocks.next(&busy);
            let cookie = (kind as u64) << 32 | block;
            client.send(Command::Write, cookie, place(kind, block), SIZES[kind].0, &bytes);
            busy.push((kind, block));
        }
        if answered % 50 == 49 {
            client.send(Command::Flush, u64::MAX, 0, 0, &[]);
        }
        let (cookie, _) = client.answer().expect("an answer in time");
        busy.retain(|&(kind, block)| (kind as u64) << 32 | block != cookie);
    }
}

/// Every sector of a block is of one write, or nothing was ever written there.
fn check(client: &mut Nbd, blocks: &Blocks, what: &str) {
    for (kind, &(size, _)) in SIZES.iter().enumerate() {
        for block in 0..BLOCKS {
            let bytes = client.read(place(kind, block), size);
            let of = |sector: &[u8]| u64::from_le_bytes(sector[..8].try_into().unwrap());
            let found: Vec<u64> = bytes.chunks_exact(SECTOR).map(of).collect();
            let name = format!("{what}: block {block} of {size} bytes");
            assert!(found.iter().all(|&one| one == found[0]), "{name} is torn: {found:?}");
            let newest = blocks.newest[kind][usize::try_from(block).unwrap()];
            assert!(found[0] <= newest, "{name}: {} was not written yet, {newest} was", found[0]);
        }
    }
}

fn members(logs: bool) -> Vec<&'static str> {
    MEMBERS.into_iter().chain(logs.then_some("l0")).collect()
}

fn create(rig: &Rig, scheme: &str, logs: bool, options: &[&str]) {
    let mut args = vec!["create", "--scheme", scheme, "--parity", "1", "--file-size", "96MiB", "--data"];
    args.extend(MEMBERS);
    args.extend(if logs { &["--log", "l0"][..] } else { &[] });
    args.extend(["--chunk-size", "4KiB"]);
    args.extend(options);
    rig.run(&args).ok();
}

#[test]
fn a_killed_server_leaves_every_block_whole() {
    let rounds = std::env::var("ELASTRIPE_TORN_ROUNDS").ok().map_or(2, |value| value.parse().unwrap());
    for (scheme, logs) in every_scheme() {
        let rig = Rig::new();
        create(&rig, scheme, logs, &[]);
        // With the write cache where a scheme has one only if asked for.
        let options: &[&str] = if scheme == "eplog" { &["--cache-slots", "64"] } else { &[] };
        let mut blocks =
            Blocks { newest: [[0; BLOCKS as usize]; SIZES.len()], sequence: 0, random: rounds ^ 0x5eed };
        for round in 0..rounds {
            let server = Watched::serve(&rig, &members(logs), if round % 2 == 1 { options } else { &[] });
            let promised = rig.status(&members(logs))["untorn_bytes"].as_u64().unwrap();
            assert!(promised >= SIZES[1].0.into(), "{scheme} promises {promised} bytes");
            let mut client = Nbd::connect(&rig.path("nbd"), LIMIT);
            if round > 0 {
                check(&mut client, &blocks, &format!("{scheme}, after kill {round}"));
            }
            let answers = 100 + blocks.below(400);
            write_until(&mut client, &mut blocks, answers);
            drop(server); // which kills it, with requests in flight
        }
        let server = Watched::serve(&rig, &members(logs), &[]);
        let mut client = Nbd::connect(&rig.path("nbd"), LIMIT);
        check(&mut client, &blocks, &format!("{scheme}, after the last kill"));
        client.leave();
        server.stop();
    }
}

#[test]
fn status_says_how_large_writes_are_not_torn() {
    for (scheme, options, serve, bytes, words) in [
        ("eplog", &[][..], &[][..], 64 << 10, "up to 64 KiB"),
        ("raid", &[], &["--untorn-size", "256KiB"], 256 << 10, "up to 256 KiB"),
        ("raid", &["--consistency", "resync"], &[], 0, "no: a power cut may tear any write"),
    ] {
        let rig = Rig::new();
        let logs = scheme == "eplog";
        create(&rig, scheme, logs, options);
        let members = members(logs);
        let stopped = rig.status(&members);
        assert!(stopped["untorn_bytes"].is_null(), "whoever serves it says how large: {stopped}");
        let server = Watched::serve(&rig, &members, serve);
        assert_eq!(rig.status(&members)["untorn_bytes"], bytes, "{scheme} {options:?}");
        let text = rig.on("status", &members, &[]).ok().out;
        assert!(text.contains(words), "{text}");
        server.stop();
    }
}

#[test]
fn sizes_that_are_none_are_refused() {
    let rig = Rig::new();
    create(&rig, "raid", false, &[]);
    for size in ["32KiB", "96KiB", "2MiB"] {
        let args = [&["serve"], &MEMBERS[..], &["--nbd", "unix:nbd", "--untorn-size", size]].concat();
        let refused = rig.run(&args).code(2);
        assert!(refused.err.contains("a power of two from 64 KiB to 1 MiB"), "{refused:?}");
    }
}
