//! `replay`: a trace through an array, measured and verified.
//!
//! The array is made of the members named, of memory or null devices made for the run, or is somebody
//! else's, reached over NBD. The trace is read and prepared first and lies in memory, so that
//! reading it costs the replay nothing.

mod report;

use crate::Exit;
use crate::drive::driver::{Driver, Pace};
use crate::drive::load::{Loaded, Memory, TraceOptions};
use crate::drive::phase::{bulk_bytes, checkpoint, fill_bytes, fill_requests, phase};
use crate::drive::progress::Progress;
use crate::drive::series::SeriesOptions;
use crate::drive::verify::{Initially, Verifier};
use crate::failure::Failure;
use crate::given::Given;
use crate::options::cache::CacheSizes;
use crate::options::discards::Discards;
use crate::options::placement::ElasticChoices;
use crate::outfile::OutFile;
use crate::subject::array::{ArrayTarget, Payload};
use crate::subject::build::{DeviceKind, build};
use crate::subject::choices::{ArrayChoices, CommitEvery, parse_speed};
use crate::subject::fit;
use crate::subject::nbd::{NbdTarget, Uri};
use crate::subject::target::Target;
use crate::terms::Terms;
use crate::watch::Shown;
use array::{EngineOptions, SyncPolicy};
use clap::{Args, ValueEnum};
use format::{CheckpointKind, Superblock};
use node::assemble;
use node::open;
use node::output;
use node::placement::{PlacementInfo, placement_info, rewrites_name};
use node::units::{parse_chunk_size, show_size};
use report::Report;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options that say what an array is like that is made for the run, and mean nothing to another one.
const OF_MADE_ARRAYS: [&str; 6] = ["geometry", "scheme", "code", "layout", "log_devices", "device_size"];

/// Options of `replay`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members of the array, in any order. What the trace writes replaces what the volume holds.
    #[arg(value_name = "MEMBER", conflicts_with_all = OF_MADE_ARRAYS)]
    members: Vec<PathBuf>,
    /// Even if the array of these members was written to before, and with --nbd, where nobody can tell: what
    /// the volume holds is lost.
    #[arg(long, conflicts_with = "device")]
    overwrite: bool,
    #[command(flatten)]
    trace: TraceOptions,
    /// Make an array of such devices for the run, instead of naming members.
    #[arg(long, value_enum, conflicts_with_all = ["members", "nbd"])]
    device: Option<DeviceKind>,
    /// Replay through an NBD export: nbd+unix:///EXPORT?socket=PATH, nbd://HOST:PORT/EXPORT, unix:PATH or
    /// tcp:HOST:PORT. What the trace writes replaces what it holds.
    #[arg(long, value_name = "URI", conflicts_with_all = OF_MADE_ARRAYS, conflicts_with_all = ["members", "consistency"])]
    nbd: Option<Uri>,
    #[command(flatten)]
    array: ArrayChoices,
    /// Bytes of a chunk, to which requests are rounded; the array's own if members are named.
    #[arg(long, value_parser = parse_chunk_size, value_name = "SIZE")]
    chunk_size: Option<u64>,
    /// Write the whole footprint of the trace first, in full stripes, so that every write of the trace is
    /// an update.
    #[arg(long)]
    fill: bool,
    /// Requests in flight at most.
    #[arg(long, default_value = "32", value_parser = clap::value_parser!(u32).range(1..=4096))]
    queue_depth: u32,
    /// Send requests at the times of the trace; latency counts from there. Otherwise they are sent as fast
    /// as they end, and with a made array of the schemes elastic and was, whose chunks wait for a time, the
    /// times of the trace count for that.
    #[arg(long)]
    timed: bool,
    /// Times faster than recorded.
    #[arg(long, default_value = "1", requires = "timed", value_parser = parse_speed)]
    speed: f64,
    /// Let every sector say which write it is of; check every read, and everything at the end.
    #[arg(long)]
    verify: bool,
    /// Write a full checkpoint of the metadata behind the fill, and one of this kind at the end; what they
    /// take is counted apart.
    #[arg(long, value_enum, conflicts_with = "nbd", value_name = "KIND")]
    checkpoint: Option<Checkpoint>,
    #[command(flatten)]
    rows: SeriesOptions,
    /// Seed of the payload, and of the placement of elastic schemes.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Print JSON, or write it to a file beside the table.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "-", value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A checkpoint at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Checkpoint {
    /// Of what changed.
    Incremental,
    /// Of everything.
    Full,
}

