//! `remove`: a spare is a spare no more.

use super::Exit;
use clap::Args;
use device::{Access, Members};
use clap::builder::NonEmptyStringValueParser;
use format::Role;
use lab::failure::Failure;
use node::blank::wipe_spare;
use node::called::members;
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
}

/// Runs `remove`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let spare = &arguments.spare;
    let called = members(&arguments.paths)?;
    match server_of(&called)? {
        // The server may have another working directory.
        Reach::Server(mut client) => {
            let path = Path::new(spare);
            let name = if path.exists() { std::path::absolute(path)? } else { path.to_owned() };
            client.order(&Request::RemoveSpare { spare: name })?;
        }
        Reach::Nobody | Reach::Copy(_) => remove_offline(&called.paths, spare)?,
    }
    output::line(format_args!("{spare} is a spare no more; its superblock is erased"));
    Ok(0)
}

fn remove_offline(paths: &[PathBuf], spare: &str) -> Result<(), Failure> {
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
    let mut lock = Members::open(&[Some(path.clone())], open_options(Access::Exclusive))?;
    wipe_spare(&mut lock, &path).map_err(Failure::new)
}
