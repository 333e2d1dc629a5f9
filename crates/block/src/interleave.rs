//! How the addresses of a volume go to its shards: a unit to each, in turn.

use crate::planted::{Planted, planted};

/// Where an address of the volume is: in which shard, and at which address of that shard's own volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of the shard.
    pub shard: u16,
    /// Address within the shard's volume, in bytes.
    pub offset_bytes: u64,
}

/// Part of a range of the volume that one shard has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Number of the shard.
    pub shard: u16,
    /// Where it begins in the shard's volume, in bytes.
    pub offset_bytes: u64,
    /// How long it is there, in bytes; never 0.
    pub length_bytes: u64,
}

/// Part of a range of the volume, neighbours there and in its shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Where it begins in the volume, in bytes.
    pub address_bytes: u64,
    /// Where it begins in its shard.
    pub place: Place,
    /// How long it is, in bytes; never 0.
    pub length_bytes: u64,
}

/// The map of a volume's addresses to shards of equal size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interleave {
    count: u16,
    /// The whole volume, if there is one shard.
    unit_bytes: u64,
    volume_bytes: u64,
}

impl Interleave {
    /// `count` shards, each with a volume of `shard_bytes` of which whole units of `unit_bytes` are used; a
    /// single shard is used whole, in one unit.
    pub fn new(count: u16, unit_bytes: u64, shard_bytes: u64) -> Self {
        if count <= 1 || unit_bytes == 0 {
            return Self { count: 1, unit_bytes: shard_bytes.max(1), volume_bytes: shard_bytes };
        }
        let used_bytes = shard_bytes / unit_bytes * unit_bytes;
        Self { count, unit_bytes, volume_bytes: used_bytes.saturating_mul(count.into()) }
    }

    /// The same when the volume has become larger, to so many bytes: no address moves.
    #[inline]
    pub fn grown_to(&self, volume_bytes: u64) -> Self {
        if self.count == 1 { Self::new(1, 0, volume_bytes) } else { Self { volume_bytes, ..*self } }
    }

    /// Shards.
    #[inline]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The unit that an address lies in, counted over the volume, and where it lies in it.
    #[inline]
    fn unit_of(&self, offset_bytes: u64) -> (u64, u64) {
        (offset_bytes / self.unit_bytes, offset_bytes % self.unit_bytes)
    }

    /// Which round the unit is of, and which shard's turn it is there.
    #[inline]
    fn turn_of(&self, unit: u64) -> (u64, u16) {
        let (round, turn) = (unit / u64::from(self.count), unit % u64::from(self.count));
        (round, u16::try_from(turn).expect("less than there are shards"))
    }

    /// Bytes of the volume of all shards together.
    #[inline]
    pub fn volume_bytes(&self) -> u64 {
        self.volume_bytes
    }

    /// Where an address is.
    #[inline]
    pub fn place(&self, offset_bytes: u64) -> Place {
        if self.count == 1 {
            return Place { shard: 0, offset_bytes };
        }
        let (unit, within) = self.unit_of(offset_bytes);
        let (round, shard) = self.turn_of(unit);
        Place { shard, offset_bytes: round * self.unit_bytes + within }
    }

    /// The address of the volume that is at `offset_bytes` of a shard: the reverse of
    /// [`Interleave::place`].
    pub fn address(&self, place: Place) -> u64 {
        if self.count == 1 {
            return place.offset_bytes;
        }
        let (round, within) = self.unit_of(place.offset_bytes);
        (round * u64::from(self.count) + u64::from(place.shard)) * self.unit_bytes + within
    }

    /// How many bytes from an address on are neighbours in its shard's volume: up to the end of the unit, or
    /// of the volume if there is one shard.
    #[inline]
    pub fn run_bytes(&self, offset_bytes: u64) -> u64 {
        if self.count == 1 {
            return self.volume_bytes.saturating_sub(offset_bytes);
        }
        let left_bytes = self.unit_bytes - offset_bytes % self.unit_bytes;
        if planted(Planted::RunPastUnit) { left_bytes + self.unit_bytes } else { left_bytes }
    }

