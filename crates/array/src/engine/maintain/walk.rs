//! Which code words rebuild and scrub look at, in which order, and how many there are.
//!
//! What was never written is neither read nor rebuilt, so it counts for nothing in how far the work is and
//! how long it takes: the code words in use are counted before the first of them is read. Both walks pass
//! over a bounded number in a turn.

use super::{Maintenance, Phase, WorkKind};
use crate::engine::Core;
use crate::plan::Word;

/// Code words not in use that are passed over in one turn.
const UNUSED_SKIPPED_MAX: usize = 1 << 16;

/// Progress of the count.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Survey {
    next: u64,
    /// Code words in use so far.
    used: u64,
    /// Of those, before the one at which the work begins.
    before: u64,
}

impl Maintenance {
    /// Counts what there is to look at; `false` if it goes on in the next turn.
    pub(super) fn survey(&mut self, core: &mut Core) -> bool {
        let count = core.scheme.word_count(&core.store);
        let Phase::Survey { survey, first } = &self.run_mut().phase else { return true };
        let (mut survey, first) = (*survey, *first);
        let ended = self.survey_on(core, &mut survey, first);
        let run = self.run_mut();
        if !ended {
            run.phase = Phase::Survey { survey, first };
            return false;
        }
        let (used, before) = survey.counted();
        let left = match run.kind {
            // All the way round: another member may have joined after the first words.
            WorkKind::Rebuild => count,
            WorkKind::Scrub => {
                run.progress.done = before;
                count.saturating_sub(first)
            }
        };
        let ahead = if run.kind == WorkKind::Rebuild { used } else { used - before };
        run.progress.total = run.progress.done + ahead;
        run.phase = Phase::Stripes { next: first, left };
        run.save.walk_from(first);
        true
    }

    /// The next code word to be looked at; `None` if there is none, or if enough were passed over for one
    /// turn.
    pub(super) fn next_target(&mut self, core: &mut Core) -> Option<Word> {
        let run = self.run_mut();
        while let Some(word) = run.again.pop_front() {
            // A row that was freed meanwhile is not looked at: it may be written again at any moment.
            let is_free = |row: u32| core.scheme.word_at(&core.store, row.into()).is_none();
            if !matches!(word, Word::Row(row) if is_free(row)) {
                run.progress.done = run.progress.done.saturating_sub(1);
                return Some(word);
            }
        }
        match &mut run.phase {
            Phase::Stripes { next, left } => {
                let count = core.scheme.word_count(&core.store);
                for _ in 0..UNUSED_SKIPPED_MAX {
                    if *left == 0 {
                        return None;
                    }
                    let index = if *next < count { *next } else { 0 };
                    if index == 0 {
                        run.save.walk_from(0);
                    }
                    (*next, *left) = (index + 1, *left - 1);
                    match core.scheme.word_at(&core.store, index) {
                        // Whoever holds a stripe may be about to use it.
                        Some(Word::Stripe(stripe))
                            if !core.may_be_in_use(stripe) && !core.locks.is_held(stripe) => {}
                        Some(word) => return Some(word),
                        None => {}
                    }
                }
                None
            }
            Phase::Words { left } => left.pop_front(),
            Phase::Metadata { .. }
            | Phase::Commit { .. }
            | Phase::Survey { .. }
            | Phase::Settle { .. }
            | Phase::Seal { .. } => None,
        }
    }

    /// Counts on, a bounded number of code words in a turn; what lies before word `first` apart. `true` when
    /// all are counted.
    fn survey_on(&mut self, core: &mut Core, survey: &mut Survey, first: u64) -> bool {
        let count = core.scheme.word_count(&core.store);
        let end = count.min(survey.next + UNUSED_SKIPPED_MAX as u64);
        for index in survey.next..end {
            let used = match core.scheme.word_at(&core.store, index) {
                Some(Word::Stripe(stripe)) => core.may_be_in_use(stripe),
                Some(Word::Log(_) | Word::Row(_)) => true,
                None => false,
            };
            survey.used += u64::from(used);
            survey.before += u64::from(used && index < first);
        }
        survey.next = end;
        end == count
    }
}

impl Survey {
    /// The code word that is counted next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Code words in use, and those of them before the first to be looked at.
    fn counted(&self) -> (u64, u64) {
        (self.used, self.before)
    }
}
