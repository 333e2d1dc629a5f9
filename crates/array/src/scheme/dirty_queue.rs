//! The order in which dirty stripes are committed: oldest first, but for those that a run for room put first,
//! or passed over.

use crate::hash::StripeSet;
use block::StripeId;
use std::collections::VecDeque;
use std::ops::Range;

/// Entries of clean stripes that are not worth being looked for.
const SLACK: u64 = 1024;

/// Dirty stripes in their order. Stripes that became clean meanwhile stay in it until they are met.
#[derive(Default)]
pub struct DirtyQueue {
    stripes: VecDeque<StripeId>,
    /// How many more left it at its front than came there.
    first: i64,
    /// The places of second entries of what was chosen last.
    again: Range<i64>,
}

impl DirtyQueue {
    /// A stripe became dirty, or was taken and could not be committed.
    pub fn push(&mut self, stripe: StripeId) {
        self.stripes.push_back(stripe);
    }

    /// Stripes are to be taken before all others; that they stand elsewhere, too, does no harm.
    pub fn push_first(&mut self, stripes: &[StripeId]) {
        for &stripe in stripes.iter().rev() {
            self.stripes.push_front(stripe);
            self.first -= 1;
        }
    }

    /// Takes up to `count` stripes that are dirty, in their order, each once.
    pub fn take(&mut self, count: usize, is_dirty: impl Fn(StripeId) -> bool, out: &mut Vec<StripeId>) {
        self.take_those(count, |_, stripe, out| is_dirty(stripe) && !out.contains(&stripe), out);
    }

    /// The same of those that were not `seen`, for many. Second entries of what was chosen last are
    /// forgotten: whoever took one and left it dirty has put it back.
    pub fn take_unseen(
        &mut self,
        count: usize,
        is_dirty: impl Fn(StripeId) -> bool,
        seen: &mut StripeSet,
        out: &mut Vec<StripeId>,
    ) {
        let again = std::mem::take(&mut self.again);
        let mut is_wanted =
            |place, stripe| !again.contains(&place) && is_dirty(stripe) && seen.insert(stripe);
        self.take_those(count, |place, stripe, _| is_wanted(place, stripe), out);
        self.again = again;
    }

    /// Stripes that are about to be put first come once more behind these: so those that are put back are met
    /// soon, and not behind all others.
    pub fn push_again(&mut self, stripes: &[StripeId]) {
        self.push_first(stripes);
        self.again = self.first..self.first.saturating_add_unsigned(number(stripes.len()));
    }

    fn take_those(
        &mut self,
        count: usize,
        mut is_wanted: impl FnMut(i64, StripeId, &[StripeId]) -> bool,
        out: &mut Vec<StripeId>,
    ) {
        let end = out.len() + count;
        while out.len() < end {
            let Some(stripe) = self.stripes.pop_front() else { break };
            self.first += 1;
            if is_wanted(self.first - 1, stripe, out) {
                out.push(stripe);
            }
        }
    }

    /// Forgets stripes that are not dirty, and all but the first entry of those that are in it more than
    /// once, if it is much longer than the `dirty` stripes that there are: where stripes become clean without
    /// a commit, nobody may ever take them.
    pub fn tidy(&mut self, dirty: u64, is_dirty: impl Fn(StripeId) -> bool) {
        if self.stripes.len() as u64 <= 2 * dirty + SLACK {
            return;
        }
        let mut seen = StripeSet::default();
        // Those that are left are at other places.
        self.again = 0..0;
        self.stripes.retain(|&stripe| is_dirty(stripe) && seen.insert(stripe));
    }

    /// What is in it, clean stripes included.
    pub fn iter(&self) -> impl Iterator<Item = StripeId> {
        self.stripes.iter().copied()
    }

    /// The places of what is in it, which stay what they are but where stripes are forgotten.
    pub fn places(&self) -> Range<i64> {
        self.first..self.first.saturating_add_unsigned(number(self.stripes.len()))
    }

