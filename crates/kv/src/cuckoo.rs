//! The object location table (K-03, K-05): a cuckoo hash table of 8-byte entries that does not know its keys.
//!
//! An entry is a payload of 40 bits (an address), a class of 4 bits, and a tag of 20 bits of the key's hash.
//! A key has two buckets of four slots in one table; the other bucket follows from bucket and tag, so entries
//! are moved without their keys. Tables have a fixed size; one that is full is split by the next bit of the
//! tags, which says which table a key belongs to (extendible hashing). So growth never touches more than one
//! table at a time.
//!
//! The order of a scan, tag then lower bucket, is the same wherever an entry lies and however tables are
//! split.

use crate::numbers::{narrow, small, wide};

/// Bits of a payload.
pub(crate) const PAYLOAD_BITS: u32 = 40;
const TAG_BITS: u32 = 20;
const SLOTS: usize = 4;
const BUCKET_BITS: u32 = 13;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// Entries in one table.
const TABLE_SLOTS: usize = BUCKETS * SLOTS;
/// A table is split above this load: 15/16. Insertions take long beyond it, and fail beyond 97 %.
const LOAD_MAX: usize = TABLE_SLOTS / 16 * 15;
/// Entries that one insertion may move.
const MOVES_MAX: usize = 500;

/// Where a payload is found again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) payload: u64,
    pub(crate) class: u8,
}

/// The entries that may be those of a key, at most one for each slot of its buckets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidates {
    found: [u64; 2 * SLOTS],
    count: usize,
}

impl Candidates {
    pub(crate) fn get(&self, at: usize) -> Option<Candidate> {
        (at < self.count).then(|| split(self.found[at]))
    }
}

/// No place for an entry: more keys than can be told apart have the same tag and buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

struct Table {
    slots: Vec<u64>,
    count: usize,
    /// How many bits of the tags decide that a key belongs here.
    depth: u32,
}

/// The table of tables.
pub(crate) struct Cuckoo {
    tables: Vec<Table>,
    /// The table of each prefix of `depth` bits of a tag.
    directory: Vec<u32>,
    depth: u32,
    count: u64,
    walk: u64,
}

fn entry(payload: u64, class: u8, tag: u64) -> u64 {
    debug_assert!(payload != 0 && payload >> PAYLOAD_BITS == 0 && class < 16, "an entry's parts fit");
    payload | u64::from(class) << PAYLOAD_BITS | tag << (64 - TAG_BITS)
}

fn split(entry: u64) -> Candidate {
    Candidate {
        payload: entry & ((1 << PAYLOAD_BITS) - 1),
        class: u8::try_from(entry >> PAYLOAD_BITS & 15).expect("four bits"),
    }
}

#[inline]
fn tag_of(entry_or_hash: u64) -> u64 {
    entry_or_hash >> (64 - TAG_BITS)
}

/// The other bucket of an entry with this tag.
#[inline]
fn other(bucket: usize, tag: u64) -> usize {
    let spread = (tag + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKET_BITS);
    bucket ^ narrow(spread | 1)
}

#[inline]
fn bucket_of(hash: u64) -> usize {
    narrow(hash & wide(BUCKETS - 1))
}

/// Where an entry stands in the order of a scan.
fn order(tag: u64, bucket: usize) -> u64 {
    tag << BUCKET_BITS | wide(bucket.min(other(bucket, tag)))
}

impl Table {
    fn new(depth: u32) -> Self {
        Self { slots: vec![0; TABLE_SLOTS], count: 0, depth }
    }

    fn bucket(&self, bucket: usize) -> &[u64] {
        &self.slots[bucket * SLOTS..][..SLOTS]
    }

    /// The place of an entry of which payload and tag are known.
    fn place(&self, bucket: usize, tag: u64, payload: u64) -> Option<usize> {
        [bucket, other(bucket, tag)].into_iter().find_map(|bucket| {
            let at = self
                .bucket(bucket)
                .iter()
                .position(|&found| found != 0 && tag_of(found) == tag && split(found).payload == payload);
            at.map(|at| bucket * SLOTS + at)
        })
    }

    fn put(&mut self, bucket: usize, new: u64) -> bool {
        let Some(at) = self.bucket(bucket).iter().position(|&found| found == 0) else { return false };
        self.slots[bucket * SLOTS + at] = new;
        self.count += 1;
        true
    }

    /// Puts an entry into one of its buckets, moving others if need be; changes nothing if that fails.
    fn insert(&mut self, bucket: usize, new: u64, walk: &mut u64) -> bool {
        if self.put(bucket, new) || self.put(other(bucket, tag_of(new)), new) {
            return true;
        }
        let mut path = Vec::new();
        let (mut homeless, mut bucket) = (new, bucket);
        for _ in 0..MOVES_MAX {
            *walk = walk.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let place = bucket * SLOTS + narrow(*walk >> 62);
            std::mem::swap(&mut homeless, &mut self.slots[place]);
            path.push(place);
            bucket = other(bucket, tag_of(homeless));
            if self.put(bucket, homeless) {
                return true;
            }
        }
        for place in path.into_iter().rev() {
            std::mem::swap(&mut homeless, &mut self.slots[place]);
        }
        debug_assert_eq!(homeless, new, "undone, the new entry is without a place again");
        false
    }
}

