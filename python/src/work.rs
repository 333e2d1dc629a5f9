//! Work without the interpreter's lock, in a thread of its own.
//!
//! The thread that called looks from time to time: it has Python handle signals, so that Ctrl-C raises
//! `KeyboardInterrupt`, and tells a callback how far the work is. If either raises, or a policy in Python has
//! raised, the work is stopped, waited for, and that exception is the outcome.

use crate::errors::{InternalError, raised};
use lab::failure::Failure;
use lab::watch::{Reached, Watch};
use pyo3::prelude::*;
use std::any::Any;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks: short for people who press Ctrl-C, long for a lock that has to be taken.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// What the main thread of a process has.
const STACK_BYTES: usize = 8 << 20;

/// A piece of work, and what stops it.
#[derive(Default)]
pub struct Work {
    /// How far it is.
    pub watch: Watch,
    exception: Mutex<Option<PyErr>>,
}

impl Work {
    /// Something has raised: the first exception is kept, and the work stopped.
    pub fn fail(&self, exception: PyErr) {
        self.exception.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(exception);
        self.watch.stop();
    }

    /// Does the job, and has `progress(what, done, total)` called meanwhile.
    pub fn run<T: Send>(
        self: &Arc<Self>,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        job: impl FnOnce(&Watch) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let ended = py.detach(|| self.in_thread(progress, job));
        let exception = self.exception.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (exception, ended) {
            (Some(exception), _) => Err(exception),
            (None, Ok(Ok(found))) => Ok(found),
            (None, Ok(Err(failure))) => Err(raised(&failure)),
            (None, Err(panic)) => {
                let message = format!("{}; this is a bug of elastripe, please report it", words(&*panic));
                Err(InternalError::new_err(message))
            }
        }
    }

    fn in_thread<T: Send>(
        &self,
        progress: Option<&Py<PyAny>>,
        job: impl FnOnce(&Watch) -> Result<T, Failure> + Send,
    ) -> thread::Result<Result<T, Failure>> {
        thread::scope(|scope| {
            let (end, ended) = sync_channel(1);
            let worker = || {
                let _told = Told(end);
                job(&self.watch)
            };
            let named = thread::Builder::new().name("elastripe".to_owned()).stack_size(STACK_BYTES);
            let thread = match named.spawn_scoped(scope, worker) {
                Ok(thread) => thread,
                Err(error) => return Ok(Err(Failure::new(format!("cannot start a thread: {error}")))),
            };
            let mut last = None;
            while ended.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                self.look(progress, &mut last);
            }
            let outcome = thread.join();
            self.look(progress, &mut last);
            outcome
        })
    }

    /// Signals are handled, and the callback is told what it was not told before.
    fn look(&self, progress: Option<&Py<PyAny>>, last: &mut Option<Reached>) {
        let reached = self.watch.reached();
        let told = progress.filter(|_| !reached.what.is_empty() && *last != Some(reached));
        *last = Some(reached);
        let looked = Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = told.filter(|_| !self.watch.is_stopped()) {
                progress.call1(py, (reached.what, reached.done, reached.total))?;
            }
            Ok(())
        });
        if let Err(exception) = looked {
            self.fail(exception);
        }
    }
}

/// Says that a thread has ended, however it did.
struct Told(SyncSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        // The other end waits for this, or has gone.
        let _ = self.0.try_send(());
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words")
}
