//! What a store came to, for people and as JSON.

use super::measure::Measured;
use super::{Arguments, Devices, Layout};
use crate::number::float;
use crate::provenance;
use crate::terms::Terms;
use clap::ValueEnum;
use node::output;
use node::units::{show_count, show_size};
use serde_json::{Value, json};

/// A choice by its name on the command line.
fn name(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn rounded(rate: f64) -> String {
    show_count(format!("{rate:.0}").parse().unwrap_or(0))
}

/// What carries the store.
fn volume(arguments: &Arguments, m: &Measured) -> String {
    if arguments.nbd.is_some() { "nbd".to_owned() } else { m.scheme.to_string() }
}

/// Prints one row.
pub fn print(arguments: &Arguments, m: &Measured) {
    let time = if arguments.device == Devices::Simulated { " of virtual time" } else { "" };
    output::line(format_args!(
        "{:<7} {:<10} {:>9}/s{time}, {:>9} per CPU second; p50 {:.1} us, p99 {:.1}, p99.9 {:.1}",
        m.workload,
        volume(arguments, m),
        rounded(m.rate()),
        rounded(m.cpu_rate()),
        m.micros(50.0),
        m.micros(99.0),
        m.micros(99.9),
    ));
    if let Some([data, parity, log, metadata]) = m.written_per_byte() {
        output::line(format_args!(
            "        written per byte of users: data {data:.3}, parity {parity:.3}, log {log:.3}, metadata {metadata:.3}; by the \
             store {:.3}",
            m.volume_per_byte().unwrap_or(0.0)
        ));
    }
    if let (None, Some(store)) = (m.written_per_byte(), m.volume_per_byte()) {
        output::line(format_args!(
            "        written by the store per byte of users: {store:.3}; by devices: not seen"
        ));
    }
    let percent =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    output::line(format_args!(
        "        cache hits {}, moved by compaction {} of what was appended; index and cache {}",
        percent(m.hit_rate()),
        percent(m.compaction_share()),
        show_size(m.kept.memory_bytes),
    ));
}

/// On what terms the figures came about.
pub fn terms(arguments: &Arguments) -> Option<String> {
    let mut terms = Terms::default();
    if arguments.nbd.is_some() {
        return None;
    }
    arguments.schemes.iter().for_each(|scheme| terms.add(scheme.name(), scheme.is_elastic()));
    terms.line("Compare what is written per byte of users beside the rates.")
}

fn row(arguments: &Arguments, m: &Measured) -> Value {
    let [data, parity, log, metadata] = m.written_per_byte().map_or([None; 4], |all| all.map(Some));
    json!({
        "workload": m.workload.to_string(),
        "scheme": arguments.nbd.is_none().then(|| m.scheme.to_string()),
        "requests": m.requests,
        "seconds": float(m.ns) / 1e9,
        "per_second": m.rate(),
        "cpu_seconds": float(m.cpu_ns) / 1e9,
        "per_cpu_second": m.cpu_rate(),
        "latency_us": {
            "mean": m.latency.mean() / 1e3,
            "p50": m.micros(50.0),
            "p99": m.micros(99.0),
            "p999": m.micros(99.9),
            "max": m.micros(100.0),
        },
        "cache_hit_share": m.hit_rate(),
        "compaction_share": m.compaction_share(),
        "given_bytes": m.kept.given_bytes,
        "volume_bytes_per_user_byte": m.volume_per_byte(),
        "data_bytes_per_user_byte": data,
        "parity_bytes_per_user_byte": parity,
        "log_bytes_per_user_byte": log,
        "metadata_bytes_per_user_byte": metadata,
        "device_bytes_read": m.is_counted.then_some(m.read_bytes),
        "stripes_committed": m.is_counted.then_some(m.stripes_committed),
        "chunks_collected": m.is_counted.then_some(m.chunks_collected),
        "memory_bytes": m.kept.memory_bytes,
        "live_bytes": m.kept.live_bytes,
        "capacity_bytes": m.kept.capacity_bytes,
    })
}

/// Everything as one object.
pub fn to_json(arguments: &Arguments, results: &[Measured]) -> Value {
    let load = &arguments.load;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "provenance": provenance::json(),
        "seed": arguments.seed,
        "config": {
            "device": if arguments.nbd.is_some() { "nbd".to_owned() } else { name(&arguments.device) },
            "layout": name(&arguments.layout),
            "geometry": arguments.nbd.is_none().then(|| arguments.geometry.to_string()),
            "keys": load.keys,
            "pair_bytes": load.pair_size,
            "cache_percent": load.cache,
            "cache_records_bytes": (arguments.layout == Layout::Log).then_some(load.cache_records),
            "keys_by": name(&load.keys_by),
            "queue_depth": load.queue_depth,
            "sync": (arguments.layout == Layout::Log).then(|| name(&load.sync)),
            "fill_percent": (arguments.layout == Layout::Log && arguments.nbd.is_none()).then_some(arguments.fill),
            "commits": arguments.nbd.is_none().then_some(!arguments.no_commits),
            "ssd": (arguments.device == Devices::Simulated).then_some(&arguments.ssd),
            "log_device": (arguments.device == Devices::Simulated).then_some(&arguments.log_device),
        },
        "notes": terms(arguments),
        "results": results.iter().map(|measured| row(arguments, measured)).collect::<Vec<_>>(),
    })
}
