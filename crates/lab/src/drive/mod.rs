//! How it is measured: a trace is loaded, its requests are kept in flight, their content is verified.

pub mod driver;
pub mod load;
pub mod phase;
pub mod progress;
pub mod series;
pub mod verify;
