//! MiDAS (Oh, Kim, Han, Kim, Lee, Noh: "MIDAS: Minimizing Write Amplification in Log-Structured Systems
//! through Adaptive Group Number and Size Configuration", FAST 2024), from its description: requirement
//! L-12.
//!
//! Groups form a chain: what is valid when a unit of one group is collected joins the next, so chunks are
//! sorted by age. All but the last group have a size, in units; the one that exceeds it gives up its oldest
//! unit. In the last group the victim policy chooses, and survivors stay. One more group takes hot chunks.
//!
//! How many groups there are, and how large, follows from how long versions live ([`intervals`]), reckoned
//! anew after every epoch. Where victims come out fuller than was reckoned, the groups from there on are one
//! until the next epoch: the load is not what it was. Until enough is known, and where it costs less than
//! groups with sizes, survivors go on through four groups and the victim policy chooses among all units.
//!
//! | class here | group |
//! |--:|---|
//! | 0 | hot: chunks of which the last three versions died young |
//! | 1 | other user writes |
//! | 2, 3, ... | what outlived so many groups |
//!
//! What differs from the authors' prototype: intervals are those of all writes, told by the engine's times,
//! where theirs are of a hundredth of the addresses; those of hot and of other versions are kept apart, so
//! what the filter lets through is measured; the last group is reckoned as collected in order of age; and
//! whether sizes pay is decided by what was measured with and without them. A unit that would free nothing
//! is not collected, whatever its group's size.
//!
//! Memory: a quarter of a byte for each chunk of the volume, and 40 KiB.

mod intervals;
#[cfg(test)]
mod tests;

use crate::error::within;
use crate::{
    Class, CollectedUnit, GcWrite, OptionError, Placement, UnitId, UnitState, Units, UserWrite, Wish,
};
use intervals::{Chain, Intervals, Lives, Room, Survival};

/// Options of [`Midas`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MidasOptions {
    /// Logical chunks of the volume.
    pub chunk_count: u64,
    /// Groups at most, the one of hot chunks included: 2 to 8.
    pub groups_max: u64,
}

impl MidasOptions {
    /// Groups if nothing else is said: each keeps a unit open and one free for itself.
    pub const GROUPS_MAX: u64 = 8;
    /// Memory of the counters of hot chunks, a quarter of a byte each.
    pub const CHUNKS_PER_BYTE: u64 = 4;
}

/// Versions that died young before a chunk is hot: what two bits hold.
const HOT: u8 = 3;
/// Without sizes survivors go on through so many groups, and the victim policy chooses among all units.
const FREE_GROUPS: usize = 4;
/// Costs in relation to those of before, or of the other mode: from where on it is worse, and up to where
/// better; and how much more than is measured now sizes may be reckoned to cost to be tried. The last group
/// is reckoned as collected in order of age, which is worse than any victim policy.
const WORSE: f64 = 1.2;
const BETTER: f64 = 0.98;
const TRY: f64 = 1.25;
/// An epoch is so many times the chunks that are valid; sizes are looked after this often in one.
const EPOCH_TURNS: u64 = 4;
const CHECKS: u64 = 8;
/// A group whose victims are fuller than reckoned by this share of a unit is not what it was taken for.
const OFF: f64 = 0.1;
/// The age of hot victims is averaged over about so many.
const SMOOTH: u64 = 16;
/// Victims of a group that tell how full they are.
const VICTIMS_MIN: u32 = 8;

/// What the victims of a group were like since the groups were shared out.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    victims: u32,
    valid: f64,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Midas {
    groups_max: usize,
    /// Two bits for each chunk.
    counters: Box<[u8]>,
    /// Versions that live no longer die young.
    hot_age: u64,
    /// Intervals of versions that joined the first group, and the hot one.
    cold: Intervals,
    hot: Intervals,
    lives: Box<Lives>,
    /// Sizes in force; `None` if the groups have none.
    chain: Option<Chain>,
    is_free: bool,
    epochs_in_mode: u32,
    /// Copies per user chunk write without sizes and with them, when that was last tried.
    costs: [Option<f64>; 2],
    /// The last group.
    last: usize,
    /// Units of lower classes closed before this belong to the last group.
    before: [u64; Wish::CLASSES],
    seen: [Seen; Wish::CLASSES],
    /// Group of the unit that is being collected.
    source: usize,
    epoch: Epoch,
}

