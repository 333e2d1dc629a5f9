//! What can be wrong with a path that is to become a member.

use std::io;
use std::path::{Path, PathBuf};

/// Why a member could not be opened, probed or created.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The member.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Locked by another process, or mounted, or part of another array.
    #[error("{path} is in use by another process", path = path.display())]
    InUse {
        /// The member.
        path: PathBuf,
    },
    /// The same file or device was given twice, or two that share bytes.
    #[error("{first} and {second} are, or lie on, the same device", first = first.display(), second = second.display())]
    Duplicate {
        /// Where it came first.
        first: PathBuf,
        /// Where it came again.
        second: PathBuf,
    },
    /// Neither a block device nor a regular file.
    #[error("{path} is a {found}: expected a block device or a regular file", path = path.display())]
    WrongKind {
        /// The member.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The device cannot write 4096 bytes at a time.
    #[error("{path} has logical blocks of {found_bytes} bytes: expected at most 4096", path = path.display())]
    LogicalBlock {
        /// The member.
        path: PathBuf,
        /// Bytes in its logical block.
        found_bytes: u32,
    },
    /// A file that was to be created exists and is not empty.
    #[error("{path} exists and holds {size_bytes} bytes: refusing to overwrite it", path = path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
