//! Where a device's bytes lie in the end: one device may have several names that are different devices to the
//! kernel. A loop device lies on a file, a partition on a disk, a device of device-mapper or md on others.

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

/// What a file or block device takes of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    own: Extent,
    /// What the kernel makes the device of that `own` is on, however deep. Which parts of it, nobody tells.
    made_of: Vec<Extent>,
}

/// Whether two paths lead to the same bytes: to one file or device, or one that lies on the other, or both on
/// a third one.
pub fn share_bytes(one: &Path, other: &Path) -> Result<bool, OpenError> {
    Ok(place_of(one)?.shares_bytes(&place_of(other)?))
}

/// Where the bytes of a file or block device lie.
pub(super) fn place_of(path: &Path) -> Result<Place, OpenError> {
    let metadata = fs::metadata(path).map_err(OpenError::io(path))?;
    let kind = kind_of(path, &metadata)?;
    Ok(match kind {
        Kind::File => Place { own: Extent::whole(Identity::of(&metadata, kind)), made_of: Vec::new() },
        Kind::Block => Place::of_block(metadata.rdev(), Path::new(SYSTEM)),
    })
}

impl Place {
    fn of_block(number: u64, system: &Path) -> Self {
        let own = Extent::below(Extent::whole(Identity::of_block(number)), number, system, DEPTH_MAX);
        let mut made_of = Vec::new();
        own.note_parts(&mut made_of, system, DEPTH_MAX);
        Self { own, made_of }
    }

    /// Whether one is the other, in part, or is made of it. Two that are made of a third may have parts of
    /// their own there, as logical volumes have: they are two.
    pub(super) fn shares_bytes(&self, other: &Self) -> bool {
        let is_part = |whole: &Self, part: &Self| whole.made_of.iter().any(|lower| lower.overlaps(part.own));
        self.own.overlaps(other.own) || is_part(self, other) || is_part(other, self)
    }
}

impl Extent {
    fn whole(on: Identity) -> Self {
        Self { on, start_bytes: 0, end_bytes: u64::MAX }
    }

    /// What device-mapper, md and the like make the device of that this is on.
    fn note_parts(self, parts: &mut Vec<Self>, system: &Path, depth: usize) {
        let Some(number) = self.on.block_number().filter(|_| depth > 0) else { return };
        for part in read_parts(&told_of(number, system)) {
            let part = Self::below(Self::whole(Identity::of_block(part)), part, system, depth);
            // Two of them may be made of one: it is looked through once.
            if !parts.contains(&part) {
                parts.push(part);
                part.note_parts(parts, system, depth - 1);
            }
        }
    }

    /// Whether some bytes are in both.
    fn overlaps(self, other: Self) -> bool {
        self.on == other.on && self.start_bytes < other.end_bytes && other.start_bytes < self.end_bytes
    }

    /// What a range of a block device lies on.
    fn below(range: Self, number: u64, system: &Path, depth: usize) -> Self {
        let Some(told) = told_of(number, system).canonicalize().ok().filter(|_| depth > 0) else {
            return range;
        };
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

/// Where the kernel tells of a block device.
fn told_of(number: u64, system: &Path) -> PathBuf {
    system.join(format!("{}:{}", major(number), minor(number)))
}

/// The numbers of the devices that the kernel makes one of.
fn read_parts(told: &Path) -> Vec<u64> {
    let parts = fs::read_dir(told.join("slaves")).into_iter().flatten().flatten();
    parts.filter_map(|part| read_device(&part.path())).collect()
}

/// The number of a block device.
fn read_device(told: &Path) -> Option<u64> {
    let text = fs::read_to_string(told.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
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
    Some((read_device(told.parent()?)?, start, length))
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
            fs::write(part.join("dev"), format!("8:{number}\n")).unwrap();
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
        place(dir, (major, minor)).own
    }

    fn place(dir: &tempfile::TempDir, (major, minor): (u32, u32)) -> Place {
        Place::of_block(makedev(major, minor), &dir.path().join("block"))
    }

    /// A device `253:number` that the kernel makes of others.
    fn add_made(dir: &tempfile::TempDir, number: u32, parts: &[&str]) {
        let told = dir.path().join(format!("devices/dm-{number}"));
        fs::create_dir_all(told.join("slaves")).unwrap();
        fs::write(told.join("dev"), format!("253:{number}\n")).unwrap();
        for part in parts {
            let to = dir.path().join("devices").join(part);
            let name = to.file_name().unwrap();
            std::os::unix::fs::symlink(&to, told.join("slaves").join(name)).unwrap();
        }
        link(dir, &format!("253:{number}"), &told);
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
    fn devices_lie_on_what_the_kernel_makes_them_of() {
        let dir = system();
        add_made(&dir, 0, &["sda/sda1"]);
        add_made(&dir, 1, &["sda/sda1"]);
        add_made(&dir, 2, &["dm-1", "sda/sda2"]);
        // Whatever somebody has made of the directories, they are not followed for ever.
        add_made(&dir, 3, &["dm-3", "sda/sda2", "gone"]);
        let share = |one, other| {
            let (one, other) = (place(&dir, one), place(&dir, other));
            assert_eq!(one.shares_bytes(&other), other.shares_bytes(&one));
            one.shares_bytes(&other)
        };
        let (disk, first, second) = ((8, 0), (8, 1), (8, 2));
        let (one, two, both, odd) = ((253, 0), (253, 1), (253, 2), (253, 3));
        assert!(share(one, one) && share(one, first) && share(one, disk) && !share(one, second));
        assert!(!share(one, two), "two logical volumes of one disk are two");
        assert!(share(both, two) && share(both, first) && share(both, second) && share(both, disk));
        assert!(!share(both, one));
        assert!(share(odd, second) && share(odd, odd) && !share(odd, first));
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
