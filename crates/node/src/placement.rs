//! What the schemes run with that have a choice, in words and figures.

use array::SchemeOptions;
use format::ArrayConfig;
use placement::{HotnessKind, PlacementKind, Thresholds, Tuning};
use serde::{Deserialize, Serialize};

/// What an array of an elastic scheme runs with. The keys are stable.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct PlacementInfo {
    /// Which chunks are written together.
    pub policy: String,
    /// Classes of chunks that are written apart, those of garbage collection included.
    pub classes: u64,
    /// How hot chunks are told from cold ones; only of the placement was.
    pub hotness: Option<String>,
    /// Groups; only of the placement was.
    pub groups: Option<u64>,
    /// Which unit is collected.
    pub gc: String,
    /// Share of units in use from which on garbage is collected.
    pub gc_threshold_percent: u64,
    /// Where chunks go that garbage collection moves; not of the placement sepbit.
    pub gc_group: Option<String>,
    /// Chunks that wait for each other.
    pub group_chunks: u64,
    /// How long one waits at most; `None` is until idle time.
    pub p_wait_ms: Option<f64>,
    /// Rows of a unit.
    pub unit_rows: u32,
    /// Chunks that the placement sepbit remembers; only of that.
    pub recent_entries: Option<u64>,
    /// Groups at most; only of the placement midas.
    pub midas_groups: Option<u64>,
    /// The table of hot chunks; only of the placement was with `glru`.
    pub glru: Option<GlruInfo>,
    /// Seed of the placement.
    pub seed: u64,
}

/// The table of hot chunks of `glru`. The keys are stable.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct GlruInfo {
    /// Its lists.
    pub lists: u32,
    /// Items of each.
    pub items: u32,
    /// Percent by which an unknown chunk evicts another.
    pub insert_percent: u8,
    /// Writes from which on a chunk is hotter.
    pub thresholds: Vec<u8>,
}

impl GlruInfo {
    fn of(tuning: &Tuning) -> Self {
        let usual = Thresholds::for_groups(tuning.groups).ok();
        let thresholds = tuning.thresholds.or(usual);
        Self {
            lists: tuning.glru_lists,
            items: tuning.glru_items,
            insert_percent: tuning.glru_insert_percent,
            thresholds: thresholds.map_or_else(Vec::new, |thresholds| thresholds.values().to_vec()),
        }
    }
}

/// What an array of an elastic scheme runs with; `None` for others.
pub fn placement_info(options: &SchemeOptions, config: &ArrayConfig) -> Option<PlacementInfo> {
    if !config.scheme.is_elastic() {
        return None;
    }
    let kind = options.used_placement(config.scheme);
    let (was, sepbit) = (kind == PlacementKind::Was, kind == PlacementKind::SepBit);
    Some(PlacementInfo {
        policy: kind.name().to_owned(),
        // Options that no array runs with have none.
        classes: options.build_placement(config).map_or(0, |policy| policy.classes() as u64),
        hotness: was.then(|| options.tuning.hotness.name().to_owned()),
        groups: was.then_some(options.tuning.groups),
        gc: options.gc.name().to_owned(),
        gc_threshold_percent: options.gc_threshold.percent(),
        gc_group: (!sepbit && kind != PlacementKind::Midas)
            .then(|| options.tuning.gc_group.name().to_owned()),
        group_chunks: options.waiting_chunks(config) as u64,
        p_wait_ms: options.wait_ns(config.scheme).map(|ns| ns as f64 / 1e6),
        unit_rows: config.unit_rows,
        recent_entries: sepbit.then_some(options.tuning.recent_entries),
        midas_groups: (kind == PlacementKind::Midas).then_some(options.tuning.midas_groups),
        glru: (was && options.tuning.hotness == HotnessKind::Glru).then(|| GlruInfo::of(&options.tuning)),
        seed: options.tuning.seed,
    })
}

/// What becomes of whole stripes that are written again, by its name on the command line; `None` where the
/// scheme leaves no choice.
pub fn rewrites_name(options: &SchemeOptions, config: &ArrayConfig) -> Option<&'static str> {
    config.scheme.has_log_stripes().then(|| options.rewrites.name())
}

impl PlacementInfo {
    /// In a line.
    pub fn line(&self) -> String {
        let how = match (&self.hotness, self.groups) {
            (Some(hotness), Some(groups)) => format!("{}, {groups} groups by {hotness}", self.policy),
            (None, _) | (_, None) => self.policy.clone(),
        };
        let wait = self.p_wait_ms.map_or(String::new(), |ms| format!(", {ms}ms at most"));
        format!(
            "{how}; {} chunks wait for each other{wait}; gc {} of units of {} rows from {} % in use",
            self.group_chunks, self.gc, self.unit_rows, self.gc_threshold_percent
        )
    }
}
