//! Devices become larger while the machine is off, and the array is told to grow: power fails at any
//! operation of that, devices fail, and the array is as large as it was or as it was to become, whole; what
//! it said it has become it stays. Of several shards each is one or the other, and none larger than those
//! behind it.

use crate::Rng;
use crate::course::Mode;
use crate::disk::Tear;
use crate::machine::Machine;
use crate::script::Script;
use crate::swarm::{is_resync, lay_out};
use crate::violation;
use crate::violation::Violation;
use array::{Arrangement, AssembleError, GrowError, grow, is_half_grown, plan_growth};
use block::{DevIndex, Random as _, SECTOR_BYTES, mix};
use format::{ArrayConfig, MemberState};

/// Chunks by which devices become larger.
const MORE_CHUNKS: [u64; 5] = [1, 16, 60, 150, 300];
/// Bytes by which devices become larger for each shard, if there are several.
const MORE_BYTES: [u64; 5] = [4096, 1 << 20, 3 << 20, 3 << 20, 5 << 20];
/// Attempts between two sessions at most.
const ATTEMPTS_MAX: u64 = 3;
/// Stripes from which on an array is large enough: all of it is read over and over.
const STRIPES_MAX: u64 = 1500;

impl Script {
    /// An array of two shards grows; power fails at every operation of that. It is told to grow again, which
    /// succeeds, and then any device is lost: it stays what it has become. How many worlds that were.
    pub fn every_cut_of_growth(&self) -> Result<u64, Violation> {
        let mut worlds = 0;
        for lost in 0..self.member_count() {
            let mut after = 0;
            while self.cut_growth(after, lost).map_err(|what| violation!("{after} {lost}: {what}"))? {
                (after, worlds) = (after + 1, worlds + 1);
            }
        }
        Ok(worlds)
    }

    /// The same with one cut and one device; `false` if the growth ended before.
    fn cut_growth(&self, after: u64, lost: u16) -> Result<bool, Violation> {
        let mut swarm = self.swarm(Tear::KeepAll);
        swarm.config.shard.count = 2;
        swarm.config = lay_out(swarm.config);
        let mut machine = Machine::of(swarm, Rng::new(mix(after)), false, Mode::Drawn)?;
        machine.world.change().enlarge(6 << 20);
        machine.world.change().crash_after(after);
        let mut rng = Rng::new(1);
        let arrangements = machine.attach()?;
        machine.grow_now(&arrangements, &mut rng)?;
        let was_cut = machine.outcome.crashes > 0;
        if was_cut {
            let arrangements = machine.attach()?;
            machine.grow_now(&arrangements, &mut rng)?;
        }
        if is_half_grown(&machine.oracle.shapes) {
            return Err(violation!("it does not grow when it is told again"));
        }
        machine.power_off();
        machine.lose(lost);
        machine.finale()?;
        Ok(was_cut)
    }
}

impl Machine {
    /// Perhaps the devices become larger, once or more often, and the array grows.
    pub fn grow_up(&mut self, trouble: bool) -> Result<(), Violation> {
        // From a generator of its own: worlds that do not grow stay what they were before this was drawn.
        let mut rng = self.rng.clone().fork();
        // Who has succeeded whom is decided by an assembly, which makes it durable.
        let may_grow = self.succeeded.is_none() && !is_resync(&self.swarm.config);
        for _ in 0..ATTEMPTS_MAX {
            let is_large = self.swarm.config.stripe_count > STRIPES_MAX;
            if !may_grow || is_large || !rng.chance(self.swarm.odds.grow, 1000) {
                break;
            }
            let chunks = rng.pick(&MORE_CHUNKS);
            let mut more_bytes = chunks * self.swarm.config.chunk_bytes();
            if self.shard_count() > 1 {
                // What cut the last one short goes on without more room, too.
                let each = if rng.chance(1, 4) { 0 } else { rng.pick(&MORE_BYTES) };
                more_bytes = each * u64::from(self.shard_count());
            }
            self.say(|| format!("the devices become larger by {more_bytes} bytes"));
            self.world.change().enlarge(more_bytes);
            self.try_to_grow(&mut rng, trouble)?;
            // Whether it has grown or not, it is one of the two from then on.
            if trouble && rng.chance(1, 2) {
                self.power_off();
            }
        }
        Ok(())
    }

    fn try_to_grow(&mut self, rng: &mut Rng, trouble: bool) -> Result<(), Violation> {
        let arrangements = self.attach()?;
        if self.swarm.crashes && trouble && rng.chance(2, 3) {
            let events = rng.below(rng.clone().pick(&[100, 400, 1500]) * u64::from(self.shard_count()));
            self.say(|| format!("power will fail {events} operations into the growth"));
            self.world.change().crash_after(events);
        } else if self.swarm.faults && trouble && rng.chance(1, 4) {
            self.trap_assembly();
        }
        self.grow_now(&arrangements, rng)
    }

