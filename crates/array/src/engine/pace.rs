//! How fast rebuild and scrub go: a limit that can be changed while they run, and a scrub that is paused or given up.
//!
//! The limit is of what moves to and from each main device, on average over them: reads and writes that maintenance plans, not
//! stripes that it passes over because nothing is to be done there.

use super::maintain::UnitKind;
use super::{Engine, EngineError};

/// See the module's documentation.
#[derive(Clone, Copy, Default)]
pub(super) struct Pace {
    /// From when on bytes are counted: since the limit was set, the run began or went on.
    since_ns: u64,
    /// Chunks read and written since.
    moved_chunks: u64,
    /// A scrub waits to be told to go on.
    paused: bool,
    /// A scrub is being given up.
    stopping: bool,
}

impl Pace {
    /// A run begins, or goes on.
    pub(super) fn begin(&mut self, now_ns: u64) {
        *self = Self { since_ns: now_ns, ..Self::default() };
    }

    /// Maintenance has planned so many reads and writes.
    pub(super) fn moved(&mut self, chunk_count: usize) {
        self.moved_chunks += chunk_count as u64;
    }

    /// What decides how maintenance goes on.
    pub(super) fn mark(&self) -> u64 {
        u64::from(self.paused) | u64::from(self.stopping) << 1
    }
}

impl Engine {
    /// Whether another unit of maintenance may start.
    pub(super) fn rate_allows(&self) -> bool {
        let Pace { since_ns, moved_chunks, paused, stopping } = self.maintain.pace;
        if !self.maintain.is_running() || paused || stopping {
            return false;
        }
        let Some(rate) = self.options.rebuild_bytes_per_s else { return true };
        let elapsed_ns = u128::from(self.now_ns.saturating_sub(since_ns));
        let chunk = self.store.config.geometry.chunk_bytes() as u128;
        let of_each = u128::from(moved_chunks) * chunk / self.store.main_count() as u128;
        of_each * 1_000_000_000 <= u128::from(rate) * elapsed_ns
    }

    /// The limit of rebuild and scrub, in bytes per second of each main device.
    pub fn rebuild_rate(&self) -> Option<u64> {
        self.options.rebuild_bytes_per_s
    }

    /// Changes it, also while they run: what went before does not count against it.
    pub fn set_rebuild_rate(&mut self, bytes_per_s: Option<u64>) {
        self.options.rebuild_bytes_per_s = bytes_per_s;
        let pace = &mut self.maintain.pace;
        (pace.since_ns, pace.moved_chunks) = (self.now_ns, 0);
    }

    /// Whether a scrub waits to be told to go on.
    pub fn is_scrub_paused(&self) -> bool {
        self.maintain.is_running() && self.maintain.pace.paused
    }

    /// Lets a scrub wait; `false` if there is none.
    pub fn pause_scrub(&mut self) -> bool {
        let is_scrub = self.maintain.kind() == Some(UnitKind::Scrub);
        self.maintain.pace.paused |= is_scrub;
        is_scrub
    }

    /// Lets it go on; `false` if none waits.
    pub fn resume_scrub(&mut self) -> bool {
        let was_paused = self.is_scrub_paused();
        if was_paused {
            self.maintain.pace.begin(self.now_ns);
        }
        was_paused
    }

    /// Gives a scrub up for good; `false` if there is none. It ends when what is in flight has ended.
    pub fn stop_scrub(&mut self) -> bool {
        let is_scrub = self.maintain.kind() == Some(UnitKind::Scrub);
        self.maintain.pace.stopping |= is_scrub;
        is_scrub
    }

    /// Ends a scrub that was given up, as soon as nothing of it is in flight. `true` while it is being given up.
    pub(super) fn give_up_scrub(&mut self) -> bool {
        if !self.maintain.pace.stopping {
            return false;
        }
        if let Some(answers) = self.maintain.take_idle_run() {
            self.maintain.pace.begin(self.now_ns);
            for request in answers {
                self.chunk_done(request, Some(EngineError::Refused));
            }
        }
        true
    }
}
