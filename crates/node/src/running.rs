//! An array that runs, for whoever looks after it: all its shards, wherever they are run.
//!
//! They run on this thread (`room`) or on threads of their own (`crew`). In the latter case their engines
//! are here only during [`Plant::visit`], when nothing moves; their devices stay where they are.

mod crew;
mod hand;
mod plant;
mod room;
mod seated;

pub use plant::{Clients, Manner, Plant};
pub use room::{Room, watch_all};
pub use seated::{Seated, Shards, Work};

use crate::driver::{Devices, Idle, extend};
use crate::error::Error;
use crate::open::worst;
use crate::volume::{Clock, Gate, ServedShard, Use, named};
use array::{
    Array, ArrayState, Done as EngineDone, Engine, EngineError, MemberErrors, MemberTrouble, Replacing, Seat,
    members_to_fail,
};
use block::{DevIndex, Interleave};
use crew::Crew;
use device::{DeviceCounters, Member, Members, Membership as _};
use format::{ArrayConfig, MemberState};
use front::{Bell, Done, Size, Volume as _};
use hand::awake;
use std::sync::Arc;

/// A shard whose devices are here, too.
pub type Shard = ServedShard<Devices>;

/// An order to all shards that some have not answered.
struct Order {
    tag: u64,
    /// Of each shard the tag that it knows it by, until it has answered.
    parts: Vec<Option<u64>>,
    result: Result<(), EngineError>,
}

/// Where the shards run.
enum Place {
    Here(Room),
    Threads(Crew),
}

/// See the module's documentation.
pub struct Running {
    place: Place,
    map: Interleave,
    /// What the map says of it, for threads that serve clients.
    size: Arc<Size>,
    clock: Clock,
    orders: Vec<Order>,
    orders_so_far: u64,
    answers: Vec<EngineDone>,
}

impl Running {
    /// Runs the array that consists of `shards`, in their order, on this thread.
    pub fn here(shards: Vec<Idle>, usage: Use) -> Result<Self, Error> {
        let (clock, map) = (Clock::start(), map_of(&shards));
        let shards = shards.into_iter().map(|idle| awake(idle, clock, usage)).collect::<Result<_, _>>()?;
        let room = Room::new(shards, (0, 1), Arc::new(Bell::new()?))?;
        Ok(Self::of(Place::Here(room), map, clock))
    }

    /// Runs it on so many threads, which are fewer than there are shards, or as many.
    fn on_threads(shards: Vec<Idle>, count: usize, usage: Use) -> Result<Self, Error> {
        let (clock, map) = (Clock::start(), map_of(&shards));
        Ok(Self::of(Place::Threads(Crew::hire(shards, count, clock, usage)?), map, clock))
    }

    fn of(place: Place, map: Interleave, clock: Clock) -> Self {
        let size = Arc::new(Size::new(map.volume_bytes()));
        Self { place, map, size, clock, orders: Vec::new(), orders_so_far: 0, answers: Vec::new() }
    }

    /// Does everything that can be done now, if the shards run here.
    pub fn drive(&mut self) {
        if let Place::Here(room) = &mut self.place {
            room.drive();
            self.gather_control_answers();
        }
    }

    /// In how many nanoseconds the shards here want to be driven again by themselves.
    pub fn idle_for(&self) -> Option<u64> {
        match &self.place {
            _ if !self.answers.is_empty() => Some(0),
            Place::Here(room) => room.idle_for(),
            Place::Threads(_) => None,
        }
    }

    /// The shard of an array that has one, which runs here.
    fn only_shard(&self) -> &Shard {
        match &self.place {
            Place::Here(room) => &room.shards()[0],
            Place::Threads(_) => unreachable!("a single shard is not moved to another thread"),
        }
    }

    fn only_shard_mut(&mut self) -> &mut Shard {
        match &mut self.place {
            Place::Here(room) => &mut room.shards_mut()[0],
            Place::Threads(_) => unreachable!("a single shard is not moved to another thread"),
        }
    }

    /// Does everything that can be done now for clients that have the only shard to themselves.
    fn drive_only(&mut self, done: &mut Vec<Done>) {
        self.only_shard_mut().drive(done);
        self.gather_control_answers();
    }

    /// In how many nanoseconds it wants to be driven again by itself.
    fn idle_only(&self) -> Option<u64> {
        if self.answers.is_empty() { self.only_shard().idle_for() } else { Some(0) }
    }

