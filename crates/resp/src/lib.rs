//! The Redis protocol before the key-value store.
#![forbid(unsafe_code)]

pub mod commands;
mod desk;
mod fault;
pub mod glob;
mod limits;
pub mod memory;
mod output;
mod pending;
mod server;
mod session;
mod settings;
pub mod wire;

pub use desk::{Calls, ClientId, Desk, Statistics, Who};
pub use fault::Fault;
pub use limits::Limits;
pub use output::Output;
pub use server::{Driven, Hooks, NoHooks, PROGRESS_BYTES, Server, Summary};
pub use session::{Context, Session, Wants};
pub use settings::{Durable, Password, Settings};

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
