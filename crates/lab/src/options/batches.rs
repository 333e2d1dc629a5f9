//! Options of rebuild, scrub and parity commit: how much they read at once.

use crate::failure::Failure;
use array::EngineOptions;
use clap::Args;
use format::SchemeKind;

/// Refuses an option of parity commit, `given` with its value, for a scheme that has nothing to commit.
pub fn check_commits(given: Option<String>, scheme: SchemeKind) -> Result<(), Failure> {
    match given {
        Some(given) if !scheme.has_log() => Err(Failure::new(format!(
            "{given}: scheme {scheme} keeps its parity up to date and has nothing to commit; only eplog and parity-log do"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Stripes of a batch, unless that is said.
const BATCH: u32 = 100;
/// Batches under way, unless that is said.
const PREFETCH: u32 = 2;

/// Sizes of background work (EPLOG, section 3.4: batches and prefetch; ).
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batches {
    /// Stripes that rebuild, scrub and commit take at once.
    #[arg(long, default_value_t = BATCH, value_parser = clap::value_parser!(u32).range(1..=65536), value_name = "STRIPES")]
    pub batch: u32,
    /// Batches under way: while one is written, this many less one are being read. 1 = no prefetch.
    #[arg(long, default_value_t = PREFETCH, value_parser = clap::value_parser!(u32).range(1..=64), value_name = "BATCHES")]
    pub prefetch: u32,
}

impl Default for Batches {
    fn default() -> Self {
        Self { batch: BATCH, prefetch: PREFETCH }
    }
}

impl Batches {
    /// What is said where there is nothing to read in batches.
    pub fn without_effect(self, scheme: SchemeKind) -> Failure {
        Failure::new(format!(
            "--batch {}, --prefetch {}: found no rebuild, and scheme {scheme} has nothing to commit; leave them out",
            self.batch, self.prefetch
        ))
    }

    /// The same options with these.
    pub fn apply(self, options: EngineOptions) -> EngineOptions {
        EngineOptions {
            unit_stripes: self.batch as usize,
            units_in_flight: self.prefetch as usize,
            ..options
        }
    }
}
