//! Which devices are there when the machine starts, and what each shard makes of their superblocks.

use crate::disk::Image;
use crate::machine::{Machine, Retired};
use crate::violation;
use crate::violation::Violation;
use array::{Arrangement, AssembleError, arrange, shown_to_others};
use block::Random as _;
use format::{MemberState, Superblock};

/// A disk that is there.
pub(crate) struct Plugged {
    dev: u16,
    /// Not the one that was in service last.
    is_stale: bool,
    /// Its content, unless it is the one in the device's place.
    image: Option<Image>,
    /// The one on the shelf, which may have succeeded the member.
    is_shelf: bool,
    /// The next shard is shown it.
    is_shown: bool,
}

/// A superblock, and the device it is of.
struct Found {
    /// Which of those that are there.
    at: usize,
    dev: u16,
    /// It must not be accepted.
    is_stale: bool,
    is_shelf: bool,
    superblock: Superblock,
}

impl Machine {
    /// Which disks are there, and what the array makes of their superblocks, in any order: of each shard who
    /// is in service.
    pub fn attach(&mut self) -> Result<Vec<Arrangement>, Violation> {
        let mut plugged = self.plug_in();
        let (mut arrangements, mut succeeded) = (Vec::new(), Vec::new());
        for shard in 0..self.shard_count() {
            let found = self.find(&plugged, shard);
            let (arrangement, by_shelf) = self.attach_shard(&found, shard)?;
            if shard == 0 {
                show(&mut plugged, &found, &arrangement);
            }
            arrangements.push(arrangement);
            succeeded.push(by_shelf);
        }
        self.place_shelf(&succeeded, &arrangements)?;
        self.note_maimed(&mut arrangements);
        for dev in 0..self.member_count() {
            let is_member = |of: &Arrangement| of.places[usize::from(dev)].is_some();
            self.world.change().set_present(dev, arrangements.iter().any(is_member));
            for (shard, arrangement) in (0..).zip(&arrangements) {
                self.world.change().set_hidden(dev, shard, !is_member(arrangement));
            }
        }
        Ok(arrangements)
    }

    /// The disk on the shelf has succeeded a member, for all shards or for none; but for those that have
    /// taken the place out of service since, which the others had not heard of when power failed.
    fn place_shelf(
        &mut self,
        succeeded: &[Option<u16>],
        arrangements: &[Arrangement],
    ) -> Result<(), Violation> {
        let first = succeeded.iter().flatten().next().copied();
        let has_failed = |of: &Arrangement| {
            first.is_some_and(|dev| of.members[usize::from(dev)].state == MemberState::Failed)
        };
        let differs =
            |(&dev, of): (&Option<u16>, &Arrangement)| dev != first && !(dev.is_none() && has_failed(of));
        if succeeded.iter().zip(arrangements).any(differs) {
            return Err(violation!("a device succeeds a member in some shards: {succeeded:?}"));
        }
        if let Some(dev) = first {
            self.say(|| format!("the device on the shelf has succeeded device {dev}"));
            // After a kill that may be in a cache only; were it lost now, the one before it would count
            // again. Both would be found, but the world has one disk for each place: it is settled here.
            let shelf = self.member_count();
            self.world.change().settle(shelf);
            // Who else knows of it is not certain; if the one before it comes back alone, it holds
            // everything, too.
            self.install_shelf(dev, false);
        }
        Ok(())
    }

    /// The disk on the shelf is the member from now on; the one before it comes back at times, and is
    /// refused, once all others know of it.
    pub fn install_shelf(&mut self, dev: u16, excluded: bool) {
        let shelf = self.member_count();
        self.world.change().swap(dev, shelf);
        let image = self.world.look().disk(shelf).view().clone();
        let is_hurt = self.standing[usize::from(dev)].is_hurt();
        self.retired[usize::from(dev)] = Some(Retired { image, excluded, is_hurt });
        self.standing[usize::from(dev)].lost = false;
        self.succeeded = None;
    }

