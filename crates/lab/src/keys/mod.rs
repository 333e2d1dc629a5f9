//! `kv bench`: a store of keys in this process, on arrays of several schemes one after the other.
//!
//! `draw` makes the requests, `logged` is the product's store and `in_place` the paper's, `rig` makes the
//! arrays, `measure` runs the load, `report` says what it came to. On memory and null devices time is that of
//! this machine; on simulated ones it is theirs, and neither the engine's nor the store's own work takes any.

mod carrier;
mod draw;
mod in_place;
mod logged;
mod measure;
mod report;
mod rig;

use crate::Exit;
use crate::failure::Failure;
use crate::options::cache::StripeCache;
use crate::options::consistency::ConsistencyChoice;
use crate::options::rewrites::RewriteChoice;
use crate::provenance;
use crate::subject::build::{Columns, parse_code};
use crate::subject::nbd::Uri;
use crate::subject::target::Target;
use clap::{Args, ValueEnum};
use draw::{Popularity, Request, Workload};
use format::{CodeKind, SchemeKind};
use measure::Measured;
use node::output;
use node::units::parse_size;

/// Options of `kv bench`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The volume of an NBD export, of whatever server, instead of an array in this process:
    /// nbd+unix:///EXPORT?socket=PATH, nbd://HOST:PORT/EXPORT, unix:PATH or tcp:HOST:PORT. What the server
    /// writes to its devices is not seen from here.
    #[arg(
        long,
        value_name = "URI",
        requires = "overwrite",
        conflicts_with_all = ["device", "geometry", "schemes", "code", "fill", "spare", "no_commits", "ssd", "log_device"]
    )]
    nbd: Option<Uri>,
    /// With --nbd: what the volume holds is lost.
    #[arg(long, requires = "nbd")]
    overwrite: bool,
    /// Devices of the array: memory; null, which count only; or simulated, in virtual time.
    #[arg(long, value_enum, default_value = "memory")]
    device: Devices,
    /// Data and parity devices.
    #[arg(long, default_value = "6+2", value_name = "K+M")]
    geometry: Columns,
    /// Schemes, separated by commas, one after the other: raid, parity-log, eplog, elastic, was.
    #[arg(long, value_delimiter = ',', default_value = "eplog", value_name = "SCHEME")]
    schemes: Vec<SchemeKind>,
    /// The store: `log` is the product's, `in-place` that of the EPLOG paper, with pairs of one size that are
    /// overwritten where they are. That one is not durable, and only for comparison.
    #[arg(long, value_enum, default_value = "log")]
    layout: Layout,
    /// What is asked for, separated by commas, in this order: set, get, update, mixed, or YCSB's a to f.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "set,update,get")]
    workload: Vec<Workload>,
    #[command(flatten)]
    load: Load,
    /// Erasure code: auto, xor, cauchy or rdp.
    #[arg(long, value_parser = parse_code, default_value = "auto")]
    code: std::option::Option<CodeKind>,
    #[command(flatten)]
    consistency: ConsistencyChoice,
    #[command(flatten)]
    rewrites: RewriteChoice,
    #[command(flatten)]
    stripes: StripeCache,
    /// How full the store is with the keys loaded, in percent of what it can hold (layout log).
    #[arg(long, default_value = "75", value_parser = clap::value_parser!(u64).range(5..=95), value_name = "PERCENT")]
    fill: u64,
    /// Spare chunks on each device per stripe, in percent: how many updates fit between two commits.
    #[arg(long, default_value = "100", value_parser = clap::value_parser!(u64).range(10..=800), value_name = "PERCENT")]
    spare: u64,
    /// Room for all requests without a parity commit, instead of --spare.
    #[arg(long, conflicts_with = "spare")]
    no_commits: bool,
    /// Preset of simulated SSDs; `flash presets` lists them.
    #[arg(long, default_value = "plextor-m5pro", value_name = "PRESET")]
    ssd: String,
    /// Preset of simulated log devices.
    #[arg(long, default_value = "seagate-st1000dm003", value_name = "PRESET")]
    log_device: String,
    /// Seed of requests.
    #[arg(long, default_value = "1", value_name = "N")]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Keys and requests.
