//! What an SSD is made of, checked before it is made.

use crate::error::{ConfigError, within};
use crate::geometry::Geometry;
use crate::mapping::MappingOptions;
use crate::slc::SlcOptions;
use crate::stream::StreamOptions;
use crate::timing::Timing;
use crate::victims::GcPolicy;
use crate::wear::WearLevelling;

/// Where GC writes the pages it copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GcFrontier {
    /// Into the blocks that are open for the host's writes of the same slot: one write frontier, as most
    /// closed forms assume.
    #[default]
    Shared,
    /// Into open blocks of their own, per slot.
    Separate,
}

/// One simulated SSD. [`SsdConfig::counting`] is a good start; presets are in [`crate::presets`].
#[derive(Clone, PartialEq, Debug)]
pub struct SsdConfig {
    /// Shape of the flash.
    pub geometry: Geometry,
    /// Pages the host sees.
    pub logical_pages: u64,
    /// Free blocks below which the host's writes do not take the number: GC runs when a new block is needed
    /// and taking it would leave fewer. The effective spare factor is what is left without them.
    pub free_blocks_min: u32,
    /// Independent parts, each with its own share of dies, blocks, free blocks and GC; logical page `p`
    /// belongs to part `p % domains`. DiskSim's flash elements are such parts; drives of today are one.
    pub domains: u32,
    /// Open blocks of each stream, on dies of their own, filled round-robin; that many pages of a stream are
    /// programmed side by side.
    pub ways: u32,
    /// How GC chooses its victim.
    pub gc: GcPolicy,
    /// Where GC writes.
    pub gc_frontier: GcFrontier,
    /// How streams are kept.
    pub streams: StreamOptions,
    /// Size of the mapping table's cache (DFTL); `None` holds the whole table in memory.
    pub mapping: Option<MappingOptions>,
    /// Wear levelling.
    pub wear_levelling: WearLevelling,
    /// SLC/MLC convertible programming of parity; `None` is off.
    pub slc: Option<SlcOptions>,
    /// Service times; `None` counts only, and everything completes at once.
    pub timing: Option<Timing>,
    /// For d-choices.
    pub seed: u64,
}

impl SsdConfig {
    /// Counts only: one die, greedy GC, one stream, the whole map in memory, nothing else. `spare` is
    /// the spare factor a: pages of the flash, without the free blocks that GC keeps (three here),
    /// per logical page.
    pub fn counting(
        logical_pages: u64,
        spare: f64,
        pages_per_block: u32,
        page_bytes: u32,
    ) -> Result<Self, ConfigError> {
        if !spare.is_finite() || !(1.0..=64.0).contains(&spare) {
            return Err(ConfigError::new("spare factor", spare, "1 to 64"));
        }
        within("pages per block", u64::from(pages_per_block), 1, u64::from(u16::MAX))?;
        within("logical pages", logical_pages, 1, u64::from(u32::MAX))?;
        let free_blocks_min = 3;
        let blocks = (logical_pages as f64 * spare / f64::from(pages_per_block)).round();
        if blocks > f64::from(1 << 26) {
            return Err(ConfigError::new("blocks", blocks, "at most 67108864"));
        }
        // Not negative, and below 2^26.
        let blocks = blocks as u32 + free_blocks_min;
        Ok(Self {
            geometry: Geometry::single_die(blocks, pages_per_block, page_bytes),
            logical_pages,
            free_blocks_min,
            domains: 1,
            ways: 1,
            gc: GcPolicy::Greedy,
            gc_frontier: GcFrontier::Shared,
            streams: StreamOptions::default(),
            mapping: None,
            wear_levelling: WearLevelling::default(),
            slc: None,
            timing: None,
            seed: 0,
        })
    }

    /// The spare factor a: pages of the flash, without the free blocks that GC keeps, per logical page.
    pub fn spare(&self) -> f64 {
        let kept = u64::from(self.free_blocks_min) * u64::from(self.geometry.pages_per_block);
        (self.geometry.data_pages() as f64 - kept as f64) / self.logical_pages as f64
    }

    /// Logical pages of the largest domain.
    pub(crate) fn domain_pages(&self) -> u64 {
        self.logical_pages.div_ceil(u64::from(self.domains))
    }

    /// Translation pages of the largest domain; 0 without a mapping cache.
    pub(crate) fn translation_pages(&self) -> u64 {
        let Some(mapping) = &self.mapping else { return 0 };
        self.domain_pages().div_ceil(u64::from(mapping.entries_per_page(self.geometry.page_bytes)))
    }

    /// The least number of free blocks that a domain keeps.
    pub(crate) fn domain_free_blocks_min(&self) -> u32 {
        let asked = self.free_blocks_min / self.domains;
        // The translation pages that a victim's pages change need room of their own.
        asked.max(if self.mapping.is_some() { 16 } else { 1 })
    }

    /// Open blocks that a domain may have at once.
    pub(crate) fn open_blocks_max(&self) -> u64 {
        let slots = u64::from(self.streams.slots_max());
        let frontiers = match self.gc_frontier {
            GcFrontier::Shared => 1,
            GcFrontier::Separate => 2,
        };
        let levelling = u64::from(self.wear_levelling.static_spread.is_some());
        let modes = if self.slc.is_some() { slots } else { 0 };
        let translation = u64::from(self.mapping.is_some()) * frontiers;
        (slots * (frontiers + levelling) + modes * frontiers + translation) * u64::from(self.ways)
    }

    /// Holds every field against the others.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.geometry.check()?;
        within("logical pages", self.logical_pages, 1, u64::from(u32::MAX - 2))?;
        let dies = self.geometry.dies();
        within("domains", u64::from(self.domains), 1, u64::from(dies))?;
        if !dies.is_multiple_of(self.domains) {
            return Err(ConfigError::new(
                "domains",
                self.domains,
                format_args!("a divisor of the {dies} dies"),
            ));
        }
        within(
            "ways",
            u64::from(self.ways),
            1,
            u64::from(dies / self.domains * self.geometry.planes_per_die),
        )?;
        if let GcPolicy::DChoices(choices) = self.gc {
            within("choices of d-choices", u64::from(choices), 1, 4096)?;
        }
        self.streams.check()?;
        if let Some(mapping) = &self.mapping {
            mapping.check(self.geometry.page_bytes)?;
        }
        self.wear_levelling.check()?;
        if let Some(slc) = &self.slc {
            slc.check(self.geometry.pages_per_block)?;
        }
        if let Some(timing) = &self.timing {
            timing.check()?;
        }
        self.check_space()
    }

    /// Blocks without which GC would not always find one with an invalid page: those that are neither free
    /// nor open must hold more than the logical and translation pages.
    pub(crate) fn blocks_needed(&self) -> u64 {
        let pages = self.domain_pages() + self.translation_pages();
        pages / u64::from(self.geometry.pages_per_block) + 1 + self.blocks_kept()
    }

    /// Blocks that are free or open.
    fn blocks_kept(&self) -> u64 {
        u64::from(self.domain_free_blocks_min()) + self.open_blocks_max()
    }

    fn check_space(&self) -> Result<(), ConfigError> {
        let blocks = u64::from(self.geometry.blocks() / self.domains);
        let (needed, kept) = (self.blocks_needed(), self.blocks_kept());
        if blocks < needed {
            let of = if self.domains == 1 { "" } else { " of each domain" };
            return Err(ConfigError::new(
                "blocks of the flash",
                format_args!("{blocks}{of}"),
                format_args!(
                    "at least {needed}: {} for the logical and translation pages, {kept} kept free or open",
                    needed - kept
                ),
            ));
        }
        Ok(())
    }
}
