//! A shard of the array as the front end sees it, and the clock that drives it.

use crate::error::Error;
use crate::open::member_name;
use array::{Array, Done as EngineDone, Engine, EngineError, Located};
use block::{DevIndex, DeviceSet, Durability, Lcn, Pool, Slot};
use front::{Done, Volume, VolumeError, VolumeRequest, add_extent};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Turns of the engine in one go, so that sockets get their share while a memory-fast device always has news.
const TURNS_MAX: usize = 32;

/// How the volume may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Reads and writes.
    ReadWrite,
    /// Reads; writes are refused.
    ReadOnly,
}

/// Whether requests of clients reach the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// They do.
    Open,
    /// Those that come wait; those that are with the engine go on.
    Closed,
    /// They wait, and the engine, which was stopped in order, does nothing: others may work on the members.
    Resting,
    /// They are refused: the engine was stopped, and will not go on.
    Over,
}

/// A request that waits before the gate.
struct Held {
    tag: u64,
    request: VolumeRequest,
    slots: Vec<Slot>,
}

/// Counts nanoseconds since serving began.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Begins to count.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// So many by now.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A shard of an array that is being served: all of it if there is only one.
pub struct ServedShard<D> {
    array: Array<D>,
    clock: Clock,
    wake: Option<OwnedFd>,
    usage: Use,
    /// Requests that were over at once.
    early: Vec<Done>,
    answers: Vec<EngineDone>,
    /// Answers to control requests, for whoever asked.
    control: Vec<EngineDone>,
    /// Slots lent to requests that zero parts of chunks.
    lent: Vec<(u64, [Slot; 2])>,
    /// Zeroing requests that wait for slots.
    waiting: VecDeque<Zeroing>,
    gate: Gate,
    /// Requests that wait before it, in the order in which they came.
    held: VecDeque<Held>,
    /// Requests of clients that the engine has not answered.
    under_way: usize,
    /// What zeroing requests name that need no slots.
    unused: [Slot; 2],
    /// Requests have come since it was last driven, or there was more to do then: the engine's time is
    /// recent.
    busy: bool,
}

#[derive(Clone, Copy)]
struct Zeroing {
    tag: u64,
    offset_bytes: u64,
    length_bytes: u64,
    durability: Durability,
}

impl<D> ServedShard<D> {
    /// Serves `array`; `wake` becomes readable when device operations have completed.
    pub fn new(mut array: Array<D>, clock: Clock, wake: Option<OwnedFd>, usage: Use) -> Self {
        array.engine().set_unix_time(unix_s());
        let mut slots = Vec::new();
        assert!(array.engine().take_slots(2, &mut slots), "a pool that nobody uses yet has slots");
        let unused = [slots[0], slots[1]];
        Self {
            array,
            clock,
            wake,
            usage,
            early: Vec::new(),
            answers: Vec::new(),
            control: Vec::new(),
            lent: Vec::new(),
            waiting: VecDeque::new(),
            gate: Gate::Open,
            held: VecDeque::new(),
            under_way: 0,
            unused,
            busy: false,
        }
    }

    /// The same shard with other devices, or with what stands for them while it is lent to another thread;
    /// and those it had.
    pub fn with_devices<E>(self, devices: E) -> (ServedShard<E>, D) {
        let Self { array, clock, wake, usage, early, answers, control, .. } = self;
        let (array, old) = array.with_devices(devices);
        let Self { lent, waiting, gate, held, under_way, unused, busy, .. } = self;
        let other = ServedShard {
            array,
            clock,
            wake,
            usage,
            early,
            answers,
            control,
            lent,
            waiting,
            gate,
            held,
            under_way,
            unused,
            busy,
        };
        (other, old)
    }

    /// Opens or closes the gate for clients. Those that wait before it go on, or are refused, when the shard
    /// is driven next.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
    }

    /// Whether the engine has nothing of clients.
    pub fn is_quiet(&self) -> bool {
        self.under_way == 0
    }

    /// Whether the engine has nothing at all, and its devices neither.
    pub fn is_at_rest(&self) -> bool {
        let engine = self.engine_ref();
        let members = (0u16..).map(DevIndex::new).take(engine.health().members().len());
        self.is_quiet() && engine.is_idle() && members.map(|dev| engine.in_flight(dev)).sum::<u32>() == 0
    }

    /// The shard goes on as `next`, which was assembled since this one came to rest; the slots that requests
    /// hold stay theirs.
    pub fn go_on_as(&mut self, next: Array<()>) {
        self.array.go_on_as(next);
        self.set_now();
        self.array.engine().set_unix_time(unix_s());
    }

    /// The engine.
    pub fn engine(&mut self) -> &mut Engine {
        self.array.engine()
    }

    /// The engine, to look at.
    pub fn engine_ref(&self) -> &Engine {
        self.array.engine_ref()
    }

    /// The array.
    pub fn array(&mut self) -> &mut Array<D> {
        &mut self.array
    }

    /// The devices, to look at.
    pub fn devices_ref(&self) -> &D {
        self.array.devices_ref()
    }

    /// Starts a control request; its answer comes from [`ServedShard::take_control_answers`].
    pub fn control(&mut self, start: impl FnOnce(&mut Engine, u64)) -> u64 {
        let tag = self.array.own_tag();
        self.set_now();
        start(self.array.engine(), tag);
        tag
    }

    /// Answers to control requests since the last call.
    pub fn take_control_answers(&mut self) -> Vec<EngineDone> {
        std::mem::take(&mut self.control)
    }

    /// Whether there are some, or the engine has something to tell.
    pub fn has_news(&self) -> bool {
        !self.control.is_empty() || self.engine_ref().has_events()
    }

    /// Nanoseconds since serving began.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// An error of the engine with the member's name, as operators know it.
    pub fn named(&self, error: EngineError) -> Error {
        named(self.engine_ref().store().main_count(), error)
    }

    fn set_now(&mut self) {
        let now_ns = self.now_ns();
        self.array.engine().set_now(now_ns);
    }
}

