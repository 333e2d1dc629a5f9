//! What a device that takes a place has to do before it counts, on a thread of its own: it may take long, or
//! hang, and the array goes on meanwhile.

use crate::driver::{Devices, DriverError, DriverOptions, Parked};
use crate::error::Error;
use crate::refusal::Refusal;
use crate::running::Running;
use block::{DevIndex, IoFault};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long each may take, or as long as one request to a member if that is longer: so long that whoever can
/// be a member has read and written what a slice has to forget.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module's documentation.
pub(super) struct Errand {
    worker: JoinHandle<Result<Result<(), IoFault>, DriverError>>,
    begun: Instant,
}

impl Errand {
    /// Begins `work` with a shard's slice of the device in the place of `dev`, which stays locked until that
    /// has ended, whoever waits for it.
    pub fn begin(
        running: &Running,
        shard: usize,
        dev: DevIndex,
        work: impl FnOnce(&mut Devices) -> Result<(), IoFault> + Send + 'static,
    ) -> Result<Self, Error> {
        let (config, mut members) = (running.engine(shard).store().config, running.open_members().share());
        let others = (0..).map(DevIndex::new).take(members.count()).filter(|&other| other != dev);
        others.for_each(|other| members.remove(other));
        let (slices, chunk_bytes) = (config.slice_extents(), config.geometry.chunk_bytes());
        let devices = Parked::new(members, slices, chunk_bytes, DriverOptions::default());
        let work = move || Ok(work(&mut devices.start()?));
        let worker = Builder::new().name("errand".into()).spawn(work)?;
        Ok(Self { worker, begun: Instant::now() })
    }

    /// Whether it has ended, or is not waited for any more: [`Errand::end`] says how.
    pub fn is_over(&self, device_timeout_ns: Option<u64>) -> bool {
        self.worker.is_finished()
            || self.patience(device_timeout_ns).is_some_and(|most| self.begun.elapsed() >= most)
    }

    fn patience(&self, device_timeout_ns: Option<u64>) -> Option<Duration> {
        device_timeout_ns.map(|limit_ns| Duration::from_nanos(limit_ns).max(PATIENCE))
    }

    /// How it ended, on the device at `path`.
    pub fn end(self, path: &Path) -> Result<(), Error> {
        let path = path.to_owned();
        if !self.worker.is_finished() {
            return Err(Refusal::Silent { path, seconds: self.begun.elapsed().as_secs() }.into());
        }
        let done = self.worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok(done?.map_err(|fault| Refusal::Fault { path, fault })?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn whoever_does_not_answer_is_waited_for_no_longer_than_requests_and_half_a_minute() {
        let (end, ended) = channel::<()>();
        let worker = std::thread::spawn(move || Ok(ended.recv().map_err(|_| IoFault::Gone)));
        let begun = Instant::now().checked_sub(PATIENCE).unwrap();
        let errand = Errand { worker, begun };
        assert!(errand.is_over(Some(1)) && !errand.is_over(Some(3_600_000_000_000)) && !errand.is_over(None));
        let why = errand.end(Path::new("spare")).unwrap_err().to_string();
        assert!(
            why.starts_with("spare: its device does not answer") && why.ends_with("within 30 s"),
            "{why}"
        );
        end.send(()).unwrap();
    }
}
