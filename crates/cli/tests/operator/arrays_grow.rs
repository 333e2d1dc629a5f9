//! Arrays take the room of devices that have become larger.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, every_scheme, has, qemu_script};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

/// Bytes written with one pattern.
const STRETCH: u64 = 4 << 20;

/// Makes an array of two data columns and so many parities; its members, and how many of them are SSDs.
fn array(rig: &Rig, scheme: &str, parities: usize, logs: bool) -> (Vec<&'static str>, usize) {
    let size = if scheme == "elastic" || scheme == "was" { "48MiB" } else { "20MiB" };
    let mains = &["d0", "d1", "d2", "d3"][..2 + parities];
    let logs = if logs { &["l0", "l1"][..parities] } else { &[] };
    let count = parities.to_string();
    let mut create = vec!["create", "--scheme", scheme, "--parity", &count, "--file-size", size, "--data"];
    create.extend(mains);
    if !logs.is_empty() {
        create.push("--log");
        create.extend(logs);
    }
    rig.run(&create).ok();
    ([mains, logs].concat(), mains.len())
}

/// Files become larger, and what is new in them reads as zeros.
pub fn enlarge(rig: &Rig, names: &[&str], more: u64) {
    for name in names {
        let file = std::fs::File::options().write(true).open(rig.path(name)).unwrap();
        file.set_len(file.metadata().unwrap().len() + more).unwrap();
    }
}

fn volume(rig: &Rig, members: &[&str]) -> u64 {
    rig.status(members)["volume_bytes"].as_u64().unwrap()
}

/// What a stretch of the volume is filled with; the last one may be short.
fn each_stretch(bytes: std::ops::Range<u64>, verb: &str) -> Vec<String> {
    let starts = (0..).map(|at| at * STRETCH).skip_while(|&at| at < bytes.start);
    let starts = starts.take_while(|&at| at < bytes.end);
    let command = |at: u64| {
        let pattern = at / STRETCH % 250 + 1;
        format!("{verb} -P {pattern} {at} {}", STRETCH.min(bytes.end - at))
    };
    starts.map(command).collect()
}

/// Serves the members while these commands run, which must find what they expect.
fn exchange(rig: &Rig, members: &[&str], commands: &[String], options: &[&str]) {
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    rig.serve_run(members, &qemu_script(&commands), options).ok();
}

#[test]
fn all_that_was_there_stays_and_the_new_room_is_as_safe() {
    if !has("qemu-io") {
        return;
    }
    for (scheme, logs) in every_scheme() {
        let rig = Rig::new();
        let (members, mains) = array(&rig, scheme, 2, logs);
        let old = volume(&rig, &members) / STRETCH * STRETCH;
        exchange(&rig, &members, &each_stretch(0..old, "write"), &[]);
        rig.on("grow", &members, &[]).refused(&["data0", "to grow at all", "more"]);
        enlarge(&rig, &members[..mains], 24 << 20);
        let before = rig.fingerprint(&members);
        let planned = rig.on("grow", &members, &["--dry-run", "--json"]).ok().json();
        assert_eq!(before, rig.fingerprint(&members), "{scheme}: a dry run wrote something");
        let grown = rig.on("grow", &members, &["--json"]).ok().json();
        assert_eq!(planned["volume_bytes"], grown["volume_bytes"], "{scheme}");
        let all = volume(&rig, &members);
        assert_eq!(grown["volume_bytes"], all, "{scheme}");
        assert!(all > old + (24 << 20), "{scheme}: {old} to {all}");
        let all = all / STRETCH * STRETCH;
        // What is new reads as zeros, and is filled; what is old is there.
        let zeros = format!("read -P 0 {old} {STRETCH}");
        let first = old + STRETCH;
        let fresh = [vec![zeros], each_stretch(first..all, "write"), each_stretch(0..old, "read")].concat();
        exchange(&rig, &members, &fresh, &[]);
        // A second time: what was metadata before is data now.
        enlarge(&rig, &members[..mains], 12 << 20);
        rig.on("grow", &members, &[]).ok();
        let end = volume(&rig, &members) / STRETCH * STRETCH;
        assert!(end > all, "{scheme}: {all} to {end}");
        let server = rig.serve(&members, &[]);
        let more = each_stretch(all..end, "write");
        rig.qemu_io(&more.iter().map(String::as_str).chain(["flush"]).collect::<Vec<_>>()).ok();
        server.kill();
        for lost in [["d0", "d3"], ["d1", "d2"]] {
            let left: Vec<&str> = members.iter().copied().filter(|name| !lost.contains(name)).collect();
            let copies: Vec<Vec<u8>> =
                members.iter().map(|name| std::fs::read(rig.path(name)).unwrap()).collect();
            let reads = [each_stretch(0..old, "read"), each_stretch(first..end, "read")].concat();
            exchange(&rig, &left, &reads, &["--degraded"]);
            for (name, bytes) in members.iter().zip(copies) {
                std::fs::write(rig.path(name), bytes).unwrap();
            }
        }
        let scrub = rig.on("scrub", &members, &[]).ok();
        assert!(scrub.out.contains("0 chunks healed, 0 code words lost"), "{scheme}: {scrub:?}");
    }
}

