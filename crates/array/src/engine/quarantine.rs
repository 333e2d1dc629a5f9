//! Space that records freed, until it is certain that nobody needs it any more.

use super::Core;
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
    pub fn new(log_tail_noted: u64) -> Self {
        let (quarantine, discarded, trims) = (VecDeque::new(), Vec::new(), Slab::default());
        Self { quarantine, log_tail_noted, discarded, trims, room_made: 0 }
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
    }

    /// Quarantines what the records up to `seq` freed.
    pub fn quarantine_freed(&mut self, seq: Seq, what: fn(ChunkRun) -> Freed) {
        let ticket = self.reads.tickets.next();
        let mut freed = std::mem::take(&mut self.store.freed);
        if planted(Planted::TrimUnitEarly) {
            freed.drain(..).for_each(|run| self.release_or_trim(run, self.is_unit_trimmed(run)));
        }
        self.freed.quarantine.extend(freed.iter().map(|&run| Quarantined { seq, ticket, what: what(run) }));
        self.store.freed = freed;
        self.store.freed.clear();
        self.note_log_tail(seq);
    }

    /// The log's tail may have moved: past what no log stripe and no replay needs.
    pub fn note_log_tail(&mut self, seq: Seq) {
        let live = if planted(Planted::TrimLiveLog) { u64::MAX } else { self.scheme.log_tail(&self.store) };
        let appending = self.jobs.appending.first().copied().unwrap_or(u64::MAX);
        let tail = live.min(self.board.checkpoint.place.log_head).min(appending);
        if tail > self.freed.log_tail_noted {
            self.freed.log_tail_noted = tail;
            let ticket = self.reads.tickets.next();
            self.freed.quarantine.push_back(Quarantined { seq, ticket, what: Freed::LogTail(tail) });
        }
    }
}
