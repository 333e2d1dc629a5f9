//! The ring itself: how it is made, its workers, the files it knows.

use super::RingError;
use crate::member::{Members, Note};
use block::DevIndex;
use io_uring::IoUring;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};

/// Workers of the kernel that transfers of a set may keep busy; few of them run at a time.
const WORKERS: usize = 64;

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

/// The best ring this kernel gives.
pub(super) fn build_ring(depth: u32, notes: &mut Vec<Note>) -> Result<IoUring, RingError> {
    let modern = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .build(depth);
    let ring = match modern {
        Ok(ring) => ring,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            notes.push(Note::RingWithoutDeferredWork);
            let cooperative = IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(depth);
            cooperative.or_else(|_| IoUring::new(depth)).map_err(RingError::Unavailable)?
        }
        Err(error) => return Err(RingError::Unavailable(error)),
    };
    if ring.params().is_feature_ext_arg() { Ok(ring) } else { Err(RingError::TooOld) }
}

/// The file descriptor to register for a member; -1 stands for an empty place.
pub(super) fn registered_fd(members: &Members, index: usize) -> RawFd {
    let dev = u16::try_from(index).ok().map(DevIndex::new);
    dev.and_then(|dev| members.get(dev)).map_or(-1, |member| member.file().as_raw_fd())
}
