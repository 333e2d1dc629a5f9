//! The server: listeners, the reactor and the hooks of whoever runs it.

mod client;
mod listener;
mod listening;
mod reactor;
mod stream;
mod usher;
pub mod watching;

use crate::session::Fault;
use crate::{Counters, Export, Limits, Meter, Network, Tls, Volume};
use listener::Listener;
pub use listening::{Arrival, Listening};
use reactor::Work;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
pub use usher::{Places, Usher};

/// What went wrong with the server itself (not with a client).
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Another server answers on the path.
    #[error("{}: in use by a running server; stop it or choose another socket path", path.display())]
    Busy {
        /// The socket.
        path: PathBuf,
    },
    /// The path is something else than a socket; it is left alone.
    #[error("{}: exists and is not a socket; remove it or choose another socket path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// An address cannot be listened on.
    #[error("{address}: cannot listen: {source}")]
    Listen {
        /// Path or host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing to listen on was given.
    #[error("no address to listen on")]
    NoListener,
    /// The volume's chunks do not fit into its pool's slots, or the chunk size is not a power of two.
    #[error(
        "chunks of {chunk_bytes} bytes in slots of {slot_bytes} bytes: expected a power of two that fits"
    )]
    ChunkSize {
        /// The volume's chunks.
        chunk_bytes: usize,
        /// The pool's slots.
        slot_bytes: usize,
    },
    /// Waiting for events failed.
    #[error("waiting for events: {0}")]
    Events(#[from] std::io::Error),
}

/// Who may come in by TCP, and how.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Encryption, without which nothing is said to clients.
    pub tls: Option<Tls>,
    /// The networks that may connect; without any, all.
    pub allowed: Vec<Network>,
}

impl Rules {
    /// Whether they turn nobody away: neither a certificate is asked for nor the network looked at.
    pub fn admit_all(&self) -> bool {
        self.allowed.is_empty() && !self.tls.as_ref().is_some_and(Tls::knows_clients)
    }
}

/// Asks whoever comes by TCP. Its clones go by the same rules, also when these are replaced.
#[derive(Clone, Debug, Default)]
pub struct Guard(Arc<Mutex<Arc<Rules>>>);

impl Guard {
    /// One that goes by these rules.
    pub fn new(rules: Rules) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(rules))))
    }

    /// The rules of now.
    pub fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Others, for those who come from now on.
    pub fn replace(&self, rules: Rules) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// Whether a client may come from there.
    fn allows(&self, address: IpAddr) -> bool {
        let rules = self.rules();
        rules.allowed.is_empty() || rules.allowed.iter().any(|network| network.contains(address))
    }
}

/// What is spoken on a listening socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// The network block device.
    Nbd,
    /// A virtio block device over shared memory.
    #[cfg(feature = "vhost-user")]
    VhostUserBlk,
}

impl Protocol {
    /// Whether a socket of it serves one client at a time.
    fn is_for_one(self) -> bool {
        match self {
            Self::Nbd => false,
            #[cfg(feature = "vhost-user")]
            Self::VhostUserBlk => true,
        }
    }
}

/// What to export and how much clients may ask for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerOptions {
    /// Name of the export; clients may also use the empty name.
    pub export_name: String,
    /// Free text.
    pub description: String,
    /// What tells the volume from others, for protocols that have no room for a name.
    pub serial: [u8; 20],
    /// Bounds.
    pub limits: Limits,
}

/// What the server is to do next, as decided by a hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Go on, and ask for [`Hooks::extra_fds`] again.
    Rewatch,
    /// Stop gracefully.
    Stop,
}

/// What to wait for on a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Readable (also: hung up).
    Read,
    /// Writable.
    Write,
    /// Either.
    ReadWrite,
}

/// The caller's part in the reactor: its own file descriptors (signals, control sockets, child processes) and
/// whatever it wants to do between turns. All methods have harmless defaults.
pub trait Hooks<V: Volume> {
    /// The file descriptors to watch. Asked at the start and after each [`Flow::Rewatch`].
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        let _ = out;
    }

    /// One of them is ready. It is reported again until the cause is gone; it must not block.
    fn on_ready(&mut self, fd: RawFd, volume: &mut V) -> Flow {
        let (_, _) = (fd, volume);
        Flow::Continue
    }

    /// Called once per turn; must be cheap.
    fn on_turn(&mut self, volume: &mut V) -> Flow {
        let _ = volume;
        Flow::Continue
    }

    /// In how many nanoseconds `on_turn` wants to be called at the latest.
    fn idle_for(&self) -> Option<u64> {
        None
    }

    /// Whether a client that wants in may come in here; if not, it is asked again soon. For servers that
    /// share their sockets.
    fn may_accept(&mut self) -> bool {
        true
    }

    /// So many clients are connected now; called whenever that changes.
    fn on_clients(&mut self, count: usize) {
        let _ = count;
    }

    /// A client was disconnected because of `fault`.
    fn on_fault(&mut self, peer: &str, fault: &Fault) {
        let (_, _) = (peer, fault);
    }
}

/// Hooks that do nothing; the server then runs for ever.
pub struct NoHooks;

impl<V: Volume> Hooks<V> for NoHooks {}

/// What a server did from start to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Connections taken.
    pub connections: u64,
    /// Connections closed because of a fault of the client or its socket.
    pub faults: u64,
    /// Requests.
    pub counters: Counters,
    /// Parts of requests that the volume had not finished when the time for stopping ran out.
    pub abandoned: usize,
}

