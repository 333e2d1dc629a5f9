//! Recognises content that belongs to somebody else, so that it is not overwritten by mistake.
//!
//! Works on two windows, the first and the last MiB (they overlap on small devices). The places are those
//! that `wipefs` looks at; see each test for the layout.

/// How much of each end is looked at.
pub(super) const WINDOW_BYTES: u64 = 1 << 20;

/// ZFS keeps two labels at each end.
const ZFS_LABELS: [usize; 2] = [0, 1];

/// The foreign content in the first and last MiB of a device of `size_bytes`, if any.
///
/// Containers and file systems come before partition tables: a FAT boot sector also looks like a table.
pub(super) fn detect(head: &[u8], tail: &[u8], size_bytes: u64) -> Option<&'static str> {
    let tail_start = size_bytes.saturating_sub(tail.len() as u64);
    fixed(head)
        .or_else(|| ext(head))
        .or_else(|| lvm2(head))
        .or_else(|| swap(head))
        .or_else(|| md(head, tail, tail_start, size_bytes))
        .or_else(|| raid_at_end(tail))
        .or_else(|| zfs(head, tail, tail_start, size_bytes))
        .or_else(|| partition_table(head, tail))
}

fn at(window: &[u8], offset: usize, magic: &[u8]) -> bool {
    offset
        .checked_add(magic.len())
        .and_then(|end| window.get(offset..end))
        .is_some_and(|found| found == magic)
}

fn u32_le(window: &[u8], offset: usize) -> u32 {
    window.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Magic numbers at one place near the start: name, offset, bytes.
const FIXED: &[(&str, usize, &[u8])] = &[
    ("LUKS", 0, b"LUKS\xba\xbe"),
    ("LUKS", 0x4000, b"SKUL\xba\xbe"),
    ("LUKS", 0x8000, b"SKUL\xba\xbe"),
    ("LUKS", 0x1_0000, b"SKUL\xba\xbe"),
    ("LUKS", 0x2_0000, b"SKUL\xba\xbe"),
    ("LUKS", 0x4_0000, b"SKUL\xba\xbe"),
    ("LUKS", 0x8_0000, b"SKUL\xba\xbe"),
    ("xfs", 0, b"XFSB"),
    ("btrfs", 0x1_0040, b"_BHRfS_M"),
    ("NTFS", 3, b"NTFS    "),
    ("exFAT", 3, b"EXFAT   "),
    ("BitLocker", 3, b"-FVE-FS-"),
    ("FAT", 54, b"FAT12   "),
    ("FAT", 54, b"FAT16   "),
    ("FAT", 82, b"FAT32   "),
    ("APFS", 32, b"NXSB"),
    ("f2fs", 1024, &0xf2f5_2010_u32.to_le_bytes()),
    ("erofs", 1024, &0xe0f5_e1e2_u32.to_le_bytes()),
    ("squashfs", 0, b"hsqs"),
    ("iso9660", 0x8001, b"CD001"),
    ("bcache", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    ("bcachefs", 4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    ("Ceph BlueStore", 0, b"bluestore block device"),
    ("Oracle ASM", 32, b"ORCLDISK"),
];

fn fixed(head: &[u8]) -> Option<&'static str> {
    FIXED.iter().find(|(_, offset, magic)| at(head, *offset, magic)).map(|(name, _, _)| *name)
}

/// Superblock at 1024: magic at +56, compatible features at +92 (4 = journal), incompatible at +96 (0x40 =
/// extents, 0x80 = 64 bit, 0x200 = flexible groups).
fn ext(head: &[u8]) -> Option<&'static str> {
    const SUPERBLOCK: usize = 1024;
    const EXT4_ONLY: u32 = 0x40 | 0x80 | 0x200;
    if !at(head, SUPERBLOCK + 56, &0xef53_u16.to_le_bytes()) {
        return None;
    }
    if u32_le(head, SUPERBLOCK + 96) & EXT4_ONLY != 0 {
        Some("ext4")
    } else if u32_le(head, SUPERBLOCK + 92) & 4 != 0 {
        Some("ext3")
    } else {
        Some("ext2")
    }
}

/// The label is in one of the first four sectors.
fn lvm2(head: &[u8]) -> Option<&'static str> {
    (0..4).any(|sector| at(head, sector * 512, b"LABELONE")).then_some("LVM2")
}

