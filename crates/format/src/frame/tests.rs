//! Tests of frames and the records in them.

use super::*;
use crate::record::{Commit, Delta, Elastic, FullStripe, InPlace, LogStripe, OpenStripe, Zero};
use crate::{ElasticMember, InPlacePiece, LogMember, StripeChunk};
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

fn chunk(chunk: u32, crc: u32) -> StripeChunk {
    StripeChunk { chunk: ChunkIndex::new(chunk), crc }
}

fn log_stripe(records: &mut RecordBuf, log_crcs: &[u32], members: &[LogMember]) {
    let at = LogStripe::begin(records, ChunkIndex::new(8), log_crcs.len());
    members.iter().for_each(|&member| {
        LogStripe::push(records, member);
    });
    log_crcs.iter().enumerate().for_each(|(row, &crc)| records.set_crc(at.at(row), crc));
}

fn full_stripe(records: &mut RecordBuf, columns: u32) {
    FullStripe::begin(records, StripeId::new(0x0102_0304_0506));
    (1..=columns).for_each(|column| {
        FullStripe::push(records, chunk(column, column + 6));
    });
}

fn commit(records: &mut RecordBuf, data: u32, parity: u32) {
    Commit::begin(records, StripeId::new(1));
    (0..data).for_each(|column| Commit::push_data(records, ChunkIndex::new(4 * column)));
    (0..parity).for_each(|row| {
        Commit::push_parity(records, chunk(row + 1, 10));
    });
}

fn pieces(count: u16) -> impl Iterator<Item = InPlacePiece> {
    (0..count).map(|column| InPlacePiece { column, crc: 14, payload_block: u32::from(column) })
}

fn in_place(records: &mut RecordBuf, count: u16) {
    InPlace::begin(records, StripeId::new(13));
    pieces(count).for_each(|piece| {
        InPlace::push(records, piece);
    });
}

fn delta(records: &mut RecordBuf, log_count: usize, count: u16) {
    let at = Delta::begin(records, StripeId::new(16), true, log_count);
    records.set_crc(at.at(0), 18);
    pieces(count).for_each(|piece| {
        Delta::push(records, piece);
    });
    records.set_log_block(records.len() - 1, ChunkIndex::new(17));
}

fn elastic(records: &mut RecordBuf, members: usize, parities: usize) {
    Elastic::begin(records, u32::MAX, 21);
    (0..members).for_each(|_| {
        Elastic::push(records, ElasticMember { lcn: Lcn::new(u32::MAX.into()), from: 22, crc: 23 });
    });
    (0..parities).for_each(|_| {
        let at = Elastic::push_parity(records);
        records.set_crc(at, 24);
    });
}

fn open_stripe(records: &mut RecordBuf, before: u8, members: usize, parities: usize) {
    let before = (0..before).map(|_| 25);
    let at = OpenStripe::begin(records, (u32::MAX, 26), ChunkIndex::new(27), before, parities);
    (0..parities).for_each(|row| records.set_crc(at.at(row), 28));
    (0..members).for_each(|_| {
        OpenStripe::push(records, ElasticMember { lcn: Lcn::new(u32::MAX.into()), from: 0, crc: 29 });
    });
}

fn zero(first: u64) -> RecordBuf {
    let mut records = RecordBuf::default();
    Zero::push(&mut records, Lcn::new(first), 1);
    records
}

fn one_of_each() -> RecordBuf {
    let mut records = RecordBuf::default();
    let last = LogMember { lcn: Lcn::new((1 << 48) - 1), chunk: ChunkIndex::new(u32::MAX), crc: 5 };
    let first = LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::new(1), crc: 6 };
    log_stripe(&mut records, &[1, u32::MAX], &[last, first]);
    full_stripe(&mut records, 3);
    commit(&mut records, 2, 1);
    Zero::push(&mut records, Lcn::new(11), 12);
    in_place(&mut records, 1);
    delta(&mut records, 1, 1);
    elastic(&mut records, 1, 2);
    open_stripe(&mut records, 2, 1, 2);
    records
}

