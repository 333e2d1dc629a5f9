//! A trace that somebody has, as it is replayed by experiments.
//!
//! A trace is known by its name and a hash of its requests, so cells of another trace of the same name are
//! not taken for its own. Only its writes are replayed, rounded to chunks that are numbered without gaps:
//! up to [`CHUNK_WRITES_MAX`] of them, again and again until its chunks were written [`DRIVES`] times over.
//! What an array or SSD is sized by follows from the number of its chunks, so that traces of any length
//! make one of the same shape collect.

use super::scale::Scale;
use crate::failure::Failure;
use crate::trace::published::{HASH_START, hash_with};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use trace::{Op, ReadOptions, Request, TraceSequence};

/// Bytes of a chunk.
pub const CHUNK_BYTES: u64 = 4096;
/// Chunk writes of a trace at most, at full length.
const CHUNK_WRITES_MAX: u64 = 1_000_000;
/// Chunk writes that a shorter run keeps at least.
const CHUNK_WRITES_LEAST: u64 = 10_000;
/// Times that the chunks of a trace are written over.
const DRIVES: u64 = 4;
/// Traces that write fewer different chunks make no array of [`UNITS`] units.
const CHUNKS_MIN: u64 = 3600;
/// Data chunks of a stripe of the array.
const COLUMNS: u64 = 6;
/// Thousandths of the space that the chunks take: as much as arrays of the least units leave to volumes.
const USED_PERMILLE: u64 = 720;
/// Chunks of a segment: volumes are whole ones.
const SEGMENT_CHUNKS: u64 = 256;
/// Units that an array or SSD has at least.
const UNITS: u64 = 104;
/// Rows of a unit of the array, and pages of a block of the SSD, at most; both at least. Elastic arrays lose
/// a row of each unit to what is yet to be written.
const ROWS_MAX: u64 = 64;
const PAGES_MAX: u64 = 512;
const ROWS_MIN: u64 = 8;
/// A trace of a folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Recorded {
    name: String,
    /// Hash of all of its requests, cut or not.
    hash: u64,
    /// Writes that are replayed once.
    writes: u64,
    /// Chunks that they write.
    chunk_writes: u64,
    /// Different ones.
    chunks: u64,
    /// Where it is; nowhere if it is known from cells only.
    paths: Vec<PathBuf>,
}

impl Recorded {
    /// Reads it; its writes once, as they are replayed.
    pub fn read(name: &str, paths: Vec<PathBuf>, scale: Scale) -> Result<(Self, Vec<Request>), Failure> {
        let most = scale.of(CHUNK_WRITES_MAX, CHUNK_WRITES_LEAST);
        let (mut hash, mut chunk_writes) = (HASH_START, 0);
        let mut writes: Vec<Request> = Vec::new();
        for request in TraceSequence::open(&paths, &ReadOptions::default())? {
            let request = request?;
            hash = hash_with(hash, &request);
            if request.op == Op::Write && request.length_bytes > 0 && chunk_writes < most {
                let touched = request.chunks(CHUNK_BYTES);
                chunk_writes += touched.end - touched.start;
                writes.push(request);
            }
        }
        let chunks = number(&mut writes);
        let trace = Self {
            name: name.to_owned(),
            hash,
            writes: u64::try_from(writes.len())?,
            chunk_writes,
            chunks,
            paths,
        };
        if chunks < CHUNKS_MIN {
            return Err(Failure::new(format!(
                "found writes to {chunks} different chunks, expected {CHUNKS_MIN} at least"
            )));
        }
        Ok((trace, writes))
    }

    /// Its writes, as often as they are replayed.
    pub fn requests(&self, scale: Scale) -> Result<Vec<Request>, Failure> {
        if self.paths.is_empty() {
            return Err(Failure::new(format!(
                "{}: found no --traces, expected the folder of this trace",
                self.name
            )));
        }
        let (again, once) = Self::read(&self.name, self.paths.clone(), scale)?;
        if again != *self {
            return Err(Failure::new(format!(
                "{}: found requests with hash {:016x}, expected {:016x}: the file was changed meanwhile",
                self.name, again.hash, self.hash
            )));
        }
        let times = || once.iter().map(|request| request.time_us);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        // Without times the clock stands still in every pass.
        let period_us = if last > first { (last - first).saturating_add(1) } else { 0 };
        let passes = (DRIVES * self.chunks).div_ceil(self.chunk_writes.max(1)).max(1);
        let pass = |pass: u64| {
            let later_us = pass.saturating_mul(period_us);
            let later = move |time_us: u64| time_us.saturating_add(later_us);
            once.iter().map(move |request| Request { time_us: later(request.time_us), ..*request })
        };
        Ok((0..passes).flat_map(pass).collect())
    }

