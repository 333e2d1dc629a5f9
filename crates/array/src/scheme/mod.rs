//! The seam: a scheme says where chunks are and plans what to do; the engine does it.
//!
//! A scheme does no I/O. `apply` is its only mutation that lasts, identical live and in replay;
//! planning may reserve space, which is given back by not applying (a crash) or by the records that
//! supersede it.

mod dirty_queue;
pub mod elastic;
pub mod eplog;
mod in_place;
mod log_room;
mod options;
pub mod parity_log;
mod policies;
pub mod raid;
mod roles;

pub use elastic::open_stripe_slots;
pub use options::{
    GROUP_BYTES_MAX, P_WAIT_NS_DEFAULT, Rewrites, SchemeOptions, UNTORN_BYTES_DEFAULT, UNTORN_BYTES_MAX,
};
pub use parity_log::full_blocks_min;
pub use policies::Policies;
pub use roles::{
    Caches, Classes, CollectOutcome, Collects, CommitOutcome, Commits, GcStats, InPlace, InPlaceProgress,
    Logs, Pressure, RedoStep,
};

use crate::health::Health;
pub use crate::older::Contradiction;
use crate::plan::{Codeword, Piece, Plan, Word};
use crate::restart::{AssembleError, RecoveryReport, Restart};
use crate::saved::SavedPages;
use crate::space::ChunkBits;
use crate::store::Store;
use crate::table::Table;
use block::{ChunkAddr, ChunkIndex, DeviceSet, Lba, Lcn, Pool, Seq, Slot, StripeId};
use format::{ArrayConfig, Consistency, List, RecordRef, SchemeKind};

/// One chunk to be written. Schemes with `WriteLock::Shared` get whole chunks: the engine has
/// filled in the rest from the old version. Those with `WriteLock::Exclusive` get it as the request
/// gave it, and plan that themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkWrite {
    /// Whose it is.
    pub origin: Origin,
    /// Which chunk.
    pub lcn: Lcn,
    /// Its content.
    pub slot: Slot,
    /// First byte of the chunk that the request covers.
    pub from: u32,
    /// End of those bytes.
    pub to: u32,
    /// The class of chunks that it is written together with, for schemes that have several.
    pub class: u8,
    /// It is one of 2^order chunks, aligned to that, which are written all or none: its *bundle*; 0 if it
    /// stands for itself. Those that are there of a bundle follow each other in every queue and in the batch.
    pub order: u8,
}

/// The first and the last chunk of the bundle of 2^order chunks that a chunk is in.
pub(crate) fn bundle_of(lcn: Lcn, order: u8) -> (Lcn, Lcn) {
    let first = lcn.get() >> order << order;
    (Lcn::new(first), Lcn::new(first + (1 << order) - 1))
}

impl ChunkWrite {
    /// The first chunk of its bundle, and the last.
    pub(crate) fn bundle(&self) -> (Lcn, Lcn) {
        bundle_of(self.lcn, self.order)
    }

    /// Whether it is of the same bundle as the write before it in a queue.
    pub(crate) fn is_bundled_with(&self, before: &Self) -> bool {
        let is_one = match (before.origin, self.origin) {
            (Origin::Request(before), Origin::Request(own)) => before == own,
            (Origin::Entry(_), Origin::Entry(_)) => true,
            (Origin::Request(_), Origin::Entry(_)) | (Origin::Entry(_), Origin::Request(_)) => false,
        };
        self.order > 0 && self.order == before.order && is_one && self.bundle() == before.bundle()
    }

    /// Whether it was acknowledged long ago and comes from the write cache.
    pub(crate) fn is_cached(&self) -> bool {
        match self.origin {
            Origin::Request(_) => false,
            Origin::Entry(_) => true,
        }
    }
}

/// Who is told when a chunk write has ended, by the index of a key of the engine's; schemes only hand it on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The request that it is part of.
    Request(u32),
    /// The entry of the write cache that it was.
    Entry(u32),
}

