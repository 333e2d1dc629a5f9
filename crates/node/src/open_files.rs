//! How many files a server may have open, and how many it needs.

use crate::error::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// Files that every server has open: standard streams, control socket, record, signals, events, pollers,
/// page.
const BASE: u64 = 32;
/// Files of each shard beside the members: its ring and its events.
const PER_SHARD: u64 = 4;
/// Files of each thread that runs shards or serves clients.
const PER_THREAD: u64 = 4;

/// What a server has open, with nobody connected.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles {
    /// Members, spares and shared spares.
    pub devices: usize,
    /// Shards of the array.
    pub shards: usize,
    /// Threads that run them or serve clients.
    pub threads: usize,
}

impl OpenFiles {
    fn needed(self) -> u64 {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let of_shards = count(self.shards).saturating_mul(PER_SHARD);
        let of_threads = count(self.threads).saturating_mul(PER_THREAD);
        BASE.saturating_add(count(self.devices)).saturating_add(of_shards).saturating_add(of_threads)
    }

    /// Whether this process may open them: before an array is assembled that could not be served then.
    pub fn check(self) -> Result<(), Error> {
        let needed = self.needed();
        match getrlimit(Resource::Nofile).current {
            Some(allowed) if allowed < needed => Err(Error::OpenFiles { allowed, needed }),
            Some(_) | None => Ok(()),
        }
    }
}

/// The limit before it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Lets this process open as many files as it may let itself: every member and every client is one.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        if let Some(limit) = current {
            BEFORE.get_or_init(|| limit);
        }
        // Then it is as many as before, and whoever needs more says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// As many as this process might open when it began, if it has let itself open more.
pub fn before() -> Option<u64> {
    BEFORE.get().copied()
}

#[cfg(test)]
mod tests {
    use super::OpenFiles;

    #[test]
    fn large_arrays_need_more_files() {
        let of = |devices, shards, threads| OpenFiles { devices, shards, threads }.needed();
        assert!(of(4, 1, 1) <= 64, "a small limit is enough for a small array");
        assert!(of(64, 16, 32) <= 1024, "the usual limit is enough for a large one");
        assert!(of(64, 16, 32) > of(4, 1, 1) + 60);
        assert_eq!(of(usize::MAX, usize::MAX, usize::MAX), u64::MAX);
    }
}
