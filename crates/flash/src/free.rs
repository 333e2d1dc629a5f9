//! The free blocks.

use crate::slc::Mode;
use crate::wear::FreeOrder;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Free blocks of one way and one mode.
#[derive(Clone, Debug)]
enum List {
    Fifo(VecDeque<u32>),
    LeastWorn(BinaryHeap<Reverse<(u32, u32)>>),
}

impl List {
    fn push(&mut self, block: u32, erases: u32) {
        match self {
            Self::Fifo(queue) => queue.push_back(block),
            Self::LeastWorn(heap) => heap.push(Reverse((erases, block))),
        }
    }

    fn pop(&mut self) -> Option<u32> {
        match self {
            Self::Fifo(queue) => queue.pop_front(),
            Self::LeastWorn(heap) => heap.pop().map(|Reverse((_, block))| block),
        }
    }

    fn blocks(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::Fifo(queue) => Box::new(queue.iter().copied()),
            Self::LeastWorn(heap) => Box::new(heap.iter().map(|&Reverse((_, block))| block)),
        }
    }

    fn remove(&mut self, block: u32) {
        match self {
            Self::Fifo(queue) => queue.retain(|&other| other != block),
            Self::LeastWorn(heap) => heap.retain(|&Reverse((_, other))| other != block),
        }
    }
}

/// The free blocks of a domain, by the mode they were programmed in last, and by way: block `b` belongs to
/// way `b % ways`.
#[derive(Clone, Debug)]
pub(crate) struct FreeBlocks {
    /// The blocks of a way and mode are at way * 2 + mode.
    lists: Vec<List>,
    ways: u32,
    counts: [u32; 2],
}

impl FreeBlocks {
    pub(crate) fn new(ways: u32, order: FreeOrder) -> Self {
        let list = match order {
            FreeOrder::Fifo => List::Fifo(VecDeque::new()),
            FreeOrder::LeastWorn => List::LeastWorn(BinaryHeap::new()),
        };
        Self { lists: vec![list; ways as usize * 2], ways, counts: [0; 2] }
    }

    pub(crate) fn count(&self) -> u32 {
        self.counts[0] + self.counts[1]
    }

    fn list(&mut self, way: u32, mode: Mode) -> &mut List {
        &mut self.lists[way as usize * 2 + mode.index()]
    }

    pub(crate) fn push(&mut self, block: u32, mode: Mode, erases: u32) {
        self.counts[mode.index()] += 1;
        let way = block % self.ways;
        self.list(way, mode).push(block, erases);
    }

    /// Takes a block that was last programmed in this mode, of this way if there is one.
    pub(crate) fn take(&mut self, way: u32, mode: Mode) -> Option<u32> {
        if self.counts[mode.index()] == 0 {
            return None;
        }
        let ways = self.ways;
        let block = (way..way + ways).find_map(|way| self.list(way % ways, mode).pop())?;
        self.counts[mode.index()] -= 1;
        Some(block)
    }

    /// Takes out the block for which `worth` is largest, with its mode; of equals the one of
    /// the lowest number.
    pub(crate) fn take_best(&mut self, worth: impl Fn(u32) -> u32) -> Option<(u32, Mode)> {
        let all = self.lists.iter().flat_map(List::blocks);
        let block = all.max_by_key(|&block| (worth(block), Reverse(block)))?;
        let way = block % self.ways;
        let mode = Mode::ALL.into_iter().find(|&mode| self.list(way, mode).blocks().any(|b| b == block))?;
        self.list(way, mode).remove(block);
        self.counts[mode.index()] -= 1;
        Some((block, mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_modes_and_orders() {
        let mut free = FreeBlocks::new(2, FreeOrder::Fifo);
        for block in [4, 2, 3, 1] {
            free.push(block, Mode::Mlc, 0);
        }
        free.push(6, Mode::Slc, 0);
        assert_eq!(free.count(), 5);
        assert_eq!(free.take(0, Mode::Mlc), Some(4));
        assert_eq!(free.take(1, Mode::Mlc), Some(3));
        assert_eq!(free.take(1, Mode::Slc), Some(6), "another way's if need be");
        assert_eq!(free.take(1, Mode::Slc), None);
        assert_eq!(free.take_best(|block| block), Some((2, Mode::Mlc)));
        assert_eq!(free.count(), 1);

        let mut worn = FreeBlocks::new(1, FreeOrder::LeastWorn);
        for (block, erases) in [(1, 5), (2, 3), (3, 4)] {
            worn.push(block, Mode::Mlc, erases);
        }
        assert_eq!(worn.take_best(|block| [0, 5, 3, 4][block as usize]), Some((1, Mode::Mlc)));
        assert_eq!([worn.take(0, Mode::Mlc), worn.take(0, Mode::Mlc)], [Some(2), Some(3)]);
    }
}
