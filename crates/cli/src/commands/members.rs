//! `fail`, `replace`, `add`: work on the members of an array, served or not.

use super::Exit;
use crate::failure::Failure;
use crate::open::{Incomplete, look_at};
use crate::operate::Caution;
use crate::output;
use crate::session::{Patience, Replacement, Session};
use crate::units::{parse_rate, parse_size};
use clap::Args;
use device::{Existing, allocate_file, create_file};
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `fail`.
#[derive(Args, Debug)]
pub struct FailArguments {
    /// Members of the array; one will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// The member to take out of service: data0.., log0.., or its path.
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// Even if the array does not bear another loss.
    #[arg(long)]
    force: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `replace`.
#[derive(Args, Debug)]
pub struct ReplaceArguments {
    /// Members of the array; one will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// The member whose place is taken: data0.., log0.., or its path. It is failed first if it works.
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// The device that takes the place.
    #[arg(long, value_name = "PATH")]
    with: PathBuf,
    /// Make the new device as a sparse file of this size if it does not exist.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    file_size: Option<u64>,
    /// Give that file all its room at once, so that it cannot lack any later; it is not sparse then.
    #[arg(long, requires = "file_size")]
    allocate: bool,
    /// Stay until the rebuild of a served array has ended.
    #[arg(long)]
    wait: bool,
    /// Limit of the rebuild (and of a scrub).
    #[arg(long, value_parser = parse_rate, value_name = "RATE")]
    rate: Option<u64>,
    /// Overwrite a device that belongs to another array or holds foreign content.
    #[arg(long)]
    force: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `add`.
#[derive(Args, Debug)]
pub struct AddArguments {
    /// Members of the array; one will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// A device that takes the place of the next member that fails while the array is being served.
    #[arg(long, value_name = "PATH")]
    spare: PathBuf,
    /// Make the device as a sparse file of this size if it does not exist.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    file_size: Option<u64>,
    /// Give that file all its room at once, so that it cannot lack any later; it is not sparse then.
    #[arg(long, requires = "file_size")]
    allocate: bool,
    /// Overwrite a device that belongs to another array or holds foreign content.
    #[arg(long)]
    force: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `fail`.
pub fn fail(arguments: &FailArguments) -> Result<Exit, Failure> {
    let (device, caution) = (&arguments.device, Caution::of_flag(arguments.force));
    let mut session = Session::open(&arguments.paths, Incomplete::RefuseBut(device), None, |array| {
        array.check_fail(array.find(device)?, caution)
    })?;
    let outcome = session.fail(device, caution);
    let text = format!("{} is out of service", arguments.device);
    finish(session, outcome, arguments.json, &text)
}

/// Runs `replace`.
pub fn replace(arguments: &ReplaceArguments) -> Result<Exit, Failure> {
    let made = MadeFile::make(&arguments.with, arguments.file_size, arguments.allocate)?;
    look_at(&arguments.with)?;
    let path = absolute(&arguments.with)?;
    let caution = Caution::of_flag(arguments.force);
    let device = &arguments.device;
    let mut session =
        Session::open(&arguments.paths, Incomplete::RefuseBut(device), arguments.rate, |array| {
            array.check_replace(array.find(device)?, &path, caution)
        })?;
    let live = matches!(session, Session::Live(_));
    let patience = if arguments.wait { Patience::Wait } else { Patience::Start };
    let outcome =
        session.replace(&Replacement { device, path: &path, caution, rate: arguments.rate, patience });
    if outcome.is_ok() {
        made.keep();
    }
    let (device, with) = (&arguments.device, arguments.with.display());
    let text = if live && !arguments.wait {
        format!("{with} takes the place of {device}; the rebuild has begun, see `status`")
    } else {
        format!("{with} has taken the place of {device}; rebuilt")
    };
    finish(session, outcome, arguments.json, &text)
}

/// Runs `add`.
pub fn add(arguments: &AddArguments) -> Result<Exit, Failure> {
    let made = MadeFile::make(&arguments.spare, arguments.file_size, arguments.allocate)?;
    let candidate = look_at(&arguments.spare)?;
    let path = absolute(&arguments.spare)?;
    let caution = Caution::of_flag(arguments.force);
    let mut session = Session::open(&arguments.paths, Incomplete::Refuse, None, |array| {
        array.check_spare(&candidate, caution).map(|_| ())
    })?;
    let outcome = session.add_spare(&path, caution);
    if outcome.is_ok() {
        made.keep();
    }
    let text = format!("{} is a spare now; name it among the members of `serve`", arguments.spare.display());
    finish(session, outcome, arguments.json, &text)
}

/// Reports, and closes the session whatever the outcome: an array that this command runs is stopped in order.
pub fn finish(
    mut session: Session,
    outcome: Result<(), Failure>,
    json: bool,
    text: &str,
) -> Result<Exit, Failure> {
    let status = if json && outcome.is_ok() { Some(session.status()?) } else { None };
    let closed = session.close();
    outcome?;
    closed?;
    match status {
        Some(status) => output::line(format_args!("{}", serde_json::to_string_pretty(&status)?)),
        None => output::line(format_args!("{text}")),
    }
    Ok(0)
}

/// The server has another working directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// A file that was made, taken away again unless it came into use.
struct MadeFile(Option<PathBuf>);

impl MadeFile {
    fn make(path: &Path, size_bytes: Option<u64>, allocate: bool) -> Result<Self, Failure> {
        match size_bytes {
            Some(size_bytes) if !path.exists() => {
                create_file(path, size_bytes, Existing::Refuse)?;
                let made = Self(Some(path.to_owned()));
                if allocate {
                    allocate_file(path)?;
                }
                Ok(made)
            }
            Some(_) => Ok(Self(None)),
            None if path.exists() => Ok(Self(None)),
            None => Err(Failure::new(format!(
                "{}: does not exist; name an existing device, or give --file-size to make a file",
                path.display()
            ))),
        }
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path); // the command has failed already
        }
    }
}