#[derive(Args, Clone, Debug)]
struct Load {
    /// Pairs that are loaded first.
    #[arg(long, default_value = "200000", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), value_name = "N")]
    keys: u64,
    /// Requests of each workload.
    #[arg(long, default_value = "600000", value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    requests: u64,
    /// Bytes of a pair: 5 of sizes, a key of 24, the value.
    #[arg(long, default_value = "4KiB", value_parser = parse_pair, value_name = "SIZE")]
    pair_size: usize,
    /// Keys that the cache of metadata holds, in percent of those loaded.
    #[arg(long, default_value = "100", value_parser = clap::value_parser!(u64).range(0..=100), value_name = "PERCENT")]
    cache: u64,
    /// Memory for records of up to 16 KiB that were read, as `kv serve` has it; hits in it do not count among
    /// those of the cache of metadata (layout log).
    #[arg(long, value_parser = parse_size, default_value = "0B", value_name = "SIZE")]
    cache_records: u64,
    /// Which keys are asked for; YCSB D asks for the latest in any case.
    #[arg(long, value_enum, default_value = "zipf")]
    keys_by: Popularity,
    /// Requests under way.
    #[arg(long, default_value = "64", value_parser = clap::value_parser!(u32).range(1..=4096), value_name = "N")]
    queue_depth: u32,
    /// When an answered change is durable: always, everysec, or at the end only (flush).
    #[arg(long, value_enum, default_value = "flush")]
    sync: SyncChoice,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Devices {
    Memory,
    Null,
    Simulated,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Layout {
    Log,
    InPlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SyncChoice {
    Always,
    Everysec,
    Flush,
}

impl SyncChoice {
    fn of_store(self) -> kv::Sync {
        match self {
            Self::Always => kv::Sync::Always,
            Self::Everysec => kv::Sync::EverySecond,
            Self::Flush => kv::Sync::OnFlush,
        }
    }
}

/// Bytes of a key.
const KEY_BYTES: usize = 24;
/// Bytes of a pair that are not its value (K-02, K-10).
const OVERHEAD_BYTES: usize = KEY_BYTES + kv::fixed::PAIR_METADATA_BYTES;

fn parse_pair(text: &str) -> Result<usize, String> {
    let bytes = parse_size(text)?;
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| (OVERHEAD_BYTES + 8..=1 << 20).contains(bytes))
        .ok_or_else(|| format!("found {bytes} bytes, expected {} to 1048576", OVERHEAD_BYTES + 8))
}

/// The key with this number: 24 bytes.
fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"user00000000000000000000";
    let mut rest = number;
    for digit in key.iter_mut().rev().take_while(|digit| **digit == b'0') {
        *digit += u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    key
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).expect("memory has at most 64 bits")
}

/// What a store has counted so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Kept {
    hits: u64,
    misses: u64,
    /// Bytes of keys and values that clients gave; in place, of pairs.
    given_bytes: u64,
    /// Bytes that the store wrote to its volume.
    written_bytes: u64,
    /// Bytes of records that compaction copied.
    moved_bytes: u64,
    memory_bytes: u64,
    live_bytes: u64,
    capacity_bytes: u64,
}

/// A store under load. Places are numbers of requests under way.
trait Subject {
    /// The array below.
    fn target(&mut self) -> &mut dyn Target;
    /// Starts a request.
    fn start(&mut self, place: usize, request: Request);
    /// Goes on; appends the places whose requests have ended.
    fn turn(&mut self, now_ns: u64, wait_ns: u64, done: &mut Vec<usize>) -> Result<(), Failure>;
    /// The request that loads the keys from this one on, [`Subject::load_step`] of them and not beyond
    /// `keys`; none if one before did.
    fn load(&mut self, from: u64, keys: u64) -> Result<Option<Request>, Failure>;
    /// Keys that one request of the load adds.
    fn load_step(&self) -> u64 {
        1
    }
    /// Makes everything durable.
    fn settle(&mut self) -> Result<(), Failure>;
    /// What was counted.
    fn kept(&self) -> Kept;
}

