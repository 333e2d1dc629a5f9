//! RAID-level garbage collection beside foreground I/O (W-22, W-31): one step at a time, two when writes wait
//! for space.

use super::job::Job;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, JobOwner};
use crate::scheme::{CollectOutcome, Collects};
use block::slab::Key;

/// Steps in flight while there is room, and when there is none.
const STEPS: usize = 1;
const STEPS_WHEN_SHORT: usize = 2;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Collector {
    /// Steps under way.
    steps: usize,
}

impl Collector {
    /// A step has retired, or could not read what it needs.
    pub(super) fn job_ended(&mut self, core: &mut Core, key: Key<Job>) {
        self.steps -= 1;
        if core.jobs.table[key].lost {
            let collects = core.scheme.collects_mut().expect("only such schemes plan steps");
            collects.step_lost(&core.jobs.table[key].plan);
        }
        core.board.short_of_space = false;
        core.give_job(key);
    }

    /// Plans and starts a step; `false` if there is none now.
    fn start_step(&mut self, core: &mut Core) -> bool {
        let key = core.take_job(JobOwner::Collector);
        let collects = core.scheme.collects_mut().expect("asked whether a step is wanted");
        let plan = &mut core.jobs.table[key].plan;
        let outcome = collects.plan_collect(&mut core.store, &mut core.pool, plan);
        if outcome != CollectOutcome::Planned {
            core.give_job(key);
            return false;
        }
        self.steps += 1;
        core.arrange_reads(key);
        core.start_job(key);
        while let Some(key) = core.take_ended(JobOwner::Collector) {
            self.job_ended(core, key);
        }
        true
    }
}

impl Activity for Collector {
    fn drive(&mut self, core: &mut Core) {
        let steps_max = if core.board.short_of_space { STEPS_WHEN_SHORT } else { STEPS };
        while self.steps < steps_max
            && core.scheme.collects().is_some_and(Collects::wants_collection)
            && core.accepts_writes()
            && core.may_record()
            && self.start_step(core)
        {}
        if core.scheme.collects().is_some_and(Collects::wants_released) && core.accepts_writes() {
            core.board.flush.want_internal();
        }
    }

    /// Nothing is moved in a frozen array.
    fn drive_frozen(&mut self, _core: &mut Core) {}

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    /// Its jobs count as such.
    fn is_busy(&self, _core: &Core) -> bool {
        false
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, _core: &Core) -> Option<&'static str> {
        (self.steps > 0).then_some("a step of garbage collection")
    }
}

impl Marked for Collector {
    type Mark = [u64; 2];

    fn mark(&self, core: &Core) -> Self::Mark {
        [count(self.steps), u64::from(core.scheme.can_gain_room())]
    }
}
