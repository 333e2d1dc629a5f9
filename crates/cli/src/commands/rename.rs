//! `rename`: an array gets another name.

use super::Exit;
use super::members::finish;
use clap::Args;
use format::ArrayUuid;
use lab::failure::Failure;
use node::called::members;
use node::naming::check_new_name;
use node::open::{Force, Incomplete, look_at};
use node::output;
use node::session::Session;
use node::settings;
use std::path::PathBuf;

/// Options of `rename`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// The new name; an empty one takes the name away.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// The file in which the array is kept, if that is called otherwise.
fn kept_otherwise(array: ArrayUuid, name: &str) -> Option<PathBuf> {
    let kept = settings::find(&array.to_string()).ok()??;
    (kept.path.file_stem().is_none_or(|stem| stem != name)).then_some(kept.path)
}

/// Runs `rename`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let name = &arguments.name;
    let called = members(&arguments.paths)?;
    let known = called.paths.iter().filter_map(|path| look_at(path).ok());
    let mut found = known.filter_map(|candidate| candidate.superblock().map(|found| found.array));
    let array = called.array.or_else(|| found.next());
    if let Some(array) = array {
        check_new_name(array, name).map_err(|failure| Failure::new(format!("--name: {failure}")))?;
    }
    let mut session = Session::open(&called, Force::Never, Incomplete::Refuse, None, |_| Ok(()))?;
    let is_served = matches!(session, Session::Live(_));
    let outcome = session.rename(name);
    let called =
        if name.is_empty() { "has no name any more".to_owned() } else { format!("is called {name}") };
    if let Some(kept) = array.filter(|_| outcome.is_ok()).and_then(|array| kept_otherwise(array, name)) {
        output::warn(format_args!(
            "elastripe: {} still has the old name; `elastripe scan --write` calls it as the array",
            kept.display()
        ));
    }
    let export = if is_served { "; its export has the new name from the next start on" } else { "" };
    finish(session, outcome, arguments.json, &format!("the array {called}{export}"))
}
