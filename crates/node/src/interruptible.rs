//! Devices that take no more writes once a signal has come: what writes for long and in order ends at the
//! next one.

use crate::interrupt::Interrupt;
use block::{Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, Pool, ReadNow, WriteNow};

/// See the module's documentation.
pub struct Interruptible<'a, D> {
    inner: D,
    interrupt: &'a Interrupt,
}

impl<'a, D: DeviceSet> Interruptible<'a, D> {
    /// Passes everything on to `inner` until a signal comes.
    pub fn new(inner: D, interrupt: &'a Interrupt) -> Self {
        Self { inner, interrupt }
    }
}

impl<D: DeviceSet> DeviceSet for Interruptible<'_, D> {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
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
        self.inner.read_now(dev, offset_bytes, into)
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        self.inner.read_all_now(reads);
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        if self.interrupt.signal().is_some() {
            return Err(IoFault::Gone);
        }
        self.inner.write_now(dev, offset_bytes, from)
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        self.inner.read_all_beside(reads, work);
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        if self.interrupt.signal().is_some() {
            return writes.iter_mut().for_each(|write| write.result = Err(IoFault::Gone));
        }
        self.inner.write_all_now(writes);
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        if self.interrupt.signal().is_some() {
            writes.iter_mut().for_each(|write| write.result = Err(IoFault::Gone));
            return work();
        }
        self.inner.write_all_beside(writes, work);
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.inner.flush_now(dev)
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        self.inner.flush_all_now(flushes);
    }
}