    /// A range in order, cut where it goes on in another shard: what a read or a write is handed on as.
    pub fn runs(&self, offset_bytes: u64, length_bytes: u64) -> impl Iterator<Item = Run> + use<> {
        let (map, mut at, mut left_bytes) = (*self, offset_bytes, length_bytes);
        std::iter::from_fn(move || {
            let length_bytes = left_bytes.min(map.run_bytes(at));
            let run = Run { address_bytes: at, place: map.place(at), length_bytes };
            (at, left_bytes) = (at + length_bytes, left_bytes - length_bytes);
            (length_bytes > 0).then_some(run)
        })
    }

    /// What each shard has of a range, those that have nothing left out. However long the range, that is one
    /// run of each shard's own addresses.
    pub fn shares(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> impl Iterator<Item = Share> + Clone + use<> {
        let (map, end) = (*self, offset_bytes.saturating_add(length_bytes));
        let shares = (0..map.count()).filter_map(move |shard| {
            let (from, to) = (map.held_before(shard, offset_bytes), map.held_before(shard, end));
            (to > from).then_some(Share { shard, offset_bytes: from, length_bytes: to - from })
        });
        shares.take(if planted(Planted::FirstShareOnly) { 1 } else { usize::MAX })
    }

    /// How many bytes of a shard's volume lie before an address of the whole.
    fn held_before(&self, shard: u16, offset_bytes: u64) -> u64 {
        if self.count == 1 {
            return offset_bytes;
        }
        let (unit, within) = self.unit_of(offset_bytes);
        let (round, turn) = self.turn_of(unit);
        let of_round = match turn.cmp(&shard) {
            std::cmp::Ordering::Greater if planted(Planted::ShareOfRoundBefore) => 0,
            std::cmp::Ordering::Greater => self.unit_bytes,
            std::cmp::Ordering::Equal => within,
            std::cmp::Ordering::Less => 0,
        };
        round * self.unit_bytes + of_round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_moves_when_the_volume_becomes_larger() {
        for (count, unit, shard, larger) in [(1, 0, 100, 140), (2, 8, 40, 64), (3, 8, 45, 93)] {
            let (map, after) = (Interleave::new(count, unit, shard), Interleave::new(count, unit, larger));
            assert_eq!(map.grown_to(after.volume_bytes()), after);
            assert!((0..map.volume_bytes()).all(|address| map.place(address) == after.place(address)));
        }
    }

    #[test]
    fn every_address_has_one_place_and_every_range_its_shares() {
        for (count, unit, shard) in [(1, 0, 100), (2, 8, 40), (3, 8, 45), (4, 16, 16)] {
            let map = Interleave::new(count, unit, shard);
            let volume = map.volume_bytes();
            assert_eq!(volume, if count == 1 { 100 } else { u64::from(count) * (shard / unit * unit) });
            let mut held = vec![vec![false; 100]; usize::from(map.count())];
            for address in 0..volume {
                let place = map.place(address);
                assert_eq!(map.address(place), address);
                let at = usize::try_from(place.offset_bytes).expect("small");
                let seen = &mut held[usize::from(place.shard)][at];
                assert!(!std::mem::replace(seen, true), "two addresses at one place");
                let run = map.run_bytes(address);
                assert_eq!(map.place(address + run - 1).offset_bytes, place.offset_bytes + run - 1);
            }
            for from in 0..volume {
                let mut at = from;
                for run in map.runs(from, volume - from) {
                    assert_eq!((run.address_bytes, run.place), (at, map.place(at)));
                    let last = map.place(at + run.length_bytes - 1);
                    assert_eq!(last.shard, run.place.shard);
                    assert_eq!(last.offset_bytes, run.place.offset_bytes + run.length_bytes - 1);
                    at += run.length_bytes;
                }
                assert_eq!(at, volume);
            }
            for from in 0..volume {
                for to in from..=volume {
                    let shares: Vec<Share> = map.shares(from, to - from).collect();
                    assert_eq!(shares.iter().map(|share| share.length_bytes).sum::<u64>(), to - from);
                    for address in from..to {
                        let Place { shard, offset_bytes } = map.place(address);
                        let in_it = |share: &&Share| {
                            share.shard == shard
                                && (share.offset_bytes..share.offset_bytes + share.length_bytes)
                                    .contains(&offset_bytes)
                        };
                        assert_eq!(shares.iter().filter(in_it).count(), 1);
                    }
                }
            }
        }
    }
}
