//! SLC/MLC convertible programming: which blocks parity may use in SLC mode (P-06 to P-11).
//!
//! A block in SLC mode stores one bit per cell: it takes fewer pages, and each page wears the cells less. What that
//! costs in space comes out of over-provisioning, so it is capped.

use crate::error::{ConfigError, within};
use crate::theory;

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
    /// A share of the over-provisioned space, 0 to 1: at 1 it may be used up (P-11). With half the pages in SLC mode, 1 is
    /// twice as many blocks as there are over-provisioned.
    Share(f64),
    /// Chosen while running; see [`DynamicCap`].
    Dynamic(DynamicCap),
}

/// The cap chosen online from utilization, parity's share and the stress ratio (L-17; left to future work by the paper).
///
/// Of V valid pages, `V_p` of them parity, let a share f of the parity be in SLC blocks of half size. These pages take
/// twice the space, so greedy GC sees a spare factor a(f) = P / (V + f V_p), P the physical pages. With the closed
/// form WA(a), and p parity's share of the host's writes, each host write costs the wear
/// w(f) = WA(a(f)) (R - p f (R - 1)). The cap is the number of blocks that the best f takes, among those with
/// WA(a(f)) <= (1 + slack) WA(a(0)). Real workloads are not uniform, so the spare factor is calibrated: the a for which WA(a)
/// is the write amplification measured, instead of P / (V + f V_p) at the present f.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DynamicCap {
    /// How much more write amplification than without SLC mode is acceptable; infinite for the least wear.
    pub slack: f64,
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

/// What the dynamic cap is chosen from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Load {
    /// Physical pages, all in MLC mode, without free blocks that are kept.
    pub physical: f64,
    /// Valid pages.
    pub valid: f64,
    /// Of them parity.
    pub parity_valid: f64,
    /// Of the parity, the share that is in SLC blocks.
    pub parity_slc_share: f64,
    /// Parity's share of the host's writes.
    pub parity_writes: f64,
    /// Write amplification measured.
    pub write_amplification: f64,
}

impl DynamicCap {
    /// The blocks that may be in SLC mode; see the type's documentation.
    pub(crate) fn blocks(&self, load: &Load, options: &SlcOptions, pages_per_block: u32) -> u32 {
        if load.parity_valid < 1.0 || load.valid < 1.0 {
            return 0;
        }
        // Space of a page in SLC mode, beyond that of one in MLC mode.
        let extra = f64::from(pages_per_block / options.pages_per_block) - 1.0;
        let stretch =
            |share: f64| (load.valid + share * extra * load.parity_valid) / (load.physical).max(1.0);
        let nominal = 1.0 / stretch(load.parity_slc_share);
        let now = calibrated_spare(load.write_amplification, pages_per_block).unwrap_or(nominal);
        let spare = |share: f64| now * stretch(load.parity_slc_share) / stretch(share);
        let amplification = |share: f64| theory::greedy(pages_per_block, spare(share));
        let limit = amplification(0.0) * (1.0 + self.slack);
        let ratio = options.stress_ratio;
        let wear = |share: f64| amplification(share) * (ratio - load.parity_writes * share * (ratio - 1.0));
        let steps = (0..=64).map(|step| f64::from(step) / 64.0);
        let allowed = steps.take_while(|&share| spare(share) > 1.0 && amplification(share) <= limit);
        let best = allowed.min_by(|&a, &b| wear(a).total_cmp(&wear(b))).unwrap_or(0.0);
        let physical_spare = 1.0 / stretch(best);
        let blocks = best * load.parity_valid * physical_spare.max(1.0) / f64::from(options.pages_per_block);
        // Neither negative nor larger than the flash.
        blocks.ceil() as u32
    }
}

/// The spare factor for which greedy GC has this write amplification under uniform writes.
fn calibrated_spare(write_amplification: f64, pages_per_block: u32) -> Option<f64> {
    if write_amplification <= 1.001 {
        return None;
    }
    let (mut low, mut high) = (1.0005, 20.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if theory::greedy(pages_per_block, middle) > write_amplification {
            low = middle
        } else {
            high = middle
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(valid: f64) -> Load {
        Load {
            physical: 64_000.0,
            valid,
            parity_valid: valid / 7.0,
            parity_slc_share: 0.0,
            parity_writes: 0.5,
            write_amplification: theory::greedy(64, 64_000.0 / valid),
        }
    }

    #[test]
    fn the_cap_shrinks_with_utilization_and_slack() {
        let options = SlcOptions { cap: SlcCap::Share(1.0), pages_per_block: 32, stress_ratio: 2.5 };
        let free = DynamicCap { slack: f64::INFINITY };
        let tight = DynamicCap { slack: 0.05 };
        let all: Vec<u32> =
            [20_000.0, 40_000.0, 50_000.0].map(|valid| free.blocks(&load(valid), &options, 64)).to_vec();
        let few: Vec<u32> =
            [20_000.0, 40_000.0, 50_000.0].map(|valid| tight.blocks(&load(valid), &options, 64)).to_vec();
        // Plenty of room: all parity, 20,000 / 7 pages spread over a = 64,000 / (20,000 x 8/7) = 2.8 times the space.
        assert_eq!(all[0], 250);
        assert!(all.iter().zip(&few).all(|(a, f)| f <= a), "{all:?} {few:?}");
        assert!(few[1] < few[0], "{few:?}");
        assert_eq!(tight.blocks(&Load { parity_valid: 0.0, ..load(20_000.0) }, &options, 64), 0);
        let even = SlcOptions { stress_ratio: 1.0, ..options };
        assert_eq!(free.blocks(&load(40_000.0), &even, 64), 0, "nothing to be won if SLC wears as much");
    }

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
