//! From columns of a table to a figure: which are the axes, which tells series apart, whether it is bars or
//! lines.

use super::style::scheme_rank;
use super::table::{Row, Table};
use super::{
    Arrangement, Axis, Band, Bars, Body, Figure, Lines, Marks, Panel, Scale, Series, TIMES, Value, Width,
    labels, scale,
};
use crate::failure::Failure;
use clap::ValueEnum;
use node::units::parse_size;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Numbers this far apart are shown on a logarithmic axis, unless somebody says which.
const LOG_RATIO: f64 = 16.0;
/// So many numbers are named on the horizontal axis; more get round ticks.
const NAMED_MAX: usize = 12;

/// Bars or lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// By category, series side by side.
    Bars,
    /// By category, series on each other.
    Stacked,
    /// Over a number.
    Lines,
}

/// In which order categories and series stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// As their rows do.
    #[default]
    OfRows,
    /// Numbers by size, schemes from the plain to the elaborate, others as their rows do: rows come in the
    /// order in which parallel runs ended.
    OfValues,
}

/// Which columns are shown how.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// The horizontal axis; several columns are one category.
    pub x: Vec<String>,
    /// The vertical axis; several columns are series.
    pub y: Vec<String>,
    /// The one of `y` that bars on each other start from and that is no part of their sum.
    pub beneath: Option<String>,
    /// What tells series apart.
    pub series: Vec<String>,
    /// Rows that differ in these alone are one point: their mean, from least to most.
    pub over: Vec<String>,
    /// Of categories and series.
    pub order: Order,
    /// Lines if `x` is one column of numbers, if not said.
    pub kind: Option<Kind>,
    /// Of the horizontal axis of lines; by the numbers, if not said.
    pub x_scale: Option<Scale>,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// Instead of the column's.
    pub x_label: Option<String>,
    /// Instead of the column's.
    pub y_label: Option<String>,
    /// Ranges to compare with.
    pub bands: Vec<Band>,
    /// Above everything.
    pub title: Option<String>,
    /// How wide it is printed.
    pub width: Width,
    /// What made it.
    pub about: String,
}

/// Values of a series by place, in the order of their first rows.
struct Points {
    /// Names of the places.
    places: Vec<String>,
    /// Name of each series, and what it has where.
    series: Vec<(String, Vec<Vec<Sample>>)>,
}

/// A cell of the vertical axis.
struct Sample {
    row: usize,
    over: Option<String>,
    value: Option<f64>,
}

/// The figure that shows these columns.
pub fn of_table(table: &Table, spec: &Spec) -> Result<Figure, Failure> {
    if table.rows.is_empty() {
        return Err(Failure::new("plot: found a table without rows, expected one at least"));
    }
    let points = points(table, spec)?;
    let numbers: Vec<Option<f64>> = points.places.iter().map(|place| number(place)).collect();
    let all_numbers: Option<Vec<f64>> = numbers.iter().copied().collect();
    let kind = spec.kind.unwrap_or(match &all_numbers {
        Some(numbers) if spec.x.len() == 1 && numbers.len() > 1 => Kind::Lines,
        Some(_) | None => Kind::Bars,
    });
    let label = match (&spec.x_label, spec.x.as_slice()) {
        (Some(label), _) => Some(label.clone()),
        (None, [key]) if key != "scheme" => {
            let (label, unit) = labels::of(key);
            // A size among the names has its unit.
            let said = unit.filter(|_| points.places.iter().all(|place| place.parse::<f64>().is_ok()));
            Some(said.map_or(label.clone(), |unit| format!("{label} ({unit})")))
        }
        (None, _) => None,
    };
    let body = match kind {
        Kind::Bars => bars(points, label, Arrangement::Grouped, spec)?,
        Kind::Stacked => bars(points, label, Arrangement::Stacked, spec)?,
        Kind::Lines => {
            let wrong = points.places.iter().zip(&numbers).find(|(_, number)| number.is_none());
            if let Some((place, _)) = wrong {
                let x = spec.x.join(",");
                return Err(Failure::new(format!("--x {x}: found {place:?}, expected numbers for lines")));
            }
            lines(points, &numbers.into_iter().flatten().collect::<Vec<_>>(), label, spec)?
        }
    };
    let y = vertical(spec)?;
    let panel = Panel { heading: None, y, body, bands: spec.bands.clone() }.in_short_times();
    let legend = match spec.series.as_slice() {
        [key] if key != "scheme" && spec.y.len() == 1 => Some(labels::of(key).0),
        _ => None,
    };
    Ok(Figure {
        legend,
        title: spec.title.clone(),
        about: spec.about.clone(),
        width: spec.width,
        panels: vec![panel],
    })
}

