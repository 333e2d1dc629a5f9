//! `serve`: assembles an array and exports it over NBD until it is told to stop.

mod clients;
mod named;

use super::Exit;
use crate::memory::MemoryLimit;
use array::{
    CommitPolicy, EngineOptions, MemoryNeed, PatrolPolicy, RecoveryReport, SchemeOptions, SyncPolicy,
    UNTORN_BYTES_DEFAULT, UNTORN_BYTES_MAX,
};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use clients::{ClientChoices, buffers_bytes};
pub(super) use clients::{GuardChoices, Threads, parse_threads};
use format::SchemeKind;
use front::Limits;
use lab::failure::{EXIT_MISUSED, Failure};
use lab::options::batches::{Batches, check_commits};
use lab::options::cache::CacheSizes;
use lab::options::discards::Discards;
use lab::options::placement::ElasticChoices;
use lab::options::rewrites::RewriteChoice;
use monitor::Monitor;
use node::activation::{Passed, passed};
use node::assemble::Assembled;
use node::checks::same_file;
use node::describe::describe;
use node::driver::DriverOptions;
use node::error::Error;
use node::keys::refuse_store;
use node::logbook::{self, Level, LogTime, log, log_as};
use node::memory::{available_bytes, show_need};
use node::open::{Force, Incomplete, Locked, lock, lock_to_read, member_name};
use node::open_files::{self, OpenFiles};
use node::operate::with_shared_members;
use node::output;
use node::registry::{Record, records};
use node::run_dir::socket_path;
use node::scan::members_of;
use node::serve::{Endpoints, Places, Service, serve, uri_at};
use node::status::describe_diverged;
use node::units::{parse_duration_or_off, parse_rate_or_off, parse_size, show_size};
use node::volume::Use;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// After so long without a request the superblocks name what the last flush made durable.
const CONFIRM_IDLE_NS: u64 = 1_000_000_000;
/// A device that has answered nothing for less may be healthy: a read that an SSD holds up takes so long.
const DEVICE_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// What a patrol reads at most: little beside the array's own work, and soon through the metadata of any
/// array.
const PATROL_BYTES_PER_S: u64 = 1 << 20;

/// Options of `serve`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The members, in any order, and spares; or the name or UUID of the array, as with --array. With
    /// --scan or --array, places to look at: devices, files, directories; without any, every block device.
    #[arg(required_unless_present_any = ["scan", "array"], value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Find the members among the paths; what is no member of the array is ignored.
    #[arg(long)]
    scan: bool,
    /// The same, of the array with this name or UUID. What /etc/elastripe/NAME.toml says of it counts,
    /// unless it is given here: places, and options of this command. Its clients connect to NAME.nbd beside
    /// the control sockets, if no address is given.
    #[arg(long, value_name = "NAME|UUID", value_parser = NonEmptyStringValueParser::new())]
    array: Option<String>,
    #[command(flatten)]
    clients: ClientChoices,
    #[command(flatten)]
    whole: ArrayChoices,
    /// When a completed write is durable: at the next flush, like a disk with a volatile cache, or always
    /// at once.
    #[arg(long, value_enum, default_value = "flush")]
    sync: Sync,
    /// Refuse writes of clients, and write nothing to the members either: what recovery would write is kept
    /// in memory.
    #[arg(long)]
    read_only: bool,
    /// Let clients write to the volume although there is a store of keys on it, which `kv serve` serves and
    /// they may destroy.
    #[arg(long)]
    store_as_disk: bool,
}

