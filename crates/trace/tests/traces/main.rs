//! Readers, statistics and preparation of traces. One binary for all of them: each of its own would cost a
//! link.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod arbitrary_bytes;
mod common;
mod elastic_log_chunks;
mod formats;
mod preparation;
mod profiles;
mod real_traces;
mod reference_counts;
mod round_trip;
mod statistics;
