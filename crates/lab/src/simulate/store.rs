//! What `--out` leaves: results.csv with a line per cell, and a JSON file of each.
//!
//! A cell's line is appended in one write when it has ended, so that an interruption costs the cells under
//! way; a line cut short is dropped at the next start. At the end of the run the table is written anew,
//! whole, in the order of the grid and with what only shows beside other cells (lifespan). One process at a
//! time has a table; of a grid run in parts (`--shard`) each part has its own in the folder, and reads the
//! others'. A cell is known by a hash of everything it depends on, the build of the program included: lines
//! of another build are kept apart, in results.old.csv.

use super::Arguments;
use super::figures::{Figures, NAMES};
use super::grid::{Axis, Cell};
use crate::failure::Failure;
use crate::outfile::OutFile;
use crate::plot::table::{quoted, split};
use crate::provenance;
use node::output;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A part of a grid: every n-th cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found {text:?}, expected a part and how many there are, such as 1/4");
        let (index, count) = text.split_once('/').ok_or_else(expected)?;
        let number = |part: &str| part.parse::<usize>().map_err(|_| expected());
        let shard = Self { index: number(index)?, count: number(count)? };
        if (1..=shard.count).contains(&shard.index) { Ok(shard) } else { Err(expected()) }
    }
}

impl Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Shard {
    /// Whether the cell at this place in the grid belongs to it.
    pub fn has(self, index: usize) -> bool {
        index % self.count + 1 == self.index
    }
}

/// Columns of what a cell is; one that is swept is among the swept ones instead.
const OPTIONS: [&str; 5] = ["trace", "geometry", "scheme", "ssd", "seed"];
/// Columns of where it comes from.
const ORIGIN: [&str; 6] = ["trace_hash", "version", "commit", "build", "host", "date"];

/// A finished cell.
#[derive(Clone, Debug)]
struct Line {
    cells: Vec<String>,
    figures: Figures,
}

/// results.csv and the folder around it.
pub struct Store {
    folder: PathBuf,
    path: PathBuf,
    header: Vec<String>,
    options: Vec<&'static str>,
    file: File,
    lines: BTreeMap<String, Line>,
    /// The order in which other runs left their lines.
    order: Vec<String>,
    /// Held as long as this lives.
    _lock: File,
}

impl Store {
    /// Takes the folder and reads what is there.
    pub fn open(folder: &Path, axes: &[Axis], shard: Option<Shard>) -> Result<Self, Failure> {
        let named = |path: &Path, error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
        fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
        let stem = shard.map_or_else(
            || "results".to_owned(),
            |shard| format!("results-{}-of-{}", shard.index, shard.count),
        );
        let lock = locked(folder, &stem)?;
        let swept = |name: &&str| axes.iter().any(|axis| axis.option == *name);
        let options: Vec<&str> = OPTIONS.into_iter().filter(|name| !swept(name)).collect();
        let names = ["cell"].into_iter().chain(options.iter().copied()).chain(ORIGIN);
        let names = names.chain(axes.iter().map(|axis| axis.option.as_str())).chain(NAMES);
        let header: Vec<String> = names.chain(["lifespan", "command"]).map(str::to_owned).collect();
        let path = folder.join(format!("{stem}.csv"));
        let (mut lines, mut order, mut old) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut own = Vec::new();
        for table in tables(folder, &path)? {
            for line in read(&table, &header)? {
                let of_this_build = line.cells.get(1 + options.len() + 3).map(String::as_str);
                if of_this_build != Some(provenance::build()) {
                    old.extend((table == path).then_some(line.cells));
                    continue;
                }
                let key = line.cells[0].clone();
                // A cell whose file was gone has two lines, if the run that made it anew was interrupted.
                if lines.insert(key.clone(), line).is_none() {
                    if table == path {
                        own.push(key.clone());
                    }
                    order.push(key);
                }
            }
        }
        keep_old(folder, &header, &old)?;
        let own: Vec<&Line> = own.iter().filter_map(|key| lines.get(key)).collect();
        write(&path, &header, &own)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(|error| named(&path, error))?;
        Ok(Self { folder: folder.to_path_buf(), path, header, options, file, lines, order, _lock: lock })
    }

    /// What is known of a cell: nothing if its file was deleted, or is no whole one of this build with what
    /// the line says.
    pub fn known(&self, key: &str) -> Option<Figures> {
        let line = self.lines.get(key)?;
        let json: Value = serde_json::from_slice(&fs::read(self.file_of(key)).ok()?).ok()?;
        let is_of_this_build = json.pointer("/provenance/build")? == provenance::build();
        let is_as_in_line = NAMES.iter().zip(line.figures.values()).all(|(name, value)| {
            match (json.get(*name).and_then(Value::as_f64), value) {
                (Some(found), Some(value)) => (found - value).abs() <= 1e-9 * value.abs(),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            }
        });
        (is_of_this_build && is_as_in_line).then(|| line.figures.clone())
    }

    fn file_of(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }

