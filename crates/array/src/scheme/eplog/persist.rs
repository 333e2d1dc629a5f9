//! What a checkpoint keeps of the scheme, and what is in use after loading it.

use super::Eplog;
use super::dirty::{self, NO_OWNER, SAME, Updated};
use super::log_table::ChangedLogStripes;
use crate::planted::{Planted, planted};
use crate::scheme::{Contradiction, Scheme};
use crate::space::ChunkBits;
use crate::store::Store;
use crate::table::Table;
use block::{ChunkAddr, ChunkIndex, StripeId};
use format::record::LogStripe;
use format::{
    ArrayConfig, ItemRef, List, LogMember, MemberFate, RecordBuf, push_clean_stripes, push_ended_log_stripes,
};

/// Dirty stripes of a list whose places in memory are looked at side by side, since each is far from those of
/// the others.
const LOADED_AT_ONCE: usize = 32;

impl Eplog {
    /// Dirty stripes with their committed versions, in their order, then live log stripes in log order.
    pub(super) fn save_items(&self, words: &mut Vec<u32>) {
        words.reserve_exact(usize::try_from(self.list_size().words).expect("the list fits memory"));
        for (stripe, columns) in self.dirty.entries() {
            dirty::push_item(words, stripe, columns);
        }
        for id in self.log.live_ids() {
            self.log.push_item(words, id);
        }
    }

    /// The same of when the list was begun, about `count` more of them; `false` if these were the last. Dirty
    /// stripes that changed meanwhile come early.
    pub(super) fn say_more_items(&mut self, words: &mut Vec<u32>, count: usize) -> bool {
        self.dirty.say_more(words, count) || self.log.say_more(words, count)
    }

    /// What changed since the list before: what went first, since a stripe may be dirty anew.
    pub(super) fn save_changed_items(&mut self, words: &mut Vec<u32>) {
        let ChangedLogStripes { ended, new, others } = self.log.take_changes();
        if !planted(Planted::ChangesKeepClean) {
            push_clean_stripes(words, self.dirty.take_cleaned().into_iter());
        }
        push_ended_log_stripes(words, ended.into_iter());
        self.dirty.take_changed(|stripe, columns| dirty::push_item(words, stripe, columns));
        for &id in &new {
            self.log.push_item(words, id);
        }
        for &id in &others {
            self.log.push_fates(words, id);
        }
    }

    /// Loads saved items over a loaded table, of which pages may be absent.
    pub(super) fn load_items(&mut self, store: &mut Store, list: List<'_>) -> Result<(), Contradiction> {
        self.load_dirty_stripes(&store.config, list)?;
        self.load_log_stripes(store, list)?;
        self.check_owners(&store.table)
    }

    /// So many stripes become dirty at once, if there are as many.
    pub(super) fn expect_dirty_stripes(&mut self, config: &ArrayConfig, stripes: usize) {
        let most = usize::try_from(config.stripe_count).unwrap_or(usize::MAX);
        self.dirty.expect(stripes.min(most));
    }

    fn load_dirty_stripes(&mut self, config: &ArrayConfig, list: List<'_>) -> Result<(), Contradiction> {
        self.expect_dirty_stripes(config, list.dirty_stripe_count());
        let stripes = list.items().filter_map(|item| {
            let ItemRef::DirtyStripe { stripe, committed } = item else { return None };
            Some((stripe, committed))
        });
        let mut stripes = stripes.take(list.dirty_stripe_count());
        let mut some = Vec::with_capacity(LOADED_AT_ONCE);
        loop {
            some.clear();
            some.extend(stripes.by_ref().take(LOADED_AT_ONCE));
            let is_there = |&&(stripe, _): &&(StripeId, _)| stripe.get() < config.stripe_count;
            some.iter().filter(is_there).for_each(|&(stripe, _)| self.dirty.prefetch_place(stripe));
            for &(stripe, committed) in &some {
                let contradiction = Contradiction::Stripe { what: "the list item", stripe };
                let columns = committed.iter();
                if stripe.get() >= config.stripe_count || columns.len() != config.geometry.data_count() {
                    return Err(contradiction);
                }
                for (column, version) in columns.enumerate().filter(|&(_, version)| version != SAME) {
                    if version.chunk.get() > config.chunks_per_device {
                        return Err(contradiction);
                    }
                    self.dirty.update(stripe, column, version, NO_OWNER);
                }
            }
            if some.is_empty() {
                return Ok(());
            }
        }
    }

    fn load_log_stripes(&mut self, store: &Store, list: List<'_>) -> Result<(), Contradiction> {
        let mut log_stripes = list.items_from_log_stripes().filter_map(|item| {
            let ItemRef::LogStripe { first_seq, log_block, log_crcs, members } = item else { return None };
            Some(((first_seq, log_block, log_crcs), members))
        });
        let (mut record, mut guess, mut some) = (RecordBuf::default(), 0, Vec::new());
        loop {
            some.clear();
            some.extend(log_stripes.by_ref().take(LOADED_AT_ONCE / store.code.width_max() + 1));
            foresee_members(store, some.iter().flat_map(|&(_, members)| members.iter()));
            for &((first_seq, log_block, log_crcs), members) in &some {
                record.clear();
                LogStripe::begin(&mut record, log_block, log_crcs.len());
                members.iter().for_each(|(member, _)| {
                    LogStripe::push(&mut record, member);
                });
                if !self.accepts(store, record.get(0)) || self.log.is_full() {
                    return Err(Contradiction::LogStripe(first_seq));
                }
                let id = self.log.insert(first_seq, log_block, log_crcs.iter().copied());
                let mut each = members.iter();
                let fits = each.all(|(member, fate)| self.load_member(store, (id, &mut guess), member, fate));
                if !fits || self.log.live_members(id) == 0 {
                    return Err(Contradiction::LogStripe(first_seq));
                }
            }
            if some.is_empty() {
                return Ok(());
            }
        }
    }