    /// The disks that are there.
    pub fn plug_in(&mut self) -> Vec<Plugged> {
        let mut plugged = Vec::new();
        let all = self.all_shards();
        for dev in 0..self.member_count() {
            let standing = self.standing[usize::from(dev)];
            let may_be_absent = self.suspects.contains(&dev) && !self.is_split();
            let absent = standing.lost || (may_be_absent && self.rng.chance(1, 6));
            if !absent && !self.is_short(dev) && self.has_superblock(self.world.look().disk(dev).view(), dev)
            {
                plugged.push(Plugged { dev, is_stale: false, image: None, is_shelf: false, is_shown: true });
            }
            // A disk that left the array earlier is plugged in again, perhaps in addition.
            if let Some(Retired { image, excluded: true, .. }) = &self.retired[usize::from(dev)]
                && self.rng.chance(1, 3)
                && self.has_superblock(image, dev)
            {
                plugged.push(Plugged {
                    dev,
                    is_stale: true,
                    image: Some(image.clone()),
                    is_shelf: false,
                    is_shown: true,
                });
            }
            // So is a lost one, whose absence the array has meanwhile noted.
            if standing.lost
                && standing.excluded == all
                && self.rng.chance(1, 2)
                && self.has_superblock(self.world.look().disk(dev).view(), dev)
            {
                plugged.push(Plugged { dev, is_stale: true, image: None, is_shelf: false, is_shown: true });
            }
        }
        let shelf = self.member_count();
        if let Some(dev) = self.succeeded {
            let image = self.world.look().disk(shelf).view().clone();
            if self.has_superblock(&image, dev) {
                plugged.push(Plugged {
                    dev,
                    is_stale: false,
                    image: Some(image),
                    is_shelf: true,
                    is_shown: true,
                });
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
        for (at, &Plugged { dev, is_stale, ref image, is_shelf, .. }) in plugged.iter().enumerate() {
            if !plugged[at].is_shown {
                continue;
            }
            let superblock = match image {
                Some(image) => self.superblock_in(image, dev, shard),
                None => self.superblock_seen(dev, shard),
            };
            let is_excluded = !is_shelf && self.standing[usize::from(dev)].is_excluded(shard);
            let is_stale = is_stale || is_excluded;
            found.extend(superblock.map(|superblock| Found { at, dev, is_stale, is_shelf, superblock }));
        }
        self.say(|| {
            let one = |Found { dev, is_stale, is_shelf, superblock: s, .. }: &Found| {
                let old = *is_stale || *is_shelf;
                format!(
                    "{dev}{} serial {} epoch {} number {}",
                    if !old {
                        ""
                    } else if *is_shelf {
                        " (shelf)"
                    } else {
                        " (stale)"
                    },
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
        arrange(&superblocks_of(&self.find(plugged, shard)))
    }

    /// Also the member whose place the device on the shelf has.
    fn attach_shard(&self, found: &[Found], shard: u16) -> Result<(Arrangement, Option<u16>), Violation> {
        let mut succeeded = None;
        let arrangement = arrange(&superblocks_of(found))
            .map_err(|e| violation!("the members cannot be arranged by shard {shard}: {e}"))?;
        for dev in 0..self.member_count() {
            let place = arrangement.places[usize::from(dev)];
            match place.map(|place| &found[place]) {
                Some(Found { dev: of, .. }) if *of != dev => {
                    return Err(violation!("device {of} was put in the place of {dev}"));
                }
                Some(Found { is_stale: true, superblock, .. }) => {
                    return Err(violation!(
                        "a stale device was accepted as device {dev}: its superblock has number {}, the newest {}",
                        superblock.config_seq,
                        arrangement.newest.config_seq
                    ));
                }
                Some(Found { is_shelf: true, .. }) => succeeded = Some(dev),
                Some(_) => {}
                None if self.suspects.contains(&dev) => {}
                None => return Err(violation!("device {dev} has no fault, and was refused")),
            }
        }
        Ok((arrangement, succeeded))
    }
}

fn superblocks_of(found: &[Found]) -> Vec<Superblock> {
    found.iter().map(|found| found.superblock.clone()).collect()
}

/// What the shards but the first are shown, as in the product.
fn show(plugged: &mut [Plugged], found: &[Found], first: &Arrangement) {
    plugged.iter_mut().for_each(|one| one.is_shown = false);
    for (found, shown) in found.iter().zip(shown_to_others(first, &superblocks_of(found))) {
        plugged[found.at].is_shown = shown;
    }
}
