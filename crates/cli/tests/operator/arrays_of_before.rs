//! Arrays made and written by commit 6f2060c, before superblocks and checkpoints named what was durable,
//! start as they did. Each image lists the blocks of the members that are not zeros; half of the arrays were
//! killed, half stopped in order.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, has, qemu_script};
use flate2::read::GzDecoder;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const MAIN: [&str; 3] = ["d0", "d1", "d2"];
const WITH_LOG: [&str; 4] = ["d0", "d1", "d2", "l0"];
/// What was written, each followed by a flush.
const CONTENT: [&str; 6] = [
    "read -P 7 0 20k",
    "read -P 9 20k 4k",
    "read -P 7 24k 104k",
    "read -P 0 128k 128k",
    "read -P 6 256k 4k",
    "read -P 5 260k 60k",
];

/// Unpacks an image: members in order, each its size (with the number 255) and then its blocks, by
/// member and offset.
fn unpack(rig: &Rig, name: &str, members: &[&str]) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/operator/arrays_of_before/{name}.gz"));
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let (mut rest, mut files) = (&bytes[..], Vec::new());
    while let [index, tail @ ..] = rest {
        let (number, tail) = tail.split_at(8);
        let number = u64::from_le_bytes(number.try_into().unwrap());
        if *index == 255 {
            let file = std::fs::File::create_new(rig.path(members[files.len()])).unwrap();
            file.set_len(number).unwrap();
            files.push(file);
            rest = tail;
        } else {
            let (block, tail) = tail.split_at(4096);
            files[usize::from(*index)].write_all_at(block, number).unwrap();
            rest = tail;
        }
    }
    assert_eq!(files.len(), members.len());
}

#[test]
fn start_as_they_did() {
    if !has("qemu-io") {
        return;
    }
    for scheme in ["raid", "resync", "parity-log", "eplog", "elastic", "was"] {
        let members: &[&str] = if matches!(scheme, "parity-log" | "eplog") { &WITH_LOG } else { &MAIN };
        for how in ["kill", "stop"] {
            let rig = Rig::new();
            unpack(&rig, &format!("{scheme}-{how}"), members);
            assert_eq!(rig.status(members)["clean"], how == "stop", "{scheme}");
            let ran = rig.serve_run(members, &qemu_script(&CONTENT), &[]).ok();
            assert!(!ran.err.contains("dropped"), "{ran:?}");
            // And as arrays of today from then on, with a member less, too.
            if scheme != "resync" {
                rig.serve_run(&members[1..], &qemu_script(&CONTENT), &["--degraded"]).ok();
            }
        }
    }
}
