//! Who has an entry, who makes room, and what is forgotten.

use super::StripeCache;
use crate::plan::Held;
use crate::scheme::Caches;
use block::{Pool, StripeId};

struct Bench {
    cache: StripeCache,
    held: Held,
}

impl Bench {
    fn new(stripes: usize) -> Self {
        let mut pool = Pool::new(4096, stripes * 3);
        let cache = StripeCache::new(stripes, 3, &mut pool);
        assert_eq!(pool.free_count(), 0, "its buffers are its own");
        Self { cache, held: Held::default() }
    }

    /// A plan takes the entry of a stripe and is going to know its column 1; whether the stripe had one.
    fn take(&mut self, stripe: u64) -> Option<bool> {
        let (entry, found) = self.cache.take(StripeId::new(stripe))?;
        self.cache.expect(entry, 1);
        self.held.entries.push(entry);
        Some(found)
    }

    fn apply(&mut self) {
        self.cache.applied(&mut self.held);
        assert!(self.held.entries.is_empty());
    }

    fn give_up(&mut self) {
        self.cache.gave_up(&mut self.held);
        assert!(self.held.entries.is_empty());
    }

    /// Whether a stripe is there with its column 1; leaves the cache as if it had been written.
    fn has(&mut self, stripe: u64) -> bool {
        let (entry, found) = self.cache.take(StripeId::new(stripe)).expect("nobody has it");
        let has = self.cache.has(entry, 1);
        assert!(!self.cache.has(entry, 0) && has == found);
        self.cache.expect(entry, 1);
        self.held.entries.push(entry);
        self.apply();
        has
    }
}

#[test]
fn each_list_lets_the_one_go_that_was_unused_for_longest() {
    let mut bench = Bench::new(16);
    for stripe in [0, 8, 1, 0] {
        bench.take(stripe);
        bench.apply();
    }
    // Stripes 0, 8 and 16 share two places; 1 is in another list.
    bench.take(16);
    bench.apply();
    assert!(bench.has(0) && bench.has(16) && bench.has(1));
    assert!(!bench.has(8));
}

#[test]
fn what_a_plan_has_makes_no_room_and_is_not_known_before_it_is_written() {
    let mut bench = Bench::new(8);
    assert_eq!(bench.take(3), Some(false));
    assert_eq!(bench.take(11), None, "the only place of its list is taken");
    assert_eq!(bench.take(4), Some(false), "other lists have theirs");
    assert!(bench.held.entries.iter().all(|&entry| !bench.cache.has(entry, 1)));
    bench.apply();
    assert!(bench.has(3) && bench.has(4));
}

#[test]
fn what_came_to_nothing_is_forgotten_and_makes_room_first() {
    let mut bench = Bench::new(16);
    for stripe in [0, 8] {
        bench.take(stripe);
        bench.apply();
    }
    assert_eq!(bench.take(8), Some(true));
    bench.give_up();
    bench.take(16);
    bench.apply();
    assert!(bench.has(0), "the entry that was given up was taken in place of the older one");
    assert!(!bench.has(8));
}

#[test]
fn what_scrub_or_rebuild_had_is_forgotten_unless_a_plan_has_it() {
    let mut bench = Bench::new(8);
    bench.take(5);
    bench.cache.forget(StripeId::new(5));
    bench.apply();
    assert!(bench.has(5), "whoever has the stripe says what becomes of it");
    bench.cache.forget(StripeId::new(5));
    bench.cache.forget(StripeId::new(6));
    assert!(!bench.has(5));
}

#[test]
fn fewer_places_than_lists_leave_some_stripes_out() {
    let mut bench = Bench::new(3);
    assert_eq!((bench.take(2), bench.take(3), bench.take(7)), (Some(false), None, None));
    bench.apply();
    assert!(bench.has(2));
}
