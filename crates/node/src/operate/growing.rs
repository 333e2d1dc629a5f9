//! A served array takes the room of devices that have become larger, while what its clients ask waits.
//!
//! What is done to the members is what is done to an array that nobody serves: stop in order, grow, assemble.
//! So a power cut at any moment leaves what it would leave there.
//!
//! | stage | what happens | if it cannot be |
//! |---|---|---|
//! | draining | the gate is closed; what the engines have of clients ends | the gate opens again |
//! | flushing, saving | what was answered is made durable, and a checkpoint holds it | the gate opens again |
//! | stopping | every shard says that it was stopped in order | the array is assembled again |
//! | resting | the engines come to rest, and do nothing from then on | |
//! | working | another thread lets the array grow and assembles it, on the same open members | it is assembled as it was |
//! | lacking | where a member lies is no room to assemble the array | it is tried again |
//!
//! Then the shards go on with the engines that were assembled, and the gate opens. If there are none, serving
//! ends.

use super::Operator;
use crate::driver::{DriverOptions, Idle};
use crate::error::Error;
use crate::event::{Event, work_name};
use crate::grow::{Growth, check_growth, grow_open};
use crate::logbook::{Level, log, log_as};
use crate::open::{Incomplete, look_again, member_name};
use crate::refusal::Refusal;
use crate::running::Running;
use crate::volume::Gate;
use array::{Array, ArrayState, Done, Engine, EngineError, EngineOptions};
use device::Members;
use format::{CheckpointKind, MemberState};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long what clients have asked for may take before the array grows another time.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether there is room.
const ROOM_LOOK: Duration = Duration::from_secs(1);

/// An order to all shards, and what came of it.
struct Order {
    tag: u64,
    result: Option<Result<(), EngineError>>,
}

/// How far it is; see the module's documentation.
enum Stage {
    Draining,
    Flushing(Order),
    Saving(Order),
    Stopping(Order),
    Resting,
    Working(JoinHandle<Work>),
    /// Since so long.
    Lacking(Instant),
}

/// What is to be done on the members.
#[derive(Clone, Copy)]
enum Task {
    /// The array grows, and is assembled.
    Grow,
    /// It is assembled.
    Assemble,
}

/// What came of it.
struct Work {
    /// `None`: it was only to be assembled.
    grown: Option<Result<Growth, Error>>,
    again: Result<Vec<Array<()>>, Error>,
}

/// An array that is growing.
pub(super) struct Growing {
    stage: Stage,
    since: Instant,
    /// Where the members are.
    paths: Vec<PathBuf>,
    /// What each shard runs with.
    options: Vec<EngineOptions>,
    /// What came of it, until that is told.
    grown: Option<Result<Growth, Error>>,
    /// It could not be assembled again at once.
    has_lacked: bool,
}

impl Operator {
    /// Whether the array is growing.
    pub fn is_growing(&self) -> bool {
        self.growing.is_some()
    }

    /// Lets the array grow: [`Event::Grown`] or [`Event::NotGrown`] says when that is over.
    pub fn grow(&mut self, running: &mut Running) -> Result<(), Error> {
        let paths: Vec<PathBuf> = self.paths.iter().flatten().cloned().collect();
        let options: Vec<EngineOptions> = running.engines().map(|engine| *engine.options()).collect();
        self.check_may_grow(running)?;
        check_growth(&paths, &options, running.members().map(|dev| running.member_state(dev)))?;
        check_members(running)?;
        running.set_gate(Gate::Closed);
        let (stage, since) = (Stage::Draining, Instant::now());
        self.growing = Some(Growing { stage, since, paths, options, grown: None, has_lacked: false });
        Ok(())
    }

    /// Whether nothing is under way that goes on with the members as they are now.
    fn check_may_grow(&self, running: &Running) -> Result<(), Error> {
        if self.is_growing() {
            return Err(Refusal::Growing.into());
        }
        if let Some((kind, _, _)) = running.engines().find_map(Engine::maintenance) {
            return Err(Refusal::UnderWay { kind: work_name(kind) }.into());
        }
        if !self.pending.is_empty() || !self.succeeding.is_empty() {
            return Err(Refusal::UnderWay { kind: "replacement" }.into());
        }
        Ok(())
    }

