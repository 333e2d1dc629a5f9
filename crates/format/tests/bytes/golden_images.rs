//! Today's code reads and reproduces the committed images of format version 2, and refuses the damaged ones.
//!
//! `UPDATE_GOLDEN=1 cargo test -p elastripe-format --test bytes golden_images` writes them anew. That is
//! right only while version 2 has not been released; afterwards a change of these files is a new version
//! in a folder of its own.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a failed unwrap is a failed test")]

use block::DevIndex;
use format::{
    FormatError, FrameExpect, PageExpect, Superblock, decode_frame, decode_page, looks_like_member,
    unpack_list,
};
use std::fs;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/v2").join(format!("{name}.bin"))
}

/// The committed image; in update mode it is written first.
fn image(name: &str, today: &[u8]) -> Vec<u8> {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path(name), today).unwrap();
    }
    fs::read(path(name)).unwrap_or_else(|error| panic!("{}: {error}", path(name).display()))
}

#[test]
fn todays_code_writes_the_golden_images() {
    for sample in crate::samples::all() {
        let golden = image(sample.name, &sample.block);
        let first_difference = golden.iter().zip(&sample.block).position(|(a, b)| a != b);
        assert_eq!(first_difference, None, "{}: first byte that differs", sample.name);
        assert_eq!(golden.len(), sample.block.len(), "{}: length", sample.name);
    }
}

#[test]
fn todays_code_reads_the_golden_images() {
    for sample in crate::samples::all() {
        let golden = image(sample.name, &sample.block);
        let rewritten = crate::samples::rewrite(sample.place, &golden).unwrap();
        assert!(rewritten == golden, "{}: reading and writing changes the bytes", sample.name);
        assert_eq!(looks_like_member(&golden), sample.name.starts_with("superblock"));
    }
}

/// Short forms of before there were steps are written no more, but read as ever.
#[test]
fn todays_code_reads_the_short_forms_of_before() {
    let (array, epoch, nonce) = (crate::samples::ARRAY, crate::samples::EPOCH, crate::samples::NONCE);
    let block = fs::read(path("frame-copied-chunks")).unwrap();
    let expect = FrameExpect { array, epoch, nonce, dev: DevIndex::new(4), block: 19 };
    assert_eq!(decode_frame(&block, &expect).unwrap().records, crate::samples::copied_chunks());
    let block = fs::read(path("page-list-packed")).unwrap();
    let expect = PageExpect { array, dev: DevIndex::new(2), area: 1, block: 9, number: Some(41) };
    let words = decode_page(&block, &expect).unwrap().words;
    assert_eq!(unpack_list(&words).unwrap(), crate::samples::unpacked_words());
    assert!(words.iter().any(|word| word >> 24 == 11) && words.iter().any(|word| word >> 24 == 12));
}

/// One flipped bit, a torn block (only the first 512 bytes were written), and a block of a later version.
#[test]
fn damaged_golden_images_are_refused_for_the_right_reason() {
    let sample = crate::samples::all().into_iter().find(|sample| sample.name == "frame").unwrap();
    let mut flipped = sample.block.clone();
    flipped[100] ^= 0x10;
    let mut torn = sample.block.clone();
    torn[100..].fill(0);
    let mut later = sample.block.clone();
    later[8] = 3;
    let read =
        |name: &str, today: &[u8]| crate::samples::rewrite(sample.place, &image(name, today)).unwrap_err();
    assert!(matches!(read("corrupt-frame-bit", &flipped), FormatError::Checksum { .. }));
    assert!(matches!(read("corrupt-frame-torn", &torn), FormatError::Checksum { .. }));
    assert!(matches!(
        read("corrupt-frame-version", &later),
        FormatError::Version { found: 3, expected: 2, .. }
    ));
}

/// A member of an array of before is no damage: the message says what it is.
#[test]
fn a_superblock_of_version_1_is_refused_by_its_version() {
    let old =
        fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/v1/superblock-main.bin")).unwrap();
    assert_eq!(
        Superblock::decode(&old, 0).unwrap_err().to_string(),
        "superblock: found format version 1, expected 2"
    );
}
