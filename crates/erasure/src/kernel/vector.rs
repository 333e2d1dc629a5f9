//! The vector kernels, written once for any [`Lane`].
//!
//! Everything here is `inline(always)` and only ever called from a function with the lane's `target_feature`,
//! into which it melts together with the intrinsics.
#![allow(
    clippy::needless_range_loop,
    reason = "blocks of registers are indexed by target and position alike"
)]

use super::lane::Lane;
use super::{Mode, TARGETS_MAX, TERMS_MAX, Term, scalar};
use std::array;
use std::mem::MaybeUninit;

/// A term in the form the inner loop reads.
#[derive(Clone, Copy)]
struct Prepared<V: Lane, const R: usize> {
    source: *const u8,
    factors: [V::Factor; R],
}

/// The terms of a sum in the form the inner loop reads.
#[derive(Clone, Copy)]
struct Terms<'a, V: Lane, const R: usize> {
    /// Those that are part of the first target as they are.
    plain: &'a [Prepared<V, R>],
    /// The others. If there are plain ones, these are no part of the first target at all.
    rest: &'a [Prepared<V, R>],
}

/// How many terms at the start are part of the first target as they are, if the others are no part of it;
/// else none.
fn plain_count(terms: &[Term]) -> usize {
    let count = terms.iter().take_while(|term| term.coefficients[0] == 1).count();
    if terms[count..].iter().all(|term| term.coefficients[0] == 0) { count } else { 0 }
}

/// [`super::Kernels::sum`].
#[inline(always)]
pub(super) unsafe fn sum<V: Lane>(
    terms: &[Term],
    targets: &[*mut u8],
    len: usize,
    mode: Mode,
    folded: usize,
) {
    let plain = plain_count(terms);
    // JUSTIFICATION: chooses the instance with the right number of accumulators.
    // SAFETY: the contract of the caller is that of the callee.
    unsafe {
        match (targets.len(), plain > 0, V::REGISTERS) {
            (1, true, 32) => sum_fixed::<V, 1, true, 8>(terms, plain, targets, len, mode, folded),
            (1, true, _) => sum_fixed::<V, 1, true, 4>(terms, plain, targets, len, mode, folded),
            (1, false, 32) => sum_fixed::<V, 1, false, 8>(terms, plain, targets, len, mode, folded),
            (1, false, _) => sum_fixed::<V, 1, false, 4>(terms, plain, targets, len, mode, folded),
            (2, true, 32) => sum_fixed::<V, 2, true, 8>(terms, plain, targets, len, mode, folded),
            (2, true, _) => sum_fixed::<V, 2, true, 4>(terms, plain, targets, len, mode, folded),
            (2, false, 32) => sum_fixed::<V, 2, false, 8>(terms, plain, targets, len, mode, folded),
            (2, false, _) => sum_fixed::<V, 2, false, 4>(terms, plain, targets, len, mode, folded),
            (3, true, 32) => sum_fixed::<V, 3, true, 4>(terms, plain, targets, len, mode, folded),
            (3, true, _) => sum_fixed::<V, 3, true, 2>(terms, plain, targets, len, mode, folded),
            (3, false, 32) => sum_fixed::<V, 3, false, 4>(terms, plain, targets, len, mode, folded),
            (3, false, _) => sum_fixed::<V, 3, false, 2>(terms, plain, targets, len, mode, folded),
            (4, true, 32) => sum_fixed::<V, 4, true, 4>(terms, plain, targets, len, mode, folded),
            (4, true, _) => sum_fixed::<V, 4, true, 2>(terms, plain, targets, len, mode, folded),
            (4, false, 32) => sum_fixed::<V, 4, false, 4>(terms, plain, targets, len, mode, folded),
            (4, false, _) => sum_fixed::<V, 4, false, 2>(terms, plain, targets, len, mode, folded),
            _ => unreachable!("a kernel call has 1 to {TARGETS_MAX} targets"),
        }
    }
}

