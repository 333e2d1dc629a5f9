//! Tests of packed lists.

use super::*;
use crate::list::{push_clean_stripes, push_updated_columns};
use crate::{StripeChunk, decode_list};

/// A log stripe of one chunk with so many log devices, on which its copies are.
fn copied(words: &mut Vec<u32>, seq: u64, block: u32, (lcn, fate): (u64, MemberFate), log_count: usize) {
    let member = LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(5), crc: 0xdddd_0001 };
    let crcs = vec![member.crc; log_count];
    push_log_stripe(words, (Seq::new(seq), ChunkIndex::new(block)), &crcs, [(member, fate)].into_iter());
}

fn updated(words: &mut Vec<u32>, stripe: u64, columns: usize, updated: &[usize]) {
    let version = |column| StripeChunk { chunk: ChunkIndex::new(column as u32 + 1), crc: 7 };
    let versions = (0..columns).map(|column| updated.contains(&column).then(|| version(column)));
    push_updated_columns(words, StripeId::new(stripe), versions.collect::<Vec<_>>().into_iter());
}

/// The length of the packed form, which gives back what was packed.
fn packed_words(words: &[u32]) -> usize {
    let mut packed = words.to_vec();
    pack_list(&mut packed);
    assert_eq!(unpack_list(&packed).unwrap(), words);
    packed.len()
}

#[test]
fn an_update_of_one_chunk_takes_eight_words_and_took_sixteen() {
    let mut words = Vec::new();
    (0..1000).for_each(|stripe| updated(&mut words, stripe * 7, 6, &[stripe as usize % 6]));
    (0..1000).for_each(|at| copied(&mut words, at * 2, at as u32 * 3, (at << 30, MemberFate::Newest), 2));
    assert_eq!((words.len(), packed_words(&words)), (16_000, 8_000 + 1 + 4));
}

#[test]
fn runs_end_where_a_number_does_not_fit_or_another_item_comes() {
    const NEWEST: MemberFate = MemberFate::Newest;
    let both = |second: &dyn Fn(&mut Vec<u32>)| {
        let mut words = Vec::new();
        copied(&mut words, 5000, 5000, (1, NEWEST), 2);
        second(&mut words);
        packed_words(&words)
    };
    assert_eq!(both(&|words| copied(words, 9095, 9095, ((1 << 40) - 1, NEWEST), 2)), 12);
    // Another run.
    assert_eq!(both(&|words| copied(words, 9096, 5001, (2, NEWEST), 2)), 16);
    assert_eq!(both(&|words| copied(words, 5001, 9096, (2, NEWEST), 2)), 16);
    assert_eq!(both(&|words| copied(words, 4999, 5001, (2, NEWEST), 2)), 16);
    assert_eq!(both(&|words| copied(words, 5001, 4999, (2, NEWEST), 2)), 16);
    assert_eq!(both(&|words| copied(words, 5001, 5001, (2, NEWEST), 1)), 16);
    assert_eq!(both(&|words| updated(words, 3, 6, &[0, 5])), 8 + 1 + 2 + 4);
    // None has it.
    assert_eq!(both(&|words| copied(words, 5001, 5001, (1 << 40, NEWEST), 2)), 18);
    assert_eq!(both(&|words| copied(words, 5001, 5001, (2, MemberFate::Superseded), 2)), 18);
    assert_eq!(both(&|words| copied(words, 5001, 5001, (2, NEWEST), 16)), 8 + 24);
    assert_eq!(both(&|words| copied(words, 5001, 5001, (2, NEWEST), 0)), 8 + 8);
    assert_eq!(both(&|words| updated(words, 3, 17, &[0])), 8 + 6);
    assert_eq!(both(&|words| push_clean_stripes(words, [StripeId::new(3)].into_iter())), 8 + 4);
}

#[test]
fn a_run_that_is_full_is_followed_by_another() {
    let mut words = Vec::new();
    (0..70_000).for_each(|at| copied(&mut words, at, at as u32, (at, MemberFate::Newest), 1));
    (0..70_000).for_each(|stripe| updated(&mut words, stripe, 16, &[15]));
    assert_eq!(packed_words(&words), 2 * 4 * 70_000 + 2 * 4 + 2);
}

#[test]
fn what_runs_cannot_have_is_refused_by_name() {
    let error = |words: &[u32]| unpack_list(words).unwrap_err().to_string();
    let copied = |log_count: u32, first: u32| [11 << 24 | log_count << 16 | 1, 1, 0, 9, first, 2, 3, 4];
    assert!(unpack_list(&copied(15, 0)).is_ok());
    for log_count in [0, 16] {
        assert!(error(&copied(log_count, 0)).starts_with("log devices of copied chunks"));
    }
    assert!(error(&copied(2, 0)[..7]).starts_with("words left for an item"));
    assert!(
        error(&[11 << 24 | 1 << 16 | 1, 0, 1 << 31, 9, 0, 2, 3, 4]).starts_with("sequence number of a log")
    );
    let last = u32::MAX;
    assert!(
        error(&[11 << 24 | 1 << 16 | 1, 1, 0, last, 1 << 12, 2, 3, 4]).starts_with("log block of a copied")
    );
    for columns in [0, 17] {
        assert!(error(&[12 << 24 | columns << 16]).starts_with("columns of updated stripes"));
    }
    assert!(error(&[12 << 24 | 6 << 16 | 1, 9, 1, 2]).starts_with("words left for an item"));
    // Columns that are not there are seen by who reads the list.
    let words = unpack_list(&[12 << 24 | 6 << 16 | 1, 9, 1 << 6, 2, 3]).unwrap();
    assert!(decode_list(&words).unwrap_err().to_string().starts_with("bits of columns"));
}
