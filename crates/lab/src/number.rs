//! Counts as floating-point numbers, and back.

use std::time::Duration;

/// A count; beyond 2^53 to the nearest number that there is.
pub fn float(count: u64) -> f64 {
    let half = |part: u64| u32::try_from(part).map_or(f64::from(u32::MAX), f64::from);
    half(count >> 32) * 4_294_967_296.0 + half(count & u64::from(u32::MAX))
}

/// The whole part of a number that is not negative; what no count holds is the largest one.
pub fn count(number: f64) -> u64 {
    Duration::try_from_secs_f64(number).map_or(u64::MAX, |span| span.as_secs())
}

#[cfg(test)]
mod tests {
    use super::{count, float};

    #[test]
    fn counts_stay_what_they_are() {
        for (count, wanted) in
            [(0, 0.0), (1, 1.0), (1 << 32, 4_294_967_296.0), ((1 << 53) - 1, 9_007_199_254_740_991.0)]
        {
            assert_eq!(float(count), wanted);
        }
    }

    #[test]
    fn numbers_become_counts() {
        for (number, wanted) in [(0.0, 0), (0.99, 0), (7.0, 7), (1e12, 1_000_000_000_000), (1e30, u64::MAX)] {
            assert_eq!(count(number), wanted);
        }
    }
}
