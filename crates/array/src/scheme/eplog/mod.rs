//! Elastic parity logging (EPLOG, sections 3.1 to 3.3).
//!
//! A full stripe goes to the main array with its parity: a new one always, one written before unless the
//! options say otherwise ([`Rewrites`]). Every other write goes out of place on its chunk's own SSD, grouped
//! with other chunks on distinct SSDs into a log stripe whose parity (log chunks) goes to the log devices;
//! nothing is read first. Old versions stay until parity commit or until the stripe is replaced as a whole,
//! because the data stripe's parity still covers them.
//!
//! Retention needs no code of its own: a chunk is in use while the map, a committed version, or a live log
//! stripe names it. A log stripe lives while one of its members is the newest, uncommitted version of its
//! chunk (E-19).

mod commit;
mod covered;
mod dirty;
mod hot;
mod list_room;
mod listed;
mod log_member;
mod log_table;
mod parting;
mod persist;
mod places;
mod write;

use super::log_room::{LOW_SPACE_DIVISOR, is_log_low};
use super::{
    ChunkWrite, CommitOutcome, Commits, Contradiction, Located, Logs, Pressure, Registration, Rejected,
    Rewrites, Scheme, SchemeMemory, SchemeOptions,
};
use crate::health::Health;
use crate::plan::{Codeword, Piece, Plan, Word};
use crate::planted::{Planted, planted};
use crate::space::ChunkBits;
use crate::store::{Store, code_width};
use crate::table::Table;
use block::{ChunkAddr, ChunkIndex, Geometry, Lcn, META_BYTES, Pool, Seq, StripeId};
use dirty::{DirtyStripes, NO_OWNER, SAME, Updated};
use format::record::LogStripe;
use format::{
    ArrayConfig, List, LogMember, MemberFate, RecordRef, StripeChunk, log_stripe_words, updated_columns_words,
};
use hot::HotStripes;
use list_room::{ListRoom, ListSize};
use log_table::LogTable;
use parting::Parting;
use std::collections::HashSet;
use std::ops::Range;

pub(super) const REGISTRATION: Registration = Registration {
    new: |store, list_bytes| Box::new(Eplog::new(store, list_bytes)),
    memory_max,
    list_words_live,
    list_words_max,
};

/// The scheme's state besides the table.
pub struct Eplog {
    dirty: DirtyStripes,
    log: LogTable,
    /// What a checkpoint has room for.
    list: ListRoom,
    scratch: write::Scratch,
    rewrites: Rewrites,
    /// Stripes replaced as a whole a short while ago.
    hot: HotStripes,
    /// The versions of all columns, data and parity, of a stripe that is replaced.
    versions: Vec<StripeChunk>,
    parting: Parting,
    commits: commit::Scratch,
    /// Dirty stripes of which an old version or the old parity is lost: their parity is computed anew.
    encode_only: HashSet<StripeId>,
}

/// Data and parity columns of a stripe.
fn columns(config: &ArrayConfig) -> (u64, u64) {
    (config.geometry.data_count() as u64, config.geometry.parity_count() as u64)
}

/// Chunks of the main array that no stripe has for itself.
fn spare_chunks(config: &ArrayConfig) -> u64 {
    u64::from(config.chunks_per_device).saturating_sub(config.stripe_count)
        * config.geometry.device_count() as u64
}

/// Members of a log stripe at most.
fn log_width(config: &ArrayConfig) -> u64 {
    code_width(config) as u64
}

/// Log stripes that may live at a time: each has log chunks, and there are no more than spare chunks, for
/// which a list of so many words has room.
fn log_stripes_max(config: &ArrayConfig, list_words: u64) -> u64 {
    let chunk_blocks = (config.geometry.chunk_bytes() / META_BYTES) as u64;
    let listed = list_words / log_stripe_words(1, columns(config).1);
    let placed = log_table::PLACES_MAX / log_width(config);
    (u64::from(config.log_blocks) / chunk_blocks).min(spare_chunks(config)).min(listed).min(placed)
}

