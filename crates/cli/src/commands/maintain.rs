//! `scrub`, `commit`, `checkpoint`, `stop`: work on an array as a whole, served or not.

use super::Exit;
use super::members::finish;
use super::reach::server_that_runs;
use crate::progress::Progress;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use format::{ArrayUuid, CheckpointKind};
use lab::failure::{EXIT_FAILED, Failure};
use node::called::{Called, members};
use node::checks::same_file;
use node::control::{Client, Request};
use node::error::Error;
use node::event::work_name;
use node::open::{Force, Incomplete, look_at};
use node::operate::Steering;
use node::output;
use node::recovering::Recovering;
use node::registry::{Record, forget_dead, forget_lost, records};
use node::session::{Patience, Reach, Session, server_of};
use node::status::{DeviceState, EngineStatus, LastWork, Status};
use node::ublk;
use node::units::{parse_rate, parse_rate_or_off, show_rate};
use node::waiting::{Successor, wait_for_commits, wait_for_successor, wait_for_work};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Options of `scrub`.
#[derive(Args, Debug)]
pub struct ScrubArguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Stay until the scrub of a served array has ended.
    #[arg(long)]
    wait: bool,
    /// Let the scrub that is under way wait; a rebuild is not kept waiting by it.
    #[arg(long, conflicts_with_all = ["resume", "stop", "wait", "rate", "force"])]
    pause: bool,
    /// Let it go on.
    #[arg(long, conflicts_with_all = ["stop", "wait", "rate", "force"])]
    resume: bool,
    /// Give it up for good.
    #[arg(long, conflicts_with_all = ["wait", "rate", "force"])]
    stop: bool,
    /// Limit of the scrub (and of a rebuild): how much of each data device is looked at. It stays until
    /// `rate` or a restart changes it.
    #[arg(long, value_parser = parse_rate, value_name = "RATE")]
    rate: Option<u64>,
    /// Assemble an array that nobody serves even if data may be silently wrong (in place without a journal,
    /// degraded and not stopped in order), or if newer durable state is lost: see `serve --force`.
    #[arg(long)]
    force: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `rate`.
