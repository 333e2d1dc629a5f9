//! Chunks of the volume whose content cannot be had, as stretches.

use block::Lcn;
use std::collections::BTreeMap;

/// Stretches that are listed; of further ones only the number is known.
const STRETCHES_MAX: usize = 1 << 16;

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LostChunks {
    /// First chunk, and the one behind the last.
    stretches: BTreeMap<u64, u64>,
    count: u64,
    unlisted: u64,
}

impl LostChunks {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count + self.unlisted
    }

    /// Whether all of them are in a stretch.
    pub fn is_complete(&self) -> bool {
        self.unlisted == 0
    }

    /// Stretches in order: first chunk and number of chunks.
    pub fn stretches(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.stretches.iter().map(|(&first, &end)| (first, end - first))
    }

    /// Whether a chunk is one of them.
    pub fn contains(&self, lcn: Lcn) -> bool {
        let lcn = lcn.get();
        self.stretches.range(..=lcn).next_back().is_some_and(|(_, &end)| lcn < end)
    }

    /// A chunk is lost.
    pub(crate) fn insert(&mut self, lcn: Lcn) {
        if self.contains(lcn) {
            return;
        }
        let lcn = lcn.get();
        let before = self.stretches.range(..lcn).next_back().filter(|&(_, &end)| end == lcn);
        let first = before.map_or(lcn, |(&first, _)| first);
        if first == lcn && !self.stretches.contains_key(&(lcn + 1)) && self.stretches.len() >= STRETCHES_MAX {
            self.unlisted += 1;
            return;
        }
        let end = self.stretches.remove(&(lcn + 1)).unwrap_or(lcn + 1);
        self.stretches.insert(first, end);
        self.count += 1;
    }

    /// Chunks `from..to` are not lost any more; `true` if any of them was.
    pub(crate) fn remove(&mut self, from: u64, to: u64) -> bool {
        let start = self.stretches.range(..from).next_back().filter(|&(_, &end)| end > from);
        let start = start.map_or(from, |(&first, _)| first);
        let touched: Vec<(u64, u64)> =
            self.stretches.range(start..to).map(|(&first, &end)| (first, end)).collect();
        for &(first, end) in &touched {
            self.stretches.remove(&first);
            self.count -= end.min(to) - first.max(from);
            if first < from {
                self.stretches.insert(first, from);
            }
            if end > to {
                self.stretches.insert(to, end);
            }
        }
        if self.stretches.is_empty() {
            self.unlisted = 0; // whatever else there is, rebuild or scrub find it again
        }
        !touched.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_grow_together_and_are_cut() {
        let mut lost = LostChunks::default();
        for lcn in [5, 7, 6, 1, 6, 100] {
            lost.insert(Lcn::new(lcn));
        }
        assert_eq!(lost.stretches().collect::<Vec<_>>(), [(1, 1), (5, 3), (100, 1)]);
        assert_eq!(lost.count(), 5);
        assert!(lost.remove(6, 7) && !lost.remove(6, 7) && !lost.remove(8, 100));
        assert_eq!(lost.stretches().collect::<Vec<_>>(), [(1, 1), (5, 1), (7, 1), (100, 1)]);
        assert!(lost.contains(Lcn::new(7)) && !lost.contains(Lcn::new(6)));
        assert!(lost.remove(0, 1000));
        assert_eq!(lost, LostChunks::default());
    }

    #[test]
    fn what_is_beyond_the_list_is_counted() {
        let mut lost = LostChunks::default();
        for at in 0..STRETCHES_MAX as u64 + 3 {
            lost.insert(Lcn::new(2 * at));
        }
        assert_eq!((lost.count(), lost.is_complete()), (STRETCHES_MAX as u64 + 3, false));
        lost.remove(0, u64::MAX);
        assert_eq!(lost.count(), 0, "whoever rewrites everything has rewritten those, too");
    }
}
