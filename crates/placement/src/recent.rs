//! When chunks were last written, for as many as fit: a bounded stand-in for a time per chunk.
//!
//! SepBIT (FAST 2022, section 3) avoids the full map by a FIFO queue of the last l written addresses and an
//! index into it: what is not in the queue lives longer than l. Here the index alone does: an entry holds its
//! time, so it expires by itself, and where a bucket is full its oldest entry makes room, as it would leave a
//! queue. 8 bytes per entry, no chains, no deletions; looking up and noting touch one bucket, 64 bytes.

use crate::OptionError;
use crate::error::within;
use block::Lcn;

const WAYS: usize = 8;
/// An entry is a chunk number (low 32 bits) above a time (low 32 bits).
const EMPTY: u64 = u64::MAX;

/// A table of recent writes. Remembers the low 32 bits of chunk numbers and times: after 2^32 further user
/// chunk writes a leftover entry looks young again, which may misplace a chunk and nothing else.
#[derive(Clone, Debug)]
pub struct RecentWrites {
    buckets: Box<[[u64; WAYS]]>,
}

impl RecentWrites {
    /// Bytes of an entry.
    pub const BYTES_PER_ENTRY: u64 = 8;

    /// A table for at least `entries` chunks, rounded up to whole buckets of 8; 0 to 2^32. With 0 nothing is
    /// remembered.
    pub fn new(entries: u64) -> Result<Self, OptionError> {
        let entries = within("entries of recent writes", entries, 0, 1 << 32)?;
        let buckets = usize::try_from(entries).expect("at most 2^32, and usize has 64 bits").div_ceil(WAYS);
        Ok(Self { buckets: vec![[EMPTY; WAYS]; buckets].into() })
    }

    /// How long ago (in user chunk writes) `lcn` was written before, if that is known; from now on it was
    /// written `now`.
    pub fn note(&mut self, lcn: Lcn, now: u64) -> Option<u64> {
        if self.buckets.is_empty() {
            return None;
        }
        let low = lcn.get() & u64::from(u32::MAX);
        // A multiplicative hash spreads neighbours; the upper half of the product with the count
        // picks the bucket.
        let hash = (low.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * self.buckets.len() as u64;
        let bucket = &mut self.buckets[usize::try_from(hash >> 32).expect("below the number of buckets")];
        let age = |entry: u64| u64::from((now as u32).wrapping_sub(entry as u32));
        let fresh = low << 32 | (now & u64::from(u32::MAX));
        if let Some(entry) = bucket.iter_mut().find(|entry| **entry != EMPTY && **entry >> 32 == low) {
            let lifespan = age(*entry);
            *entry = fresh;
            return Some(lifespan);
        }
        let rank = |entry: u64| if entry == EMPTY { u64::MAX } else { age(entry) };
        let oldest = bucket.iter_mut().max_by_key(|entry| rank(**entry)).expect("a bucket has eight entries");
        *oldest = fresh;
        None
    }

    /// Memory held, in bytes, this value included.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.buckets)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn lifespans_come_back_and_the_oldest_are_forgotten_first() {
        let mut recent = RecentWrites::new(8).unwrap(); // a single bucket
        for lcn in 0..8 {
            assert_eq!(recent.note(Lcn::new(lcn), 100 + lcn), None);
        }
        assert_eq!(recent.note(Lcn::new(0), 110), Some(10));
        assert_eq!(recent.note(Lcn::new(8), 111), None); // 1 is the oldest now
        assert_eq!(recent.note(Lcn::new(1), 112), None); // and 1 pushes 2 out
        assert_eq!(recent.note(Lcn::new(0), 113), Some(3));
        assert_eq!(recent.note(Lcn::new(3), 114), Some(11));
        assert_eq!(recent.note(Lcn::new(2), 115), None);
    }

    #[test]
    fn times_may_pass_32_bits() {
        let mut recent = RecentWrites::new(1).unwrap();
        let start = u64::from(u32::MAX) - 1;
        recent.note(Lcn::new(7), start);
        assert_eq!(recent.note(Lcn::new(7), start + 5), Some(5));
    }

    #[test]
    fn half_full_it_forgets_next_to_nothing() {
        let mut recent = RecentWrites::new(1 << 14).unwrap();
        assert_eq!(recent.memory_bytes() - size_of::<RecentWrites>(), 8 << 14);
        for now in 0..8192_u64 {
            recent.note(Lcn::new(now * 3), now);
        }
        let known = (0..8192_u64).filter(|i| recent.note(Lcn::new(i * 3), 8192 + i) == Some(8192)).count();
        assert!(known > 8192 * 95 / 100, "{known} of 8192");
    }

    #[test]
    fn a_table_without_entries_knows_nothing() {
        let mut recent = RecentWrites::new(0).unwrap();
        recent.note(Lcn::new(1), 1);
        assert_eq!(recent.note(Lcn::new(1), 2), None);
        let error = RecentWrites::new((1 << 32) + 1).unwrap_err();
        assert_eq!(error.to_string(), "entries of recent writes: found 4294967297, expected 0 to 4294967296");
    }
}