    /// Whether the array has waited for the end of a control request to grow.
    pub fn hears(&mut self, done: &Done) -> bool {
        let order = self.growing.as_mut().and_then(|growing| growing.stage.order());
        let order = order.filter(|order| order.tag == done.tag);
        let is_its = order.is_some();
        order.into_iter().for_each(|order| order.result = Some(done.result));
        is_its
    }

    /// Why serving cannot go on.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    /// Whether the array may be stopped now, as far as that goes: one that grows is not stopped halfway.
    pub fn may_stop(&self) -> bool {
        self.growing.as_ref().is_none_or(|growing| matches!(growing.stage, Stage::Lacking(_)))
    }

    /// Takes the next steps that can be taken.
    pub(super) fn go_on_growing(&mut self, running: &mut Running, events: &mut Vec<Event>) {
        let Some(mut growing) = self.growing.take() else { return };
        match growing.go_on(running) {
            Ok(None) => self.growing = Some(growing),
            // As while an array runs: what needs room waits until there is some.
            Ok(Some(Err(error @ Error::NoRoom { .. }))) => {
                growing.lack_room(&error, events);
                self.growing = Some(growing);
            }
            Ok(Some(again)) => self.end_growing(running, growing, again, events),
            Err(error) => {
                running.set_gate(Gate::Open);
                events.push(Event::NotGrown { why: error.to_string() });
            }
        }
    }

    fn end_growing(
        &mut self,
        running: &mut Running,
        growing: Growing,
        again: Result<Vec<Array<()>>, Error>,
        events: &mut Vec<Event>,
    ) {
        if let Err(error) = again.and_then(|arrays| running.go_on_as(arrays)) {
            running.set_gate(Gate::Over);
            let why = growing.grown.and_then(Result::err).unwrap_or(error);
            let error = Error::NotAfterGrowth(Box::new(why));
            events.push(Event::NotGrown { why: error.to_string() });
            self.failure = Some(error);
            return;
        }
        running.set_gate(Gate::Open);
        self.resume(running);
        let waited_ms = u64::try_from(growing.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        match growing.grown {
            Some(Ok(growth)) => {
                let small_spares = self.small_spares(growth.device_bytes);
                let growth = Growth { waited_ms: Some(waited_ms), small_spares, ..growth };
                events.push(Event::Grown(Box::new(growth)));
            }
            Some(Err(error)) => events.push(Event::NotGrown { why: error.to_string() }),
            None => log("there is room again, and the array is served on"),
        }
    }
}

/// Whether every member is there and does what it is asked.
fn check_members(running: &Running) -> Result<(), Error> {
    if running.engines().any(Engine::is_held_up) {
        return Err(Refusal::HeldUp.into());
    }
    let main_count = running.lead().store().main_count();
    let missing = running.members().filter(|&dev| running.member_state(dev) != MemberState::Healthy);
    let names: Vec<String> = missing.map(|dev| member_name(main_count, dev)).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(Refusal::NotAllInService { names: names.join(", ") }.into()),
    }
}

impl Stage {
    /// What it waits for, if that is an order.
    fn order(&mut self) -> Option<&mut Order> {
        match self {
            Self::Flushing(order) | Self::Saving(order) | Self::Stopping(order) => Some(order),
            Self::Draining | Self::Resting | Self::Working(_) | Self::Lacking(_) => None,
        }
    }
}

/// Has all shards do something.
fn order(running: &mut Running, start: impl FnMut(&mut Engine, u64)) -> Order {
    Order { tag: running.control(start), result: None }
}

