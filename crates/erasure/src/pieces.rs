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

/// A set of piece numbers. Those below 64, all that most codewords have, are a word of their own, which stays
/// in a register while the set is made.
#[derive(Clone, Copy, Default)]
pub(crate) struct PieceSet {
    low: u64,
    high: [u64; HIGH_WORDS],
}

/// The most pieces of a codeword of any kind.
const PIECE_COUNT_MAX: usize = RDP_WIDTH_MAX + RDP_PARITY_COUNT;
const HIGH_WORDS: usize = PIECE_COUNT_MAX.div_ceil(64) - 1;

impl PieceSet {
    /// The set of `pieces`.
    ///
    /// # Panics
    /// If a piece is listed twice.
    pub(crate) fn of<'a>(pieces: impl IntoIterator<Item = &'a usize>) -> Self {
        let (mut low, mut high) = (0u64, [0u64; HIGH_WORDS]);
        for &piece in pieces {
            let bit = 1 << (piece % 64);
            let is_new = if piece < 64 {
                let is_new = low & bit == 0;
                low |= bit;
                is_new
            } else {
                let place = high.get_mut(piece / 64 - 1).filter(|_| piece < PIECE_COUNT_MAX);
                place.is_some_and(|word| {
                    let is_new = *word & bit == 0;
                    *word |= bit;
                    is_new
                })
            };
            assert!(is_new, "piece {piece} is listed twice or no piece");
        }
        Self { low, high }
    }

    /// Whether `piece` is in the set.
    pub(crate) fn contains(&self, piece: usize) -> bool {
        let word = if piece < 64 { self.low } else { self.high[piece / 64 - 1] };
        word >> (piece % 64) & 1 == 1
    }
}
