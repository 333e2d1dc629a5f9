//! Whether what cells have counted is what a paper says.

use super::cells;
use super::declare::{Check, Grid, Headline, Over, Part, is_picked};
use super::results::Results;
use super::view::Key;
use std::collections::BTreeMap;

/// How a headline came out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// As the paper has it.
    Inside,
    /// Not as the paper has it; why is said.
    Outside,
    /// It cannot be measured.
    NotPossible,
    /// Cells are missing.
    NotRun,
    /// The loads were shorter than the paper's, which is no evidence.
    Short,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Inside, Self::Outside, Self::NotPossible, Self::NotRun, Self::Short];

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Outside => "outside",
            Self::NotPossible => "not possible",
            Self::NotRun => "not run",
            Self::Short => "no verdict below full length",
        }
    }
}

/// A quantity of one cell, or the mean of several.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// Which cell.
    pub cell: String,
    /// Under each seed that has the cell.
    pub values: BTreeMap<u64, f64>,
    /// Whether the paper's statement holds of it.
    pub holds: bool,
}

impl Reading {
    /// Over the seeds.
    pub fn mean(&self) -> f64 {
        mean(&self.of_all())
    }

    /// Half of the interval of 95 % confidence over the seeds; none with one seed.
    pub fn interval(&self) -> Option<f64> {
        interval(&self.of_all())
    }

    fn of_all(&self) -> Vec<f64> {
        self.values.values().copied().collect()
    }
}

/// A part of a headline, judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// What the paper has.
    pub paper: String,
    /// Unit of the readings.
    pub unit: &'static str,
    /// What cells have.
    pub readings: Vec<Reading>,
    /// Whether it holds; none if a cell is missing.
    pub holds: Option<bool>,
}

/// A headline, judged.
pub struct Judged {
    /// Which one.
    pub headline: &'static Headline,
    /// How it came out.
    pub verdict: Verdict,
    /// Its parts.
    pub findings: Vec<Finding>,
    /// Why it is so.
    pub why: &'static str,
}

/// Number as it is needed for a mean.
fn count(values: &[f64]) -> f64 {
    values.iter().map(|_| 1.0).sum()
}

/// The mean; none of nothing is 0.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values).max(1.0)
}

/// Two-sided quantiles of Student's distribution for 95 %, by degrees of freedom from 1.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Half of the interval of 95 % confidence of the mean; none of fewer than two.
pub fn interval(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    let deviation = (squares / (count(values) - 1.0)).sqrt();
    // With more seeds the last one is a little too wide, which is no harm.
    let quantile = STUDENT.get(freedom - 1).copied().unwrap_or(STUDENT[STUDENT.len() - 1]);
    Some(quantile * deviation / count(values).sqrt())
}

/// Judges a headline. `grids` are those that are declared.
pub fn judge(headline: &'static Headline, grids: &[&'static Grid], results: &Results) -> Judged {
    let (verdict, findings, why) = match &headline.check {
        Check::NotPossible(why) => (Verdict::NotPossible, Vec::new(), *why),
        Check::Measured { parts, why } => {
            let findings: Vec<Finding> = parts.iter().map(|part| finding(part, grids, results)).collect();
            let holds: Option<Vec<bool>> = findings.iter().map(|finding| finding.holds).collect();
            let verdict = match holds {
                None => Verdict::NotRun,
                Some(_) if !results.scale.is_full() => Verdict::Short,
                Some(holds) if holds.iter().all(|&holds| holds) => Verdict::Inside,
                Some(_) => Verdict::Outside,
            };
            (verdict, findings, *why)
        }
    };
    Judged { headline, verdict, findings, why }
}

fn finding(part: &Part, grids: &[&'static Grid], results: &Results) -> Finding {
    let grid = grids.iter().find(|grid| grid.name == part.grid);
    let keys: Vec<Key> = grid
        .map(|grid| cells::keys(grid).into_iter().map(|(key, ..)| key).collect::<Vec<_>>())
        .unwrap_or_default();
    let picked: Vec<&Key> = keys.iter().filter(|key| is_picked(key, part.pick)).collect();
    // One seed must have run the whole grid, in which the cells that others are compared with are too.
    let complete =
        !picked.is_empty() && results.views.iter().any(|view| keys.iter().all(|key| view.has(key)));
    let mut readings: Vec<Reading> = picked
        .iter()
        .filter_map(|key| {
            // A quantity may mean nothing of a cell, as a share of no writes.
            let values = results.by_seed().filter_map(|(seed, view)| {
                part.what.of(view, key).filter(|value| value.is_finite()).map(|value| (seed, value))
            });
            let reading = Reading { cell: key.text(), values: values.collect(), holds: false };
            (!reading.values.is_empty()).then(|| judged(reading, part))
        })
        .collect();
    if part.over == Over::Mean && !readings.is_empty() {
        readings = vec![mean_of(&readings, part)];
    }
    let holds = match part.over {
        Over::Each | Over::Mean => readings.iter().all(|reading| reading.holds),
        Over::Any => readings.iter().any(|reading| reading.holds),
    };
    Finding {
        paper: part.paper.text(part.unit),
        unit: part.unit,
        // Where nothing can be computed of any cell, nothing holds.
        holds: complete.then_some(holds && !readings.is_empty()),
        readings,
    }
}

fn judged(reading: Reading, part: &Part) -> Reading {
    Reading { holds: part.paper.holds(reading.mean()), ..reading }
}

/// Over the seeds that all readings have.
fn mean_of(readings: &[Reading], part: &Part) -> Reading {
    let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (&seed, &value) in readings.iter().flat_map(|reading| &reading.values) {
        by_seed.entry(seed).or_default().push(value);
    }
    by_seed.retain(|_, values| values.len() == readings.len());
    let values = by_seed.into_iter().map(|(seed, values)| (seed, mean(&values))).collect();
    judged(Reading { cell: format!("mean of {}", readings.len()), values, holds: false }, part)
}

#[cfg(test)]
mod tests {
    use super::{interval, mean};

    #[test]
    fn the_interval_is_students() {
        assert_eq!((mean(&[]), interval(&[1.0])), (0.0, None));
        // 1, 2, 3: deviation 1, quantile 4.303 with two degrees of freedom.
        let half = interval(&[1.0, 2.0, 3.0]).unwrap_or(0.0);
        assert!((half - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{half}");
    }
}
