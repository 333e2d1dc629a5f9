//! An array of several shards behaves as an array: its volume is one, and so are its members.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, device, every_scheme, has, scribble, until};

/// The unit in which addresses go to the shards of 2+1: a write of so many MiB is in all of them.
const WRITES: [&str; 5] = [
    "write -P 1 0 5M",
    "write -P 2 1020k 8k",
    "write -P 3 2047k 2k",
    "write -P 4 3584k 1M",
    "write -P 5 9M 64k",
];
const READS: [&str; 8] = [
    "read -P 1 0 1020k",
    "read -P 2 1020k 8k",
    "read -P 1 1028k 1019k",
    "read -P 3 2047k 2k",
    "read -P 1 2049k 1535k",
    "read -P 4 3584k 1M",
    "read -P 1 4608k 512k",
    "read -P 5 9M 64k",
];

struct Case {
    rig: Rig,
    members: Vec<&'static str>,
}

fn case(scheme: &str, has_log: bool) -> Case {
    let rig = Rig::new();
    let size = if scheme == "elastic" || scheme == "was" { "96MiB" } else { "36MiB" };
    let mut create = vec!["create", "--scheme", scheme, "--parity", "1", "--shards", "3", "--name", "tri"];
    create.extend(["--file-size", size, "--data", "d0", "d1", "d2"]);
    let mut members = vec!["d0", "d1", "d2"];
    if has_log {
        create.extend(["--log", "l0"]);
        members.push("l0");
    }
    create.push("--json");
    let made = rig.run(&create).ok().json();
    assert_eq!(made["shard_count"], 3, "{made}");
    Case { rig, members }
}

#[test]
fn what_is_written_is_there_after_a_kill_a_loss_and_a_rebuild() {
    if !has("qemu-io") {
        return;
    }
    for (scheme, has_log) in every_scheme() {
        let Case { rig, members } = case(scheme, has_log);
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&[&WRITES[..], &["flush"], &READS[..]].concat()).ok();
        server.kill();
        let server = rig.serve(&members, &[]);
        rig.qemu_io(&READS).ok();
        rig.on("fail", &["d0"], &["--device", "data1", "--yes"]).ok();
        let status = rig.status(&["d0"]);
        assert_eq!((&status["state"], &status["shard_count"]), (&"degraded".into(), &3.into()));
        assert_eq!(device(&status, "data1")["state"], "failed");
        rig.qemu_io(&[&["write -P 6 6M 2M", "flush", "read -P 6 6M 2M"], &READS[..]].concat()).ok();
        let size = std::fs::metadata(rig.path("d0")).unwrap().len();
        let size = format!("{size}B");
        let with = ["--device", "data1", "--with", "new", "--file-size", &size, "--wait"];
        rig.on("replace", &["d0"], &with).ok();
        rig.on("scrub", &["d0"], &["--wait"]).ok();
        let status = rig.status(&["d0"]);
        assert_eq!(status["state"], "healthy", "{scheme}: {status:#}");
        assert_eq!(status["last_scrub"]["completed"], true);
        server.kill();
        // Another member is lost with the server: what is left, the new one in it, has it all.
        let left: Vec<&str> = members.iter().copied().filter(|&name| name != "d0" && name != "d1").collect();
        let left = [&left[..], &["new"]].concat();
        let server = rig.serve(&left, &["--degraded"]);
        rig.qemu_io(&[&["read -P 6 6M 2M"], &READS[..]].concat()).ok();
        server.stop().ok();
        let status = rig.status(&left);
        assert_eq!((&status["clean"], &status["state"]), (&true.into(), &"degraded".into()), "{scheme}");
    }
}

