//! `fail`, `replace`, `online`, `add`: work on the members of an array, served or not.

use super::Exit;
use super::reach::server_that_runs;
use crate::progress::Progress;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use lab::failure::Failure;
use node::called::members;
use node::checks::{Caution, Consent, Manner};
use node::error::Error;
use node::made::MadeFile;
use node::open::{Force, Incomplete, look_at, member_name};
use node::output;
use node::session::{Patience, Replacement, Session};
use node::units::{parse_rate, parse_size};
use std::path::{Path, PathBuf};

/// Options of `fail`.
#[derive(Args, Debug)]
pub struct FailArguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// The member to take out of service: data0.., log0.., or its path.
    #[arg(long, value_name = "DEVICE", value_parser = NonEmptyStringValueParser::new())]
    device: String,
    /// Even if one more failure loses data then.
    #[arg(long)]
    yes: bool,
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
    /// Members of the array, or its name or UUID; one member will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// The member whose place is taken: data0.., log0.., or its path. If it works, it stays in service until
    /// the device is whole.
    #[arg(long, value_name = "DEVICE", value_parser = NonEmptyStringValueParser::new())]
    device: String,
    /// The device that takes the place.
    #[arg(long, value_name = "PATH", required_unless_present = "stop")]
    with: Option<PathBuf>,
    /// Make the new device as a sparse file of this size if it does not exist.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    file_size: Option<u64>,
    /// Give that file all its room at once, so that it cannot lack any later; it is not sparse then.
    #[arg(long, requires = "file_size")]
    allocate: bool,
    /// Take a member that works out of service first, and rebuild the device from the others.
    #[arg(long)]
    fail_first: bool,
    /// Give up what is being replaced: the member stays, what was to take its place is free.
    #[arg(long, conflicts_with_all = ["with", "file_size", "fail_first", "wait", "rate", "force"])]
    stop: bool,
    /// With --fail-first: even if one more failure loses data until the device is filled.
    #[arg(long)]
    yes: bool,
    /// Stay until the device is whole.
    #[arg(long)]
    wait: bool,
    /// Limit of the rebuild (and of a scrub): how much of each data device is looked at. It stays until
    /// `rate` or a restart changes it.
    #[arg(long, value_parser = parse_rate, value_name = "RATE")]
    rate: Option<u64>,
    /// Overwrite a device that belongs to another array or holds foreign content.
    #[arg(long)]
    force: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `online`.
#[derive(Args, Debug)]
pub struct OnlineArguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
    #[arg(required = true, value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// The member that was away: data0.., log0.., or the path of its device.
    #[arg(long, value_name = "DEVICE", value_parser = NonEmptyStringValueParser::new())]
    device: String,
    /// Where its device is now, if it is not where it was.
    #[arg(long, value_name = "PATH")]
    with: Option<PathBuf>,
    /// Fill it anew, whatever it missed.
    #[arg(long)]
    full: bool,
    /// Stay until the rebuild of a served array has ended.
    #[arg(long)]
    wait: bool,
    /// Print the status afterwards as JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `add`.
#[derive(Args, Debug)]
pub struct AddArguments {
    /// Members of the array, or its name or UUID; one member will do if it is being served.
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
    let consent = Consent::of_flag(arguments.yes);
    let mut session = Session::open(
        &members(&arguments.paths)?,
        Force::Never,
        Incomplete::RefuseBut(device),
        None,
        |array| Ok(array.check_fail(array.find(device)?, caution, consent)?),
    )?;
    let outcome = session.fail(device, caution, consent);
    let text = format!("{} is out of service", arguments.device);
    finish(session, outcome, arguments.json, &text)
}

/// Runs `replace`.
pub fn replace(arguments: &ReplaceArguments) -> Result<Exit, Failure> {
    let Some(with) = &arguments.with else { return call_off(arguments) };
    let mut made = make_missing(with, arguments.file_size, arguments.allocate)?;
    look_at(with)?;
    let path = absolute(with)?;
    let caution = Caution::of_flag(arguments.force);
    let (device, consent) = (&arguments.device, Consent::of_flag(arguments.yes));
    let manner = Manner::of_flag(arguments.fail_first);
    let mut session = Session::open(
        &members(&arguments.paths)?,
        Force::Never,
        Incomplete::RefuseBut(device),
        arguments.rate,
        |array| array.check_replace(array.find(device)?, &path, caution, (consent, manner)),
    )?;
    let live = matches!(session, Session::Live(_));
    let patience = if arguments.wait { Patience::Wait } else { Patience::Start };
    let rate = arguments.rate;
    let mut outcome = session.replace(&Replacement { device, path: &path, caution, consent, rate, manner });
    keep_what_is_taken(&mut made, live, &outcome);
    let stays = outcome.is_ok() && session.is_successor(&path)?;
    if outcome.is_ok() {
        let mut progress = Progress::start();
        outcome = session.await_rebuild((device, Some(&path)), patience, &mut |step| progress.show(step));
        progress.finish();
    }
    let (device, with) = (&arguments.device, with.display());
    let text = if live && !arguments.wait && stays {
        format!("{with} becomes what {device} is, which stays in service until then; see `status`")
    } else if live && !arguments.wait {
        format!("{with} takes the place of {device}; the rebuild has begun, see `status`")
    } else if stays {
        format!("{with} has taken the place of {device}, which was in service until then")
    } else {
        format!("{with} has taken the place of {device}; rebuilt")
    };
    finish(session, outcome, arguments.json, &text)
}

