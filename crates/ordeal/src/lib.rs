//! The ordeal: the shipped `elastripe` binary, driven from outside through its command line, its NBD socket
//! and its member files, while it is killed, its members are damaged, lost, put back as older copies, and
//! served again. No crate of elastripe is used: the NBD client, the ledger of what each sector may hold and
//! the knowledge of the format (where areas lie, by the tables of `docs/format.md`) are this crate's own, so
//! a mistake of the product is not shared.
//!
//! A *round* is one array and everything that happens to it; its seed draws all of it ([`round`]). Time is
//! not drawn: a seed gives the same events at about the same moments, not the same interleaving.
//!
//! What is checked after each event ([`verdict::Check`]): no read gives wrong data or, after an acknowledged
//! flush, an older state; no request and no command is without an end; within m harmed members nothing fails;
//! `status` never says healthy of what is not; nothing panics. What it does not do: hung devices, full file
//! systems, wrong options.
#![forbid(unsafe_code)]

pub mod array;
pub mod canary;
mod events;
pub mod ledger;
pub mod members;
pub mod nbd;
pub mod program;
mod returns;
pub mod rng;
pub mod round;
pub mod shape;
mod succeed;
pub mod traffic;
pub mod verdict;

pub use canary::Canary;
pub use program::Binary;
pub use round::{Options, Outcome, run};
pub use verdict::{Check, Verdict};
