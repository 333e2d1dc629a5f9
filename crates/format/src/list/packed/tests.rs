//! Tests of packed lists.

use super::*;
use crate::list::{push_clean_stripes, push_log_stripe, push_updated_columns};
use crate::{StripeChunk, decode_list};
use block::StripeId;

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
    let mut packed = vec![7];
    ListPacker::default().pack(words, &mut packed);
    assert_eq!((packed[0], unpack_list(&packed[1..]).unwrap()), (7, words.to_vec()));
    packed.len() - 1
}

#[test]
fn an_update_of_one_chunk_takes_less_than_four_words_and_takes_sixteen() {
    let mut words = Vec::new();
    (0..1000).for_each(|stripe| updated(&mut words, stripe * 7, 6, &[stripe as usize % 6]));
    (0..1000).for_each(|at| copied(&mut words, at * 2, at as u32 * 2, (at % 7 * 31, MemberFate::Newest), 2));
    assert_eq!((words.len(), packed_words(&words)), (16_000, 3_544));
}

#[test]
fn what_was_packed_before_leaves_nothing_behind() {
    let (mut many, mut few) = (Vec::new(), Vec::new());
    (0..5000).for_each(|stripe| updated(&mut many, stripe * 7, 6, &[stripe as usize % 6]));
    (0..5000).for_each(|at| copied(&mut many, at * 2, at as u32 * 2, (at, MemberFate::Covered), 2));
    (0..30).for_each(|at| copied(&mut few, at, at as u32, (at % 3, MemberFate::Newest), 2));
    let packed = |packer: &mut ListPacker, words: &[u32]| {
        let mut packed = Vec::new();
        packer.pack(words, &mut packed);
        packed
    };
    let mut packer = ListPacker::default();
    let first = packed(&mut packer, &many);
    for words in [&few, &many, &Vec::new(), &few] {
        assert_eq!(packed(&mut packer, words), packed(&mut ListPacker::default(), words));
    }
    assert_eq!(first, packed(&mut packer, &many));
}

#[test]
fn runs_end_where_a_number_does_not_fit_or_another_item_comes() {
    const NEWEST: MemberFate = MemberFate::Newest;
    // Runs of 20 entries each, which are shorter, around what is asked for.
    let between = |second: &dyn Fn(&mut Vec<u32>)| {
        let mut words = Vec::new();
        (0..20).for_each(|at| copied(&mut words, 5000 + at, 5000 + at as u32, (1, NEWEST), 2));
        second(&mut words);
        packed_words(&words)
    };
    let alone = between(&|_| {});
    let more = |second: &dyn Fn(&mut Vec<u32>)| between(second) - alone;
    assert_eq!(alone, 5 + (20 * 7 + 2usize).div_ceil(4));
    // In the same run.
    assert_eq!(more(&|words| copied(words, 5020, 5020, (1, NEWEST), 2)), 2);
    assert_eq!(more(&|words| copied(words, 5019, 1, (LCN_LIMIT - 1, NEWEST), 2)), 4);
    assert_eq!(more(&|words| copied(words, (1 << 62) + 5018, 1, (1, MemberFate::Superseded), 2)), 7);
    // Another one, or none.
    assert_eq!(more(&|words| copied(words, 5018, 5020, (2, NEWEST), 2)), 8);
    assert_eq!(more(&|words| copied(words, (1 << 62) + 5019, 5020, (2, NEWEST), 2)), 8);
    assert_eq!(more(&|words| copied(words, 5020, 5020, (2, NEWEST), 1)), 8);
    assert_eq!(more(&|words| copied(words, 5020, 5020, (2, NEWEST), 0)), 8);
    assert_eq!(more(&|words| updated(words, 3, 6, &[0, 5])), 3 + 3);
    assert_eq!(more(&|words| updated(words, 3, 32, &[0, 31])), 3 + 4);
    assert_eq!(more(&|words| updated(words, 3, 33, &[0])), 7);
    assert_eq!(more(&|words| push_clean_stripes(words, [StripeId::new(3)].into_iter())), 4);
}

#[test]
fn log_stripes_of_any_kind_are_shorter_in_runs() {
    let (mut words, mut expected) = (Vec::new(), 0);
    let member =
        |lcn, chunk| LogMember { lcn: Lcn::new(lcn), chunk: ChunkIndex::new(chunk), crc: 0xdddd_0002 };
    for at in 0..100 {
        let fates = [MemberFate::Newest, MemberFate::Covered, MemberFate::Superseded];
        let members = fates.map(|fate| (member(at * 3 + u64::from(fate.code()), 7 + at as u32), fate));
        let place = (Seq::new(900 + at), ChunkIndex::new(u32::MAX - 900 + at as u32));
        push_log_stripe(&mut words, place, &[1, 2], members.into_iter());
        expected += 4 + 2 + 3 * 4;
    }
    assert_eq!((words.len(), packed_words(&words)), (expected, 707));
}

