//! The end of an orderly stop: superblocks that say so, once nothing changes any more and a checkpoint holds all there is.
//!
//! Schemes that write in place without a journal record nothing, so at the next start the checkpoint is all there is: what a
//! commit wrote behind it, while the array was being stopped, would be parity that nobody knows of.

use super::Engine;

impl Engine {
    /// Writes superblocks that say the array was stopped in order; answered when they are durable. From now on nothing is
    /// begun that changes what the devices hold.
    pub fn publish_clean(&mut self, tag: u64) {
        let request = self.open_control(tag);
        self.maintain.want_clean(request);
    }

    /// Waits for what is under way, has what no checkpoint holds written, then says that all is in order.
    pub(super) fn drive_stop(&mut self) {
        let busy = !self.jobs.is_empty() || (self.checkpoint.is_busy() && !self.frozen);
        if !self.maintain.is_stopping() || busy {
            return;
        }
        let saved = self.store.table.changed_count() == 0 && self.checkpoint.holds(self.retired);
        if !saved && !self.frozen {
            return self.checkpoint.request_incremental();
        }
        self.maintain.begin_clean();
        self.health.config_seq += 1;
        self.publish_members();
    }
}
