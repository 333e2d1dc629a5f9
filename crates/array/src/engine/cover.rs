//! Rebuilding one chunk from its cover: for a failed device, an unreadable chunk, or a checksum that does not match.
//!
//! As much is read as the code word has data; a piece that turns out bad is replaced by another one. A sum of several
//! pieces is one: it is good if all of them are. The result is checked against the chunk's own checksum, and written back
//! where the chunk was bad on a working device.

use super::tag::{Purpose, Tag};
use super::{Content, Engine};
use crate::plan::{Codeword, Piece, Word};
use block::{IoFault, OpKind, Slot, Stream};
use std::ops::Range;

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

/// What the code has at one index: one piece, or the sum of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PartState {
    Untried,
    /// `asked` of its pieces have been asked for, `added` have come and are added up in the slot.
    Reading {
        asked: usize,
        added: usize,
        sum: Option<Slot>,
    },
    Good(Slot),
    Bad,
}

/// One index of the code.
#[derive(Clone, Debug)]
struct Part {
    pieces: Range<usize>,
    state: PartState,
}

/// A cover in flight.
#[derive(Default)]
pub(super) struct Cover {
    word: Codeword,
    parts: Vec<Part>,
    /// For each piece the slot that it is being read into.
    reads: Vec<Option<Slot>>,
    in_flight: usize,
    target: Option<Piece>,
    out: Option<Slot>,
    parent: Parent,
    heal: bool,
    ticket: Option<u64>,
    /// Waits in the queue of covers that lack buffers.
    stalled: bool,
}

impl Cover {
    fn count(&self, is: impl Fn(&PartState) -> bool) -> usize {
        self.parts.iter().filter(|part| is(&part.state)).count()
    }
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
        cover.parts.clear();
        let untried = |pieces| Part { pieces, state: PartState::Untried };
        cover.parts.extend(cover.word.parts().map(untried));
        cover.reads.clear();
        cover.reads.resize(cover.word.pieces.len(), None);
        cover.in_flight = 0;
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

    /// Asks for what is still needed: the other pieces of sums that were begun, then further indices.
    fn advance_cover(&mut self, place: u32) {
        let index = self.covers[place].target.expect("a cover in flight has a target").index;
        let needed = self.covers[place].word.data_count;
        for part in 0..self.covers[place].parts.len() {
            if !self.ask_for_rest(place, part) {
                return self.stall_cover(place);
            }
        }
        loop {
            let cover = &self.covers[place];
            let good = cover.count(|state| matches!(state, PartState::Good(_)));
            let reading = cover.count(|state| matches!(state, PartState::Reading { .. }));
            if good == needed {
                if cover.in_flight == 0 {
                    self.rebuild_cover(place);
                }
                return;
            }
            if good + reading >= needed {
                return;
            }
            let next = cover.parts.iter().position(|part| {
                let pieces = &cover.word.pieces[part.pieces.clone()];
                part.state == PartState::Untried
                    && pieces.iter().all(|piece| piece.index != index && self.health.is_readable(piece.addr))
            });
            let Some(next) = next else {
                if cover.in_flight == 0 {
                    self.end_cover(place, true);
                }
                return;
            };
            self.covers[place].parts[next].state = PartState::Reading { asked: 0, added: 0, sum: None };
            if !self.ask_for_rest(place, next) {
                return self.stall_cover(place);
            }
        }
    }

    fn stall_cover(&mut self, place: u32) {
        if !std::mem::replace(&mut self.covers[place].stalled, true) {
            self.stalled_covers.push_back(place);
        }
    }

