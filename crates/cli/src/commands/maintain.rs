//! `scrub`, `commit`, `checkpoint`, `stop`: work on an array as a whole, served or not.

use super::Exit;
use super::members::finish;
use crate::control::Request;
use crate::failure::{EXIT_FAILED, Failure};
use crate::open::Incomplete;
use crate::output;
use crate::session::{Patience, Session, server_of};
use crate::status::LastWork;
use crate::units::parse_rate;
use clap::Args;
use format::CheckpointKind;
use std::path::PathBuf;

/// Options of `scrub`.
#[derive(Args, Debug)]
pub struct ScrubArguments {
    /// Members of the array; one will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Stay until the scrub of a served array has ended.
    #[arg(long)]
    wait: bool,
    /// Limit of the scrub (and of a rebuild).
    #[arg(long, value_parser = parse_rate, value_name = "RATE")]
    rate: Option<u64>,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `commit` and `stop`.
#[derive(Args, Debug)]
pub struct PlainArguments {
    /// Members of the array; one will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `clear`.
#[derive(Args, Debug)]
pub struct ClearArguments {
    /// Members of the array; one will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Only this member: data0.., log0.., or its path.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `checkpoint`.
#[derive(Args, Debug)]
pub struct CheckpointArguments {
    /// Members of the array; one will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// All metadata.
    #[arg(long, conflicts_with = "incremental")]
    full: bool,
    /// What changed since the last checkpoint (the default).
    #[arg(long)]
    incremental: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `scrub`. Exit code 1 if something is lost or did not match.
pub fn scrub(arguments: &ScrubArguments) -> Result<Exit, Failure> {
    let mut session = Session::open(&arguments.paths, Incomplete::Refuse, arguments.rate, |_| Ok(()))?;
    let patience = if arguments.wait { Patience::Wait } else { Patience::Start };
    let outcome = session.scrub(arguments.rate, patience);
    let (exit, text) = match &outcome {
        Ok(Some(found)) => (
            if found.lost + found.mismatches + found.metadata_left > 0 { EXIT_FAILED } else { 0 },
            describe_scrub(found),
        ),
        Ok(None) | Err(_) => (0, "the scrub has begun, see `status`".to_owned()),
    };
    finish(session, outcome.map(|_| ()), arguments.json, &text)?;
    Ok(exit)
}

fn describe_scrub(found: &LastWork) -> String {
    let left = match found.metadata_left {
        0 => String::new(),
        left => format!(", {left} errors left in the metadata"),
    };
    format!(
        "scrub: {} chunks healed, {} code words lost, {} stripes with parity that did not match, {} metadata blocks written anew{left}",
        found.chunks_repaired, found.lost, found.mismatches, found.metadata_repaired
    )
}

/// Runs `clear`.
pub fn clear(arguments: &ClearArguments) -> Result<Exit, Failure> {
    let mut session = Session::open(&arguments.paths, Incomplete::Refuse, None, |_| Ok(()))?;
    let outcome = session.clear(arguments.device.as_deref());
    let whose = arguments.device.as_deref().unwrap_or("every member");
    finish(session, outcome, arguments.json, &format!("errors of {whose} are counted anew"))
}

/// Runs `commit`.
pub fn commit(arguments: &PlainArguments) -> Result<Exit, Failure> {
    let mut session = Session::open(&arguments.paths, Incomplete::Refuse, None, |_| Ok(()))?;
    let outcome = session.commit();
    finish(session, outcome, arguments.json, "the parity of every stripe is up to date")
}

/// Runs `checkpoint`.
pub fn checkpoint(arguments: &CheckpointArguments) -> Result<Exit, Failure> {
    let kind = if arguments.full { CheckpointKind::Full } else { CheckpointKind::Incremental };
    let mut session = Session::open(&arguments.paths, Incomplete::Refuse, None, |_| Ok(()))?;
    let outcome = session.checkpoint(kind);
    let number = session.status().ok().and_then(|status| status.checkpoints).map_or(0, |place| place.number);
    finish(session, outcome, arguments.json, &format!("checkpoint {number} is written"))
}

/// Runs `stop`.
pub fn stop(arguments: &PlainArguments) -> Result<Exit, Failure> {
    let Some(mut client) = server_of(&arguments.paths)? else {
        let first = arguments.paths.first().map_or_else(String::new, |path| path.display().to_string());
        return Err(Failure::new(format!(
            "{first}: its array is not being served; there is nothing to stop"
        )));
    };
    let status = client.status()?;
    client.order(&Request::Stop)?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&status)?);
    } else {
        output::line("stopped in order");
    }
    Ok(0)
}
