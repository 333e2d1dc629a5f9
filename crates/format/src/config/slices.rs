//! Where the slices of a shard are on its members, and how the volume's addresses go to the shards.

use super::{ArrayConfig, DATA_ALIGN_BYTES};
use crate::FormatError;
use crate::shard::{SHARDS_MAX, Shard, UNIT_BYTES_MIN};
use block::planted::{Planted, planted};
use block::{DevIndex, Extent, Interleave};

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

    /// The slices of all members that are this shard's.
    pub fn slice_extents(&self) -> Vec<Extent> {
        if !self.shard.is_one_of_several() {
            return Vec::new();
        }
        let count = self.geometry.device_count() + usize::from(self.log_count);
        let extent = |index: u16| {
            let dev = DevIndex::new(index);
            Extent { origin_bytes: self.slice_origin(dev), length_bytes: self.stride_bytes(dev) }
        };
        (0u16..).take(count).map(extent).collect()
    }

    /// The same shape for another shard of the array.
    pub fn sibling(&self, index: u16) -> Self {
        Self { shard: self.shard.sibling(index), ..*self }
    }

    /// Bytes that a main device must have for all shards.
    pub fn whole_main_bytes(&self) -> u64 {
        u64::from(self.shard.count - 1) * self.shard.main_stride_bytes + self.main_device_bytes()
    }

    /// Bytes that a log device must have for all shards.
    pub fn whole_log_bytes(&self) -> u64 {
        u64::from(self.shard.count - 1) * self.shard.log_stride_bytes + self.log_device_bytes()
    }

    /// How the addresses of the whole volume go to the shards.
    pub fn interleave(&self) -> Interleave {
        Interleave::new(self.shard.count, self.shard.unit_bytes, self.volume_bytes())
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
        let aligned = |bytes: u64| bytes.is_multiple_of(DATA_ALIGN_BYTES) && bytes < 1 << 60;
        rule(
            unit_bytes > 0 && unit_bytes.is_multiple_of(UNIT_BYTES_MIN) && unit_bytes <= self.volume_bytes(),
            "unit of the shards",
            unit_bytes,
            "a multiple of 1 MiB that a shard has room for",
        )?;
        rule(
            aligned(main_stride_bytes) && main_stride_bytes >= self.main_device_bytes(),
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
