//! Reading metadata that nobody asks for, before a loss makes it needed: superblocks, the newest checkpoint with all that
//! builds on it, the journal frames that a recovery would replay, and the last block of every member.
//!
//! A *round* looks at all of it once, on every member. A scrub begins with one; a patrol makes one by itself now and then,
//! slowly. Each member has a *walker*, which reads one stretch at a time into a buffer set aside for it.
//!
//! What is bad is not mended in its place: a full checkpoint makes the one before and the frames up to it unnecessary, and
//! two updates of the superblocks write both copies on every member anew. A round ends when that is durable.
//!
//! Copies in the payload ring are not looked at: they are needed only until the write they belong to is durable in its
//! place, and the flush that ends a scrub makes it so.

mod walk;

use super::{Content, Engine, Event};
use crate::fault::FailCause;
use crate::planted::{Planted, planted};
use block::{DevIndex, Pool, Seq, Slot};
use walk::Walker;

/// Members looked at side by side.
pub(super) const WALKERS_MAX: usize = 4;

/// How metadata is looked at when nobody asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PatrolPolicy {
    /// From the end of one round to the beginning of the next.
    pub interval_ns: u64,
    /// Bytes read in a second at most.
    pub bytes_per_s: u64,
}

/// What makes a device useless as the member it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// It ends before its layout does.
    Truncated,
    /// Its superblocks are those of another member or array.
    Foreign,
}

/// What a round found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct MetadataReport {
    /// Blocks that were bad and are of no consequence any more.
    pub repaired: u64,
    /// Blocks that are bad still, and devices that are useless and could not be spared.
    pub left: u64,
}

/// For whom a round is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Caller {
    Scrub,
    Nobody,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Walkers are under way.
    Looking,
    /// Until every record up to `after` has retired, so that the checkpoint holds it.
    Settling { after: Seq },
    /// Until a full checkpoint later than number `after` of this assembly is durable.
    Sealing { after: u64 },
    /// The superblocks are to be updated as many times.
    Publishing { left: u8 },
}

struct Round {
    caller: Caller,
    stage: Stage,
    walkers: Vec<Walker>,
    /// The member that gets the next walker.
    next_member: usize,
    started_ns: u64,
    read_bytes: u64,
    /// A walker waits for the pace only.
    held_up: bool,
    /// Bad blocks of each member.
    bad: Vec<u32>,
    /// Members that are useless and could not be spared.
    kept: u64,
    /// Superblocks are to be written anew.
    superblocks: bool,
    /// A full checkpoint is to be written.
    checkpoint: bool,
}

/// See the module's documentation.
pub(super) struct Patrol {
    /// Buffers of walkers that are not under way.
    slots: Vec<Slot>,
    round: Option<Round>,
    /// A scrub waits for a round that begins from now on.
    wanted: bool,
    /// When the next round begins by itself.
    next_ns: Option<u64>,
    begun: u64,
    clean_since: u64,
}

impl Patrol {
    /// With a buffer for each walker.
    pub(super) fn new(pool: &mut Pool) -> Self {
        let slots = (0..WALKERS_MAX).map_while(|_| pool.alloc()).collect();
        Self { slots, round: None, wanted: false, next_ns: None, begun: 0, clean_since: 0 }
    }

    /// A scrub wants a round that begins from now on; it is told by `maintenance_metadata_checked`.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// The scrub that wants a round, or for which one is made, is no more.
    pub(super) fn forsake(&mut self) {
        self.wanted = false;
        if let Some(round) = &mut self.round {
            round.caller = Caller::Nobody;
        }
    }

    /// What decides how a round goes on, but for operations that end.
    pub(super) fn mark(&self) -> [u64; 6] {
        let (stage, next, walkers) = match &self.round {
            None => (0, 0, 0),
            Some(round) => {
                let stage = match round.stage {
                    Stage::Looking => 1,
                    Stage::Settling { .. } => 2,
                    Stage::Sealing { .. } => 3,
                    Stage::Publishing { left } => 4 + u64::from(left),
                };
                (stage, round.next_member as u64, round.walkers.len() as u64)
            }
        };
        [self.begun, self.clean_since, stage, next, walkers, u64::from(self.wanted)]
    }

    /// Whether a round is under way or wanted.
    pub(super) fn is_open(&self) -> bool {
        self.round.is_some() || self.wanted
    }

    /// Whether a round only waits for its pace.
    pub(super) fn is_held_up(&self) -> bool {
        self.round.as_ref().is_some_and(|round| round.held_up)
    }

