//! The object metadata cache of the paper's store (K-06, K-07): where keys are and how large, so that no key
//! is read to know it. The product's is `known.rs`.
//!
//! A cuckoo table leads from the hash of a key to a node; a [`Policy`] says which node goes. [`Adaptive`] is
//! ARC (Megiddo, Modha, FAST 2003): keys seen once and keys seen again have a list each, and ghosts of what
//! went say which list should be longer.

use crate::cuckoo::Cuckoo;
use crate::layout::Kind;
use crate::numbers::{small, wide};

/// What is known of a key that is there, or was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    pub(crate) address: u64,
    pub(crate) kind: Kind,
    pub(crate) seq: u64,
    pub(crate) until_ms: u64,
    /// Bytes that the record takes.
    pub(crate) taken_bytes: u64,
    /// Bytes of the value, wherever it is.
    pub(crate) value_bytes: u64,
    /// The number of a large value.
    pub(crate) id: u64,
}

/// Which nodes stay. Nodes are numbered by the policy, which uses the numbers of those that go again.
pub(crate) trait Policy {
    /// Somebody asked for a node that is there. False: it is a ghost.
    fn used(&mut self, node: u32) -> bool;
    /// A key comes that has no node, or the ghost `ghost`. Returns its node, and appends those whose content
    /// goes and those that go altogether.
    fn admit(&mut self, ghost: Option<u32>, emptied: &mut Vec<u32>, gone: &mut Vec<u32>) -> u32;
    /// A node's key is there no longer.
    fn forget(&mut self, node: u32);
}

const NONE: u32 = u32::MAX;
/// Seen once; seen again; ghosts of both; unused.
const ONCE: usize = 0;
const AGAIN: usize = 1;
const ONCE_GHOST: usize = 2;
const AGAIN_GHOST: usize = 3;
const UNUSED: usize = 4;

#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    list: usize,
}

#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
    count: usize,
}

/// ARC.
pub(crate) struct Adaptive {
    links: Vec<Link>,
    lists: [List; 5],
    capacity: usize,
    /// How long the list of those seen once should be.
    target: usize,
}

impl Adaptive {
    /// Room for so many nodes, ghosts not counted.
    pub(crate) fn new(capacity: usize) -> Self {
        let empty = List { newest: NONE, oldest: NONE, count: 0 };
        Self { links: Vec::new(), lists: [empty; 5], capacity: capacity.max(1), target: 0 }
    }

    fn count(&self, list: usize) -> usize {
        self.lists[list].count
    }

    fn unlink(&mut self, node: u32) {
        let Link { before, after, list } = self.links[small(node)];
        match before {
            NONE => self.lists[list].newest = after,
            other => self.links[small(other)].after = after,
        }
        match after {
            NONE => self.lists[list].oldest = before,
            other => self.links[small(other)].before = before,
        }
        self.lists[list].count -= 1;
    }

    fn link(&mut self, node: u32, list: usize) {
        let first = self.lists[list].newest;
        self.links[small(node)] = Link { before: NONE, after: first, list };
        match first {
            NONE => self.lists[list].oldest = node,
            other => self.links[small(other)].before = node,
        }
        self.lists[list].newest = node;
        self.lists[list].count += 1;
    }

    fn shift(&mut self, node: u32, list: usize) {
        self.unlink(node);
        self.link(node, list);
    }

    /// The oldest of a list to another list.
    fn demote(&mut self, from: usize, to: usize) -> Option<u32> {
        let oldest = self.lists[from].oldest;
        if oldest == NONE {
            return None;
        }
        self.shift(oldest, to);
        Some(oldest)
    }

    /// REPLACE of the paper: what is over goes to the ghosts.
    fn replace(&mut self, from_again_ghosts: bool, emptied: &mut Vec<u32>) {
        let once = self.count(ONCE);
        let first = once > 0 && (once > self.target || (from_again_ghosts && once == self.target));
        let order = [(ONCE, ONCE_GHOST), (AGAIN, AGAIN_GHOST)];
        for (from, to) in if first { order } else { [order[1], order[0]] } {
            if let Some(node) = self.demote(from, to) {
                emptied.push(node);
                return;
            }
        }
    }

