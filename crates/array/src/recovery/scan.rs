//! Finding the journal's frames behind a checkpoint; nothing is written.
//!
//! An assembly begins each ring with its first block, and what it needs of a member that was flushed is there
//! without a gap. So a ring is read from its beginning, and no further than there are frames of the assembly
//! that wrote the checkpoint (docs/decisions/0063-rings-are-read-as-far-as-written.md). After an orderly
//! stop nothing is behind the checkpoint; then the first blocks tell whether a later assembly has been there.

use super::load::Loaded;
use super::secure::Copies;
use crate::health::Health;
use crate::planted::{Planted, planted};
use crate::restart::is_present;
use crate::serial::may_have_come_since;
use block::{ChunkIndex, DevIndex, DeviceSet, Epoch, META_BYTES, Pool, ReadNow, Seq};
use format::{
    ArrayConfig, ArrayUuid, FRAME_RECORD_BYTES, FormatError, Frame, FrameExpect, Superblock, decode_frame,
};
use std::collections::BTreeMap;

/// Blocks of a stretch, which is read in one transfer.
const STRETCH_BLOCKS: u32 = 64;
/// Stretches of rings that are read at once, 64 MiB.
const RING_STRETCHES: usize = 256;
/// A small ring has so many stretches.
const STRETCHES_PER_RING: u32 = 8;
/// What stands for a block that cannot be read: no frame, and no block that was never written.
const UNREADABLE: u8 = 0xff;
/// Blocks of each log device that are read at once.
const LOG_BLOCKS: u32 = 2048;
/// Log stripes that one frame describes at most, so the log chunks between two frames.
const FRAME_STRIPES_MAX: u32 = 512;
const _: () = assert!(FRAME_RECORD_BYTES / 8 <= 512, "the shortest form of one has 8 bytes");

/// What the journal holds behind a checkpoint.
pub(super) struct Found {
    /// The frames with records, by the number of their first one.
    pub frames: BTreeMap<Seq, Frame>,
    /// Where their copies are.
    pub copies: Copies,
    /// The last record that a frame or the checkpoint says is durable.
    pub flushed: Seq,
    /// The last record that any frame has or speaks of.
    pub last_seq: Seq,
    /// The newest assembly that left a frame in the ring of a main device. Those hold nothing that users
    /// write, so no frame there is made up; in the log region only the nonce tells.
    pub newest_epoch: Epoch,
}

impl Found {
    /// The last record that can be had, with all before it.
    pub fn end(&self, through: Seq) -> Seq {
        let mut end = through;
        for frame in self.frames.values() {
            if frame.first_seq > end.next() {
                break;
            }
            end = end.max(last_of(frame));
        }
        end
    }
}

/// The number of a frame's last record; without records, that of the last one before it.
fn last_of(frame: &Frame) -> Seq {
    Seq::new((frame.first_seq.get() + frame.records.len() as u64).saturating_sub(1))
}

/// Looks through the rings of frames and the log regions, as far as anything can be there; does `work` beside
/// that.
pub(super) fn scan(
    devices: &mut dyn DeviceSet,
    health: &Health,
    newest: &Superblock,
    loaded: &Loaded,
    work: &mut dyn FnMut(),
) -> Found {
    let mut found = Found {
        frames: BTreeMap::new(),
        copies: Copies::default(),
        flushed: loaded.through,
        last_seq: loaded.through,
        newest_epoch: loaded.epoch,
    };
    let (config, array) = (newest.config, newest.array);
    let is_there = |dev: &DevIndex| is_present(health, *dev);
    let count = health.members().len();
    let holds_all = holds_all(newest, loaded);
    let is_whole = |dev: DevIndex| {
        let serial = health.members()[dev.index()].serial;
        !holds_all && may_have_come_since(serial, loaded.epoch, count)
    };
    let mut scanner = Scanner { devices, config, array, loaded, room: None };
    let mut rings: Vec<RingEnd> =
        config.ring_members().filter(is_there).map(|dev| RingEnd::new(&config, dev, is_whole(dev))).collect();
    scanner.scan_rings(&mut rings, holds_all, &mut found, work);
    if holds_all {
        return found;
    }
    let chunks = scanner.known_chunks(&found.frames);
    let mut keep = keep_in(&mut found, loaded);
    let members = (0u16..).map(DevIndex::new).take(count);
    let has_log = |dev: &DevIndex| config.has_log_chunks(*dev) && is_there(dev);
    let mut logs: Vec<LogEnd> = members.filter(has_log).map(LogEnd::new).collect();
    loop {
        let mut stretches = Vec::new();
        logs.iter_mut().for_each(|log| scanner.next_of_log(log, &chunks, &mut stretches));
        if stretches.is_empty() {
            break;
        }
        scanner.read(&stretches, None);
        scanner.keep_logs(&stretches, &mut logs, &mut keep);
    }
    drop(keep);
    found
}

