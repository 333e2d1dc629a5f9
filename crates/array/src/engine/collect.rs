//! RAID-level garbage collection beside foreground I/O (W-22, W-31): one step at a time, two when writes wait for space.

use super::Engine;
use super::job::JobKind;
use crate::scheme::{CollectOutcome, Collects};

/// Steps in flight while there is room, and when there is none.
const STEPS: usize = 1;
const STEPS_WHEN_SHORT: usize = 2;

/// Steps of garbage collection under way.
#[derive(Default)]
pub(super) struct Collection {
    steps: usize,
    /// Writes found no space since the last step ended.
    short: bool,
}

impl Collection {
    pub(super) fn steps(&self) -> usize {
        self.steps
    }
}

impl Engine {
    /// Writes wait for space.
    pub(super) fn hurry_collection(&mut self) {
        self.collection.short = true;
    }

    pub(super) fn drive_collection(&mut self) {
        let steps_max = if self.collection.short { STEPS_WHEN_SHORT } else { STEPS };
        while self.collection.steps < steps_max
            && self.scheme.collects().is_some_and(Collects::wants_collection)
            && self.accepts_writes()
            && self.may_record()
        {
            let key = self.take_job(JobKind::Collect);
            let mut plan = std::mem::take(&mut self.jobs[key].plan);
            let collects = self.scheme.collects_mut().expect("asked above");
            let outcome = collects.plan_collect(&mut self.store, &mut self.pool, &mut plan);
            if self.options.sort_units {
                plan.reads.sort_unstable_by_key(|read| read.addr);
            }
            self.jobs[key].plan = plan;
            if outcome != CollectOutcome::Planned {
                self.give_job(key);
                break;
            }
            self.collection.steps += 1;
            self.start_job(key);
        }
        if self.scheme.collects().is_some_and(Collects::wants_released) && self.accepts_writes() {
            self.flush.want_internal();
        }
    }

    /// A step has retired, or could not read what it needs.
    pub(super) fn collection_step_done(&mut self) {
        self.collection.steps -= 1;
        self.collection.short = false;
    }
}
