//! `--threads`, `--shards`, `--queue-depth`: which threads run an array, and what each has in flight.

use crate::failure::Failure;
use clap::Args;
use format::SHARDS_MAX;
use std::fmt;

/// See the module's documentation.
#[derive(Args, Clone, Debug)]
pub struct Threads {
    /// Requests that each thread has in flight.
    #[arg(long, default_value = "32", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub queue_depth: u32,
    /// Threads that run the array, each its share of the shards; several numbers, separated by commas, are
    /// measured side by side. Every thread makes its own load: a queue of --queue-depth requests, drawn
    /// over the volumes of its own shards alone, so that nothing passes from one thread to another.
    #[arg(long, default_value = "1", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=i64::from(SHARDS_MAX)))]
    threads: Vec<u16>,
    /// Shards of the array, at least as many as threads (default: as many). Each is an array of its own on
    /// a slice of every member; volume, spare space, --table-memory, buffers, caches and --recent-entries
    /// are split over them.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=i64::from(SHARDS_MAX)))]
    shards: Option<u16>,
}

/// How an array is spread over threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Threads.
    pub threads: u16,
    /// Shards; as many as threads at least.
    pub shards: u16,
}

impl Spread {
    /// One thread, one shard: an array as it is without shards.
    pub const SINGLE: Self = Self { threads: 1, shards: 1 };

    /// Shards of a thread, by number.
    pub fn shards_of(self, thread: u16) -> impl ExactSizeIterator<Item = u16> {
        (thread..self.shards).step_by(usize::from(self.threads))
    }

    /// The thread that runs a shard.
    pub fn thread_of(self, shard: u16) -> u16 {
        shard % self.threads
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |count: u16| if count == 1 { "" } else { "s" };
        let Self { threads, shards } = *self;
        f.pad(&format!("{threads} thread{}, {shards} shard{}", many(threads), many(shards)))
    }
}

impl Threads {
    /// What was asked for, in the order in which it was.
    pub fn spreads(&self) -> Result<Vec<Spread>, Failure> {
        let mut spreads: Vec<Spread> = Vec::new();
        for &threads in &self.threads {
            let spread = Spread { threads, shards: self.shards.unwrap_or(threads) };
            if spread.shards < threads {
                return Err(Failure::new(format!(
                    "--threads {threads}: found --shards {}, expected at least as many shards as threads: a shard is run by one",
                    spread.shards
                )));
            }
            if spreads.contains(&spread) {
                return Err(Failure::new(format!(
                    "--threads: found {threads} twice, expected each number once"
                )));
            }
            spreads.push(spread);
        }
        Ok(spreads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_has_one_thread() {
        for (threads, shards) in [(1, 1), (1, 5), (2, 3), (3, 3), (4, 64)] {
            let spread = Spread { threads, shards };
            let mut seen: Vec<u16> = (0..threads).flat_map(|thread| spread.shards_of(thread)).collect();
            for thread in 0..threads {
                assert!(spread.shards_of(thread).all(|shard| spread.thread_of(shard) == thread));
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..shards).collect::<Vec<_>>());
        }
    }

    #[test]
    fn threads_without_a_shard_are_refused() {
        let of =
            |threads: &[u16], shards| Threads { queue_depth: 1, threads: threads.to_vec(), shards }.spreads();
        assert_eq!(of(&[1], None).ok(), Some(vec![Spread::SINGLE]));
        let both = of(&[1, 2], Some(4)).map(|spreads| spreads.iter().map(Spread::to_string).collect());
        assert_eq!(both.ok(), Some(vec!["1 thread, 4 shards".to_owned(), "2 threads, 4 shards".to_owned()]));
        assert!(of(&[1, 3], Some(2)).is_err());
        assert!(of(&[2, 2], None).is_err());
    }
}
