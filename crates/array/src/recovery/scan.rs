//! Finding the journal's frames behind a checkpoint; nothing is written.

use super::load::Loaded;
use super::secure::Copies;
use crate::health::Health;
use crate::planted::{Planted, planted};
use crate::restart::is_present;
use block::{ChunkIndex, DevIndex, DeviceSet, Epoch, META_BYTES, Pool, ReadNow, Seq};
use format::{ArrayConfig, ArrayUuid, FormatError, Frame, FrameExpect, decode_frame};
use std::collections::BTreeMap;

/// Blocks of a stretch, which is read in one transfer.
const STRETCH_BLOCKS: u32 = 64;
/// Stretches of rings that are read at once, 64 MiB.
const RING_STRETCHES: usize = 256;
/// Blocks of each log device that are read at once.
const LOG_BLOCKS: u32 = 2048;
/// Log stripes that one frame describes at most, so the log chunks between two frames.
const FRAME_STRIPES_MAX: u32 = 256;

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

/// Looks through the rings of frames and the log regions; does `work` beside that.
pub(super) fn scan(
    devices: &mut dyn DeviceSet,
    health: &Health,
    config: ArrayConfig,
    array: ArrayUuid,
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
    let mut newest_epoch = loaded.epoch;
    let mut keep = keep_in(&mut found, loaded);
    let is_there = |dev: &DevIndex| is_present(health, *dev);
    let mut scanner = Scanner { devices, config, array, loaded, room: None };
    let stretches = rings(&config, config.ring_members().filter(is_there));
    let mut work = Some(work);
    for stretches in stretches.chunks(RING_STRETCHES) {
        scanner.read(stretches, work.take());
        scanner.keep_rings(stretches, &mut keep, &mut newest_epoch);
    }
    if let Some(work) = work {
        work();
    }
    drop(keep);
    let chunks = scanner.known_chunks(&found.frames);
    let mut keep = keep_in(&mut found, loaded);
    let members = (0u16..).map(DevIndex::new).take(health.members().len());
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
    found.newest_epoch = newest_epoch;
    found
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

/// The rings, in stretches.
fn rings(config: &ArrayConfig, members: impl Iterator<Item = DevIndex>) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    for dev in members {
        let blocks = config.ring_blocks(dev);
        for block in (0..blocks.div_ceil(STRETCH_BLOCKS)).map(|stretch| stretch * STRETCH_BLOCKS) {
            let (first, offset) = match is_log(config, dev) {
                false => (block, config.journal_offset(block)),
                true => (block + 1, config.log_offset(ChunkIndex::new(block + 1))),
            };
            stretches.push(Stretch { dev, first, offset, count: STRETCH_BLOCKS.min(blocks - block) });
        }
    }
    stretches
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

    fn keep_rings(&self, stretches: &[Stretch], keep: &mut impl FnMut(Frame), newest_epoch: &mut Epoch) {
        for (&Stretch { dev, first, .. }, bytes) in self.read_of(stretches) {
            for (at, bytes) in (first..).zip(bytes.chunks_exact(META_BYTES)) {
                match self.frame(bytes, dev, at) {
                    Ok(frame) => keep(frame),
                    // Its checksum and its array are right. A log device may have held log chunks before,
                    // which users write, and they may look like anything.
                    Err(FormatError::OtherEpoch { found, .. }) if !is_log(&self.config, dev) => {
                        *newest_epoch = found.max(*newest_epoch)
                    }
                    Err(_) => {}
                }
            }
        }
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
            block.fill(0);
        }
    }
}
