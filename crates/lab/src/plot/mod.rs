//! Plots that a paper can print: a description of what is shown goes in, SVG or PNG comes out.
//!
//! A [`Figure`] says nothing of pixels: panels one below the other, axes with units, bars by category or
//! lines over numbers. `figure` makes one of a table's columns, `svg` lays it out, `png` turns that into
//! pixels with the bundled font, `file` writes it whole or not at all. Same figure, same bytes.
//!
//! Series differ in colour (Okabe and Ito's, safe for colour-blind readers) and in hatch, or dash and
//! marker, so that they are told apart in grey too.

pub mod command;
pub mod figure;
pub mod file;
pub mod labels;
pub mod options;
#[cfg(feature = "png")]
mod png;
mod scale;
mod style;
mod svg;
pub mod table;
#[cfg(test)]
mod tests;
mod text;

use crate::failure::Failure;
use clap::ValueEnum;

/// Most series of a panel: as many as there are styles.
pub const SERIES_MAX: usize = style::STYLES.len();
/// Most bars of a panel; more are no bars on paper.
const BARS_MAX: usize = 400;
/// Largest number shown, so that no arithmetic of the layout overflows.
const VALUE_MAX: f64 = 1e30;
/// Least number on a logarithmic axis.
const LOG_MIN: f64 = 1e-30;

/// How wide a figure is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Width {
    /// A column of a two-column paper, 3.5 inches.
    #[default]
    Column,
    /// The whole page, 7.16 inches.
    Page,
}

impl Width {
    /// In points.
    fn points(self) -> f64 {
        match self {
            Self::Column => 252.0,
            Self::Page => 516.0,
        }
    }
}

/// A picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Above everything; papers have captions instead.
    pub title: Option<String>,
    /// What the names of the legend are, if they do not say it.
    pub legend: Option<String>,
    /// What made it; goes into the file, not into the picture.
    pub about: String,
    /// How wide it is printed.
    pub width: Width,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// One pair of axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// What tells it from the others.
    pub heading: Option<String>,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub body: Body,
    /// Ranges of the vertical axis to compare with.
    pub bands: Vec<Band>,
}

/// An axis of numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// In what.
    pub unit: Option<String>,
    /// How numbers become places.
    pub scale: Scale,
}

impl Axis {
    /// Label and unit, and that lengths are no proportions where they are none.
    pub fn text(&self) -> String {
        match (&self.unit, self.scale) {
            (Some(unit), Scale::Linear) => format!("{} ({unit})", self.label),
            (Some(unit), Scale::Log) => format!("{} ({unit}, log scale)", self.label),
            (None, Scale::Linear) => self.label.clone(),
            (None, Scale::Log) => match self.label.strip_suffix(')') {
                Some(label) => format!("{label}, log scale)"),
                None => format!("{} (log scale)", self.label),
            },
        }
    }
}

/// How numbers become places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long.
    Log,
}

/// What a panel shows.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// By category.
    Bars(Bars),
    /// Over a number.
    Lines(Lines),
}

/// Bars by category.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// What the categories are.
    pub label: Option<String>,
    /// Their names.
    pub categories: Vec<String>,
    /// Where the series of a category stand.
    pub arrangement: Arrangement,
    /// A value for each category; no name if there is only one.
    pub series: Vec<Series<Value>>,
    /// The series that bars on each other start from and that is no part of their sum.
    pub beneath: Option<String>,
}

/// Where the bars of a category stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrangement {
    /// Side by side.
    Grouped,
    /// On each other: they are parts of a sum.
    Stacked,
}

/// Lines over a number.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    /// The horizontal axis.
    pub x: Axis,
    /// Places with names of their own, if they are few.
    pub ticks: Vec<(f64, String)>,
    /// What marks the points.
    pub marks: Marks,
    /// The lines.
    pub series: Vec<Series<(f64, Value)>>,
}

/// What marks the points of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    /// Each was measured.
    Points,
    /// They are so many that the line is all.
    Nothing,
}

/// What belongs together.
#[derive(Clone, PartialEq, Debug)]
pub struct Series<T> {
    /// Name in the legend.
    pub name: String,
    /// What it is made of.
    pub values: Vec<T>,
}

/// A number, where there is one, and how far it spreads.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Value {
    /// `None` if nothing was measured.
    pub value: Option<f64>,
    /// Least and most.
    pub range: Option<(f64, f64)>,
}

impl Value {
    /// A number without spread; one that is none counts as not measured.
    pub fn of(value: f64) -> Self {
        Self { value: Some(value).filter(|value| !value.is_nan()), range: None }
    }

    fn numbers(self) -> impl Iterator<Item = f64> {
        let (low, high) = self.range.unzip();
        [self.value, low, high].into_iter().flatten()
    }
}

/// A range on the vertical axis, such as a paper's.
#[derive(Clone, PartialEq, Debug)]
pub struct Band {
    /// Name in the legend.
    pub name: String,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Body {
    /// Names of the series.
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Bars(bars) => bars.series.iter().map(|series| series.name.as_str()).collect(),
            Self::Lines(lines) => lines.series.iter().map(|series| series.name.as_str()).collect(),
        }
    }

    /// Everything that the vertical axis must have room for.
    fn heights(&self) -> Vec<f64> {
        match self {
            Self::Bars(bars) if bars.arrangement == Arrangement::Stacked => bars.tops(),
            Self::Bars(bars) => bars
                .series
                .iter()
                .flat_map(|series| &series.values)
                .flat_map(|value| value.numbers())
                .collect(),
            Self::Lines(lines) => {
                let points = lines.series.iter().flat_map(|series| &series.values);
                points.flat_map(|(_, value)| value.numbers()).collect()
            }
        }
    }
}

