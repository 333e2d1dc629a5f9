//! What one shard knows of the members the others are told, sooner or later: as whoever serves the array does
//! it, which may come after anything else, and not before power fails.

use super::Session;
use crate::violation;
use crate::violation::Violation;
use array::{Engine, Health, members_to_fail};
use block::{DevIndex, Random as _};
use format::MemberState;

/// Turns until somebody hears of what others have given up.
#[derive(Default)]
pub(super) struct Rumour {
    /// All changes of the members that were looked at.
    seen: u64,
    turns_left: Option<u64>,
}

impl Session<'_> {
    /// Now and then a shard is told of a member that another has given up. While a device takes the place of
    /// another, that is seen to elsewhere.
    pub(super) fn level(&mut self) {
        if !self.fleet.is_several() || self.exchange.is_some() {
            return;
        }
        let changes = self.fleet.engines().map(|engine| engine.health().config_seq).sum();
        if self.rumour.turns_left.is_none() && self.rumour.seen == changes {
            return;
        }
        self.rumour.seen = changes;
        let found = members_to_fail(&self.fleet.healths());
        self.rumour.turns_left = match self.rumour.turns_left {
            _ if found.is_empty() => None,
            None => Some(self.machine.rng.pick(&[0, 3, 30, 300])),
            Some(0) => {
                let (at, dev) = self.machine.rng.pick(&found);
                self.tell(at, dev);
                Some(self.machine.rng.pick(&[0, 3, 30]))
            }
            Some(left) => Some(left - 1),
        };
    }

    fn tell(&mut self, at: usize, dev: DevIndex) {
        self.machine.say(|| format!("shard {at} is told that device {dev} was given up"));
        self.fleet.engine(at).fail_device(dev);
    }

    /// Everybody is told; whether anybody had to be.
    pub(super) fn tell_all(&mut self) -> bool {
        let found = self.untold();
        found.iter().for_each(|&(at, dev)| self.tell(at, dev));
        !found.is_empty()
    }

    /// Whether nobody has to be told.
    pub(super) fn is_level(&self) -> bool {
        self.untold().is_empty()
    }

    fn untold(&self) -> Vec<(usize, DevIndex)> {
        let several = self.fleet.is_several() && self.exchange.is_none();
        if several { members_to_fail(&self.fleet.healths()) } else { Vec::new() }
    }

    /// Nobody has a member in service that another shard has given up, unless it lacks as many others as it
    /// bears.
    pub(super) fn check_opinions(&self) -> Result<(), Violation> {
        let healths: Vec<&Health> = self.fleet.engines().map(Engine::health).collect();
        for dev in 0..self.machine.member_count() {
            let index = DevIndex::new(dev);
            let gone = healths.iter().position(|health| !health.is_writable(index));
            let kept = |health: &&Health| {
                let others = (0..self.machine.member_count()).map(DevIndex::new);
                let lacks = |&other: &DevIndex| health.state(other) != MemberState::Healthy;
                let missing = others.filter(|&other| other != index).filter(lacks).count();
                health.is_writable(index) && missing < self.machine.budget()
            };
            if let Some(shard) = gone
                && let Some(other) = healths.iter().position(kept)
            {
                return Err(violation!(
                    "shard {shard} has given device {dev} up, and shard {other} keeps it"
                ));
            }
        }
        Ok(())
    }
}
