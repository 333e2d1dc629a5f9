//! The end of an orderly stop: superblocks that say so, once nothing changes any more and a checkpoint holds
//! all there is.
//!
//! Schemes that write in place without a journal record nothing, so at the next start the checkpoint is all
//! there is: what a commit wrote behind it, while the array was being stopped, would be parity that nobody
//! knows of.

use super::wake::Marked;
use super::{Activity, Core, Deadline};
use crate::table::Extent;

impl Core {
    /// Writes superblocks that say the array was stopped in order; answered when they are durable. From now
    /// on nothing is begun that changes what the devices hold: a write after this would run under superblocks
    /// that say there was none.
    pub(super) fn publish_clean(&mut self, tag: u64) {
        let request = self.open_control(tag);
        self.board.members.clean_wanted.push(request);
        self.board.read_only = true;
    }
}

/// See the module's documentation.
pub(super) struct Stop;

impl Stop {
    /// Whether somebody waits for the end, and the superblocks are not being written yet.
    fn is_wanted(core: &Core) -> bool {
        !core.board.members.clean_wanted.is_empty() && !core.board.members.clean
    }

    fn publish(core: &mut Core) {
        core.board.members.clean = true;
        core.health.config_seq += 1;
        core.publish_members();
    }
}

impl Activity for Stop {
    /// Waits for what is under way, has what no checkpoint holds written, then says that all is in order.
    fn drive(&mut self, core: &mut Core) {
        let busy = !core.jobs.table.is_empty() || core.board.checkpoint.is_busy();
        if !Self::is_wanted(core) || busy {
            return;
        }
        if core.store.table.changed_count() == 0 && core.board.checkpoint.holds(core.jobs.retired) {
            Self::publish(core);
        } else {
            core.board.checkpoint.request(Extent::Changes);
        }
    }

    /// No checkpoint is written any more: whoever waits is told as soon as nothing is under way.
    fn drive_frozen(&mut self, core: &mut Core) {
        if Self::is_wanted(core) && core.jobs.table.is_empty() {
            Self::publish(core);
        }
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    /// The request counts as such.
    fn is_busy(&self, _core: &Core) -> bool {
        false
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        Self::is_wanted(core).then_some("a stop")
    }
}

impl Marked for Stop {
    type Mark = [u64; 1];

    fn mark(&self, core: &Core) -> Self::Mark {
        [u64::from(core.board.read_only)]
    }
}
