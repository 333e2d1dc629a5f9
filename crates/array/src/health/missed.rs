//! Members that are away, and that come back: see `away`.

use super::Health;
use crate::away::{Away, ChunkMarks, NotBack, PagesHeld};
use crate::older::Contradiction;
use crate::planted::{Planted, planted};
use block::{ChunkAddr, DevIndex};
use format::{ArrayConfig, ItemRef, List, MemberEntry, MemberState, MissedPoint, Superblock};

impl Health {
    /// Whether it is known of any member what it has missed: asked for every record.
    #[inline]
    pub fn is_any_away(&self) -> bool {
        self.missing > 0 && self.members.iter().any(|member| member.away.is_some())
    }

    /// What is known of a member's absence, or of what it missed before it came back.
    pub fn away(&self, dev: DevIndex) -> Option<&Away> {
        self.members[dev.index()].away.as_ref()
    }

    /// A main device has just gone out of service. What it lacked before, if it was being rebuilt, it lacks
    /// still; `unsure` marks what may not have reached it.
    pub fn note_left(
        &mut self,
        dev: DevIndex,
        (left, before): (Option<MissedPoint>, Option<Away>),
        config: &ArrayConfig,
        unsure: impl FnOnce(&mut ChunkMarks),
    ) {
        if dev.index() >= self.main_count || left.is_none() {
            return;
        }
        let was_whole = before.is_none();
        let mut away = before.unwrap_or_else(|| Away::new(left, config.chunks_per_device));
        away.left = left.map(|left| MissedPoint { was_whole, ..left });
        if !planted(Planted::LeaveTooLate) {
            unsure(&mut away.missed);
        }
        self.members[dev.index()].away = Some(away);
    }

    /// What is known of a member's absence, which is to be forgotten or to become something else.
    pub fn take_away(&mut self, dev: DevIndex) -> Option<Away> {
        self.members[dev.index()].away.take()
    }

    /// A chunk was written, or should have been: a member that is out of service does not have it.
    #[inline]
    pub fn miss(&mut self, addr: ChunkAddr) {
        let member = &mut self.members[addr.dev.index()];
        let is_out = matches!(member.state, MemberState::Failed | MemberState::Absent);
        if let Some(away) = member.away.as_mut().filter(|_| is_out) {
            away.missed.mark(addr.chunk);
        }
    }

    /// The same during replay: one that is being rebuilt may not have it either. What is known `durable` is
    /// so on all members that were in service.
    pub fn miss_in_replay(&mut self, addr: ChunkAddr, durable: bool) {
        if let Some(away) = &mut self.members[addr.dev.index()].away
            && !(durable && away.has_durable)
            && !planted(Planted::ReplayMissesNothing)
        {
            away.missed.mark(addr.chunk);
        }
    }

    /// Nothing is known any more of what members have missed.
    pub fn forget_away(&mut self) {
        self.members.iter_mut().for_each(|member| member.away = None);
    }

    /// Appends what a checkpoint says of members that are away, in at most so many words.
    pub fn save_away(&self, words_max: usize, words: &mut Vec<u32>) {
        let end = words.len() + words_max;
        let members = (0u16..).map(DevIndex::new).zip(&self.members);
        let mut left = members.clone().filter(|(_, member)| member.away.is_some()).count();
        for (dev, member) in members {
            let Some(away) = &member.away else { continue };
            away.save((dev, member.serial), (end - words.len()) / left, words);
            left -= 1;
        }
    }

