//! What the tests of the codes share.

use block::Buffer;
use erasure::{Backend, Code, CodeKind};

/// The back ends that this CPU has.
pub fn backends() -> impl Iterator<Item = Backend> {
    Backend::ALL.iter().copied().filter(|backend| backend.is_available())
}

/// The code of this shape, of each kind that has it and on each back end.
pub fn codes(width_max: usize, parity_count: usize) -> Vec<Code> {
    let kinds = [CodeKind::Xor, CodeKind::Cauchy];
    let codes = kinds.iter().filter_map(|&kind| Code::new(kind, width_max, parity_count).ok());
    codes
        .flat_map(|code| backends().map(move |backend| code.clone().with_backend(backend).unwrap()))
        .collect()
}

/// Reproducible bytes (xorshift).
pub fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Multiplication in the field of the code by shift and add: shares nothing with the crate.
pub fn multiply(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0u8, |sum, bit| {
        let doubled = (sum << 1) ^ if sum & 0x80 == 0 { 0 } else { 0x1D };
        doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

/// A codeword in a region that has a second place for every piece.
pub struct Layout {
    code: Code,
    columns: Vec<usize>,
    len: usize,
    /// All pieces of the wide codeword, zero columns included.
    region: Vec<u8>,
}

impl Layout {
    /// Encodes random data in `columns`.
    pub fn new(code: &Code, columns: &[usize], len: usize, seed: u64) -> Self {
        let (width, count) = (code.width_max(), code.width_max() + code.parity_count());
        let mut region = bytes(seed, count * len);
        for column in (0..width).filter(|column| !columns.contains(column)) {
            region[column * len..][..len].fill(0);
        }
        let inputs: Vec<_> = columns.iter().map(|column| column * len).collect();
        let outputs: Vec<_> = (width..count).map(|piece| piece * len).collect();
        code.encode_in(&mut erasure::Region::new(&mut region, len), columns, &inputs, &outputs);
        Self { code: code.clone(), columns: columns.to_vec(), len, region }
    }

    /// What is rebuilt where each piece has memory of its own; the pieces as they are in a region.
    fn rebuild_apart(&self, present: &[(usize, usize)], wanted: &[(usize, usize)]) -> Vec<u8> {
        let len = self.len;
        let mut buffers: Vec<Buffer> = (0..present.len() + wanted.len()).map(|_| Buffer::new(len)).collect();
        for (buffer, &(_, from)) in buffers.iter_mut().zip(present) {
            buffer.copy_from_slice(&self.region[from..from + len]);
        }
        let named = |from: usize, pieces: &[(usize, usize)]| -> Vec<(usize, usize)> {
            pieces.iter().zip(from..).map(|(&(piece, _), name)| (piece, name)).collect()
        };
        let (sources, targets) = (named(0, present), named(present.len(), wanted));
        let memory = &mut erasure::Apart::new(&mut buffers, len);
        self.code.rebuild_in(memory, &self.columns, &sources, &targets).unwrap();
        buffers[present.len()..].iter().flat_map(|buffer| buffer.iter().copied()).collect()
    }

    /// Rebuilds the pieces `wanted` after the loss of the pieces `lost` and compares them.
    pub fn check_rebuild(&self, lost: &[usize], wanted: &[usize]) {
        let (width, len) = (self.code.width_max(), self.len);
        let count = width + self.code.parity_count();
        let mut region = self.region.clone();
        for piece in lost {
            region[piece * len..][..len].fill(0xDD);
        }
        let produced_from = region.len();
        region.resize(produced_from + wanted.len() * len, 0xEE);
        let has = |piece: usize| piece >= width || self.columns.contains(&piece);
        let present: Vec<_> = (0..count)
            .filter(|&piece| has(piece) && !lost.contains(&piece))
            .map(|piece| (piece, piece * len))
            .collect();
        let places: Vec<_> =
            wanted.iter().enumerate().map(|(i, &piece)| (piece, produced_from + i * len)).collect();
        self.code
            .rebuild_in(&mut erasure::Region::new(&mut region, len), &self.columns, &present, &places)
            .unwrap();
        let apart = self.rebuild_apart(&present, &places);
        assert!(apart == region[produced_from..], "the same where each piece has memory of its own");
        for &(piece, place) in &places {
            assert!(
                region[place..][..len] == self.region[piece * len..][..len],
                "{:?} on {}: piece {piece} after the loss of {lost:?}",
                self.code.kind(),
                self.code.backend()
            );
        }
        assert!(
            region[..width * len] == {
                let mut expected = self.region.clone();
                lost.iter().for_each(|piece| expected[piece * len..][..len].fill(0xDD));
                expected
            }[..width * len],
            "sources must not change"
        );
    }
}
