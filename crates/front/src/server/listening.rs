//! Listening sockets, whatever is spoken on them, and the socket files that unix ones leave behind.

use super::{Guard, ServerError};
use crate::Tls;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a unix socket may hold for a client; TCP sizes its buffers itself.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// How long a client of the network may say nothing before it is asked whether it is there; with no answer to
/// three questions it is gone.
const SILENCE: Duration = Duration::from_secs(300);

/// A listening socket, and who may come in there.
pub struct Listening {
    socket: Socket,
    guard: Guard,
}

/// Who has come.
pub struct Arrival {
    /// Its connection, which does not block.
    pub socket: OwnedFd,
    /// Where it comes from.
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
struct SocketFile {
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

impl Listening {
    /// At a unix socket. The socket file of a dead server is replaced; ours is removed at the end.
    pub fn unix(path: &Path) -> Result<Self, ServerError> {
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
        Ok(Self { guard: Guard::default(), socket: Socket::Unix { socket, file: Some(Arc::new(file)) } })
    }

    /// At `host:port`; port 0 takes a free one. With what was bound.
    pub fn tcp(address: &str, guard: Guard) -> Result<(Self, SocketAddr), ServerError> {
        let listen_error = |source| ServerError::Listen { address: address.to_owned(), source };
        let socket = TcpListener::bind(address).map_err(listen_error)?;
        socket.set_nonblocking(true).map_err(listen_error)?;
        let bound = socket.local_addr().map_err(listen_error)?;
        Ok((Self { guard, socket: Socket::Tcp { socket } }, bound))
    }

    /// At a socket in the file system that somebody else has bound.
    pub fn bound_unix(socket: UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { guard: Guard::default(), socket: Socket::Unix { socket, file: None } })
    }

    /// At one of the network that somebody else has bound.
    pub fn bound_tcp(socket: TcpListener, guard: Guard) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { guard, socket: Socket::Tcp { socket } })
    }

    /// The same socket once more, for another thread; a connection goes to whoever takes it first.
    pub fn share(&self) -> io::Result<Self> {
        let socket = match &self.socket {
            Socket::Unix { socket, file } => Socket::Unix { socket: socket.try_clone()?, file: file.clone() },
            Socket::Tcp { socket } => Socket::Tcp { socket: socket.try_clone()? },
        };
        Ok(Self { socket, guard: self.guard.clone() })
    }

    /// How its connections are encrypted.
    pub fn tls(&self) -> Option<Tls> {
        self.guard.rules().tls.clone()
    }

    /// Takes the next connection, not blocking, and says who it is.
    pub fn accept(&self) -> io::Result<Arrival> {
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
                ask_after(&stream);
                let allowed = self.guard.allows(peer.ip());
                Ok(Arrival { socket: stream.into(), peer: peer.to_string(), allowed })
            }
        }
    }
}

/// Has the kernel ask a client that says nothing whether it is there: who is gone without a word would keep
/// its place for ever.
fn ask_after(stream: &TcpStream) {
    let _ = sockopt::set_tcp_keepidle(stream, SILENCE)
        .and_then(|()| sockopt::set_tcp_keepintvl(stream, SILENCE / 3))
        .and_then(|()| sockopt::set_tcp_keepcnt(stream, 3))
        .and_then(|()| sockopt::set_socket_keepalive(stream, true));
}

impl AsRef<Self> for Listening {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsFd for Listening {
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
