//! Tests of frames and the records in them.

use super::*;
use crate::{ElasticMember, InPlacePiece, LogMember};
use block::{ChunkIndex, Lcn, StripeId};

fn stamp() -> FrameStamp {
    FrameStamp {
        array: ArrayUuid::new([7; 16]),
        epoch: Epoch::new(3),
        nonce: 0x1234_5678_9abc_def0,
        flushed_through: Seq::new(99),
        next_seq: Seq::new(100),
        dev: DevIndex::new(5),
        block: 17,
    }
}

fn expect() -> FrameExpect {
    let FrameStamp { array, epoch, nonce, dev, block, .. } = stamp();
    FrameExpect { array, epoch, nonce, dev, block }
}

fn chunks(count: u32) -> Vec<ChunkIndex> {
    (1..=count).map(ChunkIndex::new).collect()
}

fn one_of_each() -> Vec<Record> {
    vec![
        Record::LogStripe {
            log_block: ChunkIndex::new(8),
            log_crcs: vec![1, u32::MAX],
            members: vec![
                LogMember { lcn: Lcn::new((1 << 48) - 1), chunk: ChunkIndex::new(u32::MAX), crc: 5 },
                LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::new(1), crc: 6 },
            ],
        },
        Record::FullStripe {
            stripe: StripeId::new(0x0102_0304_0506),
            chunks: chunks(3),
            crcs: vec![7, 8, 9],
        },
        Record::Commit {
            stripe: StripeId::new(1),
            data: vec![ChunkIndex::NONE, ChunkIndex::new(4)],
            parity: chunks(1),
            parity_crcs: vec![10],
        },
        Record::Zero { first: Lcn::new(11), count: 12 },
        Record::InPlace {
            stripe: StripeId::new(13),
            pieces: vec![InPlacePiece { column: 254, crc: 14, payload_block: 15 }],
        },
        Record::Delta {
            stripe: StripeId::new(16),
            whole: true,
            log_block: ChunkIndex::new(17),
            log_crcs: vec![18],
            pieces: vec![InPlacePiece { column: 0, crc: 19, payload_block: 20 }],
        },
        Record::Elastic {
            row: u32::MAX,
            class: 21,
            members: vec![ElasticMember { lcn: Lcn::new(u32::MAX.into()), from: 22 }],
            crcs: vec![23, 24, 25],
        },
    ]
}

fn sealed(records: &[Record]) -> Vec<u8> {
    let mut builder = FrameBuilder::new();
    for (seq, record) in (100..).zip(records) {
        assert!(builder.try_push(Seq::new(seq), record.as_ref()));
    }
    let mut block = vec![0xaa; META_BYTES];
    builder.seal_into(&stamp(), &mut block);
    block
}

#[test]
fn records_of_every_kind_round_trip() {
    let frame = decode_frame(&sealed(&one_of_each()), &expect()).unwrap();
    assert_eq!(frame.records, one_of_each());
    assert_eq!((frame.first_seq, frame.flushed_through), (Seq::new(100), Seq::new(99)));
    assert_eq!((frame.epoch, frame.dev, frame.block), (Epoch::new(3), DevIndex::new(5), 17));
}

#[test]
fn a_frame_without_records_names_the_next_sequence_number() {
    let frame = decode_frame(&sealed(&[]), &expect()).unwrap();
    assert_eq!((frame.first_seq, frame.records.len()), (Seq::new(100), 0));
}

#[test]
fn the_builder_counts_and_clears() {
    let mut builder = FrameBuilder::new();
    assert!(builder.is_empty());
    assert_eq!((builder.first_seq(), builder.next_seq()), (None, None));
    assert!(builder.try_push(Seq::new(4), RecordRef::Zero { first: Lcn::new(0), count: 1 }));
    assert!(builder.try_push(Seq::new(5), RecordRef::Zero { first: Lcn::new(1), count: 1 }));
    assert_eq!(builder.record_count(), 2);
    assert_eq!((builder.first_seq(), builder.next_seq()), (Some(Seq::new(4)), Some(Seq::new(6))));
    builder.clear();
    assert!(builder.is_empty());
    assert!(builder.try_push(Seq::new(77), RecordRef::Zero { first: Lcn::new(2), count: 1 }));
    let mut block = [0xff; META_BYTES];
    builder.seal_into(&stamp(), &mut block);
    let frame = decode_frame(&block, &expect()).unwrap();
    assert_eq!(frame.records, [Record::Zero { first: Lcn::new(2), count: 1 }]);
    assert_eq!(frame.first_seq, Seq::new(77));
}

#[test]
#[should_panic(expected = "after 1 records")]
fn a_gap_in_the_sequence_is_a_bug() {
    let mut builder = FrameBuilder::new();
    let record = RecordRef::Zero { first: Lcn::new(0), count: 1 };
    assert!(builder.try_push(Seq::new(4), record));
    builder.try_push(Seq::new(6), record);
}

#[test]
fn a_full_frame_refuses_without_effect() {
    let mut builder = FrameBuilder::new();
    let record = RecordRef::Zero { first: Lcn::new(0), count: 1 };
    let mut seq = Seq::new(1);
    while builder.try_push(seq, record) {
        seq = seq.next();
    }
    assert_eq!(builder.record_count(), FRAME_RECORD_BYTES / 15);
    assert_eq!(builder.next_seq(), Some(seq));
    let mut block = [0; META_BYTES];
    builder.seal_into(&stamp(), &mut block);
    assert_eq!(decode_frame(&block, &expect()).unwrap().records.len(), FRAME_RECORD_BYTES / 15);
}

