//! An array in a world of its own, for the tests of what stands on arrays: they ask the engine, and power
//! fails and devices are lost beneath them, within the promise.

use crate::Rng;
use crate::course::Mode;
use crate::disk::{BLOCK_BYTES, TEARS, blocks_of};
use crate::machine::{Hurt, Machine, Retired, Standing};
use crate::port::Shard;
use crate::script::Script;
use crate::swarm::{Odds, Swarm, draw_options, draw_pace};
use crate::trap::Trap;
use crate::violation;
use crate::violation::Violation;
use array::{CreateOptions, Done, Engine, EngineError, Seat, plan_config};
use block::{DevIndex, Geometry, Random as _};
use format::{ArrayConfig, CodeKind, Consistency, LayoutKind, MemberState, SchemeKind};
use std::collections::{BTreeMap, BTreeSet};

/// A deadline is waited for in steps of this, so that none passes unseen by what waits for another.
const NAP_NS_MAX: u64 = 1_000_000;

/// What an array went through.
#[derive(Clone, Copy, Default, Debug)]
pub struct Toll {
    /// Power cuts, those included in which the server was killed and the devices kept their caches.
    pub power_cuts: u64,
    /// Devices lost or hurt.
    pub hurt: u64,
    /// Devices whose place another has taken, and that was rebuilt.
    pub replaced: u64,
}

/// See the module's documentation.
pub struct Base {
    machine: Machine,
    shard: Option<Shard>,
    /// A rebuild has not been answered.
    rebuilding: bool,
    /// Of requests that have not been answered: members out of service when they were asked, and their
    /// serial numbers.
    asked: BTreeMap<u64, Vec<(DevIndex, u32)>>,
    /// Devices that count as hurt.
    counted: BTreeSet<u16>,
    toll: Toll,
}

impl Base {
    /// An array of at least so many bytes, drawn from the seed, and started.
    pub fn new(seed: u64, volume_bytes: u64) -> Result<Self, Violation> {
        let mut rng = Rng::new(seed);
        let swarm = draw(&mut rng, volume_bytes)?;
        let machine = Machine::of(swarm, rng, false, Mode::Drawn)?;
        let (counted, toll) = (BTreeSet::new(), Toll::default());
        let asked = BTreeMap::new();
        let mut base = Self { machine, shard: None, rebuilding: false, asked, counted, toll };
        base.start()?;
        Ok(base)
    }

    /// What it is, for whoever reads of a failure.
    pub fn summary(&self) -> String {
        let hurt = &self.machine.suspects;
        format!("{}; devices lost or hurt: {hurt:?}; {:?}", self.machine.swarm.summary(), self.toll())
    }

    /// Bytes of its chunks.
    pub fn chunk_bytes(&self) -> usize {
        self.machine.swarm.config.geometry.chunk_bytes()
    }

    /// What it went through.
    pub fn toll(&self) -> Toll {
        Toll { power_cuts: self.machine.outcome.crashes, ..self.toll }
    }

    /// The engine; none between a power cut and the next start.
    pub fn engine(&mut self) -> Option<&mut Engine> {
        self.shard.as_mut().map(Shard::engine)
    }

    /// The engine was asked something. Once that is answered, whoever is out of service now must not be
    /// believed after a power cut.
    pub fn asked(&mut self, tag: u64) {
        let Some(shard) = &self.shard else { return };
        let health = shard.engine_ref().health();
        let devs = (0..self.machine.member_count()).map(DevIndex::new);
        let out = devs.filter(|&dev| !health.is_writable(dev));
        let out: Vec<_> = out.map(|dev| (dev, health.members()[dev.index()].serial)).collect();
        if !out.is_empty() {
            self.asked.insert(tag, out);
        }
    }

    fn answered(&mut self, tag: u64) {
        let Self { machine, shard: Some(shard), asked, .. } = self else { return };
        let health = shard.engine_ref().health();
        for (dev, serial) in asked.remove(&tag).unwrap_or_default() {
            if !health.is_writable(dev) && health.members()[dev.index()].serial == serial {
                machine.standing[dev.index()].exclude(0);
            }
        }
    }

