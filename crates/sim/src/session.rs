//! One session: requests of all kinds side by side, faults in between, every answer judged.

mod back;
mod exchange;
mod judge;
mod level;
mod log_order;
mod ruined;
mod silence;
mod steer;
mod submit;
mod succeed;

use crate::check;
use crate::course::Part;
use crate::fleet::{Fleet, Portion};
use crate::machine::Machine;
use crate::oracle::Version;
use crate::port::Shard;
use crate::rot::Area;
use crate::rot::Patients;
use crate::swarm::is_resync;
use crate::violation;
use crate::violation::Violation;
use array::{Done, Engine};
use block::{DevIndex, Random as _, SECTOR_BYTES};
use exchange::Exchange;
use format::{CheckpointKind, MemberState};
use level::Rumour;
use log_order::LogOrder;
use std::collections::{BTreeMap, BTreeSet};
use succeed::Successor;

/// Turns without an answer or a step of maintenance after which a world counts as stuck although operations
/// complete.
const TURNS_MAX: u64 = 200_000;
/// Turns that the engine asks for, one after the other, without an operation begun or ended, before it counts
/// as spinning.
const SPINS_MAX: u64 = 5_000;
/// Turns in which nothing is answered and no maintenance goes on, at most, whatever is waited for.
const ENDLESS_TURNS_MAX: u64 = 1_000_000;
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

/// One request of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Writes sectors.
    Write {
        /// The first.
        first: u64,
        /// How many.
        count: u64,
        /// Whether it must be durable when it is answered.
        durable: bool,
    },
    /// Discards sectors.
    Discard {
        /// The first.
        first: u64,
        /// How many.
        count: u64,
    },
    /// A flush.
    Flush,
    /// A parity commit.
    Commit,
    /// A checkpoint.
    Checkpoint(CheckpointKind),
    /// A member is taken out of service.
    Fail(u16),
    /// What failed is replaced and rebuilt.
    Replace,
    /// A rebuild that a restart interrupted goes on.
    Resume,
    /// A bit of every block of an area of a device flips.
    Rot(u16, Area),
    /// A scrub.
    Scrub,
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

/// What was done to work under way.
#[derive(Default)]
struct Steered {
    /// A scrub was given up by the last request.
    scrub_given_up: bool,
    /// Commits were paused or given up.
    commits: bool,
    /// A commit was given up.
    commit_given_up: bool,
}

struct Request {
    kind: Kind,
    submitted: u64,
    since_ns: u64,
    parts: Vec<Portion>,
    /// Members out of service when it was submitted, in shards that it was submitted to: the place of the
    /// shard, the member, its serial.
    out: Vec<(usize, u16, u32)>,
    /// Of a scrub: who must be whole when it has come to its end.
    patients: Patients,
}

/// See the module's documentation.
pub(crate) struct Session<'a> {
    machine: &'a mut Machine,
    fleet: Fleet,
    requests: BTreeMap<u64, Request>,
    next_tag: u64,
    turns: u64,
    /// Steps of maintenance that were done when something came of a turn last.
    steps: u64,
    /// Code words that the rebuild under way found done.
    kept: u64,
    spins: u64,
    idle_turns: u64,
    /// Nothing is under way and no deadline ahead: only a request changes that.
    asleep: bool,
    answers: Vec<Done>,
    steered: Steered,
    /// Requests that failed and may.
    errors: u64,
    /// Chunks that could not be read since the last look at everything began.
    unreadable: BTreeSet<u64>,
    /// Of each shard.
    log_orders: Vec<LogOrder>,
    /// A device is taking the place of another.
    exchange: Option<Exchange>,
    /// A device is to succeed a member that works.
    successor: Option<Successor>,
    /// No member gets a successor any more.
    ends: bool,
    rumour: Rumour,
}

impl<'a> Session<'a> {
    pub fn new(machine: &'a mut Machine, shards: Vec<Shard>) -> Self {
        let fleet = Fleet::new(shards);
        let log_orders = fleet.engines().map(LogOrder::new).collect();
        let untorn_bytes = fleet.engines().map(Engine::untorn_bytes).min().unwrap_or(0);
        machine.oracle.untorn = untorn_bytes / SECTOR_BYTES;
        Self {
            machine,
            fleet,
            requests: BTreeMap::new(),
            next_tag: 1,
            turns: 0,
            steps: 0,
            kept: 0,
            spins: 0,
            idle_turns: 0,
            asleep: false,
            answers: Vec::new(),
            steered: Steered::default(),
            errors: 0,
            unreadable: BTreeSet::new(),
            log_orders,
            exchange: None,
            successor: None,
            ends: false,
            rumour: Rumour::default(),
        }
    }