/// The largest records of the largest arrays: 255 columns, 128 members with 4 log devices.
#[test]
fn the_largest_records_fit_into_one_frame() {
    let members = [LogMember { lcn: Lcn::new(1 << 40), chunk: ChunkIndex::new(9), crc: 1 }; 128];
    let all = chunks(255);
    let crcs = vec![3; 255];
    let pieces: Vec<_> =
        (0..255).map(|column| InPlacePiece { column, crc: 1, payload_block: u32::from(column) }).collect();
    let stripe = StripeId::new(1);
    let moved = [ElasticMember { lcn: Lcn::new(1 << 31), from: u32::MAX }; 254];
    for record in [
        RecordRef::LogStripe { log_block: ChunkIndex::new(1), log_crcs: &[1; 4], members: &members },
        RecordRef::FullStripe { stripe, chunks: &all, crcs: &crcs },
        RecordRef::Commit { stripe, data: &all[..1], parity: &all[1..], parity_crcs: &crcs[1..] },
        RecordRef::Commit { stripe, data: &all[..251], parity: &all[251..], parity_crcs: &crcs[251..] },
        RecordRef::InPlace { stripe, pieces: &pieces },
        RecordRef::Delta {
            stripe,
            whole: false,
            log_block: ChunkIndex::new(1),
            log_crcs: &[1; 4],
            pieces: &pieces[..251],
        },
        RecordRef::Elastic { row: 1, class: 1, members: &moved, crcs: &crcs },
        RecordRef::Elastic { row: 1, class: 1, members: &moved[..1], crcs: &crcs },
    ] {
        assert!(record_fits(record), "{record:?}");
        let mut builder = FrameBuilder::new();
        assert!(builder.try_push(Seq::new(1), record));
        let mut block = [0; META_BYTES];
        builder.seal_into(&stamp(), &mut block);
        assert_eq!(decode_frame(&block, &expect()).unwrap().records[0].as_ref(), record);
    }
}

#[test]
fn records_beyond_a_frame_do_not_fit() {
    let members = [LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::new(1), crc: 0 }; 300];
    let record = RecordRef::LogStripe { log_block: ChunkIndex::new(1), log_crcs: &[], members: &members };
    assert!(!record_fits(record));
    assert!(!FrameBuilder::new().try_push(Seq::new(1), record));
    let (all, crcs) = (chunks(256), vec![0; 256]);
    let record = RecordRef::FullStripe { stripe: StripeId::new(1), chunks: &all, crcs: &crcs };
    assert!(!record_fits(record), "256 columns do not fit into a count of one byte");
    let members = [ElasticMember { lcn: Lcn::new(0), from: 0 }; 256];
    let crcs = vec![0; 257];
    let elastic = |members, crcs| RecordRef::Elastic { row: 0, class: 0, members, crcs };
    assert!(!record_fits(elastic(&members, &crcs)), "256 members");
    assert!(!record_fits(elastic(&members[..1], &crcs)), "256 parities");
    assert!(!record_fits(elastic(&members[..3], &crcs[..2])), "a member without a checksum");
}

/// a misdirected, stale, foreign or forged frame is not taken for the one asked for, and the
/// error says which.
#[test]
fn a_frame_is_believed_only_where_it_belongs() {
    let block = sealed(&one_of_each());
    let good = expect();
    let error = |expect: FrameExpect| decode_frame(&block, &expect).unwrap_err().to_string();
    assert!(error(FrameExpect { array: ArrayUuid::new([8; 16]), ..good }).contains("expected 08080808-"));
    assert_eq!(
        error(FrameExpect { epoch: Epoch::new(4), ..good }),
        "journal frame: found epoch 3, expected 4"
    );
    let nonce = error(FrameExpect { nonce: 1, ..good });
    assert!(nonce.contains("another nonce") && !nonce.contains("1234"), "nonces stay secret: {nonce}");
    assert_eq!(
        error(FrameExpect { dev: DevIndex::new(6), ..good }),
        "device of a journal frame: found 5, expected 6"
    );
    assert_eq!(error(FrameExpect { block: 18, ..good }), "block of a journal frame: found 17, expected 18");
}

#[test]
fn damage_is_told_apart() {
    let block = sealed(&one_of_each());
    let damaged = |offset: usize| {
        let mut block = block.clone();
        block[offset] ^= 1;
        decode_frame(&block, &expect()).unwrap_err()
    };
    assert!(matches!(damaged(0), FormatError::BadMagic { .. }));
    assert!(matches!(damaged(8), FormatError::Version { found: 0, expected: 1, .. }));
    for offset in [32, 72, 4000, 4091, 4092, 4095] {
        assert!(matches!(damaged(offset), FormatError::Checksum { .. }), "offset {offset}");
    }
    let short = decode_frame(&block[..4095], &expect()).unwrap_err();
    assert_eq!(short.to_string(), "journal frame: found 4095 bytes, expected 4096");
    assert!(matches!(decode_frame(&[0; META_BYTES], &expect()), Err(FormatError::BadMagic { .. })));
}

/// The paper measures about 37 bytes per updated chunk for incremental metadata (M-13); ours must
/// not exceed it.
#[test]
fn a_single_chunk_update_costs_at_most_37_bytes() {
    let member = LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::new(1), crc: 0 };
    let record =
        RecordRef::LogStripe { log_block: ChunkIndex::new(1), log_crcs: &[0; 2], members: &[member] };
    assert_eq!(record.encoded_len(), Some(30));
    let members = [ElasticMember { lcn: Lcn::new(0), from: 0 }; 6];
    let elastic =
        |width: usize, crcs| RecordRef::Elastic { row: 0, class: 0, members: &members[..width], crcs };
    assert_eq!(elastic(1, &[0; 3]).encoded_len(), Some(28));
    assert_eq!(elastic(6, &[0; 8]).encoded_len(), Some(88));
}