    /// Some time passes. Answers go to the end of `answers`.
    pub fn turn(&mut self, answers: &mut Vec<Done>) -> Result<(), Violation> {
        let Self { machine, shard: Some(shard), .. } = self else { return Ok(()) };
        machine.now_ns += machine.rng.below(2_000);
        machine.world.change().set_now(machine.now_ns);
        shard.engine().set_now(machine.now_ns);
        let more = shard.turn();
        let first = answers.len();
        shard.take_answers(answers);
        if let Some(broken) = machine.world.look().broken() {
            return Err(violation!("{broken}"));
        }
        if !more {
            if let Some(what) = shard.engine_ref().stranded() {
                return Err(violation!("lost wakeup: nobody will pump the engine, and {what} is left"));
            }
            if machine.world.look().in_flight() > 0 {
                machine.world.change().tick_to_next();
            } else if let Some(at_ns) = shard.engine_ref().next_deadline_ns() {
                machine.now_ns = machine.now_ns.max(at_ns.min(machine.now_ns + NAP_NS_MAX));
            }
        }
        let own = answers.extract_if(first.., |done| Shard::is_own_tag(done.tag)).collect::<Vec<_>>();
        answers[first..].iter().for_each(|done| self.answered(done.tag));
        own.into_iter().try_for_each(|done| self.rebuilt(done))
    }

    /// A device is going to fail an operation, to be gone, not to answer, or to write to another place, or
    /// bits of it flip, unless there are enough of those.
    pub fn hurt(&mut self) {
        let Self { machine, .. } = self;
        let Some(dev) = machine.draw_victim() else { return };
        machine.hurt(dev, Hurt::Anything);
        let rng = &mut machine.rng;
        let trap = match rng.below(7) {
            0 => Trap::Read { dev, count: rng.pick(&[1, 5, 20]) },
            1 => Trap::Write { dev },
            2 => Trap::Flush { dev },
            3 => Trap::Misdirect { dev },
            4 => Trap::Gone { dev },
            5 if machine.swarm.options.device_timeout_ns.is_some() => {
                let ticks = rng.pick(&[None, Some(50), Some(10_000)]);
                machine.world.change().hang(dev, ticks);
                return self.count();
            }
            _ => {
                machine.rot(dev);
                return self.count();
            }
        };
        machine.world.change().set_trap(trap);
        self.count();
    }

    /// What an operator does about a device that is lost or hurt: a rebuild that a power cut interrupted goes
    /// on; or a new device takes the place of one that is out of service; or one is taken out of it.
    pub fn mend(&mut self) {
        let Some(shard) = self.shard.as_mut().filter(|_| !self.rebuilding) else { return };
        let mut suspects = self.machine.suspects.iter().map(|&dev| DevIndex::new(dev));
        let engine = shard.engine_ref();
        let is = |dev: &DevIndex, state| engine.health().state(*dev) == state;
        if suspects.clone().any(|dev| is(&dev, MemberState::Rebuilding)) {
            self.rebuilding = true;
            let tag = shard.own_tag();
            return shard.engine().resume_rebuild(tag);
        }
        if let Some(dev) = suspects.clone().find(|&dev| engine.is_replaceable(dev)) {
            if engine.in_flight(dev) == 0 {
                let (serial, tag) = (Seat::of(engine, dev).serial_max + 1, shard.own_tag());
                put_in_place(&mut self.machine, dev.get());
                self.rebuilding = true;
                shard.engine().rebuild(tag, dev, serial);
            }
        } else if let Some(dev) = suspects.find(|dev| is(dev, MemberState::Healthy)) {
            shard.engine().fail_device(dev);
        }
    }

    /// Power fails, and may take devices with it; then the array is started again.
    pub fn cut(&mut self) -> Result<(), Violation> {
        (self.shard, self.rebuilding) = (None, false);
        self.asked.clear();
        self.machine.power_off();
        self.start()
    }

    fn start(&mut self) -> Result<(), Violation> {
        self.shard = self.machine.power_on()?.pop();
        // What was planned for the start, and did not happen by its end.
        self.machine.world.change().crash_never();
        self.machine.world.change().make_room();
        self.count();
        Ok(())
    }

    fn count(&mut self) {
        let suspects = &self.machine.suspects;
        self.toll.hurt += suspects.difference(&self.counted).map(|_| 1).sum::<u64>();
        self.counted = suspects.clone();
    }

