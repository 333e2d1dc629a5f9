//! `status`: how an array is, in one screen or as JSON.
//!
//! Exit codes: 0 healthy, 1 degraded, 2 failed, or its server is gone, 3 data is lost, 4 could not look. Of
//! several arrays the worst counts.

use super::Exit;
use clap::Args;
use format::ArrayUuid;
use lab::failure::{EXIT_CANNOT_LOOK, Failure};
use node::called::{Called, members};
use node::checks::same_file;
use node::control::Client;
use node::drives::ask_now;
use node::error::Error;
use node::open::{Candidate, arrange_any_candidates, array_name, is_locked, look_at};
use node::output;
use node::registry::{Record, Trace, dead_server_of, traces};
use node::screen::{Rates, legend, losses, render, streams, wear};
use node::session::{Reach, reach};
use node::status::{Condition, DeviceStatus, Source, Status, of_superblocks};
use node::units::parse_duration;
use serde::Serialize;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// A request of an array that has waited for so long may wait for ever.
const LATE_MS: u64 = 300;

/// Options of `status`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Members of one array, any of them for an array that is being served; or its name or UUID. Without any,
    /// all arrays that are being served are shown.
    #[arg(value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// List what is lost, and how worn the drives are, too.
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Look again and again, every so often (2s), and tell what clients did meanwhile; until interrupted.
    #[arg(
        long,
        value_parser = parse_duration,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s"
    )]
    watch: Option<Duration>,
    /// Look so many times.
    #[arg(long, requires = "watch", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Runs `status`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let result = match arguments.watch {
        Some(every) => watch(arguments, every),
        None => look(arguments, &mut Rates::default()),
    };
    result.map_err(|failure| failure.with_exit(EXIT_CANNOT_LOOK))
}

/// Looks again and again. What cannot be looked at may come back.
fn watch(arguments: &Arguments, every: Duration) -> Result<Exit, Failure> {
    let (mut rates, mut looks) = (Rates::default(), 0);
    let clears = !arguments.json && std::io::stdout().is_terminal();
    loop {
        if clears {
            output::print("\x1b[H\x1b[2J");
        }
        let looked = look(arguments, &mut rates);
        looks += 1;
        if output::cut_short().is_some() || arguments.count == Some(looks) {
            return looked;
        }
        if let Err(failure) = looked {
            output::warn(format_args!("elastripe: {failure}"));
        }
        sleep(every);
    }
}

fn look(arguments: &Arguments, rates: &mut Rates) -> Result<Exit, Failure> {
    if arguments.paths.is_empty() {
        return look_at_served(arguments, rates);
    }
    let mut status = status_of(&members(&arguments.paths)?)?;
    if status.source != Source::Served && (arguments.verbose || arguments.json) {
        ask_now(&mut status);
    }
    if arguments.json {
        show_json(arguments, &status)?;
    } else {
        let mut text = render(&status);
        if arguments.verbose {
            legend::list(&mut text, &status);
            wear::list(&mut text, &status);
            streams::list(&mut text, &status);
            losses::list(&mut text, &status);
        }
        text.extend(rates.line(&status));
        output::print(text);
    }
    Ok(exit_of(status.state))
}

/// Whoever watches gets a line each time.
fn show_json(arguments: &Arguments, shown: &impl Serialize) -> Result<(), Failure> {
    let text = match arguments.watch {
        Some(_) => serde_json::to_string(shown)?,
        None => serde_json::to_string_pretty(shown)?,
    };
    output::line(text);
    Ok(())
}

