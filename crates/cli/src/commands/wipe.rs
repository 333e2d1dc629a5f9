//! `wipe`: devices that were members are blank again.

use super::Exit;
use clap::Args;
use lab::failure::Failure;
use node::checks::Consent;
use node::output;
use node::wipe::wipe;
use std::path::PathBuf;

/// Options of `wipe`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Devices or files.
    #[arg(required = true, value_name = "DEVICE")]
    paths: Vec<PathBuf>,
    /// The devices are not needed any more: their array, which is not asked, does without them.
    #[arg(long)]
    yes: bool,
}

/// Runs `wipe`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    for path in &arguments.paths {
        let was = wipe(path, Consent::of_flag(arguments.yes))?;
        output::line(format_args!("{} was {was}, and is no more", path.display()));
    }
    Ok(0)
}
