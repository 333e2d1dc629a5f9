//! `wipe`: devices that were members are blank again.

use super::Exit;
use clap::Args;
use lab::failure::Failure;
use node::checks::{Caution, Consent, same_file};
use node::output;
use node::wipe::Wiping;
use std::path::PathBuf;

/// Options of `wipe`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Devices or files.
    #[arg(required = true, value_name = "DEVICE")]
    paths: Vec<PathBuf>,
    /// The devices are not needed any more: their array does without them.
    #[arg(long)]
    yes: bool,
    /// Even if an array, of which other members stay, loses its data without them.
    #[arg(long)]
    force: bool,
}

/// Runs `wipe`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (consent, caution) = (Consent::of_flag(arguments.yes), Caution::of_flag(arguments.force));
    for (index, path) in arguments.paths.iter().enumerate() {
        if arguments.paths[..index].iter().any(|other| same_file(other, path)) {
            return Err(Failure::new(format!("{}: given twice", path.display())));
        }
    }
    // All of them can be wiped before one is.
    let begun = arguments
        .paths
        .iter()
        .map(|path| Ok((path, Wiping::begin(path, &arguments.paths, consent, caution)?)));
    for (path, wiping) in begun.collect::<Result<Vec<_>, Failure>>()? {
        let was = wiping.finish()?;
        output::line(format_args!("{} was {was}, and is no more", path.display()));
    }
    Ok(0)
}
