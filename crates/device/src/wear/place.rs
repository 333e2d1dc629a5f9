//! Which drive a block device lies on, by what the kernel says of it below `/sys`.

use super::NotOffered;
use crate::kernel::directory_of;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// So many devices may lie on top of each other; more of them are a circle.
const DEPTH_MAX: usize = 8;

/// How a drive is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bus {
    Nvme,
    /// SATA drives, too, pass for such ones.
    Scsi,
}

/// Where a drive is asked, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub node: PathBuf,
    pub bus: Bus,
}

/// The drive that `path` is, or lies on.
pub(super) fn find(path: &Path) -> Result<Place, NotOffered> {
    let found = fs::metadata(path).map_err(unseen(path))?;
    if !found.file_type().is_block_device() {
        return Err(NotOffered::File);
    }
    let link = directory_of(found.rdev());
    below(&fs::canonicalize(&link).map_err(unseen(&link))?)
}

/// The drive below what `directory` describes.
fn below(directory: &Path) -> Result<Place, NotOffered> {
    let mut directory = directory.to_owned();
    for _ in 0..DEPTH_MAX {
        if directory.join("partition").exists() {
            directory.pop();
        }
        let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let slaves = directory.join("slaves");
        let slaves: Vec<PathBuf> =
            fs::read_dir(&slaves).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        match slaves.as_slice() {
            [] => return drive(&name),
            [one] => directory = fs::canonicalize(one).map_err(unseen(one))?,
            several => return Err(NotOffered::Several { what: name, count: several.len() }),
        }
    }
    Err(NotOffered::NoDrive { what: directory.display().to_string() })
}

/// A drive by its name; in it, `!` stands for `/`.
fn drive(name: &str) -> Result<Place, NotOffered> {
    let bus = if name.starts_with("nvme") {
        Bus::Nvme
    } else if name.starts_with("sd") {
        Bus::Scsi
    } else {
        return Err(NotOffered::NoDrive { what: name.to_owned() });
    };
    Ok(Place { node: Path::new("/dev").join(name.replace('!', "/")), bus })
}

/// The size of a drive's sectors.
pub(super) fn sector_bytes(node: &Path) -> Option<u64> {
    let name = node.file_name()?;
    let path = Path::new("/sys/class/block").join(name).join("queue/logical_block_size");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn unseen(path: &Path) -> impl FnOnce(std::io::Error) -> NotOffered {
    let what = path.display().to_string();
    move |error| NotOffered::Unseen { what, why: error.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A partition of a drive, a volume on it, one on two drives, one that lies on itself, as /sys has it.
    fn system() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str| fs::create_dir_all(root.path().join(path)).unwrap();
        for path in [
            "nvme0n1/nvme0n1p2",
            "nvme0n1/slaves",
            "sdb",
            "dm-0/slaves",
            "dm-1/slaves",
            "dm-2/slaves",
            "loop3",
            "vda",
        ] {
            make(path);
        }
        fs::write(root.path().join("nvme0n1/nvme0n1p2/partition"), "2\n").unwrap();
        let lies_on = |upper: &str, lower: &str| {
            let name = Path::new(lower).file_name().unwrap();
            symlink(root.path().join(lower), root.path().join(upper).join("slaves").join(name)).unwrap();
        };
        lies_on("dm-0", "nvme0n1/nvme0n1p2");
        lies_on("dm-1", "nvme0n1");
        lies_on("dm-1", "sdb");
        lies_on("dm-2", "dm-2");
        root
    }

    #[test]
    fn partitions_and_what_is_stacked_on_one_drive_lead_to_it() {
        let root = system();
        let find = |path: &str| below(&root.path().join(path));
        let nvme = Place { node: PathBuf::from("/dev/nvme0n1"), bus: Bus::Nvme };
        for path in ["nvme0n1", "nvme0n1/nvme0n1p2", "dm-0"] {
            assert_eq!(find(path), Ok(nvme.clone()), "{path}");
        }
        assert_eq!(find("sdb"), Ok(Place { node: PathBuf::from("/dev/sdb"), bus: Bus::Scsi }));
    }

    #[test]
    fn what_is_no_drive_or_several_has_its_reason() {
        let root = system();
        let why = |path: &str| below(&root.path().join(path)).unwrap_err().to_string();
        assert_eq!(why("loop3"), "loop3 is not a drive that can be asked: NVMe and SATA can");
        assert_eq!(why("vda"), "vda is not a drive that can be asked: NVMe and SATA can");
        assert_eq!(why("dm-1"), "dm-1 is made of 2 devices");
        assert!(why("dm-2").contains("is not a drive"), "a circle ends");
        assert_eq!(find(&root.path().join("nvme0n1/nvme0n1p2/partition")), Err(NotOffered::File));
        assert!(matches!(find(&root.path().join("nowhere")), Err(NotOffered::Unseen { .. })));
    }
}
