//! The devices of one simulated machine, as the engine sees them. The fault model is in the crate's
//! documentation.

mod astray;
mod layout;
mod shelf;
mod silence;

pub use silence::{MUTES, Mute, Silence};

use crate::Rng;
use crate::disk::{BLOCK_BYTES, Block, Disk, Image, Tear, blocks_of};
use crate::trap::Trap;
use block::{Completion, DevIndex, DeviceOp, IoFault, OpKind, Pool};
use block::{Random as _, mix};
use layout::Layout;
use silence::Ghost;

/// What every byte of a discarded block reads as.
const DISCARDED: u8 = 0xd1;

/// What the world does to operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Polls that an operation takes at most.
    pub delay_max: u64,
    /// A device that is slower than the others, by this factor.
    pub slow: Option<(u16, u64)>,
}

struct Member {
    disk: Disk,
    present: bool,
    /// Shards that did not take it as a member: a bit each.
    hidden: u64,
    /// Bytes from one slice to the next; 0 if there is one only.
    stride: u64,
    /// Nothing ends before that tick.
    hung_until: u64,
    /// It is no member, but may take the place of one.
    is_shelf: bool,
    silence: Option<Silence>,
}

/// A write to the log: the shard, the device, and where in the shard's slice.
pub type LogWrite = (u16, DevIndex, u64);

/// What a shard begins beside its members is of the shard with this added to its number.
pub const BESIDE: u16 = 8;

/// Never.
const FOR_EVER: u64 = u64::MAX;

struct Flight {
    /// The shard that began it, and waits for it.
    shard: u16,
    op: DeviceOp,
    due: u64,
    blocks: Vec<Block>,
    /// For a flush: the writes that had completed when it was submitted.
    stamp: u64,
    fault: Option<IoFault>,
    offset_bytes: u64,
    /// Nobody waits for it any more; it may still take effect.
    given_up: bool,
    /// The device does not answer it.
    held: bool,
    since_ns: u64,
}

impl Flight {
    /// Given up on a device beside the members: its set may be gone, and nobody asks there any more. It may
    /// still take effect, whoever looks.
    fn is_orphan(&self) -> bool {
        self.given_up && self.shard >= BESIDE
    }
}

/// See the module's documentation.
pub struct World {
    members: Vec<Member>,
    flights: Vec<Flight>,
    /// Ends of operations that were given up.
    gone: Vec<(u16, Completion)>,
    traps: Vec<Trap>,
    pace: Pace,
    /// Of delays, order and what a power cut leaves.
    pub rng: Rng,
    tick: u64,
    /// Operations begun or ended so far.
    events: u64,
    crash_at: Option<u64>,
    crashed: bool,
    /// Devices that stop answering at an instant, all at once, until power is cycled.
    blackout: Option<(u64, Vec<u16>)>,
    layout: Layout,
    /// Writes to user content of log devices since somebody looked last: shard, device and offset in its
    /// slice.
    log_writes: Vec<LogWrite>,
    /// Whether a write found no room since power came.
    lacked_room: bool,
    hash: u64,
    broken: Option<String>,
    now_ns: u64,
    ghosts: Vec<Ghost>,
}

impl World {
    /// Devices of the given sizes, all zeros.
    pub fn new(sizes_bytes: &[u64], pace: Pace, rng: Rng) -> Self {
        Self {
            members: sizes_bytes
                .iter()
                .map(|&size| Member {
                    disk: Disk::new(size),
                    present: true,
                    hidden: 0,
                    stride: 0,
                    hung_until: 0,
                    is_shelf: false,
                    silence: None,
                })
                .collect(),
            flights: Vec::new(),
            gone: Vec::new(),
            traps: Vec::new(),
            pace,
            rng,
            tick: 0,
            events: 0,
            crash_at: None,
            crashed: false,
            blackout: None,
            layout: Layout::new(sizes_bytes.len()),
            log_writes: Vec::new(),
            lacked_room: false,
            hash: 0,
            broken: None,
            now_ns: 0,
            ghosts: Vec::new(),
        }
    }

