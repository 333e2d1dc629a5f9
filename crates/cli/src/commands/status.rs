//! `status`: how an array is, in one screen or as JSON.
//!
//! Exit codes: 0 healthy, 1 degraded, 2 failed, or its server is gone, 3 data is lost, 4 could not look. Of
//! several arrays the worst counts.

use super::Exit;
use crate::screen::{losses, render};
use clap::Args;
use format::ArrayUuid;
use lab::failure::{EXIT_CANNOT_LOOK, Failure};
use node::error::Error;
use node::open::{Candidate, arrange_any_candidates, is_locked, look_at};
use node::output;
use node::registry::{Record, Trace, traces};
use node::session::{Reach, reach};
use node::status::{Condition, Source, Status, of_superblocks};
use serde::Serialize;
use std::path::PathBuf;

/// Options of `status`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members of one array; any of them will do for an array that is being served. Without any, all arrays
    /// that are being served are shown.
    #[arg(value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// List what is lost, too.
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
}

/// Runs `status`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    look(arguments).map_err(|failure| failure.with_exit(EXIT_CANNOT_LOOK))
}

fn look(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.paths.is_empty() {
        return look_at_served(arguments.json);
    }
    let status = status_of(&arguments.paths)?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&status)?);
    } else {
        let mut text = render(&status);
        if arguments.verbose {
            losses::list(&mut text, &status);
        }
        output::print(text);
    }
    Ok(exit_of(status.state))
}

fn look_at_served(json: bool) -> Result<Exit, Failure> {
    let (mut all, mut exit) = (Vec::new(), 0);
    for (array, trace) in traces() {
        match trace {
            Trace::Live(mut client) => all.push(Shown::Array(Box::new(client.status()?))),
            Trace::Dead(record) => all.push(status_of_dead(array, record)),
            Trace::Passing => {}
            Trace::Unreachable(failure) => {
                output::warn(format_args!("elastripe: {failure}"));
                exit = EXIT_CANNOT_LOOK;
            }
        }
    }
    if json {
        output::line(serde_json::to_string_pretty(&all)?);
    } else if all.is_empty() {
        output::line("no array is being served; name the members of one to look at it");
    } else {
        output::print(all.iter().map(Shown::render).collect::<Vec<_>>().join("\n"));
    }
    if all.is_empty() {
        return Ok(EXIT_CANNOT_LOOK);
    }
    let worst = all.iter().map(Shown::exit).chain([exit]).max_by_key(|&exit| severity(exit));
    Ok(worst.unwrap_or(0))
}

fn exit_of(condition: Condition) -> Exit {
    match condition {
        Condition::Healthy => 0,
        Condition::Degraded | Condition::Suspended => 1,
        Condition::Failed | Condition::Down => 2,
        Condition::Lost => 3,
        Condition::Incomplete => EXIT_CANNOT_LOOK,
    }
}

/// Which of several exit codes is the worst: an array that has failed gives less than one that has lost
/// something.
fn severity(exit: Exit) -> usize {
    [0, 1, 3, 2, EXIT_CANNOT_LOOK].iter().position(|&code| code == exit).unwrap_or(usize::MAX)
}

/// One of the arrays of this run directory.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown {
    /// All that is known of it.
    Array(Box<Status>),
    /// Its server is gone, and its members cannot be looked at.
    Traces {
        uuid: String,
        name: String,
        state: Condition,
        source: Source,
        uris: Vec<String>,
        notes: Vec<String>,
    },
}

impl Shown {
    fn exit(&self) -> Exit {
        match self {
            Self::Array(status) => exit_of(status.state),
            Self::Traces { state, .. } => exit_of(*state),
        }
    }

    fn render(&self) -> String {
        match self {
            Self::Array(status) => render(status),
            Self::Traces { uuid, name, state, notes, .. } => {
                let name = if name.is_empty() { "(no name)" } else { name };
                let shown = state.shown();
                format!("     array: {name}  {uuid}\n     state: {shown}\n   meaning: {}\n", notes.join("; "))
            }
        }
    }
}

/// What a server that is gone left: its record leads to the members.
fn status_of_dead(array: ArrayUuid, record: Record) -> Shown {
    let own = |candidate: &Candidate| candidate.superblock().is_some_and(|found| found.array == array);
    let candidates = record.paths.iter().filter_map(|path| look_at(path).ok()).filter(own);
    let candidates: Vec<Candidate> = candidates.collect();
    let gone =
        if record.pid == 0 { "its server".to_owned() } else { format!("its server, {},", record.describe()) };
    let note = format!("{gone} is gone without having stopped the array");
    match arrange_any_candidates(&candidates) {
        Ok(found) => {
            let mut status = of_superblocks(&found, Source::Dead, record.paths.len() - candidates.len());
            if status.state != Condition::Failed {
                status.state = Condition::Down;
            }
            status.uris = record.addresses;
            status.notes.push(note);
            Shown::Array(Box::new(status))
        }
        Err(_) => Shown::Traces {
            uuid: record.uuid,
            name: record.name,
            state: Condition::Down,
            source: Source::Dead,
            uris: record.addresses,
            notes: vec![note, "name its members to look at them".to_owned()],
        },
    }
}

/// The status of the array that `paths` belong to: from its server if it has one, else from the
/// superblocks. Paths that are no members (any more) are mentioned, unless none is one.
pub fn status_of(paths: &[PathBuf]) -> Result<Status, Failure> {
    let mut ignored = Vec::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    // Paths of members that are gone or damaged, as far as one can tell: those members were looked for.
    let mut in_vain = 0;
    for path in paths {
        let looked = look_at(path);
        in_vain += usize::from(looked.as_ref().map_or(true, |found| found.looks_like_member));
        match looked.and_then(|candidate| candidate.require_superblock().map(|_| ()).map(|()| candidate)) {
            Ok(candidate) => {
                in_vain -= usize::from(candidate.looks_like_member);
                candidates.push(candidate);
            }
            Err(failure) => ignored.push(failure),
        }
    }
    let Some(first) = candidates.first() else {
        return Err(ignored.pop().unwrap_or(Error::NoneNamed).into());
    };
    let of_candidates = || {
        let found = arrange_any_candidates(&candidates)?;
        let locked = candidates.iter().any(is_locked);
        let source = if locked { Source::InUse } else { Source::Stopped };
        let cut = candidates.iter().filter_map(Candidate::truncation);
        let ignored: Vec<String> = cut.map(|truncation| truncation.to_string()).collect();
        let mut status = of_superblocks(&found, source, in_vain + ignored.len());
        status.ignored = ignored;
        Ok::<_, Failure>(status)
    };
    let mut status = match reach(first)? {
        Reach::Server(mut client) => client.status()?,
        Reach::Nobody => of_candidates()?,
        Reach::Copy(why) => {
            let mut status = of_candidates()?;
            status.notes.push(why);
            status
        }
    };
    status.ignored.extend(ignored.iter().map(ToString::to_string));
    Ok(status)
}