/// How an array is run, whatever is served of it.
#[derive(Args, Debug)]
pub(super) struct ArrayChoices {
    #[command(flatten)]
    pub(super) commits: CommitChoices,
    /// A write of up to this size, a power of two, aligned to its size, is after a power cut there as a whole
    /// or not at all; not of arrays with --consistency resync.
    #[arg(long, value_parser = parse_untorn_size, default_value = "64KiB", value_name = "SIZE")]
    pub(super) untorn_size: u64,
    #[command(flatten)]
    pub(super) background: Background,
    /// A member that has not answered a request for this long is taken out of service, if the array can do
    /// without it; or `off`.
    #[arg(long, value_parser = parse_device_timeout, default_value = "30s", value_name = "TIME")]
    pub(super) device_timeout: MaybeDuration,
    #[command(flatten)]
    pub(super) memory: MemoryShares,
    #[command(flatten)]
    pub(super) cache: CacheSizes,
    #[command(flatten)]
    pub(super) elastic: ElasticChoices,
    #[command(flatten)]
    pub(super) batches: Batches,
    /// Let a thread of the kernel's look for what is to be read and written, in place of a system call for
    /// each batch: for many fast drives and more processors than threads of this server; it takes one while
    /// there is work.
    #[arg(long)]
    pub(super) kernel_poll: bool,
    /// Assemble an array although newer durable state is on none of its members (it starts in the newest
    /// state that there is, what came after it is lost), or one that writes in place without a journal, was
    /// not stopped in order and lacks members (data may be silently wrong).
    #[arg(long)]
    pub(super) force: bool,
    /// Start without members that are not named, do not exist or are damaged, if the array can do without
    /// them. They are out of service from then on.
    #[arg(long)]
    pub(super) degraded: bool,
    /// A spare that several arrays of this machine may list; may be given several times. The first that needs
    /// it takes it, and only if nothing is on it, not even something of unknown kind; the others see in
    /// `status` that it is taken.
    #[arg(long, value_name = "PATH")]
    pub(super) shared_spare: Vec<PathBuf>,
    /// Whether lines of the log begin with the time.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(super) log_time: LogTimeName,
    /// A page that shows the array at http://HOST:PORT/, and metrics for Prometheus at /metrics. Nothing asks
    /// for a password: whoever reaches the address can look.
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) metrics: Option<String>,
    /// Run this shell command whenever something happens to the array, with ELASTRIPE_EVENT, _DEVICE,
    /// _MESSAGE, _NAME and _UUID in its environment.
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(super) on_event: Option<String>,
    /// Run this shell command with ELASTRIPE_URI in its environment, then stop and exit with its code.
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(super) run: Option<String>,
}

impl ArrayChoices {
    /// How its devices are driven.
    pub(super) fn driver(&self) -> DriverOptions {
        DriverOptions { kernel_polls: self.kernel_poll, ..DriverOptions::default() }
    }

    /// Whether a scheme knows what was asked for.
    pub(super) fn check(&self, scheme: SchemeKind) -> Result<(), Failure> {
        self.cache.check(scheme)?;
        self.elastic.check_served(&[scheme])?;
        self.commits.rewrites.check_any(&[scheme])?;
        let rate = self.commits.commit_rate.map(|rate| format!("--commit-rate {}", show_size(rate)));
        check_commits(self.commits.commit_every.map(|writes| format!("--commit-every {writes}")), scheme)?;
        check_commits(rate, scheme)
    }
}

/// What memory is for.
#[derive(Args, Clone, Debug)]
pub(super) struct MemoryShares {
    /// Memory for buffers.
    #[arg(long, value_parser = parse_size, default_value = "64MiB", value_name = "SIZE")]
    buffers: u64,
    /// Memory for the table of chunks; pages of it that have no room are read from the members when they are
    /// needed. Without it a quarter of what the array may take. The schemes elastic and was have all of
    /// theirs in memory.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    table_memory: Option<u64>,
    #[command(flatten)]
    pub(super) limit: MemoryLimit,
}

/// What the array does beside its clients' requests.
#[derive(Args, Clone, Debug)]
pub(super) struct Background {
    /// Limit of rebuild and scrub: how much of each data device they look at per second, or `off`.
    #[arg(long, value_parser = parse_rate_or_off, default_value = "off", value_name = "RATE")]
    rebuild_rate: MaybeRate,
    /// Verify the metadata this often without being asked (superblocks, newest checkpoint, journal, ends of
    /// the members), or `off`.
    #[arg(long, value_parser = parse_duration_or_off, default_value = "1h", value_name = "TIME")]
    patrol: MaybeDuration,
    /// What of the space that the array has freed is discarded on its members: `none`; `large`: what clients
    /// discarded, and units that garbage collection freed; `all`: old versions and dead log space, too;
    /// `auto`: `all`, or `large` if a member is a file.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHAT")]
    discard: Discards,
}

impl Background {
    /// Limit of rebuild and scrub, in bytes per second.
    pub(super) fn rebuild_rate(&self) -> MaybeRate {
        self.rebuild_rate
    }
}

