//! `scan`: which arrays there are.

use super::Exit;
use clap::Args;
use lab::failure::{EXIT_FAILED, Failure};
use node::describe::{role_of, shape};
use node::error::Truncation;
use node::open::{Candidate, arrange_any_candidates, is_locked, member_name};
use node::output;
use node::scan::{Sighted, look_around, may_be_member};
use node::search::unreadable;
use node::settings::{Kept, keep};
use node::status::{Source, of_superblocks};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Options of `scan`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Devices, files, and directories to look into; without any, every block device.
    #[arg(value_name = "PATH")]
    places: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Keep what was found in /etc/elastripe/NAME.toml, a file for each array that has none yet: then
    /// `elastripe serve NAME` finds it, and options can be kept there.
    #[arg(long)]
    write: bool,
}

/// Runs `scan`. Exit code 1 if there is no array, or what may be a member could not be looked at, or an array
/// that was to be kept was not.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(place) = arguments.places.iter().find(|place| place.symlink_metadata().is_err()) {
        return Err(Failure::new(format!(
            "{}: nothing is there; expected a device, file or directory",
            place.display()
        )));
    }
    let sight = look_around(&arguments.places)?;
    for other in sight.other_versions.iter().chain(&sight.strangers).chain(&sight.unseen) {
        output::warn(format_args!("elastripe: {other}"));
    }
    if let Some(unreadable) = unreadable(sight.unreadable) {
        output::warn(format_args!("elastripe: {unreadable}"));
    }
    let kept = if arguments.write { keep_all(&sight.arrays, &arguments.places) } else { Vec::new() };
    if arguments.json {
        let list: Vec<Value> = sight.arrays.iter().map(to_json).collect();
        output::line(format_args!("{:#}", Value::from(list)));
    } else if sight.arrays.is_empty() {
        output::line("no member of an array was found");
    } else {
        output::print(sight.arrays.iter().map(to_text).collect::<Vec<_>>().join("\n"));
    }
    let line = |kept: &Result<String, String>| match kept {
        Ok(line) | Err(line) => output::warn(format_args!("elastripe: {line}")),
    };
    kept.iter().for_each(line);
    let is_kept = kept.iter().all(Result::is_ok);
    let is_all = is_kept && sight.unseen.is_empty() && !sight.strangers.iter().any(may_be_member);
    Ok(if sight.arrays.is_empty() || !is_all { EXIT_FAILED } else { 0 })
}

/// Keeps a file of each array; what became of it, a line each, or why there is none.
fn keep_all(arrays: &[Sighted], places: &[PathBuf]) -> Vec<Result<String, String>> {
    let directories: Vec<PathBuf> =
        places.iter().filter(|place| place.is_dir()).map(|place| whole(place)).collect();
    let place =
        |found: &Sighted| if places.is_empty() { Ok(Vec::new()) } else { places_of(found, &directories) };
    let one =
        |found: &Sighted| keep(found.array, &found.name, &place(found)?).map_err(|error| error.to_string());
    let line = |kept| match kept {
        Kept::Written(path) => format!("{}: written", path.display()),
        Kept::There(path) => format!("{}: there already, left as it is", path.display()),
        Kept::Moved { from, to } => {
            format!("{}: now {}, as the array is called", from.display(), to.display())
        }
    };
    arrays.iter().map(|found| one(found).map(line)).collect()
}

fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Where the members of an array are to be looked for: in these directories, and at paths of their own.
/// Refused where some are at neither: a file is never written again, and by that one the array would not be
/// found.
fn places_of(found: &Sighted, directories: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let paths: Vec<PathBuf> = found.candidates.iter().map(|candidate| whole(&candidate.path)).collect();
    let within = |path: &PathBuf| directories.iter().any(|directory| path.parent() == Some(directory));
    let holds = |directory: &&PathBuf| paths.iter().any(|path| path.parent() == Some(directory));
    let mut places: Vec<PathBuf> = directories.iter().filter(holds).cloned().collect();
    let alone: Vec<PathBuf> = paths.iter().filter(|path| !within(path)).cloned().collect();
    let unseen = unseen_members(found);
    if !alone.is_empty() && !unseen.is_empty() {
        return Err(format!(
            "{}: not kept: {} not found at the paths named; name all of its members, or their directories",
            shown_name(found),
            unseen.join(", ")
        ));
    }
    places.extend(alone);
    Ok(places)
}

