//! Saying what is durable when nothing more comes.
//!
//! What a flush made durable is named by the next frame. Of the last flush nobody would know, if all copies
//! of its frames were damaged: recovery would serve what was before it, in silence. So when no request has
//! come for a while the superblocks are written anew, on every member, and name it. Where frames are on log
//! devices alone, that is done under load, too, from time to time: those put back together from a copy of
//! before would pass for the newest state otherwise, back to the last checkpoint. No answer waits for it.

use super::wake::Marked;
use super::{Activity, Core, Deadline};
use crate::planted::{Planted, planted};

impl Core {
    /// What superblocks that are written now say is durable.
    pub(super) fn durable_to_name(&self) -> block::Seq {
        if planted(Planted::NameOldFlush) {
            self.board.members.confirmed_through
        } else {
            self.board.flush.durable()
        }
    }
}

/// Under load they are written each time so many of these pauses have gone by, if they are at all.
const PAUSES_UNDER_LOAD: u64 = 5;

/// See the module's documentation.
pub(super) struct Confirmation;

impl Confirmation {
    /// When the superblocks are to be written because nothing else is, or has not been for long.
    fn due_ns(core: &Core) -> Option<u64> {
        let news = core.board.flush.durable() > core.board.members.confirmed_through;
        let wanted = news && core.accepts_writes() && !core.board.halted && core.may_name_durable();
        let idle_ns = core.options.confirm_idle_ns.filter(|_| wanted)?;
        let idle = core.board.last_request_ns.saturating_add(idle_ns);
        let under_load = idle_ns.saturating_mul(PAUSES_UNDER_LOAD).saturating_add(core.board.members.told_ns);
        let is_on_logs_alone = core.store.config.frame_logs() > 0;
        Some(if is_on_logs_alone { idle.min(under_load) } else { idle })
    }
}

impl Activity for Confirmation {
    fn drive(&mut self, core: &mut Core) {
        if Self::due_ns(core).is_some_and(|at_ns| at_ns <= core.now_ns) {
            core.publish_durable();
        }
    }

    /// A frozen array promises nothing any more.
    fn drive_frozen(&mut self, _core: &mut Core) {}

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    fn is_busy(&self, _core: &Core) -> bool {
        false
    }

    fn deadline(&self, core: &Core) -> Option<Deadline> {
        Self::due_ns(core).map(Deadline::Work)
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, _core: &Core) -> Option<&'static str> {
        None
    }
}

impl Marked for Confirmation {
    type Mark = [u64; 0];

    /// What it goes by is in the marks of others.
    fn mark(&self, _core: &Core) -> Self::Mark {
        []
    }
}
