//! Which closed block GC takes next.
//!
//! | policy | structure | time per victim |
//! |---|---|---|
//! | greedy | a list of blocks per key | O(1) |
//! | cost-benefit | the same | O(pages per block) |
//! | FIFO | one list | O(1) |
//! | d-choices | an array | O(d) |
//!
//! A block's *key* is its share of valid pages, in pages of a full-density block: its valid pages, times two
//! for a block in SLC mode, which has half as many pages. It is what copying its pages costs in space of the
//! mode they came from.
//!
//! The lists are circular and doubly linked, with a sentinel for each key after the links of the blocks, so
//! that moving a block from one list to another takes no branch.

use crate::random::Random;

/// How GC chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GcPolicy {
    /// Fewest valid pages; of equals the one that came to that number first.
    #[default]
    Greedy,
    /// Highest (1 - u) x age / 2u, u the share of valid pages and age the time, in host page writes, since a
    /// page of the block was last invalidated (Kawaguchi, Nishioka, Motoda, "A Flash-Memory Based File
    /// System", USENIX 1995). With this age the lists of equal u are sorted by age as they are, so the best
    /// of all blocks is among their heads.
    CostBenefit,
    /// The block closed first.
    Fifo,
    /// The best of `d` blocks drawn at random with replacement (Van Houdt, "A Mean Field Model for a Class of
    /// Garbage Collection Algorithms in Flash-based Solid State Drives", SIGMETRICS 2013); 1 is random GC.
    DChoices(u32),
}

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

/// The closed blocks.
#[derive(Clone, Debug)]
pub(crate) struct Victims {
    policy: GcPolicy,
    /// The links of the blocks, then those of the sentinels. For d-choices `prev` is the block's
    /// place in `pool`.
    links: Vec<Link>,
    blocks: u32,
    key_max: u32,
    /// The lists of all lower keys are empty.
    lowest: u32,
    /// When a page of each block was last invalidated; for cost-benefit only.
    touched: Vec<u64>,
    pool: Vec<u32>,
    random: Random,
    count: u32,
}

impl Victims {
    /// Makes the structure for `blocks` blocks with keys up to `key_max`.
    pub(crate) fn new(policy: GcPolicy, blocks: u32, key_max: u32, seed: u64) -> Self {
        let sentinels = match policy {
            GcPolicy::Greedy | GcPolicy::CostBenefit => key_max + 1,
            GcPolicy::Fifo => 1,
            GcPolicy::DChoices(_) => 0,
        };
        let links = (0..blocks + sentinels).map(|i| Link { prev: i, next: i }).collect();
        let touched = if policy == GcPolicy::CostBenefit { vec![0; blocks as usize] } else { Vec::new() };
        let lowest = key_max;
        Self {
            policy,
            links,
            blocks,
            key_max,
            lowest,
            touched,
            pool: Vec::new(),
            random: Random::new(seed),
            count: 0,
        }
    }

    /// Whether the policy takes blocks without invalid pages, as others may have some.
    pub(crate) fn takes_full_blocks(&self) -> bool {
        matches!(self.policy, GcPolicy::Fifo | GcPolicy::DChoices(_))
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn bytes(&self) -> usize {
        self.links.len() * size_of::<Link>() + self.touched.len() * 8 + self.pool.capacity() * 4
    }

    #[inline]
    fn unlink(&mut self, block: u32) {
        let Link { prev, next } = self.links[block as usize];
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
    }

    #[inline]
    fn append(&mut self, list: u32, block: u32) {
        let sentinel = self.blocks + list;
        let tail = self.links[sentinel as usize].prev;
        self.links[block as usize] = Link { prev: tail, next: sentinel };
        self.links[tail as usize].next = block;
        self.links[sentinel as usize].prev = block;
    }

    fn head(&self, list: u32) -> Option<u32> {
        let next = self.links[(self.blocks + list) as usize].next;
        (next < self.blocks).then_some(next)
    }

    /// A block has been closed.
    pub(crate) fn insert(&mut self, block: u32, key: u32, now: u64) {
        self.count += 1;
        match self.policy {
            GcPolicy::Greedy | GcPolicy::CostBenefit => {
                self.append(key, block);
                self.lowest = self.lowest.min(key);
                if let Some(touched) = self.touched.get_mut(block as usize) {
                    *touched = now;
                }
            }
            GcPolicy::Fifo => {
                self.append(0, block);
                self.lowest = 0;
            }
            GcPolicy::DChoices(_) => {
                self.links[block as usize].prev = self.pool.len() as u32;
                self.pool.push(block);
            }
        }
    }

    /// Some of the blocks that will probably be chosen next; none for policies that draw.
    pub(crate) fn next_ones(&self) -> impl Iterator<Item = u32> + '_ {
        const AHEAD: usize = 4;
        let lists = self.links.len() as u32 - self.blocks;
        let first = (lists > 0).then(|| self.head(self.lowest.min(lists - 1))).flatten();
        let next = |&block: &u32| Some(self.links[block as usize].next).filter(|&next| next < self.blocks);
        std::iter::successors(first, next).take(AHEAD)
    }

    /// Loads what taking a page from a block will need. The number answered means nothing.
    #[inline]
    pub(crate) fn warm(&self, block: u32) -> u32 {
        let Link { prev, next } = self.links[block as usize];
        let of = |link: u32| self.links.get(link as usize).map_or(0, |link| link.prev);
        of(prev) ^ of(next)
    }

