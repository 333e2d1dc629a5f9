//! What a loop that serves clients waits for, beside them: listening sockets, and descriptors of its caller.

use super::Interest;
use rustix::event::epoll;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A new set of descriptors that are waited for.
pub fn create_epoll() -> io::Result<OwnedFd> {
    Ok(epoll::create(epoll::CreateFlags::CLOEXEC)?)
}

/// Waits for a descriptor, too; `token` tells which it is.
pub fn add(epoll: &OwnedFd, fd: impl AsFd, token: u64, flags: epoll::EventFlags) -> io::Result<()> {
    Ok(epoll::add(epoll, fd, epoll::EventData::new_u64(token), flags)?)
}

/// Whether the system gives this process no more of something now, and may later.
pub fn is_shortage(error: &io::Error) -> bool {
    let found = Errno::from_io_error(error);
    found.is_some_and(|found| matches!(found, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOSPC))
}

/// Waits for all listening sockets or, after an error, for none of them: who comes to some of them would be
/// reported again and again, and not be accepted. Socket `i` has token `token - i`.
pub fn watch_listening(epoll: &OwnedFd, sockets: &[impl AsFd], token: u64) -> io::Result<()> {
    let watched = sockets.iter().zip(0..).try_for_each(|(socket, index)| {
        match add(epoll, socket, token - index, epoll::EventFlags::IN) {
            // It is waited for still.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            added => added,
        }
    });
    if watched.is_err() {
        for socket in sockets {
            let _ = epoll::delete(epoll, socket);
        }
    }
    watched
}

/// Waits for a caller's descriptors as for one, which has this token. If that cannot be now, there is none:
/// clients are served all the same.
pub fn watch_caller(
    epoll: &OwnedFd,
    token: u64,
    fds: Vec<(impl AsFd + AsRawFd, Interest)>,
) -> io::Result<Option<OwnedFd>> {
    match try_watch_caller(epoll, token, fds) {
        Ok(extra) => Ok(Some(extra)),
        Err(error) if is_shortage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn try_watch_caller(
    epoll: &OwnedFd,
    token: u64,
    fds: Vec<(impl AsFd + AsRawFd, Interest)>,
) -> io::Result<OwnedFd> {
    let extra = create_epoll()?;
    for (fd, interest) in fds {
        let flags = match interest {
            Interest::Read => epoll::EventFlags::IN,
            Interest::Write => epoll::EventFlags::OUT,
            Interest::ReadWrite => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        };
        let its_token = u64::try_from(fd.as_raw_fd()).expect("file descriptors are not negative");
        add(&extra, fd, its_token, flags)?;
    }
    add(epoll, &extra, token, epoll::EventFlags::IN)?;
    Ok(extra)
}
