//! Rebuilding one chunk from its cover: for a failed device, an unreadable chunk, or a checksum that does not
//! match.
//!
//! As much is read as the code word has data; a piece that turns out bad is replaced by another one. A sum of
//! several pieces is one: it is good if all of them are. The result is checked against the chunk's own
//! checksum, and written back where the chunk was bad on a working device.
//!
//! Covers that lack buffers queue up. The first alone takes any, and those behind it hold none once their
//! reads have ended: when a device fails in the middle of a unit, each of many covers would else hold some of
//! what another one waits for. Jobs leave as many buffers as one cover needs. What has asked for all that it
//! needs needs no further buffer, unless a piece is bad.

use super::compute::memory_of;
use super::job::{Heal, Job, Judged, StepEnd};
use super::read::ReadOp;
use super::{Content, Core};
use super::{Purpose, Tag};
use crate::plan::{Codeword, Piece, Plan, PlanRead, Word};
use block::slab::Key;
use block::{DevIndex, IoFault, OpKind, Slot};
use std::ops::Range;

/// Who wants the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parent {
    /// A single read.
    Read { read: Key<ReadOp> },
    /// A read of a job's plan.
    Job { job: Key<Job>, step: u32 },
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

/// How far a cover has asked for what it needs.
enum Asked {
    All,
    /// Buffers ran out.
    Some,
    /// There is nothing more to ask for: it has ended, or its result is being written.
    Ended,
}

/// A cover in flight.
pub(super) struct Cover {
    word: Codeword,
    parts: Vec<Part>,
    /// For each piece the slot that it is being read into.
    reads: Vec<Option<Slot>>,
    in_flight: usize,
    want: Want,
    ticket: u64,
    /// Waits in the queue of covers that lack buffers.
    stalled: bool,
}

/// What a cover is to rebuild, and for whom.
#[derive(Clone, Copy)]
struct Want {
    target: Piece,
    /// Where to.
    out: Slot,
    parent: Parent,
    heal: Heal,
}

impl Cover {
    fn new(want: Want, ticket: u64) -> Self {
        let (word, parts, reads) = (Codeword::default(), Vec::new(), Vec::new());
        Self { word, parts, reads, in_flight: 0, want, ticket, stalled: false }
    }

    fn count(&self, is: impl Fn(&PartState) -> bool) -> usize {
        self.parts.iter().filter(|part| is(&part.state)).count()
    }
}

impl Core {
    /// Starts to rebuild what a read of a job's plan was to give.
    pub(super) fn cover_for_job(&mut self, key: Key<Job>, step: u32, read: PlanRead, heal: Heal) {
        let mut word = std::mem::take(&mut self.jobs.scratch);
        self.scheme.codeword(&self.store, read.word, &mut word);
        let alone = !word.is_sum(read.index);
        self.jobs.scratch = word;
        if !alone {
            // Nothing covers an addend by itself; the planner has another way.
            return self.job_step_done(key, StepEnd::Lost);
        }
        let target = Piece { index: read.index, addr: read.addr, crc: read.crc };
        self.start_cover(Parent::Job { job: key, step }, read.word, target, read.slot, heal);
    }

    /// Starts to rebuild the chunk of a single read.
    pub(super) fn cover_for_read(
        &mut self,
        key: Key<ReadOp>,
        word: Word,
        piece: Piece,
        out: Slot,
        heal: Heal,
    ) {
        self.start_cover(Parent::Read { read: key }, word, piece, out, heal);
    }

    /// Starts to rebuild `target`, a piece of `word`, into `out`.
    fn start_cover(&mut self, parent: Parent, word: Word, target: Piece, out: Slot, heal: Heal) {
        let (want, ticket) = (Want { target, out, parent, heal }, self.reads.tickets.issue());
        let key = self.reads.covers.reuse(|| Cover::new(want, ticket));
        let cover = &mut self.reads.covers[key];
        let planned = match parent {
            Parent::Job { job, .. } => planned_word(&self.jobs.table[job].plan, word),
            Parent::Read { .. } => None,
        };
        match planned {
            Some(planned) => cover.word.clone_from(planned),
            None => self.scheme.codeword(&self.store, word, &mut cover.word),
        }
        cover.parts.clear();
        let untried = |pieces| Part { pieces, state: PartState::Untried };
        cover.parts.extend(cover.word.parts().map(untried));
        cover.reads.clear();
        cover.reads.resize(cover.word.pieces.len(), None);
        (cover.want, cover.ticket, cover.in_flight, cover.stalled) = (want, ticket, 0, false);
        self.stats.covers += 1;
        self.advance_cover(key);
    }

    /// Tries again what lacked buffers, the oldest first, as far as they go.
    pub(super) fn retry_stalled_covers(&mut self) {
        while let Some(&first) = self.reads.stalled.front() {
            self.advance_cover(first);
            if self.reads.stalled.front() == Some(&first) {
                return;
            }
        }
    }

