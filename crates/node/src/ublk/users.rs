//! Who uses a disk of the kernel, as far as the system tells without asking the disk.

use std::fs;
use std::path::Path;

/// What uses the disk of this name or one of its partitions, in words.
pub fn user_of(name: &str) -> Option<String> {
    let class = Path::new("/sys/class/block");
    let mut parts = vec![name.to_owned()];
    let entries = fs::read_dir(class.join(name)).into_iter().flatten().flatten();
    parts.extend(entries.filter_map(|entry| {
        let part = entry.file_name().into_string().ok()?;
        part.starts_with(name).then_some(part)
    }));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    parts.iter().find_map(|part| {
        let dir = class.join(part);
        let number = fs::read_to_string(dir.join("dev")).unwrap_or_default();
        if let Some(place) = mount_of(&mounts, number.trim()) {
            return Some(format!("/dev/{part} is mounted at {place}"));
        }
        let holder = fs::read_dir(dir.join("holders")).ok()?.flatten().next();
        if let Some(holder) = holder {
            return Some(format!("/dev/{part} is part of {}", holder.file_name().to_string_lossy()));
        }
        let path = format!("/dev/{part}");
        let is_swap = swaps.lines().any(|line| line.split_whitespace().next() == Some(&*path));
        is_swap.then(|| format!("{path} is in use as swap space"))
    })
}

/// Where the device with this number is mounted.
fn mount_of<'a>(mounts: &'a str, number: &str) -> Option<&'a str> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        (fields.nth(2)? == number).then(|| fields.nth(1)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_the_numbers_of_their_devices() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 259:1 / /mnt/a rw - ext4 /dev/ublkb0 rw\n";
        assert_eq!(mount_of(mounts, "259:1"), Some("/mnt/a"));
        assert_eq!(mount_of(mounts, "259:2"), None);
        assert_eq!(mount_of(mounts, ""), None);
        assert_eq!(user_of("ublkb-there-is-none"), None);
    }
}
