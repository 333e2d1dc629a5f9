//! Stripes whose parity is out of date, and the versions of their columns that the parity still covers (M-02).

use block::{ChunkIndex, StripeId};
use std::collections::VecDeque;

/// In `committed`: the column was not updated since the last commit.
const SAME: u32 = u32::MAX;

/// Which version of a column the stripe's parity covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Committed {
    /// The newest one: the column was not updated since the last commit.
    Current,
    /// An old one (`NONE`: the column was zeros).
    Old(ChunkIndex),
}

/// See the module's documentation.
pub struct DirtyStripes {
    data_count: usize,
    /// Per stripe: 1 + its place in `stripes`, 0 if clean.
    place: Vec<u32>,
    stripes: Vec<StripeId>,
    /// k entries per place.
    committed: Vec<u32>,
    free: Vec<u32>,
    /// Oldest first; may hold stripes that became clean meanwhile.
    queue: VecDeque<StripeId>,
    count: u64,
}

impl DirtyStripes {
    /// All stripes clean.
    pub fn new(stripe_count: u64, data_count: usize) -> Self {
        let stripe_count = usize::try_from(stripe_count).expect("validated: fits the address space");
        Self {
            data_count,
            place: vec![0; stripe_count],
            stripes: Vec::new(),
            committed: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            count: 0,
        }
    }

    fn entry(&self, stripe: StripeId, column: usize) -> Option<usize> {
        let place = self.place[stripe.get() as usize];
        (place != 0).then(|| (place as usize - 1) * self.data_count + column)
    }

    /// Which version of a column is committed.
    pub fn committed(&self, stripe: StripeId, column: usize) -> Committed {
        match self.entry(stripe, column).map(|at| self.committed[at]) {
            None | Some(SAME) => Committed::Current,
            Some(chunk) => Committed::Old(ChunkIndex::new(chunk)),
        }
    }

    /// Notes that `chunk` is the committed version of a column that is now updated; makes the stripe dirty.
    pub fn set_committed(&mut self, stripe: StripeId, column: usize, chunk: ChunkIndex) {
        if self.entry(stripe, column).is_none() {
            self.insert(stripe);
        }
        let at = self.entry(stripe, column).expect("just inserted");
        self.committed[at] = chunk.get();
    }

    fn insert(&mut self, stripe: StripeId) {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.stripes.push(stripe);
                self.committed.resize(self.committed.len() + self.data_count, SAME);
                u32::try_from(self.stripes.len() - 1).expect("fewer dirty stripes than chunk indices")
            }
        };
        self.stripes[place as usize] = stripe;
        self.committed[place as usize * self.data_count..][..self.data_count].fill(SAME);
        self.place[stripe.get() as usize] = place + 1;
        self.queue.push_back(stripe);
        self.count += 1;
    }

    /// The stripe's parity is up to date.
    pub fn clean(&mut self, stripe: StripeId) {
        let place = std::mem::take(&mut self.place[stripe.get() as usize]);
        if place != 0 {
            self.free.push(place - 1);
            self.count -= 1;
        }
    }

    /// Whether the stripe's parity is out of date.
    pub fn is_dirty(&self, stripe: StripeId) -> bool {
        self.place[stripe.get() as usize] != 0
    }

    /// How many stripes are dirty.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes up to `count` dirty stripes, oldest first.
    pub fn take(&mut self, count: usize, out: &mut Vec<StripeId>) {
        let end = out.len() + count;
        while out.len() < end {
            let Some(stripe) = self.queue.pop_front() else { break };
            if self.is_dirty(stripe) && !out.contains(&stripe) {
                out.push(stripe);
            }
        }
    }

    /// Puts a stripe back for a later [`DirtyStripes::take`].
    pub fn put_back(&mut self, stripe: StripeId) {
        self.queue.push_back(stripe);
    }

    /// All dirty stripes, oldest first, with their committed entries (raw: `u32::MAX` = newest).
    pub fn entries(&self) -> impl Iterator<Item = (StripeId, &[u32])> {
        let mut seen = vec![false; self.stripes.len()];
        let queued = self.queue.iter().copied();
        let all = queued.chain(self.stripes.iter().copied());
        all.filter_map(move |stripe| {
            let place = (self.place[stripe.get() as usize] as usize).checked_sub(1)?;
            if self.stripes[place] != stripe || std::mem::replace(&mut seen[place], true) {
                return None;
            }
            Some((stripe, &self.committed[place * self.data_count..][..self.data_count]))
        })
    }

    /// Bytes per stripe of the array.
    pub fn fixed_bytes(&self) -> u64 {
        self.place.len() as u64 * 4
    }

    /// Bytes that grow with what is uncommitted.
    pub fn dynamic_bytes(&self) -> u64 {
        (self.committed.len() * 4 + self.stripes.len() * 8 + self.queue.len() * 8) as u64
    }
}
