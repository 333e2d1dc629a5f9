//! Which unit is collected next.
//!
//! Both policies look at every unit, once per unit freed: 3 to 4 ns each (measured over 1,024 to 5 million
//! units), against the milliseconds that moving a unit's chunks takes. In return the engine keeps no ordered
//! structure up to date with each overwritten chunk, and nothing is allocated. The 1,024 units of WAS's
//! set-up cost 3 us a pick; 50,000, which is 10 TB on 8 SSDs in erase blocks of 24 MiB, 0.2 ms. 10 TB in the
//! paper's blocks of 256 KiB would be 5 million units and 14 ms for each 2 MiB freed: large arrays want large
//! units, as large SSDs have large blocks.
//!
//! A unit whose collection would free no space (as many valid chunks as a group takes) is never chosen: gc
//! that rewrites without gain would not end.

use crate::Class;
use block::{Random as _, XoshiroPlusPlus};
use std::cmp::Ordering;
use std::fmt;

/// A unit, by its index in [`Units`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnitId(u32);

impl UnitId {
    /// Wraps a raw number.
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// The raw number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// For indexing tables by unit.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a policy may know of a closed unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitState {
    /// Data chunks that are the newest version: what collecting it would read and write.
    pub valid: u32,
    /// Data chunks it was closed with, superseded ones included; fewer than a group takes if it
    /// has short stripes.
    pub written: u32,
    /// When it was closed, in user chunk writes.
    pub closed: u64,
    /// Class of its chunks.
    pub class: Class,
}

/// The units of an array, as a policy sees them.
pub trait Units {
    /// Number of units; their ids are below it.
    fn count(&self) -> u32;

    /// Data chunks that a full unit holds.
    fn capacity(&self) -> u32;

    /// A unit that may be collected; `None` if it is free, open, or being collected.
    fn state(&self, unit: UnitId) -> Option<UnitState>;

    /// Units that are neither free nor being filled, those that may not be collected at the moment included.
    fn in_use(&self) -> u32 {
        let closed = (0..self.count()).filter(|&id| self.state(UnitId(id)).is_some()).count();
        u32::try_from(closed).expect("units are counted in 32 bits")
    }

    /// Data chunks of all units that are the newest version.
    fn live(&self) -> u64 {
        (0..self.count()).filter_map(|id| self.state(UnitId(id))).map(|state| u64::from(state.valid)).sum()
    }
}

/// Chooses the unit to collect.
pub trait VictimPolicy: Send {
    /// The best unit, `None` if collecting would free no space. `now` is the number of user chunk
    /// writes so far.
    fn pick(&mut self, units: &dyn Units, now: u64) -> Option<UnitId>;
}

/// The unit for which `better` is `Greater` against all others; of equals the one closed first,
/// then the lowest.
fn best(units: &dyn Units, better: impl Fn(&UnitState, &UnitState) -> Ordering) -> Option<UnitId> {
    let capacity = units.capacity();
    let candidates = (0..units.count())
        .filter_map(|id| units.state(UnitId(id)).map(|state| (UnitId(id), state)))
        .filter(|(_, state)| state.valid < capacity);
    let (id, _) = candidates.reduce(|held, other| {
        let order = better(&other.1, &held.1).then_with(|| held.1.closed.cmp(&other.1.closed));
        if order == Ordering::Greater { other } else { held }
    })?;
    Some(id)
}

/// Fewest valid chunks (WAS, section IV-B; W-24).
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl VictimPolicy for Greedy {
    fn pick(&mut self, units: &dyn Units, _now: u64) -> Option<UnitId> {
        best(units, |a, b| b.valid.cmp(&a.valid))
    }
}

