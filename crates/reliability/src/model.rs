//! The model: what fails, what repairs it, what is lost then. `docs/reliability.md` gives the reasons.

use crate::error::{Error, check};
use crate::lifetime::Lifetime;

/// Devices, data or log, that one array may have here.
const DEVICES_MAX: u32 = 256;
/// Parities: the chain has a state for each number of failed devices.
const PARITY_MAX: u32 = 16;
/// Repairs that may take place within the time looked at; beyond that the chain's digits would be too few.
const REPAIRS_MAX: f64 = 1e10;

/// Why data is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// More devices were out of service than there are parities.
    Devices,
    /// As many as there are parities were, and one of the others could not read what was needed.
    Sectors,
    /// Updates whose parity was on log devices only, with too many of both kinds out of service.
    Uncommitted,
}

/// All causes, in the order of arrays by cause.
pub const CAUSES: [Cause; 3] = [Cause::Devices, Cause::Sectors, Cause::Uncommitted];

/// Devices of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Data chunks of a stripe.
    pub data: u32,
    /// Parities, the losses that are borne.
    pub parity: u32,
    /// Log devices.
    pub logs: u32,
}

impl Geometry {
    /// Data and parity devices.
    pub fn devices(&self) -> u32 {
        self.data.saturating_add(self.parity)
    }
}

/// How long a repair takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepairTime {
    /// Exponentially distributed, as Markov chains need it.
    Exponential,
    /// Always the same.
    Fixed,
}

/// How many devices are repaired at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepairOrder {
    /// One after the other, as W-45 has it.
    OneByOne,
    /// Each on its own.
    AllAtOnce,
}

/// Repair of failed devices.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Repair {
    /// Mean time from the failure of a data device (or, one by one, from its turn) until it is replaced and
    /// rebuilt.
    pub mean: f64,
    /// The share of it in which nothing is rebuilt yet.
    pub waiting: f64,
    /// The same time for a log device.
    pub log_mean: f64,
    /// How it is distributed.
    pub time: RepairTime,
    /// How many at once, of data and of log devices.
    pub order: RepairOrder,
}

/// Errors that nobody sees until the place is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Latent {
    /// Places that become unreadable, per device and year.
    pub rate: f64,
    /// All devices are read and mended this often; never, if not given.
    pub scrub: Option<f64>,
    /// Places of a device that cannot be read in one pass over it, whatever was scrubbed: the error rate per
    /// bit times its bits.
    pub per_pass: f64,
}

/// What makes failures come together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correlation {
    /// Failure rates of data devices grow by this factor with each one that is out of service.
    pub after_failure: f64,
    /// Events per year that hit all data devices of a batch (or of a shelf, or of a firmware).
    pub shock_rate: f64,
    /// Probability that one of them fails then.
    pub shock_share: f64,
}

/// Updates that only log devices protect, until a commit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Exposure {
    /// Share of the time during which there are any.
    pub share: f64,
    /// How much it is.
    pub bytes: f64,
}

/// An array, its devices and the time looked at.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    /// Devices.
    pub geometry: Geometry,
    /// Data devices.
    pub device: Lifetime,
    /// Failures of a log device per year.
    pub log_rate: f64,
    /// Repairs.
    pub repair: Repair,
    /// Latent errors.
    pub latent: Latent,
    /// Failures that come together.
    pub correlation: Correlation,
    /// Updates not committed.
    pub exposure: Exposure,
    /// Bytes of a data device.
    pub capacity: f64,
    /// Bytes of a chunk: what one unreadable place costs.
    pub chunk: f64,
    /// Years looked at.
    pub years: f64,
}

