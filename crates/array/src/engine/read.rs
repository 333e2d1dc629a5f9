//! Reads of single chunks: from their device, else from their cover.

use super::cover::Parent;
use super::tag::{Purpose, Tag};
use super::{Engine, EngineError, Mode, Pending, PendingKind};
use crate::plan::{Piece, Word};
use crate::planted::{Planted, planted};
use crate::scheme::{ChunkWrite, Located};
use block::{IoFault, Lcn, OpKind, Slot, Stream};

/// Who wants the chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Wanted {
    /// Nobody yet.
    #[default]
    Nobody,
    /// A request; whether it holds the stripe (in-place schemes).
    Request { request: u32, locked: bool },
    /// A partial write, to fill in the rest of its chunk.
    Fill(ChunkWrite),
    /// Nobody: whether it can be had is the question. Whether it holds the stripe.
    Look { locked: bool },
}

/// A read in flight.
#[derive(Default)]
pub(super) struct ReadOp {
    lcn: Lcn,
    slot: Option<Slot>,
    wanted: Wanted,
    at: Option<(Piece, Word)>,
    ticket: Option<u64>,
}

impl Engine {
    /// Starts the read of a chunk of a request.
    pub(super) fn start_read(&mut self, request: u32, lcn: Lcn, slot: Slot) {
        if let Some(cached) = self.cache.slot_of(lcn)
            && !planted(Planted::ReadPastCache)
        {
            self.stats.cache_hits += 1;
            self.pool.copy(cached, slot);
            return self.chunk_done(request, None);
        }
        let locked = self.write_mode() == Mode::Exclusive;
        let place = self.take_read(lcn, slot, Wanted::Request { request, locked });
        if locked {
            let stripe = self.store.config.geometry.stripe_of(lcn);
            if !self.locks.try_lock(stripe, Mode::Shared) {
                let write = ChunkWrite { request, lcn, slot, from: 0, to: 0, class: 0 };
                self.locks
                    .wait(stripe, Pending { write, mode: Mode::Shared, kind: PendingKind::Read(place) });
                return;
            }
        }
        self.issue_read(place);
    }

    /// Starts the read of the old version for a partial write.
    pub(super) fn start_fill(&mut self, write: ChunkWrite, base: Slot) {
        let place = self.take_read(write.lcn, base, Wanted::Fill(write));
        self.issue_read(place);
    }

    /// A read not issued yet.
    pub(super) fn take_read(&mut self, lcn: Lcn, slot: Slot, wanted: Wanted) -> u32 {
        let place = self.reads.take();
        self.reads[place] = ReadOp { lcn, slot: Some(slot), wanted, at: None, ticket: None };
        place
    }

    /// Reads the newest version of the chunk.
    pub(super) fn issue_read(&mut self, place: u32) {
        let (lcn, slot) = (self.reads[place].lcn, self.read_slot(place));
        match self.scheme.locate(&self.store, lcn) {
            Located::Zero => {
                self.pool.bytes_mut(slot).fill(0);
                self.finish_read(place, None);
            }
            Located::At { piece, word } => {
                self.reads[place].at = Some((piece, word));
                self.reads[place].ticket = Some(self.tickets.issue());
                if self.health.is_readable(piece.addr) {
                    let tag = Tag { purpose: Purpose::Read, dev: piece.addr.dev, id: place, step: 0 };
                    self.push_chunk_op(tag, OpKind::Read, Stream::Data, piece.addr, slot);
                } else {
                    self.start_cover(Parent::Read { place }, word, piece, slot, false);
                }
            }
        }
    }

    fn read_slot(&self, place: u32) -> Slot {
        self.reads[place].slot.expect("a read in flight has a slot")
    }

    /// The device answered.
    pub(super) fn read_done(&mut self, tag: Tag, result: Result<(), IoFault>) {
        let place = tag.id;
        let (piece, word) = self.reads[place].at.expect("an issued read knows where it reads");
        let slot = self.read_slot(place);
        if self.verify_read(piece.addr, piece.crc, slot, result) {
            return self.finish_read(place, None);
        }
        // The code word may have been dissolved meanwhile; the chunk itself stays put while the ticket is out.
        match self.scheme.locate(&self.store, self.reads[place].lcn) {
            Located::At { piece: now, word: now_word } if now.addr == piece.addr => {
                debug_assert!(now_word == word || now.crc == piece.crc);
                self.start_cover(Parent::Read { place }, now_word, now, slot, true);
            }
            Located::At { .. } | Located::Zero => {
                if let Some(ticket) = self.reads[place].ticket.take() {
                    self.tickets.finish(ticket);
                }
                self.issue_read(place);
            }
        }
    }

    /// The chunk is in its slot, or lost.
    pub(super) fn finish_read(&mut self, place: u32, error: Option<EngineError>) {
        if let Some(ticket) = self.reads[place].ticket.take() {
            self.tickets.finish(ticket);
        }
        let ReadOp { lcn, wanted, at, .. } = self.reads[place];
        let slot = self.read_slot(place);
        self.reads.give(place);
        self.note_read(lcn, at.map(|(piece, _)| piece.addr), error.is_none());
        match wanted {
            Wanted::Nobody => unreachable!("a read in flight is wanted by somebody"),
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
    pub(super) fn read_covered(&mut self, place: u32, lost: bool) {
        let lcn = self.reads[place].lcn;
        self.finish_read(place, lost.then_some(EngineError::Unreadable { lcn }));
    }
}