    /// Asks for pieces of an index that is being read: one at least is always under way, the others too if buffers are
    /// plenty. `false` if there is no buffer for the one.
    fn ask_for_rest(&mut self, place: u32, part: usize) -> bool {
        let pieces = self.covers[place].parts[part].pieces.clone();
        while let PartState::Reading { asked, added, sum } = self.covers[place].parts[part].state {
            let spare = self.pool.free_count() > self.store.slots_kept();
            if asked == pieces.len() || (asked > added && !spare) {
                break;
            }
            let Some(slot) = self.pool.alloc() else { return asked > added };
            self.covers[place].parts[part].state = PartState::Reading { asked: asked + 1, added, sum };
            self.read_piece(place, pieces.start + asked, slot);
        }
        true
    }

    fn read_piece(&mut self, place: u32, step: usize, slot: Slot) {
        let cover = &mut self.covers[place];
        cover.reads[step] = Some(slot);
        cover.in_flight += 1;
        let piece = cover.word.pieces[step];
        let tag = Tag { purpose: Purpose::CoverRead, dev: piece.addr.dev, id: place, step: step as u32 };
        let stream = if piece.index < self.store.code.width_max() {
            Stream::Data
        } else if self.store.is_log(piece.addr.dev) {
            Stream::Log
        } else {
            Stream::Parity
        };
        self.push_chunk_op(tag, OpKind::Read, stream, piece.addr, slot);
    }

    /// A piece was read.
    pub(super) fn cover_read_done(&mut self, tag: Tag, result: Result<(), IoFault>) {
        let (place, step) = (tag.id, tag.step as usize);
        let slot = self.covers[place].reads[step].take().expect("a completion belongs to a piece being read");
        self.covers[place].in_flight -= 1;
        let piece = self.covers[place].word.pieces[step];
        let good = self.verify_read(piece.addr, piece.crc, slot, result);
        let parts = &self.covers[place].parts;
        let part = parts.iter().position(|part| part.pieces.contains(&step)).expect("it lists its pieces");
        self.piece_came(place, part, slot, good);
        self.advance_cover(place);
    }

    fn piece_came(&mut self, place: u32, part: usize, slot: Slot, good: bool) {
        let part = &mut self.covers[place].parts[part];
        let PartState::Reading { asked, added, sum } = part.state else {
            // Another piece of the sum was bad.
            return self.pool.free(slot);
        };
        if !good {
            part.state = PartState::Bad;
            sum.into_iter().for_each(|sum| self.pool.free(sum));
            return self.pool.free(slot);
        }
        let total = sum.unwrap_or(slot);
        part.state = match added + 1 == part.pieces.len() {
            true => PartState::Good(total),
            false => PartState::Reading { asked, added: added + 1, sum: Some(total) },
        };
        if total != slot {
            super::compute::add(&mut self.pool, total, slot);
            self.pool.free(slot);
        }
    }

    /// Enough pieces are at hand.
    fn rebuild_cover(&mut self, place: u32) {
        let cover = &self.covers[place];
        let (target, out) = (cover.target.expect("in flight"), cover.out.expect("in flight"));
        let len = self.pool.slot_bytes();
        let columns: Vec<usize> =
            cover.word.pieces[..cover.word.data_count].iter().map(|p| p.index).collect();
        let present: Vec<(usize, usize)> = cover
            .parts
            .iter()
            .filter_map(|part| match part.state {
                PartState::Good(slot) => {
                    Some((cover.word.pieces[part.pieces.start].index, self.pool.offset(slot)))
                }
                PartState::Untried | PartState::Reading { .. } | PartState::Bad => None,
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
                self.stats.healed += 1;
            }
            Err(fault) => self.write_fault(tag.dev, fault),
        }
        self.end_cover(tag.id, false);
    }

    fn end_cover(&mut self, place: u32, lost: bool) {
        let mut cover = std::mem::take(&mut self.covers[place]);
        debug_assert_eq!(cover.in_flight, 0, "no piece is on its way any more");
        for part in cover.parts.drain(..) {
            match part.state {
                PartState::Good(slot) | PartState::Reading { sum: Some(slot), .. } => self.pool.free(slot),
                PartState::Untried | PartState::Reading { sum: None, .. } | PartState::Bad => {}
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
