//! `simulate`: a trace through the engine as it ships, over simulated SSDs and log devices, in virtual time.
//!
//! Nothing is kept of content, and no time passes but that of the devices: the engine's own work is free.
//! One run, several schemes side by side (`--compare`), or a grid (`--sweep`), each cell of which is a run
//! of its own.

mod effect;
mod figures;
mod grid;
mod lifetime;
mod outcome;
mod picture;
mod rebuild;
mod report;
mod rig;
mod store;
mod sweep;

use crate::Exit;
use crate::drive::load::{Loaded, TraceOptions};
use crate::drive::series::SeriesOptions;
use crate::failure::Failure;
use crate::flash::config::{Choices, DeviceOptions, STRESS_RATIO, Streams, parse_cap, parse_gc};
use crate::given::Given;
use crate::options::discards::Discards;
use crate::options::placement::ElasticChoices;
use crate::plot::options::PlotOptions;
use crate::subject::choices::{ArrayChoices, parse_speed};
use crate::terms::Terms;
use crate::watch::Shown;
use array::{Content, EngineOptions, SyncPolicy};
use clap::Args;
use flash::{DeviceConfig, GcPolicy, SlcCap, SsdConfig, presets};
use format::SchemeKind;
use node::output;
use node::units::{parse_chunk_size, parse_size};
use placement::{HotnessKind, PlacementKind};
use rebuild::Recovery;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
pub(crate) use store::Shard;

/// Buffers for requests: so many that none waits for one. Nobody touches their content, so they take no
/// memory. Not for elastic schemes, whose chunks wait in them: there they are a write cache, and how large
/// it is counts.
const POOL_BYTES: u64 = 1 << 30;

/// Options of `simulate`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    trace: TraceOptions,
    #[command(flatten)]
    array: ArrayChoices,
    /// Bytes of a chunk, to which requests are rounded; a multiple of the SSD's page.
    #[arg(long, value_parser = parse_chunk_size, default_value = "4KiB", value_name = "SIZE")]
    chunk_size: u64,
    #[command(flatten)]
    ssds: SsdChoices,
    /// Preset of the log devices [seagate-st1000dm003].
    #[arg(long, value_name = "PRESET")]
    log_device: Option<String>,
    /// Leave service times away: the SSDs and log devices complete everything at once and only count.
    #[arg(long)]
    untimed: bool,
    #[command(flatten)]
    streaming: StreamChoices,
    /// Write the whole footprint of the trace through the array first, in full stripes, so that every write
    /// of the trace is an update.
    #[arg(long)]
    fill: bool,
    /// Requests in flight at most [32; with --timed 4096].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536), value_name = "N")]
    queue_depth: Option<u32>,
    /// Send requests at the times of the trace (open loop); latency counts from there. Otherwise the next
    /// one is sent when one ends (closed loop).
    #[arg(long)]
    timed: bool,
    /// Times faster than recorded.
    #[arg(long, default_value = "1", requires = "timed", value_parser = parse_speed)]
    speed: f64,
    /// Memory for buffers [1GiB; with the schemes elastic and was 64MiB]. What these write in groups waits
    /// there, and what is acknowledged faster than the SSDs take it.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    buffers: Option<u64>,
    /// Same seed, same result.
    #[arg(long, default_value = "1", value_name = "N")]
    seed: u64,
    #[command(flatten)]
    rows: SeriesOptions,
    #[command(flatten)]
    recovery: Recovery,
    /// Recount the SSDs' pages and erases at the end: laws of conservation.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    cells: Cells,
    #[command(flatten)]
    plot: PlotOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Several runs side by side.
