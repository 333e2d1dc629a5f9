//! An array that runs: its shards as one volume.
//!
//! With one shard everything passes through to it. With several, each has buffers of its own, so what clients
//! send and get is copied between those and the buffers here, and a shard that stands still keeps only its
//! own requests waiting.

use crate::driver::Devices;
use crate::error::Error;
use crate::open::worst;
use crate::volume::{Clock, ServedShard, Use, add_extent};
use array::{
    Array, ArrayState, Done as EngineDone, Engine, EngineError, Fan, MemberErrors, MemberTrouble, Replacing,
    Seat, members_to_fail,
};
use block::slab::{Key, Slab};
use block::{DevIndex, DeviceSet as _, Interleave, Place, Pool, Share, Slot};
use device::{DeviceCounters, Members, Membership as _};
use format::MemberState;
use front::{Ask, Bell, Buffer, Done, Landing, RemoteVolume, Volume, VolumeError, VolumeRequest, crossing};
use rustix::event::epoll;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Requests taken from one landing in one go.
const ASKS_MAX: usize = 1024;
/// Bytes of buffers for what clients send and get, with several shards.
const BUFFER_BYTES: usize = 32 << 20;

/// A shard as it is served.
pub type Shard = ServedShard<Devices>;

/// Who asked: this thread's front end, or the landing of another thread, each by its own tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Caller(u64);

impl Caller {
    /// This thread's front end, whose tags have 32 bits.
    fn here(tag: u64) -> Self {
        Self(tag & u64::from(u32::MAX))
    }

    /// A landing, by its number.
    fn there(landing: usize, tag: u32) -> Self {
        Self((landing as u64 + 1) << 32 | u64::from(tag))
    }

    /// The landing, if it was one, and the tag.
    fn split(self) -> (Option<usize>, u32) {
        let (high, low) = (self.0 >> 32, self.0 & u64::from(u32::MAX));
        let landing = high.checked_sub(1).and_then(|number| usize::try_from(number).ok());
        (landing, u32::try_from(low).expect("the low half"))
    }
}

/// A read or write on its way through a shard.
#[derive(Default)]
struct Transfer {
    caller: Option<Caller>,
    shard: usize,
    /// As the shard is asked, in its own addresses, until it is.
    request: Option<VolumeRequest>,
    /// Whether what the shard has in its buffers at the end is what was asked for.
    reads: bool,
    /// The buffers of this thread's front end, or of a landing,
    slots: Vec<Slot>,
    buffers: Vec<Buffer>,
    /// and the shard's; none while it waits for them.
    inner: Vec<Slot>,
}

