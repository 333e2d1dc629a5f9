//! Operations under way: what each is for, since when, which are to be asked again, and which are not waited
//! for any more.
//!
//! Two things can keep an operation from ending. A member *lacks room*: a write found none where the member
//! lies (a sparse file on a full file system). Nothing is wrong with the member, and the write did not
//! happen; it stays under way, as if the device were slow, and is asked again until there is room or the
//! member is taken out of service. So whatever waits for it (a record, a frame, a checkpoint, a superblock,
//! an answer) waits, and nothing is promised that is not there. A member *does not answer*: it is taken out
//! of service when an operation on it is older than the limit, if the array can do without it. Whoever goes
//! out of service is given up: everything under way on it ends at once, and the driver sees to it that the
//! late ends of what the device still has do no harm.

use super::{Core, Engine, EngineError, EngineOptions, Event, HoldUp};
use super::{Purpose, Tag};
use crate::fault::{FailCause, OpFault};
use crate::planted::{Planted, planted};
use block::slab::{Key, Slab};
use block::{Completion, DevIndex, DeviceOp, IoFault, OpKind};
use format::MemberState;

/// How often a member that lacks room is asked again while writes wait for it before they are refused, and at
/// least.
const ASKS_PER_WAIT: u64 = 20;
const ASK_AGAIN_NS: std::ops::RangeInclusive<u64> = 50_000..=250_000_000;
/// How often the age of operations is looked at, as a part of the limit, and at least.
const LOOKS_PER_LIMIT: u64 = 256;
const LOOK_NS_MAX: u64 = 1_000_000_000;

/// An operation under way.
#[derive(Clone, Copy)]
struct Flight {
    tag: Tag,
    op: DeviceOp,
    since_ns: u64,
    /// The same in time that the engine was awake: a process that was stopped for an hour has not waited for
    /// an hour.
    since_awake_ns: u64,
    /// It found no room at least once.
    lacked_room: bool,
    /// It is with the driver; else it waits to be asked again.
    asked: bool,
}

/// What is wrong with a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberTrouble {
    /// Age of the oldest operation on it, in nanoseconds; `None` if nothing is under way.
    pub oldest_ns: Option<u64>,
    /// Since when it lacks room, in the engine's time.
    pub lacks_room_since_ns: Option<u64>,
    /// It does not answer, and the array cannot do without it.
    pub not_answering: bool,
    /// The last operation that the device did not carry out, since assembly or since it took its place.
    pub last_fault: Option<OpFault>,
    /// Why it went out of service, if that was since assembly.
    pub failed: Option<FailCause>,
}

impl MemberTrouble {
    /// With what another shard of the array says of the same member.
    pub fn and(self, other: Self) -> Self {
        // Shards that only followed another one's example know no cause.
        let told = |failed: &FailCause| !matches!(failed, FailCause::Asked);
        let first = |one: Option<u64>, two: Option<u64>| one.into_iter().chain(two).min();
        Self {
            oldest_ns: self.oldest_ns.max(other.oldest_ns),
            lacks_room_since_ns: first(self.lacks_room_since_ns, other.lacks_room_since_ns),
            not_answering: self.not_answering || other.not_answering,
            last_fault: self.last_fault.or(other.last_fault),
            failed: self.failed.filter(told).or(other.failed.filter(told)).or(self.failed).or(other.failed),
        }
    }
}

/// One member.
#[derive(Clone, Copy, Default)]
struct Watch {
    in_flight: u32,
    /// Operations that found no room and have not ended yet.
    lacking: u32,
    lacking_since_ns: u64,
    not_answering: bool,
}