fn look_at_served(arguments: &Arguments, rates: &mut Rates) -> Result<Exit, Failure> {
    let (mut all, mut exit) = (Vec::new(), 0);
    for (array, trace) in traces() {
        let failure = match trace {
            Trace::Live(mut client) => match client.status() {
                Ok(status) => {
                    all.push(Shown::Array(Box::new(status)));
                    continue;
                }
                Err(failure) => failure,
            },
            Trace::Dead(record) => {
                all.push(status_of_dead(array, record));
                continue;
            }
            Trace::Passing => continue,
            Trace::Unreachable(failure) => failure,
        };
        // The others are shown all the same.
        output::warn(format_args!("elastripe: {failure}"));
        exit = EXIT_CANNOT_LOOK;
    }
    if arguments.json {
        show_json(arguments, &all)?;
    } else if all.is_empty() && exit == 0 {
        output::line(
            "no array is being served; name the members of one to look at it, or see `elastripe scan`",
        );
    } else {
        output::print(all.iter().map(|shown| shown.render(rates)).collect::<Vec<_>>().join("\n"));
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

    fn render(&self, rates: &mut Rates) -> String {
        match self {
            Self::Array(status) => render(status) + &rates.line(status).unwrap_or_default(),
            Self::Traces { uuid, name, state, notes, .. } => {
                let name = if name.is_empty() { "(no name)" } else { name };
                let shown = state.shown();
                format!("     array: {name}  {uuid}\n     state: {shown}\n   meaning: {}\n", notes.join("; "))
            }
        }
    }
}

/// That a server is gone.
fn gone(record: &Record) -> String {
    let server =
        if record.pid == 0 { "its server".to_owned() } else { format!("its server, {},", record.describe()) };
    format!("{server} is gone without having stopped the array")
}

/// The status of an array whose server is gone.
fn marked_down(mut status: Status, record: Record) -> Status {
    status.notes.push(gone(&record));
    if !matches!(status.state, Condition::Failed | Condition::Incomplete) {
        status.state = Condition::Down;
    }
    status.source = Source::Dead;
    status.uris = record.addresses;
    status
}

/// What is wrong with members that lost their ends.
fn truncations(candidates: &[Candidate]) -> Vec<String> {
    let cut = candidates.iter().filter_map(Candidate::truncation);
    cut.map(|truncation| truncation.to_string()).collect()
}

/// Members of other arrays than the first one, which alone is shown.
fn of_others(candidates: &[Candidate]) -> Vec<String> {
    let superblocks = || candidates.iter().filter_map(|one| Some((one, one.superblock()?)));
    let first = superblocks().next().map(|(_, superblock)| superblock.array);
    let others = superblocks().filter(|(_, superblock)| Some(superblock.array) != first);
    others
        .map(|(one, found)| format!("{}: belongs to array {}", one.path.display(), array_name(found)))
        .collect()
}

/// What a server that is gone left: its record leads to the members.
fn status_of_dead(array: ArrayUuid, record: Record) -> Shown {
    let own = |candidate: &Candidate| candidate.superblock().is_some_and(|found| found.array == array);
    let candidates = record.paths.iter().filter_map(|path| look_at(path).ok()).filter(own);
    let candidates: Vec<Candidate> = candidates.collect();
    let gone = gone(&record);
    match arrange_any_candidates(&candidates) {
        Ok(found) => {
            let cut: Vec<String> = truncations(&candidates);
            let in_vain = record.paths.len() - candidates.len() + cut.len();
            let mut status = of_superblocks(&found, Source::Dead, in_vain);
            status.ignored = cut;
            Shown::Array(Box::new(marked_down(status, record)))
        }
        Err(_) => Shown::Traces {
            uuid: record.uuid,
            name: record.name,
            state: Condition::Down,
            source: Source::Dead,
            uris: record.addresses,
            notes: vec![gone, "name its members to look at them".to_owned()],
        },
    }
}

/// What is said of a path that is no member to look at: if the array that is served has that very path in
/// service, its advice would be wrong. Of a member that is out of service nothing else is to be said.
fn whose(status: &Status, path: &Path, failure: &Error) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // What is gone has no file that could be the same.
    let is_it = |of_member: &Path| of_member == whole || same_file(of_member, path);
    let served = status.devices.iter().filter(|_| status.source == Source::Served);
    let mut members =
        served.filter(|device| !device.state.is_out() && device.path.as_deref().is_some_and(is_it));
    match members.next() {
        None => failure.to_string(),
        Some(device) if !path.exists() => format!(
            "{}: nothing is there any more, and {} is served from what was: the next start will not find it",
            path.display(),
            device.name
        ),
        Some(device) => format!(
            "{}: is served as {}, and its superblock is not there any more, as if somebody wrote over it: scrub the array now",
            path.display(),
            device.name
        ),
    }
}

