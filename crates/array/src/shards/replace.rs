//! How a device takes a member's place in all shards: which step comes when, whoever takes it.
//!
//! The member is out of service in every shard, and their superblocks say so, before another device is there:
//! what is on that is nobody's. No operation on the predecessor is left in any shard: the end of an old write
//! must not pass for one on the new device. Then the new device forgets in all slices what it was, and the
//! shards rebuild onto it. Shard 0, by which a device is known as a member, comes last, and when the others
//! have told their members: if power fails before, the device is none.
//!
//! If shards have given up different members, together more than one of them bears, another device would cost
//! one of them more than that. Then a device that is there *returns*: the shards that gave it up rebuild onto
//! it, each on its own slice, and the others keep what they have. Nothing is wiped then: by what is in the
//! slice of shard 0, stale or not, those that need the device find it. What is stale is refused until the
//! rebuild has written over it.

//!
//! A member that left may also come *back*, if each shard that gave it up knows what it has missed
//! (`Engine::why_not_online`): it is installed again, nothing is wiped, and they rebuild just that.

use crate::engine::Engine;
use crate::health::Health;
use crate::planted::{Planted, planted};
use crate::serial::before_those_of;
use block::DevIndex;

/// A member's place as one shard sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// It takes writes.
    pub in_service: bool,
    /// Operations on it that have not ended.
    pub in_flight: u32,
    /// Members are being told who is in service.
    pub is_publishing: bool,
    /// They are to be told, and that waits for a succession ([`super::Succession`]), which does not wait for
    /// it.
    pub waits_to_tell: bool,
    /// Every new serial number is above this: it is the highest of any member, or what serial numbers of this
    /// assembly begin with.
    pub serial_max: u32,
}

/// The serial number of a device that takes the place that these are of the shards.
pub(super) fn new_serial(seats: impl Iterator<Item = Seat>) -> u32 {
    seats.map(|seat| seat.serial_max).max().unwrap_or(0).saturating_add(1)
}

impl Seat {
    /// The place in the shard of an engine.
    pub fn of(engine: &Engine, dev: DevIndex) -> Self {
        let health = engine.health();
        let first =
            if planted(Planted::SerialGivenTwice) { 0 } else { before_those_of(engine.journal().epoch()) };
        Self {
            in_service: health.is_writable(dev),
            in_flight: engine.in_flight(dev),
            is_publishing: engine.is_publishing(),
            waits_to_tell: engine.waits_to_tell(),
            serial_max: health.members().iter().map(|member| member.serial).fold(first, u32::max),
        }
    }

