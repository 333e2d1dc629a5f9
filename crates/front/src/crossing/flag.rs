//! Whether a thread sleeps, as others may see it. What it stands on is named by the parent module, so that a
//! model checker can take its place (`tests/interleavings.rs`).

use super::atomics::{AtomicBool, Ordering, fence};

/// Says that a thread sleeps.
///
/// The sleeper says so before it looks for work for the last time; whoever brings work looks whether it
/// sleeps after the work is there. A fence between the two steps on each side sees to it that one of them
/// notices the other.
pub struct Flag {
    asleep: AtomicBool,
}

impl Flag {
    /// Of a thread that is awake.
    pub fn new() -> Self {
        Self { asleep: AtomicBool::new(false) }
    }

    /// The thread goes to sleep, unless it finds work when it looks once more after this.
    pub fn doze(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The thread is awake again.
    pub fn wake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Asked by whoever has brought work: whether he is the one who has to wake the thread.
    pub fn must_ring(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed)
    }
}
