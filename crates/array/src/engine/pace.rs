//! How fast rebuild and scrub go: a limit that can be changed while they run, and a scrub that is paused or given up.
//!
//! The limit is per main device: a stripe that is looked at counts as one chunk on each. What went before a change does not count.

use super::history::ScrubEnd;
use super::maintain::WorkKind;
use super::{Engine, EngineError};
use crate::planted::{Planted, planted};

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

    /// What decides how maintenance goes on.
    pub(super) fn mark(&self) -> u64 {
        u64::from(self.paused) | u64::from(self.stopping) << 1
    }
}

impl Engine {
    /// Whether another unit of maintenance may start.
    pub(super) fn rate_allows(&self) -> bool {
        let Pace { since_ns, since_done, paused, stopping } = self.maintain.pace;
        let Some((_, progress, _)) = self.maintenance() else { return false };
        if paused || stopping {
            return false;
        }
        let Some(rate) = self.options.rebuild_bytes_per_s else { return true };
        let elapsed_ns = u128::from(self.now_ns.saturating_sub(since_ns));
        let chunk = self.store.config.geometry.chunk_bytes() as u128;
        let of_each = u128::from(progress.done.saturating_sub(since_done)) * chunk;
        of_each * 1_000_000_000 <= u128::from(rate) * elapsed_ns
    }

    /// The limit of rebuild and scrub, in bytes per second of each main device.
    pub fn rebuild_rate(&self) -> Option<u64> {
        self.options.rebuild_bytes_per_s
    }

    /// Changes it, also while they run: what went before does not count against it.
    pub fn set_rebuild_rate(&mut self, bytes_per_s: Option<u64>) {
        self.options.rebuild_bytes_per_s = bytes_per_s;
        let done = self.maintenance().map_or(0, |(_, progress, _)| progress.done);
        let pace = &mut self.maintain.pace;
        (pace.since_ns, pace.since_done) = (self.now_ns, done);
    }

    /// Whether a scrub waits to be told to go on.
    pub fn is_scrub_paused(&self) -> bool {
        self.maintain.is_running() && self.maintain.pace.paused
    }

    /// Lets a scrub wait; `false` if there is none.
    pub fn pause_scrub(&mut self) -> bool {
        let is_scrub = self.maintain.kind() == Some(WorkKind::Scrub);
        self.maintain.pace.paused |= is_scrub;
        is_scrub
    }

    /// Lets it go on; `false` if none waits.
    pub fn resume_scrub(&mut self) -> bool {
        let was_paused = self.is_scrub_paused();
        if was_paused && !planted(Planted::ForgetResume) {
            let done = self.maintenance().map_or(0, |(_, progress, _)| progress.done);
            self.maintain.pace.begin(self.now_ns, done);
        }
        was_paused
    }

    /// Gives a scrub up for good; `false` if there is none. It ends when what is in flight has ended.
    pub fn stop_scrub(&mut self) -> bool {
        let is_scrub = self.maintain.kind() == Some(WorkKind::Scrub);
        self.maintain.pace.stopping |= is_scrub;
        is_scrub
    }

    /// Ends a scrub that was given up, as soon as nothing of it is in flight. `true` while it is being given up.
    pub(super) fn give_up_scrub(&mut self) -> bool {
        if !self.maintain.pace.stopping {
            return false;
        }
        if let Some((found, began, answers)) = self.maintain.take_idle_run(self.stats.healed) {
            self.record_scrub(ScrubEnd::GivenUp, &found, began);
            self.note_work_ended(WorkKind::Scrub, &answers, found, began);
            self.patrol.forsake();
            self.maintain.pace.begin(self.now_ns, 0);
            for request in answers {
                self.chunk_done(request, Some(EngineError::GivenUp));
            }
        }
        true
    }
}