/// See the module's documentation.
pub(super) struct Flights {
    table: Slab<Flight>,
    members: Vec<Watch>,
    /// Operations that found no room and have not ended yet, on all members.
    lacking: u32,
    /// Places of operations that wait to be asked again, oldest first.
    parked: Vec<Key<Flight>>,
    ask_again_ns: u64,
    ask_interval_ns: u64,
    /// Places of operations that end as if the device were gone, with the next turn.
    lost: Vec<Key<Flight>>,
    /// Members that went out of service: the driver is to be told.
    given_up: Vec<DevIndex>,
    now_ns: u64,
    awake_ns: u64,
    look_ns: u64,
    look_interval_ns: u64,
    /// When more members were late than the array can do without, last, in waking time.
    shelf_ns: Option<u64>,
}

impl Flights {
    pub(super) fn new(members: usize, options: &EngineOptions) -> Self {
        let limit_ns = options.device_timeout_ns.unwrap_or(u64::MAX);
        let ask_interval_ns = options.room_wait_ns / ASKS_PER_WAIT;
        Self {
            table: Slab::default(),
            members: vec![Watch::default(); members],
            lacking: 0,
            parked: Vec::new(),
            ask_again_ns: 0,
            ask_interval_ns: ask_interval_ns.clamp(*ASK_AGAIN_NS.start(), *ASK_AGAIN_NS.end()),
            lost: Vec::new(),
            given_up: Vec::new(),
            now_ns: 0,
            awake_ns: 0,
            look_ns: 0,
            look_interval_ns: (limit_ns / LOOKS_PER_LIMIT).clamp(1, LOOK_NS_MAX),
            shelf_ns: None,
        }
    }

    /// Operations on a member that have not ended.
    pub(super) fn count(&self, dev: DevIndex) -> u32 {
        self.members.get(dev.index()).map_or(0, |member| member.in_flight)
    }

    /// The clock; gaps in which nobody looked count only as long as looks are apart.
    pub(super) fn set_now(&mut self, now_ns: u64) {
        let gap_ns = now_ns.saturating_sub(self.now_ns);
        let stopped = gap_ns > 2 * self.look_interval_ns && !planted(Planted::StoppedCountsAsSilent);
        self.awake_ns += if stopped { 2 * self.look_interval_ns } else { gap_ns };
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// A new operation; its place is the tag that the driver knows it by. Fields are written one by one, and
    /// where they stay: what was just written in parts is slow to be read as a whole.
    #[inline(always)]
    pub(super) fn begin(&mut self, tag: Tag, op: DeviceOp) -> DeviceOp {
        let (since_ns, since_awake_ns) = (self.now_ns, self.awake_ns);
        let fresh = || Flight { tag, op, since_ns, since_awake_ns, lacked_room: false, asked: true };
        let key = self.table.reuse(fresh);
        let DeviceOp { tag: _, dev, kind, stream, class, offset_bytes, length_bytes, slot } = op;
        // All fields by their names: a new one is not to keep what the last operation had there.
        let Flight { tag: purpose, op: known, since_ns: since, since_awake_ns: awake, lacked_room, asked } =
            &mut self.table[key];
        (purpose.purpose, purpose.dev) = (tag.purpose, tag.dev);
        known.tag = u64::from(key.index());
        (known.dev, known.kind, known.stream, known.class) = (dev, kind, stream, class);
        (known.offset_bytes, known.length_bytes, known.slot) = (offset_bytes, length_bytes, slot);
        (*since, *awake) = (since_ns, since_awake_ns);
        (*lacked_room, *asked) = (false, true);
        self.members[tag.dev.index()].in_flight += 1;
        let op = DeviceOp { tag: known.tag, dev, kind, stream, class, offset_bytes, length_bytes, slot };
        debug_assert_eq!(*known, op, "what is asked for again is what was asked for");
        op
    }

    /// An operation ended; what it was for, and whether it lacked room.
    #[inline]
    fn end(&mut self, key: Key<Flight>) -> (Tag, bool) {
        let Flight { tag, lacked_room, .. } = self.table[key];
        self.table.release(key);
        let member = &mut self.members[tag.dev.index()];
        member.in_flight -= 1;
        if lacked_room {
            member.lacking -= 1;
            self.lacking -= 1;
        }
        (tag, lacked_room)
    }

    fn flight(&mut self, key: Key<Flight>) -> &mut Flight {
        &mut self.table[key]
    }

    /// A write found no room: it is asked again later. The member, if it lacked none so far.
    fn park(&mut self, key: Key<Flight>) -> Option<DevIndex> {
        let now_ns = self.now_ns;
        let flight = self.flight(key);
        let first = !std::mem::replace(&mut flight.lacked_room, true);
        flight.asked = false;
        let dev = flight.tag.dev;
        let member = &mut self.members[dev.index()];
        let begins = member.lacking == 0;
        if begins {
            member.lacking_since_ns = now_ns;
        }
        member.lacking += u32::from(first);
        self.lacking += u32::from(first);
        if self.parked.is_empty() {
            self.ask_again_ns = now_ns.saturating_add(self.ask_interval_ns);
        }
        self.parked.push(key);
        begins.then_some(dev)
    }

    /// Takes the operations that are to be asked again now.
    fn ask_again(&mut self) -> Vec<DeviceOp> {
        if self.parked.is_empty() || self.now_ns < self.ask_again_ns {
            return Vec::new();
        }
        let (parked, awake_ns) = (std::mem::take(&mut self.parked), self.awake_ns);
        let asked = |key| {
            let flight = self.flight(key);
            (flight.asked, flight.since_awake_ns) = (true, awake_ns);
            flight.op
        };
        parked.into_iter().map(asked).collect()
    }

    /// What waits to be asked again, on one member or all, is given up.
    fn lose_parked(&mut self, dev: Option<DevIndex>) {
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|&key| {
            let is_lost = dev.is_none_or(|dev| self.flight(key).tag.dev == dev);
            if is_lost {
                self.lost.push(key);
            }
            !is_lost
        });
        self.parked = parked;
    }