    /// Whether a cover may take buffers: none that came before lacks any.
    fn may_take(&self, key: Key<Cover>) -> bool {
        self.reads.stalled.front().is_none_or(|&first| first == key)
    }

    /// Asks for what is still needed, or waits for buffers.
    fn advance_cover(&mut self, key: Key<Cover>) {
        match self.ask_for_pieces(key) {
            Asked::All => self.leave_queue(key),
            Asked::Some => self.stall_cover(key),
            Asked::Ended => {}
        }
    }

    /// A cover lacks no buffers any more.
    fn leave_queue(&mut self, key: Key<Cover>) {
        if std::mem::take(&mut self.reads.covers[key].stalled) {
            self.reads.stalled.retain(|&other| other != key);
        }
    }

    /// The other pieces of sums that were begun, then further indices.
    fn ask_for_pieces(&mut self, key: Key<Cover>) -> Asked {
        let index = self.reads.covers[key].want.target.index;
        let needed = self.reads.covers[key].word.data_count;
        for part in 0..self.reads.covers[key].parts.len() {
            if !self.ask_for_rest(key, part) {
                return Asked::Some;
            }
        }
        loop {
            let cover = &self.reads.covers[key];
            let good = cover.count(|state| matches!(state, PartState::Good(_)));
            let reading = cover.count(|state| matches!(state, PartState::Reading { .. }));
            if good == needed {
                if cover.in_flight > 0 {
                    return Asked::All;
                }
                self.rebuild_cover(key);
                return Asked::Ended;
            }
            if good + reading >= needed {
                return Asked::All;
            }
            let next = cover.parts.iter().position(|part| {
                let pieces = &cover.word.pieces[part.pieces.clone()];
                part.state == PartState::Untried
                    && pieces.iter().all(|piece| piece.index != index && self.health.is_readable(piece.addr))
            });
            let Some(next) = next else {
                if cover.in_flight > 0 {
                    return Asked::All;
                }
                self.end_cover(key, StepEnd::Lost);
                return Asked::Ended;
            };
            self.reads.covers[key].parts[next].state = PartState::Reading { asked: 0, added: 0, sum: None };
            if !self.ask_for_rest(key, next) {
                return Asked::Some;
            }
        }
    }

    fn stall_cover(&mut self, key: Key<Cover>) {
        if !std::mem::replace(&mut self.reads.covers[key].stalled, true) {
            self.reads.stalled.push_back(key);
        }
        let may_keep = self.may_take(key);
        let cover = &mut self.reads.covers[key];
        if may_keep || cover.in_flight > 0 {
            return;
        }
        for part in &mut cover.parts {
            match part.state {
                PartState::Good(slot) | PartState::Reading { sum: Some(slot), .. } => self.pool.free(slot),
                PartState::Reading { sum: None, .. } => {}
                PartState::Untried | PartState::Bad => continue,
            }
            part.state = PartState::Untried;
        }
    }

    /// Asks for pieces of an index that is being read: of a sum two at least, as the buffer of the second is
    /// that of each further one; the others too if buffers are plenty. `false` if there are none for these.
    fn ask_for_rest(&mut self, key: Key<Cover>, part: usize) -> bool {
        let pieces = self.reads.covers[key].parts[part].pieces.clone();
        while let PartState::Reading { asked, added, sum } = self.reads.covers[key].parts[part].state {
            let spare = self.pool.free_count() > self.store.slots_kept();
            let held = asked - added + usize::from(sum.is_some());
            if asked == pieces.len() || (held > 1 && !spare) {
                break;
            }
            let may_take = self.may_take(key);
            let slot = if may_take { self.pool.alloc() } else { None };
            let Some(slot) = slot else { return held > 1 };
            self.reads.covers[key].parts[part].state = PartState::Reading { asked: asked + 1, added, sum };
            self.read_piece(key, pieces.start + asked, slot);
        }
        true
    }

    fn read_piece(&mut self, key: Key<Cover>, step: usize, slot: Slot) {
        let cover = &mut self.reads.covers[key];
        cover.reads[step] = Some(slot);
        cover.in_flight += 1;
        let piece = cover.word.pieces[step];
        let purpose = Purpose::CoverRead { cover: key, step: step as u32 };
        let tag = Tag { purpose, dev: piece.addr.dev };
        let stream = self.store.stream_of(piece.index, piece.addr.dev);
        self.push_chunk_op(tag, OpKind::Read, stream, piece.addr, slot);
    }

    /// A piece was read.
    pub(super) fn cover_read_done(&mut self, key: Key<Cover>, step: u32, result: Result<(), IoFault>) {
        let step = step as usize;
        let slot =
            self.reads.covers[key].reads[step].take().expect("a completion belongs to a piece being read");
        self.reads.covers[key].in_flight -= 1;
        let piece = self.reads.covers[key].word.pieces[step];
        let judged = self.verify_read(piece.addr, piece.crc, slot, result);
        let parts = &self.reads.covers[key].parts;
        let part = parts.iter().position(|part| part.pieces.contains(&step)).expect("it lists its pieces");
        self.piece_came(key, part, slot, judged);
        self.advance_cover(key);
    }

