//! What the store asks of its volume: requests for whole blocks of 4 KiB, with buffers of its own that come
//! back.
//!
//! A driver takes requests from the store, carries them out in any order, and hands the ends back. It need
//! not keep order: the store waits where order counts. Requests in flight may overlap only if both read.

use block::Durability;
use std::sync::Arc;

/// Bytes in a block, the unit of all offsets and lengths.
pub const BLOCK_BYTES: usize = 4096;

/// Memory that begins at a multiple of 4 KiB and is whole blocks long.
#[derive(Default)]
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Zeros; `length` is rounded up to whole blocks.
    pub fn new(length: usize) -> Self {
        let length = length.next_multiple_of(BLOCK_BYTES);
        let memory = vec![0; length + BLOCK_BYTES];
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        assert!(start <= BLOCK_BYTES, "a block's alignment is within a block");
        Self { memory, start, length }
    }

    /// This memory from `start` on, with zeros up to a whole block; copied if it does not begin at a block.
    pub(crate) fn from_memory(mut memory: Vec<u8>, start: usize) -> Self {
        if !memory[start..].as_ptr().addr().is_multiple_of(BLOCK_BYTES) {
            return Self::of(&memory[start..]);
        }
        let length = (memory.len() - start).next_multiple_of(BLOCK_BYTES);
        if memory.capacity() < start + length {
            // Growing would move it.
            return Self::of(&memory[start..]);
        }
        memory.resize(start + length, 0);
        Self { memory, start, length }
    }

    /// So long, rounded up to whole blocks, in the same memory if it has room; any bytes.
    pub(crate) fn of_length(self, length: usize) -> Self {
        let length = length.next_multiple_of(BLOCK_BYTES);
        if self.start + length > self.memory.len() {
            return Self::new(length);
        }
        Self { length, ..self }
    }

    /// The memory, to use again.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        self.memory
    }

    /// A copy of these bytes and zeros up to a whole block.
    pub fn of(bytes: &[u8]) -> Self {
        let length = bytes.len().next_multiple_of(BLOCK_BYTES);
        let mut memory: Vec<u8> = Vec::with_capacity(length + BLOCK_BYTES);
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        assert!(start <= BLOCK_BYTES, "a block's alignment is within a block");
        memory.resize(start, 0);
        memory.extend_from_slice(bytes);
        memory.resize(start + length, 0);
        Self { memory, start, length }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.length)
    }
}

/// One request to the volume. Offsets are multiples of 4 KiB.
#[derive(Debug)]
pub enum Request {
    /// Fill the buffer.
    Read {
        /// Where.
        offset_bytes: u64,
        /// What is filled; it comes back with the end.
        buffer: Buffer,
    },
    /// Write the buffer, which does not change meanwhile.
    Write {
        /// Where.
        offset_bytes: u64,
        /// What.
        buffer: Arc<Buffer>,
        /// What its end means.
        durability: Durability,
    },
    /// Make every write that has ended durable.
    Flush,
    /// The range holds nothing of value. Its end is awaited, its failure is none.
    Discard {
        /// Where.
        offset_bytes: u64,
        /// How much.
        length_bytes: u64,
    },
}

/// A request with the tag that its end must name.
#[derive(Debug)]
pub struct Issued {
    /// The tag.
    pub tag: u64,
    /// The request.
    pub request: Request,
}

/// Why the volume did not do what it was asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It cannot be read or written.
    Io,
    /// It has no space behind its addresses.
    NoSpace,
    /// It takes no writes.
    ReadOnly,
    /// It is shutting down.
    Shutdown,
}

/// The end of a request.
#[derive(Debug)]
pub struct Ended {
    /// The tag of the request.
    pub tag: u64,
    /// The buffer of a read.
    pub buffer: Option<Buffer>,
    /// How it ended.
    pub result: Result<(), Fault>,
}

/// A volume that carries out requests while the caller waits: for creating and opening a store.
pub trait Medium {
    /// Carries out all of these, in any order and side by side, and returns their ends when all have ended.
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended>;
}
