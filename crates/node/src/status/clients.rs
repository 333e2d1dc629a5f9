//! What clients asked for since serving began, and how long they waited for it.

use front::{CLASSES, Command, Meter, Reading};
use kv::ask::Figures;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who uses the volume; all `None` while it is not served.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Clientele {
    /// Clients connected.
    #[serde(default)]
    pub clients: Option<usize>,
    /// Their requests by kind since serving began, with the time that they took.
    #[serde(default)]
    pub requests: Option<Requests>,
    /// Whether they may only read, and nothing is written to the members: `serve --read-only`.
    #[serde(default)]
    pub read_only: bool,
    /// The store of keys that they use, if they use one.
    #[serde(default)]
    pub store: Option<StoreStatus>,
}

/// A store of keys. Sizes in bytes; what is counted, since serving began.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreStatus {
    /// Keys, those whose time is up included until they are removed.
    pub keys: u64,
    /// What records may take.
    pub capacity_bytes: u64,
    /// What those take that count.
    pub live_bytes: u64,
    /// Memory that the index takes.
    pub index_bytes: u64,
    /// Memory that the cache of places and sizes takes.
    pub cache_bytes: u64,
    /// Lookups that it answered.
    pub cache_hits: u64,
    /// Lookups that it did not answer.
    pub cache_misses: u64,
    /// Keys and values that clients gave.
    pub given_bytes: u64,
    /// Written to the volume.
    pub store_written_bytes: u64,
    /// Read from the volume.
    pub store_read_bytes: u64,
    /// Records that compaction copied.
    pub moved_bytes: u64,
    /// Flushes of the volume.
    pub store_flushes: u64,
    /// Records that could not be read.
    pub damaged_records: u64,
    /// Whether a write has failed, so that no change is taken until the store is served anew.
    #[serde(default)]
    pub only_reads: bool,
}

impl From<Figures> for StoreStatus {
    fn from(figures: Figures) -> Self {
        Self {
            keys: figures.key_count,
            capacity_bytes: figures.capacity_bytes,
            live_bytes: figures.live_bytes,
            index_bytes: figures.index_bytes,
            cache_bytes: figures.cache_bytes,
            cache_hits: figures.cache_hit_count,
            cache_misses: figures.cache_miss_count,
            given_bytes: figures.given_bytes,
            store_written_bytes: figures.written_bytes,
            store_read_bytes: figures.read_bytes,
            moved_bytes: figures.moved_bytes,
            store_flushes: figures.flush_count,
            damaged_records: figures.damaged_count,
            only_reads: figures.only_reads,
        }
    }
}

/// Requests of all clients, by kind.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Reads.
    pub read: Kind,
    /// Writes.
    pub write: Kind,
    /// Flushes.
    pub flush: Kind,
    /// Discards, and orders to hold zeros.
    pub discard: Kind,
}

/// Those of one kind.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Kind {
    /// Requests that were answered.
    pub requests: u64,
    /// Those of them that were answered with an error.
    pub errors: u64,
    /// Bytes of the others.
    pub bytes: u64,
    /// From the request's arrival to its answer, all together.
    pub waited_ns: u64,
    /// Requests by that time: entry i up to 2^i microseconds, the last one longer.
    pub by_wait_us: Vec<u64>,
    /// Half of them took no longer, in microseconds, to a power of two; null if there were none or they took
    /// longer than 8 s.
    pub p50_us: Option<u64>,
    /// 99 % of them took no longer.
    pub p99_us: Option<u64>,
    /// 99.9 % of them took no longer.
    pub p999_us: Option<u64>,
}

impl Kind {
    fn of(reading: &Reading) -> Self {
        Self {
            requests: reading.count(),
            errors: reading.errors,
            bytes: reading.bytes,
            waited_ns: reading.waited_ns,
            by_wait_us: reading.by_wait.to_vec(),
            p50_us: reading.wait_us(500),
            p99_us: reading.wait_us(990),
            p999_us: reading.wait_us(999),
        }
    }

    /// What has come to it since an earlier moment.
    pub fn since(&self, before: &Self) -> Self {
        let mut by_wait = [0; CLASSES];
        let classes = self.by_wait_us.iter().zip(&before.by_wait_us);
        by_wait.iter_mut().zip(classes).for_each(|(to, (now, then))| *to = now.saturating_sub(*then));
        Self::of(&Reading {
            errors: self.errors.saturating_sub(before.errors),
            bytes: self.bytes.saturating_sub(before.bytes),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
            by_wait,
        })
    }

    /// Each class's upper end in seconds, and how many requests took no longer; those that took longer than
    /// all classes are in the last one, which has no end.
    pub fn classes(&self) -> impl Iterator<Item = (f64, u64)> {
        self.by_wait_us.iter().enumerate().map(|(class, &count)| {
            let end = if class + 1 < CLASSES { f64::from(1u32 << class) / 1e6 } else { f64::INFINITY };
            (end, count)
        })
    }
}

impl Requests {
    /// What the meters say, those of all threads of sockets.
    pub fn read(meters: &[Arc<Meter>]) -> Self {
        let sum = |commands: &[Command]| {
            let readings = meters.iter().flat_map(|meter| commands.iter().map(|&one| meter.read(one)));
            Kind::of(&readings.fold(Reading::default(), Reading::and))
        };
        Self {
            read: sum(&[Command::Read]),
            write: sum(&[Command::Write]),
            flush: sum(&[Command::Flush]),
            discard: sum(&[Command::Discard, Command::WriteZeroes]),
        }
    }
}
