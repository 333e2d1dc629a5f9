//! `create` makes what is missing, refuses what belongs to somebody, and leaves nothing behind when it fails.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Ran, Rig, has, scribble};
use crate::devices_lack_room_or_hang::small_file_system;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

#[test]
fn missing_paths_become_sparse_files_and_the_array_is_healthy() {
    let rig = Rig::new();
    let made = rig.create(&["--json"]).ok().json();
    assert_eq!(made["data_count"], 2);
    assert_eq!(made["devices"].as_array().unwrap().len(), 6);
    let status = rig.on("status", &MEMBERS, &["--json"]).ok().json();
    assert_eq!((&status["state"], &status["uuid"]), (&"healthy".into(), &made["uuid"]));
    assert_eq!(status["volume_bytes"], made["volume_bytes"]);
    assert_eq!(std::fs::metadata(rig.path("d0")).unwrap().len(), 32 << 20);
}

#[test]
fn members_and_foreign_content_are_refused_unless_forced() {
    let rig = Rig::with_array();
    let before = rig.fingerprint(&MEMBERS);
    rig.create(&[]).refused(&["d0", "member of array", "--force"]);
    assert_eq!(rig.fingerprint(&MEMBERS), before);
    rig.create(&["--force"]).ok();
    assert_ne!(rig.fingerprint(&MEMBERS), before);

    let rig = Rig::new();
    std::fs::File::create(rig.path("d2")).unwrap().set_len(32 << 20).unwrap();
    scribble(&rig.path("d2"), 0, b"XFSB");
    rig.create(&[]).refused(&["d2", "xfs", "--force"]);
    assert!(!rig.path("d0").exists(), "nothing is made when something is in the way");
    rig.create(&["--force"]).ok();
}

#[test]
fn files_that_hold_anything_are_refused_unless_forced() {
    let rig = Rig::new();
    let create = ["create", "--parity", "1", "--data", "e0", "e1"];
    let mut content = vec![0; 32 << 20];
    std::fs::write(rig.path("e0"), &content).unwrap();
    content[(20 << 20)..(21 << 20)].fill(b'x');
    std::fs::write(rig.path("e1"), &content).unwrap();
    let before = rig.fingerprint(&["e0", "e1"]);
    for more in [&["--dry-run"][..], &[]] {
        rig.run(&[&create[..], more].concat()).refused(&["e1: ", "offset 20971520", "--force"]);
    }
    assert_eq!(rig.fingerprint(&["e0", "e1"]), before);
    rig.run(&[&create[..], &["--force"]].concat()).ok();
    // Zeros that are there are as good as holes.
    std::fs::write(rig.path("e1"), vec![0; 32 << 20]).unwrap();
    std::fs::write(rig.path("e0"), vec![0; 32 << 20]).unwrap();
    rig.run(&create).ok();
}

#[test]
fn a_dry_run_refuses_places_where_no_file_can_be_made() {
    let rig = Rig::new();
    std::fs::write(rig.path("file"), "x").unwrap();
    let long = "n".repeat(300);
    for place in ["x/", "x/.", "x/..", "file/x", &long, "none/x"] {
        let words = ["create", "--parity=1", "--file-size=32MiB", "--data", "a", "b", place];
        for more in [&["--dry-run"][..], &[]] {
            let ran = rig.run(&[&words[..], more].concat()).refused(&[place]);
            assert!(ran.out.is_empty(), "{ran:?}");
        }
    }
    assert_eq!(std::fs::read_dir(rig.dir.path()).unwrap().count(), 1, "nothing is made");
}