/// The magic ends the first page, whose size depends on the machine.
fn swap(head: &[u8]) -> Option<&'static str> {
    let pages = [4096, 8192, 16384, 65536];
    let found =
        pages.iter().any(|page| at(head, page - 10, b"SWAPSPACE2") || at(head, page - 10, b"SWAP-SPACE"));
    found.then_some("swap")
}

/// Linux md: 1.1 at the start, 1.2 at 4096, 1.0 8 to 12 KiB before the end, 0.90 64 to 128 KiB
/// before the end.
fn md(head: &[u8], tail: &[u8], tail_start: u64, size_bytes: u64) -> Option<&'static str> {
    const MAGIC: u32 = 0xa92b_4efc;
    let in_tail = |offset: Option<u64>, magic: &[u8]| {
        let offset = offset.and_then(|offset| offset.checked_sub(tail_start));
        offset.and_then(|offset| usize::try_from(offset).ok()).is_some_and(|offset| at(tail, offset, magic))
    };
    if at(head, 0, &MAGIC.to_le_bytes()) || at(head, 4096, &MAGIC.to_le_bytes()) {
        return Some("md");
    }
    let v1_0 = (size_bytes / 512).checked_sub(16).map(|sector| sector / 8 * 4096);
    let v0_90 = (size_bytes / 65536).checked_sub(1).map(|unit| unit * 65536);
    let found = in_tail(v1_0, &MAGIC.to_le_bytes())
        || in_tail(v0_90, &MAGIC.to_le_bytes())
        || in_tail(v0_90, &MAGIC.to_be_bytes());
    found.then_some("md")
}

/// Firmware RAID: Intel in the last but one sector, DDF in the last.
fn raid_at_end(tail: &[u8]) -> Option<&'static str> {
    let from_end = |bytes: usize, magic: &[u8]| {
        tail.len().checked_sub(bytes).is_some_and(|start| at(tail, start, magic))
    };
    if from_end(1024, b"Intel Raid ISM Cfg Sig. ") {
        Some("Intel RAID")
    } else if from_end(512, &0xde11_de11_u32.to_be_bytes()) {
        Some("DDF RAID")
    } else {
        None
    }
}

/// ZFS: four labels of 256 KiB, two at each end; in the second half of each the uberblocks, 1 KiB
/// apart or more.
fn zfs(head: &[u8], tail: &[u8], tail_start: u64, size_bytes: u64) -> Option<&'static str> {
    const LABEL_BYTES: usize = 256 << 10;
    const UBERBLOCK: u64 = 0x00ba_b10c;
    let label = |window: &[u8], start: usize| {
        (start + LABEL_BYTES / 2..start + LABEL_BYTES).step_by(1024).any(|offset| {
            at(window, offset, &UBERBLOCK.to_le_bytes()) || at(window, offset, &UBERBLOCK.to_be_bytes())
        })
    };
    let end = size_bytes / LABEL_BYTES as u64 * LABEL_BYTES as u64;
    let found = ZFS_LABELS.iter().any(|which| label(head, which * LABEL_BYTES))
        || ZFS_LABELS.iter().any(|which| {
            let start = end.checked_sub(((which + 1) * LABEL_BYTES) as u64);
            let start = start.and_then(|start| start.checked_sub(tail_start));
            start.and_then(|start| usize::try_from(start).ok()).is_some_and(|start| label(tail, start))
        });
    found.then_some("ZFS")
}

