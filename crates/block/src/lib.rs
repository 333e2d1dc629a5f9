//! The words every other crate speaks: addresses, the buffer pool, and the set of member devices.
//!
//! # Glossary
//! | word | meaning |
//! |---|---|
//! | *lba* | 512-byte sector of the exported volume |
//! | *chunk* | unit of placement on one device, 4 KiB by default |
//! | *lcn* | logical chunk number: the volume cut into chunks |
//! | *chunk address* | device + chunk index on that device; index 0 is never valid |
//! | *data stripe* | k data + m parity chunks on distinct devices of the main array |
//! | *log stripe* | k' data chunks on distinct SSDs and their m log chunks, one on each log device |
//! | *cover* | the chunks, with code terms, from which a chunk can be rebuilt |
//! | *plan* | the steps (read, compute, write, record, acknowledge) that carry out one piece of work |
//! | *record* | one metadata journal entry |
//! | *frame* | a block of records in the journal |
//! | *commit* | parity commit: fold log stripes into data-stripe parity |
//! | *rmw*, *rcw* | read-modify-write, reconstruct-write |
//! | *gc* | garbage collection |
//! | *shard* | a slice of every member with an engine of its own; the volume's addresses go to the shards in turn |
//! | *interleave* | how they do: a *unit* of the volume to each |
//!
//! This crate has no dependencies, does no I/O, and knows no clock; its random numbers come from seeds.
#![forbid(unsafe_code)]

mod address;
mod bits;
mod buffer;
mod device;
mod divisor;
mod fan;
mod interleave;
mod pair;
pub mod planted;
mod pool;
mod random;
pub mod slab;
mod slice;

pub use address::{ChunkAddr, ChunkIndex, DevIndex, Epoch, Geometry, GeometryError, Lba, Lcn, Seq, StripeId};
pub use bits::set_bits;
pub use buffer::Buffer;
pub use device::{
    Completion, DeviceOp, DeviceSet, Durability, FlushNow, IoFault, OpKind, ReadNow, Stream, WriteNow,
};
pub use divisor::Divisor;
pub use fan::Fan;
pub use interleave::{Interleave, Place, Run, Share};
pub use pair::{COPY_TAGS, MAP_AHEAD_BYTES, PairFault, PairPlan, PairStage, PairState, Paired};
pub use pool::{Parts, Pool, Slot};
pub use random::{Random, SplitMix, XoshiroPlusPlus, XoshiroStarStar, mix};
pub use slice::{Extent, Slice, Turns};

/// Bytes in a sector, the finest unit of the exported volume.
pub const SECTOR_BYTES: u64 = 512;
/// Bytes in a metadata block: the unit of superblocks, journal frames, checkpoint pages and log positions.
pub const META_BYTES: usize = 4096;
