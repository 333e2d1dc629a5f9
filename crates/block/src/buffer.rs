//! The memory of a slot that goes from pool to pool.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// What the processor moves at a time, and at which vectors are read without crossing it.
const LINE_BYTES: usize = 64;

/// Memory as long as a slot, aligned as cache lines are. It does not move with the value, and keeps its
/// length. The default has no bytes.
#[derive(Default)]
pub struct Buffer {
    memory: Box<[u8]>,
    /// Where the aligned part begins.
    from: usize,
    bytes: usize,
}

impl Buffer {
    /// So many zeros.
    pub fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + LINE_BYTES - 1].into_boxed_slice();
        let from = memory.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES - 1);
        Self { memory, from, bytes }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.bytes]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.bytes]
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Buffer({} bytes)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zero_and_as_long_as_asked_for() {
        for bytes in [1, 16, 4096, 4097, 65_536] {
            let mut buffers = [Buffer::new(bytes), Buffer::new(bytes), Buffer::new(bytes)];
            for buffer in &mut buffers {
                assert!(buffer.as_ptr().addr().is_multiple_of(64));
                assert_eq!((buffer.len(), buffer.iter().find(|&&byte| byte != 0)), (bytes, None));
                buffer.fill(7);
            }
            let address = buffers[1].as_ptr();
            let moved = std::mem::take(&mut buffers[1]);
            assert_eq!((moved.as_ptr(), moved[bytes - 1], buffers[1].len()), (address, 7, 0));
        }
    }
}