#[test]
fn a_run_that_is_full_is_followed_by_another() {
    let mut words = Vec::new();
    (0..70_000).for_each(|at| copied(&mut words, at, at as u32, (at, MemberFate::Newest), 1));
    (0..70_000).for_each(|stripe| updated(&mut words, stripe, 16, &[15]));
    let packed = packed_words(&words);
    assert!((7..10).contains(&(packed * 4 / 140_000)), "{packed} words of {}", words.len());
}

/// A run of such a kind, of so many words unpacked, with these bytes.
fn run(kind: u32, of_all: u32, [entries, unpacked]: [u32; 2], bytes: &[u8]) -> Vec<u32> {
    let mut words = vec![kind << 24 | of_all << 16 | entries, unpacked, bytes.len() as u32];
    if kind == 13 {
        words.extend([9, 0]);
    }
    push_bytes(bytes, &mut words);
    words
}

#[test]
fn what_runs_cannot_have_is_refused_by_name() {
    let error = |words: &[u32]| unpack_list(words).unwrap_err().to_string();
    let copied = |log_count, unpacked, bytes: &[u8]| run(13, log_count, [1, unpacked], bytes);
    let good = [3, 2, 4, 1, 1, 1, 1];
    assert_eq!(
        unpack_list(&copied(2, 10, &good)).unwrap(),
        [2 << 24 | 2 << 16 | 1, 9, 0, 0, 0x0101_0101, 0x0101_0101, 1, 1 << 24, 2, 0x0101_0101]
    );
    for end in 0..good.len() {
        assert!(error(&copied(2, 2 * end as u32, &good[..end])).starts_with("bytes left for a short form"));
    }
    assert!(error(&copied(2, 9, &good)).starts_with("words that a run of a checkpoint list stands for"));
    assert!(error(&copied(2, 11, &good)).starts_with("bytes behind the entries of a run"));
    assert!(error(&copied(2, 15, &good)).starts_with("words that a run of a checkpoint list stands for"));
    assert!(
        error(&copied(2, 10, &[3, 2, 4, 1, 1, 1, 1, 0])).starts_with("bytes behind the entries of a run")
    );
    for log_count in [0, 5] {
        assert!(error(&copied(log_count, 10, &good)).starts_with("log devices of copied chunks"));
    }
    let mut behind = copied(2, 10, &good);
    *behind.last_mut().unwrap() |= 1 << 24;
    assert!(error(&behind).starts_with("bytes behind the entries of a run"));
    assert!(error(&behind[..6]).starts_with("words left for an item"));
    assert!(error(&copied(2, 8, &[1, 1, 2, 4])).starts_with("log block of a log stripe in a run"));
    assert!(error(&copied(2, 6, &[3, 1, 4])).starts_with("logical chunk of a checkpoint list"));
    assert!(error(&copied(2, 6, &[3, 2, 1])).starts_with("chunk of a log stripe in a checkpoint list"));
    let members = [2, 0x80, 0x80, 4];
    assert!(error(&copied(0, 4, &members)).starts_with("members of a log stripe in a checkpoint list"));
    assert!(error(&copied(0, 8, &[2, 1, 0, 0])).starts_with("member fate"));
    let mut first = copied(2, 10, &good);
    first[4] = 1 << 31;
    assert!(error(&first).starts_with("sequence number of a log"));
    for columns in [0, 33] {
        assert!(error(&run(14, columns, [1, 4], &[2, 1])).starts_with("columns of updated stripes"));
    }
    assert!(error(&run(14, 6, [1, 4], &[1, 1])).starts_with("stripe of a checkpoint list"));
    assert!(error(&run(14, 6, [1, 6], &[2, 1, 5, 0, 0, 0, 0])).starts_with("chunk of a column"));
    // Columns that are not there are seen by who reads the list.
    let words = unpack_list(&run(14, 6, [1, 6], &[2, 1 << 6, 2, 3, 0, 0, 0])).unwrap();
    assert!(decode_list(&words).unwrap_err().to_string().starts_with("bits of columns"));
}

/// Runs of before there were steps.
#[test]
fn what_runs_of_before_cannot_have_is_refused_by_name() {
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