    fn fresh(&mut self) -> u32 {
        let unused = self.lists[UNUSED].newest;
        if unused != NONE {
            return unused;
        }
        let node = crate::numbers::short(self.links.len());
        self.links.push(Link { before: NONE, after: NONE, list: UNUSED });
        self.link(node, UNUSED);
        // The list was empty, and `link` names the node itself as the one before only if it was in it.
        node
    }
}

impl Policy for Adaptive {
    fn used(&mut self, node: u32) -> bool {
        let list = self.links[small(node)].list;
        let there = matches!(list, ONCE | AGAIN);
        if there {
            self.shift(node, AGAIN);
        }
        there
    }

    fn admit(&mut self, ghost: Option<u32>, emptied: &mut Vec<u32>, gone: &mut Vec<u32>) -> u32 {
        let full = self.count(ONCE) + self.count(AGAIN) >= self.capacity;
        if let Some(ghost) = ghost {
            let (once, again) = (self.count(ONCE_GHOST).max(1), self.count(AGAIN_GHOST).max(1));
            let was_again = self.links[small(ghost)].list == AGAIN_GHOST;
            if was_again {
                self.target = self.target.saturating_sub((once / again).max(1));
            } else {
                self.target = (self.target + (again / once).max(1)).min(self.capacity);
            }
            if full {
                self.replace(was_again, emptied);
            }
            self.shift(ghost, AGAIN);
            return ghost;
        }
        if self.count(ONCE) + self.count(ONCE_GHOST) >= self.capacity {
            if self.count(ONCE_GHOST) > 0 {
                gone.extend(self.demote(ONCE_GHOST, UNUSED));
                if full {
                    self.replace(false, emptied);
                }
            } else {
                // All that is there was seen once: the oldest goes without a ghost.
                gone.extend(self.demote(ONCE, UNUSED));
            }
        } else if full {
            let all: usize =
                [ONCE, AGAIN, ONCE_GHOST, AGAIN_GHOST].iter().map(|list| self.count(*list)).sum();
            if all >= 2 * self.capacity {
                gone.extend(self.demote(AGAIN_GHOST, UNUSED));
            }
            self.replace(false, emptied);
        }
        let node = self.fresh();
        self.shift(node, ONCE);
        node
    }

    fn forget(&mut self, node: u32) {
        self.shift(node, UNUSED);
    }
}

struct Node {
    hash: u64,
    /// Empty: a ghost, which is known by its hash alone.
    key: Box<[u8]>,
    meta: Meta,
}

const NOTHING: Meta =
    Meta { address: 0, kind: Kind::Value, seq: 0, until_ms: 0, taken_bytes: 0, value_bytes: 0, id: 0 };

/// The cache.
pub(crate) struct Cache {
    table: Cuckoo,
    nodes: Vec<Node>,
    policy: Box<dyn Policy + Send>,
    capacity: usize,
    key_bytes: usize,
    pub(crate) hit_count: u64,
    pub(crate) miss_count: u64,
    emptied: Vec<u32>,
    gone: Vec<u32>,
}

