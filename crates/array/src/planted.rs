//! Bugs on purpose: each is a mistake that is easily made, compiled in by the feature `planted-bugs` alone
//! and switched on one at a time, to prove that the simulator finds it. Without the feature every check is
//! the constant `false`.

macro_rules! planted {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// A mistake that the simulator must find.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub enum Planted {
            $($(#[$doc])* $name,)+
        }

        #[cfg(feature = "planted-bugs")]
        impl Planted {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];
        }
    };
}

planted!(
    /// What a record freed is reused before the record is durable.
    ReuseBeforeDurable,
    /// What a record freed is reused when the record is durable, but before a durable frame says so; and it
    /// is the next to be reused: in the order of the sweep, with what is set aside, other frames would nearly
    /// always come before.
    ReuseBeforePersisted,
    /// A durable write is answered before the flush.
    AnswerBeforeFlush,
    /// A flush leaves one device out.
    SkipDeviceFlush,
    /// Chunks are not compared with their checksums when they are read.
    SkipChecksum,
    /// Parity commit overwrites the old parity.
    CommitInPlace,
    /// A parity commit forgets that more than one column was updated.
    CommitForgetsColumn,
    /// Records that nobody knows to be durable are applied without verification.
    ApplyUnverified,
    /// Frames claim that everything recorded so far is durable.
    StampTooHigh,
    /// A superseded member of a log stripe is freed although its peers still need it.
    FreeSupersededEarly,
    /// The log's tail passes log stripes that are still live.
    TrimLiveLog,
    /// A member that failed while the array went on is accepted again.
    AcceptStale,
    /// Answers do not wait until the other members know of a failure.
    AnswerBeforeFence,
    /// Journal frames have one copy.
    OneJournalCopy,
    /// With more log devices than parities, frames have one copy too few.
    FrameLogForFree,
    /// A frame that has grown is written over its shorter self.
    FrameOverItself,
    /// Recovery takes the first it finds of a frame that was written several times, not the one that has
    /// grown most.
    ShortestFrame,
    /// Recovery takes a ring to be empty whose first blocks are, also that of a device that came to its place
    /// while the assembly ran.
    RingsBeginAtTheirFirstBlock,
    /// A checkpoint counts before its header is durable.
    CheckpointUnsealed,
    /// Incremental checkpoints leave a changed page out.
    ForgetChangedPage,
    /// Changes of the list leave out which stripes are clean.
    ChangesKeepClean,
    /// Changes of the list leave out which log stripes have ended.
    ChangesKeepEnded,
    /// Changes of the list leave out a further column of a stripe that was dirty before.
    ChangesForgetColumn,
    /// Changes of the list leave out that a version of a log stripe is covered no more.
    ChangesForgetFate,
    /// A list that is said piece by piece has dirty stripes as they are when their turn comes.
    ListSaysLater,
    /// A list that is said piece by piece has log stripes as they are when their turn comes.
    ListSaysFatesLater,
    /// A list that is said piece by piece leaves as many log stripes out as went from the front meanwhile.
    ListSkipsLogStripes,
    /// Of changes that are said piece by piece, what had to be said before its turn comes before what is
    /// clean.
    EarlyBeforeClean,
    /// What may be put together of what changed in a turn is never renewed: a checkpoint with any never ends.
    PatchedForEver,
    /// Columns of a stripe that changed again are not counted: a list is longer than what was announced.
    AnnouncesTooLittle,
    /// A start takes the newest changes of the list alone, on the full checkpoint's.
    NewestChangesOnly,
    /// At the instant of a full checkpoint no incremental one holds what has changed since the one before.
    InstantForgotten,
    /// What was written beside a full checkpoint is forgotten when that is durable.
    BesideForgotten,
    /// Checkpoints beside a full one are not on the members that hold the one before it.
    BesideOnNewMembers,
    /// Of two full checkpoints behind which there are the same incremental ones the older counts.
    OlderOfTwo,
    /// A start does not look for the next incremental checkpoint at the beginning of their ring.
    ForgetTurn,
    /// An incremental checkpoint is taken for the next one although one before it cannot be read.
    ChainOverGap,
    /// A page is read from its slot and what incremental checkpoints say of it is forgotten.
    ForgetWaiting,
    /// Of what waits for a page the oldest counts.
    WaitingNewestFirst,
    /// A page whose first copy was read ahead and is bad is looked for nowhere else.
    AheadIsAll,
    /// The same of a page of an incremental checkpoint.
    ChainAheadIsAll,
    /// A full checkpoint leaves out pages that something waits for.
    WaitingIsSaved,
    /// What waits for a page that has no slot yet is forgotten: it is taken for zeros.
    UnwrittenIsZeros,
    /// Discards take effect, but are not recorded.
    ForgetDiscard,
    /// Rebuild leaves live log stripes out.
    RebuildSkipsLog,
    /// A chunk of a replacement is read although it was not rebuilt yet.
    TrustReplacement,
    /// Partial writes of one chunk do not wait for each other.
    PartialUnlocked,
    /// In-place schemes with a journal overwrite before the copies are durable.
    OverwriteUnflushed,
    /// Parity commit leaves the newest log chunk of a stripe out.
    CommitForgetsDelta,
    /// Log chunks go on counting although a later one is the parity itself.
    KeepVoidDeltas,
    /// Recovery carries a logged write out again without a look at its log chunks.
    RedoWithoutLog,
    /// Data is overwritten before the log chunk that belongs to it is durable.
    OverwriteBeforeLog,
    /// Chunks have a checksum that users' data contains as well.
    CommonChecksum,
    /// An array that lost more members than its code tolerates goes on writing.
    WriteOnWhenFailed,
    /// A durable write that went into the cache is answered before it left.
    CacheForgetsFua,
    /// What a failed member held counts as durable before the others know of its failure.
    DurableBeforeFence,
    /// A flush leaves what waits in the cache out.
    FlushForgetsCache,
    /// Reads look for a chunk on the devices only.
    ReadPastCache,
    /// A discard leaves what waits in the cache alone.
    DiscardForgetsCache,
    /// A short elastic stripe is taken for a whole one: chunks never written count as part of it.
    ShortStripeAsWide,
    /// What garbage collection moved takes the place of a newer version.
    MoveOverNewer,
    /// A unit is free although one of its chunks is valid.
    FreeUnitEarly,
    /// The parity of an open stripe that grows covers only what is added.
    GrowthForgetsBefore,
    /// The log's tail passes the parity of open stripes.
    TrimOpenParity,
    /// The row of an open stripe counts as written: its unit may be collected and freed.
    OpenRowAsWritten,
    /// Chunks are added to an open stripe to which others are being added.
    GrowWhileBusy,
    /// A unit that garbage collection freed is discarded before the record that freed it is durable.
    TrimUnitEarly,
    /// Rebuild does not wait for stripes that were written before the replacement came and are not known yet.
    RebuildBeforeKnown,
    /// Recovery takes the newest checkpoint it can read, whatever assembly the superblocks name.
    OlderEpoch,
    /// Recovery takes the records up to a gap, although frames say that later ones were durable.
    IgnoreGap,
    /// That a start gave durable state up, by force, is on disk only when it has ended.
    ForcedToldLate,
    /// Recovery drops records although the array was stopped in order, or its superblocks say that
    /// they were durable.
    DropAfterStop,
    /// Recovery does not ask for the checkpoint of an orderly stop.
    ForgetStopCheckpoint,
    /// Nobody looks at incremental checkpoints unless a recovery needs them.
    PatrolSkipsIncremental,
    /// Nobody looks at journal frames unless a recovery needs them.
    PatrolSkipsJournal,
    /// A scrub that found a bad superblock leaves it as it is.
    KeepBadSuperblock,
    /// A scrub reports before what it healed is durable, and notes itself nowhere: the round of superblocks
    /// that remembers it would flush what it healed.
    ScrubUnflushed,
    /// A write for which there was no room counts as done.
    RoomForgotten,
    /// What is under way on a member that went out of service is waited for.
    WaitForGivenUp,
    /// A member that does not answer is waited for.
    WaitForEver,
    /// In-place schemes write the edges of a discard apart from the rest of their stripes.
    DiscardEdgesApart,
    /// The driver is not asked for another pump when one made work for activities that come before it.
    SleepAfterPump,
    /// The driver is not told that a rebuild or scrub has come to its next phase.
    SleepBetweenPhases,
    /// No deadline is set for parity commit when requests stay away.
    SleepPastIdle,
    /// A flush that waited until the members knew of a failure is forgotten.
    ForgetFencedFlush,
    /// Work of the array itself that waited for a stripe is forgotten when it is granted.
    ForgetGrantedCommit,
    /// Chunks that cannot be read are not listed as lost.
    ForgetLost,
    /// Lost chunks that were rewritten stay listed.
    KeepLost,
    /// Code words that cannot be made whole are not looked into.
    SuspectNothing,
    /// Superblocks written when idle do not name the last flush.
    NameOldFlush,
    /// A scrub that was paused does not go on.
    ForgetResume,
    /// Parity commits that were paused do not go on.
    CommitsStayPaused,
    /// While parity commits are paused, none makes room for writes that wait.
    PauseHoldsRoom,
    /// Whoever waits for a commit that is given up is not told.
    GivenUpUnanswered,
    /// What a commit decodes is used although a piece that it was decoded from was bad.
    TrustShared,
    /// Writes to a log device leave as they are ready: a frame goes ahead of log chunks that lie before it.
    LogOutOfOrder,
    /// Dead log space is discarded before the record that let it die is durable.
    DiscardLogEarly,
    /// Old versions are discarded before the record that freed them is durable.
    DiscardOldEarly,
    /// What a device is discarding may be written meanwhile.
    DiscardedStaysFree,
    /// The log is full, and what holds its tail is not committed.
    LogTailPassedOver,
    /// Dirty stripes that a run for room passes over are looked at no more.
    PassedOverForgotten,
    /// What a commit only computes with is given back while it is being read.
    InputsGivenBackEarly,
    /// A page of a checkpoint is written as it is, not as it was when the checkpoint was taken.
    SnapshotMoves,
    /// A full checkpoint writes a page to the slot that counts, not to the other.
    SaveInPlace,
    /// A full checkpoint does not write its directory pages.
    ForgetDirectory,
    /// A full checkpoint writes one copy of a page.
    SaveOneCopy,
    /// A page leaves memory when it was written, before its slot counts.
    EvictUnsealed,
    /// A page leaves memory although it changed since it was written.
    EvictUnsaved,
    /// A page is read from the slot that does not count, whatever is there.
    ReadOtherSlot,
    /// Of several reads that wait for a page, one does not go on.
    ForgetPageReader,
    /// The pages that a checkpoint writes have chunks as used that are only taken.
    SaveTaken,
    /// A chunk that was taken when a checkpoint was begun is not in the next one, either.
    TakenNotMarked,
    /// A page of bits comes, and what was freed meanwhile is forgotten.
    ForgetFreed,
    /// The list of a checkpoint leaves out what was freed on pages that are absent.
    ListForgetsFreed,
    /// A checkpoint says of superseded members of log stripes that a parity covers them.
    SaveSupersededCovered,
    /// A patrol does not look at the slots of pages.
    PatrolSkipsSlots,
    /// A patch leaves out the last of what changed on its page.
    PatchForgetsGroup,
    /// A page that was kept as it was is patched by what changed on it since.
    KeptChangesMove,
    /// Superblocks say how far a rebuild is before that is durable.
    PositionBeforeFlush,
    /// An older copy of a member passes for one whose last superblock a power cut caught on its way.
    OlderCopyCounts,
    /// Serial numbers count on from those of the table, of which power may have kept one from everybody else.
    SerialGivenTwice,
    /// A start tells the members who is missing by an update of the superblocks that that one may have.
    UpdateUsedAgain,
    /// What takes the place of a member that failed while it was rebuilt goes on where that one was.
    ReplacementGoesOn,
    /// The writes that make up a stripe are taken for its columns in the order in which they came.
    ColumnsAsTheyCome,
    /// The records of a write that must not be torn are not marked as belonging together.
    RecordsUnbonded,
    /// Recovery takes of records that belong together those that arrived.
    TakeHalfOfBonded,
    /// Recovery looks at each frame by itself: what belongs together ends with its frame.
    BondsEndWithFrame,
    /// Recovery carries each of the writes in place that belong together out as soon as it is found whole.
    RedoOneByOne,
    /// Recovery keeps a partial write of a chunk of which it dropped the version before.
    KeepWhatBuildsOnDropped,
    /// What the cache has of a write that must not be torn leaves it chunk by chunk.
    CacheLeavesOneByOne,
    /// The parts of a write that must not be torn are planned as each has room.
    PlanPartOfUntorn,
    /// A write that is not torn may be as large as the options say, however many rows are left for it.
    PromiseRowsBeyond,
    /// A request that several shards carry out is answered when the first has.
    #[cfg(feature = "planted-bugs")]
    FanAnswersFirst,
    /// A request that several shards carry out ends as its last part ends, whatever became of the others.
    #[cfg(feature = "planted-bugs")]
    FanForgetsError,
    /// A discard goes to the first of the shards that have a share of it.
    #[cfg(feature = "planted-bugs")]
    FirstShareOnly,
    /// A shard whose turn has come in a round counts as if it had not.
    #[cfg(feature = "planted-bugs")]
    ShareOfRoundBefore,
    /// A write or read that crosses the end of a unit goes on in the same shard.
    #[cfg(feature = "planted-bugs")]
    RunPastUnit,
    /// Slices begin before those before them end.
    #[cfg(feature = "planted-bugs")]
    SlicesOverlap,
    /// Where a slice goes on in the room that all share, its second unit is where its first is.
    #[cfg(feature = "planted-bugs")]
    UnitsOfTheNext,
    /// What crosses the end of a unit of a slice is not cut there.
    #[cfg(feature = "planted-bugs")]
    PastTheUnit,
    /// Slices are thought to have as much of a device as the first of them.
    #[cfg(feature = "planted-bugs")]
    RoomOfTheFirst,
    /// The blocks of all shards carry the array's UUID.
    #[cfg(feature = "planted-bugs")]
    ShardsShareUuid,
    /// What one shard gives up the others keep.
    TellNobody,
    /// All shards give up what one of them does, whatever they have lost.
    TellPastTolerance,
    /// A start shows the other shards only the devices that the first one has in service.
    ShownAsFirstShardHasIt,
    /// The first shard of a new array is written first, not last.
    FirstShardFirst,
    /// A replacement takes its place although shards have the member in service.
    ReplaceUnfailed,
    /// A replacement takes its place when nothing is under way on its predecessor in the first shard.
    ReplaceWhileBusy,
    /// A replacement is rebuilt in the first shard alone.
    RebuildFirstShardOnly,
    /// A device that returns to some shards is wiped first: those that need it find it no more.
    WipeReturned,
    /// What counts in a slice is the newest superblock that is there, whatever shard it is of.
    #[cfg(feature = "planted-bugs")]
    AnyShardsSuperblock,
    /// What was written to a member since the last flush before it left counts as written.
    LeaveTooLate,
    /// Replay does not mark what members that are away have missed.
    ReplayMissesNothing,
    /// A device comes back by what the member missed although it left at another time than is recorded.
    ReturnUnchecked,
    /// A device that comes back counts as having all that was written since it left.
    TrustReturned,
    /// A member that a start left out as its device was too short comes back by what it missed.
    MaimedComesBack,
    /// That a member was left out as its device was too short is on disk only when the start has ended.
    MaimedToldLate,
    /// What is known durable is on all members that are away, whenever they left.
    AwayHasDurable,
    /// What was planned while a member was out of service counts as written to it when it is back.
    ReturnForgetsPlanned,
    /// A device that has come back is whole before it has its share of the metadata.
    ReturnUnsealed,
    /// A member is whole although it lacks the pages that were saved while it was out of service.
    ReturnLacksPages,
    /// Of members that are made whole together the first gets its copies of pages.
    CopyForFirst,
    /// The members are told of a successor while it is told itself.
    SuccessorToldLast,
    /// A shard hands its member over before the partner holds what it does.
    SucceedEarly,
    /// Members are told of other things while a successor is the only one to know of itself.
    TellBetween,
    /// Shard 0 hands its member over first.
    SucceedFirstShardFirst,
    /// What is written to a range while it is copied to a partner does not wait.
    #[cfg(feature = "planted-bugs")]
    CopyUnlocked,
    /// What was under way when a pair began is not waited for where it is copied.
    #[cfg(feature = "planted-bugs")]
    CopyWhatIsWritten,
    /// Flushes go to the member alone although its partner holds the same.
    #[cfg(feature = "planted-bugs")]
    FlushMemberOnly,
    /// Time in which nobody looked counts as time in which a partner did not answer.
    #[cfg(feature = "planted-bugs")]
    PartnerOwesWhileStopped,
    /// What was not in use is not copied although it was written to since.
    #[cfg(feature = "planted-bugs")]
    SkipWhatIsWritten,
    /// What could not be read of a member, and a scrub found in order, is not copied after all.
    SucceedUnread,
    /// A device that comes to a place forgets its superblocks alone.
    ForgetNamesAlone,
    /// Recovery gives its checkpoint the number of one that was cut short.
    NumberUsedAgain,
    /// Chunks whose bits are not in memory count as not in use.
    SkipWhatIsUnknown,
    /// Time in which nobody ran counts as time in which devices did not answer.
    StoppedCountsAsSilent,
    /// Members that do not answer are given up whether the array can do without them or not.
    ShelfThrownOut,
    /// The others are not told of a member that was given up because it did not answer.
    SilenceUntold,
    /// The driver gives up what is under way on a member before it has what the engine asked of it last.
    GiveUpBeforeSubmit,
    /// Superblocks name the new regions of an array that grows before anything is there.
    GrowCommitsFirst,
    /// Only one member is told that the array has grown.
    GrowTellsOne,
    /// The metadata regions of an array that grows begin in those that it has.
    GrowOverMetadata,
    /// Pages of rows stay where a smaller map ended.
    GrowLeavesRows,
    /// The checkpoint of an array that has grown lacks what is in the log.
    GrowForgetsList,
    /// The cache of stripes keeps the old version of what was written, and what it has is believed.
    StripeCacheKeepsOld,
    /// Others may get the entry of a stripe in the cache while a plan still uses it.
    StripeCacheLetsGo,
    /// What a plan writes is in the cache of stripes before it is written.
    StripeCacheFilledEarly,
    /// Shards that have grown already when others follow them are left as they are found.
    GrowLeavesHalfTold,
    /// The log chunk of a short record is looked for behind that of the last long one of its frame.
    #[cfg(feature = "planted-bugs")]
    CopiedBesideLong,
    /// The log chunks of a packed run are where the first is.
    #[cfg(feature = "planted-bugs")]
    CopiedWhereFirstIs,
    /// Each of the patches of a block is looked for as far from the first page as it is from the one before.
    #[cfg(feature = "planted-bugs")]
    PatchBesideFirst,
    /// What a short commit covers is looked for from what the one before took.
    #[cfg(feature = "planted-bugs")]
    CommitBesideParity,
);

