//! `serve NAME`: what is not said on the command line is in the array's file.

use super::Arguments;
use crate::CommandLine;
use crate::commands::Command;
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory, FromArgMatches};
use front::Guard;
use lab::failure::{EXIT_MISUSED, Failure};
use lab::misuse::in_a_line;
use node::called::recorded;
use node::reloading::{Reloading, Reread};
use node::run_dir::run_dir;
use node::serve::Address;
use node::settings::{self, Settings};
use std::ffi::OsString;

/// The whole of the arguments, if they say an array by its name or UUID. Unless it has a socket already it
/// gets one.
pub fn completed(arguments: &Arguments, needs_socket: bool) -> Result<Option<Arguments>, Failure> {
    let alone = name_alone(arguments);
    let Some(wanted) = arguments.array.clone().or_else(|| alone.clone()) else { return Ok(None) };
    let settings = settings::find(&wanted)?;
    let mut whole = match &settings {
        Some(settings) => with_settings(settings)?,
        None => again(&[]).map_err(|error| Failure::new(error.to_string()))?,
    };
    if alone.is_some() {
        whole.paths.clear();
    }
    if let Some(settings) = settings {
        if whole.paths.is_empty() {
            whole.paths = settings.places;
        }
        whole.array = Some(settings.array.to_string());
    } else {
        if whole.paths.is_empty() {
            // A server that was killed has left word where the members are.
            whole.paths = recorded(&wanted)?.unwrap_or_default();
        }
        whole.array = Some(wanted.clone());
    }
    // By its UUID it has a socket of its own anyway.
    let can_be_a_file = !wanted.contains('/') && wanted.parse::<format::ArrayUuid>().is_err();
    if needs_socket && whole.clients.is_nowhere() && whole.whole.run.is_none() && can_be_a_file {
        whole.clients.nbd = vec![Address::Unix(run_dir().join(format!("{wanted}.nbd")))];
    }
    Ok(Some(whole))
}

/// The only path that was given, if there is no such thing and it may be a name.
fn name_alone(arguments: &Arguments) -> Option<String> {
    let [path] = arguments.paths.as_slice() else { return None };
    let name = path.to_str().filter(|name| !name.contains('/'))?;
    let is_name = !arguments.scan && arguments.array.is_none() && path.symlink_metadata().is_err();
    is_name.then(|| name.to_owned())
}

/// What the command line says, and the file where it says nothing.
fn with_settings(settings: &Settings) -> Result<Arguments, Failure> {
    let given = on_the_command_line();
    // The name follows the words of the file, and is no number of a disk.
    let mut words = settings.words(&given.iter().map(String::as_str).collect::<Vec<_>>());
    words.iter_mut().filter(|word| *word == "--ublk").for_each(|word| word.push_str("=auto"));
    again(&words).map_err(|error| {
        let why = in_a_line(&error);
        Failure::new(format!("{}: {why}", settings.path.display())).with_exit(EXIT_MISUSED)
    })
}

/// The options that the command line has: of these it counts alone, also if they may be given several times.
fn on_the_command_line() -> Vec<String> {
    let parser = CommandLine::command();
    let serve = parser.find_subcommand("serve").map(clap::Command::get_arguments);
    let Ok(matches) = parser.clone().try_get_matches() else { return Vec::new() };
    let Some((_, matches)) = matches.subcommand() else { return Vec::new() };
    let is_given =
        |option: &&Arg| matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
    let given = serve.into_iter().flatten().filter(is_given);
    given.filter_map(Arg::get_long).map(str::to_owned).collect()
}

/// The command line once more, after these words.
fn again(words: &[String]) -> Result<Arguments, clap::Error> {
    let mut given = std::env::args_os();
    let mut line: Vec<OsString> = given.by_ref().take(2).collect();
    line.extend(words.iter().map(OsString::from));
    line.extend(given);
    let matches = CommandLine::command().try_get_matches_from(line)?;
    let command = CommandLine::from_arg_matches(&matches)?.command;
    let Command::Serve(arguments) = command else {
        return Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand));
    };
    Ok(arguments)
}

/// What may change while the array is served.
const RELOADED: [&str; 5] = ["tls-cert", "tls-key", "tls-client-ca", "allow", "rebuild-rate"];

/// What SIGHUP changes: files of certificates, and of the array's file what may change in service.
pub fn reloading(arguments: &Arguments, guard: &Guard) -> Result<Reloading, Failure> {
    let rebuild_rate = arguments.whole.background.rebuild_rate();
    let wanted = arguments.array.clone();
    let before = options_of_file(wanted.as_deref())?;
    let read = move || {
        let failed = |failure: Failure| failure.to_string();
        let plain = again(&[]).map_err(|error| error.to_string())?;
        let whole = completed(&plain, false).map_err(failed)?.unwrap_or(plain);
        let now = options_of_file(wanted.as_deref()).map_err(failed)?;
        let mut later: Vec<String> =
            before.iter().filter(|option| !now.contains(option)).map(named).collect();
        later.extend(now.iter().filter(|option| !before.contains(option)).map(named));
        later.retain(|option| !RELOADED.iter().any(|name| option[2..] == **name));
        later.sort();
        later.dedup();
        let rules = whole.clients.guards.rules().map_err(failed)?;
        let what = "certificates, --allow and --rebuild-rate";
        Ok(Reread { what, rules, rebuild_rate: whole.whole.background.rebuild_rate(), later })
    };
    Ok(Reloading::new(guard, rebuild_rate, Box::new(read)))
}

fn named(option: &(String, String)) -> String {
    format!("--{}", option.0)
}

/// The options in the array's file, if it has one.
fn options_of_file(wanted: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
    let settings = wanted.map(settings::find).transpose()?.flatten();
    Ok(settings.map(|settings| settings.options).unwrap_or_default())
}
