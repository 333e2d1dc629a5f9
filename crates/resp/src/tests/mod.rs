//! Whole sessions.

mod commands;
mod harness;
mod order;
