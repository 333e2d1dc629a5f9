//! One session: requests of all kinds side by side, faults in between, every answer judged.

mod ruined;
mod steer;

use crate::check;
use crate::disk::{BLOCK_BYTES, blocks_of};
use crate::machine::{Machine, Retired, Standing, Violation};
use crate::oracle::{SECTOR, Version, fill};
use crate::rot::{Hurt, Patients};
use crate::script::Step;
use crate::swarm::is_resync;
use crate::violation;
use crate::world::{Shared, Trap};
use array::{Array, Done, Durability, EngineError};
use block::{DevIndex, Slot};
use format::{CheckpointKind, Consistency, MemberState};
use std::collections::{BTreeMap, BTreeSet};

/// Turns without an answer or a step of maintenance after which a world counts as stuck although operations complete.
const TURNS_MAX: u64 = 200_000;
/// Turns that the engine asks for, one after the other, without an operation begun or ended, before it counts as spinning.
const SPINS_MAX: u64 = 5_000;
/// Turns in which nothing at all happens, nor will, before a world counts as stuck.
const IDLE_TURNS_MAX: u64 = 20;
/// A deadline as far ahead as this is none: an hour.
const DEADLINE_MAX_NS: u64 = 3_600_000_000_000;

/// What requests may wait for besides devices.
const AGE_SLACK_NS: u64 = 300_000_000;

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionEnd {
    /// Power failed.
    Crashed,
    /// The array was stopped in order.
    Stopped,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Write { version: Version, durable: bool },
    Read { first: u64, count: u64, anchor: bool },
    Flush,
    Commit,
    Checkpoint,
    Scrub,
    Rebuild { dev: u16 },
    Clean,
}

struct Request {
    kind: Kind,
    submitted: u64,
    since_ns: u64,
    slots: Vec<Slot>,
    /// Members out of service when it was submitted, each with its serial.
    out: Vec<(u16, u32)>,
    /// Of a scrub: who must be whole when it has come to its end.
    patients: Patients,
}

/// See the module's documentation.
pub(crate) struct Session<'a> {
    machine: &'a mut Machine,
    array: Array<Shared>,
    requests: BTreeMap<u64, Request>,
    next_tag: u64,
    turns: u64,
    /// Steps of maintenance that were done when something came of a turn last.
    steps: u64,
    spins: u64,
    idle_turns: u64,
    /// Nothing is under way and no deadline ahead: only a request changes that.
    asleep: bool,
    answers: Vec<Done>,
    /// A scrub was given up by the last request.
    given_up: bool,
    /// Requests that failed and may.
    errors: u64,
    /// Chunks that could not be read since the last look at everything began.
    unreadable: BTreeSet<u64>,
}

impl<'a> Session<'a> {
    pub fn new(machine: &'a mut Machine, array: Array<Shared>) -> Self {
        Self {
            machine,
            array,
            requests: BTreeMap::new(),
            next_tag: 1,
            turns: 0,
            steps: 0,
            spins: 0,
            idle_turns: 0,
            asleep: false,
            answers: Vec::new(),
            given_up: false,
            errors: 0,
            unreadable: BTreeSet::new(),
        }
    }

    /// The whole session.
    pub fn run(&mut self) -> Result<SessionEnd, Violation> {
        self.resume();
        if self.machine.rng.chance(4, 5) && !self.read_everything()? {
            return Ok(SessionEnd::Crashed);
        }
        if self.machine.rng.chance(1, 4) && self.drain()? {
            self.rest()?;
        }
        let mut left = self.machine.swarm.requests;
        while left > 0 && !self.crashed() && !self.blacked_out() {
            while left > 0 && self.requests.len() < self.machine.swarm.depth {
                left -= 1;
                if !self.submit_any()? {
                    break;
                }
            }
            if self.machine.rng.chance(self.machine.swarm.pause_permille, 1000) {
                self.lie_still()?;
            }
            self.turn()?;
        }
        if self.blacked_out() {
            self.drain()?;
            return Ok(SessionEnd::Crashed);
        }
        let stop = self.machine.rng.chance(1, 3) || !self.machine.swarm.crashes;
        if (stop || self.machine.rng.chance(1, 2)) && self.drain()? {
            self.rest()?;
            if stop && self.stop()? {
                return Ok(SessionEnd::Stopped);
            }
        }
        Ok(SessionEnd::Crashed)
    }

