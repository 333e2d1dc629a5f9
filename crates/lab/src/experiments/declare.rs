//! What an experiment is made of, as data: loads, grids of cells, quantities, what the paper has.

use super::recorded::Recorded;
use super::view::{Figures, Key, Label, View, percent};
use crate::failure::Failure;
use trace::Profile;

/// An experiment of the papers.
pub struct Experiment {
    /// Its row in the requirements.
    pub id: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// Paper and place.
    pub source: &'static str,
    /// What is run, and what of it is not as in the paper.
    pub setup: &'static str,
    /// The cells; several experiments may share a grid.
    pub grids: &'static [&'static Grid],
    /// What is drawn.
    pub plots: &'static [Plot],
    /// What is not tried yet, by name.
    pub missing: &'static [&'static str],
    /// Where deviations are explained.
    pub evidence: &'static str,
}

/// Cells that are run in the same way.
#[derive(Clone, Copy)]
pub struct Grid {
    /// Its name, which no other grid has.
    pub name: &'static str,
    /// What runs a cell.
    pub engine: Engine,
    /// The first axis, `trace`; none where nothing is replayed.
    pub loads: &'static [&'static Workload],
    /// Options of all cells. What stands in braces is replaced by what loads, points and `scaled` set.
    pub words: &'static str,
    /// The other axes.
    pub axes: &'static [Axis],
    /// Combinations that are left out: cells with all of these labels, any of the labels of an axis.
    pub without: &'static [&'static [(&'static str, &'static [&'static str])]],
    /// Numbers in the words that become smaller with the scale.
    pub scaled: &'static [Scaled],
    /// What the table of the report shows.
    pub columns: &'static [Column],
}

/// A number that becomes smaller with the scale.
pub struct Scaled {
    /// As it stands in braces.
    pub name: &'static str,
    /// At full length.
    pub full: u64,
    /// At least.
    pub least: u64,
}

/// What runs a cell.
#[derive(Clone, Copy)]
pub enum Engine {
    /// `simulate`: the engine over simulated SSDs.
    Simulate,
    /// `replay` over null devices.
    Replay,
    /// `flash run`: one SSD.
    Flash,
    /// `kv bench` in virtual time.
    Store,
    /// The load's figures beside the published ones.
    Statistics,
    /// The load's writes by disk of an array whose parity stays on one.
    Disks,
    /// What new chunks cost if each may go to any device, without an engine.
    FreePlacement,
    /// The stripes that the load's writes touch between commits, without an engine.
    Stripes,
    /// Parity that stays in memory for a while, without an engine.
    ParityCache,
    /// What WAS's table of hot chunks makes of the load's writes, without an engine.
    Hotness,
    /// A function of the words.
    Reckoned(fn(&[&str]) -> Result<Figures, Failure>),
}

impl Engine {
    /// The command that does the same with the same words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simulate => "simulate",
            Self::Replay => "replay",
            Self::Flash => "flash run",
            Self::Store => "kv bench",
            Self::Statistics => "trace info",
            Self::Disks => "writes by disk",
            Self::FreePlacement => "free placement",
            Self::Stripes => "stripes by interval",
            Self::ParityCache => "parity in memory",
            Self::Hotness => "hot chunks",
            Self::Reckoned(_) => "reckoned",
        }
    }
}

/// An axis of a grid.
pub struct Axis {
    /// Its name.
    pub name: &'static str,
    /// What stands on it.
    pub points: &'static [Point],
}

/// A place on an axis.
#[derive(Clone, Copy)]
pub struct Point {
    /// Its label.
    pub label: &'static str,
    /// Options.
    pub words: &'static str,
    /// What it sets for words in braces.
    pub sets: &'static [Label],
}

/// A point that sets nothing.
pub const fn point(label: &'static str, words: &'static str) -> Point {
    Point { label, words, sets: &[] }
}

/// What is replayed.
pub struct Workload {
    /// Its label.
    pub name: &'static str,
    /// What it is made by.
    pub source: Source,
}

/// What makes the requests of a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Source {
    /// A profile at its published length.
    Profile(Profile),
    /// The same without chunks that nothing touches, so that it fits the paper's array.
    Dense(Profile, Kept),
    /// Requests at random places; `count` of them over so many bytes.
    Random {
        /// Uniform or Zipf.
        profile: Profile,
        /// Bytes of the range.
        range_bytes: u64,
        /// Requests at full length.
        count: u64,
    },
    /// 16 KiB writes, Zipf 0.99, over a share of six SSDs of 1 GiB (160 MiB at least below it), so many drive
    /// writes of it; sets `{all}` and `{before}`, the writes and those before the part that counts, and
    /// `{prefill}`, which has full SSDs written whole before.
    Pages {
        /// Of the space.
        percent: u64,
        /// Drive writes.
        drives: u64,
        /// The last of them, which count.
        counted: u64,
    },
    /// What an application with pages of 16 KiB writes into such a share, so many times the share; sets the
    /// same names.
    Application {
        /// A profile that takes a range.
        profile: Profile,
        /// Of the space.
        percent: u64,
        /// Times that the share is written.
        drives: u64,
        /// The last of them, which count.
        counted: u64,
    },
    /// The chunks of a profile's writes that nothing has written before: new writes alone.
    Fresh(Profile),
    /// Requests of 4 KiB, all of one kind, over 1 GiB.
    Plain {
        /// Whether they write, else they read.
        is_write: bool,
        /// Whether each begins where the last one ended, else at random places.
        is_sequential: bool,
        /// Requests at full length.
        count: u64,
    },
    /// Stands for the traces of a folder, one load each.
    Folder,
    /// A trace of it.
    Recorded(&'static Recorded),
}

