//! Row-diagonal parity against a plain version of the paper's definition, all double losses,
//! updates, narrow codewords.

use crate::common::{Layout, backends, bytes};
use erasure::{Backend, Code, CodeError, CodeKind};
use proptest::prelude::*;

/// Row and diagonal parity of `columns` (all of them, from 0), as section 3 of the paper (Corbett et al.,
/// FAST 2004) defines them on an array of p + 1 disks and p - 1 rows, byte by byte.
fn golden(prime: usize, columns: &[Vec<u8>]) -> [Vec<u8>; 2] {
    let len = columns[0].len();
    let symbol = len / (prime - 1);
    let mut disks = columns.to_vec();
    disks.resize(prime - 1, vec![0; len]);
    let mut row_parity = vec![0; len];
    for disk in &disks {
        row_parity.iter_mut().zip(disk).for_each(|(sum, byte)| *sum ^= byte);
    }
    disks.push(row_parity.clone());
    let mut diagonal_parity = vec![0; len];
    for (disk, content) in disks.iter().enumerate() {
        for row in 0..prime - 1 {
            let diagonal = (row + disk) % prime;
            if diagonal == prime - 1 {
                continue; // the diagonal that is not stored
            }
            for byte in 0..symbol {
                diagonal_parity[diagonal * symbol + byte] ^= content[row * symbol + byte];
            }
        }
    }
    [row_parity, diagonal_parity]
}

fn prime_of(width_max: usize) -> usize {
    if width_max <= 16 { 17 } else { 257 }
}

fn rdp(width_max: usize, backend: Backend) -> Code {
    Code::new(CodeKind::Rdp, width_max, 2).unwrap().with_backend(backend).unwrap()
}

/// Random columns; those not in `filled` are zeros.
fn columns_of(width: usize, filled: &[usize], len: usize, seed: u64) -> Vec<Vec<u8>> {
    let column = |column| {
        if filled.contains(&column) { bytes(seed + column as u64, len) } else { vec![0; len] }
    };
    (0..width).map(column).collect()
}

fn encode(code: &Code, filled: &[usize], columns: &[Vec<u8>]) -> [Vec<u8>; 2] {
    let data: Vec<&[u8]> = filled.iter().map(|&column| &columns[column][..]).collect();
    let mut parities = [vec![0xEE; columns[0].len()], vec![0xEE; columns[0].len()]];
    code.encode_columns(filled, &data, &mut parities.each_mut().map(|parity| &mut parity[..]));
    parities
}

#[test]
fn the_example_of_a_small_array_by_hand() {
    // One byte in column 2, row 15: diagonal 17 mod 17 = 0. Its row parity is on disk 16,
    // diagonal 31 mod 17 = 14.
    let mut column = vec![0; 16];
    column[15] = 0x5A;
    let code = rdp(4, Backend::detected());
    let mut parities = [[0xEE; 16]; 2];
    code.encode_columns(&[2], &[&column], &mut parities.each_mut().map(|parity| &mut parity[..]));
    let mut diagonals = [0; 16];
    (diagonals[0], diagonals[14]) = (0x5A, 0x5A);
    assert_eq!(parities[0], column[..]);
    assert_eq!(parities[1], diagonals);
    // Column 2, row 14 is on diagonal 16, which is not stored.
    column.rotate_left(1);
    code.encode_columns(&[2], &[&column], &mut parities.each_mut().map(|parity| &mut parity[..]));
    diagonals = [0; 16];
    diagonals[13] = 0x5A;
    assert_eq!(parities[1], diagonals);
}

#[test]
fn parities_are_those_of_the_paper_on_every_backend() {
    for width in (1..=20).chain([31, 32, 33, 63, 64, 65, 128, 253, 256]) {
        let prime = prime_of(width);
        for symbol in [1, 3, 16, 31] {
            let len = symbol * (prime - 1);
            let all: Vec<_> = (0..width).collect();
            let columns = columns_of(width, &all, len, 5);
            let expected = golden(prime, &columns);
            for backend in backends() {
                let found = encode(&rdp(width, backend), &all, &columns);
                assert!(found == expected, "{width} columns of {len} bytes on {backend}");
            }
        }
    }
}

#[test]
fn chunk_sizes_of_arrays_work() {
    for (width, len) in
        [(16, 512), (6, 4096), (16, 1 << 16), (5, 40000), (17, 4096), (40, 8192), (256, 1 << 14)]
    {
        let all: Vec<_> = (0..width).collect();
        let columns = columns_of(width, &all, len, 9);
        for backend in backends() {
            let code = rdp(width, backend);
            assert_eq!(code.check_length(len), Ok(()));
            assert_eq!(code.length_unit(), prime_of(width) - 1);
            assert!(encode(&code, &all, &columns) == golden(prime_of(width), &columns));
            let layout = Layout::new(&code, &all, len, 4);
            layout.check_rebuild(&[0, width - 1], &[0, width - 1]);
            layout.check_rebuild(&[1, width - 1], &[width - 1]);
            layout.check_rebuild(&[width / 2, width], &[width / 2]);
        }
    }
}

