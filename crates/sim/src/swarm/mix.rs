//! Which requests are made, and how often.

use crate::Rng;
use block::Random as _;

/// How often each kind of request is made, in parts of their sum.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Writes within one chunk or across a few.
    pub write: u64,
    /// Writes of whole chunks.
    pub whole: u64,
    /// Writes of whole stripes.
    pub stripe: u64,
    /// Reads.
    pub read: u64,
    /// Flushes.
    pub flush: u64,
    /// Discards.
    pub discard: u64,
    /// Parity commits.
    pub commit: u64,
    /// Checkpoints.
    pub checkpoint: u64,
    /// Scrubs.
    pub scrub: u64,
    /// A device is taken out of service.
    pub fail: u64,
    /// A failed device is replaced.
    pub replace: u64,
    /// A fault is laid on a device that may suffer one.
    pub trap: u64,
}

/// What the sectors of a request are whole units of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Sectors: anything.
    Sector,
    /// Chunks.
    Chunk,
    /// Stripes.
    Stripe,
}

/// One of the kinds of a [`Mix`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// A write.
    Write(Unit),
    /// A read.
    Read,
    /// A flush.
    Flush,
    /// A discard.
    Discard,
    /// A parity commit.
    Commit,
    /// A checkpoint.
    Checkpoint,
    /// A scrub.
    Scrub,
    /// A device is taken out of service.
    Fail,
    /// A failed device is replaced.
    Replace,
    /// A fault is laid.
    Trap,
}

impl Mix {
    /// Each kind with its weight, in the order on which published seeds depend.
    fn weights(&self) -> [(Chosen, u64); 12] {
        [
            (Chosen::Write(Unit::Sector), self.write),
            (Chosen::Write(Unit::Chunk), self.whole),
            (Chosen::Write(Unit::Stripe), self.stripe),
            (Chosen::Read, self.read),
            (Chosen::Flush, self.flush),
            (Chosen::Discard, self.discard),
            (Chosen::Commit, self.commit),
            (Chosen::Checkpoint, self.checkpoint),
            (Chosen::Scrub, self.scrub),
            (Chosen::Fail, self.fail),
            (Chosen::Replace, self.replace),
            (Chosen::Trap, self.trap),
        ]
    }

    /// One kind, by weight; writes if nothing has any.
    pub fn draw(&self, rng: &mut Rng) -> Chosen {
        let weights = self.weights();
        let mut draw = rng.below(weights.iter().map(|(_, weight)| weight).sum());
        for (kind, weight) in weights {
            if draw < weight {
                return kind;
            }
            draw -= weight;
        }
        Chosen::Write(Unit::Sector)
    }
}
