//! The write path: data in place, the change of the parity to the log (EPLOG, section 2.2 and figure 1a).
//!
//! | write | reads | data | parity |
//! |---|---|---|---|
//! | of a whole stripe that has no data yet | nothing | in place | in place |
//! | of a part of a stripe | the old version of the columns written | in place | its change: one log chunk for each row |
//! | of a part of a stripe that may have no more log chunks | the columns not written | in place | itself: see below |
//! | of a whole stripe that has data | nothing | in place | itself: one log chunk for each row, which replaces the parity on the main device and the log chunks before it; in place if the log is full |
//!
//! Only the first write of a stripe brings parity to the SSDs, as in `eplog` (EPLOG, section 3.2), so that
//! both write the same to them (H-04). Log chunks that are the parity itself bound what a checkpoint must
//! hold and what a read of a lost chunk must add up, without a read of parity: what a log or a parity device
//! holds may be unreadable, data never is.

use super::ParityLog;
use crate::plan::{Compute, Plan};
use crate::planted::{Planted, planted};
use crate::scheme::ChunkWrite;
use crate::scheme::in_place::unit::{Unit, Units, encode, read, units_of_all};
use crate::scheme::in_place::{has_data, is_written};
use crate::scheme::log_room::LOG_SET_ASIDE_BLOCKS;
use crate::store::{LogLease, Store};
use block::{Pool, Slot};

/// Reused between batches.
#[derive(Default)]
pub struct Scratch {
    /// Per column of the stripe being planned: the slot that holds its old version.
    old: Vec<Option<Slot>>,
}

impl ParityLog {
    /// Plans the writes stripe by stripe, as far as there is room.
    pub(super) fn plan_write_batch(
        &mut self,
        store: &mut Store,
        pool: &mut Pool,
        writes: &mut Vec<ChunkWrite>,
        refused: &mut Vec<ChunkWrite>,
        plan: &mut Plan,
    ) {
        // At most k old versions, and the parities.
        let needed = store.slots_kept() + store.main_count();
        let (mut planned, mut units) = (0, Units::default());
        self.log_full = false;
        if plan.untorn && !planted(Planted::PlanPartOfUntorn) {
            let count = units_of_all(store, writes);
            let has_slots = |count| pool.free_count() >= store.slots_kept() + count * store.main_count();
            let has_log = |count| store.log.has_room_for_chunks(count, LOG_SET_ASIDE_BLOCKS);
            self.log_full = count.is_some_and(|count| !has_log(count));
            if self.log_full || !count.is_some_and(has_slots) {
                return refused.append(writes);
            }
        }
        let mut old = std::mem::take(&mut self.scratch.old);
        while let Some(unit) = units.next(store, &writes[planned..]) {
            if pool.free_count() < needed {
                break;
            }
            old.clear();
            old.resize(store.config.geometry.data_count(), None);
            let updates = !unit.is_full(store) || has_data(store, unit.stripe);
            let room = updates.then(|| store.log.reserve_chunk(LOG_SET_ASIDE_BLOCKS)).flatten();
            if let Some(room) = room {
                self.plan_logged(store, pool, &mut old, unit, plan, room);
            } else if unit.is_full(store) {
                let parities = encode(store, pool, &old, unit, plan);
                unit.write_whole(store, parities, plan);
            } else {
                self.log_full = true;
                break;
            }
            planned += unit.writes.len();
        }
        self.scratch.old = old;
        refused.extend(writes.drain(planned..));
    }

    fn plan_logged(
        &mut self,
        store: &Store,
        pool: &mut Pool,
        old: &mut [Option<Slot>],
        unit: Unit<'_>,
        plan: &mut Plan,
        room: LogLease,
    ) {
        // Of a chunk that is lost nobody knows the change: the parity is computed anew.
        let lost = unit.writes.iter().any(|write| store.lost.contains(write.lcn));
        let whole = unit.is_full(store) || lost || !self.may_grow(store, unit.stripe);
        for (column, old) in old.iter_mut().enumerate() {
            let needed = match unit.find(store, column) {
                Some(write) => !whole || unit.is_partial(write),
                None => whole,
            };
            if needed && is_written(store, unit.stripe, column) {
                *old = Some(read(store, pool, unit.stripe, column, plan));
            }
        }
        unit.fill(store, old, plan);
        let parities = match whole {
            true => encode(store, pool, old, unit, plan),
            false => changes(store, pool, old, unit, plan),
        };
        let crcs = unit.write_data(store, whole, plan);
        plan.append_log_chunks(store, parities, crcs, room);
        if !whole {
            self.growing.insert(unit.stripe);
        }
    }
}

/// Adds up the changes of all columns written, from zeros; returns where in `plan.slots` they are.
fn changes(store: &Store, pool: &mut Pool, old: &[Option<Slot>], unit: Unit<'_>, plan: &mut Plan) -> usize {
    let (none, from) = (plan.columns.len(), plan.slots.len());
    for _ in 0..store.config.geometry.parity_count() {
        let slot = plan.own_slot(pool);
        plan.slots.push(slot);
    }
    let parities = from..plan.slots.len();
    plan.computes.push(Compute::Encode {
        columns: none..none,
        inputs: from..from,
        outputs: parities.clone(),
    });
    for write in unit.writes {
        let column = store.config.geometry.column_of(write.lcn);
        let (old, new) = (old[column], Some(write.slot));
        plan.computes.push(Compute::Delta { column, old, new, parities: parities.clone() });
    }
    from
}
