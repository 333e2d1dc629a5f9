//! Waking a thread that sleeps, and only then.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// The bell of a thread: it rings only if the thread has said that it sleeps.
///
/// The sleeper says so before it looks for work for the last time; whoever brings work looks whether it
/// sleeps after the work is there. A fence between the two steps on each side sees to it that one of them notices
/// the other.
pub struct Bell {
    event: OwnedFd,
    asleep: AtomicBool,
}

impl Bell {
    /// A bell of a thread that is awake.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { event, asleep: AtomicBool::new(false) })
    }

    /// The thread goes to sleep, unless it finds work when it looks once more after this.
    pub fn doze(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The thread is awake again; to be called once after [`Bell::doze`].
    pub fn wake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        // It may not have rung. If it is about to, the next sleep is a short one.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    /// There is work for the thread: wakes it if it sleeps.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.ring_anyway();
        }
    }

    /// Wakes the thread at its next look, asleep or not.
    pub fn ring_anyway(&self) {
        // It can only be full, and then it rings already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
