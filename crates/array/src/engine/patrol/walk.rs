//! The way of a round through one member: its end, its superblocks, its copy of the newest checkpoint, its
//! frames.
//!
//! Foreground work goes on meanwhile, and may make unnecessary, or overwrite, what is being read. So whatever
//! was read is judged by what is needed at that moment, not by what was when it was asked for.

use super::super::Core;
use super::super::{Purpose, Tag};
use super::{Finding, Patrol};
use crate::image::{CheckpointPlace, block_of};
use crate::planted::{Planted, planted};
use block::{DevIndex, IoFault, META_BYTES, OpKind, Seq, Slot, Stream};
use format::{
    ArrayConfig, BlockExpect, BodyCrc, CheckpointHeader, CheckpointKind, FrameExpect, INCREMENTAL_AREA,
    PAGE_AREA, PageExpect, SUPERBLOCK_OFFSETS, Superblock, decode_checkpoint_header, decode_frame,
    decode_page,
};
use std::ops::Range;

/// Where in the newest checkpoint and those that build on it.
struct Chain {
    base: u64,
    /// The checkpoint being looked at; before its header was seen, the least that it may have.
    number: u64,
    area: u8,
    /// The next block of the area, or position in the ring of incremental ones.
    block: u64,
    /// Of the present checkpoint; 0: its header comes next.
    pages_left: u32,
    body: BodyCrc,
    body_crc: u32,
    bad_page: bool,
}

impl Chain {
    fn new(place: &CheckpointPlace) -> Self {
        Self {
            base: place.base,
            number: place.base,
            area: place.area,
            block: 0,
            pages_left: 0,
            body: BodyCrc::new(),
            body_crc: 0,
            bad_page: false,
        }
    }

    /// The next block, as its header or page says.
    fn block_in(&self, config: &ArrayConfig) -> u32 {
        let blocks =
            if self.area == INCREMENTAL_AREA { config.incremental_blocks } else { config.full_blocks };
        block_of(self.block, blocks)
    }
}

/// What comes next on a member.
enum Part {
    End,
    Superblock(usize),
    /// The newest checkpoint, once the one that the round awaits has ended.
    Checkpoint,
    Chain(Box<Chain>),
    /// The page area, from block `next` on.
    Slots {
        next: u32,
    },
    /// Frames at positions `next..until`, once every frame below number `before` is written.
    Frames {
        next: u64,
        until: u64,
        before: u64,
    },
    Over,
}

/// What is being read.
#[derive(Clone, Copy)]
enum Reading {
    End,
    Superblock {
        copy: usize,
        config_seq: u64,
    },
    Header,
    Pages {
        count: u32,
    },
    /// Blocks `first..first + count` of the page area, when full checkpoint `number` was the newest.
    Slots {
        first: u32,
        count: u32,
        number: u64,
    },
    Frame {
        position: u64,
        last: Seq,
    },
}

/// Blocks of a page area that are looked at in one turn for slots that count.
const SLOTS_LOOKED_AT: u32 = 1 << 14;

/// Where slots that count are.
enum NextSlots {
    /// From this block on, so many blocks are to be read.
    At(u32, u32),
    /// None before this block.
    Behind(u32),
    None,
}

/// A member being looked at.
pub(super) struct Walker {
    dev: DevIndex,
    /// Of the device that it looks at: another one may take the place meanwhile.
    serial: u32,
    slot: Slot,
    part: Part,
    reading: Option<Reading>,
    /// Copies of the superblock that are this member's.
    own: u8,
    /// And those that are another's.
    foreign: u8,
}

impl Walker {
    pub(super) fn new(dev: DevIndex, serial: u32, slot: Slot) -> Self {
        Self { dev, serial, slot, part: Part::End, reading: None, own: 0, foreign: 0 }
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    pub(super) fn slot(&self) -> Slot {
        self.slot
    }
}

impl Core {
    /// Whether the device that a walker looks at is in service still.
    fn is_there(&self, walker: &Walker) -> bool {
        let same = self.health.members()[walker.dev.index()].serial == walker.serial;
        same && self.health.is_writable(walker.dev)
    }

    /// The last block that the member's layout needs.
    fn end_of(&self, dev: DevIndex) -> u64 {
        let config = &self.store.config;
        let bytes =
            if self.store.is_log(dev) { config.log_device_bytes() } else { config.main_device_bytes() };
        bytes - META_BYTES as u64
    }

