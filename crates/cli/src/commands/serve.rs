//! `serve`: assembles an array and exports it over NBD until it is told to stop.

use super::Exit;
use crate::memory::MemoryLimit;
use array::{
    CommitPolicy, EngineOptions, MemoryNeed, PatrolPolicy, RecoveryReport, SchemeOptions, SyncPolicy,
    UNTORN_BYTES_DEFAULT, UNTORN_BYTES_MAX,
};
use clap::{Args, ValueEnum};
use format::ArrayConfig;
use front::SOCKET_BUFFERS_BYTES;
use lab::failure::Failure;
use lab::options::batches::{Batches, check_commits};
use lab::options::cache::CacheSizes;
use lab::options::discards::Discards;
use lab::options::placement::ElasticChoices;
use lab::options::rewrites::RewriteChoice;
use monitor::Monitor;
use node::assemble::Assembled;
use node::driver::DriverOptions;
use node::logbook::{self, Level, LogTime, log, log_as};
use node::memory::{available_bytes, show_need};
use node::open::{Force, Incomplete, describe, lock, member_name};
use node::output;
use node::registry::socket_path;
use node::scan::members_of;
use node::serve::{Address, Endpoints, Service, parse_address, serve};
use node::units::{parse_duration_or_off, parse_rate_or_off, parse_size, show_size};
use node::volume::Use;
use std::num::NonZero;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread::available_parallelism;
use std::time::Duration;

/// After so long without a request the superblocks name what the last flush made durable.
const CONFIRM_IDLE_NS: u64 = 1_000_000_000;
/// What a patrol reads at most: little beside the array's own work, and soon through the metadata of any
/// array.
const PATROL_BYTES_PER_S: u64 = 1 << 20;

/// Options of `serve`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The members, in any order, and spares. With --scan or --array, places to look at: devices, files,
    /// directories; without any, every block device.
    #[arg(required_unless_present_any = ["scan", "array"], value_name = "MEMBER")]
    paths: Vec<PathBuf>,
    /// Find the members among the paths; what is no member of the array is ignored.
    #[arg(long)]
    scan: bool,
    /// The same, of the array with this name or UUID.
    #[arg(long, value_name = "NAME|UUID")]
    array: Option<String>,
    #[command(flatten)]
    clients: ClientChoices,
    #[command(flatten)]
    commits: CommitChoices,
    /// When a completed write is durable: at the next flush, like a disk with a volatile cache, or always
    /// at once.
    #[arg(long, value_enum, default_value = "flush")]
    sync: Sync,
    /// A write of up to this size, a power of two, aligned to its size, is after a power cut there as a whole
    /// or not at all; not of arrays with --consistency resync.
    #[arg(long, value_parser = parse_untorn_size, default_value = "64KiB", value_name = "SIZE")]
    untorn_size: u64,
    #[command(flatten)]
    background: Background,
    /// A member that has not answered a request for this long is taken out of service, if the array can do
    /// without it; or `off`.
    #[arg(long, value_parser = parse_duration_or_off, default_value = "30s", value_name = "TIME")]
    device_timeout: MaybeDuration,
    #[command(flatten)]
    memory: MemoryShares,
    #[command(flatten)]
    cache: CacheSizes,
    #[command(flatten)]
    elastic: ElasticChoices,
    #[command(flatten)]
    batches: Batches,
    /// Assemble an array although newer durable state is on none of its members (it starts in the newest
    /// state that there is, what came after it is lost), or one that writes in place without a journal, was
    /// not stopped in order and lacks members (data may be silently wrong).
    #[arg(long)]
    force: bool,
    /// Start without members that are not named, do not exist or are damaged, if the array can do without
    /// them. They are out of service from then on.
    #[arg(long)]
    degraded: bool,
    /// Refuse writes of clients.
    #[arg(long)]
    read_only: bool,
    /// Whether lines of the log begin with the time.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    log_time: LogTimeName,
    /// Metrics for Prometheus at http://HOST:PORT/metrics. Nothing asks for a password: whoever reaches the
    /// address can read them.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Run this shell command whenever something happens to the array, with ELASTRIPE_EVENT, _DEVICE,
    /// _MESSAGE, _NAME and _UUID in its environment.
    #[arg(long, value_name = "COMMAND")]
    on_event: Option<String>,
    /// Run this shell command with ELASTRIPE_URI in its environment, then stop and exit with its code.
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
}

