//! Pages of a chain of incremental checkpoints, read side by side before they are looked at one after the
//! other.
//!
//! Nothing here decides anything: what was not read ahead, or is bad, is read when it is needed, from
//! whatever copy has it.

use block::{DevIndex, DeviceSet, META_BYTES, Pool, ReadNow};
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks read ahead at most, 32 MiB.
pub(super) const AHEAD_BLOCKS: usize = 8192;

/// Blocks of a member that lie next to each other.
pub(super) struct Run {
    pub dev: DevIndex,
    /// In bytes.
    pub offset: u64,
    pub blocks: usize,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct ChainAhead {
    room: Option<Pool>,
    /// Where in the region of `room` a run is, by where it is on its member.
    at: BTreeMap<(DevIndex, u64), Range<usize>>,
}

impl ChainAhead {
    /// Reads runs, in place of those that were read before.
    pub(super) fn read(&mut self, devices: &mut dyn DeviceSet, runs: &[Run]) {
        self.at.clear();
        let blocks = runs.iter().map(|run| run.blocks).sum();
        let room = match self.room.take().filter(|room| room.slot_count() >= blocks) {
            Some(room) => self.room.insert(room),
            None => self.room.insert(Pool::new(META_BYTES, blocks)),
        };
        let (mut rest, mut start, mut ends) = (room.region_mut(), 0, Vec::with_capacity(runs.len()));
        let mut reads = Vec::with_capacity(runs.len());
        for (tag, &Run { dev, offset, blocks }) in runs.iter().enumerate() {
            let (into, behind) = rest.split_at_mut(blocks * META_BYTES);
            rest = behind;
            ends.push(start..start + into.len());
            start += into.len();
            reads.push(ReadNow { tag, dev, offset_bytes: offset, into, result: Ok(()) });
        }
        devices.read_all_now(&mut reads);
        let there = reads.iter().filter(|read| read.result.is_ok());
        self.at.extend(there.map(|read| ((read.dev, read.offset_bytes), ends[read.tag].clone())));
    }

    /// What was read of a member from a place on, if anything.
    pub(super) fn from(&self, dev: DevIndex, offset: u64) -> Option<&[u8]> {
        let (&(_, first), run) = self.at.range((dev, 0)..=(dev, offset)).next_back()?;
        let behind = usize::try_from(offset - first).ok()?;
        let bytes = &self.room.as_ref()?.region()[run.clone()];
        bytes.get(behind..).filter(|bytes| !bytes.is_empty())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use device::MemorySet;

    #[test]
    fn what_was_read_is_found_from_any_of_its_blocks_on() {
        let mut devices = MemorySet::new(&[64 * 4096; 2]).unwrap();
        let block = |number: u8| vec![number; META_BYTES];
        for number in 0..64 {
            devices.write_now(DevIndex::new(1), u64::from(number) * 4096, &block(number)).unwrap();
        }
        let run = |dev, first: u64, blocks| Run { dev: DevIndex::new(dev), offset: first * 4096, blocks };
        let mut ahead = ChainAhead::default();
        ahead.read(&mut devices, &[run(1, 5, 3), run(0, 2, 1), run(1, 8, 2), run(1, 70, 1)]);
        let from = |first: u64| ahead.from(DevIndex::new(1), first * 4096);
        assert_eq!((from(4), from(10), from(70)), (None, None, None));
        assert_eq!(from(6).unwrap(), [block(6), block(7)].concat());
        assert_eq!(from(8).unwrap(), [block(8), block(9)].concat());
        assert_eq!(ahead.from(DevIndex::new(0), 2 * 4096).unwrap(), block(0));
        assert_eq!((ahead.from(DevIndex::new(0), 3 * 4096), ahead.from(DevIndex::new(2), 0)), (None, None));
        ahead.read(&mut devices, &[]);
        assert!(ahead.from(DevIndex::new(1), 6 * 4096).is_none(), "it is another's place");
    }
}