/// Room for every spare chunk as a log stripe of its own in a stripe of its own. Stripes never written, wide
/// log stripes that a single member keeps, and discards can make a longer list: then writes and discards wait
/// for commits ([`ListRoom`]).
fn list_words_max(config: &ArrayConfig) -> u64 {
    let (k, m) = columns(config);
    let chunk_words = u64::try_from(config.geometry.chunk_bytes() / 4).unwrap_or(u64::MAX);
    let device_words = u64::from(config.chunks_per_device).saturating_mul(chunk_words);
    let most = (device_words / DEVICE_PER_LIST).clamp(*LIST_WORDS_MOST.start(), *LIST_WORDS_MOST.end());
    (spare_chunks(config) * (DIRTY_WORDS + 2 * k + log_stripe_words(1, m))).min(most)
}

/// Words of the list, unpacked, that there is room for at most in small and in large arrays: 32 to 128 MiB,
/// a million to five million updates. How much of that is used follows the memory that the table may take.
const LIST_WORDS_MOST: std::ops::RangeInclusive<u64> = 1 << 23..=1 << 25;
/// A device has as many times the room of the list.
const DEVICE_PER_LIST: u64 = 512;
/// Words that a dirty stripe took in the list when it said something of all columns, which took two each.
/// Arrays are laid out for that still.
const DIRTY_WORDS: u64 = 3;

fn list_words_live(config: &ArrayConfig, list_bytes: u64) -> u64 {
    list_room::words_live(config, log_width(config), list_room::bounded_words(config, list_bytes))
}

/// Dirty stripes that a list has room for.
fn dirty_max(config: &ArrayConfig, list_words: u64) -> u64 {
    let (k, _) = columns(config);
    config.stripe_count.min(list_words / updated_columns_words(k, 1))
}

/// What the scheme takes of memory when as many updates wait for a commit as there is room for.
fn memory_max(config: &ArrayConfig, list_bytes: u64) -> SchemeMemory {
    let ((k, m), width) = (columns(config), log_width(config));
    let list_words = list_room::bounded_words(config, list_bytes);
    let log_stripes = log_stripes_max(config, list_words);
    let members = list_words / list_room::MEMBER_WORDS;
    let covered = (log_stripes * (width - 1)).min(members).min(config.stripe_count * k);
    let log = LogTable::bytes_for(width, m, log_stripes, covered);
    let dirty = DirtyStripes::bytes_for(config.stripe_count, k, dirty_max(config, list_words));
    SchemeMemory {
        fixed_bytes: dirty.fixed_bytes,
        // What is said before its turn is kept until then, in a room that doubles.
        dynamic_bytes: log.dynamic_bytes + dirty.dynamic_bytes + list_words_live(config, list_bytes) * 8,
        placement_bytes: 0,
    }
}

impl Eplog {
    /// The empty scheme of an empty store, with a list that takes at most so many bytes, unpacked.
    pub fn new(store: &Store, list_bytes: u64) -> Self {
        let geometry = store.config.geometry;
        let list = ListRoom::new(&store.config, list_bytes);
        let list_words = list_room::bounded_words(&store.config, list_bytes);
        let dirty_max = usize::try_from(dirty_max(&store.config, list_words)).unwrap_or_default();
        Self {
            dirty: DirtyStripes::new(store.config.stripe_count, geometry.data_count(), dirty_max),
            log: LogTable::new(
                store.code.width_max(),
                geometry.parity_count(),
                usize::try_from(list.log_stripes_max()).expect("validated: the tables fit the address space"),
            ),
            list,
            scratch: write::Scratch::default(),
            rewrites: Rewrites::default(),
            hot: HotStripes::new(),
            versions: Vec::new(),
            parting: Parting::default(),
            commits: commit::Scratch::default(),
            encode_only: HashSet::new(),
        }
    }

    /// The version of a column that the data stripe's parity covers.
    fn committed(&self, store: &Store, stripe: StripeId, column: usize) -> StripeChunk {
        let updated = self.dirty.updated(stripe, column);
        updated.map_or_else(|| store.table.column(stripe, column), |updated| updated.committed)
    }

    /// `version`, the member at `owner`, becomes the newest of `lcn`; what it supersedes is kept, or freed
    /// when nothing names it.
    fn supersede(&mut self, store: &mut Store, lcn: Lcn, version: StripeChunk, owner: u32) {
        let geometry = store.config.geometry;
        let (stripe, column) = (geometry.stripe_of(lcn), geometry.column_of(lcn));
        let old = store.table.replace_column(stripe, column, version);
        if let Some(place) = self.dirty.update(stripe, column, old, owner) {
            debug_assert!(
                place == NO_OWNER || self.log.has_newest(place, lcn, old.chunk),
                "the owner lists its members"
            );
            self.drop_live(store, place, MemberFate::Superseded);
            if planted(Planted::FreeSupersededEarly) {
                store.free(store.layout.device(stripe, column), old.chunk);
            }
        }
    }

