//! The commands that drives answer with a page.
#![allow(unsafe_code, reason = "the kernel reads and writes memory that it is given by address")]

use super::ata::{PAGES, Page};
use super::{PAGE_BYTES, place};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A drive that does not answer within this time says nothing.
const TIMEOUT_MS: u32 = 5_000;

/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`, 72 bytes.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xC048_4E41;
const NVME_GET_LOG_PAGE: u8 = 2;
/// The page on health, and how many words of it after the first one.
const NVME_HEALTH: u32 = 2 | (127 << 16);
/// The controller as a whole.
const NVME_ALL_NAMESPACES: u32 = u32::MAX;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
struct NvmeCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const SG_IO: libc::Ioctl = 0x2285;
/// The letter S.
const SG_INTERFACE: i32 = 0x53;
const SG_FROM_DEVICE: i32 = -3;
const SENSE_BYTES: usize = 32;

/// `struct sg_io_hdr`.
#[repr(C)]
struct ScsiCommand {
    interface: i32,
    direction: i32,
    command_bytes: u8,
    sense_bytes_max: u8,
    pieces: u16,
    data_bytes: u32,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack: i32,
    user: *mut u8,
    /// The target's status, the same without its lowest bit, the bus's message, bytes of sense data.
    statuses: [u8; 4],
    /// The host adapter's status, the driver's.
    host_statuses: [u16; 2],
    residue: i32,
    duration: u32,
    info: u32,
}

/// The page on health of an NVMe drive.
pub(super) fn nvme(node: &Path) -> Result<Box<[u8; PAGE_BYTES]>, String> {
    let file = open(node)?;
    let mut page = Box::new([0u8; PAGE_BYTES]);
    let mut command = NvmeCommand {
        opcode: NVME_GET_LOG_PAGE,
        namespace: NVME_ALL_NAMESPACES,
        address: u64::try_from(page.as_mut_ptr().expose_provenance())
            .expect("an address has 64 bits at most"),
        data_bytes: u32::try_from(PAGE_BYTES).expect("a page is short"),
        timeout_ms: TIMEOUT_MS,
        ..NvmeCommand::default()
    };
    command.words_10_15[0] = NVME_HEALTH;
    // SAFETY: the kernel reads and writes `command`, whose layout is the one that goes with this number, and
    // the page that it names the address and length of. Both outlive the call, and it touches neither later.
    // JUSTIFICATION: there is no other way to ask for it, and no type says how long an address is good for.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut command) };
    match answer {
        0 => Ok(page),
        1.. => Err(format!("it refuses to tell of its wear (NVMe status {answer:#x})")),
        _ => Err(refusal(&io::Error::last_os_error())),
    }
}

/// Pages of the statistics of a SATA drive, as many as it has.
pub(super) fn ata(node: &Path) -> Result<Vec<Page>, String> {
    let file = open(node)?;
    let sector_bytes = place::sector_bytes(node).ok_or("the size of its sectors is not known")?;
    let mut why = None;
    let mut pages = Vec::new();
    for number in PAGES {
        match statistics(&file, number) {
            Ok(bytes) => pages.push(Page { bytes, sector_bytes }),
            Err(error) => drop(why.get_or_insert(error)),
        }
    }
    match why {
        Some(why) if pages.is_empty() => Err(why),
        Some(_) | None => Ok(pages),
    }
}

/// A page of the log on device statistics, by READ LOG EXT within ATA PASS-THROUGH (16).
fn statistics(file: &File, number: u8) -> Result<Box<[u8; PAGE_BYTES]>, String> {
    let mut page = Box::new([0u8; PAGE_BYTES]);
    let mut sense = [0u8; SENSE_BYTES];
    // Data comes in by programmed I/O, as many blocks as the count says; log 4, page `number`.
    let words: [u8; 16] = [0x85, 4 << 1 | 1, 0x0e, 0, 0, 0, 1, 0, 4, 0, number, 0, 0, 0, 0x2f, 0];
    let mut command = ScsiCommand {
        interface: SG_INTERFACE,
        direction: SG_FROM_DEVICE,
        command_bytes: 16,
        sense_bytes_max: 32,
        pieces: 0,
        data_bytes: u32::try_from(PAGE_BYTES).expect("a page is short"),
        data: page.as_mut_ptr(),
        command: words.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: TIMEOUT_MS,
        flags: 0,
        pack: 0,
        user: std::ptr::null_mut(),
        statuses: [0; 4],
        host_statuses: [0; 2],
        residue: 0,
        duration: 0,
        info: 0,
    };
    // SAFETY: the kernel reads and writes `command`, whose layout is the one that goes with this number,
    // reads the 16 bytes of `words`, and writes no more to `page` and `sense` than the lengths that go with
    // them say. All outlive the call, and it touches none of them later.
    // JUSTIFICATION: there is no other way to ask for it, and no type says how long an address is good for.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), SG_IO, &raw mut command) };
    if answer != 0 {
        return Err(refusal(&io::Error::last_os_error()));
    }
    match (command.statuses[0], command.host_statuses) {
        (0, [0, 0]) if command.residue == 0 => Ok(page),
        (status, [host, driver]) => {
            Err(format!("it has no statistics of its life (SCSI status {status:#x}, {host:#x}, {driver:#x})"))
        }
    }
}

/// Reading is enough to ask, and nobody else is kept out. A drive that is not there is not waited for.
fn open(node: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(node);
    opened.map_err(|error| refusal(&error))
}

fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!("{error}; root may ask it"),
        Some(libc::ENOTTY | libc::EINVAL) => "it takes no such question".to_owned(),
        Some(_) | None => error.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_finds_what_it_is_given() {
        assert_eq!(size_of::<NvmeCommand>(), 72);
        assert_eq!(std::mem::offset_of!(NvmeCommand, address), 24);
        assert_eq!(std::mem::offset_of!(NvmeCommand, words_10_15), 40);
        assert_eq!(size_of::<ScsiCommand>(), 88);
        assert_eq!(std::mem::offset_of!(ScsiCommand, command), 24);
        assert_eq!(std::mem::offset_of!(ScsiCommand, statuses), 64);
    }

    #[test]
    fn what_takes_no_such_question_says_so() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(nvme(file.path()).unwrap_err(), "it takes no such question");
        assert!(nvme(Path::new("/nowhere")).is_err());
        assert_eq!(statistics(file.as_file(), 7).unwrap_err(), "it takes no such question");
    }
}
