//! Parity commits that somebody asks for: begun, paused, let go on, given up; and what became of them.

use super::{Outcome, Steward, Wait};
use crate::control::Reply;
use crate::error::Error;
use crate::logbook::Level;
use crate::operate::Steering;
use crate::refusal::Refusal;
use crate::running::Running;
use crate::status::Commit;
use crate::units::{show_count, show_seconds};
use array::{Done, Engine};

/// One that was asked for and has not ended.
struct Asked {
    tag: u64,
    since_ns: u64,
    /// How many stripes had been committed then.
    committed: u64,
}

/// Those that were asked for.
#[derive(Default)]
pub(super) struct AskedCommits {
    open: Vec<Asked>,
    /// Why the last one that ended did not come to its end.
    failed: Option<String>,
}

impl AskedCommits {
    /// Says of a status what the engines do not know.
    pub fn tell(&self, commit: &mut Option<Commit>, failed: &mut Option<String>) {
        if let Some(commit) = commit {
            commit.asked = !self.open.is_empty();
        }
        failed.clone_from(&self.failed);
    }
}

impl Steward {
    /// Has everything dirty committed; answered at once, or when that is done.
    pub(super) fn commit(&mut self, running: &mut Running, at_once: bool) -> Outcome {
        let tag = running.control(|engine, tag| engine.commit(tag));
        let (since_ns, committed) = (running.now_ns(), stripes_committed(running));
        self.commits.open.push(Asked { tag, since_ns, committed });
        if at_once { Outcome::Answer(Reply::done()) } else { Outcome::Later(Wait::Tag(tag)) }
    }

    /// Lets commits wait or go on, or gives one up.
    pub(super) fn steer_commits(
        &mut self,
        running: &mut Running,
        steering: Steering,
    ) -> Result<Outcome, Error> {
        let steer = |engine: &mut Engine| match steering {
            Steering::Pause => engine.pause_commits(),
            Steering::Resume => engine.resume_commits(),
            Steering::Stop => engine.stop_commit(),
        };
        // Every shard is told, whatever the ones before it answered.
        let any = running.engines_mut().map(steer).filter(|&done| done).count() > 0;
        let text = match (any, steering) {
            (true, Steering::Pause) => {
                "parity commits wait until they are told to go on; what makes room for writes, or is part of a rebuild, is committed"
            }
            (true, Steering::Resume) => "parity commits go on",
            (true, Steering::Stop) => "the parity commit is given up",
            (false, Steering::Pause) => return Err(Refusal::CommitsNothing.into()),
            (false, Steering::Resume) => return Err(Refusal::NoCommitPaused.into()),
            (false, Steering::Stop) => return Err(Refusal::NoCommit.into()),
        };
        self.note("commit", text);
        Ok(Outcome::Answer(Reply::done()))
    }

    /// Tells what became of a commit, if it is one that has been answered.
    pub(super) fn report_commit(&mut self, done: &Done, running: &Running) {
        let Some(at) = self.commits.open.iter().position(|asked| asked.tag == done.tag) else { return };
        let asked = self.commits.open.swap_remove(at);
        let stripes = show_count(stripes_committed(running).saturating_sub(asked.committed));
        let seconds = show_seconds(running.now_ns().saturating_sub(asked.since_ns) / 1_000_000_000);
        let text = format!("parity commit: {stripes} stripes in {seconds}");
        self.commits.failed = done.result.err().map(|error| running.named(error).to_string());
        match &self.commits.failed {
            None => self.reactions.tell_end(Level::Info, "commit", "", &text),
            Some(why) => self.reactions.tell_end(Level::Warning, "commit", "", &format!("{text}; {why}")),
        }
    }
}

fn stripes_committed(running: &Running) -> u64 {
    running.engines().map(|engine| engine.stats().stripes_committed).sum()
}
