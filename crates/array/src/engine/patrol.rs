//! Reading metadata that nobody asks for, before a loss makes it needed: superblocks, the newest checkpoint
//! with all that builds on it, the journal frames that a recovery would replay, and the last block of every
//! member.
//!
//! A *round* looks at all of it once, on every member. A scrub begins with one; a patrol makes one by itself
//! now and then, slowly. Each member has a *walker*, which reads one stretch at a time into a buffer set
//! aside for it.
//!
//! What is bad is not mended in its place: a full checkpoint makes the one before and the frames up to it
//! unnecessary, and two updates of the superblocks write both copies on every member anew. A round ends when
//! that is durable.
//!
//! Copies in the payload ring are not looked at: they are needed only until the write they belong to is
//! durable in its place, and the flush that ends a scrub makes it so.

mod walk;

use super::config::{PatrolPolicy, WALKERS_MAX};
use super::wake::{Marked, count};
use super::{Activity, Content, Core, Deadline, Event};
use crate::fault::{FailCause, Finding};
use crate::planted::{Planted, planted};
use crate::table::Extent;
use block::{DevIndex, Pool, Seq, Slot};
use walk::Walker;

/// What a round found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct MetadataReport {
    /// Blocks that were bad and are of no consequence any more.
    pub repaired: u64,
    /// Blocks that are bad still, and devices that are useless and could not be spared.
    pub left: u64,
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
    stage: Stage,
    walkers: Vec<Walker>,
    /// The member that gets the next walker.
    next_member: usize,
    started_ns: u64,
    read_bytes: u64,
    /// The checkpoint that was under way when the round began, or the newest: what was damaged of it by then
    /// counts when it has ended.
    awaits: u64,
    /// Looks at page areas that found nothing to be read.
    looks: u64,
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
    /// When the next round begins by itself.
    next_ns: Option<u64>,
    begun: u64,
    clean_since: u64,
}

/// What a scrub wants of the patrol, and what it is told.
#[derive(Default)]
pub(super) struct MetadataBoard {
    /// A scrub waits for a round that begins from now on.
    pub wanted: bool,
    /// The round under way is made for a scrub.
    serves_scrub: bool,
    /// What a round that a scrub asked for has found, until it takes notice.
    pub checked: Option<MetadataReport>,
    /// The round under way waits for its pace only.
    pub held_up: bool,
}

impl MetadataBoard {
    /// The scrub that wants a round, or for which one is made, is no more.
    pub(super) fn forsake(&mut self) {
        (self.wanted, self.serves_scrub) = (false, false);
    }
}

impl Core {
    /// How rounds are made that nobody asks for, if any can be made now.
    fn patrol_policy(&self) -> Option<PatrolPolicy> {
        let useful = self.accepts_writes() && self.options.content == Content::Checked;
        self.options.patrol.filter(|_| useful)
    }

    fn patrol_rate(&self) -> Option<u64> {
        if self.board.metadata.wanted || self.board.metadata.serves_scrub {
            self.options.rebuild_bytes_per_s
        } else {
            self.options.patrol.map(|policy| policy.bytes_per_s)
        }
    }

    /// Whether the pace lets another stretch be read.
    fn patrol_may_read(&self, round: &Round) -> bool {
        let Some(rate) = self.patrol_rate() else { return true };
        let elapsed_ns = u128::from(self.now_ns.saturating_sub(round.started_ns));
        u128::from(round.read_bytes) * 1_000_000_000 <= u128::from(rate) * elapsed_ns
    }
}

impl Patrol {
    /// With a buffer for each walker.
    pub(super) fn new(pool: &mut Pool) -> Self {
        let mut patrol = Self { slots: Vec::new(), round: None, next_ns: None, begun: 0, clean_since: 0 };
        patrol.take_buffers(pool);
        patrol
    }

    /// Takes the buffers of its walkers.
    pub(super) fn take_buffers(&mut self, pool: &mut Pool) {
        self.slots.extend((0..WALKERS_MAX).map_while(|_| pool.alloc()));
    }

    /// Gives them back; no round is under way.
    pub(super) fn give_buffers(&mut self, pool: &mut Pool) {
        self.slots.drain(..).for_each(|slot| pool.free(slot));
    }

    /// Its rounds go on from those of another engine's: which have been, and when the next is due.
    pub(super) fn inherit(&mut self, before: &Self) {
        (self.next_ns, self.begun, self.clean_since) = (before.next_ns, before.begun, before.clean_since);
    }

    /// Rounds begun since assembly, and how many of those had begun when the last one that left nothing bad
    /// did.
    pub(super) fn rounds(&self) -> (u64, u64) {
        (self.begun, self.clean_since)
    }