impl Model {
    /// Refuses what cannot be computed.
    ///
    /// # Errors
    /// The first parameter out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let Geometry { data, parity, logs } = self.geometry;
        let devices = f64::from(self.geometry.devices());
        check("data devices", f64::from(data), data >= 1, "at least 1")?;
        check("parity", f64::from(parity), parity <= PARITY_MAX, "at most 16")?;
        check("devices", devices, devices <= f64::from(DEVICES_MAX), "at most 256")?;
        check("log devices", f64::from(logs), logs <= PARITY_MAX, "at most 16")?;
        self.device.check()?;
        let repair = &self.repair;
        let rates = |rate: f64| (0.0..=1e6).contains(&rate);
        check("failure rate of log devices", self.log_rate, rates(self.log_rate), "0 to 1e6 per year")?;
        check("years", self.years, self.years > 0.0 && self.years <= 1e6, "more than 0, at most 1e6")?;
        for (what, mean) in
            [("time of a repair", repair.mean), ("time of a log device's repair", repair.log_mean)]
        {
            let fine = mean > 0.0 && mean <= 1e6 && self.years / mean <= REPAIRS_MAX;
            check(
                what,
                mean,
                fine,
                "more than a ten-thousand-millionth of the time looked at, at most 1e6 years",
            )?;
        }
        check("share of waiting", repair.waiting, (0.0..=1.0).contains(&repair.waiting), "0 to 1")?;
        let latent = &self.latent;
        check("rate of latent errors", latent.rate, rates(latent.rate), "0 to 1e6 per year")?;
        check("errors of a pass", latent.per_pass, (0.0..=1e6).contains(&latent.per_pass), "0 to 1e6")?;
        if let Some(scrub) = latent.scrub {
            check("scrub interval", scrub, (1e-6..=1e6).contains(&scrub), "1e-6 to 1e6 years")?;
        }
        let correlation = &self.correlation;
        let factor = correlation.after_failure;
        check("factor after a failure", factor, (1e-3..=1e4).contains(&factor), "0.001 to 10000")?;
        check("shocks", correlation.shock_rate, rates(correlation.shock_rate), "0 to 1e6 per year")?;
        let share = correlation.shock_share;
        check("share that a shock hits", share, (0.0..=1.0).contains(&share), "0 to 1")?;
        let share = self.exposure.share;
        check("share of time with uncommitted updates", share, (0.0..=1.0).contains(&share), "0 to 1")?;
        for (what, bytes) in [("capacity", self.capacity), ("chunk", self.chunk)] {
            check(what, bytes, (1.0..=1e21).contains(&bytes), "1 byte to 1e21")?;
        }
        let bytes = self.exposure.bytes;
        check("uncommitted bytes", bytes, (0.0..=1e21).contains(&bytes), "0 to 1e21")
    }

    /// Bytes of users that the array holds.
    pub fn usable(&self) -> f64 {
        self.capacity * f64::from(self.geometry.data)
    }

    /// Bytes of users on one data device, as parity is spread over all.
    pub(crate) fn user_bytes_per_device(&self) -> f64 {
        self.usable() / f64::from(self.geometry.devices())
    }

    /// Whether updates that wait for a commit need more than is in service.
    pub(crate) fn is_exposed(&self, failed: u32, logs_failed: u32) -> bool {
        self.geometry.logs > 0 && failed >= 1 && failed + logs_failed > self.geometry.parity
    }

    /// The failure rate's factor with this many data devices out of service.
    pub(crate) fn factor(&self, failed: u32) -> f64 {
        self.correlation.after_failure.powf(f64::from(failed))
    }

    /// The probability that a shock takes so many of `up` devices.
    pub(crate) fn shock(&self, up: u32, hit: u32) -> f64 {
        let share = self.correlation.shock_share;
        let mut ways = 1.0;
        for i in 0..hit {
            ways *= f64::from(up - i) / f64::from(i + 1);
        }
        ways * share.powf(f64::from(hit)) * (1.0 - share).powf(f64::from(up - hit))
    }

    /// The rate of shocks that take at least one of `up` devices.
    pub(crate) fn shocks(&self, up: u32) -> f64 {
        let Correlation { shock_rate, shock_share, .. } = self.correlation;
        if shock_rate == 0.0 || up == 0 {
            return 0.0;
        }
        // One minus the probability that none is hit, without cancellation; the logarithm of 0 is fine.
        -shock_rate * (f64::from(up) * (-shock_share).ln_1p()).exp_m1()
    }
}
