//! The lane of CPUs without a lane of their own: plain integers, which the compiler turns into what vectors
//! there are.

use super::lane::Lane;
use super::ring::Ring;
use super::vector;
use super::walk::{self, Walk};
use super::{Backend, Kernels, Mode, TARGETS_MAX, Term};
use std::array;

const BYTES: usize = 32;

pub(super) static KERNELS: Kernels = Kernels { backend: Backend::Portable, sum, update, solve };

/// 256 bits.
#[derive(Clone, Copy)]
struct Portable([u8; BYTES]);

impl Lane for Portable {
    const BYTES: usize = BYTES;
    const REGISTERS: usize = 16;
    type Factor = u8;
    type Multiplier = u8;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // JUSTIFICATION: a slice would be checked in the inner loop.
        // SAFETY: `from` is good for `BYTES` bytes; no alignment is needed.
        Self(unsafe { from.cast::<[u8; BYTES]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // JUSTIFICATION and SAFETY: as in `load`.
        unsafe { to.cast::<[u8; BYTES]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0; BYTES])
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] ^ other.0[i]))
    }

    #[inline(always)]
    fn factor(coefficient: u8) -> u8 {
        coefficient
    }

    #[inline(always)]
    unsafe fn multiplier(factor: u8) -> u8 {
        factor
    }

    #[inline(always)]
    unsafe fn multiply(self, by: u8) -> Self {
        let (mut power, mut product) = (self.0, [0; BYTES]);
        for bit in 0..8 {
            let mask = 0u8.wrapping_sub(by >> bit & 1);
            for i in 0..BYTES {
                product[i] ^= power[i] & mask;
                // Doubles the byte in the field: shifts it and subtracts the polynomial if a bit fell out.
                power[i] = (power[i] << 1) ^ (0x1D & 0u8.wrapping_sub(power[i] >> 7));
            }
        }
        Self(product)
    }
}

unsafe fn sum(terms: &[Term], targets: &[*mut u8], len: usize, mode: Mode, folded: usize) {
    // JUSTIFICATION and SAFETY: the contract of `Kernels::sum`; no special instructions.
    unsafe { vector::sum::<Portable>(terms, targets, len, mode, folded) }
}

unsafe fn update(
    old: *const u8,
    new: *const u8,
    coefficients: [u8; TARGETS_MAX],
    targets: &[*mut u8],
    len: usize,
) {
    // JUSTIFICATION and SAFETY: the contract of `Kernels::update`; no special instructions.
    unsafe { vector::update::<Portable>(old, new, coefficients, targets, len) }
}

unsafe fn solve(pieces: (*mut u8, *mut u8), ring: Ring, walk: Walk) {
    // JUSTIFICATION and SAFETY: the contract of `Kernels::solve`; no special instructions.
    unsafe { walk::solve_vectors::<Portable>(pieces, ring, walk) }
}
