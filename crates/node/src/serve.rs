//! Serves an assembled array until it is told to stop, with a control socket beside it.
//!
//! Whatever can fail without the array being touched comes first ([`Endpoints::open`]), so that nothing is
//! assembled in vain.

use crate::activation::Passed;
use crate::assemble::Assembled;
use crate::disk_wish::DiskWish;
use crate::doorkeeper::keep_door;
use crate::driver::DriverOptions;
use crate::drives::Drives;
use crate::error::Error;
use crate::logbook::{Level, log, log_as};
use crate::notify::notify;
use crate::offline::{describe_given_up, given_up};
use crate::open::{Locked, in_service, member_name, name_of};
use crate::operate::Operator;
use crate::reactions::Reactions;
use crate::registry::{ControlSocket, Record};
use crate::reloading::Reloading;
use crate::running::{Clients, Manner, Plant, Running};
use crate::signals::Signals;
use crate::sockets::{ClientThreads, Sockets};
use crate::steward::{Opening, Reins, Steward};
use crate::ublk::Disk;
use crate::volume::Use;
use array::EngineOptions;
use front::{Limits, Protocol, Rules, Server, ServerOptions, Summary};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Where clients connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// HOST:PORT.
    Tcp(String),
    /// A socket in the file system at which virtual machines find a virtio block device.
    #[cfg(feature = "vhost-user")]
    VhostUserBlk(PathBuf),
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
            #[cfg(feature = "vhost-user")]
            Self::VhostUserBlk(path) => {
                write!(f, "{}{}", crate::registry::VIRTIO_AT, absolute(path).display())
            }
        }
    }
}

pub(crate) fn absolute(path: &Path) -> PathBuf {
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
    /// Threads that serve clients.
    pub clients: ClientThreads,
    /// Spares that the array shares with others of this machine.
    pub shared_spares: Vec<PathBuf>,
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
    reins: Reins,
    disk: Option<Disk>,
}

/// Where an array is to be found.
pub struct Places<'a> {
    /// Where it listens.
    pub addresses: &'a [Address],
    /// Sockets that somebody else has bound.
    pub passed: Vec<Passed>,
    /// What SIGHUP changes: whom those pass who come by TCP.
    pub reloading: Reloading,
    /// Whether it is a disk of this machine.
    pub disk: Option<DiskWish>,
    /// What clients can make each thread of the server hold.
    pub limits: Limits,
}

impl Endpoints {
    /// Listens there; without any place, at a socket of the array's own.
    pub fn open(locked: &Locked, places: Places<'_>) -> Result<Self, Error> {
        let Places { addresses, passed, reloading, disk, limits } = places;
        let guard = reloading.guard();
        let rules = guard.rules();
        let superblock = locked.found.superblock();
        let uuid = superblock.array;
        let mut server = Server::new(ServerOptions {
            export_name: superblock.name.clone(),
            description: format!("elastripe array {}", name_of(superblock)),
            serial: serial_of(&uuid.to_string()),
            limits,
        });
        let run_dir = crate::run_dir::make_run_dir()?;
        let own = [Address::Unix(run_dir.join(format!("{uuid}.nbd")))];
        let is_nowhere = addresses.is_empty() && passed.is_empty() && disk.is_none();
        let addresses = if is_nowhere { &own[..] } else { addresses };
        let disk = disk.map(|wish| Disk::reserve(uuid, wish)).transpose()?;
        let disk_at = disk.as_ref().map(Disk::path);
        let passed_at = passed.iter().map(address_of).collect::<Result<Vec<_>, _>>()?;
        let addresses_of = addresses.iter().chain(&passed_at).map(ToString::to_string);
        let control = register(locked, addresses_of.chain(disk_at.clone()))?;
        let signals = Signals::collect()?;
        let uris = addresses.iter().map(|address| listen(&mut server, address, &reloading));
        let mut uris = uris.collect::<Result<Vec<_>, _>>()?;
        for (socket, address) in passed.into_iter().zip(&passed_at) {
            uris.push(uri_of(address, &rules));
            match socket {
                Passed::Unix(socket) => server.take_unix(Protocol::Nbd, socket),
                Passed::Tcp(socket) => server.take_tcp(Protocol::Nbd, socket, guard.clone()),
            }
            .map_err(Error::Passed)?;
        }
        uris.extend(disk_at);
        Ok(Self { server, uris, reins: (signals, control, reloading), disk })
    }

    /// Assembles the array; whoever asks for it meanwhile is answered.
    pub fn assemble(
        &mut self,
        locked: Locked,
        options: EngineOptions,
        driver: DriverOptions,
    ) -> Result<Assembled, Error> {
        assemble(&mut self.reins, locked, options, driver)
    }
}

