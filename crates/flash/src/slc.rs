//! SLC/MLC convertible programming: which blocks parity may use in SLC mode (P-06 to P-11).
//!
//! A block in SLC mode stores one bit per cell: it takes fewer pages, and each page wears the cells less.
//! What that costs in space comes out of over-provisioning, so it is capped.

use crate::counters::Counters;
use crate::error::{ConfigError, within};
use crate::stream::Tag;
use std::fmt;

/// How a block is programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All bits of a cell are used (MLC, or TLC or QLC).
    Mlc,
    /// One bit per cell.
    Slc,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Mlc, Self::Slc];

    /// For indexing.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The most blocks that may be in SLC mode at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SlcCap {
    /// A share of the over-provisioned space, 0 to 1: at 1 it may be used up (P-11). With half the pages in
    /// SLC mode, 1 is twice as many blocks as there are over-provisioned.
    Share(f64),
    /// Chosen while running; see [`DynamicCap`].
    Dynamic(DynamicCap),
}

/// The cap chosen online (L-17; left to future work by the paper), for any workload.
///
/// Small copies of the SSD (*ghosts*) simulate a sample of the host's writes, each with another cap. So there
/// is a curve of write amplification and wear over the cap at any time. The cap with the least wear is taken
/// among those that keep the limit: write amplification at most `slack` above that without SLC mode. It is
/// chosen anew after each *interval*, in which as many pages are written as are mapped.
///
/// Ghosts are small, so they are right to a few hundredths only. What the limit counts from, and whether it
/// is kept, is therefore measured on the SSD itself. It works without SLC mode at first, in batches of eight
/// intervals, until two batches agree; their mean is the *base*. From then on the ghost without SLC mode
/// tells how much the base has changed, and the largest cap allowed follows the SSD's own write
/// amplification, and its wear corrects what the ghosts say of wear. SLC mode that may pay as far as the
/// ghosts can tell is tried; if it does not on the SSD, it ends. When the mapped pages or the ghost's write
/// amplification change by a tenth, all of this begins anew.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DynamicCap {
    /// How much more write amplification than without SLC mode is acceptable; infinite for the least wear.
    pub slack: f64,
}

/// Chooses a cap while the SSD runs, from what the host does.
pub(crate) trait CapChooser: fmt::Debug + Send + Sync {
    /// The host writes a page.
    fn written(&mut self, lpn: u32, tag: Tag);

    /// The host declares a page unused.
    fn trimmed(&mut self, lpn: u32);

    /// After an interval: the cap, as a share of all blocks. `recent` is what was counted in the interval,
    /// and `mapped` pages are mapped now.
    fn plan(&mut self, recent: &Counters, mapped: u32) -> f64;

    /// Bytes of memory that grow with the flash.
    fn bytes(&self) -> usize;

    /// The same again, with all that was learned.
    fn copy(&self) -> Box<dyn CapChooser>;
}

impl Clone for Box<dyn CapChooser> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

/// Convertible programming.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlcOptions {
    /// The most blocks in SLC mode.
    pub cap: SlcCap,
    /// Pages of a block in SLC mode; a divisor of those in the other mode.
    pub pages_per_block: u32,
    /// Wear of a page programmed in MLC mode in relation to one in SLC mode (R; 1.4 to 3.5 are published).
    pub stress_ratio: f64,
}

impl SlcOptions {
    pub(crate) fn check(&self, pages_per_block: u32) -> Result<(), ConfigError> {
        within(
            "pages per block in SLC mode",
            u64::from(self.pages_per_block),
            1,
            u64::from(pages_per_block),
        )?;
        if !pages_per_block.is_multiple_of(self.pages_per_block) || self.pages_per_block == pages_per_block {
            let expected = format_args!("half, a third or a quarter of {pages_per_block}");
            return Err(ConfigError::new("pages per block in SLC mode", self.pages_per_block, expected));
        }
        if !(1.0..=100.0).contains(&self.stress_ratio) {
            return Err(ConfigError::new("stress ratio", self.stress_ratio, "1 to 100"));
        }
        match self.cap {
            SlcCap::Share(share) if !(0.0..=1.0).contains(&share) => {
                Err(ConfigError::new("SLC cap", share, "0 to 1, a share of the over-provisioned space"))
            }
            SlcCap::Dynamic(DynamicCap { slack }) if slack.is_nan() || slack < 0.0 => {
                Err(ConfigError::new("slack of the SLC cap", slack, "0 or more"))
            }
            SlcCap::Share(_) | SlcCap::Dynamic(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let good = SlcOptions { cap: SlcCap::Share(0.3), pages_per_block: 32, stress_ratio: 2.5 };
        assert_eq!(good.check(64), Ok(()));
        for bad in [
            SlcOptions { cap: SlcCap::Share(1.5), ..good },
            SlcOptions { cap: SlcCap::Share(f64::NAN), ..good },
            SlcOptions { cap: SlcCap::Dynamic(DynamicCap { slack: -1.0 }), ..good },
            SlcOptions { pages_per_block: 63, ..good },
            SlcOptions { pages_per_block: 64, ..good },
            SlcOptions { pages_per_block: 0, ..good },
            SlcOptions { stress_ratio: f64::NAN, ..good },
        ] {
            assert!(bad.check(64).is_err(), "{bad:?}");
        }
    }
}
