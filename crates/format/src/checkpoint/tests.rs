//! Tests of checkpoint headers and pages.

use super::*;

fn full() -> CheckpointHeader {
    CheckpointHeader {
        array: ArrayUuid::new([1; 16]),
        epoch: Epoch::new(2),
        nonce: 3,
        dev: DevIndex::new(4),
        block: 0,
        area: 1,
        number: 5,
        kind: CheckpointKind::Full,
        base: 5,
        through: Seq::new(6),
        table_words: 7,
        list_words: 8,
        page_count: 9,
        log_head: 10,
        log_tail: 11,
        body_crc: 12,
        config_seq: 13,
        beside: None,
        behind: 0,
        packed: 0,
    }
}

fn with_others_beside() -> CheckpointHeader {
    CheckpointHeader { beside: Some(Beside { base: 4, block: 77 }), ..full() }
}

fn incremental() -> CheckpointHeader {
    CheckpointHeader { kind: CheckpointKind::Incremental, area: 2, block: 40, number: 6, behind: 5, ..full() }
}

fn expect_of(header: &CheckpointHeader) -> BlockExpect {
    BlockExpect { array: header.array, dev: header.dev, area: header.area, block: header.block }
}

fn stamp() -> PageStamp {
    PageStamp {
        array: ArrayUuid::new([1; 16]),
        dev: DevIndex::new(4),
        area: 1,
        block: 3,
        number: 5,
        kind: PageKind::Table,
        index: 2,
    }
}

fn page_expect() -> PageExpect {
    let PageStamp { array, dev, area, block, number, .. } = stamp();
    PageExpect { array, dev, area, block, number: Some(number) }
}

#[test]
fn headers_of_both_kinds_round_trip() {
    for header in
        [full(), with_others_beside(), incremental(), CheckpointHeader { behind: 0, ..incremental() }]
    {
        let mut block = [0xff; META_BYTES];
        header.encode(&mut block);
        assert_eq!(decode_checkpoint_header(&block, &expect_of(&header)), Ok(header));
    }
}

#[test]
fn a_header_is_believed_only_where_it_belongs() {
    let mut block = [0; META_BYTES];
    full().encode(&mut block);
    let good = expect_of(&full());
    let error = |expect: BlockExpect| decode_checkpoint_header(&block, &expect).unwrap_err().to_string();
    assert!(error(BlockExpect { array: ArrayUuid::new([2; 16]), ..good }).contains("found array 0101"));
    assert_eq!(error(BlockExpect { area: 0, ..good }), "area of a checkpoint header: found 1, expected 0");
    assert_eq!(error(BlockExpect { block: 1, ..good }), "block of a checkpoint header: found 0, expected 1");
    let dev = DevIndex::new(3);
    assert_eq!(error(BlockExpect { dev, ..good }), "device of a checkpoint header: found 4, expected 3");
}

#[test]
fn kind_area_number_and_base_must_fit_together() {
    for (wrong, what) in [
        (CheckpointHeader { area: 2, ..full() }, "area of a full checkpoint"),
        (CheckpointHeader { base: 4, ..full() }, "base of a full checkpoint"),
        (
            CheckpointHeader { beside: Some(Beside { base: 5, block: 0 }), ..full() },
            "base of incremental checkpoints beside this one",
        ),
        (
            CheckpointHeader { beside: with_others_beside().beside, ..incremental() },
            "base of incremental checkpoints beside this one",
        ),
        (CheckpointHeader { number: 0, base: 0, ..full() }, "number of a checkpoint"),
        (CheckpointHeader { area: 1, ..incremental() }, "area of an incremental checkpoint"),
        (CheckpointHeader { behind: 4, ..full() }, "checkpoint before a full checkpoint"),
        (CheckpointHeader { behind: 6, ..incremental() }, "checkpoint before an incremental checkpoint"),
        (CheckpointHeader { base: 6, ..incremental() }, "base of an incremental checkpoint"),
        (CheckpointHeader { base: 0, ..incremental() }, "base of an incremental checkpoint"),
        (CheckpointHeader { through: Seq::new(1 << 63), ..full() }, "last sequence number of a checkpoint"),
    ] {
        let error = wrong.check().unwrap_err();
        assert!(matches!(error, FormatError::Malformed { what: found, .. } if found == what), "{error}");
    }
}

#[test]
fn pages_of_every_fill_round_trip() {
    for count in [0, 1, 2, 999, PAGE_WORDS] {
        let words: Vec<u32> = (0..count).map(|i| 0x8000_0001 | u32::try_from(i).unwrap() << 8).collect();
        let mut block = [0xff; META_BYTES];
        let crc = encode_page(&stamp(), &words, &mut block);
        let page = decode_page(&block, &page_expect()).unwrap();
        assert_eq!(page, Page { number: 5, kind: PageKind::Table, index: 2, words, crc });
    }
}

#[test]
fn a_page_of_another_checkpoint_or_place_is_refused() {
    let mut block = [0; META_BYTES];
    encode_page(&stamp(), &[1, 2, 3], &mut block);
    let good = page_expect();
    let error = |expect: PageExpect| decode_page(&block, &expect).unwrap_err().to_string();
    assert_eq!(
        error(PageExpect { number: Some(4), ..good }),
        "checkpoint number of a checkpoint page: found 5, expected 4"
    );
    assert_eq!(error(PageExpect { block: 4, ..good }), "block of a checkpoint page: found 3, expected 4");
    assert_eq!(error(PageExpect { area: 2, ..good }), "area of a checkpoint page: found 1, expected 2");
    let header = decode_checkpoint_header(&block, &expect_of(&full()));
    assert!(matches!(header, Err(FormatError::BadMagic { .. })), "a page is not a header: {header:?}");
}

/// M-11: a checkpoint exists only with all of its pages, in order.
#[test]
fn body_crc_depends_on_every_page_and_their_order() {
    assert_eq!(body_crc(&[]), 0);
    assert_eq!(body_crc(&[0x0403_0201, 0x0807_0605]), crate::crc32c(&[1, 2, 3, 4, 5, 6, 7, 8]));
    assert_ne!(body_crc(&[1, 2]), body_crc(&[2, 1]));
    assert_ne!(body_crc(&[1, 2]), body_crc(&[1]));
}
