//! What a scrub has passed is there when other members are lost: one area after the other is damaged on as
//! many members as the array bears, under a running server; after the scrub the server is killed, as many
//! others are taken away, and every block is read.
//!
//! `ELASTRIPE_SCRUB_LONG=1` tries every area with every scheme, m = 1 and 2; without it a few of each.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, device, has, qemu_script};
use format::{ArrayConfig, Superblock};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK: u64 = 4096;

/// What is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Area {
    SuperblockA,
    SuperblockB,
    Superblocks,
    FullHeader,
    FullPages,
    IncrementalHeader,
    IncrementalPages,
    Frames,
    Chunks,
    Slots,
    Everything,
}

const AREAS: [Area; 11] = [
    Area::SuperblockA,
    Area::SuperblockB,
    Area::Superblocks,
    Area::FullHeader,
    Area::FullPages,
    Area::IncrementalHeader,
    Area::IncrementalPages,
    Area::Frames,
    Area::Chunks,
    Area::Slots,
    Area::Everything,
];

#[derive(Clone, Copy, Debug)]
struct Case {
    scheme: &'static str,
    parity: usize,
    area: Area,
}

/// The blocks of a member in which a bit is to flip: those of the area that hold anything.
fn targets(config: &ArrayConfig, log: bool, area: Area, bytes: &[u8]) -> Vec<u64> {
    let range = |start: u64, blocks: u32| start..start + u64::from(blocks) * BLOCK;
    let metadata = |kind: &[u8]| -> Vec<Range<u64>> {
        let start = if log { format::LOG_START_BYTES } else { 2 * BLOCK };
        let end = if log { bytes.len() as u64 } else { config.data_start() };
        let begins = |at: &u64| bytes[usize::try_from(*at).unwrap()..].starts_with(kind);
        (start..end).step_by(4096).filter(begins).map(|at| range(at, 1)).collect()
    };
    let full = |block: u64| {
        (0..2).map(|which| config.full_offset(which, 0) + block * BLOCK).map(|at| range(at, 1)).collect()
    };
    let incremental = |ranges: Vec<Range<u64>>| {
        let area = range(config.incremental_offset(0), config.incremental_blocks);
        ranges.into_iter().filter(|at| area.contains(&at.start)).collect()
    };
    let chunks = || {
        let start = if log { format::LOG_START_BYTES } else { config.data_start() };
        let frame = |at: &u64| bytes[usize::try_from(*at).unwrap()..].starts_with(b"ELSTFRAM");
        let ends = (start..bytes.len() as u64).step_by(4096);
        ends.filter(|at| !(log && frame(at))).map(|at| range(at, 1)).collect()
    };
    let ranges: Vec<Range<u64>> = match area {
        Area::SuperblockA => vec![range(0, 1)],
        Area::SuperblockB => vec![range(BLOCK, 1)],
        Area::Superblocks => vec![range(0, 2)],
        Area::FullHeader if !log => full(0),
        Area::FullPages if !log => full(1),
        Area::IncrementalHeader if !log => incremental(metadata(b"ELSTCKPT")),
        Area::IncrementalPages if !log => incremental(metadata(b"ELSTPAGE")),
        Area::Slots if !log => vec![range(config.page_offset(0), config.page_blocks)],
        Area::FullHeader
        | Area::FullPages
        | Area::IncrementalHeader
        | Area::IncrementalPages
        | Area::Slots => Vec::new(),
        Area::Frames => metadata(b"ELSTFRAM"),
        Area::Chunks => chunks(),
        Area::Everything => std::iter::once(0..bytes.len() as u64).collect(),
    };
    let holds = |at: &u64| {
        let at = usize::try_from(*at).unwrap();
        bytes[at..at + 4096].iter().any(|&byte| byte != 0)
    };
    ranges.into_iter().flat_map(|range| range.step_by(4096)).filter(holds).collect()
}

fn superblock(path: &Path) -> Superblock {
    let file = File::open(path).unwrap();
    let read = |offset| {
        let mut bytes = [0; 4096];
        file.read_exact_at(&mut bytes, offset).unwrap();
        Some(bytes)
    };
    Superblock::read_newest(read).unwrap()
}