/// Highest benefit per cost, (1 - u) x age / 2u, where u is the valid share of the unit and age the time
/// since it was closed (L-14).
///
/// The idea is LFS's (Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File
/// System", ACM TOCS 1992, section 3.5): space that stays free for long is worth more. LFS divides by 1 + u,
/// as it reads whole segments and writes the live part. Here gc reads the valid chunks only (W-25), so
/// reading and writing cost u each, and 2u is right, the form used for flash by Kawaguchi, Nishioka and
/// Motoda ("A Flash-Memory Based File System", USENIX 1995). A unit without valid chunks costs nothing and
/// goes first.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostBenefit;

impl VictimPolicy for CostBenefit {
    fn pick(&mut self, units: &dyn Units, now: u64) -> Option<UnitId> {
        let capacity = units.capacity();
        let gain = |state: &UnitState| {
            let age = now.saturating_sub(state.closed).max(1);
            u128::from(capacity - state.valid) * u128::from(age)
        };
        // gain(a) / valid(a) against gain(b) / valid(b), without division: 32 + 64 + 32 bits fit.
        best(units, |a, b| {
            let (left, right) = (gain(a) * u128::from(b.valid), gain(b) * u128::from(a.valid));
            left.cmp(&right)
        })
    }
}

/// The same with the square root of the age, (1 - u) x sqrt(age) / 2u: the form of the public simulators of
/// SepBIT and MiDAS. Age counts for less, so that old and full units wait for longer.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostBenefitRoot;

impl VictimPolicy for CostBenefitRoot {
    fn pick(&mut self, units: &dyn Units, now: u64) -> Option<UnitId> {
        let capacity = units.capacity();
        let gain = |state: &UnitState| {
            let age = now.saturating_sub(state.closed).max(1);
            // With 16 binary digits behind the point.
            let root = (u128::from(age) << 32).isqrt();
            u128::from(capacity - state.valid) * root
        };
        // 32 + 48 + 32 bits fit.
        best(units, |a, b| {
            let (left, right) = (gain(a) * u128::from(b.valid), gain(b) * u128::from(a.valid));
            left.cmp(&right)
        })
    }
}

/// The unit closed first: every unit is left the longest time to lose chunks (L-14).
#[derive(Clone, Copy, Debug, Default)]
pub struct Age;

impl VictimPolicy for Age {
    fn pick(&mut self, units: &dyn Units, _now: u64) -> Option<UnitId> {
        best(units, |_, _| Ordering::Equal)
    }
}

/// Fewest valid chunks among the oldest quarter of the units that may be collected (L-14; the windowed greedy
/// of Hu, Eleftheriou, Haas, Iliadis and Pletka, "Write Amplification Analysis in Flash-Based Solid State
/// Drives", SYSTOR 2009).
#[derive(Clone, Debug, Default)]
pub struct Windowed {
    /// When each unit was closed: scratch space, which grows to the number of units once.
    closed: Vec<u64>,
}

/// One of so many units is in the window.
const WINDOW_SHARE: usize = 4;

impl VictimPolicy for Windowed {
    fn pick(&mut self, units: &dyn Units, _now: u64) -> Option<UnitId> {
        let capacity = units.capacity();
        let states = (0..units.count()).filter_map(|id| units.state(UnitId(id)));
        self.closed.clear();
        self.closed.extend(states.filter(|state| state.valid < capacity).map(|state| state.closed));
        if self.closed.is_empty() {
            return None;
        }
        let place = (self.closed.len() / WINDOW_SHARE).max(1) - 1;
        let (_, &mut newest, _) = self.closed.select_nth_unstable(place);
        best(units, |a, b| {
            let inside = |state: &UnitState| state.closed <= newest;
            inside(a).cmp(&inside(b)).then_with(|| b.valid.cmp(&a.valid))
        })
    }
}

/// Fewest valid chunks of so many units drawn at random, with replacement (Van Houdt, SIGMETRICS 2013): what
/// large arrays can afford.
#[derive(Clone, Debug)]
pub struct DChoices {
    random: XoshiroPlusPlus,
}

impl DChoices {
    /// Units drawn.
    pub const CHOICES: u32 = 10;

