//! Progress of rebuild, scrub and commit: a bar with rate and time left on a terminal, else a line now and
//! then.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::event::work_name;
use node::output;
use node::screen::{describe_commit, describe_replacement, describe_work};
use node::status::{Commit, Replacement, Work};
use node::units::{show_count, show_rate, show_seconds};
use node::waiting::Step;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Nothing is shown of work that is over sooner.
const QUIET: Duration = Duration::from_secs(2);
/// Time between lines when there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// See the module's documentation.
pub struct Progress {
    started: Instant,
    last_line: Option<Instant>,
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl Progress {
    /// Work begins now.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            last_line: None,
            bar: None,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// This is how far it is.
    pub fn show(&mut self, step: Step<'_>) {
        if self.started.elapsed() < QUIET {
            return;
        }
        if !self.terminal {
            if self.last_line.is_none_or(|last| last.elapsed() >= LINES) {
                self.last_line = Some(Instant::now());
                output::warn(match step {
                    Step::Work(work) => describe_work(work),
                    Step::Copy(name, copying) => describe_replacement(name, copying),
                    Step::Commit(commit) => describe_commit(commit),
                });
            }
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            let style = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3} %  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        match step {
            Step::Work(work) => Self::draw_work(bar, work),
            Step::Copy(name, copying) => Self::draw_copy(bar, name, copying),
            Step::Commit(commit) => Self::draw_commit(bar, commit),
        }
    }

    fn draw_copy(bar: &ProgressBar, name: &str, copying: &Replacement) {
        let eta =
            copying.eta_s.map(|seconds| format!(", {} left", show_seconds(seconds))).unwrap_or_default();
        bar.set_prefix(format!("{} becomes what {name} is", copying.path.display()));
        bar.set_length(copying.total_bytes);
        bar.set_position(copying.done_bytes);
        bar.set_message(format!("{}{eta}", show_rate(copying.bytes_per_s)));
    }

    fn draw_work(bar: &ProgressBar, work: &Work) {
        let eta = work.eta_s.map(|seconds| format!(", {} left", show_seconds(seconds))).unwrap_or_default();
        let of =
            if work.devices.is_empty() { String::new() } else { format!(" of {}", work.devices.join(", ")) };
        bar.set_prefix(format!("{}{of}", work_name(work.kind)));
        bar.set_length(work.total);
        bar.set_position(work.done);
        let held_up = work.held_up_by.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        bar.set_message(format!("{}{eta}{held_up}", show_rate(work.device_bytes_per_s)));
    }

    fn draw_commit(bar: &ProgressBar, commit: &Commit) {
        let Some(run) = commit.run else { return bar.set_prefix("commit") };
        let eta = run.eta_s.map(|seconds| format!(", {} left", show_seconds(seconds))).unwrap_or_default();
        bar.set_prefix("commit");
        bar.set_length(run.total);
        bar.set_position(run.done);
        bar.set_message(format!("{} stripes/s{eta}", show_count(run.stripes_per_s)));
    }

    /// The work is over.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