    /// A machine with the same durable content, which never crashes and answers at once.
    pub fn copy(&self) -> Self {
        let pace = Pace { delay_max: 0, slow: None };
        let mut copy = Self::new(&vec![0; self.members.len()], pace, Rng::new(0));
        for (to, from) in copy.members.iter_mut().zip(&self.members) {
            to.disk = Disk::from_image(from.disk.durable().clone());
            (to.present, to.stride) = (from.present, from.stride);
        }
        copy
    }

    /// Whether a fault waits for a device, or is on its way to it.
    pub fn is_threatened(&self, dev: u16) -> bool {
        let wrong = |flight: &Flight| flight.fault.is_some() || flight.offset_bytes != flight.op.offset_bytes;
        self.traps.iter().any(|trap| trap.dev() == dev)
            || self.ghosts.iter().any(|ghost| ghost.dev() == dev)
            || self.is_silent(dev)
            || self.flights.iter().any(|flight| flight.op.dev.get() == dev && wrong(flight))
    }

    /// The same, or it does not answer.
    pub fn may_fail(&self, dev: u16) -> bool {
        self.is_threatened(dev) || self.is_hung(dev)
    }

    /// Writes to the logs since the last time, in the order of their submission.
    pub fn take_log_writes(&mut self, out: &mut Vec<LogWrite>) {
        out.append(&mut self.log_writes);
    }

    /// Sets a trap.
    pub fn set_trap(&mut self, trap: Trap) {
        self.traps.push(trap);
    }

    /// Takes the traps on a device away.
    pub fn clear_traps(&mut self, dev: u16) {
        self.traps.retain(|trap| trap.dev() != dev);
    }

    /// There is room everywhere again.
    pub fn make_room(&mut self) {
        self.traps.retain(|trap| !matches!(trap, Trap::NoRoom { .. }));
    }

    /// Whether a write found no room since power came.
    pub fn lacked_room(&self) -> bool {
        self.lacked_room
    }

    /// The device does not answer for so many ticks, or for ever; what is under way on it, either.
    pub fn hang(&mut self, dev: u16, ticks: Option<u64>) {
        let until = ticks.map_or(FOR_EVER, |ticks| self.tick.saturating_add(ticks));
        self.members[usize::from(dev)].hung_until = until;
        for flight in self.flights.iter_mut().filter(|flight| flight.op.dev.get() == dev) {
            flight.due = flight.due.max(until);
        }
    }

    /// Power fails after this many more operation starts or ends.
    pub fn crash_after(&mut self, events: u64) {
        self.crash_at = Some(self.events + events);
    }

    /// What is planned of power cuts and devices that stop answering comes after so many more operation
    /// starts or ends.
    pub fn postpone_cut(&mut self, events: u64) {
        let at = self.events + events;
        match &mut self.blackout {
            Some((planned, _)) => *planned = at,
            None => self.crash_at = Some(at),
        }
    }

    /// Power does not fail any more.
    pub fn crash_never(&mut self) {
        self.crash_at = None;
    }

    /// These devices stop answering after so many more operation starts or ends.
    pub fn blackout_after(&mut self, events: u64, devices: Vec<u16>) {
        self.blackout = Some((self.events + events, devices));
    }

    /// Whether devices will stop, or have stopped, answering together.
    pub fn has_blackout(&self) -> bool {
        self.blackout.is_some()
    }

    /// Whether devices have stopped answering together.
    pub fn is_blacked_out(&self) -> bool {
        self.blackout.as_ref().is_some_and(|(at, _)| self.events > *at)
    }

    fn is_dark(&self, dev: DevIndex) -> bool {
        self.is_blacked_out()
            && self.blackout.as_ref().is_some_and(|(_, devices)| devices.contains(&dev.get()))
    }

    /// Whether power has failed.
    pub fn is_crashed(&self) -> bool {
        self.crashed
    }

    /// Operations begun or ended so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// A digest of everything that has happened.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// What the engine did that no driver of devices allows.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Operations under way that somebody waits for and that will end.
    pub fn in_flight(&self) -> usize {
        self.flights.iter().filter(|flight| !flight.given_up && flight.due < FOR_EVER).count()
    }