/// The vertical axis.
fn vertical(spec: &Spec) -> Result<Axis, Failure> {
    let scale = if spec.log_y { Scale::Log } else { Scale::Linear };
    if let Some(label) = &spec.y_label {
        return Ok(Axis { label: label.clone(), unit: None, scale });
    }
    let named: Vec<(String, Option<String>)> = spec.y.iter().map(|key| labels::of(key)).collect();
    match named.as_slice() {
        [(label, unit)] => Ok(Axis { label: label.clone(), unit: unit.clone(), scale }),
        [(_, Some(unit)), rest @ ..]
            if TIMES.contains(&unit.as_str())
                && rest.iter().all(|(_, other)| other.as_ref() == Some(unit)) =>
        {
            Ok(Axis { label: "time".to_owned(), unit: Some(unit.clone()), scale })
        }
        [(_, Some(unit)), rest @ ..] if rest.iter().all(|(_, other)| other.as_ref() == Some(unit)) => {
            Ok(Axis { label: unit.clone(), unit: None, scale })
        }
        _ => Err(Failure::new(format!(
            "--y {}: found columns of different or unknown units, expected --y-label to say what they share",
            spec.y.join(",")
        ))),
    }
}

/// Sorts the rows by place and series.
fn points(table: &Table, spec: &Spec) -> Result<Points, Failure> {
    let columns = |option: &str, keys: &[String]| -> Result<Vec<usize>, Failure> {
        keys.iter().map(|key| table.column(option, key)).collect()
    };
    let (x, y, series) =
        (columns("--x", &spec.x)?, columns("--y", &spec.y)?, columns("--series", &spec.series)?);
    let over = columns("--over", &spec.over)?;
    let mut points = Points { places: Vec::new(), series: Vec::new() };
    for row in ordered(table, spec.order, &[x.as_slice(), series.as_slice()].concat()) {
        let cells = |columns: &[usize], between: &str| {
            let cells = columns.iter().filter_map(|&column| row.cells.get(column));
            cells.map(String::as_str).collect::<Vec<_>>().join(between)
        };
        let place = cells(&x, "\n");
        let place = points.places.iter().position(|known| *known == place).unwrap_or_else(|| {
            points.places.push(place);
            points.places.len() - 1
        });
        for (&column, key) in y.iter().zip(&spec.y) {
            let mut name = cells(&series, ", ");
            if spec.y.len() > 1 {
                let label = labels::of(key).0;
                name = if name.is_empty() { label } else { format!("{name}: {label}") };
            }
            let over = (!over.is_empty()).then(|| cells(&over, "\n"));
            let sample = Sample { row: row.number, over, value: cell(row, column, key)? };
            points.add(name, place, sample)?;
        }
    }
    Ok(points)
}

/// The rows, sorted by some columns.
fn ordered<'a>(table: &'a Table, order: Order, columns: &[usize]) -> Vec<&'a Row> {
    let mut rows: Vec<(Vec<f64>, &Row)> = table.rows.iter().map(|row| (Vec::new(), row)).collect();
    for &column in columns.iter().filter(|_| order == Order::OfValues) {
        let cells: Vec<&str> =
            table.rows.iter().map(|row| row.cells.get(column).map_or("", String::as_str)).collect();
        let schemes: Option<Vec<usize>> = cells.iter().map(|cell| scheme_rank(cell)).collect();
        let numbers: Option<Vec<f64>> = cells.iter().map(|cell| number(cell)).collect();
        let ranks = match (schemes, numbers) {
            (Some(schemes), _) => schemes.iter().map(|&rank| rank as f64).collect(),
            (None, Some(numbers)) => numbers,
            (None, None) => {
                let mut known: HashMap<&str, usize> = HashMap::new();
                let mut rank = |cell| {
                    let next = known.len();
                    *known.entry(cell).or_insert(next) as f64
                };
                cells.iter().map(|cell| rank(cell)).collect()
            }
        };
        rows.iter_mut().zip(ranks).for_each(|((key, _), rank)| key.push(rank));
    }
    rows.sort_by(|(one, _), (other, _)| {
        let differing = one.iter().zip(other).map(|(one, other)| one.total_cmp(other));
        differing.fold(Ordering::Equal, Ordering::then)
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

impl Points {
    fn add(&mut self, name: String, place: usize, sample: Sample) -> Result<(), Failure> {
        let index = self.series.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.series.push((name, Vec::new()));
            self.series.len() - 1
        });
        let (name, places) = &mut self.series[index];
        if places.len() <= place {
            places.resize_with(place + 1, Vec::new);
        }
        let samples = &mut places[place];
        if let Some(other) = samples.iter().find(|other| other.over == sample.over) {
            let at = self.places[place].replace('\n', " ");
            let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
            return Err(Failure::new(format!(
                "plot: found rows {} and {} for {at}{of}, expected one; tell them apart with --series, --where or --over",
                other.row, sample.row
            )));
        }
        samples.push(sample);
        Ok(())
    }
}

