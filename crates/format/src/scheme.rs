//! The update schemes, and what others than a scheme itself go by: one table of facts.

use crate::names::codes;
use crate::{FormatError, ParseError};
use std::fmt;
use std::str::FromStr;

codes!(
    /// How parity is kept up to date.
    SchemeKind, "scheme" {
        /// Conventional parity RAID, in place.
        Raid = 1, "raid";
        /// Elastic parity logging (EPLOG).
        Eplog = 2, "eplog";
        /// Original parity logging: data in place, changes of the parity on log devices.
        ParityLog = 3, "parity-log";
        /// Elastic striping (eSAP): everything log-structured, in one stream.
        Elastic = 4, "elastic";
        /// Elastic striping with chunks of like lifetime written together (WAS).
        Was = 5, "was";
    }
);

/// Where the new version of a chunk goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewVersions {
    /// Over the old one, so that a crash can tear a stripe apart: such a scheme has a [`crate::Consistency`].
    InPlace,
    /// To a free chunk of the same device.
    SameDevice,
    /// Log-structured, to a row across all devices; rows are collected in units.
    Rows,
}

/// What is on the log devices, of which there is one for each parity at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogContent {
    /// There are none.
    Nothing,
    /// Parity of stripes of their own, whose data chunks are on any of the main devices. What
    /// supersedes those chunks needs chunks set aside.
    LogStripes,
    /// Changes of the parity of data stripes.
    Deltas,
    /// Parity of stripes that are not full yet, if there are log devices: the scheme does without.
    OpenStripes,
}

/// Where acknowledged writes may wait for others to be written with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// Nowhere: they are on the devices.
    Nowhere,
    /// In the write cache, if the operator asks for one.
    Cache,
    /// In a group for each class of chunks, a stripe by default.
    Stripe,
    /// The same, a unit of garbage collection by default; chunks are told apart by how often they
    /// are updated.
    Unit,
}

/// What others than the scheme itself go by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchemeFacts {
    /// Where the new version of a chunk goes.
    pub new_versions: NewVersions,
    /// What is on the log devices.
    pub log: LogContent,
    /// Where writes may wait.
    pub waiting: Waiting,
}

impl SchemeKind {
    /// In the order in which they are offered to a user.
    pub const OFFERED: &'static [Self] =
        &[Self::Eplog, Self::Raid, Self::ParityLog, Self::Elastic, Self::Was];

    /// The table.
    #[inline]
    pub fn facts(self) -> SchemeFacts {
        use {LogContent as Log, NewVersions as New};
        let row = |new_versions, log, waiting| SchemeFacts { new_versions, log, waiting };
        match self {
            Self::Raid => row(New::InPlace, Log::Nothing, Waiting::Nowhere),
            Self::Eplog => row(New::SameDevice, Log::LogStripes, Waiting::Cache),
            Self::ParityLog => row(New::InPlace, Log::Deltas, Waiting::Nowhere),
            Self::Elastic => row(New::Rows, Log::OpenStripes, Waiting::Stripe),
            Self::Was => row(New::Rows, Log::OpenStripes, Waiting::Unit),
        }
    }

    /// Whether data is written in place.
    #[inline]
    pub fn is_in_place(self) -> bool {
        self.facts().new_versions == NewVersions::InPlace
    }

    /// Whether everything is written log-structured, in rows that are collected in units.
    #[inline]
    pub fn is_elastic(self) -> bool {
        self.facts().new_versions == NewVersions::Rows
    }

    /// Whether the scheme needs a log device for each parity.
    #[inline]
    pub fn has_log(self) -> bool {
        matches!(self.facts().log, LogContent::LogStripes | LogContent::Deltas)
    }

    /// Whether the scheme makes use of log devices if it has them.
    #[inline]
    pub fn takes_log(self) -> bool {
        self.facts().log != LogContent::Nothing
    }

    /// Whether an array with so many parities can do with so many log devices.
    pub fn fits_log_count(self, found: usize, parity_count: usize) -> bool {
        match found {
            0 => !self.has_log(),
            _ => self.takes_log() && found >= parity_count,
        }
    }

    /// Whether what goes to the log devices is log stripes.
    #[inline]
    pub fn has_log_stripes(self) -> bool {
        self.facts().log == LogContent::LogStripes
    }

    /// Whether the operator may ask for a write cache.
    pub fn has_cache(self) -> bool {
        self.facts().waiting == Waiting::Cache
    }
}

/// What [`crate::ArrayConfig::validate`] expects of the number of log devices.
pub(crate) const WITHOUT_LOG: &str = "0 with the scheme raid";
pub(crate) const WITH_ANY_LOG: &str = "0 to 255 with the schemes elastic and was";
pub(crate) const WITH_LOG: &str = "1 to 255 with the schemes eplog and parity-log";

#[cfg(test)]
mod tests {
    use super::SchemeKind;

    #[test]
    fn every_scheme_is_offered_once() {
        let mut offered = SchemeKind::OFFERED.to_vec();
        offered.sort_unstable();
        assert_eq!(offered, SchemeKind::ALL);
    }
}
