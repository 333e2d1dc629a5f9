//! What `bench` prints: for people and as JSON.

use super::Arguments;
use super::counts::Counts;
use super::rig::AGE_PASSES;
use super::threads::Spread;
use super::workload::{Measured, Workload};
use crate::provenance;
use crate::subject::build::{DeviceKind, code_or_default};
use crate::subject::gc::gc_json;
use crate::terms::Terms;
use format::SchemeKind;
use hdrhistogram::Histogram;
use node::output;
use node::units::{show_count, show_size};
use serde_json::{Value, json};

/// A percentile in microseconds.
pub fn micros(latency: &Histogram<u64>, percentile: f64) -> f64 {
    latency.value_at_percentile(percentile) as f64 / 1e3
}

/// What one thing counted is called.
fn unit(workload: Workload) -> &'static str {
    match workload {
        Workload::Burst | Workload::RandWrite | Workload::Sustained | Workload::SeqWrite => "writes/s",
        Workload::RandRead | Workload::SeqRead => "reads/s",
        Workload::Commit => "stripes/s",
        Workload::Rebuild => "chunks/s",
    }
}

/// Least and most.
pub fn spread(rates: &[f64]) -> (f64, f64) {
    (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max))
}

/// A scheme on as many threads and shards.
fn on(measured: &[Measured], scheme: SchemeKind, spread: Spread) -> Option<&Measured> {
    measured.iter().find(|m| (m.scheme, m.spread) == (scheme, spread))
}

/// How many times more the first eplog does per CPU second than the first raid, if both ran on as many
/// threads.
fn ratio(measured: &[Measured], spread: Spread) -> Option<f64> {
    let of = |scheme| on(measured, scheme, spread).map(Measured::cpu_rate);
    Some(of(SchemeKind::Eplog)? / of(SchemeKind::Raid)?.max(f64::MIN_POSITIVE))
}

/// How many times as much a scheme does per CPU second as the first eplog on as many threads, if that ran
/// and is another.
fn over_eplog(m: &Measured, measured: &[Measured]) -> Option<f64> {
    let eplog = on(measured, SchemeKind::Eplog, m.spread)?;
    (m.scheme != SchemeKind::Eplog).then(|| m.cpu_rate() / eplog.cpu_rate().max(f64::MIN_POSITIVE))
}

/// The same scheme on the fewest threads, and how many times as much is done here; `None` if these are the
/// fewest.
fn over_fewest(m: &Measured, measured: &[Measured]) -> Option<(Spread, f64)> {
    let others = measured.iter().filter(|other| other.scheme == m.scheme);
    let fewest = others.min_by_key(|other| other.spread.threads)?;
    let ratio = m.rate() / fewest.rate().max(f64::MIN_POSITIVE);
    (fewest.spread != m.spread).then_some((fewest.spread, ratio))
}

/// What garbage collection took, of a workload in which it runs.
fn gc_line(workload: Workload, m: &Measured) -> Option<String> {
    let measures_gc =
        matches!(workload, Workload::Burst | Workload::RandWrite | Workload::Sustained | Workload::SeqWrite);
    if !m.scheme.is_elastic() || !measures_gc {
        return None;
    }
    let (counts, gc) = (m.counts(), m.counts().gc);
    let aged = match workload {
        Workload::RandWrite | Workload::Sustained => {
            format!("volume overwritten {AGE_PASSES} times before; ")
        }
        Workload::Burst
        | Workload::RandRead
        | Workload::SeqRead
        | Workload::SeqWrite
        | Workload::Commit
        | Workload::Rebuild => String::new(),
    };
    Some(format!(
        "{aged}gc: {} units, {} chunks rewritten, {:.2} for each written; {} full stripes, {} short ones",
        show_count(gc.units_collected),
        show_count(gc.chunks_rewritten),
        gc.chunks_rewritten as f64 / (m.bytes / m.chunk_bytes).max(1) as f64,
        show_count(counts.full_stripes),
        show_count(counts.short_stripes),
    ))
}

/// What was written for what users wrote, of a workload that writes.
fn written_line(workload: Workload, m: &Measured) -> Option<String> {
    let [absorbed, ssd, metadata, log] = written(workload, m)?;
    Some(format!(
        "written per byte of users: {ssd:.3} to SSDs ({metadata:.3} of it metadata), {log:.3} to log devices; absorbed in memory {:.1} %",
        100.0 * absorbed
    ))
}

/// Share of chunks absorbed in memory; bytes to SSDs, metadata among them, and to log devices, per byte of
/// users.
fn written(workload: Workload, m: &Measured) -> Option<[f64; 4]> {
    let writes =
        matches!(workload, Workload::Burst | Workload::RandWrite | Workload::Sustained | Workload::SeqWrite);
    let per_byte = |bytes: u64| bytes as f64 / m.bytes as f64;
    let counts = m.counts();
    (writes && m.bytes > 0).then(|| {
        [
            per_byte(counts.absorbed_chunks * m.chunk_bytes),
            per_byte(counts.ssd_bytes),
            per_byte(counts.metadata_bytes),
            per_byte(counts.log_bytes),
        ]
    })
}