#[test]
fn discards_and_holes_are_those_of_one_volume() {
    if !has("qemu-io") || !has("nbdinfo") {
        return;
    }
    let Case { rig, members } = case("eplog", true);
    let server = rig.serve(&members, &[]);
    let size = rig.status(&["d0"])["volume_bytes"].as_u64().unwrap();
    rig.qemu_io(&[
        "write -P 1 0 8M",
        "discard 1M 5M",
        "flush",
        "read -P 1 0 1M",
        "read -P 0 1M 5M",
        "read -P 1 6M 2M",
    ])
    .ok();
    let uri = format!("nbd+unix:///?socket={}", rig.path("nbd").display());
    let mapped = std::process::Command::new("nbdinfo").args(["--map", &uri]).output().unwrap().stdout;
    let mapped = String::from_utf8(mapped).unwrap();
    let lines: Vec<Vec<&str>> = mapped.lines().map(|line| line.split_whitespace().collect()).collect();
    let extents: Vec<(u64, u64)> =
        lines.iter().map(|line| (line[1].parse().unwrap(), line[2].parse().unwrap())).collect();
    assert_eq!(extents, [(1 << 20, 0), (5 << 20, 3), (2 << 20, 0), (size - (8 << 20), 3)], "{mapped}");
    let all = format!("write -z -u 0 {size}");
    rig.qemu_io(&[&all, "flush", "read -P 0 0 8M"]).ok();
    let left = rig.status(&["d0"])["space"]["chunks_free"].as_u64().unwrap();
    let chunks = rig.status(&["d0"])["space"]["chunk_count"].as_u64().unwrap();
    until("what was freed is free", || {
        rig.status(&["d0"])["space"]["chunks_free"].as_u64().unwrap() + 3 * 3 * 3 >= chunks
    });
    assert!(left <= chunks);
    server.stop().ok();
}

#[test]
fn a_spare_takes_a_place_in_every_shard() {
    if !has("qemu-io") {
        return;
    }
    let Case { rig, members } = case("eplog", true);
    let mut server = rig.serve(&members, &[]);
    rig.qemu_io(&[&WRITES[..], &["flush"]].concat()).ok();
    rig.on("add", &["d0"], &["--spare", "spare", "--file-size", "36MiB"]).ok();
    rig.on("fail", &["d0"], &["--device", "data2", "--yes"]).ok();
    server.await_log("data2 is rebuilt");
    rig.qemu_io(&READS).ok();
    assert_eq!(rig.status(&["d0"])["state"], "healthy");
    server.stop().ok();
    let members = ["d0", "d1", "spare", "l0"];
    rig.on("scrub", &members, &[]).ok();
    assert_eq!(rig.status(&members)["state"], "healthy");
}

#[test]
fn numbers_of_shards_that_do_not_fit_are_refused() {
    let rig = Rig::new();
    let create = |shards: &'static str| {
        let rest = ["--file-size", "36MiB", "--data", "d0", "d1", "d2", "--log", "l0"];
        rig.run(&[&["create", "--parity", "1", "--shards", shards], &rest[..]].concat())
    };
    create("0").code(2);
    create("65").code(2);
    create("20").refused(&["too small", "at least"]);
    assert!(!rig.path("d0").exists(), "nothing was made");
}

/// A large array gets shards by itself, half as many as the machine has processors at most; a small one has
/// one.
#[test]
fn large_arrays_have_shards_by_themselves() {
    let rig = Rig::new();
    let shards = |size: &'static str, more: &[&'static str]| {
        let create = ["create", "--parity", "1", "--dry-run", "--json", "--data", "d0", "d1", "d2"];
        let output = rig.run(&[&create[..], &["--file-size", size], more].concat());
        output.ok().json()["shard_count"].as_u64().unwrap()
    };
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    assert_eq!(shards("1TiB", &[]), (processors / 2).clamp(1, 4));
    assert_eq!(shards("1TiB", &["--shards", "auto"]), (processors / 2).clamp(1, 4));
    assert_eq!(shards("1TiB", &["--shards", "3"]), 3);
    assert_eq!(shards("64MiB", &[]), 1);
}

