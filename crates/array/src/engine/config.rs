//! Options of a running engine.

use crate::bounds::Bounds;
use crate::scheme::{SchemeOptions, open_stripe_slots};
use crate::table::Table;
use format::ArrayConfig;

/// When parity commit starts by itself (EPLOG, section 3.3; low space always starts it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitPolicy {
    /// After this many write requests (C-04).
    pub every_requests: Option<u64>,
    /// After this long without a request (C-01, A-05).
    pub idle_ns: Option<u64>,
    /// How much of each main device runs commit in a second that nobody waits for (L-04). Whoever asks for a
    /// commit, or needs the room that it makes, is not held up.
    pub bytes_per_s: Option<u64>,
}

/// When an acknowledged write is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SyncPolicy {
    /// After the next completed flush, like a disk with a volatile cache.
    #[default]
    OnFlush,
    /// At once: every write is acknowledged only when durable.
    Always,
}

/// Pages of the table that are read side by side.
pub(super) const PAGE_READS_MAX: usize = 64;
/// Buffers for them take no more memory than this, if it is enough for one.
const PAGE_BUFFERS_BYTES: usize = 1 << 20;

/// Members looked at side by side.
pub(super) const WALKERS_MAX: usize = 4;

/// What of the freed space is discarded on its devices; `None` = nothing of that kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscardPolicy {
    /// Runs of at least this many chunks that a discard freed.
    pub run_chunks: Option<usize>,
    /// Units that garbage collection freed, if they have at least this many bytes on each device.
    pub unit_bytes: Option<u64>,
    /// Stretches of about so many bytes of a device when the last of the old versions in them is free (scheme
    /// eplog).
    pub old_bytes: Option<u64>,
    /// Dead space of the log when it is at least so many bytes.
    pub log_bytes: Option<u64>,
}

impl Default for DiscardPolicy {
    fn default() -> Self {
        Self {
            run_chunks: Some(32),
            unit_bytes: Some(1 << 20),
            old_bytes: Some(1 << 20),
            log_bytes: Some(16 << 20),
        }
    }
}

/// How metadata is looked at when nobody asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PatrolPolicy {
    /// From the end of one round to the beginning of the next.
    pub interval_ns: u64,
    /// Bytes read in a second at most.
    pub bytes_per_s: u64,
}

/// Whether what devices give back means anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Content {
    /// Every read is checked against its checksum.
    #[default]
    Checked,
    /// Devices that only count: what they give back is not looked at, and nothing is computed of content.
    Meaningless,
}

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineOptions {
    /// When parity commit starts by itself.
    pub commit: CommitPolicy,
    /// When an acknowledged write is durable.
    pub sync: SyncPolicy,
    /// Bytes of buffer memory.
    pub pool_bytes: u64,
    /// Bytes of memory that the table takes at most, but for what is in use or changed since it was last
    /// written to its place: the rest is on the members, and is read when it is needed.
    pub table_bytes: u64,
    /// Data stripes that the cache holds of chunks not written before (E-24); 0 = none.
    pub cache_stripes: usize,
    /// Chunks that the cache holds for each device of chunks written before (E-25); 0 = none.
    pub cache_slots: usize,
    /// Chunk writes in one batch at most.
    pub batch_max: usize,
    /// Stripes in one commit, rebuild or scrub unit at most.
    pub unit_stripes: usize,
    /// Units of background work in flight at most.
    pub units_in_flight: usize,
    /// Rebuild and scrub look at most at this many bytes a second of each main device; `None` is as fast as
    /// possible.
    pub rebuild_bytes_per_s: Option<u64>,
    /// After so many bytes written to replacements the superblocks are told how far a rebuild is: after a
    /// restart it goes on there.
    pub rebuild_save_bytes: u64,
    /// Whether the reads of a unit of background work, and the writes of rebuild and scrub, are put in device
    /// order, so that drivers merge neighbours.
    pub sort_units: bool,
    /// Blocks of a checkpoint in flight at most.
    pub checkpoint_blocks: u32,
    /// What of the freed space devices are told of.
    pub discard: DiscardPolicy,
    /// A member on which an operation has been under way for longer is taken out of service, if the array can
    /// do without it; `None`: it is waited for.
    pub device_timeout_ns: Option<u64>,
    /// Writes wait for room on a member for so long before they are refused; those begun wait until there is
    /// room.
    pub room_wait_ns: u64,
    /// Whether what devices give back means anything.
    pub content: Content,
    /// What the scheme is to do, where it leaves a choice.
    pub scheme: SchemeOptions,
    /// Without a request for so long the superblocks are told what the last flush made durable, and five
    /// times as long after the last telling where frames are on log devices alone; `None` = never.
    pub confirm_idle_ns: Option<u64>,
    /// How metadata is verified when nobody asks; `None` = not at all.
    pub patrol: Option<PatrolPolicy>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            commit: CommitPolicy { every_requests: None, idle_ns: Some(1_000_000_000), bytes_per_s: None },
            sync: SyncPolicy::OnFlush,
            pool_bytes: 64 << 20,
            table_bytes: u64::MAX,
            cache_stripes: 0,
            cache_slots: 0,
            batch_max: 256,
            unit_stripes: 100,
            units_in_flight: 2,
            rebuild_bytes_per_s: None,
            rebuild_save_bytes: 1 << 30,
            sort_units: true,
            checkpoint_blocks: 64,
            discard: DiscardPolicy::default(),
            device_timeout_ns: None,
            room_wait_ns: 2_000_000_000,
            content: Content::Checked,
            scheme: SchemeOptions::default(),
            confirm_idle_ns: None,
            patrol: None,
        }
    }
}

