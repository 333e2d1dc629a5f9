//! Where a device's bytes lie in the end: one device may have several names that are different devices to the
//! kernel. A loop device lies on a file, a partition on a disk.

use super::facts::kind_of;
use super::{Identity, Kind, OpenError};
use rustix::fs::{major, makedev, minor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the kernel counts partitions in.
const SECTOR_BYTES: u64 = 512;
/// A partition of a loop device on a partition has three. What lies deeper is taken for a device of its own.
const DEPTH_MAX: usize = 8;
/// Where the kernel tells of block devices by number.
const SYSTEM: &str = "/sys/dev/block";

/// A range of a file or disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    on: Identity,
    start_bytes: u64,
    end_bytes: u64,
}

/// Whether two paths lead to the same bytes: to one file or device, or one that lies on the other, or both on
/// a third one.
pub fn share_bytes(one: &Path, other: &Path) -> Result<bool, OpenError> {
    Ok(extent(one)?.overlaps(extent(other)?))
}

/// Where the bytes of a file or block device lie.
pub(super) fn extent(path: &Path) -> Result<Extent, OpenError> {
    let metadata = fs::metadata(path).map_err(OpenError::io(path))?;
    let kind = kind_of(path, &metadata)?;
    let whole = Extent { on: Identity::of(&metadata, kind), start_bytes: 0, end_bytes: u64::MAX };
    Ok(match kind {
        Kind::File => whole,
        Kind::Block => Extent::below(whole, metadata.rdev(), Path::new(SYSTEM), DEPTH_MAX),
    })
}

impl Extent {
    /// Whether some bytes are in both.
    pub(super) fn overlaps(self, other: Self) -> bool {
        self.on == other.on && self.start_bytes < other.end_bytes && other.start_bytes < self.end_bytes
    }

    /// What a range of a block device lies on.
    fn below(range: Self, number: u64, system: &Path, depth: usize) -> Self {
        let told = system.join(format!("{}:{}", major(number), minor(number)));
        let Some(told) = told.canonicalize().ok().filter(|_| depth > 0) else { return range };
        if let Some(loops) = read_loop(&told) {
            let Ok(metadata) = fs::metadata(&loops.file) else { return range };
            return match kind_of(&loops.file, &metadata) {
                Ok(Kind::File) => {
                    range.within(loops.start_bytes, loops.length_bytes, Identity::of(&metadata, Kind::File))
                }
                Ok(Kind::Block) => {
                    let on = Identity::of(&metadata, Kind::Block);
                    let range = range.within(loops.start_bytes, loops.length_bytes, on);
                    Self::below(range, metadata.rdev(), system, depth - 1)
                }
                Err(_) => range,
            };
        }
        let Some((disk, start, length)) = read_partition(&told) else { return range };
        let range = range.within(start, Some(length), Identity::of_block(disk));
        Self::below(range, disk, system, depth - 1)
    }

    /// The same range, counted from the beginning of what the device begins at.
    fn within(self, start_bytes: u64, length_bytes: Option<u64>, on: Identity) -> Self {
        let end = length_bytes.map_or(u64::MAX, |length| start_bytes.saturating_add(length));
        Self {
            on,
            start_bytes: self.start_bytes.saturating_add(start_bytes),
            end_bytes: self.end_bytes.saturating_add(start_bytes).min(end),
        }
    }
}

/// What a loop device lies on.
struct Loop {
    file: PathBuf,
    start_bytes: u64,
    /// `None`: up to the end.
    length_bytes: Option<u64>,
}

fn read_loop(told: &Path) -> Option<Loop> {
    let file = fs::read_to_string(told.join("loop/backing_file")).ok()?;
    let file = PathBuf::from(file.trim_end_matches('\n'));
    let start_bytes = read_number(&told.join("loop/offset")).unwrap_or(0);
    let length_bytes = read_number(&told.join("loop/sizelimit")).filter(|&length| length > 0);
    Some(Loop { file, start_bytes, length_bytes })
}

