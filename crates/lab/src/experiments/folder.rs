//! A folder of results: a file per cell, named by the hash of its inputs and of the program.
//!
//! A file is whole or not there, whoever is killed when; so a run that is started again does what is left,
//! and runs with `--shard` may share a folder. What another build of the program left is never used by a
//! run, and by a report only if it is asked for.

use super::cells::Cell;
use super::declare::Workload;
use super::recorded::Recorded;
use super::scale::Scale;
use super::view::Figures;
use crate::failure::Failure;
use crate::outfile::OutFile;
use crate::provenance;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// Files of cells are longer than this never.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// And there are no more.
const FILES_MAX: usize = 1_000_000;

/// What made a cell.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Build {
    /// Version and commit, for people.
    pub version: String,
    /// Hash of the program.
    pub hash: String,
}

impl Build {
    /// This program.
    pub fn own() -> Self {
        Self { version: provenance::VERSION.to_owned(), hash: provenance::build().to_owned() }
    }
}

/// A cell that was run.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// Its inputs.
    pub inputs: String,
    /// What made it.
    pub build: Build,
    /// Where.
    pub host: String,
    /// How long its load was.
    pub scale: Scale,
    /// Its seed.
    pub seed: u64,
    /// Hash of nothing but the grid and the labels.
    pub key: String,
    /// The trace of somebody that it replayed, if it did.
    pub trace: Option<Recorded>,
    /// What it came to.
    pub figures: Figures,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Grid and labels in a line.
pub fn key_text(cell: &Cell) -> String {
    let labels = cell.key.labels.iter().map(|(axis, label)| format!("{axis}={label}"));
    format!("{}: {}", cell.key.grid, labels.collect::<Vec<_>>().join(", "))
}

