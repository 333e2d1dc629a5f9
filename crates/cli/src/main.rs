//! `elastripe`: one binary to make, run, look at and measure arrays. See `elastripe help`.
#![forbid(unsafe_code)]

mod commands;
mod control;
mod describe;
mod failure;
mod fresh;
mod inspect;
mod offline;
mod open;
mod operate;
mod output;
mod progress;
mod screen;
mod session;
mod status;
mod steward;
mod units;
mod volume;

use clap::Parser;
use std::process::ExitCode;

/// Elastic-parity RAID for SSD arrays, in user space.
#[derive(Parser, Debug)]
#[command(name = "elastripe", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match line.command.run() {
        Ok(exit) => ExitCode::from(exit),
        Err(failure) => {
            output::warn(format_args!("elastripe: {failure}"));
            ExitCode::from(failure.exit())
        }
    }
}
