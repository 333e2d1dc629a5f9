//! Serves a store of keys on an assembled array, until it is told to stop: over the Redis protocol, with
//! the array's control socket beside it.

use super::beside::work_beside;
use super::{Ferry, KeptKeys};
use crate::assemble::Assembled;
use crate::driver::DriverOptions;
use crate::error::{Error, NoStore};
use crate::fresh;
use crate::logbook::{Level, log, log_as};
use crate::open::Locked;
use crate::registry::KEYS_AT;
use crate::reloading::Reloading;
use crate::running::{Clients, Plant};
use crate::serve::{Address, Service, absolute, assemble, begin, end, escape, register, uri_at};
use crate::signals::Signals;
use crate::steward::{Opening, Reins, Steward};
use crate::units::show_size;
use array::EngineOptions;
use front::{Flow, Hooks as _, Interest, Volume};
use kv::ask::Keys as _;
use kv::blocks::{BLOCK_BYTES, Buffer, Issued, Medium, Request};
use kv::{Create, Options, Secret, Store, VolumeShape};
use resp::{Desk, Limits, Server, Settings, Summary};
use std::os::fd::{BorrowedFd, RawFd};
use std::process::ExitStatus;
use std::time::Duration;

/// Whether a store may be made where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Making {
    /// It may not.
    Never,
    /// Where the volume holds nothing.
    OnEmpty,
    /// Whatever the volume holds.
    OnAnything,
}

/// How a store is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyService {
    /// Whether it may be made.
    pub making: Making,
    /// How it is run.
    pub options: Options,
}

/// What is looked at of a volume that should hold nothing.
const LOOKED_BYTES: usize = 1 << 20;
/// How long a store may take to stop; it has little to write then.
const STOP: Duration = Duration::from_secs(60);

/// What clients connect to.
pub struct KeyEndpoints {
    server: Server,
    uris: Vec<String>,
    reins: Reins,
}