impl Cache {
    /// A cache of so many keys under ARC.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            table: Cuckoo::new(),
            nodes: Vec::new(),
            policy: Box::new(Adaptive::new(capacity)),
            capacity,
            key_bytes: 0,
            hit_count: 0,
            miss_count: 0,
            emptied: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        let node = size_of::<Node>() + size_of::<Link>();
        self.table.bytes() + wide(self.nodes.len() * node + self.key_bytes)
    }

    fn find(&self, hash: u64, fits: impl Fn(&Node) -> bool) -> Option<u32> {
        let candidates = self.table.candidates(hash);
        (0..).map_while(|at| candidates.get(at)).find_map(|found| {
            let node = u32::try_from(found.payload - 1).ok()?;
            fits(&self.nodes[small(node)]).then_some(node)
        })
    }

    fn find_key(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.find(hash, |node| node.hash == hash && *node.key == *key)
    }

    /// What is known of a key.
    pub(crate) fn get(&mut self, hash: u64, key: &[u8]) -> Option<Meta> {
        let found = self.find_key(hash, key);
        match found {
            Some(node) => {
                self.hit_count += 1;
                self.policy.used(node);
                Some(self.nodes[small(node)].meta)
            }
            None => {
                self.miss_count += 1;
                None
            }
        }
    }

    /// Notes what is known of a key.
    pub(crate) fn put(&mut self, hash: u64, key: &[u8], meta: Meta) {
        if self.capacity == 0 {
            return;
        }
        if let Some(node) = self.find_key(hash, key) {
            self.nodes[small(node)].meta = meta;
            return;
        }
        let ghost = self.find(hash, |node| node.hash == hash && node.key.is_empty());
        let node = self.policy.admit(ghost, &mut self.emptied, &mut self.gone);
        for emptied in self.emptied.drain(..) {
            let key = std::mem::take(&mut self.nodes[small(emptied)].key);
            self.key_bytes -= key.len();
        }
        for gone in std::mem::take(&mut self.gone) {
            let key = std::mem::take(&mut self.nodes[small(gone)].key);
            self.key_bytes -= key.len();
            self.table.remove(self.nodes[small(gone)].hash, u64::from(gone) + 1);
        }
        self.key_bytes += key.len();
        let new = Node { hash, key: Box::from(key), meta };
        if small(node) == self.nodes.len() {
            self.nodes.push(new);
        } else {
            self.nodes[small(node)] = new;
        }
        if ghost.is_none() && self.table.insert(hash, u64::from(node) + 1, 0).is_err() {
            self.drop_node(node);
        }
    }

    fn drop_node(&mut self, node: u32) {
        self.policy.forget(node);
        let old = std::mem::replace(
            &mut self.nodes[small(node)],
            Node { hash: 0, key: Box::default(), meta: NOTHING },
        );
        self.key_bytes -= old.key.len();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use block::{Random, SplitMix};
    use std::collections::HashMap;

    fn meta(address: u64) -> Meta {
        Meta { address, ..NOTHING }
    }

    #[test]
    fn what_is_there_is_what_was_put_last_and_never_too_much() {
        let mut random = SplitMix::new(5);
        for capacity in [1, 2, 7, 64] {
            let (mut cache, mut model) = (Cache::new(capacity), HashMap::new());
            for step in 1..20_000_u64 {
                let key = random.below(random.clone().below(200) + 1).to_le_bytes();
                let hash = block::mix(u64::from_le_bytes(key));
                match random.below(7) {
                    0..3 => {
                        cache.put(hash, &key, meta(step));
                        model.insert(key, step);
                    }
                    _ => {
                        if let Some(found) = cache.get(hash, &key) {
                            assert_eq!(Some(&found.address), model.get(&key));
                        }
                    }
                }
                let there = cache.nodes.iter().filter(|node| !node.key.is_empty()).count();
                assert!(there <= capacity && cache.nodes.len() <= 2 * capacity + 1);
                assert!(cache.table.len() <= wide(2 * capacity));
            }
            assert!(cache.hit_count > 0);
        }
    }

    /// A scan that comes once must not drive out what comes again and again; with LRU it does. `ask` looks
    /// for a key in a cache of 100, puts it there if it is not, and says whether it was.
    pub(crate) fn outlives_a_scan(mut ask: impl FnMut(u64) -> bool) {
        for _ in 0..3 {
            (0..50).for_each(|number| _ = ask(number));
        }
        (1000..2000).for_each(|number| _ = ask(number));
        let hits = (0..50).filter(|number| ask(*number)).count();
        assert!(hits >= 45, "{hits} of 50");
    }

    #[test]
    fn a_scan_does_not_drive_out_what_is_used_again() {
        let mut cache = Cache::new(100);
        outlives_a_scan(|number| {
            let (key, hash) = (number.to_le_bytes(), block::mix(number));
            let hit = cache.get(hash, &key).is_some();
            if !hit {
                cache.put(hash, &key, meta(number));
            }
            hit
        });
    }

    #[test]
    fn the_target_follows_the_ghosts() {
        let mut policy = Adaptive::new(4);
        let (mut emptied, mut gone) = (Vec::new(), Vec::new());
        let first = policy.admit(None, &mut emptied, &mut gone);
        let again = policy.admit(None, &mut emptied, &mut gone);
        assert!(policy.used(again));
        for _ in 0..3 {
            policy.admit(None, &mut emptied, &mut gone);
        }
        assert_eq!((&emptied[..], &gone[..], policy.target), (&[first][..], &[][..], 0));
        assert!(!policy.used(first));
        assert_eq!(policy.admit(Some(first), &mut emptied, &mut gone), first);
        assert_eq!((policy.target, policy.count(AGAIN)), (1, 2));
    }
}
