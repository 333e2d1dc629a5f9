//! Telling the members who is in service: superblocks, in rounds, on every working member.
//!
//! A round writes one copy on each member and flushes them. If who is in service has changed, answers to
//! requests are held back meanwhile: a device that missed writes must not pass for a good one after a crash.
//! A round that only names what is durable holds nothing back: a member that hangs holds up the round alone.
//! What changes during a round is told by the next one.

use super::request::Request;
use super::wake::Marked;
use super::{Activity, Core, Deadline, EngineError};
use super::{Purpose, Tag};
use crate::planted::{Planted, planted};
use block::slab::Key;
use block::{DevIndex, IoFault, META_BYTES, OpKind, Seq, Slot, Stream};
use format::{LossRecord, MemberState, Superblock};

/// What the superblocks say, and whether they are being written.
pub(super) struct MembersBoard {
    /// What is written to members besides their states.
    pub superblock: Superblock,
    /// The update of the superblocks that the round under way writes.
    publishing: Option<u64>,
    /// The update that the last round wrote, or the one under way writes.
    last_round: u64,
    /// The only member that the round under way is for.
    only: Option<DevIndex>,
    /// A successor that knows that it is the member while nobody else does: nobody is told anything.
    untold: Option<DevIndex>,
    /// Somebody is to be told something then, and answers wait for it.
    waits_for_untold: bool,
    /// What the superblocks written last say is durable.
    pub confirmed_through: Seq,
    /// When that was; 0 = the start.
    pub told_ns: u64,
    /// Whether superblocks say that the array was stopped in order.
    pub clean: bool,
    /// Requests that wait for superblocks that say so.
    pub clean_wanted: Vec<Key<Request>>,
    /// The wall clock at the engine's time 0, in seconds since 1970-01-01 UTC; 0 = not known.
    pub unix_base_s: u64,
}

impl MembersBoard {
    pub(super) fn new(superblock: Superblock) -> Self {
        Self {
            confirmed_through: superblock.durable_through,
            told_ns: 0,
            last_round: superblock.config_seq,
            superblock,
            publishing: None,
            only: None,
            untold: None,
            waits_for_untold: false,
            clean: false,
            clean_wanted: Vec::new(),
            unix_base_s: 0,
        }
    }

    /// The last update of the superblocks that every working member has.
    pub(super) fn published(&self) -> u64 {
        self.superblock.config_seq
    }

    /// Whether superblocks are being written.
    pub(super) fn is_publishing(&self) -> bool {
        self.publishing.is_some()
    }

    /// Whether members are to be told something once they are told of a successor.
    pub(super) fn waits_for_untold(&self) -> bool {
        self.waits_for_untold
    }

    /// Whether superblocks are being written, or waited for.
    pub(super) fn is_busy(&self) -> bool {
        self.is_publishing() || !self.clean_wanted.is_empty()
    }
}

impl Core {
    /// The superblock of one member as it would be written now.
    pub fn superblock_of(&self, dev: DevIndex) -> Superblock {
        let chunks = self.board.losses.to_note(self.store.lost.count());
        let template = Superblock {
            clean: self.board.members.clean,
            checkpoints: self.board.checkpoint.numbers(),
            durable_through: self.durable_to_name(),
            epoch: self.journal.epoch(),
            nonce: self.journal.nonce(),
            losses: LossRecord { chunks, ..self.board.members.superblock.losses },
            ..self.board.members.superblock.clone()
        };
        crate::recovery::superblock_of(&template, &self.health, dev)
    }

    /// Writes the members' present state to every working member. Answers wait until that is durable: a
    /// device that missed writes must not pass for a good one after a crash.
    pub(super) fn publish_members(&mut self) {
        self.answers.fence = true;
        if self.board.members.publishing.is_some() {
            self.answers.again = true;
            return;
        }
        if self.is_untold() {
            self.board.members.waits_for_untold = true;
            return;
        }
        self.board.members.waits_for_untold = false;
        self.begin_round();
    }

    /// Names what is durable: the members are who they were, so no answer waits. Only when no round is under
    /// way and none is waited for ([`Core::may_name_durable`]).
    pub(super) fn publish_durable(&mut self) {
        debug_assert!(self.may_name_durable(), "what a round says meanwhile must be told by another one");
        self.health.config_seq += 1;
        self.begin_round();
    }

    /// Whether a round that names what is durable may begin.
    pub(super) fn may_name_durable(&self) -> bool {
        let is_told = !self.waits_to_be_told() || planted(Planted::TellBetween);
        is_told && !self.board.members.is_busy()
    }

    fn begin_round(&mut self) {
        // The copies are written in turn, however much has changed since: torn everywhere, this round must
        // leave what the last one said.
        let next = format::update_after(self.board.members.last_round, self.health.config_seq);
        // One that a successor alone gets is of the same copy as the last, so that the next one leaves the
        // newest of the others.
        let update = next + u64::from(self.board.members.only.is_some());
        (self.health.config_seq, self.board.members.last_round) = (update, update);
        for dev in self.told() {
            let superblock = self.superblock_of(dev);
            let copy = (superblock.config_seq % 2) as usize;
            let slot = self.take_metadata_slot();
            let bytes = self.pool.bytes_mut(slot)[..META_BYTES].as_mut();
            superblock.encode(copy, bytes.try_into().expect("a slot holds a metadata block"));
            let tag = Tag { purpose: Purpose::Superblock { slot }, dev };
            self.answers.telling += 1;
            let offset = format::SUPERBLOCK_OFFSETS[copy];
            self.push_op(tag, OpKind::Write, Stream::Metadata, offset, META_BYTES as u64, Some(slot));
        }
        self.board.members.confirmed_through = self.board.flush.durable();
        self.board.members.told_ns = self.now_ns;
        self.board.members.publishing = Some(self.health.config_seq);
    }

