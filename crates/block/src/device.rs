//! The seam to the outside world: a set of member devices that takes batches of operations.
//!
//! The engine's core emits [`DeviceOp`]s and is told of [`Completion`]s; whoever implements [`DeviceSet`]
//! carries them out: io_uring on real devices, memory, null (counts only), simulated flash, and the
//! fault-injecting world.

use crate::{DevIndex, Pool, Slot};
use std::fmt;

/// What a write is, so that a driver can keep kinds apart (NVMe streams, flash simulation, counters).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Stream {
    /// User data.
    Data,
    /// Parity of data stripes.
    Parity,
    /// Log chunks.
    Log,
    /// Superblocks, journal frames, checkpoints.
    Metadata,
}

impl Stream {
    /// Every stream, in the order of [`Stream::index`].
    pub const ALL: [Self; 4] = [Self::Data, Self::Parity, Self::Log, Self::Metadata];

    /// For indexing counters by stream.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Whether a request must survive a power cut before it is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Durability {
    /// Like a disk with a volatile cache: after the next completed flush.
    #[default]
    Volatile,
    /// Before the answer (FUA).
    Durable,
}

/// What to do to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum OpKind {
    /// Fill the slot from the device.
    Read,
    /// Write the slot to the device; volatile until a later flush completes.
    Write,
    /// Make every write that completed before this was submitted durable.
    Flush,
    /// Tell the device that the range holds nothing of value; a hint.
    Discard,
}

/// One operation on one member device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceOp {
    /// Comes back in the completion.
    pub tag: u64,
    /// The member.
    pub dev: DevIndex,
    /// What to do.
    pub kind: OpKind,
    /// What the bytes are.
    pub stream: Stream,
    /// Of data and parity written: which class of chunks they belong to, 0 the one expected to
    /// live longest or where schemes tell none apart. For drivers that keep classes apart (NVMe
    /// streams, flash simulation).
    pub class: u8,
    /// Where on the device, a multiple of 4096.
    pub offset_bytes: u64,
    /// How much, a multiple of 4096; at most a slot's size for reads and writes; 0 for a flush.
    pub length_bytes: u64,
    /// The buffer (from its start) for reads and writes; ignored for flush and discard.
    pub slot: Option<Slot>,
}

/// Why a device operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum IoFault {
    /// The device reported an error (EIO and the like), with the operating system's number.
    Device {
        /// The errno, 0 if there is none.
        errno: i32,
    },
    /// Fewer bytes were transferred than asked for.
    Short,
    /// The device is not there.
    Gone,
    /// A write was not carried out because what the device lies on has no room (a sparse file on a full file
    /// system, a thinly provisioned volume, a quota). Nothing is wrong with the device: the same write may
    /// succeed later.
    NoSpace,
}

impl fmt::Display for IoFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { errno } => write!(f, "device error (errno {errno})"),
            Self::Short => write!(f, "short transfer"),
            Self::Gone => write!(f, "device is gone"),
            Self::NoSpace => write!(f, "no room where the device lies"),
        }
    }
}

impl std::error::Error for IoFault {}

/// The end of a [`DeviceOp`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The operation's tag.
    pub tag: u64,
    /// How it ended.
    pub result: Result<(), IoFault>,
}

/// One of many synchronous reads.
#[derive(Debug)]
pub struct ReadNow<'a> {
    /// For the caller: which of its reads this is.
    pub tag: usize,
    /// The member.
    pub dev: DevIndex,
    /// Where on the member, a multiple of 4096.
    pub offset_bytes: u64,
    /// Where to; its length is a multiple of 4096.
    pub into: &'a mut [u8],
    /// How it ended.
    pub result: Result<(), IoFault>,
}

impl ReadNow<'_> {
    /// How much.
    pub fn length_bytes(&self) -> u64 {
        self.into.len() as u64
    }

    /// Whether `next` begins where this one ends.
    pub fn is_before(&self, next: &ReadNow<'_>) -> bool {
        self.offset_bytes.checked_add(self.length_bytes()) == Some(next.offset_bytes)
    }
}

