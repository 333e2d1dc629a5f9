//! What the kernel says of a block device below `/sys`.

use rustix::fs::{major, minor};
use std::fs::{self, read_to_string};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Where the kernel describes the device with this number.
pub(crate) fn directory_of(device: u64) -> PathBuf {
    Path::new("/sys/dev/block").join(format!("{}:{}", major(device), minor(device)))
}

/// An attribute of the request queue of the device with this number; a partition has those of its drive.
pub(crate) fn queue_attribute(device: u64, name: &str) -> Option<String> {
    attribute_below(&directory_of(device), name)
}

/// The same of the device that a directory of the kernel's describes.
fn attribute_below(directory: &Path, name: &str) -> Option<String> {
    let whole = fs::canonicalize(directory).ok()?;
    let drive = if whole.join("partition").exists() { whole.parent()? } else { &whole };
    read_to_string(drive.join("queue").join(name)).ok().map(|text| text.trim().to_owned())
}

/// Whether a block device, or the one that a file lies on, is a hard disk, by what the kernel says; `None` if
/// it says nothing, as of files in memory. Disks of virtual machines often pass for hard disks.
pub fn is_rotational(path: &Path) -> Option<bool> {
    let found = fs::metadata(path).ok()?;
    let device = if found.file_type().is_block_device() { found.rdev() } else { found.dev() };
    queue_attribute(device, "rotational").map(|text| text != "0")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_of_the_drive() {
        let root = tempfile::tempdir().unwrap();
        let partition = root.path().join("nvme0n1/nvme0n1p1");
        std::fs::create_dir_all(&partition).unwrap();
        std::fs::create_dir_all(root.path().join("nvme0n1/queue")).unwrap();
        std::fs::write(partition.join("partition"), "1\n").unwrap();
        assert_eq!(attribute_below(&partition, "rotational"), None, "an older kernel");
        std::fs::write(root.path().join("nvme0n1/queue/rotational"), "0\n").unwrap();
        assert_eq!(attribute_below(&partition, "rotational").as_deref(), Some("0"));
        assert_eq!(attribute_below(&root.path().join("nvme0n1"), "rotational").as_deref(), Some("0"));
        assert_eq!(attribute_below(&root.path().join("nowhere"), "rotational"), None);
    }

    #[test]
    fn what_is_on_no_device_is_not_known() {
        assert_eq!(is_rotational(Path::new("/proc/self/status")), None);
        assert_eq!(is_rotational(Path::new("/nowhere/at/all")), None);
    }
}