    /// Those of a shard.
    pub fn in_flight_of(&self, shard: u16) -> usize {
        let is_its = |of: u16| of % BESIDE == shard;
        let counts = |flight: &&Flight| is_its(flight.shard) && !flight.given_up && flight.due < FOR_EVER;
        self.flights.iter().filter(counts).count()
    }

    /// Time passes until an operation ends.
    pub fn tick_to_next(&mut self) {
        let ending = self.flights.iter().map(|flight| flight.due).filter(|&due| due < FOR_EVER);
        if let Some(due) = ending.min() {
            self.tick = self.tick.max(due);
        }
    }

    /// Whether a device answers.
    pub fn is_present(&self, dev: u16) -> bool {
        self.members[usize::from(dev)].present
    }

    /// The device stops answering, or answers again.
    pub fn set_present(&mut self, dev: u16, present: bool) {
        self.members[usize::from(dev)].present = present;
    }

    /// Whether an operation of a shard has ended, or waits to be seen to end.
    pub fn has_due(&self, shard: u16) -> bool {
        let is_its = |of: u16| of % BESIDE == shard;
        self.gone.iter().any(|&(of, _)| is_its(of))
            || self
                .flights
                .iter()
                .any(|flight| is_its(flight.shard) && flight.due <= self.tick && !flight.is_orphan())
    }

    /// Whether operations on a device that nobody waits for any more are under way.
    pub fn has_given_up(&self, dev: u16) -> bool {
        self.flights.iter().any(|flight| flight.given_up && flight.op.dev.get() == dev)
    }

    /// To a shard the device is not there, or is there again.
    pub fn set_hidden(&mut self, dev: u16, shard: u16, hidden: bool) {
        let member = &mut self.members[usize::from(dev)];
        member.hidden = member.hidden & !(1 << shard) | u64::from(hidden) << shard;
    }

    /// A disk, to look at.
    pub fn disk(&self, dev: u16) -> &Disk {
        &self.members[usize::from(dev)].disk
    }

    /// A disk, to be damaged.
    pub fn disk_mut(&mut self, dev: u16) -> &mut Disk {
        &mut self.members[usize::from(dev)].disk
    }

    /// Puts another disk in a device's place; returns what the old one would hold after a power cut.
    pub fn replace(&mut self, dev: u16, image: Image) -> Image {
        let member = &mut self.members[usize::from(dev)];
        let mut old = member.disk.durable().clone();
        (member.disk, member.present, member.hung_until) = (Disk::from_image(image), true, 0);
        (member.hidden, member.silence) = (0, None);
        self.take_out(dev, &mut old);
        old
    }

    /// The machine is off: caches are resolved, nothing is in flight, traps are gone. It can be started
    /// again.
    pub fn power_cycle(&mut self, tear: Tear) {
        let mut flights: Vec<Vec<(usize, Vec<Block>)>> = self.members.iter().map(|_| Vec::new()).collect();
        self.gone.clear();
        self.log_writes.clear();
        self.leave_ghosts();
        for flight in self.flights.drain(..) {
            if flight.op.kind == OpKind::Write && flight.fault.is_none() {
                let first = flight.offset_bytes as usize / BLOCK_BYTES;
                flights[flight.op.dev.index()].push((first, flight.blocks));
            }
        }
        for (member, in_flight) in self.members.iter_mut().zip(flights) {
            // A disk that nothing was written to draws nothing: most worlds do without the one on the shelf.
            if !member.is_shelf || !in_flight.is_empty() || !member.disk.is_durable() {
                member.disk.power_cut(in_flight, tear, &mut self.rng);
            }
        }
        self.start_over();
    }

    /// Nothing is planned of what goes wrong any more.
    fn start_over(&mut self) {
        self.traps.clear();
        self.members.iter_mut().for_each(|member| member.hung_until = 0);
        self.lacked_room = false;
        (self.crashed, self.crash_at, self.blackout) = (false, None, None);
    }

