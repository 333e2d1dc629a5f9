//! The seam to the storage engine: what a front end asks of a volume.

use block::{Durability, Pool, Slot};
use std::fmt;
use std::os::fd::BorrowedFd;

/// What zeroing may do to the space behind a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Punch {
    /// The space may be given back.
    Allowed,
    /// The space must stay allocated.
    Forbidden,
}

/// One request to the volume. Offsets and lengths are in bytes, multiples of 512, within the volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VolumeRequest {
    /// Fill the slots from the volume.
    Read {
        /// Start on the volume.
        offset_bytes: u64,
        /// Length, at most what the slots hold.
        length_bytes: u64,
    },
    /// Write the slots to the volume.
    Write {
        /// Start on the volume.
        offset_bytes: u64,
        /// Length, at most what the slots hold.
        length_bytes: u64,
        /// What "done" means.
        durability: Durability,
    },
    /// Make every write that was done before this request started durable, whoever issued it.
    Flush,
    /// The range holds nothing of value; it reads as zeros afterwards.
    Discard {
        /// Start on the volume.
        offset_bytes: u64,
        /// Length; not limited by the pool.
        length_bytes: u64,
        /// What "done" means.
        durability: Durability,
    },
    /// Make the range read as zeros.
    WriteZeroes {
        /// Start on the volume.
        offset_bytes: u64,
        /// Length; not limited by the pool.
        length_bytes: u64,
        /// Whether the space may be freed.
        punch: Punch,
        /// What "done" means.
        durability: Durability,
    },
    /// A hint: the range will be read soon.
    Cache {
        /// Start on the volume.
        offset_bytes: u64,
        /// Length; not limited by the pool.
        length_bytes: u64,
    },
}

/// Why the volume could not do what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum VolumeError {
    /// More devices failed than the array can bear, or the data is lost.
    Io,
    /// No space.
    NoSpace,
    /// The volume takes no writes.
    ReadOnly,
    /// The volume is shutting down.
    Shutdown,
}

impl fmt::Display for VolumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io => "input/output error",
            Self::NoSpace => "no space left",
            Self::ReadOnly => "the volume is read-only",
            Self::Shutdown => "the volume is shutting down",
        })
    }
}

impl std::error::Error for VolumeError {}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The tag given to [`Volume::start`].
    pub tag: u64,
    /// How it ended.
    pub result: Result<(), VolumeError>,
}

/// A storage engine as seen by a front end. Nothing here blocks.
pub trait Volume {
    /// Size of the volume, a multiple of 512.
    fn size_bytes(&self) -> u64;

    /// Bytes in a chunk, the unit in which slots are counted; a power of two, at most the pool's slot size.
    fn chunk_bytes(&self) -> usize;

    /// A write of up to so many bytes, a power of two, aligned to its size, is after a power cut there as a
    /// whole or not at all; 0: not even a sector is. At most [`crate::Limits::piece_bytes_max`], so that such
    /// a write is never cut into pieces.
    fn untorn_bytes(&self) -> u64;

    /// Reads and writes must not cross a multiple of this, a multiple of the chunk size: what lies beyond is
    /// somewhere else. `None`: they may.
    fn unit_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether writes are refused.
    fn read_only(&self) -> bool;

    /// Where payload lives. The front end takes at most [`crate::Limits::pool_share_percent`] of the slots.
    fn pool(&mut self) -> &mut Pool;

    /// Starts a request. Reads and writes come with one slot per chunk touched by `[offset, offset +
    /// length)`, in order; the bytes lie in the slots at the position they have within their chunk (the
    /// first at `offset % chunk_bytes`). The engine may scribble over the rest of the slots, and over all
    /// of them when it has taken a write. They stay with the engine until the request is done; `slots`
    /// itself is only lent for the call. Other requests come without slots.
    ///
    /// `tag`s of requests in flight are distinct. Every request gets exactly one [`Done`] from a later
    /// [`Volume::drive`].
    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]);

    /// Does everything that can be done now: submits device operations, takes completions, does background
    /// work. Appends finished requests to `done`.
    fn drive(&mut self, done: &mut Vec<Done>);

    /// In how many nanoseconds `drive` wants to be called again by itself; `None`: only on events.
    fn idle_for(&self) -> Option<u64>;

    /// Readable when device completions have arrived; must stay the same during [`crate::Server::run`], and
    /// `drive` must make it unreadable.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Appends what lies behind a range as `(length in bytes, whether it is a hole that reads as zeros)`,
    /// from `offset_bytes` on, without gaps. May stop early after a bounded number of extents, but not
    /// before the first.
    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>);
}