    fn blacked_out(&self) -> bool {
        self.machine.world.look().is_blacked_out()
    }

    fn crashed(&self) -> bool {
        self.machine.world.look().is_crashed()
    }

    /// Rebuilds that a restart interrupted go on, sooner or later.
    fn resume(&mut self) {
        let rebuilding =
            (0..self.machine.member_count()).any(|dev| self.state(dev) == MemberState::Rebuilding);
        if rebuilding && self.machine.rng.chance(2, 3) {
            let mut devs =
                (0..self.machine.member_count()).filter(|&dev| self.state(dev) == MemberState::Rebuilding);
            let dev = devs.next_back().unwrap_or(0);
            self.machine.say(|| "resume rebuild".into());
            self.control(Kind::Rebuild { dev }, |engine, tag| engine.resume_rebuild(tag));
        }
    }

    fn state(&self, dev: u16) -> MemberState {
        Machine::state_of(&self.array, dev)
    }

    fn is_out(&self, dev: u16) -> bool {
        !self.array.engine_ref().health().is_writable(DevIndex::new(dev))
    }

    fn serial(&self, dev: u16) -> u32 {
        self.array.engine_ref().health().members()[usize::from(dev)].serial
    }

    fn control(&mut self, kind: Kind, start: impl FnOnce(&mut array::Engine, u64)) {
        let (tag, _) = self.open(kind, Vec::new());
        self.machine.say(|| format!("request {kind:?}"));
        start(self.array.engine(), tag);
    }

    fn open(&mut self, kind: Kind, slots: Vec<Slot>) -> (u64, u64) {
        let tag = self.next_tag;
        self.next_tag += 1;
        let submitted = self.machine.oracle.now();
        let out = (0..self.machine.member_count())
            .filter(|&dev| self.is_out(dev))
            .map(|dev| (dev, self.serial(dev)));
        let out = out.collect();
        let since_ns = self.machine.now_ns;
        // A scrub that joins one under way is told what that one found, which began earlier.
        let first = matches!(kind, Kind::Scrub) && self.array.engine_ref().maintenance().is_none();
        let patients = if first { self.machine.patients(&self.array) } else { Patients::default() };
        self.requests.insert(tag, Request { kind, submitted, since_ns, slots, out, patients });
        // Reads of what was never written are answered without an operation: such turns are not idle.
        self.idle_turns = 0;
        (tag, submitted)
    }

    /// One turn of the array and the world, and the answers it brought. Exactly as a server does it: the engine is pumped
    /// once, and again without waiting only if it asks for that; else the next turn comes when an operation ends or a deadline
    /// has come, and if there is neither, with the next request.
    fn turn(&mut self) -> Result<(), Violation> {
        self.machine.now_ns += self.machine.rng.below(2_000);
        let now_ns = self.machine.now_ns;
        self.array.engine().set_now(now_ns);
        let events = self.machine.world.look().events();
        let more = self.array.turn();
        if let Some(broken) = self.machine.world.look().broken() {
            return Err(violation!("{broken}"));
        }
        if self.crashed() {
            return Ok(());
        }
        self.machine.patrolled(&self.array);
        let mut answers = std::mem::take(&mut self.answers);
        self.array.take_answers(&mut answers);
        self.turns += 1;
        let eventful = !answers.is_empty() || self.machine.world.look().events() != events;
        self.spins = if eventful { 0 } else { self.spins + 1 };
        let steps = self.array.engine_ref().maintenance().map_or(0, |(_, progress, _)| progress.done);
        if !answers.is_empty() || steps != self.steps {
            (self.turns, self.steps) = (0, steps);
        }
        for done in answers.drain(..) {
            self.answer(done)?;
        }
        self.answers = answers;
        self.check_ages()?;
        if more {
            self.idle_turns = 0;
        } else {
            self.sleep()?;
        }
        self.check_progress()
    }