#[test]
fn clients_on_threads_of_their_own_see_the_same_volume() {
    if !has("qemu-io") {
        return;
    }
    ["2", "shards", "0"].into_iter().for_each(clients_on_threads_are_clients_like_others);
    let Case { rig, members } = case("eplog", true);
    rig.on("serve", &members, &["--threads", "4", "--run", "true"]).refused(&["--threads 4", "has 3"]);
    rig.on("serve", &members, &["--socket-threads", "all", "--run", "true"]).refused(&[
        "--socket-threads",
        "\"all\"",
        "shards or a number from 0 to 64",
    ]);
    let server = rig.serve(&members, &["--socket-threads", "1", "--threads", "1"]);
    rig.qemu_io(&[&WRITES[..], &["flush"], &READS[..]].concat()).ok();
    until("its clients have gone", || rig.status(&["d0"])["clients"] == 0);
    let ended = server.stop().ok();
    assert!(ended.out.contains("connections were served"), "{ended:?}");
}

fn clients_on_threads_are_clients_like_others(socket_threads: &str) {
    let Case { rig, members } = case("eplog", true);
    let server = rig.serve(&members, &["--socket-threads", socket_threads, "--threads", "2"]);
    let reading: Vec<_> = (0..3).map(|_| rig.qemu_io_child(&["read 0 8M", "read 4M 8M"])).collect();
    rig.qemu_io(&[&WRITES[..], &["discard 10M 4M", "flush"], &READS[..]].concat()).ok();
    reading.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let busy = rig.qemu_io_child(&["read 0 1M", "sleep 60000"]);
    until("its client is seen", || rig.status(&["d0"])["clients"] == 1);
    rig.on("stop", &["d0"], &[]).refused(&["1 client is connected"]);
    server.kill();
    let mut busy = busy;
    busy.kill().unwrap();
    busy.wait().unwrap();
    for threads in ["1", "3"] {
        let server = rig.serve(&members, &["--socket-threads", socket_threads, "--threads", threads]);
        rig.qemu_io(&[&WRITES[..], &["discard 10M 4M", "flush"], &READS[..]].concat()).ok();
        server.kill();
    }
    let server = rig.serve(&members, &["--socket-threads", socket_threads, "--threads", "3"]);
    rig.qemu_io(&READS).ok();
    let ended = server.stop().ok();
    assert!(ended.out.contains("connections were served"), "{ended:?}");
}

#[test]
fn a_damaged_slice_does_not_cost_redundancy_unasked() {
    let Case { rig, members } = case("eplog", true);
    rig.serve(&members, &[]).stop().ok();
    // The stride is in the superblock; the second slice begins there.
    let block = std::fs::read(rig.path("d1")).unwrap();
    let stride = u64::from_le_bytes(block[3904..3912].try_into().unwrap());
    assert_eq!(&block[usize::try_from(stride).unwrap()..][..8], b"ELSTSUPR");
    let seen = |shard: &str| rig.on("inspect", &["d1"], &["--shard", shard, "--json"]);
    for shard in ["0", "1", "2"] {
        let journal = seen(shard).ok().json()[0]["journal"].clone();
        assert_eq!(journal["bad_frames"], 0, "{journal}");
    }
    assert_ne!(seen("0").out, seen("1").out);
    seen("3").refused(&["shard 3", "has 3"]);
    scribble(&rig.path("d1"), stride + 300, &[0x55; 64]);
    scribble(&rig.path("d1"), stride + 4096 + 300, &[0x55; 64]);
    seen("1").code(1);
    seen("2").ok();
    rig.on("serve", &members, &["--run", "true"]).refused(&["data1", "shard 1", "--degraded"]);
    rig.on("scrub", &members, &[]).refused(&["data1", "shard 1"]);
    assert_eq!(rig.status(&members)["state"], "degraded");
    rig.serve_run(&members, "true", &["--degraded"]).ok();
    let status = rig.status(&members);
    assert_eq!(device(&status, "data1")["state"], "failed", "{status:#}");
    rig.on("replace", &members, &["--device", "data1", "--with", "d1"]).ok();
    rig.on("scrub", &members, &[]).ok();
    assert_eq!(rig.status(&members)["state"], "healthy");
}

