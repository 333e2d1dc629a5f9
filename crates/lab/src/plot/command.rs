//! `plot`: columns of a CSV file as SVG or PNG.

use crate::Exit;
use crate::failure::Failure;
use crate::plot::figure::{Kind, Order, Spec, of_table};
use crate::plot::file::Target;
use crate::plot::table::{CSV_BYTES_MAX, Table};
use crate::plot::{Band, Scale, Width};
use crate::provenance;
use clap::Args;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Options of `plot`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The table: names of columns in the first line.
    #[arg(value_name = "RESULTS.csv")]
    table: PathBuf,
    /// Column of the horizontal axis: numbers become lines, anything else bars; several columns are one
    /// category.
    #[arg(long, value_delimiter = ',', required = true, value_name = "KEY")]
    x: Vec<String>,
    /// Column of the vertical axis; of several, each is a series.
    #[arg(long, value_delimiter = ',', required = true, value_name = "KEY")]
    y: Vec<String>,
    /// Columns that tell series apart.
    #[arg(long, value_delimiter = ',', value_name = "KEY")]
    series: Vec<String>,
    /// Rows that differ in these columns alone, such as seed, are one point: their mean, with a bar from
    /// least to most.
    #[arg(long, value_delimiter = ',', value_name = "KEY")]
    over: Vec<String>,
    /// Leave other rows out; may be given several times.
    #[arg(long = "where", value_parser = parse_where, value_name = "KEY=VALUE,...")]
    filters: Vec<(String, Vec<String>)>,
    /// Bars side by side, bars on each other, or lines, instead of what the horizontal axis says.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Logarithmic horizontal axis; otherwise numbers that are far apart make it one.
    #[arg(long, conflicts_with = "linear_x")]
    log_x: bool,
    /// Linear horizontal axis.
    #[arg(long)]
    linear_x: bool,
    /// Logarithmic vertical axis.
    #[arg(long)]
    log_y: bool,
    /// Shade a range of the vertical axis, such as a paper's; may be given several times.
    #[arg(long, value_parser = parse_band, allow_hyphen_values = true, value_name = "LOW:HIGH[:NAME]")]
    band: Vec<Band>,
    /// Label of the horizontal axis, with its unit.
    #[arg(long, value_name = "TEXT")]
    x_label: Option<String>,
    /// Label of the vertical axis, with its unit.
    #[arg(long, value_name = "TEXT")]
    y_label: Option<String>,
    /// Title above the plot.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Width in print: a column (3.5 in) or the page (7.16 in).
    #[arg(long, value_enum, default_value = "column")]
    width: Width,
    /// The plot; its name ends in .svg or .png.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// A column and the values kept.
fn parse_where(text: &str) -> Result<(String, Vec<String>), String> {
    match text.split_once('=') {
        Some((key, values)) if !key.is_empty() => {
            Ok((key.to_owned(), values.split(',').map(str::to_owned).collect()))
        }
        Some(_) | None => {
            Err(format!("found {text:?}, expected a column and values such as geometry=6+2,7+1"))
        }
    }
}

/// Two numbers and perhaps a name.
fn parse_band(text: &str) -> Result<Band, String> {
    let expected = || format!("found {text:?}, expected a range such as 45.6:54.9:paper");
    let mut parts = text.splitn(3, ':');
    let mut end = || -> Option<f64> { parts.next()?.parse().ok().filter(|end: &f64| end.is_finite()) };
    let (low, high) = end().zip(end()).filter(|(low, high)| low <= high).ok_or_else(expected)?;
    Ok(Band { name: parts.next().unwrap_or_default().to_owned(), low, high })
}

/// Runs `plot`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let target = Target::new("--out", &arguments.out)?;
    let mut table = read(&arguments.table)?;
    for (key, values) in &arguments.filters {
        table.keep(key, values)?;
    }
    let x_scale = match (arguments.log_x, arguments.linear_x) {
        (true, _) => Some(Scale::Log),
        (false, true) => Some(Scale::Linear),
        (false, false) => None,
    };
    let spec = Spec {
        x: arguments.x.clone(),
        y: arguments.y.clone(),
        beneath: None,
        series: arguments.series.clone(),
        over: arguments.over.clone(),
        order: Order::OfValues,
        kind: arguments.kind,
        x_scale,
        log_y: arguments.log_y,
        x_label: arguments.x_label.clone(),
        y_label: arguments.y_label.clone(),
        bands: arguments.band.clone(),
        title: arguments.title.clone(),
        width: arguments.width,
        about: provenance::of_picture(),
    };
    target.write(&of_table(&table, &spec)?)?;
    Ok(0)
}

fn read(path: &Path) -> Result<Table, Failure> {
    let named = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| named(&error))?;
    file.take(CSV_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| named(&error))?;
    if bytes.len() as u64 > CSV_BYTES_MAX {
        return Err(named(&format!("found more than {CSV_BYTES_MAX} bytes, expected a table of results")));
    }
    let text = String::from_utf8(bytes).map_err(|error| named(&format!("expected text: {error}")))?;
    Table::of_csv(&path.display().to_string(), &text)
}
