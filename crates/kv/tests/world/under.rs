//! What a world's store stands on.

use super::disk::Disk;
use kv::blocks::{Ended, Issued, Medium};

/// A volume that carries out requests one by one, in an order of its own, and loses power.
pub trait Under: Medium {
    /// The simulated disk that it is, which can rot, fail and grow.
    fn disk(&mut self) -> Option<&mut Disk>;

    /// The same, to look at.
    fn disk_ref(&self) -> Option<&Disk>;

    /// Something is asked.
    fn submit(&mut self, issued: Issued);

    /// Some time passes; a request may end.
    fn step(&mut self) -> Option<Ended>;

    /// Whether anything that was asked has not ended.
    fn busy(&self) -> bool;

    /// So many requests are carried out, and then none, until power fails.
    fn carry_at_most(&mut self, count: u64);

    /// Whether that was reached.
    fn is_carried_out(&self) -> bool;

    /// Power fails, and comes back.
    fn cut(&mut self);
}

impl Under for Disk {
    fn disk(&mut self) -> Option<&mut Disk> {
        Some(self)
    }

    fn disk_ref(&self) -> Option<&Disk> {
        Some(self)
    }

    fn submit(&mut self, issued: Issued) {
        Self::submit(self, issued);
    }

    fn step(&mut self) -> Option<Ended> {
        Self::step(self)
    }

    fn busy(&self) -> bool {
        Self::busy(self)
    }

    fn carry_at_most(&mut self, count: u64) {
        self.carried_max = Some(count);
    }

    fn is_carried_out(&self) -> bool {
        self.carried_max == Some(0)
    }

    fn cut(&mut self) {
        Self::cut(self);
    }
}
