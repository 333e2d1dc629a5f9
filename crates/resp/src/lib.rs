//! The Redis protocol before the key-value store.
#![forbid(unsafe_code)]

pub mod glob;
mod limits;
pub mod wire;

pub use limits::Limits;
