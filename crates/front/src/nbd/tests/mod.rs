//! Tests of the protocol without sockets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::wildcard_enum_match_arm, reason = "tests look for single cases")]

mod fuzz;
mod handshake;
mod harness;
mod session;
