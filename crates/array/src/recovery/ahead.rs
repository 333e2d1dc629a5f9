//! Chunks that replay is about to look at, read side by side before it does.
//!
//! Nothing here decides anything: what was not read ahead, or could not be, is read when it is needed.

use crate::store::Store;
use block::{ChunkAddr, DeviceSet, Pool, ReadNow};
use std::collections::HashMap;

/// Bytes read ahead at most.
const AHEAD_BYTES: usize = 16 << 20;

/// See the module's documentation.
pub(super) struct Ahead {
    chunk_bytes: usize,
    /// One behind the other.
    chunks: Option<Pool>,
    /// Which of `chunks` a chunk is.
    at: HashMap<ChunkAddr, usize>,
}

impl Ahead {
    /// Nothing yet.
    pub(super) fn new(store: &Store) -> Self {
        let chunk_bytes = store.config.geometry.chunk_bytes();
        Self { chunk_bytes, chunks: None, at: HashMap::new() }
    }

    /// How many chunks can be had at once.
    pub(super) fn chunks_max(&self) -> usize {
        (AHEAD_BYTES / self.chunk_bytes).max(1)
    }

    /// Reads chunks, in place of those read before.
    pub(super) fn read(&mut self, devices: &mut dyn DeviceSet, store: &Store, addrs: &[ChunkAddr]) {
        self.at.clear();
        let chunks = match self.chunks.take().filter(|chunks| chunks.slot_count() >= addrs.len()) {
            Some(chunks) => self.chunks.insert(chunks),
            None => self.chunks.insert(Pool::new(self.chunk_bytes, addrs.len())),
        };
        let regions = chunks.region_mut().chunks_exact_mut(self.chunk_bytes);
        let mut reads: Vec<ReadNow<'_>> = (addrs.iter().enumerate().zip(regions))
            .map(|((tag, &addr), into)| ReadNow {
                tag,
                dev: addr.dev,
                offset_bytes: store.offset_of(addr),
                into,
                result: Ok(()),
            })
            .collect();
        devices.read_all_now(&mut reads);
        let there = reads.iter().filter(|read| read.result.is_ok());
        self.at.extend(there.map(|read| (addrs[read.tag], read.tag)));
    }

    /// A chunk that was read.
    pub(super) fn chunk(&self, addr: ChunkAddr) -> Option<&[u8]> {
        let (&at, chunks) = (self.at.get(&addr)?, self.chunks.as_ref()?);
        chunks.region().chunks_exact(self.chunk_bytes).nth(at)
    }

    /// A chunk is not what it was.
    pub(super) fn forget(&mut self, addr: ChunkAddr) {
        self.at.remove(&addr);
    }

    /// Nobody knows what chunks are any more.
    pub(super) fn forget_all(&mut self) {
        self.at.clear();
    }
}