/// What pages of the table cost, where some of them are not in memory.
fn pages_line(workload: Workload, m: &Measured) -> Option<String> {
    let reads = pages_per_request(m)?;
    let written = written(workload, m).map_or_else(String::new, |_| {
        let bytes = m.counts().metadata_bytes / m.count;
        format!("; {bytes} bytes of metadata written to SSDs for each")
    });
    Some(format!(
        "table and free space in {}: {reads:.3} pages read for each request{written}",
        show_size(m.memory.fixed_bytes)
    ))
}

/// Pages of the table that were read for each request; `None` if all of them are in memory.
fn pages_per_request(m: &Measured) -> Option<f64> {
    (m.is_paged && m.count > 0).then(|| m.counts().pages_read as f64 / m.count as f64)
}

/// What differs between the schemes beside their speed.
pub fn terms(arguments: &Arguments) -> Option<String> {
    let mut terms = Terms::default();
    for &scheme in &arguments.schemes {
        let cached = scheme.has_cache() && arguments.cache.has_write_cache();
        terms.add(scheme.name(), scheme.is_elastic() || cached);
    }
    terms.line("Compare what is written per byte of users beside what is acknowledged per second.")
}

/// What several threads or shards mean for the figures, if there are any.
pub fn threads(arguments: &Arguments, spreads: &[Spread]) -> Option<String> {
    let depth = arguments.threads.queue_depth;
    let many = spreads.iter().filter(|&&spread| spread != Spread::SINGLE);
    let lines: Vec<String> = many
        .map(|spread| {
            format!(
                "{spread}: {depth} requests in flight in each thread, {} in all, to its own shards alone; throughput is the sum \
                 of the threads from their common start to the last end, latencies are those of all; a shard has 1/{} of the \
                 volume, of the spare space, of --table-memory, buffers, caches and --recent-entries",
                depth * u32::from(spread.threads),
                spread.shards,
            )
        })
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = spreads.iter().map(|spread| usize::from(spread.threads)).max().unwrap_or(1);
    let few = (most > cores).then(|| {
        format!("{most} threads on {cores} processors: they take turns, so that figures say nothing of what scales")
    });
    let lines: Vec<String> = lines.into_iter().chain(few).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Prints one workload as lines.
pub fn print(workload: Workload, devices: DeviceKind, spreads: &[Spread], measured: &[Measured]) {
    let is_spread = spreads != [Spread::SINGLE];
    for m in measured {
        let (low, high) = spread(&m.rates);
        let on = if is_spread { format!(" {:<21}", m.spread) } else { String::new() };
        output::line(format_args!(
            "{:<9} {devices:<6} {:<10}{on} {:>11} {:<9} {:>7.2} GB/s  {:>12}  ({} per CPU second; rounds {} to {})",
            workload.name(),
            m.scheme,
            show_count(m.rate() as u64),
            unit(workload),
            m.bytes_rate() / 1e9,
            over_eplog(m, measured).map_or_else(String::new, |ratio| format!("{ratio:.2} x eplog")),
            show_count(m.cpu_rate() as u64),
            show_count(low as u64),
            show_count(high as u64),
        ));
        let indent = " ".repeat(28);
        if let Some((fewest, ratio)) = over_fewest(m, measured) {
            output::line(format_args!("{indent}{ratio:.2} x as many as with {fewest}"));
        }
        if !m.latency.is_empty() {
            let what = if m.latency_in_commit.is_empty() {
                "latency"
            } else {
                "latency of updates without a commit"
            };
            output::line(format_args!("{indent}{what}: {}", latency_line(&m.latency)));
        }
        if !m.latency_in_commit.is_empty() {
            output::line(format_args!(
                "{indent}latency of updates while one runs: {}",
                latency_line(&m.latency_in_commit)
            ));
        }
        if let Some(line) = written_line(workload, m) {
            output::line(format_args!("{indent}{line}"));
        }
        if let Some(line) = pages_line(workload, m) {
            output::line(format_args!("{indent}{line}"));
        }
        if let Some(line) = gc_line(workload, m) {
            output::line(format_args!("{indent}{line}"));
        }
        if let Some(between) = m.rate_between {
            output::line(format_args!(
                "{indent}parity commit under way {:.1} % of the time; {} {} while none was",
                100.0 * m.commit_ns as f64 / m.ns.max(1) as f64,
                show_count(between as u64),
                unit(workload),
            ));
        }
    }
    for &spread in spreads {
        if let Some(ratio) = ratio(measured, spread) {
            let on = if is_spread { format!(" ({spread})") } else { String::new() };
            output::line(format_args!(
                "{:<9} {devices:<6} eplog is {ratio:.2} x raid per CPU second{on}",
                workload.name()
            ));
        }
    }
}

fn latency_line(latency: &Histogram<u64>) -> String {
    format!(
        "mean {:.1} us, p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1}",
        latency.mean() / 1e3,
        micros(latency, 50.0),
        micros(latency, 99.0),
        micros(latency, 99.9),
        latency.max() as f64 / 1e3
    )
}

fn latency_json(latency: &Histogram<u64>) -> Value {
    if latency.is_empty() {
        return Value::Null;
    }
    json!({
        "mean": latency.mean() / 1e3,
        "p50": micros(latency, 50.0),
        "p99": micros(latency, 99.0),
        "p999": micros(latency, 99.9),
        "max": latency.max() as f64 / 1e3,
    })
}

/// What each shard did, by number.
fn by_shard(m: &Measured) -> Vec<Value> {
    let shard = |(number, counts): (u16, &Counts)| {
        json!({
            "shard": number,
            "thread": m.spread.thread_of(number),
            "count": counts.done,
            "ssd_bytes": counts.ssd_bytes,
            "metadata_bytes": counts.metadata_bytes,
            "log_bytes": counts.log_bytes,
            "parity_commits": { "runs": counts.commits, "stripes": counts.stripes_committed },
        })
    };
    (0..).zip(&m.shards).map(shard).collect()
}

/// One scheme on one number of threads.
fn row(workload: Workload, devices: DeviceKind, m: &Measured, measured: &[Measured]) -> Value {
    let (low, high) = spread(&m.rates);
    let (written, counts) = (written(workload, m), m.counts());
    json!({
        "workload": workload.name(),
        "device": devices.to_string(),
        "scheme": m.scheme.to_string(),
        "threads": m.spread.threads,
        "shards": m.spread.shards,
        "unit": unit(workload),
        "count": m.count,
        "seconds": m.ns as f64 / 1e9,
        "per_second": m.rate(),
        "cpu_seconds": m.cpu_ns as f64 / 1e9,
        "per_cpu_second": m.cpu_rate(),
        "per_second_lowest_round": low,
        "per_second_highest_round": high,
        "bytes_per_second": m.bytes_rate(),
        "latency_us": latency_json(&m.latency),
        "latency_us_during_commit": latency_json(&m.latency_in_commit),
        "commit_time_share": m.commit_ns as f64 / m.ns.max(1) as f64,
        "per_second_between_commits": m.rate_between,
        "over_eplog": over_eplog(m, measured),
        "over_fewest_threads": over_fewest(m, measured).map(|(_, ratio)| ratio),
        "absorbed_share": written.map(|[absorbed, ..]| absorbed),
        "ssd_bytes_per_user_byte": written.map(|[_, ssd, ..]| ssd),
        "metadata_bytes_per_user_byte": written.map(|[_, _, metadata, _]| metadata),
        "log_bytes_per_user_byte": written.map(|[.., log]| log),
        "table_pages_read_per_request": pages_per_request(m),
        "gc": gc_json(&counts.gc),
        "stripes": { "full": counts.full_stripes, "short": counts.short_stripes },
        "parity_commits": { "runs": counts.commits, "stripes": counts.stripes_committed },
        "by_shard": by_shard(m),
        "placement": m.placement,
        "memory": m.memory,
    })
}

/// Everything as one object.
pub fn to_json(
    arguments: &Arguments,
    spreads: &[Spread],
    results: &[(Workload, DeviceKind, Vec<Measured>)],
) -> Value {
    let mut rows = Vec::new();
    let mut ratios = Vec::new();
    for (workload, devices, measured) in results {
        rows.extend(measured.iter().map(|m| row(*workload, *devices, m, measured)));
        for &spread in spreads {
            if let Some(ratio) = ratio(measured, spread) {
                ratios.push(json!({
                    "workload": workload.name(), "device": devices.to_string(), "threads": spread.threads,
                    "shards": spread.shards, "eplog_over_raid": ratio,
                }));
            }
        }
    }
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "provenance": provenance::json(),
        "seed": arguments.seed,
        "config": {
            "geometry": arguments.geometry.to_string(),
            "chunk_bytes": arguments.chunk_size,
            "queue_depth": arguments.threads.queue_depth,
            "threads": spreads.iter().map(|spread| spread.threads).collect::<Vec<_>>(),
            "shards": spreads.iter().map(|spread| spread.shards).collect::<Vec<_>>(),
            "volume_bytes": arguments.volume.volume_size,
            "working_set_bytes": arguments.working_set(),
            "table_memory_bytes": arguments.volume.table_memory,
            "spare_percent": arguments.device_size.is_none().then_some(arguments.spare),
            "device_bytes": arguments.device_size,
            "code": code_or_default(arguments.code, arguments.geometry.parity_count).to_string(),
            "overwritten_before": AGE_PASSES,
            "consistency": arguments.consistency.or(format::Consistency::Journal).to_string(),
        },
        "notes": terms(arguments),
        "notes_on_threads": threads(arguments, spreads),
        "results": rows,
        "ratios": ratios,
    })
}
