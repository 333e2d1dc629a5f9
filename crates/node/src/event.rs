//! What happens to a running array and its members, for the log and for whoever asked.

use array::MaintenanceReport;
use block::DevIndex;
use std::path::PathBuf;

/// Something that happened, for the log and for whoever asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A member went out of service.
    Failed(DevIndex),
    /// A replacement took a place, and rebuilding began.
    Replaced {
        /// The place.
        dev: DevIndex,
        /// The new device.
        path: PathBuf,
    },
    /// A replacement could not take its place.
    NotReplaced {
        /// The place.
        dev: DevIndex,
        /// The device.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A member is whole again.
    Rebuilt(DevIndex),
    /// A device is useless as the member it is.
    Unfit {
        /// The member.
        dev: DevIndex,
        /// What is wrong with it.
        why: &'static str,
        /// Whether it was taken out of service for it.
        failed: bool,
    },
    /// A rebuild or scrub has begun, or goes on after a restart.
    WorkBegan {
        /// Which.
        kind: WorkKind,
        /// Whether it was begun before the restart.
        resumed: bool,
    },
    /// A rebuild or scrub that was started here has ended.
    WorkEnded {
        /// The request's tag.
        tag: u64,
        /// Which.
        kind: WorkKind,
        /// What it found and did.
        found: MaintenanceReport,
        /// How long it took.
        seconds: u64,
        /// Code words that could not be read or rebuilt.
        lost: u64,
        /// Stripes whose parity did not match.
        mismatches: u64,
        /// Whether it came to its end.
        completed: bool,
    },
}

/// What works on all of the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkKind {
    /// Filling replacements.
    Rebuild,
    /// Checking everything.
    Scrub,
}

impl WorkKind {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Scrub => "scrub",
        }
    }
}
