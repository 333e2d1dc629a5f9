//! Files that a command makes for an array, and takes away again when nothing comes of them.
//!
//! Whoever works with a member holds its lock, and whoever is to hold one looks again at the path once it
//! has the lock. So a file is removed under its lock only, only if it is still the one that was made here,
//! and only if it carries no superblock: another command, or a server, may have taken it meanwhile. A file
//! that a server was asked to take is kept even if no answer came ([`MadeFile::keep`]).

use crate::error::Error;
use crate::open::look_at;
use crate::refusal::Refusal;
use crate::units::show_size;
use device::{Existing, allocate_file, create_file};
use rustix::fs::{Access, access};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What was at the path before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    Nothing,
    EmptyFile,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct MadeFile {
    path: PathBuf,
    before: Before,
    /// Device and inode.
    identity: (u64, u64),
    kept: bool,
}

/// Where a path leads, also if nothing is there yet: its directory without links, and its name.
pub fn place_of(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let parent = directory_of(path);
    let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    path.file_name().map_or_else(|| parent.clone(), |name| parent.join(name))
}

/// The directory that a path is in, as it is given.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a file can be made at a path: it names one, its directory is there and may be written to (or the
/// empty file that is there already), and it is not where device nodes are, whose content is gone when the
/// machine starts again.
pub fn check_place(path: &Path) -> Result<(), Error> {
    let parent = directory_of(path);
    let at = |source| Error::At { path: path.to_owned(), source };
    // A path leaves out what follows its last name.
    if path.file_name().is_none_or(|name| !path.as_os_str().as_bytes().ends_with(name.as_bytes())) {
        return Err(at(io::ErrorKind::IsADirectory.into()));
    }
    match fs::metadata(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(error)),
        Ok(_) | Err(_) => {}
    }
    let directory = parent.canonicalize().map_err(at)?;
    let among_devices = directory.starts_with("/dev") && !directory.starts_with("/dev/shm");
    if among_devices && !path.exists() {
        return Err(Refusal::FileAmongDevices { path: path.to_owned() }.into());
    }
    let written = if path.exists() { path } else { &directory };
    access(written, Access::WRITE_OK).map_err(|errno| at(errno.into()))
}

/// File systems that have not as much room as files that are made there may come to need.
pub fn short_of_room(files: &[(&Path, u64)]) -> Vec<String> {
    let mut needs: Vec<(u64, &Path, u64)> = Vec::new();
    for (path, size_bytes) in files {
        let directory = directory_of(path);
        let Ok(file_system) = fs::metadata(directory).map(|found| found.dev()) else { continue };
        match needs.iter_mut().find(|(other, ..)| *other == file_system) {
            Some((_, _, sum)) => *sum = sum.saturating_add(*size_bytes),
            None => needs.push((file_system, directory, *size_bytes)),
        }
    }
    let short = needs.into_iter().filter_map(|(_, directory, needed)| {
        let found = rustix::fs::statvfs(directory).ok()?;
        let left = found.f_bavail.saturating_mul(found.f_frsize);
        (left < needed).then(|| {
            let (directory, left, needed) = (directory.display(), show_size(left), show_size(needed));
            format!("the file system of {directory} has {left} left, and the files may come to need {needed}")
        })
    });
    short.collect()
}

impl MadeFile {
    /// Makes a file where there is nothing yet, or an empty file: sparse, or with all its room.
    pub fn make(path: &Path, size_bytes: u64, allocate: bool) -> Result<Self, Error> {
        check_place(path)?;
        let made = Self::make_sparse(path, size_bytes)?;
        if allocate {
            allocate_file(path)?;
        }
        Ok(made)
    }

    fn make_sparse(path: &Path, size_bytes: u64) -> Result<Self, Error> {
        let at = |source| Error::At { path: path.to_owned(), source };
        match File::options().write(true).create_new(true).open(path) {
            Ok(file) => {
                let identity = identity_of(&file.metadata().map_err(at)?);
                let made = Self { path: path.to_owned(), before: Before::Nothing, identity, kept: false };
                create_file(path, size_bytes, Existing::Refuse)?;
                Ok(made)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                create_file(path, size_bytes, Existing::Refuse)?;
                let identity = identity_of(&fs::metadata(path).map_err(at)?);
                Ok(Self { path: path.to_owned(), before: Before::EmptyFile, identity, kept: false })
            }
            Err(error) => Err(at(error)),
        }
    }

    /// It is in use now, or may be.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn take_away(&self) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        // Held by whoever put it into service.
        file.try_lock()?;
        let ours = identity_of(&file.metadata()?) == self.identity
            && identity_of(&fs::metadata(&self.path)?) == self.identity;
        let carries = look_at(&self.path).is_ok_and(|found| found.looks_like_member);
        match (ours && !carries, self.before) {
            (true, Before::Nothing) => fs::remove_file(&self.path),
            (true, Before::EmptyFile) => file.set_len(0),
            (false, Before::Nothing | Before::EmptyFile) => Ok(()),
        }
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        if !self.kept {
            // The command has failed already; what cannot be undone is no news then.
            let _ = self.take_away();
        }
    }
}

fn identity_of(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
