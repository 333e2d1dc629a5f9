//! The dynamic cap of blocks in SLC mode (L-17).

use crate::config::SsdConfig;
use crate::counters::Counters;
use crate::ghost::{Ghosts, KNOTS, Knot};
use crate::slc::{CapChooser, SlcCap};
use crate::stream::{Separation, Tag};

/// What chooses the dynamic cap of a domain.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    ghosts: Ghosts,
    governor: Governor,
    stress_ratio: f64,
}

impl Planner {
    /// Makes the planner of a domain of a checked configuration; `None` if nothing has to be chosen.
    pub(crate) fn of(config: &SsdConfig) -> Option<Box<dyn CapChooser>> {
        let slc = config.slc.as_ref()?;
        match &slc.cap {
            SlcCap::Share(_) => None,
            SlcCap::Dynamic(_) if config.streams.separation == Separation::None => None,
            SlcCap::Dynamic(dynamic) => Some(Box::new(Self {
                ghosts: Ghosts::new(config, slc),
                governor: Governor::new(dynamic.slack),
                stress_ratio: slc.stress_ratio,
            })),
        }
    }
}

impl CapChooser for Planner {
    fn written(&mut self, lpn: u32, tag: Tag) {
        self.ghosts.write(lpn, tag);
    }

    fn trimmed(&mut self, lpn: u32) {
        self.ghosts.trim(lpn);
    }

    fn plan(&mut self, recent: &Counters, mapped: u32) -> f64 {
        let in_mlc_mode = self.stress_ratio * recent.host_pages_written as f64;
        let measured = Interval {
            amplification: recent.write_amplification(),
            wear: recent.wear(self.stress_ratio) / in_mlc_mode,
            mapped: f64::from(mapped),
            chance: self.ghosts.chance(),
        };
        self.ghosts.end_interval();
        match self.governor.decide(&measured, self.ghosts.curve()) {
            Decision::Anew => {
                self.ghosts.forget();
                0.0
            }
            Decision::Wait => 0.0,
            // All parity may be in SLC mode. Having no cap saves conversions.
            Decision::Share(1.0) => 1.0,
            Decision::Share(share) => share * self.ghosts.slc_share(),
        }
    }

    fn bytes(&self) -> usize {
        self.ghosts.bytes()
    }

    fn copy(&self) -> Box<dyn CapChooser> {
        Box::new(self.clone())
    }
}

/// Intervals of a batch. The base is the mean of two batches, one after the other.
const BATCH: u32 = 8;
/// Batches after which the base is taken as it is.
const BATCHES_MAX: u32 = 5;
/// Write amplification has settled when two batches differ by less than this (a logarithm).
const SETTLED: f64 = 0.005;
/// So many intervals after the first choice the SSD has followed it.
const FOLLOWING: u32 = 4;
/// The governor aims below the limit, by this share of the write amplification.
const MARGIN: f64 = 0.0015;
/// This share of an error is corrected per interval.
const GAIN: f64 = 0.3;
/// The ceiling does not fall below this share, so that it can grow again.
const LEAST: f64 = 1.0 / 64.0;
/// SLC mode pays if it saves this share of the wear.
const WORTH: f64 = 0.002;
/// What the ghosts say is refuted when SLC mode has not paid in so many more intervals than it has.
const REFUTED: u32 = 6;
/// From this share on the SSD's wear says something of larger shares.
const TELLING: f64 = 0.1;
/// A relative change of more than this starts everything anew.
const CHANGED: f64 = 0.1;

/// What was measured on the SSD in an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Interval {
    /// The write amplification in this interval.
    amplification: f64,
    /// Wear per page the host wrote, in pages in MLC mode.
    wear: f64,
    mapped: f64,
    /// A change of the ghosts' write amplification up to this (a logarithm) may be chance.
    chance: f64,
}

/// The write amplification without SLC mode.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Base {
    /// The SSD's, as measured.
    real: f64,
    /// That of the ghost without SLC mode.
    ghost: f64,
}

/// What the dynamic cap has learned.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Governor {
    slack: f64,
    /// Counts intervals since everything started anew, or since there is a base.
    intervals: u32,
    /// How many pages were mapped when everything started anew.
    mapped: f64,
    /// The mean of the batch under way so far, and that of the batch before.
    batch: Base,
    before: Option<Base>,
    base: Option<Base>,
    /// The largest share that keeps the limit.
    ceiling: f64,
    /// The share chosen.
    share: f64,
    /// By how much the SSD's wear differs from what the ghosts say, as a logarithm, in proportion
    /// to the share.
    tilt: f64,
    /// How many more intervals there were in which SLC mode did not pay than in which it did; never below 0.
    worse: u32,
}

/// What the governor decides after an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Decision {
    /// There is no SLC mode yet, and the ghosts' averages begin anew.
    Anew,
    /// There is no SLC mode yet.
    Wait,
    /// The cap is this share of the blocks that would be in SLC mode without one.
    Share(f64),
}

impl Governor {
    fn new(slack: f64) -> Self {
        Self {
            slack,
            intervals: 0,
            mapped: 0.0,
            batch: Base::default(),
            before: None,
            base: None,
            ceiling: 1.0,
            share: 0.0,
            tilt: 0.0,
            worse: 0,
        }
    }

