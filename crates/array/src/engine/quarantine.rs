//! Space that records freed, until it is certain that nobody needs it any more.

use super::Core;
use super::trim::Emptied;
use crate::planted::{Planted, planted};
use crate::store::ChunkRun;
use block::Seq;
use block::slab::Slab;
use std::collections::VecDeque;

/// See the module's documentation.
pub(super) struct Quarantine {
    pub quarantine: VecDeque<Quarantined>,
    pub log_tail_noted: u64,
    /// Freed by discards, about to be released.
    pub discarded: Vec<ChunkRun>,
    /// Runs that their devices are discarding.
    pub trims: Slab<ChunkRun>,
    /// Stretches that are free as a whole since old versions in them were released.
    pub emptied: Vec<Emptied>,
    /// Chunks of such a stretch; 0 = none is looked for.
    pub stretch_chunks: u32,
    /// Discards of dead log space under way.
    pub log_discards: usize,
    /// How often something was released or ended: writes that wait for room are tried again then.
    pub room_made: u64,
}

/// Something freed.
pub(super) struct Quarantined {
    /// The record that freed it: must be known durable, on disk, before reuse.
    pub seq: Seq,
    /// Reads that began before must have ended.
    pub ticket: u64,
    pub what: Freed,
}

pub(super) enum Freed {
    Chunks(ChunkRun),
    /// By a discard.
    Discarded(ChunkRun),
    LogTail(u64),
}

impl Quarantine {
    pub fn new(log_tail_noted: u64, stretch_chunks: u32) -> Self {
        let (quarantine, discarded, trims) = (VecDeque::new(), Vec::new(), Slab::default());
        let (emptied, log_discards) = (Vec::new(), 0);
        Self {
            quarantine,
            log_tail_noted,
            discarded,
            trims,
            emptied,
            stretch_chunks,
            log_discards,
            room_made: 0,
        }
    }

    /// Whether devices are discarding what was freed.
    pub fn is_discarding(&self) -> bool {
        !self.trims.is_empty() || self.log_discards > 0
    }
}

impl Core {
    /// Lets go of what is free for certain.
    pub fn release_quarantine(&mut self) {
        let (persisted, oldest) = (self.board.flush.persisted(), self.reads.tickets.oldest());
        while let Some(front) = self.freed.quarantine.front() {
            let early = planted(Planted::ReuseBeforeDurable)
                || planted(Planted::ReuseBeforePersisted) && front.seq <= self.board.flush.durable();
            if (front.seq > persisted && !early) || front.ticket > oldest {
                break;
            }
            match front.what {
                Freed::Chunks(run) => {
                    self.release_or_trim(run, self.is_unit_trimmed(run));
                    if planted(Planted::ReuseBeforePersisted) {
                        let addr = run.first;
                        self.store.spaces[addr.dev.index()].set_frontier(addr.chunk.get());
                    }
                }
                Freed::Discarded(run) => self.freed.discarded.push(run),
                Freed::LogTail(position) => self.store.log.trim(position.min(self.store.log.head())),
            }
            self.freed.quarantine.pop_front();
            self.note_room();
        }
        if !self.freed.discarded.is_empty() {
            self.release_discarded();
        }
        if !self.freed.emptied.is_empty() {
            self.discard_emptied();
        }
        self.discard_dead_log();
    }

    /// Quarantines what the records up to `seq` freed.
    pub fn quarantine_freed(&mut self, seq: Seq, what: fn(ChunkRun) -> Freed) {
        let ticket = self.reads.tickets.next();
        let mut freed = std::mem::take(&mut self.store.freed);
        if planted(Planted::TrimUnitEarly) {
            freed.drain(..).for_each(|run| self.release_or_trim(run, self.is_unit_trimmed(run)));
        }
        if planted(Planted::DiscardOldEarly) {
            freed.iter().for_each(|&run| self.trim(run, ChunkRun { count: 0, ..run }));
        }
        self.freed.quarantine.extend(freed.iter().map(|&run| Quarantined { seq, ticket, what: what(run) }));
        self.store.freed = freed;
        self.store.freed.clear();
        self.note_log_tail(seq);
    }

    /// Whether the log's tail moves when a flush has ended, and reads that began before.
    pub fn log_tail_waits(&self) -> bool {
        self.freed.log_tail_noted > self.store.log.tail()
    }

    /// Whether the next checkpoint would move the log's tail: log stripes need less than replay does.
    pub fn log_needs_checkpoint(&self) -> bool {
        let appending = self.jobs.appending.first().copied().unwrap_or(u64::MAX);
        self.scheme.log_tail(&self.store).min(appending) > self.board.checkpoint.place.log_head
    }

    /// The log's tail may have moved: past what no log stripe and no replay needs.
    pub fn note_log_tail(&mut self, seq: Seq) {
        let live = if planted(Planted::TrimLiveLog) { u64::MAX } else { self.scheme.log_tail(&self.store) };
        let appending = self.jobs.appending.first().copied().unwrap_or(u64::MAX);
        let tail = live.min(self.board.checkpoint.place.log_head).min(appending);
        if tail > self.freed.log_tail_noted {
            let before = std::mem::replace(&mut self.freed.log_tail_noted, tail);
            if planted(Planted::DiscardLogEarly) {
                self.discard_log(before, tail.min(self.store.log.head()) - before);
            }
            let ticket = self.reads.tickets.next();
            self.freed.quarantine.push_back(Quarantined { seq, ticket, what: Freed::LogTail(tail) });
        }
    }
}
