//! The subcommands, one module each.

mod bench;
mod create;
mod examine;
mod replay;
mod serve;
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
    /// Make a new array on empty devices or files.
    Create(create::Arguments),
    /// Show the superblock of one device, whatever array it belongs to.
    Examine(examine::Arguments),
    /// Assemble an array and export it over NBD.
    Serve(serve::Arguments),
}

impl Command {
    /// Carries the command out.
    pub fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Replay(arguments) => replay::run(&arguments),
            Self::Trace(arguments) => trace::run(&arguments),
            Self::Bench(arguments) => bench::run(&arguments),
            Self::Create(arguments) => create::run(&arguments),
            Self::Examine(arguments) => examine::run(&arguments),
            Self::Serve(arguments) => serve::run(&arguments),
        }
    }
}
