//! Opening a member: how it is locked, and what is worth noting of it.

use super::extent::{Place, place_of};
use super::facts::{identity, kind_of, logical_block_bytes, size_of};
use super::{Identity, Kind, LockedFile, Member, OpenError};
use crate::streams::WriteStreams;
use block::META_BYTES;
use rustix::fs::OFlags;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who else may have the member open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Read and write; nobody else may.
    #[default]
    Exclusive,
    /// Read without a lock, for inspection of an array that may be in use. Writes fail.
    ReadOnly,
    /// Read; nobody else may write. What is written goes to memory, see [`crate::Sheltered`].
    Sheltered,
}

impl Access {
    /// Whether members are locked.
    fn locks(self) -> bool {
        match self {
            Self::Exclusive | Self::Sheltered => true,
            Self::ReadOnly => false,
        }
    }
}

/// Whether to bypass the page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DirectIo {
    /// O_DIRECT where the file system takes it.
    #[default]
    Prefer,
    /// Through the page cache.
    Never,
}

/// How to open members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenOptions {
    /// Who else may have them open.
    pub access: Access,
    /// Whether to bypass the page cache.
    pub direct_io: DirectIo,
}

/// Something the operator should know, though it works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// The file system refused O_DIRECT (or it was not asked for): transfers go through the page cache.
    Buffered {
        /// The member.
        path: PathBuf,
    },
    /// The kernel refused to register the buffers, so every operation maps its buffer anew.
    BuffersNotRegistered {
        /// Bytes to be registered.
        bytes: u64,
        /// The errno; ENOMEM means the limit of locked memory.
        errno: i32,
    },
    /// The kernel lacks deferred task work (before 6.1): completions cost more.
    RingWithoutDeferredWork,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffered { path } => {
                write!(f, "{}: no O_DIRECT here, transfers go through the page cache", path.display())
            }
            Self::BuffersNotRegistered { bytes, errno } => write!(
                f,
                "{bytes} bytes of buffers could not be registered with the kernel (errno {errno}); raise the limit of \
                 locked memory (ulimit -l) for more speed"
            ),
            Self::RingWithoutDeferredWork => {
                write!(f, "this kernel has no deferred io_uring task work (Linux 6.1); completions cost more")
            }
        }
    }
}

/// File systems whose files another process or machine serves. They say that they do not block who starts a
/// transfer, and do when that one does not answer: FUSE, NFS, CIFS, SMB2, Ceph, 9P.
const REMOTE: [u64; 6] = [0x6573_5546, 0x6969, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x0102_1997];

fn is_remote(file_system: &rustix::fs::StatFs) -> bool {
    u64::try_from(file_system.f_type).is_ok_and(|kind| REMOTE.contains(&kind))
}

/// File systems that keep files in memory: tmpfs, ramfs. Transfers never wait there, but io_uring hands
/// each to another thread, which costs more than the transfer.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

fn is_in_memory(file_system: &rustix::fs::StatFs) -> bool {
    u64::try_from(file_system.f_type).is_ok_and(|kind| IN_MEMORY.contains(&kind))
}

/// What `stat` counts a file's room in.
const ST_BLOCK_BYTES: u64 = 512;

/// Refuses a list that names one device under two paths, or two that share bytes. Two locks of one process
/// would otherwise shut each other out and look like another process.
pub(super) fn refuse_duplicates(paths: &[Option<PathBuf>]) -> Result<(), OpenError> {
    let mut seen: Vec<(&PathBuf, Place)> = Vec::with_capacity(paths.len());
    for path in paths.iter().flatten() {
        let place = place_of(path)?;
        if let Some((first, _)) = seen.iter().find(|(_, other)| other.shares_bytes(&place)) {
            return Err(OpenError::Duplicate { first: PathBuf::clone(first), second: path.clone() });
        }
        seen.push((path, place));
    }
    Ok(())
}

impl Member {
    /// Opens and locks one member.
    pub(super) fn open(path: &Path, options: OpenOptions) -> Result<Self, OpenError> {
        let kind = kind_of(path, &fs::metadata(path).map_err(OpenError::io(path))?)?;
        let (mut file, mut direct_io) = open_file(path, kind, options)?;
        if kind_of(path, &file.metadata().map_err(OpenError::io(path))?)? != kind {
            // Replaced between the two looks; O_EXCL may be missing.
            return Err(OpenError::InUse { path: path.to_owned() });
        }
        if options.access.locks() {
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => OpenError::InUse { path: path.to_owned() },
                TryLockError::Error(source) => OpenError::io(path)(source),
            })?;
            // Whoever made the file and had no use for it may have removed it before it was locked.
            let locked = Identity::of(&file.metadata().map_err(OpenError::io(path))?, kind);
            if locked != identity(path)? {
                return Err(OpenError::InUse { path: path.to_owned() });
            }
        }
        let logical_block = logical_block_bytes(&file, kind, path)?;
        if logical_block as usize > META_BYTES {
            match kind {
                Kind::Block => {
                    return Err(OpenError::LogicalBlock {
                        path: path.to_owned(),
                        found_bytes: logical_block,
                    });
                }
                Kind::File if direct_io => {
                    // A file on such a device works through the page cache.
                    rustix::fs::fcntl_setfl(&file, OFlags::empty())
                        .map_err(|errno| OpenError::io(path)(io::Error::from(errno)))?;
                    direct_io = false;
                }
                Kind::File => {}
            }
        }
        let size_bytes = size_of(&mut file, path)?;
        let logical_block_bytes = logical_block.min(META_BYTES as u32);
        let error = |errno| OpenError::io(path)(io::Error::from(errno));
        let metadata = file.metadata().map_err(OpenError::io(path))?;
        let used_bytes = metadata.blocks() * ST_BLOCK_BYTES;
        let is_allocated = kind == Kind::File && used_bytes >= size_bytes;
        let file_system = rustix::fs::fstatfs(&file).map_err(error)?;
        let may_block = kind == Kind::File && is_remote(&file_system);
        let in_memory = kind == Kind::File && is_in_memory(&file_system);
        let streams = match kind {
            Kind::Block => WriteStreams::of_device(&file),
            Kind::File => WriteStreams::default(),
        };
        Ok(Self {
            file: Arc::new(LockedFile(file)),
            path: path.to_owned(),
            kind,
            size_bytes,
            logical_block_bytes,
            direct_io,
            is_allocated,
            may_block,
            in_memory,
            streams,
            identity: Identity::of(&metadata, kind),
        })
    }
}

/// Opens with O_DIRECT if wanted and possible; the answer says whether it was.
fn open_file(path: &Path, kind: Kind, options: OpenOptions) -> Result<(File, bool), OpenError> {
    let writes = options.access == Access::Exclusive;
    let flags = |direct: bool| {
        let mut flags = OFlags::empty();
        flags.set(OFlags::DIRECT, direct);
        flags.set(OFlags::EXCL, options.access.locks() && kind == Kind::Block);
        i32::try_from(flags.bits()).expect("open flags fit an int")
    };
    let open =
        |direct| fs::OpenOptions::new().read(true).write(writes).custom_flags(flags(direct)).open(path);
    let direct = options.direct_io == DirectIo::Prefer;
    let result = match open(direct) {
        Err(error) if direct && error.raw_os_error() == Some(libc::EINVAL) => {
            open(false).map(|file| (file, false))
        }
        result => result.map(|file| (file, direct)),
    };
    result.map_err(|source| {
        let busy = source.raw_os_error() == Some(libc::EBUSY);
        if busy { OpenError::InUse { path: path.to_owned() } } else { OpenError::io(path)(source) }
    })
}