    /// Draws by this seed.
    pub fn new(seed: u64) -> Self {
        Self { random: XoshiroPlusPlus::new(seed) }
    }
}

impl VictimPolicy for DChoices {
    fn pick(&mut self, units: &dyn Units, _now: u64) -> Option<UnitId> {
        let (count, capacity) = (units.count(), units.capacity());
        if count == 0 {
            return None;
        }
        let mut held: Option<(UnitId, u32)> = None;
        let mut drawn = 0;
        // Units that may not be collected are drawn in vain; with few others that must end.
        for _ in 0..DChoices::CHOICES * 16 {
            let id = UnitId(self.random.below_u32(count));
            let Some(state) = units.state(id).filter(|state| state.valid < capacity) else { continue };
            if held.is_none_or(|(_, valid)| state.valid < valid) {
                held = Some((id, state.valid));
            }
            drawn += 1;
            if drawn == DChoices::CHOICES {
                break;
            }
        }
        held.map(|(id, _)| id).or_else(|| best(units, |a, b| b.valid.cmp(&a.valid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table(Vec<Option<UnitState>>);

    impl Units for Table {
        fn count(&self) -> u32 {
            u32::try_from(self.0.len()).expect("few")
        }

        fn capacity(&self) -> u32 {
            100
        }

        fn state(&self, unit: UnitId) -> Option<UnitState> {
            self.0[unit.index()]
        }
    }

    fn table(units: &[Option<(u32, u64)>]) -> Table {
        let state = |(valid, closed)| UnitState { valid, written: 100, closed, class: Class::new(0) };
        Table(units.iter().map(|unit| unit.map(state)).collect())
    }

    fn greedy(units: &[Option<(u32, u64)>]) -> Option<u32> {
        Greedy.pick(&table(units), 1000).map(UnitId::get)
    }

    fn cost_benefit(units: &[Option<(u32, u64)>]) -> Option<u32> {
        CostBenefit.pick(&table(units), 1000).map(UnitId::get)
    }

    /// Requirement W-24.
    #[test]
    fn greedy_takes_the_fewest_valid_chunks() {
        assert_eq!(greedy(&[Some((50, 1)), Some((20, 900)), Some((21, 0))]), Some(1));
        assert_eq!(greedy(&[None, Some((99, 5)), None]), Some(1));
    }

    /// Requirement W-24.
    #[test]
    fn of_equals_the_oldest_then_the_first() {
        assert_eq!(greedy(&[Some((20, 30)), Some((20, 10)), Some((20, 20))]), Some(1));
        assert_eq!(greedy(&[None, Some((20, 10)), Some((20, 10))]), Some(1));
    }

    #[test]
    fn units_that_would_free_nothing_are_not_taken() {
        for pick in [greedy, cost_benefit] {
            assert_eq!(pick(&[]), None);
            assert_eq!(pick(&[None, None]), None);
            assert_eq!(pick(&[Some((100, 1)), Some((100, 2))]), None);
            assert_eq!(pick(&[Some((100, 1)), Some((99, 2))]), Some(1));
        }
    }

    /// Requirement L-14.
    #[test]
    fn cost_benefit_by_hand() {
        // (1 - u) age / 2u: 0.5 x 100 / 1 = 50 against 0.2 x 900 / 1.6 = 112.5: the older one, though fuller.
        assert_eq!(cost_benefit(&[Some((50, 900)), Some((80, 100))]), Some(1));
        // 0.8 x 100 / 0.4 = 200 against the same 112.5; LFS's 1 + u would say 66.7 against 100.
        assert_eq!(cost_benefit(&[Some((20, 900)), Some((80, 100))]), Some(0));
        // Of one age the emptier one, of one fill the older one.
        assert_eq!(cost_benefit(&[Some((30, 500)), Some((29, 500))]), Some(1));
        assert_eq!(cost_benefit(&[Some((30, 500)), Some((30, 499))]), Some(1));
    }

    /// Requirement L-14.
    #[test]
    fn with_the_root_of_age_by_hand() {
        let pick = |units: &[_]| CostBenefitRoot.pick(&table(units), 1000).map(UnitId::get);
        // 0.5 x 10 / 1 = 5 against 0.2 x 30 / 1.6 = 3.75: the emptier one, where age itself says the older.
        assert_eq!(pick(&[Some((50, 900)), Some((80, 100))]), Some(0));
        // Sixteen times the age weighs four times: 0.5 x 5 / 1 = 2.5 against 0.25 x 20 / 1.5 = 3.33.
        assert_eq!(pick(&[Some((50, 975)), Some((75, 600))]), Some(1));
        assert_eq!(pick(&[Some((1, 0)), Some((0, 1000))]), Some(1));
        assert_eq!(pick(&[Some((100, 0)), None]), None);
    }

    /// Requirement L-14.
    #[test]
    fn age_takes_the_unit_closed_first_that_frees_something() {
        let pick = |units: &[_]| Age.pick(&table(units), 1000).map(UnitId::get);
        assert_eq!(pick(&[Some((1, 30)), Some((99, 10)), Some((0, 20))]), Some(1));
        assert_eq!(pick(&[Some((1, 30)), Some((100, 10)), Some((0, 20))]), Some(2));
        assert_eq!(pick(&[None, Some((100, 10))]), None);
    }

    /// Requirement L-14.
    #[test]
    fn the_window_is_the_oldest_quarter() {
        let mut windowed = Windowed::default();
        // Of eight units the window has two, those closed at 1 and 2; the emptier of them goes.
        let ages = [8, 7, 6, 5, 4, 3, 2, 1];
        let valid = [0, 10, 20, 30, 40, 50, 60, 70];
        let units: Vec<_> = valid.into_iter().zip(ages).map(Some).collect();
        assert_eq!(windowed.pick(&table(&units), 9).map(UnitId::get), Some(6));
        // One unit is a window; units that free nothing are not in it.
        assert_eq!(windowed.pick(&table(&[Some((99, 5))]), 9).map(UnitId::get), Some(0));
        assert_eq!(windowed.pick(&table(&[Some((100, 5)), Some((7, 6))]), 9).map(UnitId::get), Some(1));
        assert_eq!(windowed.pick(&table(&[Some((100, 5)), None]), 9), None);
    }

    /// Requirement L-14.
    #[test]
    fn d_choices_is_nearly_greedy_and_never_futile() {
        let mut choices = DChoices::new(7);
        let units: Vec<_> = (0..100).map(|unit| Some((unit, 5))).collect();
        let picked: Vec<u32> =
            (0..1000).filter_map(|_| choices.pick(&table(&units), 9)).map(UnitId::get).collect();
        // The least of ten of 0 to 99 is 8.6 on the average.
        let mean = f64::from(picked.iter().sum::<u32>()) / 1000.0;
        assert!((7.5..10.0).contains(&mean), "{mean}");
        assert_eq!(choices.pick(&table(&[Some((100, 1)), None]), 9), None);
        let mut rare = vec![None; 5000];
        rare[4321] = Some((9, 1));
        assert_eq!(choices.pick(&table(&rare), 9).map(UnitId::get), Some(4321));
        assert_eq!(choices.pick(&table(&[]), 9), None);
    }

    /// Requirement L-14.
    #[test]
    fn empty_units_come_first_and_ages_may_be_zero_or_huge() {
        assert_eq!(cost_benefit(&[Some((1, 0)), Some((0, 1000))]), Some(1));
        assert_eq!(cost_benefit(&[Some((0, 7)), Some((0, 6))]), Some(1));
        assert_eq!(cost_benefit(&[Some((10, 2000)), Some((11, 2000))]), Some(0)); // closed in the future
        let old = table(&[Some((99, 0)), Some((1, 0))]);
        assert_eq!(CostBenefit.pick(&old, u64::MAX).map(UnitId::get), Some(1));
    }
}
