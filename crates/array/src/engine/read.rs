//! Reads of single chunks: from their device, else from their cover.

use super::job::{Heal, Judged, StepEnd};
use super::lock::{Mode, Pending};
use super::request::Request;
use super::{Core, EngineError, Work};
use super::{Purpose, Tag};
use crate::plan::{Piece, Word};
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Located};
use block::slab::Key;
use block::{IoFault, Lcn, OpKind, Slot, Stream};

/// Who wants the chunk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// A request; whether it holds the stripe (in-place schemes).
    Request { request: Key<Request>, locked: bool },
    /// A partial write, to fill in the rest of its chunk.
    Fill(ChunkWrite),
    /// Nobody: whether it can be had is the question. Whether it holds the stripe.
    Look { locked: bool },
}

/// A read in flight.
#[derive(Clone, Copy)]
pub(super) struct ReadOp {
    lcn: Lcn,
    slot: Slot,
    wanted: Wanted,
    at: Option<(Piece, Word)>,
    ticket: Option<u64>,
    /// The page that it keeps in memory.
    page: Option<usize>,
}

impl ReadOp {
    /// The chunk that is read.
    pub(super) fn lcn(&self) -> Lcn {
        self.lcn
    }

    /// A page stays in memory until the read has ended.
    pub(super) fn hold(&mut self, page: usize) {
        self.page = Some(page);
    }
}

impl Core {
    /// Starts the read of a chunk of a request.
    pub(super) fn start_read(&mut self, request: Key<Request>, lcn: Lcn, slot: Slot) {
        if let Some(cached) = self.cache.slot_of(lcn)
            && !planted(Planted::ReadPastCache)
        {
            self.stats.cache.hits += 1;
            self.pool.copy(cached, slot);
            return self.chunk_done(request, None);
        }
        let locked = self.write_mode() == Mode::Exclusive;
        let key = self.take_read(lcn, slot, Wanted::Request { request, locked });
        if locked {
            let stripe = self.store.config.geometry.stripe_of(lcn);
            if !self.try_lock(stripe, Mode::Shared) {
                let work = Work::Read { read: key, stripe };
                return self.locks.wait(stripe, Pending::new(Mode::Shared, work));
            }
            return self.issue_read(key);
        }
        self.issue_unlocked_read(key);
    }

    /// Reads a chunk whose stripe is not held, as soon as the page that speaks of it is in memory.
    pub(super) fn issue_unlocked_read(&mut self, key: Key<ReadOp>) {
        if !self.store.table.is_paged() || self.read_may_look(key) {
            self.issue_read(key);
        }
    }

    /// Starts the read of the old version for a partial write.
    pub(super) fn start_fill(&mut self, write: ChunkWrite, base: Slot) {
        let key = self.take_read(write.lcn, base, Wanted::Fill(write));
        self.issue_read(key);
    }

    /// A read not issued yet.
    #[inline]
    pub(super) fn take_read(&mut self, lcn: Lcn, slot: Slot, wanted: Wanted) -> Key<ReadOp> {
        let fresh = || ReadOp { lcn, slot, wanted, at: None, ticket: None, page: None };
        let key = self.reads.table.reuse(fresh);
        // Field by field: what is none is not copied.
        let read = &mut self.reads.table[key];
        (read.lcn, read.slot, read.wanted) = (lcn, slot, wanted);
        (read.at, read.ticket, read.page) = (None, None, None);
        key
    }

    /// Reads the newest version of the chunk.
    pub(super) fn issue_read(&mut self, key: Key<ReadOp>) {
        let (lcn, slot) = (self.reads.table[key].lcn, self.reads.table[key].slot);
        if self.is_page_lost(self.store.config.geometry.stripe_of(lcn)) {
            return self.finish_read(key, Some(EngineError::Unreadable { lcn }));
        }
        match self.scheme.locate(&self.store, lcn) {
            Located::Zero => {
                self.pool.bytes_mut(slot).fill(0);
                self.finish_read(key, None);
            }
            Located::At { piece, word } => {
                let read = &mut self.reads.table[key];
                (read.at, read.ticket) = (Some((piece, word)), Some(self.reads.tickets.issue()));
                if self.health.is_readable(piece.addr) {
                    let tag = Tag { purpose: Purpose::Read { read: key }, dev: piece.addr.dev };
                    self.push_chunk_op(tag, OpKind::Read, Stream::Data, piece.addr, slot);
                } else {
                    self.cover_for_read(key, word, piece, slot, Heal::No);
                }
            }
        }
    }

    /// The device answered.
    pub(super) fn read_done(&mut self, key: Key<ReadOp>, result: Result<(), IoFault>) {
        let (piece, word) = self.reads.table[key].at.expect("an issued read knows where it reads");
        let slot = self.reads.table[key].slot;
        if self.verify_read(piece.addr, piece.crc, slot, result) == Judged::Good {
            return self.finish_read(key, None);
        }
        // The code word may have been dissolved meanwhile; the chunk itself stays put while the ticket is
        // out.
        match self.scheme.locate(&self.store, self.reads.table[key].lcn) {
            Located::At { piece: now, word: now_word } if now.addr == piece.addr => {
                debug_assert!(now_word == word || now.crc == piece.crc);
                self.cover_for_read(key, now_word, now, slot, Heal::Yes);
            }
            Located::At { .. } | Located::Zero => {
                if let Some(ticket) = self.reads.table[key].ticket.take() {
                    self.reads.tickets.finish(ticket);
                }
                self.issue_read(key);
            }
        }
    }

    /// The chunk is in its slot, or lost.
    pub(super) fn finish_read(&mut self, key: Key<ReadOp>, error: Option<EngineError>) {
        let ReadOp { lcn, slot, wanted, ref at, page, ticket } = self.reads.table[key];
        let addr = at.as_ref().map(|(piece, _)| piece.addr);
        self.reads.table.release(key);
        if let Some(ticket) = ticket {
            self.reads.tickets.finish(ticket);
        }
        self.note_read(lcn, addr, error.is_none());
        if let Some(page) = page {
            self.store.table.unpin(page);
        }
        match wanted {
            Wanted::Request { request, locked } => {
                if locked {
                    let stripe = self.store.config.geometry.stripe_of(lcn);
                    self.unlock(stripe, Mode::Shared);
                }
                self.chunk_done(request, error);
            }
            Wanted::Look { locked } => {
                if locked {
                    self.unlock(self.store.config.geometry.stripe_of(lcn), Mode::Shared);
                }
                self.looked(slot);
            }
            Wanted::Fill(write) => self.base_read_done(write, slot, error),
        }
    }

    /// The cover gave the chunk, or could not.
    pub(super) fn read_covered(&mut self, key: Key<ReadOp>, end: StepEnd) {
        let lcn = self.reads.table[key].lcn;
        let error = match end {
            StepEnd::Done => None,
            StepEnd::Lost => Some(EngineError::Unreadable { lcn }),
        };
        self.finish_read(key, error);
    }
}
