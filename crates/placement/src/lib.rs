//! Which chunks of a log-structured array belong together, and which unit is collected next: pure policies.
//!
//! The engine writes chunks into *open groups*. A full group becomes one *unit* of stripes; units whose
//! chunks have mostly been overwritten are collected. Two decisions are left open, and each is a trait here:
//! - [`Placement`]: which group ([`Class`]) does this chunk join, written by a user or rewritten by gc?
//! - [`VictimPolicy`]: which unit is collected?
//!
//! # Time
//! All times are **user chunk writes so far**, the clock of log-structured stores: it stands still when
//! nobody writes, and a lifespan in it is the space that was written meanwhile. Gc rewrites do not advance
//! it. It may start anew at each assembly; what was written before has no known time then.
//!
//! # Words of the papers
//! | here | in the papers |
//! |---|---|
//! | class | group (WAS), class (SepBIT, numbered from 1 there and from 0 here) |
//! | tier | type, hotness level (WAS); tier 0 is the coldest |
//! | unit | GC unit (WAS), segment (SepBIT, LFS) |
//! | lcn | LPN, LBA |
//!
//! No I/O, no clock, no randomness but from a seed, and no allocation after construction.
#![forbid(unsafe_code)]

mod class;
mod error;
mod glru;
mod hca;
mod hotness;
mod midas;
pub mod model;
mod names;
mod options;
mod policy;
mod recent;
mod sepbit;
mod sequence;
mod store;
mod unit;
mod victim;
mod was;

pub use class::Class;
pub use error::OptionError;
pub use glru::{Glru, GlruOptions};
pub use hca::{Hca, HcaOptions};
pub use hotness::{Hotness, Thresholds, Tier};
pub use midas::{Midas, MidasOptions};
pub use names::{GcGroup, HotnessKind, NameError, PlacementKind, VictimKind};
pub use options::{PlacementOptions, Tuning};
pub use policy::{CollectedUnit, GcApart, GcWrite, Placement, SingleGroup, UserWrite, Wish, choose_victim};
pub use recent::RecentWrites;
pub use sepbit::SepBit;
pub use sequence::{Sequence, SequenceDetector};
pub use store::{Store, StoreCounts, StoreError, StoreOptions, Times};
pub use unit::{GcThreshold, UnitStamp};
pub use victim::{
    Age, CostBenefit, CostBenefitRoot, DChoices, Greedy, UnitId, UnitState, Units, VictimPolicy, Windowed,
};
pub use was::Was;
