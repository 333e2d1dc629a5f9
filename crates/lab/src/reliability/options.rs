//! The options of `reliability`. `docs/reliability.md` says where the defaults come from.

use super::values::{parse_bytes, parse_bytes_per_s, parse_frequency, parse_number, parse_share, parse_span};
use crate::subject::build::Columns;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `reliability`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Data and parity devices, such as 6+2; several are compared.
    #[arg(long, value_delimiter = ',', default_values = ["7+1", "6+2"], value_name = "K+M,...")]
    pub(super) geometry: Vec<Columns>,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    #[command(flatten)]
    pub(super) repair: RepairOptions,
    #[command(flatten)]
    pub(super) errors: ErrorOptions,
    #[command(flatten)]
    pub(super) together: TogetherOptions,
    #[command(flatten)]
    pub(super) log: LogOptions,
    #[command(flatten)]
    pub(super) wear: WearOptions,
    #[command(flatten)]
    pub(super) run: RunOptions,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub struct DeviceOptions {
    /// Failures of a data device; 0.25/y, a life of four years, if nothing is said of it.
    #[arg(long, value_parser = parse_frequency, value_name = "N/UNIT", group = "rate")]
    pub failure_rate: Option<f64>,
    /// The same as mean time to failure, such as 1500000h.
    #[arg(long, value_parser = parse_span, value_name = "TIME", group = "rate")]
    pub mttf: Option<f64>,
    /// The same as share that fails in a year, such as 1%.
    #[arg(long, value_parser = parse_share, value_name = "SHARE", group = "rate")]
    pub afr: Option<f64>,
    /// Shape of the Weibull distribution of lives with that mean: 1 fails at any age alike, more ages.
    #[arg(long, value_parser = parse_number, default_value = "1", value_name = "N")]
    pub shape: f64,
    /// How old all data devices are at the beginning.
    #[arg(long, value_parser = parse_span, default_value = "0y", value_name = "TIME")]
    pub age: f64,
    /// Bytes of a data device.
    #[arg(long, value_parser = parse_bytes, default_value = "400GB", value_name = "SIZE")]
    pub capacity: f64,
    /// Bytes that one unreadable place costs.
    #[arg(long, value_parser = parse_bytes, default_value = "4KiB", value_name = "SIZE")]
    pub chunk_size: f64,
}