    fn piece_came(&mut self, key: Key<Cover>, part: usize, slot: Slot, judged: Judged) {
        let part = &mut self.reads.covers[key].parts[part];
        let PartState::Reading { asked, added, sum } = part.state else {
            // Another piece of the sum was bad.
            return self.pool.free(slot);
        };
        if judged == Judged::Bad {
            part.state = PartState::Bad;
            sum.into_iter().for_each(|sum| self.pool.free(sum));
            return self.pool.free(slot);
        }
        let total = sum.unwrap_or(slot);
        part.state = match added + 1 == part.pieces.len() {
            true => PartState::Good(total),
            false => PartState::Reading { asked, added: added + 1, sum: Some(total) },
        };
        let (next, first) = (asked, part.pieces.start);
        let goes_on = next < part.pieces.len();
        if total == slot {
            return;
        }
        if goes_on {
            part.state = PartState::Reading { asked: asked + 1, added: added + 1, sum: Some(total) };
        }
        super::compute::add(&mut self.pool, total, slot);
        if goes_on {
            self.read_piece(key, first + next, slot);
        } else {
            self.pool.free(slot);
        }
    }

    /// Enough pieces are at hand.
    fn rebuild_cover(&mut self, key: Key<Cover>) {
        self.leave_queue(key);
        let cover = &self.reads.covers[key];
        let Want { target, out, heal, .. } = cover.want;
        let columns: Vec<usize> =
            cover.word.pieces[..cover.word.data_count].iter().map(|p| p.index).collect();
        let present: Vec<(usize, usize)> = cover
            .parts
            .iter()
            .filter_map(|part| match part.state {
                PartState::Good(slot) => Some((cover.word.pieces[part.pieces.start].index, slot.index())),
                PartState::Untried | PartState::Reading { .. } | PartState::Bad => None,
            })
            .collect();
        let wanted = [(target.index, out.index())];
        let rebuilt = self.store.code.rebuild_in(&mut memory_of(&mut self.pool), &columns, &present, &wanted);
        let meaningless = self.options.content == Content::Meaningless;
        let good = rebuilt.is_ok()
            && (meaningless || crate::checksum::chunk_checksum(self.pool.bytes(out)) == target.crc);
        if good && heal == Heal::Yes && self.health.is_writable(target.addr.dev) {
            let tag = Tag { purpose: Purpose::Heal { cover: key }, dev: target.addr.dev };
            let stream = self.store.stream_of(target.index, target.addr.dev);
            return self.push_chunk_op(tag, OpKind::Write, stream, target.addr, out);
        }
        self.end_cover(key, if good { StepEnd::Done } else { StepEnd::Lost });
    }

    /// The repaired chunk was written back.
    pub(super) fn heal_done(&mut self, dev: DevIndex, key: Key<Cover>, result: Result<(), IoFault>) {
        match result {
            Ok(()) => {
                self.board.flush.wrote_chunk(self.reads.covers[key].want.target.addr);
                self.health.errors_mut(dev).healed += 1;
                self.stats.healed += 1;
            }
            Err(IoFault::NoSpace) => self.note_unhealed(key),
            Err(fault) => self.write_fault(dev, fault),
        }
        self.end_cover(key, StepEnd::Done);
    }

    /// There was no room for a repaired chunk. A reader has what it wanted; who looks for bad chunks is told.
    fn note_unhealed(&mut self, key: Key<Cover>) {
        if let Parent::Job { job, .. } = self.reads.covers[key].want.parent {
            self.jobs.table[job].unhealed += 1;
        }
    }

    fn end_cover(&mut self, key: Key<Cover>, end: StepEnd) {
        let cover = &mut self.reads.covers[key];
        debug_assert_eq!(cover.in_flight, 0, "no piece is on its way any more");
        for part in cover.parts.drain(..) {
            match part.state {
                PartState::Good(slot) | PartState::Reading { sum: Some(slot), .. } => self.pool.free(slot),
                PartState::Untried | PartState::Reading { sum: None, .. } | PartState::Bad => {}
            }
        }
        self.reads.tickets.finish(cover.ticket);
        let parent = cover.want.parent;
        self.leave_queue(key);
        self.reads.covers.release(key);
        self.stats.lost += u64::from(end == StepEnd::Lost);
        match parent {
            Parent::Read { read } => self.read_covered(read, end),
            Parent::Job { job, .. } => self.job_step_done(job, end),
        }
    }
}

/// A log stripe as the plan that asks for it knows it.
fn planned_word(plan: &Plan, word: Word) -> Option<&Codeword> {
    plan.log_words.iter().find(|(name, _)| *name == word).map(|(_, pieces)| pieces)
}