    /// Sleeps until shards here are to be driven, no longer than so many nanoseconds.
    pub fn sleep(&self, timeout_ns: u64) -> Result<(), Error> {
        match &self.place {
            Place::Here(room) => Ok(room.sleep(Some(timeout_ns))?),
            Place::Threads(_) => Ok(()),
        }
    }

    /// Their engines.
    pub fn engines(&self) -> impl Iterator<Item = &Engine> {
        let (here, lent) = match &self.place {
            Place::Here(room) => (room.shards(), &[][..]),
            Place::Threads(crew) => (&[][..], crew.lent()),
        };
        here.iter().map(ServedShard::engine_ref).chain(lent.iter().map(ServedShard::engine_ref))
    }

    /// Their engines, to be told something.
    pub fn engines_mut(&mut self) -> impl Iterator<Item = &mut Engine> {
        let (here, lent) = match &mut self.place {
            Place::Here(room) => (room.shards_mut(), &mut [][..]),
            Place::Threads(crew) => (&mut [][..], crew.lent_mut()),
        };
        here.iter_mut().map(ServedShard::engine).chain(lent.iter_mut().map(ServedShard::engine))
    }

    /// The engine of the first shard, for what all have in common: shape, names, who is who.
    pub fn lead(&self) -> &Engine {
        self.engine(0)
    }

    /// The engine of a shard.
    pub fn engine(&self, shard: usize) -> &Engine {
        match &self.place {
            Place::Here(room) => room.shards()[shard].engine_ref(),
            Place::Threads(crew) => crew.lent()[shard].engine_ref(),
        }
    }

    /// The engine of a shard, to be told something.
    pub fn engine_mut(&mut self, shard: usize) -> &mut Engine {
        match &mut self.place {
            Place::Here(room) => room.shards_mut()[shard].engine(),
            Place::Threads(crew) => crew.lent_mut()[shard].engine(),
        }
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.map.count().into()
    }

    /// How addresses go to the shards.
    pub fn interleave(&self) -> Interleave {
        self.map
    }

    /// Members, log devices included.
    pub fn members(&self) -> impl Iterator<Item = DevIndex> + use<> {
        (0u16..).take(self.lead().health().members().len()).map(DevIndex::new)
    }

    /// How a member is: out of service if any shard does without it, being rebuilt if any does that.
    pub fn member_state(&self, dev: DevIndex) -> MemberState {
        worst(self.engines().map(|engine| engine.health().state(dev)))
    }

    /// What a member did wrong, in all shards together.
    pub fn errors_of(&self, dev: DevIndex) -> MemberErrors {
        let of_shards = self.engines().map(|engine| engine.health().members()[dev.index()].errors);
        of_shards.fold(MemberErrors::default(), MemberErrors::and)
    }

    /// The members as they are open.
    pub fn open_members(&self) -> &Members {
        self.members_of(0)
    }

    fn members_of(&self, shard: usize) -> &Members {
        match &self.place {
            Place::Here(room) => room.shards()[shard].devices_ref().members(),
            Place::Threads(crew) => crew.members(shard),
        }
    }

    /// A member's device, whichever shards have it open.
    pub fn open_device(&self, dev: DevIndex) -> Option<Member> {
        (0..self.shard_count()).find_map(|shard| self.members_of(shard).get(dev).cloned())
    }

    /// Whether a shard has a member's device open.
    pub fn has_open(&self, shard: usize, dev: DevIndex) -> bool {
        self.members_of(shard).get(dev).is_some()
    }

