//! When to collect, and how old a unit's chunks are.

use crate::OptionError;
use crate::error::within;

/// The share of units in use above which gc runs before a group is written (W-22). In use is everything not
/// free, units full of invalid chunks included, else gc would never start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GcThreshold {
    percent: u64,
}

impl GcThreshold {
    /// 1 to 99 percent.
    pub fn new(percent: u64) -> Result<Self, OptionError> {
        Ok(Self { percent: within("gc threshold in percent", percent, 1, 99)? })
    }

    /// The threshold, in percent.
    pub fn percent(&self) -> u64 {
        self.percent
    }

    /// Whether `used` of `total` units are more than the threshold.
    pub fn exceeded(&self, used: u64, total: u64) -> bool {
        u128::from(used) * 100 > u128::from(total) * u128::from(self.percent)
    }
}

impl Default for GcThreshold {
    /// 90 percent (WAS, section V-B).
    fn default() -> Self {
        Self { percent: 90 }
    }
}

/// The mean time at which users wrote the chunks of one unit: stands for a time per chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnitStamp {
    sum: u128,
    count: u32,
}

impl UnitStamp {
    /// Of a unit without chunks.
    pub const NOTHING: Self = Self { sum: 0, count: 0 };

    /// A chunk that was written `time` joins the unit.
    pub fn add(&mut self, time: u64) {
        self.sum += u128::from(time);
        self.count += 1;
    }

    /// The mean, rounded down; `None` for a unit without chunks of known time.
    pub fn time(&self) -> Option<u64> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(u64::try_from(mean).expect("a mean of 64-bit numbers"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    /// Requirements W-22 and A-16.
    #[test]
    fn gc_runs_above_ninety_percent_of_units_in_use() {
        let threshold = GcThreshold::default();
        assert_eq!(threshold.percent(), 90);
        assert!(!threshold.exceeded(921, 1024));
        assert!(threshold.exceeded(922, 1024)); // 90.04 %
        assert!(!threshold.exceeded(9, 10));
        assert!(threshold.exceeded(u64::MAX, u64::MAX));
        assert_eq!(
            GcThreshold::new(100).unwrap_err().to_string(),
            "gc threshold in percent: found 100, expected 1 to 99"
        );
    }

    #[test]
    fn a_stamp_is_the_mean() {
        let mut stamp = UnitStamp::default();
        assert_eq!(stamp.time(), None);
        for time in [10, 20, 31] {
            stamp.add(time);
        }
        assert_eq!(stamp.time(), Some(20));
        let mut late = UnitStamp::default();
        late.add(u64::MAX);
        late.add(u64::MAX);
        assert_eq!(late.time(), Some(u64::MAX));
    }
}
