//! The NBD protocol: fixed-newstyle handshake and transmission, without sockets.

mod connection;
mod handshake;
mod transmission;
pub mod wire;

#[cfg(test)]
mod tests;

pub use connection::{Connection, Encryption, Violation};
