//! Options of running schemes; only elastic ones have any.

use format::{ArrayConfig, SchemeKind};
use placement::{
    GcGroup, GcThreshold, HotnessKind, OptionError, Placement, PlacementKind, PlacementOptions, VictimKind,
};

/// How long a chunk waits at most for others to make a whole stripe, by default: eSAP's `P_wait` (W-39).
pub const P_WAIT_NS_DEFAULT: u64 = 200_000_000;

/// Rows of a group by default at most: the papers' units; larger ones are for large devices, not for more memory.
pub const GROUP_ROWS_MAX: u32 = 64;

/// What elastic schemes do with chunks of unlike lifetime, and when and what they collect. `None` is what the scheme of the
/// array does by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchemeOptions {
    /// Which chunks are written together; `elastic`: all, `was`: those of one hotness.
    pub placement: Option<PlacementKind>,
    /// How hot chunks are told from cold ones.
    pub hotness: HotnessKind,
    /// Groups of the placement `was`, 2 to 4.
    pub groups: u64,
    /// Where chunks go that garbage collection moves.
    pub gc_group: GcGroup,
    /// Which unit is collected.
    pub gc: VictimKind,
    /// Share of units in use from which on garbage is collected (W-22, A-16).
    pub gc_threshold: GcThreshold,
    /// Chunks of one class that wait to be written together; `elastic`: one stripe, `was`: one unit (W-16), of at most
    /// [`GROUP_ROWS_MAX`] rows.
    pub group_chunks: Option<u32>,
    /// How long one waits at most, in nanoseconds, `u64::MAX` = until idle time; `elastic`: [`P_WAIT_NS_DEFAULT`], `was`: until
    /// idle time.
    pub p_wait_ns: Option<u64>,
    /// Chunks that the placement `sepbit` remembers of late; 0 = those of a unit suffice.
    pub recent_entries: u64,
    /// Seed of the placement.
    pub seed: u64,
}

impl Default for SchemeOptions {
    fn default() -> Self {
        Self {
            placement: None,
            hotness: HotnessKind::Glru,
            groups: 2,
            gc_group: GcGroup::Coldest,
            gc: VictimKind::Greedy,
            gc_threshold: GcThreshold::default(),
            group_chunks: None,
            p_wait_ns: None,
            recent_entries: 0,
            seed: 1,
        }
    }
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

    /// What that policy is built from.
    pub(crate) fn placement_options(&self, config: &ArrayConfig) -> PlacementOptions {
        let chunk_count = config.stripe_count * config.geometry.data_count() as u64;
        let kind = self.placement.unwrap_or(match config.scheme {
            SchemeKind::Was => PlacementKind::Was,
            SchemeKind::Elastic | SchemeKind::Raid | SchemeKind::Eplog | SchemeKind::ParityLog => {
                PlacementKind::Single
            }
        });
        PlacementOptions {
            hotness: self.hotness,
            groups: self.groups,
            gc_group: self.gc_group,
            recent_entries: self.recent_entries,
            seed: self.seed,
            ..PlacementOptions::new(kind, chunk_count)
        }
    }

    /// Chunks that one class of an array of that configuration lets wait; 0 if its scheme has no classes.
    pub fn waiting_chunks(&self, config: &ArrayConfig) -> usize {
        let stripe = config.geometry.data_count();
        let own = match config.scheme {
            SchemeKind::Elastic => stripe,
            SchemeKind::Was => stripe * config.unit_rows.min(GROUP_ROWS_MAX) as usize,
            SchemeKind::Raid | SchemeKind::Eplog | SchemeKind::ParityLog => return 0,
        };
        self.group_chunks.map_or(own, |chunks| (chunks as usize).max(1))
    }

    /// How long a chunk waits at most; `None` is until idle time.
    pub fn wait_ns(&self, scheme: SchemeKind) -> Option<u64> {
        let own = match scheme {
            SchemeKind::Elastic => P_WAIT_NS_DEFAULT,
            SchemeKind::Was | SchemeKind::Raid | SchemeKind::Eplog | SchemeKind::ParityLog => u64::MAX,
        };
        Some(self.p_wait_ns.unwrap_or(own)).filter(|&ns| ns != u64::MAX)
    }
}
