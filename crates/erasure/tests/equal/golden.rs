//! The code on disk must never change: known answers, computed by a program that shares nothing
//! with this crate.

use crate::common::{backends, multiply};
use erasure::{Code, CodeKind};

/// Rows 2 to 5 of the code, columns 0 to 15. Row 0 is ones, row 1 powers of two.
const COEFFICIENTS: [[u8; 16]; 4] = [
    [1, 245, 210, 196, 154, 113, 241, 127, 252, 135, 193, 198, 25, 47, 64, 85],
    [1, 187, 166, 215, 199, 7, 206, 130, 74, 47, 165, 155, 182, 96, 241, 173],
    [1, 151, 127, 156, 124, 24, 189, 162, 88, 26, 218, 116, 112, 163, 229, 71],
    [1, 43, 63, 207, 115, 44, 214, 237, 203, 116, 21, 120, 138, 193, 23, 201],
];

/// FNV-1a over all coefficients with row + column < 254, row by row.
const TABLE_HASH: u64 = 0x91f0_e2b4_b115_3de4;

/// The parities of six columns whose byte `i` is `column * 37 + i * 11 + 5`.
const PARITIES: [u128; 4] = [
    0x336d_cfed_9355_d795_535d_9fdd_5395_d7d5,
    0xcc5a_8b3c_c5a7_090b_9d44_4a8a_5553_212d,
    0x35ef_4de0_40da_f172_fdde_4c8f_878e_1d3c,
    0x3a38_12c1_559d_a593_a1f9_d2ba_9ffa_2c52,
];

#[test]
fn coefficients_are_those_on_disk() {
    let code = Code::new(CodeKind::Cauchy, 16, 6).unwrap();
    for column in 0..16 {
        assert_eq!(code.coefficient(0, column), 1);
        let power = (0..column).fold(1, |power, _| multiply(power, 2));
        assert_eq!(code.coefficient(1, column), power);
        for (row, expected) in (2..).zip(COEFFICIENTS) {
            assert_eq!(code.coefficient(row, column), expected[column], "row {row}, column {column}");
        }
    }
}

#[test]
fn the_whole_table_is_the_one_on_disk() {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for row in 0..254 {
        let code = Code::new(CodeKind::Cauchy, 254 - row, row + 1).unwrap();
        for column in 0..254 - row {
            hash = (hash ^ u64::from(code.coefficient(row, column))).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(hash, TABLE_HASH);
}

#[test]
fn parities_are_those_on_disk_on_every_backend() {
    let data: Vec<Vec<u8>> =
        (0..6).map(|column| (0..16).map(|i| (column * 37 + i * 11 + 5) as u8).collect()).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    for (backend, parity_count) in backends().flat_map(|backend| (1..=4).map(move |count| (backend, count))) {
        let code = Code::new(CodeKind::Cauchy, 6, parity_count).unwrap().with_backend(backend).unwrap();
        let mut parities = vec![[0xEE; 16]; parity_count];
        code.encode(&data, &mut parities.iter_mut().map(|parity| &mut parity[..]).collect::<Vec<_>>());
        let found: Vec<_> = parities.iter().map(|&parity| u128::from_be_bytes(parity)).collect();
        assert_eq!(found, PARITIES[..parity_count], "{backend}");
    }
}