#[test]
fn a_growth_that_is_killed_leaves_the_old_size_or_the_new_one() {
    if !has("qemu-io") {
        return;
    }
    for (scheme, shards) in [("eplog", 1), ("was", 1), ("eplog", 2)] {
        let rig = Rig::new();
        let logs = scheme == "eplog";
        let (members, mains) =
            if shards > 1 { (sharded(&rig, scheme), 4) } else { array(&rig, scheme, 1, logs) };
        let old = 12 << 20;
        exchange(&rig, &members, &each_stretch(0..old, "write"), &[]);
        // As long as it takes is where the end of it is.
        enlarge(&rig, &members[..mains], 12 << 20);
        let begun = Instant::now();
        rig.on("grow", &members, &[]).ok();
        let whole = begun.elapsed();
        for tenths in [0, 3, 5, 6, 7, 8, 9, 10, 11, 13, 20, 40] {
            enlarge(&rig, &members[..mains], shards * (6 << 20));
            let planned = rig.on("grow", &members, &["--dry-run", "--json"]).ok().json();
            let before = volume(&rig, &members);
            let mut arguments = vec!["grow"];
            arguments.extend(&members);
            let mut child = rig.command(&arguments).spawn().unwrap();
            std::thread::sleep(whole * tenths / 10);
            let _ = child.kill();
            child.wait().unwrap();
            let after = volume(&rig, &members);
            // What was cut short between shards is brought to its end first; then there may be room for more.
            let further = shards > 1 && planned["volume_bytes"].as_u64().is_some_and(|goal| goal < after);
            let as_planned = planned["volume_bytes"] == after || further;
            assert!(after == before || as_planned, "{scheme}: {before}, then {after}");
            exchange(&rig, &members, &each_stretch(0..old, "read"), &[]);
        }
        enlarge(&rig, &members[..mains], shards * (6 << 20));
        let before = volume(&rig, &members);
        rig.on("grow", &members, &[]).ok();
        assert!(volume(&rig, &members) > before, "{scheme}: what was cut short can be done");
        rig.on("scrub", &members, &[]).ok();
    }
}

#[test]
fn members_are_replaced_by_larger_ones_and_then_the_array_grows() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let (mut members, _) = array(&rig, "eplog", 1, true);
    let old = volume(&rig, &members) / STRETCH * STRETCH;
    let server = rig.serve(&members, &[]);
    let fill = each_stretch(0..old, "write");
    rig.qemu_io(&fill.iter().map(String::as_str).collect::<Vec<_>>()).ok();
    let larger = ["n0", "n1", "n2"];
    for (index, new) in larger.into_iter().enumerate() {
        let device = format!("data{index}");
        let options = ["--device", device.as_str(), "--with", new, "--file-size", "72MiB", "--wait"];
        rig.on("replace", &["l0"], &options).ok();
        members[index] = new;
        let dry = rig.on("grow", &["l0"], &["--dry-run"]);
        if index < 2 {
            dry.refused(&[&format!("data{}", index + 1), "to grow at all"]);
        } else {
            assert!(dry.ok().out.contains("would grow"));
        }
    }
    let grown = rig.on("grow", &["l0"], &[]).ok();
    assert!(grown.out.contains("has grown") && grown.out.contains("it is being served"), "{grown:?}");
    server.stop().ok();
    let all = volume(&rig, &members);
    assert!(all > old * 3 / 2, "{old} to {all}");
    exchange(&rig, &members, &each_stretch(0..old, "read"), &[]);
}

