//! Arrays of format version 1, made and written by commit 6f2060c, are refused in words that say so. Each
//! image lists the blocks of the members that are not zeros; one array was killed, one stopped in order.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::Rig;
use flate2::read::GzDecoder;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const MAIN: [&str; 3] = ["d0", "d1", "d2"];
const WITH_LOG: [&str; 4] = ["d0", "d1", "d2", "l0"];
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
fn are_refused_by_their_version_and_left_as_they_are() {
    for (name, members) in [("raid-stop", &MAIN[..]), ("eplog-kill", &WITH_LOG[..])] {
        let rig = Rig::new();
        unpack(&rig, name, members);
        let content = || members.iter().map(|member| std::fs::read(rig.path(member)).unwrap());
        let before: Vec<Vec<u8>> = content().collect();
        let with_members = |command: &[&'static str]| [command, members].concat();
        for arguments in [
            with_members(&["serve", "--nbd", "unix:socket"]),
            with_members(&["status"]),
            with_members(&["scrub"]),
            with_members(&["scan"]),
            vec!["examine", "d0"],
            [&["create", "--parity", "1", "--data"], &MAIN[..]].concat(),
        ] {
            let ran = rig.run(&arguments);
            let said = format!("{}{}", ran.out, ran.err);
            assert!(said.contains("version"), "{arguments:?}: {ran:?}");
            assert!(!said.contains("damaged"), "{arguments:?}: {ran:?}");
            assert_ne!(ran.code, 0, "{arguments:?}");
        }
        assert!(content().eq(before), "{name}: nothing was written");
    }
}