    /// What is to be read of the newest checkpoint on a member; `None` at its end, or if the member does not
    /// hold it.
    fn next_of_chain(&self, dev: DevIndex, chain: &mut Chain) -> Option<(Reading, u64, u32)> {
        let place = &self.board.checkpoint.place;
        if !place.devices.contains(&dev) {
            return None;
        }
        if place.base != chain.base {
            *chain = Chain::new(place);
        }
        let config = &self.store.config;
        if chain.pages_left == 0 && chain.area == INCREMENTAL_AREA {
            let next = place.chain.one_behind(chain.block, config.incremental_blocks);
            chain.block = next.filter(|_| !planted(Planted::PatrolSkipsIncremental))?;
        }
        let block = chain.block_in(config);
        let offset = match chain.area {
            INCREMENTAL_AREA => config.incremental_offset(block),
            full => config.full_offset(usize::from(full), block),
        };
        if chain.pages_left == 0 {
            return Some((Reading::Header, offset, 1));
        }
        let count = chain.pages_left.min(self.store.chunk_blocks()).min(config.blocks_together(offset));
        Some((Reading::Pages { count }, offset, count))
    }

    /// Looks for the next stretch of the page area of a member in which a slot counts, from block `next` on.
    /// Log devices have none, and what is written to a member that is being rebuilt has gaps.
    fn next_slots(&self, dev: DevIndex, next: u32) -> NextSlots {
        let holds = !self.store.is_log(dev) && !self.health.is_rebuilding(dev);
        let skips = !holds || planted(Planted::PatrolSkipsSlots);
        let blocks = if skips { 0 } else { self.store.config.page_blocks };
        let until = next.saturating_add(SLOTS_LOOKED_AT).min(blocks);
        match (next..until).find(|&block| self.counts(dev, block).is_some()) {
            Some(first) => {
                let config = &self.store.config;
                let together = config.blocks_together(config.page_offset(first));
                NextSlots::At(first, (blocks - first).min(self.store.chunk_blocks()).min(together))
            }
            None if until < blocks => NextSlots::Behind(until),
            None => NextSlots::None,
        }
    }

    /// The page whose counting copy is at a block of the page area of a member.
    fn counts(&self, dev: DevIndex, block: u32) -> Option<usize> {
        let slots = self.store.table.slots();
        let (page, slot) = slots.area().page_at(dev, block);
        let state = (page < slots.page_count()).then(|| slots.state(page))?;
        (state.is_written() && state.slot() == slot).then_some(page)
    }

    /// The frames that a recovery would need now. On a member that is being rebuilt there are gaps.
    fn frames_of(&self, dev: DevIndex) -> Part {
        if self.health.is_rebuilding(dev) || planted(Planted::PatrolSkipsJournal) {
            return Part::Over;
        }
        let until = self.journal.frames_end(&self.store, dev);
        Part::Frames { next: 0, until, before: self.board.flush.frames_begun() }
    }

    /// The first frame of a member at some positions, if there is one, and where.
    fn next_frame(&self, dev: DevIndex, positions: Range<u64>) -> Option<(Reading, u64, u32)> {
        let (position, last) = self.journal.frame_from(&self.store, dev, positions.start)?;
        let at = self.journal.frame_at(&self.store, dev, position);
        (position < positions.end).then(|| (Reading::Frame { position, last }, at.offset(&self.store), 1))
    }

    fn block_of(&self, walker: &Walker, index: u32) -> &[u8] {
        &self.pool.bytes(walker.slot)[index as usize * META_BYTES..][..META_BYTES]
    }

    fn is_own(&self, dev: DevIndex, found: &Superblock) -> bool {
        let serial = self.health.members()[dev.index()].serial;
        (found.array, found.dev, found.serial) == (self.journal.array(), dev, serial)
    }

    /// Whether it is of the device that had the member's place before, which may be the same.
    fn was_own(&self, dev: DevIndex, found: &Superblock) -> bool {
        (found.array, found.dev) == (self.journal.array(), dev) && found.epoch <= self.journal.epoch()
    }

