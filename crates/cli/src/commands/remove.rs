//! `remove`: a spare is a spare no more.

use super::Exit;
use super::status::status_of;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use device::{Access, Members};
use format::Role;
use lab::failure::Failure;
use node::blank::wipe_spare;
use node::called::members;
use node::checks::same_file;
use node::control::Request;
use node::open::{look_at, open_options};
use node::output;
use node::session::{Reach, server_of};
use std::path::{Path, PathBuf};

/// Options of `remove`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members or spares of the array, one will do; or its name or UUID.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// The spare: its path, or spare0.. as `status` of the same paths calls it.
    #[arg(long, value_name = "SPARE", value_parser = NonEmptyStringValueParser::new())]
    spare: String,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `remove`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let spare = &arguments.spare;
    let mut called = members(&arguments.paths)?;
    let mut server = match server_of(&called)? {
        Reach::Server(client) => Some(client),
        Reach::Nobody | Reach::Copy(_) => None,
    };
    if let Some(client) = &mut server {
        // The server may have another working directory.
        let path = Path::new(spare);
        let name = if path.exists() { std::path::absolute(path)? } else { path.to_owned() };
        client.order(&Request::RemoveSpare { spare: name })?;
    } else {
        let path = spare_of(&called.paths, spare)?;
        called.paths.retain(|other| !same_file(other, &path));
        if arguments.json && called.paths.is_empty() {
            return Err(Failure::new(format!(
                "{spare}: nothing else of its array is named; --json prints the array's status, \
                 name one of its members"
            )));
        }
        let mut lock = Members::open(&[Some(path.clone())], open_options(Access::Exclusive))?;
        wipe_spare(&mut lock, &path).map_err(Failure::new)?;
    }
    if !arguments.json {
        output::line(format_args!("{spare} is a spare no more; its superblock is erased"));
        return Ok(0);
    }
    let status = match &mut server {
        Some(client) => client.status()?,
        None => status_of(&called)?,
    };
    output::line(serde_json::to_string_pretty(&status)?);
    Ok(0)
}

/// Where a spare of the array is that nobody serves.
fn spare_of(paths: &[PathBuf], spare: &str) -> Result<PathBuf, Failure> {
    let given = paths.iter().map(|path| look_at(path)).collect::<Result<Vec<_>, _>>()?;
    let array = given.iter().find_map(|candidate| candidate.superblock()).map(|found| found.array);
    let is_spare =
        |superblock: Option<&format::Superblock>| superblock.is_some_and(|found| found.role == Role::Spare);
    let mut spares = given.iter().filter(|candidate| is_spare(candidate.superblock()));
    let index = spare.strip_prefix("spare").and_then(|index| index.parse::<usize>().ok());
    let path = match index.and_then(|index| spares.nth(index)) {
        Some(candidate) => candidate.path.clone(),
        None => PathBuf::from(spare),
    };
    let found = look_at(&path)?;
    let own = found.superblock().filter(|found| found.role == Role::Spare && Some(found.array) == array);
    if own.is_none() {
        return Err(Failure::new(format!("{spare}: not a spare of this array; name the path of one")));
    }
    Ok(path)
}
