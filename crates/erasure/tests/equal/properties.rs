//! Laws of the codes on random shapes up to 255 pieces. A failure prints the smallest case that shows it.

use crate::common::{Layout, backends, bytes, codes, multiply};
use erasure::{Backend, Code, CodeKind};
use proptest::prelude::*;

/// Data columns and parities, of all sizes but more often few.
fn shape() -> impl Strategy<Value = (usize, usize)> {
    let small = (1..=20usize, 1..=8usize);
    let wide = (1..=254usize).prop_flat_map(|width| (Just(width), 1..=(255 - width).min(40)));
    let many = (1..=254usize).prop_flat_map(|parities| (1..=(255 - parities).min(40), Just(parities)));
    prop_oneof![4 => small, 3 => wide, 2 => many]
}

/// `count` different numbers below `below`, in an order of their own.
fn choose(seed: u64, below: usize, count: usize) -> Vec<usize> {
    let mut numbers: Vec<_> = (0..below).collect();
    for (i, random) in bytes(seed, 2 * below).chunks(2).enumerate().take(count) {
        let other = i + usize::from(u16::from_le_bytes([random[0], random[1]])) % (below - i);
        numbers.swap(i, other);
    }
    numbers.truncate(count);
    numbers
}

fn every_column(width: usize) -> Vec<usize> {
    (0..width).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_losses_up_to_the_parity_count_come_back(
        ((width, parity_count), seed, len) in (shape(), any::<u64>(), 1..150usize),
        fill in 0.0..1.0f64,
        losses in 0.0..1.01f64,
    ) {
        let columns = choose(seed, width, (fill * (width + 1) as f64) as usize);
        let mut pieces = columns.clone();
        pieces.extend(width..width + parity_count);
        let lost_count = ((losses * parity_count as f64) as usize).min(parity_count);
        let lost: Vec<_> =
            choose(seed ^ 1, pieces.len(), lost_count).into_iter().map(|i| pieces[i]).collect();
        for code in codes(width, parity_count) {
            Layout::new(&code, &columns, len, seed).check_rebuild(&lost, &lost);
        }
    }

    #[test]
    fn parities_are_sums_of_coefficients_times_columns(
        (width, parity_count) in shape(),
        seed: u64,
    ) {
        let len = 75;
        let data = bytes(seed, width * len);
        let code = Code::new(CodeKind::Cauchy, width, parity_count).unwrap();
        for backend in backends() {
            let code = code.clone().with_backend(backend).unwrap();
            let mut parities = vec![0xEE; parity_count * len];
            let columns: Vec<&[u8]> = data.chunks(len).collect();
            code.encode(&columns, &mut parities.chunks_mut(len).collect::<Vec<_>>());
            for (row, i) in [(0, 0), (parity_count - 1, 74), (parity_count / 2, 63)] {
                let term = |c: usize| multiply(code.coefficient(row, c), columns[c][i]);
                let sum = (0..width).fold(0, |sum, c| sum ^ term(c));
                prop_assert_eq!(parities[row * len + i], sum, "{} parity {} byte {}", backend, row, i);
            }
        }
    }

    /// The stable prefix: fewer columns, fewer parities or another width give the same bytes (E-13, A-40).
    #[test]
    fn a_narrow_codeword_is_the_wide_one_without_its_zero_columns(
        (width, parity_count) in shape(),
        seed: u64,
        part in 0.0..1.0f64,
    ) {
        let len = 40;
        let narrow = 1 + (part * (width - 1) as f64) as usize;
        let fewer = 1 + (part * (parity_count - 1) as f64) as usize;
        let mut data = bytes(seed, width * len);
        data[narrow * len..].fill(0);
        let columns: Vec<&[u8]> = data.chunks(len).collect();
        let (mut expected, mut found) = (vec![1; parity_count * len], vec![2; parity_count * len]);
        let wide = Code::new(CodeKind::Cauchy, width, parity_count).unwrap();
        wide.encode(&columns, &mut expected.chunks_mut(len).collect::<Vec<_>>());
        wide.encode(&columns[..narrow], &mut found.chunks_mut(len).collect::<Vec<_>>());
        prop_assert_eq!(&found, &expected);
        let other = Code::new(CodeKind::Cauchy, narrow, fewer).unwrap();
        let mut found = vec![3; fewer * len];
        other.encode(&columns[..narrow], &mut found.chunks_mut(len).collect::<Vec<_>>());
        prop_assert_eq!(&found, &expected[..fewer * len]);
        let widest = Code::new(CodeKind::Cauchy, 255 - parity_count, parity_count).unwrap();
        let mut found = vec![4; parity_count * len];
        widest.encode(&columns[..narrow], &mut found.chunks_mut(len).collect::<Vec<_>>());
        prop_assert_eq!(&found, &expected);
    }

    /// Columns that join, change and leave one after another end in the parities of what is left.
    #[test]
    fn updates_lead_to_the_parities_of_a_fresh_encode(
        (width, parity_count) in shape(),
        seed: u64,
        len in 1..150usize,
    ) {
        let contents = [bytes(seed, width * len), bytes(!seed, width * len)];
        let piece = |version: usize, column: usize| &contents[version][column * len..][..len];
        for code in codes(width, parity_count) {
            let mut parities = vec![0; parity_count * len];
            let mut parities: Vec<_> = parities.chunks_mut(len).collect();
            for column in choose(seed, width, width) {
                code.update(column, None, Some(piece(0, column)), &mut parities);
            }
            for column in every_column(width) {
                if column % 3 == 0 {
                    code.update(column, Some(piece(0, column)), None, &mut parities);
                } else {
                    code.update(column, Some(piece(0, column)), Some(piece(1, column)), &mut parities);
                }
            }
            let left: Vec<_> = every_column(width).into_iter().filter(|column| column % 3 != 0).collect();
            let data: Vec<_> = left.iter().map(|&column| piece(1, column)).collect();
            let mut expected = vec![0xEE; parity_count * len];
            let mut expected: Vec<_> = expected.chunks_mut(len).collect();
            code.encode_columns(&left, &data, &mut expected);
            prop_assert!(parities == expected, "{:?} on {}", code.kind(), code.backend());
        }
    }

    #[test]
    fn slices_and_regions_give_the_same(
        (width, parity_count) in shape(),
        seed: u64,
        len in 1..100usize,
    ) {
        let count = width + parity_count;
        let code = Code::new(CodeKind::Cauchy, width, parity_count).unwrap();
        let mut region = bytes(seed, count * len);
        let data = region[..width * len].to_vec();
        let mut parities = vec![0; parity_count * len];
        code.encode(&data.chunks(len).collect::<Vec<_>>(), &mut parities.chunks_mut(len).collect::<Vec<_>>());
        let offsets: Vec<_> = (0..count).map(|piece| piece * len).collect();
        code.encode_in(&mut erasure::Region::new(&mut region, len), &every_column(width), &offsets[..width], &offsets[width..]);
        prop_assert_eq!(&region[width * len..], &parities[..]);
        let lost = choose(seed, count, parity_count);
        let present: Vec<_> = region
            .chunks(len)
            .enumerate()
            .filter(|(piece, _)| !lost.contains(piece))
            .collect();
        let mut rebuilt = vec![0; lost.len() * len];
        let mut wanted: Vec<_> = lost.iter().copied().zip(rebuilt.chunks_mut(len)).collect();
        code.rebuild(&every_column(width), &present, &mut wanted).unwrap();
        for (piece, bytes) in wanted {
            prop_assert_eq!(&*bytes, &region[piece * len..][..len], "piece {}", piece);
        }
    }

    #[test]
    fn xor_is_the_first_parity(count in 0..80usize, seed: u64, len in 1..700usize) {
        let mut region = bytes(seed, (count + 1) * len);
        let expected: Vec<u8> =
            (0..len).map(|i| (0..count).fold(0, |sum, piece| sum ^ region[piece * len + i])).collect();
        let inputs: Vec<_> = (0..count).map(|piece| piece * len).collect();
        erasure::xor_in(&mut erasure::Region::new(&mut region, len), &inputs, count * len);
        prop_assert_eq!(&region[count * len..], &expected[..]);
    }

    #[test]
    fn only_zeros_are_zero(len in 0..3000usize, at: prop::sample::Index, bit in 0..8u32) {
        let mut content = vec![0; len];
        prop_assert!(erasure::is_zero(&content));
        if len > 0 {
            content[at.index(len)] = 1 << bit;
            prop_assert!(!erasure::is_zero(&content));
        }
    }
}

#[test]
fn the_scalar_backend_is_always_there_and_the_detected_one_is_used() {
    assert!(backends().any(|backend| backend == Backend::Scalar));
    let code = Code::new(CodeKind::Xor, 3, 1).unwrap();
    assert_eq!(code.backend(), Backend::detected());
    assert_eq!(erasure::backend_name(), Backend::detected().name());
}
