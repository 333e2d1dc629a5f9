//! Where the slices of a shard are on its members, and how the volume's addresses go to the shards.

use super::{ArrayConfig, BLOCK_BYTES, DATA_ALIGN_BYTES};
use crate::FormatError;
use crate::shard::{SHARDS_MAX, Shard, UNIT_BYTES_MIN};
use block::planted::{Planted, planted};
use block::{DevIndex, Extent, Interleave, Turns};

/// A unit of the room behind the slices is this share of a slice, or somewhat more.
const ROOM_UNITS_OF_SLICE: u64 = 1024;
/// It is not larger than this: less than a unit of each shard is left over at the end of a device.
const ROOM_UNIT_BYTES_MAX: u64 = 64 << 20;

impl ArrayConfig {
    /// Where this shard's slice of a member begins, in bytes from the beginning of the member.
    pub fn slice_origin(&self, dev: DevIndex) -> u64 {
        let overlap_bytes = if planted(Planted::SlicesOverlap) { DATA_ALIGN_BYTES } else { 0 };
        u64::from(self.shard.index) * self.stride_bytes(dev).saturating_sub(overlap_bytes)
    }

    /// Bytes from the beginning of one slice of a member to that of the next.
    pub fn stride_bytes(&self, dev: DevIndex) -> u64 {
        let is_main = dev.index() < self.geometry.device_count();
        if is_main { self.shard.main_stride_bytes } else { self.shard.log_stride_bytes }
    }

    /// The slices of all members that are this shard's. Of an array that has grown they go on behind those of
    /// all shards.
    pub fn slice_extents(&self) -> Vec<Extent> {
        let length_bytes = if self.has_grown() { self.main_device_bytes() } else { u64::MAX };
        self.extents(self.has_grown(), length_bytes)
    }

    /// The same with all of the room that main devices have behind the slices of all shards, whether the
    /// array has grown into it or not.
    pub fn roomy_extents(&self) -> Vec<Extent> {
        self.extents(true, u64::MAX)
    }

    fn extents(&self, goes_on: bool, most_bytes: u64) -> Vec<Extent> {
        if !self.shard.is_one_of_several() {
            return Vec::new();
        }
        let main_count = self.geometry.device_count();
        let extent = |index: u16| {
            let dev = DevIndex::new(index);
            let turns = (goes_on && dev.index() < main_count).then(|| self.turns());
            let length_bytes = if turns.is_some() { most_bytes } else { self.stride_bytes(dev) };
            Extent { origin_bytes: self.slice_origin(dev), length_bytes, turns }
        };
        (0u16..).take(main_count + usize::from(self.log_count)).map(extent).collect()
    }

    /// How the slice of a main device goes on behind those of all shards. That depends on how the array was
    /// created alone: it is the same for shards that have grown and for those that have not.
    fn turns(&self) -> Turns {
        let Shard { index, count, main_stride_bytes, .. } = self.shard;
        let unit_bytes = self.room_unit_bytes();
        Turns {
            first_bytes: main_stride_bytes,
            origin_bytes: (u64::from(count) * main_stride_bytes)
                .saturating_add(u64::from(index) * unit_bytes),
            unit_bytes,
            step_bytes: u64::from(count) * unit_bytes,
        }
    }

    /// Bytes of the room behind the slices of a main device that go to one shard before the next: the
    /// largest power of two that is not above a 1024th of a slice, from 1 MiB to 64 MiB.
    pub fn room_unit_bytes(&self) -> u64 {
        let share = (self.shard.main_stride_bytes / ROOM_UNITS_OF_SLICE).max(1);
        (1 << share.ilog2()).clamp(DATA_ALIGN_BYTES, ROOM_UNIT_BYTES_MAX)
    }

    /// What operations with a buffer do not cross a multiple of: a slice may go on elsewhere there.
    pub fn unbroken_bytes(&self) -> u64 {
        let is_cut = self.has_grown() && self.shard.is_one_of_several();
        if is_cut { DATA_ALIGN_BYTES } else { u64::MAX }
    }

    /// How many metadata blocks from a place of a slice on can be had in one transfer.
    pub fn blocks_together(&self, offset_bytes: u64) -> u32 {
        let unbroken = self.unbroken_bytes();
        u32::try_from((unbroken - offset_bytes % unbroken) / BLOCK_BYTES).unwrap_or(u32::MAX)
    }

    /// Where a byte of this shard's slice of a member is on the member.
    pub fn place_on(&self, dev: DevIndex, offset_bytes: u64) -> u64 {
        let extents = if self.has_grown() { self.slice_extents() } else { Vec::new() };
        match extents.get(dev.index()) {
            Some(extent) => extent.place(offset_bytes).0,
            None => self.slice_origin(dev) + offset_bytes,
        }
    }

