//! A virtio disk, driven as a virtual machine would.

use blkio::{Blkio, Blkioq, Completion, MemoryRegion, ReqFlags};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Bytes of the memory that it shares.
const MEMORY_BYTES: usize = 8 << 20;
/// Requests whose ends are taken at once.
const ENDS: usize = 64;

/// A disk with its rings, and memory that both sides see.
pub struct Disk {
    pub blkio: Blkio,
    pub queues: Vec<Blkioq>,
    region: MemoryRegion,
    memory: File,
}

/// What is asked of a disk; `at` is where in the memory.
#[derive(Clone, Copy, Debug)]
pub enum Wish {
    Read { offset: u64, length: usize, at: usize },
    Write { offset: u64, length: usize, at: usize },
    Discard { offset: u64, length: u64 },
    Zero { offset: u64, length: u64 },
    Flush,
}

impl Disk {
    /// Connects; `None` if nobody is there or the server will not.
    pub fn connect(path: &Path, rings: i32) -> Option<Self> {
        Self::connect_as(path, rings, "read-write")
    }

    /// The same, of a disk that is read only.
    pub fn connect_as(path: &Path, rings: i32, manner: &str) -> Option<Self> {
        let mut blkio = Blkio::new("virtio-blk-vhost-user").unwrap();
        blkio.set_str("path", path.to_str().unwrap()).unwrap();
        blkio.set_bool("read-only", manner == "read-only").unwrap();
        blkio.connect().ok()?;
        blkio.set_i32("num-queues", rings).unwrap();
        let queues = blkio.start().unwrap().queues;
        let region = blkio.alloc_mem_region(MEMORY_BYTES).unwrap();
        blkio.map_mem_region(&region).unwrap();
        let memory =
            File::options().read(true).write(true).open(format!("/proc/self/fd/{}", region.fd)).unwrap();
        Some(Self { blkio, queues, region, memory })
    }

    pub fn put(&self, at: usize, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at as u64).unwrap();
    }

    pub fn get(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, at as u64).unwrap();
        bytes
    }

    /// Asks without waiting; the tag comes back with the end.
    pub fn ask(&mut self, ring: usize, tag: usize, wish: Wish) {
        let queue = &mut self.queues[ring];
        let address = |at: usize| (self.region.addr + at) as *mut u8;
        match wish {
            Wish::Read { offset, length, at } => {
                queue.read(offset, address(at), length, tag, ReqFlags::empty())
            }
            Wish::Write { offset, length, at } => {
                queue.write(offset, address(at), length, tag, ReqFlags::empty());
            }
            Wish::Discard { offset, length } => queue.discard(offset, length, tag, ReqFlags::empty()),
            Wish::Zero { offset, length } => queue.write_zeroes(offset, length, tag, ReqFlags::empty()),
            Wish::Flush => queue.flush(tag, ReqFlags::empty()),
        }
    }

    /// Waits for the end of at least so many requests, ten seconds at most: their tags and results.
    pub fn ends(&mut self, ring: usize, least: usize) -> Vec<(usize, i32)> {
        let mut ends = [const { MaybeUninit::<Completion>::uninit() }; ENDS];
        let mut patience = Duration::from_secs(10);
        let count = self.queues[ring].do_io(&mut ends, least, Some(&mut patience), None).unwrap();
        // JUSTIFICATION: the client hands ends out in no other way.
        // SAFETY: it has written as many as it says.
        ends[..count]
            .iter()
            .map(|end| unsafe { end.assume_init_ref() })
            .map(|end| (end.user_data, end.ret))
            .collect()
    }

    /// Asks and waits.
    pub fn have(&mut self, wish: Wish) -> i32 {
        self.ask(0, 7, wish);
        let ends = self.ends(0, 1);
        assert_eq!((ends.len(), ends[0].0), (1, 7), "{ends:?}");
        ends[0].1
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.put(0, bytes);
        assert_eq!(self.have(Wish::Write { offset, length: bytes.len(), at: 0 }), 0);
    }

    pub fn read(&mut self, offset: u64, length: usize) -> Vec<u8> {
        self.put(0, &vec![0xee; length]);
        assert_eq!(self.have(Wish::Read { offset, length, at: 0 }), 0);
        self.get(0, length)
    }
}
