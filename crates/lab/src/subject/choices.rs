//! Options of an array that is made for a run, the same wherever one is made.

use super::build::{Columns, Kind, code_or_default, log_count, parse_code};
use crate::failure::Failure;
use crate::options::batches::check_commits;
use crate::options::cache::CacheSizes;
use crate::options::consistency::ConsistencyChoice;
use crate::options::placement::{ElasticChoices, GcUnit};
use crate::options::rewrites::RewriteChoice;
use block::Geometry;
use clap::Args;
use format::{CodeKind, Consistency, LayoutKind, SchemeKind};
use node::units::parse_size;
use serde_json::Value;

// Aliases, because the command line treats a bare `Option` as an option without a default.
/// Code asked for; `None` is the usual one for the number of parities.
pub type CodeChoice = Option<CodeKind>;
/// Size asked for; `None` is what the trace needs.
pub type AutoSize = Option<u64>;
/// Log devices asked for; `None` is as many as the scheme needs.
pub type LogDevices = Option<usize>;

/// The array that is made, and how it is run.
#[derive(Args, Debug)]
pub struct ArrayChoices {
    /// Data and parity devices of the array made.
    #[arg(long, default_value = "6+2", value_name = "K+M")]
    pub geometry: Columns,
    /// Update scheme of the array made: eplog, raid, parity-log, elastic or was.
    #[arg(long, default_value = "eplog")]
    pub scheme: SchemeKind,
    /// Erasure code of the array made: auto, xor, cauchy or rdp.
    #[arg(long, default_value = "auto", value_parser = parse_code)]
    pub code: CodeChoice,
    /// Which devices of the array made hold parity: left-symmetric (all, as `create` and Linux md have it),
    /// rotate (all, in turn), spread (all, some more than others: the EPLOG prototype's, which its counts
    /// are of) or fixed (the last ones, as in RAID-4); elastic and was always rotate [spread].
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<LayoutKind>,
    #[command(flatten)]
    pub(crate) consistency: ConsistencyChoice,
    /// Log devices of the array made: auto (as many as the scheme needs) or their number. With one more, no
    /// journal frame goes to an SSD.
    #[arg(long, default_value = "auto", value_parser = parse_log_devices, value_name = "COUNT")]
    pub log_devices: LogDevices,
    /// Bytes for chunks on each device of the array made, metadata aside: auto (what the trace needs, as
    /// far as a simulated SSD has it), or a size; with the schemes elastic and was exactly so many, and the
    /// volume is what they leave of it beside the spare space.
    #[arg(long, default_value = "auto", value_parser = parse_auto_size, value_name = "SIZE")]
    pub device_size: AutoSize,
    /// Commit parity after so many writes, at the end, or never (but when space runs low).
    #[arg(long, default_value = "never", value_parser = parse_commit, value_name = "N|end|never")]
    pub commit_every: CommitEvery,
    /// Acknowledge writes only when they are durable.
    #[arg(long)]
    pub sync: bool,
    #[command(flatten)]
    pub(crate) rewrites: RewriteChoice,
    #[command(flatten)]
    pub(crate) cache: CacheSizes,
    #[command(flatten)]
    pub(crate) elastic: ElasticChoices,
    #[command(flatten)]
    pub(crate) unit: GcUnit,
}

impl ArrayChoices {
    /// Refuses what means nothing to the scheme.
    pub fn check(&self) -> Result<(), Failure> {
        self.check_logs(self.scheme)?;
        self.check_layout(self.scheme)?;
        self.cache.check(self.scheme)?;
        self.elastic.check(self.scheme)?;
        self.consistency.check_any(&[self.scheme])?;
        self.commit_every.check(self.scheme)?;
        self.rewrites.check_any(&[self.scheme])?;
        self.unit.check(self.scheme)
    }

    /// Refuses a layout for a scheme that has one of its own.
    pub fn check_layout(&self, scheme: SchemeKind) -> Result<(), Failure> {
        match self.layout.filter(|_| scheme.is_elastic()) {
            Some(layout) => {
                Err(Failure::new(format!("--layout {layout}: scheme {scheme} always rotates parity")))
            }
            None => Ok(()),
        }
    }

