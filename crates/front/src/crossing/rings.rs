//! Whether an event that threads ring by is to be read. What it stands on is named by the parent module, so
//! that a model checker can take its place (`tests/interleavings.rs`).

use super::atomics::{AtomicU64, Ordering};

/// How often an event was told of that counts what is told, against what was taken from it: whoever would
/// take knows whether there is anything, without looking at the event.
///
/// A ring is noted before the event is told of it. So what was noted and not taken is there, or is about to
/// come; a ring that is noted too late to be seen wakes the sleeper once more.
pub struct Rings {
    noted: AtomicU64,
    taken: AtomicU64,
}

impl Rings {
    /// Of a new event.
    pub fn new() -> Self {
        Self { noted: AtomicU64::new(0), taken: AtomicU64::new(0) }
    }

    /// The event is about to be told of one more.
    pub fn note(&self) {
        self.noted.fetch_add(1, Ordering::Release);
    }

    /// Whether there is something to be taken, or about to be.
    pub fn are_due(&self) -> bool {
        self.noted.load(Ordering::Acquire) != self.taken.load(Ordering::Relaxed)
    }

    /// So many were taken from the event; by its one sleeper.
    pub fn take(&self, count: u64) {
        self.taken.fetch_add(count, Ordering::Relaxed);
    }
}