/// What was counted since the last epoch began.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    began: u64,
    next_check: u64,
    /// User writes.
    writes: u64,
    copies: u64,
}

impl Midas {
    /// A policy that knows nothing yet.
    pub fn new(options: MidasOptions) -> Result<Self, OptionError> {
        let classes = u64::try_from(Wish::CLASSES).expect("few");
        let groups_max = within("groups", options.groups_max, 2, classes)?;
        let bytes = options.chunk_count.div_ceil(MidasOptions::CHUNKS_PER_BYTE);
        let bytes = usize::try_from(within("chunks", bytes, 0, 1 << 40)?).expect("usize has 64 bits");
        let groups_max = usize::try_from(groups_max).expect("few");
        Ok(Self {
            groups_max,
            counters: vec![0; bytes].into(),
            hot_age: 0,
            cold: Intervals::new(),
            hot: Intervals::new(),
            lives: Box::new(Lives { cold: Survival::new(), hot: Survival::new() }),
            chain: None,
            is_free: true,
            epochs_in_mode: 0,
            costs: [None; 2],
            last: FREE_GROUPS.min(groups_max - 1),
            before: [0; Wish::CLASSES],
            seen: [Seen::default(); Wish::CLASSES],
            source: 0,
            epoch: Epoch::default(),
        })
    }

    /// Groups in use at the moment, that of hot chunks included.
    pub fn groups(&self) -> usize {
        self.last + 1
    }

    /// Sizes of all groups but the last, in units, the one of hot chunks first; empty before the first epoch
    /// has ended.
    pub fn sizes(&self) -> Vec<f64> {
        let chain = self.chain.as_ref();
        chain.map_or_else(Vec::new, |chain| {
            std::iter::once(chain.hot).chain(chain.sizes).take(self.last).collect()
        })
    }

    fn counter(&mut self, lcn: u64) -> Option<(&mut u8, u32)> {
        let byte = self.counters.get_mut(usize::try_from(lcn / 4).ok()?)?;
        Some((byte, u32::try_from(lcn % 4 * 2).expect("below 8")))
    }

    /// Whether the chunk is hot after its counter has moved by this.
    fn move_counter(&mut self, lcn: u64, by: i8) -> bool {
        let Some((byte, shift)) = self.counter(lcn) else { return false };
        let count = (*byte >> shift & HOT).saturating_add_signed(by).min(HOT);
        *byte = *byte & !(HOT << shift) | count << shift;
        count == HOT
    }

    /// The group that a unit belongs to.
    fn group_of(&self, state: &UnitState) -> usize {
        let class = state.class.index();
        let is_old = self.before.get(class).is_none_or(|&before| state.closed < before);
        if class >= self.last || is_old { self.last } else { class }
    }

    /// The size of a group in units; none for the last and where nothing is known yet.
    fn size(&self, group: usize) -> Option<f64> {
        let chain = self.chain.as_ref().filter(|_| group < self.last)?;
        Some(if group == 0 { chain.hot } else { chain.sizes[group - 1] })
    }

    /// The first group that is too large, with its oldest unit.
    fn over_size(&self, units: &dyn Units) -> Option<(usize, UnitId)> {
        let mut groups = [(0_u32, None::<(u64, UnitId)>); Wish::CLASSES];
        for id in (0..units.count()).map(UnitId::new) {
            let Some(state) = units.state(id) else { continue };
            let (count, oldest) = &mut groups[self.group_of(&state)];
            *count += 1;
            if state.valid < units.capacity() && oldest.is_none_or(|(closed, _)| state.closed < closed) {
                *oldest = Some((state.closed, id));
            }
        }
        let over = |&group: &usize| self.size(group).is_some_and(|size| f64::from(groups[group].0) > size);
        let group = (0..self.last).find(over)?;
        groups[group].1.map(|(_, unit)| (group, unit))
    }

