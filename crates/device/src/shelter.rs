//! What was written to members that must not change: blocks of 4 KiB in memory, at most
//! [`SHELTER_BYTES_MAX`] of them.

use block::{DevIndex, IoFault};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is kept in memory at most: recovery writes checkpoints and superblocks, and what it heals.
pub const SHELTER_BYTES_MAX: u64 = 256 << 20;

const BLOCK_BYTES: usize = 4096;

/// Blocks by member and place.
#[derive(Debug, Default)]
struct Blocks {
    kept: HashMap<(u16, u64), Box<[u8; BLOCK_BYTES]>>,
    /// A write found no room.
    overflowed: bool,
}

/// What was written to members that are not, shared by all sets of devices of an array.
#[derive(Clone, Debug, Default)]
pub struct Shelter(Arc<Mutex<Blocks>>);

impl Shelter {
    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a write found no room in memory.
    pub fn has_overflowed(&self) -> bool {
        self.lock().overflowed
    }

    /// Keeps what is written; the member is not asked.
    pub(crate) fn write(&self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        let mut blocks = self.lock();
        let places = (offset_bytes..).step_by(BLOCK_BYTES).map(|at| (dev.get(), at));
        let new = places.clone().take(from.len() / BLOCK_BYTES).filter(|at| !blocks.kept.contains_key(at));
        let count = (blocks.kept.len() + new.count()) as u64;
        if count * BLOCK_BYTES as u64 > SHELTER_BYTES_MAX {
            blocks.overflowed = true;
            return Err(IoFault::NoSpace);
        }
        for (at, bytes) in places.zip(from.chunks_exact(BLOCK_BYTES)) {
            blocks.kept.entry(at).or_insert_with(|| Box::new([0; BLOCK_BYTES])).copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Puts what was written over what the member holds.
    pub(crate) fn cover(&self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) {
        let blocks = self.lock();
        if blocks.kept.is_empty() {
            return;
        }
        for (at, bytes) in (offset_bytes..).step_by(BLOCK_BYTES).zip(into.chunks_exact_mut(BLOCK_BYTES)) {
            if let Some(block) = blocks.kept.get(&(dev.get(), at)) {
                bytes.copy_from_slice(&block[..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn what_has_no_room_in_memory_is_said() {
        let shelter = Shelter::default();
        let (dev, piece) = (DevIndex::new(3), vec![0; 1 << 20]);
        for at in 0..SHELTER_BYTES_MAX >> 20 {
            shelter.write(dev, at << 20, &piece).unwrap();
        }
        assert!(!shelter.has_overflowed());
        assert_eq!(shelter.write(dev, SHELTER_BYTES_MAX, &[0; 4096]), Err(IoFault::NoSpace));
        assert!(shelter.has_overflowed() && shelter.write(dev, 0, &piece).is_ok());
    }
}
