//! A member that works and the device that will take its place, side by side: the member stays in service
//! until the other one, its *partner*, holds the same.
//!
//! A range at a time is read from both and written to the partner where they differ, so a copy that was begun
//! before costs little more than reading; what holds nothing is passed over. What is written to the member
//! meanwhile goes to both, unless it lies where nothing has been copied yet; what touches the range that is
//! being copied waits for it. Some ranges are kept *apart* and are neither copied nor written twice: by the
//! superblocks in them each device says who it is. When everything is copied, flushes go to both as well.
//! From [`Paired::hand_over`] on, writes to what is apart go to the partner instead of the member.
//!
//! The partner can fail without harm: nothing is written to it any more, the member goes on. Only if it fails
//! after it was handed over to, the member is gone, too: nobody can know then which of them counts.

mod copy;
mod unused;

pub use unused::MAP_AHEAD_BYTES;

use crate::planted::{Planted, planted};
use crate::{
    Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, META_BYTES, OpKind, Pool, ReadNow, WriteNow,
};
use copy::Copying;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use unused::Unused;

/// The partner in its own set.
const OWN: DevIndex = DevIndex::new(0);
/// Tags of copying; the caller's are below.
pub const COPY_TAGS: u64 = 1 << 63;
/// The tag of the flush behind it.
const FLUSH_TAG: u64 = u64::MAX;
/// A gap in which nobody told the time counts as at most this share of the partner's patience: whoever was
/// stopped for long has not asked for the answers either.
const GAP_SHARE: u64 = 8;
/// How long one wait lasts at most while there is a pair.
const WAIT_NS: u64 = 1_000_000;

/// What is to be copied.
#[derive(Clone, Debug)]
pub struct PairPlan {
    /// The member.
    pub of: DevIndex,
    /// Bytes of it that the array uses, from its beginning; a multiple of 4096.
    pub length_bytes: u64,
    /// What is apart, in ascending order; multiples of 4096.
    pub apart: Vec<Range<u64>>,
    /// How long the partner may owe an answer, and the member's writes may wait for a range that is being
    /// copied.
    pub patience_ns: u64,
    /// What no transfer crosses a multiple of.
    pub unbroken_bytes: u64,
}

/// How far a pair is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairStage {
    /// Not everything is copied.
    Copying,
    /// The partner holds what the member holds.
    Level,
    /// Its superblocks are written, the member's are not any more.
    HandingOver,
    /// Nothing is sent to either until the pair ends.
    Holding,
    /// The partner failed, or the member left: the pair is to end.
    Over,
}

/// Why a partner is of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairFault {
    /// It did not carry out an operation.
    Partner(IoFault),
    /// It owed an answer for longer than [`PairPlan::patience_ns`].
    PartnerLate,
    /// Nothing is wrong with it: too much of the member could not be read to list it.
    MemberUnread,
    /// For that long the member's writes waited for a range that was being copied, whichever of them it was
    /// that took so long.
    CopyLate,
    /// Nothing is wrong with it: it was let go, or the member left.
    LetGo,
}

impl fmt::Display for PairFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partner(fault) => fault.fmt(f),
            Self::PartnerLate => f.write_str("does not answer in time"),
            Self::MemberUnread => f.write_str("too much of the member cannot be read to copy it"),
            Self::CopyLate => f.write_str("writes of the member waited too long for what was being copied"),
            Self::LetGo => f.write_str("was let go"),
        }
    }
}

/// What there is to know of a pair.
#[derive(Clone, Copy, Debug)]
pub struct PairState {
    /// The member.
    pub of: DevIndex,
    /// How far it is.
    pub stage: PairStage,
    /// Bytes looked at so far, those passed over included.
    pub copied_bytes: u64,
    /// Bytes passed over since they hold nothing that anybody needs.
    pub unused_bytes: u64,
    /// Bytes to look at in all.
    pub length_bytes: u64,
    /// Bytes written to the partner because they differed.
    pub written_bytes: u64,
    /// Bytes that could not be read from the member, and were not written since.
    pub unread_bytes: u64,
    /// Why the partner is of no use any more.
    pub fault: Option<PairFault>,
    /// Whether nothing is under way that the pair knows of.
    pub is_quiet: bool,
}

/// A set of members one of which may have a partner. Without one it costs a look at a pointer.
pub struct Paired<D> {
    inner: D,
    pair: Option<Box<Pair<D>>>,
    /// What a pair that has ended held: it goes out with the next submission or poll.
    left: Vec<DeviceOp>,
}