    /// A log stripe's member stops being the newest uncommitted version of its chunk.
    fn drop_live(&mut self, store: &mut Store, place: u32, fate: MemberFate) {
        if place != NO_OWNER
            && let Some(id) = self.log.leave(place, fate)
        {
            self.release_log_stripe(store, id);
        }
    }

    /// Nothing needs the log stripe any more: its superseded members are free, its log chunks obsolete.
    fn release_log_stripe(&mut self, store: &mut Store, id: u32) {
        for i in 0..self.log.member_count(id) {
            let LogMember { lcn, chunk, .. } = self.log.member(id, i);
            let addr = ChunkAddr::new(store.layout.device_of(lcn), chunk);
            match self.log.fate(id, i) {
                MemberFate::Superseded if planted(Planted::FreeSupersededEarly) => {}
                MemberFate::Superseded => store.free(addr.dev, addr.chunk),
                MemberFate::Covered => self.log.disown(id, i),
                MemberFate::Newest => {
                    unreachable!("a log stripe is released when nothing is the newest version in it")
                }
            }
        }
        self.log.release(id);
    }

    fn apply_log_stripe(&mut self, store: &mut Store, seq: Seq, record: LogStripe<'_>) {
        self.list.keep_promise(self.list.growth(1, record.members().len()));
        let id = self.log.insert(seq, record.log_block(), record.log_crcs().iter());
        record.members().iter().for_each(|member| self.log.push_newest(id, member));
        // Two passes: superseding a member must not release the stripe that is just being built.
        for (owner, member) in (self.log.place(id, 0)..).zip(record.members().iter()) {
            self.supersede(store, member.lcn, StripeChunk { chunk: member.chunk, crc: member.crc }, owner);
        }
    }

    fn apply_zero(&mut self, store: &mut Store, first: Lcn, count: u64) {
        let (geometry, end) = (store.config.geometry, first.get() + count);
        for lcn in (first.get()..end).map(Lcn::new) {
            let stripe = geometry.stripe_of(lcn);
            if lcn == first || geometry.column_of(lcn) == 0 {
                let stripe_end = geometry.lcn_at(StripeId::new(stripe.get() + 1), 0).get();
                let growth = self.growth_of_zeros(store, lcn.get(), stripe_end.min(end));
                self.list.keep_promise(growth);
            }
            if !store.table.current(lcn).chunk.is_none() {
                self.supersede(store, lcn, StripeChunk::NONE, NO_OWNER);
            }
            let last = geometry.column_of(lcn) + 1 == geometry.data_count() || lcn.get() + 1 == end;
            if last && self.dirty.is_dirty(stripe) && self.is_all_zero(store, stripe) {
                // No data is left in the stripe: it needs no parity, and so no commit.
                self.versions.clear();
                self.versions.resize(geometry.device_count(), StripeChunk::NONE);
                self.replace_stripe(store, stripe);
            }
        }
    }

    fn is_all_zero(&self, store: &Store, stripe: StripeId) -> bool {
        let columns = store.table.columns(stripe);
        (0..store.config.geometry.data_count()).all(|column| columns.get(column).chunk.is_none())
    }

    /// What the list of a checkpoint would take now.
    fn list_size(&self) -> ListSize {
        let dirty = (self.dirty.count(), self.dirty.updated_total());
        self.list.size(dirty, (self.log.live_count(), self.log.member_total()))
    }

    /// What the list grows by when the chunks `from..to`, all of one stripe, become zeros: nothing if the
    /// stripe needs no parity afterwards, or they were updated already, or have no data.
    fn growth_of_zeros(&self, store: &Store, from: u64, to: u64) -> ListSize {
        let geometry = store.config.geometry;
        let stripe = geometry.stripe_of(Lcn::new(from));
        if to - from == columns(&store.config).0 {
            return ListSize::default();
        }
        let known = self.dirty.columns(stripe);
        let is_new = |&lcn: &u64| {
            let lcn = Lcn::new(lcn);
            let known = known.and_then(|known| known.get(geometry.column_of(lcn)));
            known.is_none_or(|known| known.committed == SAME) && !store.table.current(lcn).chunk.is_none()
        };
        let updated: u64 = (from..to).filter(is_new).map(|_| 1).sum();
        let becomes_dirty = updated > 0 && known.is_none();
        self.list.size((u64::from(becomes_dirty), updated), (0, 0))
    }