/// What a cell's file is called.
fn name(key: &str, inputs: &str, build: &Build) -> String {
    let text = format!("{key}\n{inputs}\n{}\n{}", build.version, build.hash);
    let fnv = |seed: u64| {
        text.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    format!("{:016x}{:016x}.json", fnv(0xcbf2_9ce4_8422_2325), fnv(0x6c62_272e_07bb_0142))
}

impl Folder {
    /// Opens a folder, and makes it if it is not there.
    pub fn make(path: &Path) -> Result<Self, Failure> {
        let cells = path.join("cells");
        fs::create_dir_all(&cells).map_err(|error| {
            Failure::new(format!("--out {}: cannot make the folder: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_path_buf() })
    }

    /// Opens a folder that has cells.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path.join("cells").is_dir() {
            return Ok(Self { path: path.to_path_buf() });
        }
        Err(Failure::new(format!(
            "{}: found no folder `cells` in it, expected what `elastripe lab run --out` leaves",
            path.display()
        )))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this build has run a cell.
    pub fn has(&self, cell: &Cell) -> bool {
        let (key, inputs) = (key_text(cell), cell.inputs());
        let path = self.path.join("cells").join(name(&key, &inputs, &Build::own()));
        read(&path).is_ok_and(|found| found.key == key && found.inputs == inputs)
    }

    /// Keeps what a cell came to.
    pub fn keep(
        &self,
        cell: &Cell,
        figures: Figures,
        load_hash: Option<u64>,
        cpu_seconds: f64,
    ) -> Result<(), Failure> {
        let found = Found {
            inputs: cell.inputs(),
            build: Build::own(),
            host: provenance::host(),
            scale: cell.scale,
            seed: cell.seed,
            key: key_text(cell),
            trace: cell.load.and_then(Workload::recorded).cloned(),
            figures,
        };
        let provenance = json!({
            "host": found.host, "date": provenance::date(), "command": provenance::command(), "cpu_seconds": cpu_seconds,
            "load_hash": load_hash.map(|hash| format!("{hash:016x}")),
        });
        self.write(&found, &provenance)
    }

    fn write(&self, found: &Found, provenance: &Value) -> Result<(), Failure> {
        let path = self.path.join("cells").join(name(&found.key, &found.inputs, &found.build));
        let figures: Map<String, Value> =
            found.figures.iter().map(|(name, value)| (name.clone(), Value::from(*value))).collect();
        let mut value = json!({
            "cell": found.key,
            "inputs": found.inputs,
            "scale_millionths": found.scale.millionths(),
            "seed": found.seed,
            "version": found.build.version,
            "build": found.build.hash,
            "figures": figures,
            "provenance": provenance,
        });
        if let Some(trace) = &found.trace {
            value["trace"] = trace.json();
        }
        OutFile::new("", &path)?.write_bytes(format!("{value:#}\n").as_bytes())
    }

    /// All cells in it, sorted by the names of their files; what is no cell is an error that names the file.
    pub fn all(&self) -> Result<Vec<(PathBuf, Found)>, Failure> {
        let cells = self.path.join("cells");
        let named = |error: std::io::Error| Failure::new(format!("{}: {error}", cells.display()));
        let mut paths = BTreeSet::new();
        for entry in fs::read_dir(&cells).map_err(named)? {
            let path = entry.map_err(named)?.path();
            // What a killed run left unfinished ends in something else.
            if path.extension().is_some_and(|ending| ending == "json") {
                paths.insert(path);
            }
            if paths.len() > FILES_MAX {
                return Err(Failure::new(format!("{}: found more than {FILES_MAX} cells", cells.display())));
            }
        }
        paths.into_iter().map(|path| read(&path).map(|found| (path, found))).collect()
    }
}

/// Cells of other folders on their way into one: first compared, then copied.
#[derive(Debug)]
pub struct Merging {
    into: PathBuf,
    /// Cells that are not there, by the names of their files: where they are, and what they came to.
    new: BTreeMap<String, (PathBuf, Figures)>,
    known: usize,
}

impl Merging {
    /// Into this folder, which is not made before all were compared.
    pub fn into(folder: &Path) -> Self {
        Self { into: folder.to_path_buf(), new: BTreeMap::new(), known: 0 }
    }

    /// A cell that is wanted, unless it is there already.
    ///
    /// # Errors
    /// It came to other figures there, or in another folder.
    pub fn add(&mut self, path: PathBuf, found: Found) -> Result<(), Failure> {
        let name = name(&found.key, &found.inputs, &found.build);
        let own = self.into.join("cells").join(&name);
        let other = match (self.new.get(&name), read(&own)) {
            (Some((other, figures)), _) => Some((other.clone(), figures.clone())),
            (None, Ok(there)) => Some((own, there.figures)),
            (None, Err(_)) if !own.exists() => None,
            (None, Err(failure)) => return Err(failure),
        };
        match other {
            None => {
                self.new.insert(name, (path, found.figures));
            }
            Some((_, figures)) if figures == found.figures => self.known += 1,
            Some((other, _)) => {
                return Err(Failure::new(format!(
                    "{}: found other figures than in {}, expected the same of the same inputs ({}; {})",
                    path.display(),
                    other.display(),
                    found.key,
                    found.inputs
                )));
            }
        }
        Ok(())
    }

    /// Copies what is not there; how many these are, and how many were there.
    pub fn copy(self) -> Result<(usize, usize), Failure> {
        let folder = Folder::make(&self.into)?;
        for (name, (path, _)) in &self.new {
            let bytes =
                fs::read(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
            OutFile::new("", &folder.path.join("cells").join(name))?.write_bytes(&bytes)?;
        }
        Ok((self.new.len(), self.known))
    }
}

fn read(path: &Path) -> Result<Found, Failure> {
    let named = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", path.display()));
    let mut text = String::new();
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(named(&"no such cell")),
        Err(error) => return Err(named(&error)),
    };
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| named(&error))?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| named(&format!("expected a cell: {error}")))?;
    let word = |key: &str| {
        value[key]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| named(&format!("found no {key:?}, expected a cell")))
    };
    let number = |key: &str| {
        value[key].as_u64().ok_or_else(|| named(&format!("found no number {key:?}, expected a cell")))
    };
    let scale = Scale::of_millionths(number("scale_millionths")?)
        .ok_or_else(|| named(&"found a scale beyond 1, expected a cell"))?;
    let figures = value["figures"].as_object().ok_or_else(|| named(&"found no figures, expected a cell"))?;
    let figures = figures.iter().map(|(name, value)| {
        value
            .as_f64()
            .map(|value| (name.clone(), value))
            .ok_or_else(|| named(&format!("found {value} as {name:?}, expected a number")))
    });
    Ok(Found {
        inputs: word("inputs")?,
        build: Build { version: word("version")?, hash: word("build")? },
        host: value["provenance"]["host"].as_str().unwrap_or("unknown").to_owned(),
        scale,
        seed: number("seed")?,
        key: word("cell")?,
        trace: match value.get("trace") {
            Some(trace) => {
                Some(Recorded::from_json(trace).ok_or_else(|| named(&format!("found {trace} as trace")))?)
            }
            None => None,
        },
        figures: figures.collect::<Result<_, _>>()?,
    })
}