/// A bit flips in each block of the area on a member. How many blocks that were.
fn damage(path: &Path, area: Area, log: bool) -> usize {
    let config = superblock(path).config;
    let bytes = std::fs::read(path).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let targets = targets(&config, log, area, &bytes);
    for &at in &targets {
        let at = at + 40; // behind the magic, so that the block still looks like what it is
        file.write_all_at(&[bytes[usize::try_from(at).unwrap()] ^ 0x10], at).unwrap();
    }
    targets.len()
}

/// The number of the newest checkpoint on a member, or 0.
fn newest_checkpoint(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let headers = bytes.chunks_exact(4096).filter(|block| block.starts_with(b"ELSTCKPT"));
    headers.map(|header| u64::from_le_bytes(header[48..56].try_into().unwrap())).max().unwrap_or(0)
}

const WRITES: [&str; 5] = [
    "write -P 1 0 2M",
    "write -P 2 512k 64k",
    "write -P 3 1028k 4k",
    "write -P 4 8k 12k",
    "write -P 5 1536k 256k",
];
const CHECK: [&str; 9] = [
    "read -P 1 0 8k",
    "read -P 4 8k 12k",
    "read -P 1 20k 492k",
    "read -P 2 512k 64k",
    "read -P 1 576k 452k",
    "read -P 3 1028k 4k",
    "read -P 1 1032k 504k",
    "read -P 5 1536k 256k",
    "read -P 1 1792k 256k",
];

/// Runs one array through it all; how much the scrub says it repaired.
fn run(case: Case) -> u64 {
    let Case { scheme, parity, area } = case;
    let rig = Rig::new();
    let data: Vec<String> = (0..2 + parity).map(|i| format!("d{i}")).collect();
    let has_log = matches!(scheme, "eplog" | "parity-log");
    let logs: Vec<String> = (0..if has_log { parity } else { 0 }).map(|i| format!("l{i}")).collect();
    let parity_text = parity.to_string();
    let mut args = vec!["create", "--scheme", scheme, "--parity", &parity_text, "--file-size", "12MiB"];
    args.extend(["--name", "tank", "--data"]);
    args.extend(data.iter().map(String::as_str));
    if has_log {
        args.push("--log");
        args.extend(logs.iter().map(String::as_str));
    }
    rig.run(&args).ok();
    let all: Vec<&str> = data.iter().chain(&logs).map(String::as_str).collect();
    let server = rig.serve(&all, &["--commit-idle", "off", "--patrol", "off"]);
    rig.qemu_io(&[&WRITES[..2], &["flush"]].concat()).ok();
    rig.on("checkpoint", &["d0"], &["--full"]).ok();
    rig.qemu_io(&[&WRITES[2..3], &["flush"]].concat()).ok();
    rig.on("checkpoint", &["d0"], &["--incremental"]).ok();
    rig.qemu_io(&[&WRITES[3..], &["flush"]].concat()).ok();

    // Hurt are holders of the newest checkpoint, or of the log; lost are the other holders first.
    let newest = all.iter().map(|name| newest_checkpoint(&rig.path(name))).max().unwrap();
    let holds = |name: &&str| newest_checkpoint(&rig.path(name)) == newest;
    let of_log = matches!(area, Area::Frames | Area::Chunks) && has_log;
    let mut order: Vec<&str> = all.clone();
    order.sort_by_key(|name| if of_log { !name.starts_with('l') } else { !holds(name) });
    let (hurt, rest) = order.split_at(parity);
    let mut rest = rest.to_vec();
    rest.sort_by_key(|name| !holds(name));
    let (lost, _) = rest.split_at(parity);
    let hurt_blocks: usize =
        hurt.iter().map(|name| damage(&rig.path(name), area, name.starts_with('l'))).sum();
    assert!(hurt_blocks > 0, "{case:?}: nothing to be damaged on {hurt:?}");

    let scrub = rig.on("scrub", &rest[..1], &["--wait", "--json"]);
    let scrub = if scrub.code == 0 { scrub.json() } else { panic!("{case:?}: {scrub:#?}") };
    let work = &scrub["last_work"];
    let repaired =
        work["metadata_repaired"].as_u64().unwrap_or(0) + work["chunks_repaired"].as_u64().unwrap_or(0);
    assert_eq!(scrub["state"], "healthy", "{case:?}: {scrub:#}");
    server.kill();
    let left: Vec<&str> = all.iter().copied().filter(|name| !lost.contains(name)).collect();
    let ran = rig.serve_run(&left, &qemu_script(&CHECK), &["--degraded"]);
    assert_eq!(ran.code, 0, "{case:?}: hurt {hurt:?}, lost {lost:?}: {ran:#?}");
    repaired
}