    /// The whole session.
    pub fn run(&mut self) -> Result<SessionEnd, Violation> {
        if self.machine.enter(Part::Open) && !self.look_round()? {
            return Ok(SessionEnd::Crashed);
        }
        self.work()?;
        if self.blacked_out() {
            self.drain()?;
            return Ok(SessionEnd::Crashed);
        }
        // Where power must not fail, each session ends with a stop.
        let close = self.machine.enter(Part::Close) || !self.machine.swarm.crashes;
        let stop = self.machine.rng.chance(1, 3) || !self.machine.swarm.crashes;
        if close && (stop || self.machine.rng.chance(1, 2)) && self.drain()? {
            self.rest()?;
            if stop && self.stop()? {
                return Ok(SessionEnd::Stopped);
            }
        }
        Ok(SessionEnd::Crashed)
    }

    /// What comes before the first request; `false` if power failed.
    fn look_round(&mut self) -> Result<bool, Violation> {
        self.resume();
        if self.machine.rng.chance(4, 5) && !self.read_everything()? {
            return Ok(false);
        }
        if self.machine.rng.chance(1, 4) && self.drain()? {
            self.rest()?;
        }
        Ok(true)
    }

    /// Requests and faults, as many as the world has. One that is left out takes a turn all the same, unless
    /// in a hurry.
    fn work(&mut self) -> Result<(), Violation> {
        let (steps, hurried) = (self.machine.swarm.requests, self.machine.is_hurried());
        let pauses = self.machine.keeps(Part::Pause);
        let mut step = 0;
        while step < steps && !self.crashed() && !self.blacked_out() {
            while step < steps && self.requests.len() < self.machine.swarm.depth {
                let happens = self.machine.enter(Part::Step(step));
                step += 1;
                let more = if happens { self.submit_any() } else { hurried };
                if !happens {
                    self.idle_turns = 0;
                }
                if !more {
                    break;
                }
            }
            if self.machine.rng.chance(self.machine.swarm.odds.pause, 1000) && pauses {
                self.lie_still()?;
            }
            self.turn()?;
        }
        for stats in self.fleet.engines().map(Engine::stats) {
            self.machine.outcome.replaced += stats.replaced_stripes;
            self.machine.outcome.pages_read += stats.pages_read;
            self.machine.outcome.beside += stats.checkpoints_beside;
        }
        Ok(())
    }

    fn blacked_out(&self) -> bool {
        self.machine.world.look().is_blacked_out()
    }

    fn crashed(&self) -> bool {
        self.machine.world.look().is_crashed()
    }

    /// Rebuilds that a restart interrupted go on, sooner or later.
    fn resume(&mut self) {
        if !self.rebuilding().is_empty() && self.machine.rng.chance(2, 3) {
            self.resume_rebuilds();
            self.cut_rebuild();
        }
    }

    /// The shards that have members being rebuilt, and the last one of each.
    fn rebuilding(&self) -> Vec<(usize, u16)> {
        let members = self.machine.member_count();
        let last = |engine: &Engine| {
            (0..members).rfind(|&dev| engine.health().state(DevIndex::new(dev)) == MemberState::Rebuilding)
        };
        self.fleet.engines().enumerate().filter_map(|(at, engine)| Some((at, last(engine)?))).collect()
    }

    fn resume_rebuilds(&mut self) {
        let (shards, members): (Vec<usize>, Vec<u16>) = self.rebuilding().into_iter().unzip();
        if let Some(&dev) = members.first() {
            self.machine.say(|| "resume rebuild".into());
            self.control_some(Kind::Rebuild { dev }, &shards, |engine, tag| engine.resume_rebuild(tag));
        }
    }

    /// Something that all shards do.
    fn control(&mut self, kind: Kind, start: impl Fn(&mut Engine, u64)) {
        let all: Vec<usize> = (0..self.fleet.len()).collect();
        self.control_some(kind, &all, start);
    }

    fn control_some(&mut self, kind: Kind, shards: &[usize], start: impl Fn(&mut Engine, u64)) {
        let tag = self.open(kind, shards, Vec::new());
        self.machine.say(|| format!("request {kind:?}"));
        let tag = self.tag_of_parts(tag, shards.len());
        shards.iter().for_each(|&at| start(self.fleet.engine(at), tag));
    }

