//! Shards: slices of every member, each with an engine, a journal, tables and superblocks of its own.
//!
//! Slice i of a member begins at i times the stride of its kind of device and is laid out as a member without
//! shards is. The volume's addresses go to the shards in turn, a unit to each.

use crate::ArrayUuid;
use block::planted::{Planted, planted};

/// Shards at most.
pub const SHARDS_MAX: u16 = 64;
/// A unit of interleaving is a multiple of this: no write that is never torn crosses its end, which is where
/// the next shard begins.
pub const UNIT_BYTES_MIN: u64 = 1 << 20;

/// Which shard of an array a superblock is of, and where its slices are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Its number.
    pub index: u16,
    /// Shards of the array, 1 to [`SHARDS_MAX`]. A single one has all of every member.
    pub count: u16,
    /// Bytes of the volume that go to one shard before the next one's turn; 0 with a single shard.
    pub unit_bytes: u64,
    /// Bytes from the beginning of one slice of a main device to that of the next; 0 with a single shard.
    pub main_stride_bytes: u64,
    /// The same of a log device; 0 without any.
    pub log_stride_bytes: u64,
}

impl Shard {
    /// The only shard of its array.
    pub const SINGLE: Self =
        Self { index: 0, count: 1, unit_bytes: 0, main_stride_bytes: 0, log_stride_bytes: 0 };

    /// Whether it is one of several.
    pub const fn is_one_of_several(&self) -> bool {
        self.count > 1
    }

    /// The shard with another number of the same array.
    pub const fn sibling(self, index: u16) -> Self {
        Self { index, ..self }
    }
}

impl ArrayUuid {
    /// What blocks of a shard carry instead of the array's UUID: none of them passes for one of another
    /// shard. Of a shard's UUID it gives the array's.
    pub fn of_shard(self, index: u16) -> Self {
        let mut bytes = self.bytes();
        let index = if planted(Planted::ShardsShareUuid) { 0 } else { index };
        let [high, low] = index.to_be_bytes();
        bytes[14] ^= high;
        bytes[15] ^= low;
        Self::new(bytes)
    }
}
