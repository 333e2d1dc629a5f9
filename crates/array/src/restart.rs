//! The vocabulary of a restart: how an array was left, what recovery did, why it could not; and synchronous
//! writes for it.

use crate::fault::{AssemblyFaults, FailCause, OpFault};
use crate::forget::forget_believed;
use crate::health::{Health, Member};
use crate::older::{Inconsistency, StateLost};
use block::{DevIndex, DeviceSet, Epoch, FlushNow, META_BYTES, OpKind, WriteNow};
use erasure::CodeError;
use format::{ArrayConfig, ArrayUuid, MemberState};

/// What to do with an array that was not stopped in order, is degraded, and does not know what
/// was being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DirtyDegraded {
    /// Do not assemble it.
    #[default]
    Refuse,
    /// Assemble it: what was on the missing members is computed from parity that may not match, so that data
    /// may be corrupt without notice.
    Accept,
}

/// How the array was left, and how far recovery may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart {
    /// It was stopped in order.
    pub was_clean: bool,
    /// What to do if that is not so and members are missing.
    pub dirty_degraded: DirtyDegraded,
}

/// Why an array could not be assembled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AssembleError {
    /// An option of the scheme is out of its range.
    #[error(transparent)]
    Option(#[from] placement::OptionError),
    /// The buffers of the engine do not fit into memory.
    #[error(
        "buffers of {bytes} bytes cannot be had: let fewer chunks wait in groups or caches, or give the array fewer buffers"
    )]
    Buffers {
        /// What they would take.
        bytes: u64,
    },
    /// The system does not grant the memory that the array takes.
    #[error(
        "the array takes up to {bytes} bytes of memory, which the system does not grant: give it more memory (or a higher limit), or fewer buffers"
    )]
    Memory {
        /// What it takes when all of it is written.
        bytes: u64,
    },
    /// No member was given.
    #[error("no member of an array was given")]
    NoMembers,
    /// Members of two arrays.
    #[error("member {index} belongs to array {found}, the others to {expected}")]
    OtherArray {
        /// Which of the given superblocks, from 0.
        index: usize,
        /// Its array.
        found: ArrayUuid,
        /// The array of the first.
        expected: ArrayUuid,
    },
    /// Two devices claim one place.
    #[error("members {first} and {second} both claim to be device {dev}")]
    Duplicate {
        /// Which of the given superblocks.
        first: usize,
        /// And which other.
        second: usize,
        /// The place they claim.
        dev: DevIndex,
    },
    /// Another shard of the array cannot be assembled, so this one was left as it is.
    #[error("another shard of the array cannot be assembled")]
    OtherShard,
    /// More members are missing than the code tolerates.
    #[error("{missing} of {total} members are missing or failed ({names}); the array tolerates {tolerated}")]
    TooManyMissing {
        /// Missing, failed or incomplete ones.
        missing: usize,
        /// All of them.
        total: usize,
        /// What the code tolerates.
        tolerated: usize,
        /// Which ones.
        names: String,
    },
    /// No checkpoint can be read.
    #[error("no readable checkpoint on any member")]
    NoCheckpoint,
    /// Members failed while the array was being assembled.
    #[error("too many members failed while the array was being assembled: {0}")]
    TooManyFaults(AssemblyFaults),
    /// Recovery has to write, and there is no room where a member lies.
    #[error(
        "there is no room where device {dev} lies (a full file system, a quota): nothing is lost and no device is taken out of \
         service; make room and start again"
    )]
    MemberFull {
        /// Which member.
        dev: DevIndex,
    },
    /// Newer durable state existed than any member holds.
    #[error("{0}; `serve --force` would give {alternative}", alternative = .0.alternative())]
    StateLost(Box<StateLost>),
    /// A member is smaller than its array's layout.
    #[error(
        "device {dev} has {found_bytes} bytes, the array's layout needs {expected_bytes}: it was truncated"
    )]
    Truncated {
        /// Which member.
        dev: DevIndex,
        /// Its size.
        found_bytes: u64,
        /// What the layout needs.
        expected_bytes: u64,
    },
    /// The metadata contradicts itself.
    #[error("the metadata is inconsistent: {0}")]
    Inconsistent(#[from] Inconsistency),
    /// This build does not know the code or geometry.
    #[error("the array's code or geometry is not supported: {0}")]
    Unsupported(#[from] CodeError),
    /// The scheme does not have as many log devices as it needs.
    #[error("the array has {found} log devices, its scheme needs {expected}")]
    LogDevices {
        /// Log devices that the superblock names.
        found: usize,
        /// What the scheme needs.
        expected: usize,
    },
    /// The superblock gives the table less room on the members than it takes.
    #[error("the array has a page area of {found} blocks, its table needs {expected}")]
    PageArea {
        /// Blocks that the superblock names.
        found: u32,
        /// What the table needs.
        expected: u64,
    },
    /// A page of the table is nowhere whole.
    #[error("no copy of page {page} of the table is whole: what it speaks of cannot be had")]
    PageLost {
        /// Which page.
        page: usize,
    },
    /// In-place schemes: stripes may be inconsistent and a device is missing, so lost chunks cannot be told
    /// from bad ones.
    #[error(
        "the array was not stopped in order and is degraded: parity may not match the data (`serve --force` and `scrub --force` accept silent corruption)"
    )]
    DirtyDegraded,
}

