//! A ring of blocks for copies of frames. Blocks are given out in ascending order, round and round; those
//! that are still needed are passed over.

use block::Seq;
use std::collections::VecDeque;

/// See the module's documentation. Positions count blocks and never wrap.
pub(super) struct Ring {
    blocks: u64,
    head: u64,
    /// Position and last record of each copy that is needed, in ascending order of both.
    frames: VecDeque<(u64, Seq)>,
    /// Whether a needed copy is on a block.
    taken: Vec<bool>,
}

impl Ring {
    /// A ring without copies.
    pub fn new(blocks: u32) -> Self {
        let taken = (0..blocks).map(|_| false).collect();
        Self { blocks: blocks.into(), head: 0, frames: VecDeque::new(), taken }
    }

    /// Blocks in the ring.
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Blocks with copies that are needed.
    pub fn used(&self) -> usize {
        self.frames.len()
    }

    /// Behind the last position that was given out.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The block at a position.
    pub fn block(&self, position: u64) -> u32 {
        u32::try_from(self.index(position)).expect("a ring has fewer blocks than 2^32")
    }

    fn index(&self, position: u64) -> usize {
        usize::try_from(position % self.blocks.max(1)).expect("a block of the ring")
    }

    /// Takes the next free block for a copy of a frame that ends with record `last`: its position.
    pub fn take(&mut self, last: Seq) -> Option<u64> {
        if self.used() == self.len() {
            return None;
        }
        while self.taken[self.index(self.head)] {
            self.head += 1;
        }
        let (position, index) = (self.head, self.index(self.head));
        self.taken[index] = true;
        self.frames.push_back((position, last));
        self.head += 1;
        Some(position)
    }

    /// Gives up the copy at a position, unless that was done before.
    pub fn give_up(&mut self, position: u64) {
        if let Ok(at) = self.frames.binary_search_by_key(&position, |&(position, _)| position) {
            self.frames.remove(at);
            let index = self.index(position);
            self.taken[index] = false;
        }
    }

    /// Gives up the copy at a position, and gives its block out next if none was given out since.
    pub fn give_back(&mut self, position: u64) {
        self.give_up(position);
        if self.head == position + 1 {
            self.head = position;
        }
    }

    /// Gives up the copies that end with record `through` or before.
    pub fn trim(&mut self, through: Seq) {
        while let Some(&(position, _)) = self.frames.front().filter(|&&(_, last)| last <= through) {
            self.give_up(position);
        }
    }

    /// The first needed copy at `position` or behind it, and its last record.
    pub fn frame_from(&self, position: u64) -> Option<(u64, Seq)> {
        self.frames.get(self.frames.partition_point(|&(at, _)| at < position)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks are given out in order; what is needed is passed over, what was given up comes round again.
    #[test]
    fn what_is_needed_is_passed_over() {
        let mut ring = Ring::new(4);
        let blocks = |ring: &mut Ring, lasts: &[u64]| -> Vec<Option<u32>> {
            lasts.iter().map(|&last| ring.take(Seq::new(last)).map(|at| ring.block(at))).collect()
        };
        assert_eq!(blocks(&mut ring, &[1, 2, 3]), [Some(0), Some(1), Some(2)]);
        ring.give_up(0);
        ring.give_up(2);
        ring.give_up(2);
        assert_eq!(blocks(&mut ring, &[4, 5, 6, 7]), [Some(3), Some(0), Some(2), None], "1 is needed");
        assert_eq!(ring.frame_from(0), Some((1, Seq::new(2))));
        ring.trim(Seq::new(5));
        assert_eq!(ring.frame_from(0), Some((6, Seq::new(6))), "block 2 of the second lap");
        assert_eq!(blocks(&mut ring, &[8, 9]), [Some(3), Some(0)]);
    }
}
