//! The figures of a run that tables and CSV files have, each a number with a name.

use super::outcome::{Outcome, Stretch};
use crate::number::float;
use block::Stream;
use flash::Counters;
use node::units::show_count;
use serde_json::Value;

/// Their names, in the order of the columns. Those of devices are of the SSDs while the trace ran.
pub const NAMES: [&str; 37] = [
    "requests",
    "user_chunks_written",
    "ssd_chunks_written",
    "log_chunks_written",
    "metadata_bytes_written",
    "absorbed_chunks",
    "absorbed_share",
    "ssd_pages_written",
    "flash_pages_written",
    "page_copies",
    "gc_operations",
    "gc_operations_mean",
    "gc_operations_min",
    "gc_operations_max",
    "gc_operations_mean_with_fill",
    "erases",
    "erases_mean",
    "erases_min",
    "erases_max",
    "erases_deviation",
    "raid_write_amplification",
    "metadata_write_amplification",
    "log_write_amplification",
    "device_write_amplification",
    "write_amplification",
    "wear",
    "wear_max",
    "virtual_seconds",
    "requests_per_second",
    "latency_us_mean",
    "latency_us_p50",
    "latency_us_p99",
    "latency_us_p999",
    "latency_us_max",
    "stripes_committed",
    "gc_chunks_rewritten",
    "rebuild_bytes_per_s",
];

/// One run's, in the order of [`NAMES`]; none where nothing was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures(Vec<Option<f64>>);

/// Mean, least, most and standard deviation over some devices.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spread {
    /// Sum.
    pub sum: f64,
    /// Mean.
    pub mean: f64,
    /// Least.
    pub min: f64,
    /// Most.
    pub max: f64,
    /// Standard deviation.
    pub deviation: f64,
}

impl Spread {
    /// Of these values; zeros if there are none.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count();
        if count == 0 {
            return Self::default();
        }
        let sum: f64 = values.clone().sum();
        let mean = sum / count as f64;
        let variance = values.clone().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64;
        Self {
            sum,
            mean,
            min: values.clone().fold(f64::INFINITY, f64::min),
            max: values.fold(f64::NEG_INFINITY, f64::max),
            deviation: variance.sqrt(),
        }
    }
}

/// Devices of an array by what they are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Ssds,
    LogDevices,
    All,
}

impl Outcome {
    /// A counter of the SSDs while a stretch ran.
    pub fn spread(&self, stretch: &Stretch, count: fn(&Counters) -> u64) -> Spread {
        let ssds = &stretch.devices[..self.main_count.min(stretch.devices.len())];
        Spread::of(ssds.iter().map(|device| count(&device.counters) as f64))
    }

    /// Bytes of some streams written to devices of a role.
    fn bytes_of(&self, stretch: &Stretch, role: Role, streams: &[Stream]) -> f64 {
        let devices = stretch.phase.counted.iter().flat_map(|counted| &counted.devices).enumerate();
        let of_role = devices.filter(|(index, _)| match role {
            Role::Ssds => *index < self.main_count,
            Role::LogDevices => *index >= self.main_count,
            Role::All => true,
        });
        let bytes = of_role
            .map(|(_, device)| streams.iter().map(|stream| device.write_bytes[stream.index()]).sum::<u64>());
        bytes.sum::<u64>() as f64
    }

    /// Stress of programming on each SSD.
    pub fn wear(&self) -> Spread {
        let ssds = &self.run.devices[..self.main_count.min(self.run.devices.len())];
        Spread::of(ssds.iter().map(|device| device.counters.wear(self.stress_ratio)))
    }

    /// The figures of this run.
    pub fn figures(&self) -> Figures {
        let (run, chunk_bytes) = (&self.run, self.chunk_bytes as f64);
        let done = &run.phase.outcome;
        let user_bytes = done.chunks_written as f64 * chunk_bytes;
        let bytes = |stream| self.bytes_of(run, Role::All, &[stream]);
        let per = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let pages = self.spread(run, |c| c.host_pages_written).sum;
        let programs = self.spread(run, Counters::flash_pages_written).sum;
        let gc = self.spread(run, |c| c.gc_operations);
        let fill_gc = self.fill.as_ref().map_or(0.0, |fill| self.spread(fill, |c| c.gc_operations).mean);
        let erases = self.spread(run, |c| c.erases);
        let seconds = run.virtual_ns as f64 / 1e9;
        // Without service times all ends at once.
        let us = |ns: f64| self.is_timed.then_some(ns / 1e3);
        let percentile = |percent| us(done.latency.value_at_percentile(percent) as f64);
        let counted = run.phase.counted.as_ref();
        // Chunks overwritten in memory before a device had them.
        let absorbed = counted.map_or(0.0, |counted| counted.stats.cache.absorbed as f64);
        let is_paced = self.is_timed || self.is_open_loop;
        Figures(vec![
            Some(done.requests as f64),
            Some(done.chunks_written as f64),
            Some((bytes(Stream::Data) + bytes(Stream::Parity)) / chunk_bytes),
            Some(bytes(Stream::Log) / chunk_bytes),
            Some(bytes(Stream::Metadata)),
            Some(absorbed),
            per(absorbed * chunk_bytes, user_bytes),
            Some(pages),
            Some(programs),
            Some(self.spread(run, |c| c.page_copies).sum),
            Some(gc.sum),
            Some(gc.mean),
            Some(gc.min),
            Some(gc.max),
            Some(gc.mean + fill_gc),
            Some(erases.sum),
            Some(erases.mean),
            Some(erases.min),
            Some(erases.max),
            Some(erases.deviation),
            per(pages * self.page_bytes as f64, user_bytes),
            per(self.bytes_of(run, Role::Ssds, &[Stream::Metadata]), user_bytes),
            per(self.bytes_of(run, Role::LogDevices, &Stream::ALL), user_bytes),
            per(programs, pages),
            per(programs * self.page_bytes as f64, user_bytes),
            Some(self.wear().sum),
            Some(self.wear().max),
            Some(seconds),
            per(done.requests as f64, seconds).filter(|_| is_paced),
            us(done.latency.mean()),
            percentile(50.0),
            percentile(99.0),
            percentile(99.9),
            us(done.latency.max() as f64),
            Some(counted.map_or(0.0, |counted| counted.stats.stripes_committed as f64)),
            Some(counted.map_or(0.0, |counted| counted.gc.chunks_rewritten as f64)),
            Some(self.rebuilt.map_or(0.0, |rebuilt| rebuilt.bytes_per_s() as f64)),
        ])
    }
}