impl Bars {
    /// Of each category that has a value.
    fn sums(&self) -> Vec<f64> {
        (0..self.categories.len()).filter_map(|index| self.sum(index)).collect()
    }

    /// Of one category; `None` if it has no value.
    fn sum(&self, index: usize) -> Option<f64> {
        self.total(index, |name| self.beneath.as_deref() != Some(name))
    }

    /// Where bars on each other end.
    fn tops(&self) -> Vec<f64> {
        (0..self.categories.len()).filter_map(|index| self.total(index, |_| true)).collect()
    }

    fn total(&self, index: usize, counts: impl Fn(&str) -> bool) -> Option<f64> {
        let series = self.series.iter().filter(|series| counts(&series.name));
        let values = series.filter_map(|series| series.values.get(index)?.value);
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }
}

impl Figure {
    /// The figure as SVG.
    pub fn svg(&self) -> Result<String, Failure> {
        self.check()?;
        Ok(svg::draw(self))
    }

    /// Whether it can be drawn; the error says what is wrong.
    fn check(&self) -> Result<(), Failure> {
        if self.panels.is_empty() {
            return Err(Failure::new("plot: found nothing to show, expected one panel at least"));
        }
        self.panels.iter().try_for_each(Panel::check)
    }
}

impl Panel {
    fn check(&self) -> Result<(), Failure> {
        let what = &self.y.label;
        let count = self.body.names().len();
        if count == 0 || self.body.heights().is_empty() {
            return Err(Failure::new(format!("plot of {what}: found no number, expected one at least")));
        }
        if count > SERIES_MAX {
            return Err(Failure::new(format!(
                "plot of {what}: found {count} series, expected at most {SERIES_MAX}, which a reader can tell apart"
            )));
        }
        let bands = self.bands.iter().flat_map(|band| [band.low, band.high]);
        bands.chain(self.body.heights()).try_for_each(|number| shown(what, self.y.scale, number))?;
        match &self.body {
            Body::Bars(bars) => bars.check(what, self.y.scale),
            Body::Lines(lines) => {
                let places = lines.series.iter().flat_map(|series| &series.values).map(|(x, _)| *x);
                let named = lines.ticks.iter().map(|(x, _)| *x);
                places.chain(named).try_for_each(|x| shown(&lines.x.label, lines.x.scale, x))
            }
        }
    }
}

/// From this number on, a time is shown in the next unit.
const NEXT_UNIT: f64 = 1e3;
/// Times from small to large, a thousand of each to the next.
const TIMES: [&str; 4] = ["ns", "\u{b5}s", "ms", "s"];

impl Panel {
    /// Times in a unit in which they are no long numbers.
    pub fn in_short_times(mut self) -> Self {
        let largest = self.body.heights().iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let Some(at) = TIMES.iter().position(|unit| self.y.unit.as_deref() == Some(unit)) else {
            return self;
        };
        let (mut factor, mut at) = (1.0, at);
        while largest / factor >= NEXT_UNIT && at + 1 < TIMES.len() {
            (factor, at) = (factor * 1e3, at + 1);
        }
        self.y.unit = Some(TIMES[at].to_owned());
        let shorter = |value: &mut Value| {
            value.value = value.value.map(|number| number / factor);
            value.range = value.range.map(|(low, high)| (low / factor, high / factor));
        };
        match &mut self.body {
            Body::Bars(bars) => {
                bars.series.iter_mut().flat_map(|series| &mut series.values).for_each(shorter)
            }
            Body::Lines(lines) => {
                let points = lines.series.iter_mut().flat_map(|series| &mut series.values);
                points.for_each(|(_, value)| shorter(value));
            }
        }
        for band in &mut self.bands {
            (band.low, band.high) = (band.low / factor, band.high / factor);
        }
        self
    }
}

impl Bars {
    fn check(&self, what: &str, scale: Scale) -> Result<(), Failure> {
        let count = self.categories.len() * self.series.len();
        if count > BARS_MAX {
            return Err(Failure::new(format!(
                "plot of {what}: found {count} bars, expected at most {BARS_MAX}"
            )));
        }
        if self.arrangement == Arrangement::Grouped {
            return Ok(());
        }
        if scale == Scale::Log {
            return Err(Failure::new(format!(
                "plot of {what}: parts of a sum mean nothing on a logarithmic axis; take one of both away"
            )));
        }
        let parts = self.series.iter().flat_map(|series| &series.values).filter_map(|value| value.value);
        match parts.into_iter().find(|part| !(0.0..=VALUE_MAX).contains(part)) {
            Some(part) => Err(Failure::new(format!(
                "plot of {what}: found {part}, expected parts of a sum of 0 to {VALUE_MAX:e}"
            ))),
            None => Ok(()),
        }
    }
}

fn shown(what: &str, scale: Scale, number: f64) -> Result<(), Failure> {
    let (fits, expected) = match scale {
        Scale::Linear => (number.abs() <= VALUE_MAX, format!("a number of at most {VALUE_MAX:e}")),
        Scale::Log => (
            (LOG_MIN..=VALUE_MAX).contains(&number),
            format!("{LOG_MIN:e} to {VALUE_MAX:e} on a logarithmic axis"),
        ),
    };
    if fits {
        Ok(())
    } else {
        Err(Failure::new(format!("plot of {what}: found {number}, expected {expected}")))
    }
}
