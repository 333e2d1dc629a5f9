//! The metadata journal: records packed into frames, each frame in m + 1 copies on distinct devices.
//!
//! A copy goes to every working log device that holds log chunks, inline in the append-only log region. What
//! is missing of m + 1 goes to rings of blocks: first to those of the other log devices, if there are more
//! than m, then to those of main devices, to one that must be flushed anyway if there is any. A frame says
//! which records were durable when it was made (`flushed_through`); later ones are verified by checksum at
//! recovery, so a sync needs no ordered writes and a single round of flushes.
//!
//! A frame grows: until it is full, each flush writes it anew with the records that came since, to other
//! blocks. When the flush after that has ended too, the copies in rings that hold less are given up. So a
//! ring holds as many records as its blocks have room for, however few a flush makes durable, and checkpoints
//! are as rare.

mod ring;

use crate::health::Health;
use crate::planted::{Planted, planted};
use crate::store::{LogRing, Store};
use block::{ChunkIndex, DevIndex, Epoch, Seq};
use format::{ArrayUuid, Bond, FrameBuilder, FrameStamp, RecordRef};
use ring::Ring;
use std::collections::VecDeque;

/// Frames a ring keeps free so that work already under way can be recorded while a checkpoint makes room.
pub const RING_SET_ASIDE: usize = 16;

/// A checkpoint is due when a ring is this full, in thousandths.
const RING_DUE_PERMILLE: usize = 500;

/// Copies by which the ring of a device that is to be flushed anyway may be ahead of the emptiest.
const RING_LEAD_MAX: usize = 4;

/// Whose rings are looked at for a copy, in this order.
#[derive(Clone, Copy)]
enum RingChoice {
    FrameLog,
    ToFlush,
    Other,
}

/// Where one copy of a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyAt {
    /// A block of a main device's journal ring.
    Ring {
        /// The main device.
        dev: DevIndex,
        /// Block of its ring, from 0.
        block: u32,
    },
    /// A block of the log region.
    Log {
        /// The log device.
        dev: DevIndex,
        /// Block of the region, from 1.
        block: ChunkIndex,
    },
}

impl CopyAt {
    /// A block of a member's ring, the first being 0.
    pub fn in_ring(store: &Store, dev: DevIndex, block: u32) -> Self {
        match store.is_log(dev) {
            false => Self::Ring { dev, block },
            true => Self::Log { dev, block: ChunkIndex::new(block + 1) },
        }
    }

    /// The device.
    pub fn dev(self) -> DevIndex {
        match self {
            Self::Ring { dev, .. } | Self::Log { dev, .. } => dev,
        }
    }

    /// The number of the block, as the frame repeats it.
    pub fn block(self) -> u32 {
        match self {
            Self::Ring { block, .. } => block,
            Self::Log { block, .. } => block.get(),
        }
    }

    /// Its place on the device, in bytes.
    pub fn offset(self, store: &Store) -> u64 {
        match self {
            Self::Ring { block, .. } => store.config.journal_offset(block),
            Self::Log { block, .. } => store.config.log_offset(block),
        }
    }
}

/// A copy in a ring: which ring, and the position.
type RingCopy = (usize, u64);

/// What is known of earlier writes of the frame being built.
#[derive(Default)]
struct Growth {
    /// Records of it that are in the newest copies.
    written: usize,
    /// Room in the frame when they were written.
    room: usize,
    /// How many copies those are.
    copies: usize,
    /// Copies in rings that hold all that is written, or less without more copies to replace them.
    newest: Vec<RingCopy>,
    /// Copies in rings that hold less than frame number such and such.
    outgrown: VecDeque<(u64, RingCopy)>,
    /// Frames below this number were durable before the last flush began.
    settled: u64,
}

/// How full the rings are: asked several times in every turn, and changed with a frame at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fill {
    /// Some ring is so full that a checkpoint is due.
    is_due: bool,
    /// Every ring has room for what is under way, and for more.
    is_roomy: bool,
}

impl Fill {
    fn of(rings: &[Ring]) -> Self {
        Self {
            is_due: rings.iter().any(|ring| ring.used() * 1000 >= RING_DUE_PERMILLE * ring.len().max(1)),
            is_roomy: rings.iter().all(has_room),
        }
    }
}

fn has_room(ring: &Ring) -> bool {
    ring.used() + RING_SET_ASIDE < ring.len()
}

/// See the module's documentation.
pub struct Journal {
    array: ArrayUuid,
    epoch: Epoch,
    nonce: u64,
    builder: FrameBuilder,
    next_seq: Seq,
    /// Those of the main devices, then those of the log devices without log chunks.
    rings: Vec<Ring>,
    fill: Fill,
    rotor: usize,
    growth: Growth,
    /// Position and last record of each frame in the log region since the last checkpoint.
    log_frames: VecDeque<(u64, Seq)>,
    /// Where the log chunks of each record since the last checkpoint begin; they come before the frame that
    /// describes them.
    log_chunks: VecDeque<(u64, Seq)>,
}