#[derive(Args, Clone, Debug)]
struct Cells {
    /// Run these schemes side by side, such as raid,parity-log,eplog.
    #[arg(long, value_delimiter = ',', value_name = "SCHEMES")]
    compare: Vec<SchemeKind>,
    /// Scheme whose lifespan counts as 1 beside the others'; the first one compared if not given.
    #[arg(long, value_name = "SCHEME")]
    baseline: Option<SchemeKind>,
    /// Let each scheme acknowledge writes as it does when it is served, where the schemes of the grid differ
    /// in that; without it all acknowledge what is durable then, as with --sync.
    #[arg(long)]
    own_terms: bool,
    /// Run for each of these values of an option, such as queue-depth=1,8,32; several make a grid.
    #[arg(long, value_parser = grid::parse_axis, value_name = "OPTION=A,B,C")]
    sweep: Vec<grid::Axis>,
    /// Folder for results.csv and a JSON file per cell; cells that are there from this build of the program
    /// are not run again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run a part of the cells only, such as 1/4, 2/4 and so on on four machines; without it afterwards, in
    /// a folder with the files of all, nothing is run again and results.csv has every cell.
    #[arg(long, requires = "out", conflicts_with = "plot", value_name = "I/N")]
    shard: Option<store::Shard>,
    /// Cells that run side by side [all processors].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024), value_name = "N")]
    jobs: Option<u32>,
}

/// What the SSDs keep apart.
#[derive(Args, Clone, Debug)]
struct StreamChoices {
    /// Which streams the SSDs keep apart.
    #[arg(long, value_enum, value_name = "WHICH")]
    streams: Option<Streams>,
    /// Streams that an SSD has.
    #[arg(long, value_name = "N")]
    stream_limit: Option<u8>,
    /// Classes into which an SSD sorts parity by how long it lives (with --streams class or all).
    #[arg(long, value_name = "N")]
    parity_classes: Option<u8>,
    /// Write parity in SLC mode: the most of the over-provisioned space that may go into it, 0 to 1, or
    /// dynamic, or dynamic:SLACK.
    #[arg(long, value_parser = parse_cap, value_name = "CAP")]
    slc_cap: Option<SlcCap>,
    /// Wear of a page in MLC mode in relation to one in SLC mode.
    #[arg(long, default_value_t = STRESS_RATIO, value_name = "R")]
    stress_ratio: f64,
}

impl StreamChoices {
    /// Whether something is asked of the SSDs' flash.
    fn is_given(&self) -> bool {
        let counts = self.stream_limit.is_some() || self.parity_classes.is_some();
        self.streams.is_some() || self.slc_cap.is_some() || counts || self.stress_ratio != STRESS_RATIO
    }
}

/// Which SSDs, and how full they are.
#[derive(Args, Clone, Debug)]
struct SsdChoices {
    /// Preset of the SSDs; `flash presets` lists them.
    #[arg(long, default_value = "eplog-disksim", value_name = "PRESET")]
    ssd: String,
    /// Bytes that each SSD shows its host, instead of the preset's; the spare factor stays.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    ssd_size: Option<u64>,
    /// Victim of the SSDs' own GC: greedy, cost-benefit, fifo or d-choices:D.
    #[arg(long, value_parser = parse_gc, value_name = "POLICY")]
    ssd_gc: Option<GcPolicy>,
    /// Memory of each SSD for its mapping table (DFTL); the whole table if not given.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    mapping_cache: Option<u64>,
    /// Erases that a block of the SSDs is rated for, instead of the preset's.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), value_name = "ERASES")]
    endurance: Option<u32>,
    /// Write every page of the SSDs once before the array is made, so that they are as full as a simulator
    /// of the papers.
    #[arg(long)]
    prefill: bool,
    /// Share of the SSD's pages, from the first, that --prefill writes.
    #[arg(long, default_value_t = 1.0, requires = "prefill", value_name = "SHARE")]
    utilization: f64,
}

/// Runs `simulate`.
pub fn run(arguments: &mut Arguments) -> Result<Exit, Failure> {
    arguments.name_traces();
    let alone = arguments.cells.compare.is_empty() && arguments.cells.sweep.is_empty();
    if alone && arguments.cells.out.is_none() && !arguments.plot.wanted() {
        effect::check_alone(arguments)?;
        let loaded = arguments.trace.load(arguments.chunk_size)?;
        let outcome = rig::simulate(arguments, &loaded, Shown::Progress)?;
        if arguments.json {
            output::line(format_args!("{:#}", outcome.to_json()));
        } else {
            output::print(outcome.to_text());
        }
        return Ok(0);
    }
    arguments.refuse_rows()?;
    sweep::run(arguments)
}

