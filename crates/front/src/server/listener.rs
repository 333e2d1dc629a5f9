//! Listening sockets, and the socket files that unix ones leave behind.

use super::{Protocol, ServerError};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a unix socket may hold for a client; TCP sizes its buffers itself.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// A listening socket and what is spoken on it.
pub(super) struct Listener {
    pub protocol: Protocol,
    socket: Socket,
}

enum Socket {
    Unix { socket: UnixListener, file: Arc<SocketFile> },
    Tcp { socket: TcpListener },
}

/// A socket file; removed when dropped, if it is still ours.
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if ours {
            // Nothing can be done about a file that resists; the next server replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Listener {
    pub(super) fn unix(protocol: Protocol, path: &Path) -> Result<Self, ServerError> {
        let listen_error = |source| ServerError::Listen { address: path.display().to_string(), source };
        let socket = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_stale(path)?;
                UnixListener::bind(path)
            }
            bound => bound,
        }
        .map_err(listen_error)?;
        socket.set_nonblocking(true).map_err(listen_error)?;
        let found = std::fs::symlink_metadata(path).map_err(listen_error)?;
        let file = SocketFile { path: path.to_owned(), device: found.dev(), inode: found.ino() };
        Ok(Self { protocol, socket: Socket::Unix { socket, file: Arc::new(file) } })
    }

    pub(super) fn tcp(protocol: Protocol, address: &str) -> Result<(Self, SocketAddr), ServerError> {
        let listen_error = |source| ServerError::Listen { address: address.to_owned(), source };
        let socket = TcpListener::bind(address).map_err(listen_error)?;
        socket.set_nonblocking(true).map_err(listen_error)?;
        let bound = socket.local_addr().map_err(listen_error)?;
        Ok((Self { protocol, socket: Socket::Tcp { socket } }, bound))
    }

    /// The same socket once more, for another thread; a connection goes to whoever takes it first.
    pub(super) fn share(&self) -> io::Result<Self> {
        let socket = match &self.socket {
            Socket::Unix { socket, file } => {
                Socket::Unix { socket: socket.try_clone()?, file: Arc::clone(file) }
            }
            Socket::Tcp { socket } => Socket::Tcp { socket: socket.try_clone()? },
        };
        Ok(Self { protocol: self.protocol, socket })
    }

    /// Takes the next connection, not blocking, and says who it is.
    pub(super) fn accept(&self) -> io::Result<(OwnedFd, String)> {
        match &self.socket {
            Socket::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                // Large replies leave in fewer, larger turns: +25 % and more on 1 MiB reads. Only a wish:
                // the system caps it, and the default works, too.
                let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES);
                stream.set_nonblocking(true)?;
                Ok((stream.into(), "unix client".to_owned()))
            }
            Socket::Tcp { socket } => {
                let (stream, peer) = socket.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok((stream.into(), peer.to_string()))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix { socket, .. } => socket.as_fd(),
            Socket::Tcp { socket } => socket.as_fd(),
        }
    }
}

/// Removes a socket file nobody listens on. Connecting tells: refused means that the owner is gone.
fn remove_stale(path: &Path) -> Result<(), ServerError> {
    let listen_error =
        |source: io::Error| ServerError::Listen { address: path.display().to_string(), source };
    let found = std::fs::symlink_metadata(path).map_err(listen_error)?;
    if !found.file_type().is_socket() {
        return Err(ServerError::NotASocket { path: path.to_owned() });
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let probe = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|error| listen_error(error.into()))?;
    let address = SocketAddrUnix::new(path).map_err(|error| listen_error(error.into()))?;
    match rustix::net::connect(&probe, &address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(listen_error),
        Ok(()) | Err(Errno::AGAIN) => Err(ServerError::Busy { path: path.to_owned() }),
        Err(error) => Err(listen_error(error.into())),
    }
}
