//! `flash`: one simulated SSD alone, as the papers ran DiskSim and FlashSim.

pub mod config;
mod picture;
mod placed;
mod report;
mod rows;
mod workload;

use crate::Exit;
use crate::drive::load::Memory;
use crate::drive::series::{Row, SeriesOptions};
use crate::failure::Failure;
use crate::given::Given;
use crate::number::{count, float};
use crate::plot::options::PlotOptions;
use crate::subject::fit::check_flash;
use crate::watch::Shown;
use clap::{Args, Subcommand};
use config::DeviceOptions;
use flash::{Queue, Run, RunOptions, Ssd, SsdConfig};
use hdrhistogram::Histogram;
use node::output;
use report::Report;
pub use report::config_json;
use rows::Rows;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use workload::{Replayed, Source};

/// Pages written between looks at the progress.
const SLICE_PAGES: u64 = 1 << 20;
/// Longer latencies count as this: an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Options of `flash`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: FlashCommand,
}

#[derive(Subcommand, Debug)]
enum FlashCommand {
    /// Write to one SSD until it is in its steady state, then count.
    Run(Box<RunArguments>),
    /// List the presets.
    Presets(PresetsArguments),
}

#[derive(Args, Debug)]
struct PresetsArguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `flash run`.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// What is written: uniform, zipf:THETA, or a trace file.
    #[arg(long, value_parser = workload::parse_source, value_name = "uniform|zipf:THETA|TRACE")]
    workload: Source,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    placed: placed::PlacedOptions,
    /// Share of the logical pages that is used; the others are never written.
    #[arg(long, default_value_t = 1.0, value_name = "SHARE")]
    utilization: f64,
    /// Drive writes (of what is used) before counting, after one sequential fill.
    #[arg(long, default_value_t = 3.0, value_name = "N")]
    warmup: f64,
    /// Drive writes counted.
    #[arg(long, default_value_t = 3.0, value_name = "N")]
    drive_writes: f64,
    /// Share of the writes that are parity, uniform over the first part of the space.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    parity_writes: f64,
    /// That part.
    #[arg(long, default_value_t = 0.142_857, value_name = "SHARE", requires = "parity_writes")]
    parity_space: f64,
    /// Requests under way, where service times are simulated.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    queue_depth: u32,
    /// Same seed, same result.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Recount everything from the arrays at the end: laws of conservation.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    rows: SeriesOptions,
    #[command(flatten)]
    plot: PlotOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `flash`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        FlashCommand::Run(run) => simulate(run),
        FlashCommand::Presets(presets) => {
            output::line(report::presets(presets.json));
            Ok(0)
        }
    }
}

/// Processor time of this thread so far.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn simulate(arguments: &RunArguments) -> Result<Exit, Failure> {
    let config = arguments.checked_config()?;
    if arguments.placed.placement.is_some() {
        if arguments.plot.target()?.is_some() {
            return Err(Failure::new(
                "--plot: found with --placement, which only counts and has nothing to draw",
            ));
        }
        let report = placed::measure(arguments, &config, None)?;
        output::line(if arguments.json { format!("{report:#}") } else { placed::text(&report) });
        return Ok(0);
    }
    let (plot, plotted) = (arguments.plot.target()?, picture::parts(&arguments.plot, &config)?);
    let done = written(arguments, config, None, Shown::Nothing)?;
    let report = done.report(arguments);
    if let Some(target) = plot {
        target.write(&picture::figure(&plotted, &done.ssd, &done.latencies, arguments.plot.width()))?;
    }
    output::line(if arguments.json { format!("{:#}", report.json()) } else { report.text() });
    Ok(0)
}

/// Runs what the arguments say; what was counted, as JSON. For experiments. A trace in memory takes the
/// place of the one that the workload names.
pub(crate) fn measure(arguments: &RunArguments, memory: Option<&Memory>) -> Result<Value, Failure> {
    let config = arguments.checked_config()?;
    if arguments.placed.placement.is_some() {
        return placed::measure(arguments, &config, memory);
    }
    let done = written(arguments, config, memory, Shown::Nothing)?;
    Ok(done.report(arguments).json())
}

/// Runs what the words of `flash run` say, in another program; what was counted, as JSON. A trace in memory
/// takes the place of the one that the workload names.
pub(crate) fn embedded(arguments: &RunArguments, given: &Given<'_>) -> Result<Value, Failure> {
    if given.names.any() {
        return Err(Failure::new("a single SSD places nothing; use a policy with simulate or place"));
    }
    let config = arguments.checked_config()?;
    if arguments.placed.placement.is_some() {
        return placed::measure(arguments, &config, given.memory.as_ref());
    }
    Ok(written(arguments, config, given.memory.as_ref(), given.shown)?.report(arguments).json())
}

