//! The server from outside: clients that behave, clients that do not, stops. One binary for all of them:
//! each of its own would cost a link.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[cfg(feature = "vhost-user")]
mod broken_rings;
mod common;
mod misbehaving_clients;
#[cfg(feature = "vhost-user")]
mod rings_passed_over;
mod shards_apart;
mod sockets_and_stop;
mod standard_clients;
