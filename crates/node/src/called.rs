//! Arrays by their name or UUID, where commands take members: one that is served is found by its server's
//! record, another one by its file in `/etc/elastripe`, or among all block devices.

use crate::error::Error;
use crate::registry::records;
use crate::scan;
use crate::search::Search;
use crate::settings;
use std::path::{Path, PathBuf};

/// The paths, and in the place of an array's name or UUID the paths of its members and spares. What is there
/// is a path, whatever arrays are called, and so is then what stands beside it: a member that is gone.
pub fn members(given: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    if given.iter().any(|path| name_of(path).is_none()) {
        return Ok(given.to_vec());
    }
    let mut paths = Vec::with_capacity(given.len());
    for path in given {
        match name_of(path) {
            Some(name) => paths.extend(members_of(name)?),
            None => paths.push(path.clone()),
        }
    }
    Ok(paths)
}

/// What may be the name of an array.
fn name_of(path: &Path) -> Option<&str> {
    let name = path.to_str().filter(|name| !name.is_empty() && !name.contains('/'))?;
    path.symlink_metadata().is_err().then_some(name)
}

/// Where the members and spares of an array are that is served, or was until its server was killed.
pub fn recorded(name: &str) -> Result<Option<Vec<PathBuf>>, Error> {
    let mut served = records();
    served.retain(|record| record.name == name || record.uuid == name);
    match served.as_mut_slice() {
        [] => Ok(None),
        [record] => Ok(Some(std::mem::take(&mut record.paths))),
        several => {
            let found = several.iter().map(|record| format!("{name} ({})", record.uuid)).collect();
            Err(Search { wanted: Some(name.to_owned()), found, fitting: several.len() }.into())
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
