//! Members without room during assembly.
//!
//! Recovery takes a member out of service whose writes fail. One that merely lacks room has nothing wrong
//! with it, so from the first such write on nothing more is written anywhere, as after a power cut at that
//! moment, and assembly ends with an error that names the member. Recovery may be cut short anywhere, so the
//! next attempt does all of it again.

use block::{Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, Pool, ReadNow, WriteNow};

/// See the module's documentation.
pub(super) struct WatchRoom<'a> {
    devices: &'a mut dyn DeviceSet,
    full: Option<DevIndex>,
}

impl<'a> WatchRoom<'a> {
    /// Watches what assembly writes.
    pub(super) fn new(devices: &'a mut dyn DeviceSet) -> Self {
        Self { devices, full: None }
    }

    /// The member that lacked room, if one did.
    pub(super) fn full(&self) -> Option<DevIndex> {
        self.full
    }
}

impl DeviceSet for WatchRoom<'_> {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.devices.submit(pool, ops);
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.devices.poll(pool, completions);
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.devices.wait(timeout_ns);
    }

    fn give_up(&mut self, dev: DevIndex) {
        self.devices.give_up(dev);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.devices.size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.devices.read_now(dev, offset_bytes, into)
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        self.devices.read_all_now(reads);
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        if self.full.is_some() {
            return Ok(()); // whoever asks is told at the end
        }
        let result = self.devices.write_now(dev, offset_bytes, from);
        if result == Err(IoFault::NoSpace) {
            self.full = Some(dev);
            return Ok(());
        }
        result
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        self.devices.read_all_beside(reads, work);
    }

    /// Those that are on their way with the first that lacks room may be carried out, as if power had failed
    /// while they were in caches.
    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        self.write_all_beside(writes, &mut || {});
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        if self.full.is_none() {
            self.devices.write_all_beside(writes, work);
            let lacking = writes.iter_mut().filter(|write| write.result == Err(IoFault::NoSpace));
            for write in lacking {
                self.full.get_or_insert(write.dev);
                write.result = Ok(());
            }
        } else {
            writes.iter_mut().for_each(|write| write.result = Ok(()));
            work();
        }
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        if self.full.is_some() { Ok(()) } else { self.devices.flush_now(dev) }
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        if self.full.is_some() {
            flushes.iter_mut().for_each(|flush| flush.result = Ok(()));
        } else {
            self.devices.flush_all_now(flushes);
        }
    }
}
