//! Records that could not be read when their keys were set anew.
//!
//! Such a record stays in the index beside the newer one, since it may as well be that of another key: 33
//! bits of a hash are not a key. Should it be readable again, it must not count for the key that was set:
//! no lookup and no scan takes it for that, and compaction, which would give it a new number, lets go of it.
//! After a restart the newer one alone counts, by its number.

use crate::hash::KeyHash;
use crate::layout::Place;
use std::collections::HashSet;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Outlived {
    records: HashSet<(Place, KeyHash)>,
}

impl Outlived {
    /// The key with this hash has a newer record than what it may have at this place.
    pub(super) fn note(&mut self, place: Place, hash: KeyHash) {
        self.records.insert((place, hash));
    }

    /// Whether what is at a place is out of date if it is of this key.
    pub(super) fn has(&self, place: Place, hash: KeyHash) -> bool {
        !self.records.is_empty() && self.records.contains(&(place, hash))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets those whose segments are gone.
    pub(super) fn retain(&mut self, is_there: impl Fn(Place) -> bool) {
        self.records.retain(|(place, _)| is_there(*place));
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }
}
