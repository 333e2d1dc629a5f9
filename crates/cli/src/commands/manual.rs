//! `completions` and `man`: what else shows the command line, made of its one definition. They are commands
//! and no part of a build, so whoever has the binary alone has them too.

use super::Exit;
use clap::Args;
use clap_complete::{Shell, generate};
use lab::failure::Failure;
use node::output;
use std::path::{Path, PathBuf};
use std::{fs, io};

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
    generate(arguments.shell, &mut crate::definition(), "elastripe", &mut script);
    output::print(String::from_utf8_lossy(&script));
    Ok(0)
}

/// Runs `man`: all pages are written beside those that are there, and then take their places.
pub fn man(arguments: &ManArguments) -> Result<Exit, Failure> {
    let directory = &arguments.directory;
    let at = |error| cannot_write(directory, &error);
    let was_there = directory.exists();
    fs::create_dir_all(directory).map_err(at)?;
    let partial = directory.join(format!("pages.{}.partial", std::process::id()));
    let done = fs::create_dir(&partial)
        .and_then(|()| clap_mangen::generate_to(crate::definition(), &partial))
        .and_then(|()| set_off_examples(&partial))
        .map_err(at)
        .and_then(|()| put_in_place(&partial, directory));
    // The first error is the one to report.
    let _ = fs::remove_dir_all(&partial);
    if done.is_err() && !was_there {
        let _ = fs::remove_dir(directory);
    }
    done.map(|()| 0)
}

fn cannot_write(directory: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: cannot write there: {error}", directory.display()))
}

/// Examples are lines; what is made of them is a paragraph at the end, which would be filled.
fn set_off_examples(pages: &Path) -> io::Result<()> {
    for page in fs::read_dir(pages)? {
        let path = page?.path();
        let text = fs::read_to_string(&path)?;
        if let Some((before, examples)) = text.split_once(".SH EXTRA\nExamples:\n") {
            fs::write(&path, format!("{before}.SH EXAMPLES\n.nf\n{}\n.fi\n", examples.trim_end()))?;
        }
    }
    Ok(())
}

/// Lets pages take their places, when none of these is taken by something else.
fn put_in_place(pages: &Path, directory: &Path) -> Result<(), Failure> {
    let at = |error| cannot_write(directory, &error);
    let mut moves = Vec::new();
    for page in fs::read_dir(pages).map_err(at)? {
        let page = page.map_err(at)?;
        let place = directory.join(page.file_name());
        if place.is_dir() {
            return Err(Failure::new(format!(
                "{}: found a folder, expected a page of the manual or nothing",
                place.display()
            )));
        }
        moves.push((page.path(), place));
    }
    moves.iter().try_for_each(|(page, place)| fs::rename(page, place)).map_err(at)
}