    /// The array is told to grow.
    fn grow_now(&mut self, arrangements: &[Arrangement], rng: &mut Rng) -> Result<(), Violation> {
        // If power failed in the middle, whoever tries again plans by what is there.
        self.find_sizes(arrangements)?;
        let shapes = self.oracle.shapes.clone();
        let mains = (0u16..).map(DevIndex::new).take(self.swarm.config.geometry.device_count());
        let sizes: Vec<u64> = mains.map(|dev| self.world.look().size_bytes(0, dev)).collect();
        let planned = plan_growth(&shapes, &sizes).ok();
        let shards: Vec<(&Arrangement, u64)> =
            arrangements.iter().map(|arrangement| (arrangement, mix(rng.word()))).collect();
        let whole = |of: &Arrangement| of.members.iter().all(|entry| entry.state == MemberState::Healthy);
        let was_whole = arrangements.iter().all(whole);
        let result = grow(&mut self.world.port(0), &shards, &mut || Ok(()));
        self.say(|| format!("grown: {:?}", result.as_ref().map(|(after, _)| after.stripe_count)));
        if self.world.look().is_crashed() {
            self.may_have_become(planned);
            self.power_off();
            return Ok(());
        }
        self.judge_growth(arrangements, was_whole, planned, result.map(|(after, _)| after))
    }

    /// What became of it, power having stayed.
    fn judge_growth(
        &mut self,
        arrangements: &[Arrangement],
        was_whole: bool,
        planned: Option<ArrayConfig>,
        result: Result<ArrayConfig, GrowError>,
    ) -> Result<(), Violation> {
        let may_fail = !self.suspects.is_empty();
        match result {
            Ok(after) if Some(after) != planned => Err(violation!("it has grown to something else")),
            Ok(after) => {
                self.outcome.grown += 1;
                self.oracle.growing.clear();
                self.oracle
                    .shapes
                    .iter_mut()
                    .zip(0..)
                    .for_each(|(shape, shard)| *shape = after.sibling(shard));
                self.adopt_size()
            }
            Err(GrowError::NotWhole { .. }) if !was_whole => Ok(()),
            Err(GrowError::TooSmall { .. }) if planned.is_none() => Ok(()),
            Err(GrowError::MemberFailed { .. }) if may_fail => {
                // Some shards may have grown before.
                let several = planned.filter(|_| self.shard_count() > 1);
                self.may_have_become(several);
                Ok(())
            }
            Err(GrowError::Assemble(AssembleError::MemberFull { .. })) if self.world.look().lacked_room() => {
                self.may_have_become(planned);
                Ok(())
            }
            Err(error) => Err(violation!(
                "it does not grow: {error}; members {:?}, {} may be hurt",
                arrangements.iter().map(|arrangement| &arrangement.members).collect::<Vec<_>>(),
                self.suspects.len()
            )),
        }
    }

    /// Each shard is as it was, or as it was to become.
    fn may_have_become(&mut self, planned: Option<ArrayConfig>) {
        let each = self.shards().into_iter().filter_map(|shard| planned.map(|shape| shape.sibling(shard)));
        let each: Vec<ArrayConfig> = each.collect();
        self.oracle.growing.extend(each);
    }

    fn check_size(&self, found: ArrayConfig) -> Result<(), Violation> {
        if found == self.shape_of(found.shard.index) || self.oracle.growing.contains(&found) {
            return Ok(());
        }
        Err(violation!("the array has neither its old size nor its new one: {found:?}"))
    }

    /// Shards are found to have these sizes. That may be known to a single member, and lost with it, until
    /// they have been assembled.
    pub fn find_sizes(&mut self, arrangements: &[Arrangement]) -> Result<(), Violation> {
        for (shard, arrangement) in arrangements.iter().enumerate() {
            let found = arrangement.newest.config;
            self.check_size(found)?;
            let before = std::mem::replace(&mut self.oracle.shapes[shard], found);
            if before != found {
                self.oracle.growing.push(before);
            }
        }
        Ok(())
    }

    /// A shard was assembled, and has this size from now on.
    pub fn note_size(&mut self, found: ArrayConfig) -> Result<(), Violation> {
        self.check_size(found)?;
        let index = found.shard.index;
        self.oracle.growing.retain(|shape| shape.shard.index != index);
        self.oracle.shapes[usize::from(index)] = found;
        self.adopt_size()
    }

    /// The volume is as large as the smallest shard allows.
    fn adopt_size(&mut self) -> Result<(), Violation> {
        let larger = |pair: &[ArrayConfig]| pair[0].volume_bytes() > pair[1].volume_bytes();
        if self.oracle.growing.is_empty() && self.oracle.shapes.windows(2).any(larger) {
            return Err(violation!(
                "a shard is larger than one that grows before it: {:?}",
                self.oracle.shapes
            ));
        }
        let may_be = self.oracle.shapes.iter().chain(&self.oracle.growing);
        let Some(&smallest) = may_be.min_by_key(|shape| shape.volume_bytes()) else { return Ok(()) };
        if smallest.has_grown() && smallest.sibling(0) != self.swarm.config {
            let sectors = usize::try_from(smallest.whole_volume_bytes() / SECTOR_BYTES);
            self.oracle.enlarge(sectors.map_err(|_| violation!("a volume too large to be simulated"))?);
            self.world.change().set_data_end(smallest.data_end());
            self.swarm.config = smallest.sibling(0);
        }
        Ok(())
    }
}