/// All subsets of `pieces` with at most `most` members.
fn subsets(pieces: &[usize], most: usize) -> Vec<Vec<usize>> {
    let mut sets = vec![Vec::new()];
    for &piece in pieces {
        let with: Vec<_> =
            sets.iter().filter(|set| set.len() < most).map(|set| [&set[..], &[piece]].concat()).collect();
        sets.extend(with);
    }
    sets
}

#[test]
fn every_loss_of_up_to_two_comes_back_in_every_part() {
    for width in 1..=17 {
        let symbol = if width == 17 { 1 } else { 17 };
        let (len, all) = (symbol * (prime_of(width) - 1), (0..width).collect::<Vec<_>>());
        let pieces: Vec<_> = (0..width + 2).collect();
        for backend in backends() {
            let layout = Layout::new(&rdp(width, backend), &all, len, 21);
            for lost in subsets(&pieces, 2) {
                for wanted in subsets(&lost, 2) {
                    layout.check_rebuild(&lost, &wanted);
                }
                let reversed: Vec<_> = lost.iter().rev().copied().collect();
                layout.check_rebuild(&lost, &reversed);
            }
        }
    }
}

#[test]
fn every_double_loss_of_wide_codewords_comes_back() {
    for width in [16, 18, 128] {
        let all: Vec<_> = (0..width).collect();
        let layout = Layout::new(&rdp(width, Backend::detected()), &all, prime_of(width) - 1, 3);
        for one in 0..width + 2 {
            for other in one + 1..width + 2 {
                layout.check_rebuild(&[one, other], &[one, other]);
            }
        }
    }
}

#[test]
fn every_subset_of_columns_is_a_codeword_that_survives_two_losses() {
    let width = 5;
    let code = rdp(width, Backend::detected());
    let everything: Vec<_> = (0..width).collect();
    for filled in subsets(&everything, width) {
        let columns = columns_of(width, &filled, 48, 77);
        assert!(encode(&code, &filled, &columns) == golden(17, &columns), "{filled:?}");
        let reversed: Vec<_> = filled.iter().rev().copied().collect();
        assert!(encode(&code, &reversed, &columns) == golden(17, &columns), "{reversed:?}");
        let layout = Layout::new(&code, &filled, 48, 1);
        let pieces: Vec<_> = filled.iter().copied().chain([width, width + 1]).collect();
        for lost in subsets(&pieces, 2) {
            // All that can be wanted: what is lost, what is at hand, and columns that are zeros.
            layout.check_rebuild(&lost, &(0..width + 2).collect::<Vec<_>>());
            for absent in everything.iter().filter(|column| !filled.contains(column)) {
                layout.check_rebuild(&lost, &[&lost[..], &[*absent]].concat());
            }
        }
    }
}

#[test]
fn a_code_made_wider_gives_the_same_while_the_prime_is_the_same() {
    let columns = columns_of(3, &[0, 1, 2], 512, 8);
    let narrow = encode(&rdp(3, Backend::detected()), &[0, 1, 2], &columns);
    assert!(narrow == encode(&rdp(16, Backend::detected()), &[0, 1, 2], &columns));
    let wide = encode(&rdp(17, Backend::detected()), &[0, 1, 2], &columns);
    assert!(wide == encode(&rdp(256, Backend::detected()), &[0, 1, 2], &columns));
    assert!(narrow[0] == wide[0] && narrow[1] != wide[1]);
}

#[test]
fn what_does_not_suit_is_refused() {
    for (width_max, parity_count) in [(4, 1), (4, 3), (4, 0), (0, 2), (257, 2), (usize::MAX, 2)] {
        let error = Code::new(CodeKind::Rdp, width_max, parity_count).unwrap_err();
        assert_eq!(error, CodeError::Geometry { kind: CodeKind::Rdp, width_max, parity_count });
    }
    let error = Code::new(CodeKind::Rdp, 4, 3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rdp code with 4 data columns and 3 parities: expected 1 to 256 data columns, exactly 2 parities"
    );
    let code = rdp(17, Backend::detected());
    let error = CodeError::Length { kind: CodeKind::Rdp, len: 512 + 16, unit: 256 };
    assert_eq!(code.check_length(528), Err(error));
    assert_eq!(error.to_string(), "rdp code on pieces of 528 bytes: expected a multiple of 256 bytes");
    let mut region = vec![7; 4 * 528];
    let present = [(0, 0), (17, 528)];
    assert_eq!(
        code.rebuild_in(&mut erasure::Region::new(&mut region, 528), &[0, 1], &present, &[(1, 1056)]),
        Err(error)
    );
    assert_eq!(region, vec![7; 4 * 528]);
}

