//! What an operator does to a scrub that is under way, and to parity commits.

use super::{Kind, Session};
use crate::machine::SHARDS_MAX;
use array::{Engine, WorkKind};
use block::Random as _;

impl Session<'_> {
    /// Now and then a scrub that is under way is paused, goes on, gets another rate or is given up; `false`
    /// if nothing was done.
    pub(super) fn steer_scrub(&mut self) -> bool {
        let scrubs =
            self.fleet.engines().filter_map(Engine::maintenance).any(|(kind, _, _)| kind == WorkKind::Scrub);
        if !scrubs || !self.machine.rng.chance(1, 2) {
            return false;
        }
        let choice = self.machine.rng.below(4);
        let rate = self.machine.rng.pick(&[None, Some(16 << 20)]);
        let what = ["pauses", "goes on", "is given up", "gets another rate"][choice as usize];
        self.machine.say(|| format!("the scrub {what}"));
        let mut any = false;
        for at in 0..self.fleet.len() {
            let engine = self.fleet.engine(at);
            any |= match choice {
                0 => engine.pause_scrub(),
                1 => engine.resume_scrub(),
                2 => engine.stop_scrub(),
                _ => {
                    engine.set_rebuild_rate(rate);
                    true
                }
            };
        }
        if choice == 2 {
            self.steered.scrub_given_up = any;
        }
        any
    }

    /// Now and then commits are paused, go on, or one is given up, instead of being asked for; `false` if
    /// nothing was done.
    pub(super) fn steer_commits(&mut self) -> bool {
        let often = self.machine.swarm.odds.steer;
        // From a generator of its own: other worlds stay what they were before this was drawn.
        let mut aside = self.machine.rng.clone().fork();
        if often == 0 || !aside.chance(often, 1000) {
            return false;
        }
        let choice = aside.pick(&[0, 0, 1, 2]);
        let what = ["pause", "go on", "are given up"][choice];
        self.machine.say(|| format!("commits {what}"));
        let mut any = false;
        for at in 0..self.fleet.len() {
            let engine = self.fleet.engine(at);
            any |= match choice {
                0 => engine.pause_commits(),
                1 => engine.resume_commits(),
                _ => engine.stop_commit(),
            };
        }
        self.steered.commits |= any;
        self.steered.commit_given_up |= any && choice == 2;
        self.machine.outcome.steered += u64::from(any && choice != 1);
        any
    }

    /// After a scrub was given up in a world of rot: something rots, and another scrub must find it.
    pub(super) fn scrub_again(&mut self) -> bool {
        let wanted = std::mem::take(&mut self.steered.scrub_given_up) && self.machine.swarm.rotting;
        if wanted && self.machine.suspects.is_empty() {
            self.rot();
            self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0));
        }
        wanted
    }

    /// Metadata rots, or anything; often a scrub follows.
    pub(super) fn rot(&mut self) {
        let Some(dev) = self.machine.draw_victim() else { return };
        if self.machine.rng.chance(1, 2) {
            self.machine.rot(dev);
        } else {
            let mut begun = [0; SHARDS_MAX];
            for (begun, engine) in begun.iter_mut().zip(self.fleet.engines()) {
                *begun = engine.patrol_rounds().0;
            }
            self.machine.rot_metadata(dev, begun);
        }
        if self.machine.rng.chance(1, 2) {
            self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0));
        }
    }
}