    /// The engine asks for nothing: the next operation ends, or the next deadline comes, whichever is first.
    fn sleep(&mut self) -> Result<(), Violation> {
        self.spins = 0;
        if let Some(what) = self.array.engine_ref().stranded() {
            return Err(violation!(
                "lost wakeup: no operation is in flight, nobody will pump the engine, and {what} is left; {}",
                self.open_requests()
            ));
        }
        let in_flight = self.machine.world.look().in_flight() > 0;
        let now_ns = self.machine.now_ns;
        let soon = |at_ns: &u64| *at_ns < now_ns.saturating_add(DEADLINE_MAX_NS);
        let deadline = self.array.engine_ref().next_deadline_ns().filter(soon);
        let paused = self.array.engine_ref().is_scrub_paused();
        self.asleep = !in_flight && self.array.engine_ref().work_deadline_ns().filter(soon).is_none();
        if self.asleep && paused {
            // Nobody lets a scrub wait for good.
            self.asleep = !self.array.engine().resume_scrub();
        }
        self.idle_turns = if self.asleep { self.idle_turns + 1 } else { 0 };
        match deadline {
            Some(at_ns) if !in_flight || self.machine.rng.chance(1, 4) => {
                self.machine.now_ns = now_ns.max(at_ns);
            }
            Some(_) | None => self.machine.world.change().tick_to_next(),
        }
        Ok(())
    }

    fn open_requests(&self) -> String {
        let kinds: Vec<String> = self.requests.values().take(4).map(|r| format!("{:?}", r.kind)).collect();
        format!("{} requests are not answered, among them {}", self.requests.len(), kinds.join(", "))
    }

    fn check_progress(&self) -> Result<(), Violation> {
        if self.spins > SPINS_MAX {
            return Err(violation!("the engine asks to be pumped over and over, and does nothing"));
        }
        if !self.requests.is_empty() && (self.idle_turns > 0 || self.turns > TURNS_MAX) {
            return Err(violation!(
                "stuck: {}; {} operations in flight",
                self.open_requests(),
                self.machine.world.look().in_flight()
            ));
        }
        if self.idle_turns > IDLE_TURNS_MAX {
            return Err(violation!("stuck: nothing is under way, and something still waits"));
        }
        Ok(())
    }

    /// Nobody asks for anything for as long as the engine has anything to do: every request is answered, and what was to be
    /// committed when idle is.
    fn lie_still(&mut self) -> Result<(), Violation> {
        if !self.drain()? || !self.settle()? {
            return Ok(());
        }
        let engine = self.array.engine_ref();
        let dirty = engine.scheme().pressure(engine.store()).dirty_stripes;
        let stuck = engine.stuck_stripes().len() as u64;
        if engine.options().commit.idle_ns.is_some() && engine.accepts_writes() && dirty > stuck {
            return Err(violation!("lost wakeup: idle for good, and {dirty} stripes are not committed"));
        }
        Ok(())
    }

