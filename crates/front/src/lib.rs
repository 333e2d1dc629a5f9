//! Front ends: how the outside reads and writes the volume: NBD and, with the features `vhost-user` and
//! `ublk`, vhost-user-blk and a disk of this machine's kernel.
//!
//! One thread does everything. [`Server::run`] is a reactor: it waits for sockets, the engine and the
//! caller's own file descriptors, turns bytes into [`VolumeRequest`]s, lets the engine work
//! ([`Volume::drive`]) and sends the answers. The protocol itself knows no sockets: [`nbd::wire`] are pure
//! functions on bytes, [`nbd::Connection`] is a [`Session`]: a state machine that is fed bytes, starts volume
//! requests and fills an output queue, so tests and fuzzers run it in memory.
//!
//! Payload lies in the slots of a [`block::Pool`] from the socket to the devices and back.
//!
//! # Invariants
//! - No byte sequence from a client, on its socket or in memory that it shares, panics or harms another
//!   client; whoever breaks the protocol loses its connection.
//! - Everything a client can make the server hold is bounded ([`Limits`]); a bound that is reached stops
//!   the reading of
//!   that socket (back-pressure), it never fails a request.
//! - A slot belongs to exactly one of: the pool, a connection that fills or sends it, the engine.
#![forbid(unsafe_code)]

mod command;
mod crossing;
#[cfg(any(feature = "ublk", feature = "vhost-user"))]
mod cutter;
mod desk;
mod export;
mod extents;
mod limits;
pub mod memory;
mod meter;
pub mod nbd;
mod network;
mod output;
mod server;
mod session;
mod tls;
#[cfg(feature = "ublk")]
pub mod ublk;
#[cfg(feature = "vhost-user")]
pub mod vhost;
mod volume;

pub use command::Command;
pub use crossing::{
    Answer, Ask, Bell, ExtentsAsk, Landing, RemoteVolume, SOCKET_BUFFERS_BYTES, Shape, Size,
    buffers_bytes_beside_shards,
};
pub use desk::{ConnectionId, Context, Counters, Desk};
pub use export::Export;
pub use extents::{add_extent, weave_extents};
pub use limits::Limits;
pub use meter::{CLASSES, Meter, Reading};
pub use network::Network;
pub use output::OutputQueue;
pub use server::{
    Arrival, Flow, Guard, Hooks, Interest, Listening, NoHooks, Places, Protocol, Rules, Server, ServerError,
    ServerOptions, Summary, Usher, watching,
};
pub use session::{Fault, PayloadTarget, Session, Wants};
pub use tls::{Secured, Tls, TlsError};
pub use volume::{Done, Punch, Volume, VolumeError, VolumeRequest};