impl Checkpoint {
    fn kind(self) -> CheckpointKind {
        match self {
            Self::Incremental => CheckpointKind::Incremental,
            Self::Full => CheckpointKind::Full,
        }
    }
}

/// Runs `replay`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(path) = arguments.json.as_ref().filter(|path| path.as_os_str() != "-") {
        let series = arguments.rows.series.as_deref().map(|path| ("--series", path));
        OutFile::check_apart("--json", path, arguments.inputs().chain(series))?;
        OutFile::new("--json", path)?;
    }
    let report = replayed(arguments, None, Shown::Progress)?;
    print(arguments, &report)?;
    verified(&report)?;
    Ok(0)
}

/// Runs what the words of `replay` say, in another program; what was counted, as JSON.
pub(crate) fn embedded(arguments: &Arguments, given: &Given<'_>) -> Result<Value, Failure> {
    if given.names.any() {
        return Err(Failure::new("a replay runs with policies of the product only; use simulate"));
    }
    let report = replayed(arguments, given.memory.as_ref(), given.shown)?;
    verified(&report)?;
    Ok(report.to_json())
}

/// Fails if something else was read than had been written.
fn verified(report: &Report) -> Result<(), Failure> {
    match report.verified.as_ref().and_then(|checked| checked.first.map(|first| (checked.mismatches, first)))
    {
        Some((count, first)) => {
            Err(Failure::new(format!("{count} sectors hold something else; the first: {first}")))
        }
        None => Ok(()),
    }
}

/// Replays the trace, one in memory if there is one, against what the arguments name.
fn replayed(arguments: &Arguments, memory: Option<&Memory>, shown: Shown<'_>) -> Result<Report, Failure> {
    arguments.rows.check(arguments.inputs())?;
    let load = |trace: &TraceOptions, chunk_bytes| trace.load_or(memory, chunk_bytes, shown);
    if let Some(devices) = arguments.device {
        let Made { mut target, loaded, chunk_bytes } =
            made(arguments, devices, |trace, chunk_bytes| load(trace, chunk_bytes).map(Arc::new))?;
        return drive(arguments, &mut *target, chunk_bytes, &loaded, Initially::Zeros, shown);
    }
    if let Some(uri) = &arguments.nbd {
        let cache = arguments.array.cache != CacheSizes::default();
        let elastic = arguments.array.elastic != ElasticChoices::default();
        let writes = arguments.array.sync || arguments.array.rewrites.is_given();
        if arguments.array.commit_every != CommitEvery::Never || writes || cache || elastic {
            return Err(Failure::new(
                "--commit-every, --sync, --rewrites, the cache, placement and garbage collection are the server's affair; leave them out with --nbd",
            ));
        }
        refuse_unit(arguments)?;
        if !arguments.overwrite {
            return Err(Failure::new(
                "--nbd: a replay overwrites what the volume holds, and nobody can tell from here whether that is needed: \
                 --overwrite if it is not, or --device memory",
            ));
        }
        let chunk_bytes = arguments.chunk_size.unwrap_or(4096);
        let loaded = load(&arguments.trace, chunk_bytes)?;
        let mut target = NbdTarget::connect(uri)?;
        return drive(arguments, &mut target, chunk_bytes, &loaded, Initially::Unknown, shown);
    }
    let (mut target, loaded, chunk_bytes) = on_members(arguments, load)?;
    drive(arguments, &mut *target, chunk_bytes, &loaded, Initially::Unknown, shown)
}

