//! Chunks of the volume whose content cannot be had: which they are, and the way out.
//!
//! A read that fails for good, and a code word that rebuild or scrub cannot make whole, say that something is
//! lost. Of a code word it is not known which of its chunks are still the newest versions of anything, so
//! every chunk of the volume that may be concerned is read once. What is found is listed until it is written
//! or discarded as a whole; the others are moved to where they have redundancy, by schemes that can do so. A
//! rebuild that met lost code words starts again by itself: at once when the last lost chunk was written,
//! else now and then, for a device that can be read again may have what was missing.
//!
//! The superblocks hold how many there were. After a restart that figure stands until rebuild or scrub have
//! looked at everything.

use super::lock::{Mode, Pending};
use super::read::Wanted;
use super::report::WorkKind;
use super::wake::{Marked, count};
use super::{Activity, Core, Deadline, Work};
use crate::lost::LostChunks;
use crate::plan::Word;
use crate::planted::{Planted, planted};
use crate::scheme::Located;
use block::{ChunkAddr, Lcn, Slot, StripeId};
use std::collections::VecDeque;

/// Chunks that are looked at side by side, each with a buffer.
const LOOKS_MAX: u32 = 8;
/// Chunks waiting to be looked at beyond which rebuild and scrub wait.
const SUSPECTS_MAX: usize = 1 << 16;
/// A rebuild that met lost code words is tried again after so long, then twice as long, up to the longest.
const AGAIN_NS: u64 = 1_000_000_000;
const AGAIN_NS_MAX: u64 = 60_000_000_000;

/// What is lost, as far as known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Losses<'a> {
    /// What was found since assembly and is still lost.
    pub chunks: &'a LostChunks,
    /// How many were lost when the array was last in service; 0 once everything was looked at since.
    pub noted: u64,
    /// A rebuild met code words that cannot be made whole; it is tried again.
    pub unfinished: bool,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct LossList {
    noted: u64,
    suspects: VecDeque<Lcn>,
    /// Code words they were found in.
    words: Vec<Word>,
    looking: u32,
    unfinished: bool,
    again_ns: u64,
    delay_ns: u64,
    scratch: Vec<Lcn>,
    /// What the superblocks say.
    published: u64,
}

impl LossList {
    /// As the superblocks say.
    pub(super) fn new(noted: u64) -> Self {
        Self { noted, published: noted, ..Self::default() }
    }

    /// The figure for the superblocks, with so many known to be lost.
    pub(super) fn to_note(&self, known: u64) -> u64 {
        known.max(self.noted).max(self.unfinished.into())
    }

    /// Whether so much waits to be looked at that nothing more should be found for now.
    pub(super) fn is_behind(&self) -> bool {
        self.suspects.len().max(self.words.len()) >= SUSPECTS_MAX
    }

    pub(super) fn is_busy(&self) -> bool {
        self.looking > 0 || !self.suspects.is_empty()
    }

    /// Whether a stripe could not be made whole, and what is lost of it is being found out.
    pub(super) fn suspects_stripe(&self, stripe: StripeId) -> bool {
        self.words.contains(&Word::Stripe(stripe))
    }
}

