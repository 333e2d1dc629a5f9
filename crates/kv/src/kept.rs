//! Records that were read, kept in memory by their place: what is asked for again and again is not read from
//! the volume each time.
//!
//! Sets of eight places; in a set those go first that nobody asked for since they were looked at last, and so
//! over all sets when records take more than they may. What is found is shared with whoever sends it, and not
//! copied.
//!
//! # Invariants
//! - A record was verified when it came here, and is not again when it is found: only its key is compared.
//! - A record is known by its address and the sequence of its segment. No place of a segment is written
//!   twice, so what is here never changes; what nobody names any longer goes in time.

use crate::numbers::{narrow, wide};
use crate::planted::{Planted, planted};
use bytes::Bytes;

/// Places of a set: their addresses fill a line of the processor's cache.
const WAYS: usize = 8;
/// What a record is taken to have when places are made for them; smaller ones run out of places first.
const RECORD_BYTES_LIKELY: usize = 192;
/// What a place takes beside its record.
const PLACE_BYTES: usize = size_of::<Record>() + size_of::<u64>() + 16;
/// Records up to this size are kept.
pub(crate) const KEPT_BYTES_MAX: u64 = 16 << 10;

struct Record {
    sequence: u64,
    bytes: Bytes,
}

/// A set of places.
struct Set {
    /// The address in each place; 0: none, where no record can be.
    addresses: [u64; WAYS],
    records: [Record; WAYS],
    /// One bit for each place that was asked for.
    used: u8,
    /// The place that is looked at next when one must go.
    hand: u8,
}

/// See the module's documentation.
pub(crate) struct Kept {
    sets: Vec<Set>,
    /// The set that is looked at next when records take too much.
    hand: usize,
    bytes: usize,
    bytes_max: usize,
}

impl Set {
    fn new() -> Self {
        let record = || Record { sequence: 0, bytes: Bytes::new() };
        Self { addresses: [0; WAYS], records: std::array::from_fn(|_| record()), used: 0, hand: 0 }
    }

    fn find(&self, address: u64) -> Option<usize> {
        self.addresses.iter().position(|&found| found == address)
    }

    /// The next place that nobody asked for; others have had their second chance then.
    fn next(&mut self) -> usize {
        loop {
            let way = usize::from(self.hand);
            self.hand = (self.hand + 1) % 8;
            if self.used & 1 << way == 0 {
                return way;
            }
            self.used &= !(1 << way);
        }
    }

    /// Empties a place; how many bytes were there.
    fn empty(&mut self, way: usize) -> usize {
        self.addresses[way] = 0;
        self.used &= !(1 << way);
        std::mem::take(&mut self.records[way].bytes).len()
    }
}

