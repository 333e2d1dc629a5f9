//! Every loss pattern of small codewords, on every back end.

use crate::common::{Layout, backends, bytes, codes};
use erasure::{Code, CodeError, CodeKind};

/// All subsets of `0..count`, as bit masks, with at most `most` members.
fn subsets(count: usize, most: usize) -> impl Iterator<Item = u32> {
    (0..1u32 << count).filter(move |mask| mask.count_ones() as usize <= most)
}

fn members(mask: u32) -> Vec<usize> {
    (0..32).filter(|bit| mask >> bit & 1 == 1).collect()
}

#[test]
fn every_wanted_set_of_every_loss_pattern_comes_back_on_every_backend() {
    for (width, parity_count) in [(1, 1), (4, 1), (1, 2), (3, 2), (6, 2), (4, 3), (2, 5), (5, 4)] {
        for code in codes(width, parity_count) {
            // 131 bytes: two vectors of the widest kind and a tail.
            let columns: Vec<_> = (0..width).collect();
            let layout = Layout::new(&code, &columns, 131, 7);
            for lost in subsets(width + parity_count, parity_count) {
                for wanted in
                    subsets(width + parity_count, width + parity_count).filter(|set| set & !lost == 0)
                {
                    layout.check_rebuild(&members(lost), &members(wanted));
                }
            }
        }
    }
}

/// The closing piece of a sum is whichever is wanted first, and long pieces take every step of the kernels:
/// several vectors at a time, one, and the tail.
#[test]
fn long_pieces_come_back_in_any_order() {
    for (width, parity_count) in [(6, 2), (5, 3), (4, 4)] {
        for code in codes(width, parity_count) {
            let columns: Vec<_> = (0..width).collect();
            let layout = Layout::new(&code, &columns, 2 * 512 + 3 * 64 + 5, 13);
            for mut wanted in subsets(width + parity_count, parity_count).map(members) {
                let lost = wanted.clone();
                for _ in 0..wanted.len() {
                    wanted.rotate_left(1);
                    layout.check_rebuild(&lost, &wanted);
                }
                wanted.reverse();
                layout.check_rebuild(&lost, &wanted);
            }
        }
    }
}

/// Sums of more pieces than one call of a kernel takes: the closing piece is closed by the last call alone.
#[test]
fn long_pieces_of_wide_codewords_come_back() {
    for code in codes(70, 4) {
        let columns: Vec<_> = (0..70).collect();
        let layout = Layout::new(&code, &columns, 512 + 64 + 7, 17);
        for lost in
            [&[3, 40][..], &[69, 70], &[0, 1, 2, 3], &[68, 33, 72, 5], &[10, 70, 71, 20], &[70, 71, 72, 73]]
        {
            layout.check_rebuild(lost, lost);
        }
    }
}

#[test]
fn pieces_at_hand_can_be_wanted_as_well() {
    for code in codes(5, 3) {
        let layout = Layout::new(&code, &[0, 1, 3, 4], 70, 3);
        for lost in subsets(8, 3).map(members).filter(|lost| !lost.contains(&2)) {
            layout.check_rebuild(&lost, &[0, 4, 5, 6, 7]);
        }
    }
}

#[test]
fn one_loss_too_many_is_refused_and_nothing_is_written() {
    let code = Code::new(CodeKind::Cauchy, 6, 2).unwrap();
    let mut region = bytes(1, 8 * 64);
    let before = region.clone();
    let columns = [0, 1, 2, 3, 4, 5];
    let present: Vec<_> = [1, 3, 4, 5, 7].map(|piece| (piece, piece * 64)).to_vec();
    let result = code.rebuild_in(&mut erasure::Region::new(&mut region, 64), &columns, &present, &[(0, 0)]);
    assert_eq!(result, Err(CodeError::TooManyLosses { lost: 3, tolerated: 2 }));
    assert_eq!(region, before);
    // The same pieces do for a codeword that never had column 2.
    let columns = [0, 1, 3, 4, 5];
    code.rebuild_in(&mut erasure::Region::new(&mut region, 64), &columns, &present, &[(0, 0)]).unwrap();
}

#[test]
fn columns_that_the_codeword_does_not_have_are_zeros() {
    for code in codes(6, 2) {
        let layout = Layout::new(&code, &[5, 2, 0], 100, 11);
        for lost in
            subsets(8, 2).map(members).filter(|lost| [1, 3, 4].iter().all(|absent| !lost.contains(absent)))
        {
            layout.check_rebuild(&lost, &[1, 3, 4]);
        }
        let mut parities = vec![0xAA; 2 * 100];
        code.encode_in(&mut erasure::Region::new(&mut parities, 100), &[], &[], &[0, 100]);
        assert!(erasure::is_zero(&parities), "{}", code.backend());
    }
}

#[test]
fn any_length_and_alignment_equals_the_golden_version() {
    let golden = Code::new(CodeKind::Cauchy, 9, 5).unwrap().with_backend(erasure::Backend::Scalar).unwrap();
    for backend in backends() {
        let code = golden.clone().with_backend(backend).unwrap();
        for len in (0..=300).chain([511, 512, 513, 1023, 4095, 4096, 4097]) {
            let shift = len % 67;
            let layout_of = |piece| shift + piece * (len + 1);
            let (inputs, outputs): (Vec<_>, Vec<_>) =
                ((0..9).map(layout_of).collect(), (9..14).map(layout_of).collect());
            let columns: Vec<_> = (0..9).collect();
            let mut expected = bytes(len as u64, shift + 14 * (len + 1));
            let mut found = expected.clone();
            golden.encode_in(&mut erasure::Region::new(&mut expected, len), &columns, &inputs, &outputs);
            code.encode_in(&mut erasure::Region::new(&mut found, len), &columns, &inputs, &outputs);
            assert!(found == expected, "encode, {backend}, {len} bytes");
            for change in [(Some(0), Some(1)), (None, Some(2)), (Some(3), None), (None, None)] {
                let (old, new) = (change.0.map(layout_of), change.1.map(layout_of));
                golden.update_in(&mut erasure::Region::new(&mut expected, len), 4, old, new, &outputs);
                code.update_in(&mut erasure::Region::new(&mut found, len), 4, old, new, &outputs);
                assert!(found == expected, "update of {change:?}, {backend}, {len} bytes");
            }
        }
    }
}