#[test]
fn what_a_scrub_has_passed_bears_the_loss_of_others() {
    if !has("qemu-io") {
        return;
    }
    let long = std::env::var_os("ELASTRIPE_SCRUB_LONG").is_some();
    let schemes = ["raid", "eplog", "parity-log", "elastic", "was"];
    let mut silent = Vec::new();
    let mut count = 0;
    for (i, scheme) in schemes.into_iter().enumerate() {
        for parity in [1, 2] {
            for (j, area) in AREAS.into_iter().enumerate() {
                // One array with two parities, two with one, each scheme with areas of its own.
                let drawn = if parity == 2 {
                    area == Area::Everything
                } else {
                    ((i * 2 + 3) % 9 / 2 == j / 2 && j < 9) || (area == Area::Slots && i % 2 == 1)
                };
                if long || drawn {
                    let case = Case { scheme, parity, area };
                    count += 1;
                    if run(case) == 0 {
                        silent.push(case);
                    }
                }
            }
        }
    }
    // Pages that the newest checkpoint does not need may be damaged without a word; and log chunks of
    // `parity-log`: a scrub encodes their stripes anew from the data, and then nobody needs them.
    let excused = |case: &Case| {
        case.area == Area::FullPages || (case.scheme == "parity-log" && case.area == Area::Chunks)
    };
    assert!(silent.iter().all(excused), "nothing was found: {silent:?}");
    assert!(count > 10, "{count} arrays");
}

/// A server with data on it, two parities, no log devices.
fn served(rig: &Rig, options: &[&str]) -> crate::common::Server {
    rig.run(&[
        "create",
        "--scheme",
        "raid",
        "--parity",
        "2",
        "--file-size",
        "12MiB",
        "--data",
        "d0",
        "d1",
        "d2",
        "d3",
    ])
    .ok();
    let server = rig.serve(&["d0", "d1", "d2", "d3"], options);
    rig.qemu_io(&["write -P 7 0 2M", "flush"]).ok();
    server
}

#[test]
fn a_device_that_is_not_what_it_was_is_taken_out() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let server = served(&rig, &[]);
    File::options().write(true).open(rig.path("d1")).unwrap().set_len(3 << 20).unwrap();
    let scrub = rig.on("scrub", &["d0"], &["--wait", "--json"]).code(1).json();
    assert_eq!((&scrub["state"], &device(&scrub, "data1")["state"]), (&"degraded".into(), &"failed".into()));
    // Another array's superblocks.
    rig.run(&[
        "create",
        "--scheme",
        "raid",
        "--parity",
        "1",
        "--file-size",
        "12MiB",
        "--data",
        "x0",
        "x1",
        "x2",
    ])
    .ok();
    let foreign = std::fs::read(rig.path("x2")).unwrap();
    File::options().write(true).open(rig.path("d2")).unwrap().write_all_at(&foreign[..8192], 0).unwrap();
    let scrub = rig.on("scrub", &["d0"], &["--wait", "--json"]).code(1).json();
    assert_eq!(device(&scrub, "data2")["state"], "failed");
    // One more would be one too many: it is said, and stays in service.
    std::fs::remove_file(rig.path("d3")).unwrap();
    rig.on("scrub", &["d0"], &["--wait"]);
    assert_eq!(device(&rig.status(&["d0"]), "data3")["state"], "healthy");
    assert!(!rig.qemu_io(&["read -P 7 0 2M"]).ok().out.contains("failed"));
    let ran = server.stop();
    for words in ["data1 (", "truncated", "data2 (", "another member or array", "data3 (", "was deleted"] {
        assert!(ran.err.contains(words), "{words}: {ran:#?}");
    }
}

