//! Devices that do not answer, or late; and the process that serves the array, stopped for a while.

use super::{Kind, Session};
use crate::violation;
use crate::violation::Violation;
use crate::world::{MUTES, Mute, Silence};
use block::{DevIndex, Random as _};
use format::CheckpointKind;

/// After so many limits a device that does not answer is out of service, however the others do: each shard
/// looks at its own times, and those that answer late are waited for first.
const LIMITS_MAX: u64 = 8;

impl Session<'_> {
    /// Devices fall silent, or answer late, or the process is stopped.
    pub(super) fn fall_silent(&mut self) {
        let Some(limit_ns) = self.machine.swarm.options.device_timeout_ns else { return };
        if self.machine.world.look().has_blackout() || self.machine.shelf.is_some() {
            return;
        }
        let whole = self.machine.suspects.is_empty() && self.machine.swarm.crashes && self.exchange.is_none();
        match self.machine.rng.below(8) {
            0 | 1 => self.answer_late(limit_ns),
            2 => self.stop_process(limit_ns),
            3 if whole => self.silence_shelf(limit_ns),
            _ => {
                let most = self.machine.rng.within(1, self.machine.budget() as u64);
                (0..most).for_each(|_| self.silence_victim(limit_ns));
            }
        }
    }

    /// A device that has no fault answers late, but in time.
    fn answer_late(&mut self, limit_ns: u64) {
        let dev = self.machine.rng.below(u64::from(self.machine.member_count())) as u16;
        if self.machine.world.look().is_silent(dev) {
            return;
        }
        let rng = &mut self.machine.rng;
        let patience_ns = rng.pick(&[limit_ns / 20, limit_ns / 4, limit_ns * 2 / 5]);
        let until_ns = self.machine.now_ns + rng.below(3 * limit_ns);
        let mute = rng.pick(&MUTES);
        let silence =
            Silence { mute, until_ns: Some(until_ns), patience_ns: Some(patience_ns), is_wild: false };
        self.machine.say(|| format!("device {dev} answers late: {silence:?}"));
        self.machine.world.change().silence(dev, silence);
    }

    /// A device does not answer, for longer than it may.
    fn silence_victim(&mut self, limit_ns: u64) {
        let Some(dev) = self.machine.draw_victim() else { return };
        // What it has had so far it has, and what is held back it will do or not: as if it were pulled out.
        self.machine.suspects.insert(dev);
        self.machine.hurts += 1;
        let standing = &mut self.machine.standing[usize::from(dev)];
        (standing.tainted, standing.hurt_at) = (true, self.machine.hurts);
        let rng = &mut self.machine.rng;
        let time_ns = rng.pick(&[None, None, Some(limit_ns / 2), Some(2 * limit_ns), Some(20 * limit_ns)]);
        let until_ns = time_ns.map(|time_ns| self.machine.now_ns + time_ns);
        let mute = if rng.chance(1, 2) { Mute::Everything } else { rng.pick(&MUTES) };
        let silence = Silence { mute, until_ns, patience_ns: None, is_wild: true };
        self.machine.say(|| format!("device {dev} does not answer: {silence:?}"));
        self.machine.world.change().silence(dev, silence);
        self.lose_patience();
    }

    /// Somebody cuts the power while a device hangs and a checkpoint is written: what of it is on its way may
    /// arrive when the next assembly has written another one there.
    fn lose_patience(&mut self) {
        if !self.machine.swarm.crashes || !self.machine.rng.chance(1, 4) {
            return;
        }
        let kind = self.machine.rng.pick(&[CheckpointKind::Full, CheckpointKind::Incremental]);
        let events = self.machine.rng.pick(&[10, 40, 160]);
        self.machine.say(|| format!("power will fail {events} operations into a checkpoint"));
        self.control(Kind::Checkpoint, |engine, tag| engine.write_checkpoint(tag, kind));
        self.machine.world.change().crash_after(events);
    }

    /// More devices than the code tolerates do not answer for a while: a shelf, a switch. None of them is
    /// lost by that; those that were given up have to be taken back.
    fn silence_shelf(&mut self, limit_ns: u64) {
        let mut devices: Vec<u16> = (0..self.machine.member_count()).collect();
        self.machine.rng.shuffle(&mut devices);
        let count = self.machine.rng.within(self.machine.budget() as u64 + 1, devices.len() as u64);
        devices.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        let time_ns = self.machine.rng.pick(&[limit_ns / 2, 2 * limit_ns, 6 * limit_ns]);
        let until_ns = self.machine.now_ns + time_ns;
        let silence =
            Silence { mute: Mute::Everything, until_ns: Some(until_ns), patience_ns: None, is_wild: false };
        self.machine.say(|| format!("devices {devices:?} do not answer for {time_ns} ns"));
        devices.iter().for_each(|&dev| self.machine.world.change().silence(dev, silence));
        self.machine.shelf = Some((devices, until_ns));
    }

    /// The process does not run for a while, and devices do not wait for it. That nobody saw them answer is
    /// no fault of theirs, and no client's patience.
    fn stop_process(&mut self, limit_ns: u64) {
        let time_ns = self.machine.rng.pick(&[limit_ns / 2, 3 * limit_ns, 200 * limit_ns]);
        self.machine.say(|| format!("the process is stopped for {time_ns} ns"));
        self.machine.now_ns += time_ns;
        self.machine.world.change().sleep(time_ns);
        self.requests.values_mut().for_each(|request| request.since_ns += time_ns);
    }

    /// A shelf that answers again: whoever was given up meanwhile lacks what was written since.
    pub(super) fn settle_shelf(&mut self) {
        let Some((shelf, until_ns)) = &self.machine.shelf else { return };
        let world = self.machine.world.look();
        if shelf.iter().any(|&dev| world.is_silent(dev) || world.owes(dev, *until_ns)) {
            return;
        }
        drop(world);
        self.machine.shelf = None;
        for dev in 0..self.machine.member_count() {
            if (0..self.fleet.len()).any(|at| self.fleet.is_out(at, dev)) {
                self.machine.say(|| format!("device {dev} was given up with the shelf"));
                self.machine.suspects.insert(dev);
                self.machine.standing[usize::from(dev)].tainted = true;
            }
        }
    }

    /// Who has no fault is in service, and who does not answer is not, unless he cannot be done without.
    pub(super) fn check_silence(&self) -> Result<(), Violation> {
        let Some(limit_ns) = self.machine.swarm.options.device_timeout_ns else { return Ok(()) };
        let loose = self.machine.shelf.is_some() || self.machine.is_split() || self.machine.ruined;
        if !self.machine.swarm.hangs || loose || self.machine.world.look().has_blackout() {
            return Ok(());
        }
        for dev in (0..self.machine.member_count()).filter(|dev| !self.machine.suspects.contains(dev)) {
            if let Some(at) = (0..self.fleet.len()).find(|&at| self.fleet.is_out(at, dev)) {
                let why = self.fleet.engine_ref(at).member_trouble(DevIndex::new(dev)).failed;
                return Err(violation!("shard {at} has given device {dev} up, which has no fault: {why:?}"));
            }
        }
        let world = self.machine.world.look();
        let mut old = world.held_for(LIMITS_MAX * limit_ns);
        let kept = old.find(|&(shard, dev, _)| {
            let at = (0..self.fleet.len()).find(|&at| self.fleet.number(at) == shard);
            at.is_some_and(|at| self.fleet.engine_ref(at).health().is_writable(DevIndex::new(dev)))
        });
        match kept {
            Some((shard, dev, age_ns)) => Err(violation!(
                "device {dev} has not answered shard {shard} for {age_ns} ns and is in service; devices have {limit_ns} ns"
            )),
            None => Ok(()),
        }
    }
}
