//! What a stripe parts with when its parity covers its data: by a commit, or as it is replaced as a whole.

use super::Eplog;
use super::dirty::SAME;
use crate::planted::{Planted, planted};
use crate::store::Store;
use block::{ChunkAddr, ChunkIndex, Lcn, StripeId};
use format::MemberFate;
use format::record::Commit;

/// See the module's documentation; reused.
#[derive(Default)]
pub struct Parting {
    /// Versions of data that no parity covers any more, and their columns.
    uncovered: Vec<(usize, ChunkIndex)>,
    /// Where those that were the newest, and not committed, are among the members of log stripes.
    owners: Vec<u32>,
    /// The parity that is replaced.
    parity: Vec<ChunkIndex>,
}

impl Parting {
    fn clear(&mut self) {
        self.uncovered.clear();
        self.owners.clear();
        self.parity.clear();
    }
}

impl Eplog {
    /// The stripe's parity covers the newest versions of its columns, which stay as they are: only what was
    /// updated has another part in it.
    pub(super) fn apply_commit(&mut self, store: &mut Store, record: Commit<'_>) {
        let (stripe, k) = (record.stripe(), store.config.geometry.data_count());
        let Self { dirty, parting, .. } = self;
        parting.clear();
        let known = dirty.columns(stripe).unwrap_or_default().iter().enumerate();
        let updates = known.filter(|(_, updated)| updated.committed != SAME);
        for (column, updated) in updates.take(if planted(Planted::CommitForgetsColumn) { 1 } else { k }) {
            parting.uncovered.push((column, updated.committed.chunk));
            parting.owners.push(updated.owner);
        }
        let mut columns = store.table.columns_mut(stripe);
        for (column, version) in (k..).zip(record.parity().iter()) {
            let old = columns.replace(column, version).chunk;
            let is_kept = planted(Planted::CommitInPlace) && old == version.chunk;
            parting.parity.push(if is_kept { ChunkIndex::NONE } else { old });
        }
        self.part(store, stripe, MemberFate::Covered);
    }

    /// Columns of the stripe, data and parity, are new, or zeros as before; their versions are in
    /// `self.versions`. Nothing is asked of the state before: columns and parity may be there or not, and
    /// updates that were not committed are dropped with the log stripes that nothing else needs.
    pub(super) fn replace_stripe(&mut self, store: &mut Store, stripe: StripeId) {
        let geometry = store.config.geometry;
        let Self { dirty, versions, parting, .. } = self;
        assert_eq!(versions.len(), geometry.device_count(), "each column has a version");
        parting.clear();
        let known = dirty.columns(stripe).unwrap_or_default();
        let mut columns = store.table.columns_mut(stripe);
        for (column, &version) in versions.iter().enumerate() {
            let current = columns.replace(column, version).chunk;
            match known.get(column).filter(|updated| updated.committed != SAME) {
                _ if column >= geometry.data_count() => parting.parity.push(current),
                Some(updated) => {
                    parting.uncovered.push((column, updated.committed.chunk));
                    parting.owners.push(updated.owner);
                }
                None if current != version.chunk => parting.uncovered.push((column, current)),
                None => {}
            }
        }
        self.part(store, stripe, MemberFate::Superseded);
    }

    /// The stripe is clean; `fate` is that of its members of log stripes.
    fn part(&mut self, store: &mut Store, stripe: StripeId, fate: MemberFate) {
        let geometry = store.config.geometry;
        let parting = std::mem::take(&mut self.parting);
        self.dirty.clean(stripe);
        if !self.encode_only.is_empty() {
            self.encode_only.remove(&stripe);
        }
        // What a log stripe still owns is freed when that is released; look before releasing any.
        for &(column, chunk) in &parting.uncovered {
            let addr = ChunkAddr::new(store.layout.device(stripe, column), chunk);
            self.free_unless_owned(store, addr, geometry.lcn_at(stripe, column));
        }
        for &owner in &parting.owners {
            self.drop_live(store, owner, fate);
        }
        for (column, &chunk) in (geometry.data_count()..).zip(&parting.parity) {
            store.free(store.layout.device(stripe, column), chunk);
        }
        self.parting = parting;
    }

    /// No parity covers a version any more.
    fn free_unless_owned(&mut self, store: &mut Store, addr: ChunkAddr, lcn: Lcn) {
        let early = planted(Planted::FreeSupersededEarly);
        if !addr.chunk.is_none() && (!self.log.uncover(lcn, addr.chunk) || early) {
            store.free(addr.dev, addr.chunk);
        }
    }
}
