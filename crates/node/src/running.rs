//! An array that runs: its shards as one volume.
//!
//! With one shard everything passes through to it. With several, each has buffers of its own, so what clients
//! send and get is copied between those and the buffers here, and a shard that stands still keeps only its
//! own requests waiting.

use crate::driver::Devices;
use crate::error::Error;
use crate::open::worst;
use crate::volume::{Clock, ServedShard, Use};
use array::{
    Array, ArrayState, Done as EngineDone, Engine, EngineError, Fan, MemberErrors, MemberTrouble,
    members_to_fail,
};
use block::slab::{Key, Slab};
use block::{DevIndex, DeviceSet as _, Interleave, Place, Pool, Slot};
use device::{DeviceCounters, Members, Membership as _};
use format::MemberState;
use front::{Done, Volume, VolumeError, VolumeRequest};
use rustix::event::epoll;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Extents reported at once.
const EXTENTS_MAX: usize = 1024;
/// Bytes of buffers for what clients send and get, with several shards.
const BUFFER_BYTES: usize = 32 << 20;

/// A shard as it is served.
pub type Shard = ServedShard<Devices>;

/// A read or write on its way through a shard.
#[derive(Default)]
struct Transfer {
    tag: u64,
    shard: usize,
    /// As the shard is asked, in its own addresses.
    request: Option<VolumeRequest>,
    /// The front end's buffers, and the shard's; none of the latter while it waits for them.
    outer: Vec<Slot>,
    inner: Vec<Slot>,
}

/// What only an array of several shards needs.
struct Several {
    pool: Pool,
    transfers: Slab<Transfer>,
    /// Of each shard, transfers that wait for buffers.
    waiting: Vec<VecDeque<Key<Transfer>>>,
    fan: Fan<VolumeError>,
    done: Vec<Done>,
    early: Vec<Done>,
    /// Readable when one of the shards' devices has news.
    wake: Option<OwnedFd>,
}

/// An order to all shards that some have not answered.
struct Order {
    tag: u64,
    /// Of each shard the tag that it knows it by, until it has answered.
    parts: Vec<Option<u64>>,
    result: Result<(), EngineError>,
}

/// See the module's documentation.
pub struct Running {
    shards: Vec<Shard>,
    map: Interleave,
    clock: Clock,
    usage: Use,
    orders: Vec<Order>,
    orders_so_far: u64,
    answers: Vec<EngineDone>,
    /// With one shard nothing of this exists.
    several: Option<Box<Several>>,
}

/// Whether the front end wakes up by itself when devices have news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// Yes: an event tells it.
    Event,
    /// No: whoever drives the array waits for its devices.
    Never,
}

impl Running {
    /// Runs the array that consists of `shards`, in their order.
    pub fn new(mut arrays: Vec<Array<Devices>>, wake: Wake, usage: Use) -> io::Result<Self> {
        let clock = Clock::start();
        let map = arrays[0].engine_ref().store().config.interleave();
        let chunk_bytes = arrays[0].engine_ref().store().config.geometry.chunk_bytes();
        let mut wakes = Vec::new();
        for array in &mut arrays {
            wakes.push(match wake {
                Wake::Event => Some(array.devices().wake_fd()?.try_clone_to_owned()?),
                Wake::Never => None,
            });
        }
        let several = if arrays.len() > 1 {
            Some(Box::new(Several {
                pool: Pool::new(chunk_bytes, BUFFER_BYTES / chunk_bytes),
                transfers: Slab::default(),
                waiting: arrays.iter().map(|_| VecDeque::new()).collect(),
                fan: Fan::default(),
                done: Vec::new(),
                early: Vec::new(),
                wake: watch_all(wakes.iter().flatten())?,
            }))
        } else {
            None
        };
        let shards = arrays
            .into_iter()
            .zip(wakes)
            .map(|(array, wake)| ServedShard::new(array, clock, wake, usage))
            .collect();
        let (orders, answers) = (Vec::new(), Vec::new());
        Ok(Self { shards, map, clock, usage, orders, orders_so_far: 0, answers, several })
    }

    /// The shards.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The shards, to be changed.
    pub fn shards_mut(&mut self) -> &mut [Shard] {
        &mut self.shards
    }