/// `R` targets, `UNROLL` vectors of each at a time; if `PLAIN`, the first target is a plain XOR of the first
/// `plain` terms.
#[inline(always)]
unsafe fn sum_fixed<V: Lane, const R: usize, const PLAIN: bool, const UNROLL: usize>(
    terms: &[Term],
    plain: usize,
    targets: &[*mut u8],
    len: usize,
    mode: Mode,
    folded: usize,
) {
    let mut prepared = [const { MaybeUninit::uninit() }; TERMS_MAX];
    for (term, place) in terms.iter().zip(&mut prepared) {
        let factors = array::from_fn(|t| V::factor(term.coefficients[t]));
        place.write(Prepared::<V, R> { source: term.source, factors });
    }
    assert!(terms.len() <= TERMS_MAX, "a kernel call has at most {TERMS_MAX} terms");
    // JUSTIFICATION: clearing all places first costs more than the setup of a short sum.
    // SAFETY: the loop wrote the first `terms.len()`, at most `TERMS_MAX`.
    let prepared =
        unsafe { std::slice::from_raw_parts(prepared.as_ptr().cast::<Prepared<V, R>>(), terms.len()) };
    let (plain, rest) = prepared.split_at(plain);
    let prepared = Terms { plain, rest };
    let into: [*mut u8; R] = array::from_fn(|t| targets[t]);
    let mut at = 0;
    // JUSTIFICATION: vectors cannot be loaded from or stored to slices without bounds checks in
    // the inner loop.
    // SAFETY: every access is below `at + n * BYTES <= len`, for which the caller vouches.
    unsafe {
        while at + UNROLL * V::BYTES <= len {
            sum_block::<V, R, PLAIN, UNROLL>(prepared, &into, at, mode, folded);
            at += UNROLL * V::BYTES;
        }
        // A run of symbols is short more often than other pieces.
        while R == 1 && PLAIN && at + 4 * V::BYTES <= len {
            sum_block::<V, R, PLAIN, 4>(prepared, &into, at, mode, folded);
            at += 4 * V::BYTES;
        }
        while at + V::BYTES <= len {
            sum_block::<V, R, PLAIN, 1>(prepared, &into, at, mode, folded);
            at += V::BYTES;
        }
        while R == 1 && PLAIN && at + NARROW_BYTES <= len {
            xor_narrow(prepared.plain, into[0], at, mode);
            at += NARROW_BYTES;
        }
        if at < len {
            scalar::sum_from(at, terms, targets, len, mode, folded);
        }
    }
}

/// Symbols of codes across symbols can be as small as this, so a plain sum has a step of this width.
const NARROW_BYTES: usize = 16;

/// [`NARROW_BYTES`] of a target that is a plain sum, at byte `at`.
#[inline(always)]
unsafe fn xor_narrow<V: Lane, const R: usize>(
    terms: &[Prepared<V, R>],
    target: *mut u8,
    at: usize,
    mode: Mode,
) {
    // JUSTIFICATION and SAFETY: as in `sum_fixed`, which checked the bounds.
    unsafe {
        let target = target.add(at).cast::<u128>();
        let mut sum = if mode == Mode::Add { target.read_unaligned() } else { 0 };
        for term in terms {
            sum ^= term.source.add(at).cast::<u128>().read_unaligned();
        }
        target.write_unaligned(sum);
    }
}

/// Loads all coefficients of a term. A plain loop: a closure passed to the standard library need not be
/// inlined, and outside of the function with the `target_feature` every vector goes through memory.
#[inline(always)]
unsafe fn multipliers<V: Lane, const R: usize>(factors: &[V::Factor; R]) -> [V::Multiplier; R] {
    // JUSTIFICATION and SAFETY: the contract of `Lane`.
    unsafe {
        let mut multipliers = [V::multiplier(factors[0]); R];
        for t in 1..R {
            multipliers[t] = V::multiplier(factors[t]);
        }
        multipliers
    }
}

/// How a term is part of the first target: times its coefficient, ...
const MULTIPLIED: u8 = 0;
/// ... as it is, ...
const PLAIN_TERM: u8 = 1;
/// ... or not at all.
const ABSENT: u8 = 2;

/// What a term contributes.
#[inline(always)]
unsafe fn part<V: Lane, const KIND: u8>(term: V, multiplier: V::Multiplier) -> V {
    // JUSTIFICATION and SAFETY: the contract of `Lane`.
    unsafe {
        match KIND {
            MULTIPLIED => term.multiply(multiplier),
            PLAIN_TERM => term,
            _ => V::zero(),
        }
    }
}

