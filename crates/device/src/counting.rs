//! Counts what passes to the members, per device and stream.
//!
//! Operations are counted when they are submitted, whatever becomes of them; the synchronous calls count as
//! [`Stream::Metadata`], which is what they carry.

use crate::member::{Member, Members, Note, OpenError};
use crate::membership::Membership;
use block::{
    Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, OpKind, Pool, ReadNow, Stream, WriteNow,
};
use std::io;
use std::ops::AddAssign;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// What one member was asked to do; arrays are indexed by [`Stream::index`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceCounters {
    /// Reads.
    pub read_ops: [u64; 4],
    /// Bytes read.
    pub read_bytes: [u64; 4],
    /// Writes.
    pub write_ops: [u64; 4],
    /// Bytes written.
    pub write_bytes: [u64; 4],
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Reads and writes that did not begin where the one before ended: each moves the arm of a disk. The
    /// synchronous calls are none, and the way on from what they touched is none: an array is assembled once.
    pub repositionings: u64,
}

impl DeviceCounters {
    #[inline]
    fn count(&mut self, kind: OpKind, stream: Stream, length_bytes: u64) {
        match kind {
            OpKind::Read => {
                self.read_ops[stream.index()] += 1;
                self.read_bytes[stream.index()] += length_bytes;
            }
            OpKind::Write => {
                self.write_ops[stream.index()] += 1;
                self.write_bytes[stream.index()] += length_bytes;
            }
            OpKind::Flush => self.flushes += 1,
            OpKind::Discard => {
                self.discards += 1;
                self.discard_bytes += length_bytes;
            }
        }
    }

    /// Bytes read, all streams.
    pub fn read_bytes_all(&self) -> u64 {
        self.read_bytes.iter().sum()
    }

    /// Bytes written, all streams.
    pub fn write_bytes_all(&self) -> u64 {
        self.write_bytes.iter().sum()
    }

    /// Reads, all streams.
    pub fn read_ops_all(&self) -> u64 {
        self.read_ops.iter().sum()
    }

    /// Writes, all streams.
    pub fn write_ops_all(&self) -> u64 {
        self.write_ops.iter().sum()
    }

    /// What was added since `earlier`, a copy of the same counters.
    pub fn since(&self, earlier: &Self) -> Self {
        let subtract =
            |now: &[u64; 4], then: &[u64; 4]| std::array::from_fn(|i| now[i].saturating_sub(then[i]));
        Self {
            read_ops: subtract(&self.read_ops, &earlier.read_ops),
            read_bytes: subtract(&self.read_bytes, &earlier.read_bytes),
            write_ops: subtract(&self.write_ops, &earlier.write_ops),
            write_bytes: subtract(&self.write_bytes, &earlier.write_bytes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            discards: self.discards.saturating_sub(earlier.discards),
            discard_bytes: self.discard_bytes.saturating_sub(earlier.discard_bytes),
            repositionings: self.repositionings.saturating_sub(earlier.repositionings),
        }
    }
}

impl AddAssign for DeviceCounters {
    fn add_assign(&mut self, other: Self) {
        let add =
            |to: &mut [u64; 4], from: [u64; 4]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        add(&mut self.read_ops, other.read_ops);
        add(&mut self.read_bytes, other.read_bytes);
        add(&mut self.write_ops, other.write_ops);
        add(&mut self.write_bytes, other.write_bytes);
        self.flushes += other.flushes;
        self.discards += other.discards;
        self.discard_bytes += other.discard_bytes;
        self.repositionings += other.repositionings;
    }
}

/// A set of members and its counters.
pub struct Counting<D> {
    inner: D,
    devices: Vec<DeviceCounters>,
    /// Where the last read or write of each member ended; `None` after a synchronous one.
    positions: Vec<Option<u64>>,
}

impl<D: DeviceSet> Counting<D> {
    /// Counts what passes to `inner`, from zero.
    pub fn new(inner: D) -> Self {
        Self::from_counters(inner, Vec::new())
    }

    /// The same, from counters of before.
    pub fn from_counters(inner: D, devices: Vec<DeviceCounters>) -> Self {
        Self { inner, devices, positions: Vec::new() }
    }

    /// Counters of the members by index, up to the last one that was used.
    pub fn devices(&self) -> &[DeviceCounters] {
        &self.devices
    }

