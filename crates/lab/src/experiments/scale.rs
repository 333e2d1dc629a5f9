//! How long a run is in relation to the papers'.

use std::fmt::{self, Display};
use std::str::FromStr;

/// A share of the full length, in millionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scale {
    millionths: u64,
}

const FULL: u64 = 1_000_000;

impl Scale {
    /// From millionths; none beyond the full length.
    pub fn of_millionths(millionths: u64) -> Option<Self> {
        (1..=FULL).contains(&millionths).then_some(Self { millionths })
    }

    /// In millionths.
    pub fn millionths(self) -> u64 {
        self.millionths
    }

    /// Whether it is the papers' length.
    pub fn is_full(self) -> bool {
        self.millionths == FULL
    }

    /// So much of a number, but `least` at least.
    pub fn of(self, full: u64, least: u64) -> u64 {
        let part = u128::from(full) * u128::from(self.millionths) / u128::from(FULL);
        u64::try_from(part).unwrap_or(full).max(least.min(full))
    }
}

impl Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_full() {
            return f.write_str("1");
        }
        let digits = format!("{:06}", self.millionths);
        write!(f, "0.{}", digits.trim_end_matches('0'))
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || format!("found {text:?}, expected a share of the papers' length from 0.000001 to 1");
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |text: &str| text.chars().all(|digit| digit.is_ascii_digit());
        if whole.len() > 1
            || part.len() > 6
            || !is_number(whole)
            || !is_number(part)
            || text.len() < whole.len() + 1 && whole.is_empty()
        {
            return Err(expected());
        }
        let number = |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<u64>() };
        let whole = number(whole).map_err(|_| expected())?;
        let part = number(&format!("{part:0<6}")).map_err(|_| expected())?;
        Self::of_millionths(whole * FULL + part).ok_or_else(expected)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::Scale;

    #[test]
    fn shares_are_read_and_written_alike() {
        for text in ["1", "0.02", "0.5", "0.000001"] {
            assert_eq!(text.parse::<Scale>().unwrap().to_string(), text);
        }
        assert_eq!(".25".parse::<Scale>().unwrap().to_string(), "0.25");
        for bad in ["", ".", "0", "0.0", "1.000001", "2", "-1", "1e-2", "0.0000001", "full", "0.0.1"] {
            assert!(bad.parse::<Scale>().is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_have_a_floor_that_is_not_above_the_whole() {
        let scale: Scale = "0.02".parse().unwrap();
        assert_eq!((scale.of(1000, 1), scale.of(1000, 200), scale.of(100, 200)), (20, 200, 100));
        let full: Scale = "1".parse().unwrap();
        assert_eq!(full.of(u64::MAX, 1), u64::MAX);
    }
}
