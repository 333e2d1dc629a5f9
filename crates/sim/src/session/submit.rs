//! Requests of all kinds, and faults.

use super::Step;
use super::{Kind, Session};
use crate::fleet::Portion;
use crate::machine::Hurt;
use crate::oracle::{SECTOR, fill};
use crate::swarm::{Chosen, Unit};
use crate::trap::Trap;
use array::Engine;
use block::{DevIndex, Durability, Random as _, SECTOR_BYTES};
use format::CheckpointKind;

impl Session<'_> {
    pub(super) fn submit_read(&mut self, first: u64, count: u64, anchor: bool) -> bool {
        let Some(parts) = self.fleet.cut(first, count) else { return false };
        self.hand_out(Kind::Read { first, count, anchor }, parts, |engine, tag, part| {
            engine.read(tag, part.offset_bytes, part.count * SECTOR_BYTES, &part.slots);
        });
        true
    }

    /// Each part of a request goes to its shard; it is answered when all have ended.
    fn hand_out(&mut self, kind: Kind, parts: Vec<Portion>, start: impl Fn(&mut Engine, u64, &Portion)) {
        let shards: Vec<usize> = parts.iter().map(|part| part.at).collect();
        let tag = self.open(kind, &shards, parts);
        let part_tag = self.tag_of_parts(tag, shards.len());
        for part in self.requests.get(&tag).map_or(&[][..], |request| &request.parts) {
            start(self.fleet.engine(part.at), part_tag, part);
        }
    }

    fn oldest_read(&mut self) -> u64 {
        let reads = self.requests.values().filter(|r| matches!(r.kind, Kind::Read { .. }));
        reads.map(|r| r.submitted).min().unwrap_or(u64::MAX)
    }

    /// One step of a script.
    pub fn play(&mut self, step: Step) {
        let permille = self.machine.swarm.odds.durable;
        match step {
            Step::Write { first, count, durable } => {
                self.machine.swarm.odds.durable = if durable { 1000 } else { 0 };
                self.submit_write(first, count);
            }
            Step::Discard { first, count } => {
                self.submit_zero(first, count);
            }
            Step::Flush => self.control(Kind::Flush, |engine, tag| engine.flush(tag)),
            Step::Commit => self.control(Kind::Commit, |engine, tag| engine.commit(tag)),
            Step::Checkpoint(kind) => {
                self.control(Kind::Checkpoint, |engine, tag| engine.write_checkpoint(tag, kind));
            }
            Step::Fail(dev) => self.fail_device(dev),
            Step::Replace => self.replace(),
            Step::Resume => self.resume_rebuilds(),
            Step::Rot(dev, area) => self.machine.rot_area(dev, area),
            Step::Scrub => self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0)),
        }
        self.machine.swarm.odds.durable = permille;
    }

    pub(super) fn submit_write(&mut self, first: u64, count: u64) -> bool {
        let Some(parts) = self.fleet.cut(first, count) else { return false };
        let oldest = self.oldest_read();
        let version = self.machine.oracle.submit(first, count, false, oldest);
        let chunk = self.fleet.chunk_sectors();
        for part in &parts {
            for lba in part.first..part.first + part.count {
                let (slot, within) = part.slot_of(lba, chunk);
                fill(version, lba, &mut self.fleet.pool(part.at).bytes_mut(slot)[within..][..SECTOR]);
            }
        }
        let durable = self.machine.rng.chance(self.machine.swarm.odds.durable, 1000);
        self.machine.say(|| {
            format!("write {version}: sectors {first}+{count}{}", if durable { ", durable" } else { "" })
        });
        let durability = if durable { Durability::Durable } else { Durability::Volatile };
        self.hand_out(Kind::Write { version, durable }, parts, |engine, tag, part| {
            engine.write(tag, part.offset_bytes, part.count * SECTOR_BYTES, &part.slots, durability);
        });
        true
    }

    pub(super) fn submit_zero(&mut self, first: u64, count: u64) -> bool {
        let Some(parts) = self.fleet.share_out(first, count) else { return false };
        let oldest = self.oldest_read();
        let version = self.machine.oracle.submit(first, count, true, oldest);
        let durable = self.machine.rng.chance(self.machine.swarm.odds.durable, 1000);
        self.machine.say(|| {
            format!("discard {version}: sectors {first}+{count}{}", if durable { ", durable" } else { "" })
        });
        let durability = if durable { Durability::Durable } else { Durability::Volatile };
        self.hand_out(Kind::Write { version, durable }, parts, |engine, tag, part| {
            let edges = [part.slots[0], part.slots[1]];
            engine.zero(tag, part.offset_bytes, part.count * SECTOR_BYTES, edges, durability);
        });
        true
    }

    /// Sectors of a unit, and of the longest request.
    fn unit_sectors(&self, unit: Unit) -> (u64, u64) {
        let geometry = self.machine.swarm.config.geometry;
        let chunk = self.fleet.chunk_sectors();
        let chunks_max = self.fleet.slots_max() as u64 / 2;
        let most = chunk * self.machine.swarm.chunks_max.min(chunks_max);
        match unit {
            Unit::Sector => (1, most),
            Unit::Chunk => (chunk, most),
            Unit::Stripe => (chunk * geometry.data_count() as u64, most),
        }
    }

    /// Some sectors: as many as a request may have, but one stripe if it is for whole stripes.
    fn draw_range(&mut self, unit: Unit) -> (u64, u64) {
        let (align, most) = self.unit_sectors(unit);
        self.draw_aligned(align, if unit == Unit::Stripe { align } else { most })
    }

    fn draws_block(&mut self) -> bool {
        let aligned = self.machine.swarm.odds.aligned;
        aligned > 0 && self.machine.rng.chance(aligned, 1000)
    }

    /// An aligned block of at least two chunks, most of them of those that are never torn.
    fn draw_block(&mut self) -> (u64, u64) {
        let (chunk, _) = self.unit_sectors(Unit::Chunk);
        let slots = u64::try_from(self.fleet.slots_max()).unwrap_or(u64::MAX);
        let most = (self.machine.oracle.untorn / chunk).clamp(2, (slots / 2).max(2));
        let sectors = self.machine.oracle.sector_count() as u64;
        let chunks = 1 << self.machine.rng.within(1, u64::from(most.ilog2()));
        let size = chunks * chunk;
        let (first, _) = self.draw_aligned(size, size);
        if first + size > sectors { (first, sectors - first) } else { (first, size) }
    }

    /// Some sectors, more than a request with content may have.
    fn draw_long_range(&mut self, unit: Unit) -> (u64, u64) {
        let (align, most) = self.unit_sectors(unit);
        self.draw_aligned(align, most * 8)
    }

    /// Some sectors, most of them in the hot part of the volume.
    fn draw_aligned(&mut self, align: u64, most: u64) -> (u64, u64) {
        let sectors = self.machine.oracle.sector_count() as u64;
        let rng = &mut self.machine.rng;
        let span = if rng.chance(self.machine.swarm.odds.hot, 1000) {
            self.machine.swarm.hot_sectors
        } else {
            sectors
        };
        let mut first = rng.below(span) / align * align;
        let unit = self.machine.swarm.config.shard.unit_bytes / SECTOR_BYTES;
        if unit > 0 && span < sectors {
            // Of several shards, what is hot lies around the ends of units.
            let ends = rng.within(1, sectors / unit) * unit;
            first = (ends + first).saturating_sub(span / 2).min(sectors - 1) / align * align;
        }
        let count = rng.within(1, most.div_ceil(align)) * align;
        (first, count.min(sectors - first))
    }

    /// One request or fault, by the swarm's weights; `false` if there are no buffers for it now.
    pub(super) fn submit_any(&mut self) -> bool {
        let chosen = self.machine.swarm.mix.draw(&mut self.machine.rng);
        if self.scrub_again() {
            return true;
        }
        match chosen {
            Chosen::Write(Unit::Chunk) if self.draws_block() => {
                let (first, count) = self.draw_block();
                return self.submit_write(first, count);
            }
            Chosen::Write(unit) => {
                let (first, count) = self.draw_range(unit);
                return self.submit_write(first, count);
            }
            Chosen::Read => {
                let (first, count) = self.draw_range(Unit::Sector);
                return self.submit_read(first, count, false);
            }
            Chosen::Discard => {
                let unit = self.machine.rng.pick(&[Unit::Sector, Unit::Chunk, Unit::Stripe]);
                let (first, count) = self.draw_long_range(unit);
                return self.submit_zero(first, count);
            }
            Chosen::Flush => self.control(Kind::Flush, |engine, tag| engine.flush(tag)),
            Chosen::Commit if self.steer_commits() => {}
            Chosen::Commit => self.control(Kind::Commit, |engine, tag| engine.commit(tag)),
            Chosen::Checkpoint => {
                let kind = self.machine.rng.pick(&[CheckpointKind::Full, CheckpointKind::Incremental]);
                self.control(Kind::Checkpoint, |engine, tag| engine.write_checkpoint(tag, kind));
            }
            Chosen::Scrub if self.steer_scrub() => {}
            Chosen::Scrub => self.control(Kind::Scrub, |engine, tag| engine.scrub(tag, 0)),
            Chosen::Fail => self.fail(),
            Chosen::Replace => self.replace(),
            Chosen::Trap => self.lay_trap(),
        }
        // While devices are flushed, read through, or filled: what was just asked for is under way.
        if self.machine.swarm.hangs && self.machine.rng.chance(1, 10) {
            self.fall_silent();
        }
        true
    }

    fn fail(&mut self) {
        if let Some(dev) = self.machine.draw_victim() {
            self.fail_device(dev);
        }
    }

    pub(super) fn fail_device(&mut self, dev: u16) {
        self.machine.say(|| format!("fail device {dev}"));
        self.machine.suspects.insert(dev);
        self.machine.standing[usize::from(dev)].tainted = true;
        // Of several shards some are asked; the others are told.
        let mut shards: Vec<usize> = (0..self.fleet.len()).collect();
        if self.fleet.is_several() {
            self.machine.rng.shuffle(&mut shards);
            let count = self.machine.rng.within(1, self.fleet.len() as u64);
            shards.truncate(usize::try_from(count).unwrap_or(1));
        }
        shards.into_iter().for_each(|at| self.fleet.engine(at).fail_device(DevIndex::new(dev)));
    }

    fn lay_trap(&mut self) {
        if self.machine.swarm.faults && self.machine.rng.chance(1, 4) {
            return self.machine.fill_up();
        }
        let rotting = self.machine.swarm.rotting;
        if rotting && !self.machine.suspects.is_empty() && self.machine.rng.chance(7, 8) {
            return; // what is hurt is to be made good before more is
        }
        if rotting && self.machine.rng.chance(3, 4) {
            return self.rot();
        }
        if self.machine.swarm.hangs && self.machine.rng.chance(3, 4) {
            return self.fall_silent();
        }
        let Some(dev) = self.machine.draw_victim() else { return };
        self.machine.hurt(dev, Hurt::Anything);
        let rng = &mut self.machine.rng;
        if self.machine.swarm.options.device_timeout_ns.is_some() && rng.chance(1, 6) {
            let ticks = rng.pick(&[None, Some(50), Some(10_000)]);
            self.machine.say(|| format!("device {dev} does not answer for {ticks:?} ticks"));
            return self.machine.world.change().hang(dev, ticks);
        }
        if self.fleet.is_several() && rng.chance(1, 4) {
            let trap = Trap::Astray { dev, superblock: rng.chance(1, 2) };
            self.machine.say(|| format!("trap: {trap:?}"));
            return self.machine.world.change().set_trap(trap);
        }
        let rng = &mut self.machine.rng;
        let trap = match rng.below(7) {
            0 => Trap::Read { dev, count: rng.within(1, 20) as u32 },
            1 => Trap::Write { dev },
            2 => Trap::Flush { dev },
            3 => Trap::Gone { dev },
            4 => Trap::Misdirect { dev },
            _ => return self.machine.rot(dev),
        };
        self.machine.say(|| format!("trap: {trap:?}"));
        self.machine.world.change().set_trap(trap);
    }
}