/// Assembles an array whose server is held by these reins.
pub(crate) fn assemble(
    (signals, control, _): &mut Reins,
    locked: Locked,
    options: EngineOptions,
    driver: DriverOptions,
) -> Result<Assembled, Error> {
    keep_door(signals, control, || locked.assemble(options, driver))
}

/// The control socket of an array that is served at these addresses.
pub(crate) fn register(
    locked: &Locked,
    addresses: impl Iterator<Item = String>,
) -> Result<ControlSocket, Error> {
    let superblock = locked.found.superblock();
    if let Some(path) = locked.found.all_paths().into_iter().find(|path| path.to_str().is_none()) {
        return Err(Error::NotUtf8 { path: path.to_owned() });
    }
    let record = Record {
        uuid: superblock.array.to_string(),
        name: superblock.name.clone(),
        pid: std::process::id(),
        paths: locked.found.all_paths().iter().map(|path| absolute(path)).collect(),
        addresses: addresses.collect(),
    };
    ControlSocket::listen(superblock.array, record)
}

/// Serves until it is told to stop, and stops the array in order. Before clients come `look` sees the volume,
/// and may be against it; `ready` is told where clients find it.
pub fn serve(
    assembled: Assembled,
    endpoints: Endpoints,
    service: &Service,
    look: impl FnOnce(Plant) -> (Plant, Result<(), Error>),
    ready: impl FnOnce(&[String]) + 'static,
) -> Result<Served, Error> {
    let Endpoints { mut server, uris, reins, disk } = endpoints;
    let clients = if service.clients == ClientThreads::Steward { Clients::Here } else { Clients::Elsewhere };
    let (plant, mut steward) = begin(assembled, service, clients, reins, &uris)?;
    let (mut plant, looked) = look(plant);
    if let Err(error) = looked {
        end(plant, steward)?;
        return Err(error);
    }
    let disk = disk.map(|disk| disk.equip(&mut server, &mut plant)).transpose();
    let opening = Opening { ready: Box::new(ready), run: service.run.clone() };
    let opened = disk.and_then(|disk| steward.open(opening, disk));
    let summary = opened.and_then(|()| match service.clients {
        ClientThreads::Steward => {
            steward.watch_own_clients(server.meter());
            server.run(&mut plant, &mut steward).map_err(Error::from)
        }
        ClientThreads::Own(_) | ClientThreads::OfShards => {
            Sockets::start(service.clients, &mut server, &mut plant).and_then(|sockets| {
                steward.watch_clients(sockets.census(), sockets.meters());
                let attended = server.attend(&mut plant, &mut steward).map_err(Error::from);
                let served = sockets.stop(&mut plant);
                attended.and(served)
            })
        }
    });
    let child = end(plant, steward);
    let summary = summary?;
    let child = child?;
    if summary.abandoned > 0 {
        log(&format!("{} requests were not finished in time", summary.abandoned));
    }
    Ok(Served { summary, child })
}

/// Runs an array and puts somebody in charge of it, before clients come.
pub(crate) fn begin(
    assembled: Assembled,
    service: &Service,
    clients: Clients,
    reins: Reins,
    uris: &[String],
) -> Result<(Plant, Steward), Error> {
    let Assembled { shards, found, report, .. } = assembled;
    let manner = Manner { usage: service.usage, clients, threads: service.threads };
    let mut plant = Plant::new(shards, manner)?;
    let mut operator = Operator::new(found.paths.clone(), found.unnamed());
    operator.note_lost(given_up(&report, &found));
    if service.usage == Use::ReadOnly {
        operator.keep_read_only();
    }
    let keeps = operator.is_read_only();
    if !keeps {
        operator.share_spares(&service.shared_spares)?;
    }
    plant.visit(|running| {
        if keeps {
            return running.level(&[]);
        }
        operator.adopt_spares(running, &found.spares).iter().for_each(|why| log(why));
        operator.resume(running);
    })?;
    let (uuid, name) = (found.superblock().array.to_string(), found.superblock().name.clone());
    let mut reactions = Reactions::new(service.on_event.clone(), uuid, name);
    let before = if report.was_clean { "stopped in order" } else { "not stopped in order, and recovered" };
    reactions.remember(Level::Info, "served", &format!("serving began; the array had been {before}"));
    if let Some(lost) = operator.lost_state() {
        reactions.tell(Level::Error, "lost", "", &describe_given_up(lost));
    }
    if let Some(text) = plant.visit(describe_missing)? {
        reactions.tell(Level::Warning, "degraded", "", &text);
    }
    let mut steward = Steward::new(reins, operator, found.stale, uris.to_vec(), reactions);
    steward.ask_drives(Drives::start()?);
    Ok((plant, steward))
}