/// Adds two terms, so that two XORs become one three-way instruction where there is one. `ONE` and `OTHER`
/// say how they are part of the first target.
#[inline(always)]
unsafe fn add_pair<V: Lane, const R: usize, const UNROLL: usize, const ONE: u8, const OTHER: u8>(
    sums: &mut [[V; UNROLL]; R],
    pair: [&Prepared<V, R>; 2],
    at: usize,
) {
    // JUSTIFICATION and SAFETY: as in `sum_fixed`, which checked the bounds.
    unsafe {
        let multipliers = [multipliers::<V, R>(&pair[0].factors), multipliers::<V, R>(&pair[1].factors)];
        for u in 0..UNROLL {
            let one = V::load(pair[0].source.add(at + u * V::BYTES));
            let other = V::load(pair[1].source.add(at + u * V::BYTES));
            let (left, right) =
                (part::<V, ONE>(one, multipliers[0][0]), part::<V, OTHER>(other, multipliers[1][0]));
            sums[0][u] = sums[0][u].xor(left.xor(right));
            for t in 1..R {
                sums[t][u] =
                    sums[t][u].xor(one.multiply(multipliers[0][t]).xor(other.multiply(multipliers[1][t])));
            }
        }
    }
}

/// Adds a term, which is part of the first target as `KIND` says.
#[inline(always)]
unsafe fn add_one<V: Lane, const R: usize, const UNROLL: usize, const KIND: u8>(
    sums: &mut [[V; UNROLL]; R],
    term: &Prepared<V, R>,
    at: usize,
) {
    // JUSTIFICATION and SAFETY: as in `sum_fixed`, which checked the bounds.
    unsafe {
        let multipliers = multipliers::<V, R>(&term.factors);
        for u in 0..UNROLL {
            let one = V::load(term.source.add(at + u * V::BYTES));
            sums[0][u] = sums[0][u].xor(part::<V, KIND>(one, multipliers[0]));
            for t in 1..R {
                sums[t][u] = sums[t][u].xor(one.multiply(multipliers[t]));
            }
        }
    }
}

/// Adds all terms, the rest of which are part of the first target as `KIND` says.
#[inline(always)]
unsafe fn add_rest<V: Lane, const R: usize, const UNROLL: usize, const KIND: u8>(
    sums: &mut [[V; UNROLL]; R],
    terms: &[Prepared<V, R>],
    at: usize,
) {
    // JUSTIFICATION and SAFETY: as in `sum_fixed`, which checked the bounds.
    unsafe {
        let mut pairs = terms.chunks_exact(2);
        for pair in pairs.by_ref() {
            add_pair::<V, R, UNROLL, KIND, KIND>(sums, [&pair[0], &pair[1]], at);
        }
        if let [term] = pairs.remainder() {
            add_one::<V, R, UNROLL, KIND>(sums, term, at);
        }
    }
}

/// `UNROLL` vectors of every target at byte `at`.
#[inline(always)]
unsafe fn sum_block<V: Lane, const R: usize, const PLAIN: bool, const UNROLL: usize>(
    terms: Terms<'_, V, R>,
    targets: &[*mut u8; R],
    at: usize,
    mode: Mode,
    folded: usize,
) {
    // JUSTIFICATION and SAFETY: as in `sum_fixed`, which checked the bounds.
    unsafe {
        let mut sums = [[V::zero(); UNROLL]; R];
        if mode == Mode::Add {
            for t in 0..R {
                for u in 0..UNROLL {
                    sums[t][u] = V::load(targets[t].add(at + u * V::BYTES));
                }
            }
        }
        if PLAIN {
            let mut pairs = terms.plain.chunks_exact(2);
            for pair in pairs.by_ref() {
                add_pair::<V, R, UNROLL, PLAIN_TERM, PLAIN_TERM>(&mut sums, [&pair[0], &pair[1]], at);
            }
            let mut rest = terms.rest;
            match (pairs.remainder(), rest) {
                ([last], [first, others @ ..]) => {
                    add_pair::<V, R, UNROLL, PLAIN_TERM, ABSENT>(&mut sums, [last, first], at);
                    rest = others;
                }
                ([last], []) => add_one::<V, R, UNROLL, PLAIN_TERM>(&mut sums, last, at),
                (_, _) => {}
            }
            add_rest::<V, R, UNROLL, ABSENT>(&mut sums, rest, at);
        } else {
            add_rest::<V, R, UNROLL, MULTIPLIED>(&mut sums, terms.rest, at);
        }
        for t in 1..R {
            if t <= folded {
                for u in 0..UNROLL {
                    sums[0][u] = sums[0][u].xor(sums[t][u]);
                }
            }
        }
        for t in 0..R {
            for u in 0..UNROLL {
                sums[t][u].store(targets[t].add(at + u * V::BYTES));
            }
        }
    }
}

