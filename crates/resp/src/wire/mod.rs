//! The bytes of the protocol: requests in, answers out. Pure functions and state machines on bytes.

mod budget;
mod inline;
mod number;
mod parser;
mod reply;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use number::{decimal, number};
pub use parser::{Arguments, LARGE_BYTES, PART_BYTES, Parser, Step, Trust, Violation};
pub use reply::{Reply, Version};