impl Summary {
    /// With what another thread of the same server did.
    pub fn and(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            faults: self.faults + other.faults,
            counters: self.counters.and(other.counters),
            abandoned: self.abandoned + other.abandoned,
        }
    }
}

/// A server of one volume, by one or more protocols.
pub struct Server {
    options: ServerOptions,
    listeners: Vec<Listener>,
    /// Queues of block devices.
    #[cfg(feature = "ublk")]
    disks: Vec<crate::ublk::Served>,
    meter: Arc<Meter>,
}

impl Server {
    /// A server that listens nowhere yet.
    pub fn new(options: ServerOptions) -> Self {
        Self {
            options,
            listeners: Vec::new(),
            #[cfg(feature = "ublk")]
            disks: Vec::new(),
            meter: Arc::default(),
        }
    }

    /// Serves queues of block devices as well, on the thread that [runs](Self::run) this server.
    #[cfg(feature = "ublk")]
    pub fn serve_disks(&mut self, disks: impl IntoIterator<Item = crate::ublk::Served>) {
        self.disks.extend(disks);
    }

    /// Whether nobody can come, and no block device is served.
    fn has_nothing_to_serve(&self) -> bool {
        #[cfg(feature = "ublk")]
        if !self.disks.is_empty() {
            return false;
        }
        self.listeners.is_empty()
    }

    /// Listens on a unix socket. The socket file of a dead server is replaced; ours is removed at the end.
    pub fn listen_unix(&mut self, protocol: Protocol, path: &Path) -> Result<(), ServerError> {
        self.listeners.push(Listener::unix(protocol, path)?);
        Ok(())
    }

    /// Listens on `host:port`; port 0 takes a free one. Returns what was bound.
    pub fn listen_tcp(
        &mut self,
        protocol: Protocol,
        address: &str,
        guard: Guard,
    ) -> Result<SocketAddr, ServerError> {
        let (listener, bound) = Listener::tcp(protocol, address, guard)?;
        self.listeners.push(listener);
        Ok(bound)
    }

    /// Takes clients at a unix socket that somebody else has bound, and whose file is theirs.
    pub fn take_unix(&mut self, protocol: Protocol, socket: UnixListener) -> std::io::Result<()> {
        self.listeners.push(Listener::bound_unix(protocol, socket)?);
        Ok(())
    }

    /// Takes clients at a socket of the network that somebody else has bound.
    pub fn take_tcp(&mut self, protocol: Protocol, socket: TcpListener, guard: Guard) -> std::io::Result<()> {
        self.listeners.push(Listener::bound_tcp(protocol, socket, guard)?);
        Ok(())
    }

    /// What its clients ask for and how long they wait, at any time.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// A server that listens where this one does, for another thread. The sockets close with the last of
    /// them.
    pub fn share(&self) -> std::io::Result<Self> {
        let listeners = self.listeners.iter().map(Listener::share).collect::<std::io::Result<_>>()?;
        Ok(Self { listeners, ..Self::new(self.options.clone()) })
    }

    /// The same, for one of so many threads, which gets its share of the queues of block devices.
    pub fn share_for(&mut self, thread: usize, threads: usize) -> std::io::Result<Self> {
        debug_assert!(thread < threads);
        #[cfg_attr(not(feature = "ublk"), expect(unused_mut, reason = "nothing is added then"))]
        let mut share = self.share()?;
        #[cfg(feature = "ublk")]
        share
            .disks
            .extend(self.disks.extract_if(.., |disk| usize::from(disk.queue.index()) % threads == thread));
        Ok(share)
    }

    fn export(&self, volume: &dyn Volume) -> Export {
        let ServerOptions { export_name, description, serial, .. } = &self.options;
        Export { serial: *serial, ..Export::new(export_name, description, volume) }
    }

    /// Runs a volume and its hooks without taking a client: others that listen here do that.
    pub fn attend<V: Volume, H: Hooks<V>>(
        &mut self,
        volume: &mut V,
        hooks: &mut H,
    ) -> Result<Summary, ServerError> {
        let work = Work {
            listeners: Vec::new(),
            #[cfg(feature = "ublk")]
            disks: Vec::new(),
            export: self.export(volume),
            limits: self.options.limits,
            meter: Arc::clone(&self.meter),
        };
        reactor::run(work, volume, hooks)
    }

    /// Serves until a hook says stop: then nothing new is accepted, requests in flight are answered (for at
    /// most [`Limits::stop_timeout_ns`]), connections and sockets are closed.
    pub fn run<V: Volume, H: Hooks<V>>(
        &mut self,
        volume: &mut V,
        hooks: &mut H,
    ) -> Result<Summary, ServerError> {
        if self.has_nothing_to_serve() {
            return Err(ServerError::NoListener);
        }
        let (chunk_bytes, slot_bytes) = (volume.chunk_bytes(), volume.pool().slot_bytes());
        if !chunk_bytes.is_power_of_two() || chunk_bytes > slot_bytes {
            return Err(ServerError::ChunkSize { chunk_bytes, slot_bytes });
        }
        let work = Work {
            listeners: std::mem::take(&mut self.listeners),
            #[cfg(feature = "ublk")]
            disks: std::mem::take(&mut self.disks),
            export: self.export(volume),
            limits: self.options.limits,
            meter: Arc::clone(&self.meter),
        };
        reactor::run(work, volume, hooks)
    }
}