/// Where the newest version of a chunk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Located {
    /// Never written, or discarded: reads as zeros.
    Zero,
    /// At `piece.addr`, covered by `word`.
    At {
        /// Address, checksum, index in the word.
        piece: Piece,
        /// The code word that covers it.
        word: Word,
    },
}

/// Bytes of memory a scheme holds besides the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchemeMemory {
    /// Flat, per chunk.
    pub fixed_bytes: u64,
    /// Grows with uncommitted updates (M-05).
    pub dynamic_bytes: u64,
    /// What the placement policy remembers, of a size of its own (W-06).
    pub placement_bytes: u64,
}

/// Whether a stripe must be locked whole by each write (in-place schemes) or is only shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteLock {
    /// Writes to one stripe run side by side.
    Shared,
    /// One request at a time writes to a stripe. All its chunks in one stripe are planned together,
    /// one after the other in the batch.
    Exclusive,
}

/// What becomes of a plan's records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Journaling {
    /// They go to the journal together with the plan's writes; recovery verifies what was not known durable.
    WithWrites,
    /// The plan overwrites: its records, and a copy of each of its chunks in the payload ring of
    /// the chunk's device, are made durable before the first of its writes is issued.
    BeforeWrites,
    /// They are only applied; after an unclean stop [`InPlace::recover`] finds out anew.
    Nothing,
}

/// A record that does not fit the state it would be applied to; recovery drops it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected;

/// An update scheme: what every scheme does. See the module's documentation.
pub trait Scheme: Send {
    /// Where the newest version of a chunk is.
    fn locate(&self, store: &Store, lcn: Lcn) -> Located;

    /// All non-zero pieces of a code word.
    fn codeword(&self, store: &Store, word: Word, out: &mut Codeword);

    /// The chunks of the volume that a code word may hold the newest version of.
    fn lcns_of(&self, store: &Store, word: Word, out: &mut Vec<Lcn>) {
        if let Word::Stripe(stripe) = word {
            let geometry = store.config.geometry;
            out.extend((0..geometry.data_count()).map(|column| geometry.lcn_at(stripe, column)));
        }
    }

    /// How many code words rebuild and scrub look at, besides those of [`Commits::log_words`].
    fn word_count(&self, store: &Store) -> u64 {
        store.config.stripe_count
    }

    /// One of them, if it is in use. [`Word::Stripe`] is held still while it is looked at; others
    /// are taken as they are.
    fn word_at(&self, _store: &Store, index: u64) -> Option<Word> {
        Some(Word::Stripe(StripeId::new(index)))
    }

    /// Whether a stripe that [`Scheme::word_at`] names holds anything that rebuild or scrub must
    /// look at; not so if it was never written, or all of it was discarded.
    fn is_in_use(&self, _store: &Store, _stripe: StripeId) -> bool {
        true
    }

    /// Plans a batch of chunk writes as one unit. What has no space now is moved to `refused`, in order; of a
    /// plan that is `untorn` all or nothing.
    fn plan_writes(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    );

    /// Whether [`Scheme::plan_writes`] takes the part of a batch that has room; if not, a smaller
    /// batch may have room where a larger one is refused as a whole.
    fn takes_what_fits(&self) -> bool {
        true
    }

    /// Whether an array that is idle, whatever it holds, has room for an untorn plan of so many chunks that
    /// follow each other.
    fn holds_bundle(&self, store: &Store, chunks: u64) -> bool;

