//! Finding the journal's frames behind a checkpoint; nothing is written.

use super::load::Loaded;
use super::secure::Copies;
use crate::health::Health;
use crate::journal::CopyAt;
use crate::planted::{Planted, planted};
use crate::restart::is_present;
use crate::store::Store;
use block::{ChunkIndex, DevIndex, DeviceSet, Epoch, META_BYTES, Seq};
use format::{ArrayUuid, FormatError, Frame, FrameExpect, decode_frame};
use std::collections::BTreeMap;

/// Blocks read at once.
const READ_BLOCKS: u32 = 256;
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

/// Looks through the rings of frames and the log regions.
pub(super) fn scan(
    devices: &mut dyn DeviceSet,
    health: &Health,
    store: &Store,
    array: ArrayUuid,
    loaded: &Loaded,
) -> Found {
    let mut found = Found {
        frames: BTreeMap::new(),
        copies: Copies::default(),
        flushed: loaded.through,
        last_seq: loaded.through,
        newest_epoch: loaded.epoch,
    };
    let mut newest_epoch = loaded.epoch;
    let mut keep = |frame: Frame| {
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
    };
    let mut scanner = Scanner { devices, health, store, array, loaded };
    scanner.scan_rings(&mut keep, &mut newest_epoch);
    scanner.scan_logs(&mut keep);
    found.newest_epoch = newest_epoch;
    found
}

struct Scanner<'a> {
    devices: &'a mut dyn DeviceSet,
    health: &'a Health,
    store: &'a Store,
    array: ArrayUuid,
    loaded: &'a Loaded,
}

impl Scanner<'_> {
    fn frame(&self, bytes: &[u8], dev: DevIndex, block: u32) -> Result<Frame, FormatError> {
        let (array, epoch, nonce) = (self.array, self.loaded.epoch, self.loaded.nonce);
        decode_frame(bytes, &FrameExpect { array, epoch, nonce, dev, block })
    }

    fn scan_rings(&mut self, keep: &mut impl FnMut(Frame), newest_epoch: &mut Epoch) {
        for dev in self.store.config.ring_members() {
            if !is_present(self.health, dev) {
                continue;
            }
            let blocks = self.store.config.ring_blocks(dev);
            let mut block = 0;
            while block < blocks {
                let count = (blocks - block).min(READ_BLOCKS);
                let mut bytes = vec![0u8; count as usize * META_BYTES];
                let first = CopyAt::in_ring(self.store, dev, block);
                read_blocks(self.devices, dev, first.offset(self.store), &mut bytes);
                for (at, bytes) in (first.block()..).zip(bytes.chunks(META_BYTES)) {
                    match self.frame(bytes, dev, at) {
                        Ok(frame) => keep(frame),
                        // Its checksum and its array are right. A log device may have held log chunks before,
                        // which users write, and they may look like anything.
                        Err(FormatError::OtherEpoch { found, .. }) if !self.store.is_log(dev) => {
                            *newest_epoch = found.max(*newest_epoch)
                        }
                        Err(_) => {}
                    }
                }
                block += count;
            }
        }
    }

    /// Scans each log device from the checkpoint's head until no frame can follow.
    fn scan_logs(&mut self, keep: &mut impl FnMut(Frame)) {
        let total = self.store.config.log_blocks;
        let start = self.loaded.log_head.clamp(1, total.max(1)) - 1;
        let gap_max = FRAME_STRIPES_MAX.saturating_mul(self.store.chunk_blocks()).saturating_mul(4);
        for dev in (0u16..).map(DevIndex::new).take(self.health.members().len()) {
            if !self.store.config.has_log_chunks(dev) || !is_present(self.health, dev) {
                continue;
            }
            let (mut ahead, mut last_frame) = (0, 0);
            while ahead < total && ahead - last_frame <= gap_max {
                let at = (start + ahead) % total;
                let count = READ_BLOCKS.min(total - at).min(total - ahead);
                let mut bytes = vec![0u8; count as usize * META_BYTES];
                let offset = self.store.config.log_offset(ChunkIndex::new(at + 1));
                read_blocks(self.devices, dev, offset, &mut bytes);
                for (i, bytes) in (at + 1..).zip(bytes.chunks(META_BYTES)) {
                    let Ok(frame) = self.frame(bytes, dev, i) else { continue };
                    // Frames of earlier laps, whose records the checkpoint holds, are no sign of where the
                    // log ends.
                    if last_of(&frame) > self.loaded.through {
                        last_frame = ahead + (i - at - 1);
                    }
                    keep(frame);
                }
                ahead += count;
            }
        }
    }
}

/// Reads many blocks; where that fails, block by block, so that one bad block hides only itself.
fn read_blocks(devices: &mut dyn DeviceSet, dev: DevIndex, offset: u64, bytes: &mut [u8]) {
    if devices.read_now(dev, offset, bytes).is_err() {
        for (i, block) in bytes.chunks_mut(META_BYTES).enumerate() {
            if devices.read_now(dev, offset + (i * META_BYTES) as u64, block).is_err() {
                block.fill(0);
            }
        }
    }
}