#[derive(Args, Debug)]
pub struct RateArguments {
    /// A member of the array, or its name or UUID.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// From now on: how much of each data device rebuild and scrub look at per second, or `off` for no limit.
    #[arg(long, value_parser = parse_rate_or_off, value_name = "RATE", required = true)]
    rate: MaybeRate,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// clap takes an `Option` for an option that may be absent; this one is present and may be `off`.
type MaybeRate = std::option::Option<u64>;

/// Options of `wait`.
#[derive(Args, Debug)]
pub struct WaitArguments {
    /// A member of the array, or its name or UUID.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Print the status afterwards as JSON, and not what has ended.
    #[arg(long)]
    json: bool,
}

/// Options of `commit`.
#[derive(Args, Debug)]
pub struct CommitArguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Do not stay until the commit of a served array has ended: `status` says how far it is, `wait` stays.
    #[arg(long)]
    no_wait: bool,
    /// Let all parity commits of a served array wait, also those of its own, but for what makes room for
    /// writes or is part of a rebuild; until `--resume`, `--stop` or a restart.
    #[arg(long, conflicts_with_all = ["resume", "stop", "no_wait"])]
    pause: bool,
    /// Let them go on.
    #[arg(long, conflicts_with_all = ["stop", "no_wait"])]
    resume: bool,
    /// Give up the commit that is under way or paused: the rest is committed when there is another reason to.
    #[arg(long, conflicts_with = "no_wait")]
    stop: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `clear`.
#[derive(Args, Debug)]
pub struct ClearArguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Only this member: data0.., log0.., or its path.
    #[arg(long, value_name = "DEVICE", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `stop`.
#[derive(Args, Debug)]
pub struct StopArguments {
    /// A member of the array, or its name or UUID.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Even while clients are connected: a file system that is mounted there loses its device. If there is no
    /// server: remove the disk that one has left (`serve --ublk`).
    #[arg(long)]
    force: bool,
    /// Print the status before the stop as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `checkpoint`.
#[derive(Args, Debug)]
pub struct CheckpointArguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
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

/// Runs `scrub`. Exit code 1 if something is lost or did not match, or a member could not be checked.
pub fn scrub(arguments: &ScrubArguments) -> Result<Exit, Failure> {
    let texts =
        ["the scrub waits; `scrub --resume` lets it go on", "the scrub goes on", "the scrub is given up"];
    if let Some((steering, what)) = steered([arguments.pause, arguments.resume, arguments.stop], texts) {
        return steer(&arguments.paths, &Request::Steer { scrub: steering }, arguments.json, what);
    }
    let force = Force::of_flag(arguments.force);
    let mut session =
        Session::open(&members(&arguments.paths)?, force, Incomplete::Refuse, arguments.rate, |_| Ok(()))?;
    let patience = if arguments.wait { Patience::Wait } else { Patience::Start };
    let mut progress = Progress::start();
    let outcome = session.scrub(arguments.rate, patience, &mut |step| progress.show(step));
    progress.finish();
    // An error in that is the outcome's: `finish` ends the session in any case.
    let outcome = outcome.and_then(|found| {
        let Some(found) = found else { return Ok(None) };
        Ok(Some((found, not_checked(&session.status()?))))
    });
    let (exit, text) = match &outcome {
        Ok(Some((found, left_out))) => {
            let is_well = found.errors_left() == 0 && left_out.is_empty();
            (if is_well { 0 } else { EXIT_FAILED }, describe_scrub(found, left_out))
        }
        Ok(None) | Err(_) => (0, "the scrub has begun, see `status`".to_owned()),
    };
    finish(session, outcome.map(|_| ()), arguments.json, &text)?;
    Ok(exit)
}

/// Members on which a scrub could not look at everything.
fn not_checked(status: &Status) -> Vec<String> {
    let is_partial = |state: DeviceState| state.is_out() || state == DeviceState::Rebuilding;
    let devices = status.devices.iter().filter(|device| is_partial(device.state));
    devices.map(|device| device.name.clone()).collect()
}

fn describe_scrub(found: &LastWork, left_out: &[String]) -> String {
    let chunks = match found.chunks_left {
        0 => String::new(),
        left => format!(", {left} chunks bad still for want of room: make room and scrub again"),
    };
    let metadata = match found.metadata_left {
        0 => String::new(),
        left => format!(", {left} errors left in the metadata"),
    };
    let left_out = match left_out {
        [] => String::new(),
        names => format!("; NOT CHECKED, as not in service: {}", names.join(", ")),
    };
    format!(
        "scrub: {} chunks healed, {} code words lost, {} stripes with parity that did not match, {} metadata blocks written anew{chunks}{metadata}{left_out}",
        found.chunks_repaired, found.lost, found.mismatches, found.metadata_repaired
    )
}

/// Runs `clear`.
pub fn clear(arguments: &ClearArguments) -> Result<Exit, Failure> {
    let mut session =
        Session::open(&members(&arguments.paths)?, Force::Never, Incomplete::Refuse, None, |_| Ok(()))?;
    let outcome = session.clear(arguments.device.as_deref());
    let whose = arguments.device.as_deref().unwrap_or("every member");
    finish(session, outcome, arguments.json, &format!("errors of {whose} are counted anew"))
}

/// What is to become of work under way, by the flags `--pause`, `--resume` and `--stop`, and what is said of
/// it then; nothing without any of them.
fn steered(flags: [bool; 3], texts: [&'static str; 3]) -> Option<(Steering, &'static str)> {
    let steerings = [Steering::Pause, Steering::Resume, Steering::Stop];
    steerings.into_iter().zip(texts).zip(flags).find_map(|(found, is_given)| is_given.then_some(found))
}

/// Has a server change how its work goes: wait, go on, end, or at what rate.
fn steer(paths: &[PathBuf], request: &Request, json: bool, what: &str) -> Result<Exit, Failure> {
    let mut client = server_that_runs(paths)?;
    client.order(request)?;
    if json {
        return print_status(&mut client);
    }
    output::line(what);
    Ok(0)
}

fn print_status(client: &mut Client) -> Result<Exit, Failure> {
    output::line(serde_json::to_string_pretty(&client.status()?)?);
    Ok(0)
}

/// Runs `rate`.
pub fn rate(arguments: &RateArguments) -> Result<Exit, Failure> {
    let what = match arguments.rate {
        Some(rate) => format!("rebuild and scrub: at most {} of each data device", show_rate(rate)),
        None => "rebuild and scrub: as fast as possible".to_owned(),
    };
    let request = Request::Rate { bytes_per_s: arguments.rate };
    steer(&arguments.paths, &request, arguments.json, &what)
}

/// Runs `wait`. Exit code 1 if something is lost or did not match, or if the work was given up.
pub fn wait(arguments: &WaitArguments) -> Result<Exit, Failure> {
    let mut client = server_that_runs(&arguments.paths)?;
    let waited = wait_for_all(&mut client, &|line| {
        if !arguments.json {
            output::line(line);
        }
    })?;
    if arguments.json {
        return print_status(&mut client);
    }
    if waited == 0 {
        output::line("no rebuild, scrub, replacement or commit is under way");
    }
    Ok(0)
}

/// Waits until nothing is under way, and says what has ended; how much that was.
fn wait_for_all(client: &mut Client, say: &dyn Fn(String)) -> Result<usize, Failure> {
    let mut waited = 0;
    loop {
        let mut progress = Progress::start();
        let successor = wait_for_successor(client, &mut |step| progress.show(step));
        progress.finish();
        if let Some(Successor { name, path, has_succeeded }) = successor? {
            let path = path.display();
            if !has_succeeded && client.status()?.engine.work.is_none() {
                let why = "the server's log says why, and `status` how the array is";
                return Err(Failure::new(format!("{path} did not take the place of {name}; {why}")));
            }
            let what = if has_succeeded { "has taken" } else { "takes" };
            say(format!("{path} {what} the place of {name}"));
            waited += 1;
        }
        let EngineStatus { work, commit, .. } = client.status()?.engine;
        if commit.is_some_and(|commit| commit.asked) {
            let mut progress = Progress::start();
            let outcome = wait_for_commits(client, &mut |step| progress.show(step));
            progress.finish();
            outcome?;
            say("the parity commit has ended".to_owned());
            waited += 1;
            continue;
        }
        let Some(work) = work else { return Ok(waited) };
        let mut progress = Progress::start();
        let found = wait_for_work(client, work.kind, &mut |step| progress.show(step));
        progress.finish();
        let found = found?;
        if found.lost + found.mismatches > 0 {
            return Err(Failure::new(format!(
                "{}: {} code words lost, {} stripes with parity that did not match; see `status`",
                work_name(work.kind),
                found.lost,
                found.mismatches
            )));
        }
        say(format!("{} has ended", work_name(work.kind)));
        waited += 1;
    }
}

/// Runs `commit`.
pub fn commit(arguments: &CommitArguments) -> Result<Exit, Failure> {
    let texts = [
        "parity commits wait; `commit --resume` lets them go on",
        "parity commits go on",
        "the parity commit is given up",
    ];
    if let Some((steering, what)) = steered([arguments.pause, arguments.resume, arguments.stop], texts) {
        return steer(&arguments.paths, &Request::SteerCommits { commits: steering }, arguments.json, what);
    }
    let mut session =
        Session::open(&members(&arguments.paths)?, Force::Never, Incomplete::Refuse, None, |_| Ok(()))?;
    let patience = if arguments.no_wait { Patience::Start } else { Patience::Wait };
    let text = match (&session, patience) {
        (Session::Live(_), Patience::Start) => "the commit has begun, see `status`",
        (Session::Live(_) | Session::Offline(_), _) => "the parity of every stripe is up to date",
    };
    let is_paused = session.status()?.engine.commit.is_some_and(|commit| commit.paused);
    if is_paused {
        output::warn("elastripe: parity commits are PAUSED: this one waits for `commit --resume`");
    }
    let outcome = session.commit(patience);
    finish(session, outcome, arguments.json, text)
}

/// Runs `checkpoint`.
pub fn checkpoint(arguments: &CheckpointArguments) -> Result<Exit, Failure> {
    let kind = if arguments.full { CheckpointKind::Full } else { CheckpointKind::Incremental };
    let mut session =
        Session::open(&members(&arguments.paths)?, Force::Never, Incomplete::Refuse, None, |_| Ok(()))?;
    let outcome = session.checkpoint(kind);
    let number =
        session.status().ok().and_then(|status| status.engine.checkpoints).map_or(0, |place| place.number);
    finish(session, outcome, arguments.json, &format!("checkpoint {number} is written"))
}

/// Runs `stop`.
pub fn stop(arguments: &StopArguments) -> Result<Exit, Failure> {
    let called = members(&arguments.paths)?;
    let mut client = match server_of(&called) {
        Ok(Reach::Server(client)) => client,
        Ok(Reach::Copy(why)) => return Err(Failure::new(why)),
        Ok(Reach::Nobody) => return remove_left_disk(&called, arguments),
        Err(Error::Recovering { path, how }) => return give_up_start(&called, arguments, &path, how),
        Err(_) if called.is_lost() => return remove_left_disk(&called, arguments),
        Err(error) => return Err(error.into()),
    };
    let status = match client.status() {
        Err(Error::Recovering { path, how }) => return give_up_start(&called, arguments, &path, how),
        status => status?,
    };
    client.order(&Request::Stop { force: arguments.force })?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&status)?);
    } else {
        output::line("stopped in order");
    }
    Ok(0)
}