    /// Nobody waits for devices longer than their limit allows, each device that may be hurt taken in turn.
    fn check_ages(&self) -> Result<(), Violation> {
        let Some(limit_ns) = self.machine.swarm.options.device_timeout_ns else { return Ok(()) };
        let most_ns = (self.machine.budget() as u64 + 1) * 2 * limit_ns + AGE_SLACK_NS;
        let is_client = |r: &&Request| matches!(r.kind, Kind::Write { .. } | Kind::Read { .. } | Kind::Flush);
        let old =
            self.requests.values().filter(is_client).find(|r| self.machine.now_ns - r.since_ns > most_ns);
        match old {
            Some(Request { kind, since_ns, .. }) if !self.machine.world.look().lacked_room() => {
                Err(violation!(
                    "{kind:?} has waited for {} ns, devices have {limit_ns} ns to answer",
                    self.machine.now_ns - since_ns
                ))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Turns until every request is answered; `false` if power failed first, or more devices than the code tolerates have
    /// stopped answering: then answers may be errors, but they come.
    pub fn drain(&mut self) -> Result<bool, Violation> {
        while !self.crashed() && !self.requests.is_empty() {
            self.turn()?;
        }
        Ok(!self.crashed() && !self.blacked_out())
    }

    /// Units that garbage collection has chosen since assembly.
    pub fn units_collected(&self) -> u64 {
        self.array.engine_ref().scheme().gc_stats().units_collected
    }

    fn answer(&mut self, done: Done) -> Result<(), Violation> {
        let Some(request) = self.requests.remove(&done.tag) else {
            return Err(violation!(
                "an answer to a request that was never made, or was answered before: {done:?}"
            ));
        };
        self.machine.outcome.requests += 1;
        for &(dev, serial) in &request.out {
            // Submitted when the member was out, and answered: the others know by now. A failed array tells nobody.
            if !self.blacked_out() && self.is_out(dev) && self.serial(dev) == serial {
                self.machine.standing[usize::from(dev)].excluded = true;
            }
        }
        self.machine
            .say(|| format!("answer to {:?} of {}: {:?}", request.kind, request.submitted, done.result));
        let result = self.judge(&request, done.result);
        for slot in request.slots {
            self.array.engine().pool().free(slot);
        }
        result
    }

    fn judge(&mut self, request: &Request, result: Result<(), EngineError>) -> Result<(), Violation> {
        match (request.kind, result) {
            (Kind::Write { version, durable }, Ok(())) => {
                let config = self.machine.swarm.config;
                let journaled = config.scheme.is_in_place() && config.consistency == Consistency::Journal;
                let durable =
                    durable || journaled || self.machine.swarm.options.sync == array::SyncPolicy::Always;
                self.machine.oracle.answered(version, durable);
                Ok(())
            }
            (Kind::Read { first, count, anchor }, Ok(())) => self.judge_read(request, first, count, anchor),
            (Kind::Flush, Ok(())) => {
                self.machine.oracle.flushed(request.submitted);
                Ok(())
            }
            (Kind::Rebuild { dev }, Ok(())) => {
                self.rebuilt(dev);
                Ok(())
            }
            (
                Kind::Scrub | Kind::Rebuild { .. },
                Err(
                    EngineError::Preempted
                    | EngineError::GivenUp
                    | EngineError::Stopping
                    | EngineError::Busy
                    | EngineError::MemberInService { .. }
                    | EngineError::MemberNotFree { .. },
                ),
            ) => {
                self.errors += 1;
                Ok(())
            }
            (Kind::Scrub, Ok(())) => {
                self.machine.scrubbed(&self.array, &request.patients);
                Ok(())
            }
            (Kind::Commit | Kind::Checkpoint | Kind::Clean, Ok(())) => Ok(()),
            (kind, Err(error)) if self.machine.ruined => self.judge_ruined(kind, error),
            (
                Kind::Write { .. } | Kind::Flush | Kind::Commit | Kind::Checkpoint,
                Err(EngineError::MemberFull { .. }),
            ) if self.machine.world.look().lacked_room() => Ok(()),
            (_, Err(_)) if self.machine.world.look().is_blacked_out() => Ok(()),
            (kind, Err(error)) => Err(violation!(
                "{kind:?} failed although no more devices are hurt than the code tolerates: {error}"
            )),
        }
    }

    /// Every member that is healthy now and was not hurt again is above suspicion.
    fn rebuilt(&mut self, dev: u16) {
        self.machine.say(|| format!("rebuild answered ({dev})"));
        for dev in 0..self.machine.member_count() {
            let standing = self.machine.standing[usize::from(dev)];
            let healthy = self.state(dev) == MemberState::Healthy;
            self.machine.standing[usize::from(dev)].replacement &= !healthy;
            if self.state(dev) == MemberState::Healthy && !standing.tainted && !standing.lost {
                self.machine.suspects.remove(&dev);
                self.machine.standing[usize::from(dev)].excluded = false;
                if let Some(retired) = &mut self.machine.retired[usize::from(dev)] {
                    retired.excluded = true;
                }
            }
        }
    }

    fn judge_read(
        &mut self,
        request: &Request,
        first: u64,
        count: u64,
        anchor: bool,
    ) -> Result<(), Violation> {
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64;
        for lba in first..first + count {
            let at = lba * SECTOR as u64;
            let slot = request.slots[(at / chunk - first * SECTOR as u64 / chunk) as usize];
            let bytes = &self.array.engine().pool().bytes(slot)[(at % chunk) as usize..][..SECTOR];
            let result = if self.machine.ruined {
                self.machine.oracle.check_ruined(lba, bytes, self.machine.forced)
            } else if anchor {
                self.machine.oracle.anchor(lba, bytes)
            } else {
                self.machine.oracle.check_read(lba, bytes, request.submitted)
            };
            result.map_err(|wrong| {
                let when = match (self.machine.ruined, anchor) {
                    (true, _) => "after damage beyond the promise",
                    (false, true) => "after a restart",
                    (false, false) => "while running",
                };
                violation!("{when}, {wrong} (chunk {})", at / chunk)
            })?;
        }
        Ok(())
    }

    /// Reads the whole volume; after a restart what is read is from then on the only right content. `false` if power
    /// failed first.
    pub fn read_everything(&mut self) -> Result<bool, Violation> {
        let anchor = self.machine.unread;
        let sectors = self.machine.oracle.sector_count() as u64;
        let most = (self.array.engine_ref().slots_per_request_max() as u64).clamp(1, 64);
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64 / SECTOR as u64;
        let mut first = 0;
        while first < sectors && !self.crashed() {
            let count = (most * chunk).min(sectors - first);
            if self.requests.len() < 16 && self.submit_read(first, count, anchor) {
                first += count;
            } else {
                self.turn()?;
            }
        }
        if !self.drain()? {
            return Ok(false);
        }
        if anchor {
            self.check_torn()?;
            self.machine.oracle.anchored();
            self.machine.unread = false;
        }
        Ok(true)
    }

    /// In-place schemes with a journal change a stripe at once: what one request does to it, be it a write or a discard, is there
    /// after a power cut or is not.
    fn check_torn(&self) -> Result<(), Violation> {
        let config = self.machine.swarm.config;
        if !config.scheme.is_in_place() || config.consistency != Consistency::Journal {
            return Ok(());
        }
        let stripe = config.geometry.data_count() * config.geometry.chunk_bytes() / SECTOR;
        match self.machine.oracle.torn(stripe as u64) {
            None => Ok(()),
            Some((version, is, is_not)) => Err(violation!(
                "version {version} survived in sector {is} and not in sector {is_not} of the same stripe"
            )),
        }
    }

    fn take_slots(&mut self, first: u64, count: u64) -> Option<Vec<Slot>> {
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64 / SECTOR as u64;
        let chunks = (first + count).div_ceil(chunk) - first / chunk;
        let mut slots = Vec::new();
        self.array.engine().take_slots(chunks as usize, &mut slots).then_some(slots)
    }

    fn submit_read(&mut self, first: u64, count: u64, anchor: bool) -> bool {
        let Some(slots) = self.take_slots(first, count) else { return false };
        let (tag, _) = self.open(Kind::Read { first, count, anchor }, slots.clone());
        self.array.engine().read(tag, first * SECTOR as u64, count * SECTOR as u64, &slots);
        true
    }

    fn oldest_read(&mut self) -> u64 {
        let reads = self.requests.values().filter(|r| matches!(r.kind, Kind::Read { .. }));
        reads.map(|r| r.submitted).min().unwrap_or(u64::MAX)
    }

    /// One step of a script.
    pub fn play(&mut self, step: Step) {
        let permille = self.machine.swarm.durable_permille;
        match step {
            Step::Write { first, count, durable } => {
                self.machine.swarm.durable_permille = if durable { 1000 } else { 0 };
                self.submit_write(first, count);
            }
            Step::Discard { first, count } => {
                self.submit_zero(first, count);
            }
            Step::Flush => self.control(Kind::Flush, |engine, tag| engine.flush(tag)),
            Step::Commit => self.control(Kind::Commit, |engine, tag| engine.commit(tag)),
            Step::Checkpoint(kind) => {
                self.control(Kind::Checkpoint, |engine, tag| engine.write_checkpoint(tag, kind));
            }
            Step::Fail(dev) => self.fail_device(dev),
            Step::Replace => self.replace(),
        }
        self.machine.swarm.durable_permille = permille;
    }

    fn submit_write(&mut self, first: u64, count: u64) -> bool {
        let Some(slots) = self.take_slots(first, count) else { return false };
        let oldest = self.oldest_read();
        let version = self.machine.oracle.submit(first, count, false, oldest);
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64;
        for lba in first..first + count {
            let at = lba * SECTOR as u64;
            let slot = slots[(at / chunk - first * SECTOR as u64 / chunk) as usize];
            let bytes = &mut self.array.engine().pool().bytes_mut(slot)[(at % chunk) as usize..][..SECTOR];
            fill(version, lba, bytes);
        }
        let durable = self.machine.rng.chance(self.machine.swarm.durable_permille, 1000);
        self.machine.say(|| {
            format!("write {version}: sectors {first}+{count}{}", if durable { ", durable" } else { "" })
        });
        let (tag, _) = self.open(Kind::Write { version, durable }, slots.clone());
        let durability = if durable { Durability::Durable } else { Durability::Volatile };
        self.array.engine().write(tag, first * SECTOR as u64, count * SECTOR as u64, &slots, durability);
        true
    }

    fn submit_zero(&mut self, first: u64, count: u64) -> bool {
        let mut slots = Vec::new();
        if !self.array.engine().take_slots(2, &mut slots) {
            return false;
        }
        let oldest = self.oldest_read();
        let version = self.machine.oracle.submit(first, count, true, oldest);
        let durable = self.machine.rng.chance(self.machine.swarm.durable_permille, 1000);
        let edges = [slots[0], slots[1]];
        self.machine.say(|| {
            format!("discard {version}: sectors {first}+{count}{}", if durable { ", durable" } else { "" })
        });
        let (tag, _) = self.open(Kind::Write { version, durable }, slots);
        let durability = if durable { Durability::Durable } else { Durability::Volatile };
        self.array.engine().zero(tag, first * SECTOR as u64, count * SECTOR as u64, edges, durability);
        true
    }

    /// Some sectors, most of them in the hot part of the volume.
    fn draw_range(&mut self, align: u64, most: u64) -> (u64, u64) {
        let sectors = self.machine.oracle.sector_count() as u64;
        let rng = &mut self.machine.rng;
        let span = if rng.chance(self.machine.swarm.hot_permille, 1000) {
            self.machine.swarm.hot_sectors
        } else {
            sectors
        };
        let first = rng.below(span) / align * align;
        let count = rng.within(1, most.div_ceil(align)) * align;
        (first, count.min(sectors - first))
    }

    /// One request or fault, by the swarm's weights; `false` if there are no buffers for it now.
    #[expect(clippy::too_many_lines, reason = "one short arm for each kind of request")]
    fn submit_any(&mut self) -> Result<bool, Violation> {
        let mix = self.machine.swarm.mix;
        let config = self.machine.swarm.config;
        let chunk = config.geometry.chunk_bytes() as u64 / SECTOR as u64;
        let stripe = chunk * config.geometry.data_count() as u64;
        let most = chunk
            * self.machine.swarm.chunks_max.min(self.array.engine_ref().slots_per_request_max() as u64 / 2);
        let weights = [
            mix.write,
            mix.whole,
            mix.stripe,
            mix.read,
            mix.flush,
            mix.discard,
            mix.commit,
            mix.checkpoint,
            mix.scrub,
            mix.fail,
            mix.replace,
            mix.trap,
        ];
        let mut draw = self.machine.rng.below(weights.iter().sum());
        let kind = weights
            .iter()
            .position(|&w| {
                if draw < w {
                    true
                } else {
                    draw -= w;
                    false
                }
            })
            .unwrap_or(0);
        if self.scrub_again() {
            return Ok(true);
        }
        Ok(match kind {
            0 => {
                let (first, count) = self.draw_range(1, most);
                self.submit_write(first, count)
            }
            1 => {
                let (first, count) = self.draw_range(chunk, most);
                self.submit_write(first, count)
            }
            2 => {
                let (first, count) = self.draw_range(stripe, stripe);
                self.submit_write(first, count)
            }
            3 => {
                let (first, count) = self.draw_range(1, most);
                self.submit_read(first, count, false)
            }
            4 => {
                self.control(Kind::Flush, |engine, tag| engine.flush(tag));
                true
            }
            5 => {
                let align = self.machine.rng.pick(&[1, chunk, stripe]);
                let (first, count) = self.draw_range(align, most * 8);
                self.submit_zero(first, count)
            }
            6 => {
                self.control(Kind::Commit, |engine, tag| engine.commit(tag));
                true
            }
            7 => {
                let kind = self.machine.rng.pick(&[CheckpointKind::Full, CheckpointKind::Incremental]);
                self.control(Kind::Checkpoint, |engine, tag| engine.write_checkpoint(tag, kind));
                true
            }
            8 => {
                if !self.steer_scrub() {
                    self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0));
                }
                true
            }
            9 => {
                self.fail();
                true
            }
            10 => {
                self.replace();
                true
            }
            _ => {
                self.lay_trap();
                true
            }
        })
    }

    fn fail(&mut self) {
        if let Some(dev) = self.machine.draw_victim() {
            self.fail_device(dev);
        }
    }

    fn fail_device(&mut self, dev: u16) {
        self.machine.say(|| format!("fail device {dev}"));
        self.machine.suspects.insert(dev);
        self.machine.standing[usize::from(dev)].tainted = true;
        self.array.engine().fail_device(DevIndex::new(dev));
    }

    /// A new disk takes the place of a failed one once nothing is under way on that.
    fn replace(&mut self) {
        let suspects: Vec<u16> = self.machine.suspects.iter().copied().collect();
        for dev in suspects {
            let index = DevIndex::new(dev);
            if !self.array.engine().is_replaceable(index) || self.array.engine().in_flight(index) > 0 {
                continue;
            }
            let size = self.machine.swarm.sizes()[usize::from(dev)] as usize;
            let blank = match self.machine.rng.below(2) {
                0 => vec![None; size / BLOCK_BYTES],
                _ => vec![Some(blocks_of(&[0xee; BLOCK_BYTES]).swap_remove(0)); size / BLOCK_BYTES],
            };
            self.machine.world.change().clear_traps(dev);
            let image = self.machine.world.change().replace(dev, blank);
            let excluded = self.machine.standing[usize::from(dev)].excluded;
            // A disk that never was a member for long is forgotten; the one before it may still come back.
            if crate::world::superblock_of(&image).is_some() {
                self.machine.retired[usize::from(dev)] = Some(Retired { image, excluded });
            }
            self.machine.standing[usize::from(dev)] = Standing { replacement: true, ..Standing::default() };
            self.machine.serial += 1;
            let serial = self.machine.serial;
            self.machine.say(|| format!("replace device {dev}, serial {serial}"));
            self.control(Kind::Rebuild { dev }, |engine, tag| engine.rebuild(tag, index, serial));
            return;
        }
    }

    fn lay_trap(&mut self) {
        if self.machine.swarm.faults && self.machine.rng.chance(1, 4) {
            return self.machine.fill_up();
        }
        let rotting = self.machine.swarm.rotting;
        if rotting && !self.machine.suspects.is_empty() && self.machine.rng.chance(7, 8) {
            return; // what is hurt is to be made good before more is
        }
        if rotting && self.machine.rng.chance(3, 4) {
            return self.rot();
        }
        let Some(dev) = self.machine.draw_victim() else { return };
        self.machine.hurt(dev, Hurt::Anything);
        let rng = &mut self.machine.rng;
        if self.machine.swarm.options.device_timeout_ns.is_some() && rng.chance(1, 6) {
            let ticks = rng.pick(&[None, Some(50), Some(10_000)]);
            self.machine.say(|| format!("device {dev} does not answer for {ticks:?} ticks"));
            return self.machine.world.change().hang(dev, ticks);
        }
        let trap = match rng.below(7) {
            0 => Trap::Read { dev, count: rng.within(1, 20) as u32 },
            1 => Trap::Write { dev },
            2 => Trap::Flush { dev },
            3 => Trap::Gone { dev },
            4 => Trap::Misdirect { dev },
            _ => return self.machine.rot(dev),
        };
        self.machine.say(|| format!("trap: {trap:?}"));
        self.machine.world.change().set_trap(trap);
    }

    /// Everything settles and is durable; then all invariants are checked. Nothing happens if power fails first.
    pub fn rest(&mut self) -> Result<(), Violation> {
        self.machine.world.change().make_room();
        // The first flush makes records durable, the second makes that known on disk; background work may add records.
        // Without a journal, only the figures tell that there was some.
        let work = |array: &Array<Shared>| {
            let engine = array.engine_ref();
            (engine.journal().next_seq(), engine.stats().stripes_committed)
        };
        let (mut last, mut same) = (work(&self.array), 0);
        while same < 3 {
            self.control(Kind::Flush, |engine, tag| engine.flush(tag));
            if !self.drain()? || !self.settle()? {
                return Ok(());
            }
            let next = work(&self.array);
            same = if next == last { same + 1 } else { 0 };
            last = next;
        }
        self.machine.say(|| "at rest".into());
        let spared = |dev: u16| self.machine.suspects.contains(&dev);
        check::covers(
            self.array.engine_ref(),
            &self.machine.world.look(),
            &spared,
            &mut self.machine.rng.clone(),
        )?;
        check::space(self.array.engine_ref())?;
        check::counters(self.array.engine_ref())?;
        if is_resync(&self.machine.swarm.config) {
            return Ok(()); // Nothing is recorded: replay has nothing to say.
        }
        self.machine.compare_with_replay(&self.array)
    }

    /// Until nothing is under way and no deadline is ahead.
    pub(super) fn settle(&mut self) -> Result<bool, Violation> {
        self.asleep = false;
        while !self.asleep && !self.crashed() {
            self.turn()?;
        }
        Ok(!self.crashed() && !self.blacked_out())
    }

    /// An orderly stop; `false` if power failed first.
    pub fn stop(&mut self) -> Result<bool, Violation> {
        self.machine.world.change().make_room();
        self.control(Kind::Flush, |engine, tag| engine.flush(tag));
        if !self.drain()? {
            return Ok(false);
        }
        self.control(Kind::Checkpoint, |engine, tag| {
            engine.write_checkpoint(tag, CheckpointKind::Incremental)
        });
        if !self.drain()? {
            return Ok(false);
        }
        self.control(Kind::Clean, |engine, tag| engine.publish_clean(tag));
        self.drain()
    }
}