    /// Decides after an interval, with what the ghosts found.
    fn decide(&mut self, measured: &Interval, curve: &[Knot; KNOTS]) -> Decision {
        let ghost = curve[0].amplification;
        if self.is_outdated(measured, ghost) {
            *self = Self { mapped: measured.mapped, ..Self::new(self.slack) };
            return Decision::Anew;
        }
        self.intervals += 1;
        let Some(base) = self.base else { return self.learn(measured, curve) };
        if self.intervals > FOLLOWING && self.share > 0.0 {
            self.correct(measured, curve, &base);
        }
        let share = if self.worse < REFUTED { self.choose(curve) } else { 0.0 };
        if share == 0.0 && self.share > 0.0 {
            // It is not to be tried again and again.
            self.worse = REFUTED;
        }
        self.share = share;
        Decision::Share(share)
    }

    fn is_outdated(&self, measured: &Interval, ghost: f64) -> bool {
        let changed = |base: Base| (ghost / base.ghost).ln().abs() > CHANGED;
        (measured.mapped - self.mapped).abs() > CHANGED * self.mapped || self.base.is_some_and(changed)
    }

    /// Goes on batch by batch until there is a base.
    fn learn(&mut self, measured: &Interval, curve: &[Knot; KNOTS]) -> Decision {
        self.batch.real += measured.amplification / f64::from(BATCH);
        if !self.intervals.is_multiple_of(BATCH) {
            return Decision::Wait;
        }
        // The ghosts average since the batch began.
        self.batch.ghost = curve[0].amplification;
        let Base { real, ghost } = std::mem::take(&mut self.batch);
        let before = self.before.replace(Base { real, ghost });
        let last = self.intervals == BATCH * BATCHES_MAX;
        let Some(before) = before.filter(|before| last || (real / before.real).ln().abs() < SETTLED) else {
            return Decision::Anew;
        };
        self.base = Some(Base { real: 0.5 * (real + before.real), ghost: 0.5 * (ghost + before.ghost) });
        self.intervals = 0;
        self.ceiling = self.first_ceiling(curve);
        // Where the ghosts see a loss that may be chance, SLC mode is tried.
        self.tilt = -2.0 * measured.chance / self.ceiling;
        self.share = self.choose(curve);
        Decision::Share(self.share)
    }

    /// Learns from what the SSD itself says of the share chosen.
    fn correct(&mut self, measured: &Interval, curve: &[Knot; KNOTS], base: &Base) {
        let ghost = curve[0].amplification;
        let change = (ghost / base.ghost).ln();
        let change = change - change.clamp(-measured.chance, measured.chance);
        let base = base.real * change.exp();
        // Without SLC mode the wear is the write amplification.
        let failed = measured.wear > base * (1.0 - WORTH);
        self.worse = if failed { self.worse + 1 } else { self.worse.saturating_sub(1) };
        let seen = (measured.wear / base).ln() - self.tilt * self.share;
        let told = (between(curve, self.share).wear / curve[0].wear).ln();
        if (seen - told).is_finite() {
            self.tilt = (self.tilt + GAIN * (seen - told) / self.share.max(TELLING)).clamp(-1.0, 1.0);
        }
        let limit = base * (1.0 + self.slack) * (1.0 - MARGIN);
        let error = (limit / measured.amplification).ln();
        if !error.is_finite() || error > 0.0 && self.share < self.ceiling {
            // Nobody asks for this room.
            return;
        }
        // The increase is taken to be in proportion to the share.
        let part = (error / self.slack.ln_1p().max(MARGIN)).clamp(-1.0, 1.0);
        self.ceiling = (self.ceiling.min(self.share) * (GAIN * part).exp()).clamp(LEAST, 1.0);
    }

    /// The largest share that keeps the limit, if the ghosts are right.
    fn first_ceiling(&self, curve: &[Knot; KNOTS]) -> f64 {
        let limit = curve[0].amplification * (1.0 + self.slack);
        let within = shares(1.0).take_while(|&share| between(curve, share).amplification <= limit);
        within.last().unwrap_or(LEAST)
    }

    /// Finds the share with the least wear up to the ceiling.
    fn choose(&self, curve: &[Knot; KNOTS]) -> f64 {
        let threshold = if self.share > 0.0 { 0.0 } else { WORTH };
        let none = (0.0, curve[0].wear * (1.0 - threshold));
        let wear = |share: f64| (share, between(curve, share).wear * (self.tilt * share).exp());
        let best =
            shares(self.ceiling).map(wear).fold(none, |best, now| if now.1 < best.1 { now } else { best });
        best.0
    }
}

/// Lists shares up to a largest one, in small steps.
fn shares(most: f64) -> impl Iterator<Item = f64> {
    const STEPS: u32 = 256;
    (1..=STEPS).map(move |step| most * f64::from(step) / f64::from(STEPS))
}

