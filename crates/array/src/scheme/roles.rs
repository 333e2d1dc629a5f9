//! What only some schemes do. The engine asks a scheme for a role, and has nothing to do where there is none.

use super::Policies;
use crate::health::Health;
use crate::plan::{Held, Plan, Word};
use crate::restart::{AssembleError, RecoveryReport, Restart};
use crate::saved::SavedPages;
use crate::store::{ChunkRun, Store};
use block::{ChunkAddr, ChunkIndex, DeviceSet, Lba, Lcn, Pool, StripeId};
use format::RecordRef;

/// How full a scheme's resources are; what the triggers of parity commit look at (C-02).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    /// Stripes whose parity is out of date.
    pub dirty_stripes: u64,
    /// Live log stripes.
    pub log_stripes: u64,
    /// Whether space runs low somewhere, the log aside.
    pub low_space: bool,
    /// Whether the log runs low.
    pub low_log: bool,
}

/// What garbage collection has done since assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GcStats {
    /// Units chosen.
    pub units_collected: u64,
    /// Chunks written again (W-27).
    pub chunks_rewritten: u64,
    /// Chunks read for that.
    pub chunks_read: u64,
}

/// What came of asking for a step of garbage collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CollectOutcome {
    /// The plan was filled.
    Planned,
    /// Nothing is to be collected now.
    Nothing,
    /// No rows or buffers for it at the moment.
    NoSpace,
}

/// How far a write in place had come, as later records tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InPlaceProgress {
    /// Its copies may not even have arrived.
    Unknown,
    /// A later record speaks of the same stripe, which one request at a time writes to: it had
    /// ended, though perhaps not all of it was durable.
    Ended,
}

/// What a data stripe needs so that its parity is current again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitOutcome {
    /// The plan was extended.
    Planned,
    /// The stripe is clean.
    Clean,
    /// No space for the new parity at the moment.
    NoSpace,
}

/// The parity of updated stripes is out of date until it is committed; a log makes up for it meanwhile.
pub trait Commits {
    /// The next stripes whose parity is out of date, at most `count`: oldest first, but for those that were
    /// put first, or passed over.
    fn take_dirty(&mut self, store: &Store, count: usize, out: &mut Vec<StripeId>);

    /// Puts a stripe back that [`Commits::take_dirty`] gave but that could not be committed now.
    fn return_dirty(&mut self, stripe: StripeId);

    /// Whether a stripe's parity is out of date.
    fn is_dirty(&self, stripe: StripeId) -> bool;

    /// How full things are.
    fn pressure(&self, store: &Store) -> Pressure;

    /// Promises that the chunks `from..to`, all of one stripe, which the caller holds exclusively, may become
    /// zeros by the next record that speaks of the stripe; `false` if stripes must be committed before.
    fn promise_zeros(&mut self, _store: &Store, _from: Lcn, _to: Lcn) -> bool {
        true
    }

    /// The dirty stripes that keep the log from being cut anywhere before a position, each once.
    fn log_holders(&self, store: &Store, before: u64, out: &mut Vec<StripeId>);

    /// Some of the dirty stripes that give most space back for what their commit reads and writes, of those
    /// that together hold half of what all of them hold (L-04), none of the `unwanted`: the caller puts them
    /// first. None where all stripes are alike.
    fn space_holders(&mut self, _unwanted: &[StripeId], _out: &mut Vec<StripeId>) {}

    /// These stripes are the next that [`Commits::take_dirty`] gives.
    fn put_first(&mut self, stripes: &[StripeId]);

    /// Whether what [`plan_writes`](super::Scheme::plan_writes) refused last lacks space that a
    /// commit makes; if not, it lacks buffers or room in the journal, which come back by
    /// themselves.
    fn commit_would_help(&self) -> bool {
        true
    }

    /// Commits of some stripes are about to be planned: asks for what that will need, as
    /// [`Scheme::prefetch`](super::Scheme::prefetch) and [`Scheme::foresee`](super::Scheme::foresee) do.
    fn foresee_commits(&self, _store: &Store, _stripes: &[StripeId]) {}

