//! A key-value store on a block volume: log-structured, sans-I/O, durable as its options say.
//!
//! What a client asks and is told is in [`ask`]; what the store asks of its volume in [`blocks`]. The store
//! has no threads, clock or sockets: asks and ends of requests go in, requests and answers come out.
//! `docs/kv.md` has the format and the promise.
//!
//! # Words
//! | word | meaning |
//! |---|---|
//! | *record* | a key and its value on the volume, or what else must be remembered of a key |
//! | *batch* | records that are written at once, whole blocks |
//! | *segment* | a run of batches in one *slot* of the volume; it has a *sequence* that no other one has |
//! | *summary* | a line for each record of a closed segment, at its end |
//! | *table* | which slots are in use |
//! | *stream* | what clients write, or what compaction moves; each has one open segment |
//! | *void* | something durable that cannot be read |
#![forbid(unsafe_code)]

pub mod ask;
pub mod blocks;
mod cache;
mod cuckoo;
pub mod decimal;
mod ends;
pub mod fixed;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hash;
mod kept;
mod known;
mod layout;
mod locks;
mod log;
mod numbers;
pub mod planted;
mod slots;
mod store;

pub use hash::Secret;
pub use known::CACHED_KEY_BYTES;
pub use layout::{Malformed, VolumeShape};
pub use store::{Create, OpenError, Options, Store, Sync, create, is_store, open};