    /// The members that lack room, and since when.
    fn lacking(&self) -> Option<(DevIndex, u64)> {
        if self.lacking == 0 {
            return None;
        }
        let members = (0u16..).zip(&self.members).filter(|(_, member)| member.lacking > 0);
        members.map(|(dev, member)| (DevIndex::new(dev), member.lacking_since_ns)).min_by_key(|&(_, ns)| ns)
    }

    /// The oldest operation that the driver has of each member, as the age in waking time.
    fn oldest_asked_ns(&self) -> Vec<u64> {
        let mut oldest = vec![0; self.members.len()];
        for flight in self.table.iter().filter(|flight| flight.asked) {
            let age = &mut oldest[flight.tag.dev.index()];
            *age = self.awake_ns.saturating_sub(flight.since_awake_ns).max(*age);
        }
        oldest
    }

    /// The operation with that tag has ended; what it was for.
    #[cfg(test)]
    pub(super) fn end_of(&mut self, tag: u64) -> Tag {
        self.end(key_of(tag)).0
    }

    /// Operations on a member that the driver has, as it knows them. What waits to be asked again is not with
    /// it, and may never be.
    pub(super) fn on(&self, dev: DevIndex) -> impl Iterator<Item = DeviceOp> + '_ {
        let of_driver = move |flight: &&Flight| flight.tag.dev == dev && flight.asked;
        self.table.iter().filter(of_driver).map(|flight| flight.op)
    }

    /// Whether anything is under way.
    pub(super) fn any(&self) -> bool {
        !self.table.is_empty()
    }

    /// Something ends, or the driver is to be told something, with the next turn.
    pub(super) fn wants_turn(&self) -> bool {
        !self.lost.is_empty() || !self.given_up.is_empty()
    }

    /// Members whose operations the driver is to give up, each once.
    pub(super) fn take_given_up(&mut self) -> Option<DevIndex> {
        self.given_up.pop()
    }
}

