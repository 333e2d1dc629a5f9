//! A slice of every member of a set, as a set of its own: what a shard of an array runs on.

use crate::{Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, Pool, ReadNow, WriteNow};

/// Which part of one member belongs to the slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Where it begins, in bytes from the beginning of the member; a multiple of 4096.
    pub origin_bytes: u64,
    /// How long it is at most, in bytes; it ends where the member ends.
    pub length_bytes: u64,
}

impl Extent {
    /// The whole member.
    pub const WHOLE: Self = Self { origin_bytes: 0, length_bytes: u64::MAX };
}

/// See the module's documentation. A slice that is the whole of every member costs nothing.
pub struct Slice<D> {
    inner: D,
    /// By member; of those beyond its end all belongs to the slice.
    extents: Vec<Extent>,
    is_whole: bool,
    ops: Vec<DeviceOp>,
}

impl<D> Slice<D> {
    /// The given part of each member of `inner`.
    pub fn new(inner: D, extents: Vec<Extent>) -> Self {
        let is_whole = extents.iter().all(|&extent| extent == Extent::WHOLE);
        Self { inner, extents, is_whole, ops: Vec::new() }
    }

    /// The whole of every member.
    pub fn whole(inner: D) -> Self {
        Self::new(inner, Vec::new())
    }

    /// The set that it is a slice of.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The same, to be changed.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The same, given back.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Where the slice of a member begins, in bytes.
    #[inline]
    pub fn origin_bytes(&self, dev: DevIndex) -> u64 {
        self.extents.get(dev.index()).map_or(0, |extent| extent.origin_bytes)
    }

    /// Whether a range is within the slice of a member; a set looks only at its members' ends.
    #[inline]
    fn contains(&self, dev: DevIndex, offset_bytes: u64, length_bytes: u64) -> bool {
        let length = self.extents.get(dev.index()).map_or(u64::MAX, |extent| extent.length_bytes);
        offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= length)
    }

    /// That of a transfer of some bytes of memory.
    fn assert_holds(&self, dev: DevIndex, offset_bytes: u64, bytes: &[u8]) {
        self.assert_contains(dev, offset_bytes, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }

    fn assert_contains(&self, dev: DevIndex, offset_bytes: u64, length_bytes: u64) {
        assert!(
            self.contains(dev, offset_bytes, length_bytes),
            "{length_bytes} bytes at {offset_bytes} of member {dev} reach beyond the slice"
        );
    }
}

impl<D: DeviceSet> DeviceSet for Slice<D> {
    #[inline]
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        if self.is_whole {
            return self.inner.submit(pool, ops);
        }
        self.ops.clear();
        for op in ops {
            self.assert_contains(op.dev, op.offset_bytes, op.length_bytes);
            self.ops.push(DeviceOp { offset_bytes: op.offset_bytes + self.origin_bytes(op.dev), ..*op });
        }
        self.inner.submit(pool, &self.ops);
    }

    #[inline]
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
        let extent = self.extents.get(dev.index()).copied().unwrap_or(Extent::WHOLE);
        self.inner.size_bytes(dev).saturating_sub(extent.origin_bytes).min(extent.length_bytes)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.assert_holds(dev, offset_bytes, into);
        self.inner.read_now(dev, offset_bytes + self.origin_bytes(dev), into)
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        self.read_all_beside(reads, &mut || {});
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        for read in reads.iter_mut() {
            self.assert_contains(read.dev, read.offset_bytes, read.length_bytes());
            read.offset_bytes += self.origin_bytes(read.dev);
        }
        self.inner.read_all_beside(reads, work);
        for read in reads {
            read.offset_bytes -= self.origin_bytes(read.dev);
        }
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.assert_holds(dev, offset_bytes, from);
        self.inner.write_now(dev, offset_bytes + self.origin_bytes(dev), from)
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        self.write_all_beside(writes, &mut || {});
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        for write in writes.iter_mut() {
            self.assert_contains(write.dev, write.offset_bytes, write.length_bytes());
            write.offset_bytes += self.origin_bytes(write.dev);
        }
        self.inner.write_all_beside(writes, work);
        for write in writes {
            write.offset_bytes -= self.origin_bytes(write.dev);
        }
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.inner.flush_now(dev)
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        self.inner.flush_all_now(flushes);
    }
}