/// Runs what the words of `simulate` say, in another program; what was counted, as JSON.
pub(crate) fn embedded(
    arguments: &mut Arguments,
    words: &[OsString],
    given: Given<'_>,
) -> Result<Value, Failure> {
    arguments.name_traces();
    let Given { memory, policies, names, shown } = given;
    if !arguments.cells.compare.is_empty() || !arguments.cells.sweep.is_empty() {
        if names.any() {
            return Err(Failure::new(
                "--sweep, --compare: found a policy of one's own, which serves one run; make a run for each",
            ));
        }
        arguments.refuse_rows()?;
        return sweep::embedded(arguments, words, memory.as_ref(), shown);
    }
    effect::check_alone(arguments)?;
    names.check(arguments.array.elastic, arguments.array.scheme)?;
    let loaded = arguments.trace.load_or(memory.as_ref(), arguments.chunk_size, shown)?;
    let classes = policies.placement.as_ref().map(|placement| placement.classes());
    let mut outcome = rig::simulate_with(arguments, &loaded, shown, policies)?;
    names.rename(&mut outcome.placement, classes);
    Ok(outcome.to_json())
}

/// Runs what the arguments say over a trace that `load` gets, and names what it counted; for experiments.
pub(crate) fn measure<'a>(
    arguments: &Arguments,
    load: impl FnOnce(&TraceOptions, u64) -> Result<Arc<Loaded>, Failure> + 'a,
) -> Result<Vec<(String, f64)>, Failure> {
    arguments.array.check()?;
    arguments.recovery.check_scheme(arguments.array.scheme)?;
    let loaded = load(&arguments.trace, arguments.chunk_size)?;
    let outcome = rig::simulate(arguments, &loaded, Shown::Nothing)?;
    Ok(outcome.named_figures())
}

impl Arguments {
    /// Puts the seed into names of traces that ask for it.
    fn name_traces(&mut self) {
        let seed = self.seed.to_string();
        for path in &mut self.trace.traces {
            if let Some(name) = path.to_str().filter(|name| name.contains("{seed}")) {
                *path = PathBuf::from(name.replace("{seed}", &seed));
            }
        }
    }

    /// Rows are of one run.
    fn refuse_rows(&self) -> Result<(), Failure> {
        if self.rows.interval.is_none() {
            return Ok(());
        }
        Err(Failure::new(
            "--interval: found beside --compare, --sweep, --out or --plot, expected a run alone",
        ))
    }

    /// Whether anything depends on the seed: half of GLRU's tests, and victims drawn by lot.
    fn has_chance(&self) -> bool {
        let drawn = matches!(self.ssds.ssd_gc, Some(GcPolicy::DChoices(_)));
        let was = self.array.scheme.is_elastic()
            && self.array.elastic.used_placement(self.array.scheme) == PlacementKind::Was;
        drawn || (was && self.array.elastic.hotness != Some(HotnessKind::Hca))
    }

    /// That writes are acknowledged from memory, if they are.
    fn terms(&self) -> Option<String> {
        let mut terms = Terms::default();
        terms.add(self.array.scheme.name(), self.answers_from_memory());
        terms.line("")
    }

    /// Whether a write is acknowledged before a device has it.
    fn answers_from_memory(&self) -> bool {
        let cached = self.array.scheme.has_cache() && self.array.cache.has_write_cache();
        !self.array.sync && (self.array.scheme.is_elastic() || cached)
    }

    fn depth(&self) -> u32 {
        self.queue_depth.unwrap_or(if self.timed { 4096 } else { 32 })
    }

