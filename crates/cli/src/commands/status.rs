//! `status`: how an array is, in one screen or as JSON.
//!
//! Exit codes: 0 healthy, 1 degraded, 2 failed, 4 could not look. Of several arrays the worst counts.

use super::Exit;
use crate::control::{Client, sockets};
use crate::failure::{EXIT_CANNOT_LOOK, Failure};
use crate::open::{Candidate, arrange_any_candidates, is_locked, look_at};
use crate::output;
use crate::screen::render;
use crate::status::{Source, Status, of_superblocks};
use clap::Args;
use std::path::PathBuf;

/// Options of `status`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members of one array; any of them will do for an array that is being served. Without any, all arrays that are
    /// being served are shown.
    #[arg(value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
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
        output::print(render(&status));
    }
    Ok(status.state.exit())
}

fn look_at_served(json: bool) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for (array, _) in sockets() {
        // A socket that nobody answers on is left over from a server that was killed.
        if let Some(mut client) = Client::connect(array) {
            all.push(client.status()?);
        }
    }
    if json {
        output::line(serde_json::to_string_pretty(&all)?);
    } else if all.is_empty() {
        output::line("no array is being served; name the members of one to look at it");
    } else {
        output::print(all.iter().map(render).collect::<Vec<_>>().join("\n"));
    }
    Ok(all.iter().map(|status| status.state.exit()).max().unwrap_or(0))
}

/// The status of the array that `paths` belong to: from its server if it has one, else from the superblocks. Paths that
/// are no members (any more) are mentioned, unless none is one.
pub fn status_of(paths: &[PathBuf]) -> Result<Status, Failure> {
    let mut ignored = Vec::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for path in paths {
        match look_at(path)
            .and_then(|candidate| candidate.require_superblock().map(|_| ()).map(|()| candidate))
        {
            Ok(candidate) => candidates.push(candidate),
            Err(failure) => ignored.push(failure),
        }
    }
    let first = candidates.iter().find_map(Candidate::superblock).map(|superblock| superblock.array);
    let mut status = match first {
        Some(array) => match Client::connect(array) {
            Some(mut client) => client.status()?,
            None => {
                let found = arrange_any_candidates(&candidates)?;
                let locked = candidates.iter().any(is_locked);
                of_superblocks(&found, if locked { Source::InUse } else { Source::Stopped })
            }
        },
        None => return Err(ignored.pop().unwrap_or_else(|| Failure::new("no member was named"))),
    };
    status.ignored = ignored.iter().map(ToString::to_string).collect();
    Ok(status)
}
