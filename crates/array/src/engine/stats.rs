//! Figures of a running engine.

/// Figures since assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EngineStats {
    /// Chunks that requests wrote, partial ones included.
    pub user_chunks_written: u64,
    /// Chunks that requests read.
    pub user_chunks_read: u64,
    /// Requests completed.
    pub requests: u64,
    /// Log stripes written, and their members: the mean width is members / stripes.
    pub log_stripes: u64,
    /// Members of those.
    pub log_members: u64,
    /// Full stripes written straight to the main array.
    pub full_stripes: u64,
    /// Those of them that replaced what had been written to their stripe before (scheme eplog).
    pub replaced_stripes: u64,
    /// Elastic stripes written with fewer than k chunks.
    pub short_stripes: u64,
    /// Parity commits of a stripe.
    pub stripes_committed: u64,
    /// Commit runs.
    pub commits: u64,
    /// Those of them that committed no more than what kept the log from being cut.
    pub log_commits: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Those of them that were written beside a full one.
    pub checkpoints_beside: u64,
    /// Flushes carried out.
    pub flushes: u64,
    /// How often writes found no room and had to wait.
    pub refusals: u64,
    /// What is in memory before it is on the devices, or besides.
    pub cache: CacheStats,
    /// Copies of pages of the table that were read because the page was not in memory.
    pub pages_read: u64,
    /// Chunks that were rebuilt from their cover to answer a read.
    pub covers: u64,
    /// Chunks whose content could not be had at all.
    pub lost: u64,
    /// Chunks that were bad on their device and were written anew.
    pub healed: u64,
}

/// Figures of the write cache, and of a scheme's cache of stripes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Chunks read from the write cache.
    pub hits: u64,
    /// Chunks that were overwritten in the write cache before they were written.
    pub absorbed: u64,
    /// Stripes that a plan of writes found in the cache of stripes.
    pub stripes_found: u64,
    /// Stripes that it did not find there, though there is such a cache and has room for them.
    pub stripes_not_found: u64,
    /// Chunks of that cache that differed from their checksums when they were used, and were read: there is
    /// no reason for any.
    pub stale: u64,
}