struct Pair<D> {
    plan: PairPlan,
    partner: D,
    stage: PairStage,
    fault: Option<PairFault>,
    /// The partner failed when it may have been the member already: the member is none any more.
    took_member_along: bool,
    /// Everything is copied, and the partner is being flushed since then.
    flushing_since_ns: Option<u64>,
    /// From here on nothing is copied.
    next: u64,
    written_bytes: u64,
    /// Bytes that may still be looked at, or, below 0, that were too many; `None` = no limit.
    allowance: Option<i64>,
    unread: Unread,
    unused: Unused,
    range: Option<Copying>,
    /// The caller's operations on the member that write or flush.
    joins: BTreeMap<u64, Join>,
    /// Operations that wait for the range, or for the end.
    held: Vec<DeviceOp>,
    held_since_ns: u64,
    /// Of those given up: they end with the next poll.
    gone: Vec<u64>,
    clock: Awake,
    ops: Vec<DeviceOp>,
    partner_ops: Vec<DeviceOp>,
    ended: Vec<Completion>,
}

/// What could not be read of the member, and was not written since.
#[derive(Default)]
struct Unread {
    ranges: Vec<Range<u64>>,
    /// What is about to be read once more.
    again: Vec<Range<u64>>,
}

/// Time in which somebody looked: what is waited for counts by this.
struct Awake {
    now_ns: u64,
    /// When the caller last told the time.
    told_ns: u64,
}

/// An operation that ends when all devices that carry it out have ended it.
struct Join {
    /// What it writes.
    range: Range<u64>,
    result: Result<(), IoFault>,
    waits_for_member: bool,
    waits_for_partner: bool,
    /// It is in vain if the partner does not carry it out.
    partner_counts: bool,
    since_ns: u64,
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

fn range_of(op: &DeviceOp) -> Range<u64> {
    op.offset_bytes..op.offset_bytes + op.length_bytes
}

impl PairPlan {
    /// So many bytes of a member, but for the metadata blocks at some offsets, which are apart.
    pub fn new(of: DevIndex, length_bytes: u64, apart: &[u64], patience_ns: u64) -> Self {
        const BLOCK: u64 = META_BYTES as u64;
        let apart = apart.iter().map(|&at| at..at + BLOCK).collect();
        Self { of, length_bytes, apart, patience_ns, unbroken_bytes: u64::MAX }
    }

    /// The same of members whose slices may go on elsewhere at each multiple of so many bytes.
    #[must_use]
    pub fn unbroken(mut self, bytes: u64) -> Self {
        self.unbroken_bytes = bytes;
        self
    }
}

impl<D> Paired<D> {
    /// A set without a pair.
    pub fn new(inner: D) -> Self {
        Self { inner, pair: None, left: Vec::new() }
    }

    /// The members.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The same, to be changed.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The same, given back; the partner is let go.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Begins to copy a member of `plan` to `partner`, a set of one device. What is under way on the member
    /// is waited for where it writes. A pair that there is is replaced.
    pub fn begin(&mut self, plan: PairPlan, partner: D, under_way: &[DeviceOp], now_ns: u64) {
        let mut pair = Pair::new(plan, partner, now_ns);
        if !planted(Planted::CopyWhatIsWritten) {
            under_way.iter().for_each(|op| pair.await_op(op));
        }
        self.pair = Some(Box::new(pair));
    }

    /// The pair, if there is one.
    pub fn state(&self) -> Option<PairState> {
        self.pair.as_ref().map(|pair| pair.state())
    }

    /// The partner's set.
    pub fn partner_mut(&mut self) -> Option<&mut D> {
        self.pair.as_mut().map(|pair| &mut pair.partner)
    }

    /// From now on the partner's superblocks are written, the member's are not. Only of a pair that is level.
    pub fn hand_over(&mut self) {
        self.advance(PairStage::Level, PairStage::HandingOver);
    }

    /// What could not be read is read once more: what is in use has been healed, or could be read after all.
    /// Only of a pair that is level.
    pub fn copy_again(&mut self) {
        if let Some(pair) = &mut self.pair
            && pair.stage == PairStage::Level
        {
            pair.stage = PairStage::Copying;
            pair.unread.again = std::mem::take(&mut pair.unread.ranges);
        }
    }

    /// Nothing is sent to either device any more, until [`Paired::end`]. Only of a pair that has handed over.
    pub fn hold(&mut self) {
        self.advance(PairStage::HandingOver, PairStage::Holding);
    }