/// Reads the curve at a share; it is linear between knots.
fn between(curve: &[Knot; KNOTS], share: f64) -> Knot {
    let above = curve.iter().position(|knot| knot.share >= share).unwrap_or(KNOTS - 1);
    let (low, high) = (curve[above.saturating_sub(1)], curve[above]);
    if high.share <= low.share {
        return high;
    }
    let part = ((share - low.share) / (high.share - low.share)).min(1.0);
    let mix = |low: f64, high: f64| low + part * (high - low);
    Knot { share, amplification: mix(low.amplification, high.amplification), wear: mix(low.wear, high.wear) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Write amplification rises by 2 % and then by 10 % per third of the share, wear falls.
    const CURVE: [Knot; KNOTS] = [
        Knot { share: 0.0, amplification: 1.0, wear: 2.5 },
        Knot { share: 0.25, amplification: 1.02, wear: 2.2 },
        Knot { share: 0.5, amplification: 1.1, wear: 2.0 },
        Knot { share: 1.0, amplification: 1.3, wear: 1.9 },
    ];

    fn interval(amplification: f64, wear: f64) -> Interval {
        Interval { amplification, wear, mapped: 1000.0, chance: 0.01 }
    }

    /// One that has just found its base: 1.2.
    fn settled(slack: f64) -> (Governor, f64) {
        let mut governor = Governor::new(slack);
        let mut last = Decision::Wait;
        for _ in 0..=2 * BATCH {
            assert!(!matches!(last, Decision::Share(_)));
            last = governor.decide(&interval(1.2, 1.2), &CURVE);
        }
        let Decision::Share(share) = last else { panic!("{last:?}") };
        (governor, share)
    }

    fn next(governor: &mut Governor, amplification: f64, wear: f64) -> f64 {
        match governor.decide(&interval(amplification, wear), &CURVE) {
            Decision::Share(share) => share,
            Decision::Anew => panic!("begins anew"),
            Decision::Wait => panic!("waits"),
        }
    }

    #[test]
    fn the_first_share_is_the_best_that_the_ghosts_know_within_the_limit() {
        // 5 % are reached at 0.25 + 0.25 * 3 / 8.
        let (_, share) = settled(0.05);
        assert!((share - 0.34375).abs() < 0.005, "{share}");
        assert_eq!(settled(f64::INFINITY).1, 1.0);
        assert!(settled(0.0).1 <= LEAST, "no room");
    }

    #[test]
    fn the_share_follows_the_write_amplification_of_the_ssd() {
        let (mut governor, first) = settled(0.05);
        for _ in 0..FOLLOWING {
            assert_eq!(next(&mut governor, 1.35, 1.0), first, "the SSD has not followed yet");
        }
        let less = next(&mut governor, 1.29, 1.0);
        assert!(less < 0.9 * first, "{less} {first}");
        let more = next(&mut governor, 1.22, 1.0);
        assert!(more > less);
        let kept = next(&mut governor, 1.2 * 1.05 * (1.0 - MARGIN), 1.0);
        assert!((kept - more).abs() < 1e-3, "{kept} {more}");
    }

    #[test]
    fn slc_mode_ends_if_it_does_not_pay_on_the_ssd() {
        let (mut governor, first) = settled(f64::INFINITY);
        for _ in 0..FOLLOWING {
            assert_eq!(next(&mut governor, 1.5, 1.21), first);
        }
        let last = (0..REFUTED).map(|_| next(&mut governor, 1.5, 1.21)).last();
        assert_eq!(last, Some(0.0));
        assert_eq!(next(&mut governor, 1.2, 1.2), 0.0, "once refuted, for good");
    }

    #[test]
    fn what_the_ssd_wears_corrects_the_ghosts() {
        // The ghosts see a loss of 1 % beyond half of the share, the SSD a gain of 10 %.
        let mut curve = CURVE;
        curve[2].wear = 2.19;
        curve[3].wear = 2.21;
        let (mut governor, _) = settled(f64::INFINITY);
        for _ in 0..20 {
            governor.decide(&interval(1.4, 0.9 * 2.21 / 2.5 * 1.2), &curve);
        }
        assert_eq!(governor.share, 1.0);
        assert!((governor.tilt - 0.9f64.ln()).abs() < 0.01, "{}", governor.tilt);
    }

    #[test]
    fn another_load_begins_anew_and_unsettled_batches_are_not_a_base() {
        let (mut governor, _) = settled(0.05);
        let fuller = Interval { mapped: 1200.0, ..interval(1.2, 1.2) };
        assert_eq!(governor.decide(&fuller, &CURVE), Decision::Anew);
        let (mut governor, _) = settled(0.05);
        let hotter = CURVE.map(|knot| Knot { amplification: 1.2 * knot.amplification, ..knot });
        assert_eq!(governor.decide(&interval(1.2, 1.2), &hotter), Decision::Anew);

        let mut governor = Governor::new(0.05);
        let mut waited = 0u32;
        while !matches!(
            governor.decide(&interval(1.2 + 0.01 * f64::from(waited / BATCH), 1.2), &CURVE),
            Decision::Share(_)
        ) {
            waited += 1;
        }
        assert_eq!(waited, BATCH * BATCHES_MAX, "it rises all the time");
    }
}