    /// Their engines.
    pub fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.shards.iter().map(ServedShard::engine_ref)
    }

    /// Their engines, to be told something.
    pub fn engines_mut(&mut self) -> impl Iterator<Item = &mut Engine> {
        self.shards.iter_mut().map(ServedShard::engine)
    }

    /// The engine of the first shard, for what all have in common: shape, names, who is who.
    pub fn lead(&self) -> &Engine {
        self.shards[0].engine_ref()
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
        self.shards[0].devices_ref().members()
    }

    /// What passed to a member and from it.
    pub fn traffic_of(&self, dev: DevIndex) -> DeviceCounters {
        let mut total = DeviceCounters::default();
        self.shards.iter().for_each(|shard| total += shard.devices_ref().device(dev));
        total
    }

    /// What holds up requests at a member, in whatever shard.
    pub fn trouble_of(&self, dev: DevIndex) -> MemberTrouble {
        let of_shards = self.engines().map(|engine| engine.member_trouble(dev));
        of_shards.reduce(MemberTrouble::and).expect("an array has a shard")
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

    /// Operations under way on a member.
    pub fn in_flight(&self, dev: DevIndex) -> u32 {
        self.engines().map(|engine| engine.in_flight(dev)).sum()
    }

    /// Takes a member out of service in every shard.
    pub fn fail_device(&mut self, dev: DevIndex) {
        self.engines_mut().for_each(|engine| engine.fail_device(dev));
    }

    /// What one shard has given up, all give up that bear it.
    pub fn level(&mut self) {
        if self.shards.len() == 1 {
            return;
        }
        let healths: Vec<_> = self.engines().map(Engine::health).collect();
        for (shard, dev) in members_to_fail(&healths) {
            self.shards[shard].engine().fail_device(dev);
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
        let parts = self.shards.iter_mut().map(|shard| Some(shard.control(&mut start))).collect();
        self.orders.push(Order { tag, parts, result: Ok(()) });
        tag
    }

    /// Answers to control requests since the last call.
    pub fn take_control_answers(&mut self) -> Vec<EngineDone> {
        std::mem::take(&mut self.answers)
    }

    /// Nanoseconds since serving began.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Stops the array in order: every shard, also when one of them could not be.
    pub fn stop(&mut self) -> Result<(), Error> {
        let stopped: Vec<_> = self.shards.iter_mut().map(ServedShard::stop).collect();
        stopped.into_iter().collect()
    }

    /// An error of the engine with the member's name, as operators know it.
    pub fn named(&self, error: EngineError) -> Error {
        self.shards[0].named(error)
    }

    /// Waits for devices, but no longer than so many nanoseconds in all.
    pub fn wait_for_devices(&mut self, timeout_ns: u64) {
        let share_ns = timeout_ns / u64::from(self.map.count());
        self.shards.iter_mut().for_each(|shard| shard.array().devices().wait(share_ns));
    }

    fn gather_control_answers(&mut self) {
        for (index, shard) in self.shards.iter_mut().enumerate() {
            for answer in shard.take_control_answers() {
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

/// An event that is readable while one of `events` is.
fn watch_all<'a>(events: impl Iterator<Item = &'a OwnedFd>) -> io::Result<Option<OwnedFd>> {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut watched = false;
    for event in events {
        epoll::add(&all, event, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        watched = true;
    }
    Ok(watched.then_some(all))
}

impl Several {
    /// Takes a read or write in, and hands it to its shard if that has buffers for it.
    fn transfer(
        &mut self,
        shards: &mut [Shard],
        tag: u64,
        place: Place,
        request: VolumeRequest,
        slots: &[Slot],
    ) {
        let key = self.transfers.reuse(Transfer::default);
        let transfer = &mut self.transfers[key];
        transfer.tag = tag;
        transfer.shard = usize::from(place.shard);
        transfer.request = Some(request);
        transfer.outer.clear();
        transfer.outer.extend_from_slice(slots);
        let shard = transfer.shard;
        if !self.waiting[shard].is_empty() || !self.hand_over(shards, key) {
            self.waiting[shard].push_back(key);
        }
    }

    /// Hands a transfer to its shard; `false` if that has no buffers for it.
    fn hand_over(&mut self, shards: &mut [Shard], key: Key<Transfer>) -> bool {
        let transfer = &mut self.transfers[key];
        let shard = &mut shards[transfer.shard];
        if !shard.engine().take_slots(transfer.outer.len(), &mut transfer.inner) {
            return false;
        }
        let request = transfer.request.take().expect("it was not handed over yet");
        if matches!(request, VolumeRequest::Write { .. }) {
            for (&outer, &inner) in transfer.outer.iter().zip(&transfer.inner) {
                shard.engine().pool().bytes_mut(inner).copy_from_slice(self.pool.bytes(outer));
            }
        }
        shard.start(key.index().into(), request, &transfer.inner);
        true
    }

    fn retry_waiting(&mut self, shards: &mut [Shard]) {
        for index in 0..shards.len() {
            while let Some(&key) = self.waiting[index].front() {
                if !self.hand_over(shards, key) {
                    break;
                }
                self.waiting[index].pop_front();
            }
        }
    }

    /// A shard has ended a transfer.
    fn end(&mut self, shard: &mut Shard, done: Done) -> Done {
        let index = u32::try_from(done.tag).expect("tags of transfers are made here");
        let key = Key::from_index(index);
        let transfer = &mut self.transfers[key];
        for (&outer, inner) in transfer.outer.iter().zip(transfer.inner.drain(..)) {
            if done.result.is_ok() {
                self.pool.bytes_mut(outer).copy_from_slice(shard.engine().pool().bytes(inner));
            }
            shard.engine().pool().free(inner);
        }
        let tag = transfer.tag;
        self.transfers.release(key);
        Done { tag, result: done.result }
    }
}

impl Volume for Running {
    fn size_bytes(&self) -> u64 {
        self.map.volume_bytes()
    }

    fn chunk_bytes(&self) -> usize {
        self.shards[0].chunk_bytes()
    }

    fn untorn_bytes(&self) -> u64 {
        self.shards[0].untorn_bytes()
    }

    fn unit_bytes(&self) -> Option<u64> {
        self.several.is_some().then(|| self.map.run_bytes(0))
    }

    fn read_only(&self) -> bool {
        self.usage == Use::ReadOnly
    }

    fn pool(&mut self) -> &mut Pool {
        match &mut self.several {
            Some(several) => &mut several.pool,
            None => self.shards[0].pool(),
        }
    }

    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        let Some(several) = &mut self.several else {
            return self.shards[0].start(tag, request, slots);
        };
        let map = self.map;
        let mut share_out = |offset_bytes, length_bytes, part: &dyn Fn(u64, u64) -> VolumeRequest| {
            let shares = || map.shares(offset_bytes, length_bytes);
            match shares().count() {
                0 => several.early.push(Done { tag, result: Ok(()) }),
                count => {
                    let part_tag = several.fan.begin(tag, count);
                    for share in shares() {
                        let what = part(share.offset_bytes, share.length_bytes);
                        self.shards[usize::from(share.shard)].start(part_tag, what, &[]);
                    }
                }
            }
        };
        match request {
            VolumeRequest::Read { offset_bytes, length_bytes } => {
                let place = map.place(offset_bytes);
                let what = VolumeRequest::Read { offset_bytes: place.offset_bytes, length_bytes };
                several.transfer(&mut self.shards, tag, place, what, slots);
            }
            VolumeRequest::Write { offset_bytes, length_bytes, durability } => {
                let place = map.place(offset_bytes);
                let what =
                    VolumeRequest::Write { offset_bytes: place.offset_bytes, length_bytes, durability };
                several.transfer(&mut self.shards, tag, place, what, slots);
            }
            VolumeRequest::Flush => {
                let part_tag = several.fan.begin(tag, self.shards.len());
                self.shards.iter_mut().for_each(|shard| shard.start(part_tag, VolumeRequest::Flush, &[]));
            }
            VolumeRequest::Cache { .. } => several.early.push(Done { tag, result: Ok(()) }),
            VolumeRequest::Discard { offset_bytes, length_bytes, durability } => {
                share_out(offset_bytes, length_bytes, &|offset_bytes, length_bytes| VolumeRequest::Discard {
                    offset_bytes,
                    length_bytes,
                    durability,
                });
            }
            VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability } => {
                share_out(offset_bytes, length_bytes, &|offset_bytes, length_bytes| {
                    VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability }
                });
            }
        }
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        match &mut self.several {
            None => self.shards[0].drive(done),
            Some(several) => {
                done.append(&mut several.early);
                several.retry_waiting(&mut self.shards);
                for shard in &mut self.shards {
                    let mut ended = std::mem::take(&mut several.done);
                    shard.drive(&mut ended);
                    for answer in ended.drain(..) {
                        if !Fan::<VolumeError>::is_part(answer.tag) {
                            done.push(several.end(shard, answer));
                        } else if let Some((tag, result)) = several.fan.end(answer.tag, answer.result) {
                            done.push(Done { tag, result });
                        }
                    }
                    several.done = ended;
                }
            }
        }
        self.gather_control_answers();
    }

    fn idle_for(&self) -> Option<u64> {
        if let Some(several) = &self.several {
            let next = |(queue, shard): (&VecDeque<Key<Transfer>>, &Shard)| {
                let key = *queue.front()?;
                Some(shard.engine_ref().has_slots(several.transfers[key].outer.len()))
            };
            let startable = several.waiting.iter().zip(&self.shards).filter_map(next).any(|ready| ready);
            if startable || !several.early.is_empty() {
                return Some(0);
            }
        }
        if !self.answers.is_empty() {
            return Some(0);
        }
        self.shards.iter().filter_map(Volume::idle_for).min()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.several {
            Some(several) => several.wake.as_ref().map(AsFd::as_fd),
            None => self.shards[0].wake_fd(),
        }
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        if self.several.is_none() {
            return self.shards[0].allocated(offset_bytes, length_bytes, out);
        }
        let (end, first) = (offset_bytes + length_bytes, out.len());
        let (mut at, mut run) = (offset_bytes, Vec::new());
        while at < end && out.len() - first < EXTENTS_MAX {
            let length = self.map.run_bytes(at).min(end - at);
            let Place { shard, offset_bytes } = self.map.place(at);
            self.shards[usize::from(shard)].allocated(offset_bytes, length, &mut run);
            for (length, hole) in run.drain(..) {
                at += length;
                match out[first..].last_mut() {
                    Some((before, same)) if *same == hole => *before += length,
                    Some(_) | None => out.push((length, hole)),
                }
            }
        }
    }
}
