//! The table of several runs as a plot: parts of the write amplification by scheme, or any figure by scheme or over what
//! was swept.

use super::Arguments;
use super::figures::NAMES;
use super::grid::Axis;
use super::sweep::Row;
use crate::failure::Failure;
use crate::plot::figure::{Kind, Spec, number, of_table};
use crate::plot::file::Target;
use crate::plot::options::PlotOptions;
use crate::plot::table::Table;

/// Columns that are no figure of their own: what users write, what RAID and what the SSDs' GC add to that.
const PARTS: [&str; 3] = ["user data", "RAID", "GC of the SSDs"];

/// The plot asked for, if one is.
pub struct Picture<'a> {
    target: Option<Target>,
    value: Option<&'a str>,
    options: &'a PlotOptions,
    schemes: bool,
}

impl<'a> Picture<'a> {
    /// Checks what can be checked before the runs.
    pub fn new(arguments: &'a Arguments, axes: &[Axis]) -> Result<Self, Failure> {
        let options = &arguments.plot;
        if options.wanted() && axes.is_empty() {
            return Err(Failure::new(
                "--plot: found one run alone, expected several to show side by side; add --compare or --sweep",
            ));
        }
        let known: Vec<&str> = NAMES.into_iter().chain(["lifespan"]).collect();
        let schemes = axes.iter().any(|axis| axis.option == "scheme");
        Ok(Self { target: options.target()?, value: options.value(&known)?, options, schemes })
    }

    /// Draws it.
    pub fn draw(&self, axes: &[Axis], rows: &[Row]) -> Result<(), Failure> {
        match &self.target {
            Some(target) => target.write(&of_table(&table(axes, rows), &self.spec(axes))?),
            None => Ok(()),
        }
    }

    /// The first axis of numbers is the horizontal one; seeds are repetitions. The scheme, or what is left, tells lines or
    /// bars apart.
    fn spec(&self, axes: &[Axis]) -> Spec {
        let names = |axes: &[&Axis]| axes.iter().map(|axis| axis.option.clone()).collect::<Vec<_>>();
        let (seeds, shown): (Vec<&Axis>, Vec<&Axis>) = axes.iter().partition(|axis| axis.option == "seed");
        let is_numbers =
            |axis: &Axis| axis.values.len() > 1 && axis.values.iter().all(|value| number(value).is_some());
        let over = shown.iter().position(|axis| is_numbers(axis));
        let spec = Spec {
            over: seeds.first().filter(|_| !shown.is_empty()).map(|axis| axis.option.clone()),
            width: self.options.width(),
            about: about(axes),
            ..Spec::default()
        };
        let value = self.value.unwrap_or("write_amplification").to_owned();
        if let Some(at) = over {
            let rest: Vec<&Axis> =
                shown.iter().enumerate().filter(|&(index, _)| index != at).map(|(_, axis)| *axis).collect();
            return Spec { x: names(&shown[at..=at]), y: vec![value], series: names(&rest), ..spec };
        }
        // Parts of a sum have no spread; means of several seeds are shown whole.
        if self.value.is_none() && spec.over.is_none() {
            let y_label = Some("write amplification (flash bytes per user byte)".to_owned());
            let x = if shown.is_empty() { names(&seeds) } else { names(&shown) };
            let y = PARTS.map(str::to_owned).to_vec();
            return Spec { x, y, y_label, kind: Some(Kind::Stacked), ..spec };
        }
        let (x, series) = match shown.as_slice() {
            [] => (names(&seeds), Vec::new()),
            [one] => (vec![one.option.clone()], Vec::new()),
            [rest @ .., last] => (names(rest), vec![last.option.clone()]),
        };
        let kind = (!self.schemes && shown.is_empty()).then_some(Kind::Bars);
        Spec { x, y: vec![value], series, kind, ..spec }
    }
}

/// What made the figure.
fn about(axes: &[Axis]) -> String {
    let axes = axes.iter().map(|axis| format!("{}={}", axis.option, axis.values.join(",")));
    let axes = axes.collect::<Vec<_>>().join(" ");
    format!("elastripe {} simulate: {axes}", env!("CARGO_PKG_VERSION"))
}

fn table(axes: &[Axis], rows: &[Row]) -> Table {
    let mut keys: Vec<String> = axes.iter().map(|axis| axis.option.clone()).collect();
    keys.extend(NAMES.iter().chain(&["lifespan"]).chain(&PARTS).map(|key| (*key).to_owned()));
    let cells = |row: &Row| {
        // A flag is on or off, which says little without its name.
        let named = |(axis, value): (&Axis, &String)| match value.as_str() {
            "on" => axis.option.clone(),
            "off" => format!("no {}", axis.option),
            _ => value.clone(),
        };
        let mut cells: Vec<String> = axes.iter().zip(&row.values).map(named).collect();
        cells.extend(row.figures.values().iter().map(ToString::to_string));
        cells.push(row.lifespan.map_or_else(String::new, |lifespan| lifespan.to_string()));
        let (raid, all) =
            (row.figures.get("raid_write_amplification"), row.figures.get("write_amplification"));
        // With a cache less arrives at the SSDs than users write: RAID adds nothing then.
        let user = raid.min(1.0);
        cells.extend([user, raid - user, (all - raid).max(0.0)].map(|part| part.to_string()));
        cells
    };
    Table::new(keys, rows.iter().map(cells).collect())
}
