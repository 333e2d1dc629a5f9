//! Members in memory: sparse, gone with the process, as fast as the copy of the bytes.
//!
//! Every operation is carried out inside `submit`; its completion waits for `poll`. Memory is lazily
//! resident: a member costs what was written to it. Flush does nothing (there is no volatile cache in front
//! of memory). Discards of less than 1 MiB are ignored, larger ones give the pages back and read as zeros.

use crate::mapping::{Mapping, fetch_ahead, stream_copy, stream_end};
use crate::operation::{assert_grid, in_range, on_grid, range_fits, transfer_place};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, IoFault, OpKind, Pool};

/// Below this a discard costs more (system call, later page faults) than the memory is worth.
const RELEASE_BYTES_MIN: u64 = 1 << 20;
/// How many operations before its own turn a read is announced to the processor.
const OPS_AHEAD: usize = 2;

/// Memory for a member could not be had.
#[derive(Debug, thiserror::Error)]
#[error("memory device {dev} of {size_bytes} bytes: {source}")]
pub struct MemoryError {
    /// The member.
    pub dev: DevIndex,
    /// The size asked for.
    pub size_bytes: u64,
    /// What the operating system said.
    pub source: std::io::Error,
}

enum Member {
    Present(Mapping),
    Failed { size_bytes: u64 },
    Absent,
}

/// A set of members in memory.
pub struct MemorySet {
    members: Vec<Member>,
    done: Vec<Completion>,
}

impl MemorySet {
    /// One zeroed member for every size in bytes; a size of 0 makes an absent member.
    pub fn new(sizes_bytes: &[u64]) -> Result<Self, MemoryError> {
        let mut set =
            Self { members: sizes_bytes.iter().map(|_| Member::Absent).collect(), done: Vec::new() };
        for (dev, &size_bytes) in (0u16..).zip(sizes_bytes) {
            set.replace(DevIndex::new(dev), size_bytes)?;
        }
        Ok(set)
    }

    /// Breaks a member: its content is lost and all its operations end with [`IoFault::Gone`].
    pub fn fail(&mut self, dev: DevIndex) {
        let size_bytes = self.size_bytes(dev);
        if let Some(member) = self.members.get_mut(dev.index()) {
            *member = Member::Failed { size_bytes };
        }
    }

    /// Puts a fresh zeroed member in the place of `dev`, or takes it out with a size of 0. An index past the
    /// end adds absent members up to it.
    pub fn replace(&mut self, dev: DevIndex, size_bytes: u64) -> Result<(), MemoryError> {
        let refused = |source| MemoryError { dev, size_bytes, source };
        let member = if size_bytes == 0 {
            Member::Absent
        } else {
            let length =
                usize::try_from(size_bytes).map_err(|_| refused(std::io::ErrorKind::OutOfMemory.into()))?;
            Member::Present(Mapping::new(length).map_err(refused)?)
        };
        while self.members.len() <= dev.index() {
            self.members.push(Member::Absent);
        }
        self.members[dev.index()] = member;
        Ok(())
    }

    /// The content of a member; empty if it is absent or failed.
    pub fn bytes(&self, dev: DevIndex) -> &[u8] {
        match self.members.get(dev.index()) {
            Some(Member::Present(mapping)) => mapping.bytes(),
            Some(Member::Failed { .. } | Member::Absent) | None => &[],
        }
    }

    /// The content of a member, to be damaged by a test; empty if it is absent or failed.
    pub fn bytes_mut(&mut self, dev: DevIndex) -> &mut [u8] {
        self.mapping(dev).map_or(&mut [], Mapping::bytes_mut)
    }

    /// Makes a member resident, if it is there, so that no page fault falls into what is measured. None is so
    /// by itself: what is written first would wait for large pages, half a millisecond and more for each.
    pub fn make_resident(&mut self, dev: DevIndex) {
        if let Some(mapping) = self.mapping(dev) {
            mapping.make_resident();
        }
    }

    fn mapping(&mut self, dev: DevIndex) -> Option<&mut Mapping> {
        match self.members.get_mut(dev.index()) {
            Some(Member::Present(mapping)) => Some(mapping),
            Some(Member::Failed { .. } | Member::Absent) | None => None,
        }
    }

    /// An operation comes soon: what it reads is on its way from memory meanwhile.
    fn expect(&self, op: &DeviceOp) {
        let from = usize::try_from(op.offset_bytes).unwrap_or(usize::MAX);
        if op.kind == OpKind::Read
            && let Some(bytes) = self.bytes(op.dev).get(from..)
        {
            fetch_ahead(bytes);
        }
    }

    fn execute(&mut self, pool: &mut Pool, op: &DeviceOp) -> Result<(), IoFault> {
        let mapping = self.mapping(op.dev).ok_or(IoFault::Gone)?;
        if !in_range(op, mapping.bytes().len() as u64) {
            return Err(IoFault::Short);
        }
        // Both fit in memory, since the range lies within a mapping.
        let (start, length) = (op.offset_bytes as usize, op.length_bytes as usize);
        match op.kind {
            OpKind::Read => {
                let (slot, _) = transfer_place(op, pool.slot_bytes());
                pool.bytes_mut(slot)[..length].copy_from_slice(&mapping.bytes()[start..start + length]);
            }
            OpKind::Write => {
                let (slot, _) = transfer_place(op, pool.slot_bytes());
                stream_copy(&mut mapping.bytes_mut()[start..start + length], &pool.bytes(slot)[..length]);
            }
            OpKind::Flush => {}
            OpKind::Discard => {
                assert!(on_grid(op), "discard of {length} bytes at {start}: expected multiples of 4096");
                if op.length_bytes >= RELEASE_BYTES_MIN {
                    mapping.release(start, length);
                }
            }
        }
        Ok(())
    }

    fn range(&mut self, dev: DevIndex, offset_bytes: u64, length: usize) -> Result<&mut [u8], IoFault> {
        assert_grid(offset_bytes, length);
        let bytes = self.mapping(dev).ok_or(IoFault::Gone)?.bytes_mut();
        if !range_fits(offset_bytes, length as u64, bytes.len() as u64) {
            return Err(IoFault::Short);
        }
        Ok(&mut bytes[offset_bytes as usize..][..length])
    }
}

impl DeviceSet for MemorySet {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.done.reserve(ops.len());
        for (at, op) in ops.iter().enumerate() {
            if let Some(next) = ops.get(at + OPS_AHEAD) {
                self.expect(next);
            }
            let result = self.execute(pool, op);
            self.done.push(Completion { tag: op.tag, result });
        }
        stream_end();
    }

    fn poll(&mut self, _pool: &mut Pool, completions: &mut Vec<Completion>) {
        completions.append(&mut self.done);
    }

    fn wait(&mut self, _timeout_ns: u64) {}

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        match self.members.get(dev.index()) {
            Some(Member::Present(mapping)) => mapping.bytes().len() as u64,
            Some(Member::Failed { size_bytes }) => *size_bytes,
            Some(Member::Absent) | None => 0,
        }
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        into.copy_from_slice(self.range(dev, offset_bytes, into.len())?);
        Ok(())
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.range(dev, offset_bytes, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.mapping(dev).map(|_| ()).ok_or(IoFault::Gone)
    }
}