    /// One more operation began or ended; `false` if power is off.
    fn event(&mut self) -> bool {
        if self.crashed {
            return false;
        }
        self.events += 1;
        if self.crash_at.is_some_and(|at| self.events > at) {
            self.crashed = true;
        }
        !self.crashed
    }

    fn note(&mut self, words: [u64; 3]) {
        for word in words {
            self.hash = mix(self.hash ^ word);
        }
    }

    fn is_absent(&self, shard: u16, dev: DevIndex) -> bool {
        let member = &self.members[dev.index()];
        !member.present || member.hidden >> shard & 1 == 1 || self.is_dark(dev)
    }

    fn spring(&mut self, shard: u16, op: &DeviceOp) -> (Option<IoFault>, u64) {
        let dev = op.dev.get();
        let coin = self.rng.chance(2, 3);
        if self.is_absent(shard, op.dev) {
            return (Some(IoFault::Gone), op.offset_bytes);
        }
        let hit = self.traps.iter().position(|trap| {
            trap.dev() == dev
                && match trap {
                    Trap::Read { .. } => op.kind == OpKind::Read,
                    Trap::Write { .. } => op.kind == OpKind::Write,
                    Trap::Flush { .. } => op.kind == OpKind::Flush,
                    // What overwrites needs no room.
                    Trap::NoRoom { .. } => op.kind == OpKind::Write && coin,
                    Trap::Gone { .. } => true,
                    Trap::Misdirect { .. } => op.kind == OpKind::Write && self.is_content(op),
                    Trap::Astray { superblock, .. } => {
                        let hits = !superblock || self.is_superblock(op);
                        op.kind == OpKind::Write && self.members[op.dev.index()].stride > 0 && hits
                    }
                }
        });
        let Some(hit) = hit else { return (None, op.offset_bytes) };
        let eio = Some(IoFault::Device { errno: 5 });
        match self.traps[hit] {
            Trap::Read { dev, count } => {
                if count > 1 {
                    self.traps[hit] = Trap::Read { dev, count: count - 1 };
                } else {
                    self.traps.swap_remove(hit);
                }
                (eio, op.offset_bytes)
            }
            Trap::Write { .. } | Trap::Flush { .. } => {
                self.traps.swap_remove(hit);
                (eio, op.offset_bytes)
            }
            Trap::Gone { .. } => {
                self.traps.swap_remove(hit);
                self.members[op.dev.index()].present = false;
                (Some(IoFault::Gone), op.offset_bytes)
            }
            Trap::NoRoom { dev, count } => {
                self.lacked_room = true;
                match count {
                    0 | 1 => drop(self.traps.swap_remove(hit)),
                    more => self.traps[hit] = Trap::NoRoom { dev, count: more - 1 },
                }
                (Some(IoFault::NoSpace), op.offset_bytes)
            }
            Trap::Misdirect { .. } => {
                self.traps.swap_remove(hit);
                (None, self.misdirected(op))
            }
            Trap::Astray { .. } => {
                self.traps.swap_remove(hit);
                (None, self.astray(op))
            }
        }
    }

