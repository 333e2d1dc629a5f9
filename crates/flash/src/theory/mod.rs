//! Write amplification in closed form, to hold simulations against.
//!
//! All formulas are for a page-mapped SSD, every logical page mapped, steady state. `a` is the spare factor:
//! pages of the flash per logical page, without the blocks that GC keeps free; `pages_per_block` is N_p.
//! Where an SSD has infinitely many blocks, the number of valid pages of its blocks follows a *mean field*: a
//! deterministic distribution instead of a random one.
//!
//! | function | policy | blocks | pages per block | source |
//! |---|---|---|---|---|
//! | [`greedy`] | greedy | infinite | any | Van Houdt, SIGMETRICS 2013 |
//! | [`greedy_desnoyers`] | greedy | infinite | any, approximation | Desnoyers, SYSTOR 2012 |
//! | [`greedy_finite`] | greedy | a few | a few, exact | Bux and Iliadis, Performance Evaluation 67 (2010) |
//! | [`d_choices`] | best of d, d = 1 random | infinite | any | Van Houdt, SIGMETRICS 2013 |
//! | [`fifo`] | FIFO, and greedy for large blocks | infinite | any | Desnoyers 2012; Bux and Iliadis 2010 |
//! | [`fifo_mixed`] | FIFO, pages of several temperatures in one frontier | infinite | any | Desnoyers 2012, section 5 |
//! | [`greedy_split`] | greedy, temperatures kept apart, each with its own spare factor | infinite | any | Desnoyers 2012, section 6 |
//!
//! - P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012.
//! - B. Van Houdt, "A Mean Field Model for a Class of Garbage Collection Algorithms in Flash-based Solid
//!   State Drives", SIGMETRICS 2013.
//! - W. Bux, I. Iliadis, "Performance of greedy garbage collection in flash-based solid-state drives",
//!   Performance Evaluation 67 (2010).

mod finite;

pub use finite::greedy_finite;