impl<D: DeviceSet> ServedShard<D> {
    /// Stops the array in order, unless it was already.
    pub fn stop(&mut self) -> Result<(), Error> {
        match self.gate {
            Gate::Open | Gate::Closed => {}
            Gate::Resting | Gate::Over => return Ok(()),
        }
        let clock = self.clock;
        let stopped = self.array.stop_by(&mut || clock.now_ns());
        stopped.map_err(|error| Error::Stopping(Box::new(self.named(error))))
    }

    /// Starts zeroing; `false` if slots are wanted and there are none.
    fn start_zero(&mut self, zeroing: Zeroing) -> bool {
        let Zeroing { tag, offset_bytes, length_bytes, durability } = zeroing;
        let chunk = self.array.engine_ref().store().config.geometry.chunk_bytes() as u64;
        let whole = offset_bytes.is_multiple_of(chunk) && length_bytes.is_multiple_of(chunk);
        let slots = if whole {
            self.unused
        } else {
            let mut slots = Vec::new();
            if !self.array.engine().take_slots(2, &mut slots) {
                return false;
            }
            let slots = [slots[0], slots[1]];
            self.lent.push((tag, slots));
            slots
        };
        self.array.engine().zero(tag, offset_bytes, length_bytes, slots, durability);
        true
    }

    fn zero(&mut self, tag: u64, offset_bytes: u64, length_bytes: u64, durability: Durability) {
        let zeroing = Zeroing { tag, offset_bytes, length_bytes, durability };
        if !self.waiting.is_empty() || !self.start_zero(zeroing) {
            self.waiting.push_back(zeroing);
        }
    }

    /// Hands a request to the engine.
    #[inline]
    fn begin(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        if !self.busy {
            // The first request after a pause: idle times count from now.
            self.set_now();
            self.busy = true;
        }
        let refused = self.usage == Use::ReadOnly;
        self.under_way += 1;
        let engine = self.array.engine();
        match request {
            VolumeRequest::Read { offset_bytes, length_bytes } => {
                engine.read(tag, offset_bytes, length_bytes, slots)
            }
            VolumeRequest::Flush => engine.flush(tag),
            VolumeRequest::Cache { .. } => self.end_early(tag, Ok(())),
            VolumeRequest::Write { .. }
            | VolumeRequest::Discard { .. }
            | VolumeRequest::WriteZeroes { .. }
                if refused =>
            {
                self.end_early(tag, Err(VolumeError::ReadOnly));
            }
            VolumeRequest::Write { offset_bytes, length_bytes, durability } => {
                engine.write(tag, offset_bytes, length_bytes, slots, durability);
            }
            // Space is promised by the size of the volume, not by what is allocated: punching takes nothing
            // away.
            VolumeRequest::Discard { offset_bytes, length_bytes, durability }
            | VolumeRequest::WriteZeroes { offset_bytes, length_bytes, durability, punch: _ } => {
                self.zero(tag, offset_bytes, length_bytes, durability);
            }
        }
    }

    /// Something was over at once.
    fn end_early(&mut self, tag: u64, result: Result<(), VolumeError>) {
        self.under_way -= 1;
        self.early.push(Done { tag, result });
    }

    /// Lets those through that waited before the gate, if it is open again, or refuses them if it will not
    /// be.
    fn let_through(&mut self) {
        match self.gate {
            Gate::Open => {
                for Held { tag, request, slots } in std::mem::take(&mut self.held) {
                    self.begin(tag, request, &slots);
                }
            }
            Gate::Over => {
                let refused = |Held { tag, .. }| Done { tag, result: Err(VolumeError::Shutdown) };
                self.early.extend(self.held.drain(..).map(refused));
            }
            Gate::Closed | Gate::Resting => {}
        }
    }

