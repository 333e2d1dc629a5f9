//! Traces in memory, for a program that holds the laboratory: read, generated, counted, written.

use super::{parse_format, parse_output_format, synthetic, write_whole};
use crate::failure::Failure;
use crate::watch::Shown;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use trace::{
    DevMode, GenerateOptions, Generator, Label, ReadOptions, Request, SkipPolicy, Stats, StatsCollector,
    StatsOptions, TraceSequence, WriteSummary,
};

/// Requests between two looks at whether to stop.
const REQUESTS_PER_LOOK: u64 = 4096;

/// A trace as it was read or generated.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its requests.
    pub requests: Vec<Request>,
    /// What it says of itself if it is synthetic, or made of such traces: lines from which it can be
    /// generated again.
    pub labels: Vec<String>,
    /// The same in words, for people and results.
    pub described: Vec<String>,
    /// Its format; none if it was generated.
    pub format: Option<&'static str>,
    /// Lines passed over.
    pub bad_lines: u64,
    /// Parameters that were solved to generate it.
    pub solution: Option<String>,
}

impl Held {
    fn labelled(requests: Vec<Request>, labels: &[Label]) -> Self {
        Self {
            requests,
            labels: labels.iter().map(ToString::to_string).collect(),
            described: labels.iter().map(synthetic::describe).collect(),
            format: None,
            bad_lines: 0,
            solution: None,
        }
    }
}

/// Reads files as one trace; the format is detected unless it is named.
pub fn read(
    paths: &[PathBuf],
    format: Option<&str>,
    skip_bad_lines: bool,
    shown: Shown<'_>,
) -> Result<Held, Failure> {
    let skip = if skip_bad_lines { SkipPolicy::Skip { limit: u64::MAX } } else { SkipPolicy::Fail };
    let format =
        format.map(parse_format).transpose().map_err(|error| Failure::new(format!("format: {error}")))?;
    let options = ReadOptions { format, skip_bad_lines: skip, ..ReadOptions::default() };
    if paths.is_empty() {
        return Err(Failure::new("no trace is named"));
    }
    let mut sequence = TraceSequence::open(paths, &options)?;
    let progress = sequence.progress();
    shown.begin("read", progress.total_bytes().unwrap_or(0))?;
    let mut requests = Vec::new();
    for request in sequence.by_ref() {
        requests.push(request?);
        if requests.len().is_multiple_of(usize::try_from(REQUESTS_PER_LOOK)?) {
            shown.show(progress.consumed_bytes())?;
        }
    }
    let (bad_lines, format) = (sequence.skipped_count(), sequence.format());
    let held = Held::labelled(requests, sequence.labels());
    Ok(Held { format: format.map(trace::Format::name), bad_lines, ..held })
}

/// Generates a trace by its profile's name, such as `zipf:0.99`.
pub fn generate(
    profile: &str,
    request_count: Option<u64>,
    seed: u64,
    range_bytes: Option<u64>,
    shown: Shown<'_>,
) -> Result<Held, Failure> {
    let profile = profile.parse().map_err(|error| Failure::new(format!("profile: {error}")))?;
    let mut generator = Generator::new(&GenerateOptions { profile, request_count, seed, range_bytes })?;
    let (label, solution) = (*generator.label(), generator.solution());
    shown.begin("generate", label.request_count)?;
    let mut requests = Vec::new();
    for (done, request) in (0_u64..).zip(&mut generator) {
        requests.push(request);
        if done.is_multiple_of(REQUESTS_PER_LOOK) {
            shown.show(done)?;
        }
    }
    Ok(Held { solution: Some(solution), ..Held::labelled(requests, &[label]) })
}

/// Writes a trace, compressed as the file's name says, whole or not at all. `labels` are lines as in
/// [`Held`].
pub fn write(
    path: &Path,
    requests: &[Request],
    format: &str,
    labels: &[String],
    force: bool,
    shown: Shown<'_>,
) -> Result<WriteSummary, Failure> {
    let format = parse_output_format(format).map_err(|error| Failure::new(format!("format: {error}")))?;
    shown.begin("write", u64::try_from(requests.len())?)?;
    let written = write_whole(path, format, force, |mut writer| {
        for label in labels.iter().filter_map(|line| Label::parse(line.as_bytes())) {
            writer.label(&label, "");
        }
        for (done, request) in (0_u64..).zip(requests) {
            writer.write(request)?;
            if done.is_multiple_of(REQUESTS_PER_LOOK) {
                shown.show(done)?;
            }
        }
        Ok(writer.finish()?)
    })?;
    let nobody = || Failure::new(format!("{}: nobody reads it any more", path.display()));
    written.map(|(summary, _)| summary).ok_or_else(nobody)
}

/// What the papers print of a trace.
pub fn statistics(
    requests: &[Request],
    chunk_bytes: u64,
    dev_mode: DevMode,
    shown: Shown<'_>,
) -> Result<Map<String, Value>, Failure> {
    let mut collector = StatsCollector::new(StatsOptions { chunk_bytes, dev_mode })?;
    shown.begin("count", u64::try_from(requests.len())?)?;
    for (done, request) in (0_u64..).zip(requests) {
        collector.add(request)?;
        if done.is_multiple_of(REQUESTS_PER_LOOK) {
            shown.show(done)?;
        }
    }
    Ok(figures(&collector.finish()))
}

/// The figures of `trace info`.
pub(super) fn figures(stats: &Stats) -> Map<String, Value> {
    // Shares and means of nothing are none.
    let of = |count: u64, figure: f64| (count > 0).then_some(figure);
    let Value::Object(map) = json!({
        "chunk_bytes": stats.chunk_bytes,
        "requests": stats.request_count,
        "reads": stats.read_count,
        "writes": stats.write_count,
        "flushes": stats.flush_count,
        "trims": stats.trim_count,
        "read_bytes": stats.read_bytes,
        "write_bytes": stats.write_bytes,
        "write_percent": of(stats.request_count, stats.write_percent()),
        "write_kib_mean": of(stats.write_count, stats.write_kib_mean()),
        "transfer_bytes_mean": of(stats.read_count + stats.write_count, stats.transfer_bytes_mean()),
        "random_writes": stats.random_write_count,
        "random_percent": of(stats.write_count, stats.random_percent()),
        "chunk_writes": stats.chunk_write_count,
        "unique_chunks": stats.unique_chunk_count,
        "update_ratio": of(stats.unique_chunk_count, stats.update_ratio()),
        "top_fifth_writes": stats.top_fifth_write_count,
        "top_fifth_percent": of(stats.chunk_write_count, stats.top_fifth_percent()),
        "working_set_gib": stats.working_set_gib(),
        "segments_written": stats.segment_written_count,
        "segments_touched": stats.segment_touched_count,
        "footprint_gib": stats.footprint_gib(),
        "duration_us": stats.duration_us,
    }) else {
        return Map::new();
    };
    map
}