#[test]
fn one_loss_too_many_is_refused_and_nothing_is_written() {
    let code = rdp(4, Backend::detected());
    let region = bytes(1, 7 * 16);
    for lost in [[0, 1, 2], [0, 1, 4], [0, 3, 5], [1, 4, 5]] {
        let present: Vec<_> =
            (0..6).filter(|piece| !lost.contains(piece)).map(|piece| (piece, piece * 16)).collect();
        let mut after = region.clone();
        let result = code.rebuild_in(
            &mut erasure::Region::new(&mut after, 16),
            &[0, 1, 2, 3],
            &present,
            &[(lost[0], 96)],
        );
        assert_eq!(result, Err(CodeError::TooManyLosses { lost: 3, tolerated: 2 }));
        assert_eq!(after, region);
    }
}

#[test]
#[should_panic(expected = "rdp code on pieces of 20 bytes: expected a multiple of 16 bytes")]
fn encode_of_a_length_that_cannot_be_cut() {
    rdp(4, Backend::detected()).encode(&[&[0; 20]], &mut [&mut [0; 20], &mut [0; 20]]);
}

#[test]
#[should_panic(expected = "of a code with 4 columns")]
fn update_of_a_column_beyond_the_width() {
    rdp(4, Backend::detected()).update(4, None, Some(&[0; 16]), &mut [&mut [0; 16], &mut [0; 16]]);
}

#[test]
#[should_panic(expected = "row-diagonal parity has no coefficients")]
fn coefficients_of_a_code_without() {
    rdp(4, Backend::detected()).coefficient(0, 0);
}

/// Some of `0..width`, in an order of their own.
fn part_of(width: usize, seed: u64) -> Vec<usize> {
    let mut keyed: Vec<_> = bytes(seed, width).into_iter().zip(0..width).collect();
    keyed.retain(|(key, column)| *column == 0 || key % 4 != 0);
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, column)| column).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_double_loss_comes_back(
        width in prop_oneof![1..=16usize, 17..=256usize],
        symbol in 1..=70usize,
        seed: u64,
        picks: [prop::sample::Index; 2],
        want in 0..4usize,
    ) {
        let seed = seed / 2;
        let len = if width <= 16 { symbol * 16 } else { (symbol / 8 + 1) * 256 };
        let filled = part_of(width, seed);
        let pieces: Vec<_> = filled.iter().copied().chain([width, width + 1]).collect();
        let mut lost: Vec<_> = picks.iter().map(|pick| pieces[pick.index(pieces.len())]).collect();
        lost.dedup();
        let wanted: Vec<_> = match want {
            0 => lost.iter().take(1).copied().collect(),
            1 => lost.iter().skip(1).copied().collect(),
            2 => lost.clone(),
            _ => (0..width + 2).collect(),
        };
        for backend in backends() {
            let code = rdp(width, backend);
            Layout::new(&code, &filled, len, seed).check_rebuild(&lost, &wanted);
        }
    }

    /// Columns that join, change and leave one after another end in the parities of what is left, also the
    /// diagonal parity while the row parity is not kept.
    #[test]
    fn updates_lead_to_the_parities_of_a_fresh_encode(
        width in prop_oneof![1..=16usize, 17..=256usize],
        symbol in 1..=40usize,
        seed: u64,
    ) {
        let seed = seed / 2;
        let len = if width <= 16 { symbol * 16 } else { (symbol / 8 + 1) * 256 };
        let filled = part_of(width, seed);
        let before = columns_of(width, &filled, len, seed);
        let after = columns_of(width, &filled, len, seed + 1000);
        for backend in backends() {
            let code = rdp(width, backend);
            let (mut rows, mut diagonals, mut junk) = (vec![0; len], vec![0; len], bytes(3, len));
            let mut left = before.clone();
            for &column in &filled {
                let new = Some(&before[column][..]);
                code.update(column, None, new, &mut [&mut rows, &mut diagonals]);
            }
            for &column in &filled {
                let old = Some(&before[column][..]);
                let new = (column % 3 != 0).then_some(&after[column][..]);
                let kept = if column % 2 == 0 { &mut junk } else { &mut rows };
                code.update(column, old, new, &mut [kept, &mut diagonals]);
                left[column] = new.map_or(vec![0; len], <[u8]>::to_vec);
            }
            code.update(0, None, None, &mut [&mut rows, &mut diagonals]);
            let expected = golden(prime_of(width), &left);
            prop_assert!(diagonals == expected[1], "diagonals on {}", backend);
            for &column in filled.iter().filter(|&column| column % 2 == 0) {
                let (old, new) = (Some(&before[column][..]), Some(&left[column][..]));
                code.update(column, old, new, &mut [&mut rows, &mut junk]);
            }
            prop_assert!(rows == expected[0], "rows on {}", backend);
        }
    }
}