    fn advance(&mut self, from: PairStage, to: PairStage) {
        if let Some(pair) = &mut self.pair
            && pair.stage == from
        {
            pair.stage = to;
        }
    }
}

impl<D: DeviceSet> Paired<D> {
    /// So many bytes more may be looked at, or as many as there are; and what time it is. A partner that has
    /// owed an answer for too long is of no use any more.
    pub fn allow(&mut self, bytes: Option<u64>, now_ns: u64) {
        let Some(pair) = &mut self.pair else { return };
        let more = bytes.map(|more| i64::try_from(more).unwrap_or(i64::MAX));
        // What was not used does not add up.
        pair.allowance = more.map(|more| more.saturating_add(pair.allowance.unwrap_or(0).min(0)));
        pair.pass_time(now_ns);
        if let Some(fault) = pair.is_late() {
            self.give_up_partner(fault);
        }
    }

    /// The partner is let go. What is under way on it ends.
    pub fn abandon(&mut self) {
        self.give_up_partner(PairFault::LetGo);
    }

    fn give_up_partner(&mut self, fault: PairFault) {
        if let Some(pair) = &mut self.pair {
            pair.fail(fault);
            pair.partner.give_up(OWN);
        }
    }

    /// There is no pair any more, if nothing of it is under way; the partner's set. What was held goes to the
    /// member's place, where the partner may have been put meanwhile, with the next poll.
    pub fn end(&mut self) -> Option<D> {
        if !self.state()?.is_quiet {
            return None;
        }
        let pair = *self.pair.take()?;
        self.left.extend(pair.held);
        Some(pair.partner)
    }

