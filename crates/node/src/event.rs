//! What happens to a running array and its members, for the log and for whoever asked.

use crate::grow::Growth;
use array::{FailCause, HoldUp, MaintenanceReport, WorkKind};
use block::DevIndex;
use std::path::PathBuf;

/// Something that happened, for the log and for whoever asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A member went out of service.
    Failed {
        /// Which.
        dev: DevIndex,
        /// Why; `None`: its device will not be found again, and that was told.
        cause: Option<FailCause>,
    },
    /// No copy of a page of the table is good: what it speaks of is lost, and the array takes no writes.
    PageLost(usize),
    /// A replacement took a place, and rebuilding began.
    Replaced {
        /// The place.
        dev: DevIndex,
        /// The new device.
        path: PathBuf,
    },
    /// A device has become what a member is, and has taken its place.
    Succeeded {
        /// The place.
        dev: DevIndex,
        /// The new device.
        path: PathBuf,
        /// The one before it, which is nobody's now.
        before: Option<PathBuf>,
        /// Bytes read of it, and of those the bytes written to the new one since they differed.
        moved_bytes: (u64, u64),
    },
    /// The device of a member that left is in its place again, and rebuilding began.
    CameBack {
        /// The place.
        dev: DevIndex,
        /// The device.
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
    /// Somebody asked that a device does not take the place of a member.
    CalledOff {
        /// The place.
        dev: DevIndex,
        /// The device.
        path: PathBuf,
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
    /// Requests wait for a member from now on.
    HeldUp {
        /// Which.
        dev: DevIndex,
        /// Why.
        why: HoldUp,
    },
    /// They wait no more, at least not for this reason.
    HoldUpEnded {
        /// The member.
        dev: DevIndex,
        /// The reason that is no more.
        why: HoldUp,
    },
    /// The array has grown while it was served.
    Grown(Box<Growth>),
    /// The array was to grow while it was served, and has not, or cannot be served any more.
    NotGrown {
        /// Why.
        why: String,
    },
    /// A rebuild or scrub has begun, or goes on after a restart.
    WorkBegan {
        /// Which.
        kind: WorkKind,
        /// Whether it was begun before the restart.
        resumed: bool,
    },
    /// A rebuild or scrub has ended.
    WorkEnded {
        /// Which.
        kind: WorkKind,
        /// What it found and did, and whether it came to its end.
        found: MaintenanceReport,
        /// How long it took.
        seconds: u64,
    },
}

/// What is said of a page that is lost.
pub fn describe_lost_page(page: usize) -> String {
    format!(
        "no copy of page {page} of the table is good: what it speaks of cannot be read, and the array takes no writes"
    )
}

/// What works on all of the array, in a word.
pub fn work_name(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::Rebuild => "rebuild",
        WorkKind::Scrub => "scrub",
    }
}