/// Where clients are, and who serves them.
#[derive(Args, Clone, Debug)]
struct ClientChoices {
    /// Where clients connect: unix:PATH or tcp:HOST:PORT; may be given several times. With --run alone, a
    /// socket of its own.
    #[arg(long, value_parser = parse_address, value_name = "ADDRESS", required_unless_present = "run")]
    nbd: Vec<Address>,
    /// Threads that run the array, at most as many as it has shards; `auto`: as many as this machine has
    /// processors. With 1 the thread that does everything else runs it, too.
    #[arg(long, default_value = "auto", value_name = "N", value_parser = parse_threads)]
    threads: Threads,
    /// Threads that serve the clients' sockets, each with 64 MiB of buffers; with 0 the thread that looks
    /// after the array does, which takes least time for a request that comes alone.
    #[arg(long, default_value = "0", value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    socket_threads: u8,
}

/// Threads that run the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Threads {
    /// As many as there are processors, and shards for.
    Auto,
    /// So many.
    Exactly(usize),
}

fn parse_threads(text: &str) -> Result<Threads, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Threads::Auto),
        Ok(count @ 1..=64) => Ok(Threads::Exactly(count)),
        Ok(_) | Err(_) => Err(format!("found {text:?}, expected auto or a number from 1 to 64")),
    }
}

impl Threads {
    /// Of an array with so many shards.
    fn of(self, shards: usize) -> Result<usize, Failure> {
        match self {
            Self::Auto => Ok(available_parallelism().map_or(1, NonZero::get).min(shards)),
            Self::Exactly(count) if count <= shards => Ok(count),
            Self::Exactly(count) => Err(Failure::new(format!(
                "--threads {count}: a thread needs a shard, and the array has {shards}; their number is chosen at \
                 `create --shards`"
            ))),
        }
    }
}

impl ClientChoices {
    /// What clients' requests take on their way to the shards, unless there is one on their own thread.
    fn buffers_bytes(&self, config: &ArrayConfig) -> u64 {
        let is_direct = config.shard.count == 1 && self.socket_threads == 0;
        if is_direct { 0 } else { SOCKET_BUFFERS_BYTES * u64::from(self.socket_threads.max(1)) }
    }
}

/// What memory is for.
#[derive(Args, Clone, Debug)]
struct MemoryShares {
    /// Memory for buffers.
    #[arg(long, value_parser = parse_size, default_value = "64MiB", value_name = "SIZE")]
    buffers: u64,
    /// Memory for the table of chunks; pages of it that have no room are read from the members when they are
    /// needed. Without it a quarter of what the array may take. The schemes elastic and was have all of
    /// theirs in memory.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    table_memory: Option<u64>,
    #[command(flatten)]
    limit: MemoryLimit,
}

