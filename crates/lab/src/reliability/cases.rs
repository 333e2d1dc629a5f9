//! From options to the models that are compared.

use super::options::{Arguments, DistributionName, OrderName, Scrub};
use super::simulated::{Simulated, load};
use super::values::show_span;
use crate::failure::{EXIT_MISUSED, Failure};
use crate::subject::build::Columns;
use reliability::{
    Correlation, Exposure, Geometry, HOURS_PER_YEAR, Latent, Lifetime, Model, Repair, RepairOrder,
    RepairTime, Wear,
};

/// The paper's repair rates: as printed; 400 GB at 100 MB/s, which gives about that; 400 GB at the 100 Mb/s
/// that are printed beside it.
const READINGS: [(&str, f64); 3] = [
    ("as printed", 10_000.0),
    ("400 GB at 100 MB/s", 1e8 / PAPER_CAPACITY * 3600.0 * HOURS_PER_YEAR),
    ("400 GB at 100 Mb/s", 1e8 / 8.0 / PAPER_CAPACITY * 3600.0 * HOURS_PER_YEAR),
];
/// Failures per year of the WAS paper (W-47).
const PAPER_RATE: f64 = 0.25;
/// Its rebuild rate, as it must be read.
const PAPER_BYTES_PER_S: f64 = 1e8;
/// Bytes of its devices, which its repair rates are made of.
pub const PAPER_CAPACITY: f64 = 4e11;
/// Models in one run.
const CASES_MAX: usize = 1000;

/// One line of the table.
pub struct Case {
    /// k+m.
    pub geometry: Columns,
    /// What was simulated, if that says how much is erased.
    pub simulation: Option<String>,
    /// Erases in relation to the first of its kind.
    pub alpha: f64,
    /// Where the repair rate comes from, in words.
    pub repair: String,
    /// Erases per block and day.
    pub erases_per_day: Option<f64>,
    /// All of it.
    pub model: Model,
    /// The model with alpha 1.
    pub baseline: Model,
}

impl Case {
    /// Whether the closed forms cover all of the model.
    pub fn is_plain(&self) -> bool {
        let Model { geometry, device, repair, latent, correlation, .. } = &self.model;
        geometry.logs == 0
            && device.is_constant()
            && repair.order == RepairOrder::OneByOne
            && latent.rate == 0.0
            && latent.per_pass == 0.0
            && correlation.after_failure == 1.0
            && correlation.shock_rate == 0.0
    }
}

/// What is erased how much.
struct Source {
    simulation: Option<Simulated>,
    alpha: f64,
}

/// A repair of data devices.
struct Mending {
    said: String,
    mean: f64,
    waiting: f64,
}

/// All cases, in the order of the table.
pub fn of(arguments: &Arguments) -> Result<Vec<Case>, Failure> {
    let sources = sources(arguments)?;
    let mut cases = Vec::new();
    for &geometry in &arguments.geometry {
        for source in &sources {
            check_count(geometry, source)?;
            for mending in mendings(arguments, source)? {
                cases.push(case(arguments, geometry, source, mending)?);
                if cases.len() > CASES_MAX {
                    return Err(misused(format!("found more than {CASES_MAX} combinations, expected fewer")));
                }
            }
        }
    }
    Ok(cases)
}

fn misused(message: String) -> Failure {
    Failure::new(message).with_exit(EXIT_MISUSED)
}

fn sources(arguments: &Arguments) -> Result<Vec<Source>, Failure> {
    let wear = &arguments.wear;
    if wear.endurance.is_some() && wear.erases_per_day.is_none() && wear.simulation.is_empty() {
        return Err(misused(
            "--endurance: found alone, expected --erases-per-day or --simulation besides".to_owned(),
        ));
    }
    if wear.simulation.is_empty() {
        let mut alphas = wear.alpha.clone();
        if let Some(bad) = alphas.iter().find(|alpha| !(1e-6..=1e6).contains(*alpha)) {
            return Err(misused(format!("--alpha: found {bad}, expected 1e-6 to 1e6")));
        }
        if !alphas.contains(&1.0) {
            alphas.insert(0, 1.0);
        }
        return Ok(alphas.into_iter().map(|alpha| Source { simulation: None, alpha }).collect());
    }
    let simulated = wear.simulation.iter().map(|path| load(path)).collect::<Result<Vec<_>, _>>()?;
    let capacity = arguments.device.capacity;
    let first = simulated.first().map_or(0.0, |first| first.erases_per_byte(capacity));
    simulated
        .into_iter()
        .map(|simulation| {
            let alpha = simulation.erases_per_byte(capacity) / first;
            if !(1e-6..=1e6).contains(&alpha) {
                return Err(Failure::new(format!(
                    "{}: found {} erases of SSDs, expected some in it and in the first",
                    simulation.name, simulation.erases_per_block
                )));
            }
            Ok(Source { simulation: Some(simulation), alpha })
        })
        .collect()
}

/// Refuses a simulation of another number of SSDs: what one of them is erased is no figure of such an array.
fn check_count(geometry: Columns, source: &Source) -> Result<(), Failure> {
    let devices = geometry.data_count.saturating_add(geometry.parity_count);
    match &source.simulation {
        Some(simulation) if simulation.ssds != devices => Err(Failure::new(format!(
            "--simulation: found {} SSDs in {}, expected the {devices} of {geometry}; name what was simulated with --geometry",
            simulation.ssds, simulation.name
        ))),
        Some(_) | None => Ok(()),
    }
}

