//! Space that records freed, until it is certain that nobody needs it any more.

use super::Core;
use super::trim::Emptied;
use crate::planted::{Planted, planted};
use crate::store::ChunkRun;
use crate::table::later_max;
use block::slab::Slab;
use block::{ChunkAddr, ChunkIndex, Seq};
use std::collections::VecDeque;

/// Pages of bits that a checkpoint asks for at once, when its list has no room for what waits for them.
const SPACE_PAGES_AT_ONCE: usize = 64;

/// Entries whose bits are looked at together before they are released.
const ASKED_FOR: usize = 32;

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
        let (is_far, mut asked_for) = (self.store.table.is_far(), 0);
        while let Some(front) = self.freed.quarantine.front() {
            let early = planted(Planted::ReuseBeforeDurable)
                || planted(Planted::ReuseBeforePersisted) && front.seq <= self.board.flush.durable();
            if (front.seq > persisted && !early) || front.ticket > oldest {
                break;
            }
            if is_far && asked_for == 0 {
                asked_for = ASKED_FOR;
                self.prefetch_released();
            }
            asked_for = asked_for.saturating_sub(1);
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

    /// Asks for the bits of what comes next in the quarantine, all over the devices, so that they come from
    /// memory side by side.
    fn prefetch_released(&self) {
        for freed in self.freed.quarantine.iter().take(ASKED_FOR) {
            match freed.what {
                Freed::Chunks(run) | Freed::Discarded(run) => self.store.table.prefetch_bit(run.first),
                Freed::LogTail(_) => {}
            }
        }
    }

    /// Whether a checkpoint may be begun, as far as the space goes: notes what is leased, or freed and not
    /// released, which it must not speak of. The list has room for so many of those chunks, and of those that
    /// are free, whose pages are absent; if there are more, some pages are asked for.
    pub(super) fn note_taken(&mut self) -> bool {
        let Self { store, freed, jobs, .. } = self;
        store.taken.clear();
        if !store.config.scheme.has_log_stripes() {
            return true;
        }
        for job in jobs.table.iter() {
            store.taken.extend_from_slice(job.plan.leases.chunks());
        }
        let quarantined = freed.quarantine.iter().filter_map(|freed| match freed.what {
            Freed::Chunks(run) | Freed::Discarded(run) => Some(run),
            Freed::LogTail(_) => None,
        });
        let runs = quarantined.chain(freed.discarded.iter().copied()).chain(freed.trims.iter().copied());
        for run in runs {
            let chunks = (run.first.chunk.get()..run.end().get()).map(ChunkIndex::new);
            store.taken.extend(chunks.map(|chunk| ChunkAddr::new(run.first.dev, chunk)));
        }
        if !store.table.is_paged() {
            return true;
        }
        let (taken, table) = (&store.taken, &store.table);
        let pages = taken.iter().map(|&addr| table.space_page_of(addr));
        let absent: Vec<usize> = pages.filter(|&page| table.is_absent(page)).collect();
        let fits = absent.len() as u64 + table.later_count() <= later_max(&store.config);
        if !fits {
            let wanted: Vec<usize> = table.later_pages().chain(absent).take(SPACE_PAGES_AT_ONCE).collect();
            wanted.into_iter().for_each(|page| self.want_page_for_checkpoint(page));
        }
        fits
    }

    /// Quarantines what the records up to `seq` freed.
    pub fn quarantine_freed(&mut self, seq: Seq, what: impl Fn(ChunkRun) -> Freed) {
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