#[cfg(feature = "planted-bugs")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

/// Switches one bug on for the calling thread, or all off.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<Planted>) {
    ACTIVE.set(bug);
    block::planted::plant(bug.and_then(below));
}

/// The bug of the same name in what lies below.
#[cfg(feature = "planted-bugs")]
fn below(bug: Planted) -> Option<block::planted::Planted> {
    let below = [
        (Planted::FanAnswersFirst, block::planted::Planted::FanAnswersFirst),
        (Planted::FanForgetsError, block::planted::Planted::FanForgetsError),
        (Planted::CopyUnlocked, block::planted::Planted::CopyUnlocked),
        (Planted::CopyWhatIsWritten, block::planted::Planted::CopyWhatIsWritten),
        (Planted::FlushMemberOnly, block::planted::Planted::FlushMemberOnly),
        (Planted::SkipWhatIsWritten, block::planted::Planted::SkipWhatIsWritten),
        (Planted::PartnerOwesWhileStopped, block::planted::Planted::PartnerOwesWhileStopped),
        (Planted::FirstShareOnly, block::planted::Planted::FirstShareOnly),
        (Planted::ShareOfRoundBefore, block::planted::Planted::ShareOfRoundBefore),
        (Planted::RunPastUnit, block::planted::Planted::RunPastUnit),
        (Planted::SlicesOverlap, block::planted::Planted::SlicesOverlap),
        (Planted::RoomOfTheFirst, block::planted::Planted::RoomOfTheFirst),
        (Planted::PastTheUnit, block::planted::Planted::PastTheUnit),
        (Planted::UnitsOfTheNext, block::planted::Planted::UnitsOfTheNext),
        (Planted::ShardsShareUuid, block::planted::Planted::ShardsShareUuid),
        (Planted::AnyShardsSuperblock, block::planted::Planted::AnyShardsSuperblock),
        (Planted::CopiedBesideLong, block::planted::Planted::CopiedBesideLong),
        (Planted::CopiedWhereFirstIs, block::planted::Planted::CopiedWhereFirstIs),
        (Planted::PatchBesideFirst, block::planted::Planted::PatchBesideFirst),
        (Planted::CommitBesideParity, block::planted::Planted::CommitBesideParity),
    ];
    below.into_iter().find(|(name, _)| *name == bug).map(|(_, below)| below)
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
