//! `completions` and `man`: what else shows the command line, made of its one definition. They are commands
//! and no part of a build, so whoever has the binary alone has them too.

use super::Exit;
use crate::CommandLine;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use lab::failure::Failure;
use node::output;
use std::fs;
use std::path::PathBuf;

/// Options of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArguments {
    /// For this shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Options of `man`.
#[derive(Args, Debug)]
pub struct ManArguments {
    /// Where the pages go, one for each command; made if it does not exist.
    directory: PathBuf,
}

/// Runs `completions`.
pub fn completions(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut CommandLine::command(), "elastripe", &mut script);
    output::print(String::from_utf8_lossy(&script));
    Ok(0)
}

/// Runs `man`.
pub fn man(arguments: &ManArguments) -> Result<Exit, Failure> {
    let directory = &arguments.directory;
    let at = |error| Failure::new(format!("{}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(at)?;
    clap_mangen::generate_to(CommandLine::command(), directory).map_err(at)?;
    Ok(0)
}
