//! How fast rebuild and scrub go: a limit that can be changed while they run, and a scrub that is paused or
//! given up.
//!
//! The limit is per main device: a stripe that is looked at counts as one chunk on each. What went before a
//! change does not count.

use super::{Maintenance, MaintenanceReport, WorkKind};
use crate::engine::history::ScrubEnd;
use crate::engine::request::Request;
use crate::engine::{Core, EngineError};
use crate::planted::{Planted, planted};
use block::slab::Key;

/// See the module's documentation.
#[derive(Clone, Copy, Default)]
pub(super) struct Pace {
    /// From when on stripes are counted: since the limit was set, the run began or went on.
    since_ns: u64,
    /// How many had been looked at then.
    since_done: u64,
    /// A scrub waits to be told to go on.
    paused: bool,
    /// A scrub is being given up.
    stopping: bool,
}

impl Pace {
    /// A run begins, or goes on, with so many stripes done.
    pub(super) fn begin(&mut self, now_ns: u64, done: u64) {
        *self = Self { since_ns: now_ns, since_done: done, ..Self::default() };
    }

    /// So many stripes were looked at that nothing had to be done of.
    pub(super) fn pass(&mut self, count: u64) {
        self.since_done += count;
    }

    /// What decides how maintenance goes on.
    pub(super) fn mark(&self) -> u64 {
        u64::from(self.paused) | u64::from(self.stopping) << 1
    }
}

impl Maintenance {
    /// Whether another unit of maintenance may start.
    pub(super) fn rate_allows(&self, core: &Core) -> bool {
        let Pace { since_ns, since_done, paused, stopping } = self.pace;
        let Some(run) = &self.run else { return false };
        if paused || stopping {
            return false;
        }
        let Some(rate) = core.options.rebuild_bytes_per_s else { return true };
        let elapsed_ns = u128::from(core.now_ns.saturating_sub(since_ns));
        let chunk = core.store.config.geometry.chunk_bytes() as u128;
        let of_each = u128::from(run.progress.done.saturating_sub(since_done)) * chunk;
        of_each * 1_000_000_000 <= u128::from(rate) * elapsed_ns
    }

    /// Changes it, also while they run: what went before does not count against it.
    pub fn set_rebuild_rate(&mut self, core: &mut Core, bytes_per_s: Option<u64>) {
        core.options.rebuild_bytes_per_s = bytes_per_s;
        let done = self.done();
        let pace = &mut self.pace;
        (pace.since_ns, pace.since_done) = (core.now_ns, done);
    }

    /// Whether a scrub waits to be told to go on.
    pub fn is_scrub_paused(&self) -> bool {
        self.run.is_some() && self.pace.paused
    }

    /// Lets a scrub wait; `false` if there is none.
    pub fn pause_scrub(&mut self) -> bool {
        let is_scrub = self.is_scrub();
        self.pace.paused |= is_scrub;
        is_scrub
    }

    /// Lets it go on; `false` if none waits.
    pub fn resume_scrub(&mut self, core: &mut Core) -> bool {
        let was_paused = self.is_scrub_paused();
        if was_paused && !planted(Planted::ForgetResume) {
            let done = self.done();
            self.pace.begin(core.now_ns, done);
        }
        was_paused
    }

    /// Gives a scrub up for good; `false` if there is none. It ends when what is in flight has ended.
    pub fn stop_scrub(&mut self) -> bool {
        let is_scrub = self.is_scrub();
        self.pace.stopping |= is_scrub;
        is_scrub
    }

    /// Ends a scrub that was given up, as soon as nothing of it is in flight. `true` while it is being given
    /// up.
    pub(super) fn give_up_scrub(&mut self, core: &mut Core) -> bool {
        if !self.pace.stopping {
            return false;
        }
        if let Some((found, began, answers)) = self.take_idle_run(core) {
            core.record_scrub(ScrubEnd::GivenUp, &found, began);
            core.note_work_ended(WorkKind::Scrub, &answers, found, began);
            core.board.metadata.forsake();
            self.pace.begin(core.now_ns, 0);
            for request in answers {
                core.chunk_done(request, Some(EngineError::GivenUp));
            }
        }
        true
    }

    /// Ends a scrub that has nothing in flight, to be continued never: what it found, when it began, and the
    /// answers that wait for its end.
    fn take_idle_run(&mut self, core: &mut Core) -> Option<(MaintenanceReport, u64, Vec<Key<Request>>)> {
        let run = self.run.take_if(|run| run.units == 0 && run.awaited.is_empty())?;
        self.last = self.report_of(core, &run);
        core.board.members.superblock.scrub_cursor = 0;
        Some((self.last, run.progress.started_ns, run.answers))
    }

    fn is_scrub(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.kind == WorkKind::Scrub)
    }

    fn done(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.progress.done)
    }
}
