//! The subcommands, one module each.

mod create;
mod examine;
pub mod examples;
pub mod grow;
mod inspect;
mod kv;
mod maintain;
mod manual;
mod members;
mod reach;
mod remove;
mod rename;
mod scan;
mod serve;
mod status;
mod wipe;

use clap::Subcommand;
use lab::failure::Failure;
use lab::{bench, experiments, flash, plot, reliability, replay, simulate, trace};

/// How a command ended: the process's exit code.
pub type Exit = u8;

/// What can be done.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a new array on devices or files that carry nothing known.
    Create(create::Arguments),
    /// Assemble an array and export it over NBD.
    Serve(serve::Arguments),
    /// Keys and values on an array, for clients of Redis.
    #[command(subcommand)]
    Kv(kv::Command),
    /// Find arrays among devices, files and directories.
    Scan(scan::Arguments),
    /// Show how an array is; exit code 0 healthy, 1 degraded or suspended, 2 failed or down, 3 data is
    /// lost, 4 could not look.
    Status(status::Arguments),
    /// Stop serving an array, in order.
    Stop(maintain::StopArguments),
    /// Take a member out of service.
    Fail(members::FailArguments),
    /// Put another device in a member's place and rebuild.
    Replace(members::ReplaceArguments),
    /// Take a member back that was away, and rebuild what it missed.
    Online(members::OnlineArguments),
    /// Add a hot spare.
    Add(members::AddArguments),
    /// Take a spare out of an array.
    Remove(remove::Arguments),
    /// Give an array another name.
    Rename(rename::Arguments),
    /// Let an array take the room of devices that have become larger.
    Grow(grow::Arguments),
    /// Make devices forget that they were members.
    Wipe(wipe::Arguments),
    /// Check all metadata, and every chunk against its checksum and the code, and heal what is bad.
    Scrub(maintain::ScrubArguments),
    /// Forget the errors that members made so far, and that --force gave up durable data; count anew.
    Clear(maintain::ClearArguments),
    /// Limit rebuild and scrub while they run.
    Rate(maintain::RateArguments),
    /// Stay until rebuild, scrub, replacement and commit have ended.
    Wait(maintain::WaitArguments),
    /// Fold logged parity into the stripes' own parity now.
    Commit(maintain::CommitArguments),
    /// Write a metadata checkpoint now.
    Checkpoint(maintain::CheckpointArguments),
    /// Show the superblock of one device, whatever array it belongs to.
    Examine(examine::Arguments),
    /// Decode superblocks, checkpoints and frames on members, also damaged ones; never writes.
    Inspect(inspect::Arguments),
    /// Replay a block trace through an array, measure and verify it.
    Replay(replay::Arguments),
    /// Look at block traces, convert them.
    Trace(trace::Arguments),
    /// Measure the engine on memory and null devices, schemes side by side.
    Bench(bench::Arguments),
    /// Run one simulated SSD.
    Flash(flash::Arguments),
    /// Run a trace through the engine over simulated SSDs, in virtual time.
    Simulate(Box<simulate::Arguments>),
    /// Reckon how likely arrays lose data, and how much.
    Reliability(Box<reliability::Arguments>),
    /// Run the papers' experiments, and report theirs beside ours.
    Lab(experiments::Arguments),
    /// Draw columns of a CSV file, such as a sweep's results.csv, as SVG or PNG.
    Plot(Box<plot::command::Arguments>),
    /// Print what a shell needs to complete this program's command lines.
    Completions(manual::CompletionsArguments),
    /// Write the pages of the manual into a directory.
    Man(manual::ManArguments),
}

impl Command {
    /// Carries the command out.
    pub fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Create(arguments) => create::run(&arguments),
            Self::Serve(arguments) => serve::run(&arguments),
            Self::Kv(command) => kv::run(&command),
            Self::Scan(arguments) => scan::run(&arguments),
            Self::Status(arguments) => status::run(&arguments),
            Self::Stop(arguments) => maintain::stop(&arguments),
            Self::Fail(arguments) => members::fail(&arguments),
            Self::Replace(arguments) => members::replace(&arguments),
            Self::Online(arguments) => members::online(&arguments),
            Self::Add(arguments) => members::add(&arguments),
            Self::Remove(arguments) => remove::run(&arguments),
            Self::Rename(arguments) => rename::run(&arguments),
            Self::Grow(arguments) => grow::run(&arguments),
            Self::Wipe(arguments) => wipe::run(&arguments),
            Self::Scrub(arguments) => maintain::scrub(&arguments),
            Self::Clear(arguments) => maintain::clear(&arguments),
            Self::Rate(arguments) => maintain::rate(&arguments),
            Self::Wait(arguments) => maintain::wait(&arguments),
            Self::Commit(arguments) => maintain::commit(&arguments),
            Self::Checkpoint(arguments) => maintain::checkpoint(&arguments),
            Self::Examine(arguments) => examine::run(&arguments),
            Self::Inspect(arguments) => inspect::run(&arguments),
            Self::Replay(arguments) => replay::run(&arguments),
            Self::Trace(arguments) => trace::run(&arguments),
            Self::Bench(arguments) => bench::run(&arguments),
            Self::Flash(arguments) => flash::run(&arguments),
            Self::Simulate(mut arguments) => simulate::run(&mut arguments),
            Self::Reliability(arguments) => reliability::run(&arguments),
            Self::Lab(arguments) => experiments::run(&arguments),
            Self::Plot(arguments) => plot::command::run(&arguments),
            Self::Completions(arguments) => manual::completions(&arguments),
            Self::Man(arguments) => manual::man(&arguments),
        }
    }
}
