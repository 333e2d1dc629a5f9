//! A rebuild that goes on after a restart where it was.
//!
//! Now and then no new unit begins until those under way have ended. Every code word before the next one,
//! from where the walk began, is whole then on the members being rebuilt. When a flush that began after that
//! has ended, so it is durable, and so are the records that say what these words are. Only then their
//! superblocks say how far they are (`Health::rebuilt`), each its own.
//!
//! After a restart the walk begins with the first word again, but takes what is on such a member for what it
//! is while it passes over words before that: it marks their pieces as fresh, and reads and writes nothing.
//! For since the position was noted the member was written to like every other: what a record names of it
//! was durable with the record, and recovery verifies or writes what was not. A member that was out of
//! service meanwhile comes back with another serial number, and from the beginning.
//!
//! It is not so with schemes that write in place: recovery carries writes out again with what it finds, and
//! may leave a member out that is not whole. Nor is it so with log stripes: what they need besides newest
//! versions is looked at word by word in any case. Of both a rebuild begins anew.

use super::{Maintenance, Phase, UpkeepRun, WorkKind};
use crate::engine::Core;
use crate::plan::{Codeword, Word};
use crate::planted::{Planted, planted};
use crate::scheme::Located;
use block::DevIndex;

/// Without so much rebuilt, the position is noted after this long.
const SAVE_NS: u64 = 10_000_000_000;

/// A position on its way to the superblocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Saving {
    #[default]
    Nothing,
    /// No unit begins until those under way have ended.
    Draining,
    /// Words from `from` to `end` are whole, and durably so when a flush later than `after` has ended.
    Flushing { after: u64, from: u64, end: u64 },
}

/// How much of a run a restart need not do again.
#[derive(Clone, Copy, Default)]
pub(super) struct SavePoint {
    saving: Saving,
    /// The word at which the present walk began; it has passed all behind it.
    from: u64,
    /// Bytes rebuilt, and the time, when a position was noted last.
    bytes: u64,
    at_ns: u64,
    /// A word was passed over that could not be made whole: no position behind it holds.
    holed: bool,
}

impl SavePoint {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { at_ns: now_ns, ..Self::default() }
    }

    /// The walk begins at a word, or has come to the first again.
    pub(super) fn walk_from(&mut self, first: u64) {
        self.from = first;
    }

    /// A word cannot be made whole.
    pub(super) fn note_hole(&mut self) {
        self.holed = true;
    }

    /// Another member joins: what is on its way to the superblocks is not true of that one.
    pub(super) fn forsake(&mut self) {
        self.saving = Saving::Nothing;
    }

    /// What of it decides how the run goes on.
    pub(super) fn mark(&self) -> u64 {
        match self.saving {
            Saving::Nothing => 0,
            Saving::Draining => 1,
            Saving::Flushing { .. } => 2,
        }
    }
}

impl UpkeepRun {
    /// Whether no unit may begin, so that a position can be noted. But what a unit failed on is looked at
    /// first.
    pub(super) fn is_draining(&self) -> bool {
        self.save.saving == Saving::Draining
            && self.again.is_empty()
            && matches!(self.phase, Phase::Stripes { left: 1.., .. })
    }

    fn is_drained(&self) -> bool {
        self.units == 0 && self.awaited.is_empty() && self.again.is_empty()
    }

    /// The word that the walk comes to next, if a position can be noted for it.
    fn position_to_note(&self, core: &Core) -> Option<u64> {
        let Phase::Stripes { next, .. } = self.phase else { return None };
        let is_sound = self.kind == WorkKind::Rebuild && !self.save.holed && self.report.lost == 0;
        let gains = core.members_to_note(self.save.from, next).next().is_some();
        (is_sound && gains && !core.board.frozen).then_some(next)
    }
}