    /// Refuses a number of log devices that does not fit the scheme.
    pub fn check_logs(&self, scheme: SchemeKind) -> Result<(), Failure> {
        let parities = self.geometry.parity_count;
        let Some(given) = self.log_devices.filter(|&given| !scheme.fits_log_count(given, parities)) else {
            return Ok(());
        };
        let expected = match (scheme.has_log(), scheme.takes_log()) {
            (true, _) => format!("{parities} or more"),
            (false, true) => format!("0, or {parities} or more"),
            (false, false) => "0".to_owned(),
        };
        Err(Failure::new(format!(
            "--log-devices {given}: scheme {scheme} with {parities} parities takes {expected}"
        )))
    }

    /// The array, of chunks of this size.
    pub fn kind(&self, chunk_bytes: u64) -> Result<Kind, Failure> {
        let Columns { data_count, parity_count } = self.geometry;
        Ok(Kind {
            scheme: self.scheme,
            code: code_or_default(self.code, parity_count),
            consistency: self.consistency.or(Consistency::Resync),
            layout: self.layout.unwrap_or(LayoutKind::Spread),
            geometry: Geometry::new(data_count, parity_count, chunk_bytes)?,
            log_count: self.log_count(),
            unit_rows: self.unit.rows().filter(|_| self.scheme.is_elastic()),
        })
    }

    /// Log devices of the array made.
    pub fn log_count(&self) -> usize {
        let needed = log_count(self.scheme, self.geometry.parity_count);
        self.log_devices.filter(|_| self.scheme.takes_log()).unwrap_or(needed)
    }
}

/// When parity is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitEvery {
    /// After so many writes.
    Writes(u64),
    /// At the end.
    End,
    /// When space runs low.
    Never,
}

impl CommitEvery {
    /// Refuses it for a scheme that has nothing to commit.
    pub fn check(self, scheme: SchemeKind) -> Result<(), Failure> {
        let given = match self {
            Self::Writes(writes) => Some(format!("--commit-every {writes}")),
            Self::End => Some("--commit-every end".to_owned()),
            Self::Never => None,
        };
        check_commits(given, scheme)
    }

    /// As results name it.
    pub fn json(self) -> Value {
        match self {
            Self::Writes(writes) => writes.into(),
            Self::End => "end".into(),
            Self::Never => "never".into(),
        }
    }

    /// Writes after which the engine commits by itself.
    pub fn writes(self) -> Option<u64> {
        match self {
            Self::Writes(writes) => Some(writes),
            Self::End | Self::Never => None,
        }
    }
}

/// `auto`, or a number of log devices.
pub fn parse_log_devices(text: &str) -> Result<LogDevices, String> {
    match text {
        "auto" => Ok(None),
        number => number.parse().map(Some).map_err(|_| format!("found {text:?}, expected auto or a number")),
    }
}

/// `auto`, or a size.
pub fn parse_auto_size(text: &str) -> Result<AutoSize, String> {
    if text == "auto" { Ok(None) } else { parse_size(text).map(Some) }
}

/// How many times faster than recorded.
pub fn parse_speed(text: &str) -> Result<f64, String> {
    let speed: f64 =
        text.parse().map_err(|_| format!("found {text:?}, expected a number such as 2 or 0.5"))?;
    if (1e-6..=1e9).contains(&speed) {
        Ok(speed)
    } else {
        Err(format!("found {text:?}, expected 0.000001 to 1000000000"))
    }
}

/// A number of writes, `end` or `never`.
pub fn parse_commit(text: &str) -> Result<CommitEvery, String> {
    match text {
        "end" => Ok(CommitEvery::End),
        "never" => Ok(CommitEvery::Never),
        number => match number.parse() {
            Ok(0) | Err(_) => Err(format!("found {text:?}, expected a number of writes, end or never")),
            Ok(writes) => Ok(CommitEvery::Writes(writes)),
        },
    }
}
