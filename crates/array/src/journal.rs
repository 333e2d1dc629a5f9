//! The metadata journal: records packed into frames, each frame in m + 1 copies on distinct devices.
//!
//! A copy goes to every working log device, inline in the append-only log region, and as many main devices'
//! journal rings get one as make up m + 1. A frame says which records were durable when it was made
//! (`flushed_through`); later ones are verified by checksum at recovery, so a sync needs no ordered writes
//! and a single round of flushes.

use crate::health::Health;
use crate::planted::{Planted, planted};
use crate::store::{LogRing, Store};
use block::{ChunkIndex, DevIndex, Epoch, Seq};
use format::{ArrayUuid, FrameBuilder, FrameStamp, RecordRef};
use std::collections::VecDeque;

/// Frames a ring keeps free so that work already under way can be recorded while a checkpoint makes room.
pub const RING_SET_ASIDE: u32 = 16;

/// One main device's ring of frames; positions never wrap.
#[derive(Default)]
struct Ring {
    head: u64,
    tail: u64,
    /// Position and last record of each frame since the tail.
    frames: VecDeque<(u64, Seq)>,
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

/// See the module's documentation.
pub struct Journal {
    array: ArrayUuid,
    epoch: Epoch,
    nonce: u64,
    builder: FrameBuilder,
    next_seq: Seq,
    rings: Vec<Ring>,
    ring_blocks: u32,
    rotor: usize,
    /// Position and last record of each frame in the log region since the last checkpoint.
    log_frames: VecDeque<(u64, Seq)>,
    /// Where the log chunks of each record since the last checkpoint begin; they come before the frame that
    /// describes them.
    log_chunks: VecDeque<(u64, Seq)>,
}

impl Journal {
    /// An empty journal of a new epoch; the next record is `next_seq`.
    pub fn new(array: ArrayUuid, epoch: Epoch, nonce: u64, next_seq: Seq, store: &Store) -> Self {
        Self {
            array,
            epoch,
            nonce,
            builder: FrameBuilder::new(),
            next_seq,
            rings: (0..store.main_count()).map(|_| Ring::default()).collect(),
            ring_blocks: store.config.journal_blocks,
            rotor: 0,
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

    /// Adds a record; `None` if the frame is full and must be sealed first.
    pub fn try_push(&mut self, record: RecordRef<'_>, log: &LogRing) -> Option<Seq> {
        let seq = self.next_seq;
        if !self.builder.try_push(seq, record) {
            return None;
        }
        if let Some(log_block) = record.log_block() {
            self.log_chunks.push_back((log.position_of(log_block), seq));
        }
        self.next_seq = seq.next();
        Some(seq)
    }

    /// Whether records wait in the unsealed frame.
    pub fn has_records(&self) -> bool {
        !self.builder.is_empty()
    }

    /// Chooses where the copies of the frame being built go and takes that space.
    pub fn place_copies(&mut self, store: &mut Store, health: &Health, out: &mut Vec<CopyAt>) {
        out.clear();
        let last = Seq::new(self.next_seq.get().saturating_sub(1));
        let one = planted(Planted::OneJournalCopy);
        let wanted = if one { 1 } else { store.config.geometry.parity_count() + 1 };
        if health.writable_logs().next().is_some()
            && let Some((position, block)) = store.log.append(1)
        {
            self.log_frames.push_back((position, last));
            out.extend(health.writable_logs().take(wanted - 1).map(|dev| CopyAt::Log { dev, block }));
        }
        let n = self.rings.len();
        for step in 0..n {
            if out.len() >= wanted {
                break;
            }
            let index = (self.rotor + step) % n;
            let dev = DevIndex::new(index as u16);
            let ring = &mut self.rings[index];
            if health.is_writable(dev) && ring.head - ring.tail < u64::from(self.ring_blocks) {
                let block = (ring.head % u64::from(self.ring_blocks)) as u32;
                ring.frames.push_back((ring.head, last));
                ring.head += 1;
                out.push(CopyAt::Ring { dev, block });
            }
        }
        self.rotor = (self.rotor + 1) % n;
    }

    /// Writes one copy of the frame being built.
    pub fn seal(&self, at: CopyAt, flushed_through: Seq, out: &mut [u8]) {
        let (dev, block) = match at {
            CopyAt::Ring { dev, block } => (dev, block),
            CopyAt::Log { dev, block } => (dev, block.get()),
        };
        let (array, epoch, nonce, next_seq) = (self.array, self.epoch, self.nonce, self.next_seq);
        self.builder
            .seal_into(&FrameStamp { array, epoch, nonce, flushed_through, next_seq, dev, block }, out);
    }

    /// Starts the next frame.
    pub fn clear(&mut self) {
        self.builder.clear();
    }

    /// How full the fullest ring is, in thousandths.
    pub fn fill_permille(&self) -> u64 {
        let fullest = self.rings.iter().map(|ring| ring.head - ring.tail).max().unwrap_or(0);
        fullest * 1000 / u64::from(self.ring_blocks.max(1))
    }

    /// Whether new work may still be recorded.
    pub fn has_room(&self, health: &Health) -> bool {
        let enough = |dev: &DevIndex| {
            let ring = &self.rings[dev.index()];
            ring.head - ring.tail + u64::from(RING_SET_ASIDE) < u64::from(self.ring_blocks)
        };
        health.writable_main().all(|dev| enough(&dev))
    }

    /// The first log position that replay after a checkpoint of all records up to `through` must look at.
    pub fn log_head_for(&self, through: Seq, store: &Store) -> u64 {
        let first =
            |list: &VecDeque<(u64, Seq)>| list.iter().find(|&&(_, last)| last > through).map(|&(at, _)| at);
        let needed = first(&self.log_frames).into_iter().chain(first(&self.log_chunks)).min();
        needed.unwrap_or(store.log.head())
    }

    /// The first frame at `position` or behind it that a recovery would need of a member, and its last
    /// record. Positions are those of the member's ring, or of the log region.
    pub fn frame_from(&self, store: &Store, dev: DevIndex, position: u64) -> Option<(u64, Seq)> {
        let frames = if store.is_log(dev) { &self.log_frames } else { &self.rings[dev.index()].frames };
        frames.get(frames.partition_point(|&(at, _)| at < position)).copied()
    }

    /// Behind the last frame that was given a place on a member.
    pub fn frames_end(&self, store: &Store, dev: DevIndex) -> u64 {
        if store.is_log(dev) { store.log.head() } else { self.rings[dev.index()].head }
    }

    /// The block of a journal ring at a position.
    pub fn ring_block(&self, position: u64) -> u32 {
        u32::try_from(position % u64::from(self.ring_blocks.max(1)))
            .expect("a ring has fewer blocks than 2^32")
    }

    /// A checkpoint holds all records up to `through`: their frames are not needed any more.
    pub fn trim(&mut self, through: Seq) {
        for ring in &mut self.rings {
            while ring.frames.front().is_some_and(|&(_, last)| last <= through) {
                ring.frames.pop_front();
            }
            ring.tail = ring.frames.front().map_or(ring.head, |&(position, _)| position);
        }
        for list in [&mut self.log_frames, &mut self.log_chunks] {
            while list.front().is_some_and(|&(_, last)| last <= through) {
                list.pop_front();
            }
        }
    }
}
