//! What the store knows of keys without reading them (K-06): where the record is, and how large.
//!
//! The cache is `quick_cache`'s; why not ARC, which the paper's store has ([`crate::fixed`]), is in decision
//! 0045.

use crate::cache::Meta;
use crate::locks::AsItIs;
use crate::numbers::wide;
use quick_cache::unsync::Cache;
use quick_cache::{Equivalent, Lifecycle, UnitWeighter};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Memory that a key of up to 32 bytes takes at most: itself and its entry, a ghost for every second one, and
/// the table that leads to both, of which a half may be empty.
pub const CACHED_KEY_BYTES: usize = 48 + (size_of::<Key>() + size_of::<Meta>() + 24) * 3 / 2 + 20;

#[derive(PartialEq, Eq)]
struct Key {
    hash: u64,
    bytes: Box<[u8]>,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A key that is looked for.
struct Wanted<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl Hash for Wanted<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Key> for Wanted<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.hash == key.hash && *self.bytes == *key.bytes
    }
}

/// Counts the bytes of keys that go.
struct Leaving;

impl Lifecycle<Key, Meta> for Leaving {
    type RequestState = usize;

    fn begin_request(&self) -> usize {
        0
    }

    fn on_evict(&self, gone: &mut usize, key: Key, _: Meta) {
        *gone += key.bytes.len();
    }
}

/// See the module's documentation.
pub(crate) struct Known {
    cache: Cache<Key, Meta, UnitWeighter, BuildHasherDefault<AsItIs>, Leaving>,
    key_bytes: usize,
    pub(crate) hit_count: u64,
    pub(crate) miss_count: u64,
}

impl Known {
    /// Room for so many keys.
    pub(crate) fn new(capacity: usize) -> Self {
        let cache =
            Cache::with(capacity, wide(capacity), UnitWeighter, BuildHasherDefault::default(), Leaving);
        Self { cache, key_bytes: 0, hit_count: 0, miss_count: 0 }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        wide(self.cache.memory_used().total() + self.key_bytes)
    }

    /// What is known of a key.
    pub(crate) fn get(&mut self, hash: u64, bytes: &[u8]) -> Option<Meta> {
        let found = self.cache.get(&Wanted { hash, bytes }).copied();
        *(if found.is_some() { &mut self.hit_count } else { &mut self.miss_count }) += 1;
        found
    }

    /// The address of a key's record, if it is known; nobody has asked for it.
    pub(crate) fn look_at(&self, hash: u64, bytes: &[u8]) -> Option<u64> {
        self.cache.peek(&Wanted { hash, bytes }).map(|meta| meta.address)
    }

    /// Changes what is known of a key, if something is.
    pub(crate) fn moved(&mut self, hash: u64, bytes: &[u8], address: u64, seq: u64) {
        if let Some(mut meta) = self.cache.peek_mut(&Wanted { hash, bytes }) {
            (meta.address, meta.seq) = (address, seq);
        }
    }

    /// Notes what is known of a key.
    pub(crate) fn put(&mut self, hash: u64, bytes: &[u8], meta: Meta) {
        if let Some(mut found) = self.cache.peek_mut(&Wanted { hash, bytes }) {
            *found = meta;
            return;
        }
        self.key_bytes += bytes.len();
        self.key_bytes -= self.cache.insert_with_lifecycle(Key { hash, bytes: Box::from(bytes) }, meta);
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, hash: u64, bytes: &[u8]) {
        if let Some((key, _)) = self.cache.remove(&Wanted { hash, bytes }) {
            self.key_bytes -= key.bytes.len();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.cache.clear();
        self.key_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Kind;
    use block::{Random, SplitMix};
    use std::collections::HashMap;

    fn meta(address: u64) -> Meta {
        Meta { address, kind: Kind::Value, seq: 0, until_ms: 0, taken_bytes: 0, value_bytes: 0, id: 0 }
    }

    #[test]
    fn what_is_known_is_what_was_put_last_and_never_too_much() {
        let mut random = SplitMix::new(5);
        for capacity in [0, 1, 2, 7, 64] {
            let (mut known, mut model) = (Known::new(capacity), HashMap::new());
            for step in 1..20_000_u64 {
                let key = random.below(random.clone().below(200) + 1).to_le_bytes();
                // Two keys have one hash.
                let hash = block::mix(u64::from_le_bytes(key) / 2);
                match random.below(9) {
                    0 => {
                        known.remove(hash, &key);
                        model.remove(&key);
                    }
                    1 => {
                        known.moved(hash, &key, step, 1);
                        model.entry(key).and_modify(|address| *address = step);
                    }
                    2..4 => {
                        known.put(hash, &key, meta(step));
                        model.insert(key, step);
                    }
                    _ => {
                        let seen = known.look_at(hash, &key);
                        let found = known.get(hash, &key).map(|meta| meta.address);
                        assert_eq!(seen, found);
                        assert!(found.is_none() || found.as_ref() == model.get(&key));
                    }
                }
                assert!(known.cache.len() <= capacity);
                assert_eq!(known.key_bytes, known.cache.len() * 8);
            }
            assert!(known.hit_count > 0 || capacity == 0);
            known.clear();
            assert_eq!((known.cache.len(), known.key_bytes), (0, 0));
        }
    }

    #[test]
    fn a_scan_does_not_drive_out_what_is_used_again() {
        let mut known = Known::new(100);
        crate::cache::tests::outlives_a_scan(|number| {
            let (key, hash) = (number.to_le_bytes(), block::mix(number));
            let hit = known.get(hash, &key).is_some();
            if !hit {
                known.put(hash, &key, meta(number));
            }
            hit
        });
    }

    #[test]
    fn memory_is_what_is_said() {
        let mut known = Known::new(50_000);
        let mut most = 0;
        for number in 0..400_000_u64 {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            known.put(block::mix(number), &key, meta(number));
            most = most.max(known.bytes());
        }
        // What the allocator adds to a key is not counted.
        let each = most / 50_000;
        assert!(
            each <= wide(CACHED_KEY_BYTES) && each > wide(CACHED_KEY_BYTES) / 3,
            "{each} of {CACHED_KEY_BYTES}"
        );
    }
}