/// When parity commit runs, and what needs none.
#[derive(Args, Clone, Debug)]
pub(super) struct CommitChoices {
    /// Parity commit after this many writes (it also runs when the array is idle or space runs low).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    commit_every: Option<u64>,
    /// Parity commit after this long without a request, or `off`.
    #[arg(long, value_parser = parse_duration_or_off, default_value = "1s", value_name = "TIME")]
    commit_idle: MaybeDuration,
    /// Limit of parity commit while nobody waits for it: how much of each data device per second, or `off`.
    #[arg(long, value_parser = parse_rate_or_off, default_value = "off", value_name = "RATE")]
    commit_rate: MaybeRate,
    #[command(flatten)]
    rewrites: RewriteChoice,
}

/// clap takes an `Option` for an option that may be absent; these are present and may be `off`.
pub(super) type MaybeDuration = std::option::Option<Duration>;
pub(super) type MaybeRate = std::option::Option<u64>;

/// Whether lines of the log begin with the time.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LogTimeName {
    /// Unless standard error is a terminal, or the journal, which has the time anyway.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<LogTimeName> for LogTime {
    fn from(name: LogTimeName) -> Self {
        match name {
            LogTimeName::Auto => Self::Auto,
            LogTimeName::Always => Self::Always,
            LogTimeName::Never => Self::Never,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Sync {
    Always,
    Flush,
}

impl Sync {
    fn policy(self) -> SyncPolicy {
        match self {
            Self::Always => SyncPolicy::Always,
            Self::Flush => SyncPolicy::OnFlush,
        }
    }
}

/// Runs `serve`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let passed = passed()?;
    if let Some(whole) = named::completed(arguments, passed.is_empty())? {
        return serve_array(&whole, passed);
    }
    if arguments.clients.is_nowhere() && arguments.whole.run.is_none() && passed.is_empty() {
        return Err(Failure::new(
            "the following required arguments were not provided: --nbd <ADDRESS>; see `elastripe help serve`",
        )
        .with_exit(EXIT_MISUSED));
    }
    serve_array(arguments, passed)
}

fn serve_array(arguments: &Arguments, passed: Vec<Passed>) -> Result<Exit, Failure> {
    let _log = logbook::begin(arguments.whole.log_time.into());
    open_files::raise();
    let paths = if arguments.scan || arguments.array.is_some() {
        members_of(&arguments.paths, arguments.array.as_deref())?
    } else {
        arguments.paths.clone()
    };
    let paths = with_shared_members(paths, &arguments.whole.shared_spare);
    let incomplete = if arguments.whole.degraded { Incomplete::Accept } else { Incomplete::Refuse };
    // Whatever can fail without the array being touched comes before it is assembled.
    let force = Force::of_flag(arguments.whole.force);
    let locked = match arguments.read_only {
        true => lock_to_read(&paths, force, incomplete),
        false => lock(&paths, force, incomplete),
    };
    let locked = locked.map_err(|error| name_the_server(error, &paths))?;
    let config = locked.superblock().config;
    arguments.whole.check(config.scheme)?;
    let options =
        engine_options(&arguments.whole, config.scheme, arguments.sync.policy(), locked.has_files());
    let options = if arguments.read_only { without_background(options) } else { options };
    let threads = arguments.clients.threads.of(config.shard.count.into())?;
    let clients = arguments.clients.socket_threads.of(threads);
    let need =
        arguments.whole.memory.limit.check(&config, &options, buffers_bytes(&config, threads, clients))?;
    let addresses = arguments.clients.addresses();
    let listening = (threads + clients.own_count(), addresses.len() + passed.len());
    let files = check_open_files(&locked, &arguments.whole, listening)?;
    let guard = arguments.clients.guards.guard(&addresses, &passed)?;
    let reloading = named::reloading(arguments, &guard)?;
    let limits = limits_of(files, clients.count(threads));
    let places = Places {
        addresses: &addresses,
        passed,
        reloading,
        disk: arguments.clients.disk(clients.count(threads)),
        limits,
    };
    let mut endpoints = Endpoints::open(&locked, places)?;
    let monitor = arguments.whole.metrics.as_deref().map(Monitor::listen).transpose()?;
    let uuid = locked.superblock().array;
    let assembled = endpoints.assemble(locked, options, arguments.whole.driver())?;
    warn_of_memory(&need);
    let talk = Talk::of(&arguments.whole);
    let usage = if arguments.read_only { Use::ReadOnly } else { Use::ReadWrite };
    print_start(&assembled, usage, talk);
    let service = Service {
        usage,
        on_event: arguments.whole.on_event.clone(),
        run: arguments.whole.run.clone(),
        threads,
        clients,
        shared_spares: arguments.whole.shared_spare.clone(),
    };
    if let Some(monitor) = monitor {
        say_of_page(&monitor, talk);
        monitor.start(socket_path(uuid))?;
    }
    // Who only looks destroys nothing.
    let is_safe = arguments.read_only || arguments.store_as_disk;
    let look = |plant| if is_safe { (plant, Ok(())) } else { refuse_store(plant) };
    let served = serve(assembled, endpoints, &service, look, move |uris| {
        uris.iter().for_each(|uri| talk.say(format_args!("serving at {uri}")));
    })?;
    if arguments.whole.run.is_none() {
        let connections = served.summary.connections;
        output::line(format_args!("stopped in order; {connections} connections were served"));
    }
    Ok(served.child.map_or(0, exit_of))
}

/// Of members that somebody holds: who serves them.
pub(super) fn name_the_server(error: Error, paths: &[PathBuf]) -> Failure {
    let serves =
        |record: &Record| record.paths.iter().any(|own| paths.iter().any(|path| same_file(own, path)));
    let server = if matches!(error, Error::InUse(_)) { records().into_iter().find(serves) } else { None };
    let was_killed = server.as_ref().is_some_and(Record::was_killed);
    let Some(Record { uuid, name, pid, addresses, .. }) = server else { return error.into() };
    let Error::InUse(reason) = error else { return error.into() };
    let name = if name.is_empty() { uuid } else { name };
    let addresses = addresses.join(" ");
    if was_killed {
        return Failure::new(format!(
            "{reason}: the server of array {name}, process {pid}, was killed; its devices have not been let go yet"
        ));
    }
    Failure::new(format!(
        "{reason}: array {name} is being served already, by process {pid} at {addresses}; `elastripe status {name}` says how it is"
    ))
}

/// Where page and metrics are, and whether others can see them.
pub(super) fn say_of_page(monitor: &Monitor, talk: Talk) {
    let bound = monitor.address();
    let uri = uri_at("http", bound);
    talk.say(format_args!("page at {uri}/, metrics at {uri}/metrics"));
    if !bound.ip().to_canonical().is_loopback() {
        let text = format!(
            "--metrics {bound}: whoever reaches it can see the page and the metrics, unencrypted; nothing can be changed there"
        );
        log_as(Level::Warning, &text);
    }
}

/// Refuses an array for which this process may not open enough files; those that it opens, of which threads
/// that listen at so many sockets each.
pub(super) fn check_open_files(
    locked: &Locked,
    whole: &ArrayChoices,
    (threads, listeners): (usize, usize),
) -> Result<OpenFiles, Failure> {
    let devices = locked.found.all_paths().len() + whole.shared_spare.len();
    let shards = locked.superblock().config.shard.count.into();
    let files = OpenFiles { devices, shards, threads, listeners };
    files.check()?;
    Ok(files)
}

/// As many clients for each of so many threads that serve them as there may be files.
fn limits_of(files: OpenFiles, socket_threads: usize) -> Limits {
    let limits = Limits::default();
    let clients = files.limit_clients(limits.connections_max.saturating_mul(socket_threads));
    Limits { connections_max: (clients / socket_threads).max(1), ..limits }
}

/// An array that would fit into the machine, but perhaps not beside what else runs there.
pub(super) fn warn_of_memory(need: &MemoryNeed) {
    let available = available_bytes();
    if need.total_bytes() > available {
        log(&format!(
            "the array takes up to {}, and {} are available now",
            show_need(need),
            show_size(available)
        ));
    }
}

/// A time in which a device that works can answer, or `off`.
fn parse_device_timeout(text: &str) -> Result<MaybeDuration, String> {
    match parse_duration_or_off(text)? {
        Some(time) if time < DEVICE_TIMEOUT_MIN => Err(format!(
            "found {text:?}, expected at least {} ms, or off: with less, devices that work are taken out of service",
            DEVICE_TIMEOUT_MIN.as_millis()
        )),
        given => Ok(given),
    }
}

/// A power of two within the limits.
fn parse_untorn_size(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    match (UNTORN_BYTES_DEFAULT..=UNTORN_BYTES_MAX).contains(&bytes) && bytes.is_power_of_two() {
        true => Ok(bytes),
        false => Err(format!(
            "expected a power of two from {} to {}",
            show_size(UNTORN_BYTES_DEFAULT),
            show_size(UNTORN_BYTES_MAX)
        )),
    }
}

/// Nothing is done that nobody asks for: all of it writes.
fn without_background(options: EngineOptions) -> EngineOptions {
    let commit = CommitPolicy { every_requests: None, idle_ns: None, bytes_per_s: None };
    EngineOptions { commit, patrol: None, confirm_idle_ns: None, ..options }
}

fn table_bytes(memory: &MemoryShares) -> u64 {
    memory.table_memory.unwrap_or_else(|| memory.limit.table_bytes())
}

pub(super) fn engine_options(
    whole: &ArrayChoices,
    kind: SchemeKind,
    sync: SyncPolicy,
    on_files: bool,
) -> EngineOptions {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let idle_ns = whole.commits.commit_idle.map(nanoseconds);
    let discard = whole.background.discard.settled(on_files);
    let options = discard.apply(whole.batches.apply(EngineOptions::default()));
    let scheme = SchemeOptions { untorn_bytes: whole.untorn_size, ..options.scheme };
    let options = whole.commits.rewrites.apply(EngineOptions { scheme, ..options });
    let options = whole.elastic.served(kind).apply(options, SchemeOptions::default().tuning.seed);
    whole.cache.apply(EngineOptions {
        commit: CommitPolicy {
            every_requests: whole.commits.commit_every,
            idle_ns,
            bytes_per_s: whole.commits.commit_rate,
        },
        sync,
        pool_bytes: whole.memory.buffers,
        table_bytes: table_bytes(&whole.memory),
        rebuild_bytes_per_s: whole.background.rebuild_rate,
        patrol: whole.background.patrol.map(|interval| PatrolPolicy {
            interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            bytes_per_s: PATROL_BYTES_PER_S,
        }),
        device_timeout_ns: whole.device_timeout.map(nanoseconds),
        confirm_idle_ns: Some(CONFIRM_IDLE_NS),
        ..options
    })
}

/// Where the server's own words go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Talk {
    /// To standard output.
    Output,
    /// To standard error: standard output belongs to the command of `--run`.
    Error,
}

