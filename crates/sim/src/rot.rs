//! Damage to what is stored, and when a device that suffered it is above suspicion again: when a scrub that
//! began later has come to its end, or, for metadata alone, a round of the patrol. From then on others may be
//! lost in its place.

use crate::disk::BLOCK_BYTES;
use crate::fleet::Fleet;
use crate::machine::{Hurt, Machine, SHARDS_MAX};
use block::{ChunkIndex, DevIndex, Random as _};
use format::{ArrayConfig, MemberState};
use std::ops::Range;

/// An area of a main device, for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Area {
    /// The journal's ring.
    Journal,
    /// Chunks of data and parity.
    Chunks,
}

/// What a scrub must make good: devices that were suspects when it was asked for, each with its serials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patients {
    devices: Vec<(u16, Vec<u32>)>,
    hurts: u64,
}

/// The areas of a member that hold metadata and nothing else, in bytes.
fn metadata_areas(config: &ArrayConfig, main: bool) -> Vec<Range<u64>> {
    let block = BLOCK_BYTES as u64;
    let mut areas = vec![0..block, block..2 * block, 0..2 * block];
    if main {
        let full = |which| {
            let start = config.full_offset(which, 0);
            start..start + u64::from(config.full_blocks) * block
        };
        let incremental = config.incremental_offset(0);
        let journal = config.journal_offset(0);
        areas.extend([full(0), full(1)]);
        areas.push(incremental..incremental + u64::from(config.incremental_blocks) * block);
        let pages = config.page_offset(0);
        areas.push(pages..pages + u64::from(config.page_blocks) * block);
        areas.push(journal..journal + u64::from(config.journal_blocks) * block);
    }
    areas
}

impl Machine {
    /// A device is hurt: it is a suspect from now on.
    pub fn hurt(&mut self, dev: u16, hurt: Hurt) {
        self.hurts += 1;
        self.suspects.insert(dev);
        let standing = &mut self.standing[usize::from(dev)];
        standing.hurt = match (standing.tainted, standing.hurt, hurt) {
            (true, Hurt::Nothing, _) | (_, Hurt::Anything, _) => Hurt::Anything,
            (_, _, hurt) => hurt,
        };
        (standing.tainted, standing.hurt_at) = (true, self.hurts);
    }

    /// Bits flip on a disk: a few, or many, anywhere.
    pub fn rot(&mut self, dev: u16) {
        self.hurt(dev, Hurt::Anything);
        let size = self.world.look().disk(dev).size_bytes();
        let count = self.rng.pick(&[1, 10, 200]);
        self.say(|| format!("rot: {count} bits of device {dev}"));
        for _ in 0..count {
            let offset = self.rng.below(size);
            self.flip(dev, offset);
        }
    }

    /// A bit of every block of an area of metadata flips, or of one block.
    pub fn rot_metadata(&mut self, dev: u16, rounds: [u64; SHARDS_MAX]) {
        self.hurt(dev, Hurt::Metadata { rounds });
        let config = self.swarm.config;
        let count = metadata_areas(&config, usize::from(dev) < config.geometry.device_count()).len();
        let index = self.rng.index(count);
        let shard = if config.shard.is_one_of_several() { self.rng.pick(&self.shards()) } else { 0 };
        let shape = self.shape_of(shard);
        let areas = metadata_areas(&shape, usize::from(dev) < config.geometry.device_count());
        let area = areas[index].clone();
        self.say(|| format!("rot: metadata of device {dev}, bytes {area:?} of shard {shard}"));
        let one = self.rng.chance(1, 4).then(|| self.rng.within(area.start, area.end - 1));
        match one {
            Some(offset) => self.flip(dev, shape.place_on(DevIndex::new(dev), offset)),
            None => {
                for start in area.step_by(BLOCK_BYTES) {
                    let offset = start + self.rng.below(BLOCK_BYTES as u64);
                    self.flip(dev, shape.place_on(DevIndex::new(dev), offset));
                }
            }
        }
    }

