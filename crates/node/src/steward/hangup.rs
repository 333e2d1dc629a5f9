//! What SIGHUP changed and the array must be told.

use super::Steward;
use crate::running::Plant;

impl Steward {
    pub(super) fn pass_rate_on(&mut self, plant: &mut Plant) {
        if self.trouble.stands_still() {
            return;
        }
        if let Some(rate) = self.reloading.take_rate()
            && let Err(error) = plant.visit(|running| running.set_rebuild_rate(rate))
        {
            self.give_up(error);
        }
    }
}