#[test]
fn a_patrol_mends_metadata_while_nobody_asks() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let mut server = served(&rig, &["--patrol", "300ms"]);
    damage(&rig.path("d0"), Area::Superblocks, false);
    damage(&rig.path("d1"), Area::IncrementalHeader, false);
    damage(&rig.path("d1"), Area::Frames, false);
    server.await_log("were repaired");
    server.kill();
    std::fs::remove_file(rig.path("d2")).unwrap();
    std::fs::remove_file(rig.path("d3")).unwrap();
    rig.serve_run(&["d0", "d1"], &qemu_script(&["read -P 7 0 2M"]), &["--degraded"]).ok();
}

#[test]
fn scrubs_and_errors_are_remembered() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let server = served(&rig, &["--patrol", "off"]);
    let all = ["d0", "d1", "d2", "d3"];
    let fresh = rig.on("status", &["d0"], &[]).ok();
    assert!(fresh.out.contains("scrub: never"), "{fresh:?}");
    assert_eq!(rig.status(&["d0"])["last_scrub"], serde_json::Value::Null);
    let hurt = damage(&rig.path("d1"), Area::Chunks, false) as u64;
    damage(&rig.path("d2"), Area::Superblocks, false);
    let scrub = rig.on("scrub", &["d0"], &["--wait"]).ok();
    assert!(scrub.out.contains(&format!("{hurt} chunks healed")), "{scrub:?}");
    assert!(scrub.out.contains("2 metadata blocks written anew"), "{scrub:?}");

    let shown = rig.on("status", &["d0"], &[]).ok();
    for words in [
        &format!("scrub repaired {hurt} chunks and 2 metadata blocks in "),
        "with 0 errors left, on 20",
        &format!("data1 returned wrong data {hurt} times (all were repaired) since 20"),
        "replace data1 if it goes on",
    ] {
        assert!(shown.out.contains(words), "{words}: {shown:#?}");
    }
    let status = rig.status(&["d0"]);
    assert_eq!(status["troubled"], serde_json::json!(["data1", "data2"]));
    assert_eq!(
        (&status["last_scrub"]["chunks_repaired"], &status["last_scrub"]["completed"]),
        (&hurt.into(), &true.into())
    );
    let ran = server.stop().ok();
    assert!(ran.err.contains("scrub begins") && ran.err.contains("scrub repaired"), "{ran:?}");

    // After a restart, and while nobody serves it.
    assert_eq!(rig.status(&all)["last_scrub"], status["last_scrub"]);
    let server = rig.serve(&all, &[]);
    let again = rig.status(&["d0"]);
    assert_eq!((&again["last_scrub"], &again["troubled"]), (&status["last_scrub"], &status["troubled"]));
    assert_eq!(device(&again, "data1")["errors"]["checksum"], hurt);

    rig.on("clear", &["d0"], &["--device", "data9"]).refused(&["data9", "data0, data1"]);
    rig.on("clear", &["d0"], &["--device", "data2"]).ok();
    assert_eq!(rig.status(&["d0"])["troubled"], serde_json::json!(["data1"]));
    // Errors are those of a device, not of its place.
    rig.on("replace", &["d0"], &["--device", "data1", "--with", "n1", "--file-size", "12MiB", "--wait"]).ok();
    let status = rig.status(&["d0"]);
    assert_eq!(
        (&status["troubled"], &device(&status, "data1")["errors"]["checksum"]),
        (&serde_json::json!([]), &0.into())
    );
    server.kill();
    let all = ["d0", "n1", "d2", "d3"];
    rig.on("clear", &all, &[]).ok();
    assert_eq!(rig.status(&all)["last_scrub"]["metadata_repaired"], 2);
}
