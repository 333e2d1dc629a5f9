//! What of a member holds nothing that anybody needs: it is not copied.
//!
//! Whoever looks after the pair says so ahead of the copy, a stretch at a time. What is written there
//! afterwards, before the copy has come by, is in use again.

use super::{Pair, PairStage, Paired, overlap};
use crate::planted::{Planted, planted};
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a member ahead of the copy that are to be known.
pub const MAP_AHEAD_BYTES: u64 = 8 << 30;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Unused {
    /// In ascending order, none touches another.
    ranges: VecDeque<Range<u64>>,
    /// Up to here it is known.
    known_to: u64,
    /// Bytes passed over so far.
    pub(super) passed_bytes: u64,
}

impl Unused {
    fn learn(&mut self, ranges: Vec<Range<u64>>, known_to: u64) {
        self.ranges.extend(ranges);
        self.known_to = known_to;
    }

    /// Where the copy goes on that stands at `next`.
    pub(super) fn pass(&mut self, mut next: u64) -> u64 {
        while let Some(range) = self.ranges.front().filter(|range| range.start <= next) {
            let end = range.end;
            self.passed_bytes += end.saturating_sub(next);
            next = next.max(end);
            self.ranges.pop_front();
        }
        next
    }

    /// Where the next range begins, as the copy stands now.
    pub(super) fn next_start(&self) -> u64 {
        self.ranges.front().map_or(u64::MAX, |range| range.start)
    }

    /// Something is written to a range.
    pub(super) fn use_again(&mut self, written: &Range<u64>) {
        if planted(Planted::SkipWhatIsWritten) {
            return;
        }
        let mut at = self.ranges.partition_point(|range| range.end <= written.start);
        while let Some(range) = self.ranges.get(at).filter(|range| overlap(range, written)).cloned() {
            self.ranges.remove(at);
            for rest in [range.start..written.start.max(range.start), written.end.min(range.end)..range.end] {
                if rest.start < rest.end {
                    self.ranges.insert(at, rest);
                    at += 1;
                }
            }
        }
    }
}

impl<D> Pair<D> {
    /// See [`Paired::wants_map`].
    fn wants_map(&self) -> Option<Range<u64>> {
        let known_to = self.unused.known_to.max(self.next);
        let soon = known_to < self.next.saturating_add(MAP_AHEAD_BYTES / 2);
        let end = self.plan.length_bytes.min(known_to.saturating_add(MAP_AHEAD_BYTES));
        (self.stage == PairStage::Copying && soon && known_to < end).then_some(known_to..end)
    }
}

impl<D> Paired<D> {
    /// Of which bytes of the member it is time to say what is not in use; `None` if of none.
    pub fn wants_map(&self) -> Option<Range<u64>> {
        self.pair.as_ref()?.wants_map()
    }

    /// These ranges, in ascending order, of what [`Paired::wants_map`] asked for, up to `known_to`, hold
    /// nothing that anybody needs at this moment, and nothing is being written there. They are not copied
    /// unless they are written to first. To be said before the copy goes on.
    pub fn learn_unused(&mut self, ranges: Vec<Range<u64>>, known_to: u64) {
        if let Some(pair) = &mut self.pair {
            pair.unused.learn(ranges, known_to);
        }
    }
}
