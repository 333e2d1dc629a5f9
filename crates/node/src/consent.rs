//! Shards that are assembled at the same time agree that all of them can be, before one of them writes.

use array::AssembleError;
use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy)]
struct Count {
    /// Shards that have not voted.
    open: usize,
    /// Whether one of them cannot be assembled.
    refused: bool,
}

/// What they agree on.
pub struct Consent {
    count: Mutex<Count>,
    all_voted: Condvar,
}

impl Consent {
    /// Of so many shards.
    pub fn new(shards: usize) -> Self {
        Self { count: Mutex::new(Count { open: shards, refused: false }), all_voted: Condvar::new() }
    }

    fn vote(&self, can: bool) -> MutexGuard<'_, Count> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        count.open -= 1;
        count.refused |= !can;
        if count.open == 0 {
            self.all_voted.notify_all();
        }
        count
    }
}

/// A shard's vote. If it is dropped before the shard agrees, the shard cannot be assembled.
pub struct Vote<'a> {
    consent: &'a Consent,
    cast: Cell<bool>,
}

impl<'a> Vote<'a> {
    /// One of them.
    pub fn new(consent: &'a Consent) -> Self {
        Self { consent, cast: Cell::new(false) }
    }

    /// This shard can be assembled; waits for the others.
    pub fn agree(&self) -> Result<(), AssembleError> {
        self.cast.set(true);
        let count = self.consent.vote(true);
        let waited = self.consent.all_voted.wait_while(count, |count| count.open > 0);
        let count = waited.unwrap_or_else(PoisonError::into_inner);
        if count.refused { Err(AssembleError::OtherShard) } else { Ok(()) }
    }
}

impl Drop for Vote<'_> {
    fn drop(&mut self) {
        if !self.cast.get() {
            drop(self.consent.vote(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How each of the shards fares, of which some cannot be assembled.
    fn fare(can: &[bool]) -> Vec<bool> {
        let consent = &Consent::new(can.len());
        std::thread::scope(|scope| {
            let shards: Vec<_> = can
                .iter()
                .map(|&can| {
                    scope.spawn(move || {
                        let vote = Vote::new(consent);
                        can && vote.agree().is_ok()
                    })
                })
                .collect();
            shards.into_iter().map(|shard| shard.join().unwrap_or(false)).collect()
        })
    }

    #[test]
    fn all_or_none() {
        assert_eq!(fare(&[true]), [true]);
        assert_eq!(fare(&[true; 5]), [true; 5]);
        assert_eq!(fare(&[true, false, true]), [false; 3]);
        assert_eq!(fare(&[false; 2]), [false; 2]);
    }
}