#[test]
fn what_cannot_grow_says_why_and_stays_as_it_was() {
    let rig = Rig::new();
    let (members, _) = array(&rig, "raid", 2, false);
    enlarge(&rig, &["d0", "d1", "d2"], 40 << 20);
    rig.on("grow", &members, &[]).refused(&["data3", "d3", "are used", "more"]);
    enlarge(&rig, &["d3"], 40 << 20);
    rig.on("grow", &["d0", "d1", "d2"], &[]).refused(&["data3", "not among the named paths"]);
    rig.on("grow", &["d0", "d1", "d2"], &["--dry-run"]).refused(&["data3", "missing"]);
    rig.on("fail", &members, &["--device", "data1"]).ok();
    rig.on("grow", &["d0", "d2", "d3"], &[]).refused(&["data1", "must be in service and whole"]);
    let small = std::fs::File::options().write(true).open(rig.path("d2")).unwrap();
    small.set_len(18 << 20).unwrap();
    rig.on("grow", &["d0", "d2", "d3"], &[]).refused(&["d2", "18874368"]);

    // By added devices it does not grow: what was asked for, why not, what else.
    let rig = Rig::new();
    let (members, _) = array(&rig, "raid", 1, false);
    enlarge(&rig, &members, 40 << 20);
    std::fs::write(rig.path("new"), vec![0; 60 << 20]).unwrap();
    let before = rig.fingerprint(&members);
    let words = ["does not grow by added devices", "would have to move", "replace", "create"];
    rig.on("grow", &[&members[..], &["new"]].concat(), &[])
        .refused(&[&["new", "no member"][..], &words].concat());
    let ran = rig.run(&["grow", "d0", "--raid-devices", "4"]);
    assert!(words.iter().all(|word| ran.err.contains(word)), "{ran:?}");
    assert_eq!(before, rig.fingerprint(&members));

    let rig = Rig::new();
    let create =
        ["create", "--scheme", "raid", "--consistency", "resync", "--parity", "1", "--file-size", "36MiB"];
    rig.run(&[&create[..], &["--data", "d0", "d1", "d2"]].concat()).ok();
    enlarge(&rig, &["d0", "d1", "d2"], 40 << 20);
    rig.on("grow", &["d0", "d1", "d2"], &[]).refused(&["--consistency resync"]);
    let ran = rig.run(&["expand", "d0"]);
    assert!(ran.err.contains("here it is `elastripe grow`"), "{ran:?}");
}

/// Makes an array of two shards; its members.
fn sharded(rig: &Rig, scheme: &str) -> Vec<&'static str> {
    let logs: &[&str] = if scheme == "eplog" { &["--log", "l0", "l1"] } else { &[] };
    let create = ["create", "--scheme", scheme, "--parity", "2", "--shards", "2", "--file-size", "48MiB"];
    let mains = ["--data", "d0", "d1", "d2", "d3"];
    rig.run(&[&create[..], &mains[..], logs].concat()).ok();
    [&["d0", "d1", "d2", "d3"][..], logs.get(1..).unwrap_or_default()].concat()
}