    /// The engine; options that mean nothing to the scheme are left out, so that schemes can be compared.
    fn engine_options(&self) -> EngineOptions {
        // The papers count without discards of what is written again.
        let options = Discards::Large.apply(EngineOptions::default());
        // Nor do they keep the chunks of a request together.
        let mut options = EngineOptions { content: Content::Meaningless, ..options };
        options.scheme.untorn_bytes = 0;
        if !self.array.scheme.is_elastic() {
            options.pool_bytes = POOL_BYTES;
            // A long request shall not be cut into several log stripes more than it must.
            options.batch_max = 1 << 14;
        }
        if let Some(bytes) = self.buffers {
            options.pool_bytes = bytes;
        }
        options.commit.idle_ns = None;
        if self.array.sync {
            options.sync = SyncPolicy::Always;
        }
        options = self.array.cache.apply_fitting(options, self.array.scheme);
        let elastic = if self.array.elastic.check(self.array.scheme).is_ok() {
            self.array.elastic
        } else {
            ElasticChoices::default()
        };
        self.recovery.batches.apply(self.array.rewrites.apply(elastic.apply(options, self.seed)))
    }

    /// The SSDs.
    fn ssd_config(&self) -> Result<DeviceConfig, Failure> {
        let choices = Choices {
            logical_size: self.ssds.ssd_size,
            gc: self.ssds.ssd_gc,
            mapping_cache: self.ssds.mapping_cache,
            streams: self.streaming.streams,
            stream_limit: self.streaming.stream_limit,
            parity_classes: self.streaming.parity_classes,
            slc_cap: self.streaming.slc_cap,
            stress_ratio: self.streaming.stress_ratio,
        };
        let config = match preset("--ssd", &self.ssds.ssd)? {
            DeviceConfig::Ssd(_) => {
                let config = DeviceOptions::chosen(&self.ssds.ssd, &choices)
                    .config(self.seed)
                    .map_err(|failure| Failure::new(format!("--ssd {}: {failure}", self.ssds.ssd)))?;
                let timing = config.timing.filter(|_| !self.untimed);
                DeviceConfig::Ssd(Box::new(SsdConfig { timing, ..config }))
            }
            known @ (DeviceConfig::Hdd(_) | DeviceConfig::BlackBox(_)) => {
                let inside = self.ssds.ssd_size.is_some()
                    || self.ssds.ssd_gc.is_some()
                    || self.ssds.mapping_cache.is_some()
                    || self.ssds.endurance.is_some()
                    || self.streaming.is_given()
                    || self.ssds.prefill;
                if inside || self.untimed {
                    return Err(Failure::new(format!(
                        "--ssd {}: of this drive only bandwidths are known; leave options of its flash out, or take another",
                        self.ssds.ssd
                    )));
                }
                known
            }
        };
        let page_bytes = match &config {
            DeviceConfig::Ssd(config) => config.geometry.page_bytes,
            DeviceConfig::Hdd(options) => options.page_bytes,
            DeviceConfig::BlackBox(options) => options.rates.page_bytes,
        };
        if !self.chunk_size.is_multiple_of(u64::from(page_bytes)) {
            return Err(Failure::new(format!(
                "--chunk-size: found {} bytes, expected a multiple of the {page_bytes} bytes of a page of {}",
                self.chunk_size, self.ssds.ssd
            )));
        }
        Ok(config)
    }

    /// The preset of the log devices.
    fn log_preset(&self) -> &str {
        self.log_device.as_deref().unwrap_or("seagate-st1000dm003")
    }

    /// The log devices; those without service times are SSDs that only count.
    fn log_config(&self) -> Result<DeviceConfig, Failure> {
        Ok(match preset("--log-device", self.log_preset())? {
            DeviceConfig::Ssd(config) => {
                let timing = config.timing.filter(|_| !self.untimed);
                DeviceConfig::Ssd(Box::new(SsdConfig { timing, ..*config }))
            }
            DeviceConfig::Hdd(options) if self.untimed => DeviceConfig::Hdd(flash::HddOptions {
                // As fast as a simulated disk can be: a page takes four nanoseconds.
                sequential: [1e12; 2],
                random: [1e12; 2],
                ..options
            }),
            known @ (DeviceConfig::Hdd(_) | DeviceConfig::BlackBox(_)) => known,
        })
    }
}

fn preset(option: &str, name: &str) -> Result<DeviceConfig, Failure> {
    presets::by_name(name).ok_or_else(|| {
        Failure::new(format!("{option}: found {name:?}, expected one of {}", presets::NAMES.join(", ")))
    })
}