/// What only an array needs that has several shards, or clients on other threads.
struct Several {
    pool: Pool,
    transfers: Slab<Transfer>,
    /// Of each shard, transfers that wait for buffers.
    waiting: Vec<VecDeque<Key<Transfer>>>,
    fan: Fan<VolumeError>,
    /// What a shard has ended.
    ended: Vec<Done>,
    /// Answers for this thread's front end.
    early: Vec<Done>,
    landings: Vec<Landing>,
    bell: Arc<Bell>,
    dozed: Cell<bool>,
    /// Readable when one of the shards' devices has news, or the bell rings.
    wake: OwnedFd,
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

/// Where clients are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// On the thread that drives the array.
    Here,
    /// On threads of their own; see [`Running::connect`].
    Elsewhere,
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
    /// Runs the array that consists of `arrays`, in their order; clients may be served on other threads if so
    /// wanted.
    pub fn new(
        mut arrays: Vec<Array<Devices>>,
        wake: Wake,
        usage: Use,
        clients: Clients,
    ) -> io::Result<Self> {
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
        let several = if arrays.len() > 1 || clients == Clients::Elsewhere {
            let bell = Arc::new(Bell::new()?);
            Some(Box::new(Several {
                pool: Pool::new(chunk_bytes, BUFFER_BYTES / chunk_bytes),
                transfers: Slab::default(),
                waiting: arrays.iter().map(|_| VecDeque::new()).collect(),
                fan: Fan::default(),
                ended: Vec::new(),
                early: Vec::new(),
                landings: Vec::new(),
                dozed: Cell::new(false),
                wake: watch_all(wakes.iter().flatten().map(AsFd::as_fd).chain([bell.as_fd()]))?,
                bell,
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

    /// Takes a member out of service in every shard.
    pub fn fail_device(&mut self, dev: DevIndex) {
        self.engines_mut().for_each(|engine| engine.fail_device(dev));
    }

    /// What one shard has given up, all give up that bear it; not so members that are being replaced.
    pub fn level(&mut self, being_replaced: &[DevIndex]) {
        if self.shards.len() == 1 {
            return;
        }
        let healths: Vec<_> = self.engines().map(Engine::health).collect();
        let mut found = members_to_fail(&healths);
        found.retain(|(_, dev)| !being_replaced.contains(dev));
        for (shard, dev) in found {
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

    /// The volume for another thread, which serves clients; only with [`Clients::Elsewhere`].
    pub fn connect(&mut self) -> io::Result<RemoteVolume> {
        let bell = self.several.as_ref().map(|several| Arc::clone(&several.bell));
        let bell = bell.ok_or_else(|| io::Error::other("the array serves its clients on its own thread"))?;
        let (remote, landing) = crossing(self, &bell)?;
        self.several.as_mut().expect("looked at above").landings.push(landing);
        Ok(remote)
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
fn watch_all<'a>(events: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<OwnedFd> {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for event in events {
        epoll::add(&all, event, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(all)
}

impl Several {
    /// Takes a request in.
    fn begin(
        &mut self,
        shards: &mut [Shard],
        map: Interleave,
        caller: Caller,
        request: VolumeRequest,
        from: From<'_>,
    ) {
        match request {
            VolumeRequest::Read { offset_bytes, length_bytes } => {
                let place = map.place(offset_bytes);
                let what = VolumeRequest::Read { offset_bytes: place.offset_bytes, length_bytes };
                self.transfer(shards, caller, place, what, from);
            }
            VolumeRequest::Write { offset_bytes, length_bytes, durability } => {
                let place = map.place(offset_bytes);
                let what =
                    VolumeRequest::Write { offset_bytes: place.offset_bytes, length_bytes, durability };
                self.transfer(shards, caller, place, what, from);
            }
            VolumeRequest::Flush => {
                let part = self.fan.begin(caller.0, shards.len());
                shards.iter_mut().for_each(|shard| shard.start(part, VolumeRequest::Flush, &[]));
            }
            VolumeRequest::Cache { .. } => self.answer(caller, Ok(()), Vec::new()),
            VolumeRequest::Discard { offset_bytes, length_bytes, durability } => {
                self.share_out(shards, caller, map.shares(offset_bytes, length_bytes), |share| {
                    let Share { offset_bytes, length_bytes, .. } = share;
                    VolumeRequest::Discard { offset_bytes, length_bytes, durability }
                });
            }
            VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability } => {
                self.share_out(shards, caller, map.shares(offset_bytes, length_bytes), |share| {
                    let Share { offset_bytes, length_bytes, .. } = share;
                    VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability }
                });
            }
        }
    }

    /// Has every shard do its part of a request.
    fn share_out(
        &mut self,
        shards: &mut [Shard],
        caller: Caller,
        shares: impl Iterator<Item = Share> + Clone,
        part: impl Fn(Share) -> VolumeRequest,
    ) {
        match shares.clone().count() {
            0 => self.answer(caller, Ok(()), Vec::new()),
            count => {
                let tag = self.fan.begin(caller.0, count);
                shares.for_each(|share| shards[usize::from(share.shard)].start(tag, part(share), &[]));
            }
        }
    }

    /// Takes a read or write in, and hands it to its shard if that has buffers for it.
    fn transfer(
        &mut self,
        shards: &mut [Shard],
        caller: Caller,
        place: Place,
        request: VolumeRequest,
        from: From<'_>,
    ) {
        let key = self.transfers.reuse(Transfer::default);
        let transfer = &mut self.transfers[key];
        transfer.caller = Some(caller);
        transfer.shard = usize::from(place.shard);
        transfer.reads = matches!(request, VolumeRequest::Read { .. });
        transfer.request = Some(request);
        match from {
            From::Slots(slots) => transfer.slots.extend_from_slice(slots),
            From::Buffers(buffers) => transfer.buffers = buffers,
        }
        let shard = transfer.shard;
        if !self.waiting[shard].is_empty() || !self.hand_over(shards, key) {
            self.waiting[shard].push_back(key);
        }
    }

    /// Hands a transfer to its shard; `false` if that has no buffers for it.
    fn hand_over(&mut self, shards: &mut [Shard], key: Key<Transfer>) -> bool {
        let transfer = &mut self.transfers[key];
        let shard = &mut shards[transfer.shard];
        if !shard.engine().take_slots(transfer.chunk_count(), &mut transfer.inner) {
            return false;
        }
        let request = transfer.request.take().expect("it was not handed over yet");
        if !transfer.reads {
            let pool = shard.engine().pool();
            for (&slot, &inner) in transfer.slots.iter().zip(&transfer.inner) {
                pool.bytes_mut(inner).copy_from_slice(self.pool.bytes(slot));
            }
            for (buffer, &inner) in transfer.buffers.iter().zip(&transfer.inner) {
                pool.bytes_mut(inner).copy_from_slice(buffer);
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

    /// A shard has ended something.
    fn end(&mut self, shard: &mut Shard, done: Done) {
        let Done { tag, result } = done;
        if Fan::<VolumeError>::is_part(tag) {
            if let Some((caller, result)) = self.fan.end(tag, result) {
                self.answer(Caller(caller), result, Vec::new());
            }
            return;
        }
        let key = Key::from_index(u32::try_from(tag).expect("tags of transfers are made here"));
        let transfer = &mut self.transfers[key];
        let pool = shard.engine().pool();
        if transfer.reads && result.is_ok() {
            for (&slot, &inner) in transfer.slots.iter().zip(&transfer.inner) {
                self.pool.bytes_mut(slot).copy_from_slice(pool.bytes(inner));
            }
            for (buffer, &inner) in transfer.buffers.iter_mut().zip(&transfer.inner) {
                buffer.copy_from_slice(pool.bytes(inner));
            }
        }
        transfer.inner.drain(..).for_each(|inner| pool.free(inner));
        transfer.slots.clear();
        let buffers = std::mem::take(&mut transfer.buffers);
        let caller = transfer.caller.take().expect("it was taken in");
        self.transfers.release(key);
        self.answer(caller, result, buffers);
    }

    fn answer(&mut self, caller: Caller, result: Result<(), VolumeError>, buffers: Vec<Buffer>) {
        match caller.split() {
            (None, tag) => self.early.push(Done { tag: tag.into(), result }),
            (Some(landing), tag) => self.landings[landing].answer(tag, result, buffers),
        }
    }

    /// Takes in what other threads ask.
    fn take_asks(&mut self, shards: &mut [Shard], map: Interleave) {
        for index in 0..self.landings.len() {
            for _ in 0..ASKS_MAX {
                let Some(Ask { tag, request, buffers }) = self.landings[index].next_ask() else { break };
                self.begin(shards, map, Caller::there(index, tag), request, From::Buffers(buffers));
            }
            while let Some(ask) = self.landings[index].next_extents_ask() {
                let mut extents = Vec::new();
                allocated(shards, map, ask.offset_bytes, ask.length_bytes, &mut extents);
                let _ = ask.answer.send(extents); // whoever asked may have lost patience
            }
        }
    }

    /// Does everything that can be done now.
    fn drive(&mut self, shards: &mut [Shard], map: Interleave, done: &mut Vec<Done>) {
        if self.dozed.replace(false) {
            self.bell.wake();
        }
        self.take_asks(shards, map);
        self.retry_waiting(shards);
        for shard in shards {
            let mut ended = std::mem::take(&mut self.ended);
            shard.drive(&mut ended);
            ended.drain(..).for_each(|one| self.end(shard, one));
            self.ended = ended;
        }
        done.append(&mut self.early);
        for landing in &mut self.landings {
            landing.tell();
        }
    }

    /// Whether it has something to do at once, asked at the moment of going to sleep.
    fn is_busy(&self, shards: &[Shard]) -> bool {
        let next = |(queue, shard): (&VecDeque<Key<Transfer>>, &Shard)| {
            let key = *queue.front()?;
            Some(shard.engine_ref().has_slots(self.transfers[key].chunk_count()))
        };
        if self.waiting.iter().zip(shards).filter_map(next).any(|ready| ready) || !self.early.is_empty() {
            return true;
        }
        self.dozed.set(true);
        self.bell.doze();
        self.landings.iter().any(|landing| landing.has_asks() || landing.is_full())
    }
}

/// Where the bytes of a request are.
enum From<'a> {
    Slots(&'a [Slot]),
    Buffers(Vec<Buffer>),
}

impl Transfer {
    fn chunk_count(&self) -> usize {
        self.slots.len() + self.buffers.len()
    }
}

/// What lies behind a range of the volume, shard by shard.
fn allocated(
    shards: &[Shard],
    map: Interleave,
    offset_bytes: u64,
    length_bytes: u64,
    out: &mut Vec<(u64, bool)>,
) {
    let (end, first) = (offset_bytes + length_bytes, out.len());
    let (mut at, mut run) = (offset_bytes, Vec::new());
    while at < end {
        let length = map.run_bytes(at).min(end - at);
        let Place { shard, offset_bytes } = map.place(at);
        shards[usize::from(shard)].allocated(offset_bytes, length, &mut run);
        for extent in run.drain(..) {
            if !add_extent(out, first, extent) {
                return;
            }
            at += extent.0;
        }
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
        match &mut self.several {
            None => self.shards[0].start(tag, request, slots),
            Some(several) => {
                several.begin(&mut self.shards, self.map, Caller::here(tag), request, From::Slots(slots));
            }
        }
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        match &mut self.several {
            None => self.shards[0].drive(done),
            Some(several) => several.drive(&mut self.shards, self.map, done),
        }
        self.gather_control_answers();
    }

    fn idle_for(&self) -> Option<u64> {
        let is_busy = self.several.as_ref().is_some_and(|several| several.is_busy(&self.shards));
        if is_busy || !self.answers.is_empty() {
            return Some(0);
        }
        self.shards.iter().filter_map(Volume::idle_for).min()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.several {
            Some(several) => Some(several.wake.as_fd()),
            None => self.shards[0].wake_fd(),
        }
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        allocated(&self.shards, self.map, offset_bytes, length_bytes, out);
    }
}
