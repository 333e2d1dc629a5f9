//! Workload-aware placement (WAS, sections III and IV): one group per hotness tier.

use crate::{Class, GcWrite, Hotness, Placement, Sequence, UserWrite};

/// One class per tier of `H`, the hottest first. Gc writes join the coldest class (W-25, A-17).
#[derive(Clone, Debug)]
pub struct Was<H> {
    hotness: H,
    /// Class of the last chunk placed for a user.
    last: Option<Class>,
}

impl<H: Hotness> Was<H> {
    /// Places by this identifier of hot data.
    pub fn new(hotness: H) -> Self {
        Self { hotness, last: None }
    }

    fn coldest(&self) -> Class {
        Class::new(self.hotness.tiers() - 1)
    }
}

impl<H: Hotness> Placement for Was<H> {
    fn classes(&self) -> usize {
        usize::from(self.hotness.tiers())
    }

    /// WAS, section IV-A (W-08): chunks of a request that continues the last one get that one's verdict
    /// without a lookup. If the chunks of that request differed, the verdict of its last chunk counts, the
    /// one next to them.
    fn place_user(&mut self, write: UserWrite) -> Class {
        let class = match (write.sequence, self.last) {
            (Sequence::Continues, Some(last)) => last,
            (Sequence::Continues, None) | (Sequence::Random, _) => {
                let tier = self.hotness.identify(write.lcn, write.now);
                Class::new(self.coldest().get() - tier.get())
            }
        };
        self.last = Some(class);
        class
    }

    fn place_gc(&mut self, _write: GcWrite) -> Class {
        self.coldest()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<H>() + self.hotness.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;
    use crate::{Glru, GlruOptions, Thresholds};
    use block::Lcn;

    fn was(groups: u64) -> Was<Glru> {
        let thresholds = Thresholds::for_groups(groups).unwrap();
        Was::new(Glru::new(GlruOptions { thresholds, ..GlruOptions::default() }).unwrap())
    }

    fn write(was: &mut Was<Glru>, lcn: u64, sequence: Sequence) -> u8 {
        was.place_user(UserWrite { lcn: Lcn::new(lcn), sequence, now: 0, previous: None }).get()
    }

    /// Requirements W-10 and W-14.
    #[test]
    fn as_many_groups_as_tiers_hottest_first() {
        for groups in 2..=4 {
            let mut was = was(groups);
            assert_eq!(was.classes() as u64, groups);
            let by_write: Vec<_> = (0..8).map(|_| write(&mut was, 3, Sequence::Random)).collect();
            let expected: &[u8] = match groups {
                2 => &[1, 0, 0, 0, 0, 0, 0, 0],
                3 => &[2, 1, 1, 0, 0, 0, 0, 0],
                _ => &[3, 2, 2, 1, 1, 1, 1, 0],
            };
            assert_eq!(by_write, expected);
        }
    }

    /// Requirement W-08.
    #[test]
    fn a_continuing_request_gets_the_last_verdict_without_a_lookup() {
        let mut was = was(2);
        // A first request that claims to continue is looked up like any other.
        assert_eq!(write(&mut was, 9, Sequence::Continues), 1);
        assert_eq!(write(&mut was, 9, Sequence::Random), 0);
        let before: Vec<_> = (0..128).map(|list| was.hotness.list(list).collect::<Vec<_>>()).collect();
        // Chunks 10 and 11 were never seen, and still join 9; nothing in the table changes.
        assert_eq!(write(&mut was, 10, Sequence::Continues), 0);
        assert_eq!(write(&mut was, 11, Sequence::Continues), 0);
        let after: Vec<_> = (0..128).map(|list| was.hotness.list(list).collect::<Vec<_>>()).collect();
        assert_eq!(before, after);
        // So a random write of 10 is its first.
        assert_eq!(write(&mut was, 10, Sequence::Random), 1);
        assert_eq!(write(&mut was, 11, Sequence::Continues), 1);
    }

    /// Requirements W-25 and A-17.
    #[test]
    fn gc_writes_join_the_coldest_and_leave_the_last_verdict_alone() {
        let mut was = was(3);
        for _ in 0..4 {
            write(&mut was, 1, Sequence::Random);
        }
        let moved = GcWrite { lcn: Lcn::new(1), class: Class::new(0), written: Some(0), now: 9 };
        assert_eq!(was.place_gc(moved).get(), 2);
        assert_eq!(write(&mut was, 2, Sequence::Continues), 0);
    }

    /// Requirement W-06.
    #[test]
    fn memory_is_that_of_the_table() {
        assert!(was(2).memory_bytes() <= 5000, "{}", was(2).memory_bytes());
    }
}
