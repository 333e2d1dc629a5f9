//! The order in which operations leave the engine.
//!
//! A log device is written front to back and nowhere else (EPLOG, section 3.1), so that a hard disk may
//! serve. Log chunks and frames get their places in one order; what is ready first in a turn need not be what
//! lies first: the frame that is full before the newest log chunks have their records in it lies behind them
//! and is ready before them. Writes of one turn may end in any order, so they may also leave in any. Whoever
//! gets a place in the log is written in the same turn, so the order within a turn is the order of all.
//!
//! Those of one log device leave side by side: they lie side by side, and a driver makes one transfer of
//! them.

use super::{Core, Ops};
use crate::planted::{Planted, planted};
use block::{ChunkIndex, DeviceOp, META_BYTES, OpKind, Pool};
use format::LOG_START_BYTES;

/// Writes into the logs that the driver has not taken yet, and where they go.
#[derive(Default)]
pub(super) struct Order {
    log: Vec<(u64, DeviceOp)>,
}

impl Ops {
    /// Whether the driver has taken all of them.
    pub(super) fn are_taken(&self) -> bool {
        self.list.is_empty() && self.order.log.is_empty()
    }
}

impl Core {
    /// An operation is to be carried out: writes into the logs behind everything else.
    #[inline(always)]
    pub(super) fn enlist(&mut self, op: DeviceOp) {
        match self.log_position(&op) {
            Some(position) => self.ops.order.log.push((position, op)),
            None => self.ops.list.push(op),
        }
    }

    /// Operations to carry out, in order; the caller empties the vector.
    pub(super) fn take_ops(&mut self) -> (&mut Vec<DeviceOp>, &mut Pool) {
        if !self.ops.order.log.is_empty() {
            self.append_log_writes();
        }
        (&mut self.ops.list, &mut self.pool)
    }

    /// Where in the log an operation writes; `None` for all others. Log devices that hold frames alone have a
    /// ring of their own for them.
    #[inline]
    fn log_position(&self, op: &DeviceOp) -> Option<u64> {
        let in_log = op.kind == OpKind::Write && self.store.config.has_log_chunks(op.dev);
        let blocks = op.offset_bytes.checked_sub(LOG_START_BYTES).filter(|_| in_log)? / META_BYTES as u64;
        let block = u32::try_from(blocks + 1).expect("the log region has fewer blocks than 2^32");
        Some(self.store.log.position_of(ChunkIndex::new(block)))
    }

    /// Puts the writes into the logs behind everything else, each device's in the order of the log.
    #[inline(never)]
    fn append_log_writes(&mut self) {
        let Self { ops: Ops { list, order: Order { log }, .. }, store, .. } = self;
        let is_sorted = log.is_sorted_by_key(|&(position, _)| position) || planted(Planted::LogOutOfOrder);
        if !is_sorted {
            log.sort_unstable_by_key(|&(position, _)| position);
        }
        for row in 0..usize::from(store.config.log_count) {
            let dev = store.log_device(row);
            list.extend(log.iter().map(|&(_, op)| op).filter(|op| op.dev == dev));
        }
        log.clear();
    }
}
