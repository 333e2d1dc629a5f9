//! How long the list of a checkpoint may become. Dirty stripes and log stripes take room in it, and what is
//! planned takes it already: so at every record the list fits a full checkpoint. What has no room waits for
//! commits, which only shorten the list. It may be bounded to less than there is room for: what waits for a
//! commit is in memory.

use super::{columns, log_stripes_max};
use crate::slots::root_pages;
use crate::store::space_words_max;
use crate::table::{Table, WORDS};
use format::{ArrayConfig, log_stripe_words, updated_columns_words};

/// What the live state takes, or what a plan adds to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ListSize {
    /// Words of the list.
    pub words: u64,
    /// Log stripes.
    pub log_stripes: u64,
}

/// See the module's documentation.
pub struct ListRoom {
    most: ListSize,
    /// Of records that are planned and not applied.
    promised: ListSize,
    data_count: u64,
    parity_count: u64,
}

impl ListRoom {
    /// Nothing is promised yet. The list takes at most so many bytes, unpacked.
    pub fn new(config: &ArrayConfig, list_bytes: u64) -> Self {
        let (data_count, parity_count) = columns(config);
        let words = bounded_words(config, list_bytes);
        let most = ListSize { words, log_stripes: log_stripes_max(config, words) };
        Self { most, promised: ListSize::default(), data_count, parity_count }
    }

    /// Log stripes that there may be.
    pub fn log_stripes_max(&self) -> u64 {
        self.most.log_stripes
    }

    /// What so many dirty stripes take, of which so many columns were updated, and so many log stripes, which
    /// have so many members together.
    pub fn size(&self, (dirty_stripes, updated): (u64, u64), (log_stripes, members): (u64, u64)) -> ListSize {
        let words = dirty_stripes * updated_columns_words(self.data_count, 0)
            + updated * UPDATED_WORDS
            + log_stripes * log_stripe_words(0, self.parity_count)
            + members * MEMBER_WORDS;
        ListSize { words, log_stripes }
    }

    /// What records of log stripes add at most: each member may be the first change of its stripe.
    pub fn growth(&self, log_stripes: usize, members: usize) -> ListSize {
        let [log_stripes, members] = [log_stripes, members].map(|count| count as u64);
        self.size((members, members), (log_stripes, members))
    }

    /// Whether that can be added to what is live.
    /// What adds nothing has room even if there is more than there may be.
    pub fn has(&self, live: ListSize, more: ListSize) -> bool {
        let has =
            |live: u64, promised: u64, more: u64, most: u64| more == 0 || live + promised + more <= most;
        has(live.words, self.promised.words, more.words, self.most.words)
            && has(live.log_stripes, self.promised.log_stripes, more.log_stripes, self.most.log_stripes)
    }

    /// Whether less than an eighth is left, so that commits should begin.
    pub fn is_low(&self, live: ListSize) -> bool {
        let is_low = |used: u64, most: u64| used > most / 8 * 7;
        is_low(live.words + self.promised.words, self.most.words)
            || is_low(live.log_stripes + self.promised.log_stripes, self.most.log_stripes)
    }

    /// A plan will add that.
    pub fn promise(&mut self, more: ListSize) {
        self.promised.words += more.words;
        self.promised.log_stripes += more.log_stripes;
    }

    /// What was promised is applied. Records that are replayed were promised nothing.
    pub fn keep_promise(&mut self, more: ListSize) {
        self.promised.words = self.promised.words.saturating_sub(more.words);
        self.promised.log_stripes = self.promised.log_stripes.saturating_sub(more.log_stripes);
    }
}

/// Words of a member of a log stripe in the list.
pub const MEMBER_WORDS: u64 = 4;
/// A list may have so many words, whatever its bound: enough for any one write.
const WORDS_LEAST: u64 = 256;
/// Words of an updated column of a dirty stripe in the list.
const UPDATED_WORDS: u64 = 2;

/// Words of a list that a full checkpoint has room for beside the header, the root, and what the list says of
/// the space.
pub fn area_words(config: &ArrayConfig) -> u64 {
    let pages = u64::from(config.full_blocks).saturating_sub(root_pages(Table::page_count_for(config)) + 1);
    (pages * WORDS).saturating_sub(space_words_max(config))
}

/// The same if the list may take at most so many bytes, or a kibibyte.
pub fn bounded_words(config: &ArrayConfig, list_bytes: u64) -> u64 {
    area_words(config).min((list_bytes / 4).max(WORDS_LEAST))
}

/// Words of the longest list that can come about: with as many log stripes as there may be, each as wide as
/// the code allows, and every stripe dirty, unless a list of `list_words` has no room for that.
pub fn words_live(config: &ArrayConfig, width: u64, list_words: u64) -> u64 {
    let (k, m) = columns(config);
    let chunks = u64::from(config.chunks_per_device) * (k + m);
    let log_stripes = log_stripes_max(config, list_words);
    let members = (log_stripes * width).min(chunks);
    let most = config.stripe_count * updated_columns_words(k, k)
        + log_stripes * log_stripe_words(0, m)
        + members * MEMBER_WORDS;
    most.min(list_words)
}
