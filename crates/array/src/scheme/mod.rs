//! The seam: a scheme says where chunks are and plans what to do; the engine does it.
//!
//! A scheme does no I/O. `apply` is its only mutation that lasts, identical live and in replay; planning may reserve
//! space, which is given back by not applying (a crash) or by the records that supersede it.

mod dirty_queue;
pub mod elastic;
pub mod eplog;
mod in_place;
mod options;
pub mod parity_log;
pub mod raid;

pub use options::{GROUP_BYTES_MAX, P_WAIT_NS_DEFAULT, SchemeOptions};
pub use parity_log::full_blocks_min;

use crate::engine::{Entry, Request};
use crate::health::Health;
use crate::plan::{Codeword, Piece, Plan, Word};
use crate::restart::{AssembleError, RecoveryReport, Restart};
use crate::store::{Run, Store};
use block::slab::Key;
use block::{ChunkAddr, ChunkIndex, DeviceSet, Lba, Lcn, Pool, Seq, Slot, StripeId};
use format::{ArrayConfig, ListItem, RecordRef, SchemeKind};

/// One chunk to be written. Schemes with `WriteLock::Shared` get whole chunks: the engine has filled in the rest from the
/// old version. Those with `WriteLock::Exclusive` get it as the request gave it, and plan that themselves.
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
}

impl ChunkWrite {
    /// Whether it was acknowledged long ago and comes from the write cache.
    pub(crate) fn is_cached(&self) -> bool {
        match self.origin {
            Origin::Request(_) => false,
            Origin::Entry(_) => true,
        }
    }
}

/// Who is told when a chunk write has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The request that it is part of.
    Request(Key<Request>),
    /// The entry of the write cache that it was.
    Entry(Key<Entry>),
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

/// How full a scheme's resources are; what the triggers of parity commit look at (C-02).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    /// Stripes whose parity is out of date.
    pub dirty_stripes: u64,
    /// Live log stripes.
    pub log_stripes: u64,
    /// Whether space runs low somewhere.
    pub low_space: bool,
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

/// Whether a stripe must be locked whole by each write (in-place schemes) or is only shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteLock {
    /// Writes to one stripe run side by side.
    Shared,
    /// One request at a time writes to a stripe. All its chunks in one stripe are planned together, one after the other in
    /// the batch.
    Exclusive,
}

/// What becomes of a plan's records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Journaling {
    /// They go to the journal together with the plan's writes; recovery verifies what was not known durable.
    WithWrites,
    /// The plan overwrites: its records, and a copy of each of its chunks in the payload ring of the chunk's device, are
    /// made durable before the first of its writes is issued.
    BeforeWrites,
    /// They are only applied; after an unclean stop [`Scheme::recover`] finds out anew.
    Nothing,
}

/// A record that does not fit the state it would be applied to; recovery drops it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected;

/// What of a loaded state contradicts the rest of it, although every checksum is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Contradiction {
    /// Two owners claim one chunk.
    #[error("two owners claim chunk {} of device {}", .0.chunk, .0.dev)]
    Owners(ChunkAddr),
    /// The map of a stripe, or a list item about it.
    #[error("{what} of stripe {stripe} does not fit")]
    Stripe {
        /// What does not fit.
        what: &'static str,
        /// The stripe.
        stripe: StripeId,
    },
    /// The owner of a chunk.
    #[error("{what} of chunk {lcn} of the volume does not fit")]
    Chunk {
        /// What does not fit.
        what: &'static str,
        /// The logical chunk.
        lcn: Lcn,
    },
    /// A row of elastic stripes.
    #[error("row {0} of elastic stripes does not fit")]
    Row(u32),
    /// A log stripe of the list.
    #[error("the log stripe of record {0} does not fit")]
    LogStripe(Seq),
    /// A part of the state that has no name of its own.
    #[error("{0}")]
    Other(&'static str),
}

/// How far a write in place had come, as later records tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InPlaceProgress {
    /// Its copies may not even have arrived.
    Unknown,
    /// A later record speaks of the same stripe, which one request at a time writes to: it had ended, though perhaps not all
    /// of it was durable.
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

/// An update scheme. See the module's documentation.
pub trait Scheme: Send {
    /// Which scheme this is.
    fn kind(&self) -> SchemeKind;

    /// What a write must hold still.
    fn write_lock(&self) -> WriteLock;

    /// Where the newest version of a chunk is.
    fn locate(&self, store: &Store, lcn: Lcn) -> Located;

    /// All non-zero pieces of a code word.
    fn codeword(&self, store: &Store, word: Word, out: &mut Codeword);

    /// The options it runs with, which [`SchemeOptions::check`] accepts; told once, after recovery.
    fn configure(&mut self, _store: &Store, _options: &SchemeOptions) {}

