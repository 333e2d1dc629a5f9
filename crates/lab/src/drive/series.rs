//! A run as a series of rows (`--interval`): what was done since the row before, so that sums of rows are
//! the totals of the run.

use crate::failure::Failure;
use crate::number::float;
use crate::outfile::OutFile;
use crate::plot::table::quoted;
use crate::subject::snapshot::{Snapshot, since};
use block::Stream;
use clap::Args;
use flash::Counters;
use hdrhistogram::Histogram;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// More rows are a mistake.
const ROWS_MAX: usize = 1_000_000;

/// The figures of a row. `_at_end` and `free_chunks` are those of its end, all others of the time since the
/// row before.
pub const NAMES: [&str; 24] = [
    "requests_at_end",
    "seconds_at_end",
    "requests",
    "user_chunks_written",
    "user_chunks_read",
    "data_chunks_written",
    "parity_chunks_written",
    "log_chunks_written",
    "metadata_bytes_written",
    "absorbed_chunks",
    "gc_units_collected",
    "gc_chunks_rewritten",
    "stripes_committed",
    "ssd_pages_written",
    "flash_pages_written",
    "page_copies",
    "erases",
    "write_amplification",
    "free_chunks",
    "latency_us_mean",
    "latency_us_p50",
    "latency_us_p99",
    "latency_us_p999",
    "latency_us_max",
];

/// Options of a series.
#[derive(Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct SeriesOptions {
    /// Give a row of figures for every so many requests, such as 10000, or for every stretch of the run's
    /// clock, such as 60s or 500ms.
    #[arg(long, value_parser = parse_every, value_name = "REQUESTS|TIME")]
    pub interval: Option<Every>,
    /// Write these rows to a CSV file too.
    #[arg(long, requires = "interval", value_name = "FILE")]
    pub series: Option<PathBuf>,
}

/// When a row ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Every {
    /// When so many requests have ended since the last one.
    Requests(u64),
    /// At multiples of so many nanoseconds.
    Nanoseconds(u64),
}

fn parse_every(text: &str) -> Result<Every, String> {
    let expected =
        || format!("found {text:?}, expected requests such as 10000, or a time such as 60s or 500ms");
    let number = |text: &str| text.parse::<u64>().ok().filter(|&number| number > 0).ok_or_else(expected);
    let times = |text: &str, unit: u64| number(text)?.checked_mul(unit).ok_or_else(expected);
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => times(number, 1_000_000).map(Every::Nanoseconds),
        (None, Some(number)) => times(number, 1_000_000_000).map(Every::Nanoseconds),
        (None, None) => number(text).map(Every::Requests),
    }
}

impl SeriesOptions {
    /// Refuses a file that cannot be written, or that the run reads, before it; `inputs` are what names each
    /// file that it reads, and where it is.
    pub fn check<'a>(&self, inputs: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<(), Failure> {
        let Some(path) = &self.series else { return Ok(()) };
        OutFile::check_apart("--series", path, inputs)?;
        OutFile::new("--series", path).map(|_| ())
    }

    /// Writes the rows to the file, if one is named.
    pub fn keep(&self, rows: &[Row]) -> Result<(), Failure> {
        let Some(path) = &self.series else { return Ok(()) };
        let mut text = format!("{}\n", NAMES.join(","));
        for row in rows {
            let shown =
                |value: &Value| if value.is_null() { String::new() } else { quoted(&value.to_string()) };
            text.push_str(&row.0.iter().map(shown).collect::<Vec<_>>().join(","));
            text.push('\n');
        }
        OutFile::new("--series", path)?.write_bytes(text.as_bytes())
    }
}

/// A row, in the order of [`NAMES`]; null where it is not known, or means nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Row([Value; NAMES.len()]);

impl Row {
    /// For JSON.
    pub fn json(&self) -> Value {
        let named = NAMES.iter().map(|name| (*name).to_owned()).zip(self.0.iter().cloned());
        Value::Object(named.collect::<Map<_, _>>())
    }
}

/// Rows for JSON; null if none were asked for.
pub fn rows_json(rows: Option<&[Row]>) -> Value {
    rows.map_or(Value::Null, |rows| rows.iter().map(Row::json).collect())
}

/// Counters at one moment.
#[derive(Clone, Default)]
pub struct Moment {
    /// The clock of the run.
    pub now_ns: u64,
    /// Of array and engine, where they are known.
    pub snapshot: Option<Snapshot>,
    /// Of the simulated SSDs, where there are some.
    pub flash: Option<Counters>,
    /// Chunks of the main devices that nothing uses.
    pub free_chunks: Option<u64>,
}

/// What the queue has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Requests.
    pub requests: u64,
    /// Chunks that writes touched.
    pub chunks_written: u64,
    /// Chunks that reads touched.
    pub chunks_read: u64,
}

/// See the module's documentation.
pub struct Series {
    every: Every,
    chunk_bytes: u64,
    start_ns: u64,
    due_ns: u64,
    last: Moment,
    done: Done,
    latency: Histogram<u64>,
    rows: Vec<Row>,
}

impl Series {
    /// From this moment on.
    pub fn new(every: Every, chunk_bytes: u64, now: Moment, latency: Histogram<u64>) -> Self {
        let due_ns = match every {
            Every::Nanoseconds(ns) => now.now_ns.saturating_add(ns),
            Every::Requests(_) => u64::MAX,
        };
        Self {
            every,
            chunk_bytes,
            start_ns: now.now_ns,
            due_ns,
            last: now,
            done: Done::default(),
            latency,
            rows: Vec::new(),
        }
    }