impl EngineOptions {
    /// Of options for an array those that one of its shards runs with: memory and limits of rates are shared
    /// out.
    pub fn of_shard(&self, config: &ArrayConfig) -> Self {
        let count = u64::from(config.shard.count);
        if count == 1 {
            return *self;
        }
        let share = |amount: u64| if amount == u64::MAX { amount } else { (amount / count).max(1) };
        let commit = CommitPolicy {
            every_requests: self.commit.every_requests.map(share),
            bytes_per_s: self.commit.bytes_per_s.map(share),
            ..self.commit
        };
        Self {
            commit,
            pool_bytes: share(self.pool_bytes),
            table_bytes: share(self.table_bytes),
            scheme: SchemeOptions {
                list_bytes: self.scheme.list_bytes.map(share),
                stripe_cache: self.scheme.stripe_cache.div_ceil(u32::from(config.shard.count)),
                ..self.scheme
            },
            rebuild_bytes_per_s: self.rebuild_bytes_per_s.map(share),
            rebuild_save_bytes: share(self.rebuild_save_bytes),
            patrol: self
                .patrol
                .map(|patrol| PatrolPolicy { bytes_per_s: share(patrol.bytes_per_s), ..patrol }),
            ..*self
        }
    }

    /// Slots of the pool.
    pub(crate) fn slot_count(&self, config: &ArrayConfig, classes: usize) -> usize {
        let geometry = config.geometry;
        let wanted = usize::try_from(self.pool_bytes).unwrap_or(usize::MAX) / geometry.chunk_bytes();
        let cached = self
            .cache_stripes
            .saturating_mul(geometry.data_count())
            .saturating_add(self.cache_slots.saturating_mul(geometry.device_count()))
            .saturating_add(self.scheme.waiting_chunks(config).saturating_mul(classes));
        // As much again for what is on its way from the cache to the devices.
        let wanted = wanted.max(4 * self.reserved_slots(config)).saturating_add(cached.saturating_mul(2));
        let open = open_stripe_slots(config);
        wanted
            .saturating_add(WALKERS_MAX + open)
            .saturating_add(self.page_slots(config))
            .saturating_add(self.scheme.cache_slots(config))
    }

    /// Bytes that the table takes at most. Devices that only count do not give it back.
    pub(crate) fn table_bytes_max(&self) -> u64 {
        match self.content {
            Content::Checked => self.table_bytes,
            Content::Meaningless => u64::MAX,
        }
    }

    /// What may be taken of memory for what is known of the chunks.
    pub(crate) fn bounds(&self) -> Bounds {
        let bounds = Bounds::of_table(self.table_bytes_max());
        Bounds { list_bytes: self.scheme.list_bytes.unwrap_or(bounds.list_bytes), ..bounds }
    }

    /// Slots for pages of the table that are being read.
    pub(crate) fn page_slots(&self, config: &ArrayConfig) -> usize {
        let is_paged = Table::is_paged_for(config, self.table_bytes_max());
        let enough = (PAGE_BUFFERS_BYTES / config.geometry.chunk_bytes()).clamp(1, PAGE_READS_MAX);
        if is_paged { enough } else { 0 }
    }

    /// Slots that requests may not take: enough for one commit, one cover, and log chunks, and twice what a
    /// stripe of rebuild or scrub takes.
    pub(crate) fn reserved_slots(&self, config: &ArrayConfig) -> usize {
        let geometry = config.geometry;
        let commit = 16 * geometry.device_count() + 64;
        commit.max(2 * crate::store::unit_slots(geometry)) + self.scheme.bundle_slots(config)
    }
}
