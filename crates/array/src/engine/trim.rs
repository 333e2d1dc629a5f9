//! Giving freed space back to the devices (L-05): what a discard freed in runs is discarded on its device
//! too, and so is a large unit that garbage collection freed.
//!
//! A run becomes allocatable only when the device's discard has ended, so that it cannot hit newer data; and
//! the discard is issued only when the record that freed the run is durable, and frames on disk say so.
//! Single old versions are not worth an operation; correctness never depends on what a discarded chunk reads
//! as.

use super::Core;
use super::{Purpose, Tag};
use crate::store::ChunkRun;
use block::slab::Key;
use block::{DevIndex, IoFault, OpKind, Stream};

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
            let least = self.options.discard_run_chunks;
            self.release_or_trim(run, least.is_some_and(|least| run.count as usize >= least));
        }
        runs.clear();
        self.freed.discarded = runs;
    }

    /// Whether a run that a record freed is a unit large enough to be discarded. Smaller ones are soon
    /// written again as a whole, which tells a device as much.
    pub(super) fn is_unit_trimmed(&self, run: ChunkRun) -> bool {
        let bytes = u64::from(run.count) * self.pool.slot_bytes() as u64;
        run.count > 1 && self.options.discard_unit_bytes.is_some_and(|least| bytes >= least)
    }

    pub(super) fn release_or_trim(&mut self, run: ChunkRun, worth: bool) {
        if !worth || !self.health.is_writable(run.first.dev) {
            return self.release_run(run);
        }
        let tag = Tag { purpose: Purpose::Trim { run: self.freed.trims.insert(run) }, dev: run.first.dev };
        let length = u64::from(run.count) * self.pool.slot_bytes() as u64;
        self.push_op(tag, OpKind::Discard, Stream::Data, self.store.offset_of(run.first), length, None);
    }

    fn release_run(&mut self, run: ChunkRun) {
        self.store.spaces[run.first.dev.index()].release_run(run.first.chunk, run.end());
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
}
