//! What device operations are for; the driver knows them by their places among the operations under way.

use block::DevIndex;

/// What a device operation was issued for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Read `step` of the plan of job `id`.
    JobRead,
    /// Write `step` of the plan of job `id`.
    JobWrite,
    /// The copy in the payload ring of write `step` of the plan of job `id`.
    Payload,
    /// A healthy user read, by its place.
    Read,
    /// Piece `step` of cover `id`.
    CoverRead,
    /// A repaired chunk written back.
    Heal,
    /// A copy of frame `id`.
    Frame,
    /// A device flush of the running flush.
    Flush,
    /// A superblock.
    Superblock,
    /// A block of the running checkpoint.
    Checkpoint,
    /// The discard of a freed run.
    Trim,
}

/// What an operation is for, on which member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// What for.
    pub purpose: Purpose,
    /// The member the operation is on.
    pub dev: DevIndex,
    /// Place in the table that the purpose names.
    pub id: u32,
    /// Step within it.
    pub step: u32,
}