impl Cuckoo {
    pub(crate) fn new() -> Self {
        Self { tables: vec![Table::new(0)], directory: vec![0], depth: 0, count: 0, walk: 1 }
    }

    /// How many entries there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        wide(self.tables.len() * TABLE_SLOTS * size_of::<u64>() + self.directory.len() * size_of::<u32>())
    }

    fn prefix(&self, tag: u64) -> usize {
        narrow(tag >> (TAG_BITS - self.depth))
    }

    fn table(&self, tag: u64) -> &Table {
        &self.tables[small(self.directory[self.prefix(tag)])]
    }

    fn table_mut(&mut self, tag: u64) -> &mut Table {
        let table = small(self.directory[self.prefix(tag)]);
        &mut self.tables[table]
    }

    /// All entries that may be those of a key.
    #[inline]
    pub(crate) fn candidates(&self, hash: u64) -> Candidates {
        let (tag, bucket) = (tag_of(hash), bucket_of(hash));
        let table = self.table(tag);
        let mut all = Candidates::default();
        for bucket in [bucket, other(bucket, tag)] {
            for &found in table.bucket(bucket) {
                if found != 0 && tag_of(found) == tag {
                    all.found[all.count] = found;
                    all.count += 1;
                }
            }
        }
        all
    }

    /// Whether this payload is there for this hash.
    pub(crate) fn contains(&self, hash: u64, payload: u64) -> bool {
        let tag = tag_of(hash);
        self.table(tag).place(bucket_of(hash), tag, payload).is_some()
    }

    /// Adds an entry. The caller knows that its key is not there.
    pub(crate) fn insert(&mut self, hash: u64, payload: u64, class: u8) -> Result<(), Full> {
        let tag = tag_of(hash);
        let new = entry(payload, class, tag);
        loop {
            let mut walk = self.walk;
            let table = self.table_mut(tag);
            let done = table.count < LOAD_MAX && table.insert(bucket_of(hash), new, &mut walk);
            self.walk = walk;
            if done {
                self.count += 1;
                return Ok(());
            }
            self.split_table(tag)?;
        }
    }

    /// Gives an entry another payload and class. False: it is not there.
    pub(crate) fn replace(&mut self, hash: u64, old: u64, payload: u64, class: u8) -> bool {
        let tag = tag_of(hash);
        let table = self.table_mut(tag);
        let Some(place) = table.place(bucket_of(hash), tag, old) else { return false };
        table.slots[place] = entry(payload, class, tag);
        true
    }

    /// Removes an entry. False: it is not there.
    pub(crate) fn remove(&mut self, hash: u64, payload: u64) -> bool {
        let tag = tag_of(hash);
        let table = self.table_mut(tag);
        let Some(place) = table.place(bucket_of(hash), tag, payload) else { return false };
        table.slots[place] = 0;
        table.count -= 1;
        self.count -= 1;
        true
    }

    /// Splits the table of a tag by the next bit of the tags in it.
    fn split_table(&mut self, tag: u64) -> Result<(), Full> {
        let index = small(self.directory[self.prefix(tag)]);
        let depth = self.tables[index].depth;
        if depth == TAG_BITS {
            return Err(Full);
        }
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&table| [table, table]).collect();
            self.depth += 1;
        }
        let bit = 1 << (TAG_BITS - 1 - depth);
        let new_index = u32::try_from(self.tables.len()).expect("at most 2^20 tables");
        let mut upper = Table::new(depth + 1);
        let lower = &mut self.tables[index];
        lower.depth = depth + 1;
        // Entries keep their slots: what a bucket of the old table held fits the same bucket of either.
        for (slot, other) in lower.slots.iter_mut().zip(&mut upper.slots) {
            if *slot != 0 && tag_of(*slot) & bit != 0 {
                *other = std::mem::take(slot);
                upper.count += 1;
            }
        }
        lower.count -= upper.count;
        self.tables.push(upper);
        let unit = self.depth - (depth + 1);
        let first = narrow(tag >> (TAG_BITS - depth) << 1 | 1) << unit;
        self.directory[first..first + (1 << unit)].fill(new_index);
        Ok(())
    }

    /// Appends about `count` entries from `cursor` on; returns where to go on, 0 at the end.
    pub(crate) fn scan(&self, cursor: u64, count: usize, found: &mut Vec<Candidate>) -> u64 {
        let mut from = cursor;
        let mut part: Vec<(u64, u64)> = Vec::new();
        loop {
            let tag = from >> BUCKET_BITS;
            if tag >> TAG_BITS != 0 {
                return 0;
            }
            let table = self.table(tag);
            part.clear();
            for (place, &slot) in table.slots.iter().enumerate() {
                if slot != 0 && tag_of(slot) >= tag {
                    let at = order(tag_of(slot), place / SLOTS);
                    if at >= from {
                        part.push((at, slot));
                    }
                }
            }
            let wanted = count.saturating_sub(found.len()).max(1);
            if part.len() > wanted {
                part.select_nth_unstable(wanted);
                let limit = part[wanted].0;
                // All that stand at one place of the order come together, or a cursor could not name the
                // rest.
                let some: Vec<_> = part.iter().filter(|(at, _)| *at <= limit).collect();
                found.extend(some.iter().map(|(_, slot)| split(*slot)));
                return limit + 1;
            }
            found.extend(part.iter().map(|(_, slot)| split(*slot)));
            let width = TAG_BITS - table.depth;
            from = ((tag >> width) + 1) << width << BUCKET_BITS;
            if found.len() >= count {
                return if from >> BUCKET_BITS >> TAG_BITS == 0 { from } else { 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Random, SplitMix};
    use std::collections::{HashMap, HashSet};

    #[test]
    fn ninety_percent_of_a_table_are_used_before_it_is_split() {
        let (mut cuckoo, mut random) = (Cuckoo::new(), SplitMix::new(1));
        let mut payload = 0;
        while cuckoo.tables.len() == 1 {
            payload += 1;
            cuckoo.insert(random.word(), payload, 1).expect("there is room");
        }
        assert!(payload > wide(TABLE_SLOTS) / 10 * 9, "split at {payload}");
    }

    #[test]
    fn agrees_with_a_map_through_growth() {
        let (mut cuckoo, mut random) = (Cuckoo::new(), SplitMix::new(2));
        let mut model: HashMap<u64, (u64, u8)> = HashMap::new();
        let mut hashes = Vec::new();
        for step in 1..400_000_u64 {
            let class = u8::try_from(step % 15).expect("small");
            match random.below(10) {
                0 if !hashes.is_empty() => {
                    let hash = hashes.swap_remove(random.index(hashes.len()));
                    let (payload, _) = model.remove(&hash).expect("there");
                    assert!(cuckoo.remove(hash, payload) && !cuckoo.remove(hash, payload));
                }
                1 if !hashes.is_empty() => {
                    let hash = random.pick(&hashes);
                    let old = model.insert(hash, (step, class)).expect("there");
                    assert!(cuckoo.replace(hash, old.0, step, class));
                }
                _ => {
                    let hash = random.word();
                    hashes.push(hash);
                    model.insert(hash, (step, class));
                    cuckoo.insert(hash, step, class).expect("there is room");
                }
            }
        }
        assert!(cuckoo.tables.len() > 4);
        assert_eq!(cuckoo.len(), wide(model.len()));
        for (hash, (payload, class)) in &model {
            assert!(cuckoo.contains(*hash, *payload));
            let candidates = cuckoo.candidates(*hash);
            let wanted = Candidate { payload: *payload, class: *class };
            assert!((0..8).any(|at| candidates.get(at) == Some(wanted)));
        }
        let mut sum = 0;
        for table in &cuckoo.tables {
            sum += table.slots.iter().filter(|slot| **slot != 0).count();
        }
        assert_eq!(wide(sum), cuckoo.len());
    }

    #[test]
    fn what_stays_is_found_by_a_scan_whatever_comes_and_goes() {
        let (mut cuckoo, mut random) = (Cuckoo::new(), SplitMix::new(3));
        let stay: Vec<u64> = (0..40_000).map(|_| random.word()).collect();
        for (payload, hash) in (1..).zip(&stay) {
            cuckoo.insert(*hash, payload, 0).expect("there is room");
        }
        let (mut cursor, mut seen, mut next) = (0, HashSet::new(), 1_000_000);
        loop {
            let mut found = Vec::new();
            cursor = cuckoo.scan(cursor, 50, &mut found);
            assert!(found.len() < 70, "{}", found.len());
            seen.extend(found.iter().map(|found| found.payload));
            for _ in 0..100 {
                next += 1;
                cuckoo.insert(random.word(), next, 0).expect("there is room");
            }
            if cursor == 0 {
                break;
            }
        }
        assert!(cuckoo.tables.len() > 2);
        assert!((1..=40_000).all(|payload| seen.contains(&payload)));
    }

    #[test]
    fn any_cursor_ends() {
        let (mut cuckoo, mut random) = (Cuckoo::new(), SplitMix::new(4));
        assert_eq!(cuckoo.scan(u64::MAX, 10, &mut Vec::new()), 0);
        assert_eq!(cuckoo.scan(0, 10, &mut Vec::new()), 0);
        for payload in 1..100 {
            cuckoo.insert(random.word(), payload, 0).expect("there is room");
        }
        for _ in 0..1000 {
            let mut cursor = random.word() >> random.below(64);
            for _ in 0..200 {
                cursor = cuckoo.scan(cursor, 10, &mut Vec::new());
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(cursor, 0);
        }
    }

    #[test]
    fn equal_hashes_beyond_the_buckets_are_refused_and_lose_nothing() {
        let mut cuckoo = Cuckoo::new();
        let accepted = (1..=20).filter(|&payload| cuckoo.insert(77 << 44, payload, 0).is_ok()).count();
        assert_eq!(accepted, 2 * SLOTS);
        assert!((1..=8).all(|payload| cuckoo.contains(77 << 44, payload)));
    }
}
