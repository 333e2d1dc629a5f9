//! The engine and its devices in one loop: what front ends, the simulator and the tests drive.

use crate::engine::{Done, Engine, EngineError, EngineOptions};
use crate::planted::{Planted, planted};
use crate::recovery::{self, Arrangement};
use crate::restart::{AssembleError, RecoveryReport};
use crate::scheme::Policies;
use block::{Completion, DeviceSet};

/// How long one wait for devices lasts at most.
const WAIT_NS: u64 = 100_000_000;

/// See the module's documentation.
pub struct Array<D> {
    engine: Engine,
    devices: D,
    completions: Vec<Completion>,
    answers: Vec<Done>,
    next_tag: u64,
}

/// Tags from here on are the runner's own.
const OWN_TAGS: u64 = 1 << 63;

impl<D: DeviceSet> Array<D> {
    /// Assembles an array from devices in member order. `nonce` must be fresh and hard to guess.
    pub fn assemble(
        devices: D,
        arrangement: &Arrangement,
        nonce: u64,
        options: EngineOptions,
    ) -> Result<(Self, RecoveryReport), AssembleError> {
        Self::assemble_if(devices, arrangement, nonce, options, &mut || Ok(()))
    }

    /// The same with policies that are no part of this product.
    pub fn assemble_with(
        mut devices: D,
        arrangement: &Arrangement,
        nonce: u64,
        options: EngineOptions,
        policies: Policies,
    ) -> Result<(Self, RecoveryReport), AssembleError> {
        options.check_with(&arrangement.newest.config, &policies)?;
        Self::recover(&mut devices, arrangement, nonce, &options, &mut || Ok(()))
            .map(|(parts, report)| (Self::of(Engine::new(parts, options, policies), devices), report))
    }

    /// The same; when nothing speaks against it any more, and before anything is written, `may_write` is
    /// asked.
    pub fn assemble_if(
        mut devices: D,
        arrangement: &Arrangement,
        nonce: u64,
        options: EngineOptions,
        may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
    ) -> Result<(Self, RecoveryReport), AssembleError> {
        options.check(&arrangement.newest.config)?;
        let (parts, report) = Self::recover(&mut devices, arrangement, nonce, &options, may_write)?;
        Ok((Self::of(Engine::new(parts, options, Policies::default()), devices), report))
    }

    fn recover(
        devices: &mut D,
        arrangement: &Arrangement,
        nonce: u64,
        options: &EngineOptions,
        may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
    ) -> Result<(recovery::Parts, RecoveryReport), AssembleError> {
        recovery::assemble(devices, arrangement, nonce, options.bounds(), may_write)
    }

    fn of(engine: Engine, devices: D) -> Self {
        Self { engine, devices, completions: Vec::new(), answers: Vec::new(), next_tag: OWN_TAGS }
    }

    /// Brings the whole table into memory; see [`Engine::bring_all_pages`].
    pub fn bring_all_pages(&mut self) -> Result<(), AssembleError> {
        self.engine.bring_all_pages(&mut self.devices)
    }
}

impl<D> Array<D> {
    /// The engine.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The engine, to look at.
    pub fn engine_ref(&self) -> &Engine {
        &self.engine
    }

    /// The devices.
    pub fn devices(&mut self) -> &mut D {
        &mut self.devices
    }

    /// The devices, to look at.
    pub fn devices_ref(&self) -> &D {
        &self.devices
    }

    /// Gives the devices back.
    pub fn into_devices(self) -> D {
        self.devices
    }

    /// The same array with other devices, or with what stands for them while it is moved to another thread;
    /// and those it had.
    pub fn with_devices<E>(self, devices: E) -> (Array<E>, D) {
        let Self { engine, devices: old, completions, answers, next_tag } = self;
        (Array { engine, devices, completions, answers, next_tag }, old)
    }

    /// The array goes on as `next`, for the same callers and on the same devices: it has grown, or was
    /// assembled anew, since this one was stopped in order and came to rest. Slots that callers have taken of
    /// the pool stay theirs, with what is in them.
    pub fn go_on_as(&mut self, next: Array<()>) {
        let before = std::mem::replace(&mut self.engine, next.engine);
        self.engine.inherit(before);
    }

