//! What SIGHUP changed and the array must be told.

use super::Steward;
use crate::running::Plant;

impl Steward {
    pub(super) fn pass_rate_on(&mut self, plant: &mut Plant) {
        if let Some(rate) = self.reloading.take_rate() {
            self.visit(plant, |_, running| running.set_rebuild_rate(rate));
        }
    }
}
