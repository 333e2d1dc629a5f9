//! How a ring is run, and why it cannot be.

use std::io;

/// The kernel takes at most this many entries.
const ENTRIES_MAX: u32 = 32768;
/// Entries for each transfer of a ring that a thread of the kernel's polls. It gives entries of the
/// submission queue free when it has submitted all that it found, so a transfer may have ended, and the next
/// one want an entry, before: as many as there are transfers at most.
pub(super) const ENTRIES_POLLED: u32 = 2;

/// How to run the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UringOptions {
    /// Transfers in flight at most, over all members; from 1 to 32768, with `kernel_polls` 16384.
    pub queue_depth: u32,
    /// Whether neighbours on a member become one transfer.
    pub merge: bool,
    /// Whether a thread of the kernel's looks for new transfers by itself (SQPOLL). It saves the set's thread
    /// the system call of a submission, and takes a processor while there is work and for some time after it.
    pub kernel_polls: bool,
}

impl Default for UringOptions {
    /// Merging, and 256 in flight: enough for several NVMe devices at their best, and 1 MiB of 4 KiB buffers.
    fn default() -> Self {
        Self { queue_depth: 256, merge: true, kernel_polls: false }
    }
}

impl UringOptions {
    /// Transfers in flight at most, within what the kernel takes.
    pub(super) fn depth(self) -> u32 {
        self.queue_depth.clamp(1, if self.kernel_polls { ENTRIES_MAX / ENTRIES_POLLED } else { ENTRIES_MAX })
    }
}

/// Why the ring could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// No ring: switched off (`kernel.io_uring_disabled`), forbidden by a container's filter, or no memory.
    #[error("io_uring is not available: {0}; see kernel.io_uring_disabled and the seccomp profile")]
    Unavailable(io::Error),
    /// The kernel starts no thread that polls.
    #[error(
        "a thread of the kernel's that polls io_uring is refused: {0}; it needs Linux 5.11 or later, or leave it out"
    )]
    NoPolling(io::Error),
    /// The kernel is too old.
    #[error("io_uring of this kernel cannot wait with a timeout: expected Linux 5.11 or later")]
    TooOld,
    /// The members' files could not be registered.
    #[error("registering {count} members with io_uring: {source}")]
    Files {
        /// How many.
        count: usize,
        /// What the operating system said.
        source: io::Error,
    },
}