    /// Does something with the devices of a shard, on their thread.
    pub fn with_devices<R: Send + 'static>(
        &mut self,
        shard: usize,
        work: impl FnOnce(&mut Devices) -> R + Send + 'static,
    ) -> Result<R, Error> {
        match &mut self.place {
            Place::Here(room) => Ok(work(room.shards_mut()[shard].array().devices())),
            Place::Threads(crew) => crew.with_devices(shard, work),
        }
    }

    /// What passed to a member and from it.
    pub fn traffic_of(&self, dev: DevIndex) -> DeviceCounters {
        let mut total = DeviceCounters::default();
        match &self.place {
            Place::Here(room) => {
                room.shards().iter().for_each(|shard| total += shard.devices_ref().inner().device(dev));
            }
            Place::Threads(crew) => crew.counters_of(dev).for_each(|counters| total += counters),
        }
        total
    }

    /// What holds up requests at a member, in whatever shard.
    pub fn trouble_of(&self, dev: DevIndex) -> MemberTrouble {
        let of_shards = self.engines().map(|engine| engine.member_trouble(dev));
        of_shards.reduce(MemberTrouble::and).expect("an array has a shard")
    }

    /// Whether any shard works on a member.
    pub fn is_in_service(&self, dev: DevIndex) -> bool {
        self.engines().any(|engine| engine.health().is_writable(dev))
    }

    /// Whether every shard has given a member up.
    pub fn is_failed_everywhere(&self, dev: DevIndex) -> bool {
        self.engines().all(|engine| engine.health().state(dev) == MemberState::Failed)
    }

    /// Members that some shard lacks, wholly or in part.
    pub fn missing_count(&self) -> usize {
        self.members().filter(|&dev| self.member_state(dev) != MemberState::Healthy).count()
    }

    /// The state of the shard that is worst off.
    pub fn array_state(&self) -> ArrayState {
        let rank = |state: &ArrayState| match state {
            ArrayState::Healthy => 0,
            ArrayState::Degraded => 1,
            ArrayState::Failed => 2,
        };
        let states = self.engines().map(|engine| engine.health().array_state());
        states.max_by_key(rank).expect("an array has a shard")
    }

    /// Whether all of it takes writes.
    pub fn accepts_writes(&self) -> bool {
        self.engines().all(Engine::accepts_writes)
    }

    /// A member's place as each shard sees it.
    pub fn seats(&self, dev: DevIndex) -> Vec<Seat> {
        self.engines().map(|engine| Seat::of(engine, dev)).collect()
    }

    /// Another device is to take a member's place; the other result is a shard that needs the member.
    pub fn replacing(&self, dev: DevIndex) -> Result<Replacing, usize> {
        Replacing::begin(dev, &self.engines().map(Engine::health).collect::<Vec<_>>())
    }

    /// The device of a member that left is to come back to the shards that gave it up.
    pub fn coming_back(&self, dev: DevIndex) -> Replacing {
        Replacing::back(dev, &self.engines().map(Engine::health).collect::<Vec<_>>())
    }

    /// The device of a member is to be one again in the shards that gave it up.
    pub fn returning(&self, dev: DevIndex) -> Replacing {
        Replacing::again(dev, &self.engines().map(Engine::health).collect::<Vec<_>>())
    }

    /// The device of a member, as any shard has it open.
    pub fn device_of(&self, dev: DevIndex) -> Option<Member> {
        (0..self.shard_count()).find_map(|shard| self.members_of(shard).get(dev).cloned())
    }

    /// Takes a member out of service in every shard.
    pub fn fail_device(&mut self, dev: DevIndex) {
        self.engines_mut().for_each(|engine| engine.fail_device(dev));
    }

    /// What one shard has given up, all give up that bear it; not so members that are being replaced.
    pub fn level(&mut self, being_replaced: &[DevIndex]) {
        if self.map.count() == 1 {
            return;
        }
        let healths: Vec<_> = self.engines().map(Engine::health).collect();
        let mut found = members_to_fail(&healths);
        found.retain(|(_, dev)| !being_replaced.contains(dev));
        for (shard, dev) in found {
            self.engine_mut(shard).fail_device(dev);
        }
    }

    /// Changes the limit of rebuild and scrub; each shard has its part of it.
    pub fn set_rebuild_rate(&mut self, bytes_per_s: Option<u64>) {
        let share = bytes_per_s.map(|rate| (rate / u64::from(self.map.count())).max(1));
        self.engines_mut().for_each(|engine| engine.set_rebuild_rate(share));
    }

    /// How much of a rebuild is done, in percent.
    pub fn rebuilt_percent(&self) -> u64 {
        self.engines().map(Engine::rebuilt_percent).sum::<u64>() / u64::from(self.map.count())
    }

    /// Gives up what maintenance is under way, before a stop.
    pub fn halt_maintenance(&mut self) {
        self.engines_mut().for_each(Engine::halt_maintenance);
    }

    /// Starts a control request in every shard; its answer comes from
    /// [`Running::take_control_answers`] when all have answered.
    pub fn control(&mut self, mut start: impl FnMut(&mut Engine, u64)) -> u64 {
        self.orders_so_far += 1;
        let tag = self.orders_so_far;
        let parts = (0..self.shard_count()).map(|shard| Some(self.control_one(shard, &mut start))).collect();
        self.orders.push(Order { tag, parts, result: Ok(()) });
        tag
    }

    /// The same in one shard, whose answer nobody waits for.
    pub fn control_one(&mut self, shard: usize, start: impl FnOnce(&mut Engine, u64)) -> u64 {
        match &mut self.place {
            Place::Here(room) => room.shards_mut()[shard].control(start),
            Place::Threads(crew) => crew.lent_mut()[shard].control(start),
        }
    }

    /// Answers to control requests since the last call.
    pub fn take_control_answers(&mut self) -> Vec<EngineDone> {
        std::mem::take(&mut self.answers)
    }

    /// Nanoseconds since serving began.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Opens or closes the gate for clients before all shards.
    pub fn set_gate(&mut self, gate: Gate) {
        match &mut self.place {
            Place::Here(room) => room.shards_mut().iter_mut().for_each(|shard| shard.set_gate(gate)),
            Place::Threads(crew) => crew.lent_mut().iter_mut().for_each(|shard| shard.set_gate(gate)),
        }
    }

    /// Whether the engines have nothing of clients.
    pub fn is_quiet(&self) -> bool {
        match &self.place {
            Place::Here(room) => room.shards().iter().all(ServedShard::is_quiet),
            Place::Threads(crew) => crew.lent().iter().all(ServedShard::is_quiet),
        }
    }

    /// Whether they have nothing at all, and their devices neither.
    pub fn is_at_rest(&self) -> bool {
        match &self.place {
            Place::Here(room) => room.shards().iter().all(ServedShard::is_at_rest),
            Place::Threads(crew) => crew.lent().iter().all(ServedShard::is_at_rest),
        }
    }

    /// The shards, which are at rest, go on as these, in order, which were assembled meanwhile and may have
    /// become larger.
    pub fn go_on_as(&mut self, arrays: Vec<Array<()>>) -> Result<(), Error> {
        let shapes = arrays.iter().map(|array| &array.engine_ref().store().config);
        let map = ArrayConfig::interleave_of(shapes).expect("an array has a shard");
        for (shard, array) in arrays.into_iter().enumerate() {
            let slices = array.engine_ref().store().config.slice_extents();
            self.with_devices(shard, move |devices| extend(devices, slices))?;
            match &mut self.place {
                Place::Here(room) => room.shards_mut()[shard].go_on_as(array),
                Place::Threads(crew) => crew.lent_mut()[shard].go_on_as(array),
            }
        }
        self.map = map;
        self.size.set(map.volume_bytes());
        Ok(())
    }

    /// Stops the array in order: every shard, also when one of them could not be.
    pub fn stop(self) -> Result<(), Error> {
        match self.place {
            Place::Here(room) => room.stop(),
            Place::Threads(crew) => crew.stop(),
        }
    }

    /// An error of the engine with the member's name, as operators know it.
    pub fn named(&self, error: EngineError) -> Error {
        named(self.lead().store().main_count(), error)
    }

    fn gather_control_answers(&mut self) {
        for index in 0..self.shard_count() {
            let answers = match &mut self.place {
                Place::Here(room) => room.shards_mut()[index].take_control_answers(),
                Place::Threads(crew) => crew.lent_mut()[index].take_control_answers(),
            };
            for answer in answers {
                let Some(order) = self.orders.iter_mut().find(|order| order.parts[index] == Some(answer.tag))
                else {
                    continue;
                };
                order.parts[index] = None;
                order.result = order.result.and(answer.result);
            }
        }
        let answers = &mut self.answers;
        self.orders.retain(|order| {
            let over = order.parts.iter().all(Option::is_none);
            if over {
                answers.push(EngineDone { tag: order.tag, result: order.result });
            }
            !over
        });
    }
}

/// How the addresses of an array go to its shards, some of which may have grown already.
fn map_of(shards: &[Idle]) -> Interleave {
    let shapes = shards.iter().map(|idle| &idle.array().engine_ref().store().config);
    ArrayConfig::interleave_of(shapes).expect("an array has a shard")
}