/// GPT header in the second or last block (of 512 or 4096 bytes), or an MBR with at least
/// one plausible entry.
fn partition_table(head: &[u8], tail: &[u8]) -> Option<&'static str> {
    const GPT: &[u8] = b"EFI PART";
    let backup = |block| tail.len().checked_sub(block).is_some_and(|start| at(tail, start, GPT));
    if at(head, 512, GPT) || at(head, 4096, GPT) || backup(512) || backup(4096) {
        return Some("GPT partition table");
    }
    let entries = head.get(446..510)?.chunks_exact(16);
    let plausible = |entry: &[u8]| matches!(entry, [0x00 | 0x80, _, _, _, kind, ..] if *kind != 0);
    let table = at(head, 510, &[0x55, 0xaa]) && entries.into_iter().any(plausible);
    table.then_some("MBR partition table")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 4 << 20;

    /// A device of 4 MiB with `magic` at `offset` is taken for `name`, and one with a byte of it
    /// changed for nothing.
    fn is(name: &str, parts: &[(usize, &[u8])]) {
        let mut device = vec![0u8; SIZE];
        for (offset, bytes) in parts {
            device[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        let window = WINDOW_BYTES as usize;
        let look = |device: &[u8]| detect(&device[..window], &device[SIZE - window..], SIZE as u64);
        assert_eq!(look(&device), Some(name), "{parts:?}");
        device[parts[0].0] ^= 0xff;
        assert_eq!(look(&device), None, "{parts:?} without its first byte");
    }

    #[test]
    fn every_fixed_magic_is_found() {
        for (name, offset, magic) in FIXED {
            is(name, &[(*offset, magic)]);
        }
    }

    #[test]
    fn file_systems_of_the_ext_family_are_told_apart() {
        let magic: (usize, &[u8]) = (1024 + 56, &[0x53, 0xef]);
        is("ext2", &[magic]);
        is("ext3", &[magic, (1024 + 92, &[4])]);
        is("ext4", &[magic, (1024 + 92, &[4]), (1024 + 96, &[0x40])]);
    }

    #[test]
    fn volume_managers_and_swap() {
        is("LVM2", &[(512, b"LABELONE")]);
        is("LVM2", &[(1536, b"LABELONE")]);
        is("swap", &[(4086, b"SWAPSPACE2")]);
        is("swap", &[(65526, b"SWAP-SPACE")]);
        let magic = 0xa92b_4efc_u32.to_le_bytes();
        for offset in [0, 4096, SIZE - 8192, SIZE - 65536] {
            is("md", &[(offset, &magic)]);
        }
        is("Intel RAID", &[(SIZE - 1024, b"Intel Raid ISM Cfg Sig. ")]);
        is("DDF RAID", &[(SIZE - 512, b"\xde\x11\xde\x11")]);
    }

    #[test]
    fn every_zfs_label_in_either_byte_order() {
        let label = 256 << 10;
        for start in [0, label, SIZE - 2 * label, SIZE - label] {
            is("ZFS", &[(start + label / 2 + 7 * 1024, b"\x0c\xb1\xba\0\0\0\0\0")]);
            is("ZFS", &[(start + label - 1024, b"\0\0\0\0\0\xba\xb1\x0c")]);
        }
    }

    #[test]
    fn partition_tables() {
        is("GPT partition table", &[(512, b"EFI PART")]);
        is("GPT partition table", &[(4096, b"EFI PART")]);
        is("GPT partition table", &[(SIZE - 512, b"EFI PART")]);
        is("MBR partition table", &[(510, b"\x55\xaa"), (446 + 16 + 4, b"\x83")]);
        is("FAT", &[(82, b"FAT32   "), (510, b"\x55\xaa")]);
    }

    #[test]
    fn empty_tiny_and_blank_devices_have_none() {
        assert_eq!(detect(&[], &[], 0), None);
        for size in [1usize, 511, 512, 4096, 65536] {
            assert_eq!(detect(&vec![0; size], &vec![0; size], size as u64), None);
            detect(&vec![0xff; size], &vec![0xff; size], size as u64);
        }
    }
}