/// Where the slices of the shards begin on a member.
fn stride_of(rig: &Rig, member: &str) -> u64 {
    let block = std::fs::read(rig.path(member)).unwrap();
    u64::from_le_bytes(block[3904..3912].try_into().unwrap())
}

#[test]
fn a_member_that_some_shards_gave_up_and_others_need_comes_back() {
    if !has("qemu-io") {
        return;
    }
    let Case { rig, members } = case("eplog", true);
    let server = rig.serve(&members, &[]);
    rig.qemu_io(&[&WRITES[..], &["flush"]].concat()).ok();
    server.stop().ok();
    // One shard loses data0 and another one data1: together more than the array bears, each as many as it
    // does.
    for (member, shard) in [("d0", 2), ("d1", 1)] {
        let slice = shard * stride_of(&rig, member);
        [0, 4096].into_iter().for_each(|copy| scribble(&rig.path(member), slice + copy + 300, &[0x55; 64]));
    }
    let mut server = rig.serve(&members, &["--degraded"]);
    rig.qemu_io(&READS).ok();
    let status = rig.status(&["d2"]);
    assert_eq!(device(&status, "data0")["state"], "failed", "{status:#}");
    assert_eq!(device(&status, "data1")["state"], "failed", "{status:#}");
    // No other device can take either place.
    let with = ["--device", "data0", "--with", "new", "--file-size", "36MiB"];
    rig.on("replace", &["d2"], &with).refused(&["data0", "online --full"]);
    let before = std::fs::read(rig.path("d0")).unwrap();
    std::fs::write(rig.path("copy"), &before).unwrap();
    rig.on("online", &["d2"], &["--device", "data0", "--full", "--with", "copy"])
        .refused(&["copy", "in service"]);
    rig.on("online", &["d2"], &["--device", "data0", "--full", "--wait"]).ok();
    server.await_log("data0 is rebuilt");
    let status = rig.status(&["d2"]);
    assert_eq!(device(&status, "data0")["state"], "healthy", "{status:#}");
    rig.qemu_io(&[&READS[..], &["write -P 7 10M 1M", "flush"]].concat()).ok();
    rig.on("online", &["d2"], &["--device", "data1", "--full", "--wait"]).ok();
    server.await_log("data1 is rebuilt");
    assert_eq!(rig.status(&["d2"])["state"], "healthy");
    rig.on("scrub", &["d2"], &["--wait"]).ok();
    server.kill();
    // All of it is there without any one of them.
    let server = rig.serve(&["d1", "d2", "l0"], &["--degraded"]);
    rig.qemu_io(&[&READS[..], &["read -P 7 10M 1M"]].concat()).ok();
    server.stop().ok();
}

#[test]
fn the_end_of_a_rebuild_is_told_once_whichever_shard_ends_last() {
    if !has("qemu-io") {
        return;
    }
    let Case { rig, members } = case("elastic", false);
    let server = rig.serve(&members, &[]);
    rig.qemu_io(&[&WRITES[..], &["flush"]].concat()).ok();
    let size = format!("{}B", std::fs::metadata(rig.path("d0")).unwrap().len());
    for new in ["new0", "new1", "new2"] {
        let with =
            ["--device", "data1", "--with", new, "--file-size", &size, "--fail-first", "--yes", "--wait"];
        rig.on("replace", &["d0"], &with).ok();
    }
    let log = server.stop().ok().err;
    for line in ["rebuild begins", "rebuild ended after", "data1 is rebuilt"] {
        assert_eq!(log.matches(line).count(), 3, "{line}: {log}");
    }
}
