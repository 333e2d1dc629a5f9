//! The rules of the house, on this tree and on trees that break them. One binary for all of them: each of
//! its own would cost a link.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod python;
mod requirements;
mod sizes;
mod tidy;
