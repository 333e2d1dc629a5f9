//! Placement alone: the writes of a trace through a log-structured store without devices, which counts what
//! garbage collection moves ([`placement::Store`]).
//!
//! For programs that hold the laboratory, to try policies in: much faster than the engine over simulated
//! SSDs.

use crate::drive::load::{Loaded, TraceOptions};
use crate::failure::Failure;
use crate::given::Given;
use crate::number::{count, float};
use crate::options::placement::ElasticChoices;
use crate::provenance;
use crate::watch::Shown;
use array::EngineOptions;
use block::{Lba, Lcn};
use clap::{Args, ValueEnum};
use format::SchemeKind;
use node::units::parse_size;
use placement::{
    PlacementOptions, Sequence, SequenceDetector, Store, StoreCounts, StoreOptions, Times, VictimPolicy,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::time::Duration;
use trace::Op;

/// Bytes of the sectors that say whether a request goes on where the one before ended.
const SECTOR_BYTES: u64 = 512;

/// Options of `place`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    trace: TraceOptions,
    #[command(flatten)]
    elastic: ElasticChoices,
    /// Bytes of a chunk, to which requests are rounded.
    #[arg(long, value_parser = parse_size, default_value = "4KiB", value_name = "SIZE")]
    chunk_size: u64,
    /// Bytes of a unit, which is written and collected as a whole.
    #[arg(long, value_parser = parse_size, default_value = "2MiB", value_name = "SIZE")]
    unit_size: u64,
    /// Units beyond those that the volume fills, as a share of them; those that --gc-threshold keeps free are
    /// among them.
    #[arg(long, value_parser = parse_spare, default_value = "30%", value_name = "SHARE")]
    spare: f64,
    /// What is known of when chunks were written.
    #[arg(long, value_enum, default_value = "exact", value_name = "WHICH")]
    times: TimesName,
    /// Write every chunk of the volume once first, in order; not counted.
    #[arg(long)]
    fill: bool,
    /// Go through the trace so many times; all are counted.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value = "1", value_name = "N")]
    passes: u32,
    /// Same seed, same result.
    #[arg(long, default_value = "1", value_name = "N")]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TimesName {
    /// When each was written.
    Exact,
    /// The mean of its unit, as in the engine.
    Stamps,
    /// Nothing.
    Unknown,
}

fn parse_spare(text: &str) -> Result<f64, String> {
    let expected = || format!("found {text:?}, expected a share such as 30% or 0.3, up to 100");
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number.parse::<f64>().map_err(|_| expected())? * unit;
    if (0.0..=100.0).contains(&share) { Ok(share) } else { Err(expected()) }
}

/// Runs what the words of `place` say, in another program; what was counted, as JSON.
pub fn embedded(arguments: &Arguments, given: Given<'_>) -> Result<Value, Failure> {
    let Given { memory, policies, names, shown } = given;
    let choices = arguments.elastic;
    names.check(choices, SchemeKind::Elastic)?;
    choices.check(SchemeKind::Elastic)?;
    if choices.group_chunks.is_some() || choices.p_wait.is_some() {
        return Err(Failure::new(
            "--group-chunks, --p-wait: found where no chunk waits for others, expected with simulate",
        ));
    }
    let loaded = arguments.trace.load_or(memory.as_ref(), arguments.chunk_size, shown)?;
    let sizes = arguments.sizes(&loaded)?;
    let options = choices.apply(EngineOptions::default(), arguments.seed).scheme;
    let kind = choices.used_placement(SchemeKind::Elastic);
    let placement = match policies.placement {
        Some(placement) => placement,
        None => PlacementOptions { kind, chunk_count: sizes.chunk_count, tuning: options.tuning }.build()?,
    };
    let victims: Box<dyn VictimPolicy> = policies.victims.unwrap_or_else(|| options.gc.build());
    let classes = placement.classes();
    let mut said = json!({
        "policy": kind.name(),
        "classes": classes,
        "gc": options.gc.name(),
        "seed": arguments.seed,
    });
    names.rename(&mut said, Some(classes));
    let mut store = Store::new(&sizes, placement, victims)?;
    if arguments.fill {
        shown.begin("fill", sizes.chunk_count)?;
        for chunk in 0..sizes.chunk_count {
            shown.show(chunk)?;
            let sequence = if chunk == 0 { Sequence::Random } else { Sequence::Continues };
            store.write(Lcn::new(chunk), sequence)?;
        }
    }
    let filled = store.counts();
    let cpu = cpu_time();
    arguments.write(&loaded, &mut store, shown)?;
    let cpu = (cpu_time().saturating_sub(cpu)).as_secs_f64();
    Ok(report(arguments, &loaded, &sizes, said, &store, (filled, cpu)))
}