    /// A request has ended.
    pub fn note(&mut self, latency_ns: u64) {
        self.latency.saturating_record(latency_ns);
    }

    /// Whether a row ends here; a stretch in which no request ended has none.
    pub fn is_due(&mut self, now_ns: u64, done: Done) -> bool {
        match self.every {
            Every::Requests(count) => done.requests - self.done.requests >= count,
            Every::Nanoseconds(_) if now_ns < self.due_ns => false,
            Every::Nanoseconds(ns) if self.latency.is_empty() => {
                self.due_ns = self.end_of_stretch(ns, now_ns);
                false
            }
            Every::Nanoseconds(_) => true,
        }
    }

    /// When the stretch of so many nanoseconds ends in which a moment lies.
    fn end_of_stretch(&self, ns: u64, now_ns: u64) -> u64 {
        let passed = now_ns.saturating_sub(self.start_ns) / ns;
        self.start_ns.saturating_add((passed + 1).saturating_mul(ns))
    }

    /// When a row of what was done since the last one ends by the clock; a stretch in which nothing is done
    /// has none.
    pub fn row_due_ns(&self) -> Option<u64> {
        (!self.latency.is_empty() && self.due_ns < u64::MAX).then_some(self.due_ns)
    }

    /// Ends a row.
    pub fn end_row(&mut self, now: Moment, done: Done) -> Result<(), Failure> {
        if self.rows.len() == ROWS_MAX {
            return Err(Failure::new(format!(
                "--interval: found more than {ROWS_MAX} rows, expected a longer one"
            )));
        }
        if let Every::Nanoseconds(ns) = self.every {
            self.due_ns = self.end_of_stretch(ns, now.now_ns);
        }
        self.rows.push(self.row(&now, done));
        self.latency.reset();
        (self.last, self.done) = (now, done);
        Ok(())
    }

    /// All rows; what happened since the last one is one more.
    pub fn finish(mut self, now: Moment, done: Done) -> Result<Vec<Row>, Failure> {
        self.end_row(now, done)?;
        Ok(self.rows)
    }

    fn row(&self, now: &Moment, done: Done) -> Row {
        let counted = now.snapshot.as_ref().zip(self.last.snapshot.as_ref());
        let counted = counted.map(|(now, then)| since(now, then));
        let flash = now.flash.as_ref().zip(self.last.flash.as_ref()).map(|(now, then)| now.since(then));
        let bytes = |stream: Stream| {
            let devices = counted.as_ref()?.devices.iter();
            Some(devices.map(|device| device.write_bytes[stream.index()]).sum::<u64>())
        };
        let chunks = |stream| bytes(stream).map(|bytes| bytes / self.chunk_bytes);
        let of_engine = |get: fn(&Snapshot) -> u64| counted.as_ref().map(get);
        let of_flash = |get: fn(&Counters) -> u64| flash.as_ref().map(get);
        let user = done.chunks_written - self.done.chunks_written;
        let to_ssds = chunks(Stream::Data).zip(chunks(Stream::Parity)).map(|(data, parity)| data + parity);
        let of_array = to_ssds.filter(|_| user > 0).map(|chunks| float(chunks) / float(user));
        // One SSD alone has no array above it.
        let alone = flash.as_ref().filter(|flash| counted.is_none() && flash.host_pages_written > 0);
        let amplification = of_array.or(alone.map(Counters::write_amplification));
        let latency =
            |get: fn(&Histogram<u64>) -> f64| (!self.latency.is_empty()).then(|| get(&self.latency) / 1e3);
        let at = |percentile| {
            (!self.latency.is_empty()).then(|| float(self.latency.value_at_percentile(percentile)) / 1e3)
        };
        Row([
            done.requests.into(),
            (float(now.now_ns.saturating_sub(self.start_ns)) / 1e9).into(),
            (done.requests - self.done.requests).into(),
            user.into(),
            (done.chunks_read - self.done.chunks_read).into(),
            chunks(Stream::Data).into(),
            chunks(Stream::Parity).into(),
            chunks(Stream::Log).into(),
            bytes(Stream::Metadata).into(),
            of_engine(|counted| counted.stats.cache.absorbed).into(),
            of_engine(|counted| counted.gc.units_collected).into(),
            of_engine(|counted| counted.gc.chunks_rewritten).into(),
            of_engine(|counted| counted.stats.stripes_committed).into(),
            of_flash(|counted| counted.host_pages_written).into(),
            of_flash(Counters::flash_pages_written).into(),
            of_flash(|counted| counted.page_copies).into(),
            of_flash(|counted| counted.erases).into(),
            amplification.into(),
            now.free_chunks.into(),
            latency(Histogram::mean).into(),
            at(50.0).into(),
            at(99.0).into(),
            at(99.9).into(),
            latency(|latency| float(latency.max())).into(),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::{Every, parse_every};

    #[test]
    fn intervals_are_requests_or_times() {
        assert_eq!(parse_every("10000"), Ok(Every::Requests(10_000)));
        assert_eq!(parse_every("60s"), Ok(Every::Nanoseconds(60_000_000_000)));
        assert_eq!(parse_every("500ms"), Ok(Every::Nanoseconds(500_000_000)));
        for bad in ["", "0", "0s", "-1", "1.5s", "s", "10m", "18446744073709551615s"] {
            assert!(parse_every(bad).is_err(), "{bad}");
        }
    }
}
