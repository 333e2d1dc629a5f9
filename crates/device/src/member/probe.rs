//! Looking at a path before it becomes a member, and making files that can become one.

use super::facts::{kind_of, logical_block_bytes, size_of};
use super::{Kind, OpenError, signature};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Zeros written at a time.
const ZEROS_BYTES: usize = 1 << 20;

/// What a path holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// File or block device.
    pub kind: Kind,
    /// Its size.
    pub size_bytes: u64,
    /// The smallest unit it can write; a member needs at most 4096.
    pub logical_block_bytes: u32,
    /// The foreign content found there ("ext4", "LVM2", ...); elastripe's own is none.
    pub signature: Option<&'static str>,
}

/// Looks at a file or block device without changing it: size, logical block, and whether somebody else's
/// content is there.
pub fn probe(path: &Path) -> Result<Probe, OpenError> {
    let error = |source| OpenError::io(path)(source);
    let kind = kind_of(path, &fs::metadata(path).map_err(error)?)?;
    let mut file = File::open(path).map_err(|source| OpenError::io(path)(source))?;
    let size_bytes = size_of(&mut file, path)?;
    let logical_block_bytes = logical_block_bytes(&file, kind, path)?;
    let window_bytes = size_bytes.min(signature::WINDOW_BYTES);
    let read = |offset_bytes| {
        let mut window = vec![0; usize::try_from(window_bytes).expect("a window is at most 1 MiB")];
        file.read_exact_at(&mut window, offset_bytes).map_err(OpenError::io(path))?;
        Ok::<_, OpenError>(window)
    };
    let (head, tail) = (read(0)?, read(size_bytes - window_bytes)?);
    Ok(Probe {
        kind,
        size_bytes,
        logical_block_bytes,
        signature: signature::detect(&head, &tail, size_bytes),
    })
}

/// What to do with a file that is already there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Existing {
    /// Refuse, unless it is empty.
    #[default]
    Refuse,
    /// Empty it and make it anew.
    Replace,
}

/// Makes a sparse file of `size_bytes` and makes it durable.
pub fn create_file(path: &Path, size_bytes: u64, existing: Existing) -> Result<(), OpenError> {
    let io = |source| OpenError::io(path)(source);
    let open = || fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    if let Ok(metadata) = fs::metadata(path) {
        kind_of(path, &metadata).and_then(|kind| match kind {
            Kind::File => Ok(()),
            Kind::Block => Err(OpenError::WrongKind { path: path.to_owned(), found: "block device" }),
        })?;
    }
    let file = open().map_err(io)?;
    file.try_lock().map_err(|error| match error {
        fs::TryLockError::WouldBlock => OpenError::InUse { path: path.to_owned() },
        fs::TryLockError::Error(source) => io(source),
    })?;
    let found_bytes = file.metadata().map_err(io)?.len();
    if found_bytes > 0 && existing == Existing::Refuse {
        return Err(OpenError::Exists { path: path.to_owned(), size_bytes: found_bytes });
    }
    file.set_len(0).and_then(|()| file.set_len(size_bytes)).and_then(|()| file.sync_all()).map_err(io)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|directory| directory.sync_all()).map_err(OpenError::io(parent))
}

/// Gives a file all the room it will ever need, and makes that durable: it is not sparse any more. A file
/// that is not sparse when it is opened stays so; nothing of it is discarded.
pub fn allocate_file(path: &Path) -> Result<(), OpenError> {
    let io = |source| OpenError::io(path)(source);
    let file = fs::OpenOptions::new().write(true).open(path).map_err(io)?;
    let size_bytes = file.metadata().map_err(io)?.len();
    match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, size_bytes) {
        Ok(()) => {}
        // The file system knows no allocation ahead: what is written is there.
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let zeros = vec![0; ZEROS_BYTES];
            let mut at = 0;
            while at < size_bytes {
                let length = (size_bytes - at).min(ZEROS_BYTES as u64);
                let length = usize::try_from(length).expect("at most ZEROS_BYTES");
                file.write_all_at(&zeros[..length], at).map_err(io)?;
                at += length as u64;
            }
        }
        Err(errno) => return Err(io(errno.into())),
    }
    file.sync_all().map_err(io)
}
