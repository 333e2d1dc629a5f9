//! Giving freed space back to the devices (L-05): what a discard freed in runs is discarded on its device
//! too, and so are a large unit that garbage collection freed, stretches of old versions, and dead log space.
//!
//! A run becomes allocatable only when the device's discard has ended, so that it cannot hit newer data; and
//! the discard is issued only when the record that freed the run is durable, and frames on disk say so.
//! Correctness never depends on what a discarded chunk reads as.
//!
//! Single *old versions* are not worth an operation. Commits free them one by one, all over a device; but
//! when the last one of an aligned stretch is free, the stretch is discarded as a whole, in one operation
//! with neighbours that came free in the same turn. No stretch is, while its device is short of space:
//! writes come first, and are about to fill it.
//!
//! *Dead log space* is discarded in runs, on all log devices alike, once the tail is past it. What is about
//! to be appended to is left alone.

use super::Core;
use super::{Purpose, Tag};
use crate::planted::{Planted, planted};
use crate::store::{ChunkRun, Store};
use block::slab::Key;
use block::{ChunkAddr, ChunkIndex, DevIndex, IoFault, META_BYTES, OpKind, Stream};
use format::ArrayConfig;

/// Discards of old versions under way at most: a device may take its time for each.
const OLD_TRIMS_MAX: usize = 8;
/// Stretches that wait for one of those at most; what more comes free meanwhile is not discarded.
const EMPTIED_MAX: usize = 4096;
/// Bytes of one discard of dead log space, and of one of old versions, at most.
const RUN_BYTES_MAX: u64 = 256 << 20;
const LOG_BLOCK_BYTES: u64 = META_BYTES as u64;

/// A stretch of chunks of a device that came free, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Emptied {
    dev: DevIndex,
    stretch: u32,
}

/// Chunks of a stretch of old versions of about so many bytes, a power of two; 0 = none is discarded. Only
/// where old versions have spare chunks of their own do they come free one by one.
pub(super) fn stretch_chunks(config: &ArrayConfig, bytes: Option<u64>) -> u32 {
    let Some(bytes) = bytes.filter(|_| config.scheme.has_log_stripes()) else { return 0 };
    let chunk_bytes = u64::try_from(config.geometry.chunk_bytes()).unwrap_or(u64::MAX);
    let chunks = bytes.div_ceil(chunk_bytes).max(1).checked_next_power_of_two();
    chunks.and_then(|chunks| u32::try_from(chunks).ok()).unwrap_or(0)
}

impl Core {
    /// Releases what user discards freed, now or when the device has discarded it.
    pub(super) fn release_discarded(&mut self) {
        let mut runs = std::mem::take(&mut self.freed.discarded);
        runs.sort_unstable();
        let mut at = 0;
        while at < runs.len() {
            let mut run = runs[at];
            at += 1;
            while let Some(next) = runs.get(at)
                && (next.first.dev, next.first.chunk) == (run.first.dev, run.end())
            {
                run.count += next.count;
                at += 1;
            }
            let least = self.options.discard.run_chunks;
            self.release_or_trim(run, least.is_some_and(|least| run.count as usize >= least));
        }
        runs.clear();
        self.freed.discarded = runs;
    }

    /// Whether a run that a record freed is a unit large enough to be discarded. Smaller ones are soon
    /// written again as a whole, which tells a device as much.
    pub(super) fn is_unit_trimmed(&self, run: ChunkRun) -> bool {
        let least = self.options.discard.unit_bytes;
        run.count > 1 && least.is_some_and(|least| self.bytes_of(run.count) >= least)
    }

    fn bytes_of(&self, chunks: u32) -> u64 {
        u64::from(chunks) * self.pool.slot_bytes() as u64
    }

    pub(super) fn release_or_trim(&mut self, run: ChunkRun, worth: bool) {
        if worth && self.health.is_writable(run.first.dev) {
            return self.trim(run, run);
        }
        self.release_run(run);
        self.note_emptied(run);
    }

    /// Discards a run on its device; `held` of it is released when that has ended.
    pub(super) fn trim(&mut self, run: ChunkRun, held: ChunkRun) {
        let tag = Tag { purpose: Purpose::Trim { run: self.freed.trims.insert(held) }, dev: run.first.dev };
        let length = self.bytes_of(run.count);
        self.push_op(tag, OpKind::Discard, Stream::Data, self.store.offset_of(run.first), length, None);
    }

    fn release_run(&mut self, run: ChunkRun) {
        self.store.release_run(run);
        if let Some(collects) = self.scheme.collects_mut() {
            collects.released(run);
        }
    }

    /// A device's discard ended; it is a hint, so only a device that is gone matters. Of a frozen array no
    /// device was asked.
    pub(super) fn trim_done(&mut self, dev: DevIndex, run: Key<ChunkRun>, result: Result<(), IoFault>) {
        let run = self.freed.trims.remove(run);
        self.release_run(run);
        self.note_room();
        if result == Err(IoFault::Gone) && !self.board.frozen {
            self.fail_for_fault(dev);
        }
    }

