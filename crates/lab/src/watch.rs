//! How far a run is, told to another thread, which may have it stopped.
//!
//! For programs that hold the laboratory: they run it in a thread of its own and look at this from theirs.
//! The run looks at it once per turn of its loop, which costs a store and a load.

use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// See the module's documentation.
#[derive(Default, Debug)]
pub struct Watch {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    what: Mutex<&'static str>,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reached {
    /// What is being done, such as `fill`; empty before anything begins.
    pub what: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much it is in all; 0 if that is not known.
    pub total: u64,
}

impl Watch {
    /// Has the run stop at its next look; it fails then.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// How far it is.
    pub fn reached(&self) -> Reached {
        let what = *self.what.lock().unwrap_or_else(PoisonError::into_inner);
        Reached { what, done: self.done.load(Ordering::Relaxed), total: self.total.load(Ordering::Relaxed) }
    }

    /// Something else begins.
    pub fn begin(&self, what: &'static str, total: u64) -> Result<(), Failure> {
        *self.what.lock().unwrap_or_else(PoisonError::into_inner) = what;
        self.total.store(total, Ordering::Relaxed);
        self.show(0)
    }

    /// So much of it is done; fails if it is to stop.
    pub fn show(&self, done: u64) -> Result<(), Failure> {
        self.done.store(done, Ordering::Relaxed);
        self.check()
    }

    /// One more is done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Fails if it is to stop.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_stopped() { Err(Failure::new("stopped on request")) } else { Ok(()) }
    }
}

/// Where a run says how far it is.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// A bar, or lines.
    Progress,
    /// Somebody else does that.
    Nothing,
    /// Another thread looks.
    Watched(&'a Watch),
    /// Another thread may have it stopped, and does not look.
    Stoppable(&'a Watch),
}

impl<'a> Shown<'a> {
    /// What may stop the run, if anything may.
    pub fn watch(self) -> Option<&'a Watch> {
        match self {
            Self::Watched(watch) | Self::Stoppable(watch) => Some(watch),
            Self::Progress | Self::Nothing => None,
        }
    }

    /// Fails if the run is to stop.
    pub fn check(self) -> Result<(), Failure> {
        self.watch().map_or(Ok(()), Watch::check)
    }

    /// Something that is looked at from time to time begins.
    pub fn begin(self, what: &'static str, total: u64) -> Result<(), Failure> {
        match self {
            Self::Watched(watch) => watch.begin(what, total),
            Self::Stoppable(_) | Self::Progress | Self::Nothing => self.check(),
        }
    }

    /// So much of it is done; fails if the run is to stop.
    pub fn show(self, done: u64) -> Result<(), Failure> {
        match self {
            Self::Watched(watch) => watch.show(done),
            Self::Stoppable(_) | Self::Progress | Self::Nothing => self.check(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_seen_and_stopped_from_outside() {
        let watch = Watch::default();
        assert_eq!(watch.reached(), Reached { what: "", done: 0, total: 0 });
        let shown = Shown::Watched(&watch);
        assert!(shown.begin("fill", 9).is_ok() && shown.show(4).is_ok());
        watch.step();
        assert_eq!(watch.reached(), Reached { what: "fill", done: 5, total: 9 });
        watch.stop();
        assert!(shown.check().is_err() && shown.show(6).is_err() && shown.begin("trace", 1).is_err());
        assert!(Shown::Stoppable(&watch).show(7).is_err() && watch.reached().done == 0);
        assert!(Shown::Nothing.check().is_ok() && Shown::Progress.show(1).is_ok());
    }
}
