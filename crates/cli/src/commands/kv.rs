//! `kv`: a store of keys and values on an array.

use super::Exit;
use super::serve::{
    ArrayChoices, GuardChoices, MaybeDuration, Talk, Threads, engine_options, exit_of, parse_threads,
};
use super::serve::{check_open_files, name_the_server, print_start, say_of_page, warn_of_memory};
use crate::memory::check_there_is;
use array::SyncPolicy;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use front::{Guard, SOCKET_BUFFERS_BYTES};
use kv::Options;
use lab::failure::Failure;
use monitor::Monitor;
use node::keys::{KeyEndpoints, KeyService, Making, serve_keys};
use node::logbook;
use node::memory::available_bytes;
use node::open::{Force, Incomplete, lock};
use node::open_files;
use node::operate::with_shared_members;
use node::output;
use node::reloading::{Reloading, Reread};
use node::run_dir::socket_path;
use node::scan::members_of;
use node::serve::{Address, Service, parse_address};
use node::settings;
use node::sockets::ClientThreads;
use node::units::{parse_duration_or_off, parse_size, show_count, show_size};
use node::volume::Use;
use resp::{Durable, Limits, Password, Settings};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can be done with keys.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Assemble an array and serve the keys on it by the Redis protocol.
    Serve(Box<Arguments>),
    /// Measure a store in this process, on devices that need no hardware, scheme by scheme.
    Bench(Box<lab::keys::Arguments>),
}

/// Options of `kv serve`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The members, in any order, and spares; or the name or UUID of the array, as with --array. With
    /// --scan or --array, places to look at: devices, files, directories; without any, every block device.
    #[arg(required_unless_present_any = ["scan", "array"], value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Find the members among the paths; what is no member of the array is ignored.
    #[arg(long)]
    scan: bool,
    /// The same, of the array with this name or UUID; the places in /etc/elastripe/NAME.toml count.
    #[arg(long, value_name = "NAME|UUID", value_parser = NonEmptyStringValueParser::new())]
    array: Option<String>,
    /// Where clients connect: unix:PATH or tcp:HOST:PORT; may be given several times.
    #[arg(long, value_parser = parse_address, value_name = "ADDRESS", required = true)]
    resp: Vec<Address>,
    /// Clients must say the password that this file has in its first line.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// When an acknowledged change is durable: at once; a second later; or when a client says SAVE.
    #[arg(long, value_enum, default_value = "always")]
    sync: Sync,
    /// Make a store if the volume holds none and is empty.
    #[arg(long)]
    create: bool,
    /// Make a store if the volume holds none, in place of what is there, which is lost then.
    #[arg(long)]
    overwrite: bool,
    /// Open a store of which something is lost as if what is there were the newest.
    #[arg(long)]
    accept_loss: bool,
    /// Keys whose place and size are kept in memory, beside the index; of others the record is read before it
    /// is changed. Without it as many as a 128th of what the array may take holds, at least 65,536.
    #[arg(long, value_name = "N")]
    cache_keys: Option<usize>,
    /// Memory for records of up to 16 KiB that were read, so that what is asked for often is read once.
    #[arg(long, value_parser = parse_size, default_value = "64MiB", value_name = "SIZE")]
    cache_records: u64,
    /// Clients at a time.
    #[arg(long, default_value = "1000", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// A client that has said nothing for so long is closed; or `off`.
    #[arg(long, value_parser = parse_timeout, default_value = "off", value_name = "TIME")]
    idle_timeout: MaybeDuration,
    /// A client that has begun a command is closed if its next MiB, or its rest, takes longer; or `off`.
    #[arg(long, value_parser = parse_timeout, default_value = "60s", value_name = "TIME")]
    command_timeout: MaybeDuration,
    /// Threads that run the array, at most as many as it has shards; `auto`: as many as this machine has
    /// processors. With 1 the thread that does everything else runs it, too.
    #[arg(long, default_value = "auto", value_name = "N", value_parser = parse_threads)]
    threads: Threads,
    /// A client may stop the server by SHUTDOWN.
    #[arg(long)]
    allow_shutdown: bool,
    #[command(flatten)]
    guards: GuardChoices,
    #[command(flatten)]
    whole: ArrayChoices,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Sync {
    /// At once.
    Always,
    /// A second later.
    Everysec,
    /// At the next SAVE.
    Flush,
}