    /// Ends an epoch, or looks whether the groups are what they were taken for.
    fn look_after(&mut self, units: &dyn Units, now: u64) {
        if now < self.epoch.next_check {
            return;
        }
        let live = units.live();
        if self.epoch.next_check == 0 {
            // The first unit is collected: from now on space is as short as it will be.
            self.cold.forget_new();
            self.hot_age = live;
            self.epoch = Epoch { began: now, ..Epoch::default() };
        }
        self.epoch.next_check = now + (live * EPOCH_TURNS / CHECKS).max(1);
        if now >= self.epoch.began + live * EPOCH_TURNS && self.epoch.writes >= live {
            self.share_out(units, live, now);
        } else {
            self.merge_if_off();
        }
    }

    /// From the first group whose victims are much fuller than was reckoned on, all are one.
    fn merge_if_off(&mut self) {
        let Some(chain) = &self.chain else { return };
        let off = |&group: &usize| {
            let seen = self.seen[group];
            seen.victims >= VICTIMS_MIN && seen.valid / f64::from(seen.victims) > chain.valid[group - 1] + OFF
        };
        if let Some(group) = (1..self.last).find(off) {
            self.last = group;
        }
    }

    /// Chooses number and sizes of groups for the next epoch.
    fn share_out(&mut self, units: &dyn Units, live: u64, now: u64) {
        let copies = ratio(self.epoch.copies, self.epoch.writes);
        let all = self.cold.counted() + self.hot.counted();
        self.cold.survival(all, &mut self.lives.cold);
        self.hot.survival(all, &mut self.lives.hot);
        let open = f64::from(u32::try_from(self.last + 1).unwrap_or(u32::MAX));
        let states = (0..units.count()).filter_map(|id| units.state(UnitId::new(id)));
        let touched = states.filter(|state| state.valid < units.capacity()).count();
        let touched = u32::try_from(touched).unwrap_or(u32::MAX);
        let room = Room {
            still: f64::from(units.in_use().saturating_sub(touched)) * f64::from(units.capacity()),
            unit_chunks: f64::from(units.capacity()),
            units: f64::from(units.in_use()) + open,
            live: ratio(live, 1),
        };
        let chain = self.lives.best_chain(&room, self.groups_max - 1);
        self.choose_mode(copies, chain.as_ref());
        match chain.filter(|_| !self.is_free) {
            Some(chain) => {
                self.last = chain.count + 1;
                if chain.hot > 0.0 {
                    self.hot_age = whole(chain.hot_age);
                }
                self.chain = Some(Chain { hot: chain.hot.max(1.0), ..chain });
                self.keep_newest(units);
            }
            None => self.free_groups(),
        }
        self.cold.fade();
        self.hot.fade();
        self.seen = [Seen::default(); Wish::CLASSES];
        self.epoch = Epoch { began: now, next_check: self.epoch.next_check, ..Epoch::default() };
    }

    /// Sizes, or none: what cost less when it was tried. An epoch after each change does not count, as the
    /// groups are not yet what they will be; what is much more expensive than it was is a reason to try the
    /// other again.
    fn choose_mode(&mut self, copies: f64, chain: Option<&Chain>) {
        self.epochs_in_mode += 1;
        if self.epochs_in_mode < 2 {
            return;
        }
        let (own, other) = if self.is_free { (0, 1) } else { (1, 0) };
        if self.costs[own].is_some_and(|before| copies > before * WORSE) {
            self.costs[other] = None;
        }
        self.costs[own] = Some(copies);
        let is_better = match self.costs[other] {
            Some(cost) => cost < copies * BETTER,
            None => other == 0 || chain.is_some_and(|chain| chain.copies < copies * TRY),
        };
        if is_better {
            (self.is_free, self.epochs_in_mode) = (!self.is_free, 0);
        }
    }

    /// Groups without sizes.
    fn free_groups(&mut self) {
        self.is_free = true;
        self.chain = None;
        self.last = FREE_GROUPS.min(self.groups_max - 1);
        self.before = [0; Wish::CLASSES];
    }

