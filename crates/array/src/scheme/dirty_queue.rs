//! The order in which dirty stripes are committed: oldest first.

use block::StripeId;
use std::collections::{HashSet, VecDeque};

/// Entries of clean stripes that are not worth being looked for.
const SLACK: u64 = 1024;

/// Dirty stripes, oldest first. Stripes that became clean meanwhile stay in it until they are met.
#[derive(Default)]
pub struct DirtyQueue(VecDeque<StripeId>);

impl DirtyQueue {
    /// A stripe became dirty, or was taken and could not be committed.
    pub fn push(&mut self, stripe: StripeId) {
        self.0.push_back(stripe);
    }

    /// Stripes are to be taken before all others; that they stand elsewhere, too, does no harm.
    pub fn push_first(&mut self, stripes: &[StripeId]) {
        stripes.iter().rev().for_each(|&stripe| self.0.push_front(stripe));
    }

    /// Takes up to `count` stripes that are dirty, oldest first, each once.
    pub fn take(&mut self, count: usize, is_dirty: impl Fn(StripeId) -> bool, out: &mut Vec<StripeId>) {
        let end = out.len() + count;
        while out.len() < end {
            let Some(stripe) = self.0.pop_front() else { break };
            if is_dirty(stripe) && !out.contains(&stripe) {
                out.push(stripe);
            }
        }
    }

    /// Forgets stripes that are not dirty, and all but the first entry of those that are in it more than
    /// once, if it is much longer than the `dirty` stripes that there are: where stripes become clean without
    /// a commit, nobody may ever take them.
    pub fn tidy(&mut self, dirty: u64, is_dirty: impl Fn(StripeId) -> bool) {
        if self.0.len() as u64 <= 2 * dirty + SLACK {
            return;
        }
        let mut seen = HashSet::new();
        self.0.retain(|&stripe| is_dirty(stripe) && seen.insert(stripe));
    }

    /// What is in it, clean stripes included.
    pub fn iter(&self) -> impl Iterator<Item = StripeId> {
        self.0.iter().copied()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<StripeId>()) as u64
    }
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
}