/// [`super::Kernels::update`].
#[inline(always)]
pub(super) unsafe fn update<V: Lane>(
    old: *const u8,
    new: *const u8,
    coefficients: [u8; TARGETS_MAX],
    targets: &[*mut u8],
    len: usize,
) {
    // JUSTIFICATION: chooses the instance with the right number of targets.
    // SAFETY: the contract of the caller is that of the callee.
    unsafe {
        match (targets.len(), coefficients[0] == 1) {
            (1, true) => update_fixed::<V, 1, true>(old, new, coefficients, targets, len),
            (1, false) => update_fixed::<V, 1, false>(old, new, coefficients, targets, len),
            (2, true) => update_fixed::<V, 2, true>(old, new, coefficients, targets, len),
            (2, false) => update_fixed::<V, 2, false>(old, new, coefficients, targets, len),
            (3, true) => update_fixed::<V, 3, true>(old, new, coefficients, targets, len),
            (3, false) => update_fixed::<V, 3, false>(old, new, coefficients, targets, len),
            (4, true) => update_fixed::<V, 4, true>(old, new, coefficients, targets, len),
            (4, false) => update_fixed::<V, 4, false>(old, new, coefficients, targets, len),
            _ => unreachable!("a kernel call has 1 to {TARGETS_MAX} targets"),
        }
    }
}

/// `R` targets, of which the first gets a plain XOR if `PLAIN`.
#[inline(always)]
unsafe fn update_fixed<V: Lane, const R: usize, const PLAIN: bool>(
    old: *const u8,
    new: *const u8,
    coefficients: [u8; TARGETS_MAX],
    targets: &[*mut u8],
    len: usize,
) {
    const UNROLL: usize = 4;
    let factors: [V::Factor; R] = array::from_fn(|t| V::factor(coefficients[t]));
    let into: [*mut u8; R] = array::from_fn(|t| targets[t]);
    let mut at = 0;
    // JUSTIFICATION: as in `sum_fixed`.
    // SAFETY: every access is below `at + n * BYTES <= len`, for which the caller vouches.
    unsafe {
        let multipliers = multipliers::<V, R>(&factors);
        while at + UNROLL * V::BYTES <= len {
            update_block::<V, R, PLAIN, UNROLL>(old, new, &multipliers, &into, at);
            at += UNROLL * V::BYTES;
        }
        while at + V::BYTES <= len {
            update_block::<V, R, PLAIN, 1>(old, new, &multipliers, &into, at);
            at += V::BYTES;
        }
        if at < len {
            scalar::update_from(at, old, new, coefficients, targets, len);
        }
    }
}

/// `UNROLL` vectors of every target at byte `at`.
#[inline(always)]
unsafe fn update_block<V: Lane, const R: usize, const PLAIN: bool, const UNROLL: usize>(
    old: *const u8,
    new: *const u8,
    multipliers: &[V::Multiplier; R],
    targets: &[*mut u8; R],
    at: usize,
) {
    // JUSTIFICATION and SAFETY: as in `update_fixed`, which checked the bounds.
    unsafe {
        for u in 0..UNROLL {
            let at = at + u * V::BYTES;
            let (old, new) = (V::load(old.add(at)), V::load(new.add(at)));
            let change = old.xor(new);
            for t in 0..R {
                let parity = V::load(targets[t].add(at));
                let sum = if PLAIN && t == 0 {
                    parity.xor(old.xor(new))
                } else {
                    parity.xor(change.multiply(multipliers[t]))
                };
                sum.store(targets[t].add(at));
            }
        }
    }
}
