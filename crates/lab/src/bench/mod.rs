//! `bench`: the engine on devices that need no hardware, schemes side by side.
//!
//! All schemes of a workload run in one process, a slice each in turn, so that what else the machine does
//! falls on all of them alike. The loop that makes the load is single-threaded, as is the engine; with
//! several threads each has a loop and shards of its own.

mod counts;
mod crew;
mod effect;
mod picture;
mod report;
mod rig;
mod shard;
mod threads;
mod workload;

use crate::Exit;
use crate::failure::Failure;
use crate::options::batches::Batches;
use crate::options::cache::CacheSizes;
use crate::options::consistency::ConsistencyChoice;
use crate::options::placement::{ElasticChoices, GcUnit};
use crate::options::rewrites::RewriteChoice;
use crate::plot::options::PlotOptions;
use crate::provenance;
use crate::subject::build::{Columns, DeviceKind, Kind, code_or_default, log_count, parse_code};
use array::LAYOUT_OF_NEW;
use block::Geometry;
use clap::{Args, ValueEnum};
use format::{CodeKind, Consistency, SchemeKind};
use node::output;
use node::units::{parse_chunk_size, parse_size};
use shard::{Plan, RigOptions};
use threads::{Spread, Threads};
use workload::{Budget, Lane, Workload};

/// Options of `bench`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Which devices.
    #[arg(long, value_enum, default_value = "both")]
    device: Devices,
    /// Data and parity devices.
    #[arg(long, default_value = "6+2", value_name = "K+M")]
    geometry: Columns,
    /// Schemes to compare, separated by commas: raid, parity-log, eplog, elastic, was.
    #[arg(long, value_delimiter = ',', default_value = "eplog,raid", value_name = "SCHEME")]
    schemes: Vec<SchemeKind>,
    /// What to measure, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all")]
    workload: Vec<WorkloadName>,
    /// Bytes of a chunk.
    #[arg(long, value_parser = parse_chunk_size, default_value = "4KiB", value_name = "SIZE")]
    chunk_size: u64,
    /// Erasure code: auto, xor, cauchy or rdp.
    #[arg(long, value_parser = parse_code, default_value = "auto")]
    code: std::option::Option<CodeKind>,
    #[command(flatten)]
    consistency: ConsistencyChoice,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    volume: Volume,
    /// Spare chunks on each device per stripe, in percent: how many updates fit between two commits, and
    /// how much garbage there may be with elastic and was.
    #[arg(long, default_value = "100", value_parser = clap::value_parser!(u64).range(10..=800), value_name = "PERCENT")]
    spare: u64,
    /// Bytes for chunks on each device, metadata aside, instead of --spare: what the volume leaves of them
    /// is spare.
    #[arg(long, value_parser = parse_size, value_name = "SIZE", conflicts_with = "spare")]
    device_size: Option<u64>,
    /// Seed of addresses, payload and placement.
    #[arg(long, default_value = "1")]
    seed: u64,
    #[command(flatten)]
    rewrites: RewriteChoice,
    #[command(flatten)]
    cache: CacheSizes,
    #[command(flatten)]
    elastic: ElasticChoices,
    #[command(flatten)]
    unit: GcUnit,
    #[command(flatten)]
    batches: Batches,
    #[command(flatten)]
    plot: PlotOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How long each workload runs.
#[derive(Args, Clone, Debug)]
struct Length {
    /// Time for each workload and scheme.
    #[arg(long, default_value = "2", value_parser = parse_seconds, conflicts_with = "requests")]
    seconds: f64,
    /// Requests for each workload and scheme, of all threads together, instead of a time.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Slices that the time is cut into; no more than requests.
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
}

/// How large the volume is, and how much of it is used, and of its table in memory.
#[derive(Args, Clone, Debug)]
struct Volume {
    /// Bytes of the volume.
    #[arg(long, value_parser = parse_size, default_value = "512MiB", value_name = "SIZE")]
    volume_size: u64,
    /// Bytes of the volume, from its start, that are filled and then used; the rest is never written.
    /// Without it all of it, but not more than 16 GiB.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    working_set: Option<u64>,
    /// Memory for the table of chunks; pages of it that have no room are read from the devices when they
    /// are needed. Without it all of the table is in memory, as that of elastic and was is anyway.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    table_memory: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Devices {
    Memory,
    Null,
    Both,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WorkloadName {
    /// Random updates of one chunk into free space: neither parity commits nor garbage collection. The
    /// space is made free between the slices, which does not count.
    Burst,
    /// Random updates of one chunk; commits between the slices, not counted. Garbage collection counts, and
    /// runs from the beginning: the volume is overwritten twice before. So it favours schemes with commits.
    Randwrite,
    /// The same without a pause: commits come when space runs low, and count.
    Sustained,
    /// New full stripes in order.
    Seqwrite,
    /// Random reads of one chunk.
    Randread,
    /// Reads of whole stripes in order.
    Seqread,
    /// Parity commit of all stripes, and what it does to the latency of random updates.
    Commit,
    /// Loss and rebuild of as many devices as there are parities.
    Rebuild,
    /// All of them.
    All,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 =
        text.parse().map_err(|_| format!("found {text:?}, expected a number of seconds such as 2"))?;
    if (0.001..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("found {text:?}, expected 0.001 to 3600 seconds"))
    }
}

