//! The stripes written last, in memory, as Linux md keeps them (`stripe_cache_size`): who writes to one of
//! them again need not read what is known.
//!
//! As in md a stripe has its place in one of eight lists, by its number modulo 8, each with an equal share of
//! the entries; the one unused for longest makes room. No write waits here or is merged with another, and
//! what is in the cache is on the devices, so that losing it loses nothing.
//!
//! An entry has a buffer for each column. A plan *takes* the entry of its stripe: nobody else gets it until
//! the plan has ended, as nobody else gets the stripe. The plan reads into its buffers and computes parity in
//! them, and says what they are going to hold ([`StripeCache::expect`]). That counts when its records are
//! applied ([`Caches::applied`]). An entry whose plan came to nothing is forgotten.
//!
//! Whether an entry is right is not left to that alone: what it has is compared with the checksum that the
//! table has of the column, as what a device gives is ([`Held::reads`]), and read if it differs.

use crate::hash::StripeMap;
use crate::plan::Held;
use crate::planted::{Planted, planted};
use crate::scheme::Caches;
use block::{Pool, Slot, StripeId};

/// Lists of entries, as in md (`NR_STRIPE_HASH_LOCKS`).
const LISTS: usize = 8;
/// No entry.
const NONE: usize = usize::MAX;

/// One stripe's place. It is in the list of its own number modulo [`LISTS`].
#[derive(Clone, Copy)]
struct Entry {
    /// Whose columns it has.
    stripe: Option<StripeId>,
    /// A plan has it; else it is in its list.
    is_taken: bool,
    /// The one that was used before it.
    older: usize,
    /// The one that was used after it.
    newer: usize,
}

/// Entries that no plan has, by when they were used.
#[derive(Clone, Copy)]
struct List {
    oldest: usize,
    newest: usize,
}

/// See the module's documentation.
pub struct StripeCache {
    columns: usize,
    entries: Vec<Entry>,
    lists: [List; LISTS],
    /// The entry of each stripe that has one.
    by_stripe: StripeMap<usize>,
    /// A buffer for each column of each entry.
    slots: Vec<Slot>,
    /// Whether that holds the column's newest version.
    current: Vec<bool>,
    /// Whether it will when the records of the plan that has the entry are applied.
    expected: Vec<bool>,
}

impl StripeCache {
    /// Room for so many stripes, whose buffers come from `pool`.
    pub fn new(stripes: usize, columns: usize, pool: &mut Pool) -> Self {
        let slots: Vec<Slot> = (0..stripes * columns).map_while(|_| pool.alloc()).collect();
        assert_eq!(slots.len(), stripes * columns, "the pool was made with room for the cache");
        let entry = Entry { stripe: None, is_taken: true, older: NONE, newer: NONE };
        let mut cache = Self {
            columns,
            entries: vec![entry; stripes],
            lists: [List { oldest: NONE, newest: NONE }; LISTS],
            by_stripe: StripeMap::default(),
            current: vec![false; slots.len()],
            expected: vec![false; slots.len()],
            slots,
        };
        // Twice as much room, so that stripes that come and go never make it grow.
        cache.by_stripe.reserve(2 * stripes);
        (0..stripes).for_each(|entry| cache.add_newest(entry));
        cache
    }

    /// Gives the buffers back to the pool that they came from; no plan has an entry.
    pub fn give_buffers(self, pool: &mut Pool) {
        self.slots.into_iter().for_each(|slot| pool.free(slot));
    }

    /// The entry of a stripe for a plan, and whether the stripe had it before; `None` if plans have all that
    /// it could get.
    pub fn take(&mut self, stripe: StripeId) -> Option<(usize, bool)> {
        let found = self.by_stripe.get(&stripe.get()).copied();
        let list = usize::try_from(stripe.get() % 8).expect("less than eight");
        let entry = found.or(Some(self.lists[list].oldest).filter(|&oldest| oldest != NONE))?;
        assert!(!self.entries[entry].is_taken, "one plan at a time has a stripe, and what is listed is free");
        self.remove(entry);
        if found.is_none() {
            self.clear(entry);
            self.entries[entry].stripe = Some(stripe);
            self.by_stripe.insert(stripe.get(), entry);
        }
        if planted(Planted::StripeCacheLetsGo) {
            self.add_newest(entry);
        }
        Some((entry, found.is_some()))
    }

    /// Whether an entry has the newest version of a column.
    pub fn has(&self, entry: usize, column: usize) -> bool {
        self.current[entry * self.columns + column]
    }

    /// The buffer of a column.
    pub fn slot(&self, entry: usize, column: usize) -> Slot {
        self.slots[entry * self.columns + column]
    }

    /// When the plan's records are applied, the buffer of the column holds its newest version.
    pub fn expect(&mut self, entry: usize, column: usize) {
        self.expected[entry * self.columns + column] = true;
    }

    /// Forgets what an entry has.
    fn clear(&mut self, entry: usize) {
        let columns = entry * self.columns..(entry + 1) * self.columns;
        self.current[columns.clone()].fill(false);
        self.expected[columns].fill(false);
        if let Some(stripe) = self.entries[entry].stripe.take() {
            self.by_stripe.remove(&stripe.get());
        }
    }

    /// Takes an entry out of its list.
    fn remove(&mut self, entry: usize) {
        let Entry { older, newer, .. } = self.entries[entry];
        let list = entry % LISTS;
        match older {
            NONE => self.lists[list].oldest = newer,
            older => self.entries[older].newer = newer,
        }
        match newer {
            NONE => self.lists[list].newest = older,
            newer => self.entries[newer].older = older,
        }
        let taken = &mut self.entries[entry];
        (taken.is_taken, taken.older, taken.newer) = (true, NONE, NONE);
    }

    /// Puts an entry into its list as the last to make room.
    fn add_newest(&mut self, entry: usize) {
        let older = std::mem::replace(&mut self.lists[entry % LISTS].newest, entry);
        match older {
            NONE => self.lists[entry % LISTS].oldest = entry,
            older => self.entries[older].newer = entry,
        }
        let given = &mut self.entries[entry];
        (given.is_taken, given.older, given.newer) = (false, older, NONE);
    }

    /// Puts an entry into its list as the first to make room.
    fn add_oldest(&mut self, entry: usize) {
        let newer = std::mem::replace(&mut self.lists[entry % LISTS].oldest, entry);
        match newer {
            NONE => self.lists[entry % LISTS].newest = entry,
            newer => self.entries[newer].older = entry,
        }
        let given = &mut self.entries[entry];
        (given.is_taken, given.older, given.newer) = (false, NONE, newer);
    }
}

impl Caches for StripeCache {
    fn applied(&mut self, held: &mut Held) {
        for entry in held.entries.drain(..) {
            for column in entry * self.columns..(entry + 1) * self.columns {
                self.current[column] |= std::mem::take(&mut self.expected[column]);
            }
            if self.entries[entry].is_taken {
                self.add_newest(entry);
            }
        }
    }

    fn gave_up(&mut self, held: &mut Held) {
        for entry in held.entries.drain(..) {
            self.clear(entry);
            if self.entries[entry].is_taken {
                self.add_oldest(entry);
            }
        }
    }

    fn forget(&mut self, stripe: StripeId) {
        let found = self.by_stripe.get(&stripe.get()).copied();
        if let Some(entry) = found.filter(|&entry| !self.entries[entry].is_taken) {
            self.remove(entry);
            self.clear(entry);
            self.add_oldest(entry);
        }
    }
}

#[cfg(test)]
mod tests;