/// What recovery did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecoveryReport {
    /// Whether the array had been stopped in order.
    pub was_clean: bool,
    /// Number of the checkpoint that was loaded.
    pub checkpoint: u64,
    /// Records replayed.
    pub replayed: u64,
    /// Of those, how many had to be verified.
    pub verified: u64,
    /// Records that nothing shows to have been durable and whose data or redundancy had not all arrived.
    /// Unless more members are damaged than the array tolerates, nobody was told that they are durable.
    pub dropped: u64,
    /// Newer durable state that the array was started without, because the operator insisted.
    pub lost: Option<Box<StateLost>>,
    /// The first assembly that the operator insisted on although such state was missing, or parity may not
    /// match the data, and that nobody has cleared: this one, or one before it.
    pub forced: Option<Epoch>,
    /// Chunks rewritten from their code word.
    pub healed: u64,
    /// Stripes whose parity was recomputed (in-place schemes).
    pub resynced: u64,
}

impl RecoveryReport {
    /// With what recovery did in another shard of the array.
    pub fn and(self, other: Self) -> Self {
        Self {
            was_clean: self.was_clean && other.was_clean,
            checkpoint: self.checkpoint.max(other.checkpoint),
            replayed: self.replayed + other.replayed,
            verified: self.verified + other.verified,
            dropped: self.dropped + other.dropped,
            lost: self.lost.or(other.lost),
            forced: self.forced.or(other.forced),
            healed: self.healed + other.healed,
            resynced: self.resynced + other.resynced,
        }
    }
}

/// A write during assembly; a fault takes the device out of service.
pub(crate) fn write_or_fail(
    devices: &mut dyn DeviceSet,
    health: &mut Health,
    dev: DevIndex,
    offset: u64,
    bytes: &[u8],
) {
    if health.is_writable(dev)
        && let Err(fault) = devices.write_now(dev, offset, bytes)
    {
        fail_at_assembly(health, dev, OpFault::at_assembly(OpKind::Write, offset, bytes.len() as u64, fault));
    }
}

/// A main device holds no checkpoint and no frame from now on, or fails.
pub(crate) fn forget_or_fail(
    devices: &mut dyn DeviceSet,
    health: &mut Health,
    dev: DevIndex,
    config: &ArrayConfig,
) {
    if health.is_writable(dev)
        && let Err(fault) = forget_believed(devices, dev, config)
    {
        let (offset, bytes) = (config.full_offset(0, 0), u64::try_from(META_BYTES).unwrap_or(u64::MAX));
        fail_at_assembly(health, dev, OpFault::at_assembly(OpKind::Write, offset, bytes, fault));
    }
}

fn fail_at_assembly(health: &mut Health, dev: DevIndex, fault: OpFault) {
    health.note_fault(dev, fault);
    health.fail(dev, FailCause::Fault(fault));
}

/// More members have failed than the array bears, or than a checkpoint can do without: which, and of what.
pub(crate) fn too_many_faults(health: &Health) -> AssembleError {
    let of = |(index, member): (u16, &Member)| match member.failed {
        Some(FailCause::Fault(fault)) => Some((DevIndex::new(index), fault)),
        Some(FailCause::Asked | FailCause::Silent { .. } | FailCause::Unfit(_)) | None => None,
    };
    AssembleError::TooManyFaults(AssemblyFaults((0u16..).zip(health.members()).filter_map(of).collect()))
}

/// Many writes during assembly, side by side, and `work` beside them; a fault takes the device out of
/// service.
pub(crate) fn write_all_or_fail(
    devices: &mut dyn DeviceSet,
    health: &mut Health,
    mut writes: Vec<WriteNow<'_>>,
    work: &mut dyn FnMut(),
) {
    writes.retain(|write| health.is_writable(write.dev));
    devices.write_all_beside(&mut writes, work);
    for write in writes {
        if let Err(fault) = write.result
            && health.is_writable(write.dev)
        {
            let (offset, length) = (write.offset_bytes, write.length_bytes());
            let fault = OpFault::at_assembly(OpKind::Write, offset, length, fault);
            fail_at_assembly(health, write.dev, fault);
        }
    }
}

/// Makes everything written during assembly durable; a fault takes the device out of service.
pub(crate) fn flush_all(devices: &mut dyn DeviceSet, health: &mut Health) {
    let mut flushes: Vec<FlushNow> = health.writable().map(|dev| FlushNow { dev, result: Ok(()) }).collect();
    devices.flush_all_now(&mut flushes);
    for FlushNow { dev, result } in flushes {
        if let Err(fault) = result {
            fail_at_assembly(health, dev, OpFault::at_assembly(OpKind::Flush, 0, 0, fault));
        }
    }
}

/// Whether a member can be read from at all.
pub(crate) fn is_present(health: &Health, dev: DevIndex) -> bool {
    match health.state(dev) {
        MemberState::Healthy | MemberState::Rebuilding => true,
        MemberState::Failed | MemberState::Absent => false,
    }
}
