//! What a checkpoint keeps of the scheme, and what is in use after loading it.

use super::Eplog;
use super::dirty::{NO_OWNER, SAME, Updated};
use super::log_table::Fate;
use crate::planted::{Planted, planted};
use crate::scheme::{Contradiction, Scheme};
use crate::space::ChunkBits;
use crate::store::Store;
use block::ChunkAddr;
use format::record::LogStripe;
use format::{ListItem, LogMember, RecordBuf};

impl Eplog {
    /// Dirty stripes with their committed versions, oldest first, then live log stripes in log order.
    pub(super) fn save_items(&self, words: &mut Vec<u32>) {
        words.reserve_exact(usize::try_from(self.list_size().words).expect("the list fits memory"));
        for (stripe, columns) in self.dirty.entries() {
            ListItem::DirtyStripe {
                stripe,
                committed: columns.iter().map(|column| column.committed).collect(),
            }
            .encode(words);
        }
        for id in self.log.live_ids() {
            let item = ListItem::LogStripe {
                first_seq: self.log.seq(id),
                log_block: self.log.block(id),
                log_crcs: self.log.crcs(id).to_vec(),
                members: (0..self.log.member_count(id)).map(|i| self.log.member(id, i)).collect(),
            };
            item.encode(words);
        }
    }

    /// Loads saved items over a loaded table.
    pub(super) fn load_items(&mut self, store: &mut Store, items: &[ListItem]) -> Result<(), Contradiction> {
        let geometry = store.config.geometry;
        for item in items {
            if let ListItem::DirtyStripe { stripe, committed } = item {
                let known =
                    committed.iter().all(|&c| c == SAME || c.chunk.get() <= store.config.chunks_per_device);
                if stripe.get() >= store.config.stripe_count
                    || committed.len() != geometry.data_count()
                    || !known
                {
                    return Err(Contradiction::Stripe { what: "the list item", stripe: *stripe });
                }
                let old = committed.iter().enumerate().filter(|&(_, &version)| version != SAME);
                old.for_each(|(column, &version)| {
                    self.dirty.update(*stripe, column, version, NO_OWNER);
                });
            }
        }
        let mut record = RecordBuf::default();
        for item in items {
            let ListItem::LogStripe { first_seq, log_block, log_crcs, members } = item else { continue };
            record.clear();
            LogStripe::begin(&mut record, *log_block, log_crcs.len());
            members.iter().for_each(|&member| {
                LogStripe::push(&mut record, member);
            });
            if !self.accepts(store, record.get(0)) {
                return Err(Contradiction::LogStripe(*first_seq));
            }
            let id = self.log.insert(*first_seq, *log_block, log_crcs.iter().copied());
            for member in members {
                let (stripe, column) = (geometry.stripe_of(member.lcn), geometry.column_of(member.lcn));
                let addr = ChunkAddr::new(store.layout.device(stripe, column), member.chunk);
                let is_newest = store.table.column(stripe, column).chunk == member.chunk;
                let fate = match self.dirty.updated(stripe, column) {
                    None if is_newest => Fate::Covered,
                    Some(_) if is_newest => Fate::Newest,
                    Some(updated) if updated.committed.chunk == member.chunk => Fate::Covered,
                    None | Some(_) => Fate::Superseded,
                };
                if fate == Fate::Newest && !self.dirty.set_owner(stripe, column, id) {
                    return Err(Contradiction::LogStripe(*first_seq));
                }
                self.log.push_member(id, *member, addr, fate);
            }
            if self.log.live_members(id) == 0 {
                return Err(Contradiction::LogStripe(*first_seq));
            }
        }
        self.check_owners(store)
    }

    /// Every uncommitted version must be a member of a live log stripe.
    fn check_owners(&self, store: &Store) -> Result<(), Contradiction> {
        for (stripe, columns) in self.dirty.entries() {
            let updated = columns.iter().enumerate().filter(|(_, column)| column.committed != SAME);
            for (column, &Updated { owner, .. }) in updated {
                let is_zero = store.table.column(stripe, column).chunk.is_none();
                if is_zero != (owner == NO_OWNER) {
                    let lcn = store.config.geometry.lcn_at(stripe, column);
                    return Err(Contradiction::Chunk { what: "the log stripe", lcn });
                }
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
                if self.log.fate(id, index) == Fate::Superseded {
                    let LogMember { lcn, chunk, .. } = self.log.member(id, index);
                    claim(claimed, ChunkAddr::new(layout.device_of(lcn), chunk))?;
                }
            }
        }
        Ok(())
    }
}

fn claim(claimed: &mut [ChunkBits], addr: ChunkAddr) -> Result<(), Contradiction> {
    if addr.chunk.is_none() || claimed[addr.dev.index()].claim(addr.chunk) {
        Ok(())
    } else {
        Err(Contradiction::Owners(addr))
    }
}