/// The array of the members that are named, and the trace.
fn on_members(
    arguments: &Arguments,
    load: impl FnOnce(&TraceOptions, u64) -> Result<Loaded, Failure>,
) -> Result<(Box<dyn Target>, Loaded, u64), Failure> {
    if arguments.members.is_empty() {
        return Err(Failure::new(
            "name the members of an array, or --device memory, --device null or --nbd URI",
        ));
    }
    let found = open::discover(&arguments.members)?;
    let scheme = found.superblock().config.scheme;
    arguments.array.cache.check(scheme)?;
    arguments.array.elastic.check(scheme)?;
    arguments.array.consistency.check_any(&[scheme])?;
    let made_with = found.superblock().config.consistency;
    if arguments.array.consistency.or(made_with) != made_with {
        return Err(Failure::new(format!("--consistency: the array was made with {made_with}")));
    }
    arguments.array.commit_every.check(scheme)?;
    arguments.array.rewrites.check_any(&[scheme])?;
    refuse_unit(arguments)?;
    let chunk_bytes = found.superblock().config.geometry.chunk_bytes() as u64;
    if arguments.chunk_size.is_some_and(|bytes| bytes != chunk_bytes) {
        return Err(Failure::new(format!(
            "the array has chunks of {}; leave --chunk-size out",
            show_size(chunk_bytes)
        )));
    }
    if !arguments.overwrite && was_written(found.superblock()) {
        return Err(Failure::new(
            "the array was written to before, and a replay overwrites what it holds: --overwrite if that is not needed, \
             or --device memory",
        ));
    }
    let loaded = load(&arguments.trace, chunk_bytes)?;
    loaded.check_footprint(found.superblock().config.volume_bytes())?;
    let count = found.superblock().config.shard.count;
    if count > 1 {
        return Err(Failure::new(format!(
            "the array has {count} shards, and a replay in this process drives one: serve it, and replay with --nbd"
        )));
    }
    let mut assembled = assemble::assemble(&arguments.members, engine_options(arguments))?;
    let target = ArrayTarget::new(assembled.shards.remove(0).start_fixed()?, Payload::Any);
    Ok((Box::new(target), loaded, chunk_bytes))
}

/// Whether an array may hold anything: one that was not stopped in order is taken for written.
fn was_written(superblock: &Superblock) -> bool {
    superblock.durable_through.get() > 0 || !superblock.clean
}

/// Units have the size that the array was made with.
fn refuse_unit(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.array.unit.gc_unit {
        Some(rows) => Err(Failure::new(format!(
            "--gc-unit {rows}: only an array that is made for the run can have other units; use --device, or leave it out"
        ))),
        None => Ok(()),
    }
}

/// What is replayed over an array made for the run.
struct Made {
    target: Box<dyn Target>,
    loaded: Arc<Loaded>,
    chunk_bytes: u64,
}

/// An array made for the run, and the trace that `load` gets.
fn made(
    arguments: &Arguments,
    devices: DeviceKind,
    load: impl FnOnce(&TraceOptions, u64) -> Result<Arc<Loaded>, Failure>,
) -> Result<Made, Failure> {
    if arguments.verify && devices == DeviceKind::Null {
        return Err(Failure::new("null devices keep nothing that could be verified; use --device memory"));
    }
    let scheme = arguments.array.scheme;
    arguments.array.check()?;
    let chunk_bytes = arguments.chunk_size.unwrap_or(4096);
    let kind = arguments.array.kind(chunk_bytes)?;
    let options = engine_options(arguments);
    let loaded = load(&arguments.trace, chunk_bytes)?;
    let sized = match arguments.array.device_size {
        None => fit::fit(&kind, devices, &loaded.requests, options.sync, loaded.footprint_bytes)?,
        Some(bytes) if scheme.is_elastic() => {
            fit::given_elastic(&kind, loaded.footprint_bytes, bytes, options.scheme.gc_threshold)?
        }
        Some(bytes) => fit::given(&kind, loaded.footprint_bytes, bytes)?,
    };
    // Devices in memory hold what is written, which was looked at when they were sized.
    fit::check_made(&sized.config, &options, 0, 1, "trace (--compact, --head), or larger chunks")?;
    let array = build(devices, &sized, options)?;
    let payload = match devices {
        DeviceKind::Memory => Payload::Any,
        DeviceKind::Null => Payload::Zeros,
    };
    Ok(Made { target: Box::new(ArrayTarget::new(array, payload)), loaded, chunk_bytes })
}

