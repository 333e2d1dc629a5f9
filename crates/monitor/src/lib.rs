//! Watching an array that is served, over HTTP: its metrics, for Prometheus and whoever reads its format,
//! and a page to look at.
//!
//! A thread of its own answers, and asks the server's control socket as any command does. So it never runs on
//! the path of requests, and nothing it does can harm the array.
#![forbid(unsafe_code)]

mod guard;
mod live;
pub mod metrics;
mod page;
mod server;

pub use server::{Monitor, MonitorError};
