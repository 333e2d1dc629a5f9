//! What a run came to, for people and as JSON. `docs/simulate.md` lists the keys.

use super::figures::{Figures, NAMES, number};
use super::outcome::{DeviceFigures, Outcome, Stretch};
use super::rebuild::Rebuilt;
use crate::drive::series::rows_json;
use crate::provenance;
use crate::subject::gc::gc_json;
use comfy_table::{CellAlignment, Table, presets};
use node::units::{show_count, show_size};
use serde_json::{Map, Value, json};
use std::time::Duration;

impl Outcome {
    /// Chunk writes of users per CPU second, devices included.
    fn rate(&self) -> f64 {
        self.run.phase.outcome.chunks_written as f64 / self.cpu_seconds.max(1e-9)
    }

    /// Everything as one object. Only what is under `cpu` differs between runs.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
        map.insert("provenance".to_owned(), provenance::json());
        map.insert("seed".to_owned(), self.seed.into());
        map.insert("config".to_owned(), self.config.clone());
        map.insert("placement".to_owned(), self.placement.clone());
        for (name, value) in NAMES.iter().zip(self.figures().values()) {
            map.insert((*name).to_owned(), number(*value));
        }
        map.append(&mut self.stretch_json(&self.run));
        let fill = self.fill.as_ref().map(|fill| Value::Object(self.stretch_json(fill)));
        map.insert("fill".to_owned(), fill.into());
        map.insert("series".to_owned(), rows_json(self.series.as_deref()));
        map.insert("rebuild".to_owned(), self.rebuilt.map(Rebuilt::to_json).into());
        map.insert("lifetime".to_owned(), self.lifetime_json());
        map.insert("memory".to_owned(), json!(self.memory));
        let cpu = json!({ "seconds": self.cpu_seconds, "user_chunks_written_per_cpu_second": self.rate() });
        map.insert("cpu".to_owned(), cpu);
        Value::Object(map)
    }

    fn stretch_json(&self, stretch: &Stretch) -> Map<String, Value> {
        let mut map = Map::new();
        if let Some(counted) = &stretch.phase.counted {
            let stats = counted.stats;
            map.insert(
                "log_stripes".to_owned(),
                json!({ "count": stats.log_stripes, "members": stats.log_members }),
            );
            map.insert(
                "stripes".to_owned(),
                json!({ "full": stats.full_stripes, "short": stats.short_stripes }),
            );
            map.insert(
                "commit".to_owned(),
                json!({ "count": stats.commits, "stripes": stats.stripes_committed }),
            );
            map.insert(
                "cache".to_owned(),
                json!({ "hits": stats.cache.hits, "absorbed_chunks": stats.cache.absorbed }),
            );
            map.insert("gc".to_owned(), gc_json(&counted.gc));
            map.insert("checkpoints".to_owned(), stats.checkpoints.into());
        }
        let at_end = stretch.phase.commit.as_ref().map(|(seconds, counted)| {
            json!({ "virtual_seconds": seconds, "stripes": counted.stats.stripes_committed })
        });
        map.insert("commit_at_end".to_owned(), at_end.into());
        let devices = stretch.devices.iter().enumerate();
        let devices = devices.map(|(index, device)| self.device_json(stretch, index, device));
        map.insert("devices".to_owned(), Value::Array(devices.collect()));
        map
    }

    fn device_json(&self, stretch: &Stretch, index: usize, device: &DeviceFigures) -> Value {
        let counters = &device.counters;
        let engine = stretch.phase.counted.as_ref().and_then(|counted| counted.devices.get(index));
        json!({
            "role": if index < self.main_count { "main" } else { "log" },
            "index": index,
            "bytes_written": engine.map(|engine| engine.write_bytes_all()),
            "repositionings": engine.map(|engine| engine.repositionings),
            "bytes_read": engine.map(|engine| engine.read_bytes_all()),
            "bytes_discarded": engine.map(|engine| engine.discard_bytes),
            "flushes": engine.map(|engine| engine.flushes),
            "host_pages_written": counters.host_pages_written,
            "parity_pages_written": counters.parity_pages_written,
            "host_pages_read": counters.host_pages_read,
            "host_pages_trimmed": counters.host_pages_trimmed,
            "flash_pages_written": counters.flash_pages_written(),
            "flash_pages_written_slc": counters.programs_slc,
            "page_copies": counters.page_copies,
            "wear_levelling_copies": counters.wear_copies,
            "translation_writes": counters.translation_writes,
            "gc_operations": counters.gc_operations,
            "erases": counters.erases,
            "erases_slc": counters.erases_slc,
            "wear": counters.wear(self.stress_ratio),
            "erases_per_block": device.wear.map(|wear| json!({
                "min": wear.min, "max": wear.max, "mean": wear.mean, "deviation": wear.deviation,
            })),
        })
    }

    /// The report for people.
    pub fn to_text(&self) -> String {
        let figures = self.figures();
        let get = |name| figures.get(name);
        let done = &self.run.phase.outcome;
        let mut text = String::new();
        if let Some(placement) = &self.placement_line {
            text.push_str(&format!("groups     {placement}\n"));
        }
        if let Some(fill) = &self.fill {
            text.push_str(&format!(
                "fill       {} in {:.3} virtual s\n",
                show_size(fill.phase.outcome.bytes_written),
                Duration::from_nanos(fill.virtual_ns).as_secs_f64()
            ));
        }
        text.push_str(&format!(
            "{:<10} {} requests in {:.3} virtual s: {} requests/s, {} written, {} read\n",
            self.scheme,
            show_count(done.requests),
            get("virtual_seconds"),
            figures.show("requests_per_second", 0),
            show_size(done.bytes_written),
            show_size(done.bytes_read),
        ));
        text.push_str(&rates(&figures));
        text.push_str(&format!(
            "chunks     {} of users, {} of them ({}) overwritten in memory and never written; {} of logs; {} stripes committed\n",
            show_count(get("user_chunks_written") as u64),
            show_count(get("absorbed_chunks") as u64),
            figures.show_percent("absorbed_share"),
            show_count(get("log_chunks_written") as u64),
            show_count(get("stripes_committed") as u64),
        ));
        text.push_str(&format!(
            "per SSD    GC operations {:.1} ({} to {}; {:.1} with the fill), erases {:.1} ({} to {})\n",
            get("gc_operations_mean"),
            get("gc_operations_min"),
            get("gc_operations_max"),
            get("gc_operations_mean_with_fill"),
            get("erases_mean"),
            get("erases_min"),
            get("erases_max"),
        ));
        text.push_str(&self.rebuilt.map_or(String::new(), |rebuilt| rebuilt.line()));
        text.push_str(&self.lifetime_line());
        text.push_str(&self.device_table());
        text.push_str(&format!(
            "\ncpu        {:.2} s, {} chunks of users per CPU second\n",
            self.cpu_seconds,
            show_count(self.rate() as u64)
        ));
        if let Some(terms) = &self.terms {
            text.push_str(&format!("terms      {terms}\n"));
        }
        text.push_str(&format!("made by    {}\n", provenance::text()));
        text
    }

    fn device_table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header([
            "device",
            "host pages w",
            "flash pages w",
            "copies",
            "GC ops",
            "erases",
            "trimmed",
            "host pages r",
        ]);
        for (index, device) in self.run.devices.iter().enumerate() {
            let name = match index.checked_sub(self.main_count) {
                None => format!("data{index}"),
                Some(log) => format!("log{log}"),
            };
            let c = &device.counters;
            let counts = [
                c.host_pages_written,
                c.flash_pages_written(),
                c.page_copies,
                c.gc_operations,
                c.erases,
                c.host_pages_trimmed,
                c.host_pages_read,
            ];
            table.add_row(std::iter::once(name).chain(counts.map(show_count)));
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        table.trim_fmt()
    }
}

/// Latencies, and what was written for what users wrote.
fn rates(figures: &Figures) -> String {
    let show = |name, digits| figures.show(name, digits);
    let latency = format!(
        "latency    mean {} us, p50 {}, p99 {}, p99.9 {}, max {}\n",
        show("latency_us_mean", 1),
        show("latency_us_p50", 1),
        show("latency_us_p99", 1),
        show("latency_us_p999", 1),
        show("latency_us_max", 1),
    );
    let writes = format!(
        "writes     per byte of users {}: RAID {} (metadata {} of it) x device {}; {} to log devices\n",
        show("write_amplification", 3),
        show("raid_write_amplification", 3),
        show("metadata_write_amplification", 3),
        show("device_write_amplification", 3),
        show("log_write_amplification", 3),
    );
    latency + &writes
}
