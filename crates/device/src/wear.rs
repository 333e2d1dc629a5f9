//! What a drive tells of its own age: wear, spare blocks, errors of its medium, warnings.
//!
//! ```text
//!   place --- which drive a block device lies on: partitions and what is stacked on one drive lead to it
//!   ask ----- the command that the drive answers with a page of 512 bytes
//!   nvme, ata what the page says; no I/O
//! ```
//!
//! Asking can take as long as the drive likes, so it is for a thread that nobody waits for. Whatever is in
//! the way ends in [`NotOffered`] with the reason: no figure is ever made up.

mod ask;
mod ata;
mod nvme;
mod place;

use std::path::{Path, PathBuf};

/// Bytes of a page that a drive answers with.
const PAGE_BYTES: usize = 512;

/// What a drive says of itself. What it does not say is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wear {
    /// Share of the endurance that the maker expects which is used up, in per cent; more than 100 of a drive
    /// that outlives it.
    pub used_percent: Option<u8>,
    /// Bytes that hosts have written in all its life.
    pub written_bytes: Option<u64>,
    /// Bytes that hosts have read.
    pub read_bytes: Option<u64>,
    /// What it could not read back, or not verify.
    pub media_errors: Option<u64>,
    /// Spare blocks that are left, in per cent of those that it had.
    pub spare_percent: Option<u8>,
    /// With less it warns.
    pub spare_percent_min: Option<u8>,
    /// Degrees Celsius.
    pub temperature_c: Option<i16>,
    /// How long it was powered.
    pub power_on_hours: Option<u64>,
    /// How often it lost power without having been told.
    pub unsafe_shutdowns: Option<u64>,
    /// What it warns of.
    pub warnings: Vec<Warning>,
}

/// What a drive warns of: each means that it does not do what it was bought for, now or soon.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Warning {
    /// Hardly any spare blocks are left.
    SpareLow,
    /// It is too hot or too cold.
    Temperature,
    /// Errors of its medium, or inside it, make it unreliable.
    Unreliable,
    /// It takes no writes any more.
    ReadOnly,
    /// What keeps its cache when power fails has failed.
    CacheUnprotected,
    /// Its persistent memory region takes no writes or is unreliable.
    MemoryRegion,
}

impl Warning {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::SpareLow,
        Self::Temperature,
        Self::Unreliable,
        Self::ReadOnly,
        Self::CacheUnprotected,
        Self::MemoryRegion,
    ];

    /// A word that scripts know.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SpareLow => "spare-low",
            Self::Temperature => "temperature",
            Self::Unreliable => "unreliable",
            Self::ReadOnly => "read-only",
            Self::CacheUnprotected => "cache-unprotected",
            Self::MemoryRegion => "memory-region",
        }
    }
}

/// A drive, and what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drive {
    /// Its node.
    pub path: PathBuf,
    /// What it says.
    pub wear: Wear,
}

/// Why nothing is known of a device's wear.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotOffered {
    /// It is a file: what is below it is used by others, too.
    #[error("it is a file")]
    File,
    /// Nothing can be found out about it.
    #[error("{what}: {why}")]
    Unseen {
        /// What was looked at.
        what: String,
        /// What the system says.
        why: String,
    },
    /// It is none that can be asked.
    #[error("{what} is not a drive that can be asked: NVMe and SATA can")]
    NoDrive {
        /// What it is.
        what: String,
    },
    /// It lies on several drives.
    #[error("{what} is made of {count} devices")]
    Several {
        /// What it is.
        what: String,
        /// How many.
        count: usize,
    },
    /// The drive cannot be asked, or does not answer.
    #[error("{drive}: {why}")]
    Refused {
        /// The drive.
        drive: String,
        /// What it, or the system, says.
        why: String,
    },
    /// What it answers is not what was asked for.
    #[error("{drive} answers what is no report of its wear: {why}")]
    Malformed {
        /// The drive.
        drive: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// Asks the drive that `path` is, or lies on.
pub fn wear_of(path: &Path) -> Result<Drive, NotOffered> {
    let place = place::find(path)?;
    let name = place.node.display().to_string();
    let malformed = |why| NotOffered::Malformed { drive: name.clone(), why };
    let refused = |why: String| NotOffered::Refused { drive: name.clone(), why };
    let wear = match place.bus {
        place::Bus::Nvme => {
            let page = ask::nvme(&place.node).map_err(refused)?;
            nvme::decode(&page).map_err(malformed)?
        }
        place::Bus::Scsi => ask::ata(&place.node).map_err(refused).and_then(|pages| {
            let decoded = pages.iter().try_fold(Wear::default(), |wear, page| ata::decode(page, wear));
            decoded.map_err(malformed)
        })?,
    };
    Ok(Drive { path: place.node, wear })
}