    /// Whether all members of the shard know who is in service.
    fn is_told(&self) -> bool {
        !self.is_publishing && !self.waits_to_tell
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
    /// Shards that are to rebuild.
    shards: Vec<usize>,
    kind: Kind,
    stage: Stage,
    serial: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Another device comes.
    Replaces,
    /// The device is there, and stays.
    Returns,
    /// The device that left comes, and has all but what it missed.
    Back,
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
            None => Ok(Self::of(dev, (0..shards.len()).collect(), Kind::Replaces)),
        }
    }

    /// The device of `dev` is to be a member again in the shards that have given it up.
    pub fn again(dev: DevIndex, shards: &[&Health]) -> Self {
        let lack = |&shard: &usize| !shards[shard].is_writable(dev);
        Self::of(dev, (0..shards.len()).filter(lack).collect(), Kind::Returns)
    }

    /// The device of `dev` is to be a member again in the shards that have given it up, each of which knows
    /// what it has missed.
    pub fn back(dev: DevIndex, shards: &[&Health]) -> Self {
        Self { kind: Kind::Back, ..Self::again(dev, shards) }
    }

    /// Whether a shard that is to rebuild is to do so by what the member has missed.
    pub fn is_back(&self) -> bool {
        self.kind == Kind::Back
    }

    /// Whether the device is there and stays, and only some shards rebuild onto it.
    pub fn is_return(&self) -> bool {
        self.kind == Kind::Returns
    }

    fn of(dev: DevIndex, shards: Vec<usize>, kind: Kind) -> Self {
        Self { dev, shards, kind, stage: Stage::Vacate, serial: 0 }
    }

    /// Shards that are to rebuild.
    pub fn shards(&self) -> &[usize] {
        &self.shards
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
                self.stage = Stage::Rebuild(self.shards.len());
                ReplaceStep::Flush
            }
            Stage::Wipe(left) => {
                self.stage = Stage::Wipe(left - 1);
                ReplaceStep::Wipe { shard: self.shards[left - 1] }
            }
            Stage::Rebuild(0) => ReplaceStep::Done,
            // The others have said on disk that it is theirs.
            Stage::Rebuild(1) if !self.others_are_told(seats) => ReplaceStep::Wait,
            Stage::Rebuild(left) => {
                let left = if planted(Planted::RebuildFirstShardOnly) { 1 } else { left };
                self.stage = Stage::Rebuild(left - 1);
                ReplaceStep::Rebuild { shard: self.shards[left - 1], serial: self.serial }
            }
        }
    }

    /// Whether in all shards that rebuild but the first of them all members know who is in service.
    fn others_are_told(&self, seats: &[Seat]) -> bool {
        self.shards.iter().skip(1).all(|&shard| seats[shard].is_told())
    }

    fn vacate(&mut self, seats: &[Seat]) -> ReplaceStep {
        let served = self.shards.iter().copied().find(|&shard| seats[shard].in_service);
        if let Some(shard) = served.filter(|_| !planted(Planted::ReplaceUnfailed)) {
            return ReplaceStep::Fail { shard };
        }
        let asked = if planted(Planted::ReplaceWhileBusy) { &self.shards[..1] } else { &self.shards[..] };
        if asked.iter().any(|&shard| seats[shard].in_flight > 0 || !seats[shard].is_told()) {
            return ReplaceStep::Wait;
        }
        self.serial = new_serial(seats.iter().copied());
        match self.kind {
            Kind::Replaces => {
                self.stage = Stage::Wipe(self.shards.len());
                ReplaceStep::Install
            }
            Kind::Back => {
                self.stage = Stage::Rebuild(self.shards.len());
                ReplaceStep::Install
            }
            Kind::Returns if planted(Planted::WipeReturned) => {
                self.stage = Stage::Wipe(self.shards.len());
                self.next(seats)
            }
            Kind::Returns => {
                self.stage = Stage::Rebuild(self.shards.len());
                self.next(seats)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: Seat =
        Seat { in_service: false, in_flight: 0, is_publishing: false, waits_to_tell: false, serial_max: 9 };

    fn begun(shards: usize) -> Replacing {
        Replacing::of(DevIndex::new(3), (0..shards).collect(), Kind::Replaces)
    }

    #[test]
    fn a_device_that_comes_back_is_installed_when_nothing_is_under_way_and_not_wiped() {
        let mut replacing = Replacing::of(DevIndex::new(3), vec![0, 1], Kind::Back);
        let busy = Seat { in_flight: 1, ..OUT };
        assert_eq!(replacing.next(&[OUT, busy]), ReplaceStep::Wait);
        let steps: Vec<ReplaceStep> = (0..4).map(|_| replacing.next(&[OUT, OUT])).collect();
        let rebuild = |shard| ReplaceStep::Rebuild { shard, serial: 10 };
        assert_eq!(steps, [ReplaceStep::Install, rebuild(1), rebuild(0), ReplaceStep::Done]);
    }

    #[test]
    fn a_device_that_returns_is_rebuilt_where_it_was_given_up() {
        let mut replacing = Replacing::of(DevIndex::new(3), vec![1, 2], Kind::Returns);
        let seats = [Seat { in_service: true, in_flight: 4, ..OUT }, OUT, OUT];
        let steps: Vec<ReplaceStep> = (0..3).map(|_| replacing.next(&seats)).collect();
        let rebuild = |shard| ReplaceStep::Rebuild { shard, serial: 10 };
        assert_eq!(steps, [rebuild(2), rebuild(1), ReplaceStep::Done]);
    }

    #[test]
    fn shard_0_comes_last_and_everybody_else_first() {
        let (mut replacing, seats) = (begun(3), [OUT, OUT, Seat { serial_max: 12, ..OUT }]);
        let steps: Vec<ReplaceStep> = (0..9).map(|_| replacing.next(&seats)).collect();
        let rebuild = |shard| ReplaceStep::Rebuild { shard, serial: 13 };
        let wipe = |shard| ReplaceStep::Wipe { shard };
        assert_eq!(steps[..5], [ReplaceStep::Install, wipe(2), wipe(1), wipe(0), ReplaceStep::Flush]);
        assert_eq!(steps[5..], [rebuild(2), rebuild(1), rebuild(0), ReplaceStep::Done]);
    }

    #[test]
    fn the_place_is_free_in_all_shards_and_all_members_know_first() {
        let mut replacing = begun(2);
        let served = Seat { in_service: true, ..OUT };
        assert_eq!(replacing.next(&[OUT, served]), ReplaceStep::Fail { shard: 1 });
        let telling = [Seat { is_publishing: true, ..OUT }, Seat { waits_to_tell: true, ..OUT }];
        for late in [Seat { in_flight: 1, ..OUT }].iter().chain(&telling) {
            assert_eq!(replacing.next(&[OUT, *late]), ReplaceStep::Wait);
        }
        assert_eq!(replacing.next(&[OUT, OUT]), ReplaceStep::Install);
    }

    #[test]
    fn shard_0_waits_until_the_others_have_told() {
        let mut replacing = begun(2);
        let seats = [OUT, OUT];
        let before: Vec<ReplaceStep> = (0..5).map(|_| replacing.next(&seats)).collect();
        assert_eq!(before.last(), Some(&ReplaceStep::Rebuild { shard: 1, serial: 10 }));
        for late in [Seat { is_publishing: true, ..OUT }, Seat { waits_to_tell: true, ..OUT }] {
            assert_eq!(replacing.next(&[OUT, late]), ReplaceStep::Wait);
        }
        assert_eq!(replacing.next(&seats), ReplaceStep::Rebuild { shard: 0, serial: 10 });
    }
}
