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
/// WA(a(f)) <= (1 + slack) WA(a(0)); if that is all parity, there is no cap.
///
/// Real workloads are not uniform, so the form is fitted to what is measured, each time as many pages have been written as
/// are mapped: a(0) such that the write amplification is the one measured at first, without SLC blocks, once it has settled, and
/// the logarithm of WA(a(f)) / WA(a(0)) stretched by what it was found to be in relation to the form. When utilization
/// or parity's share change by a tenth, this starts anew.
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

/// What the dynamic cap has learned.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Fit {
    /// Intervals to wait, at most, until the write amplification has settled.
    settling: u32,
    /// Write amplification of the interval before.
    before: f64,
    first: Option<Load>,
    /// Logarithms of the growth of the write amplification, found and by the closed form; old ones fade.
    found: f64,
    predicted: f64,
}

impl Default for Fit {
    fn default() -> Self {
        Self { settling: SETTLING, before: 0.0, first: None, found: PRIOR, predicted: PRIOR }
    }
}

/// Most intervals without SLC blocks before the first measurement.
const SETTLING: u32 = 16;
/// The write amplification has settled when it changes by less than this share from one interval to the next.
const SETTLED: f64 = 0.005;
/// Weight of the closed form itself.
const PRIOR: f64 = 0.05;

impl Fit {
    /// A new measurement. The first one, against which the model counts; `None` while it waits.
    fn learn(&mut self, load: &Load, model: impl Fn(&Load, f64) -> f64) -> Option<Load> {
        let Some(first) = self.first else {
            let change = load.write_amplification / self.before - 1.0;
            self.before = load.write_amplification;
            self.settling -= 1;
            self.first = (change.abs() < SETTLED || self.settling == 0).then_some(*load);
            return self.first;
        };
        let changed = |now: f64, then: f64| (now - then).abs() > 0.1 * then;
        if changed(load.valid, first.valid) || changed(load.parity_writes, first.parity_writes) {
            *self = Self::default();
            return None;
        }
        const FADE: f64 = 0.9;
        self.found = FADE * self.found + (load.write_amplification / first.write_amplification).ln();
        self.predicted = FADE * self.predicted + model(&first, load.parity_slc_share).ln();
        Some(first)
    }

    /// Growth of the write amplification in relation to the closed form's.
    fn stretch(&self) -> f64 {
        ((self.found + PRIOR) / (self.predicted + PRIOR)).clamp(0.1, 4.0)
    }
}

impl DynamicCap {
    /// The blocks that may be in SLC mode; see the type's documentation.
    pub(crate) fn blocks(
        &self,
        load: &Load,
        fit: &mut Fit,
        options: &SlcOptions,
        pages_per_block: u32,
    ) -> u32 {
        if load.parity_valid < 1.0 || load.valid < 1.0 {
            return 0;
        }
        // Space of a page in SLC mode, beyond that of one in MLC mode.
        let extra = f64::from(pages_per_block / options.pages_per_block) - 1.0;
        // WA(a(f)) / WA(a(f of `first`)).
        let model = |first: &Load, share: f64| {
            let space = |share: f64| first.valid + share * extra * first.parity_valid;
            let nominal = first.physical / space(first.parity_slc_share);
            let now = calibrated_spare(first.write_amplification, pages_per_block).unwrap_or(nominal);
            let spare = now * space(first.parity_slc_share) / space(share);
            theory::greedy(pages_per_block, spare) / theory::greedy(pages_per_block, now)
        };
        let Some(first) = fit.learn(load, model) else { return 0 };
        let stretch = fit.stretch();
        let amplification = |share: f64| model(&first, share).powf(stretch);
        let limit = amplification(0.0) * (1.0 + self.slack);
        let ratio = options.stress_ratio;
        let wear = |share: f64| amplification(share) * (ratio - load.parity_writes * share * (ratio - 1.0));
        let steps = (0..=64).map(|step| f64::from(step) / 64.0);
        let allowed = steps.take_while(|&share| amplification(share) <= limit);
        let best = allowed.min_by(|&a, &b| wear(a).total_cmp(&wear(b))).unwrap_or(0.0);
        // Near the optimum wear hardly changes; no cap at all then saves conversions.
        if amplification(1.0) <= limit && wear(1.0) <= 1.01 * wear(best) {
            return u32::MAX;
        }
        let spare = load.physical / (load.valid + best * extra * load.parity_valid);
        let blocks = best * load.parity_valid * spare.max(1.0) / f64::from(options.pages_per_block);
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

    /// The cap once the fit has settled.
    fn cap(slack: f64, load: &Load, options: &SlcOptions) -> u32 {
        let mut fit = Fit::default();
        let dynamic = DynamicCap { slack };
        assert_eq!(dynamic.blocks(load, &mut fit, options, 64), 0, "the first interval may be a transient");
        dynamic.blocks(load, &mut fit, options, 64)
    }

    #[test]
    fn the_cap_shrinks_with_utilization_and_slack() {
        let options = SlcOptions { cap: SlcCap::Share(1.0), pages_per_block: 32, stress_ratio: 2.5 };
        assert_eq!(cap(f64::INFINITY, &load(20_000.0), &options), u32::MAX, "plenty of room: all parity");
        let few: Vec<u32> =
            [40_000.0, 48_000.0, 56_000.0].map(|valid| cap(0.05, &load(valid), &options)).to_vec();
        assert!(few.windows(2).all(|pair| pair[0] >= pair[1]) && few[0] > few[2], "{few:?}");
        assert_eq!(cap(f64::INFINITY, &load(62_000.0), &options), 0, "it would cost more than it wins");
        assert_eq!(
            DynamicCap { slack: 0.1 }.blocks(
                &Load { parity_valid: 0.0, ..load(2e4) },
                &mut Fit::default(),
                &options,
                64
            ),
            0
        );
        let even = SlcOptions { stress_ratio: 1.0, ..options };
        assert_eq!(cap(f64::INFINITY, &load(40_000.0), &even), 0, "nothing to be won if SLC wears as much");
    }

    #[test]
    fn the_fit_follows_what_is_measured_and_starts_anew_when_the_load_changes() {
        let options = SlcOptions { cap: SlcCap::Share(1.0), pages_per_block: 32, stress_ratio: 2.5 };
        let tight = DynamicCap { slack: 0.05 };
        let mut fit = Fit::default();
        let start = load(48_000.0);
        let caps: Vec<u32> = (0..2).map(|_| tight.blocks(&start, &mut fit, &options, 64)).collect();
        // Half of the parity in SLC mode has cost less than the form says: more is allowed.
        let better =
            Load { parity_slc_share: 0.5, write_amplification: start.write_amplification * 1.01, ..start };
        let more = tight.blocks(&better, &mut fit, &options, 64);
        assert!(more > caps[1], "{caps:?} {more}");
        let fuller = load(56_000.0);
        assert_eq!(tight.blocks(&fuller, &mut fit, &options, 64), 0, "measured without SLC blocks first");
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