    /// What it sets for words in braces.
    pub fn sets(&self) -> Vec<(&'static str, String)> {
        let unit = |chunks: u64, most: u64| {
            let units = (chunks / UNITS).max(ROWS_MIN);
            // The largest power of two that is not above it.
            (1 << units.ilog2()).clamp(ROWS_MIN, most)
        };
        // As a replay counts a footprint.
        let footprint = self.chunks.next_multiple_of(SEGMENT_CHUNKS);
        let rows = (footprint * 1000).div_ceil(USED_PERMILLE * COLUMNS);
        let unit_rows = unit(rows, ROWS_MAX);
        let numbers = [
            ("unit-rows", unit_rows),
            ("unit", unit_rows * COLUMNS),
            ("device-kib", rows.next_multiple_of(unit_rows) * CHUNK_BYTES / 1024),
            ("block-pages", unit(self.chunks, PAGES_MAX)),
            ("logical-kib", self.chunks * CHUNK_BYTES / 1024),
            ("pass", self.writes),
        ];
        let mut sets = vec![("trace", self.name.clone())];
        sets.extend(numbers.map(|(name, number)| (name, number.to_string())));
        sets
    }

    /// What its cells depend on; not where it is.
    pub fn inputs(&self) -> String {
        format!(
            "trace with hash {:016x}, {} writes of {} chunks, {} different ones, over {DRIVES} times",
            self.hash, self.writes, self.chunk_writes, self.chunks
        )
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// For the files of its cells.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name, "hash": format!("{:016x}", self.hash), "writes": self.writes,
            "chunk_writes": self.chunk_writes, "chunks": self.chunks,
        })
    }

    /// As a cell's file has it.
    pub fn from_json(value: &Value) -> Option<Self> {
        let number = |key: &str| value[key].as_u64();
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            hash: u64::from_str_radix(value["hash"].as_str()?, 16).ok()?,
            writes: number("writes")?,
            chunk_writes: number("chunk_writes")?,
            chunks: number("chunks").filter(|&chunks| chunks >= CHUNKS_MIN)?,
            paths: Vec::new(),
        })
    }
}

/// Of cells: each trace once. Two of one name would share the rows of a table.
pub fn distinct(all: impl IntoIterator<Item = Recorded>) -> Result<Vec<Recorded>, String> {
    let mut known: BTreeMap<String, Recorded> = BTreeMap::new();
    for trace in all {
        match known.get(&trace.name) {
            Some(other) if *other != trace => {
                return Err(format!(
                    "found cells of two traces called {} (hashes {:016x} and {:016x}), expected one",
                    trace.name, other.hash, trace.hash
                ));
            }
            Some(_) => {}
            None => {
                known.insert(trace.name.clone(), trace);
            }
        }
    }
    Ok(known.into_values().collect())
}

/// Numbers the chunks that these writes touch without gaps, in the order of devices and addresses, so that
/// what was sequential stays so; how many there are.
fn number(writes: &mut [Request]) -> u64 {
    let touched = |request: &Request| {
        let dev = request.dev;
        request.chunks(CHUNK_BYTES).map(move |chunk| (dev, chunk))
    };
    let places: Vec<(u32, u64)> =
        writes.iter().flat_map(touched).collect::<BTreeSet<_>>().into_iter().collect();
    let count = |number: usize| u64::try_from(number).expect("an index fits 64 bits");
    for request in writes {
        let chunks = request.chunks(CHUNK_BYTES);
        let place = places.partition_point(|place| *place < (request.dev, chunks.start));
        *request = Request {
            dev: 0,
            offset_bytes: count(place) * CHUNK_BYTES,
            length_bytes: (chunks.end - chunks.start) * CHUNK_BYTES,
            ..*request
        };
    }
    count(places.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn cells_of_two_traces_of_one_name_are_told_apart() {
        let one = Recorded {
            name: "a".to_owned(),
            hash: 1,
            writes: 5,
            chunk_writes: 5000,
            chunks: 4000,
            paths: Vec::new(),
        };
        assert_eq!(Recorded::from_json(&one.json()), Some(one.clone()));
        let other = Recorded { hash: 2, ..one.clone() };
        assert_eq!(distinct(vec![one.clone(); 2]).unwrap().len(), 1);
        assert!(distinct([one, other]).unwrap_err().contains("two traces called a"));
    }
}
