//! Arrays that nobody serves: a command assembles the array, does its work, and stops it in order.

use crate::checks::View;
use crate::failure::Failure;
use crate::open::{Assembled, Force, Incomplete, lock};
use crate::operate::{Event, Operator, Running};
use crate::status::{Work, work};
use crate::trouble::{DEVICE_TIMEOUT_NS, TroubleLog};
use crate::volume::{ServedArray, Use};
use array::{CommitPolicy, EngineOptions};
use block::DeviceSet;
use device::UringOptions;
use format::Superblock;
use front::Volume;
use std::path::PathBuf;

/// Devices are waited for at most this long, so that progress is shown.
const WAIT_NS: u64 = 50_000_000;

/// An array that this command runs.
pub struct Offline {
    /// The array.
    pub running: Running,
    /// Who looks after its members.
    pub operator: Operator,
    superblock: Superblock,
    events: Vec<Event>,
    trouble: TroubleLog,
}

impl Offline {
    /// Assembles the array, if `check` has nothing against it; else nothing was written to it.
    pub fn start(
        paths: &[PathBuf],
        incomplete: Incomplete<'_>,
        rebuild_bytes_per_s: Option<u64>,
        check: impl FnOnce(&View) -> Result<(), String>,
    ) -> Result<Self, Failure> {
        let commit = CommitPolicy { every_requests: None, idle_ns: None };
        let device_timeout_ns = Some(DEVICE_TIMEOUT_NS);
        let options =
            EngineOptions { commit, rebuild_bytes_per_s, device_timeout_ns, ..EngineOptions::default() };
        let locked = lock(paths, Force::Never, incomplete)?;
        check(&View::of_found(&locked.found)).map_err(Failure::new)?;
        let Assembled { array, found, .. } = locked.assemble(options, UringOptions::default())?;
        let running = ServedArray::new(array, None, Use::ReadWrite);
        let operator = Operator::new(&running, found.paths.clone(), found.unnamed());
        let (events, trouble) = (Vec::new(), TroubleLog::default());
        Ok(Self { running, operator, superblock: found.arrangement.newest, events, trouble })
    }

    /// The superblock that the array was assembled from.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Lets the array work until `over` gives a result; `show` is told of rebuild and scrub.
    pub fn run_until<T>(
        &mut self,
        mut show: impl FnMut(&Work),
        mut over: impl FnMut(&mut Running, &[Event], &[array::Done]) -> Option<T>,
    ) -> T {
        let mut done = Vec::new();
        loop {
            self.running.drive(&mut done);
            done.clear(); // nobody but us asks for anything
            let mut others = Vec::new();
            for answer in self.running.take_control_answers() {
                if !self.operator.answered(&self.running, answer, &mut self.events) {
                    others.push(answer);
                }
            }
            self.operator.step(&mut self.running, &mut self.events);
            self.trouble.look(&self.running);
            let events = std::mem::take(&mut self.events);
            if let Some(result) = over(&mut self.running, &events, &others) {
                return result;
            }
            if let Some(work) = work(self.running.engine_ref(), self.running.now_ns()) {
                show(&work);
            }
            let idle_ns = self.running.idle_for().unwrap_or(WAIT_NS).min(WAIT_NS);
            if idle_ns > 0 {
                self.running.array().devices().wait(idle_ns);
            }
        }
    }

    /// Runs one control request of the engine to its end.
    pub fn request(&mut self, start: impl FnOnce(&mut array::Engine, u64)) -> Result<(), Failure> {
        let tag = self.running.control(start);
        let result = self.run_until(
            |_| {},
            |_, _, answers| answers.iter().find(|done| done.tag == tag).map(|done| done.result),
        );
        result.map_err(Failure::new)
    }

    /// Stops the array in order.
    pub fn stop(mut self) -> Result<(), Failure> {
        self.running.engine().halt_maintenance();
        let stopped = self.running.stop();
        stopped.map_err(|error| Failure::new(format!("stopping the array: {error}; the next start recovers")))
    }
}