    /// The tag that the parts of a request have.
    fn tag_of_parts(&mut self, tag: u64, parts: usize) -> u64 {
        if parts == 1 { tag } else { self.fleet.fan.begin(tag, parts) }
    }

    /// A request to some shards.
    fn open(&mut self, kind: Kind, shards: &[usize], parts: Vec<Portion>) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        let submitted = self.machine.oracle.now();
        let mut out = Vec::new();
        for &at in shards {
            let members = (0..self.machine.member_count()).zip(self.fleet.engine_ref(at).health().members());
            let gone = members.filter(|&(dev, _)| self.fleet.is_out(at, dev));
            out.extend(gone.map(|(dev, member)| (at, dev, member.serial)));
        }
        let since_ns = self.machine.now_ns;
        // A scrub that joins one under way is told what that one found, which began earlier.
        let first =
            matches!(kind, Kind::Scrub) && self.fleet.engines().all(|engine| engine.maintenance().is_none());
        let patients = if first { self.machine.patients(&self.fleet) } else { Patients::default() };
        if self.requests.is_empty() {
            // Nothing waited until now, however long all lay still.
            self.turns = 0;
        }
        self.requests.insert(tag, Request { kind, submitted, since_ns, parts, out, patients });
        // Reads of what was never written are answered without an operation: such turns are not idle.
        self.idle_turns = 0;
        tag
    }

    /// One turn of a shard and the world, and the answers it brought. Exactly as a server does it: the
    /// engine is pumped once, and again without waiting only if it asks for that; else the next turn comes
    /// when an operation ends or a deadline has come, and if there is neither, with the next request.
    fn turn(&mut self) -> Result<(), Violation> {
        self.machine.now_ns += self.machine.rng.below(2_000);
        let now_ns = self.machine.now_ns;
        self.machine.world.change().set_now(now_ns);
        self.settle_shelf();
        self.level();
        self.exchange_on()?;
        self.succeed_on()?;
        let at = self.choose();
        let events = self.machine.world.look().events();
        let more = self.fleet.turn(at, now_ns);
        if let Some(broken) = self.machine.world.look().broken() {
            return Err(violation!("{broken}"));
        }
        if self.crashed() {
            return Ok(());
        }
        self.machine.world.change().take_log_writes(self.log_orders[at].writes());
        self.log_orders[at].check(self.fleet.engine_ref(at))?;
        self.machine.patrolled(&self.fleet);
        let mut answers = std::mem::take(&mut self.answers);
        self.fleet.take_answers(at, &mut answers);
        self.turns += 1;
        let eventful = !answers.is_empty() || self.machine.world.look().events() != events;
        self.spins = if eventful { 0 } else { self.spins + 1 };
        let (mut steps, mut kept) = (0, 0);
        for (_, progress, _) in self.fleet.engines().filter_map(Engine::maintenance) {
            (steps, kept) = (steps + progress.done, kept + progress.kept);
        }
        self.machine.outcome.kept += kept.saturating_sub(self.kept);
        self.kept = kept;
        if !answers.is_empty() || steps != self.steps {
            (self.turns, self.steps) = (0, steps);
        }
        for done in answers.drain(..) {
            self.answer(done)?;
        }
        self.answers = answers;
        self.check_ages()?;
        self.check_silence()?;
        if !more && self.fleet.is_several() {
            self.note_settled(at);
        }
        if more || (self.fleet.is_several() && self.any_is_ready()) {
            self.idle_turns = 0;
        } else {
            self.sleep()?;
        }
        self.check_progress()
    }

    /// Whether a shard has nothing to do any more, but for rounds of the patrol; and whether what is paused
    /// is all that any has.
    fn note_settled(&mut self, at: usize) {
        let engine = self.fleet.engine_ref(at);
        let soon = self.machine.now_ns.saturating_add(DEADLINE_MAX_NS);
        let waits = engine.work_deadline_ns().is_some_and(|at_ns| at_ns < soon);
        let in_flight = self.machine.world.look().in_flight_of(self.fleet.number(at)) > 0;
        if waits || in_flight {
            return;
        }
        let is_paused = engine.is_scrub_paused() || engine.are_commits_paused();
        if !is_paused && self.exchange.is_none() && self.successor.is_none() {
            self.fleet.settle(at);
        }
        self.fleet.rest(at);
        // Rounds of the patrol are at any time under way in one shard or another: all need not sleep at once.
        if self.fleet.is_rested() {
            self.resume_paused();
        }
    }

    /// Nobody lets a scrub or commits wait for good; whether any waited.
    fn resume_paused(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.fleet.len() {
            let engine = self.fleet.engine_ref(at);
            let (scrub, commits) = (engine.is_scrub_paused(), engine.are_commits_paused());
            any |= scrub && self.fleet.engine(at).resume_scrub();
            let goes_on = commits && self.fleet.engine(at).resume_commits();
            // One that only says so would be asked for ever.
            any |= goes_on && !self.fleet.engine_ref(at).are_commits_paused();
        }
        any
    }

    fn is_ready(&self, at: usize) -> bool {
        self.fleet.is_ready(at, self.machine.now_ns)
            || self.machine.world.look().has_due(self.fleet.number(at))
    }

    fn any_is_ready(&self) -> bool {
        (0..self.fleet.len()).any(|at| self.is_ready(at))
    }

    /// The shard whose turn it is: any of those that would be woken now.
    fn choose(&mut self) -> usize {
        let count = self.fleet.len();
        if count == 1 {
            return 0;
        }
        let ready: Vec<usize> = (0..count).filter(|&at| self.is_ready(at)).collect();
        if ready.is_empty() { self.machine.rng.index(count) } else { self.machine.rng.pick(&ready) }
    }

    /// The engine asks for nothing: the next operation ends, or the next deadline comes, whichever is first.
    fn sleep(&mut self) -> Result<(), Violation> {
        self.spins = 0;
        // What waits until all members are told of a successor is woken by that.
        let stranded = || self.fleet.engines().find_map(Engine::stranded);
        if self.successor.is_none()
            && let Some(what) = stranded()
        {
            return Err(violation!(
                "lost wakeup: no operation is in flight, nobody will pump the engine, and {what} is left; {}",
                self.open_requests()
            ));
        }
        let in_flight = self.machine.world.look().in_flight() > 0;
        let now_ns = self.machine.now_ns;
        let soon = |at_ns: &u64| *at_ns < now_ns.saturating_add(DEADLINE_MAX_NS);
        let release = self.machine.world.look().release_ns();
        let deadlines = self.fleet.engines().filter_map(Engine::next_deadline_ns).chain(release);
        let deadline = deadlines.min().filter(soon);
        let work = self.fleet.engines().filter_map(Engine::work_deadline_ns).min().filter(soon);
        self.asleep = !in_flight && work.is_none() && release.is_none();
        if self.asleep {
            self.asleep = !self.resume_paused() && self.exchange.is_none() && self.successor.is_none();
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
        if self.turns > ENDLESS_TURNS_MAX {
            let (exchange, successor) = (self.exchange.is_some(), self.successor.is_some());
            return Err(violation!(
                "nothing is answered and no maintenance goes on, for ever; exchange: {exchange}, successor: {successor}"
            ));
        }
        if self.idle_turns > IDLE_TURNS_MAX {
            return Err(violation!("stuck: nothing is under way, and something still waits"));
        }
        Ok(())
    }

    /// Nobody asks for anything for as long as the engine has anything to do: every request is answered, and
    /// what was to be committed when idle is.
    fn lie_still(&mut self) -> Result<(), Violation> {
        if !self.drain()? || !self.settle()? {
            return Ok(());
        }
        for engine in self.fleet.engines() {
            let dirty = engine.scheme().pressure(engine.store()).dirty_stripes;
            let stuck = engine.stuck_stripes().len() as u64;
            // What somebody gave up waits for another write.
            let is_wanted = engine.options().commit.idle_ns.is_some() && !self.steered.commit_given_up;
            if is_wanted && engine.accepts_writes() && dirty > stuck {
                return Err(violation!("lost wakeup: idle for good, and {dirty} stripes are not committed"));
            }
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

    /// Turns until every request is answered; `false` if power failed first, or more devices than the code
    /// tolerates have stopped answering: then answers may be errors, but they come.
    pub fn drain(&mut self) -> Result<bool, Violation> {
        while !self.crashed() && !self.requests.is_empty() {
            self.turn()?;
        }
        Ok(!self.crashed() && !self.blacked_out())
    }

    /// Units that garbage collection has chosen since assembly.
    pub fn units_collected(&self) -> u64 {
        self.fleet.engines().map(|engine| engine.scheme().gc_stats().units_collected).sum()
    }

    fn answer(&mut self, done: Done) -> Result<(), Violation> {
        let Some(request) = self.requests.remove(&done.tag) else {
            return Err(violation!(
                "an answer to a request that was never made, or was answered before: {done:?}"
            ));
        };
        self.machine.outcome.requests += 1;
        for &(at, dev, serial) in &request.out {
            // Submitted when the member was out, and answered: the others know by now. A failed array tells
            // nobody.
            let same = self.fleet.engine_ref(at).health().members()[usize::from(dev)].serial == serial;
            if !self.blacked_out() && self.fleet.is_out(at, dev) && same {
                self.machine.standing[usize::from(dev)].exclude(self.fleet.number(at));
            }
        }
        self.machine
            .say(|| format!("answer to {:?} of {}: {:?}", request.kind, request.submitted, done.result));
        let result = self.judge(&request, done.result);
        request.parts.into_iter().for_each(|part| self.fleet.give_back(part));
        result
    }

    /// Reads the whole volume; after a restart what is read is from then on the only right content. `false`
    /// if power failed first.
    pub fn read_everything(&mut self) -> Result<bool, Violation> {
        let anchor = self.machine.unread;
        let sectors = self.machine.oracle.sector_count() as u64;
        let most = (self.fleet.slots_max() as u64).clamp(1, 64);
        let chunk = self.fleet.chunk_sectors();
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

    /// Everything settles and is durable; then all invariants are checked. Nothing happens if power fails
    /// first.
    pub fn rest(&mut self) -> Result<(), Violation> {
        self.machine.world.change().make_room();
        if !self.end_succession()? {
            return Ok(());
        }
        // The first flush makes records durable, the second makes that known on disk; background work may add
        // records. Without a journal, only the figures tell that there was some.
        let work = |fleet: &Fleet| -> Vec<_> {
            let one = |engine: &Engine| (engine.journal().next_seq(), engine.stats().stripes_committed);
            fleet.engines().map(one).collect()
        };
        let (mut last, mut same) = (work(&self.fleet), 0);
        while same < 3 {
            let told = self.tell_all();
            self.control(Kind::Flush, |engine, tag| engine.flush(tag));
            if !self.drain()? || !self.settle()? {
                return Ok(());
            }
            let next = work(&self.fleet);
            // What was flushed may have failed in one shard only.
            let is_level = !told && self.is_level();
            same = if next == last && is_level { same + 1 } else { 0 };
            last = next;
        }
        self.machine.say(|| "at rest".into());
        self.check_opinions()?;
        (0..self.fleet.len()).try_for_each(|at| self.check_shard(at))
    }

    /// All invariants of one shard at rest.
    fn check_shard(&mut self, at: usize) -> Result<(), Violation> {
        let brought = self.fleet.shard(at).bring_all_pages();
        if self.crashed() || (brought.is_err() && self.machine.world.look().is_blacked_out()) {
            return Ok(()); // Power failed, or devices stopped answering, while pages were read.
        }
        brought.map_err(|e| violation!("a page is nowhere: {e}"))?;
        let spared = |dev: u16| self.machine.suspects.contains(&dev);
        let engine = self.fleet.engine_ref(at);
        check::covers(engine, &self.machine.world.look(), &spared, &mut self.machine.rng.clone())?;
        check::space(engine)?;
        check::counters(engine)?;
        if is_resync(&self.machine.swarm.config) {
            return Ok(()); // Nothing is recorded: replay has nothing to say.
        }
        self.machine.compare_with_replay(self.fleet.shard_ref(at))
    }

    /// Until nothing is under way and no deadline is ahead.
    pub(super) fn settle(&mut self) -> Result<bool, Violation> {
        self.asleep = false;
        self.fleet.unsettle();
        while !self.asleep && !self.fleet.is_settled() && !self.crashed() {
            self.turn()?;
        }
        Ok(!self.crashed() && !self.blacked_out())
    }

    /// An orderly stop; `false` if power failed first.
    pub fn stop(&mut self) -> Result<bool, Violation> {
        self.machine.world.change().make_room();
        self.ends = true;
        if !self.end_succession()? {
            return Ok(false);
        }
        (0..self.fleet.len()).for_each(|at| self.fleet.engine(at).prepare_stop());
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