/// Whether the checkpoint holds every record there ever was: it is the one that an orderly stop ended with.
fn holds_all(newest: &Superblock, loaded: &Loaded) -> bool {
    let is_last =
        loaded.place.number >= newest.checkpoints.durable && loaded.through >= newest.durable_through;
    newest.clean && loaded.is_of(newest) && is_last
}

/// Notes what a frame says.
fn keep_in<'a>(found: &'a mut Found, loaded: &'a Loaded) -> impl FnMut(Frame) + 'a {
    |frame: Frame| {
        found.copies.note(&frame, loaded.through);
        found.flushed = found.flushed.max(frame.flushed_through);
        found.last_seq = found.last_seq.max(last_of(&frame));
        // A frame without records only says what is durable; the next one begins with the same number. One
        // that has grown holds all that shorter ones with its first record do.
        if !frame.records.is_empty() {
            let longest = found.frames.entry(frame.first_seq);
            let longest = longest.or_insert_with(|| frame.clone());
            if longest.records.len() < frame.records.len() && !planted(Planted::ShortestFrame) {
                *longest = frame;
            }
        }
    }
}

/// Neighbouring blocks of a member.
#[derive(Clone, Copy)]
struct Stretch {
    dev: DevIndex,
    /// The number of the first block, as a frame there repeats it.
    first: u32,
    /// Its place on the device, in bytes.
    offset: u64,
    /// At most [`STRETCH_BLOCKS`].
    count: u32,
}

impl Stretch {
    fn bytes(&self) -> usize {
        usize::try_from(self.count).expect("a stretch is short") * META_BYTES
    }
}

/// What one log device is known to hold.
struct LogEnd {
    dev: DevIndex,
    /// Blocks looked at, from the checkpoint's head on.
    ahead: u32,
    /// The last of them that holds a frame behind the checkpoint, or a log chunk that such a frame names.
    last_known: u32,
}

impl LogEnd {
    fn new(dev: DevIndex) -> Self {
        Self { dev, ahead: 0, last_known: 0 }
    }
}

/// How far a ring was looked through.
struct RingEnd {
    dev: DevIndex,
    blocks: u32,
    /// Blocks of a stretch.
    step: u32,
    /// The next block.
    next: u32,
    /// Stretches that are read next.
    batch: usize,
    /// All of it is read, whatever is found: the device came to its place while the assembly ran, and its
    /// frames begin anywhere.
    is_whole: bool,
    /// Nothing more is there.
    is_over: bool,
}

impl RingEnd {
    fn new(config: &ArrayConfig, dev: DevIndex, is_whole: bool) -> Self {
        let blocks = config.ring_blocks(dev);
        let step = (blocks / STRETCHES_PER_RING).clamp(1, STRETCH_BLOCKS);
        let is_whole = is_whole && !planted(Planted::RingsBeginAtTheirFirstBlock);
        let batch = if is_whole { RING_STRETCHES } else { 1 };
        Self { dev, blocks, step, next: 0, batch, is_whole, is_over: blocks == 0 }
    }

    /// The stretches that are looked at next, at most so many.
    fn take(&mut self, config: &ArrayConfig, room: usize, out: &mut Vec<Stretch>) {
        for _ in 0..self.batch.min(room) {
            if self.next >= self.blocks {
                break;
            }
            let (block, dev) = (self.next, self.dev);
            let (first, offset) = match is_log(config, dev) {
                false => (block, config.journal_offset(block)),
                true => (block + 1, config.log_offset(ChunkIndex::new(block + 1))),
            };
            let count = self.step.min(self.blocks - block);
            out.push(Stretch { dev, first, offset, count });
            self.next += count;
        }
        self.batch = (self.batch * 2).min(RING_STRETCHES);
    }

    /// What the next of its stretches held.
    fn note(&mut self, held: Held) {
        self.is_over |= held == Held::Nothing && !self.is_whole;
    }
}

/// What a stretch of a ring holds, of the assembly that is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Frames.
    Frames,
    /// Blocks that were never written, or that an assembly before has written: nothing follows.
    Nothing,
    /// Damage, or what somebody else has written.
    Unknown,
}

fn is_log(config: &ArrayConfig, dev: DevIndex) -> bool {
    dev.index() >= config.geometry.device_count()
}

