//! Devices that remember what was written to them, to be compared with what they hold afterwards: a device
//! may take writes and keep nothing of them, or keep them elsewhere.

use block::{
    Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, META_BYTES, Pool, ReadNow, WriteNow,
};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

/// Why what was written is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotKept {
    /// The device refused a write or a flush.
    Refused(IoFault),
    /// What was written cannot be read.
    Unreadable {
        /// Where.
        offset_bytes: u64,
        /// Why.
        fault: IoFault,
    },
    /// Something else is there.
    Other {
        /// Where.
        offset_bytes: u64,
    },
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(IoFault::NoSpace) => {
                write!(f, "there is no room where it lies (a full file system, quota or pool)")
            }
            Self::Refused(fault) => write!(f, "takes no writes: {fault}"),
            Self::Unreadable { offset_bytes, fault } => {
                write!(f, "what was written at offset {offset_bytes} cannot be read: {fault}")
            }
            Self::Other { offset_bytes } => {
                write!(f, "what was written at offset {offset_bytes} is not there; something else is")
            }
        }
    }
}

/// See the module's documentation. It knows what is written at once, not operations.
pub struct ReadBack<D> {
    inner: D,
    /// What each block holds, in short, by device and offset.
    written: BTreeMap<(DevIndex, u64), u64>,
    refused: Option<(DevIndex, IoFault)>,
}

impl<D: DeviceSet> ReadBack<D> {
    /// Passes everything on to `inner`.
    pub fn new(inner: D) -> Self {
        Self { inner, written: BTreeMap::new(), refused: None }
    }

    /// The first device that refused something.
    pub fn refused(&self) -> Option<(DevIndex, NotKept)> {
        self.refused.map(|(dev, fault)| (dev, NotKept::Refused(fault)))
    }

    /// Reads all that was written; the first device that does not hold it, and why.
    pub fn check(&mut self) -> Result<(), (DevIndex, NotKept)> {
        if let Some(refused) = self.refused() {
            return Err(refused);
        }
        let mut block = [0; META_BYTES];
        for (&(dev, offset_bytes), &expected) in &self.written {
            if let Err(fault) = self.inner.read_now(dev, offset_bytes, &mut block) {
                return Err((dev, NotKept::Unreadable { offset_bytes, fault }));
            }
            if short(&block) != expected {
                return Err((dev, NotKept::Other { offset_bytes }));
            }
        }
        Ok(())
    }

    fn note(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8], result: Result<(), IoFault>) {
        let offsets = (offset_bytes..).step_by(META_BYTES);
        self.written
            .extend(offsets.zip(from.chunks(META_BYTES)).map(|(at, block)| ((dev, at), short(block))));
        self.note_result(dev, result);
    }

    fn note_result(&mut self, dev: DevIndex, result: Result<(), IoFault>) {
        self.refused = self.refused.or(result.err().map(|fault| (dev, fault)));
    }

    fn note_all(&mut self, writes: &[WriteNow<'_>]) {
        writes.iter().for_each(|write| self.note(write.dev, write.offset_bytes, write.from, write.result));
    }
}

fn short(block: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(block);
    hasher.finish()
}

impl<D: DeviceSet> DeviceSet for ReadBack<D> {
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

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        self.inner.read_all_beside(reads, work);
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        let result = self.inner.write_now(dev, offset_bytes, from);
        self.note(dev, offset_bytes, from, result);
        result
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        self.inner.write_all_now(writes);
        self.note_all(writes);
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        self.inner.write_all_beside(writes, work);
        self.note_all(writes);
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        let result = self.inner.flush_now(dev);
        self.note_result(dev, result);
        result
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        self.inner.flush_all_now(flushes);
        flushes.iter().for_each(|flush| self.note_result(flush.dev, flush.result));
    }
}
