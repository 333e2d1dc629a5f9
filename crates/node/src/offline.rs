//! Arrays that nobody serves: a command assembles the array, does its work, and stops it in order.

use crate::assemble::Assembled;
use crate::checks::View;
use crate::driver::DriverOptions;
use crate::error::Error;
use crate::event::{Event, describe_lost_page};
use crate::interrupt::Interrupt;
use crate::logbook::{Level, log_as};
use crate::losses::describe_forced;
use crate::memory::{machine_bytes, table_bytes};
use crate::open::{Force, Found, Incomplete, lock, member_name};
use crate::operate::Operator;
use crate::output;
use crate::running::Running;
use crate::status::work;
use crate::trouble::{DEVICE_TIMEOUT_NS, TroubleLog};
use crate::volume::Use;
use crate::waiting::Step;
use crate::watch::describe_unfit;
use array::{Arrangement, CommitPolicy, EngineOptions, RecoveryReport};
use format::Superblock;
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
    interrupt: Interrupt,
    events: Vec<Event>,
    trouble: TroubleLog,
}

impl Offline {
    /// Assembles the array, if `check` has nothing against it; else nothing was written to it.
    pub fn start(
        paths: &[PathBuf],
        force: Force,
        incomplete: Incomplete<'_>,
        rebuild_bytes_per_s: Option<u64>,
        check: impl FnOnce(&View) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let commit = CommitPolicy { every_requests: None, idle_ns: None, bytes_per_s: None };
        let options = EngineOptions {
            commit,
            rebuild_bytes_per_s,
            device_timeout_ns: Some(DEVICE_TIMEOUT_NS),
            table_bytes: table_bytes(machine_bytes()),
            ..EngineOptions::default()
        };
        let locked = lock(paths, force, incomplete)?;
        check(&View::of_found(&locked.found))?;
        // Until now, and while an array recovers that was not stopped in order, the process may simply die.
        let interrupt = Interrupt::watch(locked.superblock().clean)?;
        let Assembled { shards, found, report, .. } = locked.assemble(options, DriverOptions::default())?;
        interrupt.hold();
        let mut running = Running::here(shards, Use::ReadWrite)?;
        running.level(&[]);
        let mut operator = Operator::new(found.paths.clone(), found.unnamed());
        operator.note_lost(given_up(&report, &found));
        if let Some(lost) = operator.lost_state() {
            log_as(Level::Error, &describe_given_up(lost));
        }
        let (events, trouble) = (Vec::new(), TroubleLog::default());
        Ok(Self { running, operator, superblock: found.arrangement.newest, interrupt, events, trouble })
    }

    /// The superblock that the array was assembled from.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Lets the array work until `over` gives a result; `show` is told of rebuild and scrub. An
    /// interruption ends it: then [`Offline::stop`] gives up what is left of the work.
    pub fn run_until<T>(
        &mut self,
        mut show: impl FnMut(Step<'_>),
        mut over: impl FnMut(&mut Running, &[Event], &[array::Done]) -> Option<T>,
    ) -> Result<T, Error> {
        loop {
            self.running.drive();
            let answers = self.running.take_control_answers();
            self.operator.step(&mut self.running, &mut self.events);
            let events = std::mem::take(&mut self.events);
            self.tell(&events);
            self.trouble.look(&self.running, &mut |level, _, text| log_as(level, text));
            if let Some(result) = over(&mut self.running, &events, &answers) {
                return Ok(result);
            }
            self.interrupt.check()?;
            if let Some(work) = work(&self.running) {
                show(Step::Work(&work));
            } else if let Some((name, copying)) = self.operator.copying(&self.running) {
                show(Step::Copy(&name, &copying));
            }
            let due_ns = [self.running.idle_for(), self.operator.waits_ns()];
            let idle_ns = due_ns.into_iter().flatten().fold(WAIT_NS, u64::min);
            if idle_ns > 0 {
                self.running.sleep(idle_ns)?;
            }
        }
    }

    /// Nobody reads a log here: what is said of members goes to standard error.
    fn tell(&mut self, events: &[Event]) {
        let main_count = self.running.lead().store().main_count();
        for event in events {
            match event {
                Event::Unfit { dev, why, failed } => {
                    let path = self.operator.paths()[dev.index()].as_ref();
                    let line = describe_unfit(&member_name(main_count, *dev), path, why, *failed);
                    output::warn(format_args!("elastripe: {line}"));
                }
                Event::PageLost(page) => {
                    output::warn(format_args!("elastripe: {}", describe_lost_page(*page)));
                }
                Event::HeldUp { dev, why } => self.trouble.note(*dev, *why, true),
                Event::HoldUpEnded { dev, why } => self.trouble.note(*dev, *why, false),
                Event::Failed { .. }
                | Event::Replaced { .. }
                | Event::Succeeded { .. }
                | Event::CameBack { .. }
                | Event::NotReplaced { .. }
                | Event::CalledOff { .. }
                | Event::Rebuilt(_)
                | Event::WorkBegan { .. }
                | Event::Grown(_)
                | Event::NotGrown { .. }
                | Event::WorkEnded { .. } => {}
            }
        }
    }

    /// Runs one control request of the engine to its end.
    pub fn request(&mut self, start: impl FnMut(&mut array::Engine, u64)) -> Result<(), Error> {
        let tag = self.running.control(start);
        let result = self.run_until(
            |_| {},
            |_, _, answers| answers.iter().find(|done| done.tag == tag).map(|done| done.result),
        );
        result?.map_err(|error| self.running.named(error))
    }

    /// Stops the array in order.
    pub fn stop(mut self) -> Result<(), Error> {
        while self.operator.is_handing_over() {
            self.running.drive();
            self.operator.step(&mut self.running, &mut self.events);
            self.running.sleep(self.operator.waits_ns().unwrap_or(0))?;
        }
        self.operator.let_successors_go(&mut self.running)?;
        self.running.halt_maintenance();
        self.running.stop()
    }
}

/// What durable state an array was started without, which is lost; or why it may be.
pub fn given_up(report: &RecoveryReport, found: &Found) -> Option<String> {
    if let Some(lost) = &report.lost {
        return Some(format!("{lost}; the array was started by --force in {}", lost.alternative()));
    }
    let dirty = found.arrangements().any(Arrangement::is_dirty_degraded).then(|| {
        "the array has no journal, was not stopped in order, and was started by --force without all its members: what was being \
         written then, and what shares a stripe with it on the members that are missing, may be wrong, and nothing tells which"
            .to_owned()
    });
    dirty.or_else(|| report.forced.map(describe_forced))
}

/// The same, loudly.
pub fn describe_given_up(lost: &str) -> String {
    format!("DATA IS LOST: {lost}")
}