    /// Units beyond the new sizes count as the last group's: nothing is copied only to make groups smaller.
    fn keep_newest(&mut self, units: &dyn Units) {
        self.before = [0; Wish::CLASSES];
        for group in 0..self.last {
            let size = self.size(group).unwrap_or(0.0);
            let newer = |time: u64| {
                let states = (0..units.count()).filter_map(|id| units.state(UnitId::new(id)));
                let count =
                    states.filter(|state| state.class.index() == group && state.closed >= time).count();
                f64::from(u32::try_from(count).unwrap_or(u32::MAX))
            };
            if newer(0) <= size {
                continue;
            }
            let (mut low, mut high) = (0, self.epoch.next_check);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if newer(middle) > size { low = middle } else { high = middle }
            }
            self.before[group] = high;
        }
    }
}

/// A quotient of counts below 2^52.
fn ratio(part: u64, whole: u64) -> f64 {
    let float = |count: u64| {
        let half = |half: u64| u32::try_from(half).map_or(f64::from(u32::MAX), f64::from);
        half(count >> 32) * 4_294_967_296.0 + half(count & u64::from(u32::MAX))
    };
    float(part) / float(whole.max(1))
}

/// A number that is not negative, rounded down; below 2^52.
fn whole(number: f64) -> u64 {
    // Added to 2^52 a number has no digits behind the point, and its bits are the sum.
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    (number.floor().clamp(0.0, SHIFT - 1.0) + SHIFT).to_bits() - SHIFT.to_bits()
}

impl Placement for Midas {
    fn classes(&self) -> usize {
        self.groups_max
    }

    fn needs_times(&self) -> bool {
        true
    }

    fn place_user(&mut self, write: UserWrite) -> Class {
        let lived = write.previous.map(|previous| write.now.saturating_sub(previous));
        let was_hot = self.hot_age > 0 && self.move_counter(write.lcn.get(), 0);
        let intervals = if was_hot { &mut self.hot } else { &mut self.cold };
        match lived {
            Some(lived) => intervals.note(lived),
            None => intervals.note_new(),
        }
        let is_young = lived.is_some_and(|lived| lived <= self.hot_age);
        let is_hot = self.hot_age > 0 && self.move_counter(write.lcn.get(), if is_young { 1 } else { -1 });
        self.epoch.writes += 1;
        Class::new(if is_hot { 0 } else { 1 })
    }

    fn place_gc(&mut self, write: GcWrite) -> Class {
        self.epoch.copies += 1;
        if self.hot_age > 0 && write.class.get() < 2 {
            self.move_counter(write.lcn.get(), if write.class.get() == 0 { -2 } else { -1 });
        }
        let next = (self.source + 1).min(self.last);
        Class::new(u8::try_from(next).expect("few groups"))
    }

    fn note_collected(&mut self, unit: CollectedUnit) {
        if self.chain.is_some() {
            return;
        }
        self.source = unit.class.index();
        if self.source == 0 {
            // What is hot dies about as soon as a unit of the hot group is emptied.
            let age = unit.now.saturating_sub(unit.created);
            self.hot_age = (self.hot_age - self.hot_age / SMOOTH + age / SMOOTH).max(1);
        }
    }

    fn wish(&mut self, units: &dyn Units, now: u64) -> Wish {
        self.look_after(units, now);
        if self.chain.is_none() {
            return Wish::Any;
        }
        let over = self.over_size(units);
        let (group, wish) = match over {
            Some((group, unit)) => (group, Wish::Unit(unit)),
            None => {
                let last = Class::new(u8::try_from(self.last).expect("few groups"));
                (self.last, Wish::Last { last, before: self.before })
            }
        };
        self.source = group;
        if let Some(state) = over.and_then(|(_, unit)| units.state(unit)) {
            let seen = &mut self.seen[group];
            seen.victims += 1;
            seen.valid += f64::from(state.valid) / f64::from(units.capacity().max(1));
        }
        wish
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.counters.len() + 2 * Intervals::bytes()
    }
}
