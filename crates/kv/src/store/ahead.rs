//! Looking ahead: what asks will look at is touched before their turn, of many at once.
//!
//! Index, places of kept records and records lie where no cache of the processor holds them, and each leads
//! to the next. One ask after the other waits for each in turn; the same loads of several wait together.
//! Nothing is decided here: an ask looks again when its turn has come.

use super::{HeldBack, Store};
use crate::ask::Ask;
use crate::layout::UNIT_BYTES;
use std::hint::black_box;

/// Asks that are looked at together. Their lines stay in the first cache until their turn.
pub(super) const AHEAD: usize = 16;

impl Store {
    /// Looks at what the next [`AHEAD`] asks will look at.
    pub(super) fn look_ahead(&self) {
        let (mut gets, mut others) = ([0; AHEAD], [None; AHEAD]);
        let (mut get_count, mut other_count) = (0, 0);
        for held in self.work.held_back.iter().take(AHEAD) {
            if matches!(held.ask, Ask::Get { .. }) {
                gets[get_count] = held.hash.main;
                get_count += 1;
            } else {
                others[other_count] = Some(held);
                other_count += 1;
            }
        }
        self.look_for_gets(&gets[..get_count]);
        if other_count > 1 {
            self.look_for_others(&others);
        }
    }

    /// A GET goes from the index to the place of the record and to its bytes.
    fn look_for_gets(&self, hashes: &[u64]) {
        if hashes.len() < 2 {
            return;
        }
        let mut places = [None; AHEAD];
        for (place, &hash) in places.iter_mut().zip(hashes) {
            *place = self.index.candidates(hash).get(0);
        }
        let mut found = [None; AHEAD];
        for (found, place) in found.iter_mut().zip(&places) {
            *found = place.and_then(|place| self.kept.find(place.payload * UNIT_BYTES));
        }
        for place in found.iter().flatten() {
            black_box(self.kept.ends(*place));
        }
    }

    /// Others go from the cache to the index, which they change, and to what is kept of the record.
    fn look_for_others(&self, asks: &[Option<&HeldBack>; AHEAD]) {
        for held in asks.iter().flatten() {
            black_box(self.index.candidates(held.hash.main).get(0));
        }
        let mut places = [None; AHEAD];
        for (place, held) in places.iter_mut().zip(asks.iter().flatten()) {
            *place = self.cache.look_at(held.hash.main, held.ask.key());
        }
        for place in places.iter().flatten() {
            black_box(self.kept.find(*place));
        }
    }
}
