//! Members that left come back with what is on them, and are rebuilt by what they have missed.

use super::{Kind, Session};
use crate::machine::Standing;
use array::Replacing;
use block::{DevIndex, Random as _};
use format::Superblock;

impl Session<'_> {
    /// Whether a suspect is to come back rather than be replaced; decided without drawing from what decides
    /// everything else.
    pub(super) fn wants_back(&self) -> bool {
        self.machine.swarm.returns && self.machine.rng.clone().fork().chance(3, 4)
    }

    /// What is on the device of a member, if all shards that gave it up know what it has missed.
    fn papers(&self, dev: u16) -> Option<Vec<(usize, Superblock)>> {
        let index = DevIndex::new(dev);
        let out: Vec<usize> = (0..self.fleet.len()).filter(|&at| self.fleet.is_out(at, dev)).collect();
        let mut papers = Vec::new();
        for at in out {
            let superblock = self.machine.superblock_on(dev, self.fleet.number(at))?;
            if let Some(why) = self.fleet.engine_ref(at).why_not_online(index, &superblock) {
                self.machine.say(|| format!("device {dev} does not come back to shard {at}: {why}"));
                return None;
            }
            papers.push((at, superblock));
        }
        Some(papers).filter(|papers| !papers.is_empty())
    }

    /// A disk that was replaced is put in its place again if it is the member that the array last knew there:
    /// of what replaced it nothing was durable.
    fn find_retired(&mut self, dev: u16) {
        let Some(retired) = &self.machine.retired[usize::from(dev)] else { return };
        let found = self.machine.superblock_in(&retired.image, dev, self.fleet.number(0));
        let engine = self.fleet.engine_ref(0);
        let comes = |superblock| engine.why_not_online(DevIndex::new(dev), &superblock).is_none();
        if found.is_some_and(comes)
            && let Some(retired) = self.machine.retired[usize::from(dev)].take()
        {
            self.machine.say(|| format!("the disk before the present device {dev} is found"));
            self.machine.world.change().replace(dev, retired.image);
            self.machine.standing[usize::from(dev)].hurt = Standing::replacing(retired.is_hurt).hurt;
        }
    }

    /// The device of a member that nothing is under way on comes back, if there is one.
    pub(super) fn bring_back(&mut self) -> bool {
        for dev in self.to_replace() {
            let index = DevIndex::new(dev);
            let engine = self.fleet.engine_ref(0);
            if !engine.is_replaceable(index) || engine.in_flight(index) > 0 || !self.is_let_go(dev) {
                continue;
            }
            self.find_retired(dev);
            let Some((_, superblock)) = self.papers(dev).and_then(|mut papers| papers.pop()) else {
                continue;
            };
            self.machine.say(|| format!("device {dev} comes back"));
            self.plug_back(dev);
            let serial = self.new_serial(index);
            self.machine.standing[usize::from(dev)].readmit(self.fleet.number(0));
            self.control(Kind::Rebuild { dev }, |engine, tag| engine.online(tag, index, serial, &superblock));
            self.cut_rebuild();
            return true;
        }
        false
    }

    /// The same of several shards: it comes step by step.
    pub(super) fn coming_back(&self, dev: u16) -> Option<Replacing> {
        let wanted = self.wants_back() && self.is_let_go(dev) && self.papers(dev).is_some();
        wanted.then(|| Replacing::back(DevIndex::new(dev), &self.fleet.healths()))
    }

    /// Whether nothing that was given up is under way on a device; else it will end soon.
    pub(super) fn is_let_go(&self, dev: u16) -> bool {
        let is_let_go = !self.machine.world.look().has_given_up(dev);
        if !is_let_go {
            self.machine.world.change().end_silence(dev);
            self.machine.world.change().stop_hanging(dev);
        }
        is_let_go
    }

    /// It is there again for all shards, as it was left.
    pub(super) fn plug_back(&mut self, dev: u16) {
        let cured = self.machine.rng.clone().fork().chance(7, 8);
        if cured {
            self.machine.world.change().clear_traps(dev);
        }
        self.machine.world.change().end_silence(dev);
        self.machine.world.change().hang(dev, Some(0));
        self.machine.world.change().set_present(dev, true);
        for at in 0..self.fleet.len() {
            self.machine.world.change().set_hidden(dev, self.fleet.number(at), false);
        }
        self.machine.lengthen(dev);
        let standing = &mut self.machine.standing[usize::from(dev)];
        // What was hurt on it is hurt still, until a scrub has found it.
        let tainted = standing.is_hurt() || !cured;
        *standing = Standing { tainted, replacement: true, returned: true, lost: false, ..*standing };
    }
}
