//! Runs the cells that are not there yet, on all processors.

use super::cells::Cell;
use super::engine;
use super::folder::{Folder, key_text};
use super::loads::Loads;
use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::output;
use rustix::time::{ClockId, clock_gettime};
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between lines where nobody looks at a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// Cells that were run now.
    pub run: usize,
    /// Cells that were there.
    pub found: usize,
    /// Why cells failed.
    pub failed: Vec<String>,
}

/// Where workers report.
struct Board<'a> {
    folder: &'a Folder,
    loads: Loads,
    bar: ProgressBar,
    total: usize,
    began: Instant,
    state: Mutex<(Done, Instant)>,
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)).as_secs_f64()
}

/// Runs what is missing of these cells in the folder. A cell that fails keeps none of the others from being
/// run.
pub fn run(cells: &[Cell], folder: &Folder, jobs: usize) -> Result<Done, Failure> {
    let missing: Vec<&Cell> = cells.iter().filter(|cell| !folder.has(cell)).collect();
    let found = cells.len() - missing.len();
    let now = Instant::now();
    let board = Board {
        folder,
        loads: Loads::default(),
        bar: bar(missing.len()),
        total: missing.len(),
        began: now,
        state: Mutex::new((Done { found, ..Done::default() }, now)),
    };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(missing.len()).max(1) {
            scope.spawn(|| {
                while let Some(cell) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    board.one(cell);
                }
            });
        }
    });
    board.bar.finish_and_clear();
    Ok(board.state.into_inner().unwrap_or_else(PoisonError::into_inner).0)
}

impl Board<'_> {
    fn one(&self, cell: &Cell) {
        let before = cpu_seconds();
        let done = engine::run(cell, &self.loads).and_then(|(figures, load_hash)| {
            self.folder.keep(cell, figures, load_hash, cpu_seconds() - before)
        });
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok(()) => state.0.run += 1,
            Err(failure) => {
                let what = format!("{}, seed {}: {failure}", key_text(cell), cell.seed);
                output::warn(format_args!("cell failed: {what}"));
                state.0.failed.push(what);
            }
        }
        self.bar.inc(1);
        let ended = state.0.run + state.0.failed.len();
        if self.bar.is_hidden() && state.1.elapsed() >= BETWEEN_LINES {
            state.1 = Instant::now();
            let left = self.began.elapsed().mul_f64(share(self.total - ended, ended));
            output::warn(format_args!("{ended} of {} cells, about {} s left", self.total, left.as_secs()));
        }
    }
}

/// A part of a count; no number of cells is too large for it.
fn share(part: usize, whole: usize) -> f64 {
    let float = |count: usize| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
    float(part) / float(whole.max(1))
}

fn bar(cells: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("cells [{bar:40}] {pos}/{len}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(u64::try_from(cells).ok(), target).with_style(style)
}
