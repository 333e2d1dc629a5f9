//! An array in a world of its own, for the tests of what stands on arrays: they ask the engine, and power
//! fails and devices are lost beneath them, within the promise.

use crate::Rng;
use crate::course::Mode;
use crate::disk::TEARS;
use crate::machine::{Hurt, Machine};
use crate::port::Shard;
use crate::script::Script;
use crate::swarm::{Odds, Swarm, draw_options, draw_pace};
use crate::trap::Trap;
use crate::violation;
use crate::violation::Violation;
use array::{CreateOptions, Done, Engine, plan_config};
use block::{Geometry, Random as _};
use format::{ArrayConfig, CodeKind, Consistency, LayoutKind, SchemeKind};

/// See the module's documentation.
pub struct Base {
    machine: Machine,
    shard: Option<Shard>,
}

impl Base {
    /// An array of at least so many bytes, drawn from the seed, and started.
    pub fn new(seed: u64, volume_bytes: u64) -> Result<Self, Violation> {
        let mut rng = Rng::new(seed);
        let swarm = draw(&mut rng, volume_bytes)?;
        let machine = Machine::of(swarm, rng, false, Mode::Drawn)?;
        let mut base = Self { machine, shard: None };
        base.start()?;
        Ok(base)
    }

    /// What it is, for whoever reads of a failure.
    pub fn summary(&self) -> String {
        self.machine.swarm.summary()
    }

    /// Bytes of its chunks.
    pub fn chunk_bytes(&self) -> usize {
        self.machine.swarm.config.geometry.chunk_bytes()
    }

    /// Devices that are lost, or may be.
    pub fn lost(&self) -> usize {
        self.machine.suspects.len()
    }

    /// The engine; none between a power cut and the next start.
    pub fn engine(&mut self) -> Option<&mut Engine> {
        self.shard.as_mut().map(Shard::engine)
    }

    /// Some time passes. Answers go to the end of `answers`.
    pub fn turn(&mut self, answers: &mut Vec<Done>) -> Result<(), Violation> {
        let Self { machine, shard: Some(shard) } = self else { return Ok(()) };
        machine.now_ns += machine.rng.below(2_000);
        machine.world.change().set_now(machine.now_ns);
        shard.engine().set_now(machine.now_ns);
        let more = shard.turn();
        shard.take_answers(answers);
        if let Some(broken) = machine.world.look().broken() {
            return Err(violation!("{broken}"));
        }
        if more {
            return Ok(());
        }
        if machine.world.look().in_flight() > 0 {
            machine.world.change().tick_to_next();
        } else if let Some(at_ns) = shard.engine_ref().next_deadline_ns() {
            machine.now_ns = machine.now_ns.max(at_ns.min(machine.now_ns + 1_000_000));
        }
        Ok(())
    }

    /// A device is going to fail an operation, to be gone, or to write to another place; `false` if there are
    /// enough of those.
    pub fn hurt(&mut self) -> bool {
        let Some(dev) = self.machine.draw_victim() else { return false };
        self.machine.hurt(dev, Hurt::Anything);
        let rng = &mut self.machine.rng;
        let trap = match rng.below(5) {
            0 => Trap::Read { dev, count: rng.within(1, 20) as u32 },
            1 => Trap::Write { dev },
            2 => Trap::Flush { dev },
            3 => Trap::Misdirect { dev },
            _ => Trap::Gone { dev },
        };
        self.machine.world.change().set_trap(trap);
        true
    }

    /// Power fails, and may take devices with it; then the array is started again.
    pub fn cut(&mut self) -> Result<(), Violation> {
        self.shard = None;
        self.machine.power_off();
        self.start()
    }

    fn start(&mut self) -> Result<(), Violation> {
        self.shard = self.machine.power_on()?.pop();
        Ok(())
    }
}

/// An array in which devices may be lost, of one shard, whose volume is large enough.
fn draw(rng: &mut Rng, volume_bytes: u64) -> Result<Swarm, Violation> {
    let schemes = [SchemeKind::Eplog, SchemeKind::Elastic, SchemeKind::Was, SchemeKind::ParityLog];
    let scheme = rng.pick(&[schemes[0], schemes[0], schemes[1], schemes[2], schemes[3], SchemeKind::Raid]);
    let config = draw_config(rng, scheme, volume_bytes)?;
    let tear = rng.pick(&TEARS);
    let groups = Vec::new();
    let script = Script { scheme, data_count: 2, parity_count: 1, reserve: None, stripes: 4, groups };
    let odds = Odds { loss: rng.pick(&[0, 300, 700]), recrash: rng.pick(&[0, 200, 500]), ..Odds::default() };
    let options = draw_options(rng, &config);
    let pace = draw_pace(rng, &config);
    Ok(Swarm { config, options, pace, odds, faults: true, ..script.swarm(tear) })
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
