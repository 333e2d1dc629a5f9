//! How a range becomes the same on a member and its partner.

use super::{FLUSH_TAG, OWN, Pair, PairFault, PairStage, length, overlap};
use crate::planted::{Planted, planted};
use crate::{COPY_TAGS, Completion, DevIndex, DeviceOp, DeviceSet, IoFault, OpKind, Pool, Slot, Stream};
use std::ops::Range;

/// Pieces of a range at most: as many slots of the caller's are taken of each device.
const PIECES_MAX: usize = 32;
/// The caller keeps this share of its slots.
const LEFT_SHARE: usize = 2;
/// Ranges that could not be read are listed one by one up to so many; then nothing more is copied.
const UNREAD_MAX: usize = 1 << 16;

/// A range that is being copied.
pub(super) struct Copying {
    pub(super) range: Range<u64>,
    pub(super) phase: Phase,
    pub(super) pieces: Vec<Piece>,
    /// Operations that have not ended.
    pub(super) left: usize,
    /// Those of the partner.
    pub(super) left_to_partner: usize,
    pub(super) since_ns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Writes to it that were under way before end.
    Draining,
    Reading,
    Writing,
}

pub(super) struct Piece {
    pub(super) range: Range<u64>,
    member: Slot,
    partner: Slot,
    /// The member's was read.
    readable: bool,
    /// The partner's was read.
    known: bool,
}

impl<D: DeviceSet> Pair<D> {
    /// Carries the copying on as far as it goes now.
    pub(super) fn pump(&mut self, inner: &mut D, pool: &mut Pool) {
        if self.stage != PairStage::Copying {
            return self.drop_range(pool);
        }
        if self.range.is_none() {
            self.choose(pool);
        }
        self.read(inner, pool);
        let at_end =
            self.range.is_none() && self.unread.again.is_empty() && self.next >= self.plan.length_bytes;
        if at_end && self.flushing_since_ns.is_none() {
            self.flushing_since_ns = Some(self.clock.now_ns);
            // What was copied is durable before anything on the partner says what it is.
            let (tag, dev, kind, stream) = (FLUSH_TAG, OWN, OpKind::Flush, Stream::Metadata);
            let op =
                DeviceOp { tag, dev, kind, stream, class: 0, offset_bytes: 0, length_bytes: 0, slot: None };
            self.partner.submit(pool, &[op]);
        }
    }

    /// The partner has been flushed.
    pub(super) fn flushed(&mut self, result: Result<(), IoFault>) {
        self.flushing_since_ns = None;
        match result {
            Ok(()) if self.stage == PairStage::Copying => self.stage = PairStage::Level,
            Ok(()) => {}
            Err(fault) => self.fail(PairFault::Partner(fault)),
        }
    }

    /// What is not in use is not looked at; what is apart is no part of any range, so that writes to it need
    /// not wait.
    fn pass_over(&mut self) {
        loop {
            let before = self.next;
            self.next = self.unused.pass(self.next);
            if let Some(apart) = self.plan.apart.iter().find(|apart| apart.contains(&self.next)) {
                self.next = apart.end;
            }
            if self.next == before {
                return;
            }
        }
    }

    /// The next range, if one may be looked at now.
    fn choose(&mut self, pool: &Pool) {
        self.pass_over();
        if self.next >= self.plan.length_bytes {
            return self.choose_again();
        }
        let at_most = slot_bytes(pool) * u64::try_from(PIECES_MAX).unwrap_or(1);
        let mut end = self.plan.length_bytes.min(self.next.saturating_add(at_most));
        if let Some(allowance) = &mut self.allowance {
            if *allowance <= 0 {
                return;
            }
            let length = i64::try_from(end.saturating_sub(self.next)).unwrap_or(i64::MAX);
            *allowance = allowance.saturating_sub(length);
        }
        let ahead = self.plan.apart.iter().map(|apart| apart.start).filter(|&start| start > self.next);
        end = ahead.fold(end, u64::min).min(self.unused.next_start());
        if self.next < end {
            self.begin_range(self.next..end);
        }
    }

    /// The same of what could not be read before: a piece at a time, as it was then.
    fn choose_again(&mut self) {
        if let Some(range) = self.unread.again.pop() {
            self.begin_range(range);
        }
    }

    fn begin_range(&mut self, range: Range<u64>) {
        let (phase, since_ns) = (Phase::Draining, self.clock.now_ns);
        self.range =
            Some(Copying { range, phase, pieces: Vec::new(), left: 0, left_to_partner: 0, since_ns });
    }

