//! The placement seam, and the policy that does not separate anything.
//!
//! # What the engine does
//! 1. It keeps one open group (buffer, later unit) per class, [`Placement::classes`] in all.
//! 2. It asks [`Placement::place_user`] once for **every** chunk that a user writes, in the order of the
//!    requests, also when the old version still waits in an open group. The old version is dropped (in a
//!    group) or marked invalid (in a unit); the new one joins the group of the class answered. If that is the
//!    group where the old version waits, it is overwritten in place.
//! 3. A group that has reached its capacity, which the engine knows, is written as full stripes, a unit.
//!    Before that, while space is scarce ([`crate::GcThreshold`]), units are collected (W-22): their valid
//!    chunks are read, [`Placement::place_gc`] is asked for each, and [`Placement::note_collected`] is told
//!    once per unit **before** that unit's first chunk is placed, as in SepBIT's Algorithm 1.
//!
//! # Where times come from
//! A policy may ask when a version was written by its user: of the version that a user write replaces
//! ([`UserWrite::previous`]), and of the version that gc moves ([`GcWrite::written`]; moving does not change
//! it). 8 more bytes per chunk would break the memory limit of 12. The engine has three ways:
//! - *unit stamps*: one [`crate::UnitStamp`] per unit, the mean time of the chunks in it; a chunk's time
//!   is its unit's. Less than 0.1 byte per chunk. Chunks that users wrote lie in a unit in order of time,
//!   so the error is at most the time it was open; gc classes hold chunks of like age by construction.
//!   **To be preferred.**
//! - `None` for `previous`: the policy falls back on what it remembers itself ([`crate::RecentWrites`], the
//!   paper's bounded queue of recent writes). `None` for `written`: counts as older than everything.
//! - exact times, where the metadata has them.
//!
//! `tests/validation.rs` compares all three.

use crate::{Class, Sequence, UnitId, Units, VictimPolicy};
use block::Lcn;

/// A user writes a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserWrite {
    /// The chunk.
    pub lcn: Lcn,
    /// Whether the request that the chunk belongs to continues the request before it.
    pub sequence: Sequence,
    /// User chunk writes before this one.
    pub now: u64,
    /// When the version that is replaced was written, as far as the engine knows; `None` if there is no such
    /// version or its time is unknown.
    pub previous: Option<u64>,
}

/// Gc moves a valid chunk out of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GcWrite {
    /// The chunk.
    pub lcn: Lcn,
    /// Class of the unit it is moved out of.
    pub class: Class,
    /// When a user wrote this version, as far as the engine knows.
    pub written: Option<u64>,
    /// User chunk writes so far.
    pub now: u64,
}

/// A unit is collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectedUnit {
    /// Its class.
    pub class: Class,
    /// When its first chunk was placed.
    pub created: u64,
    /// User chunk writes so far.
    pub now: u64,
}

/// What a placement policy has to say about the unit that is collected next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Nothing: the victim policy chooses among all.
    Any,
    /// This unit.
    Unit(UnitId),
    /// The victim policy chooses among the units of these classes that were closed at `before` at the
    /// latest, and among all units of the classes from `last` on.
    Last {
        /// The first class of which all units qualify.
        last: Class,
        /// For each lower class: units closed before this qualify too.
        before: [u64; Wish::CLASSES],
    },
}

impl Wish {
    /// Classes that a wish can speak of.
    pub const CLASSES: usize = 8;
}

/// Which chunks are written together. Answers depend on nothing but the calls made; none of them allocates.
pub trait Placement: Send {
    /// How many open groups are needed, those of gc included; at least 1. Constant.
    fn classes(&self) -> usize;

    /// Whether it asks when versions were written; if not, it may be told `None`.
    fn needs_times(&self) -> bool {
        false
    }

    /// The group for a chunk that a user writes.
    fn place_user(&mut self, write: UserWrite) -> Class;

    /// The group for a chunk that gc moves.
    fn place_gc(&mut self, write: GcWrite) -> Class;

    /// A unit is about to be collected.
    fn note_collected(&mut self, _unit: CollectedUnit) {}

    /// Which units may be collected next. A policy whose groups have sizes keeps them so; see
    /// [`choose_victim`].
    fn wish(&mut self, _units: &dyn Units, _now: u64) -> Wish {
        Wish::Any
    }

    /// Memory held, in bytes, this value included.
    fn memory_bytes(&self) -> usize;
}

