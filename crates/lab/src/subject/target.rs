//! What is measured, whatever it is: takes parts of requests, and says when they have ended.

use super::snapshot::Snapshot;
use crate::failure::Failure;
use flash::Counters;
use format::{ArrayConfig, CheckpointKind};
use node::status::Memory;

/// The end of a part of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// The tag it was started with.
    pub tag: usize,
    /// How it ended.
    pub result: Result<(), String>,
}

/// A part of a request on its way to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Comes back when it is done; below the `places` of [`Target::prepare`].
    pub tag: usize,
    /// First byte, a multiple of 512.
    pub offset_bytes: u64,
    /// Bytes, a multiple of 512, at most [`Target::part_bytes_max`] for reads and writes.
    pub length_bytes: u64,
}

/// What a write carries: called with an offset in the volume and the bytes that go there.
pub type Source<'a> = &'a mut dyn FnMut(u64, &mut [u8]);
/// What takes what was read.
pub type Sink<'a> = &'a mut dyn FnMut(u64, &[u8]);

/// See the module's documentation. The `start` functions answer `false` when there are no buffers for the
/// part now.
pub trait Target {
    /// Called once: tags are below `places`.
    fn prepare(&mut self, places: usize);

    /// The time of simulated devices; `None` if it is that of this world.
    fn clock_ns(&self) -> Option<u64> {
        None
    }

    /// Bytes of the volume.
    fn volume_bytes(&self) -> u64;

    /// The longest read or write it takes at once; parts are cut at multiples of this.
    fn part_bytes_max(&self) -> u64;

    /// Whether what is given back reads as zeros afterwards.
    fn trims_to_zeros(&self) -> bool;

    /// Starts a write.
    fn start_write(&mut self, part: Part, source: Source<'_>) -> bool;

    /// Starts a read.
    fn start_read(&mut self, part: Part) -> bool;

    /// Starts a flush.
    fn start_flush(&mut self, tag: usize) -> bool;

    /// Starts giving a range back.
    fn start_trim(&mut self, part: Part) -> bool;

    /// Goes on with what is in flight; if nothing happens, waits up to `wait_ns` for something.
    fn turn(&mut self, now_ns: u64, wait_ns: u64) -> Result<(), Failure>;

    /// Lets the clock go on to `now_ns`, as if it were looked at whenever something is due until then.
    fn pass_to(&mut self, _now_ns: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// Moves what has ended to the end of `out`.
    fn take_finished(&mut self, out: &mut Vec<Finished>);

    /// Shows what a read brought, before it is released.
    fn content(&mut self, tag: usize, sink: Sink<'_>);

    /// Gives back the buffers of what has ended.
    fn release(&mut self, tag: usize);

    /// Counters, where there are any.
    fn snapshot(&self) -> Option<Snapshot>;

    /// Counters of the simulated SSDs together, if they are simulated.
    fn flash(&self) -> Option<Counters> {
        None
    }

    /// Chunks of the data devices that nothing uses, where that is known.
    fn free_chunks(&self) -> Option<u64> {
        None
    }

    /// Makes everything durable; in an array, checkpoints are not part of it.
    fn settle(&mut self) -> Result<(), Failure>;

    /// Commits parity, in an array.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Writes a checkpoint of the metadata, in an array.
    fn checkpoint(&mut self, kind: CheckpointKind) -> Result<(), Failure>;

    /// Loses the first members, in an array.
    fn lose(&mut self, members: usize);

    /// From now on commits parity after so many writes, counted from now, in an array.
    fn commit_every(&mut self, writes: Option<u64>);

    /// Memory of the array's maps, in an array.
    fn memory(&self) -> Option<Memory>;

    /// What the array is, if that is known.
    fn config(&self) -> Option<&ArrayConfig>;

    /// Stops in order.
    fn stop(&mut self) -> Result<(), Failure>;
}