    fn is_unwritten(&self, store: &Store, stripe: StripeId) -> bool {
        !self.dirty.is_dirty(stripe)
            && store.table.parity(stripe, 0).chunk.is_none()
            && self.is_all_zero(store, stripe)
    }
}

/// The columns that a record of updates or of a commit is about.
#[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
fn each_stretch(geometry: &Geometry, record: RecordRef<'_>, mut look: impl FnMut(StripeId, Range<usize>)) {
    match record {
        RecordRef::LogStripe(record) => {
            let members = record.members().iter();
            members.for_each(|member| {
                let column = geometry.column_of(member.lcn);
                look(geometry.stripe_of(member.lcn), column..column + 1);
            });
        }
        RecordRef::Commit(record) => look(record.stripe(), 0..geometry.data_count()),
        _ => {}
    }
}

impl Scheme for Eplog {
    fn locate(&self, store: &Store, lcn: Lcn) -> Located {
        let geometry = store.config.geometry;
        let (stripe, column) = (geometry.stripe_of(lcn), geometry.column_of(lcn));
        let StripeChunk { chunk, crc } = store.table.column(stripe, column);
        if chunk.is_none() {
            return Located::Zero;
        }
        let addr = ChunkAddr::new(store.layout.device(stripe, column), chunk);
        match self.dirty.updated(stripe, column) {
            None => Located::At { piece: Piece { index: column, addr, crc }, word: Word::Stripe(stripe) },
            Some(Updated { owner, .. }) => {
                let (id, index) = self.log.member_at(owner);
                debug_assert!(self.log.has_newest(owner, lcn, chunk), "the owner lists its members");
                Located::At { piece: Piece { index, addr, crc }, word: Word::Log(id) }
            }
        }
    }

    fn codeword(&self, store: &Store, word: Word, out: &mut Codeword) {
        out.clear();
        match word {
            Word::Stripe(stripe) => {
                let geometry = store.config.geometry;
                let k = geometry.data_count();
                let mut push = |index: usize, dev, StripeChunk { chunk, crc }| {
                    if !chunk.is_none() {
                        out.pieces.push(Piece { index, addr: ChunkAddr::new(dev, chunk), crc });
                    }
                };
                for column in 0..k {
                    let version = self.committed(store, stripe, column);
                    push(column, store.layout.device(stripe, column), version);
                }
                for row in 0..geometry.parity_count() {
                    let index = store.code.width_max() + row;
                    push(index, store.layout.device(stripe, k + row), store.table.parity(stripe, row));
                }
                out.data_count = out.pieces.iter().filter(|p| p.index < k).count();
            }
            Word::Row(_) => {}
            Word::Log(id) => {
                for i in 0..self.log.member_count(id) {
                    let LogMember { lcn, chunk, crc } = self.log.member(id, i);
                    let addr = ChunkAddr::new(store.layout.device_of(lcn), chunk);
                    out.pieces.push(Piece { index: i, addr, crc });
                }
                out.data_count = out.pieces.len();
                for (row, &crc) in self.log.crcs(id).iter().enumerate() {
                    let addr = ChunkAddr::new(store.log_device(row), self.log.block(id));
                    out.pieces.push(Piece { index: store.code.width_max() + row, addr, crc });
                }
            }
        }
    }

    fn lcns_of(&self, store: &Store, word: Word, out: &mut Vec<Lcn>) {
        let geometry = store.config.geometry;
        match word {
            Word::Stripe(stripe) => {
                out.extend((0..geometry.data_count()).map(|column| geometry.lcn_at(stripe, column)));
            }
            Word::Log(id) => out.extend((0..self.log.member_count(id)).map(|i| self.log.member(id, i).lcn)),
            Word::Row(_) => {}
        }
    }

    fn takes_what_fits(&self) -> bool {
        false
    }

    fn holds_bundle(&self, store: &Store, chunks: u64) -> bool {
        self.has_room_for_bundle(store, chunks)
    }

