//! Requests of all kinds, and faults.

use super::Step;
use super::{Kind, Session};
use crate::disk::{BLOCK_BYTES, blocks_of};
use crate::machine::{Hurt, Retired, Standing};
use crate::oracle::{SECTOR, fill};
use crate::swarm::{Chosen, Unit};
use crate::world::{Trap, superblock_of};
use block::{DevIndex, Durability, Random as _, Slot};
use format::CheckpointKind;

impl Session<'_> {
    pub(super) fn take_slots(&mut self, first: u64, count: u64) -> Option<Vec<Slot>> {
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64 / SECTOR as u64;
        let chunks = (first + count).div_ceil(chunk) - first / chunk;
        let mut slots = Vec::new();
        self.array.engine().take_slots(chunks as usize, &mut slots).then_some(slots)
    }

    pub(super) fn submit_read(&mut self, first: u64, count: u64, anchor: bool) -> bool {
        let Some(slots) = self.take_slots(first, count) else { return false };
        let (tag, _) = self.open(Kind::Read { first, count, anchor }, slots.clone());
        self.array.engine().read(tag, first * SECTOR as u64, count * SECTOR as u64, &slots);
        true
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
        }
        self.machine.swarm.odds.durable = permille;
    }

    pub(super) fn submit_write(&mut self, first: u64, count: u64) -> bool {
        let Some(slots) = self.take_slots(first, count) else { return false };
        let oldest = self.oldest_read();
        let version = self.machine.oracle.submit(first, count, false, oldest);
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64;
        for lba in first..first + count {
            let at = lba * SECTOR as u64;
            let slot = slots[(at / chunk - first * SECTOR as u64 / chunk) as usize];
            let bytes = &mut self.array.engine().pool().bytes_mut(slot)[(at % chunk) as usize..][..SECTOR];
            fill(version, lba, bytes);
        }
        let durable = self.machine.rng.chance(self.machine.swarm.odds.durable, 1000);
        self.machine.say(|| {
            format!("write {version}: sectors {first}+{count}{}", if durable { ", durable" } else { "" })
        });
        let (tag, _) = self.open(Kind::Write { version, durable }, slots.clone());
        let durability = if durable { Durability::Durable } else { Durability::Volatile };
        self.array.engine().write(tag, first * SECTOR as u64, count * SECTOR as u64, &slots, durability);
        true
    }

    pub(super) fn submit_zero(&mut self, first: u64, count: u64) -> bool {
        let mut slots = Vec::new();
        if !self.array.engine().take_slots(2, &mut slots) {
            return false;
        }
        let oldest = self.oldest_read();
        let version = self.machine.oracle.submit(first, count, true, oldest);
        let durable = self.machine.rng.chance(self.machine.swarm.odds.durable, 1000);
        let edges = [slots[0], slots[1]];
        self.machine.say(|| {
            format!("discard {version}: sectors {first}+{count}{}", if durable { ", durable" } else { "" })
        });
        let (tag, _) = self.open(Kind::Write { version, durable }, slots);
        let durability = if durable { Durability::Durable } else { Durability::Volatile };
        self.array.engine().zero(tag, first * SECTOR as u64, count * SECTOR as u64, edges, durability);
        true
    }

    /// Sectors of a unit, and of the longest request.
    fn unit_sectors(&self, unit: Unit) -> (u64, u64) {
        let geometry = self.machine.swarm.config.geometry;
        let chunk = geometry.chunk_bytes() as u64 / SECTOR as u64;
        let chunks_max = self.array.engine_ref().slots_per_request_max() as u64 / 2;
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
        let slots = u64::try_from(self.array.engine_ref().slots_per_request_max()).unwrap_or(u64::MAX);
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
        let first = rng.below(span) / align * align;
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
        self.array.engine().fail_device(DevIndex::new(dev));
    }

    /// A new disk takes the place of a failed one once nothing is under way on that.
    pub(super) fn replace(&mut self) {
        let suspects: Vec<u16> = self.machine.suspects.iter().copied().collect();
        for dev in suspects {
            let index = DevIndex::new(dev);
            if !self.array.engine().is_replaceable(index) || self.array.engine().in_flight(index) > 0 {
                continue;
            }
            let size = self.machine.swarm.sizes()[usize::from(dev)] as usize;
            let blank = match self.machine.rng.below(2) {
                0 => vec![None; size / BLOCK_BYTES],
                _ => vec![Some(blocks_of(&[0xee; BLOCK_BYTES]).swap_remove(0)); size / BLOCK_BYTES],
            };
            self.machine.world.change().clear_traps(dev);
            let image = self.machine.world.change().replace(dev, blank);
            let excluded = self.machine.standing[usize::from(dev)].excluded;
            // A disk that never was a member for long is forgotten; the one before it may still come back.
            if superblock_of(&image).is_some() {
                self.machine.retired[usize::from(dev)] = Some(Retired { image, excluded });
            }
            self.machine.standing[usize::from(dev)] = Standing { replacement: true, ..Standing::default() };
            self.machine.serial += 1;
            let serial = self.machine.serial;
            self.machine.say(|| format!("replace device {dev}, serial {serial}"));
            self.control(Kind::Rebuild { dev }, |engine, tag| engine.rebuild(tag, index, serial));
            self.cut_rebuild();
            return;
        }
    }

    /// Often power fails in the middle of a rebuild: after the restart it goes on.
    pub(super) fn cut_rebuild(&mut self) {
        let machine = &mut *self.machine;
        let (cut, events) = (machine.rng.chance(1, 2), machine.rng.within(20, 800));
        if cut && machine.swarm.crashes && !machine.world.look().has_blackout() {
            machine.say(|| format!("power will fail {events} operations into the rebuild"));
            machine.plan_cut_anew(events);
        }
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
        let Some(dev) = self.machine.draw_victim() else { return };
        self.machine.hurt(dev, Hurt::Anything);
        let rng = &mut self.machine.rng;
        if self.machine.swarm.options.device_timeout_ns.is_some() && rng.chance(1, 6) {
            let ticks = rng.pick(&[None, Some(50), Some(10_000)]);
            self.machine.say(|| format!("device {dev} does not answer for {ticks:?} ticks"));
            return self.machine.world.change().hang(dev, ticks);
        }
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
