//! Rebuilding one chunk from its cover: for a failed device, an unreadable chunk, or a checksum that does not match.
//!
//! As many pieces are read as the code word has data; a piece that turns out bad is replaced by another one. The result
//! is checked against the chunk's own checksum, and written back where the chunk was bad on a working device.

use super::tag::{Purpose, Tag};
use super::{Content, Engine};
use crate::plan::{Codeword, Piece, Word};
use block::{IoFault, OpKind, Slot, Stream};

/// Who wants the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parent {
    /// Nobody yet.
    #[default]
    Nobody,
    /// A single read.
    Read { place: u32 },
    /// A read of a job's plan.
    Job { place: u32, step: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PieceState {
    Untried,
    Reading(Slot),
    Good(Slot),
    Bad,
}

/// A cover in flight.
#[derive(Default)]
pub(super) struct Cover {
    word: Codeword,
    states: Vec<PieceState>,
    target: Option<Piece>,
    out: Option<Slot>,
    parent: Parent,
    heal: bool,
    ticket: Option<u64>,
    /// Waits in the queue of covers that lack buffers.
    stalled: bool,
}

impl Engine {
    /// Starts to rebuild `target`, a piece of `word`, into `out`.
    pub(super) fn start_cover(&mut self, parent: Parent, word: Word, target: Piece, out: Slot, heal: bool) {
        let place = self.covers.take();
        let mut cover = std::mem::take(&mut self.covers[place]);
        match self.planned_word(parent, word) {
            Some(planned) => cover.word.clone_from(planned),
            None => self.scheme.codeword(&self.store, word, &mut cover.word),
        }
        cover.states.clear();
        cover.states.resize(cover.word.pieces.len(), PieceState::Untried);
        (cover.target, cover.out, cover.parent, cover.heal) = (Some(target), Some(out), parent, heal);
        cover.ticket = Some(self.tickets.issue());
        self.covers[place] = cover;
        self.stats.covers += 1;
        self.advance_cover(place);
    }

    /// A log stripe as the plan that asks for it knows it.
    fn planned_word(&self, parent: Parent, word: Word) -> Option<&Codeword> {
        let Parent::Job { place, .. } = parent else { return None };
        self.jobs[place].plan.log_words.iter().find(|(name, _)| *name == word).map(|(_, pieces)| pieces)
    }

    /// Tries again what lacked buffers.
    pub(super) fn retry_stalled_covers(&mut self) {
        for _ in 0..self.stalled_covers.len() {
            if let Some(place) = self.stalled_covers.pop_front() {
                self.covers[place].stalled = false;
                self.advance_cover(place);
            }
        }
    }

    fn advance_cover(&mut self, place: u32) {
        let target = self.covers[place].target.expect("a cover in flight has a target");
        let needed = self.covers[place].word.data_count;
        loop {
            let cover = &self.covers[place];
            let good = cover.states.iter().filter(|s| matches!(s, PieceState::Good(_))).count();
            let reading = cover.states.iter().filter(|s| matches!(s, PieceState::Reading(_))).count();
            if good == needed {
                if reading == 0 {
                    self.rebuild_cover(place);
                }
                return;
            }
            if good + reading >= needed {
                return;
            }
            let next = cover.word.pieces.iter().zip(&cover.states).position(|(piece, &state)| {
                state == PieceState::Untried
                    && piece.index != target.index
                    && self.health.is_readable(piece.addr)
            });
            let Some(next) = next else {
                if reading == 0 {
                    self.end_cover(place, true);
                }
                return;
            };
            let Some(slot) = self.pool.alloc() else {
                if !std::mem::replace(&mut self.covers[place].stalled, true) {
                    self.stalled_covers.push_back(place);
                }
                return;
            };
            let piece = self.covers[place].word.pieces[next];
            self.covers[place].states[next] = PieceState::Reading(slot);
            let tag = Tag { purpose: Purpose::CoverRead, dev: piece.addr.dev, id: place, step: next as u32 };
            let stream = if piece.index < self.store.code.width_max() {
                Stream::Data
            } else if self.store.is_log(piece.addr.dev) {
                Stream::Log
            } else {
                Stream::Parity
            };
            self.push_chunk_op(tag, OpKind::Read, stream, piece.addr, slot);
        }
    }

    /// A piece was read.
    pub(super) fn cover_read_done(&mut self, tag: Tag, result: Result<(), IoFault>) {
        let (place, step) = (tag.id, tag.step as usize);
        let PieceState::Reading(slot) = self.covers[place].states[step] else {
            unreachable!("a completion belongs to a piece being read");
        };
        let piece = self.covers[place].word.pieces[step];
        if self.verify_read(piece.addr, piece.crc, slot, result) {
            self.covers[place].states[step] = PieceState::Good(slot);
        } else {
            self.pool.free(slot);
            self.covers[place].states[step] = PieceState::Bad;
        }
        self.advance_cover(place);
    }

    /// Enough pieces are at hand.
    fn rebuild_cover(&mut self, place: u32) {
        let cover = &self.covers[place];
        let (target, out) = (cover.target.expect("in flight"), cover.out.expect("in flight"));
        let len = self.pool.slot_bytes();
        let columns: Vec<usize> =
            cover.word.pieces[..cover.word.data_count].iter().map(|p| p.index).collect();
        let present: Vec<(usize, usize)> = cover
            .word
            .pieces
            .iter()
            .zip(&cover.states)
            .filter_map(|(piece, state)| match state {
                PieceState::Good(slot) => Some((piece.index, self.pool.offset(*slot))),
                PieceState::Untried | PieceState::Reading(_) | PieceState::Bad => None,
            })
            .collect();
        let wanted = [(target.index, self.pool.offset(out))];
        let rebuilt = self.store.code.rebuild_in(self.pool.region_mut(), len, &columns, &present, &wanted);
        let meaningless = self.options.content == Content::Meaningless;
        let good = rebuilt.is_ok()
            && (meaningless || crate::checksum::chunk_checksum(self.pool.bytes(out)) == target.crc);
        if good && self.covers[place].heal && self.health.is_writable(target.addr.dev) {
            let tag = Tag { purpose: Purpose::Heal, dev: target.addr.dev, id: place, step: 0 };
            let stream =
                if target.index < self.store.code.width_max() { Stream::Data } else { Stream::Parity };
            return self.push_chunk_op(tag, OpKind::Write, stream, target.addr, out);
        }
        self.end_cover(place, !good);
    }

    /// The repaired chunk was written back.
    pub(super) fn heal_done(&mut self, tag: Tag, result: Result<(), IoFault>) {
        match result {
            Ok(()) => {
                self.flush.wrote(tag.dev);
                self.health.errors_mut(tag.dev).healed += 1;
            }
            Err(fault) => self.write_fault(tag.dev, fault),
        }
        self.end_cover(tag.id, false);
    }

    fn end_cover(&mut self, place: u32, lost: bool) {
        let mut cover = std::mem::take(&mut self.covers[place]);
        for state in cover.states.drain(..) {
            match state {
                PieceState::Good(slot) | PieceState::Reading(slot) => self.pool.free(slot),
                PieceState::Untried | PieceState::Bad => {}
            }
        }
        if let Some(ticket) = cover.ticket.take() {
            self.tickets.finish(ticket);
        }
        if std::mem::take(&mut cover.stalled) {
            self.stalled_covers.retain(|&other| other != place);
        }
        let parent = std::mem::take(&mut cover.parent);
        self.covers[place] = cover;
        self.covers.give(place);
        self.stats.lost += u64::from(lost);
        match parent {
            Parent::Nobody => unreachable!("a cover in flight is wanted by somebody"),
            Parent::Read { place } => self.read_covered(place, lost),
            Parent::Job { place, .. } => self.job_step_done(place, lost),
        }
    }
}
