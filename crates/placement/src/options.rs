//! From names and numbers to a placement policy.

use crate::error::within;
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
    /// Lists of `glru` and items of a list: K and N of the paper.
    pub glru_lists: u32,
    /// Items of each.
    pub glru_items: u32,
    /// Percent by which `glru` lets a chunk that it does not know evict another.
    pub glru_insert_percent: u8,
    /// Counts from which on `glru` takes a chunk for hotter: one for each group but the coldest; `None` are
    /// the paper's.
    pub thresholds: Option<Thresholds>,
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
            glru_lists: 128,
            glru_items: 8,
            glru_insert_percent: 50,
            thresholds: None,
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
            (PlacementKind::Was, HotnessKind::Glru) => self.gc_grouped(Was::new(Glru::new(self.glru()?)?)),
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
            (PlacementKind::Single, _) => 0,
            (PlacementKind::Was, HotnessKind::Glru) => {
                let items = u64::from(self.tuning.glru_lists) * u64::from(self.tuning.glru_items);
                // 36 bits each.
                items.saturating_mul(9).div_ceil(2)
            }
            (PlacementKind::Was, HotnessKind::Hca) => {
                self.chunk_count.saturating_mul(HcaOptions::BYTES_PER_CHUNK)
            }
            (PlacementKind::SepBit, _) => {
                self.tuning.recent_entries.saturating_mul(RecentWrites::BYTES_PER_ENTRY)
            }
            (PlacementKind::Midas, _) => self.chunk_count.div_ceil(MidasOptions::CHUNKS_PER_BYTE),
        }
    }

    fn glru(&self) -> Result<GlruOptions, OptionError> {
        let tuning = &self.tuning;
        let thresholds = match tuning.thresholds {
            None => Thresholds::for_groups(tuning.groups)?,
            Some(thresholds) => {
                let given = u64::from(thresholds.tiers()) - 1;
                let wanted = within("groups", tuning.groups, 2, 4)? - 1;
                within("number of hotness thresholds, one less than groups", given, wanted, wanted)?;
                thresholds
            }
        };
        let percent =
            within("GLRU insert probability in percent", u64::from(tuning.glru_insert_percent), 0, 100)?;
        Ok(GlruOptions {
            lists: tuning.glru_lists,
            items_per_list: tuning.glru_items,
            thresholds,
            insert_probability: GlruOptions::CERTAIN * percent / 100,
            seed: tuning.seed,
        })
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

    /// Requirements W-02, W-10, W-12 and L-13.
    #[test]
    fn the_table_of_was_is_made_as_asked_for() {
        let tuned = |tuning| PlacementOptions { tuning, ..PlacementOptions::new(PlacementKind::Was, 1000) };
        let memory = |lists| {
            let tuning = Tuning { glru_lists: lists, ..Tuning::default() };
            (tuned(tuning).memory_bytes(), tuned(tuning).build().unwrap().memory_bytes())
        };
        assert_eq!(memory(128).0, 4608);
        assert_eq!(memory(1024).0, 36_864);
        assert_eq!(memory(1024).1 - memory(128).1, 36_864 - 4608);
        let thresholds = Some(Thresholds::new(&[3, 9]).unwrap());
        let wrong = |tuning| tuned(tuning).build().map(drop).unwrap_err().to_string();
        assert_eq!(
            wrong(Tuning { thresholds, ..Tuning::default() }),
            "number of hotness thresholds, one less than groups: found 2, expected 1 to 1"
        );
        assert_eq!(
            tuned(Tuning { thresholds, groups: 3, ..Tuning::default() }).build().unwrap().classes(),
            3
        );
        assert_eq!(
            wrong(Tuning { glru_insert_percent: 101, ..Tuning::default() }),
            "GLRU insert probability in percent: found 101, expected 0 to 100"
        );
        assert!(wrong(Tuning { glru_lists: 0, ..Tuning::default() }).starts_with("GLRU lists: found 0"));
    }

    #[test]
    fn each_kind_is_built_with_its_classes() {
        let classes = |kind, hotness, groups| {
            let tuning = Tuning { hotness, groups, ..Tuning::default() };
            let options = PlacementOptions { tuning, ..PlacementOptions::new(kind, 1000) };
            options.build().map(|policy| policy.classes())
        };
        assert_eq!(classes(PlacementKind::Single, HotnessKind::Hca, 9), Ok(1));
        assert_eq!(classes(PlacementKind::SepBit, HotnessKind::Hca, 9), Ok(6));
        assert_eq!(classes(PlacementKind::Midas, HotnessKind::Hca, 9), Ok(8));
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