/// Log stripes of one chunk take 30 bytes with two log devices, and 8 where one went before in the frame that
/// is next to it.
#[test]
fn a_copied_chunk_is_short_behind_a_log_stripe_of_its_frame() {
    let (mut records, mut builder) = (RecordBuf::default(), FrameBuilder::new());
    (0..600).for_each(|lcn| {
        let member = LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(1), crc: 6 };
        log_stripe(&mut records, &[6, 6], &[member]);
    });
    let bond = |at| if at % 3 == 0 { Bond::Next } else { Bond::None };
    let pushed = (0..)
        .zip(records.iter())
        .take_while(|&(at, record)| builder.try_push(Seq::new(100 + at), record, bond(at)));
    let count = (FRAME_RECORD_BYTES - 30) / 8 + 1;
    assert_eq!((pushed.count(), builder.room()), (count, (FRAME_RECORD_BYTES - 30) % 8));
    let mut block = vec![0xaa; META_BYTES];
    builder.seal_into(&stamp(), &mut block);
    let frame = decode_frame(&block, &expect()).unwrap();
    assert!(frame.records.iter().eq(records.iter().take(count)));
    assert_eq!(frame.bonds, (0..count as u64).map(bond).collect::<Vec<_>>());
    // The next frame begins anew.
    builder.clear();
    assert!(builder.try_push(Seq::new(400), records.get(0), Bond::None));
    assert_eq!(builder.room(), FRAME_RECORD_BYTES - 30);
}

/// The bytes that a record takes behind another in its frame.
fn bytes_behind(first: impl Fn(&mut RecordBuf), second: impl Fn(&mut RecordBuf)) -> usize {
    let mut records = RecordBuf::default();
    first(&mut records);
    second(&mut records);
    let mut builder = FrameBuilder::new();
    assert!(builder.try_push(Seq::new(1), records.get(0), Bond::None));
    let room = builder.room();
    assert!(builder.try_push(Seq::new(2), records.get(1), Bond::None));
    assert_eq!(decode_frame(&sealed(&records), &expect()).unwrap().records, records);
    room - builder.room()
}

/// Behind a record of its kind with the same counts one is short, if that is shorter.
#[test]
fn records_are_short_behind_one_of_their_kind_and_counts() {
    let member = |lcn, chunk| LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(chunk), crc: 6 };
    let (one, two) = ([member(1000, 500)], [member(1000, 500), member(1001, 600)]);
    let log = |crcs: &'static [u32], members: &[LogMember]| {
        let members = members.to_vec();
        move |records: &mut RecordBuf| log_stripe(records, crcs, &members)
    };
    assert_eq!(bytes_behind(log(&[6, 6], &one), log(&[6, 6], &one)), 2 + 6);
    assert_eq!(bytes_behind(log(&[6, 6], &one), log(&[6, 7], &one)), 3 + 8 + 6);
    assert_eq!(bytes_behind(log(&[6, 6], &one), log(&[6, 6], &two)), 3 + 8 + 6 + 7);
    assert_eq!(bytes_behind(log(&[6, 6], &two), log(&[6, 6], &one)), 2 + 7);
    assert_eq!(bytes_behind(log(&[6, 6], &one), log(&[6], &one)), 8 + 4 + 14);
    assert_eq!(bytes_behind(log(&[6; 15], &one), log(&[6; 15], &one)), 2 + 6);
    assert_eq!(bytes_behind(log(&[6; 16], &one), log(&[6; 16], &one)), 3 + 16 * 4 + 6);
    assert_eq!(bytes_behind(|records| commit(records, 6, 2), |records| commit(records, 6, 2)), 2 + 6 + 2 * 5);
    assert_eq!(bytes_behind(|records| commit(records, 6, 2), |records| commit(records, 5, 2)), 9 + 20 + 16);
    assert_eq!(bytes_behind(|records| full_stripe(records, 8), |records| full_stripe(records, 8)), 2 + 8 * 5);
    assert_eq!(bytes_behind(|records| full_stripe(records, 8), |records| full_stripe(records, 9)), 8 + 72);
    assert_eq!(bytes_behind(|records| commit(records, 6, 2), |records| full_stripe(records, 8)), 8 + 64);
    // Steps as far as they go take more than the numbers do.
    let far = [member((1 << 48) - 1, u32::MAX), member(0, 0), member((1 << 48) - 1, u32::MAX)];
    assert_eq!(bytes_behind(log(&[6, 6], &one), log(&[6, 6], &far)), 8 + 8 + 3 * 14);
}

