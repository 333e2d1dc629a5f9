//! What the codes refuse: shapes that do not exist (errors), and calls that only a bug can make (panics).

use erasure::{Code, CodeError, CodeKind};

fn code() -> Code {
    Code::new(CodeKind::Cauchy, 4, 2).unwrap()
}

#[test]
fn shapes_that_do_not_exist_are_refused() {
    for (kind, width_max, parity_count) in [
        (CodeKind::Xor, 4, 2),
        (CodeKind::Xor, 4, 0),
        (CodeKind::Xor, 0, 1),
        (CodeKind::Xor, 255, 1),
        (CodeKind::Cauchy, 0, 2),
        (CodeKind::Cauchy, 4, 0),
        (CodeKind::Cauchy, 254, 2),
        (CodeKind::Cauchy, usize::MAX, 1),
    ] {
        let error = Code::new(kind, width_max, parity_count).unwrap_err();
        assert_eq!(error, CodeError::Geometry { kind, width_max, parity_count });
    }
    for (kind, width_max, parity_count) in [
        (CodeKind::Xor, 254, 1),
        (CodeKind::Cauchy, 254, 1),
        (CodeKind::Cauchy, 1, 254),
        (CodeKind::Cauchy, 128, 127),
    ] {
        let code = Code::new(kind, width_max, parity_count).unwrap();
        assert_eq!((code.kind(), code.width_max(), code.parity_count()), (kind, width_max, parity_count));
    }
}

#[test]
fn errors_say_what_was_found_and_what_was_expected() {
    let geometry = Code::new(CodeKind::Xor, 4, 2).unwrap_err();
    assert_eq!(
        geometry.to_string(),
        "xor code with 4 data columns and 2 parities: expected at least 1 data column, exactly 1 parity and at most 255 in all"
    );
    let losses = CodeError::TooManyLosses { lost: 3, tolerated: 2 };
    assert_eq!(losses.to_string(), "3 pieces of the codeword are missing: the code tolerates 2");
}

#[test]
#[should_panic(expected = "reaches beyond the region")]
fn input_beyond_the_region() {
    code().encode_in(&mut erasure::Region::new(&mut [0; 40], 8), &[0], &[33], &[0, 8]);
}

#[test]
#[should_panic(expected = "the bytes of piece 1")]
fn piece_that_is_shorter_than_the_others() {
    let mut pieces = [8, 7, 8].map(block::Buffer::new);
    code().encode_in(&mut erasure::Apart::new(&mut pieces, 8), &[0], &[0], &[2, 1]);
}

#[test]
#[should_panic(expected = "overlaps an output")]
fn output_that_is_an_input() {
    let mut pieces = [8, 8].map(block::Buffer::new);
    code().encode_in(&mut erasure::Apart::new(&mut pieces, 8), &[0], &[0], &[1, 0]);
}

#[test]
#[should_panic(expected = "reaches beyond the region")]
fn output_offset_that_overflows() {
    code().encode_in(&mut erasure::Region::new(&mut [0; 40], 8), &[0], &[0], &[8, usize::MAX - 3]);
}

#[test]
#[should_panic(expected = "reaches beyond the region")]
fn rebuild_beyond_the_region() {
    let present = [(0, 0), (1, 8), (2, 16), (4, 24)];
    code()
        .rebuild_in(&mut erasure::Region::new(&mut [0; 40], 8), &[0, 1, 2, 3], &present, &[(3, 33)])
        .unwrap();
}

#[test]
#[should_panic(expected = "overlaps an output")]
fn output_over_an_input() {
    code().encode_in(&mut erasure::Region::new(&mut [0; 40], 8), &[0], &[0], &[7, 16]);
}

#[test]
#[should_panic(expected = "overlaps another output")]
fn output_over_an_output() {
    code().encode_in(&mut erasure::Region::new(&mut [0; 40], 8), &[0], &[0], &[8, 15]);
}

#[test]
#[should_panic(expected = "overlaps an output")]
fn parity_over_the_new_data() {
    code().update_in(&mut erasure::Region::new(&mut [0; 40], 8), 0, None, Some(8), &[8, 16]);
}

#[test]
#[should_panic(expected = "overlaps an output")]
fn rebuilt_piece_over_a_present_one() {
    let present = [(0, 0), (1, 8), (2, 16), (4, 24)];
    code()
        .rebuild_in(&mut erasure::Region::new(&mut [0; 40], 8), &[0, 1, 2, 3], &present, &[(3, 31)])
        .unwrap();
}

#[test]
#[should_panic(expected = "listed twice")]
fn column_listed_twice() {
    code().encode_in(&mut erasure::Region::new(&mut [0; 40], 8), &[1, 1], &[0, 8], &[16, 24]);
}

#[test]
#[should_panic(expected = "data column 4 of a code with 4 columns")]
fn column_beyond_the_width() {
    code().update_in(&mut erasure::Region::new(&mut [0; 40], 8), 4, Some(0), None, &[16, 24]);
}

#[test]
#[should_panic(expected = "each parity has one output")]
fn parity_without_an_output() {
    code().encode_in(&mut erasure::Region::new(&mut [0; 40], 8), &[1], &[0], &[16]);
}

#[test]
#[should_panic(expected = "each column has one input")]
fn column_without_an_input() {
    code().encode_in(&mut erasure::Region::new(&mut [0; 40], 8), &[1, 2], &[0], &[16, 24]);
}

#[test]
#[should_panic(expected = "present but not of the codeword")]
fn piece_of_a_column_that_the_codeword_does_not_have() {
    code()
        .rebuild_in(
            &mut erasure::Region::new(&mut [0; 40], 8),
            &[0, 1],
            &[(0, 0), (2, 8), (4, 16)],
            &[(1, 24)],
        )
        .unwrap();
}

#[test]
#[should_panic(expected = "none of the code's")]
fn wanted_piece_beyond_the_code() {
    code().rebuild_in(&mut erasure::Region::new(&mut [0; 40], 8), &[0], &[(0, 0)], &[(6, 8)]).unwrap();
}

#[test]
#[should_panic(expected = "same length")]
fn slices_of_different_length() {
    code().encode(&[&[0; 8], &[0; 7]], &mut [&mut [0; 8], &mut [0; 8]]);
}