    fn start(&mut self, shard: u16, pool: &Pool, op: &DeviceOp) {
        let (fault, offset_bytes) = self.spring(shard, op);
        let blocks = match (op.kind, op.slot) {
            (OpKind::Write, Some(slot)) => blocks_of(&pool.bytes(slot)[..op.length_bytes as usize]),
            // A discarded block may read as anything.
            (OpKind::Discard, _) => {
                vec![Block::from([DISCARDED; BLOCK_BYTES]); op.length_bytes as usize / BLOCK_BYTES]
            }
            (OpKind::Read | OpKind::Write | OpKind::Flush, _) => Vec::new(),
        };
        let changes = |op: &DeviceOp| matches!(op.kind, OpKind::Write | OpKind::Discard);
        if changes(op) && self.broken.is_none() {
            let end = op.offset_bytes + op.length_bytes;
            let clash = self.flights.iter().find(|flight| {
                let other = flight.op;
                changes(&other)
                    && other.dev == op.dev
                    && other.offset_bytes < end
                    && op.offset_bytes < other.offset_bytes + other.length_bytes
                    // The same bytes twice, as when two reads heal one chunk, do no harm.
                    && !(op.offset_bytes == other.offset_bytes && flight.blocks == blocks)
            });
            if let Some(clash) = clash {
                self.broken =
                    Some(format!("two writes to one place in flight at once: {op:?} and {:?}", clash.op));
            }
        }
        let slow = self.pace.slow.filter(|&(dev, _)| dev == op.dev.get()).map_or(1, |(_, factor)| factor);
        let delay = self.rng.below(self.pace.delay_max * slow + 1);
        let stamp = self.members[op.dev.index()].disk.stamp();
        let held = self.holds(op);
        let due = (self.tick + delay).max(self.members[op.dev.index()].hung_until);
        let (op, due, since_ns) = (*op, if held { FOR_EVER } else { due }, self.now_ns);
        let given_up = false;
        self.flights.push(Flight {
            shard,
            op,
            due,
            blocks,
            stamp,
            fault,
            offset_bytes,
            given_up,
            held,
            since_ns,
        });
    }

    fn carry_out(&mut self, pool: &mut Pool, flight: &Flight) -> Result<(), IoFault> {
        let op = flight.op;
        if self.is_absent(flight.shard, op.dev) {
            return Err(IoFault::Gone);
        }
        let member = &mut self.members[op.dev.index()];
        if let Some(fault) = flight.fault {
            return Err(fault);
        }
        let good = match (op.kind, op.slot) {
            (OpKind::Read, Some(slot)) => {
                member.disk.read(op.offset_bytes, &mut pool.bytes_mut(slot)[..op.length_bytes as usize])
            }
            (OpKind::Write, Some(slot)) => {
                let same = pool.bytes(slot).chunks(BLOCK_BYTES).zip(&flight.blocks).all(|(a, b)| a == &b[..]);
                if !same && self.broken.is_none() {
                    self.broken = Some(format!("a buffer was changed while it was being written: {op:?}"));
                }
                member.disk.write(flight.offset_bytes, &flight.blocks)
            }
            (OpKind::Flush, _) => {
                member.disk.flush(flight.stamp);
                true
            }
            (OpKind::Discard, _) => member.disk.write(flight.offset_bytes, &flight.blocks),
            (OpKind::Read | OpKind::Write, None) => false,
        };
        if good { Ok(()) } else { Err(IoFault::Short) }
    }

    /// What was given up takes effect although nobody waits for it; its buffer is somebody else's by now.
    fn land(&mut self, flight: &Flight) {
        let member = &mut self.members[flight.op.dev.index()];
        if matches!(flight.op.kind, OpKind::Write | OpKind::Discard)
            && member.present
            && flight.fault.is_none()
        {
            member.disk.write(flight.offset_bytes, &flight.blocks);
        }
    }

    fn now<T>(
        &mut self,
        (shard, dev): (u16, DevIndex),
        kind: OpKind,
        offset_bytes: u64,
        run: impl FnOnce(&mut Disk) -> T,
    ) -> Result<T, IoFault> {
        if !self.event() {
            return Err(IoFault::Gone);
        }
        let op = DeviceOp {
            tag: 0,
            dev,
            kind,
            stream: block::Stream::Metadata,
            class: 0,
            offset_bytes,
            length_bytes: BLOCK_BYTES as u64,
            slot: None,
        };
        if dev.index() >= self.members.len() {
            return Err(IoFault::Gone);
        }
        if let (Some(fault), _) = self.spring_now(shard, &op) {
            return Err(fault);
        }
        self.note([kind as u64 + 16, u64::from(dev.get()), offset_bytes]);
        Ok(run(&mut self.members[dev.index()].disk))
    }

    /// Traps for the calls that assembly makes; misdirected writes are for the running array, those traps
    /// wait.
    fn spring_now(&mut self, shard: u16, op: &DeviceOp) -> (Option<IoFault>, u64) {
        let (mut waiting, traps): (Vec<Trap>, Vec<Trap>) = std::mem::take(&mut self.traps)
            .into_iter()
            .partition(|trap| matches!(trap, Trap::Misdirect { .. } | Trap::Astray { .. }));
        self.traps = traps;
        let result = self.spring(shard, op);
        self.traps.append(&mut waiting);
        result
    }
}