/// One of many synchronous writes.
#[derive(Debug)]
pub struct WriteNow<'a> {
    /// The member.
    pub dev: DevIndex,
    /// Where on the member, a multiple of 4096.
    pub offset_bytes: u64,
    /// What; its length is a multiple of 4096.
    pub from: &'a [u8],
    /// How it ended.
    pub result: Result<(), IoFault>,
}

impl WriteNow<'_> {
    /// How much.
    pub fn length_bytes(&self) -> u64 {
        self.from.len() as u64
    }
}

/// One of many synchronous flushes.
#[derive(Debug)]
pub struct FlushNow {
    /// The member.
    pub dev: DevIndex,
    /// How it ended.
    pub result: Result<(), IoFault>,
}

/// A set of member devices, addressed by index.
///
/// Between `submit` and the completion of an operation nobody else touches its slot. Operations of one batch
/// may be carried out in any order and side by side; a driver may merge neighbours (same device and kind,
/// adjacent offsets, next to each other in the batch) into one larger transfer.
pub trait DeviceSet {
    /// Starts a batch. Every operation gets exactly one completion, in any order, from
    /// a later [`DeviceSet::poll`].
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]);

    /// Moves what has completed to the end of `completions`; never blocks.
    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>);

    /// Blocks until at least one operation has completed or `timeout_ns` has passed; returns at once if
    /// nothing is in flight. Drivers that complete everything within `submit` need not do anything.
    fn wait(&mut self, timeout_ns: u64);

    /// The member is out of service: what is under way on it ends now, with [`IoFault::Gone`] from the next
    /// [`DeviceSet::poll`], and its slots are the caller's again. Whether a write given up takes effect, now
    /// or much later, nobody knows, so the device must not be trusted again; what takes the member's place is
    /// not touched by it. Drivers that complete everything within `submit` need not do anything.
    fn give_up(&mut self, _dev: DevIndex) {}

    /// Size of a member in bytes; 0 if it is absent.
    fn size_bytes(&self, dev: DevIndex) -> u64;

    /// Reads synchronously, for assembly and inspection; `offset_bytes` and the length are multiples of 4096.
    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault>;

    /// Carries out all of `reads`, side by side if the driver can, and says of each how it ended. They may be
    /// in another order afterwards.
    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        for read in reads {
            read.result = self.read_now(read.dev, read.offset_bytes, read.into);
        }
    }

    /// The same, and `work`, which the caller's thread does: beside the reads if the driver can, else behind
    /// them.
    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        self.read_all_now(reads);
        work();
    }

    /// Writes synchronously; volatile until [`DeviceSet::flush_now`].
    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault>;

    /// Carries out all of `writes`, none of which lies over another, side by side if the driver can, and says
    /// of each how it ended.
    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        for write in writes {
            write.result = self.write_now(write.dev, write.offset_bytes, write.from);
        }
    }

    /// The same, and `work`, as for [`DeviceSet::read_all_beside`].
    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        self.write_all_now(writes);
        work();
    }

    /// Makes everything written so far to the member durable.
    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault>;

    /// The same for several members, side by side if the driver can; says of each how it ended.
    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        for flush in flushes {
            flush.result = self.flush_now(flush.dev);
        }
    }
}

impl<D: DeviceSet + ?Sized> DeviceSet for &mut D {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        (**self).submit(pool, ops);
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        (**self).poll(pool, completions);
    }

    fn wait(&mut self, timeout_ns: u64) {
        (**self).wait(timeout_ns);
    }

    fn give_up(&mut self, dev: DevIndex) {
        (**self).give_up(dev);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        (**self).size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        (**self).read_now(dev, offset_bytes, into)
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        (**self).read_all_now(reads);
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        (**self).read_all_beside(reads, work);
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        (**self).write_now(dev, offset_bytes, from)
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        (**self).write_all_now(writes);
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        (**self).write_all_beside(writes, work);
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        (**self).flush_now(dev)
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        (**self).flush_all_now(flushes);
    }
}