    /// Extends a plan by the parity commit of one stripe, which the caller holds exclusively.
    fn plan_commit(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> CommitOutcome;

    /// The commit of this stripe alone could not read what it needs; whether there is another way,
    /// which the next [`Commits::plan_commit`] of it then takes.
    fn commit_otherwise(&mut self, _stripe: StripeId) -> bool {
        false
    }

    /// A dirty stripe whose parity is in sums cannot be rebuilt or scrubbed piece by piece: extends
    /// a plan by a commit of it that reads every data column and replaces all parities. `false`,
    /// without effect, if the stripe needs no such thing.
    fn plan_settle(
        &mut self,
        _store: &mut Store,
        _pool: &mut Pool,
        _stripe: StripeId,
        _plan: &mut Plan,
    ) -> bool {
        false
    }

    /// Live log stripes, for scrub and rebuild.
    fn log_words(&self, _out: &mut Vec<Word>) {}
}

/// Chunks are kept on the log devices.
pub trait Logs {
    /// The oldest log position that is still needed; the log's head if none is.
    fn log_tail(&self, store: &Store) -> u64;

    /// First block of the newest log chunk that is still needed.
    fn newest_log_block(&self) -> Option<ChunkIndex>;
}

/// Old versions are collected: what is still valid among them is moved.
pub trait Collects {
    /// Whether a step of garbage collection is wanted.
    fn wants_collection(&self) -> bool;

    /// Plans the next step of garbage collection, if it is wanted.
    fn plan_collect(&mut self, store: &mut Store, pool: &mut Pool, plan: &mut Plan) -> CollectOutcome;

    /// A step of garbage collection could not read what it needs, and wrote nothing.
    fn step_lost(&mut self, plan: &Plan);

    /// A row that was taken for a plan was not written.
    fn row_returned(&mut self, row: u32);

    /// Whether garbage collection may still make room. If not, users may take what is kept for it else.
    fn can_gain_room(&self) -> bool;

    /// Whether freed chunks are needed that a flush would make usable.
    fn wants_released(&self) -> bool;

    /// Freed chunks may be used again.
    fn released(&mut self, run: ChunkRun);

    /// Too much of a code word is lost, and which chunks of the volume those are is known: the
    /// others are going to be moved to where they have redundancy.
    fn rescue(&mut self, store: &Store, word: Word);

    /// The journal was replayed: what is free, and what is partly written.
    fn replayed(&mut self, store: &Store);

    /// What garbage collection has done since assembly.
    fn gc_stats(&self) -> GcStats;
}

/// How far a recorded write is carried out again. Of several that belong together each is looked at before
/// anything of one is written, and the copies of all are complete before a stripe is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedoStep {
    /// It is looked at, nothing is written.
    Look,
    /// Its copies are completed and durable.
    Copies,
    /// All of it.
    All,
}

/// Chunks are overwritten, so that a crash can tear a stripe apart; see [`format::Consistency`] for
/// the two ways out.
pub trait InPlace {
    /// Carries a recorded write out again if it had ended or its payload had arrived whole, as far as asked
    /// for; `false` if not, and the stripe is as before.
    fn redo(
        &mut self,
        store: &Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        record: RecordRef<'_>,
        how: (InPlaceProgress, RedoStep),
        healed: &mut u64,
    ) -> bool;

    /// After an unclean stop without a journal: makes every stripe consistent.
    fn resync(
        &mut self,
        store: &mut Store,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        restart: (Restart, &SavedPages),
        report: &mut RecoveryReport,
    ) -> Result<(), AssembleError>;
}

/// Stripes that were written lately are in memory: a plan for one of them need not read what is known. What
/// a plan has of the cache is in its [`Held`].
pub trait Caches {
    /// The records of a plan were applied, and what it was to copy into the cache is there.
    fn applied(&mut self, held: &mut Held);

    /// A plan has come to nothing: nobody knows what the entries hold that it had.
    fn gave_up(&mut self, held: &mut Held);

    /// Something else than a plan of writes had the stripe.
    fn forget(&mut self, stripe: StripeId);
}

/// Chunks of unlike lifetime are written apart, in classes.
pub trait Classes {
    /// A user's write request comes in; [`Classes::class_of_write`] follows for each of its chunks.
    fn begin_write(&mut self, first: Lba, sector_count: u64);

    /// The class of a chunk that a user writes, below [`Classes::class_count`]; asked once per
    /// write, in the order in which they come in.
    fn class_of_write(&mut self, store: &Store, lcn: Lcn) -> u8;

    /// How many classes of chunks are written apart from each other.
    fn class_count(&self) -> usize;

    /// Policies of somebody else take the place of its own; told before the first request, if at all.
    fn use_policies(&mut self, policies: Policies);

    /// The class of what is written at an address.
    fn class_at(&self, addr: ChunkAddr) -> u8;
}