/// Members in service that are not among the devices found.
fn unseen_members(found: &Sighted) -> Vec<String> {
    let Ok(arranged) = arrange_any_candidates(&found.candidates) else { return Vec::new() };
    let n = arranged.superblock().config.geometry.device_count();
    arranged.unnamed().into_iter().map(|dev| member_name(n, dev)).collect()
}

fn shown_name(found: &Sighted) -> &str {
    if found.name.is_empty() { "(no name)" } else { &found.name }
}

/// How the array is, as far as its devices tell.
fn state(found: &Sighted) -> (String, &'static str) {
    let locked = found.candidates.iter().any(is_locked);
    let (source, used) = if locked { (Source::InUse, "in-use") } else { (Source::Stopped, "stopped") };
    // Those that lost their ends were looked at, and are no members that anything can be read from.
    let cut = found.candidates.iter().filter(|candidate| candidate.truncation().is_some()).count();
    match arrange_any_candidates(&found.candidates) {
        Ok(arranged) => (of_superblocks(&arranged, source, cut).state.shown().to_lowercase(), used),
        Err(failure) => (failure.to_string(), used),
    }
}

/// What a device is to its array, besides what it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is what its superblock says, as far as is known.
    Belongs,
    /// It is out of service, and has its place still.
    Away,
    /// Another device has its place.
    Replaced,
    /// It went on apart from the others.
    Diverged,
    /// It has lost its end: so much is left of it, and so much its layout needs.
    Truncated { found_bytes: u64, needed_bytes: u64 },
}

impl Standing {
    /// The same in words, of a device with this name and path.
    fn shown(self, name: &str, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Belongs => String::new(),
            Self::Away => {
                format!(" (out of service; it may come back: `online --device {name} --with {path}`)")
            }
            Self::Diverged => " (went on apart from the others, and may hold what they do not)".to_owned(),
            Self::Replaced => " (was, and is no member any more: another device has its place)".to_owned(),
            Self::Truncated { found_bytes, needed_bytes } => {
                format!(" (TRUNCATED: it holds {found_bytes} bytes, the array's layout needs {needed_bytes})")
            }
        }
    }
}

/// What each device is, in order.
fn standings(found: &Sighted) -> Vec<Standing> {
    let arranged = arrange_any_candidates(&found.candidates).ok();
    let of = |candidate: &Candidate| {
        if arranged.as_ref().is_some_and(|all| all.diverged.contains(&candidate.path)) {
            return Standing::Diverged;
        }
        if let Some(Truncation { found_bytes, needed_bytes, .. }) = candidate.truncation() {
            return Standing::Truncated { found_bytes, needed_bytes };
        }
        let Some(arranged) = arranged.as_ref().filter(|all| all.stale.contains(&candidate.path)) else {
            return Standing::Belongs;
        };
        let is_away = candidate.superblock().is_some_and(|superblock| arranged.is_away(superblock));
        if is_away { Standing::Away } else { Standing::Replaced }
    };
    found.candidates.iter().map(of).collect()
}

fn to_json(found: &Sighted) -> Value {
    let (state, source) = state(found);
    let superblock = found.candidates.iter().find_map(|candidate| candidate.superblock());
    let devices: Vec<Value> = found
        .candidates
        .iter()
        .zip(standings(found))
        .map(|(candidate, standing)| {
            json!({
                "name": candidate.superblock().map(role_of),
                "path": candidate.path.to_string_lossy(),
                "stale": matches!(standing, Standing::Away | Standing::Replaced | Standing::Diverged),
                "truncated": matches!(standing, Standing::Truncated { .. }),
                "away": standing == Standing::Away,
                "diverged": standing == Standing::Diverged,
            })
        })
        .collect();
    json!({
        "uuid": found.array.to_string(),
        "name": found.name,
        "state": state,
        "source": source,
        "scheme": superblock.map(|found| found.config.scheme.to_string()),
        "devices": devices,
    })
}

fn to_text(found: &Sighted) -> String {
    let name = shown_name(found);
    let (state, source) = state(found);
    let used = if source == "in-use" { "in use" } else { "not in use" };
    let mut text = format!("{name}  {}  {state}, {used}\n", found.array);
    if let Some(superblock) = found.candidates.iter().find_map(|candidate| candidate.superblock()) {
        text.push_str(&format!("  {}\n", shape(&superblock.config)));
    }
    for (candidate, standing) in found.candidates.iter().zip(standings(found)) {
        let role = candidate.superblock().map(role_of).unwrap_or_default();
        let standing = standing.shown(&role, &candidate.path);
        text.push_str(&format!("  {role:<8} {}{standing}\n", candidate.path.display()));
    }
    text
}
