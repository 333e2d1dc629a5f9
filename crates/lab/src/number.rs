//! Counts as floating-point numbers.

/// A count; beyond 2^53 to the nearest number that there is.
pub fn float(count: u64) -> f64 {
    let half = |part: u64| u32::try_from(part).map_or(f64::from(u32::MAX), f64::from);
    half(count >> 32) * 4_294_967_296.0 + half(count & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn counts_stay_what_they_are() {
        for (count, wanted) in
            [(0, 0.0), (1, 1.0), (1 << 32, 4_294_967_296.0), ((1 << 53) - 1, 9_007_199_254_740_991.0)]
        {
            assert_eq!(float(count), wanted);
        }
    }
}
