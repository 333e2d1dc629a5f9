//! Members that are not written: what is written to them stays in memory, and reads find it there.
//!
//! An array is assembled and served on them as on any others, and not a byte of them changes: their files
//! are open for reading alone. What recovery writes lies in memory, at most
//! [`SHELTER_BYTES_MAX`](crate::SHELTER_BYTES_MAX); a write beyond that finds no room
//! ([`IoFault::NoSpace`]), so an assembly that would write more is refused, and an array that runs goes on
//! answering reads. A flush has nothing to do, a discard is not carried out. When the process ends all of it
//! is forgotten.
//!
//! Members that are written pass through at the price of a branch for each batch.

use crate::member::{Member, Members, Note, OpenError};
use crate::membership::Membership;
use crate::shelter::Shelter;
use block::{Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, OpKind, Pool, ReadNow, WriteNow};
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// See the module's documentation.
pub struct Sheltered<D> {
    inner: D,
    shelter: Option<Shelter>,
    /// Reads under way, by tag.
    reads: HashMap<u64, DeviceOp>,
    ready: Vec<Completion>,
    /// Operations for the members themselves.
    passed: Vec<DeviceOp>,
    gone: Vec<DevIndex>,
}

impl<D: Membership> Sheltered<D> {
    /// Writes to the members of `inner`, or keeps what is written if they are open for that.
    pub fn new(inner: D) -> Self {
        let shelter = inner.members().shelter().cloned();
        Self {
            inner,
            shelter,
            reads: HashMap::new(),
            ready: Vec::new(),
            passed: Vec::new(),
            gone: Vec::new(),
        }
    }
}

impl<D: DeviceSet> Sheltered<D> {
    fn check(&self, dev: DevIndex, end_bytes: u64) -> Result<(), IoFault> {
        match self.inner.size_bytes(dev) {
            0 => Err(IoFault::Gone),
            _ if self.gone.contains(&dev) => Err(IoFault::Gone),
            size_bytes if end_bytes > size_bytes => Err(IoFault::Short),
            _ => Ok(()),
        }
    }

    fn keep(&self, shelter: &Shelter, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.check(dev, offset_bytes.saturating_add(from.len() as u64))?;
        shelter.write(dev, offset_bytes, from)
    }
}

impl<D: DeviceSet> DeviceSet for Sheltered<D> {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        let Some(shelter) = self.shelter.clone() else { return self.inner.submit(pool, ops) };
        let mut passed = std::mem::take(&mut self.passed);
        for op in ops {
            let result = match (op.kind, op.slot) {
                (OpKind::Write, Some(slot)) => {
                    let length = usize::try_from(op.length_bytes).expect("at most a slot");
                    self.keep(&shelter, op.dev, op.offset_bytes, &pool.bytes(slot)[..length])
                }
                (OpKind::Flush, _) => self.check(op.dev, 0),
                (OpKind::Discard, _) => self.check(op.dev, op.offset_bytes.saturating_add(op.length_bytes)),
                (OpKind::Read | OpKind::Write, _) => {
                    self.reads.insert(op.tag, *op);
                    passed.push(*op);
                    continue;
                }
            };
            self.ready.push(Completion { tag: op.tag, result });
        }
        self.inner.submit(pool, &passed);
        passed.clear();
        self.passed = passed;
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        let Some(shelter) = &self.shelter else { return self.inner.poll(pool, completions) };
        let first = completions.len();
        self.inner.poll(pool, completions);
        for completion in &completions[first..] {
            let read = self.reads.remove(&completion.tag).filter(|_| completion.result.is_ok());
            if let Some(DeviceOp { dev, offset_bytes, length_bytes, slot: Some(slot), .. }) = read {
                let length = usize::try_from(length_bytes).expect("at most a slot");
                shelter.cover(dev, offset_bytes, &mut pool.bytes_mut(slot)[..length]);
            }
        }
        completions.append(&mut self.ready);
    }

    fn wait(&mut self, timeout_ns: u64) {
        if self.ready.is_empty() {
            self.inner.wait(timeout_ns);
        }
    }

    fn give_up(&mut self, dev: DevIndex) {
        self.gone.push(dev);
        self.inner.give_up(dev);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.inner.size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.inner.read_now(dev, offset_bytes, into)?;
        if let Some(shelter) = &self.shelter {
            shelter.cover(dev, offset_bytes, into);
        }
        Ok(())
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        self.inner.read_all_now(reads);
        self.cover_all(reads);
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        self.inner.read_all_beside(reads, work);
        self.cover_all(reads);
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        match &self.shelter {
            Some(shelter) => self.keep(shelter, dev, offset_bytes, from),
            None => self.inner.write_now(dev, offset_bytes, from),
        }
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        match &self.shelter {
            Some(shelter) => {
                for write in writes {
                    write.result = self.keep(shelter, write.dev, write.offset_bytes, write.from);
                }
            }
            None => self.inner.write_all_now(writes),
        }
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        if self.shelter.is_none() {
            return self.inner.write_all_beside(writes, work);
        }
        self.write_all_now(writes);
        work();
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        match &self.shelter {
            Some(_) => self.check(dev, 0),
            None => self.inner.flush_now(dev),
        }
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        match &self.shelter {
            Some(_) => flushes.iter_mut().for_each(|flush| flush.result = self.check(flush.dev, 0)),
            None => self.inner.flush_all_now(flushes),
        }
    }
}