    /// Whether a walker waits for its device.
    pub(super) fn is_reading(&self) -> bool {
        self.round.as_ref().is_some_and(|round| round.walkers.iter().any(Walker::is_reading))
    }
}

impl Engine {
    /// Rounds begun since assembly, and how many of those had begun when the last one that left nothing bad did.
    pub fn patrol_rounds(&self) -> (u64, u64) {
        (self.patrol.begun, self.patrol.clean_since)
    }

    /// When the patrol wants to be pumped although nothing happens.
    pub(super) fn patrol_deadline_ns(&self) -> Option<u64> {
        if self.maintain.is_halted() {
            return None;
        }
        match &self.patrol.round {
            Some(round) if round.held_up => {
                let rate = u128::from(self.patrol_rate(round)?.max(1));
                let due = u128::from(round.read_bytes) * 1_000_000_000 / rate;
                Some(
                    round.started_ns.saturating_add(u64::try_from(due).unwrap_or(u64::MAX)).saturating_add(1),
                )
            }
            Some(_) => None,
            None => self.patrol_policy().map(|policy| {
                self.patrol.next_ns.unwrap_or_else(|| self.now_ns.saturating_add(policy.interval_ns))
            }),
        }
    }

    /// How rounds are made that nobody asks for, if any can be made now.
    fn patrol_policy(&self) -> Option<PatrolPolicy> {
        let useful = self.accepts_writes() && self.options.content == Content::Checked;
        self.options.patrol.filter(|_| useful)
    }

    fn patrol_rate(&self, round: &Round) -> Option<u64> {
        match round.caller {
            Caller::Nobody if !self.patrol.wanted => self.options.patrol.map(|policy| policy.bytes_per_s),
            Caller::Nobody | Caller::Scrub => self.options.rebuild_bytes_per_s,
        }
    }

    /// Whether the pace lets another stretch be read.
    fn patrol_may_read(&self, round: &Round) -> bool {
        let Some(rate) = self.patrol_rate(round) else { return true };
        let elapsed_ns = u128::from(self.now_ns.saturating_sub(round.started_ns));
        u128::from(round.read_bytes) * 1_000_000_000 <= u128::from(rate) * elapsed_ns
    }

    /// Begins rounds, moves them on, and ends them.
    pub(super) fn drive_patrol(&mut self) {
        while self.patrol.round.is_some() || self.begin_round() {
            if !self.advance_round() {
                return;
            }
        }
    }

    fn begin_round(&mut self) -> bool {
        if self.maintain.is_halted() {
            return false;
        }
        let scrub = std::mem::take(&mut self.patrol.wanted);
        if !scrub && !self.patrol_is_due() {
            return false;
        }
        if self.options.content == Content::Meaningless {
            if scrub {
                self.maintenance_metadata_checked(MetadataReport::default());
            }
            return false;
        }
        self.patrol.begun += 1;
        self.patrol.round = Some(Round {
            caller: if scrub { Caller::Scrub } else { Caller::Nobody },
            stage: Stage::Looking,
            walkers: Vec::new(),
            next_member: 0,
            started_ns: self.now_ns,
            read_bytes: 0,
            held_up: false,
            bad: vec![0; self.health.members().len()],
            kept: 0,
            superblocks: false,
            checkpoint: false,
        });
        true
    }

    /// Whether it is time for a round that nobody asked for.
    fn patrol_is_due(&mut self) -> bool {
        let Some(policy) = self.patrol_policy() else { return false };
        let next_ns = *self.patrol.next_ns.get_or_insert(self.now_ns.saturating_add(policy.interval_ns));
        self.now_ns >= next_ns
    }

    /// `true` if the round came to another stage, or ended.
    fn advance_round(&mut self) -> bool {
        let Some(round) = &self.patrol.round else { return false };
        let stage = round.stage;
        if stage != Stage::Looking && (!self.accepts_writes() || self.maintain.is_halted()) {
            self.end_round(false);
            return true;
        }
        match stage {
            Stage::Looking => self.look(),
            Stage::Settling { after } if self.retired >= after => {
                let after = self.checkpoint.full_begun();
                self.checkpoint.request_full();
                self.enter_stage(Stage::Sealing { after });
                false
            }
            Stage::Sealing { after } if self.checkpoint.full_sealed() > after => self.repair_superblocks(),
            Stage::Settling { .. } | Stage::Sealing { .. } => false,
            Stage::Publishing { left: 0 } if !self.maintain.writes_superblocks() => {
                self.end_round(true);
                true
            }
            Stage::Publishing { left } if !self.maintain.writes_superblocks() => {
                self.enter_stage(Stage::Publishing { left: left - 1 });
                self.health.config_seq += 1;
                self.publish_members();
                true
            }
            Stage::Publishing { .. } => false,
        }
    }