/// The presets, as JSON.
pub fn presets_json() -> String {
    report::presets(true)
}

impl RunArguments {
    fn checked_config(&self) -> Result<SsdConfig, Failure> {
        let config = self.device.config(self.seed)?;
        if self.placed.placement.is_some() && self.rows.interval.is_some() {
            return Err(Failure::new(
                "--interval: found with --placement, which has one count for all of it",
            ));
        }
        if config.slc.is_some() && self.parity_writes == 0.0 {
            return Err(Failure::new(
                "--slc-cap: found no parity among the writes, which alone is written in SLC mode; add --parity-writes",
            ));
        }
        Ok(config)
    }
}

/// An SSD that has been written to.
struct Written {
    ssd: Ssd,
    measured: Measured,
    latencies: Histogram<u64>,
}

impl Written {
    fn report<'a>(&'a self, arguments: &'a RunArguments) -> Report<'a> {
        Report { arguments, ssd: &self.ssd, measured: &self.measured, latencies: &self.latencies }
    }
}

fn written(
    arguments: &RunArguments,
    config: SsdConfig,
    memory: Option<&Memory>,
    shown: Shown<'_>,
) -> Result<Written, Failure> {
    check_flash(&config, 1, "--logical-size")?;
    let trace = match &arguments.workload {
        Source::Trace(path) => Some(("--workload", path.as_path())),
        Source::Pattern(_) => None,
    };
    arguments.rows.check(trace)?;
    let mut ssd = Ssd::new(config)?;
    let mut latencies = latencies();
    let mut note = |latency_ns: u64| latencies.saturating_record(latency_ns.max(1));
    let mut queue = Queue::new(arguments.queue_depth);
    let measured = match &arguments.workload {
        Source::Pattern(pattern) => random(arguments, *pattern, &mut ssd, &mut queue, (&mut note, shown))?,
        Source::Trace(path) => {
            if arguments.parity_writes != 0.0 || arguments.utilization != 1.0 {
                return Err(Failure::new(
                    "--parity-writes, --utilization: found beside a trace, expected with uniform or zipf only",
                ));
            }
            let replayed = match memory {
                Some(memory) => Replayed::of(memory.requests.iter().copied().map(Ok), path, &ssd)?,
                None => Replayed::load(path, &ssd)?,
            };
            replayed.run(arguments, &mut ssd, &mut queue, &mut note, shown)?
        }
    };
    if arguments.check {
        ssd.check().map_err(|broken| Failure::new(format!("a law of conservation is broken: {broken}")))?;
    }
    if let Some(rows) = &measured.rows {
        arguments.rows.keep(rows)?;
    }
    Ok(Written { ssd, measured, latencies })
}

fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("these bounds are valid")
}

/// What the counted part of a run took.
struct Measured {
    cpu_seconds: f64,
    virtual_ns: u64,
    rows: Option<Vec<Row>>,
}

fn random(
    arguments: &RunArguments,
    pattern: flash::Pattern,
    ssd: &mut Ssd,
    queue: &mut Queue,
    (note, shown): (&mut impl FnMut(u64), Shown<'_>),
) -> Result<Measured, Failure> {
    let options = RunOptions {
        pattern,
        utilization: arguments.utilization,
        warmup: arguments.warmup,
        drive_writes: arguments.drive_writes,
        parity_writes: arguments.parity_writes,
        parity_space: arguments.parity_space,
        seed: arguments.seed,
    };
    let mut run = Run::new(&options, ssd.logical_pages())?;
    let drives = arguments.warmup + arguments.drive_writes + 1.0;
    let total = count(float(ssd.logical_pages()) * arguments.utilization * drives);
    shown.begin("flash", total)?;
    let mut written = 0;
    let mut slice = || {
        shown.show(written)?;
        written = total.min(written + SLICE_PAGES);
        Ok::<(), Failure>(())
    };
    while !run.is_counting() && run.step(ssd, SLICE_PAGES, queue, &mut *note)? {
        slice()?;
    }
    let (cpu_before, time_before) = (cpu_seconds(), queue.now_ns());
    let mut rows = Rows::begin(arguments.rows.interval, ssd, time_before)?;
    loop {
        // A request is a page.
        let pages = rows.requests_left(ssd.counters().host_pages_written, SLICE_PAGES);
        let note = |latency_ns| {
            note(latency_ns);
            rows.note(latency_ns);
        };
        if !run.step(ssd, pages, queue, note)? {
            break;
        }
        rows.look(ssd.counters().host_pages_written, ssd, queue.now_ns())?;
        slice()?;
    }
    let requests = ssd.counters().host_pages_written;
    Ok(Measured {
        cpu_seconds: cpu_seconds() - cpu_before,
        virtual_ns: queue.end_ns().saturating_sub(time_before),
        rows: rows.finish(requests, ssd, queue.end_ns())?,
    })
}
