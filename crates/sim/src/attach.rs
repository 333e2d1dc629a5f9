//! Which devices are there when the machine starts, and what each shard makes of their superblocks.

use crate::disk::Image;
use crate::machine::{Machine, Retired};
use crate::violation;
use crate::violation::Violation;
use array::{Arrangement, AssembleError, arrange};
use block::Random as _;
use format::Superblock;

/// A disk that is there.
pub(crate) struct Plugged {
    dev: u16,
    /// Not the one that was in service last.
    is_stale: bool,
    /// Its content, unless it is the one in the device's place.
    image: Option<Image>,
}

/// A superblock, the device it is of, and whether that must not be accepted.
type Found = (u16, bool, Superblock);

impl Machine {
    /// Which disks are there, and what the array makes of their superblocks, in any order: of each shard who
    /// is in service.
    pub fn attach(&mut self) -> Result<Vec<Arrangement>, Violation> {
        let plugged = self.plug_in();
        let mut arrangements = Vec::new();
        for shard in 0..self.shard_count() {
            arrangements.push(self.attach_shard(&plugged, shard)?);
        }
        for dev in 0..self.member_count() {
            let is_member = |of: &Arrangement| of.places[usize::from(dev)].is_some();
            self.world.change().set_present(dev, arrangements.iter().any(is_member));
            for (shard, arrangement) in (0..).zip(&arrangements) {
                self.world.change().set_hidden(dev, shard, !is_member(arrangement));
            }
        }
        Ok(arrangements)
    }

    /// The disks that are there.
    pub fn plug_in(&mut self) -> Vec<Plugged> {
        let mut plugged = Vec::new();
        let all = self.all_shards();
        for dev in 0..self.member_count() {
            let standing = self.standing[usize::from(dev)];
            let may_be_absent = self.suspects.contains(&dev) && !self.is_split();
            let absent = standing.lost || (may_be_absent && self.rng.chance(1, 6));
            if !absent && self.has_superblock(self.world.look().disk(dev).durable(), dev) {
                plugged.push(Plugged { dev, is_stale: false, image: None });
            }
            // A disk that left the array earlier is plugged in again, perhaps in addition.
            if let Some(Retired { image, excluded: true }) = &self.retired[usize::from(dev)]
                && self.rng.chance(1, 3)
                && self.has_superblock(image, dev)
            {
                plugged.push(Plugged { dev, is_stale: true, image: Some(image.clone()) });
            }
            // So is a lost one, whose absence the array has meanwhile noted.
            if standing.lost
                && standing.excluded == all
                && self.rng.chance(1, 2)
                && self.has_superblock(self.world.look().disk(dev).durable(), dev)
            {
                plugged.push(Plugged { dev, is_stale: true, image: None });
            }
        }
        plugged
    }

    /// Whether a disk is known as a member: by what is in the slice of shard 0.
    fn has_superblock(&self, image: &Image, dev: u16) -> bool {
        self.superblock_in(image, dev, 0).is_some()
    }

    /// The superblocks of a shard, in any order.
    fn find(&mut self, plugged: &[Plugged], shard: u16) -> Vec<Found> {
        let mut found = Vec::new();
        for Plugged { dev, is_stale, image } in plugged {
            let superblock = match image {
                Some(image) => self.superblock_in(image, *dev, shard),
                None => self.superblock_on(*dev, shard),
            };
            let is_stale = *is_stale || self.standing[usize::from(*dev)].is_excluded(shard);
            found.extend(superblock.map(|superblock| (*dev, is_stale, superblock)));
        }
        self.say(|| {
            let one = |(dev, old, s): &Found| {
                format!(
                    "{dev}{} serial {} epoch {} number {}",
                    if *old { " (stale)" } else { "" },
                    s.serial,
                    s.epoch,
                    s.config_seq
                )
            };
            format!("found {}", found.iter().map(one).collect::<Vec<_>>().join("; "))
        });
        self.rng.shuffle(&mut found);
        found
    }

    /// What a shard makes of what is there.
    pub fn arrange_shard(&mut self, plugged: &[Plugged], shard: u16) -> Result<Arrangement, AssembleError> {
        let found = self.find(plugged, shard);
        arrange(&found.into_iter().map(|(_, _, superblock)| superblock).collect::<Vec<_>>())
    }

    fn attach_shard(&mut self, plugged: &[Plugged], shard: u16) -> Result<Arrangement, Violation> {
        let found = self.find(plugged, shard);
        let superblocks: Vec<Superblock> =
            found.iter().map(|(_, _, superblock)| superblock.clone()).collect();
        let arrangement =
            arrange(&superblocks).map_err(|e| violation!("the members cannot be arranged: {e}"))?;
        for dev in 0..self.member_count() {
            let place = arrangement.places[usize::from(dev)];
            match place.map(|place| &found[place]) {
                Some((of, _, _)) if *of != dev => {
                    return Err(violation!("device {of} was put in the place of {dev}"));
                }
                Some((_, true, superblock)) => {
                    return Err(violation!(
                        "a stale device was accepted as device {dev}: its superblock has number {}, the newest {}",
                        superblock.config_seq,
                        arrangement.newest.config_seq
                    ));
                }
                Some(_) => {}
                None if self.suspects.contains(&dev) => {}
                None => return Err(violation!("device {dev} has no fault, and was refused")),
            }
        }
        Ok(arrangement)
    }
}