    /// Counters of one member, all zero if it was never used.
    pub fn device(&self, dev: DevIndex) -> DeviceCounters {
        self.devices.get(dev.index()).copied().unwrap_or_default()
    }

    /// The sum over all members.
    pub fn total(&self) -> DeviceCounters {
        let mut total = DeviceCounters::default();
        self.devices.iter().for_each(|&device| total += device);
        total
    }

    /// Sets all counters to zero.
    pub fn reset(&mut self) {
        self.devices.clear();
    }

    /// The set that does the work.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The set that does the work; what is asked of it directly is not counted.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// Gives the set back.
    pub fn into_inner(self) -> D {
        self.inner
    }

    fn count(&mut self, op: &DeviceOp) {
        let (device, position) = self.of(op.dev);
        device.count(op.kind, op.stream, op.length_bytes);
        match op.kind {
            OpKind::Read | OpKind::Write => {
                device.repositionings += u64::from(position.is_some_and(|end| end != op.offset_bytes));
                *position = Some(op.offset_bytes.saturating_add(op.length_bytes));
            }
            OpKind::Flush | OpKind::Discard => {}
        }
    }

    /// Counts a synchronous call.
    fn count_now(&mut self, dev: DevIndex, kind: OpKind, length_bytes: u64) {
        let (device, position) = self.of(dev);
        device.count(kind, Stream::Metadata, length_bytes);
        *position = None;
    }

    /// Counters of a member, and where it is.
    #[inline]
    fn of(&mut self, dev: DevIndex) -> (&mut DeviceCounters, &mut Option<u64>) {
        let at = dev.index();
        if self.devices.len() <= at || self.positions.len() <= at {
            self.grow(at + 1);
        }
        (&mut self.devices[at], &mut self.positions[at])
    }

    /// Members are met one by one, hardly ever a new one.
    #[cold]
    fn grow(&mut self, members: usize) {
        self.devices.resize(self.devices.len().max(members), DeviceCounters::default());
        self.positions.resize(self.positions.len().max(members), None);
    }
}

impl<D: DeviceSet> DeviceSet for Counting<D> {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops {
            self.count(op);
        }
        self.inner.submit(pool, ops);
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.inner.poll(pool, completions);
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inner.wait(timeout_ns);
    }

    fn give_up(&mut self, dev: DevIndex) {
        self.inner.give_up(dev);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.inner.size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.count_now(dev, OpKind::Read, into.len() as u64);
        self.inner.read_now(dev, offset_bytes, into)
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        reads.iter().for_each(|read| self.count_now(read.dev, OpKind::Read, read.length_bytes()));
        self.inner.read_all_now(reads);
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.count_now(dev, OpKind::Write, from.len() as u64);
        self.inner.write_now(dev, offset_bytes, from)
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        reads.iter().for_each(|read| self.count_now(read.dev, OpKind::Read, read.length_bytes()));
        self.inner.read_all_beside(reads, work);
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        writes.iter().for_each(|write| self.count_now(write.dev, OpKind::Write, write.length_bytes()));
        self.inner.write_all_now(writes);
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        writes.iter().for_each(|write| self.count_now(write.dev, OpKind::Write, write.length_bytes()));
        self.inner.write_all_beside(writes, work);
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.count_now(dev, OpKind::Flush, 0);
        self.inner.flush_now(dev)
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        flushes.iter().for_each(|flush| self.count_now(flush.dev, OpKind::Flush, 0));
        self.inner.flush_all_now(flushes);
    }
}

impl<D: Membership> Membership for Counting<D> {
    fn members(&self) -> &Members {
        self.inner.members()
    }

    fn notes(&self) -> &[Note] {
        self.inner.notes()
    }

    fn remove(&mut self, dev: DevIndex) {
        self.inner.remove(dev);
    }

    fn replace(&mut self, dev: DevIndex, path: &Path) -> Result<(), OpenError> {
        self.inner.replace(dev, path)
    }

    fn install(&mut self, dev: DevIndex, member: Member) -> Result<(), OpenError> {
        self.inner.install(dev, member)
    }

    fn measure(&mut self) {
        self.inner.measure();
    }

    fn wake_fd(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.inner.wake_fd()
    }
}