    /// Adds a member with the fate that the list gives it; `false` if that cannot be. What the table says is
    /// compared as far as it is in memory; the rest when its page comes ([`Scheme::check_page`]). `guess`
    /// says where its stripe may be among the dirty ones.
    fn load_member(
        &mut self,
        store: &Store,
        (id, guess): (u32, &mut usize),
        member: LogMember,
        fate: MemberFate,
    ) -> bool {
        let owner = self.log.place(id, self.log.member_count(id));
        let geometry = store.config.geometry;
        let (stripe, column) = (geometry.stripe_of(member.lcn), geometry.column_of(member.lcn));
        let table = &store.table;
        let current = (!table.lacks(stripe)).then(|| table.column(stripe, column).chunk);
        let may_be_current = current.is_none_or(|chunk| chunk == member.chunk);
        let may_be_old = current != Some(member.chunk);
        let updated = self.dirty.updated_mut(guess, stripe, column);
        let is_committed = updated.as_ref().map(|updated| updated.committed.chunk == member.chunk);
        let fits = match (fate, updated) {
            (MemberFate::Newest, Some(updated)) => {
                let is_free = std::mem::replace(&mut updated.owner, owner) == NO_OWNER;
                is_free && may_be_current && is_committed == Some(false)
            }
            (MemberFate::Newest, None) => false,
            (MemberFate::Covered, Some(_)) => is_committed == Some(true) && may_be_old,
            (MemberFate::Covered, None) => may_be_current,
            (MemberFate::Superseded, _) => is_committed != Some(true) && may_be_old,
        };
        fits && self.log.push_member(id, member, fate)
    }

    /// Every uncommitted version must be a member of a live log stripe. Those on pages that are absent are
    /// looked at when the page comes.
    fn check_owners(&self, table: &Table) -> Result<(), Contradiction> {
        let check = |(stripe, columns): (StripeId, &[Updated])| {
            self.check_stripe(table, stripe, columns, |column| table.column(stripe, column).chunk)
        };
        if table.is_paged() {
            let in_memory = table.stripes_in_memory();
            in_memory.filter_map(|stripe| Some((stripe, self.dirty.columns(stripe)?))).try_for_each(check)
        } else {
            self.dirty.entries().try_for_each(check)
        }
    }

    /// The same of the dirty stripes of a page that comes into memory, which has these words.
    pub(super) fn check_owners_on(
        &self,
        table: &Table,
        page: usize,
        words: &[u32],
    ) -> Result<(), Contradiction> {
        for stripe in self.dirty.dirty_in(table.stripes_of(page)) {
            if let Some(columns) = self.dirty.columns(stripe) {
                let current = |column| table.column_on(words, stripe, column).chunk;
                self.check_stripe(table, stripe, columns, current)?;
            }
        }
        Ok(())
    }

    /// The same of a dirty stripe, whose newest versions `current` tells.
    fn check_stripe(
        &self,
        table: &Table,
        stripe: StripeId,
        columns: &[Updated],
        current: impl Fn(usize) -> ChunkIndex,
    ) -> Result<(), Contradiction> {
        let updated = columns.iter().enumerate().filter(|(_, column)| column.committed != SAME);
        for (column, &Updated { owner, .. }) in updated {
            let (chunk, lcn) = (current(column), table.geometry().lcn_at(stripe, column));
            let fits = match owner {
                NO_OWNER => chunk.is_none(),
                _ => self.log.has_newest(owner, lcn, chunk),
            };
            if !fits {
                return Err(Contradiction::Chunk { what: "the log stripe", lcn });
            }
        }
        Ok(())
    }

    /// Claims every chunk that the map, a committed version, parity, or a live log stripe names.
    pub(super) fn claim_all(&self, store: &Store, claimed: &mut [ChunkBits]) -> Result<(), Contradiction> {
        let Store { table, layout, .. } = store;
        for (stripe, column, chunk) in table.named_chunks() {
            claim(claimed, ChunkAddr::new(layout.device(stripe, column), chunk))?;
        }
        for (stripe, columns) in self.dirty.entries() {
            for (column, updated) in columns.iter().enumerate().filter(|(_, known)| known.committed != SAME) {
                let dev = layout.device(stripe, column);
                claim(claimed, ChunkAddr::new(dev, updated.committed.chunk))?;
            }
        }
        if planted(Planted::FreeSupersededEarly) {
            return Ok(());
        }
        for id in self.log.live_ids() {
            for index in 0..self.log.member_count(id) {
                if self.log.fate(id, index) == MemberFate::Superseded {
                    let LogMember { lcn, chunk, .. } = self.log.member(id, index);
                    claim(claimed, ChunkAddr::new(layout.device_of(lcn), chunk))?;
                }
            }
        }
        Ok(())
    }
}

/// Looks at whether pages of members are there, side by side, before anybody asks.
fn foresee_members(store: &Store, members: impl Iterator<Item = (LogMember, MemberFate)> + Clone) {
    let stripes = members.map(|(member, _)| store.config.geometry.stripe_of(member.lcn));
    let there = stripes.filter(|stripe| stripe.get() < store.config.stripe_count);
    there.clone().for_each(|stripe| store.table.prefetch_lacks(stripe));
    std::hint::black_box(there.fold(false, |seen, stripe| seen ^ store.table.lacks(stripe)));
}

fn claim(claimed: &mut [ChunkBits], addr: ChunkAddr) -> Result<(), Contradiction> {
    if addr.chunk.is_none() || claimed[addr.dev.index()].claim(addr.chunk) {
        Ok(())
    } else {
        Err(Contradiction::Owners(addr))
    }
}