    /// A user's write request comes in; [`Scheme::class_of_write`] follows for each of its chunks.
    fn begin_write(&mut self, _first: Lba, _sector_count: u64) {}

    /// The class of a chunk that a user writes, below [`Scheme::class_count`]; asked once per write, in the order in which
    /// they come in.
    fn class_of_write(&mut self, _store: &Store, _lcn: Lcn) -> u8 {
        0
    }

    /// How many classes of chunks are written apart from each other.
    fn class_count(&self) -> usize {
        1
    }

    /// The class of what is written at an address.
    fn class_at(&self, _addr: ChunkAddr) -> u8 {
        0
    }

    /// The chunks of the volume that a code word may hold the newest version of.
    fn lcns_of(&self, store: &Store, word: Word, out: &mut Vec<Lcn>) {
        if let Word::Stripe(stripe) = word {
            let geometry = store.config.geometry;
            out.extend((0..geometry.data_count()).map(|column| geometry.lcn_at(stripe, column)));
        }
    }

    /// Too much of a code word is lost, and which chunks of the volume those are is known: the others are going to be moved to where
    /// they have redundancy, if the scheme can move chunks.
    fn rescue(&mut self, _store: &Store, _word: Word) {}

    /// How many code words rebuild and scrub look at, besides those of [`Scheme::log_words`].
    fn word_count(&self, store: &Store) -> u64 {
        store.config.stripe_count
    }

    /// One of them, if it is in use. [`Word::Stripe`] is held still while it is looked at; others are taken as they are.
    fn word_at(&self, _store: &Store, index: u64) -> Option<Word> {
        Some(Word::Stripe(StripeId::new(index)))
    }

    /// Whether a stripe that [`Scheme::word_at`] names holds anything that rebuild or scrub must look at; not so if it was
    /// never written, or all of it was discarded.
    fn is_in_use(&self, _store: &Store, _stripe: StripeId) -> bool {
        true
    }

    /// What becomes of the records of this scheme's plans.
    fn journaling(&self, _store: &Store) -> Journaling {
        Journaling::WithWrites
    }

    /// Plans a batch of chunk writes as one unit. What has no space now is moved to `refused`, in order.
    fn plan_writes(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    );

    /// Whether [`Scheme::plan_writes`] takes the part of a batch that has room; if not, a smaller batch may have room where a
    /// larger one is refused as a whole.
    fn takes_what_fits(&self) -> bool {
        true
    }

    /// The next stripes whose parity is out of date, oldest first, at most `count`.
    fn take_dirty(&mut self, store: &Store, count: usize, out: &mut Vec<StripeId>);

    /// Puts a stripe back that [`Scheme::take_dirty`] gave but that could not be committed now.
    fn return_dirty(&mut self, stripe: StripeId);

    /// Whether what [`Scheme::plan_writes`] refused last lacks space that a commit makes; if not, it lacks buffers or room in
    /// the journal, which come back by themselves.
    fn commit_would_help(&self) -> bool {
        true
    }