impl Journal {
    /// An empty journal of a new epoch; the next record is `next_seq`.
    pub fn new(array: ArrayUuid, epoch: Epoch, nonce: u64, next_seq: Seq, store: &Store) -> Self {
        let builder = FrameBuilder::new();
        let members = store.config.ring_members();
        let rings: Vec<Ring> = members.map(|dev| Ring::new(store.config.ring_blocks(dev))).collect();
        Self {
            array,
            epoch,
            nonce,
            next_seq,
            fill: Fill::of(&rings),
            rings,
            rotor: 0,
            growth: Growth { room: builder.room(), ..Growth::default() },
            builder,
            log_frames: VecDeque::new(),
            log_chunks: VecDeque::new(),
        }
    }

    /// This assembly's epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// This assembly's nonce: user data cannot mimic a frame without it.
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// The array.
    pub fn array(&self) -> ArrayUuid {
        self.array
    }

    /// The number the next record gets.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Adds a record; `None` if the frame is full and what it holds must be written first.
    pub fn try_push(&mut self, record: RecordRef<'_>, bond: Bond, log: &LogRing) -> Option<Seq> {
        let seq = self.next_seq;
        if !self.builder.try_push(seq, record, bond) {
            if self.has_records() {
                return None;
            }
            self.begin_frame();
            if !self.builder.try_push(seq, record, bond) {
                return None;
            }
        }
        if let Some(log_block) = record.log_block() {
            self.log_chunks.push_back((log.position_of(log_block), seq));
        }
        self.next_seq = seq.next();
        Some(seq)
    }

    /// Whether the frame being built has records that were not written yet.
    pub fn has_records(&self) -> bool {
        self.builder.record_count() > self.growth.written
    }

    /// Chooses where the copies of frame number `frame`, the one being built, go and takes that space. Main
    /// devices for which `to_flush` holds are to be flushed anyway.
    pub fn place_copies(
        &mut self,
        frame: u64,
        store: &mut Store,
        health: &Health,
        to_flush: &dyn Fn(DevIndex) -> bool,
        out: &mut Vec<CopyAt>,
    ) {
        out.clear();
        let last = Seq::new(self.next_seq.get().saturating_sub(1));
        let m = store.config.geometry.parity_count();
        let for_free = planted(Planted::FrameLogForFree) && store.config.frame_logs() > 0;
        let (in_logs, wanted) = match planted(Planted::OneJournalCopy) {
            true => (0, 1),
            false => (m, m + usize::from(!for_free)),
        };
        let has_chunks = |dev: &DevIndex| store.config.has_log_chunks(*dev);
        if health.writable_logs().any(|dev| has_chunks(&dev))
            && let Some((position, block)) = store.log.append(1)
        {
            self.log_frames.push_back((position, last));
            let logs = health.writable_logs().filter(has_chunks).take(in_logs);
            out.extend(logs.map(|dev| CopyAt::Log { dev, block }));
        }
        let in_place = planted(Planted::FrameOverItself);
        if in_place {
            self.growth.newest.drain(..).for_each(|(ring, position)| self.rings[ring].give_back(position));
        }
        let before = self.growth.newest.len();
        self.place_in_rings(wanted, last, store, health, to_flush, out);
        self.fill = Fill::of(&self.rings);
        self.rotor = (self.rotor + usize::from(!in_place)) % self.rings.len();
        if out.len() >= self.growth.copies {
            self.growth.copies = out.len();
            let Growth { newest, outgrown, .. } = &mut self.growth;
            outgrown.extend(newest.drain(..before).map(|copy| (frame, copy)));
        }
    }

    /// Takes blocks of rings until there are `wanted` copies: of log devices that hold frames alone, then of
    /// main devices that are to be flushed anyway and are hardly fuller than others, then of any.
    fn place_in_rings(
        &mut self,
        wanted: usize,
        last: Seq,
        store: &Store,
        health: &Health,
        to_flush: &dyn Fn(DevIndex) -> bool,
        out: &mut Vec<CopyAt>,
    ) {
        let (n, mains) = (self.rings.len(), store.main_count());
        let least = health.writable_main().map(|dev| self.rings[dev.index()].used()).min().unwrap_or(0);
        for choice in [RingChoice::FrameLog, RingChoice::ToFlush, RingChoice::Other] {
            for index in (0..n).map(|step| (self.rotor + step) % n) {
                if out.len() >= wanted {
                    return;
                }
                let (dev, ring) = (store.config.ring_member(index), &mut self.rings[index]);
                let near = index < mains && ring.used() <= least + RING_LEAD_MAX && to_flush(dev);
                let is_choice = match choice {
                    RingChoice::FrameLog => index >= mains,
                    RingChoice::ToFlush => near && !planted(Planted::FrameOverItself),
                    RingChoice::Other => index < mains,
                };
                if is_choice
                    && health.is_writable(dev)
                    && out.iter().all(|copy| copy.dev() != dev)
                    && let Some(position) = ring.take(last)
                {
                    out.push(CopyAt::in_ring(store, dev, ring.block(position)));
                    self.growth.newest.push((index, position));
                }
            }
        }
    }