    /// What every shard of the array has of a main device of that size, room behind the slices included.
    pub fn room_of(&self, main_bytes: u64) -> u64 {
        if !self.shard.is_one_of_several() {
            return main_bytes;
        }
        // The last one's turn comes last.
        let last = if planted(Planted::RoomOfTheFirst) { 0 } else { self.shard.count - 1 };
        let extents = self.sibling(last).roomy_extents();
        extents.first().map_or(0, |extent| extent.bytes_within(main_bytes))
    }

    /// How large a main device must be for every shard to have so many bytes of it: the reverse.
    pub fn main_bytes_for(&self, room_bytes: u64) -> u64 {
        if !self.shard.is_one_of_several() {
            return room_bytes;
        }
        let last = self.sibling(self.shard.count - 1);
        match room_bytes.checked_sub(1).zip(last.roomy_extents().first()) {
            Some((before, extent)) => extent.place(before).0.saturating_add(1),
            None => 0,
        }
    }

    /// The same shape for another shard of the array.
    pub fn sibling(&self, index: u16) -> Self {
        Self { shard: self.shard.sibling(index), ..*self }
    }

    /// Bytes that a main device must have for all shards.
    pub fn whole_main_bytes(&self) -> u64 {
        self.main_bytes_for(self.main_device_bytes())
    }

    /// Bytes that a log device must have for all shards.
    pub fn whole_log_bytes(&self) -> u64 {
        u64::from(self.shard.count - 1) * self.shard.log_stride_bytes + self.log_device_bytes()
    }

    /// How the addresses of the whole volume go to the shards.
    pub fn interleave(&self) -> Interleave {
        Interleave::new(self.shard.count, self.shard.unit_bytes, self.volume_bytes())
    }

    /// The same if shards differ in size, because the array was cut short when it grew: the smallest says how
    /// large the volume is.
    pub fn interleave_of<'a>(shapes: impl Iterator<Item = &'a Self>) -> Option<Interleave> {
        shapes.map(Self::interleave).min_by_key(Interleave::volume_bytes)
    }

    /// Of shapes of shards that which needs most of a main device.
    pub fn largest_of<'a>(shapes: impl Iterator<Item = &'a Self>) -> Option<Self> {
        shapes.max_by_key(|shape| shape.whole_main_bytes()).copied()
    }

    /// Bytes of the volume of all shards together.
    pub fn whole_volume_bytes(&self) -> u64 {
        self.interleave().volume_bytes()
    }

    /// Checks that the slices fit side by side and that a unit fits into a shard's volume.
    pub(crate) fn validate_shard(&self) -> Result<(), FormatError> {
        let rule = |holds: bool, what: &'static str, found: u64, expected: &'static str| {
            if holds { Ok(()) } else { Err(FormatError::Config { what, found, expected }) }
        };
        let Shard { index, count, unit_bytes, main_stride_bytes, log_stride_bytes } = self.shard;
        rule((1..=SHARDS_MAX).contains(&count), "number of shards", count.into(), "1 to 64")?;
        rule(index < count, "number of the shard", index.into(), "less than there are shards")?;
        if count == 1 {
            rule(unit_bytes == 0, "unit of the shards", unit_bytes, "0 with a single shard")?;
            rule(
                main_stride_bytes == 0,
                "stride of main devices",
                main_stride_bytes,
                "0 with a single shard",
            )?;
            return rule(
                log_stride_bytes == 0,
                "stride of log devices",
                log_stride_bytes,
                "0 with a single shard",
            );
        }
        // Behind that it goes on elsewhere if the array has grown.
        let first_bytes =
            if self.has_grown() { self.moved.data_start_bytes } else { self.main_device_bytes() };
        let aligned = |bytes: u64| bytes.is_multiple_of(DATA_ALIGN_BYTES) && bytes < 1 << 56;
        rule(
            unit_bytes > 0 && unit_bytes.is_multiple_of(UNIT_BYTES_MIN) && unit_bytes <= self.volume_bytes(),
            "unit of the shards",
            unit_bytes,
            "a multiple of 1 MiB that a shard has room for",
        )?;
        rule(
            aligned(main_stride_bytes) && main_stride_bytes >= first_bytes,
            "stride of main devices",
            main_stride_bytes,
            "a multiple of 1 MiB, not less than a slice",
        )?;
        let log_bytes = if self.log_count > 0 { self.log_device_bytes() } else { 0 };
        rule(
            aligned(log_stride_bytes)
                && log_stride_bytes >= log_bytes
                && (log_bytes > 0 || log_stride_bytes == 0),
            "stride of log devices",
            log_stride_bytes,
            "a multiple of 1 MiB, not less than a slice; 0 without log devices",
        )
    }
}

#[cfg(test)]
mod tests;
