//! How a store is run.

/// What an acknowledgement of a change means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sync {
    /// It is durable.
    #[default]
    Always,
    /// It is durable after a second.
    EverySecond,
    /// It is durable after the next answered [`crate::ask::Ask::Flush`].
    OnFlush,
}

/// How a store is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What an acknowledgement means.
    pub sync: Sync,
    /// Keys that the cache of metadata holds; 0: none.
    pub cache_keys: usize,
    /// Bytes of memory for small records that were read; 0: none are kept.
    pub kept_bytes: usize,
    /// Bytes of values larger than a record that may be read at a time; one larger than this is read alone.
    pub loading_bytes_max: u64,
    /// Asks that may be under way.
    pub under_way_max: usize,
    /// Whether segments that are free are discarded.
    pub discard: bool,
    /// Open a store of which something is lost as if what is there were the newest.
    pub accept_loss: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sync: Sync::Always,
            cache_keys: 1 << 16,
            kept_bytes: 0,
            loading_bytes_max: 256 << 20,
            under_way_max: 1 << 16,
            discard: true,
            accept_loss: false,
        }
    }
}
