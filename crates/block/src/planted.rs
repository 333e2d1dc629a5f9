//! Bugs on purpose in what lies below the engine; see `planted.rs` of `array`, which switches them on.
//! Without the feature `planted-bugs` every check is the constant `false`.

/// A mistake that the simulator must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// A range goes to the first of the shards that have a share of it.
    FirstShareOnly,
    /// A shard whose turn has come in a round counts as if it had not.
    ShareOfRoundBefore,
    /// What crosses the end of a unit is not cut there.
    RunPastUnit,
    /// Slices begin before those before them end.
    SlicesOverlap,
    /// Where a slice goes on in the room that all share, its second unit is where its first is.
    UnitsOfTheNext,
    /// What crosses the end of a unit of a slice is not cut there.
    PastTheUnit,
    /// Slices are thought to have as much of a device as the first of them.
    RoomOfTheFirst,
    /// The blocks of all shards carry the array's UUID.
    ShardsShareUuid,
    /// A request that several shards carry out is answered when the first has.
    FanAnswersFirst,
    /// A request that several shards carry out ends as its last part ends, whatever became of the others.
    FanForgetsError,
    /// What counts in a slice is the newest superblock that is there, whatever shard it is of.
    AnyShardsSuperblock,
    /// What is written to a range while it is copied does not wait.
    CopyUnlocked,
    /// What was under way when a pair began is not waited for where it is copied.
    CopyWhatIsWritten,
    /// Flushes go to the member alone although its partner holds the same.
    FlushMemberOnly,
    /// Time in which nobody looked counts as time in which a partner did not answer.
    PartnerOwesWhileStopped,
    /// What was not in use is not copied although it was written to since.
    SkipWhatIsWritten,
    /// The log chunk of a short record is looked for behind that of the last long one of its frame.
    CopiedBesideLong,
    /// The log chunks of a packed run are where the first is.
    CopiedWhereFirstIs,
    /// Each of the patches of a block is looked for as far from the first page as it is from the one before.
    PatchBesideFirst,
    /// What a short commit covers is looked for from what the one before took.
    CommitBesideParity,
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
pub fn planted(bug: Planted) -> bool {
    ACTIVE.get() == Some(bug)
}

/// Whether a bug is switched on: never.
#[cfg(not(feature = "planted-bugs"))]
pub const fn planted(_bug: Planted) -> bool {
    false
}