    fn send_left(&mut self, pool: &mut Pool) {
        if !self.left.is_empty() {
            let left = std::mem::take(&mut self.left);
            self.submit(pool, &left);
        }
    }
}

impl<D> Pair<D> {
    fn new(plan: PairPlan, partner: D, now_ns: u64) -> Self {
        Self {
            plan,
            partner,
            stage: PairStage::Copying,
            fault: None,
            took_member_along: false,
            flushing_since_ns: None,
            next: 0,
            written_bytes: 0,
            allowance: None,
            unread: Unread::default(),
            unused: Unused::default(),
            range: None,
            joins: BTreeMap::new(),
            held: Vec::new(),
            held_since_ns: now_ns,
            gone: Vec::new(),
            clock: Awake { told_ns: now_ns, now_ns },
            ops: Vec::new(),
            partner_ops: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn state(&self) -> PairState {
        PairState {
            of: self.plan.of,
            stage: self.stage,
            copied_bytes: self.next,
            unused_bytes: self.unused.passed_bytes,
            length_bytes: self.plan.length_bytes,
            written_bytes: self.written_bytes,
            unread_bytes: self.unread.ranges.iter().chain(&self.unread.again).map(length).sum(),
            fault: self.fault,
            is_quiet: self.joins.is_empty()
                && self.range.is_none()
                && self.gone.is_empty()
                && self.flushing_since_ns.is_none(),
        }
    }

    fn pass_time(&mut self, now_ns: u64) {
        let gap_ns = now_ns.saturating_sub(self.clock.told_ns);
        let at_most = if planted(Planted::PartnerOwesWhileStopped) {
            u64::MAX
        } else {
            self.plan.patience_ns / GAP_SHARE
        };
        self.clock.now_ns += gap_ns.min(at_most);
        self.clock.told_ns = self.clock.told_ns.max(now_ns);
    }

    /// Whether the partner has owed an answer for too long, or the caller's writes have waited so long for a
    /// range that is being copied, whoever owes something of that.
    fn is_late(&self) -> Option<PairFault> {
        if self.stage == PairStage::Over {
            return None;
        }
        let is_late = |since_ns: &u64| self.clock.now_ns - since_ns > self.plan.patience_ns;
        let owing = self.joins.values().filter(|join| join.waits_for_partner).map(|join| join.since_ns);
        let copying = self.range.as_ref().filter(|copying| copying.left_to_partner > 0);
        let mut owed = owing.chain(copying.map(|copying| copying.since_ns)).chain(self.flushing_since_ns);
        let held_ns = self.range.as_ref().filter(|_| !self.held.is_empty()).map(|_| self.held_since_ns);
        let of_partner = owed.any(|since_ns| is_late(&since_ns)).then_some(PairFault::PartnerLate);
        of_partner.or_else(|| held_ns.filter(is_late).map(|_| PairFault::CopyLate))
    }

    /// An operation was under way before there was a pair: it goes to the member alone.
    fn await_op(&mut self, op: &DeviceOp) {
        if op.dev == self.plan.of && op.kind != OpKind::Read {
            let join = Join {
                range: range_of(op),
                result: Ok(()),
                waits_for_member: true,
                waits_for_partner: false,
                partner_counts: false,
                since_ns: self.clock.now_ns,
            };
            self.joins.insert(op.tag, join);
        }
    }

    fn fail(&mut self, fault: PairFault) {
        self.fault.get_or_insert(fault);
        if matches!(self.stage, PairStage::HandingOver | PairStage::Holding) {
            self.took_member_along = true;
            self.gone.extend(self.held.drain(..).map(|op| op.tag));
        }
        self.stage = PairStage::Over;
    }

    fn is_apart(&self, range: &Range<u64>) -> bool {
        self.plan.apart.iter().any(|apart| overlap(apart, range))
    }

    /// Sorts an operation of the caller's into what goes where.
    fn take(&mut self, op: &DeviceOp) {
        if op.dev == self.plan.of && self.took_member_along {
            return self.gone.push(op.tag);
        }
        if op.dev != self.plan.of {
            return self.ops.push(*op);
        }
        let range = range_of(op);
        if op.kind == OpKind::Read {
            return self.take_read(op, range);
        }
        if op.kind == OpKind::Write && self.stage == PairStage::Copying {
            self.unused.use_again(&range);
        }
        let touches = |copying: &Copying| overlap(&copying.range, &range) && !planted(Planted::CopyUnlocked);
        // In the order in which they were submitted: a log is one ascending stream.
        // It may have been on its way when the pair began.
        self.joins.remove(&op.tag);
        let behind = !self.held.is_empty() && op.kind != OpKind::Flush;
        if behind || self.stage == PairStage::Holding || self.range.as_ref().is_some_and(touches) {
            if self.held.is_empty() {
                self.held_since_ns = self.clock.now_ns;
            }
            return self.held.push(*op);
        }
        let (to_member, to_partner) = self.targets(op.kind, &range);
        let join = Join {
            range,
            result: Ok(()),
            waits_for_member: to_member,
            waits_for_partner: to_partner,
            partner_counts: self.stage == PairStage::HandingOver,
            since_ns: self.clock.now_ns,
        };
        if to_partner && op.kind == OpKind::Write {
            self.forget_unread(&join.range);
        }
        self.joins.insert(op.tag, join);
        if to_member {
            self.ops.push(*op);
        }
        if to_partner {
            self.partner_ops.push(DeviceOp { dev: OWN, ..*op });
        }
    }

    /// Reads go to the member, but what tells who a device is is read where it is written.
    fn take_read(&mut self, op: &DeviceOp, range: Range<u64>) {
        let hands_over = matches!(self.stage, PairStage::HandingOver | PairStage::Holding);
        if !hands_over || !self.is_apart(&range) {
            return self.ops.push(*op);
        }
        let join = Join {
            // Nothing is written.
            range: range.start..range.start,
            result: Ok(()),
            waits_for_member: false,
            waits_for_partner: true,
            partner_counts: true,
            since_ns: self.clock.now_ns,
        };
        self.joins.insert(op.tag, join);
        self.partner_ops.push(DeviceOp { dev: OWN, ..*op });
    }

    /// Whether an operation that changes something goes to the member, and to the partner.
    fn targets(&self, kind: OpKind, range: &Range<u64>) -> (bool, bool) {
        let is_flush = kind == OpKind::Flush;
        match self.stage {
            PairStage::Over => (true, false),
            PairStage::Copying if is_flush => (true, false),
            _ if is_flush => (true, !planted(Planted::FlushMemberOnly)),
            PairStage::HandingOver if self.is_apart(range) => (false, true),
            _ if self.is_apart(range) => (true, false),
            PairStage::Copying => (true, range.start < self.next),
            PairStage::Level | PairStage::HandingOver | PairStage::Holding => (true, true),
        }
    }

    /// What is written is not missing any more.
    fn forget_unread(&mut self, written: &Range<u64>) {
        if self.unread.ranges.iter().any(|unread| overlap(unread, written)) {
            let rest = |unread: &Range<u64>| {
                let before = unread.start..unread.end.min(written.start);
                let behind = unread.start.max(written.end)..unread.end;
                [before, behind].into_iter().filter(|part| part.start < part.end)
            };
            self.unread.ranges = self.unread.ranges.iter().flat_map(rest).collect();
        }
    }

    /// One of the devices has ended an operation of the caller's; `None` if the other one has not.
    fn join(&mut self, completion: Completion, of_partner: bool) -> Option<Completion> {
        let Some(join) = self.joins.get_mut(&completion.tag) else {
            return (!of_partner).then_some(completion);
        };
        let waits = if of_partner { &mut join.waits_for_partner } else { &mut join.waits_for_member };
        *waits = false;
        if !of_partner || join.partner_counts {
            join.result = join.result.and(completion.result);
        }
        let over = !join.waits_for_member && !join.waits_for_partner;
        let result = join.result;
        if of_partner && let Err(fault) = completion.result {
            self.fail(PairFault::Partner(fault));
        }
        over.then(|| {
            self.joins.remove(&completion.tag);
            Completion { tag: completion.tag, result }
        })
    }
}

impl<D: DeviceSet> Pair<D> {
    /// Sends what waited for a range that is done with.
    fn release(&mut self, inner: &mut D, pool: &mut Pool) {
        if self.held.is_empty() || self.stage == PairStage::Holding || self.range.is_some() {
            return;
        }
        for op in std::mem::take(&mut self.held) {
            self.take(&op);
        }
        self.send(inner, pool);
    }

    fn send(&mut self, inner: &mut D, pool: &mut Pool) {
        if !self.ops.is_empty() {
            inner.submit(pool, &self.ops);
            self.ops.clear();
        }
        if !self.partner_ops.is_empty() {
            self.partner.submit(pool, &self.partner_ops);
            self.partner_ops.clear();
        }
    }

    fn poll(&mut self, inner: &mut D, pool: &mut Pool, completions: &mut Vec<Completion>) {
        for tag in std::mem::take(&mut self.gone) {
            completions.push(Completion { tag, result: Err(IoFault::Gone) });
        }
        let mut ended = std::mem::take(&mut self.ended);
        for of_partner in [false, true] {
            let set: &mut D = if of_partner { &mut self.partner } else { inner };
            set.poll(pool, &mut ended);
            for completion in ended.drain(..) {
                if completion.tag == FLUSH_TAG {
                    self.flushed(completion.result);
                } else if completion.tag >= COPY_TAGS {
                    self.copied(completion, of_partner, pool);
                } else {
                    completions.extend(self.join(completion, of_partner));
                }
            }
        }
        self.ended = ended;
        self.release(inner, pool);
        self.pump(inner, pool);
    }
}

impl<D: DeviceSet> DeviceSet for Paired<D> {
    #[inline]
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.send_left(pool);
        let Some(pair) = &mut self.pair else { return self.inner.submit(pool, ops) };
        ops.iter().for_each(|op| pair.take(op));
        pair.send(&mut self.inner, pool);
    }

    #[inline]
    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.send_left(pool);
        match &mut self.pair {
            None => self.inner.poll(pool, completions),
            Some(pair) => pair.poll(&mut self.inner, pool, completions),
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        // Both devices may be what is waited for.
        let at_most = if self.pair.is_some() { timeout_ns.min(WAIT_NS) } else { timeout_ns };
        self.inner.wait(at_most);
    }

    fn give_up(&mut self, dev: DevIndex) {
        self.inner.give_up(dev);
        if let Some(pair) = &mut self.pair
            && pair.plan.of == dev
        {
            pair.fail(PairFault::LetGo);
            pair.gone.extend(pair.held.drain(..).map(|op| op.tag));
            pair.partner.give_up(OWN);
        }
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.inner.size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.inner.read_now(dev, offset_bytes, into)
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        self.inner.read_all_now(reads);
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        self.inner.read_all_beside(reads, work);
    }

    /// Whoever writes synchronously does so before there is a pair, or ends it.
    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        if let Some(pair) = self.pair.as_mut().filter(|pair| pair.plan.of == dev) {
            pair.fail(PairFault::LetGo);
        }
        self.inner.write_now(dev, offset_bytes, from)
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        self.write_all_beside(writes, &mut || {});
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        if let Some(pair) = &mut self.pair
            && writes.iter().any(|write| write.dev == pair.plan.of)
        {
            pair.fail(PairFault::LetGo);
        }
        self.inner.write_all_beside(writes, work);
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.inner.flush_now(dev)
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        self.inner.flush_all_now(flushes);
    }
}
