//! Members that are simulated devices in virtual time: the engine runs as it ships, the clock is theirs.
//!
//! Content is not kept, but for what the synchronous calls write, so that an array can be created and
//! assembled; writes of the running engine, its metadata included, change the flash and are forgotten. An
//! engine over such members needs `Content::Meaningless`.
//!
//! # Time
//! The clock stands still but in [`DeviceSet::wait`], which moves it to the next completion, or by the whole
//! timeout if nothing ends before, also when nothing is in flight: then nothing else can make time pass. The
//! synchronous calls move it to their end. Operations of one moment reach a device in the order in which they
//! were submitted; completions of one moment come in that order too. So the same calls give the same times.
//!
//! # Pages
//! A write of a part of a page reads the page and writes it whole.

use block::{Completion, DevIndex, DeviceOp, DeviceSet, IoFault, OpKind, Pool, Stream};
use device::{NullOptions, NullSet};
use flash::{Counters, Device, OutOfRange, Tag};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A member cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "simulated device {dev}: found {size_bytes} bytes asked for, expected at most its {capacity_bytes} bytes"
)]
pub struct SimulatedError {
    /// The member.
    pub dev: DevIndex,
    /// The size asked for.
    pub size_bytes: u64,
    /// What the device has.
    pub capacity_bytes: u64,
}

struct Simulated {
    device: Device,
    page_bytes: u64,
}

impl Simulated {
    /// Pages that a range touches: first, count, and whether the range is whole pages.
    fn pages(&self, offset_bytes: u64, length_bytes: u64) -> (u64, u64, bool) {
        let first = offset_bytes / self.page_bytes;
        let end = (offset_bytes + length_bytes).div_ceil(self.page_bytes);
        (first, end - first, (offset_bytes | length_bytes).is_multiple_of(self.page_bytes))
    }

    fn write(&mut self, offset: u64, length: u64, tag: Tag, now_ns: u64) -> Result<u64, OutOfRange> {
        let (first, count, whole) = self.pages(offset, length);
        if !whole {
            self.device.read(first, count, now_ns)?;
        }
        self.device.write(first, count, tag, now_ns)
    }

    fn read(&mut self, offset: u64, length: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        let (first, count, _) = self.pages(offset, length);
        self.device.read(first, count, now_ns)
    }

    /// Trims the pages that lie wholly within the range.
    fn trim(&mut self, offset: u64, length: u64, now_ns: u64) -> Result<u64, OutOfRange> {
        let (first, end) = (offset.div_ceil(self.page_bytes), (offset + length) / self.page_bytes);
        if end <= first { Ok(now_ns) } else { self.device.trim(first, end - first, now_ns) }
    }
}

/// A set of simulated members.
pub struct SimulatedSet {
    /// Sizes, and what the synchronous calls wrote.
    kept: NullSet,
    devices: Vec<Simulated>,
    now_ns: u64,
    done: Vec<Completion>,
    /// By time, then in the order of submission.
    coming: BinaryHeap<Reverse<(u64, u64, u64)>>,
    serial: u64,
}

impl SimulatedSet {
    /// Members of the given sizes in bytes on these devices, at the time `now_ns`, which must not be before
    /// anything that was done to them.
    pub fn new(members: Vec<(u64, Device)>, now_ns: u64) -> Result<Self, SimulatedError> {
        for (dev, (size_bytes, device)) in (0u16..).zip(&members) {
            let capacity_bytes = device.pages().saturating_mul(u64::from(device.page_bytes()));
            if *size_bytes > capacity_bytes {
                return Err(SimulatedError {
                    dev: DevIndex::new(dev),
                    size_bytes: *size_bytes,
                    capacity_bytes,
                });
            }
        }
        let sizes: Vec<u64> = members.iter().map(|&(size_bytes, _)| size_bytes).collect();
        let simulated = |(_, device): (u64, Device)| {
            let page_bytes = u64::from(device.page_bytes());
            Simulated { device, page_bytes }
        };
        Ok(Self {
            kept: NullSet::new(&sizes, NullOptions::default()),
            devices: members.into_iter().map(simulated).collect(),
            now_ns,
            done: Vec::new(),
            coming: BinaryHeap::new(),
            serial: 0,
        })
    }

