//! Live log chunks: which of them count for the parity of which stripe, and in which order they lie
//! in the log.
//!
//! Each is a node of two lists: those of the whole log, in log order, and those of its stripe, oldest first.
//! What no longer counts leaves both at once, so that a checkpoint, which holds up everything else while it
//! is taken, only meets live ones; and nodes are given out in ascending order, so that it meets them roughly
//! in the order of memory.

use crate::hash::StripeMap;
use crate::scheme::dirty_queue::DirtyQueue;
use crate::store::LogRing;
use block::{ChunkIndex, StripeId};

/// Numbers a node; there are fewer than chunk indices.
type Id = u32;

/// No node.
const NONE: Id = Id::MAX;

/// Nodes not in use are more than a quarter of all, so that few are looked at before one is found.
const SPARE_DIVISOR: usize = 4;

/// Nodes made at a time, at least.
const GROWTH_MIN: usize = 64;

#[derive(Clone, Copy)]
struct Node {
    stripe: StripeId,
    /// `NONE`: not in use.
    block: ChunkIndex,
    /// Neighbours in the log.
    before: Id,
    after: Id,
    /// The next one of the same stripe.
    newer: Id,
}

/// The log chunks of one dirty stripe.
#[derive(Clone, Copy)]
struct Dirty {
    oldest: Id,
    newest: Id,
    count: u32,
}

/// See the module's documentation.
pub struct Deltas {
    parity_count: usize,
    nodes: Vec<Node>,
    /// m per node.
    crcs: Vec<u32>,
    /// Nodes in use.
    count: usize,
    /// The node given out last.
    cursor: usize,
    dirty: StripeMap<Dirty>,
    queue: DirtyQueue,
    /// Ends of the log's list.
    oldest: Id,
    newest: Id,
}

