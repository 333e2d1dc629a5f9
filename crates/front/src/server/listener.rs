//! Listening sockets, and the socket files that unix ones leave behind.

use super::{Guard, Protocol, ServerError};
use crate::Tls;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a unix socket may hold for a client; TCP sizes its buffers itself.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// A listening socket and what is spoken on it.
pub(super) struct Listener {
    pub protocol: Protocol,
    /// Whether there is a client, where there may be one only.
    pub taken: Option<Arc<AtomicBool>>,
    socket: Socket,
    guard: Arc<Guard>,
}

/// Who has come.
pub(super) struct Arrival {
    pub socket: OwnedFd,
    pub peer: String,
    /// Whether he may come in.
    pub allowed: bool,
}

enum Socket {
    /// The file of one that somebody else has bound is theirs.
    Unix {
        socket: UnixListener,
        file: Option<Arc<SocketFile>>,
    },
    Tcp {
        socket: TcpListener,
    },
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
        let taken = protocol.is_for_one().then(Arc::default);
        Ok(Self {
            protocol,
            taken,
            guard: Arc::default(),
            socket: Socket::Unix { socket, file: Some(Arc::new(file)) },
        })
    }

    pub(super) fn tcp(
        protocol: Protocol,
        address: &str,
        guard: Guard,
    ) -> Result<(Self, SocketAddr), ServerError> {
        let listen_error = |source| ServerError::Listen { address: address.to_owned(), source };
        let socket = TcpListener::bind(address).map_err(listen_error)?;
        socket.set_nonblocking(true).map_err(listen_error)?;
        let bound = socket.local_addr().map_err(listen_error)?;
        let guard = Arc::new(guard);
        Ok((Self { protocol, taken: None, guard, socket: Socket::Tcp { socket } }, bound))
    }

    /// A socket in the file system that somebody else has bound.
    pub(super) fn bound_unix(protocol: Protocol, socket: UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let taken = protocol.is_for_one().then(Arc::default);
        Ok(Self { protocol, taken, guard: Arc::default(), socket: Socket::Unix { socket, file: None } })
    }

    /// One of the network that somebody else has bound.
    pub(super) fn bound_tcp(protocol: Protocol, socket: TcpListener, guard: Guard) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { protocol, taken: None, guard: Arc::new(guard), socket: Socket::Tcp { socket } })
    }

    /// The same socket once more, for another thread; a connection goes to whoever takes it first.
    pub(super) fn share(&self) -> io::Result<Self> {
        let socket = match &self.socket {
            Socket::Unix { socket, file } => Socket::Unix { socket: socket.try_clone()?, file: file.clone() },
            Socket::Tcp { socket } => Socket::Tcp { socket: socket.try_clone()? },
        };
        Ok(Self {
            protocol: self.protocol,
            taken: self.taken.clone(),
            guard: Arc::clone(&self.guard),
            socket,
        })
    }

    /// How its connections are encrypted.
    pub(super) fn tls(&self) -> Option<&Tls> {
        self.guard.tls.as_ref()
    }

    /// Takes the next connection, not blocking, and says who it is.
    pub(super) fn accept(&self) -> io::Result<Arrival> {
        match &self.socket {
            Socket::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                // Large replies leave in fewer, larger turns: +25 % and more on 1 MiB reads. Only a wish:
                // the system caps it, and the default works, too.
                let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES);
                stream.set_nonblocking(true)?;
                Ok(Arrival { socket: stream.into(), peer: "unix client".to_owned(), allowed: true })
            }
            Socket::Tcp { socket } => {
                let (stream, peer) = socket.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                let allowed = self.guard.allows(peer.ip());
                Ok(Arrival { socket: stream.into(), peer: peer.to_string(), allowed })
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
