//! The codes against each other and against what was computed elsewhere. One binary for all of them: each
//! of its own would cost a link.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod apart;
mod common;
mod golden;
mod misuse;
mod patterns;
mod properties;
mod rdp;
