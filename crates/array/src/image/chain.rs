//! Where the incremental checkpoints of an array are: in a ring of blocks.

/// A stretch of the ring. Positions count blocks, lap by lap, so the block of one is its remainder by the
/// length of the ring; a checkpoint never goes on at the ring's beginning, and one for which the end has no
/// room is there as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    /// Behind which the first one is.
    pub start: u64,
    /// Behind the last one.
    pub next: u64,
    /// Behind which one goes on at the ring's beginning.
    turn: Option<u64>,
}

impl Chain {
    /// That of a full checkpoint behind which block `block` is the first.
    pub fn from(block: u32) -> Self {
        Self { start: block.into(), next: block.into(), turn: None }
    }

    /// Where another one of so many blocks goes in a ring of `ring` blocks, so that right behind it there is
    /// room for `spare` more; `None` if it would lie over the first.
    pub fn place(&self, blocks: u64, spare: u64, ring: u32) -> Option<u64> {
        let (ring, blocks) = (u64::from(ring), blocks + spare);
        let fits = self.next % ring + blocks <= ring;
        let position = if fits { self.next } else { self.next.next_multiple_of(ring) };
        (position + blocks <= self.start + ring).then_some(position)
    }

    /// Blocks that are left, but for what is lost where the ring ends.
    pub fn left(&self, ring: u32) -> u64 {
        (self.start + u64::from(ring)).saturating_sub(self.next)
    }

    /// The blocks at which the header of the next one may be.
    pub fn candidates(&self, ring: u32) -> impl Iterator<Item = u32> + use<> {
        let next = block_of(self.next, ring);
        [Some(next), Some(0).filter(|_| next != 0)].into_iter().flatten()
    }

    /// With the one behind it whose header is at `block`, and that has so many blocks.
    pub fn behind(&self, block: u32, blocks: u64, ring: u32) -> Self {
        let turns = block != block_of(self.next, ring);
        self.with(if turns { self.next.next_multiple_of(ring.into()) } else { self.next }, blocks)
    }

    /// With another one at `position`.
    pub fn with(&self, position: u64, blocks: u64) -> Self {
        let turn = if position == self.next { self.turn } else { Some(self.next) };
        Self { next: position + blocks, turn, ..*self }
    }

    /// Those of them that lie behind `position`.
    pub fn since(&self, position: u64) -> Self {
        Self { start: position, ..*self }
    }

    /// Where the one is that lies behind `position`; `None` behind the last one.
    pub fn one_behind(&self, position: u64, ring: u32) -> Option<u64> {
        let turns = self.turn == Some(position);
        let position = if turns { position.next_multiple_of(ring.into()) } else { position };
        (position < self.next).then_some(position)
    }
}

/// The block at a position of a ring.
pub fn block_of(position: u64, ring: u32) -> u32 {
    u32::try_from(position % u64::from(ring)).expect("a remainder of 32 bits")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn each_lies_behind_the_one_before_and_none_over_the_first() {
        const RING: u32 = 10;
        let mut chain = Chain::from(4);
        let mut blocks = Vec::new();
        for size in [3, 2, 4, 1, 1] {
            let Some(position) = chain.place(size, 0, RING) else { continue };
            let block = block_of(position, RING);
            assert!(chain.candidates(RING).any(|candidate| candidate == block));
            chain = chain.behind(block, size, RING);
            assert_eq!(chain.next, position + size);
            blocks.push((block, size));
        }
        assert_eq!(blocks, [(4, 3), (7, 2), (0, 4)], "one block is lost at the end, and then it is full");
        let behind = [4, 7, 9, 14].map(|position| chain.one_behind(position, RING));
        assert_eq!(behind, [Some(4), Some(7), Some(10), None]);
        assert_eq!((chain.left(RING), chain.place(1, 0, RING)), (0, None));
    }

    #[test]
    fn behind_each_there_is_the_room_that_was_asked_for() {
        const RING: u32 = 100;
        let (mut chain, mut turns) = (Chain::default(), 0);
        for size in (1..13).cycle().take(500) {
            let position = chain.place(size, 8, RING).unwrap();
            turns += u64::from(position > chain.next);
            chain = chain.with(position, size);
            assert_eq!(chain.place(8, 0, RING), Some(chain.next), "at {position}");
            chain = chain.since(position);
        }
        assert!(turns > 20, "{turns}");
    }

    #[test]
    fn a_ring_that_was_never_left_behind_is_an_area() {
        let mut chain = Chain::default();
        for _ in 0..3 {
            chain = chain.behind(block_of(chain.place(2, 0, 7).unwrap(), 7), 2, 7);
        }
        assert_eq!((chain.next, chain.place(2, 0, 7), chain.place(1, 0, 7)), (6, None, Some(6)));
        let full = chain.behind(6, 1, 7);
        assert_eq!((full.place(1, 0, 7), full.candidates(7).collect::<Vec<_>>()), (None, vec![0]));
    }
}
