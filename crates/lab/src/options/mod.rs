//! Options that mean the same wherever an array is run, for an experiment or to be served.

pub mod batches;
pub mod cache;
pub mod consistency;
pub mod discards;
pub mod placement;
pub mod rewrites;