    fn is_in_use(&self, store: &Store, stripe: StripeId) -> bool {
        let geometry = store.config.geometry;
        self.dirty.is_dirty(stripe)
            || (0..geometry.device_count()).any(|column| !store.table.column(stripe, column).chunk.is_none())
    }

    fn plan_writes(
        &mut self,
        store: &mut Store,
        _health: &Health,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    ) {
        self.plan_write_batch(store, pool, writes, refused, plan);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn apply(&mut self, store: &mut Store, seq: Seq, record: RecordRef<'_>) -> Result<(), Rejected> {
        if !self.accepts(store, record) {
            return Err(Rejected);
        }
        self.versions.clear();
        match record {
            RecordRef::LogStripe(record) => self.apply_log_stripe(store, seq, record),
            RecordRef::FullStripe(record) => {
                self.versions.extend(record.chunks().iter());
                self.replace_stripe(store, record.stripe());
            }
            RecordRef::Commit(record) => self.apply_commit(store, record),
            RecordRef::Zero(record) => self.apply_zero(store, record.first(), record.count()),
            _ => return Err(Rejected),
        }
        Ok(())
    }

    fn is_far(&self, store: &Store) -> bool {
        store.table.is_far() || self.log.is_far()
    }

    fn prefetch_writes(&self, store: &Store, lcns: &mut dyn Iterator<Item = Lcn>) {
        let geometry = &store.config.geometry;
        lcns.for_each(|lcn| {
            let stripe = geometry.stripe_of(lcn);
            store.table.prefetch_to_hold(stripe, geometry.column_of(lcn));
            self.dirty.prefetch_place(stripe);
        });
    }

    fn prefetch(&self, store: &Store, record: RecordRef<'_>) {
        each_stretch(&store.config.geometry, record, |stripe, columns| {
            store.table.prefetch(stripe, columns.start);
            self.dirty.prefetch(stripe, columns);
        });
    }

    fn foresee(&self, store: &Store, record: RecordRef<'_>) {
        each_stretch(&store.config.geometry, record, |stripe, columns| {
            let known = self.dirty.columns(stripe).unwrap_or_default().iter();
            let owners = known.take(columns.end).skip(columns.start).map(|updated| updated.owner);
            owners.filter(|&owner| owner != NO_OWNER).for_each(|owner| self.log.prefetch(owner));
        });
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "records of whatever other schemes there are")]
    fn accepts(&self, store: &Store, record: RecordRef<'_>) -> bool {
        record.fits(&store.config)
            && match record {
                RecordRef::LogStripe(record) => record.members().len() <= store.code.width_max(),
                RecordRef::Commit(record) => {
                    let columns = store.table.columns(record.stripe());
                    record.data().iter().enumerate().all(|(column, chunk)| columns.get(column).chunk == chunk)
                }
                RecordRef::FullStripe(_) | RecordRef::Zero(_) => true,
                _ => false,
            }
    }

    fn configure(&mut self, _store: &Store, options: &SchemeOptions) {
        self.rewrites = options.rewrites;
    }

    fn memory(&self) -> SchemeMemory {
        SchemeMemory {
            fixed_bytes: self.dirty.fixed_bytes(),
            dynamic_bytes: self.dirty.dynamic_bytes() + self.log.dynamic_bytes(),
            placement_bytes: 0,
        }
    }

    fn save(&self, _store: &Store, words: &mut Vec<u32>) {
        self.save_items(words);
    }

    fn begin_list(&mut self) -> Option<usize> {
        self.dirty.begin_list();
        self.log.begin_list();
        Some(usize::try_from(self.list_size().words).expect("the list fits memory"))
    }

    fn say_more(&mut self, words: &mut Vec<u32>, count: usize) -> bool {
        self.say_more_items(words, count)
    }

    fn change_count(&self) -> usize {
        self.dirty.change_count() + self.log.change_count()
    }

    fn changes_max(&self) -> usize {
        let changed = self.dirty.changed_words() + self.log.changed_words();
        let gone = self.dirty.cleaned_words() + self.log.ended_words();
        let words = changed.min(self.list_size().words) + gone;
        usize::try_from(words).expect("the list fits memory")
    }

    fn begin_changes(&mut self) -> Option<usize> {
        let most = self.changes_max();
        self.dirty.begin_changes();
        self.log.begin_changes();
        Some(most)
    }

    fn save_changes(&mut self, words: &mut Vec<u32>) -> bool {
        self.save_changed_items(words);
        true
    }