impl Growing {
    /// Takes the next steps that can be taken; the shards assembled anew when that has ended. After an error
    /// the array goes on as it is.
    #[expect(clippy::type_complexity, reason = "two ways to fail, and not yet")]
    fn go_on(&mut self, running: &mut Running) -> Result<Option<Result<Vec<Array<()>>, Error>>, Error> {
        loop {
            let next = match &mut self.stage {
                Stage::Draining | Stage::Flushing(_) | Stage::Saving(_) => self.prepare(running)?,
                // Whatever came of it: what the members say is looked at when they are assembled.
                Stage::Stopping(order) => order.result.map(|_| Stage::Resting),
                Stage::Resting if running.array_state() == ArrayState::Failed => {
                    return Ok(Some(Err(Refusal::ArrayFailed.into())));
                }
                Stage::Resting if running.is_at_rest() => {
                    running.set_gate(Gate::Resting);
                    Some(self.begin_work(running, Task::Grow))
                }
                Stage::Lacking(since) if since.elapsed() >= ROOM_LOOK => {
                    Some(self.begin_work(running, Task::Assemble))
                }
                Stage::Working(thread) if thread.is_finished() => return Ok(Some(self.end_work())),
                Stage::Resting | Stage::Working(_) | Stage::Lacking(_) => None,
            };
            match next {
                Some(stage) => self.stage = stage,
                None => return Ok(None),
            }
        }
    }

    /// Takes what came of the work.
    fn end_work(&mut self) -> Result<Vec<Array<()>>, Error> {
        let Stage::Working(thread) = std::mem::replace(&mut self.stage, Stage::Resting) else {
            unreachable!("there is work that has ended");
        };
        let Work { grown, again } = thread.join().map_err(|_| Error::ShardThread)?;
        self.grown = grown.or(self.grown.take());
        again
    }

    /// The array cannot be assembled again before there is more room.
    fn lack_room(&mut self, error: &Error, events: &mut Vec<Event>) {
        self.stage = Stage::Lacking(Instant::now());
        if let Some(Err(why)) = self.grown.take_if(|grown| grown.is_err()) {
            events.push(Event::NotGrown { why: why.to_string() });
        }
        if !std::mem::replace(&mut self.has_lacked, true) {
            log_as(Level::Warning, &format!("what clients ask waits until there is room: {error}"));
        }
    }

    /// The steps after which the array can go on as if nothing had been.
    fn prepare(&mut self, running: &mut Running) -> Result<Option<Stage>, Error> {
        let is_over = match self.stage.order().map(|order| order.result) {
            None => running.is_quiet(),
            Some(None) => false,
            Some(Some(result)) => result.map(|()| true).map_err(|error| running.named(error))?,
        };
        if !is_over {
            return match self.since.elapsed() > PATIENCE {
                true => Err(Refusal::ClientsBusy { seconds: PATIENCE.as_secs() }.into()),
                false => Ok(None),
            };
        }
        check_members(running)?;
        Ok(Some(match self.stage {
            Stage::Draining => Stage::Flushing(order(running, Engine::flush)),
            Stage::Flushing(_) => {
                let save =
                    |engine: &mut Engine, tag| engine.write_checkpoint(tag, CheckpointKind::Incremental);
                Stage::Saving(order(running, save))
            }
            Stage::Saving(_)
            | Stage::Stopping(_)
            | Stage::Resting
            | Stage::Working(_)
            | Stage::Lacking(_) => {
                running.halt_maintenance();
                running.engines_mut().for_each(Engine::prepare_stop);
                Stage::Stopping(order(running, Engine::publish_clean))
            }
        }))
    }

    /// Nobody else works on the members from here on.
    fn begin_work(&self, running: &Running, task: Task) -> Stage {
        let (paths, options) = (self.paths.clone(), self.options.clone());
        let members = running.open_members().share();
        Stage::Working(std::thread::spawn(move || {
            let grown = match task {
                Task::Grow => Some(grow_open(&paths, &members)),
                Task::Assemble => None,
            };
            Work { grown, again: assemble_again(&paths, members, &options) }
        }))
    }
}

/// Assembles an array that was stopped, as it is then: without a member that has failed meanwhile.
fn assemble_again(
    paths: &[PathBuf],
    members: Members,
    options: &[EngineOptions],
) -> Result<Vec<Array<()>>, Error> {
    let locked = look_again(paths, members, Incomplete::Accept)?;
    let of_shard = |shard: u16| options[usize::from(shard)];
    let assembled = locked.assemble_each(&of_shard, DriverOptions::default())?;
    Ok(assembled.shards.into_iter().map(Idle::into_array).collect())
}
