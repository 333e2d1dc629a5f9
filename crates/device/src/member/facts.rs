//! What the system says of a file or block device.

use super::{Kind, OpenError};
use rustix::fs::{AtFlags, StatxFlags};
use std::fs::{self, File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Which file or block device it is, whatever path leads to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Identity {
    /// The file system's number, or none that a file system has.
    space: u64,
    /// The inode, or the number of the block device.
    number: u64,
}

impl Identity {
    pub(super) fn of(metadata: &fs::Metadata, kind: Kind) -> Self {
        match kind {
            Kind::File => Self { space: metadata.dev(), number: metadata.ino() },
            Kind::Block => Self::of_block(metadata.rdev()),
        }
    }

    /// The block device with this number.
    pub(super) fn of_block(number: u64) -> Self {
        Self { space: u64::MAX, number }
    }

    /// The number, if it is a block device.
    pub(super) fn block_number(self) -> Option<u64> {
        (self.space == u64::MAX).then_some(self.number)
    }

    /// As numbers, to be sent elsewhere.
    pub fn numbers(self) -> (u64, u64) {
        (self.space, self.number)
    }

    /// From [`Identity::numbers`].
    pub fn from_numbers((space, number): (u64, u64)) -> Self {
        Self { space, number }
    }
}

/// Which file or block device a path leads to.
pub fn identity(path: &Path) -> Result<Identity, OpenError> {
    let metadata = fs::metadata(path).map_err(OpenError::io(path))?;
    Ok(Identity::of(&metadata, kind_of(path, &metadata)?))
}

/// What the path names, or that it cannot be a member.
pub(super) fn kind_of(path: &Path, metadata: &Metadata) -> Result<Kind, OpenError> {
    let kind = metadata.file_type();
    let found = if kind.is_file() {
        return Ok(Kind::File);
    } else if kind.is_block_device() {
        return Ok(Kind::Block);
    } else if kind.is_dir() {
        "directory"
    } else if kind.is_char_device() {
        "character device"
    } else {
        "pipe or socket"
    };
    Err(OpenError::WrongKind { path: path.to_owned(), found })
}

/// Bytes a file or block device holds.
pub(super) fn size_of(file: &mut File, path: &Path) -> Result<u64, OpenError> {
    file.seek(SeekFrom::End(0)).map_err(OpenError::io(path))
}

/// The smallest unit of a transfer: the device's logical block, or what the file system asks of O_DIRECT.
pub(super) fn logical_block_bytes(file: &File, kind: Kind, path: &Path) -> Result<u32, OpenError> {
    const SECTOR_BYTES: u32 = 512;
    match kind {
        Kind::Block => {
            rustix::fs::ioctl_blksszget(file).map_err(|errno| OpenError::io(path)(io::Error::from(errno)))
        }
        Kind::File => {
            let answer = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
            let align = answer.ok().filter(|answer| answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
            Ok(align
                .map(|answer| answer.stx_dio_offset_align)
                .filter(|&bytes| bytes > 0)
                .unwrap_or(SECTOR_BYTES))
        }
    }
}
