//! The result of a replay: for people and as JSON. `docs/replay.md` lists the keys; they are stable.

use crate::drive::phase::Phase;
use crate::drive::series::{Row, rows_json};
use crate::drive::verify::Checked;
use crate::provenance;
use crate::subject::gc::gc_json;
use crate::subject::snapshot::Snapshot;
use block::Stream;
use comfy_table::{CellAlignment, Table, presets};
use device::DeviceCounters;
use format::CheckpointKind;
use hdrhistogram::Histogram;
use node::status::Memory;
use node::units::{show_count, show_size};
use serde_json::{Map, Value, json};

/// The whole run.
pub struct Report {
    /// Options and sizes, as JSON.
    pub config: Value,
    /// That writes are acknowledged from memory, if they are.
    pub terms: Option<String>,
    /// What an elastic scheme ran with; null for others.
    pub placement: Value,
    /// The same in a line.
    pub placement_line: Option<String>,
    /// Memory of the array's maps at the end.
    pub memory: Option<Memory>,
    /// Seed of the payload and of the placement.
    pub seed: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Main devices, in front of the log devices.
    pub main_count: usize,
    /// Rows of the replay, if they were asked for.
    pub series: Option<Vec<Row>>,
    /// The fill, if there was one.
    pub fill: Option<Phase>,
    /// The replay.
    pub replay: Phase,
    /// What verification found.
    pub verified: Option<Checked>,
    /// Lines of the trace that were passed over.
    pub bad_lines: u64,
    /// What synthetic traces say of themselves; empty if none is.
    pub synthetic: Vec<String>,
}

fn of(bytes: &[u64; 4], stream: Stream) -> u64 {
    bytes[stream.index()]
}

/// The counters of a device, or of all, by role of what was moved.
fn counters(device: &DeviceCounters, chunk_bytes: u64) -> Map<String, Value> {
    let mut map = Map::new();
    for (stream, name) in [(Stream::Data, "data"), (Stream::Parity, "parity"), (Stream::Log, "log")] {
        map.insert(format!("{name}_chunks_written"), (of(&device.write_bytes, stream) / chunk_bytes).into());
        map.insert(format!("{name}_chunks_read"), (of(&device.read_bytes, stream) / chunk_bytes).into());
    }
    map.insert("metadata_bytes_written".to_owned(), of(&device.write_bytes, Stream::Metadata).into());
    map
}

