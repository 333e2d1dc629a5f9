//! What device operations are for; the driver knows them by their places among the operations under way.

use super::cover::Cover;
use super::job::Job;
use super::read::ReadOp;
use crate::store::Run;
use block::slab::Key;
use block::{DevIndex, Slot};

/// What a device operation was issued for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// A read of a job's plan.
    JobRead { job: Key<Job>, step: u32 },
    /// A write of a job's plan.
    JobWrite { job: Key<Job>, step: u32 },
    /// The copy in the payload ring of a write of a job's plan.
    Payload { job: Key<Job> },
    /// A chunk that can be read from its own device.
    Read { read: Key<ReadOp> },
    /// A piece of a cover.
    CoverRead { cover: Key<Cover>, step: u32 },
    /// A repaired chunk written back.
    Heal { cover: Key<Cover> },
    /// A copy of a frame, by the frame's number.
    Frame { frame: u64, slot: Slot },
    /// A device flush of the flush under way.
    Flush,
    /// A superblock.
    Superblock { slot: Slot },
    /// The flush of a member that makes its superblock durable.
    SuperblockFlush,
    /// A block of the checkpoint under way.
    Checkpoint { slot: Slot },
    /// The discard of a freed run.
    Trim { run: Key<Run> },
    /// Metadata that nobody asked for.
    Patrol,
}

/// What an operation is for, on which member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tag {
    /// What for.
    pub purpose: Purpose,
    /// The member the operation is on.
    pub dev: DevIndex,
}
