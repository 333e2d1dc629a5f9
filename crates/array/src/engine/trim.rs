//! Giving freed space back to the devices (L-05): what a discard freed in runs is discarded on its device too.
//!
//! A run becomes allocatable only when the device's discard has ended, so that it cannot hit newer data. Single old
//! versions are not worth an operation; correctness never depends on what a discarded chunk reads as.

use super::Engine;
use super::tag::{Purpose, Tag};
use block::{ChunkAddr, ChunkIndex, IoFault, OpKind, Stream};

/// Chunks that lie next to each other, being discarded.
#[derive(Clone, Copy, Default)]
pub(super) struct TrimRun {
    first: ChunkAddr,
    count: u32,
}

impl Engine {
    /// Releases what user discards freed, now or when the device has discarded it.
    pub(super) fn release_discarded(&mut self) {
        let mut chunks = std::mem::take(&mut self.discarded);
        chunks.sort_unstable();
        let mut rest = chunks.as_slice();
        while let Some(&first) = rest.first() {
            let next_to = |(i, addr): &(usize, &ChunkAddr)| {
                addr.dev == first.dev && addr.chunk.get() as usize == first.chunk.get() as usize + i
            };
            let count = rest.iter().enumerate().take_while(next_to).count();
            rest = &rest[count..];
            let run = TrimRun { first, count: count as u32 };
            let worth = self.options.discard_run_chunks.is_some_and(|least| count >= least);
            if worth && self.health.is_writable(first.dev) { self.trim(run) } else { self.release_run(run) }
        }
        chunks.clear();
        self.discarded = chunks;
    }

    fn trim(&mut self, run: TrimRun) {
        let id = self.trims.take();
        self.trims[id] = run;
        let tag = Tag { purpose: Purpose::Trim, dev: run.first.dev, id, step: 0 };
        let length = u64::from(run.count) * self.pool.slot_bytes() as u64;
        self.push_op(tag, OpKind::Discard, Stream::Data, self.store.offset_of(run.first), length, None);
    }

    fn release_run(&mut self, run: TrimRun) {
        for i in 0..run.count {
            let addr = ChunkAddr::new(run.first.dev, ChunkIndex::new(run.first.chunk.get() + i));
            self.store.spaces[addr.dev.index()].release(addr.chunk);
            self.scheme.released(addr);
        }
    }

    /// A device's discard ended; it is a hint, so only a device that is gone matters.
    pub(super) fn trim_done(&mut self, tag: Tag, result: Result<(), IoFault>) {
        self.release_run(self.trims[tag.id]);
        self.trims.give(tag.id);
        if result == Err(IoFault::Gone) {
            self.fail_device(tag.dev);
        }
    }
}