#[test]
fn a_short_record_without_one_of_its_kind_before_it_is_refused() {
    for (code, rest) in [(9, 17), (10, 7), (11, 40), (12, 40)] {
        let mut block = sealed(&RecordBuf::default());
        block[RECORDS_OFFSET] = code;
        fields::RECORD_COUNT.put_u16(&mut block, 1);
        fields::RECORD_BYTES.put_u16(&mut block, 1 + rest);
        KIND.finish(&mut block);
        let error = decode_frame(&block, &expect()).unwrap_err().to_string();
        let expected = match code {
            9 => "blocks behind the log stripe before a copied chunk",
            _ => "records of its kind before a short one",
        };
        assert!(error.starts_with(expected), "{code}: {error}");
    }
}

/// Numbers that no record may have are refused by name, wherever steps lead.
#[test]
fn a_short_record_that_leads_too_far_is_refused() {
    let member = LogMember { lcn: Lcn::new(1), chunk: ChunkIndex::new(1), crc: 6 };
    let error = |first: &dyn Fn(&mut RecordBuf), short: &[u8]| {
        let mut records = RecordBuf::default();
        first(&mut records);
        let (mut block, long) = (sealed(&records), records.get(0).bytes().len());
        block[RECORDS_OFFSET + long..][..short.len()].copy_from_slice(short);
        fields::RECORD_COUNT.put_u16(&mut block, 2);
        fields::RECORD_BYTES.put_u16(&mut block, u16::try_from(long + short.len()).unwrap());
        KIND.finish(&mut block);
        decode_frame(&block, &expect()).map(drop).unwrap_err().to_string()
    };
    let log = |records: &mut RecordBuf| log_stripe(records, &[6, 6], &[member]);
    let many = |records: &mut RecordBuf| log_stripe(records, &[6; 16], &[member]);
    let block = "blocks that a short log stripe is behind the one before";
    type First<'a> = &'a dyn Fn(&mut RecordBuf);
    let cases: [(First<'_>, &[u8], &str); 8] = [
        (&log, &[10, 0xff, 0xff, 0xff, 0xff, 0x3f], block),
        (&log, &[10, 1, 3, 0], "logical chunk of a short log stripe"),
        (&log, &[10, 1, 0, 3], "chunk of a short log stripe"),
        (&log, &[10, 1, 0, 0, 1, 2], "bytes left for a short form"),
        (&log, &[10, 0, 0x80, 0x20], "members of a short log stripe"),
        (&many, &[10, 1, 0, 0], "log devices of a short log stripe of one chunk"),
        (&|records| commit(records, 1, 1), &[11, 3], "data stripe of a short record"),
        (&|records| full_stripe(records, 2), &[12, 0, 7], "chunk of a short full stripe"),
    ];
    for (first, short, expected) in cases {
        assert!(error(first, short).starts_with(expected), "{short:?}: {}", error(first, short));
    }
}

fn sealed(records: &RecordBuf) -> Vec<u8> {
    let mut builder = FrameBuilder::new();
    for (seq, record) in (100..).zip(records.iter()) {
        assert!(builder.try_push(Seq::new(seq), record, Bond::None));
    }
    let mut block = vec![0xaa; META_BYTES];
    builder.seal_into(&stamp(), &mut block);
    block
}

#[test]
fn records_of_every_kind_round_trip() {
    let frame = decode_frame(&sealed(&one_of_each()), &expect()).unwrap();
    assert_eq!(frame.records, one_of_each());
    let names: Vec<_> = frame.records.iter().map(RecordRef::name).collect();
    let (kinds, short) = crate::record::RECORD_KINDS.rows.split_last_chunk::<4>().unwrap();
    assert_eq!(names, kinds.iter().map(|row| row.1).collect::<Vec<_>>());
    assert_eq!(short[0].1, "copied chunk", "short forms, of which others are read");
    assert_eq!((frame.first_seq, frame.flushed_through), (Seq::new(100), Seq::new(99)));
    assert_eq!((frame.epoch, frame.dev, frame.block), (Epoch::new(3), DevIndex::new(5), 17));
}

#[test]
fn a_frame_without_records_names_the_next_sequence_number() {
    let frame = decode_frame(&sealed(&RecordBuf::default()), &expect()).unwrap();
    assert_eq!((frame.first_seq, frame.records.len()), (Seq::new(100), 0));
}

#[test]
fn the_builder_counts_and_clears() {
    let mut builder = FrameBuilder::new();
    assert!(builder.is_empty());
    assert_eq!((builder.first_seq(), builder.next_seq()), (None, None));
    assert!(builder.try_push(Seq::new(4), zero(0).get(0), Bond::None));
    assert!(builder.try_push(Seq::new(5), zero(1).get(0), Bond::None));
    assert_eq!(builder.record_count(), 2);
    assert_eq!((builder.first_seq(), builder.next_seq()), (Some(Seq::new(4)), Some(Seq::new(6))));
    builder.clear();
    assert!(builder.is_empty());
    assert!(builder.try_push(Seq::new(77), zero(2).get(0), Bond::None));
    let mut block = [0xff; META_BYTES];
    builder.seal_into(&stamp(), &mut block);
    let frame = decode_frame(&block, &expect()).unwrap();
    assert_eq!(frame.records, zero(2));
    assert_eq!(frame.first_seq, Seq::new(77));
}

#[test]
#[should_panic(expected = "after 1 records")]
fn a_gap_in_the_sequence_is_a_bug() {
    let mut builder = FrameBuilder::new();
    let records = zero(0);
    let record = records.get(0);
    assert!(builder.try_push(Seq::new(4), record, Bond::None));
    builder.try_push(Seq::new(6), record, Bond::None);
}

#[test]
fn a_full_frame_refuses_without_effect() {
    let mut builder = FrameBuilder::new();
    let records = zero(0);
    let record = records.get(0);
    let mut seq = Seq::new(1);
    while builder.try_push(seq, record, Bond::None) {
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
    let mut records = RecordBuf::default();
    let member = LogMember { lcn: Lcn::new(1 << 40), chunk: ChunkIndex::new(9), crc: 1 };
    log_stripe(&mut records, &[1; 4], &[member; 128]);
    full_stripe(&mut records, 255);
    commit(&mut records, 1, 254);
    commit(&mut records, 251, 4);
    in_place(&mut records, 255);
    delta(&mut records, 4, 251);
    elastic(&mut records, 254, 1);
    elastic(&mut records, 1, 254);
    for record in records.iter() {
        let mut builder = FrameBuilder::new();
        assert!(builder.try_push(Seq::new(1), record, Bond::None), "{record:?}");
        let mut block = [0; META_BYTES];
        builder.seal_into(&stamp(), &mut block);
        assert_eq!(decode_frame(&block, &expect()).unwrap().records.get(0), record);
    }
}

#[test]
fn records_beyond_a_frame_do_not_fit() {
    let mut records = RecordBuf::default();
    let member = LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::new(1), crc: 0 };
    log_stripe(&mut records, &[], &[member; 300]);
    assert!(!FrameBuilder::new().try_push(Seq::new(1), records.get(0), Bond::None));
}

#[test]
#[should_panic(expected = "not longer than its count can say")]
fn a_list_beyond_its_count_is_a_bug() {
    full_stripe(&mut RecordBuf::default(), 256);
}

#[test]
#[should_panic(expected = "the newest record is of kind 4, not 2")]
fn an_item_of_another_kind_is_a_bug() {
    FullStripe::push(&mut zero(0), chunk(1, 1));
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
    assert!(matches!(damaged(8), FormatError::Version { found: 3, expected: 2, .. }));
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
    let mut records = RecordBuf::default();
    let member = LogMember { lcn: Lcn::new(0), chunk: ChunkIndex::new(1), crc: 0 };
    log_stripe(&mut records, &[0; 2], &[member]);
    elastic(&mut records, 1, 2);
    elastic(&mut records, 6, 2);
    assert_eq!(records.iter().map(|record| record.bytes().len()).collect::<Vec<_>>(), [30, 28, 88]);
}

#[test]
fn a_record_says_whether_the_next_one_belongs_to_it() {
    let mut builder = FrameBuilder::new();
    for (seq, bond) in [(4, Bond::None), (5, Bond::Next), (6, Bond::None)] {
        assert!(builder.try_push(Seq::new(seq), zero(seq).get(0), bond));
    }
    let mut block = [0; META_BYTES];
    builder.seal_into(&stamp(), &mut block);
    let frame = decode_frame(&block, &expect()).unwrap();
    assert_eq!(frame.bonds, [Bond::None, Bond::Next, Bond::None]);
    for (seq, record, _) in frame.numbered() {
        assert_eq!(record, zero(seq.get()).get(0), "a bond is no part of the record");
    }
}