impl Talk {
    pub(super) fn of(whole: &ArrayChoices) -> Self {
        if whole.run.is_some() { Self::Error } else { Self::Output }
    }

    pub(super) fn say(self, text: impl std::fmt::Display) {
        match self {
            Self::Output => output::line(text),
            Self::Error => output::warn(text),
        }
    }
}

pub(super) fn print_start(assembled: &Assembled, usage: Use, talk: Talk) {
    talk.say(describe(assembled.found.superblock()));
    talk.say(format_args!("recovery: {}", describe_recovery(&assembled.report)));
    for path in &assembled.found.diverged {
        log_as(Level::Warning, &describe_diverged(path));
    }
    for path in assembled.found.stale.iter().filter(|path| !assembled.found.diverged.contains(path)) {
        log(&format!(
            "{}: not in service (it was replaced, or left and can come back: `elastripe online`); left alone",
            path.display()
        ));
    }
    let main_count = assembled.found.superblock().config.geometry.device_count();
    for dev in assembled.found.unnamed() {
        let since = match usage {
            Use::ReadWrite => " and out of service from now on",
            Use::ReadOnly => "",
        };
        let text = format!("{} is left out{since}", member_name(main_count, dev));
        log_as(Level::Warning, &text);
    }
    assembled.notes.iter().for_each(|note| log(&note.to_string()));
}

/// What recovery did, in a line.
pub fn describe_recovery(report: &RecoveryReport) -> String {
    let RecoveryReport { was_clean, checkpoint, replayed, verified, dropped, healed, resynced, .. } = *report;
    let how = if was_clean { "stopped in order" } else { "not stopped in order" };
    let mut text = format!("the array was {how}; checkpoint {checkpoint}, {replayed} records replayed");
    for (count, what) in [
        (verified, "verified"),
        (dropped, "dropped (nothing shows that they were durable)"),
        (healed, "chunks healed"),
        (resynced, "stripes resynced"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

/// As a shell reports it: the code, or 128 plus the signal.
pub(super) fn exit_of(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
