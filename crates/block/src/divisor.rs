//! Division by a number that stays the same: a multiplication, which is several times as fast.
//!
//! Every chunk of a request is asked several times which stripe and which column it is.

use std::fmt;

/// What many numbers are divided by. Numbers must be less than 2^64 / divisor - 1, as all numbers of chunks
/// and stripes are: the answer may be wrong beyond.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Divisor {
    divisor: u64,
    /// 2^64 / divisor, rounded down, or less by 1 if that is exact.
    reciprocal: u64,
}

impl Divisor {
    /// Divides by `divisor`, which is not 0.
    pub fn new(divisor: u64) -> Self {
        Self { divisor, reciprocal: u64::MAX / divisor }
    }

    /// The number itself.
    #[inline]
    pub fn get(self) -> u64 {
        self.divisor
    }

    /// `number` / divisor. The reciprocal is too small by at most 1, which takes less from (number + 1) /
    /// divisor than the 1 / divisor that was added.
    #[inline]
    pub fn quotient(self, number: u64) -> u64 {
        debug_assert!(number < u64::MAX / self.divisor - 1, "{number} / {}", self.divisor);
        // Nothing here passes 2^128, or 2^64 below; checks for that are not free.
        let reciprocal = u128::from(self.reciprocal);
        (u128::from(number).wrapping_mul(reciprocal).wrapping_add(reciprocal) >> 64) as u64
    }

    /// `number` modulo divisor.
    #[inline]
    pub fn remainder(self, number: u64) -> u64 {
        number.wrapping_sub(self.quotient(number).wrapping_mul(self.divisor))
    }
}

impl fmt::Debug for Divisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.divisor.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Divisor;

    #[test]
    fn it_divides_like_the_processor() {
        for divisor in (1..=2600).chain([1 << 16, (1 << 16) + 1]) {
            let by = Divisor::new(divisor);
            let most = u64::MAX / divisor - 2;
            let near = [0, 1 << 20, 1 << 32, 1 << 40, 1 << 46, most - 60];
            for number in near.iter().flat_map(|&first| first..first + 60) {
                let multiple = number / divisor * divisor;
                for number in [number, multiple.saturating_sub(1), multiple] {
                    let expected = (number / divisor, number % divisor);
                    assert_eq!((by.quotient(number), by.remainder(number)), expected, "{number} / {divisor}");
                }
            }
        }
    }
}