    /// Whether a round is under way or wanted.
    fn is_open(&self, core: &Core) -> bool {
        self.round.is_some() || core.board.metadata.wanted
    }

    fn begin_round(&mut self, core: &mut Core) -> bool {
        if core.board.halted {
            return false;
        }
        let scrub = std::mem::take(&mut core.board.metadata.wanted);
        if !scrub && !self.is_due(core) {
            return false;
        }
        if core.options.content == Content::Meaningless {
            if scrub {
                core.board.metadata.checked = Some(MetadataReport::default());
            }
            return false;
        }
        self.begun += 1;
        core.board.metadata.serves_scrub = scrub;
        core.board.metadata.held_up = false;
        self.round = Some(Round {
            stage: Stage::Looking,
            walkers: Vec::new(),
            next_member: 0,
            started_ns: core.now_ns,
            read_bytes: 0,
            awaits: core.board.checkpoint.newest(),
            looks: 0,
            bad: vec![0; core.health.members().len()],
            kept: 0,
            superblocks: false,
            checkpoint: false,
        });
        true
    }

    /// Whether it is time for a round that nobody asked for.
    fn is_due(&mut self, core: &Core) -> bool {
        let Some(policy) = core.patrol_policy() else { return false };
        let next_ns = *self.next_ns.get_or_insert(core.now_ns.saturating_add(policy.interval_ns));
        core.now_ns >= next_ns
    }

    /// `true` if the round came to another stage, or ended.
    fn advance_round(&mut self, core: &mut Core) -> bool {
        let Some(round) = &self.round else { return false };
        let stage = round.stage;
        if stage != Stage::Looking && (!core.accepts_writes() || core.board.halted) {
            self.end_round(core, false);
            return true;
        }
        match stage {
            Stage::Looking => self.look(core),
            Stage::Settling { after } if core.jobs.retired >= after => {
                let after = core.board.checkpoint.completing_begun();
                core.board.checkpoint.request(Extent::Everything);
                self.enter_stage(Stage::Sealing { after });
                false
            }
            Stage::Sealing { after } if core.board.checkpoint.completing_sealed() > after => {
                self.repair_superblocks()
            }
            Stage::Settling { .. } | Stage::Sealing { .. } => false,
            Stage::Publishing { left: 0 } if !core.board.members.is_publishing() => {
                self.end_round(core, true);
                true
            }
            Stage::Publishing { left } if !core.board.members.is_publishing() => {
                self.enter_stage(Stage::Publishing { left: left - 1 });
                core.health.config_seq += 1;
                core.publish_members();
                true
            }
            Stage::Publishing { .. } => false,
        }
    }

    fn enter_stage(&mut self, stage: Stage) {
        if let Some(round) = &mut self.round {
            round.stage = stage;
        }
    }

    /// Lets walkers go on. `true` when all have come to their end.
    fn look(&mut self, core: &mut Core) -> bool {
        let members = core.health.members().len();
        let stopping = core.board.halted;
        loop {
            let Some(round) = &mut self.round else { return false };
            while !stopping && round.next_member < members {
                let dev = DevIndex::new(u16::try_from(round.next_member).expect("a member has an index"));
                if core.health.is_writable(dev) {
                    let Some(slot) = self.slots.pop() else { break };
                    let serial = core.health.members()[dev.index()].serial;
                    round.walkers.push(Walker::new(dev, serial, slot));
                }
                round.next_member += 1;
            }
            core.board.metadata.held_up = false;
            let mut walkers = std::mem::take(&mut round.walkers);
            let before = walkers.len();
            walkers.retain_mut(|walker| {
                let goes_on = walker.is_reading() || (!stopping && self.step(core, walker));
                if !goes_on {
                    self.slots.push(walker.slot());
                }
                goes_on
            });
            let (left, ended) = (walkers.len(), walkers.len() < before);
            let Some(round) = &mut self.round else { return false };
            round.walkers = walkers;
            let more = !stopping && round.next_member < members;
            match (more, left) {
                (true, _) if ended => {}
                (false, 0) if stopping => {
                    self.end_round(core, false);
                    return true;
                }
                (false, 0) => {
                    self.end_looking(core);
                    return true;
                }
                (true | false, _) => return false,
            }
        }
    }

    /// Every member was looked at: repairs what must be.
    fn end_looking(&mut self, core: &mut Core) {
        let wanted = core.store.config.geometry.parity_count() + 1;
        let wanted = wanted.min(core.health.writable_main().count());
        let place = &core.board.checkpoint.place;
        let copies = place.devices.iter().filter(|&&dev| core.health.is_writable(dev)).count();
        let incomplete = copies < wanted && !core.board.checkpoint.is_busy();
        let Some(round) = &mut self.round else { return };
        round.checkpoint |= incomplete;
        if !(round.checkpoint || round.superblocks) {
            return self.end_round(core, true);
        }
        if !core.accepts_writes() {
            return self.end_round(core, false);
        }
        let Some(round) = &mut self.round else { return };
        if round.checkpoint {
            // A frame that is bad may hold records that have not retired: no checkpoint holds them yet.
            let after = Seq::new(core.journal.next_seq().get().saturating_sub(1));
            round.stage = Stage::Settling { after };
        } else {
            self.repair_superblocks();
        }
    }

