//! How a device takes a member's place in all shards: which step comes when, whoever takes it.
//!
//! The member is out of service in every shard, and their superblocks say so, before another device is there:
//! what is on that is nobody's. No operation on the predecessor is left in any shard: the end of an old write
//! must not pass for one on the new device. Then the new device forgets in all slices what it was, and the
//! shards rebuild onto it. Shard 0, by which a device is known as a member, comes last, and when the others
//! have told their members: if power fails before, the device is none.

use crate::engine::Engine;
use crate::health::Health;
use crate::planted::{Planted, planted};
use block::DevIndex;

/// A member's place as one shard sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// It takes writes.
    pub in_service: bool,
    /// Operations on it that have not ended.
    pub in_flight: u32,
    /// Not all members know yet who is in service.
    pub is_publishing: bool,
    /// The highest serial number of any member.
    pub serial_max: u32,
}

impl Seat {
    /// The place in the shard of an engine.
    pub fn of(engine: &Engine, dev: DevIndex) -> Self {
        let health = engine.health();
        Self {
            in_service: health.is_writable(dev),
            in_flight: engine.in_flight(dev),
            is_publishing: engine.is_publishing(),
            serial_max: health.members().iter().map(|member| member.serial).max().unwrap_or(0),
        }
    }
}

/// What is to be done next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplaceStep {
    /// A shard is to take the member out of service.
    Fail {
        /// Its number.
        shard: usize,
    },
    /// Something has to end first.
    Wait,
    /// The device is to be put in place.
    Install,
    /// Both places of the superblock in a shard's slice are to be overwritten.
    Wipe {
        /// Its number.
        shard: usize,
    },
    /// The device is to be flushed.
    Flush,
    /// A shard is to rebuild onto it.
    Rebuild {
        /// Its number.
        shard: usize,
        /// The member's new serial number.
        serial: u32,
    },
    /// Nothing more: the shards have all begun.
    Done,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Replacing {
    dev: DevIndex,
    stage: Stage,
    serial: u32,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Vacate,
    /// So many slices are left.
    Wipe(usize),
    /// So many shards are left.
    Rebuild(usize),
}

impl Replacing {
    /// A device is to take the place of `dev`. The other result is a shard that does not bear to lose the
    /// member that it has in service.
    pub fn begin(dev: DevIndex, shards: &[&Health]) -> Result<Self, usize> {
        let bears = |health: &&Health| {
            let counts_already = health.state(dev) != format::MemberState::Healthy;
            counts_already || health.missing_count() < health.tolerated()
        };
        match shards.iter().position(|health| !bears(health)) {
            Some(shard) => Err(shard),
            None => Ok(Self { dev, stage: Stage::Vacate, serial: 0 }),
        }
    }

    /// The member whose place it is.
    pub fn dev(&self) -> DevIndex {
        self.dev
    }

    /// The next step, with the place as each shard sees it now. It counts as taken unless it is to wait.
    pub fn next(&mut self, seats: &[Seat]) -> ReplaceStep {
        match self.stage {
            Stage::Vacate => self.vacate(seats),
            Stage::Wipe(0) => {
                self.stage = Stage::Rebuild(seats.len());
                ReplaceStep::Flush
            }
            Stage::Wipe(left) => {
                self.stage = Stage::Wipe(left - 1);
                ReplaceStep::Wipe { shard: left - 1 }
            }
            Stage::Rebuild(0) => ReplaceStep::Done,
            // The others have said on disk that it is theirs.
            Stage::Rebuild(1) if seats[1..].iter().any(|seat| seat.is_publishing) => ReplaceStep::Wait,
            Stage::Rebuild(left) => {
                let left = if planted(Planted::RebuildFirstShardOnly) { 1 } else { left };
                self.stage = Stage::Rebuild(left - 1);
                ReplaceStep::Rebuild { shard: left - 1, serial: self.serial }
            }
        }
    }

    fn vacate(&mut self, seats: &[Seat]) -> ReplaceStep {
        let served = seats.iter().position(|seat| seat.in_service);
        if let Some(shard) = served.filter(|_| !planted(Planted::ReplaceUnfailed)) {
            return ReplaceStep::Fail { shard };
        }
        let asked = if planted(Planted::ReplaceWhileBusy) { &seats[..1] } else { seats };
        if asked.iter().any(|seat| seat.in_flight > 0 || seat.is_publishing) {
            return ReplaceStep::Wait;
        }
        self.serial = seats.iter().map(|seat| seat.serial_max).max().unwrap_or(0).saturating_add(1);
        self.stage = Stage::Wipe(seats.len());
        ReplaceStep::Install
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: Seat = Seat { in_service: false, in_flight: 0, is_publishing: false, serial_max: 9 };

    fn begun() -> Replacing {
        Replacing::begin(DevIndex::new(3), &[]).expect("nobody has it in service")
    }

    #[test]
    fn shard_0_comes_last_and_everybody_else_first() {
        let (mut replacing, seats) = (begun(), [OUT, OUT, Seat { serial_max: 12, ..OUT }]);
        let steps: Vec<ReplaceStep> = (0..9).map(|_| replacing.next(&seats)).collect();
        let rebuild = |shard| ReplaceStep::Rebuild { shard, serial: 13 };
        let wipe = |shard| ReplaceStep::Wipe { shard };
        assert_eq!(steps[..5], [ReplaceStep::Install, wipe(2), wipe(1), wipe(0), ReplaceStep::Flush]);
        assert_eq!(steps[5..], [rebuild(2), rebuild(1), rebuild(0), ReplaceStep::Done]);
    }

    #[test]
    fn the_place_is_free_in_all_shards_and_all_members_know_first() {
        let mut replacing = begun();
        let served = Seat { in_service: true, ..OUT };
        assert_eq!(replacing.next(&[OUT, served]), ReplaceStep::Fail { shard: 1 });
        for late in [Seat { in_flight: 1, ..OUT }, Seat { is_publishing: true, ..OUT }] {
            assert_eq!(replacing.next(&[OUT, late]), ReplaceStep::Wait);
        }
        assert_eq!(replacing.next(&[OUT, OUT]), ReplaceStep::Install);
    }

    #[test]
    fn shard_0_waits_until_the_others_have_told() {
        let mut replacing = begun();
        let seats = [OUT, OUT];
        let before: Vec<ReplaceStep> = (0..5).map(|_| replacing.next(&seats)).collect();
        assert_eq!(before.last(), Some(&ReplaceStep::Rebuild { shard: 1, serial: 10 }));
        let telling = Seat { is_publishing: true, ..OUT };
        assert_eq!(replacing.next(&[OUT, telling]), ReplaceStep::Wait);
        assert_eq!(replacing.next(&seats), ReplaceStep::Rebuild { shard: 0, serial: 10 });
    }
}
