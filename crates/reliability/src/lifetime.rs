//! How long a device lives: a Weibull hazard of its age, and a second one of its wear.

use crate::error::{Error, check};
use block::Random;

/// Hazards of one device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lifetime {
    /// One over the mean of the Weibull distribution of the life, wear left out.
    pub rate: f64,
    /// Shape of that distribution: 1 is a constant hazard, more is ageing, less is infant mortality.
    pub shape: f64,
    /// What wear adds.
    pub wear: Option<Wear>,
    /// Age of the devices at the beginning.
    pub age: f64,
}

/// Wear-out: the hazard summed up until a share `w` of the endurance is used is `w` to the power of `shape`,
/// so that 63 % of the devices would not outlive their endurance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wear {
    /// Years until the erases that a device is rated for are used up.
    pub endurance: f64,
    /// How sharp the end is.
    pub shape: f64,
}

impl Lifetime {
    /// A constant hazard.
    pub fn constant(rate: f64) -> Self {
        Self { rate, shape: 1.0, wear: None, age: 0.0 }
    }

    /// Whether the hazard does not depend on age.
    pub fn is_constant(&self) -> bool {
        self.shape == 1.0 && self.wear.is_none()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check(
            "failure rate",
            self.rate,
            self.rate > 0.0 && self.rate <= 1e6,
            "more than 0, at most 1e6 per year",
        )?;
        check("shape of the lifetime", self.shape, (0.2..=20.0).contains(&self.shape), "0.2 to 20")?;
        check("age", self.age, (0.0..=1e3).contains(&self.age), "0 to 1000 years")?;
        if let Some(wear) = self.wear {
            let fine = (1e-4..=1e9).contains(&wear.endurance);
            check("years until the endurance is used", wear.endurance, fine, "0.0001 to 1e9")?;
            check("shape of wear-out", wear.shape, (0.2..=20.0).contains(&wear.shape), "0.2 to 20")?;
        }
        Ok(())
    }

    /// The scale of the Weibull distribution: the age at which 63 % have failed.
    fn scale(&self) -> f64 {
        1.0 / (self.rate * gamma(1.0 + 1.0 / self.shape))
    }

    /// Both hazards, ready for use.
    pub(crate) fn hazard(&self) -> Hazard {
        let worn = self.wear.map(|wear| Power { scale: wear.endurance, shape: wear.shape });
        let rate = self.is_constant().then_some(self.rate);
        Hazard { rate, aged: Power { scale: self.scale(), shape: self.shape }, worn }
    }
}

/// The hazard whose sum up to an age is `(age / scale)^shape`.
#[derive(Clone, Copy, Debug)]
struct Power {
    scale: f64,
    shape: f64,
}

impl Power {
    /// The sum from an age on, over a span; without cancellation for short spans.
    fn over(self, age: f64, span: f64) -> f64 {
        if age <= 0.0 {
            return (span / self.scale).powf(self.shape);
        }
        (age / self.scale).powf(self.shape) * (self.shape * (span / age).ln_1p()).exp_m1()
    }

    fn at(self, age: f64) -> f64 {
        // At birth the hazard may be infinite; only ratios are asked for there.
        let age = age.max(1e-12);
        self.shape / self.scale * (age / self.scale).powf(self.shape - 1.0)
    }
}

/// What a device's hazard is, and its sum over a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hazard {
    rate: Option<f64>,
    aged: Power,
    worn: Option<Power>,
}

impl Hazard {
    pub(crate) fn constant(&self) -> Option<f64> {
        self.rate
    }

    pub(crate) fn over(&self, age: f64, span: f64) -> f64 {
        match self.rate {
            Some(rate) => rate * span,
            None => self.aged.over(age, span) + self.worn.map_or(0.0, |worn| worn.over(age, span)),
        }
    }

    pub(crate) fn at(&self, age: f64) -> f64 {
        match self.rate {
            Some(rate) => rate,
            None => self.aged.at(age) + self.worn.map_or(0.0, |worn| worn.at(age)),
        }
    }
}

/// Exponentially distributed with this mean.
pub(crate) fn exponential(random: &mut impl Random, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

/// The gamma function for 1 to about 100 (Lanczos, g = 7, nine terms).
fn gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let mut sum = 0.999_999_999_999_809_9;
    let mut place = 1.0;
    for term in TERMS {
        sum += term / (x + place);
        place += 1.0;
    }
    let t = x + 7.5;
    (2.0 * std::f64::consts::PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gamma_function() {
        for (x, wanted) in [(1.0, 1.0), (2.0, 1.0), (5.0, 24.0), (1.5, 0.886_226_925_452_758)] {
            assert!((gamma(x) / wanted - 1.0).abs() < 1e-12, "{x}: {}", gamma(x));
        }
    }

    #[test]
    fn sums_of_hazards_add_up() {
        let wear = Some(Wear { endurance: 5.0, shape: 4.0 });
        let hazard = Lifetime { rate: 0.1, shape: 1.5, wear, age: 0.0 }.hazard();
        let whole = hazard.over(0.0, 3.0);
        let parts: f64 = (0..300).map(|i| hazard.over(f64::from(i) / 100.0, 0.01)).sum();
        assert!((whole / parts - 1.0).abs() < 1e-12, "{whole} {parts}");
        // At the end of its endurance the wear alone has a sum of 1.
        let worn = hazard.over(0.0, 5.0)
            - Lifetime { wear: None, ..Lifetime::constant(0.1) }.hazard().over(0.0, 0.0);
        assert!(worn > 1.0);
        let span = 1e-9;
        assert!((hazard.over(2.0, span) / (hazard.at(2.0) * span) - 1.0).abs() < 1e-6);
    }
}