struct Scanner<'a> {
    devices: &'a mut dyn DeviceSet,
    config: ArrayConfig,
    array: ArrayUuid,
    loaded: &'a Loaded,
    /// What was read last, [`STRETCH_BYTES`] for each stretch.
    room: Option<Pool>,
}

impl Scanner<'_> {
    fn frame(&self, bytes: &[u8], dev: DevIndex, block: u32) -> Result<Frame, FormatError> {
        let (array, epoch, nonce) = (self.array, self.loaded.epoch, self.loaded.nonce);
        decode_frame(bytes, &FrameExpect { array, epoch, nonce, dev, block })
    }

    /// Reads stretches side by side, one behind the other in `room`, and does `work` beside that.
    fn read(&mut self, stretches: &[Stretch], work: Option<&mut dyn FnMut()>) {
        let blocks = stretches.iter().map(|stretch| stretch.bytes()).sum::<usize>() / META_BYTES;
        let room = match self.room.take().filter(|room| room.slot_count() >= blocks) {
            Some(room) => self.room.insert(room),
            None => self.room.insert(Pool::new(META_BYTES, blocks)),
        };
        let mut rest = room.region_mut();
        let mut reads = Vec::with_capacity(stretches.len());
        for (tag, stretch) in stretches.iter().enumerate() {
            let (into, later) = rest.split_at_mut(stretch.bytes());
            let Stretch { dev, offset, .. } = *stretch;
            reads.push(ReadNow { tag, dev, offset_bytes: offset, into, result: Ok(()) });
            rest = later;
        }
        match work {
            Some(work) => self.devices.read_all_beside(&mut reads, work),
            None => self.devices.read_all_now(&mut reads),
        }
        // One bad block hides only itself.
        for read in reads.iter_mut().filter(|read| read.result.is_err()) {
            read_singly(self.devices, read.dev, read.offset_bytes, read.into);
        }
    }

    /// Stretches with the blocks that were read of them.
    fn read_of<'a>(&'a self, stretches: &'a [Stretch]) -> impl Iterator<Item = (&'a Stretch, &'a [u8])> {
        let mut rest = self.room.as_ref().map_or(&[][..], Pool::region);
        stretches.iter().map(move |stretch| {
            let (bytes, later) = rest.split_at(stretch.bytes());
            rest = later;
            (stretch, bytes)
        })
    }

    /// Looks through rings, as far as there are frames; or only at their beginnings.
    fn scan_rings(
        &mut self,
        rings: &mut [RingEnd],
        only_beginnings: bool,
        found: &mut Found,
        work: &mut dyn FnMut(),
    ) {
        let (mut work, mut newest_epoch) = (Some(work), found.newest_epoch);
        let mut keep = keep_in(found, self.loaded);
        loop {
            let mut stretches = Vec::new();
            for ring in rings.iter_mut().filter(|ring| !ring.is_over) {
                ring.take(&self.config, RING_STRETCHES - stretches.len(), &mut stretches);
            }
            if stretches.is_empty() {
                break;
            }
            self.read(&stretches, work.take());
            for (stretch, bytes) in self.read_of(&stretches) {
                let held = self.keep_ring(stretch, bytes, &mut keep, &mut newest_epoch);
                let of_dev = rings.iter_mut().find(|ring| ring.dev == stretch.dev);
                of_dev.into_iter().for_each(|ring| ring.note(held));
            }
            // Of those of which a stretch was read: there may be more rings than are read at once.
            for ring in rings.iter_mut().filter(|ring| ring.next > 0) {
                ring.is_over |= only_beginnings || ring.next >= ring.blocks;
            }
        }
        drop(keep);
        found.newest_epoch = newest_epoch;
        if let Some(work) = work {
            work();
        }
    }

    /// Keeps the frames of a stretch of a ring.
    fn keep_ring(
        &self,
        stretch: &Stretch,
        bytes: &[u8],
        keep: &mut impl FnMut(Frame),
        newest_epoch: &mut Epoch,
    ) -> Held {
        let &Stretch { dev, first, .. } = stretch;
        let mut held = Held::Nothing;
        for (at, bytes) in (first..).zip(bytes.chunks_exact(META_BYTES)) {
            match self.frame(bytes, dev, at) {
                Ok(frame) => {
                    held = Held::Frames;
                    keep(frame);
                }
                Err(FormatError::OtherEpoch { found, .. }) => {
                    // Its checksum and its array are right. A log device may have held log chunks before,
                    // which users write, and they may look like anything.
                    if !is_log(&self.config, dev) {
                        *newest_epoch = found.max(*newest_epoch);
                    }
                    if found > self.loaded.epoch && held == Held::Nothing {
                        held = Held::Unknown;
                    }
                }
                Err(_) => {
                    if held == Held::Nothing && bytes.iter().any(|&byte| byte != 0) {
                        held = Held::Unknown;
                    }
                }
            }
        }
        held
    }

    fn chunk_blocks(&self) -> u32 {
        u32::try_from(self.config.geometry.chunk_bytes() / META_BYTES).unwrap_or(u32::MAX)
    }

    /// Blocks from the checkpoint's head to one of the log region.
    fn ahead_of(&self, block: ChunkIndex) -> u32 {
        let total = self.config.log_blocks.max(1);
        let start = self.loaded.log_head.clamp(1, total) - 1;
        let block = block.get().clamp(1, total) - 1;
        if block >= start { block - start } else { block + (total - start) }
    }

    /// Where log chunks are that records behind the checkpoint name, in order: no frame is there, so nobody
    /// reads them here. They are where they were put until a checkpoint holds their records. If one was
    /// written that cannot be had, that may have been so, and then nothing counts as known.
    fn known_chunks(&self, frames: &BTreeMap<Seq, Frame>) -> Vec<u32> {
        if self.loaded.seen_through > self.loaded.through {
            return Vec::new();
        }
        let of_frame = |frame: &Frame| (frame.first_seq.get()..).map(Seq::new);
        let numbered = frames.values().flat_map(|frame| of_frame(frame).zip(frame.records.iter()));
        let behind = numbered.filter(|(seq, _)| *seq > self.loaded.through);
        let blocks = behind.filter_map(|(_, record)| record.log_block()).filter(|block| !block.is_none());
        let mut chunks: Vec<u32> = blocks.map(|block| self.ahead_of(block)).collect();
        chunks.sort_unstable();
        chunks
    }

    /// The stretches of a log device that are looked at next; none if no frame can follow, or after a lap.
    fn next_of_log(&self, log: &mut LogEnd, chunks: &[u32], out: &mut Vec<Stretch>) {
        let (total, chunk_blocks) = (self.config.log_blocks, self.chunk_blocks());
        let start = self.loaded.log_head.clamp(1, total.max(1)) - 1;
        let gap_max = FRAME_STRIPES_MAX.saturating_mul(chunk_blocks).saturating_mul(4);
        let (mut ahead, mut blocks) = (log.ahead, 0);
        while ahead < total && ahead - log.last_known <= gap_max && blocks < LOG_BLOCKS {
            let next = chunks.partition_point(|&chunk| chunk.saturating_add(chunk_blocks) <= ahead);
            let chunk = chunks.get(next).copied().unwrap_or(u32::MAX);
            if chunk <= ahead {
                log.last_known = ahead;
                ahead = chunk.saturating_add(chunk_blocks);
                continue;
            }
            let at = if ahead < total - start { start + ahead } else { ahead - (total - start) };
            let count = (chunk - ahead).min(total - at).min(total - ahead).min(STRETCH_BLOCKS);
            let first = ChunkIndex::new(at + 1);
            let offset = self.config.log_offset(first);
            out.push(Stretch { dev: log.dev, first: first.get(), offset, count });
            (ahead, blocks) = (ahead + count, blocks + count);
        }
        log.ahead = ahead;
    }

    /// Takes the frames of stretches of log devices.
    fn keep_logs(&self, stretches: &[Stretch], logs: &mut [LogEnd], keep: &mut impl FnMut(Frame)) {
        for (&Stretch { dev, first, .. }, bytes) in self.read_of(stretches) {
            let Some(log) = logs.iter_mut().find(|log| log.dev == dev) else { continue };
            for (block, bytes) in (first..).zip(bytes.chunks_exact(META_BYTES)) {
                let Ok(frame) = self.frame(bytes, dev, block) else { continue };
                // Frames of earlier laps, whose records the checkpoint holds, are no sign of where the log
                // ends.
                if last_of(&frame) > self.loaded.through {
                    log.last_known = log.last_known.max(self.ahead_of(ChunkIndex::new(block)));
                }
                keep(frame);
            }
        }
    }
}

/// Reads block by block, so that one bad block hides only itself.
fn read_singly(devices: &mut dyn DeviceSet, dev: DevIndex, offset: u64, bytes: &mut [u8]) {
    for (i, block) in bytes.chunks_mut(META_BYTES).enumerate() {
        if devices.read_now(dev, offset + (i * META_BYTES) as u64, block).is_err() {
            block.fill(UNREADABLE);
        }
    }
}