impl Kept {
    /// Room for records that take so many bytes, places included.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let set_count = bytes_max / (RECORD_BYTES_LIKELY + PLACE_BYTES) / WAYS;
        let sets = (0..set_count).map(|_| Set::new()).collect();
        let bytes_max = bytes_max.saturating_sub(set_count * WAYS * PLACE_BYTES);
        Self { sets, hand: 0, bytes: 0, bytes_max }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        wide(self.bytes + self.sets.len() * WAYS * PLACE_BYTES)
    }

    fn set_of(&self, address: u64) -> usize {
        let spread = u128::from(block::mix(address)) * u128::from(wide(self.sets.len()));
        narrow(u64::try_from(spread >> 64).expect("less than there are sets"))
    }

    /// The record at an address, if it is of that segment and kept.
    pub(crate) fn get(&mut self, address: u64, sequence: u64) -> Option<&Bytes> {
        let (set, way) = self.find(address)?;
        let set = &mut self.sets[set];
        set.used |= 1 << way;
        let record = &set.records[way];
        (record.sequence == sequence || planted(Planted::KeptOfAnyLife)).then_some(&record.bytes)
    }

    /// Set and way of the record at an address, of whichever segment.
    pub(crate) fn find(&self, address: u64) -> Option<(usize, usize)> {
        if self.sets.is_empty() {
            return None;
        }
        let set = self.set_of(address);
        self.sets[set].find(address).map(|way| (set, way))
    }

    /// Whether the record at an address is kept.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    /// The first and the last byte of what is in a place that was found.
    pub(crate) fn ends(&self, (set, way): (usize, usize)) -> Option<[u8; 2]> {
        let bytes = &self.sets[set].records[way].bytes;
        Some([*bytes.first()?, *bytes.last()?])
    }

    /// Keeps a whole record, which the caller has verified, if it is not too large.
    pub(crate) fn keep(&mut self, address: u64, sequence: u64, record: &[u8]) {
        if self.sets.is_empty() || wide(record.len()) > KEPT_BYTES_MAX || address == 0 {
            return;
        }
        let index = self.set_of(address);
        let set = &mut self.sets[index];
        let way = set.find(address).or_else(|| set.find(0)).unwrap_or_else(|| set.next());
        self.bytes -= set.empty(way);
        set.addresses[way] = address;
        set.records[way] = Record { sequence, bytes: Bytes::copy_from_slice(record) };
        self.bytes += record.len();
        self.shrink();
    }

    /// Lets go of what was not asked for until all fits.
    fn shrink(&mut self) {
        while self.bytes > self.bytes_max {
            let at = self.hand;
            self.hand = (at + 1) % self.sets.len();
            let set = &mut self.sets[at];
            for way in 0..WAYS {
                if set.used & 1 << way == 0 {
                    self.bytes -= set.empty(way);
                }
            }
            set.used = 0;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.sets.iter_mut().for_each(|set| *set = Set::new());
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Random, SplitMix};

    fn record(address: u64, sequence: u64, length: usize) -> Vec<u8> {
        let byte = (address / 16 + sequence).to_le_bytes()[0];
        vec![byte; length]
    }

    #[test]
    fn what_is_found_is_what_was_kept_and_never_too_much() {
        let (mut kept, mut random) = (Kept::new(100_000), SplitMix::new(1));
        let mut hits = 0;
        for _ in 0..100_000 {
            let address = 16 * (1 + random.below(1 + random.clone().below(2000)));
            let sequence = random.below(2);
            let length = 16 * (1 + usize::try_from(address / 16 % 60).expect("small"));
            match kept.get(address, sequence) {
                Some(found) => {
                    assert_eq!(*found, record(address, sequence, length));
                    hits += 1;
                }
                None => kept.keep(address, sequence, &record(address, sequence, length)),
            }
            assert!(kept.bytes() <= 100_000, "{}", kept.bytes());
            let all: usize = kept.sets.iter().flat_map(|set| &set.records).map(|kept| kept.bytes.len()).sum();
            assert_eq!(all, kept.bytes);
        }
        assert!(hits > 5_000, "{hits}");
        kept.clear();
        assert!(kept.bytes == 0 && !kept.has(16));
    }

    #[test]
    fn what_is_asked_for_again_stays_longer_than_what_is_not() {
        let mut kept = Kept::new(8 * (RECORD_BYTES_LIKELY + PLACE_BYTES));
        let mut ask = |address: u64| {
            let found = kept.get(address, 1).is_some();
            if !found {
                kept.keep(address, 1, &[0; 160]);
            }
            found
        };
        assert!(!ask(16) && ask(16));
        let stayed = (10..1000).filter(|address| !ask(*address * 16) && ask(16)).count();
        assert!(stayed > 900, "{stayed}");
    }

    #[test]
    fn without_room_or_beyond_the_largest_nothing_is_kept() {
        let mut kept = Kept::new(0);
        kept.keep(16, 1, &[1; 16]);
        assert!(kept.get(16, 1).is_none() && !kept.has(16));
        let mut kept = Kept::new(1 << 20);
        kept.keep(16, 1, &vec![1; narrow(KEPT_BYTES_MAX) + 16]);
        assert!(!kept.has(16));
        kept.keep(16, 1, &vec![1; narrow(KEPT_BYTES_MAX)]);
        assert!(kept.has(16));
    }
}
