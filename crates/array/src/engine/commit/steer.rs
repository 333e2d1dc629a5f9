//! What somebody may do to parity commits: let them wait, go on, or be given up; and how far a run is.
//!
//! What waits is nothing that the array needs: while commits are paused, a run still makes room where it
//! gets scarce, and a rebuild has its own. The rest of a run that is cut short stays dirty, as before it. An
//! array that has failed tells whoever waits.

use super::Commits;
use crate::engine::request::After;
use crate::engine::wake::count;
use crate::engine::{Core, EngineError};
use crate::planted::{Planted, planted};

/// A run of parity commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitRun {
    /// Stripes that it has to look at.
    pub total: u64,
    /// Those that it is done with.
    pub done: u64,
    /// When it began, in the engine's time.
    pub started_ns: u64,
}

impl Core {
    /// Whether commits wait that neither room nor a rebuild needs.
    pub(in crate::engine) fn holds_commits(&self) -> bool {
        let commit = &self.board.commit;
        commit.is_paused && !commit.ending && !self.board.upkeep.awaits_commit && self.accepts_writes()
    }

    /// Requests that may wait for ever, for somebody who lets commits go on.
    pub(in crate::engine) fn paused_commits(&self) -> usize {
        if self.holds_commits() { self.board.commit.waiting.len() } else { 0 }
    }

    /// The run under way.
    pub(in crate::engine) fn commit_run(&self) -> Option<CommitRun> {
        let commit = &self.board.commit;
        let open = commit.left + count(commit.units + commit.awaited);
        let total = commit.total.max(open);
        let run = CommitRun { total, done: total - open, started_ns: commit.started_ns };
        commit.is_running().then_some(run)
    }
}

impl Commits {
    /// Lets commits wait; `false` if the scheme has none.
    pub fn pause(&mut self, core: &mut Core) -> bool {
        if core.scheme.commits().is_none() {
            return false;
        }
        core.board.commit.is_paused = true;
        if self.cut_short(core) {
            // It is due still.
            core.board.commit.writes_due = true;
        }
        true
    }

    /// Lets them go on; `false` if none waited.
    pub fn resume(core: &mut Core) -> bool {
        let was_paused = core.board.commit.is_paused;
        core.board.commit.is_paused &= planted(Planted::CommitsStayPaused);
        was_paused
    }

    /// Gives up the run that is under way, due or asked for, and lets later ones go on; `false` if there is
    /// none and none waits: then nothing has changed. Whoever waits is told at once. What is dirty is
    /// committed when there is another reason to.
    pub fn give_up(&mut self, core: &mut Core) -> bool {
        let was_paused = std::mem::take(&mut core.board.commit.is_paused);
        let was_due = std::mem::take(&mut core.board.commit.writes_due);
        let was_cut_short = self.cut_short(core);
        let is_told = self.refuse_waiting(core, EngineError::GivenUp);
        let any = was_paused || was_due || was_cut_short || is_told;
        if any {
            self.idle_at = Some(core.freed.room_made);
        }
        any
    }

    /// The array is about to be stopped: nobody will let commits go on.
    pub fn prepare_stop(&mut self, core: &mut Core) {
        core.board.commit.ending = true;
        if core.board.commit.is_paused {
            self.refuse_waiting(core, EngineError::Stopping);
        }
    }

    /// Ends the run under way with what is in flight, unless the array needs it; whether it was one over
    /// everything dirty. Whoever waits for its end waits for that of another.
    fn cut_short(&mut self, core: &mut Core) -> bool {
        let Core { board, .. } = core;
        board.commit.waiting.append(&mut self.answering);
        if board.upkeep.awaits_commit || !self.is_over_all || board.commit.left == 0 {
            return false;
        }
        board.commit.left = 0;
        board.commit.for_room |= self.is_for_room;
        true
    }

    /// Tells whoever waits; whether anybody did.
    fn refuse_waiting(&mut self, core: &mut Core, error: EngineError) -> bool {
        let waiting = std::mem::take(&mut core.board.commit.waiting);
        let any = !waiting.is_empty();
        for request in waiting.into_iter().filter(|_| !planted(Planted::GivenUpUnanswered)) {
            core.chunk_done(request, Some(error));
        }
        core.refuse_behind_cache(error, |_, after| matches!(after, After::Commit(_))) || any
    }
}