    /// What is at the next `count` of these places, clean stripes included, or has left them since.
    pub fn next_of(&self, places: &mut Range<i64>, count: usize) -> impl Iterator<Item = StripeId> {
        let there = self.places();
        let start = places.start.clamp(there.start, there.end);
        let end = places.end.clamp(start, there.end).min(start.saturating_add_unsigned(number(count)));
        places.start = if end == there.end { places.end } else { end };
        let index = |place: i64| usize::try_from(place - there.start).expect("a place of what is in memory");
        self.stripes.range(index(start)..index(end)).copied()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        number(self.stripes.capacity() * size_of::<StripeId>())
    }
}

/// A length of what is in memory, to be reckoned with.
pub fn number(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_that_become_clean_and_dirty_again_do_not_make_it_grow() {
        let (mut queue, mut out) = (DirtyQueue::default(), Vec::new());
        queue.push(StripeId::new(5));
        for round in 0..100_000 {
            // Stripe 5 stays dirty, the others are dirty for a moment.
            queue.push(StripeId::new(10 + round % 7));
            queue.tidy(2, |stripe| stripe.get() == 5 || stripe.get() == 10 + round % 7);
        }
        assert!(queue.iter().count() as u64 <= 4 + SLACK, "{}", queue.iter().count());
        queue.take(10, |stripe| [5, 11].contains(&stripe.get()), &mut out);
        assert_eq!(out, [5, 11].map(StripeId::new), "oldest first");
    }

    #[test]
    fn what_is_chosen_and_put_back_is_met_behind_those_chosen() {
        let (mut queue, mut out, mut seen) = (DirtyQueue::default(), Vec::new(), StripeSet::default());
        let stripes = |numbers: &[u64]| numbers.iter().copied().map(StripeId::new).collect::<Vec<_>>();
        (4..7).for_each(|stripe| queue.push(StripeId::new(stripe)));
        queue.push_again(&stripes(&[1, 2, 3]));
        queue.push_first(&stripes(&[1, 2, 3]));
        queue.take(3, |_| true, &mut out);
        assert_eq!(out, stripes(&[1, 2, 3]));
        // 2 is still dirty: it was put back. The others are clean.
        queue.push(StripeId::new(2));
        out.clear();
        queue.take(2, |stripe| ![1, 3].contains(&stripe.get()), &mut out);
        assert_eq!(out, stripes(&[2, 4]));
        // Chosen once more, and 9 became dirty again: the second entries alone are forgotten.
        queue.push_again(&stripes(&[8, 9]));
        queue.push(StripeId::new(9));
        out.clear();
        queue.take_unseen(9, |_| true, &mut seen, &mut out);
        assert_eq!(out, stripes(&[5, 6, 2, 9]));
        // What is tidied has other places.
        queue.push_again(&stripes(&[10, 11]));
        (0..2000).for_each(|_| queue.push(StripeId::new(12)));
        queue.tidy(3, |stripe| stripe.get() != 10);
        out.clear();
        seen.clear();
        queue.take_unseen(9, |_| true, &mut seen, &mut out);
        assert_eq!(out, stripes(&[11, 12]), "none is lost");
    }

    #[test]
    fn places_stay_what_they_are_while_others_leave_and_come() {
        let (mut queue, mut out) = (DirtyQueue::default(), Vec::new());
        (0..10).for_each(|stripe| queue.push(StripeId::new(stripe)));
        let mut places = queue.places();
        let mut next = |queue: &DirtyQueue, count| -> Vec<u64> {
            queue.next_of(&mut places, count).map(StripeId::get).collect()
        };
        assert_eq!(next(&queue, 2), [0, 1]);
        queue.take(4, |_| true, &mut out);
        (10..13).for_each(|stripe| queue.push(StripeId::new(stripe)));
        queue.push_first(&[StripeId::new(3)]);
        assert_eq!(next(&queue, 3), [3, 4, 5], "2 and 3 left, 3 came back to the same place");
        queue.push_first(&[20, 21, 22].map(StripeId::new));
        assert_eq!(next(&queue, 100), [6, 7, 8, 9], "those that came later are none of them");
        assert!(next(&queue, 100).is_empty());
    }
}
