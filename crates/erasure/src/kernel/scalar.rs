//! The golden kernels: one byte at a time. Also the tails of the vector kernels.

use super::ring::Ring;
use super::walk::{self, Walk};
use super::{Backend, Kernels, Mode, TARGETS_MAX, Term};
use crate::field::multiply;

pub(super) static KERNELS: Kernels = Kernels { backend: Backend::Scalar, sum, update, solve };

unsafe fn sum(terms: &[Term], targets: &[*mut u8], len: usize, mode: Mode, folded: usize) {
    // JUSTIFICATION and SAFETY: the contract of `Kernels::sum`.
    unsafe { sum_from(0, terms, targets, len, mode, folded) }
}

unsafe fn update(
    old: *const u8,
    new: *const u8,
    coefficients: [u8; TARGETS_MAX],
    targets: &[*mut u8],
    len: usize,
) {
    // JUSTIFICATION and SAFETY: the contract of `Kernels::update`.
    unsafe { update_from(0, old, new, coefficients, targets, len) }
}

unsafe fn solve(pieces: (*mut u8, *mut u8), ring: Ring, walk: Walk) {
    // JUSTIFICATION and SAFETY: the contract of `Kernels::solve`; no special instructions.
    unsafe { walk::solve_bytes(0, pieces, ring, walk) }
}

/// [`Kernels::sum`] for the bytes `start..len`.
pub(super) unsafe fn sum_from(
    start: usize,
    terms: &[Term],
    targets: &[*mut u8],
    len: usize,
    mode: Mode,
    folded: usize,
) {
    for (t, &target) in targets.iter().enumerate() {
        for i in start..len {
            let product = |term: &Term| {
                // JUSTIFICATION: sources and targets may be pieces of one region, so no slices.
                // SAFETY: i < len, for which the caller vouches.
                multiply(unsafe { *term.source.add(i) }, term.coefficients[t])
            };
            let sum = terms.iter().fold(0, |sum, term| sum ^ product(term));
            // JUSTIFICATION and SAFETY: as above.
            unsafe {
                match mode {
                    Mode::Overwrite => *target.add(i) = sum,
                    Mode::Add => *target.add(i) ^= sum,
                }
            }
        }
    }
    for &other in &targets[1..=folded] {
        for i in start..len {
            // JUSTIFICATION and SAFETY: as above.
            unsafe { *targets[0].add(i) ^= *other.add(i) }
        }
    }
}

/// [`Kernels::update`] for the bytes `start..len`.
pub(super) unsafe fn update_from(
    start: usize,
    old: *const u8,
    new: *const u8,
    coefficients: [u8; TARGETS_MAX],
    targets: &[*mut u8],
    len: usize,
) {
    for (&target, coefficient) in targets.iter().zip(coefficients) {
        for i in start..len {
            // JUSTIFICATION: as in `sum_from`.
            // SAFETY: i < len, for which the caller vouches.
            unsafe { *target.add(i) ^= multiply(*old.add(i) ^ *new.add(i), coefficient) }
        }
    }
}
