//! Devices become larger while the machine is off, and the array is told to grow: power fails at any
//! operation of that, devices fail, and the array is as large as it was or as it was to become, whole; what
//! it said it has become it stays.

use crate::Rng;
use crate::machine::Machine;
use crate::swarm::is_resync;
use crate::violation;
use crate::violation::Violation;
use array::{Arrangement, AssembleError, GrowError, grow, grown_config};
use block::{DevIndex, Random as _, SECTOR_BYTES, mix};
use format::{ArrayConfig, MemberState};

/// Chunks by which devices become larger.
const MORE_CHUNKS: [u64; 5] = [1, 16, 60, 150, 300];
/// Attempts between two sessions at most.
const ATTEMPTS_MAX: u64 = 3;
/// Stripes from which on an array is large enough: all of it is read over and over.
const STRIPES_MAX: u64 = 1500;

impl Machine {
    /// Perhaps the devices become larger, once or more often, and the array grows.
    pub fn grow_up(&mut self, trouble: bool) -> Result<(), Violation> {
        // From a generator of its own: worlds that do not grow stay what they were before this was drawn.
        let mut rng = self.rng.clone().fork();
        // Who has succeeded whom is decided by an assembly, which makes it durable.
        let may_grow = self.shard_count() == 1 && self.succeeded.is_none() && !is_resync(&self.swarm.config);
        for _ in 0..ATTEMPTS_MAX {
            let is_large = self.swarm.config.stripe_count > STRIPES_MAX;
            if !may_grow || is_large || !rng.chance(self.swarm.odds.grow, 1000) {
                break;
            }
            let more_bytes = rng.pick(&MORE_CHUNKS) * self.swarm.config.chunk_bytes();
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
        let Some(arrangement) = self.attach()?.into_iter().next() else { return Ok(()) };
        // If power failed in the middle, whoever tries again plans by what is there.
        let before = arrangement.newest.config;
        self.check_size(before)?;
        let mains = (0u16..).map(DevIndex::new).take(before.geometry.device_count());
        let sizes: Vec<u64> = mains.map(|dev| self.world.look().size_bytes(0, dev)).collect();
        let planned = grown_config(&before, &sizes).ok();
        if self.swarm.crashes && trouble && rng.chance(2, 3) {
            let events = rng.below(rng.clone().pick(&[100, 400, 1500]));
            self.say(|| format!("power will fail {events} operations into the growth"));
            self.world.change().crash_after(events);
        } else if self.swarm.faults && trouble && rng.chance(1, 4) {
            self.trap_assembly();
        }
        let nonce = mix(rng.word());
        let was_whole = arrangement.members.iter().all(|entry| entry.state == MemberState::Healthy);
        let result = grow(&mut self.devices_of(0), &arrangement, nonce, &mut || Ok(()));
        self.say(|| format!("grown: {:?}", result.as_ref().map(|(after, _)| after.stripe_count)));
        if self.world.look().is_crashed() {
            self.oracle.growing.extend(planned);
            self.power_off();
            return Ok(());
        }
        self.judge_growth(&arrangement, was_whole, planned, result.map(|(after, _)| after))
    }

    /// What became of it, power having stayed.
    fn judge_growth(
        &mut self,
        arrangement: &Arrangement,
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
                self.adopt_size(after)
            }
            Err(GrowError::NotWhole { .. }) if !was_whole => Ok(()),
            Err(GrowError::TooSmall { .. }) if planned.is_none() => Ok(()),
            Err(GrowError::MemberFailed { .. }) if may_fail => Ok(()),
            Err(GrowError::Assemble(AssembleError::MemberFull { .. })) if self.world.look().lacked_room() => {
                self.oracle.growing.extend(planned);
                Ok(())
            }
            Err(error) => Err(violation!(
                "it does not grow: {error}; members {:?}, {} may be hurt",
                arrangement.members,
                self.suspects.len()
            )),
        }
    }

    /// The array is as it was, or as it was to become.
    fn check_size(&self, found: ArrayConfig) -> Result<(), Violation> {
        if found == self.swarm.config || self.oracle.growing.contains(&found) {
            return Ok(());
        }
        Err(violation!("the array has neither its old size nor its new one: {found:?}"))
    }

    /// The array was assembled, and has this size from now on.
    pub fn note_size(&mut self, found: ArrayConfig) -> Result<(), Violation> {
        if self.shard_count() > 1 {
            return Ok(());
        }
        self.check_size(found)?;
        self.oracle.growing.clear();
        if found != self.swarm.config { self.adopt_size(found) } else { Ok(()) }
    }

    fn adopt_size(&mut self, after: ArrayConfig) -> Result<(), Violation> {
        let sectors = usize::try_from(after.whole_volume_bytes() / SECTOR_BYTES);
        self.oracle.enlarge(sectors.map_err(|_| violation!("a volume too large to be simulated"))?);
        self.world.change().set_data_end(after.data_end());
        self.swarm.config = after;
        Ok(())
    }
}