impl Sync {
    fn of_store(self) -> kv::Sync {
        match self {
            Self::Always => kv::Sync::Always,
            Self::Everysec => kv::Sync::EverySecond,
            Self::Flush => kv::Sync::OnFlush,
        }
    }

    fn told(self) -> Durable {
        match self {
            Self::Always => Durable::Always,
            Self::Everysec => Durable::EverySecond,
            Self::Flush => Durable::OnSave,
        }
    }
}

/// Runs `kv`.
pub fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(arguments) => serve(arguments),
        Command::Bench(arguments) => lab::keys::run(arguments),
    }
}

/// A password is short.
const PASSWORD_BYTES_MAX: u64 = 4096;

fn password_of(path: &Path) -> Result<Password, Failure> {
    let failed = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let length = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if length > PASSWORD_BYTES_MAX {
        return Err(failed(format!(
            "found {length} bytes, expected a password of at most {PASSWORD_BYTES_MAX}"
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Password::new(line).ok_or_else(|| failed("found an empty first line, expected a password".to_owned()))
}

/// The members, as they were named.
fn members(arguments: &Arguments) -> Result<Vec<PathBuf>, Failure> {
    let alone = match arguments.paths.as_slice() {
        [path] if !arguments.scan && arguments.array.is_none() && path.symlink_metadata().is_err() => {
            path.to_str().filter(|name| !name.contains('/'))
        }
        _ => None,
    };
    let Some(wanted) = arguments.array.as_deref().or(alone) else {
        return match arguments.scan {
            true => Ok(members_of(&arguments.paths, None)?),
            false => Ok(arguments.paths.clone()),
        };
    };
    let mut places = if alone.is_some() { Vec::new() } else { arguments.paths.clone() };
    let mut wanted = wanted.to_owned();
    if let Some(settings) = settings::find(&wanted)? {
        if places.is_empty() {
            places = settings.places;
        }
        wanted = settings.array.to_string();
    }
    Ok(members_of(&places, Some(&wanted))?)
}

fn settings_of(arguments: &Arguments, name: String) -> Result<Settings, Failure> {
    let password = arguments.password_file.as_deref().map(password_of).transpose()?;
    let (may_shut_down, durable) = (arguments.allow_shutdown, arguments.sync.told());
    Ok(Settings { password, may_shut_down, durable, name })
}

/// Bounds that suit this machine.
fn limits_of(arguments: &Arguments, clients_max: usize) -> Limits {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let limits = Limits::default();
    let share = usize::try_from(available_bytes() / 4).unwrap_or(usize::MAX);
    let all_bytes_max = limits.all_bytes_max.min(share);
    let idle_timeout_ns = arguments.idle_timeout.map(nanoseconds);
    let command_timeout_ns = arguments.command_timeout.map(nanoseconds);
    Limits { clients_max, idle_timeout_ns, command_timeout_ns, all_bytes_max, ..limits }
}

/// Keys in the cache of metadata, unless it is said otherwise.
fn cache_keys(array_bytes: u64) -> usize {
    let share = usize::try_from(array_bytes / 128).unwrap_or(usize::MAX);
    (share / kv::CACHED_KEY_BYTES).max(Options::default().cache_keys)
}

/// What SIGHUP changes: certificates are read from their files again.
fn reloading(arguments: &Arguments, guard: &Guard) -> Reloading {
    let (guards, rate) = (arguments.guards.clone(), arguments.whole.background.rebuild_rate());
    let again = move || {
        let rules = guards.rules().map_err(|failure| failure.to_string())?;
        Ok(Reread { what: "certificates", rules, rebuild_rate: rate, later: Vec::new() })
    };
    Reloading::new(guard, rate, Box::new(again))
}

/// A time, or `off`; with none at all everybody would be closed at once.
fn parse_timeout(text: &str) -> Result<Option<Duration>, String> {
    match parse_duration_or_off(text)? {
        Some(Duration::ZERO) => Err(format!("found {text:?}, expected more than nothing, or off")),
        given => Ok(given),
    }
}

fn serve(arguments: &Arguments) -> Result<Exit, Failure> {
    let whole = &arguments.whole;
    let _log = logbook::begin(whole.log_time.into());
    open_files::raise();
    let incomplete = if whole.degraded { Incomplete::Accept } else { Incomplete::Refuse };
    let guard = arguments.guards.guard(&arguments.resp, &[])?;
    // Whatever can fail without the array being touched comes before it is assembled.
    let paths = with_shared_members(members(arguments)?, &whole.shared_spare);
    let locked = lock(&paths, Force::of_flag(whole.force), incomplete);
    let locked = locked.map_err(|error| name_the_server(error, &paths))?;
    let config = locked.superblock().config;
    whole.check(config.scheme)?;
    let settings = settings_of(arguments, locked.superblock().name.clone())?;
    // The store flushes by itself when something is to be durable.
    let options = engine_options(whole, config.scheme, SyncPolicy::OnFlush, locked.has_files());
    let threads = arguments.threads.of(config.shard.count.into())?;
    let files = check_open_files(&locked, whole, (threads, arguments.resp.len()))?;
    check_there_is("--cache-records", arguments.cache_records)?;
    let cache_keys = arguments.cache_keys.unwrap_or_else(|| cache_keys(whole.memory.limit.bytes()));
    let cached_bytes = u64::try_from(cache_keys.saturating_mul(kv::CACHED_KEY_BYTES)).unwrap_or(u64::MAX);
    let buffers = if config.shard.count == 1 { 0 } else { SOCKET_BUFFERS_BYTES };
    let beside = buffers.saturating_add(arguments.cache_records).saturating_add(cached_bytes);
    let need = whole.memory.limit.check(&config, &options, beside)?;
    let clients_max = files.limit_clients(usize::try_from(arguments.clients).unwrap_or(usize::MAX));
    let limits = limits_of(arguments, clients_max);
    let reloading = reloading(arguments, &guard);
    let mut endpoints = KeyEndpoints::open(&locked, &arguments.resp, reloading, limits, settings)?;
    let monitor = whole.metrics.as_deref().map(Monitor::listen).transpose()?;
    let uuid = locked.superblock().array;
    let assembled = endpoints.assemble(locked, options, whole.driver())?;
    warn_of_memory(&need);
    let talk = Talk::of(whole);
    print_start(&assembled, Use::ReadWrite, talk);
    if let Some(monitor) = monitor {
        say_of_page(&monitor, talk);
        monitor.start(socket_path(uuid))?;
    }
    let making = match (arguments.overwrite, arguments.create) {
        (true, _) => Making::OnAnything,
        (false, true) => Making::OnEmpty,
        (false, false) => Making::Never,
    };
    let options = Options {
        sync: arguments.sync.of_store(),
        cache_keys,
        kept_bytes: usize::try_from(arguments.cache_records).unwrap_or(usize::MAX),
        accept_loss: arguments.accept_loss,
        // Clients are bounded already; the store need not refuse what they may ask.
        under_way_max: clients_max.saturating_mul(limits.asks_in_flight_max).saturating_add(1024),
        ..Options::default()
    };
    let (on_event, run) = (whole.on_event.clone(), whole.run.clone());
    let shared_spares = whole.shared_spare.clone();
    let clients = ClientThreads::Steward;
    let service = Service { usage: Use::ReadWrite, on_event, run, threads, clients, shared_spares };
    let keys = KeyService { making, options };
    let served = serve_keys(assembled, endpoints, &service, keys, |store, uris| {
        let figures = kv::ask::Keys::figures(store);
        talk.say(format_args!(
            "{} keys; {} of {} in use; the index takes {} of memory",
            show_count(figures.key_count),
            show_size(figures.live_bytes),
            show_size(figures.capacity_bytes),
            show_size(figures.index_bytes)
        ));
        uris.iter().for_each(|uri| talk.say(format_args!("serving at {uri}")));
    })?;
    if whole.run.is_none() {
        let resp::Summary { connections, commands, .. } = served.summary;
        output::line(format_args!(
            "stopped in order; {connections} connections were served, {commands} commands carried out"
        ));
    }
    Ok(served.child.map_or(0, exit_of))
}