/// Ends a start that recovers an array, unless what was named is a copy of it.
fn give_up_start(
    called: &Called,
    arguments: &StopArguments,
    socket: &Path,
    how: Recovering,
) -> Result<Exit, Failure> {
    let is_own = |record: &Record| {
        let paths = || record.paths.iter().any(|own| called.paths.iter().any(|path| same_file(own, path)));
        record.pid == how.pid && paths()
    };
    if !records().iter().any(is_own) {
        return Err(Error::Recovering { path: socket.to_owned(), how }.into());
    }
    let mut client =
        Client::of_server(socket)?.ok_or_else(|| Error::Recovering { path: socket.to_owned(), how })?;
    let given_up = match client.order(&Request::Stop { force: arguments.force }) {
        Err(Error::Recovering { how, .. }) => Some(how),
        // It was over just then, and the array was stopped in order.
        ended => ended.map(|()| None)?,
    };
    match given_up {
        _ if arguments.json => {
            output::line(serde_json::to_string_pretty(&json!({ "recovery_given_up": given_up }))?);
        }
        Some(Recovering { seconds, .. }) => output::line(format_args!(
            "the recovery was given up after {seconds} s, as by a power cut; the next start recovers the array"
        )),
        None => output::line("stopped in order"),
    }
    Ok(0)
}