impl Core {
    /// Members being rebuilt that hold all words before `from`, and not yet known to hold those before `end`.
    fn members_to_note(&self, from: u64, end: u64) -> impl Iterator<Item = DevIndex> + '_ {
        let kept = move |dev: &DevIndex| (from..end).contains(&self.health.rebuilt(*dev));
        let may_keep = !self.store.config.scheme.is_in_place();
        self.health
            .writable_main()
            .filter(move |dev| may_keep && self.health.is_rebuilding(*dev) && kept(dev))
    }

    /// Words from `from` to `end` are durably whole on the members being rebuilt.
    fn note_rebuilt(&mut self, from: u64, end: u64) {
        let devices: Vec<DevIndex> = self.members_to_note(from, end).collect();
        if devices.is_empty() || self.board.frozen {
            return;
        }
        devices.into_iter().for_each(|dev| self.health.note_rebuilt(dev, end));
        // A stop is about to write superblocks anyway.
        if !self.board.halted && !self.board.read_only {
            self.health.config_seq += 1;
            self.publish_members();
        }
    }

    /// Takes what a member holds of a word for what it is, if it was rebuilt before a restart; whether
    /// anything was.
    pub(super) fn take_over(&mut self, word: Word, pieces: &mut Codeword) -> bool {
        let index = match word {
            Word::Stripe(stripe) => stripe.get(),
            Word::Row(row) => row.into(),
            Word::Log(_) => return false,
        };
        if !self.health.holds_word(index) {
            return false;
        }
        self.scheme.codeword(&self.store, word, pieces);
        if let Word::Stripe(stripe) = word {
            let geometry = self.store.config.geometry;
            for column in 0..geometry.data_count() {
                let newest = self.scheme.locate(&self.store, geometry.lcn_at(stripe, column));
                if let Located::At { piece, word: Word::Log(_) } = newest {
                    pieces.pieces.push(piece);
                }
            }
        }
        let mut took = false;
        for piece in &pieces.pieces {
            if self.lacks(piece) && self.health.rebuilt(piece.addr.dev) > index {
                self.health.mark_fresh(piece.addr);
                took = true;
            }
        }
        took
    }
}

impl Maintenance {
    /// Notes a position if it is time, or brings one on its way further.
    pub(super) fn save_on(&mut self, core: &mut Core) {
        let Some(run) = self.run.as_mut().filter(|run| matches!(run.phase, Phase::Stripes { .. })) else {
            return;
        };
        match run.save.saving {
            Saving::Nothing => {
                let rebuilt = run.progress.rebuilt_bytes - run.save.bytes;
                let is_due = rebuilt >= core.options.rebuild_save_bytes
                    || rebuilt > 0 && core.now_ns.saturating_sub(run.save.at_ns) >= SAVE_NS;
                if is_due && run.position_to_note(core).is_some() {
                    run.save.saving = Saving::Draining;
                }
            }
            Saving::Draining if run.is_drained() => self.flush_position(core),
            Saving::Draining | Saving::Flushing { .. } => {}
        }
    }

    /// All words before the next one are whole: durable, if that is worth noting.
    pub(super) fn flush_position(&mut self, core: &mut Core) {
        let Some(run) = &mut self.run else { return };
        let Some(end) = run.position_to_note(core).filter(|_| run.is_drained()) else {
            return run.save.forsake();
        };
        let from = run.save.from;
        (run.save.bytes, run.save.at_ns) = (run.progress.rebuilt_bytes, core.now_ns);
        if planted(Planted::PositionBeforeFlush) {
            run.save.forsake();
            return core.note_rebuilt(from, end);
        }
        run.save.saving = Saving::Flushing { after: core.board.flush.want_after(), from, end };
    }

    /// A flush has ended: a position that waited for it goes to the superblocks.
    pub(super) fn position_flushed(&mut self, core: &mut Core, number: u64) {
        if let Some(run) = &mut self.run
            && let Saving::Flushing { after, from, end } = run.save.saving
            && number > after
        {
            run.save.forsake();
            core.note_rebuilt(from, end);
        }
    }

    /// The array is being stopped: the position is noted when what is under way has ended.
    pub(super) fn save_before_stop(&mut self, core: &mut Core) {
        if let Some(run) = &mut self.run
            && run.save.saving == Saving::Nothing
            && run.position_to_note(core).is_some()
        {
            run.save.saving = Saving::Draining;
        }
    }
}
