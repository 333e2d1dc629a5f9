//! Saying what is durable when nothing more comes.
//!
//! What a flush made durable is named by the next frame. Of the last flush nobody would know, if all copies of its frames were
//! damaged: recovery would serve what was before it, in silence. So when no request has come for a while the superblocks are
//! written anew, on every member, and name it.

use super::Engine;
use crate::planted::{Planted, planted};

impl Engine {
    fn wants_confirmation(&self) -> bool {
        let news = self.durable_through() > self.maintain.confirmed_through();
        news && self.accepts_writes() && !self.maintain.is_halted() && !self.maintain.is_publishing()
    }

    /// When the superblocks are to be written because nothing else is.
    pub(super) fn confirmation_deadline_ns(&self) -> Option<u64> {
        let idle_ns = self.options.confirm_idle_ns.filter(|_| self.wants_confirmation())?;
        Some(self.background.last_request_ns().saturating_add(idle_ns))
    }

    pub(super) fn drive_confirmation(&mut self) {
        if self.confirmation_deadline_ns().is_some_and(|at_ns| at_ns <= self.now_ns) {
            self.health.config_seq += 1;
            self.publish_members();
        }
    }

    /// What superblocks that are written now say is durable.
    pub(super) fn durable_to_name(&self) -> block::Seq {
        if planted(Planted::NameOldFlush) {
            self.maintain.confirmed_through()
        } else {
            self.durable_through()
        }
    }
}