#[test]
fn an_array_of_several_shards_grows_and_is_as_safe_as_before() {
    if !has("qemu-io") {
        return;
    }
    for scheme in ["eplog", "raid"] {
        let rig = Rig::new();
        let members = sharded(&rig, scheme);
        let old = volume(&rig, &members) / STRETCH * STRETCH;
        exchange(&rig, &members, &each_stretch(0..old, "write"), &[]);
        rig.on("grow", &members, &[]).refused(&["data0", "to grow at all", "more"]);
        let mut before = old;
        for more in [26 << 20, 13 << 20] {
            enlarge(&rig, &members[..4], more);
            let planned = rig.on("grow", &members, &["--dry-run", "--json"]).ok().json();
            let grown = rig.on("grow", &members, &["--json"]).ok().json();
            let all = volume(&rig, &members);
            assert_eq!((&planned["volume_bytes"], &grown["volume_bytes"]), (&all.into(), &all.into()));
            assert!(all > before + more, "{scheme}: {before} to {all}");
            // Who only looks finds the metadata where it is now.
            let status = rig.on("status", &members, &[]);
            assert!(!status.out.contains("FAILED") && status.out.contains("state:"), "{scheme}: {status:?}");
            let looked = rig.on("inspect", &members[..1], &[]).ok();
            assert!(looked.out.contains("full-checkpoint area"), "{scheme}: {looked:?}");
            assert!(!looked.out.contains("area 0: empty"), "{scheme}: {looked:?}");
            let all = all / STRETCH * STRETCH;
            let zeros = format!("read -P 0 {before} {STRETCH}");
            exchange(&rig, &members, &[vec![zeros], each_stretch(0..old, "read")].concat(), &[]);
            let server = rig.serve(&members, &[]);
            let fill = each_stretch(before..all, "write");
            rig.qemu_io(&fill.iter().map(String::as_str).chain(["flush"]).collect::<Vec<_>>()).ok();
            server.kill();
            before = all;
        }
        for lost in [["d0", "d3"], ["d1", "d2"]] {
            let left: Vec<&str> = members.iter().copied().filter(|name| !lost.contains(name)).collect();
            let copies: Vec<Vec<u8>> =
                members.iter().map(|name| std::fs::read(rig.path(name)).unwrap()).collect();
            exchange(&rig, &left, &each_stretch(0..before, "read"), &["--degraded"]);
            for (name, bytes) in members.iter().zip(copies) {
                std::fs::write(rig.path(name), bytes).unwrap();
            }
        }
        // A device that is smaller than what the grown array uses cannot take a place.
        rig.on("scrub", &members, &[]).ok();
        let server = rig.serve(&members, &[]);
        let small = ["--device", "data1", "--with", "small", "--file-size", "48MiB"];
        rig.on("replace", &["d0"], &small).refused(&["48 MiB", "use a larger device"]);
        let large = ["--device", "data1", "--with", "large", "--file-size", "87MiB", "--wait"];
        rig.on("replace", &["d0"], &large).ok();
        server.stop().ok();
        let members: Vec<&str> =
            members.iter().map(|&name| if name == "d1" { "large" } else { name }).collect();
        exchange(&rig, &members, &each_stretch(0..before, "read"), &[]);
        let scrub = rig.on("scrub", &members, &[]).ok();
        assert!(scrub.out.contains("0 chunks healed, 0 code words lost"), "{scheme}: {scrub:?}");
    }
}

/// One shard has grown and the other has not: as if power had failed between them.
#[test]
fn shards_that_have_grown_wait_for_the_others() {
    if !has("qemu-io") {
        return;
    }
    let rig = Rig::new();
    let members = sharded(&rig, "eplog");
    let old = volume(&rig, &members);
    let filled = old / STRETCH * STRETCH;
    exchange(&rig, &members, &each_stretch(0..filled, "write"), &[]);
    enlarge(&rig, &members[..4], 24 << 20);
    let heads: Vec<Vec<u8>> = members.iter().map(|name| slice_of_first(&rig, name)).collect();
    rig.on("grow", &members, &[]).ok();
    let new = volume(&rig, &members);
    assert!(new > old);
    // The first shard comes last: what it held before counts again.
    for (name, head) in members.iter().zip(&heads) {
        let device = std::fs::File::options().write(true).open(rig.path(name)).unwrap();
        device.write_all_at(head, 0).unwrap();
    }
    let status = rig.status(&members);
    assert_eq!(status["volume_bytes"], old);
    assert!(status["notes"].to_string().contains("1 of 2 shards have grown"), "{status}");
    // It is served as large as before.
    exchange(&rig, &members, &each_stretch(0..filled, "read"), &[]);
    let server = rig.serve(&members, &[]);
    let status = rig.status(&["d0"]);
    assert_eq!(status["volume_bytes"], old);
    assert!(status["notes"].to_string().contains("give `grow` again"), "{status}");
    server.stop().ok();
    let dry = rig.on("grow", &members, &["--dry-run", "--json"]).ok().json();
    assert_eq!(dry["volume_bytes"], new);
    rig.on("grow", &members, &[]).ok();
    assert_eq!(volume(&rig, &members), new);
    assert!(!rig.status(&members)["notes"].to_string().contains("grow"));
    exchange(&rig, &members, &each_stretch(0..filled, "read"), &[]);
    let scrub = rig.on("scrub", &members, &[]).ok();
    assert!(scrub.out.contains("0 chunks healed, 0 code words lost"), "{scrub:?}");
}

/// What the first of two shards has of a device of 48 MiB.
fn slice_of_first(rig: &Rig, name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 24 << 20];
    std::fs::File::open(rig.path(name)).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}
