//! What is computed does not depend on where the pieces lie. Small enough for Miri, which looks at the
//! pointers (`cargo +nightly miri test -p elastripe-erasure --test equal apart`).

use crate::common::{Layout, bytes};
use block::Buffer;
use erasure::{Apart, Backend, Code, CodeKind, Region};

const LEN: usize = 64;

/// Codes of four data columns.
fn codes() -> impl Iterator<Item = Code> {
    [(CodeKind::Xor, 1), (CodeKind::Cauchy, 2), (CodeKind::Cauchy, 3), (CodeKind::Rdp, 2)]
        .into_iter()
        .map(|(kind, parities)| Code::new(kind, 4, parities).unwrap().with_backend(Backend::Scalar).unwrap())
}

/// The same pieces in one region and each for itself.
fn pieces(count: usize) -> (Vec<u8>, Vec<Buffer>) {
    let region = bytes(5, count * LEN);
    let apart = region.chunks_exact(LEN).map(|piece| {
        let mut buffer = Buffer::new(LEN);
        buffer.copy_from_slice(piece);
        buffer
    });
    let apart = apart.collect();
    (region, apart)
}

fn compare(region: &[u8], apart: &[Buffer], what: &str) {
    for (at, (piece, buffer)) in region.chunks_exact(LEN).zip(apart).enumerate() {
        assert!(piece == &buffer[..], "{what}: piece {at}");
    }
}

#[test]
fn parities_are_the_same_wherever_pieces_lie() {
    for code in codes() {
        let m = code.parity_count();
        let (mut region, mut apart) = pieces(5 + m);
        let at = |names: &[usize]| -> Vec<usize> { names.iter().map(|name| name * LEN).collect() };
        let outputs: Vec<usize> = (5..5 + m).collect();
        let mut whole = Region::new(&mut region, LEN);
        code.encode_in(&mut whole, &[3, 0, 1], &at(&[0, 1, 2]), &at(&outputs));
        code.update_in(&mut whole, 0, Some(LEN), Some(3 * LEN), &at(&outputs));
        erasure::xor_in(&mut whole, &at(&[0, 3, 1]), 4 * LEN);
        let mut single = Apart::new(&mut apart, LEN);
        code.encode_in(&mut single, &[3, 0, 1], &[0, 1, 2], &outputs);
        code.update_in(&mut single, 0, Some(1), Some(3), &outputs);
        erasure::xor_in(&mut single, &[0, 3, 1], 4);
        compare(&region, &apart, &format!("{:?}", code.kind()));
        assert!(region[5 * LEN..] != bytes(5, region.len())[5 * LEN..], "they were computed");
    }
}

#[test]
fn lost_pieces_are_the_same_wherever_pieces_lie() {
    for code in codes() {
        let layout = Layout::new(&code, &[0, 1, 2, 3], LEN, 3);
        // In an order of their own; what is compared with the region lies apart, see `check_rebuild`.
        let lost = [2, 4, 0];
        let lost = &lost[..code.parity_count()];
        layout.check_rebuild(lost, lost);
        layout.check_rebuild(&lost[..1], &lost[..1]);
    }
}
