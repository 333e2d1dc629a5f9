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
//!
//! Then the shards go on with the engines that were assembled, and the gate opens. If there are none, serving
//! ends.

use super::Operator;
use crate::driver::{DriverOptions, Idle};
use crate::error::Error;
use crate::event::{Event, work_name};
use crate::grow::{Growth, check_growth, grow_open};
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
}

/// What came of the work on the members.
struct Work {
    grown: Result<Growth, Error>,
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
        self.growing = Some(Growing { stage: Stage::Draining, since: Instant::now(), paths, options });
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

    /// Takes the next steps that can be taken.
    pub(super) fn go_on_growing(&mut self, running: &mut Running, events: &mut Vec<Event>) {
        let Some(mut growing) = self.growing.take() else { return };
        match growing.go_on(running) {
            Ok(None) => self.growing = Some(growing),
            Ok(Some(work)) => self.end_growing(running, work, growing.since.elapsed(), events),
            Err(error) => {
                running.set_gate(Gate::Open);
                events.push(Event::NotGrown { why: error.to_string() });
            }
        }
    }

    fn end_growing(&mut self, running: &mut Running, work: Work, waited: Duration, events: &mut Vec<Event>) {
        let Work { grown, again } = work;
        let why = grown.as_ref().err().map(ToString::to_string);
        if let Err(error) = again.and_then(|arrays| running.go_on_as(arrays)) {
            running.set_gate(Gate::Over);
            let error = Error::NotAfterGrowth(Box::new(error));
            events.push(Event::NotGrown { why: why.unwrap_or_else(|| error.to_string()) });
            self.failure = Some(error);
            return;
        }
        running.set_gate(Gate::Open);
        self.resume(running);
        events.push(match grown {
            Ok(growth) => {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                Event::Grown(Box::new(Growth { waited_ms: Some(waited_ms), ..growth }))
            }
            Err(error) => Event::NotGrown { why: error.to_string() },
        });
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
            Self::Draining | Self::Resting | Self::Working(_) => None,
        }
    }
}

/// Has all shards do something.
fn order(running: &mut Running, start: impl FnMut(&mut Engine, u64)) -> Order {
    Order { tag: running.control(start), result: None }
}

impl Growing {
    /// Takes the next steps that can be taken; what came of the work when it has ended. After an error the
    /// array goes on as it is.
    fn go_on(&mut self, running: &mut Running) -> Result<Option<Work>, Error> {
        loop {
            let next = match &mut self.stage {
                Stage::Draining | Stage::Flushing(_) | Stage::Saving(_) => self.prepare(running)?,
                // Whatever came of it: what the members say is looked at when they are assembled.
                Stage::Stopping(order) => order.result.map(|_| Stage::Resting),
                Stage::Resting if running.array_state() == ArrayState::Failed => {
                    return Ok(Some(Work::hopeless()));
                }
                Stage::Resting if running.is_at_rest() => {
                    running.set_gate(Gate::Resting);
                    Some(self.begin_work(running))
                }
                Stage::Resting => None,
                Stage::Working(thread) if thread.is_finished() => {
                    let Stage::Working(thread) = std::mem::replace(&mut self.stage, Stage::Resting) else {
                        unreachable!("it was looked at");
                    };
                    let gone = |_| Work { grown: Err(Error::ShardThread), again: Err(Error::ShardThread) };
                    return Ok(Some(thread.join().unwrap_or_else(gone)));
                }
                Stage::Working(_) => None,
            };
            match next {
                Some(stage) => self.stage = stage,
                None => return Ok(None),
            }
        }
    }

    /// The steps after which the array can go on as if nothing had been.
    fn prepare(&mut self, running: &mut Running) -> Result<Option<Stage>, Error> {
        let is_over = match &mut self.stage {
            Stage::Draining => running.is_quiet(),
            stage => match stage.order().and_then(|order| order.result) {
                Some(result) => result.map(|()| true).map_err(|error| running.named(error))?,
                None => false,
            },
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
            Stage::Saving(_) | Stage::Stopping(_) | Stage::Resting | Stage::Working(_) => {
                running.halt_maintenance();
                running.engines_mut().for_each(Engine::prepare_stop);
                Stage::Stopping(order(running, Engine::publish_clean))
            }
        }))
    }

    /// Nobody else works on the members from here on.
    fn begin_work(&self, running: &Running) -> Stage {
        let (paths, options) = (self.paths.clone(), self.options.clone());
        let members = running.open_members().share();
        Stage::Working(std::thread::spawn(move || Work::on(&paths, &members, &options)))
    }
}

impl Work {
    /// Lets an array grow that is stopped, and assembles it, as it is then.
    fn on(paths: &[PathBuf], members: &Members, options: &[EngineOptions]) -> Self {
        let grown = grow_open(paths, members);
        // Without a member that has failed meanwhile.
        let again = look_again(paths, members.share(), Incomplete::Accept).and_then(|locked| {
            let of_shard = |shard: u16| options[usize::from(shard)];
            let assembled = locked.assemble_each(&of_shard, DriverOptions::default())?;
            Ok(assembled.shards.into_iter().map(Idle::into_array).collect())
        });
        Self { grown, again }
    }

    /// There is nothing to be done.
    fn hopeless() -> Self {
        Self { grown: Err(Refusal::ArrayFailed.into()), again: Err(Refusal::ArrayFailed.into()) }
    }
}
