//! Whatever bytes a device returns, a decoder gives an answer; and what it accepts, the
//! encoder writes identically.
//!
//! Mutated blocks get a right checksum most of the time, so that the mutation reaches the decoder behind it.
//! `SEED=n cargo test -p elastripe-format --test bytes hostile_bytes` replays a failure; the default
//! seed is fixed.

use crate::samples::{BLOCK_BYTES, Place, Sample};
use block::{Random as _, SplitMix};
use format::{
    Changes, FormatError, ListPacker, crc32c, decode_list, fold_list, looks_like_member, unpack_list,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const CRC_OFFSET: usize = BLOCK_BYTES - 4;
/// Offset of the first byte behind the fields that all blocks share and whose mutation is always refused.
const BODY_OFFSET: usize = 32;
const ROUNDS_PER_SAMPLE: u32 = 20_000;

fn fix_crc(block: &mut [u8]) {
    let crc = crc32c(&block[..CRC_OFFSET]);
    block[CRC_OFFSET..].copy_from_slice(&crc.to_le_bytes());
}

fn seed() -> u64 {
    let seed = std::env::var("SEED").ok().map_or(0x5eed, |text| text.parse().unwrap());
    println!("SEED={seed}");
    seed.max(1)
}

/// A few bytes changed, mostly near the front, where the heads and counts are.
fn mutate(random: &mut SplitMix, block: &mut [u8], others: &[Sample]) {
    for _ in 0..1 + random.index(4) {
        let end = if random.index(4) == 0 { CRC_OFFSET } else { 300 };
        let offset = BODY_OFFSET + random.index(end - BODY_OFFSET);
        match random.index(6) {
            0 => block[offset] ^= 1 << random.index(8),
            1 => block[offset] = random.word().to_le_bytes()[7],
            2 => block[offset] = [0, 1, 0x7f, 0x80, 0xff][random.index(5)],
            3 => block[offset..(offset + 8).min(CRC_OFFSET)].fill(0xff),
            4 => {
                let value = random.word().to_le_bytes();
                let length = value.len().min(CRC_OFFSET - offset);
                block[offset..offset + length].copy_from_slice(&value[..length]);
            }
            _ => {
                let other = &others[random.index(others.len())].block;
                let length = random.index(CRC_OFFSET - offset);
                block[offset..offset + length].copy_from_slice(&other[offset..offset + length]);
            }
        }
    }
}

fn name_of(result: &Result<Vec<u8>, FormatError>) -> &'static str {
    match result {
        Ok(_) => "accepted",
        Err(FormatError::Length { .. }) => "length",
        Err(FormatError::BadMagic { .. }) => "magic",
        Err(FormatError::Version { .. }) => "version",
        Err(FormatError::Checksum { .. }) => "checksum",
        Err(FormatError::Misplaced { .. }) => "misplaced",
        Err(FormatError::OtherArray { .. }) => "other array",
        Err(FormatError::OtherEpoch { .. }) => "other epoch",
        Err(FormatError::OtherNonce { .. }) => "other nonce",
        Err(FormatError::Malformed { .. }) => "malformed",
        Err(FormatError::Config { .. }) => "configuration",
    }
}

#[test]
fn mutated_blocks_are_refused_or_reproduced_bit_for_bit() {
    let samples = crate::samples::all();
    let mut random = SplitMix::new(seed());
    let mut outcomes: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for sample in &samples {
        for round in 0..ROUNDS_PER_SAMPLE {
            let mut block = sample.block.clone();
            mutate(&mut random, &mut block, &samples);
            if random.index(16) != 0 {
                fix_crc(&mut block);
            }
            let result = crate::samples::rewrite(sample.place, &block);
            *outcomes.entry((sample.name, name_of(&result))).or_default() += 1;
            if let Ok(written) = result {
                let is_same = crate::samples::is_same(sample.place, &written, &block);
                assert!(is_same, "{} changed by reading and writing, round {round}", sample.name);
            }
        }
    }
    println!("{outcomes:#?}");
    for sample in &samples {
        for outcome in ["accepted", "checksum", "malformed"] {
            let count = outcomes.get(&(sample.name, outcome)).copied().unwrap_or(0);
            assert!(count > 0, "no mutation of {} was ever {outcome}: the test is blind", sample.name);
        }
    }
}

