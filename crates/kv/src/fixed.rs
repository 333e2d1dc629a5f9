//! The paper's store (EPLOG, section 4) for experiments: pairs of one size, each at a place of its own where
//! it is overwritten, found by the same table and the same cache as those of the product's store.
//!
//! It says where to look and where to write; who drives it does so. It is not durable, deletes nothing and
//! forgets everything with the process, as the paper's prototype does: [`crate::Store`] is what keeps data.
//!
//! # Invariants
//! Pairs lie one behind the other in the order in which their keys were added; none of them moves.

use crate::cache::{Cache, Meta};
use crate::cuckoo::{Candidates, Cuckoo};
use crate::hash::{KeyHash, Secret};
use crate::layout::Kind;
use crate::numbers::{short, wide};

/// Bytes of a pair that are neither key nor value (K-02).
pub const PAIR_METADATA_BYTES: usize = 5;

/// Where the pair of a key is.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// There: the cache has its key.
    Known(u64),
    /// At one of these places, if at all; the key there must be read (K-04).
    Maybe(Places),
}

/// Places where a pair may be.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    candidates: Candidates,
    pair_bytes: u64,
}

impl Places {
    /// The place with this number, which begins at 0.
    pub fn get(&self, at: usize) -> Option<u64> {
        self.candidates.get(at).map(|candidate| (candidate.payload - 1) * self.pair_bytes)
    }
}

/// See the module's documentation.
pub struct FixedPairs {
    secret: Secret,
    index: Cuckoo,
    cache: Cache,
    pair_bytes: u64,
    count: u64,
}

impl FixedPairs {
    /// No pairs yet, each of which will have `pair_bytes`; the cache holds `cache_keys` keys.
    pub fn new(pair_bytes: usize, cache_keys: usize, secret: Secret) -> Self {
        let pair_bytes = wide(pair_bytes);
        Self { secret, index: Cuckoo::new(), cache: Cache::new(cache_keys), pair_bytes, count: 0 }
    }

    /// Adds a key that is not there, and says where its pair belongs; none if the table takes no more.
    pub fn add(&mut self, key: &[u8]) -> Option<u64> {
        let hash = KeyHash::of(self.secret, key);
        let place = self.count * self.pair_bytes;
        self.index.insert(hash.main, self.count + 1, 0).ok()?;
        self.count += 1;
        self.note(hash, key, place);
        Some(place)
    }

    /// Where the pair of a key is.
    pub fn find(&mut self, key: &[u8]) -> Found {
        let hash = KeyHash::of(self.secret, key);
        match self.cache.get(hash.main, key) {
            Some(meta) => Found::Known(meta.address),
            None => Found::Maybe(Places {
                candidates: self.index.candidates(hash.main),
                pair_bytes: self.pair_bytes,
            }),
        }
    }

    /// The key was read at this place.
    pub fn seen(&mut self, key: &[u8], place: u64) {
        self.note(KeyHash::of(self.secret, key), key, place);
    }

    fn note(&mut self, hash: KeyHash, key: &[u8], place: u64) {
        let meta = Meta {
            address: place,
            kind: Kind::Value,
            seq: 0,
            until_ms: 0,
            taken_bytes: self.pair_bytes,
            value_bytes: 0,
            id: 0,
        };
        self.cache.put(hash.main, key, meta);
    }

    /// Lookups that the cache answered, and those that it did not.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.cache.hit_count, self.cache.miss_count)
    }

    /// Bytes of memory of table and cache.
    pub fn memory_bytes(&self) -> u64 {
        self.index.bytes() + self.cache.bytes()
    }
}

/// Writes the pair's metadata and key at the beginning of these bytes; the value is what follows.
pub fn encode(pair: &mut [u8], key: &[u8]) {
    let value_bytes = pair.len().saturating_sub(PAIR_METADATA_BYTES + key.len());
    pair[0] = u8::try_from(key.len()).expect("keys have at most 255 bytes");
    pair[1..PAIR_METADATA_BYTES].copy_from_slice(&short(value_bytes).to_le_bytes());
    pair[PAIR_METADATA_BYTES..PAIR_METADATA_BYTES + key.len()].copy_from_slice(key);
}

/// The key of the pair that begins these bytes, if they are long enough for it.
pub fn key_of(pair: &[u8]) -> Option<&[u8]> {
    let key_bytes = usize::from(*pair.first()?);
    pair.get(PAIR_METADATA_BYTES..PAIR_METADATA_BYTES + key_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Vec<u8> {
        format!("user{number:020}").into_bytes()
    }

    fn places(found: Found) -> Vec<u64> {
        match found {
            Found::Known(place) => vec![place],
            Found::Maybe(places) => (0..).map_while(|at| places.get(at)).collect(),
        }
    }

    /// K-03, K-06: every key is among its candidates, with or without the cache.
    #[test]
    fn every_pair_is_found_where_it_was_put() {
        for cache_keys in [0, 500, 2000] {
            let mut pairs = FixedPairs::new(8192, cache_keys, Secret([3, 4]));
            for number in 0..2000 {
                assert_eq!(pairs.add(&key(number)), Some(number * 8192));
            }
            for number in 0..2000 {
                assert!(places(pairs.find(&key(number))).contains(&(number * 8192)), "{number}");
                pairs.seen(&key(number), number * 8192);
            }
            let (hits, misses) = pairs.hits_and_misses();
            assert_eq!(hits + misses, 2000);
            assert_eq!(hits, if cache_keys == 2000 { 2000 } else { hits.min(500) });
            assert!(cache_keys > 0 || hits == 0);
        }
    }

    /// K-02, K-10: five bytes of sizes, the key, the value.
    #[test]
    fn a_pair_is_five_bytes_key_and_value() {
        let mut pair = vec![9; 4096];
        encode(&mut pair, &key(7));
        assert_eq!(pair[0], 24);
        assert_eq!(pair[1..5], 4067_u32.to_le_bytes());
        assert_eq!(key_of(&pair), Some(&key(7)[..]));
        assert_eq!(pair[29..], [9; 4067]);
        assert_eq!((key_of(&[]), key_of(&pair[..20])), (None, None));
    }
}