/// A number of the vertical axis; nothing if it says that there is none.
fn cell(row: &Row, column: usize, key: &str) -> Result<Option<f64>, Failure> {
    let text = row.cells.get(column).map(String::as_str).unwrap_or_default();
    if ["", "-", "null", "n/a"].contains(&text) || text.eq_ignore_ascii_case("nan") {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(value)),
        Ok(_) | Err(_) => {
            Err(Failure::new(format!("row {}, column {key}: found {text:?}, expected a number", row.number)))
        }
    }
}

/// A number of the horizontal axis: plain, or a size.
pub fn number(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|value| value.is_finite());
    plain.or_else(|| parse_size(text).ok().map(|bytes| bytes as f64))
}

/// Mean and spread of what was measured.
fn value(samples: &[Sample]) -> Value {
    let values: Vec<f64> = samples.iter().filter_map(|sample| sample.value).collect();
    match values.as_slice() {
        [] => Value::default(),
        [value] => Value::of(*value),
        values => {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = values.iter().map(|value| value / values.len() as f64).sum::<f64>();
            // What came out alike each time has no spread, and a bar of no length would look like one.
            Value { value: Some(mean), range: Some((low, high)).filter(|(low, high)| low < high) }
        }
    }
}

fn bars(
    points: Points,
    label: Option<String>,
    arrangement: Arrangement,
    spec: &Spec,
) -> Result<Body, Failure> {
    if spec.x_scale == Some(Scale::Log) {
        return Err(Failure::new(format!(
            "--log-x: --x {} gives categories, expected numbers",
            spec.x.join(",")
        )));
    }
    let series = points.series.into_iter().map(|(name, places)| {
        let values = places.iter().map(|samples| value(samples)).collect();
        Series { name, values }
    });
    let series = series.collect();
    let beneath = spec.beneath.as_ref().map(|key| labels::of(key).0);
    Ok(Body::Bars(Bars { label, categories: points.places, arrangement, series, beneath }))
}

fn lines(points: Points, numbers: &[f64], label: Option<String>, spec: &Spec) -> Result<Body, Failure> {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let wide = numbers.len() > 2 && low > 0.0 && high / low >= LOG_RATIO;
    let scale = spec.x_scale.unwrap_or(if wide { Scale::Log } else { Scale::Linear });
    // Zero and numbers that are far apart fit neither axis: they stand side by side, which the label says.
    let least = numbers.iter().copied().filter(|&number| number > 0.0).fold(f64::INFINITY, f64::min);
    let beside =
        spec.x_scale.is_none() && low == 0.0 && high / least >= LOG_RATIO && numbers.len() <= NAMED_MAX;
    let (places, label) = if beside {
        let rank = |number: &f64| numbers.iter().filter(|other| *other < number).count() as f64;
        let label = label.map(|label| format!("{label}, not to scale"));
        (numbers.iter().map(rank).collect(), label)
    } else {
        (numbers.to_vec(), label)
    };
    let mut ticks: Vec<(f64, String)> = Vec::new();
    if numbers.len() <= NAMED_MAX {
        let name = |place: &String, number: f64| match place.parse::<f64>() {
            Ok(_) if place.len() > 6 => scale::short(number),
            Ok(_) | Err(_) => place.clone(),
        };
        let named = points.places.iter().zip(numbers).map(|(place, &number)| name(place, number));
        ticks.extend(places.iter().copied().zip(named));
        ticks.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    let series = points.series.into_iter().map(|(name, samples)| {
        let points = samples.iter().zip(&places).filter(|(samples, _)| !samples.is_empty());
        Series { name, values: points.map(|(samples, &x)| (x, value(samples))).collect() }
    });
    let x = Axis { label: label.unwrap_or_default(), unit: None, scale };
    Ok(Body::Lines(Lines { x, ticks, marks: Marks::Points, series: series.collect() }))
}