    /// The time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A member's device.
    pub fn device(&self, dev: DevIndex) -> Option<&Device> {
        self.devices.get(dev.index()).map(|simulated| &simulated.device)
    }

    /// Counters of the first so many members together.
    pub fn counters(&self, count: usize) -> Counters {
        let members = self.devices.iter().take(count);
        members.fold(Counters::default(), |sum, member| sum.sum(&member.device.counters()))
    }

    /// Breaks a member: all its operations end with [`IoFault::Gone`] from now on.
    pub fn fail(&mut self, dev: DevIndex) {
        self.kept.fail(dev);
    }

    /// When an operation ends.
    fn execute(&mut self, pool: &mut Pool, op: &DeviceOp) -> Result<u64, IoFault> {
        // Range, slot and presence are checked there.
        self.kept.execute(pool, op)?;
        let (offset, length, now_ns) = (op.offset_bytes, op.length_bytes, self.now_ns);
        let Some(simulated) = self.devices.get_mut(op.dev.index()) else { return Err(IoFault::Gone) };
        match op.kind {
            OpKind::Read => simulated.read(offset, length, now_ns),
            OpKind::Write => simulated.write(offset, length, tag_of(op), now_ns),
            OpKind::Discard => simulated.trim(offset, length, now_ns),
            OpKind::Flush => Ok(simulated.device.flush(now_ns)),
        }
        .map_err(|_| IoFault::Short)
    }

    /// Ends of operations that lie in the past are done.
    fn collect(&mut self) {
        while let Some(&Reverse((end_ns, _, tag))) = self.coming.peek()
            && end_ns <= self.now_ns
        {
            self.coming.pop();
            self.done.push(Completion { tag, result: Ok(()) });
        }
    }

    /// A synchronous transfer ends: the clock moves.
    fn pass(&mut self, end: Result<u64, OutOfRange>) -> Result<(), IoFault> {
        self.now_ns = self.now_ns.max(end.map_err(|_| IoFault::Short)?);
        Ok(())
    }
}

/// What an SSD with streams is told of a write.
fn tag_of(op: &DeviceOp) -> Tag {
    match op.stream {
        Stream::Data => Tag::Data(op.class),
        // Its own classes are by how long parity lives, which the SSD sees.
        Stream::Parity | Stream::Log | Stream::Metadata => Tag::from(op.stream),
    }
}

impl DeviceSet for SimulatedSet {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops {
            match self.execute(pool, op) {
                Ok(end_ns) => {
                    self.serial += 1;
                    self.coming.push(Reverse((end_ns, self.serial, op.tag)));
                }
                Err(fault) => self.done.push(Completion { tag: op.tag, result: Err(fault) }),
            }
        }
    }

    fn poll(&mut self, _pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.collect();
        completions.append(&mut self.done);
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.done.is_empty() {
            let until_ns = self.now_ns.saturating_add(timeout_ns);
            let next_ns = self.coming.peek().map_or(until_ns, |&Reverse((end_ns, _, _))| end_ns);
            self.now_ns = self.now_ns.max(next_ns.min(until_ns));
        }
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.kept.size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.kept.read_now(dev, offset_bytes, into)?;
        let (length, now_ns) = (into.len() as u64, self.now_ns);
        let Some(simulated) = self.devices.get_mut(dev.index()) else { return Err(IoFault::Gone) };
        let end = simulated.read(offset_bytes, length, now_ns);
        self.pass(end)
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.kept.write_now(dev, offset_bytes, from)?;
        let (length, now_ns) = (from.len() as u64, self.now_ns);
        let Some(simulated) = self.devices.get_mut(dev.index()) else { return Err(IoFault::Gone) };
        let end = simulated.write(offset_bytes, length, Tag::Metadata, now_ns);
        self.pass(end)
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.kept.flush_now(dev)?;
        let now_ns = self.now_ns;
        let Some(simulated) = self.devices.get_mut(dev.index()) else { return Err(IoFault::Gone) };
        let end_ns = simulated.device.flush(now_ns);
        self.pass(Ok(end_ns))
    }
}

#[cfg(test)]
mod tests;
