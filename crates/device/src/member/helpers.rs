//! Threads that help with synchronous transfers, and wait for the next ones behind them.
//!
//! A start makes hundreds of short rounds of transfers, one after the other: threads made for each round
//! would take longer than what they transfer.
#![allow(unsafe_code, reason = "threads that stay help with what is only borrowed")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for more.
const IDLE: Duration = Duration::from_secs(2);

/// What threads help with; whoever has finished it may be asked to begin it again.
type Task<'a> = dyn Fn() + Sync + 'a;

/// See the module's documentation. Threads are made when they are first wanted, and end when nothing was
/// wanted for a while.
#[derive(Default)]
pub(super) struct Helpers {
    board: Arc<Board>,
}

#[derive(Default)]
struct Board {
    state: Mutex<State>,
    /// There is something to do.
    wanted: Condvar,
    /// Nobody is at it any more.
    left: Condvar,
}

#[derive(Default)]
struct State {
    task: Option<&'static Task<'static>>,
    /// How often it may still be begun.
    turns: usize,
    /// How many are at it.
    busy: usize,
    /// How many threads there are.
    threads: usize,
    has_panicked: bool,
    /// Nobody will want anything any more.
    is_closed: bool,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Helpers {
    /// Does `task` with the help of so many threads, all of which have left it when this returns; the
    /// caller's thread does `first` before. Another task meanwhile, of another thread, has no help.
    ///
    /// # Panics
    /// If a helper panicked.
    pub fn run(&self, helpers: usize, task: &Task<'_>, first: Option<&mut dyn FnMut()>) {
        let lent = self.lend(helpers, task);
        if let Some(first) = first {
            first();
        }
        task();
        drop(lent);
    }

    /// Lends a task to helpers, unless they are at another one.
    fn lend<'a>(&'a self, helpers: usize, task: &'a Task<'a>) -> Option<Lent<'a>> {
        let mut state = self.board.state();
        if helpers == 0 || state.task.is_some() {
            return None;
        }
        // SAFETY: whoever has taken the task from the board is counted as busy until it has left it. `Lent`
        // takes it off the board and waits for all of these, and lives no longer than what is borrowed here:
        // `run` has it, and forgets it nowhere.
        // JUSTIFICATION: threads that outlive a call can be given what it borrows in no safe way.
        let task = unsafe { std::mem::transmute::<&'a Task<'a>, &'static Task<'static>>(task) };
        (state.task, state.turns) = (Some(task), helpers);
        for _ in state.threads..helpers {
            let board = Arc::clone(&self.board);
            // Without another thread it takes longer.
            if thread::Builder::new().name("transfers".into()).spawn(move || help(&board)).is_err() {
                break;
            }
            state.threads += 1;
        }
        drop(state);
        self.board.wanted.notify_all();
        Some(Lent { board: &self.board })
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.board.state().is_closed = true;
        self.board.wanted.notify_all();
    }
}

/// A task on the board.
struct Lent<'a> {
    board: &'a Board,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut state = self.board.state();
        state.task = None;
        while state.busy > 0 {
            state = self.board.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let has_panicked = std::mem::take(&mut state.has_panicked);
        drop(state);
        assert!(!has_panicked || thread::panicking(), "a thread that helped has panicked");
    }
}

/// What a helper does until nothing was wanted for a while, or nothing will be.
fn help(board: &Board) {
    let mut state = board.state();
    loop {
        let has_task = |state: &State| state.task.is_some() && state.turns > 0;
        if !has_task(&state) {
            let idle = |state: &mut State| !has_task(state) && !state.is_closed;
            let waited = board.wanted.wait_timeout_while(state, IDLE, idle);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let Some(task) = state.task.filter(|_| state.turns > 0) else {
            state.threads -= 1;
            return;
        };
        state.turns -= 1;
        state.busy += 1;
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(task));
        state = board.state();
        state.has_panicked |= outcome.is_err();
        state.busy -= 1;
        if state.busy == 0 {
            board.left.notify_all();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::ThreadId;

    #[test]
    fn as_many_threads_are_at_it_as_were_asked_for_and_they_stay() {
        let (helpers, seen) = (Helpers::default(), Mutex::new(BTreeSet::new()));
        for round in 0..50 {
            // All of them meet, each once.
            let (barrier, begun) = (Barrier::new(4), AtomicUsize::new(0));
            let task = || {
                if begun.fetch_add(1, Ordering::Relaxed) < 4 {
                    seen.lock().unwrap().insert(format!("{:?}", thread::current().id()));
                    barrier.wait();
                }
            };
            let mut is_first = false;
            helpers.run(3, &task, Some(&mut || is_first = true));
            assert!(is_first && begun.load(Ordering::Relaxed) >= 4, "round {round}");
        }
        assert!(seen.lock().unwrap().len() == 4, "the caller and three that stayed");
        assert_eq!(helpers.board.state().threads, 3);
    }

    #[test]
    fn nobody_is_at_it_when_it_is_over() {
        let helpers = Helpers::default();
        for _ in 0..200 {
            let (left, busy) = (Mutex::new(5), AtomicUsize::new(0));
            let task = || {
                busy.fetch_add(1, Ordering::Relaxed);
                let take = || {
                    let mut left = left.lock().unwrap();
                    let is_left = *left > 0;
                    *left -= usize::from(is_left);
                    is_left
                };
                while take() {}
                busy.fetch_sub(1, Ordering::Relaxed);
            };
            helpers.run(4, &task, None);
            assert_eq!((*left.lock().unwrap(), busy.load(Ordering::Relaxed)), (0, 0));
        }
    }

    #[test]
    fn without_helpers_and_beside_another_task_the_caller_does_it() {
        let (helpers, who) = (Helpers::default(), Mutex::new(Vec::<ThreadId>::new()));
        let task = || who.lock().unwrap().push(thread::current().id());
        helpers.run(0, &task, None);
        // The other task is on the board as long as this one runs.
        helpers.run(1, &|| {}, Some(&mut || helpers.run(3, &task, None)));
        assert_eq!(who.into_inner().unwrap(), [thread::current().id(); 2]);
    }

    #[test]
    fn a_helper_that_panics_is_told_of_and_the_others_go_on() {
        let helpers = Helpers::default();
        let (caller, met) = (thread::current().id(), Barrier::new(2));
        let task = || {
            met.wait();
            assert_eq!(thread::current().id(), caller, "a helper panics");
        };
        let told = catch_unwind(AssertUnwindSafe(|| helpers.run(1, &task, None)));
        assert!(told.is_err());
        let met = Barrier::new(2);
        helpers.run(1, &|| _ = met.wait(), None);
    }

    #[test]
    fn threads_end_with_those_whom_they_help() {
        let helpers = Helpers::default();
        let met = Barrier::new(3);
        helpers.run(2, &|| _ = met.wait(), None);
        let board = Arc::downgrade(&helpers.board);
        drop(helpers);
        while board.strong_count() > 0 {
            thread::yield_now();
        }
    }
}
