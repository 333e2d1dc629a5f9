//! What kind of array a round is about: everything that `create` and `serve` are told.

use crate::rng::Rng;
use std::fmt;

/// How updates are protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// `eplog`.
    Eplog,
    /// `raid`.
    Raid,
    /// `parity-log`.
    ParityLog,
    /// `elastic`.
    Elastic,
    /// `was`.
    Was,
}

impl Scheme {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 5] = [
        ("eplog", Self::Eplog),
        ("raid", Self::Raid),
        ("parity-log", Self::ParityLog),
        ("elastic", Self::Elastic),
        ("was", Self::Was),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, scheme)| *scheme == self).map_or("?", |(name, _)| name)
    }

    fn has_logs(self) -> bool {
        matches!(self, Self::Eplog | Self::ParityLog)
    }

    fn in_place(self) -> bool {
        matches!(self, Self::Raid | Self::ParityLog)
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How updates are protected.
    pub scheme: Scheme,
    /// k.
    pub data_count: usize,
    /// m.
    pub parity_count: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes of a member, if `create` does not ask for more.
    pub file_bytes: u64,
    /// Slices of every member, each with an engine of its own.
    pub shards: u64,
    /// In place, without a journal: a weaker promise.
    pub resync: bool,
    /// Options of `create`.
    pub create: Vec<String>,
    /// Options of `serve`.
    pub serve: Vec<String>,
    /// Every answered write is durable.
    pub durable_writes: bool,
}

impl Shape {
    /// Draws one; `scheme` if it is given.
    pub fn draw(rng: &mut Rng, scheme: Option<Scheme>) -> Self {
        let drawn = rng.pick(&Scheme::ALL).1;
        let scheme = scheme.unwrap_or(drawn);
        let &(data_count, parity_count) = rng.pick(&[(2, 1), (2, 1), (3, 1), (4, 1), (2, 2), (4, 2), (3, 3)]);
        let elastic = !scheme.has_logs() && !scheme.in_place();
        // Units of garbage collection make the smallest array of an elastic scheme large.
        let sizes: &[u64] =
            if elastic { &[4096, 4096, 8192] } else { &[4096, 4096, 4096, 8192, 16384, 65536] };
        let chunk_bytes = *rng.pick(sizes);
        let resync = scheme.in_place() && rng.percent(25);
        let mut create = vec!["--scheme".to_owned(), scheme.name().to_owned()];
        if resync {
            create.extend(["--consistency".to_owned(), "resync".to_owned()]);
        }
        if parity_count == 2 && rng.percent(40) {
            create.extend(["--code".to_owned(), "rdp".to_owned()]);
        }
        let mut serve = Vec::new();
        let mut option = |name: &str, value: &str| serve.extend([name.to_owned(), value.to_owned()]);
        // Without the idle timer nothing wakes a server but its work.
        if scheme != Scheme::Raid && rng.percent(60) {
            option("--commit-idle", "off");
        }
        if scheme.has_logs() && rng.percent(40) {
            option("--commit-every", &rng.between(1, 300).to_string());
        }
        let sync = rng.percent(15);
        if sync {
            option("--sync", "always");
        }
        if scheme == Scheme::Eplog && rng.percent(25) {
            option("--cache-stripes", &rng.between(1, 16).to_string());
            option("--cache-slots", &rng.between(1, 16).to_string());
        }
        if rng.percent(30) {
            option("--batch", &rng.between(1, 20).to_string());
        }
        let file_bytes = rng.between(6, 9) << 20;
        if scheme == Scheme::Eplog && rng.percent(25) {
            serve.extend(["--rewrites".to_owned(), "log".to_owned()]);
        }
        let durable_writes = sync || (scheme.in_place() && !resync);
        let shards = if !elastic && chunk_bytes <= 16384 && rng.percent(35) { rng.between(2, 3) } else { 1 };
        if shards > 1 {
            create.extend(["--shards".to_owned(), shards.to_string()]);
        }
        let file_bytes = file_bytes * shards;
        if rng.percent(30) {
            serve.extend(["--socket-threads".to_owned(), rng.between(0, 2).to_string()]);
        }
        if shards > 1 && rng.percent(50) {
            serve.extend(["--threads".to_owned(), rng.between(1, shards).to_string()]);
        }
        Self {
            scheme,
            data_count,
            parity_count,
            chunk_bytes,
            file_bytes,
            shards,
            resync,
            create,
            serve,
            durable_writes,
        }
    }

    /// Log devices.
    pub fn log_count(&self) -> usize {
        if self.scheme.has_logs() { self.parity_count } else { 0 }
    }

    /// Whether a write to one stripe is all or nothing.
    pub fn whole_stripes(&self) -> bool {
        self.scheme.in_place() && !self.resync
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, data_count, parity_count, chunk_bytes, file_bytes, shards, resync, .. } = self;
        let resync = if *resync { " resync" } else { "" };
        let (chunk, file) = (chunk_bytes >> 10, file_bytes >> 20);
        write!(
            f,
            "{}{resync} {data_count}+{parity_count}, chunks of {chunk} KiB, members of {file} MiB, shards: {shards}",
            scheme.name()
        )
    }
}