/// The array that was called by its name, or those that the members are of.
fn arrays_of(called: &Called) -> Vec<ArrayUuid> {
    let candidates = called.paths.iter().filter_map(|path| look_at(path).ok());
    let found = candidates.filter_map(|found| found.superblock().map(|found| found.array));
    called.array.map_or_else(|| found.collect(), |array| vec![array])
}

/// What a server that is gone may have left is a disk of the kernel, which waits for the next one.
fn remove_left_disk(called: &Called, arguments: &StopArguments) -> Result<Exit, Failure> {
    let array = arrays_of(called).first().copied();
    if arguments.force
        && let Some(disk) = array.map(ublk::remove_left).transpose()?.flatten()
    {
        output::line(format_args!("{disk}, left by a server that is gone, is removed; its users get errors"));
        return Ok(0);
    }
    let failure = nothing_to_stop(called);
    Err(match array.and_then(ublk::left_by) {
        Some(disk) => {
            Failure::new(format!("{failure}; {disk} waits for the next server, and --force removes it"))
        }
        None => failure,
    })
}

/// Says that there is no server, and clears away what one that was killed left behind.
fn nothing_to_stop(called: &Called) -> Failure {
    let first = called.paths.first().map_or_else(String::new, |path| path.display().to_string());
    if called.is_lost()
        && let Some(record) = called.array.and_then(forget_lost)
    {
        return Failure::new(format!(
            "{first}: its server ({}) ended without being stopped, and its members are not there any more; there is \
             nothing to stop, and what the server left is removed now",
            record.describe()
        ));
    }
    match arrays_of(called).into_iter().find_map(forget_dead) {
        Some(record) => Failure::new(format!(
            "{first}: its server ({}) ended without being stopped; there is nothing to stop, and the control socket it \
             left is removed now; the next start recovers",
            record.describe()
        )),
        None => Failure::new(format!("{first}: its array is not being served; there is nothing to stop")),
    }
}