    /// Extends a plan by the parity commit of one stripe, which the caller holds exclusively.
    fn plan_commit(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> CommitOutcome;

    /// A planned commit could not read what it needs, and wrote nothing: what was reserved for it goes back.
    fn undo_commit(&mut self, _store: &mut Store, _plan: &Plan) {}

    /// The commit of this stripe alone could not read what it needs; whether there is another way, which the next
    /// [`Scheme::plan_commit`] of it then takes.
    fn commit_otherwise(&mut self, _stripe: StripeId) -> bool {
        false
    }

    /// A dirty stripe whose parity is in sums cannot be rebuilt or scrubbed piece by piece: extends a plan by a commit of it
    /// that reads every data column and replaces all parities. `false`, without effect, if the stripe needs no such thing.
    fn plan_settle(
        &mut self,
        _store: &mut Store,
        _pool: &mut Pool,
        _stripe: StripeId,
        _plan: &mut Plan,
    ) -> bool {
        false
    }

    /// Whether a step of garbage collection is wanted.
    fn wants_collection(&self) -> bool {
        false
    }

    /// Plans the next step of garbage collection, if it is wanted.
    fn plan_collect(&mut self, _store: &mut Store, _pool: &mut Pool, _plan: &mut Plan) -> CollectOutcome {
        CollectOutcome::Nothing
    }

    /// A step of garbage collection could not read what it needs, and wrote nothing.
    fn undo_collect(&mut self, _store: &mut Store, _plan: &Plan) {}

    /// Whether garbage collection may still make room. If not, users may take what is kept for it else.
    fn can_gain_room(&self) -> bool {
        false
    }

    /// Whether freed chunks are needed that a flush would make usable.
    fn wants_released(&self) -> bool {
        false
    }

    /// Freed chunks may be used again.
    fn released(&mut self, _run: Run) {}

    /// What garbage collection has done since assembly.
    fn gc_stats(&self) -> GcStats {
        GcStats::default()
    }

    /// The only lasting mutation. `seq` is the record's place in history; `log_position` where its log chunks are.
    fn apply(&mut self, store: &mut Store, seq: Seq, record: RecordRef<'_>) -> Result<(), Rejected>;

    /// Whether [`Scheme::apply`] would accept the record.
    fn accepts(&self, store: &Store, record: RecordRef<'_>) -> bool;

    /// In-place schemes with a journal: carries a recorded write out again if it had ended or its payload had arrived whole;
    /// `false` if not, and the stripe is as before.
    fn redo(
        &mut self,
        _store: &Store,
        _devices: &mut dyn DeviceSet,
        _health: &mut Health,
        _record: RecordRef<'_>,
        _progress: InPlaceProgress,
        _healed: &mut u64,
    ) -> bool {
        false
    }

    /// Whether the array may be assembled with these members; asked before anything is written.
    fn may_start(&self, _health: &Health, _restart: Restart) -> Result<(), AssembleError> {
        Ok(())
    }

    /// What must be repaired after replay.
    fn recover(
        &mut self,
        _store: &mut Store,
        _devices: &mut dyn DeviceSet,
        _health: &mut Health,
        _restart: Restart,
        _report: &mut RecoveryReport,
    ) -> Result<(), AssembleError> {
        Ok(())
    }

    /// The chunk of `column` (data, then parity) of a stripe, if no record speaks of it but its device must hold zeros there
    /// all the same; rebuild writes them.
    fn implied_zero(&self, _store: &Store, _stripe: StripeId, _column: usize) -> Option<ChunkAddr> {
        None
    }

    /// The oldest log position that is still needed.
    fn log_tail(&self, store: &Store) -> u64;

    /// First block of the newest log chunk that is still needed.
    fn newest_log_block(&self) -> Option<ChunkIndex> {
        None
    }

    /// How full things are.
    fn pressure(&self, store: &Store) -> Pressure;

    /// Whether a stripe's parity is out of date.
    fn is_dirty(&self, stripe: StripeId) -> bool;

    /// Memory besides the table.
    fn memory(&self) -> SchemeMemory;

    /// Live log stripes, for scrub and rebuild.
    fn log_words(&self, out: &mut Vec<Word>);

    /// What a checkpoint must hold besides the table: appends [`ListItem`]s as words. Everything else stands still meanwhile.
    fn save(&self, store: &Store, words: &mut Vec<u32>);

    /// Loads the items that [`Scheme::save`] gave; the table is already loaded.
    fn load(&mut self, store: &mut Store, items: &[ListItem]) -> Result<(), Contradiction>;

    /// Marks every chunk in use in `store.spaces` (fresh); an error if two owners claim one chunk.
    fn claim_space(&self, store: &mut Store) -> Result<(), Contradiction>;
}

/// Builds the scheme that a configuration names.
pub fn new(store: &Store) -> Box<dyn Scheme> {
    match store.config.scheme {
        SchemeKind::Eplog => Box::new(eplog::Eplog::new(store)),
        SchemeKind::Raid => Box::new(raid::Raid::new(store)),
        SchemeKind::ParityLog => Box::new(parity_log::ParityLog::new(store)),
        SchemeKind::Elastic | SchemeKind::Was => Box::new(elastic::Elastic::new(store)),
    }
}

/// What the scheme of that configuration takes of memory at most, besides the table and its placement policy.
pub fn memory_max(config: &ArrayConfig) -> SchemeMemory {
    match config.scheme {
        SchemeKind::Eplog => eplog::memory_max(config),
        SchemeKind::Raid => SchemeMemory::default(),
        SchemeKind::ParityLog => parity_log::memory_max(config),
        SchemeKind::Elastic | SchemeKind::Was => elastic::memory_max(config),
    }
}

/// Words of the longest list that [`Scheme::save`] can append to a checkpoint of that array.
pub fn list_words_live(config: &ArrayConfig) -> u64 {
    match config.scheme {
        SchemeKind::Eplog => eplog::list_words_live(config),
        SchemeKind::ParityLog => parity_log::list_words_live(config),
        SchemeKind::Raid | SchemeKind::Elastic | SchemeKind::Was => 0,
    }
}

/// Words of a list that a new array's checkpoints have room for.
pub fn list_words_max(config: &ArrayConfig) -> u64 {
    match config.scheme {
        SchemeKind::Eplog => eplog::list_words_max(config),
        SchemeKind::ParityLog => parity_log::list_words(config),
        SchemeKind::Raid | SchemeKind::Elastic | SchemeKind::Was => 0,
    }
}
