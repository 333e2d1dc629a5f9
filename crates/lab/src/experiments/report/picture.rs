//! The pictures of an experiment, drawn as everything else is.

use super::super::declare::{Plot, is_picked};
use super::super::results::Results;
use super::tables;
use crate::failure::Failure;
use crate::plot::figure::{Order, Spec, of_table};
use crate::plot::table::Table;
use crate::plot::{Band, Width};

/// Name of the column that is shown.
const VALUE: &str = "value";
/// Name of the column of seeds.
const SEED: &str = "seed";

/// A picture as SVG without a declaration of its own; none if no cell is there.
pub fn svg(plot: &Plot, table: &tables::Table, results: &Results) -> Result<Option<String>, Failure> {
    let axes: Vec<&str> = plot.x.iter().chain(plot.series).copied().collect();
    let mut rows = Vec::new();
    for row in table.rows.iter().filter(|row| is_picked(&row.key, plot.pick)) {
        for (seed, view) in results.by_seed() {
            let Some(value) = plot.what.of(view, &row.key).filter(|value| value.is_finite()) else {
                continue;
            };
            let mut cells: Vec<String> = axes.iter().map(|axis| row.key.label(axis).to_owned()).collect();
            cells.extend([seed.to_string(), format!("{value}")]);
            rows.push(cells);
        }
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let names = |axes: &[&str]| axes.iter().map(|axis| (*axis).to_owned()).collect::<Vec<_>>();
    let keys: Vec<String> = names(&axes).into_iter().chain([SEED.to_owned(), VALUE.to_owned()]).collect();
    let band = |&(name, low, high): &(&str, f64, f64)| Band { name: name.to_owned(), low, high };
    let spec = Spec {
        x: names(plot.x),
        y: vec![VALUE.to_owned()],
        series: names(plot.series),
        over: if results.seeds.len() > 1 { vec![SEED.to_owned()] } else { Vec::new() },
        order: Order::OfRows,
        y_label: Some(plot.label.to_owned()),
        bands: plot.bands.iter().map(band).collect(),
        width: Width::Page,
        about: format!("elastripe {}: {}", results.build.version, plot.title),
        ..Spec::default()
    };
    let drawn = of_table(&Table::new(keys, rows), &spec)?.svg()?;
    // Within a page it is an element like others.
    let from = drawn.find("<svg").unwrap_or(0);
    Ok(drawn.get(from..).map(str::to_owned))
}
