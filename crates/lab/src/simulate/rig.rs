//! One run: devices, array, the fill, the trace.

use super::Arguments;
use super::outcome::{DeviceFigures, Outcome, Rating, Stretch};
use crate::drive::driver::{Driver, Pace};
use crate::drive::load::Loaded;
use crate::drive::phase::{Phase, fill_bytes, fill_requests, phase};
use crate::drive::progress::Progress;
use crate::failure::Failure;
use crate::flash::config_json;
use crate::simulated::SimulatedSet;
use crate::subject::array::ArrayTarget;
use crate::subject::build::{Sized, build_with};
use crate::subject::choices::CommitEvery;
use crate::subject::fit;
use crate::subject::target::Target as _;
use crate::watch::Shown;
use array::{AssembleError, EngineOptions, MemoryNeed, Policies};
use block::DevIndex;
use flash::{Counters, Device, DeviceConfig, Tag, presets};
use format::ArrayConfig;
use node::placement::{placement_info, rewrites_name};
use node::status;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Pages of one request of the prefill.
const PREFILL_PAGES: u64 = 256;
/// Idle time after the prefill: whatever the flash still does ends.
const PAUSE_NS: u64 = 10_000_000_000;

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Runs what the arguments say.
pub fn simulate(arguments: &Arguments, loaded: &Loaded, shown: Shown<'_>) -> Result<Outcome, Failure> {
    simulate_with(arguments, loaded, shown, Policies::default())
}

/// The same with policies of somebody else.
pub fn simulate_with(
    arguments: &Arguments,
    loaded: &Loaded,
    shown: Shown<'_>,
    policies: Policies,
) -> Result<Outcome, Failure> {
    arguments.recovery.check(arguments.array.geometry.parity_count, loaded.requests.len())?;
    arguments.rows.check(arguments.trace.inputs())?;
    let (ssd, start_ns) = prefilled(arguments, shown)?;
    let sized = sized(arguments, loaded, &ssd)?;
    let set = devices(arguments, &sized, ssd.clone(), start_ns)?;
    let options = arguments.engine_options();
    let array = build_with(set, &sized, "simulated".to_owned(), options, policies)?;
    let mut target = ArrayTarget::simulated(array, SimulatedSet::now_ns, SimulatedSet::counters);
    loaded.check_footprint(target.volume_bytes())?;
    let covered = fill_bytes(&target, loaded.footprint_bytes);
    // Short requests: what an elastic scheme cannot place yet is offered to it again with every completion.
    let bulk = arguments.array.geometry.data_count as u64 * arguments.chunk_size;
    let made = Marks::of(&target);

    let fill = if arguments.fill {
        let mut progress = Progress::of(shown, "fill", covered.div_ceil(bulk))?;
        let mut driver = Driver::new(&mut target, arguments.depth() as usize, arguments.chunk_size, None);
        let requests = fill_requests(covered, bulk)?;
        let phase = phase(&mut driver, requests, Pace::Full, CommitEvery::Never, &mut progress)?;
        Some(Marks::of(&target).since(&made).stretch(phase))
    } else {
        None
    };

    let (before, cpu) = (Marks::of(&target), cpu_seconds());
    let pace = if arguments.timed { Pace::Timed { speed: arguments.speed } } else { Pace::Full };
    let mut progress = Progress::of(shown, "simulate", loaded.requests.len() as u64)?;
    let mut driver = Driver::new(&mut target, arguments.depth() as usize, arguments.chunk_size, None);
    if let Some(every) = arguments.rows.interval {
        driver.sample(every, pace)?;
    }
    if let Some((at, ssds)) = arguments.recovery.loss() {
        driver.lose(at, ssds);
    }
    let requests = loaded.requests.iter().copied();
    let commit = match arguments.array.commit_every {
        CommitEvery::End if arguments.recovery.fail.is_some() => CommitEvery::Never,
        chosen @ (CommitEvery::End | CommitEvery::Never | CommitEvery::Writes(_)) => chosen,
    };
    let mut phase = phase(&mut driver, requests, pace, commit, &mut progress)?;
    arguments.recovery.degrade(arguments.array.scheme, &mut driver, &mut phase)?;
    let series = driver.take_series(pace, &phase.outcome)?;
    arguments.rows.keep(&series)?;
    drop(progress);
    let cpu_seconds = cpu_seconds() - cpu;
    let run = Marks::of(&target).since(&before).stretch(phase);
    let rebuilt = arguments.recovery.run(&mut target)?;
    if arguments.check {
        check(&target)?;
    }
    let config = &target.array().engine_ref().store().config;
    Ok(Outcome {
        config: describe(arguments, loaded, &target, &ssd)?,
        terms: arguments.terms(),
        placement: json!(placement_info(&options.scheme, config)),
        placement_line: placement_info(&options.scheme, config).map(|info| info.line()),
        scheme: arguments.array.scheme,
        seed: arguments.seed,
        chunk_bytes: arguments.chunk_size,
        page_bytes: u64::from(ssd.page_bytes()),
        main_count: config.geometry.device_count(),
        stress_ratio: arguments.streaming.stress_ratio,
        is_timed: !arguments.untimed,
        is_open_loop: arguments.timed,
        rating: rating(arguments, loaded, &ssd),
        series: arguments.rows.interval.map(|_| series),
        fill,
        run,
        rebuilt,
        memory: status::memory(target.array().engine_ref()),
        cpu_seconds,
    })
}