/// A number between `low` and `high` where a function that falls there passes through zero.
fn root(mut low: f64, mut high: f64, falling: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if falling(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The principal branch of Lambert's W for -1/e <= z <= 0: the w >= -1 with w e^w = z.
fn lambert(z: f64) -> f64 {
    root(-1.0, 0.0, |w| z - w * w.exp())
}

/// Greedy GC, uniform writes, mean field; infinite if `a` is 1 or less.
///
/// A block at j valid pages loses one at a rate proportional to j, so as many blocks pass every level
/// per unit of time: there are c/j blocks at level j, above the level k from which victims are taken. Of
/// the victims a share f has got to k - 1, the others are taken at k; x = k - f pages are copied on
/// average. All blocks together, and their valid pages, give N_p (H(N_p) - H(k) + f/k) = a (N_p - x), H
/// the harmonic numbers.
pub fn greedy(pages_per_block: u32, a: f64) -> f64 {
    if a <= 1.0 {
        return f64::INFINITY;
    }
    let np = f64::from(pages_per_block);
    let mut sum = 0.0; // H(N_p) - H(k)
    for k in (1..=pages_per_block).rev() {
        let level = f64::from(k);
        let here = a * (np - level) - np * sum;
        let next = a * (np - level + 1.0) - np * (sum + 1.0 / level);
        if next <= 0.0 {
            let share = here / (np / level - a);
            return np / (np - level + share.clamp(0.0, 1.0));
        }
        sum += 1.0 / level;
    }
    1.0
}

/// Greedy GC, uniform writes, Desnoyers' closed form: the harmonic numbers as logarithms.
pub fn greedy_desnoyers(pages_per_block: u32, a: f64) -> f64 {
    if a <= 1.0 {
        return f64::INFINITY;
    }
    let np = f64::from(pages_per_block);
    let b = a * (1.0 + 0.5 / np);
    let valid = -np / a * lambert(-b * (-b).exp()) - 0.5;
    np / (np - valid.max(0.0))
}

/// FIFO GC, uniform writes; greedy GC tends to it as blocks get larger.
pub fn fifo(a: f64) -> f64 {
    if a <= 1.0 { f64::INFINITY } else { a / (a + lambert(-a * (-a).exp())) }
}

/// Pages of one temperature.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Temperature {
    /// Their share of the logical pages.
    pub space: f64,
    /// Their share of the host's writes.
    pub writes: f64,
}

/// FIFO GC over one frontier into which pages of several temperatures go.
///
/// A page written is looked at again when T logical pages' worth of host writes have passed. A page of rate r
/// (writes in relation to the mean) is still valid with e^(-rT), so it is programmed r / (1 - e^(-rT)) times
/// as often; all programs in T are all pages of the flash: sum of space x rT / (1 - e^(-rT)) = a, and the
/// write amplification is a / T.
pub fn fifo_mixed(a: f64, temperatures: &[Temperature]) -> f64 {
    if a <= 1.0 {
        return f64::INFINITY;
    }
    let programs = |time: f64| {
        let of = |t: &Temperature| {
            let x = t.writes / t.space * time;
            t.space * if x < 1e-12 { 1.0 } else { x / -(-x).exp_m1() }
        };
        temperatures.iter().map(of).sum::<f64>()
    };
    a / root(0.0, a, |time| a - programs(time))
}

/// Victims are the best of `choices` blocks drawn at random, uniform writes, mean field.
///
/// With S(j) the share of blocks with j or more valid pages, the best of d has that many with S(j)^d.
/// Per victim n = N_p - (copies) pages are written; blocks pass level j at n a j m(j) / N_p, which must
/// be 1 - S(j)^d.
pub fn d_choices(pages_per_block: u32, a: f64, choices: u32) -> f64 {
    if a <= 1.0 {
        return f64::INFINITY;
    }
    let np = f64::from(pages_per_block);
    // The share of blocks that the levels 1 to N_p would have with n pages written per victim.
    let total = |n: f64| {
        let mut above: f64 = 0.0;
        for level in (1..=pages_per_block).rev() {
            let c = np / (n * a * f64::from(level));
            let excess = |m: f64| c * (1.0 - (above + m).min(1.0).powf(f64::from(choices))) - m;
            above += root(0.0, 1.0, excess);
        }
        above
    };
    // Copies of a victim: the sum of S(j)^d over the levels.
    let copies = |n: f64| {
        let (mut above, mut sum) = (0.0f64, 0.0);
        for level in (1..=pages_per_block).rev() {
            let c = np / (n * a * f64::from(level));
            let excess = |m: f64| c * (1.0 - (above + m).min(1.0).powf(f64::from(choices))) - m;
            above += root(0.0, 1.0, excess);
            sum += above.min(1.0).powf(f64::from(choices));
        }
        sum
    };
    debug_assert!(total(np) <= 1.0 + 1e-9, "levels hold at most all blocks");
    let n = root(0.0, np, |n| (np - copies(n)) - n).max(f64::MIN_POSITIVE);
    np / n
}

/// The least write amplification of greedy GC when two temperatures are kept apart and the spare space is
/// divided between them at best: the minimum of the sum of writes x greedy(a of each). Global greedy GC over
/// separate streams does not reach it: it takes victims at one level from both, which gives both the same
/// `a`, and so `greedy(a)`.
pub fn greedy_split(pages_per_block: u32, a: f64, first: Temperature) -> f64 {
    let second = Temperature { space: 1.0 - first.space, writes: 1.0 - first.writes };
    let spare = a - 1.0;
    let total = |share: f64| {
        let of =
            |t: Temperature, share: f64| t.writes * greedy(pages_per_block, 1.0 + spare * share / t.space);
        of(first, share) + of(second, 1.0 - share)
    };
    // The sum of two convex functions: golden section.
    let (mut low, mut high) = (1e-6, 1.0 - 1e-6);
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..100 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if total(left) < total(right) { high = right } else { low = left }
    }
    total(0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "found {found}, expected {expected}");
    }

    #[test]
    fn the_published_values_of_the_mean_field_and_of_desnoyers() {
        for (np, a, mean_field) in [
            (64, 1.07, 7.0099),
            (64, 1.15, 3.8005),
            (64, 1.28, 2.4028),
            (128, 1.07, 7.3916),
            (128, 1.15, 3.9049),
            (128, 1.28, 2.4412),
            (256, 1.07, 7.5969),
            (256, 1.15, 3.9596),
            (256, 1.28, 2.4610),
            (64, 1.152, 3.760),
        ] {
            near(greedy(np, a), mean_field, 6e-4);
        }
        for (a, closed) in [(1.07, 7.0014), (1.15, 3.7989), (1.28, 2.4020)] {
            near(greedy_desnoyers(64, a), closed, 6e-5);
        }
        for (a, large) in [(1.07, 7.8172), (1.15, 4.0160), (1.28, 2.4814)] {
            near(fifo(a), large, 6e-5);
            near(greedy(1 << 16, a), large, 2e-3);
        }
        // Spare as a share of raw: a = 1 / (1 - op).
        for (op, expected) in [(0.07, 6.6155), (0.15, 3.3536), (0.28, 1.9425)] {
            near(greedy(64, 1.0 / (1.0 - op)), expected, 6e-5);
        }
        assert_eq!((greedy(64, 1.0), fifo(0.9), greedy(4, 1e6)), (f64::INFINITY, f64::INFINITY, 1.0));
    }

    #[test]
    fn d_choices_lie_between_random_and_greedy() {
        // Random GC for large blocks: 1 / (1 - e^-something) has no simple form for small ones; what must
        // hold is the order.
        for a in [1.07, 1.15, 1.28] {
            let values = [1, 2, 4, 10, 200].map(|d| d_choices(64, a, d));
            assert!(values.windows(2).all(|pair| pair[0] > pair[1]), "{values:?}");
            near(values[4], greedy(64, a), 0.004 * values[4]);
            assert!(values[0] > fifo(a), "random GC is worse than FIFO");
        }
        // One page per block and random GC: a victim is valid with 1/a, so 1 / (1 - 1/a).
        near(d_choices(1, 1.25, 1), 5.0, 1e-6);
    }

    #[test]
    fn hot_and_cold() {
        let all = [Temperature { space: 1.0, writes: 1.0 }];
        near(fifo_mixed(1.15, &all), fifo(1.15), 1e-9);
        let hot = Temperature { space: 0.2, writes: 0.8 };
        let cold = Temperature { space: 0.8, writes: 0.2 };
        let mixed = fifo_mixed(1.15, &[hot, cold]);
        assert!(mixed > fifo(1.15), "skew hurts if it is not separated");
        let split = greedy_split(64, 1.15, hot);
        assert!(split < greedy(64, 1.15), "and helps if it is");
        let even = Temperature { space: 0.3, writes: 0.3 };
        near(greedy_split(64, 1.15, even), greedy(64, 1.15), 1e-6);
    }
}