    /// A rebuild was answered: what is healthy now, and was not hurt since it came, is as good as any.
    fn rebuilt(&mut self, done: Done) -> Result<(), Violation> {
        self.rebuilding = false;
        match done.result {
            Ok(()) => {}
            Err(EngineError::Preempted | EngineError::GivenUp | EngineError::Busy) => return Ok(()),
            Err(error) => return Err(violation!("a rebuild failed: {error}")),
        }
        let Self { machine, shard: Some(shard), .. } = self else { return Ok(()) };
        for dev in std::mem::take(&mut machine.suspects) {
            let is_healthy = shard.engine_ref().health().state(DevIndex::new(dev)) == MemberState::Healthy;
            let standing = &mut machine.standing[usize::from(dev)];
            standing.replacement &= !is_healthy;
            if !is_healthy || standing.tainted || standing.lost {
                machine.suspects.insert(dev);
                continue;
            }
            standing.excluded = 0;
            machine.retired[usize::from(dev)].iter_mut().for_each(|retired| retired.excluded = true);
            self.toll.replaced += 1;
        }
        self.count();
        Ok(())
    }
}

/// A new device, with nothing on it or anything, takes the place of one that is out of service. That one may
/// come back at a later start.
fn put_in_place(machine: &mut Machine, dev: u16) {
    let blocks = machine.world.look().disk(dev).view().len();
    let fill = machine.rng.pick(&[None, Some(0xee)]);
    let block = fill.map(|byte| blocks_of(&[byte; BLOCK_BYTES]).swap_remove(0));
    machine.world.change().clear_traps(dev);
    let image = machine.world.change().replace(dev, vec![block; blocks]);
    let standing = machine.standing[usize::from(dev)];
    let (excluded, is_hurt) = (standing.excluded == machine.all_shards(), standing.is_hurt());
    if machine.superblock_in(&image, dev, 0).is_some() {
        machine.retired[usize::from(dev)] = Some(Retired { image, excluded, is_hurt });
    }
    machine.standing[usize::from(dev)] = Standing::replacing(false);
}

/// An array in which devices may be lost, of one shard, whose volume is large enough.
fn draw(rng: &mut Rng, volume_bytes: u64) -> Result<Swarm, Violation> {
    let scheme = rng.pick(&[
        SchemeKind::Eplog,
        SchemeKind::Eplog,
        SchemeKind::Elastic,
        SchemeKind::Was,
        SchemeKind::ParityLog,
        SchemeKind::Raid,
    ]);
    let config = draw_config(rng, scheme, volume_bytes)?;
    let tear = rng.pick(&TEARS);
    let groups = Vec::new();
    let script = Script { scheme, data_count: 2, parity_count: 1, reserve: None, stripes: 4, groups };
    let odds = Odds { loss: rng.pick(&[0, 300, 700]), recrash: rng.pick(&[0, 200, 500]), ..Odds::default() };
    let options = draw_options(rng, &config);
    let pace = draw_pace(rng, &config);
    let kills = rng.chance(1, 3);
    Ok(Swarm { config, options, pace, odds, kills, faults: true, ..script.swarm(tear) })
}

fn draw_config(rng: &mut Rng, scheme: SchemeKind, volume_bytes: u64) -> Result<ArrayConfig, Violation> {
    let (k, m) = (rng.pick(&[2, 3, 4, 6]), rng.pick(&[1, 1, 2, 3]));
    let chunk_bytes = rng.pick(&[4096, 4096, 8192, 16384]);
    let geometry = Geometry::new(k, m, chunk_bytes).map_err(|error| violation!("{error}"))?;
    let options = CreateOptions {
        scheme,
        code: CodeKind::Cauchy,
        layout: rng.pick(&[LayoutKind::Rotate, LayoutKind::Spread]),
        consistency: Consistency::Journal,
        geometry,
        reserve_permille: rng.pick(&[50, 100, 300]),
        unit_rows: Some(rng.pick(&[4, 8])),
    };
    let log_count = if scheme.has_log() { m } else { 0 };
    let mut bytes = 4 << 20;
    loop {
        let config = plan_config(&options, bytes, 4 << 20, log_count);
        match config {
            Ok(config) if config.volume_bytes() >= volume_bytes => return Ok(config),
            Err(error) if bytes > 64 << 20 => return Err(violation!("{error}")),
            Ok(_) | Err(_) => bytes += 256 << 10,
        }
    }
}
