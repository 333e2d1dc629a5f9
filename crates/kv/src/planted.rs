//! Bugs on purpose, which the worlds must find. Without the feature `planted-bugs` every check is the
//! constant `false`.

/// A mistake in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// A durable write is answered before the flush.
    AnswerBeforeFlush,
    /// A segment that compaction emptied is written anew at once.
    ReuseBeforeTable,
    /// The table that frees segments is written before what was moved is durable.
    TableBeforeFlush,
    /// Compaction drops every tombstone.
    TombstonesDropped,
    /// The summary of a segment is written before its batches are durable.
    SummaryBeforeBatches,
    /// The manifest of a large value does not wait for its parts.
    ManifestBeforeParts,
    /// Compaction takes what the summary names without asking the index.
    DeadMoved,
    /// The checksum of a value is not looked at.
    ValueUnverified,
    /// A record that is kept is taken for what another life of its segment has at its place.
    KeptOfAnyLife,
    /// What recovery cannot read is taken for nothing.
    VoidIgnored,
    /// Of several records of a key the one found last counts.
    LastFoundWins,
    /// What was deleted all at once comes back.
    ClearForgotten,
    /// A record whose time is up is left out by compaction, and older ones of its key are not thought of.
    ExpiredForgotten,
    /// A store that is full lets nobody delete.
    FullForGood,
    /// A store grows before the table that says so is durable.
    GrowsBeforeTable,
    /// A store that has grown writes its tables where they were.
    TablesWhereTheyWere,
    /// What the end of a volume says counts, although its front is something else's.
    EndBelieved,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::AnswerBeforeFlush,
        Self::ReuseBeforeTable,
        Self::TableBeforeFlush,
        Self::TombstonesDropped,
        Self::SummaryBeforeBatches,
        Self::ManifestBeforeParts,
        Self::DeadMoved,
        Self::ValueUnverified,
        Self::KeptOfAnyLife,
        Self::VoidIgnored,
        Self::LastFoundWins,
        Self::ClearForgotten,
        Self::ExpiredForgotten,
        Self::FullForGood,
        Self::GrowsBeforeTable,
        Self::TablesWhereTheyWere,
        Self::EndBelieved,
    ];
}

#[cfg(feature = "planted-bugs")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

/// Switches one bug on for the calling thread, or all off.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Planted>) {
    ACTIVE.set(bug);
}

/// Whether a bug is switched on.
#[cfg(feature = "planted-bugs")]
pub(crate) fn planted(bug: Planted) -> bool {
    ACTIVE.get() == Some(bug)
}

/// Whether a bug is switched on: never.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn planted(_bug: Planted) -> bool {
    false
}
