//! What rebuild and scrub are called and what they found: for maintenance, its events and its history.

/// What works on all of the array, unit by unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkKind {
    /// Filling replacements.
    Rebuild,
    /// Checking everything.
    Scrub,
}

/// What maintenance found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MaintenanceReport {
    /// Code words that could not be read or rebuilt.
    pub lost: u64,
    /// Code words whose parity did not belong to its data although every checksum matched.
    pub code_mismatches: u64,
    /// Chunks written anew while it ran.
    pub chunks_repaired: u64,
    /// Chunks that are bad still: there was no room to write them anew.
    pub chunks_left: u64,
    /// Metadata blocks that were bad and were written anew.
    pub metadata_repaired: u64,
    /// Metadata blocks that are bad still, and members that are useless and could not be spared.
    pub metadata_left: u64,
    /// Chunks that a rebuild wrote to members that lacked them.
    pub chunks_rebuilt: u64,
    /// Whether everything was looked at; not so if it was given up, for a rebuild or a stop.
    pub completed: bool,
}

impl MaintenanceReport {
    /// With what the same work found in another shard of the array.
    pub fn and(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            code_mismatches: self.code_mismatches + other.code_mismatches,
            chunks_repaired: self.chunks_repaired + other.chunks_repaired,
            chunks_left: self.chunks_left + other.chunks_left,
            metadata_repaired: self.metadata_repaired + other.metadata_repaired,
            metadata_left: self.metadata_left + other.metadata_left,
            chunks_rebuilt: self.chunks_rebuilt + other.chunks_rebuilt,
            completed: self.completed && other.completed,
        }
    }

    /// What is wrong and could not be mended.
    pub fn errors_left(&self) -> u64 {
        self.lost + self.code_mismatches + self.chunks_left + self.metadata_left
    }
}