impl Core {
    /// What is lost, as far as known.
    pub(super) fn losses(&self) -> Losses<'_> {
        let LossList { noted, unfinished, .. } = self.board.losses;
        Losses { chunks: &self.store.lost, noted, unfinished }
    }

    /// A chunk of the volume, as it was at `addr`, could be read or could not. A version that has been
    /// replaced meanwhile tells nothing.
    pub(super) fn note_read(&mut self, lcn: Lcn, addr: Option<ChunkAddr>, could: bool) {
        if could && self.store.lost.count() == 0 {
            return;
        }
        let newest = match self.scheme.locate(&self.store, lcn) {
            Located::At { piece, .. } => Some(piece.addr),
            Located::Zero => None,
        };
        if newest != addr {
            return;
        }
        if could {
            self.note_whole(lcn, 1);
        } else if !planted(Planted::ForgetLost) {
            self.store.lost.insert(lcn);
        }
    }

    /// A code word could not be made whole: whatever of the volume it may hold is looked at. `false` if that
    /// is nothing: the word only waits to be freed, and nobody misses it.
    pub(super) fn suspect_word(&mut self, word: Word) -> bool {
        let mut lcns = std::mem::take(&mut self.board.losses.scratch);
        lcns.clear();
        self.scheme.lcns_of(&self.store, word, &mut lcns);
        if !lcns.is_empty() && !planted(Planted::SuspectNothing) {
            self.board.losses.suspects.extend(lcns.iter().copied());
            self.board.losses.words.push(word);
        }
        let is_needed = !lcns.is_empty();
        self.board.losses.scratch = lcns;
        is_needed
    }

    /// A stretch of the volume was written or discarded as a whole: nothing of it is lost any more.
    pub(super) fn note_rewritten(&mut self, first: Lcn, count: u64) {
        if !planted(Planted::KeepLost) {
            self.note_whole(first, count);
        }
    }

    fn note_whole(&mut self, first: Lcn, count: u64) {
        if self.store.lost.count() == 0 || !self.store.lost.remove(first.get(), first.get() + count) {
            return;
        }
        self.retry_stuck_stripes();
        if self.store.lost.count() == 0 {
            (self.board.losses.again_ns, self.board.losses.delay_ns) = (self.now_ns, AGAIN_NS);
            self.publish_losses();
        }
    }

    fn start_look(&mut self, lcn: Lcn, slot: Slot) {
        let locked = self.write_mode() == Mode::Exclusive;
        let key = self.take_read(lcn, slot, Wanted::Look { locked });
        let stripe = self.store.config.geometry.stripe_of(lcn);
        if locked && !self.try_lock(stripe, Mode::Shared) {
            let work = Work::Read { read: key, stripe };
            return self.locks.wait(stripe, Pending::new(Mode::Shared, work));
        }
        if locked { self.issue_read(key) } else { self.issue_unlocked_read(key) }
    }

    /// A chunk that may be lost was looked at.
    pub(super) fn looked(&mut self, slot: Slot) {
        self.pool.free(slot);
        self.board.losses.looking -= 1;
        if !self.board.losses.is_busy() {
            for word in std::mem::take(&mut self.board.losses.words) {
                if let Some(collects) = self.scheme.collects_mut() {
                    collects.rescue(&self.store, word);
                }
            }
            // Some may have waited for no more than to know what is lost.
            self.retry_stuck_stripes();
            self.publish_losses();
        }
    }

    /// A rebuild or scrub has looked at everything: what was noted before is known now, or was mended.
    pub(super) fn note_end_of_run(&mut self, kind: WorkKind, lost: u64) {
        self.board.losses.noted = 0;
        match (kind, lost) {
            (WorkKind::Rebuild, 0) => {
                (self.board.losses.unfinished, self.board.losses.delay_ns) = (false, AGAIN_NS)
            }
            (WorkKind::Rebuild, _) => self.rebuild_unfinished(),
            (WorkKind::Scrub, _) => {}
        }
        self.publish_losses();
    }

    /// Tells the superblocks how much is lost, if they do not say so.
    fn publish_losses(&mut self) {
        let now = self.board.losses.to_note(self.store.lost.count());
        if now != self.board.losses.published && !self.board.frozen {
            self.board.losses.published = now;
            self.health.config_seq += 1;
            self.publish_members();
        }
    }

    /// A rebuild has ended with code words that cannot be made whole.
    fn rebuild_unfinished(&mut self) {
        let delay_ns = self.board.losses.delay_ns.clamp(AGAIN_NS, AGAIN_NS_MAX);
        self.board.losses.unfinished = true;
        self.board.losses.again_ns = self.now_ns.saturating_add(delay_ns);
        self.board.losses.delay_ns = delay_ns.saturating_mul(2);
    }
}

/// Looks at chunks that may be lost, and has a rebuild tried again that met lost code words.
pub(super) struct LossSearch;

impl LossSearch {
    /// When a rebuild is to be tried again.
    fn again_ns(core: &Core) -> Option<u64> {
        let losses = &core.board.losses;
        let waits = losses.unfinished && core.accepts_writes() && core.may_start_maintenance();
        waits.then_some(losses.again_ns)
    }
}

impl Activity for LossSearch {
    fn drive(&mut self, core: &mut Core) {
        while core.board.losses.looking < LOOKS_MAX && !core.board.losses.suspects.is_empty() {
            let spare = core.pool.free_count() > core.store.slots_kept();
            let Some(slot) = spare.then(|| core.pool.alloc()).flatten() else { break };
            if let Some(lcn) = core.board.losses.suspects.pop_front() {
                core.board.losses.looking += 1;
                core.start_look(lcn, slot);
            }
        }
        let due = Self::again_ns(core).is_some_and(|at_ns| at_ns <= core.now_ns);
        if due && !core.board.losses.is_busy() {
            core.board.losses.unfinished = false;
            core.retry_stuck_stripes();
            core.board.upkeep.rebuild_wanted = true;
        }
    }

    /// What is lost is still to be known; no rebuild is tried.
    fn drive_frozen(&mut self, core: &mut Core) {
        self.drive(core);
    }

    fn flushed(&mut self, _core: &mut Core, _number: u64) {}

    fn is_busy(&self, core: &Core) -> bool {
        core.board.losses.is_busy()
    }

    fn deadline(&self, core: &Core) -> Option<Deadline> {
        Self::again_ns(core).map(Deadline::Room)
    }

    fn waits_for_buffers(&self, core: &Core) -> bool {
        core.board.losses.is_busy()
    }

    fn left_undone(&self, core: &Core) -> Option<&'static str> {
        core.board.losses.is_busy().then_some("a look at what may be lost")
    }
}

impl Marked for LossSearch {
    type Mark = [u64; 3];

    fn mark(&self, core: &Core) -> Self::Mark {
        let losses = &core.board.losses;
        [count(losses.suspects.len()), losses.looking.into(), u64::from(losses.unfinished)]
    }
}
