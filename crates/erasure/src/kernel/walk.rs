//! The recurrence of row-diagonal parity that solves for two lost disks: from symbol to symbol, by turns
//! along a row and along a diagonal.

use super::lane::Lane;
use super::ring::Ring;
use super::{Kernels, Memory};

/// A walk over the symbols of two unknown pieces, each solved from the one before.
///
/// Before the walk, symbol `r` of the piece `rows` is the sum of both pieces' symbols `r`, and symbol `r` of
/// the piece `diagonals` is the symbol `r` of `diagonals` to be, plus the symbol of `rows` that lies on the
/// same diagonal: the one of the step before, or the one of the step after if the walk starts from a known
/// symbol. Afterwards both have their own symbols.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    /// The names of the targets.
    pub(crate) rows: usize,
    pub(crate) diagonals: usize,
    /// The symbols visited: `start` first, then `step` places further on the ring each time, `last` last.
    pub(crate) start: usize,
    pub(crate) step: usize,
    pub(crate) last: usize,
    /// The symbol of `diagonals` that holds the first symbol of `rows` to be. Without it, the first symbol of
    /// `diagonals` is known, as it has nothing of `rows` on its diagonal.
    pub(crate) known: Option<usize>,
}

/// Solves along a walk. No allocation.
pub(crate) fn solve<M: Memory>(kernels: &Kernels, memory: &mut M, ring: Ring, walk: Walk) {
    assert!(walk.rows != walk.diagonals, "two pieces");
    assert!(walk.step < ring.prime && (ring.prime - 1) * ring.symbol <= memory.len(), "symbols of a piece");
    let pieces = (memory.target(walk.rows), memory.target(walk.diagonals));
    // JUSTIFICATION: pieces may lie in one region, so there are no slices of both at once.
    // SAFETY: just checked that both pieces have all symbols of the ring; the kernels are those of this CPU.
    unsafe { (kernels.solve)(pieces, ring, walk) }
}

/// [`Kernels::solve`] with vectors.
#[inline(always)]
pub(super) unsafe fn solve_vectors<V: Lane>(pieces: (*mut u8, *mut u8), ring: Ring, walk: Walk) {
    let mut at = 0;
    // JUSTIFICATION: as in `solve`.
    // SAFETY: the contract of the caller; each step is within a symbol.
    unsafe {
        while ring.symbol >= WIDE_SYMBOL_BYTES && at + size_of::<Wide<V>>() <= ring.symbol {
            solve_words::<Wide<V>>(pieces, ring, walk, at);
            at += size_of::<Wide<V>>();
        }
        while at + V::BYTES <= ring.symbol {
            solve_words::<V>(pieces, ring, walk, at);
            at += V::BYTES;
        }
        while at + size_of::<u128>() <= ring.symbol {
            solve_words::<u128>(pieces, ring, walk, at);
            at += size_of::<u128>();
        }
        solve_bytes(at, pieces, ring, walk);
    }
}

/// [`Kernels::solve`] byte by byte, for the bytes of every symbol from `start` on.
#[inline(always)]
pub(super) unsafe fn solve_bytes(start: usize, pieces: (*mut u8, *mut u8), ring: Ring, walk: Walk) {
    for at in start..ring.symbol {
        // JUSTIFICATION and SAFETY: as in `solve_vectors`.
        unsafe { solve_words::<u8>(pieces, ring, walk, at) }
    }
}

/// A part of a symbol.
///
/// SAFETY contract of all functions: the CPU has the instructions.
trait Word: Copy {
    unsafe fn zero() -> Self;
    unsafe fn xor(self, other: Self) -> Self;
}

impl<V: Lane> Word for V {
    #[inline(always)]
    unsafe fn zero() -> Self {
        // JUSTIFICATION and SAFETY: the contract of `Lane`.
        unsafe { <V as Lane>::zero() }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // JUSTIFICATION and SAFETY: the contract of `Lane`.
        unsafe { <V as Lane>::xor(self, other) }
    }
}

/// Symbols of at least so many bytes are walked over [`Wide`]: they fall on few sets of the first-level
/// cache, so the neighbours of a vector would be gone when their turn comes.
const WIDE_SYMBOL_BYTES: usize = 2048;

/// Several vectors of a symbol at once.
#[derive(Clone, Copy)]
struct Wide<V>([V; 8]);

impl<V: Lane> Word for Wide<V> {
    #[inline(always)]
    unsafe fn zero() -> Self {
        // JUSTIFICATION and SAFETY: the contract of `Lane`.
        unsafe { Self([<V as Lane>::zero(); 8]) }
    }

    #[inline(always)]
    unsafe fn xor(mut self, other: Self) -> Self {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            // JUSTIFICATION and SAFETY: the contract of `Lane`.
            *one = unsafe { <V as Lane>::xor(*one, other) };
        }
        self
    }
}

impl Word for u128 {
    #[inline(always)]
    unsafe fn zero() -> Self {
        0
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }
}

impl Word for u8 {
    #[inline(always)]
    unsafe fn zero() -> Self {
        0
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }
}

/// [`solve`] for one word at byte `at` of every symbol.
///
/// SAFETY contract: the word lies within a symbol, both pieces are readable and writable for all symbols of
/// the ring, and the CPU has the instructions of the word.
#[inline(always)]
unsafe fn solve_words<W: Word>(pieces: (*mut u8, *mut u8), ring: Ring, walk: Walk, at: usize) {
    let offset_of = |symbol: usize| {
        assert!(symbol < ring.prime - 1, "symbol {symbol} of a ring of {}", ring.prime);
        symbol * ring.symbol + at
    };
    // JUSTIFICATION: see `solve`.
    // SAFETY: `offset_of` checked the symbol, the caller vouches for the rest; no access needs alignment.
    unsafe {
        let mut carry = match walk.known {
            Some(symbol) => pieces.1.add(offset_of(symbol)).cast::<W>().read_unaligned(),
            None => W::zero(),
        };
        let mut symbol = walk.start;
        loop {
            let offset = offset_of(symbol);
            let (row, diagonal) = (pieces.0.add(offset).cast::<W>(), pieces.1.add(offset).cast::<W>());
            let (row_sum, diagonal_sum) = (row.read_unaligned(), diagonal.read_unaligned());
            if walk.known.is_some() {
                let other = row_sum.xor(carry);
                row.write_unaligned(carry);
                diagonal.write_unaligned(other);
                carry = diagonal_sum.xor(other);
            } else {
                let other = diagonal_sum.xor(carry);
                carry = row_sum.xor(other);
                row.write_unaligned(carry);
                diagonal.write_unaligned(other);
            }
            if symbol == walk.last {
                return;
            }
            symbol += walk.step;
            symbol -= if symbol < ring.prime { 0 } else { ring.prime };
        }
    }
}
