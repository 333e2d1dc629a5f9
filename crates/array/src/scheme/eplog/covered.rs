//! Which member of a live log stripe a covered version is.
//!
//! Only the places of members are kept, four bytes and one to find it by; the member says of which version it
//! is. Places of versions of neighbouring chunks lie side by side, since a commit asks for those of a whole
//! stripe. Where the table grows, what is in a part of it moves alone, so that nobody waits for all of it.

use super::log_member::{Member, index};
use crate::scheme::dirty_queue::number;
use block::{ChunkIndex, Lcn};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Parts of the table.
const PARTS: usize = 128;
const PART_SHIFT: u32 = u64::BITS - PARTS.trailing_zeros();
/// So many chunks, as a power of two, are neighbours: what 16 places, which are looked through at once, have
/// room for even if others are neighbours, too.
const NEIGHBOURS_SHIFT: u32 = 2;
/// Bits at the top of a hash that tell apart what lies side by side.
const TAG_BITS: u32 = 7;

/// A version: which chunk of the volume, and which one of its device.
type Version = (Lcn, ChunkIndex);

/// Places of members, by their versions.
pub struct CoveredPlaces(Box<[HashTable<u32>]>);

impl Default for CoveredPlaces {
    fn default() -> Self {
        Self((0..PARTS).map(|_| HashTable::new()).collect())
    }
}

/// The part of a version has nothing to do with its hash: else there would be few hashes in each.
#[inline]
fn part((lcn, _): Version) -> usize {
    let part = (lcn.get() >> NEIGHBOURS_SHIFT).wrapping_mul(0xd6e8_feb8_6659_fd93) >> PART_SHIFT;
    usize::try_from(part).unwrap_or_default()
}

/// Where neighbours lie is the same for all of them; the tag is not.
#[inline]
fn hash((lcn, chunk): Version) -> u64 {
    let place = (lcn.get() >> NEIGHBOURS_SHIFT).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let both = lcn.get() ^ u64::from(chunk.get()) << 32;
    let tag = both.wrapping_mul(0xa076_1d64_78bd_642f) >> (u64::BITS - TAG_BITS);
    place << TAG_BITS >> TAG_BITS | tag << (u64::BITS - TAG_BITS)
}

#[inline]
fn version_at(members: &[Member], place: u32) -> Version {
    let member = members[index(place)];
    (member.lcn(), member.chunk)
}

impl CoveredPlaces {
    /// The member at a place is a covered version; `false` if another one is said to be the same, which it is
    /// no more.
    pub fn insert(&mut self, members: &[Member], place: u32) -> bool {
        let version = version_at(members, place);
        let is_same = |&at: &u32| version_at(members, at) == version;
        let entry = self.0[part(version)].entry(hash(version), is_same, |&at| hash(version_at(members, at)));
        match entry {
            Entry::Occupied(mut other) => {
                *other.get_mut() = place;
                false
            }
            Entry::Vacant(vacant) => {
                vacant.insert(place);
                true
            }
        }
    }

    /// No parity covers a version any more; returns the place of its member, if it is one.
    pub fn take(&mut self, members: &[Member], version: Version) -> Option<u32> {
        let is_same = |&at: &u32| version_at(members, at) == version;
        let found = self.0[part(version)].find_entry(hash(version), is_same).ok()?;
        Some(found.remove().0)
    }

    /// The member at a place is none any more; nothing happens if it is not said to be a covered version.
    pub fn remove(&mut self, members: &[Member], place: u32) {
        let version = version_at(members, place);
        if let Ok(found) = self.0[part(version)].find_entry(hash(version), |&at| at == place) {
            found.remove();
        }
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.0.iter().map(|part| number(part.allocation_size())).sum()
    }

    /// Bytes that so many take at most.
    pub fn bytes_for(count: u64) -> u64 {
        // A place and what it is found by, of which at most 7 of 8 are taken, in a table that doubles: also
        // where what was removed takes more than half of a full one.
        count * 4 * number(size_of::<u32>() + 1) * 8 / 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::{LogMember, MemberFate};
    use std::collections::{HashMap, HashSet};

    #[test]
    fn it_finds_what_a_map_by_version_finds() {
        let (mut random, mut places, mut model) = (1u64, CoveredPlaces::default(), HashMap::new());
        let mut next = |below: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        let mut members = vec![Member::NONE; 4000];
        let is_there = |model: &HashMap<Version, u32>, place: u32| model.values().any(|&at| at == place);
        for step in 0..40_000 {
            let version = (Lcn::new(next(900)), ChunkIndex::new(u32::try_from(next(5)).expect("small")));
            let place = u32::try_from(next(4000)).expect("small");
            match next(3) {
                0 if !is_there(&model, place) => {
                    let member = LogMember { lcn: version.0, chunk: version.1, crc: 0 };
                    members[index(place)] = Member::new(member, MemberFate::Covered);
                    let is_new = places.insert(&members, place);
                    assert_eq!(is_new, model.insert(version, place).is_none(), "step {step}");
                }
                1 => assert_eq!(places.take(&members, version), model.remove(&version), "step {step}"),
                _ => {
                    places.remove(&members, place);
                    model.retain(|_, at| *at != place);
                }
            }
        }
        let left: usize = places.0.iter().map(HashTable::len).sum();
        assert!(left == model.len() && left > 100, "{left} of {}", model.len());
    }

    fn covered(lcn: u32) -> Member {
        let member = LogMember { lcn: Lcn::new(lcn.into()), chunk: ChunkIndex::new(lcn), crc: 0 };
        Member::new(member, MemberFate::Covered)
    }

    #[test]
    fn no_more_memory_is_taken_than_is_said() {
        // The least that a part takes if it has any.
        let least = 128 * 64;
        for count in [1_000u32, 10_000, 150_000, 200_000] {
            let mut members: Vec<_> = (0..count).map(covered).collect();
            let mut places = CoveredPlaces::default();
            (0..count).for_each(|place| assert!(places.insert(&members, place)));
            let (most, mut taken) = (CoveredPlaces::bytes_for(count.into()), places.memory_bytes());
            assert!(taken > u64::from(count) * 5 && taken <= most / 2 + least, "{count}: {taken}, {most}");
            // What was removed takes room, too.
            for lcn in count..4 * count {
                let place = lcn % count;
                places.remove(&members, place);
                members[index(place)] = covered(lcn);
                assert!(places.insert(&members, place));
                taken = taken.max(places.memory_bytes());
            }
            assert!(taken <= most + least, "{count}: {taken}, {most}");
        }
    }

    #[test]
    fn neighbours_lie_side_by_side_and_others_do_not() {
        let mut positions = HashSet::new();
        for first in (0..4000).step_by(4) {
            let four = [0, 1, 2, 3].map(|by| hash((Lcn::new(first + by), ChunkIndex::new(7))));
            let (position, tags) = (four[0] << TAG_BITS >> TAG_BITS, four.map(|hash| hash >> 57));
            assert!(four.iter().all(|hash| hash << TAG_BITS >> TAG_BITS == position), "{first}");
            assert_eq!(HashSet::from(tags).len(), 4, "{first}: {tags:?}");
            positions.insert(position % 1024);
        }
        assert!(positions.len() > 500, "{} of 1,000 in 1,024 places", positions.len());
    }
}
