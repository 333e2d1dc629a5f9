//! Which stripes were rewritten as a whole a short while ago, so that rewrites are logged where that costs
//! the SSDs less.
//!
//! A stripe written again as a whole costs its SSDs m chunks of parity each time it is replaced; logged it
//! costs them those once, at the next commit, however often it was rewritten before. If the stripe is dirty
//! the commit is due anyway. It costs the log devices m chunks, though, and the commit its reads, so what is
//! rewritten in a row, stripe after stripe, is replaced, dirty or not.
//!
//! The memory is of a fixed size, and volatile: it decides what a rewrite costs and nothing else. Age is
//! counted in whole stripes rewritten, so a volume that is rewritten from one end to the other is replaced
//! throughout, unless it is very small.

use super::dirty::DirtyStripes;
use block::StripeId;

/// Stripes that are remembered at most, each at the place that its number says.
const ENTRIES: u64 = 1024;
/// So many whole stripes later a stripe is not hot any more. Fewer than are remembered, so that a sequential
/// rewrite finds none of its stripes again unless it begins anew after less than that.
const WINDOW: u32 = 1000;
/// Rewrites that run over stripe after stripe side by side, and are still told from single ones.
const STREAMS: u32 = 64;

#[derive(Clone, Copy)]
struct Entry {
    /// The stripe's number plus one; 0 = none.
    stripe: u64,
    /// How many whole stripes had been written before it, which may go round.
    at: u32,
}

/// See the module's documentation.
pub(super) struct HotStripes {
    entries: Box<[Entry]>,
    written: u32,
}

impl HotStripes {
    /// Nothing was written yet.
    pub(super) fn new() -> Self {
        Self { entries: (0..ENTRIES).map(|_| Entry { stripe: 0, at: 0 }).collect(), written: 0 }
    }

    /// Whether a rewrite of a whole stripe costs the SSDs less if it is logged: the stripe is hot, or it is
    /// dirty, so that a commit is due of it anyway, and the rewrite is not one of many in a row.
    pub(super) fn is_better_logged(&self, stripe: StripeId, dirty: &DirtyStripes) -> bool {
        self.has(stripe) || dirty.is_dirty(stripe) && !self.follows(stripe)
    }

    /// Whether the stripe before it was rewritten just now, too.
    fn follows(&self, stripe: StripeId) -> bool {
        stripe
            .get()
            .checked_sub(1)
            .is_some_and(|before| self.age(StripeId::new(before)).is_some_and(|age| age <= STREAMS))
    }

    /// Whether a stripe was rewritten a short while ago.
    fn has(&self, stripe: StripeId) -> bool {
        self.age(stripe).is_some_and(|age| age <= WINDOW)
    }

    /// How many whole stripes were rewritten since this one was, itself included.
    fn age(&self, stripe: StripeId) -> Option<u32> {
        let entry = self.entries[place(stripe)];
        (entry.stripe == stripe.get() + 1).then(|| self.written.wrapping_sub(entry.at))
    }

    /// A stripe written before is written as a whole, and finds room for that: what is put back and comes
    /// again was not rewritten twice.
    pub(super) fn note(&mut self, stripe: StripeId) {
        self.entries[place(stripe)] = Entry { stripe: stripe.get() + 1, at: self.written };
        self.written = self.written.wrapping_add(1);
    }
}

fn place(stripe: StripeId) -> usize {
    usize::try_from(stripe.get() % ENTRIES).expect("less than the number of entries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_hot_until_many_others_were_written() {
        let (mut hot, stripe) = (HotStripes::new(), StripeId::new);
        assert!(!hot.has(stripe(0)));
        for rewritten in 0..u64::from(WINDOW) {
            hot.note(stripe(rewritten));
        }
        assert!(hot.has(stripe(0)) && hot.has(stripe(1)) && !hot.has(stripe(1024)));
        hot.note(stripe(1000));
        assert!(!hot.has(stripe(0)) && hot.has(stripe(1)), "aged");
        hot.note(stripe(1025));
        assert!(!hot.has(stripe(1)) && hot.has(stripe(1025)), "another one is at its place");
    }

    #[test]
    fn of_a_volume_rewritten_from_one_end_to_the_other_nothing_is_hot() {
        let mut hot = HotStripes::new();
        for stripe in (0..4).flat_map(|_| 0..=u64::from(WINDOW)).map(StripeId::new) {
            assert!(!hot.has(stripe), "{stripe:?}");
            hot.note(stripe);
        }
    }
}