/// A policy that is only known when the program runs.
impl<P: Placement + ?Sized> Placement for Box<P> {
    fn classes(&self) -> usize {
        (**self).classes()
    }

    fn needs_times(&self) -> bool {
        (**self).needs_times()
    }

    fn place_user(&mut self, write: UserWrite) -> Class {
        (**self).place_user(write)
    }

    fn place_gc(&mut self, write: GcWrite) -> Class {
        (**self).place_gc(write)
    }

    fn note_collected(&mut self, unit: CollectedUnit) {
        (**self).note_collected(unit);
    }

    fn wish(&mut self, units: &dyn Units, now: u64) -> Wish {
        (**self).wish(units, now)
    }

    fn memory_bytes(&self) -> usize {
        (**self).memory_bytes()
    }
}

/// The unit that is collected next: what the placement policy wishes, chosen by the victim policy. Where
/// nothing of that would free space any other unit is taken.
pub fn choose_victim(
    placement: &mut dyn Placement,
    victims: &mut dyn VictimPolicy,
    units: &dyn Units,
    now: u64,
) -> Option<UnitId> {
    let wished = match placement.wish(units, now) {
        Wish::Any => None,
        Wish::Unit(unit) => units.state(unit).filter(|state| state.valid < units.capacity()).map(|_| unit),
        Wish::Last { last, before } => victims.pick(&Among { units, last, before }, now),
    };
    wished.or_else(|| victims.pick(units, now))
}

/// The units that [`Wish::Last`] speaks of.
struct Among<'a> {
    units: &'a dyn Units,
    last: Class,
    before: [u64; Wish::CLASSES],
}

impl Units for Among<'_> {
    fn count(&self) -> u32 {
        self.units.count()
    }

    fn capacity(&self) -> u32 {
        self.units.capacity()
    }

    fn state(&self, unit: UnitId) -> Option<crate::UnitState> {
        let qualifies = |state: &crate::UnitState| {
            let before = self.before.get(state.class.index()).copied().unwrap_or(0);
            state.class >= self.last || state.closed < before
        };
        self.units.state(unit).filter(qualifies)
    }
}

/// Everything in one group: elastic striping without hotness (eSAP, W-39).
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleGroup;

impl Placement for SingleGroup {
    fn classes(&self) -> usize {
        1
    }

    fn place_user(&mut self, _write: UserWrite) -> Class {
        Class::new(0)
    }

    fn place_gc(&mut self, _write: GcWrite) -> Class {
        Class::new(0)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// Another policy, with one more class, the last, for all gc writes.
///
/// What is collected has outlived its unit; kept apart from fresh writes it is not collected again soon. WAS
/// has gc writes "treated as the coldest", which reads either way: joined with the coldest group of
/// user writes, or in a coldest group of their own, as here.
#[derive(Clone, Copy, Debug)]
pub struct GcApart<P>(
    /// Places user writes.
    pub P,
);

impl<P: Placement> Placement for GcApart<P> {
    fn classes(&self) -> usize {
        self.0.classes() + 1
    }

    fn needs_times(&self) -> bool {
        self.0.needs_times()
    }

    fn place_user(&mut self, write: UserWrite) -> Class {
        self.0.place_user(write)
    }

    fn place_gc(&mut self, _write: GcWrite) -> Class {
        Class::new(u8::try_from(self.0.classes()).expect("a class is 8 bits"))
    }

    fn note_collected(&mut self, unit: CollectedUnit) {
        self.0.note_collected(unit);
    }

    fn wish(&mut self, units: &dyn Units, now: u64) -> Wish {
        self.0.wish(units, now)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirement A-17.
    #[test]
    fn gc_joins_the_users_or_stays_apart() {
        let user = UserWrite { lcn: Lcn::new(1), sequence: Sequence::Random, now: 0, previous: None };
        let gc = GcWrite { lcn: Lcn::new(1), class: Class::new(0), written: None, now: 0 };
        let (mut joined, mut apart) = (SingleGroup, GcApart(SingleGroup));
        assert_eq!(
            (joined.classes(), joined.place_user(user), joined.place_gc(gc)),
            (1, Class::new(0), Class::new(0))
        );
        assert_eq!(
            (apart.classes(), apart.place_user(user), apart.place_gc(gc)),
            (2, Class::new(0), Class::new(1))
        );
        assert_eq!(apart.place_gc(GcWrite { class: Class::new(1), ..gc }), Class::new(1));
    }
}
