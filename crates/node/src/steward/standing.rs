//! A thread of shards that stands still. What is asked of the array waits for it; clients of the shards on
//! other threads do not.

use super::Steward;
use crate::running::{Plant, Running};
use std::time::{Duration, Instant};

/// How often it is looked whether it goes on.
pub(super) const LOOK_NS: u64 = 20_000_000;

impl Steward {
    /// Does something with the array; if a thread that runs part of it stands still, not now: then it is for
    /// the caller to try again. If one is gone, serving ends.
    pub(super) fn visit(&mut self, plant: &mut Plant, look: impl FnOnce(&mut Self, &mut Running)) {
        match plant.try_visit(|running| look(self, running)) {
            Ok(visited) => {
                let standing = if visited.is_some() { None } else { plant.stands_still() };
                self.rewatch |= self.trouble.stands_still() != standing.is_some();
                if standing.is_some() {
                    self.look_at = Some(Instant::now() + Duration::from_nanos(LOOK_NS));
                }
                if let Some((level, text)) = self.trouble.note_standing(standing) {
                    self.reactions.note(level, "thread", "", &text);
                }
            }
            Err(error) => self.give_up(error),
        }
    }
}