impl Arguments {
    fn sizes(&self, loaded: &Loaded) -> Result<StoreOptions, Failure> {
        let (chunk, unit) = (self.chunk_size, self.unit_size);
        if chunk < SECTOR_BYTES || unit < chunk || !unit.is_multiple_of(chunk) {
            return Err(Failure::new(format!(
                "--unit-size: found {unit} bytes, expected a multiple of the {chunk} bytes of a chunk, which are {SECTOR_BYTES} or more"
            )));
        }
        let (chunk_count, unit_chunks) = (loaded.footprint_bytes.div_ceil(chunk).max(1), unit / chunk);
        let least = chunk_count.div_ceil(unit_chunks);
        // More than there can be is refused by the store.
        let spare = count((float(least) * self.spare).ceil());
        let scheme = self.elastic.apply(EngineOptions::default(), self.seed).scheme;
        let times = match self.times {
            TimesName::Exact => Times::Exact,
            TimesName::Stamps => Times::Stamps,
            TimesName::Unknown => Times::Unknown,
        };
        let unit_count = least.saturating_add(spare).max(2);
        Ok(StoreOptions { chunk_count, unit_chunks, unit_count, gc_threshold: scheme.gc_threshold, times })
    }

    /// All writes of the trace.
    fn write(&self, loaded: &Loaded, store: &mut Store, shown: Shown<'_>) -> Result<(), Failure> {
        let requests = u64::try_from(loaded.requests.len())?;
        shown.begin("place", requests.saturating_mul(self.passes.into()))?;
        let (mut detector, mut done) = (SequenceDetector::default(), 0);
        for _ in 0..self.passes {
            for request in &loaded.requests {
                shown.show(done)?;
                done += 1;
                if request.op != Op::Write {
                    continue;
                }
                let first = Lba::new(request.offset_bytes / SECTOR_BYTES);
                let sequence = detector.request(first, request.length_bytes / SECTOR_BYTES);
                for chunk in request.chunks(self.chunk_size) {
                    store.write(Lcn::new(chunk), sequence)?;
                }
            }
        }
        Ok(())
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn report(
    arguments: &Arguments,
    loaded: &Loaded,
    sizes: &StoreOptions,
    placement: Value,
    store: &Store,
    (filled, cpu_seconds): (StoreCounts, f64),
) -> Value {
    let counts = store.counts();
    let written = counts.written - filled.written;
    let rewritten = counts.rewritten - filled.rewritten;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "provenance": provenance::json(),
        "seed": arguments.seed,
        "config": {
            "trace": loaded.json(&arguments.trace),
            "chunk_bytes": arguments.chunk_size,
            "chunks": sizes.chunk_count,
            "unit_chunks": sizes.unit_chunks,
            "units": sizes.unit_count,
            "gc_threshold_percent": sizes.gc_threshold.percent(),
            "times": match arguments.times {
                TimesName::Exact => "exact",
                TimesName::Stamps => "stamps",
                TimesName::Unknown => "unknown",
            },
            "fill": arguments.fill,
            "passes": arguments.passes,
        },
        "placement": placement,
        "user_chunks_written": written,
        "absorbed_chunks": counts.absorbed - filled.absorbed,
        "gc_chunks_rewritten": rewritten,
        "units_collected": counts.collected - filled.collected,
        "units_written": counts.units_written - filled.units_written,
        "unique_chunks": store.unique(),
        "write_amplification": 1.0 + float(rewritten) / float(written.max(1)),
        "placement_bytes": store.placement().memory_bytes(),
        "cpu": { "seconds": cpu_seconds, "chunk_writes_per_second": float(written) / cpu_seconds.max(1e-9) },
    })
}