impl Engine {
    /// A device operation ended.
    pub fn complete(&mut self, completion: Completion) {
        let key = key_of(completion.tag);
        if completion.result == Err(IoFault::NoSpace) && self.core.waits_for_room(key) {
            if let Some(dev) = self.core.ops.flights.park(key) {
                self.core.answers.events.push(Event::HeldUp { dev, why: HoldUp::LacksRoom });
            }
            return;
        }
        if let Err(fault) = completion.result {
            let op = self.core.ops.flights.flight(key).op;
            self.core.note_fault(&op, fault);
        }
        let tag = self.core.end_flight(key);
        self.ended(tag, completion.result);
    }

    /// Ends what was given up, asks again what found no room, and looks for members that do not answer.
    pub(super) fn watch_members(&mut self) {
        while let Some(key) = self.core.ops.flights.lost.pop() {
            let tag = self.core.end_flight(key);
            self.ended(tag, Err(IoFault::Gone));
        }
        for op in self.core.ops.flights.ask_again() {
            self.core.enlist(op);
        }
        self.core.look_at_ages();
    }
}

impl Core {
    /// An operation is under way no more, nor is room lacking for it.
    #[inline]
    fn end_flight(&mut self, key: Key<Flight>) -> Tag {
        let (tag, lacked_room) = self.ops.flights.end(key);
        if lacked_room && self.ops.flights.members[tag.dev.index()].lacking == 0 {
            self.answers.events.push(Event::HoldUpEnded { dev: tag.dev, why: HoldUp::LacksRoom });
        }
        tag
    }

    /// A device did not carry out an operation. Not worth noting: what is said for a member out of service,
    /// that a chunk that could be healed found no room, and that a device will not take a hint, unless it is
    /// gone.
    fn note_fault(&mut self, op: &DeviceOp, fault: IoFault) {
        let hint = op.kind == OpKind::Discard && fault != IoFault::Gone;
        if self.health.is_writable(op.dev) && !hint && fault != IoFault::NoSpace {
            self.health.note_fault(op.dev, OpFault::new(op, fault, self.now_ns));
        }
    }

    /// Hands an operation to the driver, unless nothing is written any more.
    #[inline(always)]
    pub(super) fn issue(&mut self, tag: Tag, op: DeviceOp) {
        let op = self.ops.flights.begin(tag, op);
        self.ops.issued += 1;
        if self.board.frozen && op.kind != OpKind::Read {
            let key = key_of(op.tag);
            self.ops.flights.flight(key).asked = false;
            return self.ops.flights.lost.push(key);
        }
        self.enlist(op);
    }

    /// Whether an operation that found no room is to be asked again. What a frozen array or a member out of
    /// service does not write is never written; a chunk that is only healed can be read without.
    fn waits_for_room(&mut self, key: Key<Flight>) -> bool {
        let tag = self.ops.flights.flight(key).tag;
        let droppable = matches!(tag.purpose, Purpose::Heal { .. } | Purpose::Trim { .. } | Purpose::TrimLog);
        !self.board.frozen
            && !droppable
            && self.health.is_writable(tag.dev)
            && !planted(Planted::RoomForgotten)
    }

    /// A member went out of service: what is under way on it is not waited for.
    pub(super) fn give_up(&mut self, dev: DevIndex) {
        let frozen = self.board.frozen;
        self.ops.flights.lose_parked((!frozen).then_some(dev));
        if !planted(Planted::WaitForGivenUp) {
            self.ops.flights.given_up.push(dev);
        }
    }