fn sum(snapshot: &Snapshot) -> DeviceCounters {
    let mut total = DeviceCounters::default();
    snapshot.devices.iter().for_each(|&device| total += device);
    total
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn latency_json(latency: &Histogram<u64>) -> Value {
    let us = |percentile| latency.value_at_percentile(percentile) as f64 / 1e3;
    json!({
        "mean": latency.mean() / 1e3,
        "p50": us(50.0),
        "p99": us(99.0),
        "p999": us(99.9),
        "max": latency.max() as f64 / 1e3,
    })
}

const COUNTER_KEYS: [&str; 7] = [
    "data_chunks_written",
    "data_chunks_read",
    "parity_chunks_written",
    "parity_chunks_read",
    "log_chunks_written",
    "log_chunks_read",
    "metadata_bytes_written",
];

impl Phase {
    /// Chunks written to the main devices per chunk that requests wrote.
    fn write_amplification(&self, chunk_bytes: u64) -> Option<f64> {
        let total = sum(self.counted.as_ref()?);
        let bytes = of(&total.write_bytes, Stream::Data) + of(&total.write_bytes, Stream::Parity);
        ratio(bytes, self.outcome.chunks_written * chunk_bytes)
    }

    /// Metadata written to the main devices per byte of chunks that requests wrote; not part of
    /// `write_amplification`.
    fn metadata_write_amplification(&self, report: &Report) -> Option<f64> {
        let devices = self.counted.as_ref()?.devices.iter().take(report.main_count);
        let bytes = devices.map(|device| of(&device.write_bytes, Stream::Metadata)).sum();
        ratio(bytes, self.outcome.chunks_written * report.chunk_bytes)
    }

    /// Chunks overwritten in memory before a device had them, of those that requests wrote.
    fn absorbed_share(&self) -> Option<f64> {
        ratio(self.counted.as_ref()?.stats.cache.absorbed, self.outcome.chunks_written)
    }

    /// Bytes written to all devices per byte that requests wrote.
    fn write_amplification_all(&self) -> Option<f64> {
        ratio(sum(self.counted.as_ref()?).write_bytes_all(), self.outcome.bytes_written)
    }

    fn totals(&self, chunk_bytes: u64) -> Value {
        let mut map = Map::new();
        map.insert("requests".to_owned(), self.outcome.requests.into());
        map.insert("user_chunks_written".to_owned(), self.outcome.chunks_written.into());
        map.insert("user_chunks_read".to_owned(), self.outcome.chunks_read.into());
        match &self.counted {
            Some(counted) => map.append(&mut counters(&sum(counted), chunk_bytes)),
            None => map.extend(COUNTER_KEYS.map(|key| (key.to_owned(), Value::Null))),
        }
        Value::Object(map)
    }

    fn devices(&self, report: &Report) -> Value {
        let Some(counted) = &self.counted else { return json!([]) };
        let device = |(index, device): (usize, &DeviceCounters)| {
            let log = index >= report.main_count;
            let mut map = Map::new();
            map.insert("role".to_owned(), (if log { "log" } else { "main" }).into());
            map.insert("index".to_owned(), index.into());
            map.append(&mut counters(device, report.chunk_bytes));
            for (stream, name) in [(Stream::Data, "data"), (Stream::Parity, "parity"), (Stream::Log, "log")] {
                map.insert(format!("{name}_bytes_written"), of(&device.write_bytes, stream).into());
                map.insert(format!("{name}_bytes_read"), of(&device.read_bytes, stream).into());
            }
            map.insert("metadata_bytes_read".to_owned(), of(&device.read_bytes, Stream::Metadata).into());
            map.insert("flushes".to_owned(), device.flushes.into());
            map.insert("repositionings".to_owned(), device.repositionings.into());
            Value::Object(map)
        };
        Value::Array(counted.devices.iter().enumerate().map(device).collect())
    }

    /// The keys that the fill and the replay have alike.
    fn json(&self, report: &Report) -> Map<String, Value> {
        let stats = self.counted.as_ref().map(|counted| counted.stats);
        let mut map = Map::new();
        map.insert("totals".to_owned(), self.totals(report.chunk_bytes));
        map.insert("seconds".to_owned(), self.outcome.seconds.into());
        map.insert("requests_per_second".to_owned(), self.rate().into());
        map.insert("latency_us".to_owned(), latency_json(&self.outcome.latency));
        map.insert("write_amplification".to_owned(), self.write_amplification(report.chunk_bytes).into());
        map.insert(
            "metadata_write_amplification".to_owned(),
            self.metadata_write_amplification(report).into(),
        );
        map.insert("write_amplification_all".to_owned(), self.write_amplification_all().into());
        map.insert("absorbed_share".to_owned(), self.absorbed_share().into());
        let log_stripes = stats.map(|stats| {
            json!({ "count": stats.log_stripes, "mean_width": ratio(stats.log_members, stats.log_stripes) })
        });
        map.insert("log_stripes".to_owned(), log_stripes.into());
        let commit = stats.map(|stats| json!({ "count": stats.commits, "stripes": stats.stripes_committed }));
        map.insert("commit".to_owned(), commit.into());
        let cache = stats.map(|stats| {
            json!({
                "hits": stats.cache.hits,
                "absorbed_chunks": stats.cache.absorbed,
                "stripes_found": stats.cache.stripes_found,
                "stripes_not_found": stats.cache.stripes_not_found,
            })
        });
        map.insert("cache".to_owned(), cache.into());
        let gc = self.counted.as_ref().map(|counted| gc_json(&counted.gc));
        map.insert("gc".to_owned(), gc.into());
        let stripes = stats.map(|stats| json!({ "full": stats.full_stripes, "short": stats.short_stripes }));
        map.insert("stripes".to_owned(), stripes.into());
        let at_end = self.commit.as_ref().map(|(seconds, counted)| {
            let mut map = counters(&sum(counted), report.chunk_bytes);
            map.insert("seconds".to_owned(), (*seconds).into());
            map.insert("stripes".to_owned(), counted.stats.stripes_committed.into());
            Value::Object(map)
        });
        map.insert("commit_at_end".to_owned(), at_end.into());
        let checkpoint = self.checkpoint.as_ref().map(|(kind, counted)| {
            let devices = counted.devices.iter().take(report.main_count);
            let main: u64 = devices.map(|device| of(&device.write_bytes, Stream::Metadata)).sum();
            let all = of(&sum(counted).write_bytes, Stream::Metadata);
            let kind = match kind {
                CheckpointKind::Full => "full",
                CheckpointKind::Incremental => "incremental",
            };
            json!({ "kind": kind, "metadata_bytes_written": all, "main_bytes_written": main })
        });
        map.insert("checkpoint_at_end".to_owned(), checkpoint.into());
        map.insert("checkpoints".to_owned(), stats.map(|stats| stats.checkpoints).into());
        map.insert("degraded_reads".to_owned(), stats.map(|stats| stats.covers).into());
        map.insert("devices".to_owned(), self.devices(report));
        map
    }

    fn rate(&self) -> f64 {
        self.outcome.requests as f64 / self.outcome.seconds.max(1e-9)
    }
}

impl Report {
    /// Everything as one object: the replay's keys, and the fill's under `fill`.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
        map.insert("provenance".to_owned(), provenance::json());
        map.insert("seed".to_owned(), self.seed.into());
        map.insert("config".to_owned(), self.config.clone());
        let synthetic = (!self.synthetic.is_empty()).then(|| self.synthetic.clone());
        map.insert("synthetic".to_owned(), synthetic.into());
        map.insert("placement".to_owned(), self.placement.clone());
        map.append(&mut self.replay.json(self));
        map.insert("fill".to_owned(), self.fill.as_ref().map(|fill| Value::Object(fill.json(self))).into());
        map.insert("series".to_owned(), rows_json(self.series.as_deref()));
        let verified = self.verified.map(|checked| {
            json!({
                "sectors_checked": checked.sectors,
                "sectors_unknown": checked.unknown,
                "mismatches": checked.mismatches,
                "first_mismatch": checked.first.map(|first| first.to_string()),
            })
        });
        map.insert("verify".to_owned(), verified.into());
        map.insert("memory".to_owned(), self.memory.map(|memory| json!(memory)).into());
        map.insert("bad_lines_skipped".to_owned(), self.bad_lines.into());
        Value::Object(map)
    }

    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for synthetic in &self.synthetic {
            text.push_str(&format!("trace    synthetic, {synthetic}\n"));
        }
        if let Some(placement) = &self.placement_line {
            text.push_str(&format!("groups   {placement}\n"));
        }
        if let Some(fill) = &self.fill {
            text.push_str(&self.phase_text("fill", fill));
        }
        text.push_str(&self.phase_text("replay", &self.replay));
        if let Some(table) = self.device_table() {
            text.push_str(&table);
            text.push('\n');
        }
        if let Some(checked) = &self.verified {
            let unknown = match checked.unknown {
                0 => String::new(),
                count => format!(", {} more read that nobody wrote", show_count(count)),
            };
            text.push_str(&format!(
                "verify   {} sectors compared, {} wrong{unknown}\n",
                show_count(checked.sectors),
                show_count(checked.mismatches)
            ));
        }
        if self.bad_lines > 0 {
            text.push_str(&format!("trace    {} bad lines passed over\n", show_count(self.bad_lines)));
        }
        if let Some(terms) = &self.terms {
            text.push_str(&format!("terms    {terms}\n"));
        }
        text.push_str(&format!("made by  {}\n", provenance::text()));
        text
    }

    fn phase_text(&self, name: &str, phase: &Phase) -> String {
        let outcome = &phase.outcome;
        let us = |percentile| outcome.latency.value_at_percentile(percentile) as f64 / 1e3;
        let mut text = format!(
            "{name:<8} {} requests in {:.3} s: {} requests/s, {} written, {} read\n",
            show_count(outcome.requests),
            outcome.seconds,
            show_count(phase.rate() as u64),
            show_size(outcome.bytes_written),
            show_size(outcome.bytes_read),
        );
        text.push_str(&format!(
            "         latency mean {:.1} us, p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1}\n",
            outcome.latency.mean() / 1e3,
            us(50.0),
            us(99.0),
            us(99.9),
            outcome.latency.max() as f64 / 1e3,
        ));
        if let (Some(ssd), Some(metadata), Some(all)) = (
            phase.write_amplification(self.chunk_bytes),
            phase.metadata_write_amplification(self),
            phase.write_amplification_all(),
        ) {
            text.push_str(&format!(
                "         SSD chunks written per user chunk {ssd:.3}, and {metadata:.3} of metadata; bytes to all devices per user byte \
                 {all:.3}\n"
            ));
        }
        if let Some(counted) = phase.counted.as_ref().filter(|_| self.placement_line.is_some()) {
            text.push_str(&elastic_text(counted));
        } else if let Some(stats) = phase.counted.as_ref().map(|counted| counted.stats) {
            let width = ratio(stats.log_members, stats.log_stripes).unwrap_or(0.0);
            text.push_str(&format!(
                "         {} log stripes, {width:.2} chunks wide; {} commits of {} stripes; {} checkpoints\n",
                show_count(stats.log_stripes),
                show_count(stats.commits),
                show_count(stats.stripes_committed),
                show_count(stats.checkpoints),
            ));
        }
        if let Some(stats) = phase.counted.as_ref().map(|counted| counted.stats)
            && stats.cache.hits + stats.cache.absorbed > 0
        {
            text.push_str(&format!(
                "         memory: {} chunks read from it, {} absorbed ({:.1} % of those written): overwritten in it, never written\n",
                show_count(stats.cache.hits),
                show_count(stats.cache.absorbed),
                100.0 * phase.absorbed_share().unwrap_or(0.0),
            ));
        }
        if let Some(stats) = phase.counted.as_ref().map(|counted| counted.stats)
            && stats.cache.stripes_found + stats.cache.stripes_not_found > 0
        {
            text.push_str(&format!(
                "         cache of stripes: {} of {} stripes written were in it\n",
                show_count(stats.cache.stripes_found),
                show_count(stats.cache.stripes_found + stats.cache.stripes_not_found),
            ));
        }
        if let Some((seconds, counted)) = &phase.commit {
            text.push_str(&format!(
                "         commit at the end: {} stripes in {seconds:.3} s\n",
                show_count(counted.stats.stripes_committed)
            ));
        }
        text
    }

    /// Chunks per device in the replay.
    fn device_table(&self) -> Option<String> {
        let counted = self.replay.counted.as_ref()?;
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header([
            "device",
            "data w",
            "parity w",
            "log w",
            "data r",
            "parity r",
            "log r",
            "metadata w",
        ]);
        let row = |name: String, device: &DeviceCounters| {
            let chunks = |bytes: &[u64; 4], stream| show_count(of(bytes, stream) / self.chunk_bytes);
            vec![
                name,
                chunks(&device.write_bytes, Stream::Data),
                chunks(&device.write_bytes, Stream::Parity),
                chunks(&device.write_bytes, Stream::Log),
                chunks(&device.read_bytes, Stream::Data),
                chunks(&device.read_bytes, Stream::Parity),
                chunks(&device.read_bytes, Stream::Log),
                show_size(of(&device.write_bytes, Stream::Metadata)),
            ]
        };
        for (index, device) in counted.devices.iter().enumerate() {
            let name = match index.checked_sub(self.main_count) {
                None => format!("data{index}"),
                Some(log) => format!("log{log}"),
            };
            table.add_row(row(name, device));
        }
        table.add_row(row("all".to_owned(), &sum(counted)));
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        Some(table.trim_fmt())
    }
}

/// What elastic schemes have instead of log stripes and commits.
fn elastic_text(counted: &Snapshot) -> String {
    let (stats, gc) = (counted.stats, counted.gc);
    format!(
        "         {} full stripes, {} short ones; gc: {} units, {} chunks rewritten, {} read; {} checkpoints\n",
        show_count(stats.full_stripes),
        show_count(stats.short_stripes),
        show_count(gc.units_collected),
        show_count(gc.chunks_rewritten),
        show_count(gc.chunks_read),
        show_count(stats.checkpoints),
    )
}