    fn list_is_saved(&mut self) {
        self.dirty.all_saved();
        self.log.all_saved();
    }

    fn foresee_list(&mut self, config: &ArrayConfig, list: List<'_>) {
        self.expect_dirty_stripes(config, list.dirty_stripe_count() / 16 * 17);
    }

    fn load(&mut self, store: &mut Store, list: List<'_>) -> Result<(), Contradiction> {
        self.load_items(store, list)
    }

    fn check_page(&self, table: &Table, page: usize, words: &[u32]) -> Result<(), Contradiction> {
        self.check_owners_on(table, page, words)
    }

    fn claim_space(&self, store: &Store, claimed: &mut [ChunkBits]) -> Result<(), Contradiction> {
        self.claim_all(store, claimed)
    }

    fn logs(&self) -> Option<&dyn Logs> {
        Some(self)
    }

    fn commits(&self) -> Option<&dyn Commits> {
        Some(self)
    }

    fn commits_mut(&mut self) -> Option<&mut dyn Commits> {
        Some(self)
    }
}

impl Commits for Eplog {
    fn take_dirty(&mut self, _store: &Store, count: usize, out: &mut Vec<StripeId>) {
        self.dirty.take(count, out);
    }

    fn return_dirty(&mut self, stripe: StripeId) {
        self.dirty.put_back(stripe);
    }

    fn is_dirty(&self, stripe: StripeId) -> bool {
        self.dirty.is_dirty(stripe)
    }

    fn pressure(&self, store: &Store) -> Pressure {
        let low_chunks = store.spaces.iter().any(|space| {
            let spare = store.config.chunks_per_device - store.config.stripe_count as u32;
            space.free_for_users() < spare / LOW_SPACE_DIVISOR
        });
        Pressure {
            dirty_stripes: self.dirty.count(),
            log_stripes: self.log.live_count(),
            low_space: low_chunks || self.list.is_low(self.list_size()),
            low_log: is_log_low(store),
        }
    }

    fn log_holders(&self, store: &Store, before: u64, out: &mut Vec<StripeId>) {
        let first = out.len();
        out.extend(
            self.log.newest_before(&store.log, before).map(|lcn| store.config.geometry.stripe_of(lcn)),
        );
        out[first..].sort_unstable();
        out.dedup();
    }

    fn space_holders(&mut self, unwanted: &[StripeId], out: &mut Vec<StripeId>) {
        self.dirty.most_updated(unwanted, out);
    }

    fn put_first(&mut self, stripes: &[StripeId]) {
        self.dirty.put_first(stripes);
    }

    fn promise_zeros(&mut self, store: &Store, from: Lcn, to: Lcn) -> bool {
        let growth = self.growth_of_zeros(store, from.get(), to.get());
        let has_room = self.list.has(self.list_size(), growth);
        if has_room {
            self.list.promise(growth);
        }
        has_room
    }

    fn foresee_commits(&self, store: &Store, stripes: &[StripeId]) {
        let k = store.config.geometry.data_count();
        for &stripe in stripes {
            store.table.prefetch(stripe, 0);
            store.table.prefetch(stripe, k);
            self.dirty.prefetch_place(stripe);
        }
        stripes.iter().for_each(|&stripe| self.dirty.prefetch(stripe, 0..k));
    }

    fn plan_commit(
        &mut self,
        store: &mut Store,
        health: &Health,
        pool: &mut Pool,
        stripe: StripeId,
        plan: &mut Plan,
    ) -> CommitOutcome {
        self.plan_stripe_commit(store, health, pool, stripe, plan)
    }

    /// All columns are read next; if that was tried, the next attempt begins with what reads less.
    fn commit_otherwise(&mut self, stripe: StripeId) -> bool {
        let is_new = self.encode_only.insert(stripe);
        if !is_new {
            self.encode_only.remove(&stripe);
        }
        is_new
    }

    fn log_words(&self, out: &mut Vec<Word>) {
        out.extend(self.log.live_ids().map(Word::Log));
    }
}

impl Logs for Eplog {
    fn log_tail(&self, store: &Store) -> u64 {
        self.log.oldest_position(&store.log)
    }

    fn newest_log_block(&self) -> Option<ChunkIndex> {
        self.log.live_ids().last().map(|id| self.log.block(id))
    }
}

#[cfg(test)]
mod tests;