impl KeyEndpoints {
    /// Listens at `addresses`. Who comes by TCP passes the guard.
    pub fn open(
        locked: &Locked,
        addresses: &[Address],
        reloading: Reloading,
        limits: Limits,
        settings: Settings,
    ) -> Result<Self, Error> {
        let (guard, rules) = (reloading.guard(), reloading.guard().rules());
        let has_password = settings.password.is_some();
        let mut server = Server::new(limits, settings);
        crate::run_dir::make_run_dir()?;
        let control = register(locked, addresses.iter().map(|address| format!("{KEYS_AT}{address}")))?;
        let signals = Signals::collect()?;
        let mut uris = Vec::new();
        for address in addresses {
            uris.push(match address {
                Address::Unix(path) => {
                    server.listen_unix(path)?;
                    format!("redis+unix://{}", escape(&absolute(path)))
                }
                Address::Tcp(address) => {
                    let bound = server.listen_tcp(address, guard.clone())?;
                    if !has_password && rules.admit_all() && !bound.ip().is_loopback() {
                        log_as(
                            Level::Warning,
                            &format!(
                                "tcp:{bound}: whoever reaches it can read and write all keys; use --password-file, \
                                 --tls-client-ca or --allow"
                            ),
                        );
                    }
                    uri_at(if rules.tls.is_some() { "rediss" } else { "redis" }, bound)
                }
                #[cfg(feature = "vhost-user")]
                Address::VhostUserBlk(_) => return Err(Error::Server(front::ServerError::NoListener)),
            });
        }
        Ok(Self { server, uris, reins: (signals, control, reloading) })
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

/// What came of it.
#[derive(Debug)]
pub struct KeysServed {
    /// What the server did.
    pub summary: Summary,
    /// How the command that was run ended.
    pub child: Option<ExitStatus>,
}

/// Serves until it is told to stop, and stops store and array in order; `ready` is told what store it is
/// and where clients find it.
pub fn serve_keys(
    assembled: Assembled,
    endpoints: KeyEndpoints,
    service: &Service,
    keys: KeyService,
    ready: impl FnOnce(&Store, &[String]),
) -> Result<KeysServed, Error> {
    let KeyEndpoints { mut server, uris, reins } = endpoints;
    let (plant, mut steward) = begin(assembled, service, Clients::Here, reins, &uris)?;
    let mut ferry = Ferry::new(plant);
    steward.note_opening();
    let volume_bytes = ferry.volume().size_bytes();
    let work = move |medium: &mut dyn Medium| open(medium, volume_bytes, keys);
    let store = match work_beside(&mut ferry, &mut steward, STOP, work) {
        Ok(Some(Ok(store))) => store,
        Ok(None) => {
            let child = end(ferry.into_volume(), steward)?;
            return Ok(KeysServed { summary: Summary::default(), child });
        }
        Ok(Some(Err(error))) | Err(error) => {
            end(ferry.into_volume(), steward)?;
            return Err(error);
        }
    };
    ready(&store, &uris);
    if store.gained_bytes() > 0 {
        let gained = show_size(store.gained_bytes());
        log(&format!(
            "the volume has {gained} more than when the store was opened before; the store uses them"
        ));
    }
    if store.is_in_doubt() {
        let text = "something of the store is lost: keys that may be out of date are refused as damaged until they are set anew";
        log_as(Level::Warning, text);
    }
    steward.watch_own_clients(server.meter());
    let mut kept = KeptKeys::new(store, ferry);
    let opening = Opening { ready: Box::new(|_| {}), run: service.run.clone() };
    let served = steward
        .open(opening, None)
        .and_then(|()| server.run(&mut kept, &mut Household(&mut steward)).map_err(Error::from));
    let (plant, has_stopped) = kept.stop(STOP);
    let ended = end(plant, steward);
    let summary = served?;
    let child = ended?;
    if summary.abandoned > 0 {
        log(&format!("{} questions to the store were not answered in time", summary.abandoned));
    }
    if !has_stopped {
        return Err(NoStore::NotStopped { seconds: STOP.as_secs() }.into());
    }
    Ok(KeysServed { summary, child })
}

/// Opens the store of a volume, or makes one.
fn open(medium: &mut dyn Medium, volume_bytes: u64, keys: KeyService) -> Result<Store, Error> {
    let error = match kv::open(medium, volume_bytes, keys.options) {
        Ok(store) => return Ok(store),
        Err(error) => error,
    };
    // Whatever else is wrong with a store, it is one. That its tables are lost does not pass.
    let is_none = matches!(error, kv::OpenError::Header(_));
    let is_useless = matches!(error, kv::OpenError::Table { .. } | kv::OpenError::Shrunk { .. });
    let may_be_made = match keys.making {
        Making::Never => false,
        Making::OnEmpty => is_none,
        Making::OnAnything => is_none || is_useless,
    };
    if !may_be_made {
        return Err(NoStore::of_opening(error).into());
    }
    if keys.making == Making::OnEmpty {
        look_whether_empty(medium, volume_bytes)?;
    }
    let shape = VolumeShape { volume_bytes, segment_bytes: None };
    let secret = Secret([fresh::number()?, fresh::number()?]);
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&fresh::number()?.to_le_bytes());
    uuid[8..].copy_from_slice(&fresh::number()?.to_le_bytes());
    kv::create(medium, &Create { shape, uuid, secret }).map_err(NoStore::NotMade)?;
    log("a new store was made");
    Ok(kv::open(medium, volume_bytes, keys.options).map_err(NoStore::of_opening)?)
}

/// That there is no store on the volume of an array that runs here.
pub fn refuse_store(plant: Plant) -> (Plant, Result<(), Error>) {
    let mut ferry = Ferry::new(plant);
    let request = Request::Read { offset_bytes: 0, buffer: Buffer::new(BLOCK_BYTES) };
    let ended = ferry.carry(vec![Issued { tag: 0, request }]);
    // What cannot be read is no reason not to serve the rest.
    let block = ended.into_iter().find(|ended| ended.result.is_ok()).and_then(|ended| ended.buffer);
    let holds = block.is_some_and(|block| kv::is_store(&block));
    (ferry.into_volume(), if holds { Err(NoStore::WouldBeOverwritten.into()) } else { Ok(()) })
}

fn look_whether_empty(medium: &mut dyn Medium, volume_bytes: u64) -> Result<(), Error> {
    let size = usize::try_from(volume_bytes).unwrap_or(usize::MAX);
    let looked_bytes = LOOKED_BYTES.min(size - size % BLOCK_BYTES);
    let buffer = Buffer::new(looked_bytes);
    let request = Request::Read { offset_bytes: 0, buffer };
    for ended in medium.carry(vec![Issued { tag: 0, request }]) {
        ended.result.map_err(|fault| NoStore::NotMade(kv::OpenError::Volume(fault)))?;
        let bytes = ended.buffer.unwrap_or_else(|| Buffer::new(0));
        if let Some(offset_bytes) = bytes.iter().position(|&byte| byte != 0) {
            return Err(NoStore::NotEmpty { offset_bytes, found: bytes[offset_bytes], looked_bytes }.into());
        }
    }
    Ok(())
}

/// Who looks after the array, beside a server of keys.
struct Household<'a>(&'a mut Steward);

impl resp::Hooks<KeptKeys<Plant>> for Household<'_> {
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        self.0.extra_fds(out);
    }

    fn on_ready(&mut self, fd: RawFd, keys: &mut KeptKeys<Plant>) -> Flow {
        self.0.note_store(keys.figures().into());
        self.0.on_ready(fd, keys.volume_mut())
    }

    fn on_turn(&mut self, keys: &mut KeptKeys<Plant>, _: &Desk) -> Flow {
        self.0.note_store(keys.figures().into());
        self.0.on_turn(keys.volume_mut())
    }

    fn idle_for(&self) -> Option<u64> {
        self.0.idle_for()
    }

    fn on_clients(&mut self, count: usize) {
        self.0.on_clients(count);
    }

    fn on_fault(&mut self, peer: &str, fault: &resp::Fault) {
        log(&format!("client {peer}: {fault}"));
    }
}
