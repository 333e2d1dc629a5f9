//! The tables of all grids: a row per cell, a column per quantity.

use super::super::cells::keys;
use super::super::declare::Grid;
use super::super::results::Results;
use super::super::verdict::{interval, mean};
use super::super::view::{Key, View};

/// The table of a grid.
pub struct Table {
    /// Its grid.
    pub grid: &'static Grid,
    /// A row per cell that a seed has.
    pub rows: Vec<Row>,
    /// Cells that no seed has.
    pub missing: usize,
}

/// A row of one.
pub struct Row {
    /// The cell.
    pub key: Key,
    /// The seeds that have it.
    pub seeds: Vec<u64>,
    /// Each column's values, one per seed for which the quantity means something.
    pub values: Vec<Vec<f64>>,
}

/// All tables.
pub struct Tables(Vec<Table>);

impl Table {
    /// Whether some cells have more seeds than others.
    pub fn has_uneven_seeds(&self) -> bool {
        let first = self.rows.first().map(|row| &row.seeds);
        self.rows.iter().any(|row| Some(&row.seeds) != first)
    }
}

impl Tables {
    /// Computes them.
    pub fn new(grids: &[&'static Grid], results: &Results) -> Self {
        Self(grids.iter().map(|grid| table(grid, results)).collect())
    }

    /// That of a grid.
    pub fn of(&self, name: &str) -> Option<&Table> {
        self.0.iter().find(|table| table.grid.name == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Table> {
        self.0.iter()
    }
}

fn table(grid: &'static Grid, results: &Results) -> Table {
    let mut table = Table { grid, rows: Vec::new(), missing: 0 };
    for (key, ..) in keys(grid) {
        let (seeds, views): (Vec<u64>, Vec<&View>) =
            results.by_seed().filter(|(_, view)| view.has(&key)).unzip();
        if seeds.is_empty() {
            table.missing += 1;
            continue;
        }
        let values = grid.columns.iter().map(|column| {
            let values = views.iter().filter_map(|view| column.what.of(view, &key));
            values.filter(|value| value.is_finite()).collect()
        });
        table.rows.push(Row { values: values.collect(), seeds, key });
    }
    table
}

/// Seeds in words.
pub fn named(seeds: &[u64]) -> String {
    seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// A mean with its interval.
pub fn shown(values: &[f64], digits: usize) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let middle = grouped(&format!("{:.digits$}", mean(values)));
    match interval(values).filter(|half| *half > 0.0) {
        Some(half) => format!("{middle} \u{b1} {}", grouped(&format!("{half:.digits$}"))),
        None => middle,
    }
}

/// Digits in groups of three.
fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    rest.map_or(text.clone(), |rest| format!("{text}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn numbers_are_grouped_and_have_their_interval() {
        assert_eq!(shown(&[1_234_567.25], 1), "1,234,567.2");
        assert_eq!(shown(&[-1234.0], 0), "-1,234");
        assert_eq!(shown(&[123.0, 123.0], 0), "123");
        assert_eq!(shown(&[1.0, 2.0, 3.0], 1), "2.0 \u{b1} 2.5");
        assert_eq!(shown(&[], 1), "-");
    }
}