    fn enter_stage(&mut self, stage: Stage) {
        if let Some(round) = &mut self.patrol.round {
            round.stage = stage;
        }
    }

    /// Lets walkers go on. `true` when all have come to their end.
    fn look(&mut self) -> bool {
        let members = self.health.members().len();
        let stopping = self.maintain.is_halted();
        loop {
            let Some(round) = &mut self.patrol.round else { return false };
            while !stopping && round.next_member < members {
                let dev = DevIndex::new(u16::try_from(round.next_member).expect("a member has an index"));
                if self.health.is_writable(dev) {
                    let Some(slot) = self.patrol.slots.pop() else { break };
                    let serial = self.health.members()[dev.index()].serial;
                    round.walkers.push(Walker::new(dev, serial, slot));
                }
                round.next_member += 1;
            }
            round.held_up = false;
            let mut walkers = std::mem::take(&mut round.walkers);
            let before = walkers.len();
            walkers.retain_mut(|walker| {
                let goes_on = walker.is_reading() || (!stopping && self.step(walker));
                if !goes_on {
                    self.patrol.slots.push(walker.slot());
                }
                goes_on
            });
            let (left, ended) = (walkers.len(), walkers.len() < before);
            let Some(round) = &mut self.patrol.round else { return false };
            round.walkers = walkers;
            let more = !stopping && round.next_member < members;
            match (more, left) {
                (true, _) if ended => {}
                (false, 0) if stopping => {
                    self.end_round(false);
                    return true;
                }
                (false, 0) => {
                    self.end_looking();
                    return true;
                }
                (true | false, _) => return false,
            }
        }
    }

    /// Every member was looked at: repairs what must be.
    fn end_looking(&mut self) {
        let wanted = self.store.config.geometry.parity_count() + 1;
        let wanted = wanted.min(self.health.writable_main().count());
        let place = self.checkpoint_place();
        let copies = place.devices.iter().filter(|&&dev| self.health.is_writable(dev)).count();
        let incomplete = copies < wanted && !self.checkpoint.is_busy();
        let Some(round) = &mut self.patrol.round else { return };
        round.checkpoint |= incomplete;
        if !(round.checkpoint || round.superblocks) {
            return self.end_round(true);
        }
        if !self.accepts_writes() {
            return self.end_round(false);
        }
        let Some(round) = &mut self.patrol.round else { return };
        if round.checkpoint {
            // A frame that is bad may hold records that have not retired: no checkpoint holds them yet.
            let after = Seq::new(self.journal.next_seq().get().saturating_sub(1));
            round.stage = Stage::Settling { after };
        } else {
            self.repair_superblocks();
        }
    }

    fn repair_superblocks(&mut self) -> bool {
        let superblocks = self.patrol.round.as_ref().is_some_and(|round| round.superblocks);
        let left = if superblocks && !planted(Planted::KeepBadSuperblock) { 2 } else { 0 };
        self.enter_stage(Stage::Publishing { left });
        true
    }

    fn end_round(&mut self, mended: bool) {
        let Some(round) = self.patrol.round.take() else { return };
        debug_assert!(round.walkers.is_empty(), "a round ends with its last walker");
        let mut report = MetadataReport { repaired: 0, left: round.kept };
        for (index, &bad) in (0u16..).zip(&round.bad) {
            let dev = DevIndex::new(index);
            // What was bad on a member that failed meanwhile is gone with it.
            if bad > 0 && self.health.is_writable(dev) {
                if mended {
                    report.repaired += u64::from(bad);
                    self.health.errors_mut(dev).healed += u64::from(bad);
                } else {
                    report.left += u64::from(bad);
                }
            }
        }
        if mended && report.left == 0 {
            self.patrol.clean_since = self.patrol.begun;
        }
        self.patrol.next_ns =
            self.options.patrol.map(|policy| self.now_ns.saturating_add(policy.interval_ns));
        match round.caller {
            Caller::Scrub => self.maintenance_metadata_checked(report),
            Caller::Nobody => {}
        }
    }

    /// A member that is useless as what it is: out of service, if the array bears that.
    fn expel(&mut self, dev: DevIndex, found: Finding) {
        let failed = self.health.missing_count() < self.store.config.geometry.parity_count();
        self.events.push(Event::MemberUnfit { dev, found, failed });
        if failed {
            self.fail_member(dev, FailCause::Unfit(found));
        } else if let Some(round) = &mut self.patrol.round {
            round.kept += 1;
        }
    }
}
