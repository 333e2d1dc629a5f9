//! One world from its seed to its end: power on, a session of requests and faults, power off, again and
//! again.

use crate::check;
use crate::course::{Mode, Part};
use crate::machine::{Machine, Outcome};
use crate::port::{Shard, Shared};
use crate::session::{Session, SessionEnd};
use crate::swarm::Pinned;
use crate::violation;
use crate::violation::Violation;
use array::{Array, RecoveryReport, arrange};
use block::{Paired, Random as _, Slice, mix};

/// Runs the world of a seed.
pub fn run(seed: u64, pinned: Pinned, verbose: bool) -> Result<Outcome, Violation> {
    run_as(seed, pinned, verbose, Mode::Drawn)
}

/// The same; it may be noted, or parts of it left out.
pub(crate) fn run_as(seed: u64, pinned: Pinned, verbose: bool, mode: Mode) -> Result<Outcome, Violation> {
    let mut machine = Machine::new(seed, pinned, verbose, mode)?;
    let sessions = machine.sessions();
    for &session in &sessions {
        machine.course.session = session;
        machine.enter(Part::Start);
        let shards = machine.power_on()?;
        machine.say(|| format!("session {session}"));
        machine.last_cut = machine.swarm.ruin && sessions.last() == Some(&session);
        machine.session(shards)?;
    }
    machine.course.session = machine.swarm.sessions;
    machine.enter(Part::Start);
    if machine.swarm.ruin {
        machine.ruin()?;
    } else {
        machine.finale()?;
    }
    let world = machine.world.look();
    Ok(Outcome { hash: world.hash(), events: world.events(), ..machine.outcome })
}

impl Machine {
    fn session(&mut self, shards: Vec<Shard>) -> Result<(), Violation> {
        let whole = self.swarm.faults && self.swarm.crashes && self.suspects.is_empty();
        self.enter(Part::Cut);
        let crash = self.swarm.crashes && self.rng.chance(self.swarm.odds.crash, 1000);
        if whole && self.swarm.blackouts {
            self.plan_blackout();
        } else if crash {
            let events = self.rng.below(self.swarm.requests * 24 + 100);
            self.plan_cut(events, None);
        } else if whole {
            self.plan_blackout();
        }
        let blackout = self.world.look().has_blackout();
        let mut session = Session::new(self, shards);
        let end = session.run()?;
        if end == SessionEnd::Stopped {
            self.say(|| "stopped in order".into());
        }
        self.enter(Part::Loss);
        let shelf = self.shelf.take().is_some();
        if !blackout && !shelf {
            self.power_off();
            return Ok(());
        }
        self.mended = None;
        self.cut_power();
        self.note_excluded()
    }

    /// A last start without power cuts: everything is read and checked, then the array stops in order and
    /// starts clean.
    pub fn finale(&mut self) -> Result<(), Violation> {
        (self.swarm.rotting, self.swarm.succeeds, self.swarm.odds.cut_short) = (false, false, 0);
        let (shards, _) = loop {
            if let Some(started) = self.assemble(false)? {
                break started.into_iter().unzip::<_, _, Vec<Shard>, Vec<RecoveryReport>>();
            }
        };
        self.say(|| "last session".into());
        let mut session = Session::new(self, shards);
        session.read_everything()?;
        session.rest()?;
        session.stop()?;
        drop(session);
        self.world.change().power_cycle(crate::disk::Tear::LoseAll);
        self.oracle.crashed();
        let healthy = self.suspects.is_empty();
        let Some(started) = self.assemble(false)? else {
            return Err(violation!("power failed by itself"));
        };
        let (shards, reports): (Vec<Shard>, Vec<RecoveryReport>) = started.into_iter().unzip();
        let unclean = reports.iter().find(|report| !report.was_clean || report.dropped > 0);
        if let Some(report) = unclean.filter(|_| healthy) {
            return Err(violation!("after an orderly stop: {report:?}"));
        }
        let mut session = Session::new(self, shards);
        session.read_everything()?;
        session.rest()
    }

    /// A copy of the durable content starts and must be what the live array is.
    pub fn compare_with_replay(&mut self, live: &Shard) -> Result<(), Violation> {
        let copy = Shared::new(self.world.look().copy());
        let shard = live.engine_ref().store().config.shard.index;
        let mut found = Vec::new();
        for dev in 0..self.member_count() {
            if copy.look().is_present(dev) {
                found.extend(self.superblock_in(copy.look().disk(dev).durable(), dev, shard));
            }
        }
        let arrangement = arrange(&found).map_err(|e| violation!("a copy cannot be arranged: {e}"))?;
        for dev in 0..self.member_count() {
            copy.change().set_present(dev, arrangement.places[usize::from(dev)].is_some());
        }
        let nonce = mix(self.rng.word());
        let devices = Slice::new(copy.port(shard), live.engine_ref().store().config.slice_extents());
        let (mut replayed, report) =
            Array::assemble(Paired::new(devices), &arrangement, nonce, self.swarm.options)
                .map_err(|e| violation!("a copy cannot be assembled: {e}"))?;
        replayed.bring_all_pages().map_err(|e| violation!("a page of a copy is nowhere: {e}"))?;
        check::same_state(live.engine_ref(), replayed.engine_ref(), &report)
    }
}
