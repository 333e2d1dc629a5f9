//! The server: listening sockets, one thread that serves all clients and drives the store, and the hooks of
//! whoever runs it.

mod client;
mod progress;
mod reactor;

pub use progress::PROGRESS_BYTES;

use crate::desk::Desk;
use crate::fault::Fault;
use crate::{Limits, Settings};
use front::{Flow, Guard, Interest, Listening, Meter, ServerError};
use kv::ask::Keys;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

/// A store that says when it is to be driven.
pub trait Driven: Keys {
    /// Readable when it can go on; must stay the same while the server runs, and [`Keys::drive`] must make it
    /// unreadable.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;

    /// In how many nanoseconds it wants to be driven again by itself; `None`: only on events.
    fn idle_for(&self) -> Option<u64>;
}

impl Driven for crate::memory::MemoryKeys {
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn idle_for(&self) -> Option<u64> {
        None
    }
}

/// The caller's part in the loop: file descriptors of its own and whatever it wants to do between turns. All
/// methods have harmless defaults. The same as [`front::Hooks`] are to a server of a volume.
pub trait Hooks<K: Driven> {
    /// The file descriptors to watch. Asked at the start and after each [`Flow::Rewatch`].
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        let _ = out;
    }

    /// One of them is ready. It is reported again until the cause is gone; it must not block.
    fn on_ready(&mut self, fd: RawFd, keys: &mut K) -> Flow {
        let (_, _) = (fd, keys);
        Flow::Continue
    }

    /// Called once per turn; must be cheap.
    fn on_turn(&mut self, keys: &mut K, desk: &Desk) -> Flow {
        let (_, _) = (keys, desk);
        Flow::Continue
    }

    /// In how many nanoseconds `on_turn` wants to be called at the latest.
    fn idle_for(&self) -> Option<u64> {
        None
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

impl<K: Driven> Hooks<K> for NoHooks {}

/// What a server did from start to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Connections taken.
    pub connections: u64,
    /// Connections refused or closed for a fault of the client or its socket.
    pub faults: u64,
    /// Commands carried out.
    pub commands: u64,
    /// Of those, with an error; and commands that there are not.
    pub errors: u64,
    /// Questions that the store had not answered when the time for stopping ran out.
    pub abandoned: usize,
}

/// See the module's documentation.
pub struct Server {
    limits: Limits,
    settings: Settings,
    listening: Vec<Listening>,
    meter: Arc<Meter>,
}

impl Server {
    /// A server that listens nowhere yet.
    pub fn new(limits: Limits, settings: Settings) -> Self {
        Self { limits, settings, listening: Vec::new(), meter: Arc::default() }
    }

    /// Listens on a unix socket. The socket file of a dead server is replaced; ours is removed at the end.
    pub fn listen_unix(&mut self, path: &Path) -> Result<(), ServerError> {
        self.listening.push(Listening::unix(path)?);
        Ok(())
    }

    /// Listens on `host:port`; port 0 takes a free one. Returns what was bound.
    pub fn listen_tcp(&mut self, address: &str, guard: Guard) -> Result<SocketAddr, ServerError> {
        let (listening, bound) = Listening::tcp(address, guard)?;
        self.listening.push(listening);
        Ok(bound)
    }

    /// Takes clients at a unix socket that somebody else has bound, and whose file is theirs.
    pub fn take_unix(&mut self, socket: UnixListener) -> std::io::Result<()> {
        self.listening.push(Listening::bound_unix(socket)?);
        Ok(())
    }

    /// Takes clients at a socket of the network that somebody else has bound.
    pub fn take_tcp(&mut self, socket: TcpListener, guard: Guard) -> std::io::Result<()> {
        self.listening.push(Listening::bound_tcp(socket, guard)?);
        Ok(())
    }

    /// What its clients read, write and make durable, and how long they wait, at any time.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Serves until a hook or a client says stop: then nothing new is accepted, commands that came are
    /// answered (for at most [`Limits::stop_timeout_ns`]), connections and sockets are closed.
    pub fn run<K: Driven, H: Hooks<K>>(
        &mut self,
        keys: &mut K,
        hooks: &mut H,
    ) -> Result<Summary, ServerError> {
        if self.listening.is_empty() {
            return Err(ServerError::NoListener);
        }
        let listening = std::mem::take(&mut self.listening);
        let mut desk = Desk::new(self.limits, self.settings.clone(), reactor::now_ms());
        desk.meter = Arc::clone(&self.meter);
        reactor::run(listening, desk, keys, hooks)
    }
}
