//! A key-value store on a block volume: log-structured, sans-I/O, durable as its options say.
//!
//! What a client asks and is told is in [`ask`]. The store has no threads, clock or sockets.
#![forbid(unsafe_code)]

pub mod ask;