/// Runs `replace --stop`.
fn call_off(arguments: &ReplaceArguments) -> Result<Exit, Failure> {
    let mut client = server_that_runs(&arguments.paths)?;
    Session::call_off(&mut client, &arguments.device)?;
    if arguments.json {
        output::line(serde_json::to_string_pretty(&client.status()?)?);
    } else {
        output::line(format_args!("{} stays; what was to take its place is free", arguments.device));
    }
    Ok(0)
}

/// Runs `online`.
pub fn online(arguments: &OnlineArguments) -> Result<Exit, Failure> {
    let Whereabouts { device, path } = Whereabouts::of(arguments)?;
    let mut session = Session::open(
        &members(&arguments.paths)?,
        Force::Never,
        Incomplete::RefuseBut(&device),
        None,
        |array| {
            let dev = array.find(&device)?;
            array.check_away(dev)?;
            let path = path.as_deref().ok_or_else(|| Error::from(array.no_path(&device)))?;
            array.check_online(dev, path).map(|_| ())
        },
    )?;
    let live = matches!(session, Session::Live(_));
    let patience = if arguments.wait { Patience::Wait } else { Patience::Start };
    let mut outcome = session.online(&device, path.as_deref(), arguments.full);
    if outcome.is_ok() {
        let mut progress = Progress::start();
        outcome = session.await_rebuild((&device, None), patience, &mut |step| progress.show(step));
        progress.finish();
    }
    let text = if live && !arguments.wait {
        format!("{device} is back; the rebuild has begun, see `status`")
    } else {
        format!("{device} is back; rebuilt")
    };
    finish(session, outcome, arguments.json, &text)
}

/// Which member comes back, and from where, if that is known.
struct Whereabouts {
    device: String,
    path: Option<PathBuf>,
}

impl Whereabouts {
    /// The device itself says which member it is; and if the member is named, its device may be among the
    /// members.
    fn of(arguments: &OnlineArguments) -> Result<Self, Failure> {
        let name_on = |path: &Path| -> Option<String> {
            let candidate = look_at(path).ok()?;
            let superblock = candidate.superblock()?;
            Some(member_name(superblock.config.geometry.device_count(), superblock.dev))
        };
        let device = arguments.device.clone();
        let given = Path::new(&device);
        let is_name = ["data", "log"]
            .into_iter()
            .any(|prefix| device.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u16>().is_ok()));
        if !is_name && given.exists() {
            look_at(given)?.require_superblock()?;
            let named = name_on(given).unwrap_or_else(|| device.clone());
            let path = absolute(arguments.with.as_deref().unwrap_or(given))?;
            return Ok(Self { device: named, path: Some(path) });
        }
        let among = arguments.paths.iter().find(|path| name_on(path).as_ref() == Some(&device));
        let path = arguments.with.as_ref().or(among).map(|path| absolute(path)).transpose()?;
        Ok(Self { device, path })
    }
}

/// Runs `add`.
pub fn add(arguments: &AddArguments) -> Result<Exit, Failure> {
    let mut made = make_missing(&arguments.spare, arguments.file_size, arguments.allocate)?;
    let candidate = look_at(&arguments.spare)?;
    let path = absolute(&arguments.spare)?;
    let caution = Caution::of_flag(arguments.force);
    let mut session =
        Session::open(&members(&arguments.paths)?, Force::Never, Incomplete::Refuse, None, |array| {
            array.check_spare(&candidate, caution)?;
            Ok(())
        })?;
    let live = matches!(session, Session::Live(_));
    let outcome = session.add_spare(&path, caution);
    keep_what_is_taken(&mut made, live, &outcome);
    let lacks = session.status().ok().and_then(|status| {
        let its = status.devices.into_iter().find(|device| device.path.as_ref() == Some(&path));
        its.and_then(|device| device.lacks)
    });
    let but = lacks.map(|why| format!("; it CANNOT take every place: {why}")).unwrap_or_default();
    let text =
        format!("{} is a spare now; name it among the members of `serve`{but}", arguments.spare.display());
    finish(session, outcome, arguments.json, &text)
}

/// Reports, and closes the session whatever the outcome: an array that this command runs is stopped in order.
pub fn finish(
    mut session: Session,
    outcome: Result<(), Error>,
    json: bool,
    text: &str,
) -> Result<Exit, Failure> {
    let status = if json && outcome.is_ok() { Some(session.status()?) } else { None };
    match (outcome, session.close()) {
        (Ok(()), closed) => closed?,
        (Err(error), Ok(())) => return Err(error.into()),
        (Err(error), Err(stopping)) => {
            let failure = Failure::from(error);
            let exit = failure.exit();
            return Err(Failure::new(format!("{failure}; {stopping}")).with_exit(exit));
        }
    }
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

/// Makes a file where there is nothing, if it was given a size.
fn make_missing(path: &Path, size_bytes: Option<u64>, allocate: bool) -> Result<Option<MadeFile>, Failure> {
    match size_bytes {
        Some(size_bytes) if !path.exists() => Ok(Some(MadeFile::make(path, size_bytes, allocate)?)),
        Some(_) => Ok(None),
        None if path.exists() => Ok(None),
        None => Err(Failure::new(format!(
            "{}: does not exist; name an existing device, or give --file-size to make a file",
            path.display()
        ))),
    }
}

/// What a server has taken is its own from now on, and so is what it may have taken: the connection broke
/// before it answered. If this command runs the array, the file itself says whether it has become part of
/// it.
fn keep_what_is_taken(made: &mut Option<MadeFile>, live: bool, outcome: &Result<(), Error>) {
    let taken = outcome.as_ref().err().is_none_or(Error::may_have_been_done);
    if let Some(made) = made.as_mut().filter(|_| live && taken) {
        made.keep();
    }
}
