//! Tests of changes of the checkpoint list.

use super::super::{List, ListItem, decode_list};
use super::*;
use crate::{LogMember, StripeChunk};
use block::{ChunkIndex, DevIndex, Lcn};

fn dirty(stripe: u64, crc: u32) -> ListItem {
    let version = StripeChunk { chunk: ChunkIndex::new(9), crc };
    ListItem::UpdatedColumns { stripe: StripeId::new(stripe), columns: 3, committed: vec![(1, version)] }
}

fn log(seq: u64, fates: &[MemberFate]) -> ListItem {
    let member = |lcn| LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(5), crc: 1 };
    ListItem::LogStripe {
        first_seq: Seq::new(seq),
        log_block: ChunkIndex::new(7),
        log_crcs: vec![3],
        members: (1 << 40..).map(member).zip(fates.iter().copied()).collect(),
    }
}

fn space(used_count: u32) -> ListItem {
    ListItem::Space { dev: DevIndex::new(1), used_count, frontier: 2, freed: vec![] }
}

fn words(items: &[ListItem]) -> Vec<u32> {
    let mut words = Vec::new();
    items.iter().for_each(|item| item.encode(&mut words));
    words
}

use MemberFate::{Covered, Newest, Superseded};

fn base() -> Vec<u32> {
    words(&[dirty(1, 1), dirty(2, 1), dirty(3, 1), log(10, &[Newest]), log(11, &[Newest, Newest]), space(1)])
}

#[test]
fn changes_one_after_the_other_give_the_list_as_it_is_then() {
    let mut first = Vec::new();
    push_clean_stripes(&mut first, [2].into_iter().map(StripeId::new));
    push_ended_log_stripes(&mut first, [10].into_iter().map(Seq::new));
    first.extend(words(&[dirty(3, 2), dirty(4, 1), dirty(5, 1), log(12, &[Newest]), log(13, &[Newest])]));
    push_fates(&mut first, Seq::new(11), [Covered, Newest].into_iter());
    first.extend(words(&[space(2)]));
    let mut second = Vec::new();
    // Clean and dirty again: what is said behind counts.
    push_clean_stripes(&mut second, [4, 5].into_iter().map(StripeId::new));
    push_ended_log_stripes(&mut second, [13].into_iter().map(Seq::new));
    second.extend(words(&[dirty(5, 2)]));
    push_fates(&mut second, Seq::new(11), [Superseded, Newest].into_iter());
    push_fates(&mut second, Seq::new(12), [Newest].into_iter());
    second.extend(words(&[space(3)]));
    let base = base();
    let folded = fold_list(&base, [&*first, &*second].into_iter()).unwrap();
    let expected =
        [dirty(1, 1), dirty(3, 2), log(11, &[Superseded, Newest]), dirty(5, 2), log(12, &[Newest]), space(3)];
    assert_eq!(decode_list(&folded).unwrap(), expected);
    assert_eq!(fold_list(&base, std::iter::empty()).unwrap(), base);
}

#[test]
fn fates_of_what_is_not_there_or_has_other_members_are_refused() {
    for (seq, fates, is_ended) in
        [(10, vec![Newest, Newest], false), (99, vec![Newest], false), (10, vec![Newest], true)]
    {
        let mut changes = Vec::new();
        if is_ended {
            push_ended_log_stripes(&mut changes, [seq].into_iter().map(Seq::new));
        }
        push_fates(&mut changes, Seq::new(seq), fates.into_iter());
        let error = fold_list(&base(), [&*changes].into_iter()).unwrap_err();
        assert!(error.to_string().starts_with("members of a log stripe whose fates changed"), "{error}");
    }
}

#[test]
fn changes_are_no_list_and_malformed_ones_are_refused() {
    let mut changes = Vec::new();
    push_clean_stripes(&mut changes, [2].into_iter().map(StripeId::new));
    assert!(List::read(&changes).is_err() && Changes::read(&changes).is_ok());
    let error = |words: &[u32]| Changes::read(words).unwrap_err().to_string();
    assert!(error(&[8 << 24 | 1, 0]).starts_with("first word of a change"));
    assert!(error(&[10 << 24 | 1 << 16, 1, 0]).starts_with("first word of a change"));
    assert!(error(&[8 << 24, 1, 1]).starts_with("words left for an item"));
    assert!(error(&[8 << 24, u32::MAX, 1]).starts_with("words left for an item"));
    assert!(error(&[8 << 24, 1, 0, 1 << 16]).starts_with("stripe of a checkpoint list"));
    assert!(error(&[9 << 24, 1, 0, 1 << 31]).starts_with("sequence number of a log stripe"));
    assert!(error(&[10 << 24 | 1, 1, 0, 0]).starts_with("member fate: found 0"));
    assert!(error(&[10 << 24 | 1, 1, 0, 5]).starts_with("fates of a log stripe"));
    assert!(error(&[11 << 24]).starts_with("kind of an item"));
}
