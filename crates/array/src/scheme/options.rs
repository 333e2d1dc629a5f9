//! Options of running schemes; those with nothing to choose have none.

use crate::store::stripes_touched;
use format::{ArrayConfig, CLASSES_MAX, Consistency, SchemeKind, Waiting};
use placement::{GcThreshold, OptionError, Placement, PlacementKind, PlacementOptions, Tuning, VictimKind};

/// How long a chunk waits at most for others to make a whole stripe, by default: eSAP's `P_wait` (W-39).
pub const P_WAIT_NS_DEFAULT: u64 = 200_000_000;

/// Bytes of a group by default at most: more than twice the largest of the papers (7.5 MB with 16
/// devices and erase blocks of 128 pages, H-52). The units of large devices are larger, and every
/// group waits in memory.
pub const GROUP_BYTES_MAX: u64 = 16 << 20;

/// The size of a block that is not torn, if nothing else is asked for: the pages of all common databases,
/// and the larger requests of file systems.
pub const UNTORN_BYTES_DEFAULT: u64 = 64 << 10;
/// It may be made as large as this: what front ends hand on as one request.
pub const UNTORN_BYTES_MAX: u64 = 1 << 20;

/// What becomes of a stripe written before that is written again as a whole (scheme eplog).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rewrites {
    /// It is replaced, or logged where that costs the SSDs less: a stripe that was rewritten a short while
    /// ago, and a dirty one that is rewritten by itself, not as one of many in a row.
    #[default]
    Auto,
    /// It goes out of place to the main array with its new parity, like a new one: neither log chunks nor
    /// a parity commit.
    Replace,
    /// It is logged like every other update (EPLOG, section 3.2: only a *new* full stripe goes to the main
    /// array): the accounting of the paper.
    Log,
}

impl Rewrites {
    /// Every one, with its name on command lines and in results.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Replace, Self::Log];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Replace => "replace",
            Self::Log => "log",
        }
    }
}

/// What eplog does with whole stripes that are written again; and what elastic schemes do with chunks of
/// unlike lifetime, and when and what they collect. `None` is what the scheme of the array does by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchemeOptions {
    /// Aligned blocks of so many bytes, and of smaller powers of two, are there after a power cut as a whole
    /// or not at all if one request writes them; a chunk always is. Less if the array is too small for it,
    /// and none without a journal ([`Engine::untorn_bytes`](crate::Engine::untorn_bytes)).
    pub untorn_bytes: u64,
    /// What becomes of whole stripes that are written again.
    pub rewrites: Rewrites,
    /// What waits for a parity commit (scheme eplog) takes at most so many bytes of a checkpoint's list,
    /// unpacked, and some six times as many of memory, at worst twenty times; what has no room is committed.
    /// `None`: a sixteenth of what the table may take, at least 32 MiB. New arrays have room for 32 MiB,
    /// large ones for 128.
    pub list_bytes: Option<u64>,
    /// Stripes written last that stay in memory, so that writing to them again takes fewer reads (scheme
    /// raid); 0 = none.
    pub stripe_cache: u32,
    /// Which chunks are written together; `elastic`: all, `was`: those of one hotness.
    pub placement: Option<PlacementKind>,
    /// How that goes about it.
    pub tuning: Tuning,
    /// Which unit is collected.
    pub gc: VictimKind,
    /// Share of units in use from which on garbage is collected (W-22, A-16).
    pub gc_threshold: GcThreshold,
    /// Chunks of one class that wait to be written together; `elastic`: one stripe, `was`: one unit
    /// (W-16), or an equal part of it that takes at most [`GROUP_BYTES_MAX`].
    pub group_chunks: Option<u32>,
    /// How long one waits at most, in nanoseconds, `u64::MAX` = until idle time; `elastic`:
    /// [`P_WAIT_NS_DEFAULT`], `was`: until idle time.
    pub p_wait_ns: Option<u64>,
}

impl Default for SchemeOptions {
    fn default() -> Self {
        Self {
            untorn_bytes: UNTORN_BYTES_DEFAULT,
            rewrites: Rewrites::default(),
            list_bytes: None,
            stripe_cache: 0,
            placement: None,
            tuning: Tuning::default(),
            gc: VictimKind::Greedy,
            gc_threshold: GcThreshold::default(),
            group_chunks: None,
            p_wait_ns: None,
        }
    }
}

/// Rows that a group of `was` fills: a unit (W-19: an erase block of each SSD), or one of equal parts of it.
fn group_rows(config: &ArrayConfig) -> usize {
    let row_bytes = (config.geometry.data_count() * config.geometry.chunk_bytes()) as u64;
    let rows = u64::from(config.unit_rows);
    let parts = (rows * row_bytes).div_ceil(GROUP_BYTES_MAX).max(1).next_power_of_two();
    usize::try_from(rows / parts).map_or(1, |rows| rows.max(1))
}

impl SchemeOptions {
    /// Whether an array of that configuration can be run with these options.
    pub fn check(&self, config: &ArrayConfig) -> Result<(), OptionError> {
        if config.scheme.is_elastic() { self.build_placement(config).map(drop) } else { Ok(()) }
    }

    /// The placement policy of an array of that configuration.
    pub fn build_placement(&self, config: &ArrayConfig) -> Result<Box<dyn Placement>, OptionError> {
        self.placement_options(config).build()
    }

