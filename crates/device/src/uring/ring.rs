//! The ring itself: how it is made, its workers, the files it knows.

use super::options::{ENTRIES_POLLED, RingError, UringOptions};
use crate::member::{Members, Note};
use block::DevIndex;
use io_uring::IoUring;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};

/// Workers of the kernel that transfers of a set may keep busy; few of them run at a time.
const WORKERS: usize = 64;

/// How long the kernel's thread goes on looking when there is nothing more.
const POLL_IDLE_MS: u32 = 10;

/// Whether entering the ring is worth another try.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ENOMEM))
}

/// Transfers that cannot be started at once (files on most file systems, flushes) each take a worker of the
/// kernel's, and keep it while their device does not answer: the other devices' must not wait for that.
/// `stuck` are lost for good.
pub(super) fn set_workers(ring: &IoUring, stuck: usize) {
    let wanted = u32::try_from(WORKERS + stuck).unwrap_or(u32::MAX);
    // Kernels before 5.15 know no limit to be set.
    let _ = ring.submitter().register_iowq_max_workers(&mut [wanted, 0]);
}

/// The best ring this kernel gives, for so many transfers.
pub(super) fn build_ring(
    depth: u32,
    options: UringOptions,
    notes: &mut Vec<Note>,
) -> Result<IoUring, RingError> {
    let ring = if options.kernel_polls { build_polled(depth)? } else { build_entered(depth, notes)? };
    if ring.params().is_feature_ext_arg() { Ok(ring) } else { Err(RingError::TooOld) }
}

/// A ring that a thread of the kernel's polls. What ends in an interrupt is not deferred then, as nobody
/// enters the ring.
fn build_polled(depth: u32) -> Result<IoUring, RingError> {
    let entries = depth * ENTRIES_POLLED;
    let polled = IoUring::builder().setup_sqpoll(POLL_IDLE_MS).setup_single_issuer().build(entries);
    match polled {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().setup_sqpoll(POLL_IDLE_MS).build(entries).map_err(RingError::NoPolling)
        }
        polled => polled.map_err(RingError::NoPolling),
    }
}

/// A ring that is entered to submit.
fn build_entered(depth: u32, notes: &mut Vec<Note>) -> Result<IoUring, RingError> {
    let modern = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .build(depth);
    match modern {
        Ok(ring) => Ok(ring),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            notes.push(Note::RingWithoutDeferredWork);
            let cooperative = IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(depth);
            cooperative.or_else(|_| IoUring::new(depth)).map_err(RingError::Unavailable)
        }
        Err(error) => Err(RingError::Unavailable(error)),
    }
}

/// The file descriptor to register for a member; -1 stands for an empty place.
pub(super) fn registered_fd(members: &Members, index: usize) -> RawFd {
    let dev = u16::try_from(index).ok().map(DevIndex::new);
    dev.and_then(|dev| members.get(dev)).map_or(-1, |member| member.file().as_raw_fd())
}