impl<D: DeviceSet> Sheltered<D> {
    fn cover_all(&self, reads: &mut [ReadNow<'_>]) {
        let Some(shelter) = &self.shelter else { return };
        for read in reads.iter_mut().filter(|read| read.result.is_ok()) {
            shelter.cover(read.dev, read.offset_bytes, read.into);
        }
    }
}

impl<D: Membership> Membership for Sheltered<D> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;
    use crate::{Access, OpenOptions, UringOptions, UringSet, create_file};
    use block::Stream;

    #[test]
    fn what_is_written_is_read_and_the_file_keeps_what_it_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("member");
        create_file(&path, 1 << 20, crate::Existing::Refuse).unwrap();
        std::fs::write(&path, vec![7u8; 1 << 20]).unwrap();
        let options = OpenOptions { access: Access::Sheltered, ..OpenOptions::default() };
        let members = Members::open(&[Some(path.clone())], options).unwrap();
        let again = members.share();
        let start =
            |members| Sheltered::new(UringSet::start(members, 8192, UringOptions::default()).unwrap());
        let (mut set, dev) = (start(members), DevIndex::new(0));
        set.write_now(dev, 4096, &[1; 4096]).unwrap();
        assert_eq!(set.write_now(dev, 1 << 20, &[1; 4096]), Err(IoFault::Short));
        let mut pool = Pool::new(8192, 2);
        let (from, into) = (pool.alloc().unwrap(), pool.alloc().unwrap());
        pool.bytes_mut(from).fill(2);
        let op = |tag, kind, offset_bytes, length_bytes, slot| DeviceOp {
            tag,
            dev,
            kind,
            stream: Stream::Data,
            class: 0,
            offset_bytes,
            length_bytes,
            slot,
        };
        let ops = [op(0, OpKind::Write, 8192, 4096, Some(from)), op(1, OpKind::Flush, 0, 0, None)];
        set.submit(&mut pool, &ops);
        set.submit(&mut pool, &[op(2, OpKind::Discard, 0, 4096, None)]);
        let mut done = Vec::new();
        set.poll(&mut pool, &mut done);
        assert!(done.len() == 3 && done.iter().all(|completion| completion.result.is_ok()));
        // One block of the file, one that was written; by another set on the same members, too.
        let mut other = start(again);
        for (offset_bytes, expected) in [(0, [7, 1]), (4096, [1, 2]), (8192, [2, 7])] {
            other.submit(&mut pool, &[op(3, OpKind::Read, offset_bytes, 8192, Some(into))]);
            done.clear();
            while done.is_empty() {
                other.wait(1_000_000_000);
                other.poll(&mut pool, &mut done);
            }
            let bytes = pool.bytes(into);
            assert_eq!([bytes[0], bytes[4096]], expected);
            let mut now = [0; 8192];
            other.read_now(dev, offset_bytes, &mut now).unwrap();
            assert_eq!([now[0], now[4096]], expected);
        }
        other.give_up(dev);
        assert_eq!(other.write_now(dev, 0, &[0; 4096]), Err(IoFault::Gone));
        assert!(std::fs::read(&path).unwrap().iter().all(|&byte| byte == 7));
    }
}
