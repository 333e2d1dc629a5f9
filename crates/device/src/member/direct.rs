//! Operations on members in memory: done where they are asked for.
//!
//! tmpfs never makes a transfer wait, yet io_uring hands each to a thread of the kernel's: two switches of
//! threads for a copy of 4 KiB.

use super::{Member, Members, fault_of};
use crate::operation::transfer_place;
use block::{DeviceOp, IoFault, OpKind, Pool};
use rustix::fs::FallocateFlags;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

/// Most writes that become one.
pub(crate) const RUN_MAX: usize = 64;

impl Members {
    /// Carries out an operation, from or to its slot.
    pub(crate) fn carry_out(&self, pool: &mut Pool, op: &DeviceOp) -> Result<(), IoFault> {
        let Some(member) = self.get(op.dev) else { return Err(IoFault::Gone) };
        let file = member.file();
        match op.kind {
            OpKind::Read => {
                let (slot, length) = transfer_place(op, pool.slot_bytes());
                let done = file.read_exact_at(&mut pool.bytes_mut(slot)[..length], op.offset_bytes);
                done.map_err(|error| fault_of(&error))
            }
            OpKind::Write => self.write_alone(pool, member, op),
            OpKind::Flush => file.sync_data().map_err(|error| fault_of(&error)),
            OpKind::Discard => {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let done = rustix::fs::fallocate(file, hole, op.offset_bytes, op.length_bytes);
                done.map_err(|errno| fault_of(&io::Error::from(errno)))
            }
        }
    }

    /// Carries out writes of one member that continue each other, at most [`RUN_MAX`], in one call; whether
    /// it wrote them all. If not, nothing is lost: each is to be carried out alone.
    pub(crate) fn write_run(&self, pool: &Pool, ops: impl Iterator<Item = DeviceOp>) -> bool {
        let mut pieces = [IoSlice::new(&[]); RUN_MAX];
        let (mut count, mut bytes, mut at) = (0, 0, None);
        for (op, piece) in ops.zip(&mut pieces) {
            let (slot, length) = transfer_place(&op, pool.slot_bytes());
            *piece = IoSlice::new(&pool.bytes(slot)[..length]);
            at.get_or_insert((op.dev, op.offset_bytes));
            (count, bytes) = (count + 1, bytes + length);
        }
        let Some((dev, offset_bytes)) = at else { return true };
        let Some(member) = self.get(dev) else { return false };
        rustix::io::pwritev(member.file(), &pieces[..count], offset_bytes)
            .is_ok_and(|written| written == bytes)
    }

    fn write_alone(&self, pool: &Pool, member: &Member, op: &DeviceOp) -> Result<(), IoFault> {
        let (slot, length) = transfer_place(op, pool.slot_bytes());
        let done = member.file().write_all_at(&pool.bytes(slot)[..length], op.offset_bytes);
        done.map_err(|error| self.fault_of_failed_write(op.dev, &error))
    }
}
