//! The subcommands, one module each.

mod bench;
mod examine;
mod replay;
mod trace;

use crate::failure::Failure;
use clap::Subcommand;

/// How a command ended: the process's exit code.
pub type Exit = u8;

/// What can be done.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Replay a block trace through an array, measure and verify it.
    Replay(replay::Arguments),
    /// Look at block traces, convert them.
    Trace(trace::Arguments),
    /// Measure the engine on memory and null devices, schemes side by side.
    Bench(bench::Arguments),
    /// Show the superblock of one device, whatever array it belongs to.
    Examine(examine::Arguments),
}

impl Command {
    /// Carries the command out.
    pub fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Replay(arguments) => replay::run(&arguments),
            Self::Trace(arguments) => trace::run(&arguments),
            Self::Bench(arguments) => bench::run(&arguments),
            Self::Examine(arguments) => examine::run(&arguments),
        }
    }
}