    /// Writes one copy of the frame being built.
    pub fn seal(&self, at: CopyAt, flushed_through: Seq, out: &mut [u8]) {
        let (dev, block) = (at.dev(), at.block());
        let (array, epoch, nonce, next_seq) = (self.array, self.epoch, self.nonce, self.next_seq);
        self.builder
            .seal_into(&FrameStamp { array, epoch, nonce, flushed_through, next_seq, dev, block }, out);
    }

    /// All copies of the frame are on their way. If as many records as came since the last time would not fit
    /// any more, the next frame begins.
    pub fn sealed(&mut self) {
        let room = self.builder.room();
        let grown = self.growth.room.saturating_sub(room);
        (self.growth.written, self.growth.room) = (self.builder.record_count(), room);
        if room < grown {
            self.begin_frame();
        }
    }

    fn begin_frame(&mut self) {
        self.builder.clear();
        let Growth { written, room, copies, newest, .. } = &mut self.growth;
        (*written, *room, *copies) = (0, self.builder.room(), 0);
        newest.clear();
    }

    /// A flush has ended that made all frames below number `frames` durable. What frames hold that were
    /// durable before it began needs no copies that hold less: should all copies of the last frame be
    /// damaged, the one before is still there.
    pub fn settle(&mut self, frames: u64) {
        let settled = std::mem::replace(&mut self.growth.settled, frames);
        while let Some(&(frame, (ring, position))) = self.growth.outgrown.front()
            && frame < settled
        {
            self.growth.outgrown.pop_front();
            self.rings[ring].give_up(position);
        }
        self.fill = Fill::of(&self.rings);
    }

    /// Whether some ring is so full that a checkpoint is due.
    pub fn is_due(&self) -> bool {
        self.fill.is_due
    }

    /// Whether new work may still be recorded.
    pub fn has_room(&self, health: &Health) -> bool {
        // Rings of log devices, and of members out of service, need none.
        self.fill.is_roomy || health.writable_main().all(|dev| has_room(&self.rings[dev.index()]))
    }

    /// The first log position that replay after a checkpoint of all records up to `through` must look at.
    pub fn log_head_for(&self, through: Seq, store: &Store) -> u64 {
        let first =
            |list: &VecDeque<(u64, Seq)>| list.iter().find(|&&(_, last)| last > through).map(|&(at, _)| at);
        let needed = first(&self.log_frames).into_iter().chain(first(&self.log_chunks)).min();
        needed.unwrap_or(store.log.head())
    }

    fn ring(&self, store: &Store, dev: DevIndex) -> Option<&Ring> {
        store.config.ring_index(dev).map(|index| &self.rings[index])
    }

    /// The first frame at `position` or behind it that a recovery would need of a member, and its last
    /// record. Positions are those of the member's ring, or of the log region.
    pub fn frame_from(&self, store: &Store, dev: DevIndex, position: u64) -> Option<(u64, Seq)> {
        match self.ring(store, dev) {
            Some(ring) => ring.frame_from(position),
            None => {
                let frames = &self.log_frames;
                frames.get(frames.partition_point(|&(at, _)| at < position)).copied()
            }
        }
    }

    /// Behind the last frame that was given a place on a member.
    pub fn frames_end(&self, store: &Store, dev: DevIndex) -> u64 {
        self.ring(store, dev).map_or(store.log.head(), Ring::head)
    }

    /// Where the frame at a position of a member is.
    pub fn frame_at(&self, store: &Store, dev: DevIndex, position: u64) -> CopyAt {
        match self.ring(store, dev) {
            Some(ring) => CopyAt::in_ring(store, dev, ring.block(position)),
            None => CopyAt::Log { dev, block: store.log.block_at(position) },
        }
    }

    /// A checkpoint holds all records up to `through`: their frames are not needed any more.
    pub fn trim(&mut self, through: Seq) {
        self.rings.iter_mut().for_each(|ring| ring.trim(through));
        self.fill = Fill::of(&self.rings);
        for list in [&mut self.log_frames, &mut self.log_chunks] {
            while list.front().is_some_and(|&(_, last)| last <= through) {
                list.pop_front();
            }
        }
    }
}