    /// Whether a successor, and it alone, knows that it is the member. If it failed meanwhile, all are told.
    fn is_untold(&mut self) -> bool {
        let untold = self.board.members.untold;
        let works = untold.is_some_and(|dev| self.health.state(dev) == MemberState::Healthy);
        if !works || self.board.frozen || self.board.members.only.is_some() {
            self.board.members.untold = self.board.members.only;
            return false;
        }
        !planted(Planted::TellBetween)
    }

    /// Whether only a successor knows that it is the member: what needs superblocks that agree waits for
    /// [`Core::tell_of_successor`].
    pub(super) fn waits_to_be_told(&self) -> bool {
        self.board.members.untold.is_some()
    }

    /// Who is told in the round under way.
    fn told(&self) -> Vec<DevIndex> {
        let is_told = |dev: &DevIndex| self.board.members.only.is_none_or(|only| *dev == only);
        self.health.writable().filter(is_told).collect()
    }

    /// Another device holds what member `dev` holds, and its superblocks are written from now on: it says
    /// that it is the member, under a new serial number, before anybody else does. `false` if that cannot be
    /// said now.
    pub(super) fn succeed(&mut self, dev: DevIndex, serial: u32) -> bool {
        let works = self.health.members().get(dev.index()).is_some_and(|m| m.state == MemberState::Healthy);
        if !works || self.board.members.is_publishing() || self.board.frozen {
            return false;
        }
        // Its round writes the copy that the round before wrote: twice it would go over its only superblock.
        debug_assert!(self.board.members.untold != Some(dev), "all are told of a successor before the next");
        self.forget_trouble(dev);
        self.health.renew(dev, serial);
        self.health.clear_errors(dev, u32::try_from(self.unix_s()).unwrap_or(u32::MAX));
        self.board.members.only = Some(dev).filter(|_| !planted(Planted::SuccessorToldLast));
        self.board.members.untold = self.board.members.only;
        self.publish_members();
        true
    }

    /// The others are told, too. The successor's other superblock is written: the first is the only good one.
    pub(super) fn tell_of_successor(&mut self) {
        self.board.members.untold = None;
        self.health.config_seq += 1;
        self.publish_members();
    }
}

/// Carries a round on that [`Core::publish_members`] began.
#[derive(Default)]
pub(super) struct Publisher {
    /// All superblocks are written; their members are being flushed.
    flushing: bool,
}

impl Publisher {
    /// A superblock was written.
    pub(super) fn written(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        slot: Slot,
        result: Result<(), IoFault>,
    ) {
        core.give_metadata_slot(slot);
        self.flushed_member(core, dev, result);
    }

    /// A superblock was written, or its member flushed.
    pub(super) fn flushed_member(&mut self, core: &mut Core, dev: DevIndex, result: Result<(), IoFault>) {
        if let Err(fault) = result {
            // This operation still counts: the round goes on while the failure is noted.
            core.write_fault(dev, fault);
        }
        core.answers.telling -= 1;
        if core.answers.telling > 0 {
            return;
        }
        if !std::mem::replace(&mut self.flushing, true) {
            for dev in core.told() {
                core.answers.telling += 1;
                let tag = Tag { purpose: Purpose::SuperblockFlush, dev };
                core.push_op(tag, OpKind::Flush, Stream::Metadata, 0, 0, None);
            }
        }
        if core.answers.telling == 0 {
            self.end(core);
        }
    }

    fn end(&mut self, core: &mut Core) {
        self.flushing = false;
        let config_seq = core.board.members.publishing.take();
        let only = core.board.members.only.take();
        if let Some(config_seq) = config_seq.filter(|_| !core.board.frozen && only.is_none()) {
            core.board.members.superblock.config_seq = config_seq;
        }
        if std::mem::take(&mut core.answers.again) && !core.board.frozen {
            return core.publish_members();
        }
        core.answers.fence = false;
        let error = core.board.frozen.then_some(EngineError::ArrayFailed);
        if let Some(error) = error {
            // The others were not told: what would have been promised is not.
            core.answers.held.iter_mut().for_each(|done| done.result = done.result.and(Err(error)));
        }
        core.answers.done.append(&mut core.answers.held);
        core.board.flush.unfenced = true;
        if core.board.members.clean {
            for request in std::mem::take(&mut core.board.members.clean_wanted) {
                core.chunk_done(request, error);
            }
        }
    }
}

impl Activity for Publisher {
    /// A round that found no working member to write to ends here.
    fn drive(&mut self, core: &mut Core) {
        if core.board.members.waits_for_untold && !core.is_untold() {
            core.publish_members();
        }
        if core.board.members.is_publishing() && core.answers.telling == 0 {
            self.end(core);
        }
    }

    fn drive_frozen(&mut self, core: &mut Core) {
        self.drive(core);
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    fn is_busy(&self, core: &Core) -> bool {
        core.answers.fence || core.board.members.is_publishing()
    }

    fn deadline(&self, _core: &Core) -> Option<Deadline> {
        None
    }

    fn waits_for_buffers(&self, _core: &Core) -> bool {
        false
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        let answers = &core.answers;
        if answers.fence || answers.again || !answers.held.is_empty() {
            return Some("an answer that is held back");
        }
        core.board.members.is_busy().then_some("a change of the members")
    }
}

impl Marked for Publisher {
    type Mark = [u64; 2];

    fn mark(&self, core: &Core) -> Self::Mark {
        let ends = core.board.members.is_publishing() && core.answers.telling == 0;
        [core.health.config_seq, u64::from(ends || core.board.members.waits_for_untold)]
    }
}