    /// Reads the range from both devices, once nothing is being written to it and there are slots.
    fn read(&mut self, inner: &mut D, pool: &mut Pool) {
        let Some(copying) = &mut self.range else { return };
        let busy = self.joins.values().any(|join| overlap(&join.range, &copying.range));
        if copying.phase != Phase::Draining || (busy && !planted(Planted::CopyUnlocked)) {
            return;
        }
        let spare = pool.free_count().saturating_sub(pool.slot_count() / LEFT_SHARE) / 2;
        let slot_bytes = slot_bytes(pool);
        let mut at = copying.range.start;
        while at < copying.range.end && copying.pieces.len() < spare.clamp(1, PIECES_MAX) {
            let (Some(member), other) = (pool.alloc(), pool.alloc()) else { break };
            let Some(partner) = other else {
                pool.free(member);
                break;
            };
            let unbroken = self.plan.unbroken_bytes - at % self.plan.unbroken_bytes;
            let range = at..copying.range.end.min(at + slot_bytes.min(unbroken));
            at = range.end;
            copying.pieces.push(Piece { range, member, partner, readable: true, known: true });
        }
        if copying.pieces.is_empty() {
            return;
        }
        copying.range.end = at;
        (copying.phase, copying.since_ns) = (Phase::Reading, self.clock.now_ns);
        (copying.left, copying.left_to_partner) = (2 * copying.pieces.len(), copying.pieces.len());
        let of = self.plan.of;
        let ops = |dev, slot_of: fn(&Piece) -> Slot| {
            let op =
                move |(tag, piece): (u64, &Piece)| copy_op(tag, dev, OpKind::Read, piece, slot_of(piece));
            (COPY_TAGS..).zip(&copying.pieces).map(op).collect::<Vec<_>>()
        };
        inner.submit(pool, &ops(of, |piece| piece.member));
        self.partner.submit(pool, &ops(OWN, |piece| piece.partner));
    }

    /// An operation of copying has ended.
    pub(super) fn copied(&mut self, completion: Completion, of_partner: bool, pool: &mut Pool) {
        let Some(copying) = &mut self.range else { return };
        let piece =
            usize::try_from(completion.tag - COPY_TAGS).ok().and_then(|at| copying.pieces.get_mut(at));
        let Some(piece) = piece else { return };
        copying.left -= 1;
        copying.left_to_partner -= usize::from(of_partner);
        if let Err(fault) = completion.result {
            match (copying.phase, of_partner) {
                (Phase::Reading, true) => piece.known = false,
                (Phase::Reading, false) => piece.readable = false,
                (Phase::Writing | Phase::Draining, _) => self.fail(PairFault::Partner(fault)),
            }
        }
        let Some(copying) = &mut self.range else { return };
        if copying.left > 0 {
            return;
        }
        if copying.phase == Phase::Reading && self.stage == PairStage::Copying {
            self.write(pool);
        } else {
            self.end_range(pool);
        }
    }

    /// Writes what differs.
    fn write(&mut self, pool: &mut Pool) {
        let Some(copying) = &mut self.range else { return };
        // The partner does not owe what the member took to be read.
        (copying.phase, copying.since_ns) = (Phase::Writing, self.clock.now_ns);
        for (tag, piece) in (COPY_TAGS..).zip(&copying.pieces) {
            let bytes = usize::try_from(length(&piece.range)).unwrap_or(usize::MAX);
            let same = || pool.bytes(piece.member).get(..bytes) == pool.bytes(piece.partner).get(..bytes);
            if !piece.readable {
                self.unread.ranges.push(piece.range.clone());
            } else if !piece.known || !same() {
                self.partner_ops.push(copy_op(tag, OWN, OpKind::Write, piece, piece.member));
                self.written_bytes += length(&piece.range);
                (copying.left, copying.left_to_partner) = (copying.left + 1, copying.left_to_partner + 1);
            }
        }
        if self.unread.ranges.len() > UNREAD_MAX {
            self.fail(PairFault::MemberUnread);
        }
        let ops = std::mem::take(&mut self.partner_ops);
        self.partner.submit(pool, &ops);
        if ops.is_empty() {
            self.end_range(pool);
        }
    }

    /// The range is done with; what waited for it goes on with the next submission.
    fn end_range(&mut self, pool: &mut Pool) {
        let Some(copying) = self.range.take() else { return };
        if self.stage == PairStage::Copying {
            self.next = self.next.max(copying.range.end);
        }
        for piece in copying.pieces {
            pool.free(piece.member);
            pool.free(piece.partner);
        }
    }

    /// A range that was not begun is not needed any more.
    fn drop_range(&mut self, pool: &mut Pool) {
        if self.range.as_ref().is_some_and(|copying| copying.phase == Phase::Draining) {
            self.end_range(pool);
        }
    }
}

fn copy_op(tag: u64, dev: DevIndex, kind: OpKind, piece: &Piece, slot: Slot) -> DeviceOp {
    DeviceOp {
        tag,
        dev,
        kind,
        stream: Stream::Data,
        class: 0,
        offset_bytes: piece.range.start,
        length_bytes: length(&piece.range),
        slot: Some(slot),
    }
}

fn slot_bytes(pool: &Pool) -> u64 {
    u64::try_from(pool.slot_bytes()).unwrap_or(u64::MAX)
}