/// Replays over an array of null devices a trace that `load` gets; what was counted, as JSON. For
/// experiments.
pub(crate) fn measure(
    arguments: &Arguments,
    load: impl FnOnce(&TraceOptions, u64) -> Result<Arc<Loaded>, Failure>,
) -> Result<Value, Failure> {
    let arguments = arguments.with_null_devices()?;
    let Made { mut target, loaded, chunk_bytes } = made(arguments, DeviceKind::Null, load)?;
    let report = drive(arguments, &mut *target, chunk_bytes, &loaded, Initially::Zeros, Shown::Nothing)?;
    Ok(report.to_json())
}

impl Arguments {
    /// The files that are read, or are members, and what names them.
    fn inputs(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.trace.inputs().chain(self.members.iter().map(|path| ("a member", path.as_path())))
    }

    /// Refuses every other target.
    fn with_null_devices(&self) -> Result<&Self, Failure> {
        if self.device == Some(DeviceKind::Null) && self.members.is_empty() && self.nbd.is_none() {
            return Ok(self);
        }
        Err(Failure::new("an experiment replays over null devices; expected --device null"))
    }
}

fn engine_options(arguments: &Arguments) -> EngineOptions {
    // The papers count without discards of what is written again.
    let mut options = Discards::Large.apply(EngineOptions::default());
    // Nor do they keep the chunks of a request together.
    options.scheme.untorn_bytes = 0;
    options.commit.idle_ns = None;
    options.commit.every_requests = None;
    if arguments.array.sync {
        options.sync = SyncPolicy::Always;
    }
    // A long request shall not be cut into several log stripes more than it must.
    options.batch_max = 1 << 14;
    let options = arguments.array.rewrites.apply(arguments.array.cache.apply(options));
    arguments.array.elastic.apply(options, arguments.seed)
}

/// Fill, trace, reading back.
fn drive(
    arguments: &Arguments,
    target: &mut dyn Target,
    chunk_bytes: u64,
    loaded: &Loaded,
    initially: Initially,
    shown: Shown<'_>,
) -> Result<Report, Failure> {
    loaded.check_footprint(target.volume_bytes())?;
    let covered = fill_bytes(target, loaded.footprint_bytes);
    let full_pace = if simulates_time(arguments, target) { Pace::Simulated } else { Pace::Full };
    let config = config_json(arguments, target, chunk_bytes, loaded, full_pace);
    let main_count = target.config().map_or(0, |config| config.geometry.device_count());
    let bulk = bulk_bytes(target, chunk_bytes);
    let verifier = arguments.verify.then(|| Verifier::new(covered, arguments.seed, initially));
    let mut driver = Driver::new(target, arguments.queue_depth as usize, chunk_bytes, verifier);
    let fill = if arguments.fill {
        let writes = fill_requests(covered, bulk)?;
        let mut progress = Progress::of(shown, "fill", covered.div_ceil(bulk))?;
        let mut fill = phase(&mut driver, writes, full_pace, CommitEvery::Never, &mut progress)?;
        if arguments.checkpoint.is_some() {
            checkpoint(&mut driver, &mut fill, CheckpointKind::Full)?;
        }
        Some(fill)
    } else {
        None
    };
    let pace = if arguments.timed { Pace::Timed { speed: arguments.speed } } else { full_pace };
    if let Some(every) = arguments.rows.interval {
        driver.sample(every, pace)?;
    }
    let mut progress = Progress::of(shown, "replay", loaded.requests.len() as u64)?;
    let requests = loaded.requests.iter().copied();
    let mut replay = phase(&mut driver, requests, pace, arguments.array.commit_every, &mut progress)?;
    drop(progress);
    let series = driver.take_series(pace, &replay.outcome)?;
    arguments.rows.keep(&series)?;
    if let Some(wanted) = arguments.checkpoint {
        checkpoint(&mut driver, &mut replay, wanted.kind())?;
    }
    driver.read_back(bulk, &mut Progress::of(shown, "verify", 0)?)?;
    let verified = driver.verifier().map(Verifier::checked);
    let memory = target.memory();
    target.stop()?;
    let scheme_options = engine_options(arguments).scheme;
    let placement = target.config().and_then(|config| placement_info(&scheme_options, config));
    Ok(Report {
        config,
        terms: terms(arguments, target),
        placement: json!(placement),
        placement_line: placement.as_ref().map(PlacementInfo::line),
        memory,
        seed: arguments.seed,
        chunk_bytes,
        main_count,
        series: arguments.rows.interval.map(|_| series),
        fill,
        replay,
        verified,
        bad_lines: loaded.bad_lines,
        synthetic: loaded.synthetic.clone(),
    })
}