impl Arguments {
    fn check(&self) -> Result<(), Failure> {
        self.consistency.check_any(&self.schemes)?;
        self.rewrites.check_any(&self.schemes)?;
        self.stripes.check_any(&self.schemes)?;
        if self.layout == Layout::Log {
            return Ok(());
        }
        if self.nbd.is_some() {
            return Err(Failure::new(
                "--nbd: the layout in-place needs an array in this process; take --layout log",
            ));
        }
        if let Some(workload) =
            self.workload.iter().find(|w| w.scans() || (w.inserts() && **w != Workload::Set))
        {
            return Err(Failure::new(format!(
                "--workload {workload}: the layout in-place has neither scans nor keys that come later; take --layout log"
            )));
        }
        if self.load.cache_records > 0 {
            return Err(Failure::new(
                "--cache-records: the layout in-place keeps no records; take --layout log",
            ));
        }
        if !self.load.pair_size.is_multiple_of(4096) {
            return Err(Failure::new(format!(
                "--pair-size: found {} bytes, expected a multiple of 4096 with --layout in-place",
                self.load.pair_size
            )));
        }
        Ok(())
    }

    fn places(&self) -> usize {
        usize::try_from(self.load.queue_depth).unwrap_or(usize::MAX)
    }

    fn value_bytes(&self) -> usize {
        self.load.pair_size - OVERHEAD_BYTES
    }

    fn cache_keys(&self) -> usize {
        usize::try_from(self.load.keys * self.load.cache / 100).unwrap_or(usize::MAX)
    }

    /// Keys that workloads add to those loaded, at most.
    fn inserted_keys(&self) -> u64 {
        let adding =
            self.workload.iter().filter(|workload| workload.inserts() && **workload != Workload::Set);
        // A twentieth of the requests, and what chance adds to it.
        adding.map(|_| self.load.requests / 16 + 1000).sum()
    }
}

/// Runs `kv bench`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.check()?;
    let mut results = Vec::new();
    for &scheme in &arguments.schemes {
        let measured = one(arguments, scheme)?;
        if !arguments.json {
            measured.iter().for_each(|measured| report::print(arguments, measured));
        }
        results.extend(measured);
    }
    if arguments.json {
        output::line(format_args!("{:#}", report::to_json(arguments, &results)));
    } else {
        report::terms(arguments).iter().for_each(output::line);
        output::line(format_args!("made by {}", provenance::text()));
    }
    Ok(0)
}

/// All workloads on one scheme, or on what is exported elsewhere.
fn one(arguments: &Arguments, scheme: SchemeKind) -> Result<Vec<Measured>, Failure> {
    let mut subject = rig::subject(arguments, scheme)?;
    let mut measured = Vec::new();
    let loaded = measure::load(arguments, scheme, &mut *subject)?;
    if arguments.workload.contains(&Workload::Set) {
        measured.push(loaded);
    }
    for &workload in arguments.workload.iter().filter(|workload| **workload != Workload::Set) {
        measured.push(measure::run(arguments, scheme, workload, &mut *subject)?);
    }
    Ok(measured)
}

