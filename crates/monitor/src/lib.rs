//! Watching an array that is served: its metrics over HTTP, for Prometheus and whoever reads its format.
//!
//! A thread of its own answers, and asks the server's control socket as any command does. So it never runs on
//! the path of requests, and nothing it does can harm the array.
#![forbid(unsafe_code)]

pub mod metrics;
mod server;

pub use server::{Monitor, MonitorError};