/// Which requests of a load count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Writes; others are left out.
    Writes,
    /// Reads too.
    ReadsToo,
}

/// A column of a table.
pub struct Column {
    /// Heading, with the unit.
    pub name: &'static str,
    /// Digits behind the point.
    pub digits: usize,
    /// What it shows.
    pub what: Quantity,
}

/// A column of a figure that cells have.
pub const fn column(name: &'static str, digits: usize, what: Quantity) -> Column {
    Column { name, digits, what }
}

/// What is computed of a cell, and of those it is compared with.
#[derive(Clone, Copy)]
pub enum Quantity {
    /// A figure as it is.
    Figure(&'static str),
    /// Percent by which a figure is less than in the cell with these labels instead.
    Less(&'static str, &'static [Label]),
    /// Percent by which it is more.
    More(&'static str, &'static [Label]),
    /// Anything else.
    By(fn(&View, &Key) -> Option<f64>),
}

impl Quantity {
    /// Its value for a cell; none where a cell is missing or it means nothing.
    pub fn of(self, view: &View, key: &Key) -> Option<f64> {
        let both =
            |figure, than: &[Label]| Some((view.get(key, figure)?, view.get(&key.with(than), figure)?));
        match self {
            Self::Figure(figure) => view.get(key, figure),
            Self::Less(figure, than) => {
                both(figure, than).and_then(|(own, other)| percent(other - own, other))
            }
            Self::More(figure, than) => {
                both(figure, than).and_then(|(own, other)| percent(own - other, other))
            }
            Self::By(compute) => compute(view, key),
        }
    }
}

/// A picture of a grid.
pub struct Plot {
    /// Above it.
    pub title: &'static str,
    /// The grid.
    pub grid: &'static str,
    /// Cells that are shown: labels of some axes.
    pub pick: &'static [(&'static str, &'static [&'static str])],
    /// Axes of the horizontal axis.
    pub x: &'static [&'static str],
    /// Axes that tell series apart.
    pub series: &'static [&'static str],
    /// What is shown.
    pub what: Quantity,
    /// Label of the vertical axis.
    pub label: &'static str,
    /// Ranges of the paper: name, low, high.
    pub bands: &'static [(&'static str, f64, f64)],
}

/// A figure that a paper puts forward.
pub struct Headline {
    /// Its row in the requirements.
    pub id: &'static str,
    /// What the paper says.
    pub says: &'static str,
    /// The experiment that it belongs to.
    pub experiment: &'static str,
    /// How it is judged.
    pub check: Check,
}

/// How a headline is judged.
pub enum Check {
    /// By what cells have counted.
    Measured {
        /// All must hold.
        parts: &'static [Part],
        /// Why ours is another where it is, and the rule where the paper gives no number.
        why: &'static str,
    },
    /// It cannot be measured, for this reason.
    NotPossible(&'static str),
}

/// One statement on some cells.
pub struct Part {
    /// The grid.
    pub grid: &'static str,
    /// Its cells: labels of some axes; all labels of the others.
    pub pick: &'static [(&'static str, &'static [&'static str])],
    /// What is computed of each.
    pub what: Quantity,
    /// Its unit.
    pub unit: &'static str,
    /// What the paper has.
    pub paper: Paper,
    /// Of which readings it must hold.
    pub over: Over,
}

/// What a paper says of a quantity. What is printed rounded holds for what rounds to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Paper {
    /// From, to.
    Between(f64, f64),
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
}

/// Of which readings something must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// Of each.
    Each,
    /// Of one at least.
    Any,
    /// Of their mean.
    Mean,
}

impl Paper {
    /// Whether a value is what the paper says, to half of the last digit printed.
    pub fn holds(self, value: f64) -> bool {
        const HALF_A_DIGIT: f64 = 0.05;
        match self {
            Self::Between(low, high) => (low - HALF_A_DIGIT..=high + HALF_A_DIGIT).contains(&value),
            Self::AtLeast(low) => value >= low - HALF_A_DIGIT,
            Self::AtMost(high) => value <= high + HALF_A_DIGIT,
        }
    }

    /// In words.
    pub fn text(self, unit: &str) -> String {
        match self {
            Self::Between(low, high) if low == high => format!("{low} {unit}"),
            Self::Between(low, high) => format!("{low} to {high} {unit}"),
            Self::AtLeast(low) => format!("at least {low} {unit}"),
            Self::AtMost(high) => format!("at most {high} {unit}"),
        }
    }
}

/// Whether a cell is among those picked.
pub fn is_picked(key: &Key, pick: &[(&str, &[&str])]) -> bool {
    pick.iter().all(|(axis, labels)| labels.contains(&key.label(axis)))
}
