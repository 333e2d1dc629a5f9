//! How a device takes the place of a member that works, in all shards at once, so that the array is never a
//! member short: which step comes when, whoever takes it.
//!
//! The devices are a pair ([`block::Paired`]): the member stays in service while its partner becomes the
//! same.
//! When it is, in every shard, the partner is told first that it is the member: its superblock alone carries
//! the new serial number. Shard 0, by whose slice a device is known as a member, comes last. Until then the
//! partner is nobody and the member holds everything; from then on the partner is the member, for it has the
//! newest superblock and holds everything, too. Only then the other members are told, and when they all know
//! nothing more is sent to either device until the partner is in place.

use super::Seat;
use super::replace::new_serial;
use crate::engine::Engine;
use crate::planted::{Planted, planted};
use block::{DevIndex, PairFault, PairStage, PairState};
use format::MemberState;

/// What one shard sees of a member and its partner.
#[derive(Clone, Copy, Debug)]
pub struct PairSeat {
    /// The member's place.
    pub seat: Seat,
    /// The member is healthy.
    pub is_healthy: bool,
    /// A rebuild or scrub is under way. One that is paused may wait for as long as it likes, and nothing
    /// waits for it.
    pub is_maintained: bool,
    /// Its devices, unless there is no pair.
    pub pair: Option<PairState>,
}

impl PairSeat {
    /// The place in the shard of an engine, whose devices are these.
    pub fn of(engine: &Engine, dev: DevIndex, pair: Option<PairState>) -> Self {
        Self {
            seat: Seat::of(engine, dev),
            is_healthy: engine.health().state(dev) == MemberState::Healthy,
            is_maintained: engine.maintenance().is_some() && !engine.is_scrub_paused(),
            pair,
        }
    }
}

/// What is to be done next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SucceedStep {
    /// Something has to end first.
    Wait,
    /// What could not be read from the member is to be healed by a scrub, which writes it to both; or what
    /// could not be read to the last, by one that looks at the new member.
    Scrub,
    /// The devices of all shards are to read once more what could not be read
    /// ([`block::Paired::copy_again`]).
    CopyAgain,
    /// A shard's devices are to hand over, and its engine is to be told ([`crate::Engine::succeed`]), with
    /// nothing in between.
    HandOver {
        /// Its number.
        shard: usize,
        /// The member's new serial number.
        serial: u32,
    },
    /// A shard is to tell its members ([`crate::Engine::tell_of_successor`]).
    Tell {
        /// Its number.
        shard: usize,
    },
    /// The devices of all shards are to hold what is sent to the pair.
    Hold,
    /// The partner is to be put in the member's place, in all shards, and the pair to end.
    Install,
    /// It has come to nothing: the pair is to end.
    GiveUp {
        /// The reason.
        why: GivenUp,
        /// Some shard may have taken the partner for the member: it is out of service, in all of them.
        with_member: bool,
    },
    /// Nothing more.
    Done,
}

/// Why a member has no successor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GivenUp {
    /// The member went out of service meanwhile.
    MemberLeft,
    /// The copy came to nothing.
    CopyFailed(PairFault),
}

/// What cannot be read, and that no scrub heals, is nothing that is in use, or comes and goes: it is tried so
/// often, each time after a scrub.
const ROUNDS_MAX: u8 = 3;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Succession {
    dev: DevIndex,
    stage: Stage,
    serial: u32,
    scrubs: u8,
    /// Times that what could not be read was read once more.
    rounds: u8,
    /// Something could not be read to the last.
    is_left: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Copy,
    /// So many shards are left.
    HandOver(usize),
    Tell(usize),
    Hold,
    Install,
    Done,
}

impl Succession {
    /// A partner is to take the place of `dev`.
    pub fn begin(dev: DevIndex) -> Self {
        Self { dev, stage: Stage::Copy, serial: 0, scrubs: 0, rounds: 0, is_left: false }
    }

    /// The member whose place it is.
    pub fn dev(&self) -> DevIndex {
        self.dev
    }

