//! Pieces of codewords: how many there can be, and sets of their numbers.

/// The most data columns of row-diagonal parity.
pub(crate) const RDP_WIDTH_MAX: usize = 256;
/// Its parities: row parity and diagonal parity, in this order.
pub(crate) const RDP_PARITY_COUNT: usize = 2;

/// Its primes: p - 1 divides chunks, which are multiples of 4096 bytes.
const PRIMES: [usize; 2] = [17, 257];

/// The prime of row-diagonal parity of up to `width_max` columns.
pub(crate) fn rdp_prime(width_max: usize) -> usize {
    if width_max < PRIMES[0] { PRIMES[0] } else { PRIMES[1] }
}

/// A set of piece numbers.
#[derive(Clone, Copy, Default)]
pub(crate) struct PieceSet([u64; PIECE_WORDS]);

/// The most pieces of a codeword of any kind.
const PIECE_COUNT_MAX: usize = RDP_WIDTH_MAX + RDP_PARITY_COUNT;
const PIECE_WORDS: usize = PIECE_COUNT_MAX.div_ceil(64);

impl PieceSet {
    /// The set of `pieces`.
    ///
    /// # Panics
    /// If a piece is listed twice.
    pub(crate) fn of<'a>(pieces: impl IntoIterator<Item = &'a usize>) -> Self {
        let mut set = Self::default();
        for &piece in pieces {
            assert!(
                piece < PIECE_COUNT_MAX && !set.contains(piece),
                "piece {piece} is listed twice or no piece"
            );
            set.0[piece / 64] |= 1 << (piece % 64);
        }
        set
    }

    /// Whether `piece` is in the set.
    pub(crate) fn contains(&self, piece: usize) -> bool {
        self.0[piece / 64] >> (piece % 64) & 1 == 1
    }
}