/// What the array does beside its clients' requests.
#[derive(Args, Clone, Debug)]
struct Background {
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

/// When parity commit runs, and what needs none.
#[derive(Args, Clone, Debug)]
struct CommitChoices {
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
type MaybeDuration = std::option::Option<Duration>;
type MaybeRate = std::option::Option<u64>;

/// Whether lines of the log begin with the time.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum LogTimeName {
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

/// Runs `serve`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    logbook::begin(arguments.log_time.into());
    let paths = if arguments.scan || arguments.array.is_some() {
        members_of(&arguments.paths, arguments.array.as_deref())?
    } else {
        arguments.paths.clone()
    };
    let incomplete = if arguments.degraded { Incomplete::Accept } else { Incomplete::Refuse };
    // Whatever can fail without the array being touched comes before it is assembled.
    let locked = lock(&paths, Force::of_flag(arguments.force), incomplete)?;
    let scheme = locked.superblock().config.scheme;
    arguments.cache.check(scheme)?;
    arguments.elastic.check(scheme)?;
    arguments.commits.rewrites.check_any(&[scheme])?;
    check_commits(arguments.commits.commit_every.map(|writes| format!("--commit-every {writes}")), scheme)?;
    let options = engine_options(arguments, locked.has_files());
    let config = locked.superblock().config;
    let threads = arguments.clients.threads.of(config.shard.count.into())?;
    let need = arguments.memory.limit.check(&config, &options, arguments.clients.buffers_bytes(&config))?;
    let endpoints = Endpoints::open(&locked, &arguments.clients.nbd)?;
    let monitor = arguments.metrics.as_deref().map(Monitor::listen).transpose()?;
    let uuid = locked.superblock().array;
    let assembled = locked.assemble(options, DriverOptions::default())?;
    warn_of_memory(&need);
    let talk = Talk::of(arguments);
    print_start(&assembled, talk);
    let usage = if arguments.read_only { Use::ReadOnly } else { Use::ReadWrite };
    let service = Service {
        usage,
        on_event: arguments.on_event.clone(),
        run: arguments.run.clone(),
        threads,
        socket_threads: arguments.clients.socket_threads.into(),
    };
    if let Some(monitor) = monitor {
        talk.say(format_args!("metrics at http://{}/metrics", monitor.address()));
        monitor.start(socket_path(uuid))?;
    }
    let served = serve(assembled, endpoints, &service, |uris| {
        uris.iter().for_each(|uri| talk.say(format_args!("serving at {uri}")));
    })?;
    if arguments.run.is_none() {
        let connections = served.summary.connections;
        output::line(format_args!("stopped in order; {connections} connections were served"));
    }
    Ok(served.child.map_or(0, exit_of))
}

/// An array that would fit into the machine, but perhaps not beside what else runs there.
fn warn_of_memory(need: &MemoryNeed) {
    let available = available_bytes();
    if need.total_bytes() > available {
        log(&format!(
            "the array takes up to {}, and {} are available now",
            show_need(need),
            show_size(available)
        ));
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

fn table_bytes(memory: &MemoryShares) -> u64 {
    memory.table_memory.unwrap_or_else(|| memory.limit.table_bytes())
}

fn engine_options(arguments: &Arguments, on_files: bool) -> EngineOptions {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let idle_ns = arguments.commits.commit_idle.map(nanoseconds);
    let discard = arguments.background.discard.settled(on_files);
    let options = discard.apply(arguments.batches.apply(EngineOptions::default()));
    let scheme = SchemeOptions { untorn_bytes: arguments.untorn_size, ..options.scheme };
    let options = arguments.commits.rewrites.apply(EngineOptions { scheme, ..options });
    let options = arguments.elastic.apply(options, SchemeOptions::default().tuning.seed);
    arguments.cache.apply(EngineOptions {
        commit: CommitPolicy {
            every_requests: arguments.commits.commit_every,
            idle_ns,
            bytes_per_s: arguments.commits.commit_rate,
        },
        sync: match arguments.sync {
            Sync::Always => SyncPolicy::Always,
            Sync::Flush => SyncPolicy::OnFlush,
        },
        pool_bytes: arguments.memory.buffers,
        table_bytes: table_bytes(&arguments.memory),
        rebuild_bytes_per_s: arguments.background.rebuild_rate,
        patrol: arguments.background.patrol.map(|interval| PatrolPolicy {
            interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            bytes_per_s: PATROL_BYTES_PER_S,
        }),
        device_timeout_ns: arguments.device_timeout.map(nanoseconds),
        confirm_idle_ns: Some(CONFIRM_IDLE_NS),
        ..options
    })
}

/// Where the server's own words go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Talk {
    /// To standard output.
    Output,
    /// To standard error: standard output belongs to the command of `--run`.
    Error,
}

impl Talk {
    fn of(arguments: &Arguments) -> Self {
        if arguments.run.is_some() { Self::Error } else { Self::Output }
    }

    fn say(self, text: impl std::fmt::Display) {
        match self {
            Self::Output => output::line(text),
            Self::Error => output::warn(text),
        }
    }
}

fn print_start(assembled: &Assembled, talk: Talk) {
    talk.say(describe(assembled.found.superblock()));
    talk.say(format_args!("recovery: {}", describe_recovery(&assembled.report)));
    for path in &assembled.found.stale {
        log(&format!(
            "{}: no member any more (replaced, or failed while the array went on); left alone",
            path.display()
        ));
    }
    let main_count = assembled.found.superblock().config.geometry.device_count();
    for dev in assembled.found.unnamed() {
        let text = format!("{} is left out and out of service from now on", member_name(main_count, dev));
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
fn exit_of(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
