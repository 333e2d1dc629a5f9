//! What `flash run` and `flash presets` print.

use super::config::{frontier_name, gc_name, levelling_name, streams_name};
use super::workload::Source;
use super::{Measured, RunArguments};
use crate::drive::series::rows_json;
use crate::number::float;
use crate::provenance;
use flash::{DeviceConfig, GcPolicy, Pattern, SlcCap, Ssd, SsdConfig, presets, theory};
use hdrhistogram::Histogram;
use node::units::{show_count, show_size};
use serde_json::{Value, json};

/// Everything a report is made of.
pub struct Report<'a> {
    pub arguments: &'a RunArguments,
    pub ssd: &'a Ssd,
    pub measured: &'a Measured,
    pub latencies: &'a Histogram<u64>,
}

impl Report<'_> {
    fn rate(&self) -> Option<f64> {
        let written = self.ssd.counters().flash_pages_written() as f64;
        (self.measured.cpu_seconds > 0.0).then(|| written / self.measured.cpu_seconds)
    }

    /// Flash pages per page of the host; nothing if it wrote none.
    fn amplification(&self) -> Option<f64> {
        let counters = self.ssd.counters();
        (counters.host_pages_written > 0).then(|| counters.write_amplification())
    }

    /// What a closed form says, where there is one for this configuration.
    fn closed_form(&self) -> Option<f64> {
        let config = self.ssd.config();
        let plain = config.mapping.is_none()
            && config.slc.is_none()
            && config.wear_levelling.static_spread.is_none()
            && self.arguments.parity_writes == 0.0;
        if !plain || self.arguments.workload != Source::Pattern(Pattern::Uniform) {
            return None;
        }
        let (np, a) = (config.geometry.pages_per_block, config.spare() / self.arguments.utilization);
        match config.gc {
            GcPolicy::Greedy => Some(theory::greedy(np, a)),
            GcPolicy::Fifo => Some(theory::fifo(a)),
            GcPolicy::DChoices(choices) if choices <= 64 => Some(theory::d_choices(np, a, choices)),
            GcPolicy::DChoices(_) | GcPolicy::CostBenefit => None,
        }
        .filter(|value| value.is_finite())
    }

    /// All of it.
    pub fn json(&self) -> Value {
        let counters = self.ssd.counters();
        let wear = self.ssd.wear();
        let (slc_blocks, slc_cap) = self.ssd.slc_blocks();
        let ratio = self.arguments.device.stress_ratio;
        let host_pages = float(counters.host_pages_written);
        let mut json = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "provenance": provenance::json(),
            "seed": self.arguments.seed,
            "config": config_json(self.ssd.config()),
            "workload": workload_name(&self.arguments.workload),
            "utilization": self.arguments.utilization,
            "warmup_drive_writes": self.arguments.warmup,
            "drive_writes": self.arguments.drive_writes,
            "parity_writes": self.arguments.parity_writes,
            "parity_space": self.arguments.parity_space,
            "write_amplification": self.amplification(),
            "closed_form": self.closed_form(),
            "host_pages_written": counters.host_pages_written,
            "parity_pages_written": counters.parity_pages_written,
            "host_pages_read": counters.host_pages_read,
            "host_pages_trimmed": counters.host_pages_trimmed,
            "flash_pages_written": counters.flash_pages_written(),
            "flash_pages_written_slc": counters.programs_slc,
            "page_copies": counters.page_copies,
            "page_copies_slc": counters.page_copies_slc,
            "wear_levelling_copies": counters.wear_copies,
            "translation_reads": counters.translation_reads,
            "translation_writes": counters.translation_writes,
            "gc_operations": counters.gc_operations,
            "erases": counters.erases,
            "erases_slc": counters.erases_slc,
            "slc_conversions": counters.slc_conversions,
            "mlc_conversions": counters.mlc_conversions,
            "slc_blocks": slc_blocks,
            "slc_blocks_cap": slc_cap,
            "stress_ratio": ratio,
            "wear_per_host_page": self.amplification().map(|_| counters.wear(ratio) / host_pages),
            "erases_per_block": {
                "min": wear.min, "max": wear.max, "mean": wear.mean, "deviation": wear.deviation,
            },
            "streams": self.ssd.streams_in_use(),
            "memory_bytes": self.ssd.memory_bytes(),
            "memory_bytes_per_flash_page":
                self.ssd.memory_bytes() as f64 / self.ssd.config().geometry.raw_pages() as f64,
            "cpu_seconds": self.measured.cpu_seconds,
            "flash_pages_written_per_cpu_second": self.rate(),
            "latency_us": self.latencies_json(),
            "virtual_seconds": self.ssd.config().timing.map(|_| self.measured.virtual_ns as f64 / 1e9),
            "host_pages_written_per_virtual_second": self.throughput(),
        });
        json["series"] = rows_json(self.measured.rows.as_deref());
        json
    }

    fn throughput(&self) -> Option<f64> {
        let written = self.ssd.counters().host_pages_written as f64;
        (self.measured.virtual_ns > 0).then(|| written / (self.measured.virtual_ns as f64 / 1e9))
    }

    fn latencies_json(&self) -> Value {
        if self.latencies.is_empty() || self.ssd.config().timing.is_none() {
            return Value::Null;
        }
        let of = |quantile| self.latencies.value_at_quantile(quantile) as f64 / 1e3;
        json!({
            "mean": self.latencies.mean() / 1e3, "p50": of(0.5), "p99": of(0.99), "p999": of(0.999),
            "max": self.latencies.max() as f64 / 1e3,
        })
    }

    /// The main figures for people.
    pub fn text(&self) -> String {
        let counters = self.ssd.counters();
        let config = self.ssd.config();
        let wear = self.ssd.wear();
        let mut lines = vec![
            format!(
                "SSD                  {} for the host, {} blocks of {} pages of {}, spare factor {:.4}",
                show_size(config.logical_pages * u64::from(config.geometry.page_bytes)),
                show_count(u64::from(config.geometry.blocks())),
                config.geometry.pages_per_block,
                show_size(u64::from(config.geometry.page_bytes)),
                config.spare()
            ),
            format!(
                "workload             {}, seed {}",
                workload_name(&self.arguments.workload),
                self.arguments.seed
            ),
            format!(
                "write amplification  {}",
                self.amplification().map_or_else(|| "n/a".to_owned(), |found| format!("{found:.4}"))
            ),
        ];
        if let Some(closed) = self.closed_form() {
            let deviation = self.amplification().map(|found| (found / closed - 1.0) * 100.0);
            let deviation = deviation.map_or_else(String::new, |percent| format!(" ({percent:+.2} %)"));
            lines.push(format!("closed form          {closed:.4}{deviation}"));
        }
        lines.push(format!("host pages written   {}", show_count(counters.host_pages_written)));
        lines.push(format!("flash pages written  {}", show_count(counters.flash_pages_written())));
        lines.push(format!("page copies          {}", show_count(counters.page_copies)));
        lines.push(format!("GC operations        {}", show_count(counters.gc_operations)));
        lines.push(format!(
            "erases               {}, per block {} to {} (mean {:.1})",
            show_count(counters.erases),
            wear.min,
            wear.max,
            wear.mean
        ));
        if counters.translation_writes > 0 {
            lines.push(format!(
                "translation pages    {} read, {} written",
                show_count(counters.translation_reads),
                show_count(counters.translation_writes)
            ));
        }
        if let Some(per_s) = self.throughput() {
            let of = |quantile| self.latencies.value_at_quantile(quantile) as f64 / 1e3;
            lines.push(format!("virtual time         {per_s:.0} host pages/s"));
            lines.push(format!("latency              p50 {:.0} us, p99 {:.0} us", of(0.5), of(0.99)));
        }
        if let Some(rate) = self.rate() {
            lines.push(format!("speed                {:.1} M flash page writes per CPU second", rate / 1e6));
        }
        lines.push(format!("made by              {}", provenance::text()));
        lines.join("\n")
    }
}