    /// Whether the partner may count as the member from now on.
    pub fn is_handing_over(&self) -> bool {
        !matches!(self.stage, Stage::Copy)
    }

    /// The next step, with the place as each shard sees it now. It counts as taken unless it is to wait.
    pub fn next(&mut self, seats: &[PairSeat]) -> SucceedStep {
        if let Some(why) = self.why_not(seats) {
            let with_member = self.is_handing_over();
            self.stage = Stage::Done;
            return SucceedStep::GiveUp { why, with_member };
        }
        let is_publishing = seats.iter().any(|seat| seat.seat.is_publishing);
        match self.stage {
            Stage::Copy => self.copy(seats),
            Stage::HandOver(0) if is_publishing => SucceedStep::Wait,
            Stage::HandOver(0) => {
                self.stage = Stage::Tell(seats.len());
                self.next(seats)
            }
            // By shard 0 all is decided: the others have been told on disk. A shard that is telling its
            // members something tells it to the end.
            Stage::HandOver(_) if is_publishing && !planted(Planted::SucceedFirstShardFirst) => {
                SucceedStep::Wait
            }
            Stage::HandOver(left) => {
                self.stage = Stage::HandOver(left - 1);
                let first = planted(Planted::SucceedFirstShardFirst);
                let shard = if first { seats.len() - left } else { left - 1 };
                SucceedStep::HandOver { shard, serial: self.serial }
            }
            Stage::Tell(0) if is_publishing => SucceedStep::Wait,
            Stage::Tell(0) => {
                self.stage = Stage::Hold;
                SucceedStep::Hold
            }
            Stage::Tell(left) => {
                self.stage = Stage::Tell(left - 1);
                SucceedStep::Tell { shard: left - 1 }
            }
            Stage::Hold if seats.iter().any(|seat| seat.pair.is_some_and(|pair| !pair.is_quiet)) => {
                SucceedStep::Wait
            }
            Stage::Hold => {
                self.stage = Stage::Install;
                SucceedStep::Install
            }
            Stage::Install if std::mem::take(&mut self.is_left) => SucceedStep::Scrub,
            Stage::Install | Stage::Done => SucceedStep::Done,
        }
    }

    fn why_not(&self, seats: &[PairSeat]) -> Option<GivenUp> {
        if matches!(self.stage, Stage::Install | Stage::Done) {
            return None;
        }
        let fault = seats.iter().find_map(|seat| match seat.pair {
            None => Some(PairFault::LetGo),
            Some(pair) => pair.fault.filter(|_| pair.stage == PairStage::Over),
        });
        let left = seats.iter().any(|seat| !seat.seat.in_service);
        if left { Some(GivenUp::MemberLeft) } else { fault.map(GivenUp::CopyFailed) }
    }

    fn copy(&mut self, seats: &[PairSeat]) -> SucceedStep {
        let pairs = || seats.iter().filter_map(|seat| seat.pair);
        if !pairs().all(|pair| pair.stage == PairStage::Level) && !planted(Planted::SucceedEarly) {
            return SucceedStep::Wait;
        }
        if seats.iter().any(|seat| seat.is_maintained || !seat.is_healthy || seat.seat.is_publishing) {
            return SucceedStep::Wait;
        }
        self.is_left = pairs().any(|pair| pair.unread_bytes > 0);
        if self.is_left && self.rounds < ROUNDS_MAX {
            // A scrub heals what cannot be read. What it could read it leaves alone: that is copied after
            // all.
            if self.scrubs == self.rounds {
                self.scrubs += 1;
                return SucceedStep::Scrub;
            }
            self.rounds += 1;
            if !planted(Planted::SucceedUnread) {
                return SucceedStep::CopyAgain;
            }
            self.is_left = false;
        }
        self.serial = new_serial(seats.iter().map(|pair| pair.seat));
        self.stage = Stage::HandOver(seats.len());
        self.next(seats)
    }
}
