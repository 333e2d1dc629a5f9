//! SepBIT (Wang, Li, Lee, Ouyang, Shi, Huang: "Separating Data via Block Invalidation Time Inference for
//! Write Amplification Reduction in Log-Structured Storage", FAST 2022, section 3).
//!
//! It infers when a chunk will be overwritten: of a user write, from how long the version lived that it
//! replaces; of a gc write, from how old it is already. Six classes, 1 to 6 in the paper:
//!
//! | class here | paper | what joins |
//! |--:|--:|---|
//! | 0 | 1 | user writes that replace a version which lived for less than l |
//! | 1 | 2 | other user writes, new chunks among them |
//! | 2 | 3 | gc writes out of class 0 |
//! | 3, 4, 5 | 4, 5, 6 | other gc writes of age below 4 l, below 16 l, and older |
//!
//! l is the mean lifespan (creation to collection) of the last 16 collected units of class 0, replaced after
//! each 16; infinite before the first 16.

use crate::{Class, CollectedUnit, GcWrite, Placement, RecentWrites, UserWrite};

/// n_c of Algorithm 1: units of class 0 over which l is averaged.
const UNITS_AVERAGED: u64 = 16;

/// The classes of SepBIT.
#[derive(Clone, Debug)]
pub struct SepBit {
    recent: RecentWrites,
    /// l, in user chunk writes; `None` is infinity.
    lifespan: Option<u64>,
    /// Sum of the lifespans of the units collected since l was set.
    lifespan_sum: u128,
    collected: u64,
}

impl SepBit {
    /// `recent` answers where the engine gives no time of the replaced version; it may be empty if the engine
    /// always does.
    pub fn new(recent: RecentWrites) -> Self {
        Self { recent, lifespan: None, lifespan_sum: 0, collected: 0 }
    }

    /// l in user chunk writes; `None` while it is infinite.
    pub fn lifespan(&self) -> Option<u64> {
        self.lifespan
    }

    /// Whether a time is below `factor` l.
    fn below(&self, time: u64, factor: u64) -> bool {
        self.lifespan.is_none_or(|lifespan| time < lifespan.saturating_mul(factor))
    }
}

impl Placement for SepBit {
    fn classes(&self) -> usize {
        6
    }

    fn needs_times(&self) -> bool {
        true
    }

    fn place_user(&mut self, write: UserWrite) -> Class {
        let remembered = self.recent.note(write.lcn, write.now);
        let lived = write.previous.map(|previous| write.now.saturating_sub(previous)).or(remembered);
        // A chunk without a known predecessor has lived for ever, which is not below an infinite l either.
        Class::new(if lived.is_some_and(|lived| self.below(lived, 1)) { 0 } else { 1 })
    }

    fn place_gc(&mut self, write: GcWrite) -> Class {
        if write.class == Class::new(0) {
            return Class::new(2);
        }
        Class::new(match write.written.map(|written| write.now.saturating_sub(written)) {
            Some(age) if self.below(age, 4) => 3,
            Some(age) if self.below(age, 16) => 4,
            Some(_) | None => 5,
        })
    }