/// The disk of a partition, by number, and where on it that is.
fn read_partition(told: &Path) -> Option<(u64, u64, u64)> {
    read_number(&told.join("partition"))?;
    let start = read_number(&told.join("start"))?.checked_mul(SECTOR_BYTES)?;
    let length = read_number(&told.join("size"))?.checked_mul(SECTOR_BYTES)?;
    let disk = fs::read_to_string(told.parent()?.join("dev")).ok()?;
    let (major, minor) = disk.trim().split_once(':')?;
    Some((makedev(major.parse().ok()?, minor.parse().ok()?), start, length))
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A system with a disk of two partitions, and whatever loop devices are made.
    fn system() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("devices/sda");
        fs::create_dir_all(&disk).unwrap();
        fs::write(disk.join("dev"), "8:0\n").unwrap();
        link(&dir, "8:0", &disk);
        for (number, start) in [(1, 2048), (2, 4096)] {
            let part = disk.join(format!("sda{number}"));
            fs::create_dir(&part).unwrap();
            fs::write(part.join("partition"), format!("{number}\n")).unwrap();
            fs::write(part.join("start"), format!("{start}\n")).unwrap();
            fs::write(part.join("size"), "2048\n").unwrap();
            link(&dir, &format!("8:{number}"), &part);
        }
        dir
    }

    fn link(dir: &tempfile::TempDir, name: &str, to: &Path) {
        fs::create_dir_all(dir.path().join("block")).unwrap();
        std::os::unix::fs::symlink(to, dir.path().join("block").join(name)).unwrap();
    }

    fn add_loop(dir: &tempfile::TempDir, number: u32, file: &Path, (offset, limit): (u64, u64)) {
        let told = dir.path().join(format!("devices/loop{number}"));
        fs::create_dir_all(told.join("loop")).unwrap();
        fs::write(told.join("loop/backing_file"), format!("{}\n", file.display())).unwrap();
        fs::write(told.join("loop/offset"), format!("{offset}\n")).unwrap();
        fs::write(told.join("loop/sizelimit"), format!("{limit}\n")).unwrap();
        link(dir, &format!("7:{number}"), &told);
    }

    fn of(dir: &tempfile::TempDir, (major, minor): (u32, u32)) -> Extent {
        let number = makedev(major, minor);
        let whole = Extent { on: Identity::of_block(number), start_bytes: 0, end_bytes: u64::MAX };
        Extent::below(whole, number, &dir.path().join("block"), DEPTH_MAX)
    }

    #[test]
    fn partitions_lie_on_their_disk() {
        let dir = system();
        let on = Identity::of_block(makedev(8, 0));
        assert_eq!(of(&dir, (8, 0)), Extent { on, start_bytes: 0, end_bytes: u64::MAX });
        assert_eq!(of(&dir, (8, 1)), Extent { on, start_bytes: MIB, end_bytes: 2 * MIB });
        assert_eq!(of(&dir, (8, 2)), Extent { on, start_bytes: 2 * MIB, end_bytes: 3 * MIB });
        let unknown = Identity::of_block(makedev(9, 9));
        assert_eq!(of(&dir, (9, 9)), Extent { on: unknown, start_bytes: 0, end_bytes: u64::MAX });
    }

    #[test]
    fn loop_devices_lie_on_their_file() {
        let dir = system();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        add_loop(&dir, 0, &file, (0, 0));
        add_loop(&dir, 1, &file, (MIB, MIB));
        add_loop(&dir, 2, &dir.path().join("deleted"), (MIB, MIB));
        let on = Identity::of(&fs::metadata(&file).unwrap(), Kind::File);
        assert_eq!(of(&dir, (7, 0)), Extent { on, start_bytes: 0, end_bytes: u64::MAX });
        assert_eq!(of(&dir, (7, 1)), Extent { on, start_bytes: MIB, end_bytes: 2 * MIB });
        assert_eq!(of(&dir, (7, 2)).on, Identity::of_block(makedev(7, 2)), "nobody knows");
    }

    #[test]
    fn names_of_one_file_share_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let [one, link, other] = ["one", "link", "other"].map(|name| dir.path().join(name));
        fs::write(&one, "").unwrap();
        fs::write(&other, "").unwrap();
        fs::hard_link(&one, &link).unwrap();
        assert!(share_bytes(&one, &link).unwrap() && share_bytes(&one, &one).unwrap());
        assert!(!share_bytes(&one, &other).unwrap());
        assert!(share_bytes(&one, &dir.path().join("nowhere")).is_err());
    }
}