/// Memory for buffers, those of caches apart: no less than the engine has to have.
fn buffer_bytes(config: &ArrayConfig, options: &EngineOptions) -> Result<u64, AssembleError> {
    // More than there may be.
    let most = (config.geometry.chunk_bytes() as u64) << 32;
    let need = |options| MemoryNeed::of(config, options).map(|need| need.buffers_bytes);
    Ok(most - (need(&EngineOptions { pool_bytes: most, ..*options })? - need(options)?))
}

/// Rated erases, the preset's or those given.
fn rating(arguments: &Arguments, loaded: &Loaded, ssd: &Device) -> Option<Rating> {
    let Device::Ssd(ssd) = ssd else { return None };
    let erases = arguments.ssds.endurance.or_else(|| presets::rated_erases(&arguments.ssds.ssd))?;
    let times = || loaded.requests.iter().map(|request| request.time_us);
    let trace_us = times().max().zip(times().min()).map(|(last, first)| last - first).filter(|&us| us > 0);
    Some(Rating { erases, blocks: ssd.config().geometry.blocks(), trace_us })
}

/// An SSD as the array finds it, and when.
fn prefilled(arguments: &Arguments, shown: Shown<'_>) -> Result<(Device, u64), Failure> {
    if !(0.0..=1.0).contains(&arguments.ssds.utilization) {
        return Err(Failure::new(format!(
            "--utilization: found {}, expected 0 to 1",
            arguments.ssds.utilization
        )));
    }
    let config = arguments.ssd_config()?;
    if let DeviceConfig::Ssd(config) = &config {
        let columns = arguments.array.geometry;
        fit::check_flash(
            config,
            columns.data_count.saturating_add(columns.parity_count),
            "--ssd-size or --geometry",
        )?;
    }
    let mut device = Device::new(config)?;
    if !arguments.ssds.prefill {
        return Ok((device, 0));
    }
    // Not negative, and at most the pages.
    let pages = (device.pages() as f64 * arguments.ssds.utilization) as u64;
    let mut now_ns = 0;
    shown.begin("prefill", pages)?;
    for page in (0..pages).step_by(PREFILL_PAGES as usize) {
        shown.show(page)?;
        now_ns = device.write(page, PREFILL_PAGES.min(pages - page), Tag::Data(0), now_ns)?;
    }
    let end_ns = device.flush(now_ns);
    Ok((device, end_ns + PAUSE_NS))
}

fn sized(arguments: &Arguments, loaded: &Loaded, ssd: &Device) -> Result<Sized, Failure> {
    let kind = arguments.array.kind(arguments.chunk_size)?;
    let ssd_bytes = ssd.pages().saturating_mul(u64::from(ssd.page_bytes()));
    let options = arguments.engine_options();
    let threshold = options.scheme.gc_threshold;
    let mut sized = match arguments.array.device_size {
        None => fit::fit_within(&kind, &loaded.requests, options.sync, loaded.footprint_bytes, ssd_bytes)?,
        Some(bytes) if arguments.array.scheme.is_elastic() => {
            fit::given_elastic(&kind, loaded.footprint_bytes, bytes, threshold)?
        }
        Some(bytes) => fit::given(&kind, loaded.footprint_bytes, bytes)?,
    };
    // What is left of a last page.
    let page_bytes = u64::from(ssd.page_bytes());
    sized.main_bytes = sized.main_bytes.next_multiple_of(page_bytes).min(ssd_bytes.max(sized.main_bytes));
    Ok(sized)
}