fn workload_name(source: &Source) -> String {
    match source {
        Source::Pattern(Pattern::Uniform) => "uniform".to_owned(),
        Source::Pattern(Pattern::Zipf(theta)) => format!("zipf:{theta}"),
        Source::Trace(path) => path.display().to_string(),
    }
}

/// What an SSD is, as JSON.
pub fn config_json(config: &SsdConfig) -> Value {
    let geometry = &config.geometry;
    json!({
        "logical_pages": config.logical_pages,
        "page_bytes": geometry.page_bytes,
        "blocks": geometry.blocks(),
        "pages_per_block": geometry.pages_per_block,
        "summary_pages_per_block": geometry.summary_pages_per_block,
        "planes": geometry.planes(),
        "channels": geometry.channels,
        "spare_factor": config.spare(),
        "free_blocks_min": config.free_blocks_min,
        "domains": config.domains,
        "ways": config.ways,
        "gc": gc_name(config.gc),
        "gc_frontier": frontier_name(config.gc_frontier),
        "streams": streams_name(config.streams.separation),
        "stream_limit": config.streams.limit,
        "parity_classes": config.streams.parity_classes,
        "mapping_cache_bytes": config.mapping.map(|mapping| mapping.cache_bytes),
        "wear_levelling": levelling_name(config.wear_levelling),
        "slc_cap": config.slc.map(|slc| match slc.cap {
            SlcCap::Share(share) => json!(share),
            SlcCap::Dynamic(dynamic) => json!(format!("dynamic:{}", dynamic.slack)),
        }),
        "timed": config.timing.is_some(),
    })
}

/// The presets, one line or one object each.
pub fn presets(as_json: bool) -> String {
    let each = presets::NAMES.into_iter().filter_map(|name| Some((name, presets::by_name(name)?)));
    if as_json {
        let list: Vec<Value> = each
            .map(|(name, device)| match device {
                DeviceConfig::Ssd(config) => json!({"name": name, "kind": "ssd", "config": config_json(&config)}),
                DeviceConfig::Hdd(options) => {
                    json!({"name": name, "kind": "hdd", "size_bytes": options.pages * u64::from(options.page_bytes)})
                }
                DeviceConfig::BlackBox(options) => json!({
                    "name": name, "kind": "black-box",
                    "size_bytes": options.rates.pages * u64::from(options.rates.page_bytes),
                }),
            })
            .collect();
        return format!("{:#}", Value::Array(list));
    }
    let lines: Vec<String> = each
        .map(|(name, device)| match device {
            DeviceConfig::Ssd(config) => {
                let bytes = config.logical_pages * u64::from(config.geometry.page_bytes);
                format!("{name:<20} SSD, {}, spare factor {:.3}", show_size(bytes), config.spare())
            }
            DeviceConfig::Hdd(options) => {
                format!("{name:<20} hard disk, {}", show_size(options.pages * u64::from(options.page_bytes)))
            }
            DeviceConfig::BlackBox(options) => {
                let bytes = options.rates.pages * u64::from(options.rates.page_bytes);
                format!("{name:<20} black box, {}", show_size(bytes))
            }
        })
        .collect();
    lines.join("\n")
}
