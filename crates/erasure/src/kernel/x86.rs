//! Lanes and kernels of x86-64.

use super::lane::Lane;
use super::ring::Ring;
use super::vector;
use super::walk::{self, Walk};
use super::{Backend, Kernels, Mode, TARGETS_MAX, Term};
use crate::field::{AFFINE, NIBBLES};
use std::arch::x86_64::*;

/// 128 bits, products by byte shuffle.
#[derive(Clone, Copy)]
struct Ssse3(__m128i);

/// 256 bits, products by byte shuffle.
#[derive(Clone, Copy)]
struct Avx2(__m256i);

/// 256 bits, products by affine transformation.
#[derive(Clone, Copy)]
struct Gfni256(__m256i);

/// 512 bits, products by affine transformation.
#[derive(Clone, Copy)]
struct Gfni512(__m512i);

// JUSTIFICATION of every block in this file: multiplying 16 to 64 bytes in one to seven instructions needs
// intrinsics; the scalar version is 20 to 200 times slower. All of it is checked against the scalar version
// byte for byte.
// SAFETY of every block in this file: the contract of `Lane`: the CPU has the instructions, pointers are good
// for `BYTES` bytes. No load or store needs alignment.

impl Lane for Ssse3 {
    const BYTES: usize = 16;
    const REGISTERS: usize = 16;
    type Factor = &'static [u8; 32];
    type Multiplier = (__m128i, __m128i);

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm_loadu_si128(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm_setzero_si128() })
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm_xor_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn factor(coefficient: u8) -> Self::Factor {
        &NIBBLES[usize::from(coefficient)]
    }

    #[inline(always)]
    unsafe fn multiplier(factor: Self::Factor) -> Self::Multiplier {
        let table: *const __m128i = factor.as_ptr().cast();
        // SAFETY: see above; the table has 32 bytes.
        unsafe { (_mm_loadu_si128(table), _mm_loadu_si128(table.add(1))) }
    }

    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Multiplier) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = _mm_set1_epi8(15);
            let low = _mm_shuffle_epi8(low, _mm_and_si128(self.0, mask));
            let high = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(self.0), mask));
            Self(_mm_xor_si128(low, high))
        }
    }
}

/// What lanes of 256 bits have in common, however they multiply.
macro_rules! registers_of_256_bits {
    () => {
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_loadu_si256(from.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: see above.
            unsafe { _mm256_storeu_si256(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_setzero_si256() })
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_xor_si256(self.0, other.0) })
        }
    };
}

impl Lane for Avx2 {
    const BYTES: usize = 32;
    const REGISTERS: usize = 16;
    type Factor = &'static [u8; 32];
    type Multiplier = (__m256i, __m256i);

    registers_of_256_bits!();

    #[inline(always)]
    fn factor(coefficient: u8) -> Self::Factor {
        &NIBBLES[usize::from(coefficient)]
    }

    #[inline(always)]
    unsafe fn multiplier(factor: Self::Factor) -> Self::Multiplier {
        let table: *const __m128i = factor.as_ptr().cast();
        // SAFETY: see above; the table has 32 bytes.
        unsafe {
            let (low, high) = (_mm_loadu_si128(table), _mm_loadu_si128(table.add(1)));
            (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high))
        }
    }

    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Multiplier) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, mask));
            let high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask));
            Self(_mm256_xor_si256(low, high))
        }
    }
}

impl Lane for Gfni256 {
    const BYTES: usize = 32;
    const REGISTERS: usize = 16;
    type Factor = u64;
    type Multiplier = __m256i;

    registers_of_256_bits!();

    #[inline(always)]
    fn factor(coefficient: u8) -> Self::Factor {
        AFFINE[usize::from(coefficient)]
    }

    #[inline(always)]
    unsafe fn multiplier(factor: Self::Factor) -> Self::Multiplier {
        // SAFETY: see above.
        unsafe { _mm256_set1_epi64x(factor.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn multiply(self, by: Self::Multiplier) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(self.0, by) })
    }
}

impl Lane for Gfni512 {
    const BYTES: usize = 64;
    const REGISTERS: usize = 32;
    type Factor = u64;
    type Multiplier = __m512i;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn factor(coefficient: u8) -> Self::Factor {
        AFFINE[usize::from(coefficient)]
    }

    #[inline(always)]
    unsafe fn multiplier(factor: Self::Factor) -> Self::Multiplier {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi64(factor.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn multiply(self, by: Self::Multiplier) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0, by) })
    }
}

macro_rules! kernels {
    ($module:ident, $lane:ident, $features:literal) => {
        pub(super) mod $module {
            use super::{Backend, Kernels, Mode, Ring, TARGETS_MAX, Term, Walk, vector, walk};

            pub(in crate::kernel) static KERNELS: Kernels =
                Kernels { backend: Backend::$lane, sum, update, solve };

            #[target_feature(enable = $features)]
            unsafe fn sum(terms: &[Term], targets: &[*mut u8], len: usize, mode: Mode, folded: usize) {
                // SAFETY: the contract of `Kernels::sum`; the features are enabled here.
                unsafe { vector::sum::<super::$lane>(terms, targets, len, mode, folded) }
            }

            #[target_feature(enable = $features)]
            unsafe fn update(
                old: *const u8,
                new: *const u8,
                coefficients: [u8; TARGETS_MAX],
                targets: &[*mut u8],
                len: usize,
            ) {
                // SAFETY: the contract of `Kernels::update`; the features are enabled here.
                unsafe { vector::update::<super::$lane>(old, new, coefficients, targets, len) }
            }

            #[target_feature(enable = $features)]
            unsafe fn solve(pieces: (*mut u8, *mut u8), ring: Ring, walk: Walk) {
                // SAFETY: the contract of `Kernels::solve`; the features are enabled here.
                unsafe { walk::solve_vectors::<super::$lane>(pieces, ring, walk) }
            }
        }
    };
}

kernels!(ssse3, Ssse3, "ssse3");
kernels!(avx2, Avx2, "avx2");
kernels!(gfni256, Gfni256, "avx2,gfni");
kernels!(gfni512, Gfni512, "avx512f,avx512bw,gfni");