impl Arguments {
    fn workloads(&self) -> Vec<Workload> {
        let named = |name| match name {
            WorkloadName::Burst => vec![Workload::Burst],
            WorkloadName::Randwrite => vec![Workload::RandWrite],
            WorkloadName::Sustained => vec![Workload::Sustained],
            WorkloadName::Seqwrite => vec![Workload::SeqWrite],
            WorkloadName::Randread => vec![Workload::RandRead],
            WorkloadName::Seqread => vec![Workload::SeqRead],
            WorkloadName::Commit => vec![Workload::Commit],
            WorkloadName::Rebuild => vec![Workload::Rebuild],
            WorkloadName::All => Workload::ALL.to_vec(),
        };
        self.workload.iter().flat_map(|&name| named(name)).collect()
    }

    fn devices(&self) -> &'static [DeviceKind] {
        match self.device {
            Devices::Memory => &[DeviceKind::Memory],
            Devices::Null => &[DeviceKind::Null],
            Devices::Both => &[DeviceKind::Null, DeviceKind::Memory],
        }
    }

    fn budget(&self) -> Budget {
        let rounds = u64::from(self.length.rounds);
        match self.length.requests {
            Some(requests) => Budget { rounds: rounds.min(requests), ns: u64::MAX, requests },
            // At most 3600 seconds, so the product fits.
            None => Budget { rounds, ns: (self.length.seconds * 1e9) as u64 / rounds, requests: u64::MAX },
        }
    }

    /// Stripes in so many bytes of the volume.
    fn stripes_of(&self, bytes: u64, geometry: Geometry) -> u64 {
        let stripe_bytes = geometry.data_count() as u64 * self.chunk_size;
        (bytes / stripe_bytes).max(1)
    }

    /// Bytes of the volume that are used.
    fn working_set(&self) -> u64 {
        self.volume.working_set.unwrap_or(WORKING_SET_BYTES).min(self.volume.volume_size)
    }

    /// Spare chunks on each device.
    fn spare_chunks(&self, geometry: Geometry, stripe_count: u64) -> Result<u64, Failure> {
        let Some(device_size) = self.device_size else {
            return Ok(stripe_count.saturating_mul(self.spare) / 100);
        };
        let least = stripe_count + stripe_count.div_ceil(10);
        (device_size / self.chunk_size).checked_sub(stripe_count).filter(|spare| stripe_count + spare >= least).ok_or_else(
            || {
                Failure::new(format!(
                    "--device-size: found {device_size} bytes, expected at least {} for a volume of {} bytes at {}+{} and a tenth to \
                     spare",
                    least.saturating_mul(self.chunk_size),
                    self.volume.volume_size,
                    geometry.data_count(),
                    geometry.parity_count(),
                ))
            },
        )
    }

    fn lane(
        &self,
        scheme: SchemeKind,
        devices: DeviceKind,
        geometry: Geometry,
        spread: Spread,
    ) -> Result<Lane, Failure> {
        let code = code_or_default(self.code, geometry.parity_count());
        let stripe_count = self.stripes_of(self.volume.volume_size, geometry);
        let plan = Plan::new(&RigOptions {
            devices,
            spread,
            kind: Kind {
                scheme,
                code,
                consistency: self.consistency.or(Consistency::Journal),
                layout: LAYOUT_OF_NEW,
                geometry,
                log_count: log_count(scheme, geometry.parity_count()),
                unit_rows: self.unit.rows(),
            },
            stripe_count,
            used_count: self.stripes_of(self.working_set(), geometry),
            spare_chunks: self.spare_chunks(geometry, stripe_count)?,
            table_bytes: self.volume.table_memory,
            depth: usize::try_from(self.threads.queue_depth)?,
            seed: self.seed,
            rewrites: self.rewrites,
            cache: self.cache,
            elastic: self.elastic,
            batches: self.batches,
        })?;
        Lane::new(scheme, plan)
    }
}

/// A volume is used up to here, if nobody says how much of it.
const WORKING_SET_BYTES: u64 = 16 << 30;

/// Runs `bench`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let columns = arguments.geometry;
    let geometry = Geometry::new(columns.data_count, columns.parity_count, arguments.chunk_size)?;
    effect::check(arguments)?;
    let spreads = arguments.threads.spreads()?;
    let (plot, plotted) = (arguments.plot.target()?, picture::keys(&arguments.plot)?);
    let mut results = Vec::new();
    for &devices in arguments.devices() {
        let mut lanes = Vec::new();
        for &scheme in &arguments.schemes {
            for &spread in &spreads {
                lanes.push(arguments.lane(scheme, devices, geometry, spread)?);
            }
        }
        for workload in arguments.workloads() {
            let measured = workload::measure(workload, &mut lanes, &arguments.budget())?;
            if !arguments.json {
                report::print(workload, devices, &spreads, &measured);
            }
            results.push((workload, devices, measured));
        }
    }
    if arguments.json {
        output::line(format_args!("{:#}", report::to_json(arguments, &spreads, &results)));
    } else {
        report::terms(arguments).iter().for_each(output::line);
        report::threads(arguments, &spreads).iter().for_each(output::line);
        output::line(format_args!("made by {}", provenance::text()));
    }
    if let Some(target) = plot {
        target.write(&picture::figure(&results, &plotted, &arguments.plot))?;
    }
    Ok(0)
}