    /// The chain that a walker is at, if it is the newest still.
    fn current_chain<'a>(&self, walker: &'a mut Walker) -> Option<&'a mut Chain> {
        match &mut walker.part {
            Part::Chain(chain) if chain.base == self.board.checkpoint.place.base => Some(chain),
            Part::Chain(_)
            | Part::End
            | Part::Superblock(_)
            | Part::Checkpoint
            | Part::Slots { .. }
            | Part::Frames { .. }
            | Part::Over => None,
        }
    }
}

impl Patrol {
    /// Reads the next stretch, if the pace allows and nothing is in the way; `false` at the end of the
    /// member's way.
    pub(super) fn step(&mut self, core: &mut Core, walker: &mut Walker) -> bool {
        if !core.is_there(walker) {
            return false;
        }
        let allowed = self.round.as_ref().is_none_or(|round| core.patrol_may_read(round));
        loop {
            let (reading, offset, blocks) = match &mut walker.part {
                Part::Over => return false,
                // Whoever has nothing left to be read finds that out at the same pace.
                Part::End
                | Part::Superblock(_)
                | Part::Checkpoint
                | Part::Chain(_)
                | Part::Slots { .. }
                | Part::Frames { .. }
                    if !allowed =>
                {
                    core.board.metadata.held_up = true;
                    return true;
                }
                Part::End => (Reading::End, core.end_of(walker.dev), 1),
                Part::Superblock(_) if core.board.members.is_publishing() => return true,
                Part::Superblock(copy) => {
                    let config_seq = core.health.config_seq;
                    (Reading::Superblock { copy: *copy, config_seq }, SUPERBLOCK_OFFSETS[*copy], 1)
                }
                Part::Checkpoint => {
                    if self.awaits_checkpoint(core) {
                        return true;
                    }
                    walker.part = Part::Chain(Box::new(Chain::new(&core.board.checkpoint.place)));
                    continue;
                }
                Part::Chain(chain) => match core.next_of_chain(walker.dev, chain) {
                    Some(next) => next,
                    None => {
                        walker.part = Part::Slots { next: 0 };
                        continue;
                    }
                },
                Part::Slots { next } => match core.next_slots(walker.dev, *next) {
                    NextSlots::At(first, count) => {
                        let number = core.board.checkpoint.place.base;
                        let offset = core.store.config.page_offset(first);
                        (Reading::Slots { first, count, number }, offset, count)
                    }
                    NextSlots::Behind(further) => {
                        *next = further;
                        self.round.iter_mut().for_each(|round| round.looks += 1);
                        return true;
                    }
                    NextSlots::None => {
                        walker.part = core.frames_of(walker.dev);
                        continue;
                    }
                },
                Part::Frames { before, .. } if core.board.flush.frames_written() < *before => return true,
                Part::Frames { next, until, .. } => {
                    let Some(frame) = core.next_frame(walker.dev, *next..*until) else {
                        walker.part = Part::Over;
                        continue;
                    };
                    frame
                }
            };
            walker.reading = Some(reading);
            let tag = Tag { purpose: Purpose::Patrol, dev: walker.dev };
            let length = u64::from(blocks) * META_BYTES as u64;
            self.round.iter_mut().for_each(|round| round.read_bytes += length);
            core.push_op(tag, OpKind::Read, Stream::Metadata, offset, length, Some(walker.slot));
            return true;
        }
    }

    /// Whether the checkpoint is still being written that was when the round began.
    fn awaits_checkpoint(&self, core: &Core) -> bool {
        let awaits = self.round.as_ref().map_or(0, |round| round.awaits);
        core.board.checkpoint.awaits(awaits)
    }

    /// A walker's stretch was read.
    pub(in super::super) fn stretch_done(
        &mut self,
        core: &mut Core,
        dev: DevIndex,
        result: Result<(), IoFault>,
    ) {
        let Some(round) = &mut self.round else { return };
        let at = round.walkers.iter().position(|walker| walker.dev == dev && walker.is_reading());
        let mut walker = round.walkers.swap_remove(at.expect("a walker waits for what it reads"));
        let reading = walker.reading.take().expect("a walker waits for what it reads");
        if core.is_there(&walker) {
            self.judge(core, &mut walker, reading, result);
        }
        if let Some(round) = &mut self.round {
            round.walkers.push(walker);
        }
    }

