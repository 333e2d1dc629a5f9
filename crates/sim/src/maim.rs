//! Members whose devices are cut short while the machine is off: whoever starts the array sees that a device
//! is too short and leaves it out, as the server does. Later it has its length again, and zeros where its end
//! was. A start that saw it short has told the others, so nothing of it counts from then on but as a new
//! device's: by what it missed it is never whole. If no start told it may pass for a member, as one that rots
//! does: then its checksums tell.

use crate::course::Part;
use crate::disk::Tear;
use crate::machine::{Hurt, Machine, Stump};
use crate::script::{Cut, Script, make_whole};
use crate::session::Step;
use crate::violation;
use crate::violation::Violation;
use array::Arrangement;
use block::{DevIndex, Random as _};
use format::{MemberEntry, MemberState};

/// Bytes of a block of a disk.
const BLOCK_BYTES: u64 = 4096;
/// More operations than a start of small arrays takes.
const START_EVENTS_MAX: u64 = 80;
/// Starts in which what is wrong has been mended.
const ROUNDS_MAX: usize = 30;

fn is_in_service(entry: &MemberEntry) -> bool {
    matches!(entry.state, MemberState::Healthy | MemberState::Rebuilding)
}

impl Script {
    /// When all has been answered, half of a device is gone; power fails at every operation of the start that
    /// finds it so, and the device has its length again in the next one. There the array is made whole, and
    /// then another device is lost. How many worlds that were.
    pub fn every_start_without_an_end(&self) -> Result<u64, Violation> {
        let mut worlds = 0;
        for dev in 0..self.member_count() {
            for after in 0..START_EVENTS_MAX {
                self.start_without_an_end(dev, after).map_err(|what| violation!("{dev} {after}: {what}"))?;
                worlds += 1;
            }
        }
        Ok(worlds)
    }

    fn start_without_an_end(&self, dev: u16, after: u64) -> Result<(), Violation> {
        let cut = Cut { again: Some(after), tear: Tear::KeepAll, ..Cut::NONE };
        let (mut machine, ..) = self.stopped_by(cut)?;
        machine.swarm.returns = true;
        let left = machine.world.look().disk(dev).size_bytes() / BLOCK_BYTES / 2;
        machine.shorten(dev, left);
        machine.cut_assembly(after, None)?;
        machine.lengthen(dev);
        // No start may have told that it was too short: then it is a member, and what it lacks is mended.
        // A device that is hurt may be away in a start.
        for step in [Step::Replace, Step::Resume, Step::Scrub].into_iter().cycle().take(ROUNDS_MAX) {
            if !machine.suspects.is_empty() {
                make_whole(&mut machine, step)?;
            }
        }
        if !machine.suspects.is_empty() {
            let standing = &machine.standing;
            return Err(violation!("{:?} are not made whole: {standing:?}", machine.suspects));
        }
        machine.lose((dev + 1) % self.member_count());
        machine.finale()
    }
}

impl Machine {
    /// Whether a device is too short to be a member.
    pub fn is_short(&self, dev: u16) -> bool {
        self.standing[usize::from(dev)].stump.is_some_and(|stump| stump.is_short)
    }

    /// A device has its length again; if the array knows that it lacked it, and takes it all the same, it has
    /// to be what it is taken for.
    pub fn lengthen(&mut self, dev: u16) {
        let stump = &mut self.standing[usize::from(dev)].stump;
        *stump = stump.filter(|stump| !stump.is_told).map(|stump| Stump { is_short: false, ..stump });
    }

    /// Before a start: devices get their length back, and another one loses its end.
    pub fn cut_short_or_mend(&mut self) {
        // From a generator of its own: worlds in which no device is cut short stay what they were before this
        // was drawn.
        let mut rng = self.rng.clone().fork().fork();
        for dev in 0..self.member_count() {
            if let Some(stump) = &mut self.standing[usize::from(dev)].stump
                && rng.chance(1, 2)
            {
                stump.is_short = false;
            }
        }
        let may_be = self.swarm.faults && !self.is_split() && self.succeeded.is_none();
        if !may_be || !rng.chance(self.swarm.odds.cut_short, 1000) || !self.keeps(Part::Trouble) {
            return;
        }
        let any = self.suspects.len() < self.budget() && rng.chance(2, 3);
        let victims: Vec<u16> =
            if any { (0..self.member_count()).collect() } else { self.suspects.iter().copied().collect() };
        if victims.is_empty() {
            return;
        }
        let dev = rng.pick(&victims);
        let standing = self.standing[usize::from(dev)];
        if standing.lost || standing.stump.is_some() {
            return;
        }
        let blocks = self.world.look().disk(dev).size_bytes() / BLOCK_BYTES;
        let least = rng.pick(&[1, 2, 2, blocks / 2, blocks / 4 * 3]);
        let left = rng.within(least, blocks - 1);
        self.shorten(dev, left);
    }

    /// So many blocks of a device are left.
    fn shorten(&mut self, dev: u16, left: u64) {
        let blocks = self.world.look().disk(dev).view().len();
        self.say(|| format!("device {dev} is cut short: {left} of {blocks} blocks are left"));
        self.world.change().disk_mut(dev).cut_short(usize::try_from(left).unwrap_or(usize::MAX));
        self.hurt(dev, Hurt::Anything);
        let stump = Stump { is_short: true, is_unseen: true, was_in_service: false, is_told: false };
        self.standing[usize::from(dev)].stump = Some(stump);
    }

    /// What every shard is told of devices that are too short, as the server tells it; and who of those that
    /// were is nobody's member any more.
    pub fn note_maimed(&mut self, arrangements: &mut [Arrangement]) {
        for dev in 0..self.member_count() {
            let Some(mut stump) = self.standing[usize::from(dev)].stump else { continue };
            let index = usize::from(dev);
            let serves = |of: &Arrangement| is_in_service(&of.newest.members[index]);
            if stump.is_unseen {
                stump.was_in_service = arrangements.iter().all(serves);
            }
            stump.is_unseen = false;
            // Only a start that saw it short can have said so, though it was not completed.
            let is_out = stump.was_in_service && !arrangements.iter().any(serves);
            // Who is not short may be left out because it is away.
            stump.was_in_service &= is_out || stump.is_short;
            self.standing[index].stump = Some(stump);
            if is_out || stump.is_told {
                self.standing[index].hurt = Hurt::Nothing;
            } else {
                self.standing[index].hurt = Hurt::Anything;
            }
            let serial = self.superblock_seen(dev, 0).map(|superblock| superblock.serial);
            let has_place = serial == Some(arrangements[0].members[index].serial);
            if stump.is_short && has_place && arrangements[0].places[index].is_none() {
                arrangements.iter_mut().for_each(|one| one.maimed.push(DevIndex::new(dev)));
            }
        }
    }

    /// The array has started: who was left out as too short is no member any more.
    pub fn note_started(&mut self, arrangements: &[Arrangement]) {
        for &dev in arrangements.iter().flat_map(|one| &one.maimed) {
            let standing = &mut self.standing[dev.index()];
            if let Some(stump) = &mut standing.stump {
                stump.is_told = true;
                standing.hurt = Hurt::Nothing;
            }
        }
    }
}
