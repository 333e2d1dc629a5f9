//! Serves an assembled array until it is told to stop: over NBD, with a control socket beside it.
//!
//! Whatever can fail without the array being touched comes first ([`Endpoints::open`]), so that nothing is
//! assembled in vain.

use crate::assemble::Assembled;
use crate::control;
use crate::error::Error;
use crate::logbook::{Level, log, log_as};
use crate::notify::{self, notify};
use crate::offline::warn_of_loss;
use crate::open::{Locked, name_of};
use crate::operate::Operator;
use crate::reactions::Reactions;
use crate::registry::{ControlSocket, Record};
use crate::running::{Clients, Manner, Plant, Running};
use crate::signals::Signals;
use crate::sockets::Sockets;
use crate::steward::Steward;
use crate::volume::Use;
use front::{Protocol, Server, ServerOptions, Summary};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Where clients connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// HOST:PORT.
    Tcp(String),
}

/// `unix:PATH` or `tcp:HOST:PORT`.
pub fn parse_address(text: &str) -> Result<Address, String> {
    match text.split_once(':') {
        Some(("unix", path)) if !path.is_empty() => Ok(Address::Unix(PathBuf::from(path))),
        Some(("tcp", address))
            if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) =>
        {
            Ok(Address::Tcp(address.to_owned()))
        }
        _ => Err(format!("found {text:?}, expected unix:PATH or tcp:HOST:PORT")),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", absolute(path).display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// How an array is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    /// What clients may do.
    pub usage: Use,
    /// A shell command that is told of everything that happens to the array.
    pub on_event: Option<String>,
    /// A shell command with whose end serving ends.
    pub run: Option<String>,
    /// Threads that run the shards, at most one each; with 1 the thread that looks after the array does.
    pub threads: usize,
    /// Threads that serve clients; with 0 the thread that looks after the array does.
    pub socket_threads: usize,
}

/// What came of it.
#[derive(Debug)]
pub struct Served {
    /// What the front end did.
    pub summary: Summary,
    /// How the command that was run ended.
    pub child: Option<ExitStatus>,
}

/// What clients connect to.
pub struct Endpoints {
    server: Server,
    uris: Vec<String>,
    control: ControlSocket,
    signals: Signals,
}

impl Endpoints {
    /// Listens at `addresses`; without any, at a socket of the array's own.
    pub fn open(locked: &Locked, addresses: &[Address]) -> Result<Self, Error> {
        let superblock = locked.found.superblock();
        let uuid = superblock.array;
        let mut server = Server::new(ServerOptions {
            export_name: superblock.name.clone(),
            description: format!("elastripe array {}", name_of(superblock)),
            ..ServerOptions::default()
        });
        let run_dir = control::make_run_dir()?;
        let own = [Address::Unix(run_dir.join(format!("{uuid}.nbd")))];
        let addresses = if addresses.is_empty() { &own[..] } else { addresses };
        let record = Record {
            uuid: uuid.to_string(),
            name: superblock.name.clone(),
            pid: std::process::id(),
            paths: locked.found.all_paths().iter().map(|path| absolute(path)).collect(),
            addresses: addresses.iter().map(ToString::to_string).collect(),
        };
        let control = ControlSocket::listen(uuid, record)?;
        let signals = Signals::collect()?;
        let uris = addresses.iter().map(|address| listen(&mut server, address)).collect::<Result<_, _>>()?;
        Ok(Self { server, uris, control, signals })
    }
}

/// Serves until it is told to stop, and stops the array in order; `ready` is told where clients find it.
pub fn serve(
    assembled: Assembled,
    endpoints: Endpoints,
    service: &Service,
    ready: impl FnOnce(&[String]),
) -> Result<Served, Error> {
    let Assembled { shards, found, report, .. } = assembled;
    let Endpoints { mut server, uris, control, signals } = endpoints;
    let clients = if service.socket_threads > 0 { Clients::Elsewhere } else { Clients::Here };
    let manner = Manner { usage: service.usage, clients, threads: service.threads };
    let mut plant = Plant::new(shards, manner)?;
    let mut operator = Operator::new(found.paths.clone(), found.unnamed());
    operator.note_lost(warn_of_loss(&report));
    plant.visit(|running| {
        operator.adopt_spares(running, &found.spares).iter().for_each(|why| log(why));
        operator.resume(running);
    })?;
    let (uuid, name) = (found.superblock().array.to_string(), found.superblock().name.clone());
    let reactions = Reactions::new(service.on_event.clone(), uuid, name);
    let mut steward = Steward::new(signals, control, operator, found.stale, uris.clone(), reactions);
    ready(&uris);
    if let (Some(command), Some(uri)) = (&service.run, uris.first()) {
        let child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .env("ELASTRIPE_URI", uri)
            .env_remove(notify::VARIABLE)
            .spawn();
        steward.watch_child(child.map_err(Error::Child)?);
    }
    notify(&format!("READY=1\nSTATUS=serving at {}", uris.join(" ")));
    let summary = match service.socket_threads {
        0 => {
            steward.watch_own_clients(server.meter());
            server.run(&mut plant, &mut steward).map_err(Error::from)
        }
        count => Sockets::start(count, &server, &mut plant).and_then(|sockets| {
            steward.watch_clients(sockets.census(), sockets.meters());
            let attended = server.attend(&mut plant, &mut steward).map_err(Error::from);
            let served = sockets.stop(&mut plant);
            attended.and(served)
        }),
    };
    notify("STOPPING=1\nSTATUS=stopping the array in order");
    let child = steward.finish_child();
    let halted = plant.visit(Running::halt_maintenance);
    let stopped = plant.stop().and(halted);
    let stopped = steward.take_failure().map_or(stopped, Err);
    steward.say_stopped(stopped.as_ref().err().map(ToString::to_string).as_deref());
    drop(steward);
    let summary = summary?;
    stopped?;
    if summary.abandoned > 0 {
        log(&format!("{} requests were not finished in time", summary.abandoned));
    }
    Ok(Served { summary, child })
}

/// Listens; the answer is what clients are told.
fn listen(server: &mut Server, address: &Address) -> Result<String, Error> {
    match address {
        Address::Unix(path) => {
            server.listen_unix(Protocol::Nbd, path)?;
            Ok(format!("nbd+unix:///?socket={}", escape(&absolute(path))))
        }
        Address::Tcp(address) => Ok(tcp_uri(server.listen_tcp(Protocol::Nbd, address)?)),
    }
}

/// What clients are told of a TCP address; whoever can reach it from outside may read and write.
fn tcp_uri(bound: SocketAddr) -> String {
    if !bound.ip().to_canonical().is_loopback() {
        let whence = if bound.ip().is_unspecified() { "every address of this machine" } else { "it" };
        log_as(
            Level::Warning,
            &format!(
                "tcp:{bound}: whoever reaches {whence} can read and write the volume: nothing asks for a password, nothing is \
                 encrypted; use tcp:127.0.0.1:{0} and a tunnel, or a firewall",
                bound.port()
            ),
        );
    }
    // Nobody can connect to the address that stands for all.
    match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("nbd://127.0.0.1:{}", bound.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("nbd://[::1]:{}", bound.port()),
        IpAddr::V4(_) | IpAddr::V6(_) => format!("nbd://{bound}"),
    }
}

/// A path within a URI: everything but the plainest characters is escaped.
fn escape(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