/// Also where only the rights of whoever asks forbid it; root, whom they do not bind, asks as somebody else.
#[test]
fn a_dry_run_refuses_directories_that_cannot_be_written_to() {
    if !has("setpriv") {
        return;
    }
    let rig = Rig::new();
    std::fs::create_dir(rig.path("closed")).unwrap();
    let program = rig.path("elastripe");
    std::fs::copy(env!("CARGO_BIN_EXE_elastripe"), &program).unwrap();
    for (path, mode) in
        [(rig.dir.path().to_owned(), 0o777), (rig.path("closed"), 0o555), (program.clone(), 0o755)]
    {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::write(rig.path("closed/empty"), "").unwrap_or_default();
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    for place in ["closed/x", "closed/empty"] {
        for more in [&["--dry-run"][..], &[]] {
            let mut command = if is_root { Command::new("setpriv") } else { Command::new(&program) };
            if is_root {
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
            }
            let words = ["create", "--parity=1", "--file-size=32MiB", "--data", "a", "b", place];
            let ran = command.args(words).args(more).current_dir(rig.dir.path()).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(!ran.status.success() && said.contains(place), "{more:?}: {ran:?}");
            assert!(said.contains("ermission denied") && !rig.path("a").exists(), "{more:?}: {said}");
        }
    }
}

#[test]
fn nothing_is_left_behind_after_a_failure() {
    let rig = Rig::new();
    std::fs::create_dir(rig.path("locked")).unwrap();
    let data = ["--data", "a", "b", "c", "nowhere/d", "--file-size", "32MiB"];
    rig.run(&[&["create", "--scheme", "raid", "--parity", "1"], &data[..]].concat()).refused(&["nowhere/d"]);
    let mut left: Vec<_> =
        std::fs::read_dir(rig.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["locked"]);
}

#[test]
fn shapes_that_cannot_be_are_refused_in_one_line() {
    let rig = Rig::new();
    let create = |args: &[&str]| rig.run(&[&["create", "--file-size", "32MiB"], args].concat());
    create(&["--scheme", "eplog", "--parity", "2", "--data", "a", "b", "c", "--log", "x"])
        .refused(&["1 log devices given, expected 2"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "b", "c", "--log", "x"])
        .refused(&["scheme raid", "1 log devices given, expected 0"]);
    create(&["--scheme", "parity-log", "--parity", "1", "--data", "a", "b", "c"])
        .refused(&["scheme parity-log", "0 log devices given, expected 1"]);
    create(&["--scheme", "raid", "--parity", "2", "--data", "a", "b"]).refused(&["--parity 2"]);
    create(&["--scheme", "raid", "--parity", "0", "--data", "a", "b"]).refused(&["--parity 0"]);
    create(&["--scheme", "raid", "--parity", "2", "--code", "xor", "--data", "a", "b", "c"])
        .refused(&["xor"]);
    create(&["--scheme", "raid", "--parity", "1", "--chunk-size", "3KiB", "--data", "a", "b"])
        .refused(&["power of two"]);
    create(&["--scheme", "raid", "--parity", "1", "--chunk-size", "4", "--data", "a", "b"])
        .refused(&["--chunk-size", "4KiB"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "./a"]).refused(&["same device"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "a"]).refused(&["twice"]);
    create(&["--scheme", "raid", "--parity", "1", "--data", "a", "b", "--name", &"n".repeat(65)])
        .refused(&["--name"]);
    create(&["--scheme", "lru", "--parity", "1", "--data", "a", "b"]).refused(&["lru", "eplog"]);
    rig.run(&["create", "--scheme", "raid", "--parity", "1", "--data", "a", "b"])
        .refused(&["a", "--file-size"]);
    rig.run(&["create", "--scheme", "raid", "--parity", "1", "--data", "a", "b", "--file-size", "64KiB"])
        .refused(&["too small"]);
    assert_eq!(std::fs::read_dir(rig.dir.path()).unwrap().count(), 0, "no file was left behind");
}

#[test]
fn devices_without_room_are_no_members_of_an_array_that_was_not_made() {
    let rig = Rig::new();
    let create =
        ["create", "--parity", "1", "--file-size", "32MiB", "--data", "d0", "d1", "d2", "--log", "l0"];
    // For some superblocks; for all of them, and nothing else; for all but a block.
    for (index, size) in ["16k", "24k", "32k", "44k", "52k"].into_iter().enumerate() {
        let small = rig.path(&format!("small{index}"));
        let Some(_mount) = small_file_system(&small, size) else { return };
        for (are_there, files) in [(false, 0), (true, 4)] {
            if are_there {
                for name in ["d0", "d1", "d2", "l0"] {
                    std::fs::File::create(small.join(name)).unwrap().set_len(32 << 20).unwrap();
                }
            }
            let ran = Ran::of(rig.command(&create).current_dir(&small).output().unwrap());
            ran.refused(&["there is no room where it lies", "there is no array"]);
            let left = std::fs::read_dir(&small).unwrap().count();
            assert_eq!(left, files, "{size}: what was made is gone, what was there stays");
            let found = Ran::of(rig.command(&["scan", "."]).current_dir(&small).output().unwrap());
            assert!(
                found.code == 1 && found.out.contains("no member of an array was found"),
                "{size}: {found:?}"
            );
        }
        // What stays is as blank as before.
        if !Command::new("mount").args(["-o", "remount,size=1M"]).arg(&small).status().unwrap().success() {
            return;
        }
        Ran::of(rig.command(&create).current_dir(&small).output().unwrap()).ok();
    }
}

/// Members of the devices that people own.
const LARGE: [&str; 10] =
    ["create", "--scheme", "raid", "--parity", "2", "--file-size", "4TiB", "--data", "a", "b"];

#[test]
fn an_array_that_no_memory_has_room_for_is_refused_before_anything_is_made() {
    let rig = Rig::new();
    let large = [&LARGE[..], &["c", "d", "e", "f", "--memory", "20GiB"]].concat();
    // All tables of elastic stripes are in memory; of those of other schemes what there is room for.
    let elastic = [&large[..], &["--scheme", "elastic", "--chunk-size", "16KiB"]].concat();
    let elastic: Vec<&str> = elastic.into_iter().filter(|word| *word != "raid").collect();
    let at = elastic.iter().position(|word| *word == "--scheme").unwrap();
    let refused = rig.run(&[&elastic[..at], &elastic[at + 1..]].concat());
    refused.refused(&["chunks of 16 KiB", "--memory allows 20 GiB", "use --chunk-size"]);
    let tiny = [&LARGE[..], &["c", "d", "e", "f", "--memory", "300MiB", "--chunk-size", "4KiB"]].concat();
    rig.run(&tiny).refused(&["chunks of 4 KiB", "--memory allows 300 MiB", "use --chunk-size 8KiB"]);
    rig.run(&[&LARGE[..], &["c", "d", "e", "f", "--memory", "10MiB"]].concat()).refused(&[
        "chunks of 1 MiB",
        "--memory allows 10 MiB",
        "smaller arrays",
    ]);
    // Devices that are too small for larger chunks are not what is wrong.
    let small = ["create", "--parity", "1", "--data", "a", "b", "--file-size", "64MiB", "--memory", "1MiB"];
    rig.run(&small).refused(&["the array takes", "--memory allows 1 MiB"]);
    rig.run(&[&small[..], &["--chunk-size", "4KiB"]].concat()).refused(&["--memory allows 1 MiB"]);
    assert_eq!(std::fs::read_dir(rig.dir.path()).unwrap().count(), 0, "no file was left behind");
}

#[test]
fn the_chunk_size_is_chosen_by_the_memory_that_the_array_takes_and_serve_looks_too() {
    let rig = Rig::new();
    let members = ["a", "b", "c"];
    let create = ["create", "--scheme", "raid", "--parity", "1", "--file-size", "64GiB", "--json", "--data"];
    let made = rig.run(&[&create[..], &members, &["--memory", "180MiB"]].concat()).ok().json();
    let memory = &made["memory"];
    assert_eq!(made["chunk_bytes"], 32 << 10, "{made:#}");
    let parts = ["tables", "uncommitted", "checkpoint", "rebuild", "placement", "buffers"];
    let sum: u64 = parts.iter().map(|part| memory[format!("{part}_bytes")].as_u64().unwrap()).sum();
    assert_eq!(memory["total_bytes"], sum);
    // Maps of k + m columns and a checksum for each chunk, 4 bytes each.
    let chunks = made["volume_bytes"].as_u64().unwrap() / made["chunk_bytes"].as_u64().unwrap() * 3 / 2;
    let tables = memory["tables_bytes"].as_u64().unwrap();
    assert!((8 * chunks..8 * chunks + 3_000_000).contains(&tables), "{tables} for {chunks} chunks");

    // Of its table a quarter of that is in memory at most, but buffers are, too.
    rig.on("serve", &members, &["--run", "true", "--memory", "60MiB"])
        .refused(&["memory", "--memory allows 60 MiB"]);
    rig.on("serve", &members, &["--run", "true", "--memory", "180MiB"]).ok();
    let small = rig
        .run(&[
            "create",
            "--scheme",
            "raid",
            "--parity",
            "1",
            "--file-size",
            "64MiB",
            "--json",
            "--data",
            "p",
            "q",
            "r",
        ])
        .ok()
        .json();
    assert_eq!(small["chunk_bytes"], 4 << 10, "small devices keep small chunks");
}

#[test]
fn an_interrupted_command_takes_away_what_it_made() {
    let rig = Rig::new();
    let names = ["x0", "x1", "x2", "x3"];
    let mut args = vec!["create", "--scheme", "raid", "--parity", "1", "--allocate", "--file-size", "1GiB"];
    args.push("--data");
    args.extend(names);
    let child = rig.command(&args).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !rig.path("x0").exists() {
        std::thread::yield_now();
    }
    let kill = std::process::Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    // On a slow day it was quicker than the signal; then it is an array.
    let is_array = output.status.success();
    assert!(is_array || output.status.code() == Some(143) && error.contains("there is no array"), "{error}");
    assert!(is_array || names.iter().all(|name| !rig.path(name).exists()), "{error}");
}

#[test]
fn a_dry_run_says_what_would_be_and_makes_nothing() {
    let rig = Rig::new();
    let shape = ["create", "--dry-run", "--parity", "1", "--name", "tank", "--data", "d0", "d1", "d2"];
    let ran = rig.run(&[&shape[..], &["--file-size", "64MiB"]].concat()).ok();
    for words in ["array tank, if it were made; nothing was written", "raid 2+1", "volume ", "data2   d2"] {
        assert!(ran.out.contains(words), "{words}: {ran:?}");
    }
    let json = rig.run(&[&shape[..], &["--file-size", "64MiB", "--json"]].concat()).ok().json();
    assert_eq!((&json["uuid"], &json["name"]), (&serde_json::Value::Null, &"tank".into()));
    assert!(!rig.path("d0").exists(), "nothing was made");
    // What it says is what comes of it.
    let rest = [
        "create",
        "--parity",
        "1",
        "--name",
        "tank",
        "--file-size",
        "64MiB",
        "--json",
        "--data",
        "d0",
        "d1",
        "d2",
    ];
    assert_eq!(rig.run(&rest).ok().json()["volume_bytes"], json["volume_bytes"]);
    // It refuses what would be refused, and touches nothing.
    let before = rig.fingerprint(&["d0", "d1", "d2"]);
    rig.run(&shape).refused(&["d0", "is a member of array tank", "--force"]);
    rig.run(&[&shape[..], &["--force"]].concat()).ok();
    assert_eq!(rig.fingerprint(&["d0", "d1", "d2"]), before);
}

#[test]
fn values_that_cannot_be_are_refused_by_the_name_of_the_option() {
    let rig = Rig::new();
    let create = ["create", "--file-size", "16MiB", "--parity", "1", "--data", "d0", "d1", "d2"];
    for (option, value, expected) in [
        ("--chunk-size", "3KiB", "power of two"),
        ("--reserve", "91%", "at most 90%"),
        ("--memory", "5", "with its unit"),
        ("--shards", "0", "from 1 to 64"),
    ] {
        let ran = rig.run(&[&create[..], &[option, value]].concat());
        ran.refused(&[option, expected]);
    }
    assert_eq!(std::fs::read_dir(rig.dir.path()).unwrap().count(), 0);
}

#[test]
fn a_member_of_another_array_is_not_taken_by_mistake() {
    let rig = Rig::new();
    let other = ["create", "--parity", "1", "--name", "pg", "--file-size", "64MiB", "--data"];
    rig.run(&[&other[..], &["p0", "p1", "p2"]].concat()).ok();
    std::fs::File::create(rig.path("x0")).unwrap().set_len(64 << 20).unwrap();
    scribble(&rig.path("x0"), 0, b"XFSB");
    let before = rig.fingerprint(&["p0", "p1", "p2", "x0"]);
    let own = ["create", "--parity", "1", "--file-size", "64MiB", "--data", "x0", "p2", "n0"];
    // All that is in the way is named, and force does not tear an array apart.
    rig.run(&own).refused(&["x0: holds xfs", "p2: is a member of array pg", "data2", "--force"]);
    for more in [&["--force"][..], &["--force", "--dry-run"]] {
        let words = ["p2: is data2 of array pg", "2 other members are not named", "wipe", "--yes"];
        rig.run(&[&own[..], more].concat()).refused(&words);
    }
    assert_eq!(rig.fingerprint(&["p0", "p1", "p2", "x0"]), before);
    assert!(!rig.path("n0").exists());
    rig.run(&["wipe", "p2", "--yes"]).ok();
    let said = rig.run(&[&own[..], &["--force", "--dry-run"]].concat()).ok();
    assert!(said.out.contains("note: would be overwritten: x0 holds xfs"), "{}", said.out);
    let said = rig.run(&[&own[..], &["--force"]].concat()).ok();
    assert!(said.out.contains("note: is overwritten: x0 holds xfs"), "{}", said.out);
    // As a whole it may be overwritten.
    let again = ["create", "--parity", "1", "--force", "--data", "x0", "p2", "n0"];
    let said = rig.run(&again).ok();
    assert!(said.out.contains("note: is overwritten: n0 is a member of array"), "{}", said.out);
}

#[test]
fn files_are_made_where_they_last_and_a_dry_run_says_what_would_fail() {
    let rig = Rig::new();
    let create = ["create", "--parity", "1", "--file-size", "64MiB", "--data", "d0", "d1"];
    for more in [&["--dry-run"][..], &[]] {
        let with = |path: &'static str| rig.run(&[&create[..], &[path], more].concat());
        with("/dev/lop0").refused(&["/dev/lop0: does not exist", "device nodes", "name right?"]);
        with("nowhere/d2").refused(&["nowhere/d2: No such file"]);
        with("./d0").refused(&["d0 and ./d0 are the same device"]);
    }
    assert!(!rig.path("d0").exists() && !std::path::Path::new("/dev/lop0").exists());
    let large = ["create", "--parity", "1", "--file-size", "200TiB", "--chunk-size", "1MiB"];
    let said = rig.run(&[&large[..], &["--data", "d0", "d1", "--dry-run"]].concat()).ok().out;
    assert!(said.contains("note: the file system of . has") && said.contains("--allocate"), "{said}");
    rig.run(&create).ok();
    let replace =
        ["replace", "d0", "d1", "--device", "data0", "--with", "/dev/nvme99n1", "--file-size", "64MiB"];
    rig.run(&replace).refused(&["/dev/nvme99n1: does not exist", "device nodes"]);
    let add = ["add", "d0", "d1", "--spare", "/dev/sdzz", "--file-size", "64MiB"];
    rig.run(&add).refused(&["/dev/sdzz: does not exist", "device nodes"]);
}