#[derive(Args, Debug)]
pub struct RepairOptions {
    /// How fast a device is rebuilt; its capacity is the work. 100MB/s if nothing is said of repairs. Several
    /// are compared.
    #[arg(long, value_parser = parse_bytes_per_s, value_delimiter = ',', value_name = "RATE,...", group = "repair")]
    pub rebuild_rate: Vec<f64>,
    /// Time from a failure until the device is rebuilt.
    #[arg(long, value_parser = parse_span, value_delimiter = ',', value_name = "TIME,...", group = "repair")]
    pub repair_time: Vec<f64>,
    /// One over that, such as 10000/y.
    #[arg(long, value_parser = parse_frequency, value_delimiter = ',', value_name = "N/UNIT,...", group = "repair")]
    pub repair_rate: Vec<f64>,
    /// Time until a failed device is replaced and its rebuild begins.
    #[arg(long, value_parser = parse_span, value_name = "TIME", conflicts_with_all = ["repair_time", "repair_rate"])]
    pub replace_after: Option<f64>,
    /// How long repairs take in Monte Carlo; the chain knows exponential ones only.
    #[arg(long, value_enum, default_value = "exponential")]
    pub repair_distribution: DistributionName,
    /// How many devices are repaired at the same time.
    #[arg(long, value_enum, default_value = "one-by-one")]
    pub repairs: OrderName,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DistributionName {
    /// Exponentially distributed.
    Exponential,
    /// Always the same.
    Fixed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OrderName {
    /// One after the other.
    OneByOne,
    /// Each on its own.
    AllAtOnce,
}

#[derive(Args, Debug)]
pub struct ErrorOptions {
    /// Places that become unreadable on a data device.
    #[arg(long, value_parser = parse_frequency, default_value = "0/y", value_name = "N/UNIT")]
    pub latent_rate: f64,
    /// How often all devices are read and mended, or never.
    #[arg(long, value_parser = parse_scrub, default_value = "7d", value_name = "TIME", requires = "latent_rate")]
    pub scrub_every: Scrub,
    /// Bits read for one that cannot be: 1e-17 is one of 10^17.
    #[arg(long, value_parser = parse_number, default_value = "0", value_name = "N")]
    pub uber: f64,
}

/// How often all devices are read and mended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scrub {
    /// In years.
    Every(f64),
    Never,
}

fn parse_scrub(text: &str) -> Result<Scrub, String> {
    if text == "never" { Ok(Scrub::Never) } else { parse_span(text).map(Scrub::Every) }
}

#[derive(Args, Debug)]
pub struct TogetherOptions {
    /// Factor on the failure rate of data devices for each one that is out of service.
    #[arg(long, value_parser = parse_number, default_value = "1", value_name = "N")]
    pub after_failure: f64,
    /// Events that hit a whole batch of devices.
    #[arg(long, value_parser = parse_frequency, value_name = "N/UNIT", requires = "shock_share")]
    pub shock_rate: Option<f64>,
    /// Share of the devices that fails then.
    #[arg(long, value_parser = parse_share, value_name = "SHARE", requires = "shock_rate")]
    pub shock_share: Option<f64>,
}

#[derive(Args, Debug)]
pub struct LogOptions {
    /// Log devices; with as many as there are parities an array bears as many losses of both kinds.
    #[arg(long, value_name = "N")]
    pub log_devices: Option<u32>,
    /// Failures of a log device; as of a data device if not given.
    #[arg(long, value_parser = parse_frequency, value_name = "N/UNIT", requires = "log_devices")]
    pub log_failure_rate: Option<f64>,
    /// Time until a failed log device is replaced and what it held is committed; as of a data device if not
    /// given.
    #[arg(long, value_parser = parse_span, value_name = "TIME", requires = "log_devices")]
    pub log_repair_time: Option<f64>,
    /// Share of the time during which updates wait for a commit.
    #[arg(long, value_parser = parse_share, default_value = "100%", value_name = "SHARE", requires = "log_devices")]
    pub uncommitted_share: f64,
    /// How much waits then.
    #[arg(long, value_parser = parse_bytes, default_value = "1GiB", value_name = "SIZE", requires = "log_devices")]
    pub uncommitted_size: f64,
}

#[derive(Args, Debug)]
pub struct WearOptions {
    /// Erases in relation to those that the failure rate stands for; it is in proportion (WAS, section V-F).
    /// 1 is always shown besides.
    #[arg(long, value_parser = parse_number, value_delimiter = ',', value_name = "N,...")]
    pub alpha: Vec<f64>,
    /// Results of `simulate --json`, compared by their erases per byte of users; the first is what the
    /// failure rate stands for. Its rebuild rate is used, if it rebuilt.
    #[arg(long, value_delimiter = ',', value_name = "FILE,...", conflicts_with = "alpha")]
    pub simulation: Vec<PathBuf>,
    /// Bytes that users write per day: makes days of the simulated erases. Without it, the virtual time
    /// counts.
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE", requires_all = ["simulation", "endurance"])]
    pub written_per_day: Option<f64>,
    /// Times that a block is erased per day.
    #[arg(long, value_parser = parse_number, value_name = "N", requires = "endurance", conflicts_with = "simulation")]
    pub erases_per_day: Option<f64>,
    /// Erases that a block is rated for: devices wear out, in Monte Carlo.
    #[arg(long, value_parser = parse_number, value_name = "N")]
    pub endurance: Option<f64>,
    /// How sharp that end is.
    #[arg(long, value_parser = parse_number, default_value = "5", value_name = "N", requires = "endurance")]
    pub wear_shape: f64,
}

/// Seed of Monte Carlo, unless it is said.
pub const SEED: u64 = 1;
/// Confidence of its intervals, unless it is said.
pub const CONFIDENCE: f64 = 0.99;

#[derive(Args, Debug)]
pub struct RunOptions {
    /// The time looked at.
    #[arg(long, value_parser = parse_span, default_value = "5y", value_name = "TIME")]
    pub within: f64,
    /// Lives of the array that Monte Carlo follows; 0 for none.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    pub trials: u32,
    /// Same seed, same result.
    #[arg(long, default_value_t = SEED, value_name = "N")]
    pub seed: u64,
    /// Confidence of the intervals.
    #[arg(long, value_parser = parse_share, default_value = "99%", value_name = "SHARE")]
    pub confidence: f64,
}