fn devices(
    arguments: &Arguments,
    sized: &Sized,
    ssd: Device,
    start_ns: u64,
) -> Result<SimulatedSet, Failure> {
    let main_count = sized.config.geometry.device_count();
    let mut members = vec![(sized.main_bytes, ssd); main_count];
    if arguments.array.log_count() > 0 {
        let log = Device::new(arguments.log_config()?)?;
        members.extend(vec![(sized.log_bytes, log); arguments.array.log_count()]);
    }
    Ok(SimulatedSet::new(members, start_ns)?)
}

type SimulatedTarget = ArrayTarget<SimulatedSet>;

/// Counters of all devices at one moment.
struct Marks {
    counters: Vec<Counters>,
    wear: Vec<Option<flash::WearSpread>>,
    now_ns: u64,
}

impl Marks {
    fn of(target: &SimulatedTarget) -> Self {
        let set = target.array().devices_ref().inner();
        let devices = (0..u16::MAX).map_while(|dev| set.device(DevIndex::new(dev)));
        let wear = |device: &Device| match device {
            Device::Ssd(ssd) => Some(ssd.wear()),
            Device::Hdd(_) | Device::BlackBox(_) => None,
        };
        Self {
            counters: devices.clone().map(Device::counters).collect(),
            wear: devices.map(wear).collect(),
            now_ns: set.now_ns(),
        }
    }

    fn since(self, earlier: &Self) -> Self {
        let counters = self.counters.iter().zip(&earlier.counters).map(|(now, then)| now.since(then));
        Self { counters: counters.collect(), now_ns: self.now_ns - earlier.now_ns, ..self }
    }

    fn stretch(self, phase: Phase) -> Stretch {
        let devices = self.counters.into_iter().zip(self.wear);
        let devices = devices.map(|(counters, wear)| DeviceFigures { counters, wear }).collect();
        Stretch { phase, devices, virtual_ns: self.now_ns }
    }
}

/// Recounts every SSD.
fn check(target: &SimulatedTarget) -> Result<(), Failure> {
    let set = target.array().devices_ref().inner();
    for (index, device) in (0..u16::MAX).map_while(|dev| set.device(DevIndex::new(dev))).enumerate() {
        if let Device::Ssd(ssd) = device {
            ssd.check().map_err(|broken| Failure::new(format!("device {index}: {broken}")))?;
        }
    }
    Ok(())
}

fn describe(
    arguments: &Arguments,
    loaded: &Loaded,
    target: &SimulatedTarget,
    ssd: &Device,
) -> Result<Value, Failure> {
    let config = &target.array().engine_ref().store().config;
    let ssd_json = match ssd {
        Device::Ssd(ssd) => config_json(ssd.config()),
        Device::Hdd(_) | Device::BlackBox(_) => Value::Null,
    };
    Ok(json!({
        "trace": loaded.json(&arguments.trace),
        "array": {
            "scheme": config.scheme.to_string(),
            "geometry": arguments.array.geometry.to_string(),
            "code": config.code.to_string(),
            "consistency": config.consistency.to_string(),
            "log_devices": config.log_count,
            "chunk_bytes": arguments.chunk_size,
            "chunks_per_device": config.chunks_per_device,
            "stripes": config.stripe_count,
            "log_blocks": config.log_blocks,
            "unit_rows": config.unit_rows,
            "volume_bytes": target.volume_bytes(),
        },
        "ssd": { "preset": arguments.ssds.ssd, "config": ssd_json },
        "log_device": (arguments.array.log_count() > 0).then(|| arguments.log_preset()),
        "prefill": arguments.ssds.prefill.then_some(arguments.ssds.utilization),
        "stress_ratio": arguments.streaming.stress_ratio,
        "fill": arguments.fill,
        "queue_depth": arguments.depth(),
        "timed_speed": arguments.timed.then_some(arguments.speed),
        "commit_every": arguments.array.commit_every.json(),
        "sync": arguments.array.sync,
        "rewrites": rewrites_name(&arguments.engine_options().scheme, config),
        "buffer_bytes": buffer_bytes(config, &arguments.engine_options())?,
        "cache_stripes": arguments.array.cache.cache_stripes,
        "cache_slots": arguments.array.cache.cache_slots,
        "stripe_cache": arguments.engine_options().scheme.stripe_cache,
    }))
}
