//! Files that commands write: found out before the work that fills them, whole or not at all, and never
//! anything but files destroyed.
//!
//! | what is there | what happens |
//! |---|---|
//! | nothing, a regular file | written beside it without a name, gets one when it is whole, and takes its place; where the file system knows only files with a name, under another one |
//! | a link to one of these | the same where the link leads: the link stays |
//! | a character device, a FIFO, an open file handed over (`/dev/stdout`, `/dev/fd/3`) | written through; what it answers is reported |
//! | a block device, a socket, a folder | refused |

use crate::failure::Failure;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, access, linkat, openat};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Links that lead to each other, at most, as in the kernel.
const LINKS_MAX: usize = 40;

/// A file that a command will write.
#[derive(Debug)]
pub struct OutFile {
    /// As errors name it.
    name: String,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// Replaced, or made, here: where links lead.
    Whole(PathBuf),
    /// Written as it comes.
    Through(PathBuf),
}

/// What a path leads to.
enum Found {
    Nothing,
    File,
    /// A device or FIFO.
    Open,
    Other(&'static str),
}

fn find(path: &Path) -> io::Result<Found> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let kind = metadata.file_type();
    Ok(match () {
        () if kind.is_file() => Found::File,
        () if kind.is_char_device() || kind.is_fifo() => Found::Open,
        () if kind.is_dir() => Found::Other("a folder"),
        () if kind.is_block_device() => Found::Other("a block device"),
        () => Found::Other("a socket"),
    })
}

/// Whether what is written to one path would be what the other leads to: a file, or one that is still to be
/// made.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => place_of(one).is_some_and(|place| place_of(other) == Some(place)),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

/// Where a file would be made.
fn place_of(path: &Path) -> Option<PathBuf> {
    let (place, _) = follow(path).ok()?;
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(fs::canonicalize(folder).ok()?.join(place.file_name()?))
}

/// Where links lead, and whether one of them names an open file of a process.
fn follow(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut place = path.to_path_buf();
    let mut is_open = false;
    for _ in 0..LINKS_MAX {
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A folder that is not there is reported when something is written.
        is_open |= fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with("/proc"));
        match fs::read_link(&place) {
            Ok(next) => place = folder.join(next),
            Err(_) => return Ok((place, is_open)),
        }
    }
    Err(io::Error::other("found links that lead to each other"))
}

impl OutFile {
    /// Looks at what is there and whether it may be written; `option`, if there is one, is what named it.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let name = format!("{option} {}", path.display()).trim_start().to_owned();
        let cannot = |error: io::Error| Failure::new(format!("{name}: cannot write there: {error}"));
        let found = find(path).map_err(cannot)?;
        let (place, is_open) = follow(path).map_err(cannot)?;
        let way = match found {
            Found::Other(what) => {
                return Err(Failure::new(format!(
                    "{name}: found {what}, expected a file (a character device or FIFO will do)"
                )));
            }
            Found::Open => Way::Through(path.to_path_buf()),
            Found::File if is_open => Way::Through(path.to_path_buf()),
            Found::Nothing | Found::File => Way::Whole(place),
        };
        // Whoever may write now may do so when the work has ended.
        match &way {
            Way::Whole(place) => {
                let partial = partial_of(place);
                OpenOptions::new().write(true).create_new(true).open(&partial).map_err(cannot)?;
                fs::remove_file(&partial).map_err(cannot)?;
            }
            Way::Through(path) => access(path, Access::WRITE_OK).map_err(|errno| cannot(errno.into()))?,
        }
        Ok(Self { name, way })
    }

    /// Refuses a file that the same run reads, or writes something else to; `others` are what names each of
    /// these, and where it is.
    pub fn check_apart<'a>(
        option: &str,
        path: &Path,
        others: impl IntoIterator<Item = (&'a str, &'a Path)>,
    ) -> Result<(), Failure> {
        match others.into_iter().find(|(_, other)| is_same_file(path, other)) {
            Some((what, _)) => Err(Failure::new(format!(
                "{option} {}: found the file of {what}, expected another one",
                path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Whether a file is there whose content would be gone.
    pub fn overwrites(&self) -> bool {
        match &self.way {
            Way::Whole(place) => place.exists(),
            Way::Through(_) => false,
        }
    }

    /// Whether it is what standard output goes to as well: then nothing else may be said there.
    pub fn is_stdout(&self) -> bool {
        let Way::Through(path) = &self.way else { return false };
        let (Ok(out), Ok(file)) = (rustix::fs::fstat(io::stdout()), fs::metadata(path)) else { return false };
        let same = (out.st_dev, out.st_ino) == (file.dev(), file.ino());
        // Whatever is said to another device, such as /dev/null, does no harm.
        same && (io::stdout().is_terminal() || !file.file_type().is_char_device())
    }

    /// Lets it be written. Without an error nothing is left of what was there, with one nothing of what is
    /// new.
    pub fn write<T>(self, with: impl FnOnce(File) -> Result<T, Failure>) -> Result<T, Failure> {
        let cannot = |error: io::Error| Failure::new(format!("{}: cannot write: {error}", self.name));
        let place = match &self.way {
            Way::Through(path) => {
                return with(OpenOptions::new().append(true).open(path).map_err(cannot)?);
            }
            Way::Whole(place) => place,
        };
        let partial = partial_of(place);
        let (file, nameless) = begin(&partial).map_err(cannot)?;
        let put = || {
            nameless.map_or(Ok(()), |file| give_name(&file, &partial))?;
            replace(&partial, place)
        };
        let done = with(file).and_then(|done| put().map(|()| done).map_err(cannot));
        done.inspect_err(|_| {
            // The first error is the one to report.
            let _ = fs::remove_file(&partial);
        })
    }

    /// Writes these bytes, and nothing else.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let name = self.name.clone();
        self.write(|mut file| {
            file.write_all(bytes).map_err(|error| Failure::new(format!("{name}: cannot write: {error}")))
        })
    }
}

/// A file that is to be called `partial`: if possible one without a name as yet, and so once more to give it
/// one, of which nothing is left when this process ends before that.
fn begin(partial: &Path) -> io::Result<(File, Option<File>)> {
    let folder = partial.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    // It is given its name by way of /proc.
    if let Ok(file) = openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).map(File::from)
        && fs::metadata(open_file(&file)).is_ok()
    {
        return Ok((file.try_clone()?, Some(file)));
    }
    Ok((OpenOptions::new().write(true).create_new(true).open(partial)?, None))
}

fn give_name(file: &File, name: &Path) -> io::Result<()> {
    Ok(linkat(CWD, open_file(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Where the kernel shows an open file of this process.
fn open_file(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Puts a whole file in the place of what is there, which may have changed since somebody looked.
fn replace(partial: &Path, place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(old) if !old.is_file() => Err(io::Error::other("found no file any more, expected one")),
        Ok(old) => {
            fs::set_permissions(partial, old.permissions())?;
            fs::rename(partial, place)
        }
        Err(_) => fs::rename(partial, place),
    }
}

/// The other name: beside the file, of this process.
fn partial_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(name)
}
