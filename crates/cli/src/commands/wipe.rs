//! `wipe`: devices that were members are blank again.

use super::Exit;
use clap::Args;
use lab::failure::Failure;
use node::checks::{Caution, Consent, same_file};
use node::output;
use node::wipe::Wiping;
use serde_json::json;
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
    /// Print JSON.
    #[arg(long)]
    json: bool,
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
    let mut wiped = Vec::new();
    for (path, wiping) in begun.collect::<Result<Vec<_>, Failure>>()? {
        let was = wiping.finish()?;
        if !arguments.json {
            output::line(format_args!("{} was {was}, and is no more", path.display()));
        }
        wiped.push(json!({ "path": path.to_string_lossy(), "was": was }));
    }
    if arguments.json {
        output::line(format_args!("{:#}", json!({ "devices": wiped })));
    }
    Ok(0)
}