/// What [`block::DeviceSet`] is made of, each call for a shard.
impl World {
    /// Operations of a shard begin.
    pub fn submit(&mut self, shard: u16, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops {
            if !self.event() {
                return;
            }
            self.start(shard, pool, op);
            let is_log = op.dev.index() >= self.layout.first_log && self.is_content(op);
            if is_log && op.kind == OpKind::Write {
                self.log_writes.push((shard, op.dev, self.within_slice(op)));
            }
        }
    }

    /// A tick passes, and operations of a shard end.
    pub fn poll(&mut self, shard: u16, pool: &mut Pool, completions: &mut Vec<Completion>) {
        if self.crashed {
            return;
        }
        let mine = self.gone.iter().filter(|(of, _)| *of == shard);
        completions.extend(mine.map(|&(_, completion)| completion));
        self.gone.retain(|(of, _)| *of != shard);
        self.haunt();
        self.tick += 1;
        let tick = self.tick;
        let (mut due, waiting): (Vec<Flight>, Vec<Flight>) = std::mem::take(&mut self.flights)
            .into_iter()
            .partition(|flight| flight.due < tick && (flight.shard == shard || flight.is_orphan()));
        self.flights = waiting;
        self.rng.shuffle(&mut due);
        while let Some(flight) = due.pop() {
            if !self.event() {
                // Power fails: this one and the rest are still under way.
                self.flights.push(flight);
                break;
            }
            if flight.given_up {
                self.land(&flight);
                continue;
            }
            let result = self.carry_out(pool, &flight);
            let content = flight.blocks.first().map_or(0, |b| u64::from(format::crc32c(&b[..])));
            let what = flight.op.kind as u64 ^ u64::from(result.is_ok()) << 8;
            self.note([what, flight.op.offset_bytes ^ u64::from(flight.op.dev.get()) << 48, content]);
            completions.push(Completion { tag: flight.op.tag, result });
        }
        self.flights.append(&mut due);
    }

    /// Nobody waits any more for what a shard has under way on a device.
    pub fn give_up(&mut self, shard: u16, dev: DevIndex) {
        let given_up =
            |flight: &&mut Flight| flight.shard == shard && flight.op.dev == dev && !flight.given_up;
        for flight in self.flights.iter_mut().filter(given_up) {
            flight.given_up = true;
            self.gone.push((shard, Completion { tag: flight.op.tag, result: Err(IoFault::Gone) }));
        }
    }

    /// The size of a device, 0 if a shard finds none.
    pub fn size_bytes(&self, shard: u16, dev: DevIndex) -> u64 {
        let there = |m: &&Member| m.present && m.hidden >> shard & 1 == 0;
        self.members.get(dev.index()).filter(there).map_or(0, |m| m.disk.size_bytes())
    }

    /// A read that is waited for; `at` is the shard and the device.
    pub fn read_now(
        &mut self,
        at: (u16, DevIndex),
        offset_bytes: u64,
        into: &mut [u8],
    ) -> Result<(), IoFault> {
        self.now(at, OpKind::Read, offset_bytes, |disk| disk.read(offset_bytes, into))
            .and_then(|good| if good { Ok(()) } else { Err(IoFault::Short) })
    }

    /// A write that is waited for.
    pub fn write_now(&mut self, at: (u16, DevIndex), offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        let blocks = blocks_of(from);
        self.now(at, OpKind::Write, offset_bytes, |disk| disk.write(offset_bytes, &blocks))
            .and_then(|good| if good { Ok(()) } else { Err(IoFault::Short) })
    }

    /// A flush that is waited for.
    pub fn flush_now(&mut self, at: (u16, DevIndex)) -> Result<(), IoFault> {
        self.now(at, OpKind::Flush, 0, |disk| {
            let stamp = disk.stamp();
            disk.flush(stamp);
        })
    }
}
