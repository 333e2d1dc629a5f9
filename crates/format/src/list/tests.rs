//! Tests of the checkpoint list.

use super::*;

fn version(chunk: u32, crc: u32) -> StripeChunk {
    StripeChunk { chunk: ChunkIndex::new(chunk), crc }
}

fn member(lcn: u64, chunk: u32) -> LogMember {
    LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(chunk), crc: !chunk }
}

fn items() -> Vec<ListItem> {
    vec![
        ListItem::DirtyStripe {
            stripe: StripeId::new((1 << 48) - 1),
            committed: vec![version(u32::MAX, 0), version(0, 0), version(7, 99)],
        },
        ListItem::LogStripe {
            first_seq: Seq::new(1 << 40),
            log_block: ChunkIndex::new(9),
            log_crcs: vec![1, 2],
            members: vec![
                (member(1 << 33, 5), MemberFate::Newest),
                (member((1 << 48) - 1, 6), MemberFate::Covered),
                (member(2, 7), MemberFate::Superseded),
            ],
        },
        ListItem::DirtyStripe { stripe: StripeId::new(0), committed: vec![] },
        ListItem::UpdatedColumns {
            stripe: StripeId::new(77),
            columns: 70,
            committed: vec![
                (0, version(0, 0)),
                (31, version(5, 6)),
                (32, version(7, 8)),
                (69, version(1, 2)),
            ],
        },
        ListItem::Delta {
            stripe: StripeId::new(1 << 33),
            log_block: ChunkIndex::new(8),
            log_crcs: vec![3, 4],
        },
        ListItem::Space {
            dev: DevIndex::new(300),
            used_count: 1 << 31,
            frontier: 77,
            freed: [1, u32::MAX].map(ChunkIndex::new).to_vec(),
        },
        ListItem::OpenStripe { seq: Seq::new(1 << 40), row: u32::MAX, log_block: ChunkIndex::new(9) },
        ListItem::Missed {
            dev: DevIndex::new(3),
            serial: 7,
            left: NonZeroU64::new(12).map(|config_seq| MissedPoint {
                epoch: Epoch::new(1 << 40),
                nonce: u64::MAX,
                config_seq,
                was_whole: true,
            }),
            ranges: vec![ChunkRange { first: ChunkIndex::new(1), count: u32::MAX }],
        },
        ListItem::Missed { dev: DevIndex::new(1), serial: 2, left: None, ranges: vec![] },
    ]
}

fn words(items: &[ListItem]) -> Vec<u32> {
    let mut words = Vec::new();
    items.iter().for_each(|item| item.encode(&mut words));
    words
}

#[test]
fn items_that_speak_of_a_member_are_found_wherever_they_are() {
    let of_members = |item: &ListItem| matches!(item, ListItem::Space { .. } | ListItem::Missed { .. });
    let backwards: Vec<ListItem> = items().into_iter().rev().collect();
    for items in [items(), backwards] {
        let (words, mut expected) = (words(&items), items);
        let list = List::read(&words).unwrap();
        let is_before = |item: &&ListItem| !matches!(item, ListItem::LogStripe { .. });
        let behind = expected.iter().skip_while(is_before).cloned();
        assert!(list.items_from_log_stripes().map(ItemRef::to_item).eq(behind));
        expected.retain(of_members);
        let found: Vec<ListItem> = list.items_of_members().map(ItemRef::to_item).collect();
        assert_eq!(found, expected);
        assert_eq!(found.len(), expected.len());
        assert_eq!(list.dirty_stripe_count(), 3);
    }
}

#[test]
fn items_round_trip_one_after_another() {
    assert_eq!(decode_list(&words(&items())).unwrap(), items());
    assert_eq!(decode_list(&[]).unwrap(), []);
}

#[test]
fn a_list_cut_anywhere_but_between_items_is_refused() {
    let whole = words(&items());
    let ends: Vec<usize> = (0..=9).map(|count| words(&items()[..count]).len()).collect();
    for cut in 0..=whole.len() {
        let read = decode_list(&whole[..cut]);
        assert_eq!(read.is_ok(), ends.contains(&cut), "cut at word {cut}: {read:?}");
    }
}

#[test]
fn wrong_kinds_and_numbers_are_refused_by_name() {
    let error = |words: &[u32]| decode_list(words).unwrap_err().to_string();
    assert_eq!(error(&[0]), "kind of an item of a checkpoint list: found 0, expected 1 to 7");
    assert!(error(&[4 << 24, 9, 1, 2, 5]).starts_with("words left for an item"));
    assert!(error(&[4 << 24 | 1 << 16, 9, 1, 0]).starts_with("kind of an item"));
    assert!(error(&[1 << 24 | 1 << 16, 0, 0]).starts_with("log devices of a dirty stripe"));
    assert!(error(&[3 << 24 | 1, 0, 0, 1]).starts_with("members of a delta"));
    assert!(error(&[5 << 24 | 1, 0, 0, 1, 1]).starts_with("kind of an item"));
    assert!(error(&[5 << 24, 0, 1 << 31, 1, 1]).starts_with("sequence number of an open stripe"));
    assert!(error(&[6 << 24, 1, 1, 0, 0, 0, 0, 0, 0]).starts_with("epoch of a member that is being rebuilt"));
    assert!(error(&[6 << 24, 1, 0, 1 << 31, 0, 0, 1, 0, 0]).starts_with("epoch of what a member missed"));
    assert!(error(&[6 << 24, 1, 0, 0, 0, 0, 0, 0, 1, 5]).starts_with("words left for an item"));
    assert!(error(&[3 << 24, 0, 1 << 16, 1]).starts_with("stripe of a checkpoint list"));
    assert!(error(&[1 << 24, 0, 1 << 16]).starts_with("stripe of a checkpoint list: found 281474976710656"));
    assert!(error(&[7 << 24 | 3, 0, 0]).starts_with("words of bits of a dirty stripe"));
    assert!(error(&[7 << 24 | 1 << 16 | 3, 0, 0, 1 << 3, 1, 1]).starts_with("bits of columns"));
    assert!(error(&[7 << 24 | 1 << 16 | 3, 0, 0, 1, u32::MAX, 1]).starts_with("chunk of a column"));
    assert!(error(&[2 << 24, 0, 1 << 31, 1]).starts_with("sequence number of a log stripe"));
    assert!(
        error(&[2 << 24 | 1, 0, 0, 1, 0, 1 << 24 | 1 << 16, 1, 0])
            .starts_with("logical chunk of a checkpoint list")
    );
    for fate in [0, 4] {
        let words = [2 << 24 | 1, 0, 0, 1, 0, fate << 24, 1, 0];
        assert!(error(&words).starts_with(&format!("member fate: found {fate}, ")), "{}", error(&words));
    }
}

#[test]
fn a_delta_takes_as_many_words_as_it_says() {
    for log_crcs in [vec![], vec![1], vec![1, 2, 3]] {
        let expected = delta_item_words(log_crcs.len());
        let item = ListItem::Delta { stripe: StripeId::new(0), log_block: ChunkIndex::new(1), log_crcs };
        assert_eq!(words(&[item]).len(), expected);
    }
}