    /// Moves the answers to requests (not the runner's own) to the end of `out`.
    pub fn take_answers(&mut self, out: &mut Vec<Done>) {
        out.append(&mut self.answers);
        out.append(self.engine.take_done());
    }

    /// A tag that no request of a front end has.
    pub fn own_tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// Whether a tag came from [`Array::own_tag`].
    pub fn is_own_tag(tag: u64) -> bool {
        tag >= OWN_TAGS
    }
}

impl<D: DeviceSet> Array<D> {
    /// One turn: submits what the engine wants, feeds it what has completed. `true` if anything happened.
    pub fn turn(&mut self) -> bool {
        self.engine.pump();
        if planted(Planted::GiveUpBeforeSubmit) {
            self.give_up_members();
        }
        let (ops, pool) = self.engine.take_ops();
        let submitted = !ops.is_empty();
        if submitted {
            self.devices.submit(pool, ops);
            ops.clear();
        }
        // After what the engine wanted of such a member before it knew: that is given up, too.
        self.give_up_members();
        self.devices.poll(self.engine.pool(), &mut self.completions);
        let completed = !self.completions.is_empty();
        for completion in self.completions.drain(..) {
            self.engine.complete(completion);
        }
        let more = submitted || completed || self.engine.wants_pump();
        debug_assert_eq!(self.engine.stranded().filter(|_| !more), None, "it would wait for ever");
        more
    }

    fn give_up_members(&mut self) {
        while let Some(dev) = self.engine.take_given_up() {
            self.devices.give_up(dev);
        }
    }

    /// Turns until nothing is in flight, or what is waits for room on a member.
    pub fn settle(&mut self) {
        self.settle_by(&mut || 0);
    }

    fn settle_by(&mut self, clock: &mut dyn FnMut() -> u64) {
        loop {
            self.engine.set_now(clock());
            if self.turn() {
                continue;
            }
            if self.engine.is_idle() || self.engine.lacks_room().is_some() {
                return;
            }
            self.devices.wait(WAIT_NS);
        }
    }

    /// Runs one control request to its end; other answers wait for [`Array::take_answers`].
    pub fn run(&mut self, start: impl FnOnce(&mut Engine, u64)) -> Result<(), EngineError> {
        self.run_by(&mut || 0, start)
    }

    fn run_by(
        &mut self,
        clock: &mut dyn FnMut() -> u64,
        start: impl FnOnce(&mut Engine, u64),
    ) -> Result<(), EngineError> {
        let tag = self.own_tag();
        start(&mut self.engine, tag);
        loop {
            self.engine.set_now(clock());
            let progress = self.turn();
            let mut result = None;
            for done in self.engine.take_done().drain(..) {
                if done.tag == tag { result = Some(done.result) } else { self.answers.push(done) }
            }
            if let Some(result) = result {
                return result;
            }
            match self.engine.lacks_room() {
                Some(dev) if !progress => return Err(EngineError::MemberFull { dev }),
                Some(_) | None if progress => {}
                Some(_) | None => self.devices.wait(WAIT_NS),
            }
        }
    }

    /// Stops in order: everything settled, a checkpoint, and superblocks that say so. A member that lacks
    /// room is not waited for.
    pub fn stop(&mut self) -> Result<(), EngineError> {
        self.stop_by(&mut || 0)
    }

    /// The same with a clock, in the engine's time: members that do not answer are given up as ever.
    pub fn stop_by(&mut self, clock: &mut dyn FnMut() -> u64) -> Result<(), EngineError> {
        self.engine.prepare_stop();
        self.settle_by(clock);
        self.run_by(clock, |engine, tag| engine.flush(tag))?;
        self.run_by(clock, |engine, tag| engine.write_checkpoint(tag, format::CheckpointKind::Incremental))?;
        self.run_by(clock, |engine, tag| engine.publish_clean(tag))
    }
}