    /// A page of a closed block has been invalidated, and its key is `key` now.
    #[inline]
    pub(crate) fn lower(&mut self, block: u32, key: u32, now: u64) {
        match self.policy {
            GcPolicy::Greedy => {
                self.unlink(block);
                self.append(key, block);
                self.lowest = self.lowest.min(key);
            }
            GcPolicy::CostBenefit => {
                self.unlink(block);
                self.append(key, block);
                self.lowest = self.lowest.min(key);
                self.touched[block as usize] = now;
            }
            GcPolicy::Fifo | GcPolicy::DChoices(_) => {}
        }
    }

    /// Takes a block out.
    pub(crate) fn remove(&mut self, block: u32) {
        self.count -= 1;
        match self.policy {
            GcPolicy::Greedy | GcPolicy::CostBenefit | GcPolicy::Fifo => self.unlink(block),
            GcPolicy::DChoices(_) => {
                let place = self.links[block as usize].prev;
                self.pool.swap_remove(place as usize);
                if let Some(&moved) = self.pool.get(place as usize) {
                    self.links[moved as usize].prev = place;
                }
            }
        }
    }

    /// Chooses the block to collect and leaves it in the structure; `None` if there is no closed block.
    /// `key_of` tells a block's key.
    pub(crate) fn choose(&mut self, now: u64, key_of: impl Fn(u32) -> u32) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        match self.policy {
            GcPolicy::Greedy => {
                self.find_lowest();
                self.head(self.lowest)
            }
            GcPolicy::CostBenefit => self.best_benefit(now),
            GcPolicy::Fifo => self.head(0),
            GcPolicy::DChoices(choices) => {
                let mut draw = || self.pool[self.random.below(self.pool.len() as u32) as usize];
                let mut best = draw();
                for _ in 1..choices {
                    let other = draw();
                    if key_of(other) < key_of(best) {
                        best = other;
                    }
                }
                Some(best)
            }
        }
    }

    fn find_lowest(&mut self) {
        while self.lowest < self.key_max && self.head(self.lowest).is_none() {
            self.lowest += 1;
        }
    }

    fn best_benefit(&mut self, now: u64) -> Option<u32> {
        self.find_lowest();
        let full = f64::from(self.key_max);
        let mut best: Option<(f64, u32)> = None;
        for key in self.lowest..=self.key_max {
            let Some(block) = self.head(key) else { continue };
            let share = f64::from(key) / full;
            let age = (now - self.touched[block as usize] + 1) as f64;
            // A block without valid pages costs nothing, so it is infinitely good.
            let benefit = (1.0 - share) * age / (2.0 * share);
            if best.is_none_or(|(held, _)| benefit > held) {
                best = Some((benefit, block));
            }
        }
        best.map(|(_, block)| block)
    }

    /// Lists all closed blocks, in no order that means anything.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let lists = self.links.len() as u32 - self.blocks;
        let linked = (0..lists).flat_map(move |list| {
            std::iter::successors(self.head(list), move |&block| {
                let next = self.links[block as usize].next;
                (next < self.blocks).then_some(next)
            })
        });
        linked.chain(self.pool.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(policy: GcPolicy, keys: &[u32]) -> Victims {
        let mut victims = Victims::new(policy, 8, 10, 1);
        for (block, &key) in (0u32..).zip(keys) {
            victims.insert(block, key, u64::from(block));
        }
        victims
    }

    #[test]
    fn greedy_takes_the_lowest_key_and_of_equals_the_first() {
        let keys = [5, 3, 9, 3];
        let mut victims = fill(GcPolicy::Greedy, &keys);
        assert_eq!(victims.choose(9, |_| 0), Some(1));
        victims.lower(3, 2, 9);
        assert_eq!(victims.choose(9, |_| 0), Some(3));
        victims.remove(3);
        victims.remove(1);
        assert_eq!(victims.choose(9, |_| 0), Some(0));
        assert_eq!(victims.all().collect::<Vec<_>>(), [0, 2]);
        victims.remove(0);
        victims.remove(2);
        assert_eq!((victims.choose(9, |_| 0), victims.count()), (None, 0));
    }

    #[test]
    fn cost_benefit_by_hand() {
        // (1 - u) age / 2u with full = 10. Block 0: key 8, age 101: 12.6; block 1: key 5, age 11: 5.5.
        let mut victims = Victims::new(GcPolicy::CostBenefit, 8, 10, 1);
        victims.insert(0, 8, 0);
        victims.insert(1, 5, 90);
        assert_eq!(victims.choose(100, |_| 0), Some(0));
        // Touched again: key 7 but age 1: 0.2.
        victims.lower(0, 7, 100);
        assert_eq!(victims.choose(100, |_| 0), Some(1));
        victims.insert(2, 0, 100);
        assert_eq!(victims.choose(100, |_| 0), Some(2), "an empty block goes first");
    }

    #[test]
    fn fifo_ignores_keys_and_d_choices_prefers_low_ones() {
        let mut victims = fill(GcPolicy::Fifo, &[9, 1, 1]);
        assert_eq!(victims.choose(9, |_| 0), Some(0));
        victims.remove(0);
        assert_eq!(victims.choose(9, |_| 0), Some(1));

        let keys = [9, 7, 5, 3, 1];
        let mut victims = fill(GcPolicy::DChoices(64), &keys);
        assert_eq!(victims.choose(9, |block| keys[block as usize]), Some(4));
        victims.remove(1);
        victims.remove(4);
        assert_eq!(victims.choose(9, |block| keys[block as usize]), Some(3));
        let mut left: Vec<u32> = victims.all().collect();
        left.sort_unstable();
        assert_eq!(left, [0, 2, 3]);
    }
}