    fn judge(&mut self, core: &mut Core, walker: &mut Walker, reading: Reading, result: Result<(), IoFault>) {
        let dev = walker.dev;
        match result {
            Err(IoFault::Gone) => {
                walker.part = Part::Over;
                return core.fail_for_fault(dev);
            }
            Err(IoFault::Device { .. } | IoFault::Short | IoFault::NoSpace) => {
                core.health.errors_mut(dev).read += 1;
            }
            Ok(()) => {}
        }
        match reading {
            Reading::End if result == Err(IoFault::Short) => {
                walker.part = Part::Over;
                self.expel(core, dev, Finding::Truncated);
            }
            Reading::End => walker.part = Part::Superblock(0),
            Reading::Superblock { copy, config_seq } => {
                self.judge_superblock(core, walker, copy, config_seq, result.is_ok());
            }
            Reading::Header => self.judge_header(core, walker, result.is_ok()),
            Reading::Pages { count } => self.judge_pages(core, walker, count, result.is_ok()),
            Reading::Slots { first, count, number } => {
                self.judge_slots(core, walker, (first, count, number), result.is_ok());
            }
            Reading::Frame { position, last } => {
                self.judge_frame(core, walker, position, last, result.is_ok())
            }
        }
    }

    /// A block of a member is bad.
    fn note_bad(&mut self, core: &mut Core, dev: DevIndex, unreadable: bool) -> Option<&mut super::Round> {
        // A read that failed is counted already.
        core.health.errors_mut(dev).checksum += u64::from(!unreadable);
        let round = self.round.as_mut()?;
        round.bad[dev.index()] += 1;
        Some(round)
    }

    fn judge_superblock(
        &mut self,
        core: &mut Core,
        walker: &mut Walker,
        copy: usize,
        config_seq: u64,
        came: bool,
    ) {
        let dev = walker.dev;
        if core.board.members.is_publishing() || core.health.config_seq != config_seq {
            return; // it was being written meanwhile: once more
        }
        let newest = config_seq % 2 == copy as u64;
        let found = Superblock::decode(core.block_of(walker, 0), copy).ok().filter(|_| came);
        let good = match found {
            Some(found) if core.is_own(dev, &found) => {
                walker.own += 1;
                // An array that failed writes no superblocks any more.
                let current = found.epoch == core.journal.epoch()
                    && (found.config_seq == config_seq || core.board.frozen);
                current || !newest
            }
            // A member that is rebuilt gets its second copy when it is whole. Until then one that came back
            // has that of before.
            Some(found) if core.was_own(dev, &found) && !newest && core.health.is_rebuilding(dev) => true,
            None if !newest && core.health.is_rebuilding(dev) => true,
            Some(_) => {
                walker.foreign += 1;
                false
            }
            None => false,
        };
        if !good && let Some(round) = self.note_bad(core, dev, !came) {
            round.superblocks = true;
        }
        walker.part = match copy {
            0 => Part::Superblock(1),
            _ if walker.foreign > 0 && walker.own == 0 => {
                self.expel(core, dev, Finding::Foreign);
                Part::Over
            }
            _ => Part::Checkpoint,
        };
    }

    fn judge_header(&mut self, core: &mut Core, walker: &mut Walker, came: bool) {
        let (dev, config) = (walker.dev, core.store.config);
        let bytes = core.pool.bytes(walker.slot)[..META_BYTES].to_vec();
        let place = core.board.checkpoint.place.clone();
        let Some(chain) = core.current_chain(walker) else { return };
        let block = chain.block_in(&config);
        let expect = BlockExpect { array: core.journal.array(), dev, area: chain.area, block };
        let fits = |header: &CheckpointHeader| {
            let area = match header.kind {
                CheckpointKind::Full => config.full_blocks,
                CheckpointKind::Incremental => config.incremental_blocks,
            };
            let end = u64::from(header.block) + 1 + u64::from(header.page_count);
            // Numbers between are those of checkpoints that were given up.
            let follows = header.number >= chain.number && place.is_base(header.base);
            follows && end <= u64::from(area)
        };
        match decode_checkpoint_header(&bytes, &expect).ok().filter(|header| came && fits(header)) {
            Some(header) => {
                (chain.number, chain.pages_left) = (header.number, header.page_count);
                chain.body_crc = header.body_crc;
                (chain.body, chain.bad_page) = (BodyCrc::new(), false);
                chain.block += 1;
                self.end_checkpoint_of(core, walker);
            }
            None => {
                // Nobody knows where the next one is; the rest of the chain goes with this one.
                walker.part = Part::Slots { next: 0 };
                self.note_bad_checkpoint(core, dev, !came);
            }
        }
    }

