//! The NBD protocol: fixed-newstyle handshake and transmission, without sockets.

mod connection;
mod handshake;
mod output;
mod transmission;
pub mod wire;

#[cfg(test)]
mod tests;

pub use connection::{Connection, Fault, Wants};
pub use output::OutputQueue;
pub(crate) use transmission::spans;
