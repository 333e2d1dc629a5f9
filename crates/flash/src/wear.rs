//! Wear: levelling, and the ledger of programming stress.

use crate::error::{ConfigError, within};

/// Wear levelling; both kinds are off by default, as in the papers' runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WearLevelling {
    /// Which free block is taken.
    pub dynamic: FreeOrder,
    /// Static levelling: when the erase counts of two blocks differ by more than this, the closed block with
    /// the fewest erases is emptied into the most worn free one, so that cold data rests on worn blocks.
    /// `None` is off.
    pub static_spread: Option<u32>,
}

impl WearLevelling {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let Some(spread) = self.static_spread {
            within("static wear levelling spread in erases", u64::from(spread), 1, 1 << 30)?;
        }
        Ok(())
    }
}

/// Which free block is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FreeOrder {
    /// The one that has been free for longest.
    #[default]
    Fifo,
    /// The one with the fewest erases: dynamic wear levelling.
    LeastWorn,
}

/// Erases per block.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WearSpread {
    /// Fewest of all blocks.
    pub min: u32,
    /// Most of all blocks.
    pub max: u32,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

impl WearSpread {
    /// Summarizes these erase counts; all is zero if there are none.
    pub fn of(erases: impl Iterator<Item = u32> + Clone) -> Self {
        let count = erases.clone().count().max(1) as f64;
        let mean = erases.clone().map(f64::from).sum::<f64>() / count;
        let variance = erases.clone().map(|e| (f64::from(e) - mean).powi(2)).sum::<f64>() / count;
        Self {
            min: erases.clone().min().unwrap_or(0),
            max: erases.max().unwrap_or(0),
            mean,
            deviation: variance.sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_a_few() {
        let spread = WearSpread::of([2u32, 4, 4, 4, 5, 5, 7, 9].into_iter());
        assert_eq!((spread.min, spread.max, spread.mean, spread.deviation), (2, 9, 5.0, 2.0));
        assert_eq!(WearSpread::of(std::iter::empty()), WearSpread::default());
    }
}
