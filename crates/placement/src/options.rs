//! From names and numbers to a placement policy.

use crate::{
    GcApart, GcGroup, Glru, GlruOptions, Hca, HcaOptions, HotnessKind, Midas, MidasOptions, OptionError,
    Placement, PlacementKind, RecentWrites, SepBit, SingleGroup, Thresholds, Was,
};

/// How a policy goes about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// How `was` tells hot from cold.
    pub hotness: HotnessKind,
    /// Groups of `was`: 2 to 4.
    pub groups: u64,
    /// Where gc writes of `single` and `was` go; `sepbit` has classes for them.
    pub gc_group: GcGroup,
    /// Entries of the table of recent writes, for `sepbit`: 0 if the engine always knows when a replaced
    /// version was written.
    pub recent_entries: u64,
    /// Groups of `midas` at most, the one of hot chunks included: 2 to 8.
    pub midas_groups: u64,
    /// Seed of the probability test of `glru`.
    pub seed: u64,
}

impl Default for Tuning {
    /// The papers' defaults: two groups (W-10), GLRU.
    fn default() -> Self {
        Self {
            hotness: HotnessKind::Glru,
            groups: 2,
            gc_group: GcGroup::Coldest,
            recent_entries: 0,
            midas_groups: MidasOptions::GROUPS_MAX,
            seed: 1,
        }
    }
}

/// Everything that chooses a placement policy; what does not concern the kind is ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacementOptions {
    /// The policy.
    pub kind: PlacementKind,
    /// Logical chunks of the volume, for `hca`.
    pub chunk_count: u64,
    /// How it goes about it.
    pub tuning: Tuning,
}

impl PlacementOptions {
    /// The policy with the papers' defaults.
    pub fn new(kind: PlacementKind, chunk_count: u64) -> Self {
        Self { kind, chunk_count, tuning: Tuning::default() }
    }

    /// The policy, or which option is out of range.
    pub fn build(&self) -> Result<Box<dyn Placement>, OptionError> {
        Ok(match (self.kind, self.tuning.hotness) {
            (PlacementKind::Single, _) => self.gc_grouped(SingleGroup),
            (PlacementKind::Was, HotnessKind::Glru) => {
                let thresholds = Thresholds::for_groups(self.tuning.groups)?;
                let options = GlruOptions { thresholds, seed: self.tuning.seed, ..GlruOptions::default() };
                self.gc_grouped(Was::new(Glru::new(options)?))
            }
            (PlacementKind::Was, HotnessKind::Hca) => self.gc_grouped(Was::new(Hca::new(HcaOptions {
                chunk_count: self.chunk_count,
                groups: self.tuning.groups,
                extent_chunks: Some(HcaOptions::EXTENT_CHUNKS),
            })?)),
            (PlacementKind::SepBit, _) => {
                Box::new(SepBit::new(RecentWrites::new(self.tuning.recent_entries)?))
            }
            (PlacementKind::Midas, _) => Box::new(Midas::new(MidasOptions {
                chunk_count: self.chunk_count,
                groups_max: self.tuning.midas_groups,
            })?),
        })
    }

    /// About what the policy takes of memory: what grows with the volume or with an option.
    pub fn memory_bytes(&self) -> u64 {
        match (self.kind, self.tuning.hotness) {
            (PlacementKind::Single, _) | (PlacementKind::Was, HotnessKind::Glru) => 0,
            (PlacementKind::Was, HotnessKind::Hca) => {
                self.chunk_count.saturating_mul(HcaOptions::BYTES_PER_CHUNK)
            }
            (PlacementKind::SepBit, _) => {
                self.tuning.recent_entries.saturating_mul(RecentWrites::BYTES_PER_ENTRY)
            }
            (PlacementKind::Midas, _) => self.chunk_count.div_ceil(MidasOptions::CHUNKS_PER_BYTE),
        }
    }

    fn gc_grouped(&self, policy: impl Placement + 'static) -> Box<dyn Placement> {
        match self.tuning.gc_group {
            GcGroup::Coldest => Box::new(policy),
            GcGroup::Own => Box::new(GcApart(policy)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn each_kind_is_built_with_its_classes() {
        let classes = |kind, hotness, groups| {
            let tuning = Tuning { hotness, groups, ..Tuning::default() };
            let options = PlacementOptions { tuning, ..PlacementOptions::new(kind, 1000) };
            options.build().map(|policy| policy.classes())
        };
        assert_eq!(classes(PlacementKind::Single, HotnessKind::Hca, 9), Ok(1));
        assert_eq!(classes(PlacementKind::SepBit, HotnessKind::Hca, 9), Ok(6));
        for hotness in [HotnessKind::Glru, HotnessKind::Hca] {
            for groups in 2..=4_u64 {
                assert_eq!(
                    classes(PlacementKind::Was, hotness, groups),
                    Ok(usize::try_from(groups).unwrap())
                );
            }
            assert!(classes(PlacementKind::Was, hotness, 5).is_err());
        }
        let tuning = Tuning { gc_group: GcGroup::Own, ..Tuning::default() };
        let own = PlacementOptions { tuning, ..PlacementOptions::new(PlacementKind::Was, 1000) };
        assert_eq!(own.build().unwrap().classes(), 3);
    }
}