/// Every single-bit error anywhere in any block is found.
#[test]
fn every_flipped_bit_is_found() {
    for sample in crate::samples::all() {
        let mut block = sample.block;
        for bit in 0..BLOCK_BYTES * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(crate::samples::rewrite(sample.place, &block).is_err(), "{}: bit {bit}", sample.name);
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// A torn write: some of the sectors are new, the others what was there before.
#[test]
fn every_torn_write_is_found() {
    for sample in crate::samples::all() {
        for before in [0x00, 0xff, 0xa5] {
            for written_sectors in 0..0xffu32 {
                let mut block = vec![before; BLOCK_BYTES];
                for sector in (0..8).filter(|sector| written_sectors >> sector & 1 == 1) {
                    let range = sector * 512..(sector + 1) * 512;
                    block[range.clone()].copy_from_slice(&sample.block[range]);
                }
                if block == sample.block {
                    continue; // the missing sectors held the same bytes before: nothing is torn
                }
                let read = crate::samples::rewrite(sample.place, &block);
                assert!(read.is_err(), "{} with sectors {written_sectors:#010b} written", sample.name);
            }
        }
    }
}

#[test]
fn no_block_is_taken_for_another() {
    let samples = crate::samples::all();
    for (i, asked) in samples.iter().enumerate() {
        for (j, found) in samples.iter().enumerate() {
            let same = i == j || (is_superblock(asked.place) && asked.place == found.place);
            let read = crate::samples::rewrite(asked.place, &found.block);
            assert_eq!(read.is_ok(), same, "{} read as {}: {:?}", found.name, asked.name, read.err());
        }
    }
}

fn is_superblock(place: Place) -> bool {
    matches!(place, Place::Superblock { .. })
}

const PLACES: [Place; 4] = [
    Place::Superblock { slot: 0 },
    Place::Frame { dev: 0, block: 0 },
    Place::Header { dev: 0, area: 0, block: 0 },
    Place::Page { dev: 0, area: 0, block: 0, number: 1 },
];

/// A word, now and then the head of an item of such kinds.
fn word(kinds: Range<u32>, logs: Range<u32>) -> impl Strategy<Value = u32> {
    let head = (kinds, logs, 0..6u32).prop_map(|(kind, logs, count)| kind << 24 | logs << 16 | count);
    prop_oneof![any::<u32>(), 0..4u32, head]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_of_any_length_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        for place in PLACES {
            prop_assert!(crate::samples::rewrite(place, &bytes).is_err());
        }
        looks_like_member(&bytes);
    }

    /// Words that look like heads of items now and then.
    #[test]
    fn arbitrary_lists_are_refused_or_reproduced(
        words in prop::collection::vec(
            word(1..11, 0..3),
            0..200,
        )
    ) {
        if let Ok(items) = decode_list(&words) {
            let mut again = Vec::new();
            for item in &items {
                item.encode(&mut again);
            }
            prop_assert_eq!(again, words);
        }
    }

    /// The same of packed lists, which may say more than they are long, within bounds.
    #[test]
    fn arbitrary_packed_lists_are_refused_or_unpacked(
        words in prop::collection::vec(
            word(8..15, 0..3),
            0..100,
        )
    ) {
        let Ok(unpacked) = unpack_list(&words) else { return Ok(()) };
        prop_assert!(unpacked.len() <= 8 * words.len());
        // What can be read can be packed again.
        if Changes::read(&unpacked).is_err() {
            return Ok(());
        }
        let mut again = Vec::new();
        ListPacker::default().pack(&unpacked, &mut again);
        prop_assert!(again.len() <= unpacked.len());
        prop_assert_eq!(unpack_list(&again), Ok(unpacked));
    }

    /// The same of changes, which are taken on a list that is one.
    #[test]
    fn arbitrary_changes_are_refused_or_give_a_list(
        words in prop::collection::vec(
            word(1..11, 0..2),
            0..60,
        )
    ) {
        let is_read = Changes::read(&words).is_ok();
        let base = crate::samples::list_words();
        let folded = fold_list(&base, [&*words].into_iter());
        prop_assert!(is_read || folded.is_err());
        if let Ok(folded) = folded {
            prop_assert!(decode_list(&folded).is_ok());
        }
    }
}