/// Whether what is at a path hangs, as far as the server of the array knows, or may: it was given up.
fn may_hang(status: &Status, path: &Path) -> bool {
    let waits = |device: &DeviceStatus| {
        let is_late = device.oldest_request_ms.is_some_and(|waited| waited >= LATE_MS);
        is_late || device.not_answering || device.state.is_out()
    };
    status.devices.iter().any(|device| waits(device) && device.path.as_deref() == Some(path))
}

/// The status of the array that was called by its name, or that paths belong to: from its server if it has
/// one, else from the superblocks. Paths that are no members (any more) are mentioned, unless none is one.
pub fn status_of(called: &Called) -> Result<Status, Failure> {
    // Who was called by his name tells first: a device that hangs would have this command hang, too.
    let mut server = called.server()?;
    let served = server.as_mut().map(Client::status).transpose()?;
    let (mut ignored, mut of_which) = (Vec::new(), Vec::new());
    let mut candidates: Vec<Candidate> = Vec::new();
    // Paths of members that are gone or damaged, as far as one can tell: those members were looked for.
    let mut in_vain = 0;
    for path in
        called.paths.iter().filter(|path| !served.as_ref().is_some_and(|status| may_hang(status, path)))
    {
        let looks_like_member = look_at(path).map_or(true, |found| found.looks_like_member);
        in_vain += usize::from(looks_like_member);
        match called.member_at(path) {
            Ok(candidate) => {
                in_vain -= usize::from(candidate.looks_like_member);
                candidates.push(candidate);
            }
            Err(failure) => {
                ignored.push(failure);
                of_which.push(path);
            }
        }
    }
    let reached = match (server, candidates.first()) {
        (Some(client), _) => Reach::Server(client),
        (None, Some(first)) => reach(first)?,
        (None, None) => return Err(called.unknown(ignored).into()),
    };
    let of_candidates = || {
        let found = arrange_any_candidates(&candidates)?;
        let locked = candidates.iter().any(is_locked);
        let source = if locked { Source::InUse } else { Source::Stopped };
        let ignored = truncations(&candidates);
        let mut status = of_superblocks(&found, source, in_vain + ignored.len());
        status.ignored = ignored;
        Ok::<_, Failure>(status)
    };
    let mut status = match reached {
        Reach::Server(mut client) => {
            let mut status = served.map_or_else(|| client.status(), Ok)?;
            status.ignored.extend(of_others(&candidates));
            status
        }
        Reach::Nobody => {
            let paths: Vec<&Path> = candidates.iter().map(|candidate| candidate.path.as_path()).collect();
            let mut superblocks = candidates.iter().filter_map(Candidate::superblock);
            let array = superblocks.next().map(|superblock| superblock.array);
            let status = of_candidates()?;
            let dead = array.filter(|_| status.source == Source::Stopped);
            // Its record leads to the others, too.
            match dead.and_then(|array| Some((array, dead_server_of(array, &paths)?))) {
                Some((array, record)) => match status_of_dead(array, record) {
                    Shown::Array(down) => *down,
                    Shown::Traces { .. } => status,
                },
                None => status,
            }
        }
        Reach::Copy(why) => {
            let mut status = of_candidates()?;
            status.notes.push(why);
            status
        }
    };
    let said: Vec<String> =
        ignored.iter().zip(of_which).map(|(failure, path)| whose(&status, path, failure)).collect();
    status.ignored.extend(said);
    Ok(status)
}