/// Whether the clock of the array shows the times of the trace: chunks of elastic schemes wait for
/// each other for a time, which says little while a trace is replayed as fast as it goes. Real devices need
/// a real clock.
fn simulates_time(arguments: &Arguments, target: &dyn Target) -> bool {
    let is_elastic = target.config().is_some_and(|config| config.scheme.is_elastic());
    is_elastic && arguments.device.is_some() && !arguments.timed
}

/// That writes are acknowledged from memory, if they are and that is known.
fn terms(arguments: &Arguments, target: &dyn Target) -> Option<String> {
    let scheme = target.config()?.scheme;
    let cached = scheme.has_cache() && arguments.array.cache.has_write_cache();
    let mut terms = Terms::default();
    terms.add(scheme.name(), !arguments.array.sync && (scheme.is_elastic() || cached));
    terms.line("").map(|line| {
        format!("{line}; raid, parity-log and eplog without a cache acknowledge what the devices have, as does --sync")
    })
}

fn print(arguments: &Arguments, report: &Report) -> Result<(), Failure> {
    match &arguments.json {
        Some(path) if path.as_os_str() == "-" => output::line(format_args!("{:#}", report.to_json())),
        Some(path) => {
            let file = OutFile::new("--json", path)?;
            let quiet = file.is_stdout();
            file.write_bytes(format!("{:#}\n", report.to_json()).as_bytes())?;
            if !quiet {
                output::print(report.to_text());
            }
        }
        None => output::print(report.to_text()),
    }
    Ok(())
}

fn config_json(
    arguments: &Arguments,
    target: &dyn Target,
    chunk_bytes: u64,
    loaded: &Loaded,
    full_pace: Pace,
) -> Value {
    let array = target.config().map(|config| {
        json!({
            "scheme": config.scheme.to_string(),
            "geometry": format!("{}+{}", config.geometry.data_count(), config.geometry.parity_count()),
            "log_devices": config.log_count,
            "code": config.code.to_string(),
            "consistency": config.consistency.to_string(),
            "stripes": config.stripe_count,
            "chunks_per_device": config.chunks_per_device,
            "log_blocks": config.log_blocks,
            "unit_rows": config.unit_rows,
        })
    });
    let kind = match (arguments.device, &arguments.nbd) {
        (Some(devices), _) => devices.to_string(),
        (None, Some(_)) => "nbd".to_owned(),
        (None, None) => "members".to_owned(),
    };
    let options = engine_options(arguments).scheme;
    let rewrites = target.config().and_then(|config| rewrites_name(&options, config));
    json!({
        "traces": arguments.trace.traces,
        "target": kind,
        "array": array,
        "chunk_bytes": chunk_bytes,
        "volume_bytes": target.volume_bytes(),
        "footprint_bytes": loaded.footprint_bytes,
        "compact": arguments.trace.compact,
        "fill": arguments.fill,
        "head_writes": arguments.trace.head,
        "writes_only": arguments.trace.writes_only,
        "sectors": arguments.trace.sectors,
        "queue_depth": arguments.queue_depth,
        "timed_speed": arguments.timed.then_some(arguments.speed),
        "clock": match full_pace {
            Pace::Simulated if loaded.requests.iter().all(|request| request.time_us == 0) => "still",
            Pace::Simulated => "trace",
            Pace::Full | Pace::Timed { .. } => "wall",
        },
        "verify": arguments.verify,
        "commit_every": arguments.array.commit_every.json(),
        "sync": arguments.array.sync,
        "rewrites": rewrites,
        "cache_stripes": arguments.array.cache.cache_stripes,
        "cache_slots": arguments.array.cache.cache_slots,
        "stripe_cache": arguments.array.cache.stripes.stripe_cache,
    })
}
