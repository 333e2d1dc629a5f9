//! Tests of the superblock.

use super::*;

fn superblock() -> Superblock {
    Superblock {
        array: ArrayUuid::new([0xab; 16]),
        name: "büro".to_owned(),
        dev: DevIndex::new(7),
        role: Role::Log,
        serial: 8,
        config_seq: 9,
        epoch: Epoch::new(10),
        nonce: u64::MAX,
        clean: true,
        checkpoints: CheckpointNumbers { durable: 18, used: 21 },
        durable_through: Seq::new(19),
        config: ArrayConfig {
            scheme: SchemeKind::Eplog,
            code: CodeKind::Cauchy,
            layout: LayoutKind::Spread,
            consistency: Consistency::Resync,
            geometry: Geometry::new(4, 2, 4096).unwrap(),
            log_count: 2,
            stripe_count: 100,
            chunks_per_device: 120,
            log_blocks: 50,
            full_blocks: 3,
            incremental_blocks: 4,
            journal_blocks: 5,
            payload_blocks: 0,
            page_blocks: 5,
            unit_rows: 0,
            shard: Shard::SINGLE,
            moved: Moved::NEVER,
        },
        members: vec![MemberEntry { serial: 8, state: MemberState::Healthy }; 9],
        created_unix_s: 11,
        scrub_cursor: 12,
        resync_cursor: 13,
        scrub: ScrubRecord {
            ended_unix_s: 14,
            seconds: 15,
            metadata_repaired: 16,
            chunks_repaired: 17,
            errors_left: 18,
            completed: 1,
        },
        faults: FaultRecord { wrong: 19, repaired: 20, unread: 21, since_unix_s: 22 },
        losses: LossRecord { chunks: 23, forced: Some(Epoch::new(10)) },
        rebuilt: 24,
    }
}

fn encoded(superblock: &Superblock, slot: usize) -> [u8; META_BYTES] {
    let mut block = [0xff; META_BYTES];
    superblock.encode(slot, &mut block);
    block
}

/// Changes a byte and makes the checksum right again.
fn forged(offset: usize, value: u8) -> Result<Superblock, FormatError> {
    let mut block = encoded(&superblock(), 0);
    block[offset] = value;
    KIND.finish(&mut block);
    Superblock::decode(&block, 0)
}

#[test]
fn both_copies_round_trip_and_are_not_interchangeable() {
    for slot in [0, 1] {
        let block = encoded(&superblock(), slot);
        assert_eq!(Superblock::decode(&block, slot), Ok(superblock()));
        let error = Superblock::decode(&block, 1 - slot).unwrap_err();
        assert!(matches!(error, FormatError::Misplaced { what: "copy of the superblock", .. }), "{error}");
    }
}

#[test]
fn the_largest_superblock_fits() {
    let largest = Superblock {
        name: "x".repeat(NAME_BYTES_MAX),
        members: vec![MemberEntry { serial: u32::MAX, state: MemberState::Absent }; MEMBERS_MAX],
        ..superblock()
    };
    assert_eq!(Superblock::decode(&encoded(&largest, 0), 0), Ok(largest));
}

#[test]
fn a_member_is_recognised_by_its_magic_even_when_damaged() {
    let mut block = encoded(&superblock(), 0);
    block[100] ^= 1;
    assert!(matches!(Superblock::decode(&block, 0), Err(FormatError::Checksum { .. })));
    assert!(looks_like_member(&block));
    assert!(!looks_like_member(&[0; META_BYTES]));
    assert!(!looks_like_member(&block[..7]));
}

#[test]
fn what_a_reader_refuses_a_writer_refuses_too() {
    let what = |superblock: Superblock| match superblock.check() {
        Err(FormatError::Malformed { what, .. } | FormatError::Config { what, .. }) => what,
        other => panic!("expected a refusal, got {other:?}"),
    };
    assert_eq!(what(Superblock { name: "x".repeat(65), ..superblock() }), "length of the name");
    assert_eq!(what(Superblock { name: "a\0b".to_owned(), ..superblock() }), "name");
    let entry = superblock().members[0];
    assert_eq!(what(Superblock { members: vec![entry; 601], ..superblock() }), "entries of the member table");
    assert_eq!(what(Superblock { members: vec![entry; 7], ..superblock() }), "entries of the member table");
    for (role, dev) in [(Role::Main, 6), (Role::Log, 5), (Role::Log, 8), (Role::Spare, 7), (Role::Spare, 9)] {
        let dev = DevIndex::new(dev);
        assert_eq!(what(Superblock { role, dev, ..superblock() }), "index of the device");
    }
    assert_eq!(what(Superblock { epoch: Epoch::new(1 << 63), ..superblock() }), "epoch of the superblock");
    let losses = LossRecord { forced: Some(Epoch::new(1 << 63)), ..superblock().losses };
    assert_eq!(what(Superblock { losses, ..superblock() }), "forced assembly of the superblock");
    let config = ArrayConfig { stripe_count: 121, ..superblock().config };
    assert_eq!(what(Superblock { config, ..superblock() }), "number of stripes");
}

#[test]
fn intact_bytes_with_impossible_values_are_refused_by_name() {
    for (field, value, message) in [
        (&fields::CLEAN, 2, "clean flag of the superblock: found 2, expected 0 or 1"),
        (&fields::ROLE, 9, "role: found 9, expected one of 1=main 2=log 3=spare"),
        (&fields::SCHEME, 0, "scheme: found 0, expected one of 1=raid 2=eplog 3=parity-log 4=elastic 5=was"),
        (&fields::NAME_BYTES, 65, "length of the name: found 65, expected at most 64 bytes"),
        (&fields::NAME_BYTES, 2, "name of the array: found 188, expected zeros in unused bytes"),
        (&fields::NAME, 0xff, "name of the array, first wrong byte: found 0, expected UTF-8"),
        (&fields::ZERO_3, 5, "superblock: found 5, expected zeros in unused bytes"),
        (&fields::ZERO_4, 6, "superblock: found 6, expected zeros in unused bytes"),
        (
            &fields::UNIT_ROWS,
            7,
            "configuration: rows of a unit is 7, expected 0 unless the scheme is elastic or was",
        ),
        (
            &fields::CHUNK_BYTES,
            1,
            "configuration: chunk size in bytes is 4097, expected a power of two from 4 KiB to 1 MiB",
        ),
    ] {
        assert_eq!(forged(field.offset, value).unwrap_err().to_string(), message);
    }
    assert!(matches!(forged(fields::DATA_COUNT.offset + 1, 1), Err(FormatError::Config { .. })));
    assert!(matches!(forged(fields::MEMBER_COUNT.offset + 1, 255), Err(FormatError::Malformed { .. })));
}