    fn look_at_ages(&mut self) {
        let Some(limit_ns) = self.options.device_timeout_ns else { return };
        if self.now_ns < self.ops.flights.look_ns || self.board.frozen {
            return;
        }
        self.ops.flights.look_ns = self.now_ns.saturating_add(self.ops.flights.look_interval_ns);
        let ages = self.ops.flights.oldest_asked_ns();
        // Members that are about to be late, too: if a whole shelf stops answering, none of it is thrown out.
        let late = |(dev, age): &(DevIndex, u64)| *age >= limit_ns / 2 && self.health.is_writable(*dev);
        let late: Vec<(DevIndex, u64)> =
            (0u16..).map(DevIndex::new).zip(ages.iter().copied()).filter(late).collect();
        let healthy = late.iter().filter(|(dev, _)| self.health.state(*dev) == MemberState::Healthy).count();
        let borne = self.health.missing_count() + healthy <= self.store.config.geometry.parity_count();
        let awake_ns = self.ops.flights.awake_ns;
        if !borne {
            self.ops.flights.shelf_ns = Some(awake_ns);
        }
        // A shelf that answers again does so one member after the other: the last are not thrown out.
        let recent = |at_ns: u64| awake_ns.saturating_sub(at_ns) < limit_ns / 2;
        let borne = borne && !self.ops.flights.shelf_ns.is_some_and(recent);
        let borne = borne || planted(Planted::ShelfThrownOut);
        let too_late = |age_ns: u64| age_ns >= limit_ns && !planted(Planted::WaitForEver);
        for (dev, age_ns) in (0u16..).map(DevIndex::new).zip(ages) {
            let is_late = too_late(age_ns) && late.iter().any(|&(other, _)| other == dev);
            self.note_answering(dev, !is_late || borne);
            if is_late && borne {
                self.fail_member(dev, FailCause::Silent { age_ns });
            }
        }
    }

    fn note_answering(&mut self, dev: DevIndex, answers: bool) {
        let silent = &mut self.ops.flights.members[dev.index()].not_answering;
        let why = HoldUp::NotAnswering;
        match (std::mem::replace(silent, !answers), answers) {
            (false, false) => self.answers.events.push(Event::HeldUp { dev, why }),
            (true, true) => self.answers.events.push(Event::HoldUpEnded { dev, why }),
            (true, false) | (false, true) => {}
        }
    }

    /// When the engine wants to be pumped for the sake of its members.
    pub(super) fn members_deadline_ns(&self) -> Option<u64> {
        let again = (!self.ops.flights.parked.is_empty()).then_some(self.ops.flights.ask_again_ns);
        let limit = self.options.device_timeout_ns.filter(|_| self.ops.flights.any() && !self.board.frozen);
        again.into_iter().chain(limit.map(|_| self.ops.flights.look_ns)).min()
    }

    /// What is wrong with a member.
    pub(super) fn member_trouble(&self, dev: DevIndex) -> MemberTrouble {
        let Some(member) = self.ops.flights.members.get(dev.index()) else { return MemberTrouble::default() };
        let known = &self.health.members()[dev.index()];
        let own = self.ops.flights.table.iter().filter(|flight| flight.tag.dev == dev);
        let oldest = own.map(|flight| flight.since_ns).min();
        MemberTrouble {
            oldest_ns: oldest.map(|since_ns| self.now_ns.saturating_sub(since_ns)),
            lacks_room_since_ns: (member.lacking > 0).then_some(member.lacking_since_ns),
            not_answering: member.not_answering,
            last_fault: known.last_fault,
            failed: known.failed,
        }
    }

    /// Whether a member in service lacks room or does not answer.
    pub(super) fn is_held_up(&self) -> bool {
        self.ops.flights.members.iter().any(|member| member.lacking > 0 || member.not_answering)
    }

    /// The member that lacks room for longest, if one does: writes wait for it.
    pub(super) fn lacks_room(&self) -> Option<DevIndex> {
        self.ops.flights.lacking().map(|(dev, _)| dev)
    }

    /// Why writes are not taken for want of room: some member has lacked it for longer than clients are to
    /// wait.
    pub(super) fn room_error(&self) -> Option<EngineError> {
        let (dev, since_ns) = self.ops.flights.lacking()?;
        let waited = self.now_ns.saturating_sub(since_ns) >= self.options.room_wait_ns;
        waited.then_some(EngineError::MemberFull { dev })
    }

    /// Another device has taken the member's place.
    pub(super) fn forget_trouble(&mut self, dev: DevIndex) {
        self.note_answering(dev, true);
    }
}

/// The operation that the driver knows by a tag.
fn key_of(tag: u64) -> Key<Flight> {
    Key::from_index(u32::try_from(tag).expect("tags are numbers of places"))
}
