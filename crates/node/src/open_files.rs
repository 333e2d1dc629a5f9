//! How many files a server may have open, and how many it needs.

use crate::error::Error;
use crate::logbook::log;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// Files that every server has open: standard streams, control socket, record, signals, events, pollers,
/// page.
const BASE: u64 = 32;
/// Files of each shard beside the members: its ring and its events.
const PER_SHARD: u64 = 4;
/// Files of each thread that runs shards or serves clients, beside the sockets where they come: its bell,
/// what it waits by, and a copy of each.
const PER_THREAD: u64 = 6;
/// Files for commands at the control socket, and for what is looked at or run meanwhile.
const FOR_COMMANDS: u64 = 16;

/// What a server has open, with nobody connected.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles {
    /// Members, spares and shared spares.
    pub devices: usize,
    /// Shards of the array.
    pub shards: usize,
    /// Threads that run them or serve clients.
    pub threads: usize,
    /// Sockets where clients come, at all of which every thread listens.
    pub listeners: usize,
}

impl OpenFiles {
    fn needed(self) -> u64 {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let of_shards = count(self.shards).saturating_mul(PER_SHARD);
        let of_threads = count(self.threads).saturating_mul(PER_THREAD.saturating_add(count(self.listeners)));
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

    /// How many of so many clients can be connected at a time, each of which is a file: those that are too
    /// many are told so, rather than that some part of the server lacks a file later.
    pub fn limit_clients(self, wanted: usize) -> usize {
        let Some(allowed) = getrlimit(Resource::Nofile).current else { return wanted };
        let possible = self.clients_with(allowed, wanted);
        if possible < wanted {
            log(&format!(
                "this process may have {allowed} files open, so {possible} clients can be connected at a time, not {wanted}; raise the \
                 limit (`ulimit -n`, or LimitNOFILE= of a service) for more"
            ));
        }
        possible
    }

    fn clients_with(self, allowed: u64, wanted: usize) -> usize {
        let room = allowed.saturating_sub(self.needed()).saturating_sub(FOR_COMMANDS);
        usize::try_from(room).unwrap_or(usize::MAX).clamp(1, wanted.max(1))
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
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::OpenFiles;

    #[test]
    fn large_arrays_need_more_files() {
        let of = |devices, shards, threads| OpenFiles { devices, shards, threads, listeners: 2 }.needed();
        assert!(of(4, 1, 1) <= 64, "a small limit is enough for a small array");
        assert!(of(64, 16, 32) <= 1024, "the usual limit is enough for a large one");
        assert!(of(64, 16, 32) > of(4, 1, 1) + 60);
        assert_eq!(of(usize::MAX, usize::MAX, usize::MAX), u64::MAX);
    }

    #[test]
    fn clients_have_what_is_left() {
        let files = OpenFiles { devices: 4, shards: 1, threads: 1, listeners: 1 };
        let needed = files.needed();
        assert_eq!(files.clients_with(1024, 128), 128);
        assert_eq!(files.clients_with(needed + 40, 128), 24);
        assert_eq!(files.clients_with(needed, 128), 1, "it starts, so somebody may come");
        assert_eq!(
            files.clients_with(u64::MAX, usize::MAX),
            usize::try_from(u64::MAX - needed - 16).unwrap()
        );
    }
}