    fn repair_superblocks(&mut self) -> bool {
        let superblocks = self.round.as_ref().is_some_and(|round| round.superblocks);
        let left = if superblocks && !planted(Planted::KeepBadSuperblock) { 2 } else { 0 };
        self.enter_stage(Stage::Publishing { left });
        true
    }

    fn end_round(&mut self, core: &mut Core, mended: bool) {
        let Some(round) = self.round.take() else { return };
        debug_assert!(round.walkers.is_empty(), "a round ends with its last walker");
        let mut report = MetadataReport { repaired: 0, left: round.kept };
        for (index, &bad) in (0u16..).zip(&round.bad) {
            let dev = DevIndex::new(index);
            // What was bad on a member that failed meanwhile is gone with it.
            if bad > 0 && core.health.is_writable(dev) {
                if mended {
                    report.repaired += u64::from(bad);
                    core.health.errors_mut(dev).healed += u64::from(bad);
                } else {
                    report.left += u64::from(bad);
                }
            }
        }
        if mended && report.left == 0 {
            self.clean_since = self.begun;
        }
        self.next_ns = core.options.patrol.map(|policy| core.now_ns.saturating_add(policy.interval_ns));
        core.board.metadata.held_up = false;
        if std::mem::take(&mut core.board.metadata.serves_scrub) {
            core.board.metadata.checked = Some(report);
        }
    }

    /// A member that is useless as what it is: out of service, if the array bears that.
    fn expel(&mut self, core: &mut Core, dev: DevIndex, found: Finding) {
        let failed = core.health.missing_count() < core.store.config.geometry.parity_count();
        core.answers.events.push(Event::MemberUnfit { dev, found, failed });
        if failed {
            core.fail_member(dev, FailCause::Unfit(found));
        } else if let Some(round) = &mut self.round {
            round.kept += 1;
        }
    }
}

impl Activity for Patrol {
    /// Begins rounds, moves them on, and ends them.
    fn drive(&mut self, core: &mut Core) {
        while self.round.is_some() || self.begin_round(core) {
            if !self.advance_round(core) {
                return;
            }
        }
    }

    /// A round for a scrub goes on: it says what is bad, and mends nothing.
    fn drive_frozen(&mut self, core: &mut Core) {
        self.drive(core);
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    /// Whether a walker waits for its device.
    fn is_busy(&self, _core: &Core) -> bool {
        self.round.as_ref().is_some_and(|round| round.walkers.iter().any(Walker::is_reading))
    }

    fn deadline(&self, core: &Core) -> Option<Deadline> {
        if core.board.halted {
            return None;
        }
        let at_ns = match &self.round {
            Some(round) if core.board.metadata.held_up => {
                let rate = u128::from(core.patrol_rate()?.max(1));
                let due = u128::from(round.read_bytes) * 1_000_000_000 / rate;
                round.started_ns.saturating_add(u64::try_from(due).unwrap_or(u64::MAX)).saturating_add(1)
            }
            Some(_) => return None,
            None => {
                let policy = core.patrol_policy()?;
                self.next_ns.unwrap_or_else(|| core.now_ns.saturating_add(policy.interval_ns))
            }
        };
        Some(if self.is_open(core) { Deadline::Work(at_ns) } else { Deadline::NextRound(at_ns) })
    }

    /// Its walkers have buffers of their own.
    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        let held_up = core.board.metadata.held_up || core.board.halted;
        (self.is_open(core) && !held_up).then_some("a look at the metadata")
    }
}

impl Marked for Patrol {
    type Mark = [u64; 7];

    /// But for operations that end.
    fn mark(&self, core: &Core) -> Self::Mark {
        let (stage, next, walkers, looks) = match &self.round {
            None => (0, 0, 0, 0),
            Some(round) => {
                let stage = match round.stage {
                    Stage::Looking => 1,
                    Stage::Settling { .. } => 2,
                    Stage::Sealing { .. } => 3,
                    Stage::Publishing { left } => 4 + u64::from(left),
                };
                (stage, count(round.next_member), count(round.walkers.len()), round.looks)
            }
        };
        let wanted = u64::from(core.board.metadata.wanted);
        [self.begun, self.clean_since, stage, next, walkers, looks, wanted]
    }
}