impl Outcome {
    /// The figures by name; then what each SSD was given and did, and what the fill did.
    pub fn named_figures(&self) -> Vec<(String, f64)> {
        let figures = self.figures();
        let names = NAMES.iter().map(|name| (*name).to_owned());
        let known = names.zip(figures.values()).filter_map(|(name, value)| Some((name, (*value)?)));
        let mut named: Vec<(String, f64)> = known.collect();
        let ssds = self.run.devices.iter().take(self.main_count).enumerate();
        for (index, device) in ssds {
            let counters = &device.counters;
            for (what, count) in [
                ("pages", counters.host_pages_written),
                ("parity_pages", counters.parity_pages_written),
                ("erases", counters.erases),
            ] {
                named.push((format!("ssd{index}_{what}"), float(count)));
            }
        }
        named.push(("flash_pages_written_slc".to_owned(), self.spread(&self.run, |c| c.programs_slc).sum));
        if let Some(fill) = &self.fill {
            named.push(("fill_ssd_pages_mean".to_owned(), self.spread(fill, |c| c.host_pages_written).mean));
            named.push(("fill_page_copies".to_owned(), self.spread(fill, |c| c.page_copies).sum));
        }
        if let Some(years) = self.lifetime().and_then(|lifetime| lifetime.years) {
            named.push(("lifetime_years".to_owned(), years));
        }
        if let Some(rebuilt) = self.rebuilt {
            named.push(("rebuild_bytes".to_owned(), float(rebuilt.bytes)));
            named.push(("rebuild_seconds".to_owned(), rebuilt.seconds()));
        }
        named
    }
}

impl Figures {
    /// All of them.
    pub fn values(&self) -> &[Option<f64>] {
        &self.0
    }

    /// Those as cells of a CSV file: empty where there is none.
    pub fn cells(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|value| value.map_or_else(String::new, |value| value.to_string()))
    }

    /// From the cells of a line of a CSV file; `None` if that is no whole line.
    pub fn parse(cells: &[&str]) -> Option<Self> {
        let value = |cell: &&str| if cell.is_empty() { Some(None) } else { cell.parse().ok().map(Some) };
        let values = cells.iter().map(value).collect::<Option<Vec<Option<f64>>>>()?;
        (values.len() == NAMES.len()).then_some(Self(values))
    }

    /// One by its name.
    pub fn known(&self, name: &str) -> Option<f64> {
        *NAMES.iter().position(|&known| known == name).and_then(|at| self.0.get(at))?
    }

    /// The same; 0 if there is none.
    pub fn get(&self, name: &str) -> f64 {
        self.known(name).unwrap_or(0.0)
    }

    /// A share for people.
    pub fn show_percent(&self, name: &str) -> String {
        self.known(name).map_or_else(|| "n/a".to_owned(), |share| format!("{:.1} %", 100.0 * share))
    }

    /// One for people, with so many digits behind the point.
    pub fn show(&self, name: &str, digits: usize) -> String {
        self.known(name).map_or_else(
            || "n/a".to_owned(),
            |value| if digits == 0 { show_count(value.round() as u64) } else { format!("{value:.digits$}") },
        )
    }
}

/// A cell of the table.
pub struct Row {
    /// Values of the axes.
    pub values: Vec<String>,
    /// What the run came to.
    pub figures: Figures,
    /// Wear of the baseline on its most worn SSD in relation to this one's (P-13).
    pub lifespan: Option<f64>,
}

/// A whole number as one, where it is one; null if there is none.
pub fn number(value: Option<f64>) -> Value {
    let Some(value) = value else { return Value::Null };
    if value.fract() == 0.0 && (0.0..9e15).contains(&value) {
        Value::from(value as u64)
    } else {
        Value::from(value)
    }
}
