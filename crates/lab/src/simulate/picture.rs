//! The table of several runs as a plot: parts of the write amplification by scheme, or any figure by scheme
//! or over what was swept.

use super::Arguments;
use super::figures::{Figures, NAMES, Row};
use super::grid::Axis;
use crate::failure::Failure;
use crate::plot::figure::{Kind, Spec, number, of_table};
use crate::plot::file::Target;
use crate::plot::options::PlotOptions;
use crate::plot::table::Table;
use crate::provenance;

/// Columns that are no figure of their own: what users write, so far as it is not overwritten in memory,
/// what RAID and what the SSDs' GC add to that.
const PARTS: [&str; 3] = ["user data", "RAID", "GC of the SSDs"];
/// What users write and no device sees: bars start from it.
const ABSORBED: &str = "absorbed in memory, not written";

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
            Some(target) => target.write(&of_table(&table(axes, rows), &self.spec(axes, rows))?),
            None => Ok(()),
        }
    }

    /// The first axis of numbers is the horizontal one; seeds are repetitions. The scheme, or what is left,
    /// tells lines or bars apart.
    fn spec(&self, axes: &[Axis], rows: &[Row]) -> Spec {
        let names = |axes: &[&Axis]| axes.iter().map(|axis| axis.option.clone()).collect::<Vec<_>>();
        let (seeds, shown): (Vec<&Axis>, Vec<&Axis>) = axes.iter().partition(|axis| axis.option == "seed");
        let is_numbers =
            |axis: &Axis| axis.values.len() > 1 && axis.values.iter().all(|value| number(value).is_some());
        let over = shown.iter().position(|axis| is_numbers(axis));
        let spec = Spec {
            over: if shown.is_empty() { Vec::new() } else { names(&seeds) },
            width: self.options.width(),
            about: provenance::of_picture(),
            ..Spec::default()
        };
        let value = self.value.unwrap_or("write_amplification").to_owned();
        if let Some(at) = over {
            let rest: Vec<&Axis> =
                shown.iter().enumerate().filter(|&(index, _)| index != at).map(|(_, axis)| *axis).collect();
            return Spec { x: names(&shown[at..=at]), y: vec![value], series: names(&rest), ..spec };
        }
        // Parts of a sum have no spread; means of several seeds are shown whole.
        if self.value.is_none() && spec.over.is_empty() {
            let y_label = Some("write amplification of the SSDs (flash bytes per user byte)".to_owned());
            let x = if shown.is_empty() { names(&seeds) } else { names(&shown) };
            // What is nowhere is no part.
            let there = |(index, part): (usize, &str)| {
                let any = rows.iter().any(|row| parts(&row.figures)[index] > 0.0);
                any.then(|| part.to_owned())
            };
            let names = [ABSORBED].into_iter().chain(PARTS).enumerate();
            let y: Vec<String> = names.filter_map(there).collect();
            let beneath = Some(ABSORBED.to_owned()).filter(|name| y.contains(name));
            return Spec { x, y, y_label, beneath, kind: Some(Kind::Stacked), ..spec };
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

fn table(axes: &[Axis], rows: &[Row]) -> Table {
    let mut keys: Vec<String> = axes.iter().map(|axis| axis.option.clone()).collect();
    keys.extend(NAMES.iter().chain(&["lifespan", ABSORBED]).chain(&PARTS).map(|key| (*key).to_owned()));
    let cells = |row: &Row| {
        // A flag is on or off, which says little without its name.
        let named = |(axis, value): (&Axis, &String)| match value.as_str() {
            "on" => axis.option.clone(),
            "off" => format!("no {}", axis.option),
            _ => value.clone(),
        };
        let mut cells: Vec<String> = axes.iter().zip(&row.values).map(named).collect();
        cells.extend(row.figures.cells());
        cells.push(row.lifespan.map_or_else(String::new, |lifespan| lifespan.to_string()));
        cells.extend(parts(&row.figures).iter().map(ToString::to_string));
        cells
    };
    Table::new(keys, rows.iter().map(cells).collect())
}

/// What was absorbed, and the parts of what was written, per byte of users.
fn parts(figures: &Figures) -> [f64; 4] {
    let (raid, all) = (figures.get("raid_write_amplification"), figures.get("write_amplification"));
    let absorbed = figures.get("absorbed_share").clamp(0.0, 1.0);
    let user = raid.min(1.0 - absorbed);
    [absorbed, user, raid - user, (all - raid).max(0.0)]
}
