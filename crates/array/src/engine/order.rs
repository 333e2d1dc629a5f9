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

use super::Core;
use crate::planted::{Planted, planted};
use block::{ChunkIndex, DeviceOp, META_BYTES, OpKind, Pool};
use format::LOG_START_BYTES;

/// Room to sort in.
#[derive(Default)]
pub(super) struct Order {
    log: Vec<(u64, DeviceOp)>,
}

impl Core {
    /// Operations to carry out, in order; the caller empties the vector.
    pub(super) fn take_ops(&mut self) -> (&mut Vec<DeviceOp>, &mut Pool) {
        if !planted(Planted::LogOutOfOrder) {
            self.order_log_writes();
        }
        (&mut self.ops.list, &mut self.pool)
    }

    /// Where in the log an operation writes; `None` for all others. Log devices that hold frames alone have a
    /// ring of their own for them.
    fn log_position(&self, op: &DeviceOp) -> Option<u64> {
        let in_log = self.store.config.has_log_chunks(op.dev) && op.kind == OpKind::Write;
        let blocks = op.offset_bytes.checked_sub(LOG_START_BYTES).filter(|_| in_log)? / META_BYTES as u64;
        let block = u32::try_from(blocks + 1).expect("the log region has fewer blocks than 2^32");
        Some(self.store.log.position_of(ChunkIndex::new(block)))
    }

    /// Puts the writes to the log devices behind everything else, each device's in the order of the log.
    fn order_log_writes(&mut self) {
        let config = &self.store.config;
        let may_be_in_log = |op: &DeviceOp| op.kind == OpKind::Write && config.has_log_chunks(op.dev);
        if config.log_count == 0 || !self.ops.list.iter().any(may_be_in_log) {
            return;
        }
        let (Order { mut log }, mut list) =
            (std::mem::take(&mut self.ops.order), std::mem::take(&mut self.ops.list));
        log.clear();
        list.retain(|op| {
            let position = self.log_position(op);
            log.extend(position.map(|position| (position, *op)));
            position.is_none()
        });
        if !log.is_sorted_by_key(|&(position, _)| position) {
            log.sort_unstable_by_key(|&(position, _)| position);
        }
        for row in 0..usize::from(self.store.config.log_count) {
            let dev = self.store.log_device(row);
            list.extend(log.iter().map(|&(_, op)| op).filter(|op| op.dev == dev));
        }
        self.ops.list = list;
        self.ops.order = Order { log };
    }
}
