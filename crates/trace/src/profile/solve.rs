//! The equations that turn published figures into parameters.

use crate::random::SplitMix;

/// Halvings of an interval: more than a 64-bit float has digits.
const HALVINGS: u32 = 200;

/// The zero of a function that rises from `low` to `high`, by halving.
pub(super) fn rising_zero(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    low + (high - low) / 2.0
}

/// How many equally likely places there must be for `draws` of them to meet `distinct` different ones on
/// average: n (1 - exp(-draws / n)) = distinct, which needs more draws than distinct places.
pub(super) fn places_for(distinct: f64, draws: f64) -> f64 {
    rising_zero(distinct, distinct * 1e6, |places| places * -(-draws / places).exp_m1() - distinct)
}

/// Lengths with their probabilities.
#[derive(Clone, Debug)]
pub(super) struct SizeMix {
    /// Length in units, and the probability of this or an earlier one.
    cumulative: Vec<(u32, f64)>,
}

impl SizeMix {
    /// The mix nearest to `base` (length in units, weight) whose mean is `mean`: every weight times
    /// exp(t x length), with the t that gives the mean. This is the least change in relative entropy;
    /// of equal weights it makes the mix of largest entropy. `mean` must lie between the shortest and
    /// the longest length.
    pub(super) fn tilted(base: &[(u32, f64)], mean: f64) -> Self {
        let longest = base.iter().map(|&(units, _)| f64::from(units)).fold(1.0, f64::max);
        let weights = |tilt: f64| {
            // Largest exponent 0, so that nothing overflows.
            let shift = tilt.max(0.0);
            base.iter().map(move |&(units, weight)| {
                (units, weight * (tilt * f64::from(units) / longest - shift).exp())
            })
        };
        let mean_of = |tilt: f64| {
            let (sum, total) = weights(tilt).fold((0.0, 0.0), |(sum, total), (units, weight)| {
                (sum + weight * f64::from(units), total + weight)
            });
            sum / total
        };
        let tilt = rising_zero(-500.0, 500.0, |tilt| mean_of(tilt) - mean);
        let total: f64 = weights(tilt).map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let cumulative = weights(tilt)
            .map(|(units, weight)| {
                sum += weight / total;
                (units, sum)
            })
            .collect();
        Self { cumulative }
    }

    /// A length in units.
    pub(super) fn sample(&self, random: &mut SplitMix) -> u64 {
        let ticket = random.unit();
        let found = self.cumulative.iter().find(|&&(_, until)| ticket < until);
        // Rounding may leave the last sum just below 1.
        found.or(self.cumulative.last()).map_or(1, |&(units, _)| u64::from(units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilting_reaches_the_mean_and_keeps_a_mix_that_has_it() {
        let base = [(1, 3.0), (2, 2.0), (16, 1.0)];
        for mean in [1.2, 2.0, 23.0 / 6.0, 9.0, 15.5] {
            let mix = SizeMix::tilted(&base, mean);
            let mut before = 0.0;
            let found: f64 = mix
                .cumulative
                .iter()
                .map(|&(units, until)| f64::from(units) * (until - std::mem::replace(&mut before, until)))
                .sum();
            assert!((found - mean).abs() < 1e-9, "{found} for {mean}");
        }
        let kept = SizeMix::tilted(&base, 23.0 / 6.0);
        assert!((kept.cumulative[0].1 - 0.5).abs() < 1e-9, "{kept:?}");
    }

    #[test]
    fn places_are_met_as_often_as_asked() {
        for (distinct, draws) in [(1000.0, 1100.0), (1000.0, 3000.0), (1000.0, 1e6)] {
            let places = places_for(distinct, draws);
            let met = places * (1.0 - (-draws / places).exp());
            assert!((met - distinct).abs() < 1e-6, "{met} of {places} for {draws} draws");
        }
    }
}
