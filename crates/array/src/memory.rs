//! How much memory an array takes, computed from its shape before any of it is asked for.
//!
//! Tables are asked for page by page, as chunks are written. So an array that is mostly empty takes little,
//! and what counts is what it takes once all of it is written.

use crate::bounds::Bounds;
use crate::engine::EngineOptions;
use crate::image;
use crate::restart::AssembleError;
use crate::scheme::{self, Policies};
use crate::table::{Table, word_count};
use format::ArrayConfig;

/// Bytes of memory of an array all of which is written, by what they are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryNeed {
    /// What is known of every chunk: maps, checksums, free space, and what the scheme knows besides.
    pub tables_bytes: u64,
    /// Updates whose parity is not committed, when as many wait as there is room for on the devices.
    pub uncommitted_bytes: u64,
    /// A full checkpoint under way: every page of the tables as it was, should all change meanwhile.
    pub checkpoint_bytes: u64,
    /// Which chunks of replacements are written, with as many being rebuilt as the array tolerates.
    pub rebuild_bytes: u64,
    /// What the placement policy remembers of every chunk.
    pub placement_bytes: u64,
    /// Buffers for requests and background work.
    pub buffers_bytes: u64,
}

impl EngineOptions {
    /// Whether an array of that configuration can be run with these options: they are in their ranges, and
    /// the memory that it takes can be had.
    pub fn check(&self, config: &ArrayConfig) -> Result<(), AssembleError> {
        self.check_need(config, MemoryNeed::of(config, self)?)
    }

    /// The same with policies that are no part of this product.
    pub(crate) fn check_with(&self, config: &ArrayConfig, policies: &Policies) -> Result<(), AssembleError> {
        policies.check(config)?;
        let mut need = MemoryNeed::of(config, self)?;
        if let Some(placement) = policies.placement.as_ref().filter(|_| config.scheme.is_elastic()) {
            need.take_buffers(config, self, placement.classes());
        }
        self.check_need(config, need)
    }

    fn check_need(&self, config: &ArrayConfig, need: MemoryNeed) -> Result<(), AssembleError> {
        let slots = need.buffers_bytes / config.geometry.chunk_bytes() as u64;
        if u32::try_from(slots).is_err() {
            return Err(AssembleError::Buffers { bytes: need.buffers_bytes });
        }
        need.check_granted()
    }
}

impl MemoryNeed {
    /// What an array of that shape takes when it runs with these options.
    pub fn of(config: &ArrayConfig, options: &EngineOptions) -> Result<Self, AssembleError> {
        let mut need = Self::within(config, options.bounds());
        let mut classes = 1;
        if config.scheme.is_elastic() {
            let placement = options.scheme.placement_options(config);
            need.placement_bytes = placement.memory_bytes();
            // Building it asks for its memory.
            Self { placement_bytes: need.placement_bytes, ..Self::default() }.check_granted()?;
            classes = placement.build()?.classes();
        }
        need.take_buffers(config, options, classes);
        Ok(need)
    }

    fn take_buffers(&mut self, config: &ArrayConfig, options: &EngineOptions, classes: usize) {
        let slots = options.slot_count(config, classes) as u64;
        self.buffers_bytes = slots.saturating_mul(config.geometry.chunk_bytes() as u64);
    }

    /// What an array of several shards takes, of the shape of one of them, when it runs with these options
    /// for all.
    pub fn of_all_shards(config: &ArrayConfig, options: &EngineOptions) -> Result<Self, AssembleError> {
        let one = Self::of(config, &options.of_shard(config))?;
        let all = |bytes: u64| bytes.saturating_mul(config.shard.count.into());
        Ok(Self {
            tables_bytes: all(one.tables_bytes),
            uncommitted_bytes: all(one.uncommitted_bytes),
            checkpoint_bytes: all(one.checkpoint_bytes),
            rebuild_bytes: all(one.rebuild_bytes),
            placement_bytes: all(one.placement_bytes),
            buffers_bytes: all(one.buffers_bytes),
        })
    }

    /// What an array of that shape takes while it is made: of a table that may be absent hardly anything.
    pub fn of_new(config: &ArrayConfig) -> Self {
        Self::within(config, Bounds::LEAST)
    }

    /// What an array of that shape takes whatever it runs with.
    pub fn of_shape(config: &ArrayConfig) -> Self {
        Self::within(config, Bounds::NONE)
    }

    /// The same where what may be bounded is.
    fn within(config: &ArrayConfig, bounds: Bounds) -> Self {
        let geometry = config.geometry;
        let (n, m) = (geometry.device_count() as u64, geometry.parity_count() as u64);
        let bits = |count: u64| (count + 1).div_ceil(64) * 8;
        let spaces = if config.scheme.is_elastic() {
            u64::from(word_count(config.chunks_per_device)) * 4 * n
        } else {
            0
        };
        let scheme = scheme::memory_max(config, bounds.list_bytes);
        let table_bytes = Table::bytes_for(config, bounds.table_bytes);
        let absent_bytes = Table::bytes_for(config, u64::MAX) - table_bytes;
        let rebuilt = u64::from(config.chunks_per_device.max(config.log_blocks));
        Self {
            tables_bytes: table_bytes + spaces + scheme.fixed_bytes,
            uncommitted_bytes: scheme.dynamic_bytes,
            checkpoint_bytes: image::bytes_max(config, bounds.list_bytes).saturating_sub(absent_bytes),
            rebuild_bytes: bits(rebuilt) * m,
            placement_bytes: 0,
            buffers_bytes: 0,
        }
    }

    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        [
            self.tables_bytes,
            self.uncommitted_bytes,
            self.checkpoint_bytes,
            self.rebuild_bytes,
            self.placement_bytes,
            self.buffers_bytes,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Asks the system whether it would give as much. The memory goes back at once: what is asked for later,
    /// piece by piece, is touched only as it is used. Refused memory is an error here, where nothing has
    /// happened yet; later it would be the end of the process.
    pub(crate) fn check_granted(&self) -> Result<(), AssembleError> {
        let granted = |bytes: u64| {
            usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
        };
        if !granted(self.buffers_bytes) {
            return Err(AssembleError::Buffers { bytes: self.buffers_bytes });
        }
        if !granted(self.total_bytes()) {
            return Err(AssembleError::Memory { bytes: self.total_bytes() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