    fn note_collected(&mut self, unit: CollectedUnit) {
        if unit.class != Class::new(0) {
            return;
        }
        self.collected += 1;
        self.lifespan_sum += u128::from(unit.now.saturating_sub(unit.created));
        if self.collected == UNITS_AVERAGED {
            let mean = self.lifespan_sum / u128::from(self.collected);
            self.lifespan = Some(u64::try_from(mean).expect("a mean of 64-bit numbers"));
            (self.collected, self.lifespan_sum) = (0, 0);
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<RecentWrites>() + self.recent.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;
    use crate::Sequence;
    use block::Lcn;

    fn sepbit(entries: u64) -> SepBit {
        SepBit::new(RecentWrites::new(entries).unwrap())
    }

    fn user(policy: &mut SepBit, lcn: u64, now: u64, previous: Option<u64>) -> u8 {
        policy.place_user(UserWrite { lcn: Lcn::new(lcn), sequence: Sequence::Random, now, previous }).get()
    }

    fn gc(policy: &mut SepBit, class: u8, written: Option<u64>, now: u64) -> u8 {
        policy.place_gc(GcWrite { lcn: Lcn::new(1), class: Class::new(class), written, now }).get()
    }

    /// 16 units of class 0 that lived 91, 92, ... 106: l = 98 (98.5 rounded down).
    fn collect_sixteen(policy: &mut SepBit) {
        for unit in 1..=16 {
            let now = 1000 + 10 * unit;
            assert_eq!(policy.lifespan(), None);
            policy.note_collected(CollectedUnit { class: Class::new(0), created: now - 90 - unit, now });
        }
        assert_eq!(policy.lifespan(), Some(98));
    }

    /// Requirement L-09.
    #[test]
    fn user_writes_before_any_unit_was_collected() {
        let mut policy = sepbit(0);
        assert_eq!(user(&mut policy, 1, 0, None), 1); // new
        assert_eq!(user(&mut policy, 1, 1_000_000, Some(0)), 0); // any life is below infinity
    }

    /// Requirement L-09.
    #[test]
    fn user_writes_by_the_life_of_their_predecessor() {
        let mut policy = sepbit(0);
        collect_sixteen(&mut policy);
        assert_eq!(user(&mut policy, 1, 2000, Some(2000 - 97)), 0);
        assert_eq!(user(&mut policy, 1, 2000, Some(2000 - 98)), 1); // not below l
        assert_eq!(user(&mut policy, 1, 2000, None), 1);
        assert_eq!(user(&mut policy, 1, 2000, Some(2001)), 0); // a clock that went back is no panic
    }

    /// Requirement L-09.
    #[test]
    fn gc_writes_by_origin_and_age() {
        let mut policy = sepbit(0);
        assert_eq!(gc(&mut policy, 1, Some(0), 1 << 40), 3); // l is infinite
        collect_sixteen(&mut policy);
        for age in [0, 391, 1567, 1568, 100_000] {
            assert_eq!(gc(&mut policy, 0, Some(200_000 - age), 200_000), 2);
        }
        for class in 1..6 {
            let by_age = [0, 391, 392, 1567, 1568, 100_000]; // 4 l = 392, 16 l = 1568
            let classes = by_age.map(|age| gc(&mut policy, class, Some(200_000 - age), 200_000));
            assert_eq!(classes, [3, 3, 4, 4, 5, 5]);
            assert_eq!(gc(&mut policy, class, None, 200_000), 5);
        }
    }

    /// Requirement L-09.
    #[test]
    fn the_threshold_is_replaced_after_each_16_units_of_the_first_class() {
        let mut policy = sepbit(0);
        collect_sixteen(&mut policy);
        for class in 1..6 {
            for _ in 0..20 {
                policy.note_collected(CollectedUnit { class: Class::new(class), created: 0, now: 5 });
            }
        }
        for _ in 0..15 {
            policy.note_collected(CollectedUnit { class: Class::new(0), created: 0, now: 10 });
            assert_eq!(policy.lifespan(), Some(98));
        }
        policy.note_collected(CollectedUnit { class: Class::new(0), created: 0, now: 10 });
        assert_eq!(policy.lifespan(), Some(10));
    }

    /// Requirement L-09.
    #[test]
    fn without_times_the_recent_writes_answer() {
        let mut policy = sepbit(64);
        collect_sixteen(&mut policy);
        assert_eq!(user(&mut policy, 7, 2000, None), 1);
        assert_eq!(user(&mut policy, 7, 2097, None), 0);
        assert_eq!(user(&mut policy, 7, 2195, None), 1); // 98 later
        assert_eq!(user(&mut policy, 7, 2196, Some(0)), 1); // the engine knows better
    }

    #[test]
    fn numbers_at_the_edge_do_not_overflow() {
        let mut policy = sepbit(0);
        for _ in 0..16 {
            policy.note_collected(CollectedUnit { class: Class::new(0), created: 0, now: u64::MAX });
        }
        assert_eq!(policy.lifespan(), Some(u64::MAX));
        assert_eq!(gc(&mut policy, 1, Some(1), u64::MAX), 3);
    }
}