/// Runs a cell of an experiment: one scheme and one workload in virtual time, and what it counted by name.
pub(crate) fn figures(arguments: &Arguments) -> Result<Vec<(String, f64)>, Failure> {
    arguments.check()?;
    let &[scheme] = arguments.schemes.as_slice() else {
        return Err(Failure::new(format!("--schemes: found {}, expected one", arguments.schemes.len())));
    };
    let measured = one(arguments, scheme)?;
    let last = measured.last().ok_or_else(|| Failure::new("--workload: found none, expected one"))?;
    Ok(last.figures())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use clap::{Command, FromArgMatches as _};

    fn arguments(words: &str) -> Arguments {
        let parser = Arguments::augment_args(Command::new("bench").no_binary_name(true));
        Arguments::from_arg_matches(&parser.try_get_matches_from(words.split_whitespace()).unwrap()).unwrap()
    }

    const SMALL: &str = "--keys 600 --requests 2000 --queue-depth 8 --geometry 4+2";

    /// K-10: 24 bytes, whatever the number.
    #[test]
    fn keys_have_24_bytes_and_are_all_different() {
        assert_eq!(&key(0), b"user00000000000000000000");
        assert_eq!(&key(12_090), b"user00000000000000012090");
        assert_eq!(&key(u64::MAX), b"user18446744073709551615");
    }

    #[test]
    fn records_that_are_kept_are_not_read_again() {
        let read = |records: &str| {
            let words = format!("{SMALL} --workload set,get --cache-records {records}");
            let measured = one(&arguments(&words), SchemeKind::Eplog).unwrap();
            (measured[1].requests, measured[1].read_bytes)
        };
        let ((requests, without), (same, with)) = (read("0B"), read("64MiB"));
        assert_eq!(requests, same);
        // Of 600 keys each is read once at most.
        assert!(with > 0 && with <= 600 * 3 * 4096 && without > 2 * with, "{without} and {with}");
        let words = format!("{SMALL} --layout in-place --cache-records 1MiB");
        assert!(arguments(&words).check().is_err());
    }

    /// K-01, K-08, K-09, K-11: both stores on every scheme, with every share of cache.
    #[test]
    fn every_scheme_carries_both_stores_with_and_without_a_cache() {
        for layout in ["log", "in-place"] {
            for scheme in ["raid", "parity-log", "eplog", "elastic", "was"] {
                for cache in [0, 50, 100] {
                    let words = format!(
                        "{SMALL} --layout {layout} --schemes {scheme} --cache {cache} --workload set,mixed,update,get,f"
                    );
                    let measured = one(&arguments(&words), scheme.parse().unwrap()).unwrap();
                    assert_eq!(measured.len(), 5, "{words}");
                    for row in &measured[1..] {
                        assert_eq!(row.requests, 2000, "{words}");
                        let rate = row.hit_rate().unwrap();
                        assert!(if cache == 100 {
                            rate > 0.99
                        } else if cache == 0 {
                            rate == 0.0
                        } else {
                            rate > 0.3
                        });
                    }
                    let update = &measured[2];
                    assert!(update.data_bytes > 0 && update.parity_bytes + update.log_bytes > 0, "{words}");
                }
            }
        }
    }

    #[test]
    fn ycsbs_inserts_and_scans_run_on_the_log() {
        let words = format!("{SMALL} --workload a,b,c,d,e,f --sync always");
        let measured = one(&arguments(&words), SchemeKind::Eplog).unwrap();
        assert!(measured.iter().all(|row| row.requests == 2000 && row.cpu_ns > 0));
        for device in ["null", "simulated"] {
            let words = format!("{SMALL} --workload a,e --device {device}");
            assert_eq!(one(&arguments(&words), SchemeKind::Eplog).unwrap().len(), 2);
        }
    }

    #[test]
    fn virtual_time_is_the_same_for_the_same_seed() {
        let words = format!(
            "{SMALL} --workload mixed --device simulated --layout in-place --no-commits --cache 25 --schemes eplog --rewrites log"
        );
        let (one, again) = (figures(&arguments(&words)).unwrap(), figures(&arguments(&words)).unwrap());
        assert_eq!(one, again);
        let rate = one.iter().find(|(name, _)| name == "requests_per_second").unwrap().1;
        assert!(rate > 0.0);
    }

    #[test]
    fn what_the_papers_store_cannot_do_is_refused() {
        for words in [
            "--layout in-place --workload e",
            "--layout in-place --workload d",
            "--layout in-place --pair-size 5KiB",
        ] {
            assert!(arguments(words).check().is_err(), "{words}");
        }
    }
}
