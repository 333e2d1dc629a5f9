//! What an operator does to a scrub that is under way.

use super::Session;

impl Session<'_> {
    /// Now and then a scrub that is under way is paused, goes on, gets another rate or is given up; `false` if nothing was done.
    pub(super) fn steer_scrub(&mut self) -> bool {
        let scrubs = self.array.engine_ref().maintenance().is_some_and(|(kind, _, _)| kind == "scrub");
        if !scrubs || !self.machine.rng.chance(1, 2) {
            return false;
        }
        let choice = self.machine.rng.below(4);
        let rate = self.machine.rng.pick(&[None, Some(16 << 20)]);
        let what = ["pauses", "goes on", "is given up", "gets another rate"][choice as usize];
        self.machine.say(|| format!("the scrub {what}"));
        let engine = self.array.engine();
        match choice {
            0 => engine.pause_scrub(),
            1 => engine.resume_scrub(),
            2 => engine.stop_scrub(),
            _ => {
                engine.set_rebuild_rate(rate);
                true
            }
        }
    }
}
