//! A listening socket and what is spoken on it.

use super::listening::Listening;
use super::{Guard, Protocol, ServerError};
use crate::Tls;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// See the module's documentation.
pub(super) struct Listener {
    pub protocol: Protocol,
    /// Whether there is a client, where there may be one only.
    pub taken: Option<Arc<AtomicBool>>,
    listening: Listening,
}

impl Listener {
    pub(super) fn unix(protocol: Protocol, path: &Path) -> Result<Self, ServerError> {
        Ok(Self::new(protocol, Listening::unix(path)?))
    }

    pub(super) fn tcp(
        protocol: Protocol,
        address: &str,
        guard: Guard,
    ) -> Result<(Self, SocketAddr), ServerError> {
        let (listening, bound) = Listening::tcp(address, guard)?;
        Ok((Self { protocol, taken: None, listening }, bound))
    }

    /// A socket in the file system that somebody else has bound.
    pub(super) fn bound_unix(protocol: Protocol, socket: UnixListener) -> io::Result<Self> {
        Ok(Self::new(protocol, Listening::bound_unix(socket)?))
    }

    /// One of the network that somebody else has bound.
    pub(super) fn bound_tcp(protocol: Protocol, socket: TcpListener, guard: Guard) -> io::Result<Self> {
        Ok(Self { protocol, taken: None, listening: Listening::bound_tcp(socket, guard)? })
    }

    fn new(protocol: Protocol, listening: Listening) -> Self {
        Self { protocol, taken: protocol.is_for_one().then(Arc::default), listening }
    }

    /// The same socket once more, for another thread; a connection goes to whoever takes it first.
    pub(super) fn share(&self) -> io::Result<Self> {
        let (protocol, taken, listening) = (self.protocol, self.taken.clone(), self.listening.share()?);
        Ok(Self { protocol, taken, listening })
    }

    /// How its connections are encrypted.
    pub(super) fn tls(&self) -> Option<Tls> {
        self.listening.tls()
    }
}

impl AsRef<Listening> for Listener {
    fn as_ref(&self) -> &Listening {
        &self.listening
    }
}