    /// The only lasting mutation. `seq` is the record's place in history.
    fn apply(&mut self, store: &mut Store, seq: Seq, record: RecordRef<'_>) -> Result<(), Rejected>;

    /// Whether what it knows of the chunks fills so much memory that the processor keeps hardly any of it at
    /// hand. Only then [`Scheme::prefetch_writes`] is asked; the two below that for units of commits, too.
    fn is_far(&self, store: &Store) -> bool {
        store.table.is_far()
    }

    /// Chunks are about to be written: asks for what is known of them, side by side. Changes nothing, as the
    /// two below.
    fn prefetch_writes(&self, _store: &Store, _lcns: &mut dyn Iterator<Item = Lcn>) {}

    /// A record is soon to be applied, and others with it: asks for what this will need of what is known.
    /// Before it is written, so that this comes meanwhile.
    fn prefetch(&self, _store: &Store, _record: RecordRef<'_>) {}

    /// The same just before it is applied, for what is found only by what else is known.
    fn foresee(&self, _store: &Store, _record: RecordRef<'_>) {}

    /// Whether [`Scheme::apply`] would accept the record.
    fn accepts(&self, store: &Store, record: RecordRef<'_>) -> bool;

    /// Whether records, of which it accepts each, fit one after the other. Each is for stripes, rows or
    /// chunks of its own, so only what they take together can be too much.
    fn accepts_all(&self, _records: &mut dyn Iterator<Item = RecordRef<'_>>) -> bool {
        true
    }

    /// What a checkpoint must hold besides the table: appends [`format::ListItem`]s as words. Everything
    /// else stands still meanwhile.
    fn save(&self, _store: &Store, _words: &mut Vec<u32>) {}

    /// The same, said piece by piece by [`Scheme::say_more`], as it is now: what changes before it was said
    /// is said as it was, and the next changes build on it. The words that it has at most; `None` if it is
    /// short, and said by [`Scheme::save`].
    fn begin_list(&mut self) -> Option<usize> {
        None
    }

    /// Appends about `count` more items of the list that was begun; `false` if these were the last. Whoever
    /// begins a list has all of it before another is begun, unless it is one of what changed that comes to
    /// nothing before anything was said of it.
    fn say_more(&mut self, _words: &mut Vec<u32>, _count: usize) -> bool {
        false
    }

    /// Of the same what changed since the list that was said last: appends changes of that
    /// ([`format::Changes`]), which the next list builds on. `false` if it is said as a whole each time.
    fn save_changes(&mut self, _words: &mut Vec<u32>) -> bool {
        false
    }

    /// How many changes [`Scheme::save_changes`] would say now.
    fn change_count(&self) -> usize {
        0
    }

    /// Words that these take at most if they are said piece by piece.
    fn changes_max(&self) -> usize {
        0
    }

    /// The same changes, said piece by piece by [`Scheme::say_more`], like [`Scheme::begin_list`].
    fn begin_changes(&mut self) -> Option<usize> {
        None
    }

    /// What [`Scheme::save`] gives now, or what was loaded, is what the next changes build on.
    fn list_is_saved(&mut self) {}

    /// A list like this one, or not much longer, is going to be loaded.
    fn foresee_list(&mut self, _config: &ArrayConfig, _list: List<'_>) {}

    /// Loads the items that [`Scheme::save`] gave. The table is already loaded, but for the pages of it that
    /// are absent: [`Scheme::check_page`] looks at them.
    fn load(&mut self, store: &mut Store, list: List<'_>) -> Result<(), Contradiction>;

    /// Whether an absent page that comes into memory, and has these words, fits what else is known.
    fn check_page(&self, _table: &Table, _page: usize, _words: &[u32]) -> Result<(), Contradiction> {
        Ok(())
    }

    /// Claims every chunk in use, of each main device; an error if two owners claim one chunk. Where chunks
    /// have their places there is nothing to claim. No page of the table is absent.
    fn claim_space(&self, _store: &Store, _claimed: &mut [ChunkBits]) -> Result<(), Contradiction> {
        Ok(())
    }

    /// The options it runs with, which [`SchemeOptions::check`] accepts; told once, after recovery.
    fn configure(&mut self, _store: &Store, _options: &SchemeOptions) {}

    /// Takes the buffers that are its own from a pool that has room for them (`SchemeOptions::cache_slots`);
    /// told after [`Scheme::configure`].
    fn take_buffers(&mut self, _store: &Store, _pool: &mut Pool) {}

    /// Gives back all the buffers that it has, and forgets what is in them; no plan is under way. Told before
    /// [`Scheme::take_buffers`] is told of another pool, or before the end.
    fn give_buffers(&mut self, _pool: &mut Pool) {}

    /// Memory besides the table.
    fn memory(&self) -> SchemeMemory {
        SchemeMemory::default()
    }

    /// The scheme as one whose parity is committed, if it is.
    fn commits(&self) -> Option<&dyn Commits> {
        None
    }

    /// The same, to be changed.
    fn commits_mut(&mut self) -> Option<&mut dyn Commits> {
        None
    }

    /// The scheme as one that keeps chunks on log devices, if it does.
    fn logs(&self) -> Option<&dyn Logs> {
        None
    }

    /// The scheme as one that collects garbage, if it does.
    fn collects(&self) -> Option<&dyn Collects> {
        None
    }

    /// The same, to be changed.
    fn collects_mut(&mut self) -> Option<&mut dyn Collects> {
        None
    }

    /// The scheme as one that overwrites chunks, if it does.
    fn in_place(&mut self) -> Option<&mut dyn InPlace> {
        None
    }

    /// The scheme as one that keeps stripes in memory, if it does.
    fn caches(&mut self) -> Option<&mut dyn Caches> {
        None
    }

    /// The scheme as one that keeps classes of chunks apart, if it does.
    fn classes(&self) -> Option<&dyn Classes> {
        None
    }

    /// The same, to be changed.
    fn classes_mut(&mut self) -> Option<&mut dyn Classes> {
        None
    }
}

/// What holds of a scheme that does not have a role.
impl dyn Scheme + '_ {
    /// See [`Commits::pressure`]: nothing waits for a commit.
    pub fn pressure(&self, store: &Store) -> Pressure {
        self.commits().map_or_else(Pressure::default, |commits| commits.pressure(store))
    }

    /// See [`Commits::is_dirty`]: no stripe is.
    pub fn is_dirty(&self, stripe: StripeId) -> bool {
        self.commits().is_some_and(|commits| commits.is_dirty(stripe))
    }

    /// See [`Commits::commit_would_help`]: there is nothing to commit.
    pub fn commit_would_help(&self) -> bool {
        self.commits().is_some_and(Commits::commit_would_help)
    }

    /// See [`Commits::log_words`]: there are none.
    pub fn log_words(&self, out: &mut Vec<Word>) {
        if let Some(commits) = self.commits() {
            commits.log_words(out);
        }
    }

    /// See [`Logs::log_tail`]: the log is empty.
    pub fn log_tail(&self, store: &Store) -> u64 {
        self.logs().map_or(store.log.head(), |logs| logs.log_tail(store))
    }

    /// See [`Logs::newest_log_block`]: there is none.
    pub fn newest_log_block(&self) -> Option<ChunkIndex> {
        self.logs().and_then(Logs::newest_log_block)
    }

    /// See [`Collects::can_gain_room`]: nothing is collected.
    pub fn can_gain_room(&self) -> bool {
        self.collects().is_some_and(Collects::can_gain_room)
    }

    /// See [`Collects::gc_stats`]: nothing was collected.
    pub fn gc_stats(&self) -> GcStats {
        self.collects().map_or_else(GcStats::default, Collects::gc_stats)
    }

    /// See [`Classes::begin_write`].
    pub fn begin_write(&mut self, first: Lba, sector_count: u64) {
        if let Some(classes) = self.classes_mut() {
            classes.begin_write(first, sector_count);
        }
    }

    /// See [`Classes::class_of_write`]: there is one class.
    pub fn class_of_write(&mut self, store: &Store, lcn: Lcn) -> u8 {
        self.classes_mut().map_or(0, |classes| classes.class_of_write(store, lcn))
    }

    /// See [`Classes::class_count`]: there is one class.
    pub fn class_count(&self) -> usize {
        self.classes().map_or(1, Classes::class_count)
    }

    /// See [`Classes::class_at`]: there is one class.
    pub fn class_at(&self, addr: ChunkAddr) -> u8 {
        self.classes().map_or(0, |classes| classes.class_at(addr))
    }
}

/// What a write must hold still.
pub fn write_lock(config: &ArrayConfig) -> WriteLock {
    if config.scheme.is_in_place() { WriteLock::Exclusive } else { WriteLock::Shared }
}

/// What becomes of the records of plans.
pub fn journaling(config: &ArrayConfig) -> Journaling {
    match (config.scheme.is_in_place(), config.consistency) {
        (true, Consistency::Resync) => Journaling::Nothing,
        (true, Consistency::Journal) => Journaling::BeforeWrites,
        (false, _) => Journaling::WithWrites,
    }
}

/// The chunk of `column` (data, then parity) of a stripe, if no record speaks of it but its device
/// must hold zeros there all the same; rebuild writes them.
pub fn implied_zero(store: &Store, stripe: StripeId, column: usize) -> Option<ChunkAddr> {
    store.config.scheme.is_in_place().then(|| in_place::implied_zero(store, stripe, column)).flatten()
}

/// The chunk of a column (data, then parity) of a stripe in schemes that write in place.
pub(crate) fn place_in(store: &Store, stripe: StripeId, column: usize) -> ChunkAddr {
    in_place::addr_of(store, stripe, column)
}

/// Whether the array may be assembled with these members; asked before anything is written.
pub fn may_start(config: &ArrayConfig, health: &Health, restart: Restart) -> Result<(), AssembleError> {
    if in_place::needs_resync(config, restart) {
        in_place::resync::may_start(health, restart)
    } else {
        Ok(())
    }
}

/// Whether nothing on disk tells what was written last.
pub fn forgets_writes(config: &ArrayConfig, restart: Restart) -> bool {
    in_place::needs_resync(config, restart)
}

/// What must be repaired after replay.
pub fn recover(
    scheme: &mut dyn Scheme,
    store: &mut Store,
    devices: &mut dyn DeviceSet,
    health: &mut Health,
    (restart, saved): (Restart, &SavedPages),
    report: &mut RecoveryReport,
) -> Result<(), AssembleError> {
    if let Some(collects) = scheme.collects_mut() {
        collects.replayed(store);
    }
    match scheme.in_place() {
        Some(scheme) if in_place::needs_resync(&store.config, restart) => {
            scheme.resync(store, devices, health, (restart, saved), report)
        }
        Some(_) | None => Ok(()),
    }
}

/// What the core must know of a scheme before it has one.
struct Registration {
    /// Builds the empty scheme of an empty store; its list is bounded as [`new`] says.
    new: fn(&Store, u64) -> Box<dyn Scheme>,
    /// Bytes of memory it takes besides the table, at most, with a list that is bounded so; its placement
    /// policy aside.
    memory_max: fn(&ArrayConfig, u64) -> SchemeMemory,
    /// Words of the longest list that a checkpoint can be asked to hold, if it is bounded so.
    list_words_live: fn(&ArrayConfig, u64) -> u64,
    /// Words of a full checkpoint's list that a new array has room for.
    list_words_max: fn(&ArrayConfig) -> u64,
}

fn registration(scheme: SchemeKind) -> &'static Registration {
    match scheme {
        SchemeKind::Eplog => &eplog::REGISTRATION,
        SchemeKind::Raid => &raid::REGISTRATION,
        SchemeKind::ParityLog => &parity_log::REGISTRATION,
        SchemeKind::Elastic | SchemeKind::Was => &elastic::REGISTRATION,
    }
}

/// Builds the scheme that a configuration names. What waits for a commit takes at most `list_bytes` bytes of
/// a checkpoint's list, unpacked, unless it was in there already.
pub fn new(store: &Store, list_bytes: u64) -> Box<dyn Scheme> {
    (registration(store.config.scheme).new)(store, list_bytes)
}

/// Bytes of memory that the scheme of an array takes besides the table, at most, with a list that takes at
/// most so many bytes ([`new`]); its placement policy aside.
pub fn memory_max(config: &ArrayConfig, list_bytes: u64) -> SchemeMemory {
    (registration(config.scheme).memory_max)(config, list_bytes)
}

/// Words of the longest list that a checkpoint of the array can be asked to hold, bounded so.
pub fn list_words_live(config: &ArrayConfig, list_bytes: u64) -> u64 {
    (registration(config.scheme).list_words_live)(config, list_bytes)
}

/// Words of a full checkpoint's list that a new array has room for.
pub fn list_words_max(config: &ArrayConfig) -> u64 {
    (registration(config.scheme).list_words_max)(config)
}
