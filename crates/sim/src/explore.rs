//! Many worlds on all cores.

use crate::life::run;
use crate::machine::Outcome;
use crate::swarm::{Pinned, Scarce};
use crate::violation::Violation;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this many worlds.
    Worlds(u64),
    /// After this long.
    Time(Duration),
}

/// A world in which something went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What went wrong.
    pub what: String,
}

/// What an exploration saw.
#[derive(Clone, Debug, Default)]
pub struct Exploration {
    /// Worlds run.
    pub worlds: u64,
    /// Worlds in which a power cut might have torn an aligned block of several chunks.
    pub tearing: u64,
    /// Sums over all worlds.
    pub total: Outcome,
    /// The first failure of each kind, by seed.
    pub failures: Vec<Failure>,
    /// How long it took, in seconds.
    pub seconds: f64,
}

thread_local! {
    static PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
    static CAUGHT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn catch_panics_quietly() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CAUGHT.get() {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                PANIC.set(Some((place, info.to_string().replace('\n', " "))));
            } else {
                before(info);
            }
        }));
    });
}

/// Runs one world; a panic of the engine is a violation like any other.
pub fn run_caught(seed: u64, pinned: Pinned, verbose: bool) -> Result<Outcome, Violation> {
    caught(|| run(seed, pinned, verbose))
}

/// Runs something that may panic.
pub(crate) fn caught(run: impl FnOnce() -> Result<Outcome, Violation>) -> Result<Outcome, Violation> {
    catch_panics_quietly();
    CAUGHT.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    CAUGHT.set(false);
    result.unwrap_or_else(|_| {
        let (place, what) = PANIC.take().unwrap_or_else(|| (String::new(), "panicked".into()));
        Err(Violation::new(what, place))
    })
}

/// The command that replays a world.
pub fn replay_command(seed: u64, pinned: Pinned) -> String {
    let scheme = pinned.scheme.map(|scheme| format!(" --scheme {scheme}")).unwrap_or_default();
    let named = Scarce::ALL.iter().find(|(_, scarce)| pinned.scarce == Some(*scarce));
    let scarce = named.map(|(name, _)| format!(" --scarce {name}")).unwrap_or_default();
    let blackouts = if pinned.blackouts { " --blackouts" } else { "" };
    let ruin = if pinned.ruin { " --ruin" } else { "" };
    let rot = if pinned.rot { " --rot" } else { "" };
    let returns = if pinned.returns { " --returns" } else { "" };
    let succeeds = if pinned.succeeds { " --succeeds" } else { "" };
    let hangs = if pinned.hangs { " --hangs" } else { "" };
    let grows = if pinned.grows { " --grows" } else { "" };
    let maims = if pinned.maims { " --maims" } else { "" };
    let shards = pinned.shards.map(|shards| format!(" --shards {shards}")).unwrap_or_default();
    format!(
        "cargo run --release -p elastripe-sim -- --seed {seed}{scheme}{shards}{scarce}{blackouts}{ruin}{rot}{returns}{succeeds}{hangs}{grows}{maims} --verbose"
    )
}

/// Runs worlds from `first_seed` on, on `threads` threads, until enough are done or `failures_max` have
/// failed.
pub fn explore(
    first_seed: u64,
    until: Until,
    pinned: Pinned,
    threads: usize,
    failures_max: usize,
) -> Exploration {
    let started = Instant::now();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let exploration = Mutex::new(Exploration::default());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let over = match until {
                Until::Worlds(count) => index >= count,
                Until::Time(time) => started.elapsed() >= time,
            };
            if over || stop.load(Ordering::Relaxed) {
                return;
            }
            let seed = first_seed.wrapping_add(index);
            let result = run_caught(seed, pinned, false);
            let Ok(mut sums) = exploration.lock() else { return };
            sums.worlds += 1;
            match result {
                Ok(outcome) => {
                    sums.total.events += outcome.events;
                    sums.total.crashes += outcome.crashes;
                    sums.total.requests += outcome.requests;
                    sums.total.replaced += outcome.replaced;
                    sums.total.tearable += outcome.tearable;
                    sums.total.untorn += outcome.untorn;
                    sums.tearing += u64::from(outcome.tearable > 0);
                    sums.total.kept += outcome.kept;
                    sums.total.succeeded += outcome.succeeded;
                    sums.total.steered += outcome.steered;
                    sums.total.grown += outcome.grown;
                    sums.total.returned += outcome.returned;
                    sums.total.pages_read += outcome.pages_read;
                    sums.total.beside += outcome.beside;
                    sums.total.replayed += outcome.replayed;
                    sums.total.dropped += outcome.dropped;
                    sums.total.ruined += outcome.ruined;
                    sums.total.refused += outcome.refused;
                    sums.total.healed += outcome.healed;
                    // Worlds end in any order; the digest of all must not depend on it.
                    sums.total.hash ^= block::mix(outcome.hash ^ seed);
                }
                Err(violation) => {
                    sums.failures.push(Failure { seed, what: violation.to_string() });
                    stop.fetch_or(sums.failures.len() >= failures_max, Ordering::Relaxed);
                }
            }
        }
    };
    if threads == 1 {
        worker(); // here, where a bug may be planted
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(worker);
            }
        });
    }
    let mut exploration = exploration.into_inner().unwrap_or_default();
    exploration.failures.sort_by_key(|failure| failure.seed);
    exploration.seconds = started.elapsed().as_secs_f64();
    exploration
}