    /// Chunks were released: notes which stretches are free as a whole since.
    fn note_emptied(&mut self, run: ChunkRun) {
        let (dev, chunks) = (run.first.dev, self.freed.stretch_chunks);
        if chunks == 0 {
            return;
        }
        let Store { spaces, table, .. } = &self.store;
        let space = &spaces[dev.index()];
        if run.count == 1 && space.has_neighbours(table, run.first.chunk, chunks) {
            return;
        }
        for stretch in run.first.chunk.get() / chunks..=(run.end().get() - 1) / chunks {
            let emptied = Emptied { dev, stretch };
            if space.is_stretch_free(table, stretch, chunks) && self.freed.emptied.len() < EMPTIED_MAX {
                self.freed.emptied.push(emptied);
            }
        }
    }

    /// Discards the stretches that came free, neighbours in one operation, and no more than so many at a
    /// time; the others when those have ended.
    pub(super) fn discard_emptied(&mut self) {
        if self.board.frozen {
            return self.freed.emptied.clear();
        }
        if self.freed.trims.len() >= OLD_TRIMS_MAX {
            return;
        }
        let mut emptied = std::mem::take(&mut self.freed.emptied);
        emptied.sort_unstable();
        emptied.dedup();
        while self.freed.trims.len() < OLD_TRIMS_MAX
            && let Some(last) = emptied.pop()
        {
            self.discard_stretches(last, &mut emptied);
        }
        self.freed.emptied = emptied;
    }

    /// Discards a stretch together with those before it, which are the last of the others.
    fn discard_stretches(&mut self, last: Emptied, others: &mut Vec<Emptied>) {
        let (dev, chunks) = (last.dev, self.freed.stretch_chunks);
        let spare = u64::from(self.store.config.chunks_per_device) - self.store.config.stripe_count;
        let stretch_bytes = self.bytes_of(chunks);
        let Store { spaces, table, .. } = &mut self.store;
        let space = &mut spaces[dev.index()];
        let left = u64::from(space.free_for_users()).saturating_sub(spare / 2) / u64::from(chunks);
        let most = left.min((RUN_BYTES_MAX / stretch_bytes).max(1));
        // It may have been written to since it came free.
        if most == 0 || !self.health.is_writable(dev) || !space.is_stretch_free(table, last.stretch, chunks) {
            return;
        }
        let (mut first, mut count) = (last.stretch, 1);
        while let Some(before) = others.last()
            && (before.dev, before.stretch + 1) == (dev, first)
            && count < most
            && space.is_stretch_free(table, before.stretch, chunks)
        {
            (first, count) = (before.stretch, count + 1);
            others.pop();
        }
        let run = ChunkRun {
            first: ChunkAddr::new(dev, ChunkIndex::new(first * chunks)),
            count: (last.stretch + 1 - first) * chunks,
        };
        if planted(Planted::DiscardedStaysFree) {
            return self.trim(run, ChunkRun { count: 0, ..run });
        }
        space.claim_run(table, run.first.chunk, run.end()).expect("each of the stretches is free");
        self.trim(run, run);
    }

    /// Discards what the tail of the log has left behind, if that is enough for an operation.
    pub(super) fn discard_dead_log(&mut self) {
        let may = !self.board.frozen && !planted(Planted::DiscardLogEarly);
        let Some(bytes) = self.options.discard.log_bytes.filter(|_| may) else { return };
        let least = bytes.div_ceil(LOG_BLOCK_BYTES);
        let most = least.max(RUN_BYTES_MAX / LOG_BLOCK_BYTES);
        let Some((from, count)) = self.store.log.begin_discard(least, most) else { return };
        self.discard_log(from, count);
        if self.freed.log_discards == 0 {
            self.store.log.end_discard();
        }
    }

    /// Discards so many blocks from a position of the log on, on all log devices.
    pub(super) fn discard_log(&mut self, from: u64, count: u64) {
        let first = self.store.log.block_at(from).get();
        // The blocks are fewer than the ring has: they pass its end at most once.
        let before_end = u64::from(self.store.log.block_count() - first + 1).min(count);
        let logs = self.health.writable_logs().filter(|&dev| self.store.config.has_log_chunks(dev));
        for dev in logs.collect::<Vec<_>>() {
            for (block, blocks) in [(first, before_end), (1, count - before_end)] {
                if blocks > 0 {
                    self.freed.log_discards += 1;
                    let offset = self.store.config.log_offset(ChunkIndex::new(block));
                    let tag = Tag { purpose: Purpose::TrimLog, dev };
                    let length = blocks * LOG_BLOCK_BYTES;
                    self.push_op(tag, OpKind::Discard, Stream::Log, offset, length, None);
                }
            }
        }
    }

    /// A log device has discarded its part of the dead log space.
    pub(super) fn log_trim_done(&mut self, dev: DevIndex, result: Result<(), IoFault>) {
        self.freed.log_discards -= 1;
        if self.freed.log_discards == 0 {
            self.store.log.end_discard();
            self.note_room();
        }
        if result == Err(IoFault::Gone) && !self.board.frozen {
            self.fail_for_fault(dev);
        }
    }
}