/// Members that are out of service from the beginning.
fn describe_missing(running: &mut Running) -> Option<String> {
    let main_count = running.lead().store().main_count();
    let missing = running.members().filter(|&dev| !in_service(running.member_state(dev)));
    let names: Vec<String> = missing.map(|dev| member_name(main_count, dev)).collect();
    let left = running.lead().health().tolerated().saturating_sub(running.missing_count());
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!(
            "the array is served without all its members: {names} out of service; it bears {left} more losses"
        )
    })
}

/// Stops an array in order, when its clients are gone; how the command that was run ended.
pub(crate) fn end(mut plant: Plant, mut steward: Steward) -> Result<Option<ExitStatus>, Error> {
    notify("STOPPING=1\nSTATUS=stopping the array in order");
    let child = steward.finish_child();
    let succeeded = steward.finish_successions(&mut plant);
    let halted = plant.visit(Running::halt_maintenance).and(succeeded);
    let stopped = plant.stop().and(halted);
    let stopped = steward.take_failure().map_or(stopped, Err);
    steward.say_stopped(stopped.as_ref().err().map(ToString::to_string).as_deref());
    drop(steward);
    stopped.map(|()| child)
}

/// The first 20 digits of a UUID: there is no room for more.
fn serial_of(uuid: &str) -> [u8; 20] {
    let mut serial = [0; 20];
    let digits = uuid.bytes().filter(|&byte| byte != b'-');
    serial.iter_mut().zip(digits).for_each(|(to, digit)| *to = digit);
    serial
}

/// Listens; the answer is what clients are told.
fn listen(server: &mut Server, address: &Address, reloading: &Reloading) -> Result<String, Error> {
    match address {
        Address::Unix(path) => {
            server.listen_unix(Protocol::Nbd, path)?;
            Ok(format!("nbd+unix:///?socket={}", escape(&absolute(path))))
        }
        Address::Tcp(address) => {
            let (guard, rules) = (reloading.guard(), reloading.guard().rules());
            let bound = server.listen_tcp(Protocol::Nbd, address, guard.clone())?;
            warn_of_openness(bound, &rules);
            Ok(tcp_uri(bound, &rules))
        }
        #[cfg(feature = "vhost-user")]
        Address::VhostUserBlk(path) => {
            server.listen_unix(Protocol::VhostUserBlk, path)?;
            Ok(address.to_string())
        }
    }
}

/// Where a socket that was passed is bound.
fn address_of(passed: &Passed) -> Result<Address, Error> {
    match passed {
        Passed::Unix(socket) => {
            let bound = socket.local_addr().map_err(Error::Passed)?;
            Ok(Address::Unix(bound.as_pathname().map_or_else(PathBuf::new, Path::to_owned)))
        }
        Passed::Tcp(socket) => Ok(Address::Tcp(socket.local_addr().map_err(Error::Passed)?.to_string())),
    }
}

/// What clients are told of it.
fn uri_of(address: &Address, rules: &Rules) -> String {
    match address {
        Address::Tcp(text) => match text.parse() {
            Ok(bound) => {
                warn_of_openness(bound, rules);
                tcp_uri(bound, rules)
            }
            Err(_) => format!("nbd://{text}"),
        },
        Address::Unix(path) => format!("nbd+unix:///?socket={}", escape(path)),
        #[cfg(feature = "vhost-user")]
        Address::VhostUserBlk(path) => path.display().to_string(),
    }
}

/// Says so where whoever reaches a TCP address from outside may read and write.
fn warn_of_openness(bound: SocketAddr, rules: &Rules) {
    if bound.ip().to_canonical().is_loopback() || !rules.admit_all() {
        return;
    }
    let whence = if bound.ip().is_unspecified() { "every address of this machine" } else { "it" };
    let lack = match rules.tls {
        None => "nothing asks for a password, nothing is encrypted",
        Some(_) => "nothing asks who they are",
    };
    log_as(
        Level::Warning,
        &format!(
            "tcp:{bound}: whoever reaches {whence} can read and write the volume: {lack}; use --tls-client-ca or --allow, or \
             tcp:127.0.0.1:{} and a tunnel, or a firewall",
            bound.port()
        ),
    );
}

/// What clients are told of a TCP address.
fn tcp_uri(bound: SocketAddr, rules: &Rules) -> String {
    uri_at(if rules.tls.is_some() { "nbds" } else { "nbd" }, bound)
}

/// A URI of an address that clients can connect to.
pub fn uri_at(scheme: &str, bound: SocketAddr) -> String {
    // Nobody can connect to the address that stands for all.
    match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("{scheme}://127.0.0.1:{}", bound.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("{scheme}://[::1]:{}", bound.port()),
        IpAddr::V4(_) | IpAddr::V6(_) => format!("{scheme}://{bound}"),
    }
}

/// A path within a URI: everything but the plainest characters is escaped.
pub(crate) fn escape(path: &Path) -> String {
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
