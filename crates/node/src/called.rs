//! Arrays by their name or UUID, where commands take members: one that is served is found by its server's
//! record, another one by its file in `/etc/elastripe`, or among all block devices.

use crate::control::Client;
use crate::error::Error;
use crate::open::{Candidate, look_at};
use crate::registry::{Record, cut_off, records};
use crate::run_dir::socket_path;
use crate::scan;
use crate::search::Search;
use crate::settings;
use format::ArrayUuid;
use std::path::{Path, PathBuf};

/// What a command was given to find its array by.
#[derive(Debug, Default)]
pub struct Called {
    /// The paths, and in the place of an array's name or UUID the paths of its members and spares.
    pub paths: Vec<PathBuf>,
    /// The array of this name or UUID, if its server has left word of it: whatever is at the paths by now.
    pub array: Option<ArrayUuid>,
}

impl Called {
    /// The server of an array that was called by its name or UUID, if there is one: it answers also when
    /// nothing is at the paths of its members any more.
    pub fn server(&self) -> Result<Option<Client>, Error> {
        let Some(array) = self.array else { return Ok(None) };
        match Client::of_server(&socket_path(array))? {
            Some(client) => Ok(Some(client)),
            None => cut_off(array).map_or(Ok(None), Err),
        }
    }

    /// What is at a path, if it is a member or spare; of the array that was called by its name or UUID.
    pub fn member_at(&self, path: &Path) -> Result<Candidate, Error> {
        let candidate = look_at(path)?;
        let found = candidate.require_superblock()?.array;
        match self.array.is_none_or(|array| array == found) {
            true => Ok(candidate),
            false => Err(Error::OfAnother { path: path.to_owned() }),
        }
    }

    /// Why nothing is known of an array: if it was called by its name or UUID, why of each of its members,
    /// for its server did not answer either; else of the first path.
    pub fn unknown(&self, failures: Vec<Error>) -> Error {
        match self.array {
            Some(array) if !failures.is_empty() => {
                let each = failures.iter().map(Error::to_string).collect::<Vec<_>>();
                Error::NothingThere { array, members: each.join("; ") }
            }
            Some(_) | None => failures.into_iter().next().unwrap_or(Error::NoneNamed),
        }
    }

    /// Whether nothing of an array that was called by its name or UUID is where it was.
    pub fn is_lost(&self) -> bool {
        let is_gone = |path: &PathBuf| path.try_exists().is_ok_and(|exists| !exists);
        let is_lost =
            |path: &PathBuf| is_gone(path) || (look_at(path).is_ok() && self.member_at(path).is_err());
        self.array.is_some() && self.paths.iter().all(is_lost)
    }
}

/// Finds an array. What is there is a path, whatever arrays are called, and so is then what stands beside it:
/// a member that is gone.
pub fn members(given: &[PathBuf]) -> Result<Called, Error> {
    if given.iter().any(|path| name_of(path).is_none()) {
        return Ok(Called { paths: given.to_vec(), array: None });
    }
    if let [path] = given
        && let Some(name) = name_of(path)
        && let Some(Record { uuid, paths, .. }) = record_of(name)?
    {
        return Ok(Called { paths, array: uuid.parse().ok() });
    }
    let mut paths = Vec::with_capacity(given.len());
    for path in given {
        match name_of(path) {
            Some(name) => paths.extend(members_of(name)?),
            None => paths.push(path.clone()),
        }
    }
    Ok(Called { paths, array: None })
}

/// What may be the name of an array.
fn name_of(path: &Path) -> Option<&str> {
    let name = path.to_str().filter(|name| !name.is_empty() && !name.contains('/'))?;
    path.symlink_metadata().is_err().then_some(name)
}

/// Where the members and spares of an array are that is served, or was until its server was killed.
pub fn recorded(name: &str) -> Result<Option<Vec<PathBuf>>, Error> {
    Ok(record_of(name)?.map(|record| record.paths))
}

fn record_of(name: &str) -> Result<Option<Record>, Error> {
    let mut served = records();
    served.retain(|record| record.name == name || record.uuid == name);
    match served.as_mut_slice() {
        [] => Ok(None),
        [record] => Ok(Some(std::mem::take(record))),
        several => {
            let found = several.iter().map(|record| format!("{name} ({})", record.uuid)).collect();
            Err(Search { wanted: Some(name.to_owned()), found, fitting: several.len(), unreadable: 0 }.into())
        }
    }
}

fn members_of(name: &str) -> Result<Vec<PathBuf>, Error> {
    if let Some(paths) = recorded(name)? {
        return Ok(paths);
    }
    let settings = settings::find(name)?;
    let found = match &settings {
        Some(settings) => scan::members_of(&settings.places, Some(&settings.array.to_string())),
        None => scan::members_of(&[], Some(name)),
    };
    found.map_err(|error| match settings {
        Some(settings) => Error::Settings { path: settings.path, why: error.to_string() },
        None => Error::NotCalled { name: name.to_owned(), kept: settings::directory() },
    })
}