    fn retry_waiting(&mut self) {
        while let Some(&zeroing) = self.waiting.front() {
            if !self.start_zero(zeroing) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Hands engine answers to the front end, or to the control side.
    fn sort_answers(&mut self, done: &mut Vec<Done>) {
        self.array.take_answers(&mut self.answers);
        for answer in self.answers.drain(..) {
            if Array::<D>::is_own_tag(answer.tag) {
                self.control.push(answer);
                continue;
            }
            self.under_way -= 1;
            if let Some(at) = self.lent.iter().position(|&(tag, _)| tag == answer.tag) {
                let (_, slots) = self.lent.swap_remove(at);
                slots.into_iter().for_each(|slot| self.array.engine().pool().free(slot));
            }
            done.push(Done { tag: answer.tag, result: answer.result.map_err(volume_error) });
        }
    }
}

/// What the wall clock shows, in seconds since 1970.
fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// An error of the engine with the member's name, as operators know it.
pub fn named(main_count: usize, error: EngineError) -> Error {
    if let EngineError::MemberFull { dev } = error {
        return Error::MemberFull { name: member_name(main_count, dev) };
    }
    Error::Engine(error)
}

fn volume_error(error: EngineError) -> VolumeError {
    match error {
        EngineError::NoSpace | EngineError::MemberFull { .. } => VolumeError::NoSpace,
        EngineError::ArrayFailed
        | EngineError::Unreadable { .. }
        | EngineError::Lost { .. }
        | EngineError::CommitStuck { .. }
        | EngineError::BadMetadata { .. }
        | EngineError::Unhealed { .. }
        | EngineError::Stopping
        | EngineError::Preempted
        | EngineError::GivenUp
        | EngineError::Busy
        | EngineError::UnknownMember { .. }
        | EngineError::MemberInService { .. }
        | EngineError::MemberNotFree { .. }
        | EngineError::NotBack { .. }
        | EngineError::Unaligned { .. }
        | EngineError::OutOfRange { .. } => VolumeError::Io,
    }
}

impl<D: DeviceSet> Volume for ServedShard<D> {
    fn size_bytes(&self) -> u64 {
        self.array.engine_ref().volume_bytes()
    }

    fn chunk_bytes(&self) -> usize {
        self.array.engine_ref().store().config.geometry.chunk_bytes()
    }

    fn untorn_bytes(&self) -> u64 {
        self.array.engine_ref().untorn_bytes()
    }

    fn read_only(&self) -> bool {
        self.usage == Use::ReadOnly
    }

    fn pool(&mut self) -> &mut Pool {
        self.array.engine().pool()
    }

    #[inline]
    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        // Those that came before go first.
        if self.gate != Gate::Open || !self.held.is_empty() {
            return self.held.push_back(Held { tag, request, slots: slots.to_vec() });
        }
        self.begin(tag, request, slots);
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        self.set_now();
        self.let_through();
        done.append(&mut self.early);
        if self.gate == Gate::Resting || self.gate == Gate::Over {
            return;
        }
        self.retry_waiting();
        self.busy = false;
        for _ in 0..TURNS_MAX {
            self.busy = self.array.turn();
            if !self.busy {
                break;
            }
        }
        self.sort_answers(done);
    }

    fn idle_for(&self) -> Option<u64> {
        let is_let_through = match self.gate {
            Gate::Open | Gate::Over => !self.held.is_empty(),
            Gate::Closed | Gate::Resting => false,
        };
        if is_let_through || !self.early.is_empty() || !self.control.is_empty() {
            return Some(0);
        }
        if self.gate == Gate::Resting || self.gate == Gate::Over {
            return None;
        }
        let engine = self.array.engine_ref();
        // Asked of the engine itself, at the moment of going to sleep: whatever was started since it was
        // last driven counts.
        let zeroes = !self.waiting.is_empty() && engine.has_slots(2);
        if engine.wants_pump() || zeroes {
            return Some(0);
        }
        let now_ns = self.now_ns();
        engine.next_deadline_ns().map(|at_ns| at_ns.saturating_sub(now_ns))
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        let engine = self.array.engine_ref();
        let (scheme, store) = (engine.scheme(), engine.store());
        let chunk = store.config.geometry.chunk_bytes() as u64;
        let (first, end) = (out.len(), offset_bytes + length_bytes);
        let mut at = offset_bytes;
        while at < end {
            let next = (at / chunk + 1).saturating_mul(chunk).min(end);
            // What a page says that is not in memory is not asked for: it is taken for data.
            let (lcn, table) = (Lcn::new(at / chunk), &store.table);
            let known = !table.lacks(store.config.geometry.stripe_of(lcn));
            let hole = known && matches!(scheme.locate(store, lcn), Located::Zero);
            if !add_extent(&mut *out, first, (next - at, hole)) {
                return;
            }
            at = next;
        }
    }
}