    /// Takes what a checkpoint says of members that are away. Those out of service of which it says nothing,
    /// or that were being rebuilt, have left after it, at `point`. `before` is how the members were when the
    /// array was last in service, and `checkpoint` the number of what was loaded.
    pub fn load_away(
        &mut self,
        list: List<'_>,
        (point, before): (Option<MissedPoint>, &[MemberEntry]),
        (config, checkpoint): (&ArrayConfig, u64),
    ) -> Result<(), Contradiction> {
        let chunks = config.chunks_per_device;
        for member in self.members.iter_mut().take(self.main_count) {
            let is_out = matches!(member.state, MemberState::Failed | MemberState::Absent);
            member.away = point.filter(|_| is_out).map(|point| Away::new(Some(point), chunks));
        }
        for item in list.items_of_members() {
            let ItemRef::Missed { dev, serial, left, ranges } = item else { continue };
            let member = self.members[..self.main_count].get_mut(dev.index());
            let member = member.ok_or(Contradiction::Other("the member that missed something"))?;
            let left = match member.state {
                _ if member.serial != serial => continue,
                // It was out of service at the checkpoint, and nobody knows how it got in again.
                MemberState::Rebuilding if left.is_some() && !planted(Planted::UpdateUsedAgain) => continue,
                MemberState::Healthy => continue,
                // It was being rebuilt at the checkpoint, and may have been whole when it left.
                MemberState::Failed | MemberState::Absent => {
                    left.or(point.map(|point| MissedPoint { was_whole: false, ..point }))
                }
                MemberState::Rebuilding => None,
            };
            let is_out = member.state != MemberState::Rebuilding;
            let away = Away::load(left, chunks, ranges.iter());
            member.away = Some(away).filter(|away| !is_out || away.left.is_some());
        }
        for (member, before) in self.members.iter_mut().zip(before) {
            let was_out = matches!(before.state, MemberState::Failed | MemberState::Absent);
            if let Some(away) = &mut member.away {
                away.pages = PagesHeld::AsItSays { at_most: checkpoint };
                away.has_durable = !was_out || planted(Planted::AwayHasDurable);
            }
        }
        Ok(())
    }

    /// Whether the device with this superblock is a member that left, and what it missed is known.
    pub fn check_back(&self, dev: DevIndex, superblock: &Superblock) -> Result<(), NotBack> {
        let member = self.members.get(dev.index()).ok_or(NotBack::Other)?;
        if superblock.serial != member.serial {
            return Err(NotBack::Serial { found: superblock.serial, expected: member.serial });
        }
        member.away.as_ref().ok_or(NotBack::NotRecorded)?.check(superblock)
    }

    /// A member that was whole until now has its copies of all pages up to checkpoint `number`.
    pub fn note_pages_of(&mut self, dev: DevIndex, number: u64) {
        if let Some(away) = &mut self.members[dev.index()].away
            && away.left.is_some_and(|left| left.was_whole)
        {
            away.pages = PagesHeld::Through(number);
        }
    }

    /// The checkpoint up to which a member has its copies of all pages, if that is known.
    pub fn pages_through(&self, dev: DevIndex) -> Option<u64> {
        match self.away(dev)?.pages {
            PagesHeld::Through(number) => Some(number),
            PagesHeld::AsItSays { .. } | PagesHeld::Unknown => None,
        }
    }

    /// A member that left is back under a new serial number, and has all but what it missed. Its superblock
    /// speaks of checkpoint `durable`.
    pub fn take_back(&mut self, dev: DevIndex, (serial, durable): (u32, u64), config: &ArrayConfig) {
        let Some(mut away) = self.take_away(dev) else { return };
        let was_whole = away.left.take().is_some_and(|left| left.was_whole);
        if let PagesHeld::AsItSays { at_most } = away.pages {
            let says = was_whole && durable > 0;
            away.pages = if says { PagesHeld::Through(durable.min(at_most)) } else { PagesHeld::Unknown };
        }
        self.start_rebuild(dev, config);
        let member = &mut self.members[dev.index()];
        member.away = Some(away);
        self.renew(dev, serial);
        self.trust(dev);
    }

    /// What members being rebuilt did not miss they have.
    pub fn trust_what_stayed(&mut self) {
        for index in 0..self.main_count {
            if self.members[index].state == MemberState::Rebuilding {
                self.trust(DevIndex::new(index as u16));
            }
        }
    }

    fn trust(&mut self, dev: DevIndex) {
        let member = &mut self.members[dev.index()];
        let Some(Away { missed, .. }) = &member.away else { return };
        member.fresh.fill(u64::MAX);
        if !planted(Planted::TrustReturned) {
            missed.each(|chunk| {
                if let Some(bits) = member.fresh.get_mut(chunk as usize / 64) {
                    *bits &= !(1 << (chunk % 64));
                }
            });
        }
    }

    /// A member that has come back does not have a chunk after all: its write was planned without it.
    pub fn distrust(&mut self, addr: ChunkAddr) {
        let member = &mut self.members[addr.dev.index()];
        if let (MemberState::Rebuilding, Some(away)) = (member.state, &mut member.away) {
            away.missed.mark(addr.chunk);
            if let Some(bits) = member.fresh.get_mut(addr.chunk.get() as usize / 64) {
                *bits &= !(1 << (addr.chunk.get() % 64));
            }
        }
    }
}