fn mendings(arguments: &Arguments, source: &Source) -> Result<Vec<Mending>, Failure> {
    let options = &arguments.repair;
    let waits = options.replace_after.unwrap_or(0.0);
    let capacity = arguments.device.capacity;
    let rebuilt = |bytes_per_s: f64, said: &str| {
        let works = capacity / bytes_per_s / 3600.0 / HOURS_PER_YEAR;
        let (mean, waiting) = (waits + works, waits / (waits + works));
        Mending { said: format!("{said}{:.1} MB/s", bytes_per_s / 1e6), mean, waiting }
    };
    let of_rate = |rate: f64, said: String| Mending { said, mean: 1.0 / rate, waiting: 0.0 };
    let given = |rate: &f64| {
        let fine = (1e-6..=1e9).contains(rate);
        fine.then_some(*rate)
            .ok_or_else(|| misused(format!("repair rate: found {rate} per year, expected 1e-6 to 1e9")))
    };
    if !options.repair_rate.is_empty() {
        let rates = options.repair_rate.iter().map(given).collect::<Result<Vec<_>, _>>()?;
        return Ok(rates.into_iter().map(|rate| of_rate(rate, "given".to_owned())).collect());
    }
    if !options.repair_time.is_empty() {
        let times = options.repair_time.iter().map(|time| given(&(1.0 / time)).map(|rate| (rate, *time)));
        let times = times.collect::<Result<Vec<_>, _>>()?;
        return Ok(times.into_iter().map(|(rate, time)| of_rate(rate, show_span(time))).collect());
    }
    if !options.rebuild_rate.is_empty() {
        return Ok(options.rebuild_rate.iter().map(|rate| rebuilt(*rate, "")).collect());
    }
    if let Some(rate) = source.simulation.as_ref().and_then(|simulation| simulation.rebuild_bytes_per_s) {
        return Ok(vec![rebuilt(rate, "simulated ")]);
    }
    // Of devices of another size the paper's rates say nothing.
    if !arguments.wear.alpha.is_empty() && options.replace_after.is_none() && capacity == PAPER_CAPACITY {
        return Ok(READINGS.map(|(said, rate)| of_rate(rate, said.to_owned())).into());
    }
    Ok(vec![rebuilt(PAPER_BYTES_PER_S, "")])
}

fn repair_of(arguments: &Arguments, mending: &Mending) -> Repair {
    Repair {
        mean: mending.mean,
        waiting: mending.waiting,
        log_mean: arguments.log.log_repair_time.unwrap_or(mending.mean),
        time: match arguments.repair.repair_distribution {
            DistributionName::Exponential => RepairTime::Exponential,
            DistributionName::Fixed => RepairTime::Fixed,
        },
        order: match arguments.repair.repairs {
            OrderName::OneByOne => RepairOrder::OneByOne,
            OrderName::AllAtOnce => RepairOrder::AllAtOnce,
        },
    }
}

fn case(
    arguments: &Arguments,
    geometry: Columns,
    source: &Source,
    mending: Mending,
) -> Result<Case, Failure> {
    let Arguments { device, errors, together, log, wear, run, .. } = arguments;
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let rate = match (device.failure_rate, device.mttf, device.afr) {
        (Some(rate), _, _) => rate,
        (_, Some(mttf), _) => 1.0 / mttf,
        (_, _, Some(share)) => -(-share).ln_1p(),
        _ => PAPER_RATE,
    };
    let repair = repair_of(arguments, &mending);
    let erases_per_day = match &source.simulation {
        Some(simulation) => {
            let per_day = || simulation.erases_per_day(wear.written_per_day, device.capacity);
            wear.endurance.map(|_| per_day()).transpose()?
        }
        None => wear.erases_per_day.map(|erases| erases * source.alpha),
    };
    let worn = |erases_per_day: Option<f64>| {
        let (endurance, erases) = (wear.endurance?, erases_per_day?);
        Some(Wear { endurance: endurance / (erases * HOURS_PER_YEAR / 24.0), shape: wear.wear_shape })
    };
    // Where wear has a hazard of its own, the other one stays as it is.
    let factor = if wear.endurance.is_some() { 1.0 } else { source.alpha };
    let lifetime =
        Lifetime { rate: rate * factor, shape: device.shape, wear: worn(erases_per_day), age: device.age };
    let model = Model {
        geometry: Geometry {
            data: count(geometry.data_count),
            parity: count(geometry.parity_count),
            logs: log.log_devices.unwrap_or(0),
        },
        device: lifetime,
        log_rate: log.log_failure_rate.unwrap_or(rate),
        repair,
        latent: Latent {
            rate: errors.latent_rate,
            scrub: match errors.scrub_every {
                Scrub::Every(years) => Some(years),
                Scrub::Never => None,
            },
            per_pass: errors.uber * device.capacity * 8.0,
        },
        correlation: Correlation {
            after_failure: together.after_failure,
            shock_rate: together.shock_rate.unwrap_or(0.0),
            shock_share: together.shock_share.unwrap_or(0.0),
        },
        exposure: match log.log_devices {
            Some(1..) => Exposure { share: log.uncommitted_share, bytes: log.uncommitted_size },
            Some(0) | None => Exposure { share: 0.0, bytes: 0.0 },
        },
        capacity: device.capacity,
        chunk: device.chunk_size,
        years: run.within,
    };
    model.check().map_err(|error| misused(format!("{geometry}: {error}")))?;
    let before = erases_per_day.map(|erases| erases / source.alpha);
    let baseline = Model { device: Lifetime { rate, wear: worn(before), ..lifetime }, ..model };
    let simulation = source.simulation.as_ref().map(|simulation| simulation.name.clone());
    Ok(Case {
        geometry,
        simulation,
        alpha: source.alpha,
        repair: mending.said,
        erases_per_day,
        model,
        baseline,
    })
}
