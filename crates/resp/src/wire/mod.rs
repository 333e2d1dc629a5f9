//! The bytes of the protocol: requests in, answers out. Pure functions and state machines on bytes.

mod budget;
mod inline;
mod parser;
mod reply;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests;

pub use budget::Budget;
pub use kv::decimal::{decimal, number};
pub use parser::{Arguments, LARGE_BYTES, PART_BYTES, Parser, Step, Trust, Violation};
pub use reply::{Reply, Version};