    /// A finished cell: its JSON first, so that a line in the table means that both are there.
    pub fn add(&mut self, key: &str, cell: &Cell, json: &Value, figures: &Figures) -> Result<(), Failure> {
        OutFile::new("", &self.file_of(key))?.write_bytes(format!("{json:#}\n").as_bytes())?;
        let hash = json.pointer("/config/trace/hash").and_then(Value::as_str).unwrap_or_default();
        let mut cells = vec![key.to_owned()];
        cells.extend(self.options.iter().map(|name| option(&cell.arguments, name)));
        let commit = provenance::commit().unwrap_or_else(|| "unknown".to_owned());
        cells.extend([hash, env!("CARGO_PKG_VERSION"), &commit, provenance::build()].map(str::to_owned));
        cells.extend([provenance::host(), provenance::date()]);
        cells.extend(cell.values.iter().cloned());
        cells.extend(figures.cells());
        cells.extend([String::new(), provenance::command()]);
        let text = text(&cells);
        self.lines.insert(key.to_owned(), Line { cells, figures: figures.clone() });
        self.file
            .write_all(text.as_bytes())
            .map_err(|error| Failure::new(format!("{}: {error}", self.path.display())))
    }

    /// The run has ended: its cells with their lifespans in the order of the grid, behind those of other
    /// runs.
    pub fn finish(mut self, cells: &[(&str, Option<f64>)]) -> Result<(), Failure> {
        let at = self.header.len() - 2;
        for (key, lifespan) in cells {
            if let Some(line) = self.lines.get_mut(*key) {
                line.cells[at] = lifespan.map_or_else(String::new, |lifespan| lifespan.to_string());
            }
        }
        let own: BTreeSet<&str> = cells.iter().map(|(key, _)| *key).collect();
        let mut keys: Vec<&str> =
            self.order.iter().map(String::as_str).filter(|key| !own.contains(key)).collect();
        // A cell may be in the grid twice.
        let mut left = own.clone();
        keys.extend(cells.iter().map(|(key, _)| *key).filter(|key| left.remove(key)));
        let lines: Vec<&Line> = keys.iter().filter_map(|key| self.lines.get(*key)).collect();
        write(&self.path, &self.header, &lines)
    }
}

/// One process at a time has a table.
fn locked(folder: &Path, stem: &str) -> Result<File, Failure> {
    let path = folder.join(format!("{stem}.lock"));
    let named = |error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(named)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Failure::new(format!(
            "--out {}: another run writes its {stem}.csv; wait for its end, take another folder, or run parts of the grid side \
             by side with --shard",
            folder.display()
        ))),
        Err(errno) => Err(named(errno.into())),
    }
}

/// The tables of the folder, the own one first.
fn tables(folder: &Path, own: &Path) -> Result<Vec<PathBuf>, Failure> {
    let named = |error: std::io::Error| Failure::new(format!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(named)? {
        let entry = entry.map_err(named)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let part = name.strip_prefix("results-").and_then(|rest| rest.strip_suffix(".csv"));
        if name == "results.csv" || part.is_some_and(|part| part.contains("-of-")) {
            found.push(entry.path());
        }
    }
    found.sort_by_key(|path| (path != own, path.clone()));
    Ok(found)
}

/// The whole lines of a table; one that an interruption cut short is left out.
fn read(path: &Path, header: &[String]) -> Result<Vec<Line>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::new(format!("{}: {error}", path.display()))),
    };
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let wanted = header.join(",");
    match lines.next() {
        Some(found) if found != wanted => {
            return Err(Failure::new(format!(
                "{}: found columns of another sweep, expected {wanted}; use another --out",
                path.display()
            )));
        }
        Some(_) | None => {}
    }
    let line = |text: &str| {
        let cells = split(text).ok().filter(|cells| cells.len() == header.len())?;
        let from = header.len() - 2 - NAMES.len();
        let figures: Vec<&str> = cells[from..from + NAMES.len()].iter().map(String::as_str).collect();
        let figures = Figures::parse(&figures)?;
        Some(Line { cells, figures })
    };
    Ok(lines.filter_map(line).collect())
}

/// Lines of other builds go out of the way: beside those of this one, nobody could tell them apart in a plot.
fn keep_old(folder: &Path, header: &[String], old: &[Vec<String>]) -> Result<(), Failure> {
    if old.is_empty() {
        return Ok(());
    }
    let path = folder.join("results.old.csv");
    let named = |error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    let mut whole = if path.exists() { String::new() } else { format!("{}\n", header.join(",")) };
    old.iter().for_each(|cells| whole.push_str(&text(cells)));
    let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(named)?;
    file.write_all(whole.as_bytes()).map_err(named)?;
    output::warn(format_args!(
        "{}: {} cells of another build of the program; they are run again",
        path.display(),
        old.len()
    ));
    Ok(())
}

fn write(path: &Path, header: &[String], lines: &[&Line]) -> Result<(), Failure> {
    let mut whole = format!("{}\n", header.join(","));
    lines.iter().for_each(|line| whole.push_str(&text(&line.cells)));
    OutFile::new("", path)?.write_bytes(whole.as_bytes())
}

fn text(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    format!("{}\n", cells.join(","))
}

/// What a cell is, by the name of the option.
fn option(arguments: &Arguments, name: &str) -> String {
    match name {
        "trace" => {
            let names = arguments.trace.traces.iter().map(|path| {
                path.file_name()
                    .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into())
            });
            names.collect::<Vec<_>>().join(" ")
        }
        "geometry" => arguments.array.geometry.to_string(),
        "scheme" => arguments.array.scheme.to_string(),
        "ssd" => arguments.ssds.ssd.clone(),
        _ => arguments.seed.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn shards_are_parts_that_make_the_whole() {
        for bad in ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].map(|text| text.parse().unwrap()).to_vec();
        for index in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(index)).count(), 1, "{index}");
        }
    }
}