impl Deltas {
    /// None yet.
    pub fn new(parity_count: usize) -> Self {
        Self {
            parity_count,
            nodes: Vec::new(),
            crcs: Vec::new(),
            count: 0,
            cursor: 0,
            dirty: StripeMap::default(),
            queue: DirtyQueue::default(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// A log chunk counts from now on.
    pub fn push(
        &mut self,
        ring: &LogRing,
        stripe: StripeId,
        block: ChunkIndex,
        crcs: impl Iterator<Item = u32>,
    ) {
        // Without a journal, writes end in any order. While a journal is replayed the log has no positions
        // yet, and needs none: its records are in log order.
        let mut before = self.newest;
        while ring.head() > 0
            && before != NONE
            && ring.position_of(self.nodes[before as usize].block) > ring.position_of(block)
        {
            before = self.nodes[before as usize].before;
        }
        let after = if before == NONE { self.oldest } else { self.nodes[before as usize].after };
        let id = self.add_node(Node { stripe, block, before, after, newer: NONE }, crcs);
        self.join(before, id);
        self.join(id, after);
        let queue = &mut self.queue;
        let dirty = self.dirty.entry(stripe.get()).or_insert_with(|| {
            queue.push(stripe);
            Dirty { oldest: id, newest: NONE, count: 0 }
        });
        if dirty.newest != NONE {
            self.nodes[dirty.newest as usize].newer = id;
        }
        dirty.newest = id;
        dirty.count += 1;
    }

    fn add_node(&mut self, node: Node, crcs: impl Iterator<Item = u32>) -> Id {
        let id = self.unused();
        self.nodes[id] = node;
        let own = &mut self.crcs[id * self.parity_count..][..self.parity_count];
        own.iter_mut().zip(crcs).for_each(|(own, crc)| *own = crc);
        self.count += 1;
        Id::try_from(id).expect("fewer live log chunks than chunk indices")
    }

    /// The next node not in use.
    fn unused(&mut self) -> usize {
        let len = self.nodes.len();
        if (len - self.count) * SPARE_DIVISOR <= len {
            let unused = Node {
                stripe: StripeId::new(0),
                block: ChunkIndex::NONE,
                before: NONE,
                after: NONE,
                newer: NONE,
            };
            self.nodes.resize(len + (len / 2).max(GROWTH_MIN), unused);
            self.crcs.resize(self.nodes.len() * self.parity_count, 0);
            self.cursor = len;
        }
        while !self.nodes[self.cursor].block.is_none() {
            self.cursor = (self.cursor + 1) % self.nodes.len();
        }
        self.cursor
    }

    /// Makes two nodes neighbours in the log; one of them may be the end.
    fn join(&mut self, before: Id, after: Id) {
        match before {
            NONE => self.oldest = after,
            _ => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => self.newest = before,
            _ => self.nodes[after as usize].before = before,
        }
    }

    /// No log chunk counts for the stripe any more.
    pub fn clear(&mut self, stripe: StripeId) {
        let Some(dirty) = self.dirty.remove(&stripe.get()) else { return };
        let mut id = dirty.oldest;
        while id != NONE {
            let Node { before, after, newer, .. } = self.nodes[id as usize];
            self.join(before, after);
            self.nodes[id as usize].block = ChunkIndex::NONE;
            self.count -= 1;
            id = newer;
        }
    }

    fn node(&self, id: Id) -> Option<(&Node, &[u32])> {
        let node = self.nodes.get(id as usize)?;
        Some((node, &self.crcs[id as usize * self.parity_count..][..self.parity_count]))
    }

    /// The log chunks of a stripe, oldest first: block, and checksum on each log device.
    pub fn of(&self, stripe: StripeId) -> impl Iterator<Item = (ChunkIndex, &[u32])> {
        let first = self.dirty.get(&stripe.get()).map_or(NONE, |dirty| dirty.oldest);
        let nodes = std::iter::successors(self.node(first), |(node, _)| self.node(node.newer));
        nodes.map(|(node, crcs)| (node.block, crcs))
    }

    /// How many log chunks each parity of a stripe has.
    pub fn count_of(&self, stripe: StripeId) -> usize {
        self.dirty.get(&stripe.get()).map_or(0, |dirty| dirty.count as usize)
    }

    /// Whether any log chunk counts for a stripe.
    pub fn is_dirty(&self, stripe: StripeId) -> bool {
        self.dirty.contains_key(&stripe.get())
    }

    /// Dirty stripes.
    pub fn dirty_count(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Live log chunks on each log device.
    pub fn count(&self) -> u64 {
        self.count as u64
    }

    /// Takes up to `count` dirty stripes, oldest first.
    pub fn take(&mut self, count: usize, out: &mut Vec<StripeId>) {
        let dirty = &self.dirty;
        self.queue.take(count, |stripe| dirty.contains_key(&stripe.get()), out);
    }

    /// Puts a stripe back for a later [`Deltas::take`].
    pub fn put_back(&mut self, stripe: StripeId) {
        self.queue.push(stripe);
    }

    /// Puts stripes before all others for the next [`Deltas::take`].
    pub fn put_first(&mut self, stripes: &[StripeId]) {
        self.queue.push_first(stripes);
    }

    /// The position of the oldest live log chunk, or the head if there is none.
    pub fn oldest_position(&self, ring: &LogRing) -> u64 {
        self.node(self.oldest).map_or(ring.head(), |(node, _)| ring.position_of(node.block))
    }

    /// The block of the newest live log chunk.
    pub fn newest_block(&self) -> Option<ChunkIndex> {
        self.node(self.newest).map(|(node, _)| node.block)
    }

    /// Live log chunks in log order.
    pub fn in_log_order(&self) -> impl Iterator<Item = (StripeId, ChunkIndex, &[u32])> {
        let nodes = std::iter::successors(self.node(self.oldest), |(node, _)| self.node(node.after));
        nodes.map(|(node, crcs)| (node.stripe, node.block, crcs))
    }

    /// Bytes with as many live log chunks in as many stripes, at most: there are spare nodes, and the queue
    /// and the map may be twice as large as what is in them.
    pub fn bytes_for(parity_count: u64, deltas: u64, dirty_stripes: u64) -> u64 {
        let node = size_of::<Node>() as u64 + parity_count * 4;
        let dirty = (2 * size_of::<u64>() + size_of::<Dirty>() + size_of::<StripeId>()) as u64;
        2 * deltas * node + 2 * dirty_stripes * dirty
    }

    /// Bytes that grow with what is uncommitted.
    pub fn memory_bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>()
            + self.crcs.capacity() * size_of::<u32>()
            + self.dirty.capacity() * (size_of::<u64>() + size_of::<Dirty>())) as u64
            + self.queue.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::Deltas;
    use crate::store::LogRing;
    use block::{ChunkIndex, StripeId};

    const STRIPES: u64 = 12;
    const RING_BLOCKS: u32 = 300;

    /// What is live, in log order: position, stripe, checksum.
    type Model = Vec<(u64, u64, u32)>;

    #[track_caller]
    fn same(deltas: &Deltas, model: &Model, ring: &LogRing) {
        let block =
            |&(position, stripe, crc): &(u64, u64, u32)| (stripe, ring.block_at(position), vec![crc, !crc]);
        let found: Vec<_> =
            deltas.in_log_order().map(|(stripe, at, crcs)| (stripe.get(), at, crcs.to_vec())).collect();
        assert_eq!(found, model.iter().map(block).collect::<Vec<_>>());
        assert_eq!(deltas.count(), model.len() as u64);
        assert_eq!(deltas.oldest_position(ring), model.first().map_or(ring.head(), |first| first.0));
        assert_eq!(deltas.newest_block(), model.last().map(|last| ring.block_at(last.0)));
        for stripe in 0..STRIPES {
            let of: Vec<ChunkIndex> = deltas.of(StripeId::new(stripe)).map(|(at, _)| at).collect();
            let expected = model.iter().filter(|live| live.1 == stripe).map(|live| ring.block_at(live.0));
            assert_eq!(of, expected.collect::<Vec<_>>());
            assert_eq!(deltas.count_of(StripeId::new(stripe)), of.len());
            assert_eq!(deltas.is_dirty(StripeId::new(stripe)), !of.is_empty());
        }
    }

    /// Log chunks of several stripes are appended together and count from the end of their writes on, in any
    /// order; the ring wraps many times.
    #[test]
    fn a_list_in_log_order_whatever_ends_first() {
        const SEED: u64 = 5;
        println!("seed {SEED}");
        let mut state = SEED;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut ring, mut deltas, mut model) = (LogRing::new(RING_BLOCKS, 1), Deltas::new(2), Model::new());
        let mut pending: Model = Vec::new();
        for step in 0..20_000u32 {
            match below(8) {
                0..4 if pending.len() < 6 && ring.reserve_chunk(0).is_some() => {
                    let (position, _) = ring.append_reserved();
                    // One write at a time is under way in a stripe.
                    let stripe = below(STRIPES);
                    match pending.iter().any(|write| write.1 == stripe) {
                        true => {}
                        false => pending.push((position, stripe, step)),
                    }
                }
                0..7 if !pending.is_empty() => {
                    let write = pending.remove(below(pending.len() as u64) as usize);
                    let (position, stripe, crc) = write;
                    deltas.push(
                        &ring,
                        StripeId::new(stripe),
                        ring.block_at(position),
                        [crc, !crc].into_iter(),
                    );
                    let at = model.partition_point(|live| live.0 < position);
                    model.insert(at, write);
                }
                _ => {
                    let stripe = below(STRIPES);
                    deltas.clear(StripeId::new(stripe));
                    model.retain(|live| live.1 != stripe);
                }
            }
            let oldest = pending.iter().map(|write| write.0).min().unwrap_or(ring.head());
            let tail = deltas.oldest_position(&ring).min(oldest);
            ring.trim(tail.max(ring.tail()));
            same(&deltas, &model, &ring);
        }
        assert!(ring.head() > 10 * u64::from(RING_BLOCKS), "the ring wrapped");
    }
}