    /// Which chunks are written together in an array of that scheme.
    pub fn used_placement(&self, scheme: SchemeKind) -> PlacementKind {
        self.placement.unwrap_or(match scheme.facts().waiting {
            Waiting::Unit => PlacementKind::Was,
            Waiting::Stripe | Waiting::Cache | Waiting::Nowhere => PlacementKind::Single,
        })
    }

    /// What that policy is built from.
    pub(crate) fn placement_options(&self, config: &ArrayConfig) -> PlacementOptions {
        let chunk_count = config.stripe_count * config.geometry.data_count() as u64;
        let kind = self.used_placement(config.scheme);
        PlacementOptions { kind, chunk_count, tuning: self.tuning }
    }

    /// Chunks that one class of an array of that configuration lets wait; 0 if its scheme has no classes.
    pub fn waiting_chunks(&self, config: &ArrayConfig) -> usize {
        let stripe = config.geometry.data_count();
        let own = match config.scheme.facts().waiting {
            Waiting::Stripe => stripe,
            Waiting::Unit => stripe * group_rows(config),
            Waiting::Nowhere | Waiting::Cache => return 0,
        };
        self.group_chunks.map_or(own, |chunks| (chunks as usize).max(1))
    }

    /// Chunks of the largest block that is not to be torn; 0 without a journal.
    pub(crate) fn bundle_chunks(&self, config: &ArrayConfig) -> u64 {
        let torn = config.scheme.is_in_place() && config.consistency == Consistency::Resync;
        let bytes = if torn { 0 } else { self.untorn_bytes.min(UNTORN_BYTES_MAX) };
        u64::try_from(config.geometry.chunk_bytes()).map_or(0, |chunk| bytes / chunk)
    }

    /// Buffers that the plan of such a block takes at most: in each of its stripes what is read, and two sets
    /// of parities. They are there whatever else is under way.
    pub(crate) fn bundle_slots(&self, config: &ArrayConfig) -> usize {
        let (chunks, geometry) = (self.bundle_chunks(config), config.geometry);
        if chunks < 2 {
            return 0;
        }
        let per_stripe = geometry.device_count() + geometry.parity_count();
        let stripes = usize::try_from(stripes_touched(geometry, chunks)).unwrap_or(usize::MAX);
        stripes.saturating_add(CLASSES_MAX).saturating_mul(per_stripe)
    }

    /// Stripes that the scheme of an array of that configuration keeps in memory.
    pub(crate) fn cached_stripes(&self, scheme: SchemeKind) -> usize {
        match scheme {
            SchemeKind::Raid => usize::try_from(self.stripe_cache).unwrap_or(usize::MAX),
            SchemeKind::Eplog | SchemeKind::ParityLog | SchemeKind::Elastic | SchemeKind::Was => 0,
        }
    }

    /// Buffers for them, which nobody else gets.
    pub(crate) fn cache_slots(&self, config: &ArrayConfig) -> usize {
        self.cached_stripes(config.scheme).saturating_mul(config.geometry.device_count())
    }

    /// How long a chunk waits at most; `None` is until idle time.
    pub fn wait_ns(&self, scheme: SchemeKind) -> Option<u64> {
        let own = match scheme.facts().waiting {
            Waiting::Stripe => P_WAIT_NS_DEFAULT,
            Waiting::Unit | Waiting::Cache | Waiting::Nowhere => u64::MAX,
        };
        Some(self.p_wait_ns.unwrap_or(own)).filter(|&ns| ns != u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::{CreateOptions, plan_config};
    use block::Geometry;
    use format::{CodeKind, LayoutKind};

    fn config(k: usize, m: usize, unit_rows: Option<u32>, device_bytes: u64) -> ArrayConfig {
        let options = CreateOptions {
            scheme: SchemeKind::Was,
            code: CodeKind::Cauchy,
            layout: LayoutKind::Rotate,
            consistency: Consistency::Journal,
            geometry: Geometry::new(k, m, 4096).expect("a sound geometry"),
            reserve_permille: 200,
            unit_rows,
        };
        plan_config(&options, device_bytes, 0, 0).expect("devices with room")
    }

    /// Chunks of a group, and of a unit with its parity.
    fn sizes(config: &ArrayConfig) -> (usize, usize) {
        let group = SchemeOptions::default().waiting_chunks(config);
        (group, config.unit_rows as usize * config.geometry.device_count())
    }

    /// Requirements W-16, W-17, W-19, W-23 and H-52.
    #[test]
    fn groups_and_units_have_the_papers_sizes() {
        assert_eq!(sizes(&config(7, 1, None, 256 << 20)), (448, 512)); // 1,792 KiB
        assert_eq!(sizes(&config(6, 2, None, 256 << 20)), (384, 512)); // 1,536 KiB
        assert_eq!(sizes(&config(15, 1, Some(128), 256 << 20)), (1920, 2048)); // 7.5 MiB
    }

    #[test]
    fn a_group_is_a_unit_or_an_equal_part_of_one_that_memory_bears() {
        for device_bytes in [256 << 20, 5 << 30, 40 << 30, 1 << 40] {
            let config = config(4, 2, None, device_bytes);
            let (group, _) = sizes(&config);
            let unit = config.unit_rows as usize * 4;
            assert_eq!(unit % group, 0, "{unit} chunks in groups of {group}");
            assert!((group * 4096) as u64 <= GROUP_BYTES_MAX);
            assert!(group == unit || (2 * group * 4096) as u64 > GROUP_BYTES_MAX);
        }
        let config = config(250, 2, Some(100), 256 << 20);
        assert_eq!(sizes(&config).0 % 250, 0, "whole stripes");
    }
}
