//! Finding the members of arrays among devices and files.

use crate::error::{Error, NoMember};
use crate::open::{Candidate, look_at, name_of};
use crate::output;
use crate::search::Search;
use device::OpenError;
use format::{ArrayUuid, Superblock};
use rustix::io::Errno;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The devices of one array.
pub struct Sighted {
    /// The array.
    pub array: ArrayUuid,
    /// Its name, may be empty: that of the newest superblock.
    pub name: String,
    /// Members, former members and spares.
    pub candidates: Vec<Candidate>,
}

/// What was found.
pub struct Sight {
    /// Arrays, in the order of their first device.
    pub arrays: Vec<Sighted>,
    /// Paths named one by one that are no members, and why.
    pub strangers: Vec<Error>,
    /// Members of arrays of another version of the format, wherever they were found.
    pub other_versions: Vec<Error>,
    /// Block devices of this machine that this user may not read.
    pub unreadable: usize,
    /// What may be members and could not be looked at, wherever it was found.
    pub unseen: Vec<Error>,
}

/// Looks at `places`: devices and files, and what is in directories. Without any, at every block device.
pub fn look_around(places: &[PathBuf]) -> Result<Sight, Error> {
    let (arrays, strangers, other_versions) = (Vec::new(), Vec::new(), Vec::new());
    let mut sight = Sight { arrays, strangers, other_versions, unreadable: 0, unseen: Vec::new() };
    let mut seen = HashSet::new();
    let everywhere = if places.is_empty() { block_devices()? } else { Vec::new() };
    for path in &everywhere {
        match sight.add(path, &mut seen) {
            Some(_) if is_forbidden(path) => sight.unreadable += 1,
            Some(failure) => sight.note_unseen(failure),
            None => {}
        }
    }
    for place in places {
        if place.is_dir() {
            for path in files_in(place)? {
                if let Some(failure) = sight.add(&path, &mut seen) {
                    sight.note_unseen(failure);
                }
            }
        } else if let Some(stranger) = sight.add(place, &mut seen) {
            sight.strangers.push(stranger);
        }
    }
    Ok(sight)
}

impl Sight {
    /// Takes note of what is no member, if it may be one for all that is known.
    fn note_unseen(&mut self, failure: Error) {
        if may_be_member(&failure) {
            self.unseen.push(failure);
        }
    }

    /// Takes note of a path; if it is no member, why.
    fn add(&mut self, path: &Path, seen: &mut HashSet<device::Identity>) -> Option<Error> {
        let candidate = match look_at(path) {
            Ok(candidate) => candidate,
            Err(failure) => return Some(failure),
        };
        let (array, name, update) = match candidate.require_superblock() {
            Ok(superblock) => (superblock.array, superblock.name.clone(), superblock.update()),
            Err(failure) if candidate.other_version().is_some() => {
                self.other_versions.push(failure);
                return None;
            }
            Err(failure) => return Some(failure),
        };
        // One device may have several names.
        if device::identity(path).is_ok_and(|identity| !seen.insert(identity)) {
            return None;
        }
        match self.arrays.iter_mut().find(|other| other.array == array) {
            Some(other) => {
                let newest = other.candidates.iter().filter_map(Candidate::superblock);
                if newest.map(Superblock::update).max() < Some(update) {
                    other.name = name;
                }
                other.candidates.push(candidate);
            }
            None => self.arrays.push(Sighted { array, name, candidates: vec![candidate] }),
        }
        None
    }

    /// The array of this name or UUID; if none is wanted, the only one.
    fn choose(self, wanted: Option<&str>) -> Result<Sighted, Error> {
        let fits = |found: &&Sighted| {
            wanted.is_none_or(|wanted| found.name == wanted || found.array.to_string() == wanted)
        };
        let fitting = self.arrays.iter().filter(fits).count();
        let names = self.arrays.iter().map(|found| format!("{} ({})", show(&found.name), found.array));
        let found = names.collect();
        let mut chosen = self.arrays.into_iter().filter(|found| fits(&found));
        match (chosen.next(), chosen.next()) {
            (Some(one), None) => Ok(one),
            (_, _) => {
                let (wanted, unreadable) = (wanted.map(str::to_owned), self.unreadable);
                Err(Search { wanted, found, fitting, unreadable }.into())
            }
        }
    }
}

/// Whether a path that could not be taken for a member may be one: its superblocks are damaged, it could not
/// be read, or does not answer. A drive without a medium holds nothing.
pub fn may_be_member(failure: &Error) -> bool {
    if let Error::NoMember(NoMember::Damaged { .. }) | Error::Silent { .. } = failure {
        return true;
    }
    let (Error::Device(OpenError::Io { source, .. }) | Error::At { source, .. }) = failure else {
        return false;
    };
    let is_empty =
        [Errno::NXIO, Errno::NOMEDIUM, Errno::NOENT].map(Some).contains(&Errno::from_io_error(source));
    !is_empty
}

fn is_forbidden(path: &Path) -> bool {
    fs::File::open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn show(name: &str) -> &str {
    if name.is_empty() { "without a name" } else { name }
}

/// The paths of an array's devices among `places`; strangers that were named one by one are mentioned.
pub fn members_of(places: &[PathBuf], wanted: Option<&str>) -> Result<Vec<PathBuf>, Error> {
    let mut sight = look_around(places)?;
    let mut strangers = std::mem::take(&mut sight.strangers);
    strangers.append(&mut sight.other_versions);
    strangers.append(&mut sight.unseen);
    let named: Vec<PathBuf> = places.to_vec();
    let mut others = Vec::new();
    for found in &sight.arrays {
        let named = found.candidates.iter().filter(|candidate| named.contains(&candidate.path));
        others.extend(
            named.map(|candidate| (found.array, candidate.path.clone(), candidate.superblock().map(name_of))),
        );
    }
    let chosen = sight.choose(wanted)?;
    for stranger in &strangers {
        output::warn(format_args!("elastripe: ignored: {stranger}"));
    }
    for (_, path, name) in others.iter().filter(|(array, _, _)| *array != chosen.array) {
        let name = name.as_deref().unwrap_or_default();
        output::warn(format_args!("elastripe: ignored: {}: belongs to array {name}", path.display()));
    }
    Ok(chosen.candidates.into_iter().map(|candidate| candidate.path).collect())
}

/// Files and block devices in a directory, by name.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let at = |source| Error::At { path: directory.to_owned(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(at)? {
        let path = entry.map_err(at)?.path();
        if device::identity(&path).is_ok() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// All block devices that the kernel knows, but those that hold nothing.
fn block_devices() -> Result<Vec<PathBuf>, Error> {
    const LIST: &str = "/proc/partitions";
    let text = fs::read_to_string(LIST).map_err(|source| Error::At { path: LIST.into(), source })?;
    let names = text.lines().skip(2).filter_map(|line| line.split_whitespace().nth(3));
    let usable =
        |name: &&str| !name.starts_with("ram") && !name.starts_with("zram") && !name.starts_with("sr");
    // Where the kernel's name of a device has a slash it says another sign.
    let paths = names.filter(usable).map(|name| Path::new("/dev").join(name.replace('!', "/")));
    Ok(paths.filter(|path| path.exists()).collect())
}
