//! What is on the devices that an array is to be made of, and would be overwritten.

use device::{identity, share_bytes};
use format::{METADATA_START_BYTES, MemberEntry, Role, Superblock};
use lab::failure::Failure;
use node::blank::unknown_content;
use node::describe::role_of;
use node::error::Error;
use node::made::place_of;
use node::open::{Candidate, array_name, in_service, look_at};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What a device holds.
pub(super) struct Taken {
    pub path: PathBuf,
    pub what: String,
    /// A device that holds nothing of a known kind may be meant to be blank.
    is_known: bool,
    superblock: Option<Superblock>,
}

impl Taken {
    /// What is known of a device, if anything is. Of files what is in them counts, whatever it is: block
    /// devices are seldom blank.
    fn find(path: &Path) -> Result<Option<Self>, Failure> {
        let candidate = look_at(path)?;
        let superblock = candidate.superblock().cloned();
        let known = what_is_known(&candidate);
        // One that is too small for a superblock is refused for its size.
        let is_large = candidate.size_bytes >= METADATA_START_BYTES;
        let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        let (what, is_known) = match known {
            Some(what) => (Some(what), true),
            None if is_large => {
                let kind = if is_file { "is a file that" } else { "is a device that" };
                let content = match unknown_content(path) {
                    // What is written there may be read again.
                    Err(error) if !is_file => Some(format!("cannot be read in places: {error}")),
                    content => content.map_err(Error::Device)?,
                };
                (content.map(|what| format!("{kind} {what}")), is_file)
            }
            None => (None, false),
        };
        Ok(what.map(|what| Self { path: path.to_owned(), what, is_known, superblock }))
    }
}

/// Whether the newest superblock of an array has this device in service: another may have its place.
fn counts_in(newest: &Superblock, own: &Superblock) -> bool {
    let entry = newest.members.get(own.dev.index());
    let is_its = |entry: &&MemberEntry| entry.serial == own.serial && in_service(entry.state);
    own.array == newest.array && own.role != Role::Spare && entry.is_some_and(|entry| is_its(&entry))
}

fn what_is_known(candidate: &Candidate) -> Option<String> {
    if let Some(superblock) = candidate.superblock() {
        return Some(format!("is a member of array {}: {}", array_name(superblock), role_of(superblock)));
    }
    if candidate.other_version().is_some() {
        return Some("is a member of an array of another format version".to_owned());
    }
    if candidate.looks_like_member {
        return Some("has a damaged superblock of an array".to_owned());
    }
    candidate.signature.map(|signature| format!("holds {signature}"))
}

/// What is on these devices; missing ones are fine. Refuses two names of one device and, unless `force`, what
/// must not be overwritten.
pub(super) fn look(paths: &[&PathBuf], force: bool) -> Result<Vec<Taken>, Failure> {
    refuse_twice(paths)?;
    let mut taken = Vec::new();
    for path in paths.iter().filter(|path| path.exists()) {
        taken.extend(Taken::find(path)?);
    }
    let known: Vec<&Taken> = taken.iter().filter(|one| one.is_known).collect();
    if !known.is_empty() && !force {
        let all: Vec<String> =
            known.iter().map(|one| format!("{}: {}", one.path.display(), one.what)).collect();
        let advice = if all.len() == 1 { "use another device" } else { "use other devices" };
        return Err(Failure::new(format!("{}; {advice}, or --force to overwrite it", all.join("; "))));
    }
    refuse_to_tear_apart(&taken)?;
    Ok(taken)
}

fn refuse_twice(paths: &[&PathBuf]) -> Result<(), Failure> {
    let is_same = |one: &Path, other: &Path| {
        one == other || share_bytes(one, other).unwrap_or(false) || place_of(one) == place_of(other)
    };
    for (index, path) in paths.iter().enumerate() {
        if let Some(first) = paths[..index].iter().find(|first| is_same(first, path)) {
            let are = if identity(first).ok() == identity(path).ok() { "are" } else { "lie on" };
            let (first, second) = (first.display(), path.display());
            let names = if first.to_string() == second.to_string() {
                format!("{first}: given twice")
            } else {
                format!("{first} and {second} {are} the same device")
            };
            return Err(Failure::new(format!("{names}; every member needs a device of its own")));
        }
    }
    Ok(())
}

/// An array is overwritten as a whole: whoever names some of its members alone has mistaken a device, or can
/// wipe it first.
fn refuse_to_tear_apart(taken: &[Taken]) -> Result<(), Failure> {
    let superblocks = || taken.iter().filter_map(|one| one.superblock.as_ref());
    for (one, own) in taken.iter().filter_map(|one| Some((one, one.superblock.as_ref()?))) {
        let of_array = superblocks().filter(|other| other.array == own.array);
        let Some(newest) = of_array.clone().max_by_key(|other| other.update()) else { continue };
        if !counts_in(newest, own) {
            continue;
        }
        let wanted = newest.members.iter().take(member_count(newest));
        let wanted = wanted.filter(|entry| in_service(entry.state)).count();
        let named: HashSet<_> =
            of_array.filter(|other| counts_in(newest, other)).map(|other| other.dev).collect();
        let others = wanted.saturating_sub(named.len());
        if others > 0 {
            let (path, array, role) = (one.path.display(), array_name(own), role_of(own));
            let are = if others == 1 { "another member is" } else { "other members are" };
            let others = if others == 1 { String::new() } else { format!("{others} ") };
            return Err(Failure::new(format!(
                "{path}: is {role} of array {array}, of which {others}{are} not named here; is it the right device? If that array may \
                 lose it: `elastripe wipe {path} --yes`"
            )));
        }
    }
    Ok(())
}

fn member_count(superblock: &Superblock) -> usize {
    superblock.config.geometry.device_count() + usize::from(superblock.config.log_count)
}