    /// A bit of every block of an area of a main device flips.
    pub fn rot_area(&mut self, dev: u16, area: Area) {
        self.hurt(dev, Hurt::Anything);
        let config = self.swarm.config;
        let block = BLOCK_BYTES as u64;
        let bytes = match area {
            Area::Journal => {
                let first = config.journal_offset(0);
                first..first + u64::from(config.journal_blocks) * block
            }
            Area::Chunks => {
                let first = config.chunk_offset(ChunkIndex::new(1));
                first..self.world.look().disk(dev).size_bytes()
            }
        };
        self.say(|| format!("rot: {area:?} of device {dev}, bytes {bytes:?}"));
        for start in bytes.step_by(BLOCK_BYTES) {
            let offset = start + self.rng.below(block);
            let place =
                if area == Area::Journal { config.place_on(DevIndex::new(dev), offset) } else { offset };
            self.flip(dev, place);
        }
    }

    fn flip(&mut self, dev: u16, offset: u64) {
        let bit = self.rng.below(8) as u32;
        self.world.change().disk_mut(dev).flip(offset, bit);
    }

    /// Who must be whole when a scrub that begins now has come to its end: members in service that nothing
    /// threatens any more.
    pub fn patients(&self, fleet: &Fleet) -> Patients {
        let in_service = |dev: &u16| {
            let there = !self.standing[usize::from(*dev)].lost && self.world.look().is_present(*dev);
            there && fleet.state(*dev) == MemberState::Healthy && !self.world.look().is_threatened(*dev)
        };
        let devices = self.suspects.iter().copied().filter(in_service);
        let devices = devices.map(|dev| (dev, fleet.serials(dev))).collect();
        Patients { devices, hurts: self.hurts }
    }

    /// A scrub found everything, and mended it; but for the other shards, if only one of them is running.
    pub fn scrubbed(&mut self, fleet: &Fleet, patients: &Patients) {
        if fleet.len() < usize::from(self.shard_count()) {
            return;
        }
        for (dev, serials) in &patients.devices {
            let same = fleet.serials(*dev) == *serials;
            if same && self.standing[usize::from(*dev)].hurt_at <= patients.hurts {
                self.heal(fleet, *dev);
            }
        }
    }

    /// A round of the patrol that began after all damage to a device's metadata has mended it.
    pub fn patrolled(&mut self, fleet: &Fleet) {
        for dev in self.suspects.iter().copied().collect::<Vec<u16>>() {
            if let Hurt::Metadata { rounds } = self.standing[usize::from(dev)].hurt
                && fleet.engines().zip(rounds).all(|(engine, round)| engine.patrol_rounds().1 > round)
                && !self.world.look().is_threatened(dev)
            {
                self.heal(fleet, dev);
            }
        }
    }

    /// A device is above suspicion, unless it is not in service.
    fn heal(&mut self, fleet: &Fleet, dev: u16) {
        let standing = self.standing[usize::from(dev)];
        let out = standing.lost || standing.excluded != 0 || standing.replacement;
        // What ails its partner can take it along.
        let shelf = self.member_count();
        let is_paired = self.succeeded == Some(dev) && self.world.look().may_fail(shelf);
        if out || is_paired || fleet.state(dev) != MemberState::Healthy {
            return;
        }
        self.say(|| format!("device {dev} is whole again"));
        self.suspects.remove(&dev);
        let standing = &mut self.standing[usize::from(dev)];
        (standing.tainted, standing.hurt, standing.stump) = (false, Hurt::Nothing, None);
        self.outcome.healed += 1;
        if self.swarm.rotting && self.swarm.crashes && !self.ruined && self.rng.chance(1, 2) {
            // Before anything else makes what was mended unnecessary.
            let within = self.rng.pick(&[2, 3, 30]);
            let events = self.rng.below(within);
            self.world.change().crash_after(events);
            self.note_cut(events);
            self.mended = Some(dev);
        }
    }

    /// A new session: rounds of the patrol are counted anew.
    pub fn forget_rounds(&mut self) {
        for standing in &mut self.standing {
            if let Hurt::Metadata { rounds } = &mut standing.hurt {
                *rounds = [0; SHARDS_MAX];
            }
        }
    }

    /// As many others as the code tolerates are lost, and what was mended last must do.
    pub fn lose_others(&mut self, mended: u16) {
        let mut others: Vec<u16> = (0..self.member_count()).filter(|&dev| dev != mended).collect();
        self.rng.shuffle(&mut others);
        for dev in others {
            if self.suspects.len() < self.budget() {
                self.lose(dev);
            }
        }
    }
}
