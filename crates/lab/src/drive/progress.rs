//! How far a long run is: a bar on a terminal, plain lines elsewhere; nothing if it takes less than two
//! seconds.

use crate::failure::Failure;
use crate::watch::Shown;
use indicatif::{ProgressBar, ProgressStyle};
use node::output;
use node::units::show_count;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Shorter runs show nothing.
const QUIET: Duration = Duration::from_secs(2);
/// Time between plain lines.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// The clock is read once in so many calls.
const CALLS_PER_LOOK: u32 = 256;

/// See the module's documentation.
pub struct Progress<'a> {
    shown: Shown<'a>,
    what: &'static str,
    total: u64,
    started: Instant,
    calls: u32,
    bar: Option<ProgressBar>,
    next_line: Duration,
}

impl<'a> Progress<'a> {
    /// A run of `total` requests, told where it is to be.
    pub fn of(shown: Shown<'a>, what: &'static str, total: u64) -> Result<Self, Failure> {
        shown.begin(what, total)?;
        Ok(Self { shown, what, total, started: Instant::now(), calls: 0, bar: None, next_line: QUIET })
    }

    /// The number of requests, if it was not known before.
    pub fn set_total(&mut self, total: u64) -> Result<(), Failure> {
        self.total = total;
        self.shown.begin(self.what, total)
    }

    /// `done` requests are done; fails if the run is to stop.
    pub fn show(&mut self, done: u64) -> Result<(), Failure> {
        match self.shown {
            Shown::Progress => {
                self.calls += 1;
                if self.calls >= CALLS_PER_LOOK {
                    self.calls = 0;
                    self.look(done);
                }
                Ok(())
            }
            Shown::Nothing | Shown::Watched(_) | Shown::Stoppable(_) => self.shown.show(done),
        }
    }

    fn look(&mut self, done: u64) {
        let elapsed = self.started.elapsed();
        if elapsed < self.next_line {
            return;
        }
        if std::io::stderr().is_terminal() {
            self.next_line = elapsed + Duration::from_millis(100);
            self.bar.get_or_insert_with(|| bar(self.what, self.total, self.started)).set_position(done);
        } else {
            self.next_line = elapsed + BETWEEN_LINES;
            let rate = done as f64 / elapsed.as_secs_f64();
            let left = self.total.saturating_sub(done) as f64 / rate.max(1e-9);
            output::warn(format_args!(
                "{}: {:.0} % ({} of {} requests), {} requests/s, {left:.0} s left",
                self.what,
                100.0 * done as f64 / self.total.max(1) as f64,
                show_count(done),
                show_count(self.total),
                show_count(rate as u64),
            ));
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, total: u64, started: Instant) -> ProgressBar {
    let template = "{msg} [{bar:40}] {percent} % {pos}/{len} requests, {per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style).with_message(what).with_elapsed(started.elapsed())
}
