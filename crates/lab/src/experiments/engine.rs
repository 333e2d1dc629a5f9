//! How a cell is run: by the library's own commands, with their words as options.

use super::cells::Cell;
use super::declare::{Engine, Workload};
use super::loads::Loads;
use super::view::Figures;
use crate::failure::Failure;
use crate::number::float;
use crate::{flash, replay, simulate};
use clap::{Args, Command, FromArgMatches};
use serde_json::Value;
use trace::{Op, StatsCollector, StatsOptions, compare};

/// What says how long the machine took, and where: no part of what a cell comes to.
const NOT_COUNTED: [&str; 12] = [
    "seconds",
    "requests_per_second",
    "latency_us",
    "provenance",
    "config",
    "memory",
    "cpu_seconds",
    "flash_pages_written_per_cpu_second",
    "seed",
    "version",
    "synthetic",
    "verify",
];

/// Runs a cell.
pub fn run(cell: &Cell, loads: &Loads) -> Result<Figures, Failure> {
    let at = (cell.scale, cell.seed);
    match cell.engine {
        Engine::Simulate => {
            let arguments: simulate::Arguments = parse("simulate", cell)?;
            let load = loaded(cell)?;
            let named =
                simulate::measure(&arguments, |trace, chunk_bytes| loads.get(load, at, trace, chunk_bytes))?;
            Ok(named.into_iter().collect())
        }
        Engine::Replay => {
            let arguments: replay::Arguments = parse("replay", cell)?;
            let load = loaded(cell)?;
            let counted =
                replay::measure(&arguments, |trace, chunk_bytes| loads.get(load, at, trace, chunk_bytes))?;
            Ok(numbers(&counted))
        }
        Engine::Flash => {
            let arguments: flash::RunArguments = parse("flash run", cell)?;
            Ok(numbers(&flash::measure(&arguments)?))
        }
        Engine::Statistics => statistics(cell, loaded(cell)?),
        Engine::Disks => disks(cell, loaded(cell)?),
        Engine::Reckoned(compute) => {
            let words: Vec<&str> = cell.words.iter().map(String::as_str).collect();
            compute(&words)
        }
    }
}

fn loaded(cell: &Cell) -> Result<&'static Workload, Failure> {
    cell.load.ok_or_else(|| Failure::new(format!("{}: found no load, expected one", cell.key.grid)))
}

/// The options of a command from a cell's words.
fn parse<A: Args + FromArgMatches>(command: &'static str, cell: &Cell) -> Result<A, Failure> {
    let seed = ["--seed".to_owned(), cell.seed.to_string()];
    let words = cell.words.iter().cloned().chain(seed);
    let parser = A::augment_args(Command::new(command).no_binary_name(true));
    let wrong = |error: clap::Error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::new(format!("{}: {command} {}: {first}", cell.key.grid, cell.words.join(" ")))
    };
    let matches = parser.try_get_matches_from(words).map_err(wrong)?;
    A::from_arg_matches(&matches).map_err(wrong)
}

/// All numbers of an object that depend on nothing but the inputs, named by their way.
fn numbers(counted: &Value) -> Figures {
    let mut found = Figures::new();
    collect(counted, "", &mut found);
    found
}

fn collect(value: &Value, name: &str, found: &mut Figures) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Number(number) => {
            found.extend(number.as_f64().map(|number| (name.to_owned(), number)));
        }
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !NOT_COUNTED.contains(&key.as_str())) {
                collect(value, &below(key), found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, &below(&index.to_string()), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The figures that papers print of a load: reached, printed, and how far apart in percent.
fn statistics(cell: &Cell, load: &Workload) -> Result<Figures, Failure> {
    let mut generator = load.generator(cell.scale, cell.seed)?;
    let label = *generator.label();
    let mut collector = StatsCollector::new(StatsOptions::default())?;
    for request in &mut generator {
        collector.add(&request)?;
    }
    let (stats, comparisons) = compare(&label, collector);
    let mut figures = Figures::new();
    figures.insert("chunk_writes".to_owned(), float(stats.chunk_write_count));
    figures.insert("unique_chunks".to_owned(), float(stats.unique_chunk_count));
    figures.insert("top_fifth_percent".to_owned(), stats.top_fifth_percent());
    let mut worst: f64 = 0.0;
    for comparison in comparisons.into_iter().flatten() {
        let name = format!("{} ({})", comparison.target.statistic.name(), comparison.target.source.name());
        figures.insert(format!("{name}: reached"), comparison.reached);
        figures.insert(format!("{name}: printed"), comparison.target.value);
        worst = worst.max(comparison.deviation_percent.abs());
    }
    figures.insert("largest deviation".to_owned(), worst);
    Ok(figures)
}

/// Pages written to each of the data disks of an array whose parity is on one disk, and to that one. The
/// words are the number of data disks and the bytes of a page.
fn disks(cell: &Cell, load: &Workload) -> Result<Figures, Failure> {
    let number = |at: usize| cell.words.get(at).and_then(|word| word.parse::<u64>().ok()).filter(|&n| n > 0);
    let (Some(count), Some(page)) = (number(0), number(1)) else {
        let words = cell.words.join(" ");
        return Err(Failure::new(format!("found {words:?}, expected a number of disks and bytes of a page")));
    };
    let (requests, _) = load.requests(cell.scale, cell.seed)?;
    let mut disks = vec![0_u64; usize::try_from(count)?];
    let mut parity = 0_u64;
    for request in requests.iter().filter(|request| request.op == Op::Write) {
        let pages = request.chunks(page);
        parity += pages.end.div_ceil(count) - pages.start / count;
        for page in pages {
            let disk = usize::try_from(page % count)?;
            disks[disk] += 1;
        }
    }
    let mut figures: Figures =
        disks.iter().enumerate().map(|(disk, &pages)| (format!("data{disk}_pages"), float(pages))).collect();
    let sum = float(disks.iter().sum());
    figures.insert("parity_pages".to_owned(), float(parity));
    figures.insert("parity_times_mean".to_owned(), float(parity) * float(count) / sum.max(1.0));
    Ok(figures)
}
