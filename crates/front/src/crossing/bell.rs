//! Waking a thread that sleeps, and only then.

use super::flag::Flag;
use super::rings::Rings;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The bell of a thread: it rings only if the thread has said that it sleeps.
pub struct Bell {
    event: OwnedFd,
    flag: Flag,
    rings: Rings,
}

impl Bell {
    /// A bell of a thread that is awake.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { event, flag: Flag::new(), rings: Rings::new() })
    }

    /// The thread goes to sleep, unless it finds work when it looks once more after this.
    pub fn doze(&self) {
        self.flag.doze();
    }

    /// The thread is awake again; to be called once after [`Bell::doze`].
    pub fn wake(&self) {
        self.flag.wake();
        // Mostly it has not rung: what is read in vain costs more than the turn. If it is about to ring, the
        // next sleep is a short one.
        let mut count = [0; 8];
        if self.rings.are_due() && rustix::io::read(&self.event, &mut count) == Ok(8) {
            self.rings.take(u64::from_ne_bytes(count));
        }
    }

    /// There is work for the thread: wakes it if it sleeps.
    pub fn ring(&self) {
        if self.flag.must_ring() {
            self.ring_anyway();
        }
    }

    /// Wakes the thread at its next look, asleep or not.
    pub fn ring_anyway(&self) {
        self.rings.note();
        // It can only be full, and then it rings already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