    fn judge_pages(&mut self, core: &mut Core, walker: &mut Walker, count: u32, came: bool) {
        let (dev, array, slot) = (walker.dev, core.journal.array(), walker.slot);
        let config = core.store.config;
        let Some(chain) = core.current_chain(walker) else { return };
        let (mut bad, first) = (0, chain.block_in(&config));
        for index in 0..count {
            let (area, block, number) = (chain.area, first + index, chain.number);
            let expect = PageExpect { array, dev, area, block, number: Some(number) };
            let bytes = &core.pool.bytes(slot)[index as usize * META_BYTES..][..META_BYTES];
            match decode_page(bytes, &expect).ok().filter(|_| came) {
                Some(page) => chain.body.push(page.crc),
                None => bad += 1,
            }
        }
        chain.bad_page |= bad > 0;
        chain.block += u64::from(count);
        chain.pages_left -= count;
        (0..bad).for_each(|_| self.note_bad_checkpoint(core, dev, !came));
        self.end_checkpoint_of(core, walker);
    }

    /// Slots that count must hold what the directory says.
    fn judge_slots(
        &mut self,
        core: &mut Core,
        walker: &mut Walker,
        (first, count, number): (u32, u32, u64),
        came: bool,
    ) {
        let (dev, array) = (walker.dev, core.journal.array());
        let place = &core.board.checkpoint.place;
        if place.base != number || core.health.is_rebuilding(dev) {
            return; // other slots count since, which were being written meanwhile: once more
        }
        walker.part = Part::Slots { next: first + count };
        for block in first..first + count {
            let Some(page) = core.counts(dev, block) else { continue };
            let expect = PageExpect { array, dev, area: PAGE_AREA, block, number: None };
            let slots = core.store.table.slots();
            let found = decode_page(core.block_of(walker, block - first), &expect);
            let good = found.is_ok_and(|found| slots.is_page(page, &found));
            if !good || !came {
                self.note_bad_checkpoint(core, dev, !came);
            }
        }
    }

    fn note_bad_checkpoint(&mut self, core: &mut Core, dev: DevIndex, unreadable: bool) {
        if let Some(round) = self.note_bad(core, dev, unreadable) {
            round.checkpoint = true;
        }
    }

    /// With the last page of a checkpoint: its checksum, and on to the next one.
    fn end_checkpoint_of(&mut self, core: &mut Core, walker: &mut Walker) {
        let dev = walker.dev;
        let start = core.board.checkpoint.place.chain.start;
        let Some(chain) = core.current_chain(walker).filter(|chain| chain.pages_left == 0) else { return };
        let bad = !chain.bad_page && chain.body.finish() != chain.body_crc;
        if chain.area != INCREMENTAL_AREA {
            (chain.area, chain.block) = (INCREMENTAL_AREA, start);
        }
        chain.number += 1;
        if bad {
            self.note_bad_checkpoint(core, dev, false);
        }
    }

    fn judge_frame(&mut self, core: &mut Core, walker: &mut Walker, position: u64, last: Seq, came: bool) {
        let dev = walker.dev;
        if let Part::Frames { next, .. } = &mut walker.part {
            *next = position + 1;
        }
        // A checkpoint may have made it unnecessary, and then something else may be there.
        if core.journal.frame_from(&core.store, dev, position).is_none_or(|(at, _)| at != position) {
            return;
        }
        let block = core.journal.frame_at(&core.store, dev, position).block();
        let (array, epoch, nonce) = (core.journal.array(), core.journal.epoch(), core.journal.nonce());
        let expect = FrameExpect { array, epoch, nonce, dev, block };
        let frame = decode_frame(core.block_of(walker, 0), &expect).ok().filter(|_| came);
        let good = frame
            .is_some_and(|frame| frame.first_seq.get() + frame.records.len() as u64 == last.next().get());
        if !good {
            self.note_bad_checkpoint(core, dev, !came);
        }
    }
}
